"""Clients that keep what they have read (CLIENT TRACKING): when everything is quiet, whatever one still keeps is what
the server has. No invalidation is lost or comes before the old value that it is about, however reads and writes race."""

import random
import threading
import time

import pytest
from harness import Crew, eventually, info, ingot
from support.resp import Timeout
from support.servers import self_check

HOT, COLD = 40, 3000
VALUE_BYTES = 1000
ROUNDS = 12
ROUND_SECONDS = 0.5
OPTIONS = {} if self_check() else {"maxmemory": "24mb", "direct_reads": "yes", "io_threads": 3}


class Cache:
    """One tracking client, that does what client libraries do: keeps replies, drops what is invalidated."""

    def __init__(self, server, mode):
        self.client = server.client(protocol=3, timeout=30)
        self.kept = {}
        self.dropped = 0
        assert not self.client.call("CLIENT", "TRACKING", "ON", *mode).is_error()

    def next_reply(self, timeout=None):
        """The next reply that is no push; what is pushed before it is done."""
        while True:
            reply = self.client.read(timeout)
            if reply.kind != "push":
                return reply
            self.drop(reply.value[1])

    def drop(self, keys):
        self.dropped += 1
        if keys.is_null():
            return self.kept.clear()
        for key in keys.value:
            self.kept.pop(key.value, None)
        return None

    def read_some(self, random_):
        """A pipeline of reads, alone, several at once, or in a transaction, among writes of its own."""
        asked = []
        for _ in range(random_.randrange(1, 12)):
            keys = [some_key(random_) for _ in range(random_.choice((1, 1, 1, 3)))]
            kind = random_.choice(("GET", "GET", "GET", "MGET", "EXEC", "EXEC and SET", "SET"))
            if kind == "GET":
                self.client.send("GET", keys[0])
                asked.append((kind, keys[:1]))
            elif kind == "MGET":
                self.client.send("MGET", *keys)
                asked.append((kind, keys))
            elif kind == "SET":
                self.client.send("SET", keys[0], some_value(random_))
                asked.append((kind, []))
            else:
                self.client.send("MULTI")
                self.client.send("MGET", *keys)
                if kind == "EXEC and SET":
                    self.client.send("SET", "own", some_value(random_))
                self.client.send("EXEC")
                asked.append((kind, keys))
        for kind, keys in asked:
            self.take(kind, keys)

    def take(self, kind, keys):
        if kind.startswith("EXEC"):
            for _ in range(3 if kind == "EXEC and SET" else 2):
                self.next_reply()
        reply = self.next_reply()
        assert not reply.is_error(), reply
        if kind == "SET":
            return
        values = [reply] if kind == "GET" else (reply if kind == "MGET" else reply.value[0]).value
        for key, value in zip(keys, values):
            self.kept[key.encode()] = value.value

    def settle(self):
        """Takes in what is still on its way."""
        for _ in range(3):
            self.client.send("ECHO", "x")
            self.next_reply()
        try:
            while True:
                self.drop(self.client.read(0.1).value[1])
        except Timeout:
            pass


def some_key(random_):
    return f"hot:{random_.randrange(HOT)}" if random_.random() < 0.7 else f"cold:{random_.randrange(COLD)}"


def some_value(random_):
    return b"%x" % random_.getrandbits(4 * VALUE_BYTES)


def write(server, seed, go_on):
    random_ = random.Random(seed)
    with server.client(timeout=30) as client:
        while go_on():
            commands = []
            for _ in range(random_.randrange(1, 20)):
                key = some_key(random_)
                commands += random_.choice((
                    [("SET", key, some_value(random_))],
                    [("SET", key, some_value(random_))],
                    [("DEL", key)],
                    [("SET", key, "soon gone", "PX", random_.randrange(1, 60))],
                    [("MULTI",), ("SET", key, some_value(random_)), ("APPEND", some_key(random_), "x"), ("EXEC",)],
                    [("RENAME", key, some_key(random_))],
                    [("COPY", key, some_key(random_), "REPLACE")],
                ))  # fmt: skip
            if random_.random() < 0.002:
                commands.append(("FLUSHDB",))
            client.pipeline(commands)


def refill(server):
    with server.client(timeout=60) as client:
        client.pipeline([("SET", f"cold:{n}", "x" * VALUE_BYTES) for n in range(COLD)])


def check(server, cache):
    cache.settle()
    with server.client(timeout=30) as client:
        keys = sorted(cache.kept)
        values = client.call("MGET", *keys).value if keys else []
        wrong = [key for key, value in zip(keys, values) if value.value != cache.kept[key]]
    assert not wrong, f"{len(wrong)} of {len(keys)} keys that are kept are stale: {wrong[:5]}"
    return len(keys)


@pytest.mark.seconds(120)
@pytest.mark.parametrize("mode", [(), ("BCAST",)], ids=["default", "bcast"])
def test_what_is_kept_is_what_there_is(engine, rng, mode):
    with ingot(engine, **OPTIONS) as server:
        caches = [Cache(server, mode) for _ in range(4)]
        seeds = [rng.randrange(1 << 30) for _ in range(8)]
        kept = 0
        for number in range(ROUNDS):
            refill(server)
            end = time.monotonic() + ROUND_SECONDS
            with Crew() as crew:
                for seed in seeds[:3]:
                    crew.add(write, server, seed + number, lambda: time.monotonic() < end)
                for seed, cache in zip(seeds[3:], caches):
                    crew.add(read_on, cache, seed + number, end)
                crew.wait(60)
            with server.client() as client:  # what is to expire soon has done so
                eventually(lambda: b"expires=0" in client.call("INFO", "keyspace").value
                           or b"db0" not in client.call("INFO", "keyspace").value, 10, "all has expired")  # fmt: skip
            kept += sum(check(server, cache) for cache in caches)
        print(f"{kept} values were kept at the ends, {sum(cache.dropped for cache in caches)} invalidations came")
        assert kept > 0 and all(cache.dropped > 0 for cache in caches)
        for cache in caches:
            cache.client.close()
        with server.client() as client:
            eventually(lambda: info(client, "stats")["tracking_total_items"] == "0", 10, "nothing is remembered")


def read_on(cache, seed, end):
    random_ = random.Random(seed)
    while time.monotonic() < end:
        cache.read_some(random_)


@pytest.mark.seconds(60)
def test_whoever_begins_in_the_middle_misses_nothing(engine, rng):
    """TRACKING is turned on and off while others write: what was read after ON is told of."""
    with ingot(engine, **OPTIONS) as server:
        stop = threading.Event()
        with Crew() as crew:
            for _ in range(2):
                crew.add(write, server, rng.randrange(1 << 30), lambda: not stop.is_set())
            for _ in range(60):
                cache = Cache(server, ())
                random_ = random.Random(rng.randrange(1 << 30))
                for _ in range(5):
                    cache.read_some(random_)
                # Every hot key that it keeps is changed before long, or equal.
                deadline = time.monotonic() + 10
                while any(key.startswith(b"hot:") for key in cache.kept):
                    assert time.monotonic() < deadline, "it was never told of a key that changes all the time"
                    try:
                        cache.drop(cache.client.read(0.5).value[1])
                    except Timeout:
                        pass
                cache.client.close()
            stop.set()


@pytest.mark.seconds(60)
def test_the_table_is_bounded(engine):
    """Names of a kilobyte each: they count as memory, too."""
    with ingot(engine, **({} if self_check() else {"maxmemory": "64mb"})) as server:
        cache = Cache(server, ())
        name = "n" * 1000
        for start in range(0, 60_000, 500):
            for n in range(start, start + 500):
                cache.client.send("GET", f"{name}:{n}")
            for _ in range(500):
                cache.next_reply()
        cache.settle()
        with server.client() as client:
            keys = int(info(client, "stats")["tracking_total_keys"])
        print(f"{keys} of 60,000 keys are remembered")
        if not self_check():
            assert 5000 < keys < 20_000  # 16 MB of them
            assert keys + cache.dropped == 60_000
        cache.client.close()


@pytest.mark.seconds(60)
def test_a_client_that_tracks_and_never_reads_is_cut(engine):
    with ingot(engine) as server, server.client() as client:
        client.call("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0")
        lazy = server.client(protocol=3)
        lazy.call("CLIENT", "TRACKING", "ON", "BCAST")
        for number in range(200):
            assert not client.pipeline([("SET", f"key:{number}:{n}:" + "x" * 200, "v") for n in range(200)])[-1].is_error()
        eventually(lambda: info(client, "clients")["tracking_clients"] == "0", 10, "it is cut")
        lazy.close()
