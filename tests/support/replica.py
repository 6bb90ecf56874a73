"""Reads what a master tells its replicas: a replica that keeps nothing.

    with Replica(port) as replica:              # full sync; what the RDB holds is read and dropped
        client.call("SETEX", "k", "10", "v")
        replica.commands_until(client)          # [[b"SELECT", b"0"], [b"SET", b"k", b"v", b"PXAT", ...]]

Commands come in the order in which they stand in the stream, SELECT, MULTI and EXEC among them; the master's PINGs and
REPLCONF GETACKs are left out. One thread per Replica.
"""

import contextlib
import itertools
import socket
import time

MARK = b"__mark"
RECEIVE_BYTES = 1 << 18
EOF_BYTES = 40
ACK_SECONDS = 0.1  # of silence


class Replica:
    marks = itertools.count(1)

    def __init__(self, port, host="127.0.0.1", timeout=20.0, listening_port=1, before_data=None):
        self.timeout = timeout
        self._socket = socket.create_connection((host, port), timeout)
        # The kernel would grow it to 32 MB for one that has read fast, and then nobody falls behind.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket.settimeout(ACK_SECONDS)
        self._is_synced = False
        self._in = bytearray()
        self.offset = 0  # of the stream, behind what was read
        self.id = b""
        for words in (["REPLCONF", "listening-port", str(listening_port)], ["REPLCONF", "capa", "eof", "capa", "psync2"]):
            self.send(*words)
            assert self._line() == b"+OK"
        self.send("PSYNC", "?", "-1")
        answer = self._line().split()
        assert answer[0] == b"+FULLRESYNC", answer
        self.id, self.offset = answer[1], int(answer[2])
        if before_data:
            before_data()
        self.rdb_bytes = self._skip_rdb()
        self._is_synced = True
        self.send("REPLCONF", "ACK", str(self.offset))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def command(self):
        """The next command of the stream; raises TimeoutError."""
        while True:
            words = self._command()
            if words[0].upper() != b"PING" and words[:2] != [b"REPLCONF", b"GETACK"]:
                return words

    def commands_until(self, client):
        """All commands up to now: up to a message that `client` publishes, which is left out."""
        mark = MARK + b"%d" % next(self.marks)
        client.call("PUBLISH", mark, "")
        commands = []
        while (words := self.command())[:2] != [b"PUBLISH", mark]:
            commands.append(words)
        return commands

    def keep_up(self):
        """Reads, and acknowledges what it has read, until the master closes the connection."""
        with contextlib.suppress(EOFError, ConnectionError):
            while True:
                with contextlib.suppress(TimeoutError):
                    self._command()
                self.send("REPLCONF", "ACK", str(self.offset))

    def send(self, *words):
        self._socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w.encode()) for w in words))

    def _receive(self):
        """A master that sent the RDB without a file begins the stream at an ACK, and passes over one that comes early."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                data = self._socket.recv(RECEIVE_BYTES)
                break
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise
                if self._is_synced:
                    self.send("REPLCONF", "ACK", str(self.offset))
        if not data:
            raise EOFError("the master has closed the connection")
        self._in += data

    def _line(self):
        """Without its end; empty lines, by which a master shows that it lives, are passed over."""
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            while (end := self._in.find(b"\n")) < 0:
                self._receive()
            line = bytes(self._in[:end]).rstrip(b"\r")
            del self._in[: end + 1]
            if line:
                return line
        raise TimeoutError("nothing but empty lines")

    def _take(self, size):
        while len(self._in) < size:
            self._receive()
        data = bytes(self._in[:size])
        del self._in[:size]
        return data

    def _skip_rdb(self):
        head = self._line()
        assert head[:1] == b"$", head
        if not head.startswith(b"$EOF:"):
            return len(self._take(int(head[1:])))
        end, size = head[5:], 0
        assert len(end) == EOF_BYTES
        while (at := self._in.find(end)) < 0:
            size += len(self._in) - (EOF_BYTES - 1) if len(self._in) >= EOF_BYTES else 0
            del self._in[: max(0, len(self._in) - (EOF_BYTES - 1))]
            self._receive()
        del self._in[: at + EOF_BYTES]
        return size + at

    def _command(self):
        count = self._line()
        assert count[:1] == b"*", count
        self.offset += len(count) + 2
        words = []
        for _ in range(int(count[1:])):
            size = self._line()
            assert size[:1] == b"$", size
            words.append(self._take(int(size[1:]) + 2)[:-2])
            self.offset += len(size) + 2 + len(words[-1]) + 2
        return words
