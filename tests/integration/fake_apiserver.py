#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An API server that keeps nodes, pods, quotas and events, and misbehaves on demand.

It speaks as much of the Kubernetes API as a scheduler extender uses: LIST in pages with continue
tokens, WATCH with bookmarks, GET, POST, DELETE, merge-PATCH and the pods/binding sub-resource. Its
state is a history of versions, so that any state of the past can be served again, rightly (pages of
one list) or wrongly (a server that is behind).

Faults are rules: which requests they concern, how often, and what happens instead. A test that
runs in the same process calls fault(); anything else posts to /fake/control, for example

    curl -d '{"do": "fault", "verb": "watch", "kind": "pods", "status": 410}' $URL/fake/control
    curl -d '{"do": "create", "kind": "nodes", "object": {"metadata": {"name": "n1"}}}' …
    curl $URL/fake/state $URL/fake/requests

and `fake_apiserver.py --port-file FILE` serves until it is killed.
"""

import argparse
import base64
import contextlib
import copy
import http.server
import json
import re
import socket
import socketserver
import ssl
import sys
import threading
import time
import traceback
import uuid
from urllib.parse import parse_qs, urlsplit

KINDS = {"nodes": "Node", "pods": "Pod", "resourcequotas": "ResourceQuota", "events": "Event"}
FOLLOWED = ("nodes", "pods", "resourcequotas")  # by the client
NAMESPACED = ("pods", "resourcequotas", "events")

# What fault() may be told besides verb, kind and times. The first group replaces the answer, the
# second spoils it, the third changes what a watch sends.
ACTIONS = {
    "status": "answer with this HTTP status and a Status object (message, headers, retry_after)",
    "hang": "say nothing for so many seconds, then close",
    "close": "close the connection without an answer",
    "delay": "wait so many seconds, then answer as usual",
    "lose_reply": "do what was asked, then close the connection without an answer",
    "hang_reply": "do what was asked, then say nothing for so many seconds and close",
    "truncate": "list: send so many bytes of the body, then close",
    "as_of": "list: the state at this version",
    "tail_metadata": "list: metadata comes behind the items",
    "chunk": "list, watch: send pieces of so many bytes, with a pause of chunk_pause seconds",
    "duplicate": "watch: every event twice",
    "reorder": "watch: each two events swapped",
    "replay": "watch: after every event, the events before it again, oldest first",
    "cut": "watch: close in the middle of the event number so many",
    "silent": "watch: answer, then never send anything, nor close, for so many seconds",
    "raw": "watch: first of all send this text",
    "error": "watch: an ERROR event with this code (message, reason) instead of events",
    "end": "watch: end at once",
    "no_bookmarks": "watch: none",
}
EXTRAS = ("message", "reason", "headers", "retry_after", "chunk_pause", "body")


class Gone(Exception):
    """The version that was asked for is no longer there."""


class Rule:
    """One fault: what it matches, how often, what it does."""

    def __init__(self, verb, kind, times, skip, action):
        unknown = set(action) - set(ACTIONS) - set(EXTRAS)
        if unknown:
            raise ValueError(f"unknown fault: {', '.join(sorted(unknown))}")
        self.verb, self.kind, self.left, self.skip, self.action = verb, kind, times, skip, action

    def take(self, verb, kind):
        if self.left == 0 or self.verb not in ("*", verb) or self.kind not in ("*", kind):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.left -= 1
        return True


def key_of(kind, obj):
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if kind in NAMESPACED \
        else metadata["name"]


def merge(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merge(target.get(name), value)
    return target


class Store:
    """The truth: every version of every object."""

    def __init__(self):
        self.changed = threading.Condition()
        self.version = 100
        self.compacted = 0
        self.history = []  # (version, type, kind, key, object)
        self.live = {kind: {} for kind in KINDS}

    def _record(self, type_, kind, key, obj):
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, type_, kind, key, copy.deepcopy(obj)))
        if type_ == "DELETED":
            del self.live[kind][key]
        else:
            self.live[kind][key] = obj
        self.changed.notify_all()
        return copy.deepcopy(obj)

    def create(self, kind, obj):
        with self.changed:
            obj = copy.deepcopy(obj)
            obj.setdefault("apiVersion", "v1")
            obj.setdefault("kind", KINDS[kind])
            metadata = obj.setdefault("metadata", {})
            if "name" not in metadata:
                metadata["name"] = metadata.pop("generateName", "x-") + uuid.uuid4().hex[:8]
            if kind in NAMESPACED:
                metadata.setdefault("namespace", "default")
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            if kind == "pods":
                obj.setdefault("spec", {}).setdefault("containers", [{"name": "main"}])
                obj.setdefault("status", {}).setdefault("phase", "Pending")
            key = key_of(kind, obj)
            if key in self.live[kind]:
                return None
            return self._record("ADDED", kind, key, obj)

    def patch(self, kind, key, patch):
        with self.changed:
            before = self.live[kind][key]
            after = merge(before, patch)
            after["metadata"]["uid"] = before["metadata"]["uid"]
            return self._record("MODIFIED", kind, key, after)

    def delete(self, kind, key):
        with self.changed:
            return self._record("DELETED", kind, key, copy.deepcopy(self.live[kind][key]))

    def get(self, kind, key):
        with self.changed:
            return copy.deepcopy(self.live[kind].get(key))

    def bind(self, key, binding, preconditions=("uid", "resourceVersion")):
        """What the pods/binding sub-resource does: (status, message)."""
        with self.changed:
            pod = self.live["pods"].get(key)
            if pod is None:
                return 404, f'pods "{key.split("/")[1]}" not found'
            metadata = binding.get("metadata") or {}
            name = pod["metadata"]["name"]
            conflict = f'Operation cannot be fulfilled on pods/binding "{name}": '
            for member in preconditions:
                want, there = metadata.get(member), pod["metadata"][member]
                if want and want != there:
                    return 409, conflict + f"Precondition failed: {member} in precondition: " \
                        f"{want}, {member} in object meta: {there}"
            if pod["metadata"].get("deletionTimestamp"):
                return 409, conflict + f"pod {name} is being deleted, cannot be assigned to a host"
            if pod["spec"].get("nodeName"):
                return 409, conflict + f"pod {name} is already assigned to node " \
                    f"\"{pod['spec']['nodeName']}\""
            if pod["spec"].get("schedulingGates"):
                return 409, conflict + f"pod {name} has non-empty .spec.schedulingGates"
            self._record("MODIFIED", "pods", key, merge(pod, {
                "metadata": {"annotations": metadata.get("annotations") or {}},
                "spec": {"nodeName": binding["target"]["name"]}}))
            return 201, ""

    def compact(self):
        """Forgets the past: older continue tokens and watches are 410."""
        with self.changed:
            self.compacted = self.version
            return self.version

    def as_of(self, kind, version):
        with self.changed:
            state = {}
            for at, type_, of_kind, key, obj in self.history:
                if at > version:
                    break
                if of_kind == kind:
                    if type_ == "DELETED":
                        state.pop(key, None)
                    else:
                        state[key] = obj
            return state

    def news(self, kind, after):
        """The current version, and the events of a kind since another."""
        with self.changed:
            if after < self.compacted:
                raise Gone()
            at = len(self.history)
            while at and self.history[at - 1][0] > after:
                at -= 1
            return self.version, [event for event in self.history[at:] if event[2] == kind]

    def wait(self, version, until, released):
        """Until there is something newer than the version."""
        with self.changed:
            while self.version <= version and time.monotonic() < until and \
                    not released.is_set():
                self.changed.wait(max(0.0, until - time.monotonic()))

    def truth(self):
        """Per kind and key: what a client that followed everything knows."""
        with self.changed:
            return {kind: {key: {"uid": obj["metadata"]["uid"],
                                 "version": int(obj["metadata"]["resourceVersion"])}
                           for key, obj in self.live[kind].items()}
                    for kind in FOLLOWED}


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection. self.server.fake is the FakeApiServer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_args):
        pass

    # ---- answers ----

    def answer(self, status, obj, headers=()):
        body = obj if isinstance(obj, bytes) else json.dumps(obj).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in dict(headers).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)
        self.note(status)

    def answer_status(self, status, message, reason="", headers=()):
        self.answer(status, {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "code": status,
            "status": "Success" if status < 300 else "Failure", "message": message,
            "reason": reason}, headers)

    def note(self, status):
        self.entry["status"] = status

    def abandon(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def hold(self, seconds):
        """Silence, as long as nobody stops the server or drops the connections."""
        self.server.fake.released.wait(seconds)
        self.abandon()

    def start_chunks(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.note(200)

    def send_chunk(self, data, action):
        size = action.get("chunk") or len(data) or 1
        for at in range(0, len(data), size):
            piece = data[at:at + size]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            if action.get("chunk"):
                time.sleep(action.get("chunk_pause", 0))

    def end_chunks(self):
        self.wfile.write(b"0\r\n\r\n")

    # ---- requests ----

    def do_GET(self):
        self.route()

    do_POST = do_DELETE = do_PATCH = do_GET

    def route(self):
        fake = self.server.fake
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        self.entry = {}
        try:
            if url.path.startswith("/fake/"):
                self.control(url.path, body)
                return
            self.entry = {"verb": "version", "kind": "", "path": self.path,
                          "at": time.monotonic(), "peer": self.client_address[1],
                          "agent": self.headers.get("User-Agent")}
            if url.path == "/version":
                fake.remember(self.entry)
                major, minor = fake.version.split(".")[:2]
                self.answer(200, {"major": major, "minor": minor,
                                  "gitVersion": f"v{fake.version}"})
                return
            match = re.fullmatch(
                r"/api/v1(?:/namespaces/([^/]+))?/(nodes|pods|resourcequotas|events)(?:/([^/]+))?(/binding)?",
                url.path)
            if not match:
                self.answer_status(404, "the server could not find the requested resource")
                return
            namespace, kind, name, binding = match.groups()
            key = f"{namespace}/{name}" if namespace else name
            verb = self.verb(name, binding, query)
            self.entry.update({"verb": verb, "kind": kind, "key": key,
                               "body": body.decode("utf-8", "replace")})
            fake.remember(self.entry)
            if not self.authorized():
                self.answer_status(401, "Unauthorized", "Unauthorized")
                return
            action = fake.take_fault(verb, kind)
            with fake.busy(verb):
                if not self.spoil(action):
                    self.serve(verb, kind, namespace, key, query, body, action)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def verb(self, name, binding, query):
        if self.command == "GET":
            return "get" if name else "watch" if query.get("watch") in ("1", "true") else "list"
        if self.command == "POST":
            return "bind" if binding else "create"
        return self.command.lower()

    def authorized(self):
        tokens = self.server.fake.tokens
        if tokens is None:
            return True
        given = self.headers.get("Authorization", "")
        return given.startswith("Bearer ") and given[len("Bearer "):] in tokens

    def spoil(self, action):
        """Faults that replace the answer; true when there is nothing left to do."""
        if "delay" in action:
            time.sleep(action["delay"])
        if "status" in action:
            headers = dict(action.get("headers", {}))
            if "retry_after" in action:
                headers["Retry-After"] = action["retry_after"]
            if "body" in action:
                self.answer(action["status"], action["body"].encode(), headers)
            else:
                self.answer_status(action["status"], action.get("message", "as the test wants"),
                                   action.get("reason", ""), headers)
            return True
        if "hang" in action:
            self.hold(action["hang"])
            return True
        if action.get("close"):
            self.abandon()
            return True
        return False

    def serve(self, verb, kind, namespace, key, query, body, action):
        store = self.server.fake.store
        if verb == "list":
            self.list(kind, query, action)
        elif verb == "watch":
            self.watch(kind, query, action)
        elif verb == "bind":
            status, message = store.bind(key, json.loads(body), self.server.fake.preconditions())
            if not self.lose(action):
                self.answer_status(status, message, "" if status == 201 else
                                   "NotFound" if status == 404 else "Conflict")
        elif verb == "create":
            obj = json.loads(body)
            if namespace:
                obj.setdefault("metadata", {})["namespace"] = namespace
            created = store.create(kind, obj)
            if created:
                self.answer(201, created)
            else:
                self.answer_status(409, "it exists already", "AlreadyExists")
        elif store.get(kind, key) is None:
            self.answer_status(404, f'{kind} "{key.split("/")[-1]}" not found', "NotFound")
        elif verb == "get":
            self.answer(200, store.get(kind, key))
        elif verb == "delete":
            self.answer(200, store.delete(kind, key))
        elif verb == "patch":
            self.patch(kind, key, json.loads(body))
        else:
            self.answer_status(405, "not here")

    def lose(self, action):
        if action.get("lose_reply"):
            self.abandon()
        elif "hang_reply" in action:
            self.hold(action["hang_reply"])
        else:
            return False
        return True

    def patch(self, kind, key, patch):
        store = self.server.fake.store
        there = store.get(kind, key)["metadata"]
        metadata = patch.get("metadata") or {}
        for precondition in ("uid", "resourceVersion"):
            if metadata.get(precondition, there[precondition]) != there[precondition]:
                self.answer_status(409, "the object has been modified", "Conflict")
                return
        self.answer(200, store.patch(kind, key, patch))

    # ---- list ----

    def list(self, kind, query, action):
        store = self.server.fake.store
        limit = int(query.get("limit") or 0)
        start = ""
        version = action.get("as_of", store.version)
        if query.get("continue"):
            token = json.loads(base64.b64decode(query["continue"]))
            version, start = token["version"], token["start"]
            if version < store.compacted:
                self.answer_status(410, "The provided continue parameter is too old to display a "
                                   "consistent list result", "Expired")
                return
        state = store.as_of(kind, version)
        keys = sorted(key for key in state if key >= start)
        metadata = {"resourceVersion": str(version)}
        if limit and len(keys) > limit:
            token = {"version": version, "start": keys[limit]}
            metadata["continue"] = base64.b64encode(json.dumps(token).encode()).decode()
            metadata["remainingItemCount"] = len(keys) - limit
            keys = keys[:limit]
        members = [("kind", KINDS[kind] + "List"), ("apiVersion", "v1"), ("metadata", metadata),
                   ("items", [state[key] for key in keys])]
        if action.get("tail_metadata"):
            members.append(members.pop(2))
        page = json.dumps(dict(members), ensure_ascii=False).encode()
        if "truncate" in action:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page[:action["truncate"]])
            self.wfile.flush()
            self.note(200)
            self.abandon()
        elif "chunk" in action:
            self.start_chunks()
            self.send_chunk(page, action)
            self.end_chunks()
        else:
            self.answer(200, page)

    # ---- watch ----

    def watch(self, kind, query, action):
        store = self.server.fake.store
        ends = time.monotonic() + float(query.get("timeoutSeconds") or 1800)
        after = int(query.get("resourceVersion") or 0)
        self.start_chunks()
        if "silent" in action:
            self.hold(action["silent"])
            return
        if "raw" in action:
            self.send_chunk(action["raw"].encode(), {})
        if "error" in action:
            self.send_event("ERROR", {
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "code": action["error"], "message": action.get("message", "as the test wants"),
                "reason": action.get("reason", "")}, action)
            self.end_chunks()
            return
        sent = 0
        bookmark_at = time.monotonic() + self.server.fake.bookmark_s
        while not action.get("end") and time.monotonic() < ends:
            try:
                version, events = store.news(kind, after)
            except Gone:
                self.send_event("ERROR", {
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": f"too old resource version: {after} ({store.compacted})",
                    "reason": "Expired", "code": 410}, action)
                break
            for event in self.disturb(events, action):
                sent += 1
                if action.get("cut") == sent:
                    self.cut(event[1], event[4])
                    return
                self.send_event(event[1], event[4], action)
            after = max(after, version)
            if time.monotonic() >= bookmark_at:
                bookmark_at += self.server.fake.bookmark_s
                if query.get("allowWatchBookmarks") and not action.get("no_bookmarks"):
                    self.send_bookmark(kind, after, action)
            store.wait(after, min(ends, bookmark_at), self.server.fake.released)
            if self.server.fake.released.is_set():
                self.abandon()
                return
        self.end_chunks()

    @staticmethod
    def disturb(events, action):
        if action.get("duplicate"):
            events = [event for event in events for _ in range(2)]
        if action.get("reorder"):
            for at in range(0, len(events) - 1, 2):
                events[at], events[at + 1] = events[at + 1], events[at]
        if action.get("replay"):
            events = [again for at in range(len(events)) for again in [events[at]] + events[:at]]
        return events

    def send_event(self, type_, obj, action):
        line = json.dumps({"type": type_, "object": obj}, ensure_ascii=False).encode() + b"\n"
        self.send_chunk(line, action)

    def send_bookmark(self, kind, version, action):
        self.send_event("BOOKMARK", {"kind": KINDS[kind], "apiVersion": "v1", "metadata": {
            "resourceVersion": str(version), "creationTimestamp": None}}, action)

    def cut(self, type_, obj):
        line = json.dumps({"type": type_, "object": obj}, ensure_ascii=False).encode()
        self.send_chunk(line[:len(line) // 2], {})
        self.abandon()

    # ---- control ----

    def control(self, path, body):
        fake = self.server.fake
        if path == "/fake/state":
            self.answer(200, fake.store.truth())
        elif path == "/fake/requests":
            self.answer(200, fake.requests())
        elif path == "/fake/control":
            try:
                self.answer(200, {"result": fake.command(json.loads(body))})
            except (KeyError, TypeError, ValueError) as error:
                self.answer(400, {"error": repr(error)})
        else:
            self.answer(404, {"error": "no such control"})


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address, fake):
        self.fake = fake
        super().__init__(address, Handler)

    def get_request(self):
        connection, peer = super().get_request()
        self.fake.opened(connection)
        return connection, peer

    def finish_request(self, request, client_address):
        # Here and not in get_request(): a slow handshake must not hold up the other clients.
        if self.fake.tls:
            try:
                request = self.fake.tls.wrap_socket(request, server_side=True)
            except (ssl.SSLError, OSError) as error:
                self.fake.tls_errors.append(str(error))
                return
            self.fake.opened(request)  # the socket that it was has lost its descriptor to this one
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        # Connections that break are what this server is for; anything else is a mistake of ours.
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc()


class FakeApiServer:
    """The server, its faults, and what it was asked."""

    def __init__(self, tls=None, tokens=None, bookmark_s=0.3, version="1.36.3"):
        self.store = Store()
        self.tls = tls  # ssl.SSLContext
        self.tls_errors = []
        self.tokens = tokens  # a set; None: anybody
        self.bookmark_s = bookmark_s
        self.version = version
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._rules = []
        self._requests = []
        self._connections = []
        self._busy = {}
        self.peak = {}  # per verb: requests that were in work at the same time
        self._server = None
        self._address = ("127.0.0.1", 0)

    # ---- life ----

    def up(self):
        """Listens; after down() on the same port again."""
        self.released = threading.Event()
        self._server = Server(self._address, self)
        self._address = self._server.server_address
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def down(self):
        """Nobody listens any more, and all connections are cut."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self.drop()

    def drop(self):
        """Cuts all connections."""
        self.released.set()
        with self.store.changed:
            self.store.changed.notify_all()
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if self._server:
            self.released = threading.Event()

    def __enter__(self):
        return self.up()

    def __exit__(self, *_exception):
        self.down()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._address[1]}"

    @property
    def port(self):
        return self._address[1]

    def opened(self, connection):
        with self._lock:
            self._connections.append(connection)

    def preconditions(self):
        """Those that Bindings of this version honour; see src/kube/bind.c."""
        match = re.match(r"1\.(\d+)", self.version)
        minor = int(match.group(1)) if match else 99
        return () if minor < 23 else ("resourceVersion",) if minor in (25, 26) else \
            ("uid", "resourceVersion")

    # ---- faults ----

    def fault(self, verb="*", kind="*", times=1, skip=0, **action):
        """The next `times` requests that match, after `skip` others, are disturbed."""
        with self._lock:
            self._rules.append(Rule(verb, kind, times, skip, action))

    def clear_faults(self):
        with self._lock:
            self._rules = []

    def take_fault(self, verb, kind):
        with self._lock:
            for rule in self._rules:
                if rule.take(verb, kind):
                    return rule.action
        return {}

    # ---- what was asked ----

    @contextlib.contextmanager
    def busy(self, verb):
        with self._lock:
            self._busy[verb] = self._busy.get(verb, 0) + 1
            self.peak[verb] = max(self.peak.get(verb, 0), self._busy[verb])
        try:
            yield
        finally:
            with self._lock:
                self._busy[verb] -= 1

    def remember(self, entry):
        with self._lock:
            self._requests.append(entry)

    def requests(self, verb=None, kind=None):
        with self._lock:
            return [dict(entry) for entry in self._requests
                    if verb in (None, entry["verb"]) and kind in (None, entry["kind"])]

    # ---- control path ----

    def command(self, order):
        order = dict(order)
        do = order.pop("do")
        if do in ("create", "patch", "delete", "get", "compact"):
            return getattr(self.store, do)(**{{"object": "obj"}.get(name, name): value
                                              for name, value in order.items()})
        if do in ("fault", "clear_faults", "drop"):
            return getattr(self, do)(**order)
        if do == "tokens":
            self.tokens = set(order["tokens"])
            return None
        raise ValueError(f"unknown order {do}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port-file", required=True, help="the port is written there")
    parser.add_argument("--kubeconfig", help="a kubeconfig for this server is written there")
    parser.add_argument("--bookmark-s", type=float, default=1.0)
    options = parser.parse_args()
    with FakeApiServer(bookmark_s=options.bookmark_s) as fake:
        if options.kubeconfig:
            with open(options.kubeconfig, "w", encoding="utf-8") as out:
                json.dump(kubeconfig(fake.url), out)
        with open(options.port_file, "w", encoding="utf-8") as out:
            out.write(str(fake.port))
        threading.Event().wait()


def kubeconfig(url, cluster=None, user=None):
    """A kubeconfig with one context, as a dict (JSON is YAML)."""
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": url, **(cluster or {})}}],
        "users": [{"name": "test", "user": user or {}}],
    }


if __name__ == "__main__":
    main()
