#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-scheduler as a process, before an API server that keeps it waiting: when it is ready, how it
ends, and certificates that change under load."""

import http.client
import json
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import fake_apiserver
import harness
import pki
from harness import wait_until

CONFIG = pathlib.Path(__file__).resolve().parents[3] / "config/device-config.yaml"
CARD = {"count": 10, "devmem": 16384, "devcore": 100, "type": "NVIDIA T4", "mode": "hami-core",
        "health": True}


class Daemon:
    """The daemon, its API server with one node of one card, and its listeners."""

    def __init__(self, *flags):
        self._folder = tempfile.TemporaryDirectory(prefix="vgpu-integration-")
        self.folder = pathlib.Path(self._folder.name)
        self.fake = fake_apiserver.FakeApiServer().up()
        self.fake.store.create("nodes", {
            "metadata": {"name": "n1", "annotations": {
                "hami.io/node-nvidia-register": json.dumps([{"id": "GPU-1", **CARD}])}},
            "status": {"allocatable": {"nvidia.com/gpu": "10"}}})
        authority = pki.Authority(self.folder)
        self.cert, self.key = authority.issue("webhook", names="IP:127.0.0.1")
        self._flags = flags
        self._process = None

    def start(self):
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(fake_apiserver.kubeconfig(self.fake.url)), "utf-8")
        with open(self.folder / "log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [harness.BUILD / "vgpu-scheduler", "--config", CONFIG, "--kubeconfig", kubeconfig,
                 "--extender-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                 "--webhook-listen", "127.0.0.1:0", "--tls-cert", self.cert, "--tls-key", self.key,
                 *self._flags], stderr=log)
        wait_until(lambda: self.port("metrics") or self._process.poll() is not None, "the ports")
        return self

    def log(self):
        return (self.folder / "log").read_text("utf-8")

    def port(self, listener):
        found = re.search(rf'daemon listening for="{listener}".* port=(\d+)', self.log())
        return int(found.group(1)) if found else 0

    def connect(self, listener, seconds=20):
        address = ("127.0.0.1", self.port(listener))
        if listener != "webhook":
            return http.client.HTTPConnection(*address, timeout=seconds)
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        return http.client.HTTPSConnection(*address, timeout=seconds, context=context)

    def ask(self, listener, path, body=None, seconds=20):
        """(status, text)"""
        connection = self.connect(listener, seconds)
        try:
            connection.request("POST" if body is not None else "GET", path,
                               body and json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def wait_ready(self):
        wait_until(lambda: self.ask("metrics", "/readyz")[0] == 200, "readiness")
        return self

    def pod(self, name):
        """A pod that waits on the API server: the arguments of its filter."""
        self.fake.store.create("pods", {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "main", "resources": {"limits": {
                "nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}}}]}})
        return {"Pod": self.fake.store.get("pods", f"default/{name}"), "NodeNames": ["n1"]}

    def place(self, name):
        """Filters a new pod onto n1: the arguments of its bind."""
        args = self.pod(name)
        status, text = self.ask("extender", "/filter", args)
        assert (status, json.loads(text)["NodeNames"]) == (200, ["n1"]), text
        return {"PodName": name, "PodNamespace": "default", "PodUID": args["Pod"]["metadata"]["uid"],
                "Node": "n1"}

    def signal(self, number):
        self._process.send_signal(number)

    def wait_end(self, seconds=30):
        return self._process.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _traceback):
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if kind is not None and self._process:
            sys.stdout.write(self.log()[-6000:])
        self.fake.down()
        self._folder.cleanup()


def test_ready_when_both_lists_are_there():
    with Daemon() as daemon:
        daemon.fake.fault(verb="list", kind="pods", times=1000, status=503)
        daemon.start()
        wait_until(lambda: "pods has not been" in daemon.ask("metrics", "/readyz")[1], "the nodes")
        for listener in ("extender", "webhook", "metrics"):
            assert daemon.ask(listener, "/healthz") == (200, "ok\n"), listener
            assert daemon.ask(listener, "/readyz")[0] == 503, listener
        reply = json.loads(daemon.ask("extender", "/filter", daemon.pod("early"))[1])
        assert "not ready" in reply["Error"] and not reply["NodeNames"], reply
        daemon.fake.clear_faults()
        daemon.wait_ready()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait_end() == 0


def test_end_with_a_bind_in_flight():
    with Daemon().start().wait_ready() as daemon:
        binding = daemon.place("p1")
        replies = []
        daemon.fake.fault(verb="bind", times=1, hang_reply=60)
        asking = threading.Thread(target=lambda: replies.append(
            daemon.ask("extender", "/bind", binding)))
        asking.start()
        wait_until(lambda: daemon.fake.requests("bind"), "the binding")
        daemon.signal(signal.SIGTERM)
        asking.join()
        # Nobody knows what became of it; kube-scheduler asks again, and the next daemon finds out.
        assert replies[0][0] == 503 or json.loads(replies[0][1])["Error"], replies
        assert daemon.wait_end() == 0


def test_end_with_binds_that_wait_for_their_turn():
    with Daemon().start().wait_ready() as daemon:
        bindings = [daemon.place(f"p{i}") for i in range(10)]
        replies = []
        threads = [threading.Thread(target=lambda b=binding: replies.append(
            daemon.ask("extender", "/bind", b))) for binding in bindings]
        for thread in threads:
            thread.start()
        # Nobody acknowledges the first, so that nine wait.
        wait_until(lambda: "kube_vgpu_bind_waiting 9" in daemon.ask("metrics", "/metrics")[1],
                   "nine that wait")
        daemon.signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        good = [text for status, text in replies if status == 200 and not json.loads(text)["Error"]]
        assert len(replies) == 10 and len(good) == 1, replies
        assert daemon.wait_end() == 0
        assert len(daemon.fake.requests("bind")) == 1


def test_end_beside_scrapes():
    with Daemon().start().wait_ready() as daemon:
        # The webhook has a request in flight, and takes its time; the extender is gone by then.
        held = daemon.connect("webhook")
        held.putrequest("POST", "/webhook")
        held.putheader("Content-Length", "100")
        held.endheaders(b"{")
        scrape = daemon.connect("metrics")
        scrape.request("GET", "/metrics")
        assert b"certificate_expiry" in scrape.getresponse().read()
        daemon.signal(signal.SIGTERM)
        wait_until(lambda: "ending" in daemon.log(), "the signal")
        time.sleep(0.5)
        for _ in range(3):
            scrape.request("GET", "/metrics")
            reply = scrape.getresponse()
            assert reply.status == 200 and b"kube_vgpu_ready" in reply.read()
        held.close()
        assert daemon.wait_end() == 0


def test_certificates_change_under_load():
    with Daemon().start().wait_ready() as daemon:
        stop = threading.Event()
        wrong = []
        counts = {}

        def load(listener, path, body):
            while not stop.is_set():
                try:
                    status, text = daemon.ask(listener, path, body)
                    if status != 200:
                        wrong.append((path, status, text[:200]))
                except (OSError, http.client.HTTPException) as error:
                    wrong.append((path, error))
                counts[path] = counts.get(path, 0) + 1

        args = daemon.pod("p1")
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
            "uid": "1", "kind": {"kind": "Pod"}, "operation": "CREATE", "object": args["Pod"]}}
        threads = [threading.Thread(target=load, args=row) for row in (
            ("extender", "/filter", args), ("extender", "/filter", daemon.pod("p2")),
            ("webhook", "/webhook", review), ("metrics", "/metrics", None),
            ("metrics", "/state", None), ("metrics", "/explain", args["Pod"]))]
        for thread in threads:
            thread.start()
        for _ in range(10):
            daemon.signal(signal.SIGHUP)
            time.sleep(0.2)
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:5]
        assert len(counts) == 5 and min(counts.values()) > 5, counts
        assert daemon.log().count("certificate read again") >= 8, "certificates were not read"
        daemon.signal(signal.SIGTERM)
        assert daemon.wait_end() == 0


if __name__ == "__main__":
    harness.run_tests(harness.tests_of(sys.modules[__name__]))
