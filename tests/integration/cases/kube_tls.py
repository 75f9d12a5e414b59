#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whom the client believes to be the API server, and how it shows who it is itself; certificates and
tokens that are replaced while it runs."""

import base64
import os
import sys
import tempfile
import time

import harness
import pki
from harness import Case, wait_until

LOOPBACK = "IP:127.0.0.1"


def case_with(folder, server_names=LOOPBACK, clients=None, cluster=None, user=None, **more):
    """A case whose server has a certificate of the CA in the folder: (case, ca)."""
    ca = pki.Authority(folder)
    context = pki.server_context(ca.issue("server", names=server_names), clients)
    case = Case(tls=context, cluster={"certificate-authority": str(ca.cert), **(cluster or {})},
                user=user, **more)
    case.fake.store.create("nodes", {"metadata": {"name": "n1"}})
    case.fake.store.create("pods", {"metadata": {"name": "p1"}})
    return case, ca


def replace(path, source):
    """A new file under an old name, as kubelet does it."""
    new = f"{path}.new"
    with open(new, "wb") as out:
        out.write(source.read_bytes() if hasattr(source, "read_bytes") else source)
    os.replace(new, path)


def inline(path):
    return base64.b64encode(path.read_bytes()).decode()


def assert_refused(case, text, seconds=1.0):
    """Nothing but failed handshakes, and the log says why."""
    driver = case.start()
    wait_until(lambda: text in driver.log(), f'"{text}" in the log')
    time.sleep(seconds / 5)
    assert not case.fake.requests(), "a request reached a server that must not be trusted"
    assert not driver.said("list_begin")


def test_ca_and_token():
    with tempfile.TemporaryDirectory() as folder:
        case, _ca = case_with(folder, user={"token": "secret"}, tokens={"secret"})
        with case:
            driver = case.start()
            case.wait_equal()
            uid = case.fake.store.get("pods", "default/p1")["metadata"]["uid"]
            driver.bind("1", "default/p1", "n1", uid, a="b")
            assert driver.outcome("1") == ("", "")
            case.wait_equal()
            assert "secret" not in driver.log()


def test_inline_data():
    with tempfile.TemporaryDirectory() as folder:
        clients = pki.Authority(folder, "client-ca")
        cert, key = clients.issue("scheduler", usage="clientAuth")
        case, ca = case_with(folder, clients=clients, user={
            "client-certificate-data": inline(cert), "client-key-data": inline(key)})
        with case:
            case._cluster = {"certificate-authority-data": inline(ca.cert)}
            case.start()
            case.wait_equal()


def test_client_certificate():
    with tempfile.TemporaryDirectory() as folder:
        clients = pki.Authority(folder, "client-ca")
        cert, key = clients.issue("scheduler", usage="clientAuth")
        case, _ca = case_with(folder, clients=clients, user={
            "client-certificate": str(cert), "client-key": str(key)})
        with case:
            case.start()
            case.wait_equal()


def test_no_client_certificate():
    with tempfile.TemporaryDirectory() as folder:
        clients = pki.Authority(folder, "client-ca")
        case, _ca = case_with(folder, clients=clients)
        with case:
            assert_refused(case, "cannot follow the cluster")


def test_certificate_of_another_ca():
    with tempfile.TemporaryDirectory() as folder:
        case, _ca = case_with(folder)
        with case:
            case._cluster = {"certificate-authority": str(pki.Authority(folder, "other").cert)}
            assert_refused(case, "certificate")


def test_certificate_of_another_host():
    with tempfile.TemporaryDirectory() as folder:
        case, _ca = case_with(folder, server_names="DNS:elsewhere.test,IP:127.0.0.2")
        with case:
            assert_refused(case, "127.0.0.1")


def test_certificate_that_is_no_servers():
    with tempfile.TemporaryDirectory() as folder:
        ca = pki.Authority(folder)
        pair = ca.issue("client", names=LOOPBACK, usage="clientAuth")
        with Case(tls=pki.server_context(pair),
                  cluster={"certificate-authority": str(ca.cert)}) as case:
            assert_refused(case, "certificate")


def test_insecure_skips_all_of_it():
    with tempfile.TemporaryDirectory() as folder:
        case, _ca = case_with(folder, server_names="DNS:elsewhere.test")
        with case:
            case._cluster = {"insecure-skip-tls-verify": True}
            case.start()
            case.wait_equal()


def test_tls_server_name():
    with tempfile.TemporaryDirectory() as folder:
        case, _ca = case_with(folder, server_names="DNS:kubernetes.test",
                              cluster={"tls-server-name": "kubernetes.test"})
        with case:
            case.start()
            case.wait_equal()


def test_server_gets_another_ca():
    with tempfile.TemporaryDirectory() as folder:
        case, ca = case_with(folder)
        with case:
            driver = case.start()
            case.wait_equal()
            other = pki.Authority(folder, "other")
            case.fake.tls = pki.server_context(other.issue("server2", names=LOOPBACK))
            case.fake.drop()
            wait_until(lambda: "certificate" in driver.log(), "the old CA to fail")
            case.fake.store.create("pods", {"metadata": {"name": "late"}})
            assert driver.pod("default/late") is None
            replace(ca.cert, other.cert)
            case.wait_equal()


def test_client_certificate_is_replaced():
    with tempfile.TemporaryDirectory() as folder:
        old, new = pki.Authority(folder, "old"), pki.Authority(folder, "new")
        cert, key = old.issue("scheduler", usage="clientAuth")
        new_cert, new_key = new.issue("scheduler2", usage="clientAuth")
        case, ca = case_with(folder, clients=old, user={
            "client-certificate": str(cert), "client-key": str(key)})
        with case:
            driver = case.start()
            case.wait_equal()
            case.fake.tls = pki.server_context((ca.folder / "server.crt", ca.folder / "server.key"),
                                               new)
            # Between the two files certificate and key do not fit together, which must pass.
            replace(cert, new_cert)
            time.sleep(1.5)
            replace(key, new_key)
            case.fake.drop()
            case.fake.store.create("pods", {"metadata": {"name": "late"}})
            case.wait_equal()
            assert "a credential was read again" in driver.log()


def test_new_certificate_means_new_connections():
    """A connection that was made with the old certificate is not used any more."""
    with tempfile.TemporaryDirectory() as folder:
        clients = pki.Authority(folder, "client-ca")
        cert, key = clients.issue("scheduler", usage="clientAuth")
        new_cert, new_key = clients.issue("scheduler2", usage="clientAuth")
        case, _ca = case_with(folder, clients=clients, user={
            "client-certificate": str(cert), "client-key": str(key)})
        with case:
            driver = case.start()
            case.wait_equal()
            wait_until(lambda: len(case.fake.requests("watch")) >= 6, "a few watches")
            before = {entry["peer"] for entry in case.fake.requests()}
            assert len(before) <= 4, "connections are used again"
            replace(key, new_key)
            replace(cert, new_cert)
            wait_until(lambda: driver.log().count("a credential was read again") == 2, "the files")
            count = len(case.fake.requests())
            wait_until(lambda: len(case.fake.requests()) >= count + 6, "more watches")
            after = {entry["peer"] for entry in case.fake.requests()[count + 3:]}
            assert not before & after, (before, after)
            case.fake.store.create("pods", {"metadata": {"name": "late"}})
            case.wait_equal()


def test_files_that_are_not_there():
    with tempfile.TemporaryDirectory() as folder:
        for user in ({"tokenFile": f"{folder}/none"},
                     {"client-certificate": f"{folder}/none", "client-key": f"{folder}/none"}):
            with Case(user=user) as case:
                driver = case.start()
                line = wait_until(lambda: driver.said("error"), "an error")[0]  # pylint: disable=W0640
                assert f"{folder}/none: the " in line["error"], line
                assert "cannot be read: No such file" in line["error"], line
                driver.kill()
                case.driver = None


def test_bytes_that_are_no_tls():
    with tempfile.TemporaryDirectory() as folder:
        case, _ca = case_with(folder)
        with case:
            driver = case.start()
            case.wait_equal()
            tls, case.fake.tls = case.fake.tls, None
            case.fake.drop()
            wait_until(lambda: "SSL" in driver.log() or "ssl" in driver.log(), "a failed handshake")
            case.fake.tls = tls
            case.fake.store.create("pods", {"metadata": {"name": "late"}})
            case.wait_equal()


if __name__ == "__main__":
    harness.run_tests(harness.tests_of(sys.modules[__name__]))
