# SPDX-License-Identifier: Apache-2.0
"""What the Python cases share: the client driver, waiting, and running tests one by one."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import fake_apiserver
import h2front
import pki

BUILD = pathlib.Path(os.environ.get("VGPU_BUILD", "build")).resolve()

# Short, so that a test of a dead connection takes seconds; the defaults are for daemons. A sanitizer
# build is slower, but no deadline here is met by computing.
TIMING = {
    "connect_ms": 2000, "answer_ms": 1500, "idle_ms": 1500, "watch_ms": 1000,
    "watch_slack_ms": 1000, "backoff_min_ms": 20, "backoff_max_ms": 400, "bind_ms": 6000,
    "bind_answer_ms": 700,
}


class Timeout(AssertionError):
    """A condition did not come true before its deadline."""


def wait_until(condition, what, seconds=15.0):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Timeout(f"after {seconds} s still waiting for {what}")
        time.sleep(0.01)


class Driver:
    """kube_driver, and the cluster as its sink was told."""

    def __init__(self, kubeconfig, folder, **timing):
        path = pathlib.Path(folder) / "kubeconfig"
        path.write_text(json.dumps(kubeconfig), encoding="utf-8")
        command = [BUILD / "tests/integration/kube_driver", "--kubeconfig", path]
        for name, value in {**TIMING, **timing}.items():
            command += ["--timing", f"{name}={value}"]
        self.known = {kind: {} for kind in fake_apiserver.FOLLOWED}
        self.lines = []
        self.bound = {}
        self.violations = []
        self._listing = {}
        self._lock = threading.Lock()
        self._log = open(pathlib.Path(folder) / "driver.log", "w+", encoding="utf-8")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._log, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # ---- what it says ----

    def _read(self):
        for text in self._process.stdout:
            line = json.loads(text)
            with self._lock:
                self.lines.append(line)
                self._take(line)

    def _take(self, line):
        if "list_begin" in line:
            self._listing[line["list_begin"]] = set()
        elif "list_abort" in line:
            del self._listing[line["list_abort"]]
        elif "list_end" in line:
            kind = line["list_end"]
            listed = self._listing.pop(kind)
            self.known[kind] = {key: value for key, value in self.known[kind].items()
                                if key in listed}
        elif "put" in line:
            self._take_put(line["put"], line)
        elif "delete" in line:
            self.known[line["delete"]].pop(line["key"], None)
        elif "malformed" in line:
            # The contract: an object that is known stays known.
            if line["malformed"] in self._listing:
                self._listing[line["malformed"]].add(line["key"])
        elif "bound" in line:
            if line["bound"] in self.bound:
                self.violations.append(f"done() twice: {line}")
            self.bound[line["bound"]] = line

    def _take_put(self, kind, line):
        before = self.known[kind].get(line["key"])
        if before and line["version"] < before["version"]:
            self.violations.append(f"back in time: {before['version']} then {line}")
        if kind in self._listing:
            self._listing[kind].add(line["key"])
        self.known[kind][line["key"]] = {"uid": line["uid"], "version": line["version"],
                                         "node": line.get("node"),
                                         "allocated": line.get("allocated"),
                                         "hard": line.get("hard")}

    def state(self):
        with self._lock:
            return {kind: {key: {"uid": value["uid"], "version": value["version"]}
                           for key, value in self.known[kind].items()} for kind in self.known}

    def pod(self, key):
        with self._lock:
            return self.known["pods"].get(key)

    def said(self, word, value=None):
        """The lines that have the word, or the word with this value."""
        with self._lock:
            return [line for line in self.lines
                    if word in line and value in (None, line[word])]

    def log(self):
        self._log.flush()
        return pathlib.Path(self._log.name).read_text(encoding="utf-8", errors="replace")

    # ---- what it is told ----

    def send(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def bind(self, id_, pod, node, uid=None, **annotations):
        namespace, name = pod.split("/")
        words = [f"{key}={value}" for key, value in annotations.items()]
        self.send(" ".join(["bind", id_, namespace, name, uid or "-", node, *words]))

    def outcome(self, id_, seconds=15.0):
        """How the bind ended: (code, message)."""
        line = wait_until(lambda: self.bound.get(id_), f"the end of bind {id_}", seconds)
        return line["code"], line["message"]

    def stats(self):
        count = len(self.said("stats"))
        self.send("stats")
        return wait_until(lambda: self.said("stats")[count:], "stats")[0]["stats"]

    def stop(self, seconds=5.0):
        """Ends it; how long that took."""
        began = time.monotonic()
        if self._process.poll() is None:
            self.send("stop")
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise Timeout(f"kube_driver did not stop in {seconds} s") from None
        self._reader.join()
        self._log.close()
        assert code == 0, f"kube_driver ended with {code}"
        assert not self.violations, self.violations
        return time.monotonic() - began

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Case:
    """One server and one driver, in a folder of their own; with HTTP/2 and TLS between them if
    `http2`."""

    http2 = False

    def __init__(self, timing=None, user=None, cluster=None, **server):
        self._folder = tempfile.TemporaryDirectory(prefix="vgpu-integration-")
        self.folder = pathlib.Path(self._folder.name)
        self.fake = fake_apiserver.FakeApiServer(**server).up()
        self._timing = timing or {}
        self._user = user
        self._cluster = cluster
        self.driver = None
        self.front = self._start_front() if self.http2 else None

    def _start_front(self):
        authority = pki.Authority(self.folder)
        pair = authority.issue("front", names="IP:127.0.0.1")
        self._cluster = {"certificate-authority": str(authority.cert)}
        return h2front.H2Front(pki.server_context(pair), self.fake.port)

    def start(self, **timing):
        url = f"https://127.0.0.1:{self.front.port}" if self.front else self.fake.url
        config = fake_apiserver.kubeconfig(url, self._cluster, self._user)
        self.driver = Driver(config, self.folder, **{**self._timing, **timing})
        return self.driver

    def wait_equal(self, seconds=15.0):
        """Until what the client knows is the truth."""
        try:
            wait_until(lambda: self.driver.state() == self.fake.store.truth(),
                       "the client to know the truth", seconds)
        except Timeout as error:
            raise Timeout(f"{error}: {self._difference()}") from None

    def _difference(self):
        known, truth = self.driver.state(), self.fake.store.truth()
        return {kind: {key: (known[kind].get(key), truth[kind].get(key))
                       for key in set(known[kind]) | set(truth[kind])
                       if known[kind].get(key) != truth[kind].get(key)} for kind in truth}

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _traceback):
        try:
            if self.driver and kind is None:
                self.driver.stop()
        finally:
            if self.driver:
                self.driver.kill()
                if kind is not None:
                    sys.stdout.write(self.driver.log()[-3000:])
            if self.front:
                self.front.close()
            self.fake.down()
            self._folder.cleanup()


def tests_of(module):
    """Every function whose name begins with test_, in the order of the file."""
    return {name: function for name, function in vars(module).items() if name.startswith("test_")}


def run_tests(tests):
    """Runs them one by one, or those named on the command line."""
    wanted = sys.argv[1:]
    tests = {name: function for name, function in tests.items() if not wanted or name in wanted}
    failed = 0
    for name, function in tests.items():
        began = time.monotonic()
        try:
            function()
        except Exception:  # pylint: disable=broad-except
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"not ok {name}", flush=True)
        else:
            print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
    sys.exit(1 if failed or not tests else 0)
