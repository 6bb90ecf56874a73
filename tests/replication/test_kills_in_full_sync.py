"""kill -9 at every stage of a full synchronization, of either side: the replica has its old data or the new ones, whole, and
what broken attempts have left goes."""

import os
import subprocess
import threading
import time

import pytest
from pairs import Load, assert_same, eventually, state
from support.effort import FULL
from support.servers import Server, ingot_binary

ROUNDS = 50 if FULL else 3
OPTIONS = {"repl-timeout": "10"}
SECONDS_MAX = 2.0  # of a full synchronization, about


def fill(client, rng):
    """All forms of values: some 20 MB."""
    for database in range(2):
        client.call("SELECT", database)
        for at in range(0, 20_000, 1000):
            client.pipeline([["SET", f"k{at + i}", rng.randbytes(rng.randrange(300))] for i in range(1000)])
        client.call("SET", "large", rng.randbytes(3_000_000))
        for kind, command in (("set", "SADD"), ("list", "RPUSH")):
            client.call(command, kind, *range(20_000))
        client.call("HSET", "hash", *range(20_000))
        client.call("ZADD", "zset", *range(20_000))
        client.call("HEXPIRE", "hash", "1000", "FIELDS", "1", "0")
        client.call("FUNCTION", "LOAD", "REPLACE", "#!lua name=one\nredis.register_function('f', function() return 1 end)")
    client.call("SELECT", 0)


def follow(server, master):
    with server.client() as client:
        client.call("REPLICAOF", *(["127.0.0.1", master.port] if master else ["NO", "ONE"]))


def check(server):
    """Of a server that was killed."""
    program = os.path.join(os.path.dirname(os.path.abspath(ingot_binary())), "ingot-check")
    done = subprocess.run([program, server.directory], capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def renew(replica, rng):
    """Data and a past of its own, so that only all of the data will do. What they are."""
    follow(replica, None)
    with replica.client(timeout=60) as client:
        client.call("FLUSHALL")
        client.pipeline([["RPUSH", f"mine{i % 7}", rng.randbytes(20)] for i in range(2000)])
    return state(replica)


@pytest.mark.parametrize("killed", ["replica", "master"])
def test_old_data_or_new(engine, killed, rng):
    """Nobody writes meanwhile, so it is known what both are."""
    with Server.ingot(engine, OPTIONS) as master, Server.ingot(engine, OPTIONS) as replica:
        with master.client(timeout=60) as client:
            fill(client, rng)
        new = state(master)
        for number in range(ROUNDS):
            old = renew(replica, rng)
            follow(replica, master)
            time.sleep(SECONDS_MAX * (number + rng.random()) / ROUNDS)
            if killed == "replica":
                replica.kill()
                check(replica)
                replica.start()  # as one who follows nobody
            else:
                master.kill()
                follow(replica, None)
            found = state(replica)
            print(number, "old" if found == old else "new")
            assert found in (old, new), replica.log_tail()
            if killed == "master":
                master.start()
        follow(replica, master)
        assert_same(master, replica)


def attack(client, rng):
    """What changes much at once."""
    kind = rng.randrange(6)
    if kind == 0:
        client.call("FLUSHALL")
        fill(client, rng)
    elif kind == 1:
        client.call("SWAPDB", 0, 1)
    elif kind == 2:
        client.call("DEL", "set", "list", "hash", *(f"k{i}" for i in range(5000)))
        client.call("SADD", "set", *range(rng.randrange(10_000)))
    elif kind == 3:
        client.pipeline([["MULTI"], *(["APPEND", f"k{i}", "more"] for i in range(500)), ["SELECT", 1], ["FLUSHDB"], ["SELECT", 0], ["EXEC"]])
    elif kind == 4:
        client.call("EVAL", "for i = 1, 3000 do redis.call('set', 's' .. i, i, 'px', 1 + i % 700) end", 0)
    else:
        client.pipeline([["PEXPIRE", f"k{i}", rng.randrange(1, 1500)] for i in range(3000)])


def test_whatever_changes_meanwhile(engine, rng):
    with Server.ingot(engine, OPTIONS) as master, Server.ingot(engine, OPTIONS) as replica:
        load = Load(rng)
        with master.client(timeout=60) as client:
            fill(client, rng)
            for number in range(ROUNDS):
                renew(replica, rng)
                follow(replica, master)
                writer = threading.Thread(target=load.run, args=(master, 1000))
                writer.start()
                until = time.monotonic() + rng.uniform(0, SECONDS_MAX)
                while time.monotonic() < until:
                    attack(client, rng)
                if number % 2 == 0:
                    replica.kill()
                    replica.start()
                    follow(replica, master)
                elif number % 4 == 1:
                    follow(replica, None)
                    follow(replica, master)
                writer.join()
                assert_same(master, replica)


def test_what_broken_attempts_leave_goes(engine, rng):
    """Of the disk as well."""

    def used():
        return sum(each.stat().st_size for each in (replica.directory / "ingot-data").rglob("*") if each.is_file())

    with Server.ingot(engine, OPTIONS) as master, Server.ingot(engine, OPTIONS) as replica:
        with master.client(timeout=60) as client:
            fill(client, rng)
        renew(replica, rng)
        begin = used()
        for _ in range(ROUNDS):
            follow(replica, master)
            time.sleep(rng.uniform(0.1, SECONDS_MAX / 2))
            follow(replica, None)
        with replica.client(timeout=60) as client:
            client.call("FLUSHALL")
            for _ in range(30):  # what the engine keeps for the last writes
                client.pipeline([["SET", "k", "x" * 50_000]] * 40)
            eventually(lambda: used() < begin + (60 << 20), lambda: f"{begin} bytes have become {used()}", 60)
