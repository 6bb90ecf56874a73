"""P4 and P8 on a file system that is really full: the server stays, deletes go on, growth is refused
until there is space, and nothing acknowledged is lost or mixed up.

A small tmpfs stands in for the disk, so this needs the right to mount one.
"""

import contextlib
import os
import pathlib
import threading
import time

import pytest
from harness import OK, Crew, eventually, info, ingot
from support.effort import FULL
from support.servers import Server, self_check
from support.small_disk import small_disk

HEALED_WITHIN_SECONDS = 15
MEMBERS = 300
MB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(name="small_disk")
def disk_of_its_own(tmp_path, request):
    if self_check():
        pytest.skip("settings that only Ingot has")
    with small_disk(tmp_path / "disk", getattr(request, "param", 128)) as path:
        yield path


def fill(path):
    """Takes all the space there is; the file to remove."""
    ballast = path / "ballast"
    descriptor = os.open(ballast, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(descriptor, bytes(65536))
    except OSError:
        return ballast
    finally:
        os.close(descriptor)


def refused(reply):
    assert not reply.is_error() or reply.value.startswith(b"MISCONF"), reply
    return reply.is_error()


def add_set(client, number):
    return not refused(client.call("SADD", f"set:{number}", *(f"{number}:{i}" for i in range(MEMBERS))))


@pytest.mark.parametrize("appendfsync, filled_by", [("always", "itself"), ("everysec", "others")])
def test_a_full_disk(engine, appendfsync, filled_by, small_disk, rng):
    options = {"engine": engine, "appendfsync": appendfsync, "min-free-disk": 0}
    server = Server.ingot(engine, options, directory=small_disk)
    server.log_path = pathlib.Path(f"{small_disk}.log")
    with server, server.client(timeout=30) as client:
        values, sets = 0, []
        others = threading.Thread(target=fill, args=(small_disk,))
        while not refused(client.call("SET", f"value:{values}", rng.randbytes(20_000))):
            values += 1
            if values % 20 == 0 and add_set(client, values):
                sets.append(values)
            client.call("SET", f"short:{values}", "v", "PX", 1500)
            if values == 300 and filled_by == "others":
                others.start()
        if filled_by == "others":
            others.join()
        assert values > 300 and len(sets) > 10
        # Reads and deletes go on, and what goes makes room.
        assert client.call("STRLEN", "value:7").value == 20_000
        if filled_by == "others":
            refused(client.call("DEL", "value:7"))
            (small_disk / "ballast").unlink()
        for number in range(values):
            eventually(lambda: not refused(client.call("DEL", f"value:{number}")), HEALED_WITHIN_SECONDS, "DEL")
        took = eventually(lambda: client.call("SET", "probe", "x") == OK, HEALED_WITHIN_SECONDS, "space")
        print(f"{values} values, writes worked again after {took:.1f} s")
        for number in range(10_000, 10_050):
            assert add_set(client, number), server.log_tail()
            sets.append(number)
        # Nothing is left of what expired meanwhile, and no set has another's members.
        eventually(lambda: client.call("DBSIZE").value == len(sets) + 1, HEALED_WITHIN_SECONDS, "expiry")
        server.restart(kill=True)
        with server.client(timeout=30) as again:
            for number in range(20_000, 20_050):
                assert add_set(again, number), server.log_tail()
                sets.append(number)
            for number in sets:
                members = {member.value for member in again.call("SMEMBERS", f"set:{number}").value}
                assert members == {b"%d:%d" % (number, i) for i in range(MEMBERS)}


def test_a_disk_that_fills_while_all_files_are_written_anew(engine, small_disk, rng):
    """BGREWRITEAOF fails on RocksDB and waits on LevelDB, and nothing else: no answered write is lost."""
    options = {"engine": engine, "min-free-disk": 0, "compression": "none", "compaction-rate": "8mb"}
    server = Server.ingot(engine, options, directory=small_disk)
    server.log_path = pathlib.Path(f"{small_disk}.log")
    values = {f"value:{i}": rng.randbytes(20_000) for i in range(1800)}

    def persistence():
        return info(client, "persistence")

    def rewriting():
        return persistence()["aof_rewrite_in_progress"] == "1"

    def is_whole():
        return all(client.call("GET", key).value == value for key, value in values.items())

    with server:
        with server.client(timeout=60) as client:
            for key, value in values.items():
                assert client.call("SET", key, value) == OK
            assert client.call("BGREWRITEAOF").kind == "simple"
            ballast = fill(small_disk)
            if engine == "rocksdb":
                eventually(lambda: not rewriting(), 60, "an end of the rewriting")
                assert persistence()["aof_last_bgrewrite_status"] == "err"
            else:  # which may have been faster than the disk was filled
                assert rewriting() or persistence()["aof_last_bgrewrite_status"] == "ok"
            assert is_whole()
        assert server.stop() == 0  # it does not wait for space
        ballast.unlink()
        server.start()
        with server.client(timeout=60) as client:
            assert is_whole()
            client.call("CONFIG", "SET", "compaction-rate", 0)
            for key in list(values)[::2]:
                eventually(lambda: not refused(client.call("DEL", key)), HEALED_WITHIN_SECONDS, "DEL")
                del values[key]
            assert client.call("BGREWRITEAOF").kind == "simple"
            ballast = fill(small_disk)
            assert is_whole()
            ballast.unlink()
            eventually(lambda: not refused(client.call("SET", "new", "v")), HEALED_WITHIN_SECONDS, "a write")
            eventually(lambda: not rewriting(), 60, "an end of the second one")

            def rewrites():
                assert client.call("BGREWRITEAOF").kind == "simple"
                eventually(lambda: not rewriting(), 60, "an end of one more")
                return persistence()["aof_last_bgrewrite_status"] == "ok"

            # RocksDB takes writes again some seconds before it takes a compaction of this size.
            eventually(rewrites, HEALED_WITHIN_SECONDS, "a rewriting that succeeds")
        server.restart(kill=True)
        with server.client(timeout=60) as client:
            assert is_whole() and client.call("DBSIZE").value == len(values) + 1


def test_a_compaction_that_finds_no_room_leaves_some_to_logs_and_flushes(small_disk, rng):
    """One that took the last byte stopped RocksDB, for a log that then found none; and until as much was free as all
    compactions wanted, DEL was refused."""
    options = {"engine": "rocksdb", "min-free-disk": 0, "compression": "none", "compaction-rate": "8mb"}
    server = Server.ingot(options=options, directory=small_disk)
    server.log_path = pathlib.Path(f"{small_disk}.log")
    ballast = small_disk / "ballast"

    def free():
        return os.statvfs(small_disk).f_bavail * PAGE

    def take_all_but(left):
        with ballast.open("ab") as file:
            size = file.tell() + free() - left
            os.posix_fallocate(file.fileno(), 0, size)
            # A rewriting that began at this very moment has taken room for a table, too.
            os.truncate(file.fileno(), size - max(0, left - free()))

    def rewrite(leaving=None):
        """How it ended, and the least that was free. Others leave so much as soon as it has begun: most of it they
        take before, because that takes time, in which the rewriting goes on."""
        if leaving:
            take_all_but(48 * MB)
        assert client.call("BGREWRITEAOF").kind == "simple"
        if leaving:
            take_all_but(leaving)
        least = free()
        while info(client, "persistence")["aof_rewrite_in_progress"] == "1":
            least = min(least, free())
        return info(client, "persistence")["aof_last_bgrewrite_status"], least

    with server, server.client(timeout=60) as client:
        for i in range(1200):
            assert client.call("SET", f"value:{i}", rng.randbytes(20_000)) == OK
        assert rewrite()[0] == "ok"
        ended, least = rewrite(leaving=11 * MB)
        assert ended == "err" and 4 * MB < least < 12 * MB
        assert client.call("DEL", "value:0").value == 1
        ballast.unlink()
        eventually(lambda: rewrite()[0] == "ok", HEALED_WITHIN_SECONDS, "a rewriting that succeeds")


@pytest.mark.parametrize("small_disk, value_bytes", [(512 if FULL else 256, 1000), (512, 100_000)], indirect=["small_disk"])
def test_half_of_the_keys_give_their_space_back(engine, small_disk, value_bytes, rng):
    """Only compactions do that, each of which takes room before; and removals take some, too. Of large values they are so
    small that LevelDB wanted to rewrite all at once."""
    options = {"engine": engine, "min-free-disk": 0, "maxmemory": "32mb", "compression": "none"}
    server = Server.ingot(engine, options, directory=small_disk)
    server.log_path = pathlib.Path(f"{small_disk}.log")
    values = [rng.randbytes(value_bytes) for _ in range(64)]
    at_a_time = 500_000 // value_bytes

    def write(numbers):
        """Those that were not refused."""
        replies = client.pipeline([["SET", f"value:{i}", values[i % 64]] for i in numbers])
        return [i for i, reply in zip(numbers, replies, strict=True) if not refused(reply)]

    def fill_up(begin):
        """Until nothing has been taken for a second."""
        taken, refused_since = [], None
        while not refused_since or time.monotonic() - refused_since < 1:
            some = write(range(begin, begin + at_a_time))
            taken += some
            begin += at_a_time
            refused_since = None if some else refused_since or time.monotonic()
        return taken

    def free():
        return os.statvfs(small_disk).f_bavail * PAGE

    with server:
        with server.client(timeout=60) as client:
            kept = fill_up(0)
            assert len(kept) * value_bytes > os.statvfs(small_disk).f_blocks * PAGE // 2, "half of the disk"
            rng.shuffle(kept)
            gone, kept = kept[: len(kept) // 2], kept[len(kept) // 2 :]
            for at in range(0, len(gone), 200):
                replies = client.pipeline([["DEL", f"value:{i}"] for i in gone[at : at + 200]])
                assert not any(refused(reply) for reply in replies), f"{at} of {len(gone)} DELs, {free() // MB} MB are free"
            eventually(lambda: write([10**9]), HEALED_WITHIN_SECONDS, "space")
            eventually(lambda: free() > len(gone) * value_bytes * 3 // 4, HEALED_WITHIN_SECONDS, "most of the space")
            kept += fill_up(2 * 10**9)
            rng.shuffle(kept)
            server.restart(kill=True)
        with server.client(timeout=60) as client:
            for at in range(0, min(30_000, len(kept)), at_a_time):
                numbers = kept[at : at + at_a_time]
                replies = client.pipeline([["GET", f"value:{i}"] for i in numbers])
                assert all(reply.value == values[i % 64] for i, reply in zip(numbers, replies, strict=True))


@pytest.mark.parametrize("small_disk", [256], indirect=True)
def test_overwriting_on_a_small_disk(engine, small_disk, rng):
    """Each write leaves as much behind, which compactions have to find room to remove. Writes went on to the last byte."""
    options = {"engine": engine, "min-free-disk": 0, "maxmemory": "64mb", "compression": "none"}
    server = Server.ingot(engine, options, directory=small_disk)
    server.log_path = pathlib.Path(f"{small_disk}.log")
    count = 140 * MB // 20_000
    values = [rng.randbytes(20_000) for _ in range(16)]
    holds = {}  # the value of each key, by its number in values

    def write(key):
        number = rng.randrange(16)
        return ["SET", f"value:{key}", values[number]], key, number

    with server:
        with server.client(timeout=60) as client:
            end = None
            while end is None or time.monotonic() < end:
                if len(holds) < count and end is None:
                    some = [write(key) for key in range(len(holds), len(holds) + 20)]
                else:
                    end = end or time.monotonic() + 8
                    some = [write(rng.randrange(count)) for _ in range(20)]
                replies = client.pipeline([command for command, _, _ in some])
                taken = {key: number for (_, key, number), reply in zip(some, replies, strict=True) if not refused(reply)}
                holds |= taken
                if not taken:
                    time.sleep(0.02)
            assert not refused(client.call("DEL", "value:0"))
            del holds[0]
            eventually(lambda: not refused(client.call("SET", "new", "v")), HEALED_WITHIN_SECONDS, "a write")
            server.restart(kill=True)
        with server.client(timeout=60) as client:
            replies = client.pipeline([["GET", f"value:{key}"] for key in holds])
            assert [reply.value for reply in replies] == [values[number] for number in holds.values()]


def test_a_disk_that_stays_nearly_full(small_disk, rng):
    """Somebody else takes what compactions would need: whoever deletes is served all the time, nobody else fills the rest."""
    options = {"engine": "rocksdb", "min-free-disk": "16mb", "maxmemory": "32mb", "compression": "none"}
    server = Server.ingot(options=options, directory=small_disk)
    server.log_path = pathlib.Path(f"{small_disk}.log")
    kept_free = 20 * MB
    ballast = small_disk / "ballast"

    def free():
        return os.statvfs(small_disk).f_bavail * PAGE

    def hold(stop):
        with ballast.open("wb") as file:
            taken = 0
            while not stop.wait(0.05):
                taken = max(0, taken + free() - kept_free)
                os.truncate(file.fileno(), taken)
                with contextlib.suppress(OSError):
                    if taken > 0:
                        os.posix_fallocate(file.fileno(), 0, taken)

    with server, server.client(timeout=60) as client:
        for i in range(3000):
            client.call("SET", f"value:{i}", rng.randbytes(20_000))
        with Crew() as crew:
            crew.add(hold, crew.stop)
            end = time.monotonic() + 10
            deleted = tried = 0
            while time.monotonic() < end:
                client.call("SET", f"value:{rng.randrange(3000)}", rng.randbytes(20_000))
                client.call("SET", "large", bytes(5 * MB))
                for i in range(20):
                    tried += 1
                    deleted += not refused(client.call("DEL", f"value:{rng.randrange(3000)}"))
            assert deleted > 0.8 * tried, f"{deleted} of {tried} DELs were served, {free() // MB} MB are free"
        assert server.stop() == 0
