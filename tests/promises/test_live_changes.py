"""Settings that change while the server works: reader-threads, appendfsync, the memory."""

import random
import time

import pytest
from harness import OK, Crew, eventually, info, ingot, load
from support.effort import FULL
from support.servers import self_check
from survivor import Survivor
from test_p4_crash import settle_all

pytestmark = pytest.mark.skipif(self_check(), reason="settings that only Ingot has")

KEYS = 30_000
VALUE_BYTES = 1000
DEPTH = 100
CLIENTS = 4
SECONDS_EACH = 1.0 if FULL else 0.25


def value_of(number):
    return random.Random(number).randbytes(VALUE_BYTES)


def read_cold(server, seed, done, stop):
    rng = random.Random(seed)
    with server.client(timeout=30) as client:
        while not stop.is_set():
            numbers = [rng.randrange(KEYS) for _ in range(DEPTH)]
            replies = client.pipeline([("GET", f"key:{number}") for number in numbers])
            for number, reply in zip(numbers, replies, strict=True):
                assert reply.value == value_of(number), f"key:{number}: {reply}"
            done.append(len(replies))


def test_reader_threads_up_and_down_under_load(engine, rng):
    with ingot(engine, maxmemory="24mb", direct_reads="yes") as server:
        with server.client(timeout=30) as admin:
            load(admin, ((f"key:{i}", value_of(i)) for i in range(KEYS)))
        server.restart()
        done = []
        with Crew() as crew, server.client(timeout=30) as admin:
            for _ in range(CLIENTS):
                crew.add(read_cold, server, rng.random(), done, crew.stop)
            for threads in (1, 40, 2, 1, 10, 100, 3, 1, 20, *(rng.randint(1, 60) for _ in range(3))):
                assert admin.call("CONFIG", "SET", "reader-threads", threads) == OK
                assert admin.call("CONFIG", "GET", "reader-threads").value[1].value == b"%d" % threads
                # One alone would leave short reads behind long ones.
                assert info(admin, "threads")["reader_threads"] == str(max(threads, 2))
                before = len(done)
                crew.run_for(SECONDS_EACH)
                assert len(done) > before, f"no read was answered with {threads} reader threads"
            for threads in (77, "auto"):
                assert admin.call("CONFIG", "SET", "reader-threads", threads) == OK
            eventually(lambda: info(admin, "threads")["reader_threads"] != "77", 30, "a measurement")
            assert admin.call("CONFIG", "GET", "reader-threads").value[1].text() == "auto"
            for threads in (6, "auto", 5):  # the last while it measures
                assert admin.call("CONFIG", "SET", "reader-threads", threads) == OK
            assert info(admin, "threads")["reader_threads"] == "5"
        print(f"{sum(done)} cold reads")
        assert server.alive()


@pytest.mark.seconds(120)
def test_appendfsync_changes_under_load(engine, rng):
    """Whatever the mode is at the moment of the crash, nothing answered is lost."""
    survivors = [Survivor(f"w{i}", random.Random(rng.random())) for i in range(CLIENTS)]
    with ingot(engine, appendfsync="everysec") as server:
        for _ in range(10 if FULL else 2):
            with Crew() as crew, server.client(timeout=30) as admin:
                for survivor in survivors:
                    crew.add(survivor.write, server, crew.stop)
                for _ in range(6):
                    mode = rng.choice(["always", "everysec", "no"])
                    assert admin.call("CONFIG", "SET", "appendfsync", mode) == OK
                    assert admin.call("CONFIG", "GET", "appendfsync").value[1].text() == mode
                    before = sum(survivor.answered for survivor in survivors)
                    crew.run_for(0.2)
                    now = sum(survivor.answered for survivor in survivors)
                    assert now > before, f"no write was answered with appendfsync {mode}"
                server.kill()
            server.start()
            settle_all(survivors, server)


def test_maxmemory_changes_under_load(engine, rng):
    with ingot(engine, maxmemory="64mb", direct_reads="yes") as server:
        with server.client(timeout=30) as admin:
            load(admin, ((f"key:{i}", value_of(i)) for i in range(KEYS)))
        done = []
        with Crew() as crew, server.client(timeout=30) as admin:
            for _ in range(CLIENTS):
                crew.add(read_cold, server, rng.random(), done, crew.stop)
            for megabytes in (200, 24, 64, 300, 24):
                assert admin.call("CONFIG", "SET", "maxmemory", f"{megabytes}mb") == OK
                assert int(info(admin, "memory")["maxmemory"]) == megabytes << 20
                crew.run_for(SECONDS_EACH)
        assert done and server.alive()


TICKS = 0.5  # seconds: some looks at the disk


def options_files(server):
    return {path.name for path in (server.directory / "ingot-data").glob("OPTIONS-*")}


def test_what_does_not_touch_the_cache_leaves_the_engine_alone(engine):
    # RocksDB writes its options anew for each change, on the thread that looks at the disk each 100 ms.
    with ingot(engine, maxmemory="200mb") as server, server.client() as client:
        before = options_files(server)
        for seconds in range(1, 6):
            assert client.call("CONFIG", "SET", "timeout", seconds) == OK
        time.sleep(TICKS)
        assert options_files(server) == before
        assert client.call("CONFIG", "SET", "maxmemory", "300mb") == OK
        if engine == "rocksdb":
            eventually(lambda: options_files(server) != before, 10, "its options are as they were")
        else:
            time.sleep(TICKS)
            assert options_files(server) == before
