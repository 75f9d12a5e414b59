"""A small Kubernetes API client on the standard library.

One connection per thread, kept alive. Errors of the API server are ApiError with the Status
message; a connection that broke between two requests is opened again once.
"""

import http.client
import json
import ssl
import threading
import urllib.parse

MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """A reply of 400 or above. `status` is the HTTP status, `message` the server's words."""

    def __init__(self, status, message, what):
        super().__init__(f"{what}: {status}: {message}")
        self.status = status
        self.message = message


class Credentials:
    """Who we are: a client certificate and its key (PEM files), checked against the CA file."""

    def __init__(self, ca, cert, key):
        self.context = ssl.create_default_context(cafile=ca)
        self.context.load_cert_chain(cert, key)


def pods_path(namespace, name="", sub=""):
    """The path of a namespace's pods, of one pod, or of a sub-resource of it."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    if name:
        path += f"/{name}"
    return f"{path}/{sub}" if sub else path


class Api:
    """Requests to one API server as one user. May be shared between threads."""

    def __init__(self, address, credentials, timeout=30):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.credentials = credentials
        self.timeout = timeout
        self.local = threading.local()

    def _connect(self, timeout):
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=timeout, context=self.credentials.context)

    def _send(self, method, path, body, content_type):
        connection = getattr(self.local, "connection", None)
        fresh = connection is None
        if fresh:
            connection = self.local.connection = self._connect(self.timeout)
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self.local.connection = None
            # A kept-alive connection that the server has closed says nothing about the request.
            if fresh:
                raise
            return self._send(method, path, body, content_type)

    def request(self, method, path, body=None, content_type="application/json", **params):
        """Sends one request and returns the decoded reply."""
        if params:
            path += "?" + urllib.parse.urlencode(params)
        data = None if body is None else json.dumps(body).encode()
        status, reply = self._send(method, path, data, content_type)
        try:
            decoded = json.loads(reply) if reply else {}
        except ValueError:
            decoded = {"message": reply.decode(errors="replace")}
        if status >= 400:
            message = decoded.get("message", "") if isinstance(decoded, dict) else str(decoded)
            raise ApiError(status, message, f"{method} {path}")
        return decoded

    def get(self, path, **params):
        """GET, decoded."""
        return self.request("GET", path, **params)

    def text(self, path):
        """GET of a page that is not JSON (such as /readyz)."""
        status, reply = self._send("GET", path, None, None)
        if status >= 400:
            raise ApiError(status, reply.decode(errors="replace"), f"GET {path}")
        return reply.decode()

    def create(self, path, body):
        """POST, decoded."""
        return self.request("POST", path, body)

    def patch(self, path, body):
        """A merge patch."""
        return self.request("PATCH", path, body, MERGE_PATCH)

    def delete(self, path, grace=None):
        """DELETE, with a grace period in seconds if one is given. Not there any more is fine."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            return self.request("DELETE", path, body)
        except ApiError as error:
            if error.status != 404:
                raise
            return {}

    def watch(self, path, version, opened=None, **params):
        """Yields (type, object) of a watch from a resourceVersion until the stream ends.

        `opened`, if given, is called with a function that ends the stream from another thread.
        """
        params.update(watch="1", resourceVersion=version, allowWatchBookmarks="true")
        connection = self._connect(None)
        try:
            connection.request("GET", path + "?" + urllib.parse.urlencode(params),
                               headers={"Accept": "application/json"})
            socket = connection.sock
            reply = connection.getresponse()
            if reply.status != 200:
                raise ApiError(reply.status, reply.read().decode(errors="replace"),
                               f"watch {path}")
            if opened:
                opened(lambda: socket.shutdown(2))
            while True:
                line = reply.readline()
                if not line:
                    return
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()


class Informer(threading.Thread):
    """LIST, then WATCH for ever, calling `on_event(type, object)` for each change in order.

    After a lost stream the watch goes on from the last version seen. A version that is too old
    would need a new LIST, which would hide events from a caller that judges every one of them:
    that ends the thread, and `failure` says so.
    """

    def __init__(self, api, path, on_event, **params):
        super().__init__(daemon=True, name=f"informer {path}")
        self.api = api
        self.path = path
        self.params = params
        self.on_event = on_event
        self.failure = None
        self.synced = threading.Event()
        self.stopping = threading.Event()
        self.hang_up = None

    def run(self):
        try:
            listing = self.api.get(self.path, **self.params)
            version = listing["metadata"]["resourceVersion"]
            for item in listing["items"]:
                self.on_event("ADDED", item)
            self.synced.set()
            while not self.stopping.is_set():
                version = self._stream(version)
        except Exception as error:
            if not self.stopping.is_set():
                self.failure = error
        finally:
            self.synced.set()

    def _stream(self, version):
        try:
            for kind, item in self.api.watch(self.path, version, self._opened, **self.params):
                if kind == "ERROR":
                    raise ApiError(item.get("code", 0), item.get("message", ""), self.path)
                version = item["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    self.on_event(kind, item)
        except (OSError, http.client.HTTPException, ValueError):
            # ValueError: a stream cut in the middle of a line.
            self.stopping.wait(0.2)
        return version

    def _opened(self, hang_up):
        self.hang_up = hang_up
        if self.stopping.is_set():
            hang_up()

    def stop(self):
        """Ends the thread."""
        self.stopping.set()
        if self.hang_up:
            try:
                self.hang_up()
            except OSError:
                pass
        if self.is_alive():
            self.join(10)
