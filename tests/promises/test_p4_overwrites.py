"""P4 for keys that are overwritten unread, because memory does not have them: DBSIZE is exact at any time, what they
held is settled by itself, and so it is after kill -9 in the middle."""

import random

import pytest
from harness import Crew, eventually
from support.effort import FULL
from support.servers import Server, self_check
from test_p8_check import ingot_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis has all keys in memory")

KEYS = 40_000
VALUE_BYTES = 500  # more than memory in all
ROUNDS = 20 if FULL else 3
PIPELINE = 200


def cold_server(**options):
    # LevelDB cannot tell what is in memory: there everything is read, as ever.
    return Server.ingot("rocksdb", {"maxmemory": "32mb", "direct-reads": "yes", **options})


def load(client, noise):
    for first in range(0, KEYS, 1000):
        client.pipeline([("SET", f"k{number}", noise.randbytes(VALUE_BYTES)) for number in range(first, first + 1000)])


def overwrite(server, seed, stop):
    """Of all keys and as many new ones, some for a while only, some large; ends when the server goes."""
    noise = random.Random(seed)
    with server.client(timeout=30) as client:
        while not stop.is_set():
            commands = []
            for _ in range(PIPELINE):
                key = f"k{noise.randrange(KEYS * 5 // 4)}"
                commands.append(noise.choice([
                    ("SET", key, noise.randbytes(VALUE_BYTES)), ("MSET", key, "1", key + "0", "2"), ("SETEX", key, 5000, "x"),
                    ("DEL", key), ("RPUSH", key + ":large", noise.randbytes(1500)), ("SET", key + ":large", "x"),
                ]))  # fmt: skip
            try:
                client.pipeline(commands)
            except OSError:
                return


def threads(server):
    with server.client(timeout=30) as client:
        lines = client.call("INFO", "threads").text().splitlines()
    return {name: int(value) for name, _, value in (line.partition(":") for line in lines) if value.isdigit()}


def settled(server):
    return threads(server)["key_counts_settled"] == 1


def count_by_scan(server):
    keys, expiring = set(), 0
    with server.client(timeout=60) as client:
        cursor = b"0"
        while True:
            cursor, found = (part.value for part in client.call("SCAN", cursor, "COUNT", 5000).value)
            names = [name.value for name in found]
            expiring += sum(reply.value >= 0 for reply in client.pipeline([("TTL", name) for name in names]))
            keys.update(names)
            if cursor == b"0":
                return len(keys), expiring


def noted(server):
    with server.client() as client:
        line = client.call("INFO", "keyspace").text().splitlines()[1]
    fields = dict(field.split("=") for field in line.partition(":")[2].split(","))
    return int(fields["keys"]), int(fields["expires"])


def check(server):
    """Right now, and when it is settled."""
    with server.client(timeout=60) as client:
        keys, expiring = count_by_scan(server)
        assert client.call("DBSIZE").value == keys
        eventually(lambda: settled(server), 30, "settled by itself")
        assert noted(server) == (keys, expiring)
        assert client.call("DBSIZE").value == keys


@pytest.mark.seconds(150)
def test_kills(rng):
    with cold_server() as server:
        with server.client() as client:
            load(client, random.Random(1))
        for number in range(ROUNDS):
            with Crew() as crew:
                crew.add(overwrite, server, rng.random(), crew.stop)
                crew.run_for(rng.uniform(0.3, 1.5))
                assert threads(server)["unread_overwrites"] > 0
                server.kill() if number % 2 == 0 else server.stop()
            code, said = ingot_check(server.directory)
            assert code == 0, said
            server.start()
            check(server)


def test_estimate():
    with cold_server(**{"key-count": "estimate"}) as server, server.client() as client:
        load(client, random.Random(1))
        eventually(lambda: settled(server), 30, "settled by itself")
        client.pipeline([("SET", f"k{number}", "new") for number in range(0, KEYS, 7)])
        assert abs(client.call("DBSIZE").value - KEYS) < KEYS // 20
        eventually(lambda: settled(server), 30, "settled by itself")
        assert client.call("DBSIZE").value == KEYS
