"""What a case is given: a namespace of its own, ways to make pods and to wait for them, and
`check`, which prints and counts."""

import time
import traceback

from harness import wire
from harness.api import ApiError, pods_path
from harness.cluster import SCHEDULER_NAME
from harness.process import Timeout, wait_until

# Generous: a condition that holds is noticed at once, and slow machines are no failure.
PATIENCE = 120


class Score:
    """Passed and failed checks, each one line of output."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, holds, text, detail=""):
        """Counts and prints one check; `detail` is shown when it failed."""
        if holds:
            self.passed += 1
            print(f"  ok    {text}", flush=True)
        else:
            self.failed += 1
            print(f"  FAIL  {text}" + (f": {detail}" if detail else ""), flush=True)
        return bool(holds)


class Case:
    """One case at work. `cluster`, `audit` and `api` (the administrator) are there to be used."""

    def __init__(self, name, cluster, audit, score):
        self.name = name
        self.cluster = cluster
        self.audit = audit
        self.api = cluster.admin
        self.check = score.check
        self.score = score
        self.namespace = name.replace("_", "-")

    def run(self, function):
        """Runs a case in its namespace and removes its pods afterwards."""
        print(f"{self.name}: {function.__doc__.strip().splitlines()[0]}", flush=True)
        try:
            self.api.create("/api/v1/namespaces", {
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
            function(self)
        except Exception as error:
            self.check(False, "the case runs to its end", f"{error}")
            if not isinstance(error, (ApiError, Timeout)):
                traceback.print_exc()
        try:
            self.delete_all()
        except Exception as error:
            self.check(False, "the case's pods can be removed", f"{error}")

    def check_eventually(self, condition, text, detail=lambda: ""):
        """A check of something that follows the API server's changes with a short delay."""
        try:
            wait_until(condition, 30, text, 0.1)
            return self.check(True, text)
        except Timeout:
            return self.check(False, text, detail())

    # ---- pods ---------------------------------------------------------------------------------

    @staticmethod
    def container(name="main", **limits):
        """A container. Limits: gpu, gpumem, gpucores, percentage, cpu; anything else with its
        full resource name through `**{"example.com/x": "1"}`."""
        names = {"gpu": wire.COUNT, "gpumem": wire.MEMORY, "gpucores": wire.CORES,
                 "percentage": wire.PERCENTAGE}
        amounts = {names.get(key, key): str(value) for key, value in limits.items()}
        result = {"name": name, "image": "example.com/none"}
        if amounts:
            result["resources"] = {"limits": amounts}
        return result

    def pod(self, name, *containers, annotations=None, **spec):
        """A pod of the case's namespace, as a user would write it."""
        meta = {"name": name, "namespace": self.namespace}
        if annotations:
            meta["annotations"] = annotations
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta,
                "spec": {"containers": list(containers), **spec}}

    def create(self, pod):
        """Creates the pod and returns it as admitted."""
        return self.api.create(pods_path(self.namespace), pod)

    def denial(self, pod):
        """Tries to create the pod; returns the words of the denial, None if it was admitted."""
        try:
            self.create(pod)
        except ApiError as error:
            return error.message
        return None

    def get(self, name):
        """The pod as it is now."""
        return self.api.get(pods_path(self.namespace, name))

    def listed(self):
        """The names of the case's pods on the API server."""
        return [pod["metadata"]["name"]
                for pod in self.api.get(pods_path(self.namespace))["items"]]

    def delete(self, name):
        """Deletes the pod and waits until it is gone."""
        uid = self.get(name)["metadata"]["uid"]
        self.api.delete(pods_path(self.namespace, name))
        self.audit.wait(lambda: uid not in self.audit.pods, PATIENCE, f"{name} to be gone")

    def delete_all(self):
        """Deletes all pods of the case and waits until they are gone."""
        # From the API server: the audit may not have seen the newest yet.
        for pod in self.api.get(pods_path(self.namespace))["items"]:
            self.api.delete(pods_path(self.namespace, pod["metadata"]["name"]))
        wait_until(lambda: not self.api.get(pods_path(self.namespace))["items"], PATIENCE,
                   f"the pods of {self.namespace} to be gone", 0.1)
        self.audit.catch_up()

    def poke_scheduler(self):
        """Changes something about a node, as happens all the time in a real cluster. Old
        kube-schedulers try a pod again after an extender's error only then, or after a minute."""
        self.api.patch("/api/v1/nodes/cpu-only", {"metadata": {"labels": {
            "example.com/poke": str(time.monotonic_ns())}}})

    # ---- waiting ------------------------------------------------------------------------------

    def wait_running(self, *names):
        """Waits until the pods run: bound, acknowledged, started. Returns the last of them."""
        def phases():
            pods = [self.audit.find(self.namespace, name) for name in names]
            return {pod and pod.get("status", {}).get("phase") for pod in pods}
        self.audit.wait(lambda: phases() == {"Running"} or "Failed" in phases(), PATIENCE,
                        f"{', '.join(names)} to run")
        if "Failed" in phases():
            raise Timeout(f"{', '.join(names)}: rejected by the node: "
                          f"{self.cluster.complaints()[-1:]}")
        return self.audit.find(self.namespace, names[-1])

    def run_pod(self, pod):
        """Creates a pod and waits until it runs."""
        self.create(pod)
        return self.wait_running(pod["metadata"]["name"])

    def devices(self, name):
        """The segments of the pod's allocation."""
        return wire.parse_devices(wire.annotations(self.get(name))[wire.ALLOCATED])

    def events(self, name, reason):
        """The messages of the pod's events of one reason."""
        listing = self.api.get(
            f"/api/v1/namespaces/{self.namespace}/events",
            fieldSelector=f"involvedObject.name={name},reason={reason}")
        return [event.get("message") or event.get("note") or "" for event in listing["items"]]

    def wait_event(self, name, reason, *words):
        """Waits for an event of that reason whose messages, together, hold all words; returns
        the messages."""
        def said():
            text = "\n".join(self.events(name, reason))
            return text if text and all(word in text for word in words) else None
        try:
            return wait_until(said, 60, f"event {reason} with {words}", 0.2)
        except Timeout as error:
            raise Timeout(f"{error}; events of {name}: {self.events(name, reason)}") from None

    def wait_unschedulable(self, name):
        """Waits until kube-scheduler has given up on the pod for now; returns its message."""
        def reason():
            pod = self.audit.find(self.namespace, name)
            for condition in (pod or {}).get("status", {}).get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return condition.get("message", "")
            return None
        return self.audit.wait(reason, PATIENCE, f"{name} to be found unschedulable")

    @staticmethod
    def ours(pod):
        """Did the webhook give the pod to our scheduler?"""
        return pod["spec"].get("schedulerName") == SCHEDULER_NAME
