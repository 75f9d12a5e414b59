"""A certificate authority made for one run, with Debian's openssl."""

import pathlib
import subprocess


class Authority:
    """A CA in a folder; `issue` makes certificates that it signed."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cert = self.folder / "ca.crt"
        self.key = self.folder / "ca.key"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-nodes", "-days", "2", "-subj", f"/CN={name}",
                      "-keyout", self.key, "-out", self.cert)

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def issue(self, name, organisation="", addresses=()):
        """Makes NAME.crt and NAME.key and returns their paths.

        With addresses it is a server's certificate, without it is a client's: Kubernetes takes
        the common name for the user and the organisation for the group.
        """
        stem = name.replace(":", "-")
        cert, key, request = (self.folder / f"{stem}.{end}" for end in ("crt", "key", "csr"))
        extensions = self.folder / f"{stem}.ext"
        usage = "serverAuth" if addresses else "clientAuth"
        lines = [f"extendedKeyUsage={usage}", "basicConstraints=CA:FALSE"]
        if addresses:
            kinds = ("IP" if address[0].isdigit() else "DNS" for address in addresses)
            names = (f"{kind}:{address}" for kind, address in zip(kinds, addresses))
            lines.append("subjectAltName=" + ",".join(names))
        extensions.write_text("\n".join(lines) + "\n")
        subject = (f"/O={organisation}" if organisation else "") + f"/CN={name}"
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", subject, "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key,
                      "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", cert)
        return cert, key

    def key_pair(self, name):
        """Makes an RSA key for service account tokens; returns (public, private)."""
        private, public = self.folder / f"{name}.key", self.folder / f"{name}.pub"
        self._openssl("genrsa", "-out", private, "2048")
        self._openssl("rsa", "-in", private, "-pubout", "-out", public)
        return public, private
