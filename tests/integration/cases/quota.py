#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quotas of namespaces from the API server: followed by the client, and kept by vgpu-scheduler."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import fake_apiserver
import harness
from harness import Case, wait_until

CONFIG = pathlib.Path(__file__).resolve().parents[3] / "config/device-config.yaml"
NONE = 2**63 - 1


def quota(name, namespace="default", **hard):
    names = {"mem": "limits.nvidia.com/gpumem", "cores": "limits.nvidia.com/gpucores"}
    return {"metadata": {"name": name, "namespace": namespace},
            "spec": {"hard": {names[key]: str(value) for key, value in hard.items()}}}


# ---- the client ----


def test_followed():
    with Case() as case:
        store = case.fake.store
        store.create("resourcequotas", quota("a", mem=1000))
        driver = case.start()
        case.wait_equal()

        def known(key):
            return driver.known["resourcequotas"].get(key, {}).get("hard")

        assert known("default/a") == [1000, NONE], driver.known
        store.patch("resourcequotas", "default/a", {"spec": {"hard": {
            "limits.nvidia.com/gpumem": "0", "limits.nvidia.com/gpucores": "1e2"}}})
        store.create("resourcequotas", quota("a", "other", mem=5))
        case.wait_equal()
        assert known("default/a") == [0, 100], driver.known
        assert known("other/a") == [5, NONE], driver.known
        store.patch("resourcequotas", "other/a", {"spec": 5})
        wait_until(lambda: driver.said("malformed", "resourcequotas"), "a complaint")
        assert known("other/a") == [5, NONE], "what was known stays"
        store.delete("resourcequotas", "other/a")
        store.delete("resourcequotas", "default/a")
        case.wait_equal()


def test_forbidden_is_said_once_and_asked_again():
    with Case() as case:
        case.fake.store.create("nodes", {"metadata": {"name": "n"}})
        case.fake.store.create("resourcequotas", quota("a", mem=1000))
        case.fake.fault("list", "resourcequotas", times=3, status=403,
                        message='resourcequotas is forbidden: User "x" cannot list')
        driver = case.start()
        wait_until(lambda: len(driver.said("forbidden", "resourcequotas")) == 3, "three refusals")
        assert driver.state()["nodes"], "everything else is followed"
        case.wait_equal()
        log = driver.log()
        assert log.count("goes on without objects of a kind that it may not read") == 1, log
        assert "allows get, list and watch on resourcequotas in all namespaces" in log, log
        assert "follows the cluster again" in log, log
        assert not driver.said("forbidden", "nodes") and not driver.said("forbidden", "pods")
        # Not in a hurry: nobody may ever allow it.
        at = [entry["at"] for entry in case.fake.requests("list", "resourcequotas")]
        assert all(later - earlier >= 0.4 for earlier, later in zip(at, at[1:])), at


def test_forbidden_later_forgets_nothing():
    with Case() as case:
        case.fake.store.create("resourcequotas", quota("a", mem=1000))
        driver = case.start()
        case.wait_equal()
        case.fake.fault("watch", "resourcequotas", times=2, status=403, message="no longer")
        wait_until(lambda: len(driver.said("forbidden")) == 2, "two refusals")
        assert not driver.said("delete"), "it may be a mistake of a moment"
        case.fake.store.create("resourcequotas", quota("b", mem=1))
        case.wait_equal()


def test_forbidden_pods_are_no_reason_to_go_on():
    with Case() as case:
        case.fake.fault("list", "pods", times=2, status=403)
        driver = case.start()
        case.wait_equal()
        wait_until(lambda: len(case.fake.requests("list", "pods")) == 3, "three lists")
        assert not driver.said("forbidden")


# ---- the daemon ----


class Daemon:
    """vgpu-scheduler against a fake API server."""

    def __init__(self, prepare=None, arguments=()):
        self._folder = tempfile.TemporaryDirectory(prefix="vgpu-integration-")
        folder = pathlib.Path(self._folder.name)
        self.fake = fake_apiserver.FakeApiServer().up()
        if prepare:
            prepare(self.fake)
        path = folder / "kubeconfig"
        path.write_text(json.dumps(fake_apiserver.kubeconfig(self.fake.url)), encoding="utf-8")
        self._log = open(folder / "log", "w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [harness.BUILD / "vgpu-scheduler", "--config", CONFIG, "--kubeconfig", path,
             "--extender-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", *arguments],
            stdout=self._log, stderr=subprocess.STDOUT)
        self.ports = {}

    def log(self):
        return pathlib.Path(self._log.name).read_text(encoding="utf-8", errors="replace")

    def port(self, listener):
        def find():
            found = re.search(rf'listening for="?{listener}"? .*port=(\d+)', self.log())
            return found and int(found.group(1))
        if listener not in self.ports:
            self.ports[listener] = wait_until(find, f"the {listener} listener")
        return self.ports[listener]

    def ask(self, listener, path, body=None):
        """(status, text)"""
        url = f"http://127.0.0.1:{self.port(listener)}{path}"
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def state(self):
        return json.loads(self.ask("metrics", "/state")[1])

    def ready(self):
        return self.ask("extender", "/readyz")[0] == 200

    def filter(self, pod, *nodes):
        return json.loads(self.ask("extender", "/filter", {
            "Pod": pod, "NodeNames": list(nodes)})[1])

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _traceback):
        self._process.terminate()
        try:
            code = self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        text = self.log()
        self._log.close()
        self.fake.down()
        self._folder.cleanup()
        if kind is not None:
            sys.stdout.write(text[-3000:])
        assert kind is not None or code == 0, f"vgpu-scheduler ended with {code}: {text[-3000:]}"


def node(name, cards=2):
    register = [{"id": f"GPU-{name}-{i}", "index": i, "count": 10, "devmem": 16000, "devcore": 100,
                 "type": "NVIDIA A100", "numa": 0, "mode": "hami-core", "health": True}
                for i in range(cards)]
    return {"metadata": {"name": name, "annotations": {
        "hami.io/node-nvidia-register": json.dumps(register)}}}


def pod(name, mem, cards=1, namespace="default"):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [
        {"name": "c", "resources": {"limits": {"nvidia.com/gpu": str(cards),
                                               "nvidia.com/gpumem": str(mem)}}}]}}


def test_filter_bind_and_state():
    def prepare(fake):
        fake.store.create("nodes", node("n1"))
        fake.store.create("resourcequotas", quota("team", mem=10000))

    with Daemon(prepare) as daemon:
        wait_until(daemon.ready, "readiness")
        store = daemon.fake.store
        first = store.create("pods", pod("first", 3000, cards=2))
        assert daemon.filter(first, "n1")["NodeNames"] == ["n1"]
        assert daemon.state()["quotas"] == [{
            "namespace": "default", "class": "NVIDIA",
            "memMiB": {"used": 6000, "limit": 10000, "quota": "team"}, "cores": {"used": 0}}]

        second = store.create("pods", pod("second", 4001))
        answer = daemon.filter(second, "n1")
        assert answer["FailedNodes"] == {"n1": "2/2 ResourceQuotaNotFit"}, answer
        alone = store.create("pods", pod("alone", 10001))
        answer = daemon.filter(alone, "n1")
        assert answer["FailedAndUnresolvableNodes"] == {"n1": "2/2 ResourceQuotaNotFit"}, answer
        elsewhere = store.create("pods", pod("elsewhere", 10001, namespace="free"))
        assert daemon.filter(elsewhere, "n1")["NodeNames"] == ["n1"]

        # Bound, and the watch shows it: the same as before.
        status, text = daemon.ask("extender", "/bind", {
            "PodName": "first", "PodNamespace": "default",
            "PodUID": first["metadata"]["uid"], "Node": "n1"})
        assert status == 200 and not json.loads(text).get("Error"), text
        wait_until(lambda: [entry for entry in daemon.state()["pods"]
                            if entry["state"] == "bound"], "the bound pod")
        assert daemon.state()["quotas"][0]["memMiB"]["used"] == 6000

        # A tighter one beside it, which then goes away again.
        store.create("resourcequotas", quota("tight", mem=6000))
        wait_until(lambda: daemon.state()["quotas"][0]["memMiB"]["limit"] == 6000, "the new one")
        small = store.create("pods", pod("small", 1))
        assert daemon.filter(small, "n1")["FailedNodes"], "full"
        store.delete("resourcequotas", "default/tight")
        wait_until(lambda: daemon.state()["quotas"][0]["memMiB"]["limit"] == 10000, "the old one")
        assert daemon.filter(small, "n1")["NodeNames"] == ["n1"]

        # The pod goes: its part of the quota with it.
        store.delete("pods", "default/first")
        wait_until(lambda: daemon.state()["quotas"][0]["memMiB"]["used"] == 1, "the rest")
        metrics = daemon.ask("metrics", "/metrics")[1]
        assert ('hami_resource_quota_used{zone="vGPU",namespace="default",'
                'quota_name="nvidia.com/gpumem",limit="10000"} 1\n') in metrics
        assert ('hami_resource_quota_limit{zone="vGPU",namespace="default",'
                'quota_name="nvidia.com/gpumem"} 10000\n') in metrics


def test_ready_waits_for_quotas():
    def prepare(fake):
        fake.store.create("nodes", node("n1"))
        fake.fault("list", "resourcequotas", times=-1, status=500)

    with Daemon(prepare) as daemon:
        wait_until(lambda: len(daemon.fake.requests("watch", "pods")), "the pods")
        wait_until(lambda: len(daemon.fake.requests("watch", "nodes")), "the nodes")
        status, text = daemon.ask("extender", "/readyz")
        assert status == 503 and "resourcequotas" in text, (status, text)
        daemon.fake.clear_faults()
        wait_until(daemon.ready, "readiness")


def test_a_role_without_quotas():
    """Roles that were written for another scheduler must go on to work."""
    def prepare(fake):
        fake.store.create("nodes", node("n1"))
        fake.store.create("resourcequotas", quota("team", mem=0))
        fake.fault("*", "resourcequotas", times=-1, status=403, message="resourcequotas: no")

    with Daemon(prepare, ["--stale-after", "5"]) as daemon:
        wait_until(daemon.ready, "readiness")
        assert daemon.filter(daemon.fake.store.create("pods", pod("p", 1)), "n1")["NodeNames"]
        assert daemon.state()["quotasForbidden"] is True
        metrics = daemon.ask("metrics", "/metrics")[1]
        assert 'kube_vgpu_source_forbidden{kind="resourcequota"} 1\n' in metrics
        # It does not become stale by what it cannot hear.
        until = time.monotonic() + 6.5
        while time.monotonic() < until:
            status, text = daemon.ask("extender", "/readyz")
            assert status == 200, text
            time.sleep(0.1)
        assert daemon.log().count("goes on without objects of a kind") == 1, daemon.log()


if __name__ == "__main__":
    harness.run_tests(harness.tests_of(sys.modules[__name__]))
