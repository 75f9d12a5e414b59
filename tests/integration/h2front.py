# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 front, over TLS, for a server that speaks HTTP/1.1: what stands between the client and a
real API server, where all exchanges share one connection. It can play dead.

Frames by hand (RFC 9113); header compression is that of libnghttp2, which libcurl brings along.
"""

import ctypes
import ctypes.util
import http.client
import select
import socket
import ssl
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = \
    0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
INTERNAL_ERROR = 2
FRAME_MAX = 16384
STREAMS_MAX = 100


class _Nv(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("value", ctypes.c_void_p),
                ("namelen", ctypes.c_size_t), ("valuelen", ctypes.c_size_t),
                ("flags", ctypes.c_uint8)]


def _nghttp2():
    library = ctypes.CDLL(ctypes.util.find_library("nghttp2") or "libnghttp2.so.14")
    library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
    library.nghttp2_hd_inflate_hd2.argtypes = [
        ctypes.c_void_p, ctypes.POINTER(_Nv), ctypes.POINTER(ctypes.c_int), ctypes.c_char_p,
        ctypes.c_size_t, ctypes.c_int]
    library.nghttp2_hd_inflate_end_headers.argtypes = [ctypes.c_void_p]
    library.nghttp2_hd_inflate_del.argtypes = [ctypes.c_void_p]
    return library


class _Inflater:
    """Header blocks of one connection, which share a table."""

    def __init__(self):
        self._lib = _nghttp2()
        self._state = ctypes.c_void_p()
        if self._lib.nghttp2_hd_inflate_new(ctypes.byref(self._state)):
            raise MemoryError("nghttp2_hd_inflate_new")

    def headers(self, block):
        result = {}
        pair, flags = _Nv(), ctypes.c_int()
        while True:
            used = self._lib.nghttp2_hd_inflate_hd2(self._state, ctypes.byref(pair),
                                                    ctypes.byref(flags), block, len(block), 1)
            if used < 0:
                raise ValueError(f"header block: {used}")
            block = block[used:]
            if flags.value & 2:  # a header was emitted
                name = ctypes.string_at(pair.name, pair.namelen).decode()
                result[name] = ctypes.string_at(pair.value, pair.valuelen).decode()
            if flags.value & 1:  # the end
                self._lib.nghttp2_hd_inflate_end_headers(self._state)
                return result
            if not block and not flags.value & 2:
                raise ValueError("header block: cut short")

    def close(self):
        self._lib.nghttp2_hd_inflate_del(self._state)


def _text(text):
    data = text.encode()
    if len(data) > 126:
        raise ValueError("a header this long is not needed here")
    return bytes([len(data)]) + data


def _header_block(headers):
    """Literals without indexing."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in headers)


class _Stream:
    def __init__(self, number):
        self.number = number
        self.request = {}
        self.body = b""
        self.window = 0
        self.closed = False
        self.upstream = None


class _Connection:
    """One client. One thread reads and writes the socket, one per stream asks the server behind."""

    def __init__(self, sock, target):
        self._sock = sock
        self._target = target
        self._inflater = _Inflater()
        self._streams = {}
        self._changed = threading.Condition()
        self._out = bytearray()
        self._window = 65535
        self._first_window = 65535
        self._wake_in, self._wake_out = socket.socketpair()
        self.frozen = threading.Event()
        self.closed = False
        self.stream_count = 0

    # ---- the socket ----

    def run(self):
        try:
            self._sock.setblocking(False)
            self._send(SETTINGS, 0, 0, struct.pack(">HI", 3, STREAMS_MAX))
            buffer = b""
            for data in self._received():
                buffer += data
                if buffer.startswith(PREFACE):
                    buffer = buffer[len(PREFACE):]
                while len(buffer) >= 9 and not PREFACE.startswith(buffer[:9]):
                    length = int.from_bytes(buffer[:3], "big")
                    if len(buffer) < 9 + length:
                        break
                    kind, flags, number = struct.unpack(">BBI", buffer[3:9])
                    self._take(kind, flags, number & 0x7fffffff, buffer[9:9 + length])
                    buffer = buffer[9 + length:]
        except (OSError, ValueError):
            pass
        finally:
            self.close()
            self._inflater.close()

    def _received(self):
        """What the client sent, piece by piece; sends what is to be sent meanwhile."""
        while not self.closed:
            with self._changed:
                pending = bytes(self._out[:1 << 16])
            if self.frozen.is_set():
                select.select([self._wake_in], [], [], 1)
                continue
            readable, writable, _ = select.select(
                [self._sock, self._wake_in], [self._sock] if pending else [], [], 1)
            if self._wake_in in readable:
                self._wake_in.recv(4096)
            if self.frozen.is_set():
                continue
            if writable:
                try:
                    sent = self._sock.send(pending)
                    with self._changed:
                        del self._out[:sent]
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
            if self._sock in readable:
                try:
                    data = self._sock.recv(1 << 16)
                    while self._sock.pending():
                        data += self._sock.recv(1 << 16)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    continue
                if not data:
                    return
                yield data

    def _send(self, kind, flags, number, payload=b""):
        with self._changed:
            self._out += len(payload).to_bytes(3, "big") + \
                struct.pack(">BBI", kind, flags, number) + payload
        self.wake()

    def wake(self):
        try:
            self._wake_out.send(b"x")
        except OSError:
            pass

    def close(self):
        with self._changed:
            self.closed = True
            streams = list(self._streams.values())
            self._changed.notify_all()
        for stream in streams:
            self._end(stream)
        try:
            self._sock.close()
        except OSError:
            pass
        self.wake()

    # ---- frames ----

    def _take(self, kind, flags, number, payload):
        if kind == SETTINGS and not flags & ACK:
            self._take_settings(payload)
            self._send(SETTINGS, ACK, 0)
        elif kind == PING and not flags & ACK:
            self._send(PING, ACK, 0, payload)
        elif kind == WINDOW_UPDATE:
            with self._changed:
                step = int.from_bytes(payload, "big")
                if number == 0:
                    self._window += step
                elif number in self._streams:
                    self._streams[number].window += step
                self._changed.notify_all()
        elif kind == HEADERS:
            self._take_headers(flags, number, payload)
        elif kind == DATA and number in self._streams:
            self._streams[number].body += payload
            if payload:
                self._send(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload)))
            if flags & END_STREAM:
                self._serve(self._streams[number])
        elif kind == RST_STREAM and number in self._streams:
            self._end(self._streams[number])
        elif kind == GOAWAY:
            raise ValueError("the client leaves")

    def _take_settings(self, payload):
        for at in range(0, len(payload), 6):
            setting, value = struct.unpack(">HI", payload[at:at + 6])
            if setting == 4:
                with self._changed:
                    for stream in self._streams.values():
                        stream.window += value - self._first_window
                    self._first_window = value

    def _take_headers(self, flags, number, payload):
        if not flags & END_HEADERS:
            raise ValueError("CONTINUATION is not needed here")
        padding = 0
        if flags & PADDED:
            padding, payload = payload[0], payload[1:]
        if flags & WITH_PRIORITY:
            payload = payload[5:]
        stream = _Stream(number)
        stream.request = self._inflater.headers(payload[:len(payload) - padding])
        with self._changed:
            stream.window = self._first_window
            self._streams[number] = stream
            self.stream_count += 1
        if flags & END_STREAM:
            self._serve(stream)

    # ---- streams ----

    def _serve(self, stream):
        threading.Thread(target=self._ask, args=(stream,), daemon=True).start()

    def _ask(self, stream):
        upstream = http.client.HTTPConnection("127.0.0.1", self._target, timeout=120)
        stream.upstream = upstream
        try:
            request = stream.request
            headers = {name: value for name, value in request.items() if not name.startswith(":")}
            upstream.request(request[":method"], request[":path"], stream.body or None, headers)
            self._reply(stream, upstream.getresponse())
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            if not stream.closed:
                self._send(RST_STREAM, 0, stream.number, struct.pack(">I", INTERNAL_ERROR))
        finally:
            self._end(stream)

    def _reply(self, stream, response):
        length = response.getheader("Content-Length")
        left = int(length) if length else 0
        headers = [(":status", str(response.status))]
        headers += [(name.lower(), value) for name, value in response.getheaders()
                    if name.lower() in ("content-type", "content-length", "retry-after")]
        self._send(HEADERS, END_HEADERS, stream.number, _header_block(headers))
        while True:
            data = response.read1(FRAME_MAX)
            if not data:
                break
            left -= len(data)
            self._send_data(stream, data)
        if length and left > 0:
            raise http.client.IncompleteRead(b"", left)
        self._send(DATA, END_STREAM, stream.number)

    def _send_data(self, stream, data):
        while data:
            with self._changed:
                while not stream.closed and min(self._window, stream.window) <= 0:
                    self._changed.wait(1)
                if stream.closed:
                    raise ValueError("the client does not want it any more")
                size = min(len(data), FRAME_MAX, self._window, stream.window)
                self._window -= size
                stream.window -= size
            self._send(DATA, 0, stream.number, data[:size])
            data = data[size:]

    def _end(self, stream):
        with self._changed:
            stream.closed = True
            self._streams.pop(stream.number, None)
            self._changed.notify_all()
        if stream.upstream and stream.upstream.sock:
            try:
                stream.upstream.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class H2Front:
    """Listens with TLS and hands requests to the server at 127.0.0.1:target."""

    def __init__(self, context, target):
        context.set_alpn_protocols(["h2"])
        self._context = context
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connected, args=(sock,), daemon=True).start()

    def _connected(self, sock):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock = self._context.wrap_socket(sock, server_side=True)
            if sock.selected_alpn_protocol() != "h2":
                sock.close()
                return
        except OSError:
            return
        connection = _Connection(sock, self._target)
        self.connections.append(connection)
        connection.run()

    def freeze(self):
        """The connections that exist fall silent for ever, but stay open; new ones work."""
        for connection in self.connections:
            connection.frozen.set()
            connection.wake()

    def drop(self):
        for connection in self.connections:
            connection.close()

    def close(self):
        self._listener.close()
        self.drop()
