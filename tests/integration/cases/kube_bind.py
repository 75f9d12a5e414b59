#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bindings through everything that can happen to a request: whatever the client says about a bind is
what the API server has."""

import json
import sys
import time

import harness
from harness import Case, wait_until

ALLOCATED = "hami.io/vgpu-devices-allocated"


def cluster(case, pods=1, **more):
    for i in range(pods):
        case.fake.store.create("pods", {"metadata": {"name": f"p{i}"}, **more})
    driver = case.start()
    case.wait_equal()
    wait_until(lambda: "version of the API server" in driver.log(), "the server's version")
    return driver


def uid(case, key="default/p0"):
    return case.fake.store.get("pods", key)["metadata"]["uid"]


def bind(case, id_="1", key="default/p0", node="n1", allocated="x"):
    case.driver.bind(id_, key, node, uid(case, key), **{ALLOCATED: allocated})


def assert_bound(case, key="default/p0", node="n1", allocated="x", times=1):
    pod = case.fake.store.get("pods", key)
    assert pod["spec"]["nodeName"] == node, pod
    assert pod["metadata"]["annotations"][ALLOCATED] == allocated, pod
    done = [entry for entry in case.fake.store.history
            if entry[3] == key and entry[4]["spec"].get("nodeName")]
    assert len(done) == times, "bound more than once"


def posts(case):
    """How often the client asked. Not how often it wanted to: when a connection that was used before
    breaks without a byte of the answer, libcurl sends the request once more by itself, which the
    server answers with a conflict."""
    return len(case.fake.requests("bind"))


def test_one_write():
    with Case() as case:
        driver = cluster(case)
        bind(case)
        assert driver.outcome("1") == ("", "")
        assert_bound(case)
        requests = [entry for entry in case.fake.requests()
                    if entry["verb"] not in ("list", "watch", "version")]
        assert len(requests) == 1, requests
        assert requests[0]["path"] == "/api/v1/namespaces/default/pods/p0/binding"
        assert json.loads(requests[0]["body"]) == {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": "p0", "namespace": "default", "uid": uid(case),
                         "annotations": {ALLOCATED: "x"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}
        wait_until(lambda: driver.pod("default/p0")["node"] == "n1", "the watch to confirm")
        assert driver.pod("default/p0")["allocated"] == "x"
        stats = driver.stats()
        assert (stats["bind_posts"], stats["requests"], stats["request_failures"]) == (1, 2, 0)


def test_repeats_succeed_and_others_do_not():
    with Case() as case:
        driver = cluster(case)
        bind(case)
        assert driver.outcome("1")[0] == ""
        bind(case, "again")
        assert driver.outcome("again") == ("", "")
        bind(case, "other-allocation", allocated="y")
        code, message = driver.outcome("other-allocation")
        assert code == "EEXIST", (code, message)
        assert message == "pod default/p0 cannot be bound to node n1: the pod is bound to this " \
            "node already, with another allocation", message
        bind(case, "other-node", node="n2")
        code, message = driver.outcome("other-node")
        assert code == "EEXIST" and "bound to node n1 already" in message, (code, message)
        assert_bound(case)


def test_refused_for_good():
    with Case() as case:
        driver = cluster(case, pods=4)
        driver.bind("gone", "default/nobody", "n1", "u")
        driver.bind("uid", "default/p0", "n1", "another-uid")
        case.fake.store.patch("pods", "default/p1",
                              {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        bind(case, "deleting", "default/p1")
        case.fake.store.patch("pods", "default/p2", {"spec": {"schedulingGates": [{"name": "g"}]}})
        bind(case, "gated", "default/p2")
        for id_ in ("gone", "uid", "deleting", "gated"):
            driver.outcome(id_)
        case.fake.fault("bind", status=422, message="Binding is invalid: target")
        bind(case, "invalid", "default/p3")
        for id_, want, text in (
                ("gone", "ENOENT", 'HTTP 404: pods "nobody" not found'),
                ("uid", "ENOENT", "was deleted and created again"),
                ("deleting", "ENOENT", "is being deleted"),
                ("gated", "EBUSY", "scheduling gates"),
                ("invalid", "EINVAL", "HTTP 422: Binding is invalid: target")):
            code, message = driver.outcome(id_)
            assert code == want and text in message, (id_, code, message)
            assert message.startswith("pod default/"), message


def test_names_that_cannot_be():
    with Case() as case:
        driver = cluster(case)
        before = len(case.fake.requests())
        for i, (pod, node) in enumerate((
                ("default/..", "n1"), ("../p0", "n1"), ("default/p0%2f", "n1"), ("default/P", "n1"),
                ("default/" + "a" * 254, "n1"), ("default/p0", "-n"), ("default/p0?x", "n1"))):
            driver.bind(str(i), pod, node, "u")
            code, message = driver.outcome(str(i))
            assert code == "EINVAL" and "name" in message, (pod, code, message)
        others = case.fake.requests()[before:]
        assert all(entry["verb"] == "watch" for entry in others), others


# ---- servers that do not look at the UID ----


def recreate(case, key="default/p0"):
    """The pod goes away and comes back, and the client has not heard of it."""
    case.fake.store.delete("pods", key)
    case.fake.store.create("pods", {"metadata": {"name": key.split("/")[1]}})


def test_pod_created_again_on_any_version():
    for version in ("1.20.2", "1.23.0", "1.25.3", "1.26.0", "1.27.0", "1.36.3", "1.30+.9", "2.0",
                    "1.x"):
        with Case(version=version) as case:
            driver = cluster(case, pods=2)
            old = uid(case)
            recreate(case)
            driver.bind("1", "default/p0", "n1", old, **{ALLOCATED: "x"})
            code, message = driver.outcome("1")
            assert code == "ENOENT", (version, code, message)
            assert "deleted and created again" in message, (version, message)
            assert "nodeName" not in case.fake.store.get("pods", "default/p0")["spec"], version
            bind(case, "2", "default/p1")
            assert driver.outcome("2") == ("", ""), version
            assert_bound(case, "default/p1")
            # One look at the pod is the price, where it has to be paid.
            newer = version in ("1.27.0", "1.36.3", "1.30+.9")
            looks = [entry for entry in case.fake.requests("get") if entry["key"] == "default/p1"]
            assert len(looks) == (0 if newer else 1), (version, looks)


def test_pod_created_again_between_look_and_post():
    """Where the UID is ignored, the resourceVersion is not."""
    with Case(version="1.25.3") as case:
        driver = cluster(case)
        old = uid(case)
        case.fake.fault("bind", delay=0.3)
        driver.bind("1", "default/p0", "n1", old, **{ALLOCATED: "x"})
        wait_until(lambda: posts(case) >= 1, "the POST")
        recreate(case)
        code, message = driver.outcome("1")
        assert code == "ENOENT" and "created again" in message, (code, message)
        assert "nodeName" not in case.fake.store.get("pods", "default/p0")["spec"]


def test_pod_that_changes_between_look_and_post():
    with Case(version="1.25.3") as case:
        driver = cluster(case)
        case.fake.fault("bind", times=2, delay=0.2)
        bind(case)
        for i in (1, 2):
            wait_until(lambda: posts(case) == i, "a POST")  # pylint: disable=W0640
            case.fake.store.patch("pods", "default/p0", {"metadata": {"labels": {"n": str(i)}}})
        assert driver.outcome("1") == ("", "")
        assert_bound(case)
        assert posts(case) == 3


def test_server_that_does_not_tell_its_version():
    with Case() as case:
        case.fake.version = "x.y"
        driver = cluster(case)
        bind(case)
        assert driver.outcome("1") == ("", "")
        assert len(case.fake.requests("get")) == 1
        assert_bound(case)


# ---- answers that are lost ----


def test_lost_reply():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", lose_reply=True)
        bind(case)
        assert driver.outcome("1") == ("", "")
        assert_bound(case)
        assert posts(case) <= 2 and len(case.fake.requests("get")) == 1


def test_reply_that_does_not_come():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", hang_reply=60)
        bind(case)
        began = time.monotonic()
        assert driver.outcome("1") == ("", "")
        assert 0.5 < time.monotonic() - began < 3
        assert_bound(case)
        assert posts(case) == 1


def test_request_that_was_not_done():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", close=True)
        case.fake.fault("bind", hang=60)
        bind(case)
        assert driver.outcome("1") == ("", "")
        assert_bound(case)
        # Each time it looked first, and then asked again.
        assert 2 <= posts(case) <= 3 and len(case.fake.requests("get")) >= 1


def test_lost_reply_and_somebody_else():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", close=True)
        case.fake.fault("get", delay=0.2)
        bind(case)
        wait_until(lambda: posts(case) >= 1, "the POST")
        case.fake.store.bind("default/p0", {"target": {"name": "n2"}})
        code, message = driver.outcome("1")
        assert code == "EEXIST" and "bound to node n2" in message, (code, message)


def test_lost_reply_and_the_pod_is_gone():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", lose_reply=True)
        case.fake.fault("get", delay=0.2)
        bind(case)
        wait_until(lambda: posts(case) >= 1, "the POST")
        case.fake.store.delete("pods", "default/p0")
        code, message = driver.outcome("1")
        assert code == "ENOENT" and "HTTP 404" in message, (code, message)


def test_looking_fails_too():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", lose_reply=True)
        case.fake.fault("get", times=2, status=500)
        case.fake.fault("get", close=True)
        case.fake.fault("get", status=200, body="[]")
        bind(case)
        assert driver.outcome("1") == ("", "")
        assert posts(case) <= 2 and len(case.fake.requests("get")) >= 5


def test_looking_is_not_allowed():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", lose_reply=True)
        case.fake.fault("get", status=403, message="forbidden")
        bind(case)
        code, message = driver.outcome("1")
        assert code == "EACCES" and "get on pods" in message, (code, message)


# ---- servers in trouble ----


def test_busy_servers():
    with Case() as case:
        driver = cluster(case, pods=2)
        case.fake.fault("bind", times=3, status=500, message="etcdserver: request timed out")
        bind(case)
        assert driver.outcome("1") == ("", "")
        case.fake.fault("bind", status=429, retry_after=1)
        bind(case, "2", "default/p1")
        began = time.monotonic()
        assert driver.outcome("2") == ("", "")
        assert time.monotonic() - began >= 0.9
        assert_bound(case)
        assert_bound(case, "default/p1")


def test_500_after_the_write():
    with Case() as case:
        driver = cluster(case)
        # The first POST is done although its answer says otherwise.
        case.fake.fault("bind", status=500)
        case.fake.store.bind("default/p0", {"metadata": {"annotations": {ALLOCATED: "x"}},
                                            "target": {"name": "n1"}})
        bind(case)
        assert driver.outcome("1") == ("", "")
        assert_bound(case)


def test_gives_up_in_time():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", times=-1, status=503, message="apiserver is shutting down")
        began = time.monotonic()
        bind(case)
        code, message = driver.outcome("1")
        assert code == "ETIMEDOUT" and time.monotonic() - began < 6.5, (code, message)
        assert message == "pod default/p0 cannot be bound to node n1: no success in 6 s, the last " \
            "try: HTTP 503: apiserver is shutting down; it may be bound all the same", message


def test_does_not_wait_beyond_its_time():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", status=429, retry_after=30)
        began = time.monotonic()
        bind(case)
        code, message = driver.outcome("1")
        assert code == "ETIMEDOUT" and "HTTP 429" in message, (code, message)
        assert time.monotonic() - began < 1, "waiting until the deadline would not have helped"
        assert "may be bound" not in message, message


def test_server_away_and_back():
    with Case() as case:
        driver = cluster(case)
        case.fake.down()
        bind(case)
        time.sleep(1)
        case.fake.up()
        assert driver.outcome("1") == ("", "")
        assert_bound(case)


def test_not_allowed():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", status=403, message='cannot create resource "pods/binding"')
        bind(case)
        code, message = driver.outcome("1")
        assert code == "EACCES", (code, message)
        assert 'cannot create resource "pods/binding"; the ClusterRole must allow create on ' \
            "pods/binding" in message, message


def test_new_token():
    with Case(tokens={"first"}) as case:
        token = case.folder / "token"
        token.write_text("first", encoding="ascii")
        case._user = {"tokenFile": "token"}
        driver = cluster(case, pods=2)
        case.fake.tokens = {"second"}
        case.fake.fault("bind", delay=0.3)
        bind(case)
        wait_until(lambda: any(entry.get("status") == 401 for entry in case.fake.requests("bind")),
                   "401")
        token.write_text("second", encoding="ascii")
        assert driver.outcome("1") == ("", "")
        case.fake.tokens = {"third"}
        bind(case, "2", "default/p1")
        code, message = driver.outcome("2")
        assert code == "EACCES" and "HTTP 401: Unauthorized" in message, (code, message)


# ---- many ----


def test_many_at_once():
    count = 500
    with Case() as case:
        driver = cluster(case, pods=count)
        case.fake.fault("bind", times=-1, delay=0.02)
        uids = {key: pod["metadata"]["uid"] for key, pod in case.fake.store.live["pods"].items()}
        for i in range(count):
            driver.bind(str(i), f"default/p{i}", f"n{i % 7}", uids[f"default/p{i}"],
                        **{ALLOCATED: str(i)})
        wait_until(lambda: len(driver.bound) == count, "all ends", 30)
        assert all(line["code"] == "" for line in driver.bound.values())
        for i in range(count):
            assert_bound(case, f"default/p{i}", f"n{i % 7}", str(i))
        assert posts(case) == count
        peak = case.fake.peak["bind"]
        assert 8 <= peak <= 64, f"{peak} at a time"
        case.wait_equal()


def test_many_with_troubles():
    count = 300
    with Case() as case:
        driver = cluster(case, pods=count)
        for _ in range(15):
            for fault in ({"lose_reply": True}, {"close": True}, {"status": 500}, {"status": 429},
                          {"hang_reply": 60}):
                case.fake.fault("bind", skip=3, **fault)
        uids = {key: pod["metadata"]["uid"] for key, pod in case.fake.store.live["pods"].items()}
        for i in range(count):
            driver.bind(str(i), f"default/p{i}", "n1", uids[f"default/p{i}"], **{ALLOCATED: str(i)})
        wait_until(lambda: len(driver.bound) == count, "all ends", 30)
        bad = [line for line in driver.bound.values() if line["code"]]
        assert not bad, bad[:3]
        for i in range(count):
            assert_bound(case, f"default/p{i}", "n1", str(i))
        case.wait_equal()


def test_queue_has_an_end():
    limit = 4096
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("bind", times=-1, hang=60)
        for i in range(limit + 5):
            driver.bind(str(i), f"default/x{i}", "n1", "u")
        wait_until(lambda: len(driver.bound) == 5, "the ones too many")
        for line in driver.bound.values():
            assert line["code"] == "EBUSY" and "4096 binds are waiting" in line["message"], line
        assert driver.stop(10) < 3
        assert len(driver.bound) == limit + 5
        canceled = [line for line in driver.bound.values() if line["code"] == "ECANCELED"]
        assert len(canceled) == limit, len(canceled)
        # Only of those that were under way it can be doubted.
        doubtful = [line for line in canceled if "may be bound" in line["message"]]
        assert len(doubtful) <= 64, len(doubtful)


def test_waiting_for_a_turn_ends_too():
    with Case(timing={"bind_ms": 2000, "bind_answer_ms": 60000}) as case:
        driver = cluster(case)
        case.fake.fault("bind", times=-1, hang=60)
        for i in range(100):
            driver.bind(str(i), f"default/x{i}", "n1", "u")
        wait_until(lambda: len(driver.bound) == 100, "all ends", 5)
        assert {line["code"] for line in driver.bound.values()} == {"ETIMEDOUT"}
        waited = [line for line in driver.bound.values()
                  if line["message"].endswith("still waiting for its turn after 2 s")]
        assert len(waited) == 100 - 64, len(waited)


def test_binding_from_many_sides_while_stopping():
    with Case() as case:
        driver = cluster(case, pods=50)
        case.fake.fault("bind", times=-1, delay=0.05)
        for i in range(50):
            bind(case, str(i), f"default/p{i}")
        driver.stop()
        assert len(driver.bound) == 50
        for i in range(50):
            code = driver.bound[str(i)]["code"]
            node = case.fake.store.get("pods", f"default/p{i}")["spec"].get("nodeName")
            assert code in ("", "ECANCELED"), code
            assert code != "" or node == "n1", "said to be bound, and is not"


if __name__ == "__main__":
    harness.run_tests(harness.tests_of(sys.modules[__name__]))
