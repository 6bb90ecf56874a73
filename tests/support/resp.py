"""A RESP2/RESP3 client over a bare socket that keeps the type each reply had on the wire.

Client libraries fold wire types together (a simple string and a bulk string become the same
value), which hides exactly what a conformance test is after. Here a reply is Reply(kind, value)
and two replies are equal only when kind and value are.

    c = Client(port, protocol=3)
    c.call("SET", "k", "v")                    # Reply("simple", b"OK")
    c.pipeline([("GET", "k"), ("GET", "x")])   # one write, many replies
    c.send_raw(b"PING\\r\\n"); c.read()

Values by kind: simple, error, bulk, double, bignum, verbatim: bytes as on the wire; integer: int;
boolean: bool; nullbulk, nullarray, null, closed: None; array, set, push: list of Reply;
map: list of (key, value) pairs in wire order; attribute: (pairs, the reply they decorate).

Arguments may be str, bytes, int or float. Writing never blocks on a server that first wants its
replies read: unread replies are taken in while a long pipeline goes out. One thread per Client.
"""

import select
import socket
import time
from typing import Any, NamedTuple

RECEIVE_BYTES = 1 << 18
SHOWN_BYTES = 120
ARRAYS = {b"*": "array", b"~": "set", b">": "push"}
BULK, INTEGER, ARRAY, MINUS = b"$:*-"
SHORT_KINDS = {ord("+"): "simple", ord("-"): "error"}


class Timeout(Exception):
    """The server did not answer in time."""


class Reply(NamedTuple):
    kind: str
    value: Any

    def __repr__(self):
        kind, value = self
        if kind in ("array", "set", "push"):
            inner = ", ".join(map(repr, value[:40])) + (", ..." if len(value) > 40 else "")
            return f"{kind}[{inner}]"
        if kind == "map":
            return "map{" + ", ".join(f"{k!r}: {v!r}" for k, v in value[:40]) + "}"
        if kind == "attribute":
            return f"attribute({value!r})"
        if value is None:
            return f"<{kind}>"
        if isinstance(value, bytes):
            more = f"...({len(value)} bytes)" if len(value) > SHOWN_BYTES else ""
            text = repr(value[:SHOWN_BYTES])[1:] + more
            return {"simple": "+", "error": "-", "bulk": "$"}.get(kind, kind + " ") + text
        return (":" if kind == "integer" else kind + " ") + str(value)

    def is_error(self):
        return self.kind == "error"

    def is_null(self):
        return self.kind in ("null", "nullbulk", "nullarray")

    def text(self):
        """The bytes of a string-like reply as str (latin-1, so never fails)."""
        return self.value.decode("latin-1")


CLOSED = Reply("closed", None)
NULL_BULK = Reply("nullbulk", None)
make_reply = tuple.__new__


def to_bytes(argument):
    if isinstance(argument, (bytes, bytearray)):
        return bytes(argument)
    return str(argument).encode()


def encode(args):
    """One command as a RESP array of bulk strings."""
    parts = [b"*%d\r\n" % len(args)]
    for argument in args:
        data = argument if type(argument) is bytes else to_bytes(argument)
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


class Client:
    def __init__(self, port=None, host="127.0.0.1", *, path=None, protocol=2, timeout=10.0):
        """Connects over TCP, or over the unix socket `path`; protocol 3 sends HELLO 3 first."""
        if path is not None:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(timeout)
            self.socket.connect(path)
        else:
            self.socket = socket.create_connection((host, port), timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.timeout = timeout
        self.closed = False  # the server's side has gone away
        self._in = bytearray()
        self._at = 0
        self._out = memoryview(b"")
        self._deadline = 0.0
        self.hello = self.call("HELLO", "3") if protocol == 3 else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def local_address(self):
        return "%s:%d" % self.socket.getsockname()[:2]

    def remote_address(self):
        return "%s:%d" % self.socket.getpeername()[:2]

    def call(self, *args):
        self.send(*args)
        return self.read()

    def pipeline(self, commands):
        """Sends all commands, returns all replies; stops at CLOSED when the server hangs up."""
        commands = list(commands)
        self.send_raw(b"".join(encode(command) for command in commands))
        replies = []
        while len(replies) < len(commands):
            replies.append(self.read())
            if replies[-1] == CLOSED:
                break
        return replies

    def send(self, *args):
        self.send_raw(encode(args))

    def send_raw(self, data):
        """Queues bytes and writes what the socket takes; read() and flush() write the rest."""
        self._out = memoryview(bytes(self._out) + data) if self._out else memoryview(data)
        self._write_some()

    def flush(self):
        """Writes everything queued, taking in replies meanwhile."""
        self._deadline = time.monotonic() + self.timeout
        while self._out and not self.closed:
            self._step(want_read=True)

    def read(self, timeout=None):
        """The next reply, or CLOSED at the end of the stream. Raises Timeout."""
        self._deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        mark = self._at
        try:
            reply = self._parse()
        except EOFError:
            return CLOSED
        except Timeout:
            self._at = mark  # the reply can still be read later
            raise
        if self._at > RECEIVE_BYTES or self._at == len(self._in):
            del self._in[: self._at]
            self._at = 0
        return reply

    def has_input(self, wait_s=0.0):
        """Whether unread bytes (or the end of the stream) are there."""
        if self._at < len(self._in) or self.closed:
            return True
        return bool(self._ready(select.POLLIN, wait_s))

    # Below: one reply off the buffer, which grows by _step() as needed.

    # A third of the tests' processor time was here: the common replies come first, with few steps.
    def _parse(self):
        data = self._in
        start = self._at
        end = data.find(b"\r\n", start)
        if end < 0:
            end = self._line_end(start)
        self._at = end + 2
        first = data[start]
        if first == BULK:
            size = int(data[start + 1 : end])
            if size < 0:
                if data[start + 1 : end] != b"-1":
                    raise ValueError("a bulk string of less than nothing")
                return NULL_BULK
            begin = end + 2
            end = begin + size
            if not data.startswith(b"\r\n", end):
                return Reply("bulk", self._bulk(size))
            self._at = end + 2
            return make_reply(Reply, ("bulk", bytes(data[begin:end])))
        if first == INTEGER:
            return make_reply(Reply, ("integer", int(data[start + 1 : end])))
        if first == ARRAY and data[start + 1] != MINUS:
            return make_reply(Reply, ("array", [self._parse() for _ in range(int(data[start + 1 : end]))]))
        kind = SHORT_KINDS.get(first)
        rest = bytes(data[start + 1 : end])
        if kind is not None:
            return make_reply(Reply, (kind, rest))
        mark = bytes(data[start : start + 1])
        if mark == b"=":
            return Reply("verbatim", self._bulk(int(rest)))
        if mark in ARRAYS:
            if rest == b"-1":
                return Reply("nullarray", None)
            return Reply(ARRAYS[mark], [self._parse() for _ in range(int(rest))])
        if mark == b"%":
            return Reply("map", self._pairs(int(rest)))
        if mark == b"|":
            pairs = self._pairs(int(rest))
            return Reply("attribute", (pairs, self._parse()))
        if mark == b"_" and rest == b"":
            return Reply("null", None)
        if mark == b",":
            return Reply("double", rest)
        if mark == b"(":
            return Reply("bignum", rest)
        if mark == b"#" and rest in (b"t", b"f"):
            return Reply("boolean", rest == b"t")
        raise ValueError(f"not RESP: {mark + rest[:SHOWN_BYTES]!r}")

    def _pairs(self, count):
        return [(self._parse(), self._parse()) for _ in range(count)]

    def _line_end(self, start):
        searched = start
        while (end := self._in.find(b"\r\n", searched)) < 0:
            searched = max(start, len(self._in) - 1)
            self._step(want_read=True)
        return end

    def _bulk(self, size):
        data = self._in
        begin = self._at
        end = begin + size
        while len(data) < end + 2:
            self._step(want_read=True)
        if not data.startswith(b"\r\n", end):
            raise ValueError("a bulk string without its CRLF")
        self._at = end + 2
        return bytes(data[begin:end])

    def _step(self, want_read):
        """Waits until the socket can be read (or written, while output is queued), and does it."""
        if self.closed:
            raise EOFError
        wait = max(0.0, self._deadline - time.monotonic())
        ready = self._ready((select.POLLIN if want_read else 0) | (select.POLLOUT if self._out else 0), wait)
        if not ready:
            raise Timeout("the server neither answered nor read in time")
        if ready & select.POLLOUT:
            self._write_some()
        if ready & ~select.POLLOUT:
            self._read_some()

    def _ready(self, events, wait_s):
        """Those of the events, and of errors, that are there in time; 0: none. (select() knows no file above 1023.)"""
        poll = select.poll()
        poll.register(self.socket, events)
        found = poll.poll(wait_s * 1000)
        return found[0][1] if found else 0

    def _read_some(self):
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.closed = True
            raise EOFError
        self._in += data

    def _write_some(self):
        try:
            sent = self.socket.send(self._out)
            self._out = self._out[sent:]
        except BlockingIOError:
            pass
        except ConnectionError:
            self._out = memoryview(b"")  # what the server said before it left is still to be read
