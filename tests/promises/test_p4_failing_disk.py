"""P4 and P8 with a disk that fails: a failed fsync makes the server read-only until restarted, a
full disk until there is space; what was answered is never lost, what was not is never seen.

INGOT_FAULT_FILE names the file that tells the server's own file system to fail, see
storage/rocksdb/fault_file_system.h.
"""

import threading
import time

import pytest
from harness import OK, Crew, eventually, info, ingot
from support.resp import Reply, encode
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis has no failing file system")

WRITERS = 4
REFUSED_WITHIN_SECONDS = 8
HEALED_WITHIN_SECONDS = 15


class Disk:
    """The switch of the failing disk."""

    def __init__(self, path):
        self.path = path
        self.heal()

    def fail(self, how):
        self.path.write_text(how)
        time.sleep(0.03)  # the server looks at it each 10 ms

    def heal(self):
        self.path.write_text("")


@pytest.fixture
def disk(tmp_path, monkeypatch):
    path = tmp_path / "faults"
    monkeypatch.setenv("INGOT_FAULT_FILE", str(path))
    return Disk(path)


class Counter:
    """A key with one writer that counts up, until it is refused."""

    def __init__(self, number, generation):
        self.key = b"counter:%d:%d" % (number, generation)
        self.acknowledged = 0
        self.seen = 0  # the most that any reader saw
        self.refusal = None

    def write(self, server, stop):
        with server.client(timeout=30) as client:
            while not stop.is_set() and self.refusal is None:
                reply = client.call("SET", self.key, self.acknowledged + 1)
                if reply == Reply("simple", b"OK"):
                    self.acknowledged += 1
                else:
                    self.refusal = reply


def read_all(server, counters, stop):
    with server.client() as client:
        while not stop.is_set():
            for counter, reply in zip(counters, client.call("MGET", *(c.key for c in counters)).value):
                assert not reply.is_error(), reply
                counter.seen = max(counter.seen, int(reply.value or 0))


def write_until_refused(server, disk, fault, generation=0):
    """Breaks the disk under load; the counters, when all their writers were refused."""
    counters = [Counter(i, generation) for i in range(WRITERS)]
    stop_writing = threading.Event()
    with Crew() as readers:
        for _ in range(3):
            readers.add(read_all, server, counters, readers.stop)
        with Crew() as writers:
            for counter in counters:
                writers.add(counter.write, server, stop_writing)
            writers.run_for(0.5)
            disk.fail(fault)
            eventually(lambda: all(c.refusal for c in counters), REFUSED_WITHIN_SECONDS, "a refusal")
        readers.run_for(0.3)
    for counter in counters:
        assert counter.acknowledged > 0
        assert counter.refusal.is_error() and counter.refusal.value.startswith(b"MISCONF"), counter.refusal
    return counters


def refused(server):
    """Whether writes are refused, on a new connection; reads must go on."""
    with server.client(timeout=30) as client:
        reply = client.call("SET", "probe", "x")
        assert reply == Reply("simple", b"OK") or reply.value.startswith(b"MISCONF"), reply
        assert not client.call("GET", "counter:0:0").is_null()
        assert client.call("PING").value == b"PONG"
    return reply.is_error()


def values(server, counters):
    with server.client() as client:
        return [int(reply.value) for reply in client.call("MGET", *(c.key for c in counters)).value]


@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
def test_a_failed_fsync_makes_the_server_read_only(disk, appendfsync):
    with ingot("rocksdb", appendfsync=appendfsync) as server:
        counters = write_until_refused(server, disk, "fail-sync")
        answered = [counter.acknowledged for counter in counters]
        assert values(server, counters) == answered
        for counter in counters:
            assert counter.seen <= counter.acknowledged, "somebody read what was not written"
        with server.client() as client:
            for command in (("DEL", "counter:0:0"), ("INCR", "x"), ("FLUSHALL",), ("EXPIRE", "counter:0:0", 9)):
                assert client.call(*command).value.startswith(b"MISCONF"), command
            aborted = client.pipeline([("MULTI",), ("SET", "a", 1), ("EXEC",)])
            assert any(reply.is_error() for reply in aborted), aborted
        # A disk that is well again proves nothing about what it has lost: still read-only.
        disk.heal()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert refused(server)
            time.sleep(0.1)
        assert values(server, counters) == answered
        assert b"fsync" in server.log_path.read_bytes(), "the log says nothing of it"

        server.restart()
        for counter, value in zip(counters, values(server, counters)):
            # The refused write is undecided; nothing was sent after it.
            assert counter.acknowledged <= value <= counter.acknowledged + 1
        assert not refused(server)


@pytest.mark.parametrize("appendfsync, ending", [("always", "kill"), ("everysec", "term")])
def test_a_full_disk_heals_by_itself(disk, appendfsync, ending):
    with ingot("rocksdb", appendfsync=appendfsync) as server:
        for generation, fault in enumerate(("no-append", "no-space")):
            counters = write_until_refused(server, disk, fault, generation)
            for counter in counters:
                assert b"No space left on device" in counter.refusal.value
                assert counter.seen <= counter.acknowledged, "somebody read what was not written"
            assert values(server, counters) == [counter.acknowledged for counter in counters]
            assert refused(server)
            disk.heal()
            took = eventually(lambda: not refused(server), HEALED_WITHIN_SECONDS, "writes work again")
            print(f"writes worked again after {took:.1f} s")
            assert values(server, counters) == [counter.acknowledged for counter in counters]
        server.restart(kill=ending == "kill")
        assert values(server, counters) == [counter.acknowledged for counter in counters]
        assert not refused(server)


def test_a_full_disk_and_a_crash(disk):
    """Torn records of refused writes stand at the end of the log: a restart takes them for nothing."""
    with ingot("rocksdb", appendfsync="always") as server:
        counters = write_until_refused(server, disk, "no-append")
        server.kill()
        disk.heal()
        server.start()
        assert values(server, counters) == [counter.acknowledged for counter in counters]
        assert not refused(server)


def test_who_waits_for_a_slow_sync(disk):
    """WAITAOF ends with its time, its client, CLIENT UNBLOCK or the sync, whichever comes first; and with an error when that fails."""
    def counts(reply):
        assert reply.kind == "array", reply
        return [part.value for part in reply.value]

    def waiting():
        return int(info(admin, "clients")["blocked_clients"])

    with ingot("rocksdb", appendfsync="everysec") as server, server.client() as admin:
        disk.fail("slow-sync")
        with server.client() as client:
            assert client.call("SET", "k", 0) == OK
            assert counts(client.call("WAITAOF", 1, 0, 1)) == [0, 0]  # the sync takes half a second
            assert counts(client.call("WAITAOF", 1, 0, 0)) == [1, 0]
            # Others are served meanwhile, and so is what stands before and behind it in a pipeline.
            client.send_raw(b"".join(map(encode, [("SET", "k", 1), ("WAITAOF", 1, 0, 0), ("INCR", "k"), ("GET", "k")])))
            eventually(lambda: waiting() == 1, 10, "it waits")
            assert admin.call("SET", "other", 1) == OK and admin.call("GET", "k").value == b"1"
            assert client.read() == OK
            assert counts(client.read()) == [1, 0]
            assert [client.read().value, client.read().value] == [2, b"2"]
        # Half of a crowd leaves.
        crowd = [server.client() for _ in range(100)]
        for i, client in enumerate(crowd):
            client.send("SET", f"crowd:{i}", 1)
            client.send("WAITAOF", 1, 0, 0)
        for client in crowd[::2]:
            client.close()
        for client in crowd[1::2]:
            assert (client.read(), counts(client.read())) == (OK, [1, 0])
            client.close()
        eventually(lambda: waiting() == 0, 10, "nobody waits")
        with server.client() as client:
            me = client.call("CLIENT", "ID").value
            client.pipeline([("SET", "k", 3)])
            client.send("WAITAOF", 1, 0, 0)
            eventually(lambda: admin.call("CLIENT", "UNBLOCK", me).value == 1 or client.has_input(), 10, "unblocked")
            assert counts(client.read()) in ([0, 0], [1, 0])
            assert client.call("GET", "k").value == b"3"
        with server.client() as client:
            disk.fail("fail-sync")
            client.send("SET", "k", 4)
            client.send("WAITAOF", 1, 0, 0)
            assert client.read() == OK
            assert client.read().value.startswith(b"MISCONF")
            assert client.call("GET", "k").value == b"4"
