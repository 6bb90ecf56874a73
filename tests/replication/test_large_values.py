"""Values of megabytes in the stream: they come to the backlog while they arrive, and to a replica's engine as well."""

import threading
import time

import pytest
from pairs import Proxy, assert_same, eventually, info, peak_mb, wait_in_step, wait_up
from support.effort import FULL
from support.replica import Replica
from support.servers import Server

MB = 1 << 20
ROUNDS = 40 if FULL else 4
KINDS = {
    "redis": lambda engine, options: Server.redis(options | {"appendonly": "no"}),
    "ingot": lambda engine, options: Server.ingot(engine, options),
}


def master_of(engine, options=None):
    return Server.ingot(engine, {"repl-backlog-size": "256mb"} | (options or {}))


def follower(kind, engine, port):
    return KINDS[kind](engine, {"replicaof": ["127.0.0.1", str(port)], "repl-timeout": "10"})


def parts(server):
    return sorted((server.directory / "ingot-backlog").glob("*.part"))


def large_commands(rng):
    """Each kind of command that takes a large value, alone and in EXEC, between small ones."""
    def value():
        return rng.randbytes(rng.randint(MB - 2, 3 * MB))

    key = b"large%d" % rng.randrange(3)
    return [
        ["INCR", "n"],
        *rng.choice([
            [["SET", key, value()]],
            [["SET", key, value(), "PX", "100000"]],
            [["SETNX", key, value()]],  # is not told, perhaps
            [["SETEX", key, "1000", value()]],
            [["GETSET", key, value()]],
            [["APPEND", key, value()]],
            [["SETRANGE", key, str(rng.randrange(MB)), value()]],
            [["HSET", "hash", key, value()], ["RPUSH", "list", value(), value()]],  # are held
            [["MULTI"], ["SET", key, value()], ["INCR", "n"], ["APPEND", key, value()], ["EXEC"]],
            [["MULTI"], ["SET", key, value()], ["DISCARD"]],
            [["SELECT", "2"], ["SET", key, value()], ["SELECT", "0"]],
        ]),
        ["INCR", "n"],
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_come_to_the_same_data(engine, kind, rng):
    with master_of(engine) as master, follower(kind, engine, master.port) as replica:
        wait_up(replica)
        with master.client(timeout=60) as client:
            for _ in range(4 * ROUNDS):
                for words in large_commands(rng):
                    client.call(*words)
            dump = client.call("DUMP", "large0").value or client.call("DUMP", "large1").value
            client.call("RESTORE", "restored", "0", dump)
            assert parts(master), "no value went to the backlog as it was"
        assert_same(master, replica)


def test_a_chain_passes_them_on(engine, rng):
    with master_of(engine) as master, Proxy(master.port) as proxy:
        with follower("ingot", engine, proxy.port) as middle, follower("redis", engine, middle.port) as last:
            wait_up(last)
            for round_number in range(ROUNDS):
                with master.client(timeout=60) as client:
                    for words in large_commands(rng):
                        client.call(*words)
                if round_number % 2:
                    middle.restart(kill=True)
            assert_same(master, middle)
            assert_same(middle, last)
            assert info(master.client(), "stats")["sync_full"] == "1"


def test_cuts_and_kills_in_the_middle_of_them(engine, rng):
    limits = [rng.randrange(8 * MB) for _ in range(2 * ROUNDS)]
    with master_of(engine) as master, Proxy(master.port, limits) as proxy:
        with follower("ingot", engine, proxy.port) as replica:
            for _ in range(ROUNDS):
                writer = threading.Thread(target=write_on, args=(master, rng.randrange(1 << 30)))
                writer.start()
                time.sleep(rng.uniform(0.05, 0.4))
                rng.choice([master, replica]).restart(kill=True)
                writer.join()
            wait_up(replica)
            assert_same(master, replica)
            leftovers = list((master.directory / "ingot-backlog").glob("temp-*"))
            assert not leftovers


def write_on(master, seed):
    import random

    rng = random.Random(seed)
    try:
        with master.client(timeout=60) as client:
            for _ in range(6):
                for words in large_commands(rng):
                    client.call(*words)
    except (ConnectionError, EOFError, OSError):
        pass


def test_what_is_not_told_leaves_nothing(engine):
    """Neither the value of a command that changed nothing, nor that of a client that went away, nor old parts."""
    with master_of(engine, {"repl-backlog-size": "4mb"}) as master, master.client(timeout=60) as client:
        with Replica(master.port) as replica:
            client.call("SET", "k", "v")
            assert client.call("SET", "k", b"x" * 3 * MB, "NX").value is None
            with master.client() as leaving:
                leaving.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n" + b"x" * 2 * MB)
                eventually(lambda: list((master.directory / "ingot-backlog").glob("temp-*")), "it is not under way")
            eventually(lambda: not list((master.directory / "ingot-backlog").glob("temp-*")), "files are left")
            assert not parts(master)
            for i in range(6):
                client.call("SET", "k", b"%d" % i * 3 * MB)
                assert replica.commands_until(client)[-1] == [b"SET", b"k", b"%d" % i * 3 * MB]
            eventually(lambda: len(parts(master)) <= 2, "old ones stay")


def test_a_large_value_takes_little_memory_on_both_sides(engine):
    size = (256 if FULL else 96) * MB
    with master_of(engine) as master, follower("ingot", engine, master.port) as replica:
        wait_up(replica)
        with master.client(timeout=120) as client:
            client.call("SET", "warm", b"x" * 8 * MB)
            wait_in_step(master, replica)
            before = [peak_mb(server) for server in (master, replica)]
            client.call("SET", "k", b"y" * size)
        wait_in_step(master, replica, 120)
        grown = [peak_mb(server) - was for server, was in zip((master, replica), before, strict=True)]
        assert max(grown) < 80, f"{grown} MB for {size // MB}"
        assert_same(master, replica)


def test_a_backlog_that_takes_no_file_costs_no_write(engine, rng):
    """Its directory turns into something that cannot be written to: the replica needs all of the data."""
    with master_of(engine) as master, follower("ingot", engine, master.port) as replica:
        wait_up(replica)
        with master.client() as client:
            client.call("SET", "k", "v")
        path = master.directory / "ingot-backlog"
        for each in path.iterdir():
            each.unlink()
        path.rmdir()
        path.write_text("in the way")
        with master.client(timeout=60) as client:
            for i in range(5):
                assert client.call("SET", f"k{i}", rng.randbytes(2 * MB)).value == b"OK"
        assert_same(master, replica)
