"""A whole control plane on loopback ports: etcd, kube-apiserver, kube-scheduler, our daemon and
the node stub, each with an identity of its own."""

import base64
import http.client
import json
import pathlib
import re
import signal
import ssl
import string
import subprocess
import sys
import time

from harness.api import Api, ApiError, Credentials
from harness.pki import Authority
from harness.process import Process, free_ports, wait_until

HERE = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = HERE.parent.parent / "deploy"
SCHEDULER_NAME = "vgpu-scheduler"
DAEMON_USER = "system:serviceaccount:kube-system:vgpu-scheduler"


class Cluster:
    """Everything that runs for one Kubernetes version, in one folder."""

  
    def __init__(self, version, programs, daemon, config, folder):
        self.version = version
        self.minor = int(version.split(".")[1])
        self.programs = pathlib.Path(programs)
        self.daemon_program = pathlib.Path(daemon).resolve()
        self.config = pathlib.Path(config).resolve()
        self.folder = pathlib.Path(folder)
        self.logs = self.folder / "logs"
        self.logs.mkdir(parents=True)
        ports = iter(free_ports(7))
        (self.etcd, self.etcd_peer, self.server, self.kube_scheduler, self.extender,
         self.webhook, self.metrics) = (f"127.0.0.1:{port}" for port in ports)
        self.processes = []
        self.journal = self.folder / "node-stub.journal"
        self.timings = []
        self.admin = None
        self.pki = None
        self.daemon = None

    # ---- life ---------------------------------------------------------------------------------

    def start(self):
        """Brings everything up, in the order in which an administrator would."""
        for step in (self._start_etcd, self._start_server, self._start_nodes, self._start_daemon,
                     self._register_webhook, self._start_kube_scheduler):
            begin = time.monotonic()
            step()
            name = step.__name__.lstrip("_").replace("_", " ")
            self.timings.append((name, time.monotonic() - begin))

    def stop(self):
        """Ends everything, last started first. Never raises: it runs after failures too. The
        control plane is thrown away, and would take its time to leave politely."""
        for process in reversed(self.processes):
            try:
                process.stop(signal.SIGTERM if process is self.daemon else signal.SIGKILL, 10)
            except Exception as error:
                print(f"stopping {process.name}: {error}", file=sys.stderr)

    def _run(self, name, *command, env=None):
        process = Process(name, command, self.logs, env)
        self.processes.append(process)
        return process.start()

    def _await(self, process, condition, seconds, what):
        """Like wait_until, but a process that ended fails at once and shows its log."""
        def alive_and_true():
            if not process.running():
                raise RuntimeError(f"{process.name} ended with {process.child.returncode}:\n"
                                   f"{process.tail()}")
            try:
                return condition()
            except (OSError, http.client.HTTPException, ApiError):
                return False
        return wait_until(alive_and_true, seconds, f"{what}; last words of {process.name}:\n"
                          f"{process.tail(5)}" if process.child else what)

    # ---- the parts ----------------------------------------------------------------------------

    def _start_etcd(self):
        process = self._run(
            "etcd", self.programs / "etcd", "--data-dir", self.folder / "etcd", "--name", "e2e",
            "--listen-client-urls", f"http://{self.etcd}",
            "--advertise-client-urls", f"http://{self.etcd}",
            "--listen-peer-urls", f"http://{self.etcd_peer}",
            "--initial-advertise-peer-urls", f"http://{self.etcd_peer}",
            "--initial-cluster", f"e2e=http://{self.etcd_peer}", "--log-level", "warn")
        self._await(process, lambda: http_get(self.etcd, "/health")[0] == 200, 60, "etcd")

    def _start_server(self):
        self.pki = Authority(self.folder / "pki", "e2e")
        cert, key = self.pki.issue("kube-apiserver", addresses=["127.0.0.1", "localhost"])
        public, private = self.pki.key_pair("service-accounts")
        process = self._run(
            "kube-apiserver", self.programs / "kube-apiserver",
            f"--etcd-servers=http://{self.etcd}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            f"--secure-port={port_of(self.server)}",
            f"--tls-cert-file={cert}", f"--tls-private-key-file={key}",
            f"--client-ca-file={self.pki.cert}", "--authorization-mode=RBAC",
            f"--cert-dir={self.folder / 'pki'}", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={private}",
            "--allow-privileged=true",
            # There is no controller manager, so nobody makes the default service accounts.
            "--disable-admission-plugins=ServiceAccount")
        self.admin = self.client("e2e-admin", "system:masters")
        self._await(process, lambda: self.admin.text("/readyz") == "ok", 120, "kube-apiserver")
        self.apply(DEPLOY / "rbac.yaml")
        self.apply(HERE / "manifests" / "node-stub-rbac.yaml")

    def _start_nodes(self):
        cert, key = self.pki.issue("node-stub")
        process = self._run(
            "node-stub", sys.executable, HERE / "node_stub.py", "--server", self.server,
            "--ca", self.pki.cert, "--cert", cert, "--key", key, "--journal", self.journal,
            HERE / "nodes.json")
        self._await(process, lambda: any("ready" in entry for entry in self.journal_entries()),
                    60, "the node stub to register its nodes")

    def _start_daemon(self):
        # The webhook has an authority of its own: what the API server trusts there has nothing
        # to do with whom it trusts as a client.
        authority = Authority(self.folder / "webhook-pki", "e2e webhook")
        cert, key = authority.issue("vgpu-scheduler.kube-system.svc", addresses=[
            "127.0.0.1", "vgpu-scheduler.kube-system.svc"])
        self.webhook_ca = authority.cert
        self.daemon = self._run(
            "vgpu-scheduler", self.daemon_program, "--config", self.config,
            "--extender-listen", self.extender, "--webhook-listen", self.webhook,
            "--tls-cert", cert, "--tls-key", key, "--metrics-listen", self.metrics,
            "--kubeconfig", self._daemon_kubeconfig(), "--scheduler-name", SCHEDULER_NAME)
        self.await_daemon()

    def _register_webhook(self):
        self.apply(HERE / "manifests" / "webhook.yaml", review_version=self.review_version(),
                   webhook_address=self.webhook,
                   ca_bundle=base64.b64encode(self.webhook_ca.read_bytes()).decode())
        # The API server learns of it through a watch: try until a pod is really sent there.
        probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {
            "containers": [{"name": "main", "image": "none",
                            "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
        def captured():
            reply = self.admin.request("POST", "/api/v1/namespaces/default/pods", probe,
                                       dryRun="All")
            return reply["spec"]["schedulerName"] == SCHEDULER_NAME
        self._await(self.daemon, captured, 60, "the webhook to be called")

    def _start_kube_scheduler(self):
        kubeconfig = self.kubeconfig("system:kube-scheduler")
        config = self.folder / "kube-scheduler.yaml"
        config.write_text(self._scheduler_config(kubeconfig))
        insecure = ["--port=0"] if self.minor < 23 else []
        process = self._run(
            "kube-scheduler", self.programs / "kube-scheduler", f"--config={config}",
            "--bind-address=127.0.0.1", f"--secure-port={port_of(self.kube_scheduler)}",
            f"--cert-dir={self.folder / 'pki'}", f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}", "-v=3", *insecure)
        scheduler = Api(self.kube_scheduler, Insecure())
        self._await(process, lambda: scheduler.text("/healthz") == "ok", 60, "kube-scheduler")

    def _scheduler_config(self, kubeconfig):
        """The configuration that we ship, as an administrator would adapt it. The short backoff
        only makes retries, of which the tests provoke many, come sooner."""
        text = (DEPLOY / "kube-scheduler-config.yaml").read_text()
        edits = {"leaderElect: true": "leaderElect: false",
                 "http://127.0.0.1:8080": f"http://{self.extender}"}
        if self.minor < 25:
            # The file's own words: v1beta2 from 1.22 on, v1beta1 before.
            edits["apiVersion: kubescheduler.config.k8s.io/v1\n"] = (
                "apiVersion: kubescheduler.config.k8s.io/"
                f"{'v1beta2' if self.minor >= 22 else 'v1beta1'}\n")
        for old, new in edits.items():
            if text.count(old) != 1:
                raise RuntimeError(f"kube-scheduler-config.yaml: {old!r} is not there once")
            text = text.replace(old, new)
        return text + (f"clientConnection:\n  kubeconfig: {kubeconfig}\n"
                       "podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 2\n")

    # ---- identities ---------------------------------------------------------------------------

    def client(self, user, group=""):
        """An API client with a certificate of its own."""
        cert, key = self.pki.issue(user, group)
        return Api(self.server, Credentials(self.pki.cert, cert, key))

    def kubeconfig(self, user, group=""):
        """A kubeconfig with a client certificate, in files beside it."""
        cert, key = self.pki.issue(user, group)
        return self._write_kubeconfig(
            user, {"certificate-authority": str(self.pki.cert)},
            {"client-certificate": str(cert), "client-key": str(key)})

    def _daemon_kubeconfig(self):
        """Old clusters: a token. New ones: a client certificate. Both ways of writing the files
        of a kubeconfig, so that each is in use somewhere."""
        if self.minor < 24:
            reply = self.admin.create(
                "/api/v1/namespaces/kube-system/serviceaccounts/vgpu-scheduler/token",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                 "spec": {"audiences": ["https://kubernetes.default.svc"],
                          "expirationSeconds": 7200}})
            data = base64.b64encode(self.pki.cert.read_bytes()).decode()
            return self._write_kubeconfig(DAEMON_USER, {"certificate-authority-data": data},
                                          {"token": reply["status"]["token"]})
        return self.kubeconfig(DAEMON_USER)

    def _write_kubeconfig(self, user, cluster_fields, user_fields):
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        lines = ["apiVersion: v1", "kind: Config", "clusters:", "- name: e2e", "  cluster:",
                 f"    server: https://{self.server}"]
        lines += [f"    {key}: {value}" for key, value in cluster_fields.items()]
        lines += ["users:", "- name: me", "  user:"]
        lines += [f"    {key}: {value}" for key, value in user_fields.items()]
        lines += ["contexts:", "- name: e2e", "  context:", "    cluster: e2e", "    user: me",
                  "current-context: e2e"]
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        return path

    def apply(self, manifest, **values):
        """kubectl apply, as the administrator."""
        text = fill_in(manifest, **values) if values else manifest.read_text()
        admin = self.folder / "e2e-admin.kubeconfig"
        if not admin.exists():
            self.kubeconfig("e2e-admin", "system:masters")
        done = subprocess.run(
            [self.programs / "kubectl", f"--kubeconfig={admin}", "apply", "-f", "-"], check=False,
            input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise RuntimeError(f"kubectl apply -f {manifest}: {done.stdout}")

    # ---- the daemon ---------------------------------------------------------------------------

    def review_version(self):
        """The AdmissionReview version that this cluster is told to send."""
        return "v1beta1" if self.minor < 22 else "v1"

    def await_daemon(self):
        """Waits until the daemon says that it is ready."""
        self._await(self.daemon, lambda: http_get(self.metrics, "/readyz")[0] == 200, 60,
                    "vgpu-scheduler to be ready")

    def restart_daemon(self, how=signal.SIGTERM, while_down=lambda: None):
        """Stops the daemon with a signal, starts it again and waits until it is ready; returns
        the exit status."""
        status = self.daemon.stop(how)
        while_down()
        self.daemon.start()
        self.await_daemon()
        return status

    def state(self):
        """GET /state, decoded."""
        status, body = http_get(self.metrics, "/state")
        if status != 200:
            raise RuntimeError(f"GET /state: {status}: {body[:300]}")
        return json.loads(body)

    def metrics_text(self):
        """GET /metrics."""
        status, body = http_get(self.metrics, "/metrics")
        if status != 200:
            raise RuntimeError(f"GET /metrics: {status}: {body[:300]}")
        return body

    def ledger(self):
        """{uuid: (slots, mem_mib, cores)} of the cards in use, as /state has it."""
        result = {}
        for node in self.state()["nodes"]:
            for card in node["cards"]:
                used = tuple(card[what]["used"] for what in ("slots", "memMiB", "cores"))
                if any(used):
                    result[card["uuid"]] = used
        return result

    def metrics_ledger(self):
        """The same as /metrics has it."""
        result = {}
        for index, (name, unit) in enumerate((
                ("hami_gpu_shared_count", 1), ("hami_gpu_memory_allocated_bytes", 2**20),
                ("hami_gpu_core_allocated_ratio", 1))):
            for labels, value in metric(self.metrics_text(), name):
                result.setdefault(labels["device_uuid"], [0, 0, 0])[index] = int(value) // unit
        return {uuid: tuple(used) for uuid, used in result.items() if any(used)}

    # ---- the node stub ------------------------------------------------------------------------

    def journal_entries(self):
        """What the node stub has written so far."""
        try:
            lines = self.journal.read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def complaints(self):
        """What the nodes could not have worked with."""
        return [entry["complaint"] for entry in self.journal_entries() if "complaint" in entry]


class Insecure:
    """kube-scheduler makes a certificate of its own; we only ask whether it is healthy."""

    def __init__(self):
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE


def metric(text, name):
    """[(labels, value)] of a metric in Prometheus text."""
    result = []
    for line in text.splitlines():
        match = re.fullmatch(r"([a-zA-Z0-9_:]+)(?:\{(.*)\})? (\S+)", line)
        if match and match[1] == name:
            labels = re.findall(r'([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"', match[2] or "")
            result.append((dict(labels), float(match[3])))
    return result


def port_of(address):
    """The port of HOST:PORT."""
    return address.rsplit(":", 1)[1]


def http_get(address, path, timeout=10):
    """(status, text) of a plain HTTP GET."""
    return http_call("GET", address, path, timeout=timeout)


def http_call(method, address, path, body=None, timeout=30):
    """(status, text) of a plain HTTP request, with a JSON body if one is given."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data,
                           {"Content-Type": "application/json"} if data else {})
        reply = connection.getresponse()
        return reply.status, reply.read().decode(errors="replace")
    finally:
        connection.close()


def fill_in(path, **values):
    """A manifest with its ${...} replaced."""
    return string.Template(path.read_text()).substitute(values)
