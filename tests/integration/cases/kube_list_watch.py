#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The API server client under everything that a server and a network can do to lists and watches.
Every test ends with what the client knows being the truth."""

import json
import os
import pathlib
import random
import sys
import time

import harness
from harness import Case, wait_until


KINDS = ("nodes", "pods", "resourcequotas")


def each(number):
    """A counter that is the same for every kind."""
    return {kind: number for kind in KINDS}


def fill(case, nodes=3, pods=10):
    for i in range(nodes):
        case.fake.store.create("nodes", {"metadata": {"name": f"n{i}"}})
    for i in range(pods):
        case.fake.store.create("pods", {"metadata": {"name": f"p{i}"}})


def pod(name, **more):
    return {"metadata": {"name": name, **more}}


def watches(case, kind="pods", count=1):
    """Until so many watches of the kind were asked for."""
    wait_until(lambda: len(case.fake.requests("watch", kind)) >= count,
               f"{count} watches of {kind}")


def following(case):
    """Until the first lists are over and all watches stand."""
    case.wait_equal()
    for kind in KINDS:
        watches(case, kind)


def churn(store, rng, rounds, prefix="churn"):
    """Creates, changes, deletes and re-creates pods and nodes."""
    for i in range(rounds):
        key = f"default/{prefix}{rng.randrange(8)}"
        name = key.split("/")[1]
        what = rng.randrange(4)
        if store.get("pods", key) is None:
            store.create("pods", pod(name))
        elif what == 0:
            store.delete("pods", key)
        else:
            store.patch("pods", key, {"metadata": {"annotations": {"n": str(i)}}})
        if what == 1:
            node = f"{prefix}-n{rng.randrange(3)}"
            if store.get("nodes", node) is None:
                store.create("nodes", {"metadata": {"name": node}})
            elif rng.randrange(3) == 0:
                store.delete("nodes", node)
            else:
                store.patch("nodes", node, {"metadata": {"annotations": {"n": str(i)}}})


# ---- the ordinary ----


def test_empty_cluster():
    with Case() as case:
        driver = case.start()
        wait_until(lambda: len(driver.said("list_end")) == 3, "three empty lists")
        case.fake.store.create("nodes", {"metadata": {"name": "first"}})
        case.wait_equal()


def test_pages_then_events():
    with Case() as case:
        fill(case, nodes=501, pods=1203)
        driver = case.start()
        following(case)
        lists = case.fake.requests("list")
        assert len(lists) == 2 + 3 + 1, [entry["path"] for entry in lists]
        assert all("limit=500" in entry["path"] for entry in lists)
        assert len(driver.said("list_begin")) == 3
        churn(case.fake.store, random.Random(1), 300)
        case.wait_equal()
        assert len(case.fake.requests("list")) == 6, "events need no list"
        assert lists[0]["agent"].startswith("kube-vgpu/")


def test_watch_asks_for_bookmarks_and_an_end():
    with Case() as case:
        fill(case)
        case.start()
        watches(case, count=3)
        seconds = set()
        for entry in case.fake.requests("watch"):
            assert "allowWatchBookmarks=true" in entry["path"]
            seconds.add(int(entry["path"].split("timeoutSeconds=")[1].split("&")[0]))
        assert seconds <= {1, 2}, seconds
        stats = case.driver.stats()
        assert stats["watch_restarts"] == each(0), stats
        assert stats["lists"] == each(1), stats


def test_heard_when_nothing_happens():
    with Case() as case:
        fill(case)
        driver = case.start()
        following(case)
        before = len(driver.said("heard", "nodes"))
        wait_until(lambda: len(driver.said("heard", "nodes")) >= before + 5, "bookmarks", 5)


def test_pod_created_again_under_its_name():
    with Case() as case:
        fill(case)
        case.start()
        following(case)
        for _ in range(20):
            case.fake.store.delete("pods", "default/p1")
            case.fake.store.create("pods", pod("p1"))
        case.wait_equal()


# ---- pieces ----


def test_pages_in_small_pieces_with_utf8():
    with Case() as case:
        for i in range(20):
            case.fake.store.create("pods", pod(f"p{i}", annotations={"t": "é🍌\u2028\"]}[{\\" * 9}))
        case.fake.fault("list", "pods", chunk=1)
        case.fake.fault("list", "nodes", chunk=3)
        case.start()
        case.wait_equal()


def test_events_in_small_pieces_with_utf8():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", times=-1, chunk=1)
        case.start()
        following(case)
        case.fake.store.create("pods", pod("utf", annotations={"t": "é🍌\u2028" * 50}))
        churn(case.fake.store, random.Random(2), 20)
        case.wait_equal()
        assert case.driver.stats()["malformed"] == each(0)


def test_slow_pieces():
    with Case() as case:
        fill(case, pods=2)
        case.fake.fault("watch", times=-1, chunk=100, chunk_pause=0.01)
        case.start()
        following(case)
        churn(case.fake.store, random.Random(3), 20)
        case.wait_equal()


def test_metadata_behind_the_items():
    with Case() as case:
        fill(case, pods=30)
        case.fake.fault("list", times=-1, tail_metadata=True)
        case.start()
        case.wait_equal()


# ---- broken streams ----


def test_watch_cut_inside_an_event():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", "pods", times=3, cut=2)
        driver = case.start()
        following(case)
        for i in range(20):
            case.fake.store.patch("pods", f"default/p{i % 10}",
                                  {"metadata": {"annotations": {"n": str(i)}}})
            time.sleep(0.02)
        case.wait_equal()
        stats = driver.stats()
        assert stats["watch_restarts"]["pods"] == 3, stats
        assert stats["lists"]["pods"] == 1, "a cut stream is gone on with, not listed anew"
        assert stats["malformed"]["pods"] == 0, stats


def test_page_cut():
    with Case() as case:
        fill(case, pods=1100)
        case.fake.fault("list", "pods", times=1, truncate=40000)
        case.fake.fault("list", "pods", times=1, skip=1, truncate=40000)
        driver = case.start()
        case.wait_equal()
        paths = [entry["path"] for entry in case.fake.requests("list", "pods")]
        # The first page twice, then the second page twice with the same token, then the third.
        assert [("continue" in path) for path in paths] == [False, False, True, True, True], paths
        assert paths[2] == paths[3]
        # Over HTTP/2 a reset may overtake what was sent before it: then the first try never began.
        begun, aborted = (len(driver.said(word, "pods")) for word in ("list_begin", "list_abort"))
        assert begun == aborted + 1 and aborted <= 1, (begun, aborted)
        assert len(driver.said("list_end", "pods")) == 1


def test_first_page_cut_leaves_no_ghost():
    with Case() as case:
        fill(case, pods=400)
        case.fake.fault("list", "pods", truncate=100000)
        # The second try comes late, and by then a pod that the first had shown is gone.
        case.fake.fault("list", "pods", delay=0.5)
        driver = case.start()
        wait_until(lambda: driver.pod("default/p1"), "the first items")
        case.fake.store.delete("pods", "default/p1")
        case.wait_equal()


def test_connections_cut_all_the_time():
    with Case() as case:
        fill(case)
        driver = case.start()
        rng = random.Random(4)
        for _ in range(20):
            churn(case.fake.store, rng, 10)
            case.fake.drop()
            time.sleep(0.05)
        case.wait_equal()
        assert driver.stats()["lists"]["pods"] == 1


# ---- silence ----


def test_half_open_watch():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", times=len(KINDS), silent=60)
        driver = case.start()
        following(case)
        case.fake.store.create("pods", pod("late"))
        began = time.monotonic()
        case.wait_equal()
        assert time.monotonic() - began < 5
        stats = driver.stats()
        assert stats["watch_restarts"] == each(1), stats
        assert stats["lists"]["pods"] == 1, stats


def test_half_open_list():
    with Case() as case:
        fill(case)
        case.fake.fault("list", times=len(KINDS), hang=60)
        case.start()
        case.wait_equal(10)


def test_kernel_probes_the_connection():
    """A host that is gone without a word sends nothing, not even an end: TCP has to ask."""
    with Case() as case:
        fill(case)
        case.fake.fault("watch", times=-1, silent=60)
        case.start(answer_ms=60000, watch_ms=60000)
        case.wait_equal()
        watches(case, "nodes")
        watches(case, "pods")
        time.sleep(0.2)
        timers = []
        for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            remote_port, state, (timer, when) = \
                int(fields[2].split(":")[1], 16), fields[3], fields[5].split(":")
            if remote_port == case.fake.port and state == "01":
                timers.append((timer, int(when, 16)))
        ticks = os.sysconf("SC_CLK_TCK")
        # 02 is the keep-alive timer: its first probe comes within 5 s.
        assert len(timers) >= 2, timers
        assert all(timer == "02" and when <= 5 * ticks for timer, when in timers), timers


def test_watch_without_bookmarks_is_no_silence():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", times=-1, no_bookmarks=True)
        driver = case.start()
        watches(case, count=4)
        stats = driver.stats()
        assert stats["watch_restarts"] == each(0), stats
        assert len(driver.said("heard", "pods")) >= 3, "a watch that ends in order was heard"


def test_server_away_and_back():
    with Case() as case:
        fill(case)
        driver = case.start()
        following(case)
        case.fake.down()
        time.sleep(3)
        case.fake.store.create("pods", pod("meanwhile"))
        case.fake.store.delete("pods", "default/p1")
        case.fake.up()
        case.wait_equal(5)
        stats = driver.stats()
        assert stats["failures"]["pods"] >= 3, stats
        assert stats["lists"]["pods"] == 1, "nothing was forgotten: no list is needed"
        warnings = [line for line in driver.log().splitlines() if " warn " in line]
        # That the stream broke, and that nobody listens: once each per kind.
        assert len(warnings) <= 2 * len(KINDS), warnings
        assert any("follows the cluster again" in line for line in driver.log().splitlines())


def test_server_not_there_at_the_start():
    with Case() as case:
        fill(case)
        case.fake.down()
        case.start()
        time.sleep(0.5)
        case.fake.up()
        case.wait_equal()


# ---- time ----


def test_410_in_a_watch():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", times=len(KINDS), close=True)
        case.fake.fault("watch", times=len(KINDS), delay=0.2)
        driver = case.start()
        watches(case)
        churn(case.fake.store, random.Random(5), 30)
        case.fake.store.delete("pods", "default/p3")
        case.fake.store.compact()
        case.wait_equal()
        assert driver.stats()["lists"]["pods"] == 2


def test_410_as_the_answer_to_a_watch():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", "pods", status=410, reason="Expired")
        driver = case.start()
        case.wait_equal()
        wait_until(lambda: driver.stats()["lists"]["pods"] == 2, "a second list")
        case.fake.store.create("pods", pod("late"))
        case.wait_equal()


def test_410_storm_backs_off():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", "pods", times=-1, status=410)
        case.start(backoff_min_ms=100, backoff_max_ms=1000)
        time.sleep(3)
        lists = len(case.fake.requests("list", "pods"))
        assert 3 <= lists <= 12, lists
        case.fake.clear_faults()
        case.fake.store.create("pods", pod("late"))
        case.wait_equal()


def test_410_in_the_middle_of_a_list():
    with Case() as case:
        fill(case, pods=1100)
        case.fake.fault("list", "pods", skip=1, status=410, reason="Expired")
        driver = case.start()
        case.wait_equal()
        paths = [entry["path"] for entry in case.fake.requests("list", "pods")]
        assert [("continue" in path) for path in paths] == [False, True, False, True, True], paths
        assert len(driver.said("list_abort", "pods")) == 1
        assert len(driver.said("list_begin", "pods")) == 2


def test_bookmarks_save_a_list():
    with Case() as case:
        fill(case)
        driver = case.start()
        following(case)
        # Nothing happens to nodes while pods move on and the past is compacted.
        churn(case.fake.store, random.Random(6), 1)
        for i in range(50):
            case.fake.store.patch("pods", "default/p1", {"metadata": {"annotations": {"n": str(i)}}})
        heard = len(driver.said("heard", "nodes"))
        wait_until(lambda: len(driver.said("heard", "nodes")) >= heard + 2, "a bookmark")
        case.wait_equal()
        case.fake.store.compact()
        case.fake.drop()
        watches(case, "nodes", len(case.fake.requests("watch", "nodes")) + 2)
        case.wait_equal()
        assert driver.stats()["lists"] == each(1)


def test_list_from_a_server_that_is_behind():
    with Case() as case:
        fill(case)
        driver = case.start()
        following(case)
        behind = case.fake.store.version
        case.fake.store.patch("pods", "default/p1", {"metadata": {"annotations": {"n": "1"}}})
        case.fake.store.delete("pods", "default/p2")
        case.fake.store.create("pods", pod("new"))
        case.wait_equal()
        heard = len(driver.said("heard", "pods"))
        case.fake.fault("list", "pods", times=4, as_of=behind)
        case.fake.fault("watch", "pods", status=410)
        case.fake.drop()
        wait_until(lambda: len(case.fake.requests("list", "pods")) >= 4, "lists")
        known = driver.state()["pods"]
        assert "default/p2" not in known and "default/new" in known
        assert len(driver.said("heard", "pods")) - heard <= 2, "an old list is not news"
        wait_until(lambda: len(case.fake.requests("list", "pods")) >= 6, "the right list")
        case.wait_equal()
        wait_until(lambda: driver.stats()["lists"]["pods"] == 2, "the right list")
        stats = driver.stats()
        assert stats["stale"]["pods"] >= 4, stats
        assert "older than what was seen before" in driver.log()


def test_list_that_is_behind_by_one_new_pod():
    """No object in it is older than it was; only the list itself tells that it is."""
    with Case() as case:
        fill(case)
        driver = case.start()
        following(case)
        behind = case.fake.store.version
        case.fake.store.create("pods", pod("new"))
        case.wait_equal()
        case.fake.fault("list", "pods", times=3, as_of=behind)
        case.fake.fault("watch", "pods", status=410)
        case.fake.drop()
        wait_until(lambda: len(case.fake.requests("list", "pods")) >= 4, "lists")
        assert "default/new" in driver.state()["pods"]
        wait_until(lambda: driver.stats()["lists"]["pods"] == 2, "the right list")
        assert driver.stats()["stale"]["pods"] == 3
        case.wait_equal()


def test_late_metadata_from_a_server_that_is_behind():
    with Case() as case:
        fill(case)
        driver = case.start()
        following(case)
        behind = case.fake.store.version
        case.fake.store.delete("pods", "default/p2")
        case.wait_equal()
        case.fake.fault("list", "pods", times=2, as_of=behind, tail_metadata=True)
        case.fake.fault("watch", "pods", status=410)
        case.fake.drop()
        wait_until(lambda: driver.stats()["lists"]["pods"] == 2, "the right list")
        case.wait_equal()


def test_events_from_the_past():
    with Case() as case:
        fill(case)
        store = case.fake.store
        old = store.get("pods", "default/p1")
        gone = store.get("pods", "default/p2")
        store.patch("pods", "default/p1", {"metadata": {"annotations": {"n": "1"}}})
        store.delete("pods", "default/p2")
        raw = "".join(json.dumps({"type": type_, "object": obj}) + "\n"
                      for type_, obj in (("MODIFIED", old), ("ADDED", gone), ("DELETED", old)))
        case.fake.fault("watch", "pods", raw=raw)
        driver = case.start()
        following(case)
        wait_until(lambda: driver.stats()["stale"]["pods"] == 3, "three old events")
        store.create("pods", pod("late"))
        case.wait_equal()


def test_bookmark_from_the_past():
    with Case() as case:
        fill(case)
        raw = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}})
        for _ in range(3):
            case.fake.fault("watch", "pods", raw=raw + "\n", end=True)
        driver = case.start(backoff_min_ms=50)
        watches(case, count=3)
        assert not driver.said("heard", "pods")[1:], "nothing was heard but the list"
        watches(case, count=5)
        versions = {entry["path"].split("resourceVersion=")[1]
                    for entry in case.fake.requests("watch", "pods")}
        assert all(int(version) > 100 for version in versions), versions
        case.fake.store.create("pods", pod("late"))
        case.wait_equal()


def test_duplicates():
    disturbed({"duplicate": True}, 10)


def test_reordered():
    disturbed({"reorder": True}, 11)


def test_replayed():
    disturbed({"replay": True}, 12)


def disturbed(action, seed):
    with Case() as case:
        fill(case)
        case.fake.fault("watch", times=-1, **action)
        driver = case.start()
        following(case)
        rng = random.Random(seed)
        for _ in range(30):
            churn(case.fake.store, rng, 10)
            time.sleep(0.01)
        case.wait_equal()
        assert driver.stats()["lists"]["pods"] == 1


# ---- answers ----


def test_429_with_retry_after():
    with Case() as case:
        fill(case)
        case.fake.fault("list", "pods", times=2, status=429, retry_after=1)
        case.start()
        case.wait_equal()
        at = [entry["at"] for entry in case.fake.requests("list", "pods")]
        assert len(at) == 3 and at[1] - at[0] >= 1 and at[2] - at[1] >= 1, at


def test_500_storm():
    with Case() as case:
        fill(case)
        for verb in ("list", "watch"):
            case.fake.fault(verb, times=12, status=500, message="etcdserver: leader changed")
        driver = case.start()
        case.wait_equal()
        churn(case.fake.store, random.Random(7), 30)
        case.wait_equal()
        assert "etcdserver: leader changed" in driver.log()


def test_403_names_what_is_lacking():
    with Case() as case:
        fill(case)
        case.fake.fault("list", "pods", times=3, status=403,
                        message='pods is forbidden: User "x" cannot list resource "pods"')
        driver = case.start()
        case.wait_equal()
        log = driver.log()
        assert 'cannot list resource \\"pods\\"' in log, log
        assert "the ClusterRole must allow get, list and watch on pods in all namespaces" in log


def test_401_then_a_new_token():
    with Case(tokens={"first"}) as case:
        token = case.folder / "token"
        token.write_text("first\n", encoding="ascii")
        case._user = {"tokenFile": "token"}
        fill(case)
        driver = case.start()
        following(case)
        case.fake.tokens = {"second"}
        case.fake.drop()
        wait_until(lambda: any(entry.get("status") == 401 for entry in case.fake.requests()), "401")
        token.write_text("second\n", encoding="ascii")
        case.fake.store.create("pods", pod("late"))
        case.wait_equal()
        assert "first" not in driver.log() and "second" not in driver.log(), "a token in the log"


def test_answers_that_are_no_lists():
    with Case() as case:
        fill(case)
        for body in ("", "[]", "{}", "<html>", '{"kind":"Status"}', '{"items":[{}]}',
                     '{"metadata":{"resourceVersion":"1"},"items":[1'):
            case.fake.fault("list", times=1, status=200, body=body)
            case.fake.fault("list", times=1, status=200, body=body)
        case.start()
        case.wait_equal()


def test_errors_inside_a_watch():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", "pods", times=3, error=500, message="leader changed")
        driver = case.start()
        following(case)
        watches(case, count=4)
        case.fake.store.create("pods", pod("late"))
        case.wait_equal()
        assert driver.stats()["lists"]["pods"] == 1, "errors that pass need no list"
        # Errors that do not pass: perhaps the version is one that the server cannot go on from.
        case.fake.fault("watch", "pods", times=6, error=504, message="Too large resource version")
        case.fake.drop()
        wait_until(lambda: driver.stats()["lists"]["pods"] == 2, "a list")
        case.fake.store.create("pods", pod("later"))
        case.wait_equal()


def test_watch_that_ends_at_once():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", "pods", times=-1, end=True)
        case.start(backoff_min_ms=100, backoff_max_ms=1000)
        following(case)
        time.sleep(3)
        count = len(case.fake.requests("watch", "pods"))
        assert count <= 12, f"{count} watches in 3 s"
        case.fake.clear_faults()
        case.fake.store.create("pods", pod("late"))
        case.wait_equal()


# ---- objects ----


def test_malformed_objects_hide_nothing():
    with Case() as case:
        fill(case)
        bad = pod("bad")
        bad["spec"] = {"containers": "none"}
        case.fake.store.create("pods", bad)
        driver = case.start()
        wait_until(lambda: driver.said("malformed", "pods"), "a complaint")
        assert driver.said("malformed", "pods")[0]["key"] == "default/bad"
        case.fake.store.delete("pods", "default/bad")
        case.wait_equal()
        # One that is known and becomes unreadable stays known as it was.
        before = driver.state()["pods"]["default/p1"]
        case.fake.store.patch("pods", "default/p1", {"spec": {"containers": 5}})
        wait_until(lambda: len(driver.said("malformed", "pods")) == 2, "a complaint")
        assert driver.state()["pods"]["default/p1"] == before
        # A list must not take it away, either.
        case.fake.store.compact()
        case.fake.store.create("pods", pod("late"))
        case.fake.fault("watch", "pods", status=410)
        case.fake.drop()
        wait_until(lambda: driver.stats()["lists"]["pods"] == 2, "a list")
        assert driver.state()["pods"]["default/p1"] == before
        case.fake.store.patch("pods", "default/p1", {"spec": {"containers": [{"name": "c"}]}})
        case.wait_equal()


def test_garbage_in_a_watch():
    with Case() as case:
        fill(case)
        case.fake.fault("watch", "pods", raw="no JSON at all\n")
        case.fake.fault("watch", "pods", raw='{"type":"ADDED","object":{"metadata":{}}}\n')
        driver = case.start()
        wait_until(lambda: driver.stats()["lists"]["pods"] == 3, "two more lists")
        case.fake.store.create("pods", pod("late"))
        case.wait_equal()
        assert driver.stats()["malformed"]["pods"] == 2


def test_huge_object():
    with Case() as case:
        fill(case)
        driver = case.start()
        following(case)
        before = driver.state()["pods"]["default/p1"]
        case.fake.store.patch("pods", "default/p1",
                              {"metadata": {"annotations": {"huge": "x" * (17 << 20)}}})
        case.fake.store.create("pods", pod("late"))
        # The event is too long, and so is the object in the list that follows.
        wait_until(lambda: len(driver.said("malformed", "pods")) >= 2, "two complaints", 30)
        assert {line["key"] for line in driver.said("malformed", "pods")} == {"", "default/p1"}
        wait_until(lambda: driver.pod("default/late"), "the pod behind it")
        assert driver.state()["pods"]["default/p1"] == before
        case.fake.store.patch("pods", "default/p1", {"metadata": {"annotations": None}})
        case.wait_equal()


def test_large_objects():
    with Case() as case:
        fill(case)
        for i in range(6):
            case.fake.store.create("pods", pod(f"large{i}", annotations={"x": "y" * (2 << 20)}))
        case.start()
        following(case)
        case.fake.store.create("pods", pod("large", annotations={"x": "z" * (3 << 20)}))
        case.wait_equal()


# ---- stopping ----


def test_stops_at_once():
    for verb, action in (("list", {"hang": 60}), ("watch", {"silent": 60}), ("list", {"status": 500}),
                         ("list", {"chunk": 10, "chunk_pause": 0.2})):
        with Case() as case:
            fill(case)
            case.fake.fault(verb, times=-1, **action)
            driver = case.start(answer_ms=30000, idle_ms=30000)
            wait_until(lambda: case.fake.requests(verb), verb)  # pylint: disable=W0640
            time.sleep(0.2)
            assert driver.stop() < 1
            begun = len(driver.said("list_begin"))
            assert begun == len(driver.said("list_end")) + len(driver.said("list_abort"))


# ---- all of it ----


def test_storm():
    """Everything at once, at random, for many seeds; the end is the truth each time."""
    faults = [
        ("list", {"truncate": 3000}), ("list", {"status": 500}), ("list", {"status": 410}),
        ("list", {"chunk": 7}), ("list", {"close": True}), ("list", {"tail_metadata": True}),
        ("watch", {"cut": 2}), ("watch", {"cut": 1}), ("watch", {"duplicate": True}),
        ("watch", {"reorder": True}), ("watch", {"replay": True}), ("watch", {"chunk": 5}),
        ("watch", {"error": 410}), ("watch", {"error": 500}), ("watch", {"status": 429}),
        ("watch", {"status": 410}), ("watch", {"end": True}), ("watch", {"raw": "garbage\n"}),
        ("watch", {"close": True}), ("watch", {"no_bookmarks": True}),
    ]
    for seed in range(8):
        rng = random.Random(seed)
        with Case() as case:
            fill(case, nodes=10, pods=60)
            for _ in range(25):
                verb, action = rng.choice(faults)
                case.fake.fault(verb, rng.choice(("nodes", "pods")), skip=rng.randrange(2), **action)
            case.start(backoff_max_ms=50)
            for _ in range(60):
                churn(case.fake.store, rng, 5)
                if rng.randrange(8) == 0:
                    case.fake.drop()
                if rng.randrange(12) == 0:
                    case.fake.store.compact()
                time.sleep(0.01)
            case.fake.clear_faults()
            try:
                case.wait_equal(20)
            except harness.Timeout as error:
                raise harness.Timeout(f"seed {seed}: {error}") from None


if __name__ == "__main__":
    harness.run_tests(harness.tests_of(sys.modules[__name__]))
