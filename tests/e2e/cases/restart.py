"""The daemon goes away and comes back: everything that counts lives in the API server."""

import signal

from cases.burst import check_ledger, create_all, running
from harness.case import PATIENCE


def wave(t, name, count):
    """Small slices for V100 and A100."""
    return [t.pod(f"{name}-{index}", t.container(gpu=1, gpumem=500 + index, gpucores=2))
            for index in range(count)]


def case_restart_in_the_middle(t):
    """Killed, and ended politely, in the middle of a burst: nothing is lost or given twice."""
    before = len(t.audit.violations)
    total = 0
    for how, name in ((signal.SIGKILL, "killed"), (signal.SIGTERM, "ended")):
        start = total
        total += 60
        create_all(t, wave(t, name, 60))
        t.audit.wait(lambda: len(running(t)) >= start + 10, PATIENCE, "the first ten to run")
        doomed = running(t)[:5]
        in_flight = total - len(running(t))

        def remove_some():
            uids = {pod["metadata"]["uid"] for pod in doomed}
            for pod in doomed:
                t.api.delete(
                    f"/api/v1/namespaces/{t.namespace}/pods/{pod['metadata']['name']}")
            t.audit.wait(lambda: not uids & t.audit.pods.keys(), PATIENCE, "five to be gone")
        status = t.cluster.restart_daemon(how, remove_some)
        total -= len(doomed)
        t.check(in_flight > 0, f"{name} with {in_flight} pods still to be placed")
        if how == signal.SIGTERM:
            t.check(status == 0, "it ends with status 0 when asked to", status)
        t.poke_scheduler()
        t.audit.wait(lambda: len(running(t)) == total, PATIENCE, "all others to run")
        t.check(True, f"{name}: all {total} pods run")
        check_ledger(t, f"after it was {name}; five pods were deleted while it was away")
    new = t.audit.violations[before:]
    t.check(not new, "no card was over its memory, cores or slots at any time", new[:5])


def case_restart_when_idle(t):
    """The ledger of a daemon that has just started is the one that it had before."""
    create_all(t, wave(t, "pod", 12))
    t.audit.wait(lambda: len(running(t)) == 12, PATIENCE, "twelve pods to run")
    before = t.cluster.ledger()
    t.cluster.restart_daemon()
    t.check(t.cluster.ledger() == before and before, "ready means that the ledger is complete",
            [before, t.cluster.ledger()])
