"""What the webhook changes, leaves alone and refuses, seen through the API server."""

from harness import wire


def limits(pod, container=0):
    """The limits of a container as admitted."""
    return pod["spec"]["containers"][container].get("resources", {}).get("limits", {})


def case_webhook_mutates(t):
    """GPU pods are completed and given to our scheduler, others are left alone."""
    whole = t.create(t.pod("whole", t.container(gpu=1)))
    t.check(t.ours(whole), "a pod that asks for a GPU is given to our scheduler",
            whole["spec"].get("schedulerName"))
    t.check(limits(whole) == {wire.COUNT: "1", wire.CORES: "100"},
            "nvidia.com/gpu: 1 alone means the whole card: gpucores 100", limits(whole))
    requests = whole["spec"]["containers"][0]["resources"].get("requests")
    t.check(requests == limits(whole), "requests follow the limits that were added", requests)

    slice_ = t.create(t.pod("slice", t.container(gpu=1, gpumem=3000, gpucores=30)))
    t.check(t.ours(slice_) and limits(slice_) == {
        wire.COUNT: "1", wire.MEMORY: "3k", wire.CORES: "30"},
        "a complete request keeps its values", limits(slice_))

    memory = t.create(t.pod("memory", t.container(gpumem=2048)))
    t.check(limits(memory) == {wire.COUNT: "1", wire.MEMORY: "2048"},
            "gpumem alone gets nvidia.com/gpu: 1", limits(memory))
    cores = t.create(t.pod("cores", t.container(gpucores=20)))
    t.check(limits(cores) == {wire.COUNT: "1", wire.CORES: "20"},
            "gpucores alone gets nvidia.com/gpu: 1", limits(cores))
    half = t.create(t.pod("half", t.container(percentage=50)))
    t.check(limits(half) == {wire.COUNT: "1", wire.PERCENTAGE: "50"},
            "gpumem-percentage alone gets nvidia.com/gpu: 1 and stays shareable", limits(half))

    second = t.create(t.pod("second", t.container("plain"), t.container("worker", gpumem=1000)))
    t.check(limits(second, 0) == {} and limits(second, 1).get(wire.COUNT) == "1",
            "only the container that asks is changed", [limits(second, 0), limits(second, 1)])

    plain = t.create(t.pod("plain", t.container(cpu="100m")))
    t.check(plain["spec"]["schedulerName"] == "default-scheduler"
            and limits(plain) == {"cpu": "100m"}
            and "env" not in plain["spec"]["containers"][0],
            "a pod without a GPU is left alone", plain["spec"])

    other = t.create(t.pod("other", t.container(gpu=1), schedulerName="somebody-else"))
    t.check(other["spec"]["schedulerName"] == "somebody-else" and limits(other) == {
        wire.COUNT: "1"}, "a pod of another scheduler is left alone", other["spec"])


def case_webhook_denies(t):
    """What cannot be meant is refused at once, in words that name the mistake."""
    words = t.denial(t.pod("unit", t.container(gpu=1, gpumem="16Gi")))
    t.check(words and "16Gi" in words and wire.MEMORY in words and "MiB" in words,
            "gpumem: 16Gi is refused: names the value, the resource and the unit", words)
    words = t.denial(t.pod("privileged", {
        **t.container("root", gpu=1), "securityContext": {"privileged": True}}))
    t.check(words and "root" in words and "privileged" in words,
            "a privileged container with a GPU is refused by name", words)
    words = t.denial(t.pod("pinned", t.container(gpu=1), nodeName="gpu-a100"))
    t.check(words and "node assigned" in words,
            "a GPU pod that names its node is refused: it would bypass the scheduler", words)
    words = t.denial(t.pod("percentage", t.container(gpu=1, percentage=101)))
    t.check(words and "101" in words and wire.PERCENTAGE in words,
            "gpumem-percentage: 101 is refused", words)
    t.check(not t.listed(), "nothing of it was created", t.listed())

    privileged = t.pod("plain", {**t.container(), "securityContext": {"privileged": True}})
    t.check(t.denial(privileged) is None, "a privileged pod without a GPU is no business of ours")
