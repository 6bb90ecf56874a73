"""P7 for collections: dropped in constant time, the space comes back, older views read on."""

import time

import pytest
from collections_of import TYPES, fill, read_all, size
from harness import MB, OK, disk_bytes, eventually, ingot, percentile, timed_ms
from large_values import send_command, slow_socket
from support.effort import FULL
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis has no data on disk")

COUNT = 500_000 if FULL else 40_000
SPACE_BACK_SECONDS = 120
QUICK_MS = 150.0


def cold(server):
    server.restart()
    return server.client(timeout=60)


@pytest.mark.timed
@pytest.mark.seconds(240)
@pytest.mark.parametrize("kind", TYPES)
def test_space_of_a_dropped_collection(engine, kind):
    """Dropped in one go whatever its size; reads and writes go on while it is reclaimed."""
    with ingot(engine) as server:
        with server.client(timeout=60) as client:
            fill(client, kind, "large", COUNT)
            assert client.call("SET", "small", "x") == OK
        client = cold(server)
        written = disk_bytes(server)
        assert size(client, kind, "large") == COUNT
        reply, took_ms = timed_ms(client, "DEL", "large")
        assert reply.value == 1 and took_ms < QUICK_MS, (reply, took_ms)
        slowest = []

        def is_back():
            for command in (("GET", "small"), ("SET", "small", "x")):
                slowest.append(timed_ms(client, *command)[1])
            return disk_bytes(server) < written // 4 + 16 * MB

        took = eventually(is_back, SPACE_BACK_SECONDS, f"{written >> 20} MB come back", pause=0.02)
        print(f"{written >> 20} MB back in {took:.1f} s; meanwhile GET and SET took {percentile(slowest, 0.5):.2f} ms "
              f"in the middle, {max(slowest):.1f} ms at most")  # fmt: skip
        assert size(client, kind, "large") == 0


@pytest.mark.seconds(120)
@pytest.mark.parametrize("kind", TYPES)
def test_a_view_older_than_the_drop_reads_everything(engine, kind):
    """A reply is under way to a client that reads slowly when its key goes and the space is wanted back."""
    count = 15_000
    with ingot(engine) as server, server.client(timeout=60) as client:
        fill(client, kind, "large", count)
        before = client.call(*read_all(kind, "large"))
        with slow_socket(server) as sock:
            send_command(sock, *read_all(kind, "large"))
            time.sleep(0.2)  # the reply has begun, and waits for its reader
            assert client.call("DEL", "large").value == 1
            assert client.call("SET", "large", "another") == OK
            for number in range(20):  # what makes an engine tidy up
                fill(client, kind, f"other:{number}", 500)
                client.call("DEL", f"other:{number}")
            time.sleep(1.0)
            reply = read_reply(sock)
        assert reply == plain(before)
        assert client.call("GET", "large").value == b"another"


def plain(reply):
    return [plain(each) for each in reply.value] if reply.kind == "array" else reply.value


def read_reply(sock):
    """A flat or nested array of bulk strings, read to its end."""
    with sock.makefile("rb", buffering=1 << 16) as stream:
        return read_value(stream)


def read_value(stream):
    line = stream.readline()
    number = int(line[1:-2])
    if line[:1] == b"*":
        return [read_value(stream) for _ in range(number)]
    assert line[:1] == b"$", line
    value = stream.read(number)
    stream.read(2)
    return value
