# SPDX-License-Identifier: Apache-2.0
"""Certificates for one test, made by the openssl program."""

import pathlib
import ssl
import subprocess


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A certificate authority in a folder; its own certificate is FOLDER/NAME.crt."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = pathlib.Path(folder), name
        self.cert = self.folder / f"{name}.crt"
        self._key = self.folder / f"{name}.key"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-days", 2, "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.cert)

    def issue(self, name, *, organisation="test", names="", usage="serverAuth"):
        """(certificate, key) for CN=name; names as in "DNS:a,IP:127.0.0.1"."""
        cert, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"extendedKeyUsage={usage}\n" +
                              (f"subjectAltName={names}\n" if names else ""), encoding="ascii")
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", f"/O={organisation}/CN={name}", "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self._key,
                 "-CAcreateserial", "-days", 2, "-extfile", extensions, "-out", cert)
        return cert, key


def server_context(pair, client_authority=None):
    """For a server with this certificate; clients must show one of the authority, if given."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    if client_authority:
        context.load_verify_locations(client_authority.cert)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
