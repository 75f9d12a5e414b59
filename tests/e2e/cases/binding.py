"""One pod at a time: where it goes and what is written on it."""

import time

from harness import wire


def case_binding_writes_allocation(t):
    """A bound pod carries its node and its allocation, as the nodes read them."""
    before = int(time.time())
    pod = t.run_pod(t.pod("one", t.container(gpu=1, gpumem=3000, gpucores=30)))
    notes = wire.annotations(pod)
    node = pod["spec"]["nodeName"]
    t.check(notes.get(wire.NODE) == node, f"{wire.NODE} is spec.nodeName", notes.get(wire.NODE))
    problem = wire.allocation_problem(pod, t.audit.cards)
    t.check(problem is None, "allocation annotations are complete and well-formed", problem)
    [[share]] = t.devices("one")
    t.check(share[1:] == ("NVIDIA", 3000, 30) and t.audit.cards[share.uuid].node == node,
            "one card of that node, 3000 MiB, 30 cores", share)
    after = int(time.time())
    t.check(all(before <= int(notes[key]) <= after for key in (wire.TIME, wire.BIND_TIME)),
            "times are Unix seconds of now", [notes[wire.TIME], notes[wire.BIND_TIME]])
    t.check(notes[wire.BIND_PHASE] == "success", "the node has acknowledged it",
            notes[wire.BIND_PHASE])


def case_binding_many_containers(t):
    """Segments line up with init containers first, then containers, empty ones included."""
    t.run_pod(t.pod("second", t.container("plain"), t.container("worker", gpu=1, gpumem=1000)))
    text = wire.annotations(t.get("second"))[wire.ALLOCATED]
    t.check(text.startswith(";") and text.count(";") == 2,
            "a container without a GPU is an empty segment", text)

    t.run_pod(t.pod("init", t.container("main", gpu=1, gpumem=4000, gpucores=20),
                    t.container("side"), initContainers=[
                        t.container("prepare", gpu=1, gpumem=6000, gpucores=10)]))
    sizes = [[share[2:] for share in shares] for shares in t.devices("init")]
    t.check(sizes == [[(6000, 10)], [(4000, 20)], []], "init containers come first", sizes)

    t.run_pod(t.pod("pair", t.container(gpu=2, gpumem=5000)))
    [shares] = t.devices("pair")
    t.check(len({share.uuid for share in shares}) == 2,
            "two GPUs are two different cards of one node", shares)


def case_binding_amounts(t):
    """Whole cards, percentages and card models come out as asked."""
    t.run_pod(t.pod("half", t.container(percentage=50, gpu=1, gpucores=10), annotations={
        "nvidia.com/use-gputype": "A100"}))
    [[share]] = t.devices("half")
    t.check(share.mem_mib == 40960, "50 % of an A100 of 81920 MiB", share)
    t.check("A100" in t.audit.cards[share.uuid].model, "use-gputype chooses the model",
            t.audit.cards[share.uuid].model)

    t.run_pod(t.pod("whole", t.container(gpu=1), annotations={
        "nvidia.com/use-gputype": "T4"}))
    [[share]] = t.devices("whole")
    t.check(share[2:] == (15360, 100), "a whole T4", share)

    t.run_pod(t.pod("elsewhere", t.container(gpu=1, gpumem=100), annotations={
        "nvidia.com/nouse-gputype": "H200,A100,A10,L4,V100,P4"}))
    [[share]] = t.devices("elsewhere")
    t.check("T4" in t.audit.cards[share.uuid].model, "nouse-gputype leaves the T4",
            t.audit.cards[share.uuid].model)


def case_binding_same_name_again(t):
    """A pod created again under the same name is a new pod with an allocation of its own."""
    first = t.run_pod(t.pod("again", t.container(gpu=1, gpumem=1111, gpucores=11)))
    t.delete("again")
    second = t.run_pod(t.pod("again", t.container(gpu=1, gpumem=2222, gpucores=22)))
    t.check(first["metadata"]["uid"] != second["metadata"]["uid"]
            and t.devices("again")[0][0][2:] == (2222, 22),
            "the new pod has its own request's slice", t.devices("again"))
    held = sum(used[1] for used in t.audit.ledger().values())
    t.check(held == 2222, "the old pod's slice is given back", held)


def case_binding_after_pod_ended(t):
    """A pod that has succeeded holds nothing, though its object is still there."""
    node = "gpu-t4"
    only_here = {"nvidia.com/use-gputype": "T4"}
    for name in ("first", "second"):
        t.run_pod(t.pod(name, t.container(gpu=1), annotations=only_here))
    t.create(t.pod("third", t.container(gpu=1), annotations=only_here))
    t.wait_unschedulable("third")
    t.api.patch(f"/api/v1/namespaces/{t.namespace}/pods/first/status",
                {"status": {"phase": "Succeeded"}})
    pod = t.wait_running("third")
    t.check(pod["spec"]["nodeName"] == node, f"its card on {node} is given to the next")
