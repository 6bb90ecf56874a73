"""P4: kill -9 loses no answered write in any mode of appendfsync; SIGTERM neither."""

import random
import signal

import pytest
from harness import Crew, check_key_count, info, ingot
from support.effort import FULL
from support.resp import Reply
from survivor import Survivor, total_keys

WRITERS = 4
# 20 rounds at least in every run: 3 modes x (6 + 3).
ROUNDS = {"leveldb": 20 if FULL else 3}
ROUNDS_OTHERWISE = 20 if FULL else 6
LOAD_SECONDS = (0.2, 0.9)


def load_until(survivors, server, seconds, end):
    """Writes for a while, then ends the server in the middle of it."""
    with Crew() as crew:
        for survivor in survivors:
            crew.add(survivor.write, server, crew.stop)
        crew.run_for(seconds)
        end()


def settle_all(survivors, server):
    """Checks everything after a crash: writes, expiry times, the number of keys."""
    with server.client() as client:
        decided = [survivor.settle(client) for survivor in survivors]
        check_key_count(client, total_keys(survivors))
        with_expiry = sum(expires is not None for s in survivors for _, expires in s.model.data.values())
        keyspace = info(client, "keyspace").get("db0", "keys=0,expires=0")
        assert f"keys={total_keys(survivors)}," in keyspace + ","
        assert f"expires={with_expiry}," in keyspace + ","
    return decided


@pytest.mark.seconds(120)
@pytest.mark.parametrize("appendfsync", ["always", "everysec", "no"])
def test_kill_9_under_load(engine, rng, appendfsync):
    survivors = [Survivor(f"w{i}", random.Random(rng.random())) for i in range(WRITERS)]
    with ingot(engine, appendfsync=appendfsync) as server:
        for round_number in range(ROUNDS.get(engine, ROUNDS_OTHERWISE)):
            load_until(survivors, server, rng.uniform(*LOAD_SECONDS), server.kill)
            server.start()
            decided = settle_all(survivors, server)
            answered = sum(survivor.answered for survivor in survivors)
            print(f"round {round_number}: {answered} units answered, done of undecided {decided}")
    assert min(survivor.answered for survivor in survivors) > 0


@pytest.mark.seconds(120)
def test_kill_9_with_data_that_was_flushed_and_compacted(engine, rng):
    """A small memtable: crashes fall into flushes and compactions too."""
    survivors = [Survivor(f"w{i}", random.Random(rng.random())) for i in range(WRITERS)]
    with ingot(engine, maxmemory="24mb") as server:
        for _ in range(20 if FULL else 3):
            with server.client(timeout=30) as client:
                for i in range(40):
                    reply = client.call("SET", f"filler:{i}", rng.randbytes(1 << 20))
                    assert reply == Reply("simple", b"OK"), reply
            load_until(survivors, server, rng.uniform(*LOAD_SECONDS), server.kill)
            server.start()
            with server.client() as client:
                for survivor in survivors:
                    survivor.settle(client)
                assert client.call("STRLEN", "filler:39").value == 1 << 20
                check_key_count(client, total_keys(survivors) + 40)


@pytest.mark.parametrize("appendfsync", ["always", "everysec", "no"])
def test_sigterm_under_load(engine, rng, appendfsync):
    survivors = [Survivor(f"w{i}", random.Random(rng.random())) for i in range(WRITERS)]
    with ingot(engine, appendfsync=appendfsync) as server:
        for _ in range(5 if FULL else 2):
            load_until(survivors, server, rng.uniform(0.2, 0.5), lambda: server.signal(signal.SIGTERM))
            assert server.wait() == 0, server.log_tail()
            server.start()
            settle_all(survivors, server)
