"""What other people write into the cluster, by mistake or on purpose, harms only them."""

from harness import wire
from harness.api import pods_path
from harness.cluster import http_call, metric


def case_robust_pod_annotations(t):
    """Garbage and forged annotations of one pod never hide or block anything else."""
    card = sorted(card.uuid for card in t.audit.cards.values() if "T4" in card.model)[0]
    t4 = {"nvidia.com/use-gpuuuid": card}
    # On a node, not ours, with an allocation that nobody can read.
    t.create(t.pod("garbage", t.container(), schedulerName="somebody-else", nodeName="gpu-t4",
                   annotations={wire.NODE: "gpu-t4", wire.ALLOCATED: "no, such;:list,,",
                                wire.BIND_PHASE: "success"}))
    # Not on a node: whatever it claims, it holds nothing.
    t.create(t.pod("forged", t.container(), schedulerName="somebody-else", annotations={
        wire.NODE: "gpu-t4", wire.ALLOCATED: f"{card},NVIDIA,15360,100:;",
        wire.TO_ALLOCATE: f"{card},NVIDIA,15360,100:;", wire.BIND_PHASE: "success",
        wire.TIME: "1700000000", wire.BIND_TIME: "1700000000"}))
    t.audit.catch_up()
    pod = t.run_pod(t.pod("honest", t.container(gpu=1), annotations=t4))
    t.check(t.devices("honest") == [[wire.Share(card, "NVIDIA", 15360, 100)]],
            "a pod that only claims a card does not keep it from an honest one",
            wire.annotations(pod))
    malformed = sum(value for _, value in metric(t.cluster.metrics_text(), MALFORMED))
    t.check(malformed >= 2, "the garbled node and the garbled pod are counted in a metric",
            malformed)


def case_robust_self_assigned_allocation(t):
    """A user who writes an allocation on a GPU pod gets the one that the scheduler chose."""
    card = sorted(card.uuid for card in t.audit.cards.values() if "H200" in card.model)[0]
    claim = f"{card},NVIDIA,143771,0:;"
    denial = t.denial(t.pod("claimed", t.container(gpu=1, gpumem=1000, gpucores=1), annotations={
        "example.com/why": "to see that the rest is left alone", wire.ALLOCATED: claim}))
    if denial is not None:
        t.check(wire.ALLOCATED in denial, "the webhook refuses the claim by name", denial)
        return
    # Admitted: then what is bound is the scheduler's decision, and the audit says nothing of
    # the time before, in which the annotation is only what the user wrote.
    t.wait_running("claimed")
    [[share]] = t.devices("claimed")
    t.check(share[2:] == (1000, 1), "the slice is the one that was asked for", share)


def case_robust_bad_requests(t):
    """Bad bodies get an error and leave the daemon as it was."""
    before = t.cluster.ledger()
    gpu = t.pod("asks", t.container(gpu=1))
    for body in (None, [], {"Pod": None}, {"Pod": gpu}, {"Pod": gpu, "NodeNames": "gpu-a100"},
                 {"Pod": 7, "NodeNames": []}, {"NodeNames": ["gpu-a100"]}):
        status, text = http_call("POST", t.cluster.extender, "/filter", body)
        t.check(status in (200, 400) and '"Error":""' not in text.replace(" ", "") and text,
                f"/filter answers {body} with an error", f"{status} {text[:200]}")
    status, text = http_call("POST", t.cluster.extender, "/bind", {
        "PodName": "nobody", "PodNamespace": t.namespace, "PodUID": "no-such-uid",
        "Node": "gpu-a100"})
    t.check(status == 200 and "nobody" in text, "/bind of a pod that is not there names it", text)
    t.check(t.cluster.ledger() == before, "nothing was reserved by any of it")
    t.check(t.cluster.daemon.running(), "the daemon is still running")


def case_robust_listeners(t):
    """Each listener answers its own routes only: nobody but kube-scheduler can reach /bind."""
    for address, name, routes in ((t.cluster.metrics, "metrics", ("/filter", "/bind", "/webhook")),
                                  (t.cluster.extender, "extender", ("/webhook", "/explain"))):
        for route in routes:
            status, _ = http_call("POST", address, route, {})
            t.check(status == 404, f"no {route} on the {name} listener", status)
    status, _ = http_call("GET", t.cluster.extender, "/filter")
    t.check(status == 405, "GET /filter is the wrong method", status)


def case_robust_explain(t):
    """/explain tells what /filter would do, and reserves nothing."""
    before = t.cluster.ledger()
    pod = t.pod("asked", t.container(gpu=1, gpumem=60000, gpucores=10))
    status, text = http_call("POST", t.cluster.metrics, "/explain", pod)
    t.check(status == 200 and all(word in text for word in (
        "gpu-h200", "gpu-a100", "gpu-t4", "CardInsufficientMemory", "cpu-only")),
        "it names every node and the reasons of those that lost", f"{status} {text[:500]}")
    t.check(t.cluster.ledger() == before, "nothing is reserved")
    t.check(not t.api.get(pods_path(t.namespace))["items"], "nothing is created")


MALFORMED = "kube_vgpu_malformed_total"
