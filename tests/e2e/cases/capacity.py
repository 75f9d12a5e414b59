"""What does not fit waits, is told why, and gets its turn when something is given back."""

from harness import wire
from harness.case import PATIENCE


def case_capacity_too_big(t):
    """A pod that fits nowhere stays Pending, with events that say why."""
    t.create(t.pod("huge", t.container(gpu=1, gpumem=200000)))
    message = t.wait_unschedulable("huge")
    t.check("CardInsufficientMemory" in message, "the pod's condition names the reason", message)
    said = t.wait_event("huge", "FailedScheduling", "CardInsufficientMemory")
    t.check(said, "kube-scheduler's FailedScheduling event names the reason", said)

    t.create(t.pod("many", t.container(gpu=9, gpumem=100)))
    message = t.wait_unschedulable("many")
    t.check("NodeInsufficientDevice" in message, "nine cards on one node: NodeInsufficientDevice",
            message)
    t.create(t.pod("model", t.container(gpu=1, gpumem=100), annotations={
        "nvidia.com/use-gputype": "B300"}))
    message = t.wait_unschedulable("model")
    t.check("CardTypeMismatch" in message, "a model that is not there: CardTypeMismatch", message)

    for name in ("huge", "many", "model"):
        pod = t.get(name)
        t.check(not pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending"
                and not set(wire.WRITTEN_AT_BIND) & set(wire.annotations(pod)),
                f"{name} is Pending and nothing is written on it")


def case_capacity_is_given_back(t):
    """A deleted pod's card goes to the pod that was waiting for it."""
    v100 = {"nvidia.com/use-gputype": "V100"}
    for index in range(4):
        t.create(t.pod(f"holder-{index}", t.container(gpu=1), annotations=v100))
    t.wait_running(*(f"holder-{index}" for index in range(4)))
    t.check(len({t.devices(f"holder-{index}")[0][0].uuid for index in range(4)}) == 4,
            "four whole cards are four different cards")
    t.create(t.pod("waiter", t.container(gpu=1), annotations=v100))
    t.create(t.pod("small-waiter", t.container(gpu=1, gpumem=1, gpucores=0), annotations=v100))
    message = t.wait_unschedulable("waiter")
    t.check("CardInsufficient" in message or "Exclusive" in message,
            "a fifth pod for four whole cards waits", message)
    message = t.wait_unschedulable("small-waiter")
    t.check("CardComputeUnitsExhausted" in message or "CardInsufficientMemory" in message,
            "not even a small slice fits beside whole cards", message)
    freed = t.devices("holder-2")[0][0].uuid
    t.delete("small-waiter")
    t.delete("holder-2")
    t.wait_running("waiter")
    t.check(t.devices("waiter")[0][0].uuid == freed, "it gets exactly the card that was freed")

    # kube-scheduler tries the waiting pod at the moment when it hears of the deletion, which may
    # be before we do.
    holders = ["holder-0", "holder-1", "holder-3", "waiter"]
    for turn in range(10):
        holders.append(f"next-{turn}")
        t.create(t.pod(holders[-1], t.container(gpu=1), annotations=v100))
        t.wait_unschedulable(holders[-1])
        t.delete(holders.pop(0))
        t.wait_running(holders[-1])
    t.check(len({t.devices(name)[0][0].uuid for name in holders}) == 4,
            "ten more that waited get theirs, one after the other")


def case_capacity_slots(t):
    """A card is shared by at most as many containers as its node registered."""
    uuid = sorted(card.uuid for card in t.audit.cards.values() if card.model == "NVIDIA-L4")[0]
    here = {"nvidia.com/use-gpuuuid": uuid}
    names = [f"slot-{index}" for index in range(10)]
    for name in names:
        t.create(t.pod(name, t.container(gpu=1, gpumem=10, gpucores=0), annotations=here))
    def settled():
        phases = [pod["status"]["phase"] for pod in t.audit.in_namespace(t.namespace)]
        return phases.count("Running") == 8
    t.audit.wait(settled, PATIENCE, "eight of ten to run")
    left = [name for name in names
            if t.audit.find(t.namespace, name)["status"]["phase"] == "Pending"]
    messages = [t.wait_unschedulable(name) for name in left]
    t.check(len(left) == 2 and all("CardTimeSlicingExhausted" in words for words in messages),
            "use-gpuuuid: eight on the card of eight slots, two wait", messages)
    # The other cards of the nodes are refused for another reason.
    t.check("CardUuidMismatch" in messages[0], "other cards: CardUuidMismatch", messages[0])
