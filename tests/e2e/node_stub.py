#!/usr/bin/env python3
"""Plays GPU nodes on a real API server: registers them as the node agent would, and acknowledges
each allocation as kubelet and the agent together would.

usage: node_stub.py --server HOST:PORT --ca FILE --cert FILE --key FILE --journal FILE NODES.json

The journal gets one JSON object per line: {"ready": N} when the nodes are registered,
{"acknowledged": "namespace/name", "uid": …, "node": …} for each pod, and {"complaint": "…"} for
whatever an agent could not have worked with. It ends with SIGTERM.
"""

import argparse
import concurrent.futures
import json
import pathlib
import signal
import sys
import threading
import uuid

from harness import wire
from harness.api import Api, ApiError, Credentials, Informer, pods_path

# Any fixed value: the cards of a node keep their UUIDs from run to run.
CARD_NAMESPACE = uuid.UUID("6f6e4f52-9d5c-4a5e-8f0e-6d1f4f1f7f10")
TERMINAL = ("Succeeded", "Failed")


def expand_cards(node):
    """The register annotation's members, one per card, in index order."""
    cards = []
    for group in node["cards"]:
        for _ in range(group["number"]):
            index = len(cards)
            name = f"{node['name']}/{index}"
            cards.append({
                "id": f"GPU-{uuid.uuid5(CARD_NAMESPACE, name)}",
                "index": index,
                "count": group["count"],
                "devmem": group["devmem"],
                "devcore": group["devcore"],
                "type": group["type"],
                "numa": index * 2 // max(1, sum(g["number"] for g in node["cards"])),
                "mode": "hami-core",
                "health": group.get("health", True),
            })
    return cards


def register_text(node):
    """The node's register annotation, or None for a node without GPUs."""
    if "register" in node:
        return node["register"]
    return json.dumps(expand_cards(node), separators=(",", ":")) if node["cards"] else None


class Stub:
    """The nodes and their pods."""

    def __init__(self, api, nodes, journal):
        self.api = api
        self.nodes = nodes
        self.names = {node["name"] for node in nodes}
        self.journal = journal
        self.lock = threading.Lock()
        # Only the informer's thread touches these.
        self.seen = {}
        self.allocating = {}
        self.workers = concurrent.futures.ThreadPoolExecutor(max_workers=8)

    def write(self, **entry):
        """One line of the journal, at once."""
        with self.lock:
            self.journal.write(json.dumps(entry) + "\n")
            self.journal.flush()

    def complain(self, text):
        """Something that a node could not have worked with."""
        self.write(complaint=text)

    def register(self, node):
        """Creates the node, ready and without the taint that new nodes get."""
        name = node["name"]
        text = register_text(node)
        replicas = sum(card["count"] for card in expand_cards(node))
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "500"}
        if replicas:
            amounts[wire.COUNT] = str(replicas)
        self.api.create("/api/v1/nodes", {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name},
                "annotations": {wire.NODE_REGISTER: text} if text else {},
            },
        })
        self.api.patch(f"/api/v1/nodes/{name}/status", {"status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "NodeStub",
                            "message": "played by the node stub"}],
        }})
        self.api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def on_pod(self, kind, pod):
        """Each change of a pod, in the order in which the API server made them."""
        node = pod["spec"].get("nodeName")
        if node not in self.names:
            return
        uid = pod["metadata"]["uid"]
        phase = pod["metadata"].get("annotations", {}).get(wire.BIND_PHASE)
        gone = kind == "DELETED" or pod.get("status", {}).get("phase") in TERMINAL
        self._watch_queue(node, uid, phase == "allocating" and not gone, pod)
        if kind == "DELETED":
            self.seen.pop(uid, None)
        elif pod["metadata"].get("deletionTimestamp"):
            if self.seen.get(uid) != "deleting":
                self.seen[uid] = "deleting"
                self.workers.submit(self._guarded, self._finish, pod)
        elif uid not in self.seen:
            self.seen[uid] = "bound"
            self.workers.submit(self._guarded, self._run, pod)

    def _watch_queue(self, node, uid, allocating, pod):
        """kubelet's Allocate names no pod, so a node may have one pod at a time between its
        binding and its allocation; with two, each could be given the other's slice."""
        waiting = self.allocating.setdefault(node, {})
        if not allocating:
            waiting.pop(uid, None)
        elif uid not in waiting:
            name = wire.full_name(pod)
            if waiting:
                others = ", ".join(waiting.values())
                self.complain(f"{name} was bound to {node} while {others} was still allocating")
            waiting[uid] = name

    def _guarded(self, work, pod):
        try:
            work(pod)
        except ApiError as error:
            # A pod that is deleted while we serve it is ordinary.
            if error.status not in (404, 409):
                self.complain(f"{wire.full_name(pod)}: {error}")
        except Exception as error:
            self.complain(f"{wire.full_name(pod)}: {error!r}")

    def _finish(self, pod):
        """kubelet's last word on a pod that is being deleted."""
        meta = pod["metadata"]
        self.api.delete(pods_path(meta["namespace"], meta["name"]), grace=0)

    def _run(self, pod):
        """Allocate, then run."""
        meta = pod["metadata"]
        path = pods_path(meta["namespace"], meta["name"])
        if wire.wants_gpu(pod):
            problem = wire.allocation_problem(pod)
            if problem:
                # kubelet would reject the pod with UnexpectedAdmissionError.
                self.complain(f"{wire.full_name(pod)} on {pod['spec']['nodeName']}: {problem}")
                self.api.patch(path, self._guard(meta, {wire.BIND_PHASE: "failed"}))
                self.api.patch(path + "/status", {"status": {"phase": "Failed"}})
                return
            segments = meta["annotations"][wire.TO_ALLOCATE].count(";")
            self.api.patch(path, self._guard(meta, {
                wire.BIND_PHASE: "success",
                # What is left when every container has taken its segment.
                wire.TO_ALLOCATE: ";" * segments,
            }))
            self.write(acknowledged=wire.full_name(pod), uid=meta["uid"],
                       node=pod["spec"]["nodeName"])
        self.api.patch(path + "/status", {"metadata": {"uid": meta["uid"]}, "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        }})

    @staticmethod
    def _guard(meta, annotations):
        """A patch of annotations that fails if the name now belongs to another pod."""
        return {"metadata": {"uid": meta["uid"], "annotations": annotations}}


def main():
    """Runs until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("server", "ca", "cert", "key", "journal"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("nodes", type=pathlib.Path)
    options = parser.parse_args()

    api = Api(options.server, Credentials(options.ca, options.cert, options.key))
    nodes = json.loads(options.nodes.read_text())
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    with open(options.journal, "a", encoding="utf-8") as journal:
        stub = Stub(api, nodes, journal)
        for node in nodes:
            stub.register(node)
        informer = Informer(api, "/api/v1/pods", stub.on_pod)
        informer.start()
        informer.synced.wait()
        stub.write(ready=len(nodes))
        while not done.wait(0.5):
            if informer.failure:
                stub.complain(f"the node stub lost its watch: {informer.failure}")
                return 1
        informer.stop()
        stub.workers.shutdown(cancel_futures=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
