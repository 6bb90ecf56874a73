"""The limits that the user sets for the disk: max-disk and min-free-disk refuse what grows."""

import shutil
import time

import pytest
from harness import MB, OK, eventually, ingot
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="settings that only Ingot has")

NOTICED_WITHIN_SECONDS = 10
FREED_WITHIN_SECONDS = 60


def refusal(client):
    reply = client.call("SET", "probe", "x")
    return None if reply == OK else reply


def test_max_disk(engine, rng):
    with ingot(engine, max_disk="60mb") as server, server.client(timeout=30) as client:
        written = 0
        for number in range(300):
            reply = client.call("SET", f"filler:{number}", rng.randbytes(MB))
            if reply != OK:
                break
            written += 1
        assert 20 < written < 200, f"{written} MB were taken"
        print(reply)
        assert reply.is_error() and b"max-disk" in reply.value, reply
        assert client.call("GET", "filler:0").kind == "bulk"
        assert client.call("STRLEN", "filler:1").value == MB
        # What makes room is never refused, and helps by itself.
        for number in range(written):
            assert client.call("DEL", f"filler:{number}").value == 1
        took = eventually(lambda: not refusal(client), FREED_WITHIN_SECONDS, "space comes back")
        print(f"{written} MB were taken, writes worked again {took:.1f} s after the DELs")
        assert client.call("DBSIZE").value == 1


@pytest.mark.parametrize("kept", ["none", "every fourth"])
def test_deleting_small_keys_makes_room(engine, kept, rng):
    """Of which hundreds of thousands make less of a memtable than starts a compaction."""
    with ingot(engine, max_disk="20mb") as server, server.client(timeout=30) as client:
        values = []
        refused = False
        while not refused and len(values) < 40_000:
            piece = [(f"key:{len(values) + i}", rng.randbytes(3000)) for i in range(100)]
            replies = client.pipeline([("SET", key, value) for key, value in piece])
            values += [each for each, reply in zip(piece, replies) if reply == OK]
            refused = replies[-1] != OK
        assert refused and len(values) > 1000, len(values)
        gone = [key for number, (key, _) in enumerate(values) if kept == "none" or number % 4 != 0]
        for begin in range(0, len(gone), 100):
            replies = client.pipeline([("DEL", key) for key in gone[begin : begin + 100]])
            assert all(reply.value == 1 for reply in replies)
        took = eventually(lambda: not refusal(client), FREED_WITHIN_SECONDS, "space comes back")
        print(f"{len(values)} values were taken, writes worked again {took:.1f} s after the DELs")
        assert client.call("DBSIZE").value == len(values) - len(gone) + 1
        for key, value in values[:: len(values) // 50]:
            reply = client.call("GET", key)
            assert reply.value == (None if kept == "none" or int(key[4:]) % 4 != 0 else value), key


def test_min_free_disk_and_config_set(engine):
    with ingot(engine) as server, server.client() as client:
        assert client.call("SET", "k", "v") == OK
        more_than_there_is = shutil.disk_usage(server.directory).free * 2
        assert client.call("CONFIG", "SET", "min-free-disk", more_than_there_is) == OK
        eventually(lambda: refusal(client), NOTICED_WITHIN_SECONDS, "writes are refused")
        assert refusal(client).is_error() and b"min-free-disk" in refusal(client).value
        assert client.call("GET", "k").value == b"v"
        assert client.call("DEL", "k").value == 1
        assert client.call("CONFIG", "SET", "min-free-disk", 0) == OK
        eventually(lambda: not refusal(client), NOTICED_WITHIN_SECONDS, "writes are taken again")


def test_what_is_refused_takes_no_space(engine, rng):
    """A large value is stored while it arrives: those that were refused filled the disk."""
    def written():
        with open(f"/proc/{server.process.pid}/io") as figures:
            return int(dict(line.split(": ") for line in figures)["wchar"])

    with ingot(engine) as server, server.client(timeout=30) as client:
        for number in range(40):
            assert client.call("SET", f"filler:{number}", rng.randbytes(MB)) == OK
        # Not from the start: that refuses at 20 MB, of which a flush gives back what is in a log, too.
        assert client.call("CONFIG", "SET", "max-disk", "20mb") == OK
        eventually(lambda: refusal(client), NOTICED_WITHIN_SECONDS, "writes are refused")
        before = 0
        while (now := written()) - before > MB:  # a flush or a compaction is under way, perhaps in a long fsync
            before = now
            time.sleep(2)
        for _ in range(10):
            assert b"max-disk" in client.call("SET", "large", bytes(5 * MB)).value
        assert written() - before < 25 * MB
