#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting pods are touched: the right ones, once, and whatever goes wrong harms nobody."""

import json
import sys

import harness
from harness import Case, wait_until

NUDGED = "kube-vgpu.io/nudged"


def cluster(case, pods=1):
    for i in range(pods):
        case.fake.store.create("pods", {"metadata": {"name": f"p{i}"}})
    driver = case.start()
    case.wait_equal()
    return driver


def uid(case, key="default/p0"):
    return case.fake.store.get("pods", key)["metadata"]["uid"]


def nudged(case, key="default/p0"):
    return case.fake.store.get("pods", key)["metadata"].get("annotations", {}).get(NUDGED)


def patches(case):
    return case.fake.requests("patch")


def test_touches_the_pod():
    with Case() as case:
        driver = cluster(case)
        driver.send(f"nudge default p0 {uid(case)}")
        wait_until(lambda: nudged(case), "the annotation")
        first = nudged(case)
        assert first.isdigit(), first
        assert json.loads(patches(case)[0]["body"]) == {
            "metadata": {"uid": uid(case), "annotations": {NUDGED: first}}}
        wait_until(lambda: driver.stats()["nudges"] == 1, "the count")
        # A second time is a change again.
        driver.send(f"nudge default p0 {uid(case)}")
        wait_until(lambda: nudged(case) != first, "another value")


def test_another_pod_of_that_name_is_left_alone():
    with Case() as case:
        driver = cluster(case)
        driver.send("nudge default p0 some-other-uid")
        driver.send("nudge default gone some-uid")
        wait_until(lambda: driver.stats()["request_failures"] == 2, "both answers")
        assert nudged(case) is None
        assert driver.stats()["nudges"] == 0
        assert "warn" not in driver.log(), driver.log()


def test_forbidden_is_said_once():
    with Case() as case:
        driver = cluster(case)
        case.fake.fault("patch", times=-1, status=403)
        for _ in range(20):
            driver.send(f"nudge default p0 {uid(case)}")
        wait_until(lambda: driver.stats()["request_failures"] == 20, "all answers")
        assert driver.log().count("must allow patch on pods") == 1, driver.log()


def test_many_at_once_and_stop():
    with Case() as case:
        driver = cluster(case, pods=100)
        case.fake.fault("patch", times=-1, delay=0.02)
        for i in range(100):
            driver.send(f"nudge default p{i} {uid(case, f'default/p{i}')}")
        wait_until(lambda: all(nudged(case, f"default/p{i}") for i in range(100)), "all pods")
        assert case.fake.peak["patch"] <= 16, case.fake.peak
        case.fake.fault("patch", times=-1, hang=60)
        for i in range(100):
            driver.send(f"nudge default p{i} {uid(case, f'default/p{i}')}")
        wait_until(lambda: len(patches(case)) > 100, "requests that hang")
        assert driver.stop() < 5


if __name__ == "__main__":
    harness.run_tests(harness.tests_of(sys.modules[__name__]))
