"""Many pods at once. What happens on the way is judged by the audit, change by change."""

import concurrent.futures
import random
import time

from harness import wire
from harness.case import PATIENCE

LARGEST_MIB = 2048
LARGEST_CORES = 8
LARGEST_PERCENT = 5


def create_all(t, pods):
    """Creates the pods as fast as eight users can."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as users:
        for done in [users.submit(t.create, pod) for pod in pods]:
            done.result()


def small_limits(chance):
    """A random slice no larger than the LARGEST_ figures."""
    limits = {"gpu": 1, "gpucores": chance.randint(0, LARGEST_CORES)}
    if chance.random() < 0.8:
        limits["gpumem"] = chance.randint(1, LARGEST_MIB)
    else:
        limits["percentage"] = chance.randint(1, LARGEST_PERCENT)
    return limits


def sure_to_fit(cards):
    """How many containers with slices up to the LARGEST_ figures fit, in whatever order they come
    and whatever cards are chosen.

    A card can only refuse such a slice when it is full to within the largest slice, which takes
    that many of the largest. One container less per node, because the two containers of a pod
    need room on the same node.
    """
    rooms = {}
    for card in cards:
        if not card.healthy:
            continue
        largest_mib = max(LARGEST_MIB, card.mem_mib * LARGEST_PERCENT // 100)
        rooms[card.node] = rooms.get(card.node, 0) + min(
            card.slots, card.mem_mib // largest_mib, card.cores // LARGEST_CORES)
    return sum(room - 1 for room in rooms.values())


def running(t):
    """The pods of the case that run."""
    return [pod for pod in t.audit.in_namespace(t.namespace)
            if pod.get("status", {}).get("phase") == "Running"]


def case_burst_all_fit(t):
    """Two hundred pods created at once, all of which must fit: all run."""
    seed = int(time.time())
    print(f"        random seed {seed}", flush=True)
    chance = random.Random(seed)
    pods = []
    for index in range(200):
        containers = [t.container(**small_limits(chance))]
        if index % 20 == 0:
            containers = [t.container("first", **small_limits(chance)), t.container("plain"),
                          t.container("second", **small_limits(chance))]
        pods.append(t.pod(f"pod-{index}", *containers))
    asking = sum(wire.request_of(container) is not None
                 for pod in pods for container in pod["spec"]["containers"])
    sure = sure_to_fit(t.audit.cards.values())
    if asking > sure:
        raise AssertionError(f"nodes.json is too small: {asking} containers, {sure} sure to fit")

    before = len(t.audit.violations)
    begin = time.monotonic()
    create_all(t, pods)
    created = time.monotonic() - begin
    t.audit.wait(lambda: len(running(t)) == len(pods), PATIENCE, "all of them to run")
    took = time.monotonic() - begin
    t.check(True, f"{len(pods)} pods created in {created:.1f} s, all run after {took:.1f} s")
    new = t.audit.violations[before:]
    t.check(not new, "no card was over its memory, cores or slots at any time", new[:5])
    check_ledger(t, "with all of them running")
    t.delete_all()
    check_ledger(t, "after all of them were deleted")


def case_burst_more_than_fits(t):
    """More than the cluster can hold: what waits does not fit, and nothing that fits waits."""
    seed = int(time.time())
    print(f"        random seed {seed}", flush=True)
    chance = random.Random(seed)
    pods = []
    for index in range(240):
        kind = index % 6
        if kind == 0:
            limits = {"gpu": 1}
        elif kind == 1:
            limits = {"gpu": 2, "gpumem": chance.randint(4000, 30000), "gpucores": 25}
        elif kind == 2:
            limits = {"gpu": 1, "percentage": chance.randint(20, 60)}
        else:
            limits = {"gpu": 1, "gpumem": chance.randint(500, 40000),
                      "gpucores": chance.randint(0, 60)}
        pods.append(t.pod(f"pod-{index}", t.container(**limits)))
    before = len(t.audit.violations)
    create_all(t, pods)

    def settled():
        # Nothing is given back meanwhile, so what does not fit now will not later.
        waiting = [pod for pod in t.audit.in_namespace(t.namespace)
                   if not pod["spec"].get("nodeName")]
        return len(waiting) < len(pods) and not any(map(t.audit.could_fit, waiting)) and \
            len(waiting) + len(running(t)) == len(pods)
    begin = time.monotonic()
    t.audit.wait(settled, PATIENCE, "every pod that fits to run")
    full = len(running(t))
    t.check(0 < full < len(pods), f"{full} of {len(pods)} pods run, no other would fit "
            f"({time.monotonic() - begin:.1f} s)")
    check_ledger(t, "with the cluster full")

    leaving = chance.sample(running(t), full // 2)
    for pod in leaving:
        t.api.delete(f"/api/v1/namespaces/{t.namespace}/pods/{pod['metadata']['name']}")
    left = {pod["metadata"]["uid"] for pod in leaving}
    t.audit.wait(lambda: not left & t.audit.pods.keys(), PATIENCE, "half of them to be gone")
    total = len(pods) - len(leaving)

    def settled_again():
        waiting = [pod for pod in t.audit.in_namespace(t.namespace)
                   if not pod["spec"].get("nodeName")]
        return len(waiting) + len(running(t)) == total and not any(
            map(t.audit.could_fit, waiting))
    begin = time.monotonic()
    t.audit.wait(settled_again, PATIENCE, "freed capacity to be given out again")
    now = len(running(t))
    t.check(now > full - len(leaving), f"{len(leaving)} deleted, {now - full + len(leaving)} of "
            f"those that waited run, no other would fit ({time.monotonic() - begin:.1f} s)")
    new = t.audit.violations[before:]
    t.check(not new, "no card was over its memory, cores or slots at any time", new[:5])
    check_ledger(t, "with the cluster full again")


def check_ledger(t, when):
    """The daemon's ledger is what the annotations on the API server sum to."""
    t.audit.catch_up()
    expected = t.audit.ledger()
    t.check_eventually(lambda: t.cluster.ledger() == expected,
                       f"/state sums to the annotations {when} ({len(expected)} cards in use)",
                       lambda: differences(expected, t.cluster.ledger()))
    t.check_eventually(lambda: t.cluster.metrics_ledger() == expected,
                       f"/metrics sums to the annotations {when}",
                       lambda: differences(expected, t.cluster.metrics_ledger()))


def differences(expected, have):
    """The cards on which two ledgers differ."""
    return [f"{uuid}: annotations {expected.get(uuid)}, daemon {have.get(uuid)}"
            for uuid in sorted(expected.keys() | have.keys())
            if expected.get(uuid) != have.get(uuid)][:5]
