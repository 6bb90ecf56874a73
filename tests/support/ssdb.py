"""An SSDB server for tests of ingot-import: the commands that reading everything takes, as the documentation of its
protocol and of its commands tells them. There is no package of the real one.

    with SsdbServer() as source:
        source.kv[b"name"] = b"value"; source.ttl[b"name"] = 60
        source.hashes[b"name"] = {b"field": b"value"}
        source.zsets[b"name"] = {b"member": 7}
        source.queues[b"name"] = [b"first", b"second"]
        ... ingot-import 127.0.0.1:{source.port} ...

What it holds is filled in before it is asked for. With `hang_up_after` it closes a connection after so many commands.
"""

import bisect
import contextlib
import socket
import socketserver
import threading


class SsdbServer:
    def __init__(self, password=None):
        self.kv, self.ttl, self.hashes, self.zsets, self.queues = {}, {}, {}, {}, {}
        self.password = password
        self.hang_up_after = None
        self.before_command = lambda number, command: None
        self.answered = 0  # commands, of all connections
        self._orders = {}
        handler = type("Handler", (_Connection,), {"owner": self})
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def order(self, *what):
        """Sorted once, because a page of many is asked for again and again: names of a type, or elements of a name."""
        if what not in self._orders:
            values = getattr(self, what[0])
            if len(what) == 2:
                values = values.get(what[1], {})
            if what[0] == "zsets" and len(what) == 2:
                values = ((score, member) for member, score in values.items())
            self._orders[what] = sorted(values)
        return self._orders[what]

    def answer(self, command, *words):
        match command, words:
            case b"ping", ():
                return [b"ok"]
            case b"ttl", (key,):
                return [b"ok", b"%d" % (self.ttl.get(key, -1))]
            case b"get", (key,):
                return [b"ok", self.kv[key]] if key in self.kv else [b"not_found"]
            case b"keys" | b"hlist" | b"zlist" | b"qlist", (start, end, limit):
                values = {b"k": "kv", b"h": "hashes", b"z": "zsets", b"q": "queues"}[command[:1]]
                return [b"ok", *page(self.order(values), start, end, int(limit))]
            case b"exists", (key,):
                return [b"ok", b"%d" % (key in self.kv)]
            case b"hsize" | b"zsize" | b"qsize", (name,):
                values = {b"h": self.hashes, b"z": self.zsets, b"q": self.queues}[command[:1]]
                return [b"ok", b"%d" % len(values.get(name, ()))]
            case b"hscan", (name, start, end, limit):
                fields = page(self.order("hashes", name), start, end, int(limit))
                return [b"ok", *(word for field in fields for word in (field, self.hashes[name][field]))]
            case b"zscan", (name, member, score, b"", limit):
                order = self.order("zsets", name)
                # Without a member the score itself belongs to it.
                behind = bisect.bisect_right(order, (int(score), member)) if score else 0
                found = order[behind : behind + int(limit)]
                return [b"ok", *(word for number, name in found for word in (name, b"%d" % number))]
            case b"qrange", (name, offset, limit):
                return [b"ok", *self.queues.get(name, [])[int(offset) : int(offset) + int(limit)]]
        return [b"client_error", b"Unknown Command: " + command]


def page(order, start, end, limit):
    """(start, end], an empty end being none."""
    found = order[bisect.bisect_right(order, start) if start else 0 :][:limit]
    return [name for name in found if not end or name <= end]


class _Connection(socketserver.StreamRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        allowed = self.owner.password is None
        with contextlib.suppress(ConnectionError):
            for number, command in enumerate(iter(self.read_command, None)):
                if number == self.owner.hang_up_after:
                    return
                self.owner.before_command(number, command)
                if command[0] == b"auth":
                    allowed = allowed or command[1:] == [self.owner.password]
                    reply = [b"ok", b"1"] if allowed else [b"error", b"invalid password"]
                elif not allowed:
                    reply = [b"noauth", b"authentication required"]
                else:
                    reply = self.owner.answer(*command)
                self.owner.answered += 1
                self.wfile.write(b"".join(b"%d\n%b\n" % (len(item), item) for item in reply) + b"\n")

    def read_command(self):
        command = []
        while (line := self.rfile.readline()) not in (b"\n", b"\r\n"):
            if not line:
                return None
            command.append(self.rfile.read(int(line)))
            self.rfile.readline()
        return command
