#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same troubles over HTTP/2, where lists, watches and binds share one connection, and the one
trouble that only exists there: a connection that is dead to all of them."""

import importlib.util
import pathlib
import sys
import time

import harness
from harness import Case, wait_until

HERE = pathlib.Path(__file__).resolve().parent


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Http2Case(Case):
    http2 = True


def over_http2(name, wanted):
    """The tests of another case, run with this transport."""
    module = load(name)
    module.Case = Http2Case
    tests = harness.tests_of(module)
    return {test: tests[test] for test in wanted}


SHARED = {
    **over_http2("kube_list_watch", (
        "test_pages_then_events", "test_pages_in_small_pieces_with_utf8",
        "test_events_in_small_pieces_with_utf8", "test_watch_cut_inside_an_event", "test_page_cut",
        "test_connections_cut_all_the_time", "test_half_open_watch", "test_half_open_list",
        "test_410_in_a_watch", "test_429_with_retry_after", "test_401_then_a_new_token",
        "test_large_objects", "test_stops_at_once", "test_storm")),
    **over_http2("kube_bind", (
        "test_one_write", "test_lost_reply", "test_reply_that_does_not_come",
        "test_request_that_was_not_done", "test_busy_servers", "test_gives_up_in_time",
        "test_many_at_once", "test_many_with_troubles", "test_queue_has_an_end",
        "test_binding_from_many_sides_while_stopping")),
}


def cluster(case, pods):
    for i in range(pods):
        case.fake.store.create("pods", {"metadata": {"name": f"p{i}"}})
    driver = case.start()
    case.wait_equal()
    wait_until(lambda: case.fake.requests("watch", "pods"), "a watch")
    return driver


def bind(case, i):
    uid = case.fake.store.get("pods", f"default/p{i}")["metadata"]["uid"]
    case.driver.bind(str(i), f"default/p{i}", "n1", uid, a="b")


def test_one_connection_for_everything():
    with Http2Case() as case:
        driver = cluster(case, 50)
        for i in range(50):
            bind(case, i)
        wait_until(lambda: len(driver.bound) == 50, "all ends")
        case.wait_equal()
        assert len(case.front.connections) == 1, len(case.front.connections)
        assert case.front.connections[0].stream_count >= 54


def test_dead_connection_is_left_by_all():
    """Only the binds notice at first; what they say counts for the watches, too."""
    with Http2Case() as case:
        driver = cluster(case, 10)
        driver.stop()
        driver = case.start(watch_ms=60000, bind_answer_ms=1000)
        case.wait_equal()
        count = len(case.front.connections)
        case.front.freeze()
        began = time.monotonic()
        for i in range(10):
            bind(case, i)
        case.fake.store.create("pods", {"metadata": {"name": "late"}})
        wait_until(lambda: len(driver.bound) == 10, "all ends", 10)
        assert all(line["code"] == "" for line in driver.bound.values()), driver.bound
        case.wait_equal(5)
        assert time.monotonic() - began < 4
        assert len(case.front.connections) == count + 1
        assert "its connection stopped answering" in driver.log()


def test_slow_request_is_no_dead_connection():
    with Http2Case() as case:
        driver = cluster(case, 2)
        case.fake.fault("bind", hang=60)
        before = driver.stats()["watch_restarts"]
        bind(case, 0)
        # Meanwhile the watch has its events.
        for i in range(20):
            case.fake.store.patch("pods", "default/p1", {"metadata": {"labels": {"n": str(i)}}})
            time.sleep(0.06)
        assert driver.outcome("0") == ("", "")
        assert driver.stats()["watch_restarts"] == before
        assert len(case.front.connections) == 1


if __name__ == "__main__":
    harness.run_tests({**SHARED, **harness.tests_of(sys.modules[__name__])})
