"""WATCH and keys that had expired before: they do not break a transaction by going away.

Every scenario runs with the watched key stale, absent and live, on both servers.
"""

import time

import pytest

SCENARIOS = {
    "flushdb": ["FLUSHDB"],
    "flushall": ["FLUSHALL"],
    "flush and set": ["FLUSHDB", "SET k x"],
    "del": ["DEL k"],
    "get": ["GET k"],
    "set": ["SET k x"],
    "set and del": ["SET k x", "DEL k"],
    "expire": ["EXPIRE k 100"],
    "persist": ["PERSIST k"],
    "rename": ["SET o 1", "RENAME o k"],
    "swapped for nothing": ["SWAPDB 0 1"],
    "swapped for a key": ["SELECT 1", "SET k v", "SELECT 0", "SWAPDB 0 1"],
    "swapped for a stale key": ["SELECT 1", "SET k v PX 1", "SELECT 0", "SWAPDB 0 1"],
    "swapped twice": ["SWAPDB 0 1", "SWAPDB 0 1"],
    "swapped and set": ["SWAPDB 0 1", "SET k x"],
    "removed in time": ["DEBUG SET-ACTIVE-EXPIRE 1"],
}
BEFORE = {
    "stale": ["SET k v PX 1"],
    "absent": [],
    "live": ["SET k v"],
}
# Until what is stale is so for certain, and what is to be removed is gone.
PAUSE_SECONDS = {"SET-ACTIVE-EXPIRE": 0.25, "PX": 0.005}


def run(server, lines, before):
    with server.client() as watcher, server.client() as other:

        def send(script):
            for line in script:
                other.call(*line.split())
                time.sleep(sum(pause for word, pause in PAUSE_SECONDS.items() if f"{word} 1" in line))

        other.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        send(before)
        watcher.call("WATCH", "k")
        send(lines)
        watcher.call("MULTI")
        watcher.call("PING")
        reply = watcher.call("EXEC")
        other.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        return reply


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", SCENARIOS)
def test_watch(empty_pair, name, before):
    expected, actual = (
        run(server, SCENARIOS[name], BEFORE[before]) for server in empty_pair.servers
    )
    assert actual == expected
