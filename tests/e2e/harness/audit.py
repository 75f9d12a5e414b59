"""Watches every pod and judges every change, in the order in which the API server made them."""

import json
import threading

from harness import wire
from harness.api import Informer
from harness.process import Timeout, wait_until

TERMINAL = ("Succeeded", "Failed")


class Card:
    """One GPU and what is given out of it."""

  
    def __init__(self, node, member):
        self.node = node
        self.uuid = member["id"]
        self.model = member["type"]
        self.slots = member["count"]
        self.mem_mib = member["devmem"]
        self.cores = member["devcore"]
        self.healthy = member.get("health", False)
        self.holders = {}

    def used(self):
        """(slots, mem_mib, cores) given out."""
        return tuple(map(sum, zip((0, 0, 0), *self.holders.values())))

    def overcommit(self):
        """Why more is given out than there is, or None."""
        slots, memory, cores = self.used()
        for have, limit, what in ((slots, self.slots, "slots"), (memory, self.mem_mib, "MiB"),
                                  (cores, self.cores, "cores")):
            if have > limit:
                return f"{self.node} {self.uuid}: {have} of {limit} {what} given out"
        if slots > 1 and any(share[2] == 100 for share in self.holders.values()):
            return f"{self.node} {self.uuid}: {slots} slots beside an exclusive pod"
        return None

    def refuses(self, mem_mib, cores):
        """Would this card refuse one more share? The protocol's rules for a healthy card."""
        slots, used_memory, used_cores = self.used()
        return (not self.healthy or slots >= self.slots or used_memory + mem_mib > self.mem_mib
                or used_cores + cores > self.cores or (cores == 100 and slots > 0)
                or (cores == 0 and used_cores == self.cores))


def cards_of(nodes):
    """{uuid: Card} from Node objects; a node whose annotation is not JSON has none."""
    result = {}
    for node in nodes:
        text = (node["metadata"].get("annotations") or {}).get(wire.NODE_REGISTER)
        try:
            members = json.loads(text) if text else []
        except ValueError:
            continue
        for member in members:
            card = Card(node["metadata"]["name"], member)
            result[card.uuid] = card
    return result


class Audit:
    """The pods as they are now, and every rule that was ever broken on the way there."""

    def __init__(self, api):
        self.api = api
        self.cards = cards_of(api.get("/api/v1/nodes")["items"])
        self.changed = threading.Condition()
        self.pods = {}
        self.held = {}
        self.phases = {}
        self.claims = {}
        self.violations = []
        self.events = 0
        self.bound = 0
        self.most_bound = 0
        self.informer = Informer(api, "/api/v1/pods", self._on_pod)

    def start(self):
        """Begins to watch."""
        self.informer.start()
        self.informer.synced.wait(30)
        return self

    def stop(self):
        """Ends the watch; a watch that had failed before is a violation."""
        self.informer.stop()
        if self.informer.failure:
            self._broken(f"the audit lost its watch: {self.informer.failure}")

    def _broken(self, text):
        """A rule was broken; the same words again, at the pod's next change, say nothing new."""
        if text not in self.violations:
            self.violations.append(text)

    def _on_pod(self, kind, pod):
        with self.changed:
            self.events += 1
            uid = pod["metadata"]["uid"]
            if kind == "DELETED":
                self.pods.pop(uid, None)
                self.phases.pop(uid, None)
                self.claims.pop(uid, None)
            else:
                self.pods[uid] = pod
                self._judge(uid, pod)
            self._account(uid, pod, kind == "DELETED")
            self.changed.notify_all()

    def _judge(self, uid, pod):
        """Binding and allocation: both or neither, and the phases in their order."""
        if not wire.wants_gpu(pod):
            return
        notes = wire.annotations(pod)
        name = wire.full_name(pod)
        if not pod["spec"].get("nodeName"):
            # What the user wrote at creation is a claim, not an allocation.
            claims = self.claims.setdefault(uid, notes)
            early = [key for key in wire.WRITTEN_AT_BIND
                     if key in notes and notes[key] != claims.get(key)]
            if early:
                self._broken(f"{name}: {', '.join(early)} without spec.nodeName")
            return
        problem = wire.allocation_problem(pod, self.cards)
        if problem:
            self._broken(f"{name}: {problem}")
            return
        before, now = self.phases.get(uid), notes[wire.BIND_PHASE]
        if (before, now) not in ((None, "allocating"), ("allocating", "allocating"),
                                 ("allocating", "success"), ("success", "success")):
            self._broken(f"{name}: bind phase went from {before} to {now}")
        self.phases[uid] = now

    def _account(self, uid, pod, deleted):
        """Takes the pod's shares into its cards, or out of them."""
        for card in self.held.pop(uid, ()):
            del card.holders[uid]
        ended = deleted or pod.get("status", {}).get("phase") in TERMINAL
        if not ended and pod["spec"].get("nodeName") and wire.ALLOCATED in wire.annotations(pod):
            try:
                shares = wire.collapse(pod)
            except ValueError:
                return  # _judge has complained
            cards = [self.cards[uuid] for uuid in shares if uuid in self.cards]
            for card in cards:
                card.holders[uid] = shares[card.uuid]
                problem = card.overcommit()
                if problem:
                    self._broken(f"{problem} (with {wire.full_name(pod)})")
            self.held[uid] = cards
        self.most_bound = max(self.most_bound, len(self.held))

    def ledger(self):
        """{uuid: (slots, mem_mib, cores)} of the cards in use."""
        with self.changed:
            return {uuid: card.used() for uuid, card in self.cards.items() if card.holders}

    def in_namespace(self, namespace):
        """The pods of a namespace."""
        with self.changed:
            return [pod for pod in self.pods.values()
                    if pod["metadata"]["namespace"] == namespace]

    def find(self, namespace, name):
        """The pod of that name, or None."""
        for pod in self.in_namespace(namespace):
            if pod["metadata"]["name"] == name:
                return pod
        return None

    def wait(self, condition, seconds, what):
        """Waits until condition() holds; it is tried again after every change of a pod."""
        with self.changed:
            if self.changed.wait_for(condition, seconds):
                return condition()
        if self.informer.failure:
            raise Timeout(f"the audit lost its watch: {self.informer.failure}")
        raise Timeout(f"after {seconds} s still waiting for {what}")

    def catch_up(self, seconds=30):
        """Waits until everything that the API server has now was judged."""
        def same():
            listed = {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"]
                      for pod in self.api.get("/api/v1/pods")["items"]}
            with self.changed:
                return listed == {uid: pod["metadata"]["resourceVersion"]
                                  for uid, pod in self.pods.items()}
        wait_until(same, seconds, "the audit to see all pods", 0.2)

    def could_fit(self, pod):
        """The node on which a pending pod would fit now, or None. Knows counts, memory,
        percentages and cores; pods that choose cards by annotation are for their own cases."""
        with self.changed:
            nodes = sorted({card.node for card in self.cards.values()})
            for node in nodes:
                if self._fits_on(pod, [c for c in self.cards.values() if c.node == node]):
                    return node
        return None

    @staticmethod
    def _fits_on(pod, cards):
        """Container by container, first card that takes it. Complete only for pods whose
        containers all ask the same, which is what the callers create."""
        probe = object()
        try:
            for index, container in enumerate(wire.containers(pod)):
                request = wire.request_of(container)
                if not request:
                    continue
                taken = 0
                for card in cards:
                    memory = (request.mem_mib if request.mem_mib is not None
                              else card.mem_mib * request.percentage // 100)
                    if taken < request.count and not card.refuses(memory, request.cores):
                        card.holders[(probe, index)] = (1, memory, request.cores)
                        taken += 1
                if taken < request.count:
                    return False
            return True
        finally:
            for card in cards:
                for key in [key for key in card.holders
                            if isinstance(key, tuple) and key[0] is probe]:
                    del card.holders[key]
