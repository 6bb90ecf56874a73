"""P3: a MULTI block and a command of several keys are seen all or none, also after kill -9."""

import random
import time

import pytest
from harness import OK, Crew, ingot
from support.effort import FULL
from support.resp import CLOSED

KEYS = [f"part:{i}" for i in range(6)]
COUNTERS = [f"counter:{i}" for i in range(5)]
LARGE_BYTES = 20000  # kept in chunks, so it is written in another place than the small ones
WRITERS = 3
READERS = 4
SECONDS = 15 if FULL else 3
CRASHES = 20 if FULL else 4


def write_blocks(server, name, stop):
    """Sets all keys to one stamp, in a MULTI block or an MSET; counts all counters up together."""
    stamp = 0
    with server.client() as client:
        while not stop.is_set():
            stamp += 1
            text = f"{name}-{stamp}."
            values = [text] * (len(KEYS) - 1) + [text * (LARGE_BYTES // len(text))]
            pairs = [part for pair in zip(KEYS, values) for part in pair]
            if stamp % 3 == 0:
                commands = [("MSET", *pairs)]
            elif stamp % 3 == 1:
                commands = [("MULTI",), *(("SET", k, v) for k, v in zip(KEYS, values)), ("EXEC",)]
            else:
                commands = [("MULTI",), ("DEL", *KEYS), ("MSET", *pairs), ("EXEC",)]
            commands += [("MULTI",), *(("INCR", counter) for counter in COUNTERS), ("EXEC",)]
            replies = client.pipeline(commands)
            if replies[-1] == CLOSED:
                return
            assert len({reply.value for reply in replies[-1].value}) == 1, replies[-1]


def stamps(replies):
    return {None if reply.is_null() else reply.value.split(b".")[0] for reply in replies}


def check_one_state(replies):
    parts, counters = replies[: len(KEYS)], replies[len(KEYS) :]
    assert len(stamps(parts)) == 1, f"parts of several writes together: {stamps(parts)}"
    numbers = {reply.value for reply in counters}
    assert len(numbers) == 1, f"counters of several blocks together: {numbers}"


def read_states(server, how, seen, stop):
    with server.client() as client:
        while not stop.is_set():
            if how == "mget":
                replies = client.call("MGET", *KEYS, *COUNTERS).value
            else:
                commands = [("MULTI",), ("MGET", *KEYS), *(("GET", c) for c in COUNTERS), ("EXEC",)]
                first, *rest = client.pipeline(commands)[-1].value
                replies = first.value + rest
            check_one_state(replies)
            seen.update(stamps(replies[: len(KEYS)]))


@pytest.mark.parametrize("cache", ["warm", "tiny"])
def test_blocks_are_seen_all_or_none(engine, cache):
    """tiny: reads and writes often find their blocks not in memory and run again."""
    options = {"maxmemory": "24mb", "cache-size": "1mb"} if cache == "tiny" else {}
    with ingot(engine, **options) as server:
        seen = set()
        with Crew() as crew:
            for number in range(WRITERS):
                crew.add(write_blocks, server, f"w{number}", crew.stop)
            for number in range(READERS):
                crew.add(read_states, server, ("mget", "exec")[number % 2], seen, crew.stop)
            crew.run_for(SECONDS)
        print(f"{len(seen)} different states seen")
        assert len(seen) > 20


def test_blocks_survive_a_crash_all_or_none(engine, rng):
    with ingot(engine) as server:
        for _ in range(CRASHES):
            with Crew() as crew:
                for number in range(WRITERS):
                    crew.add(write_blocks, server, f"w{number}-{rng.random()}", crew.stop)
                crew.run_for(rng.uniform(0.1, 0.5))
                server.kill()
            server.start()
            with server.client() as client:
                check_one_state(client.call("MGET", *KEYS, *COUNTERS).value)


def test_watched_blocks_lose_no_update(engine, rng):
    """WATCH, GET, MULTI, SET, EXEC by several clients on one key: each success counts once."""
    successes = []

    def add_one(seed):
        choose = random.Random(seed)
        deadline = time.monotonic() + 60
        won = 0
        with server.client() as client:
            while won < 40 and time.monotonic() < deadline:
                assert client.call("WATCH", "sum") == OK
                value = int(client.call("GET", "sum").value or 0)
                if choose.random() < 0.2:
                    client.call("UNWATCH")
                    continue
                done = client.pipeline([("MULTI",), ("SET", "sum", value + 1), ("EXEC",)])[-1]
                won += not done.is_null()
        successes.append(won)

    with ingot(engine) as server:
        with Crew() as crew:
            for _ in range(5):
                crew.add(add_one, rng.random())
            crew.wait(80)
        with server.client() as client:
            assert int(client.call("GET", "sum").value) == sum(successes) == 5 * 40
