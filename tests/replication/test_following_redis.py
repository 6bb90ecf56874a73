"""Ingot follows a real redis-server: whatever happens to either of them or to the link, both end the same."""

import threading
import time

import pytest
from pairs import (Load, Proxy, assert_same, eventually, info, is_up, redis_master, replica_of, state, wait_in_step,
                   wait_up)  # fmt: skip
from support.effort import FULL
from support.servers import Server

COMMANDS = 20_000 if FULL else 5_000
ROUNDS = 50 if FULL else 4


def full_syncs(master):
    with master.client() as client:
        return int(info(client, "stats")["sync_full"])


def test_the_stream_of_random_commands(engine, rng):
    with redis_master() as master, replica_of(master, engine) as replica:
        wait_up(replica)
        load = Load(rng)
        for _ in range(3):
            load.run(master, COMMANDS)
            assert_same(master, replica)
        assert full_syncs(master) == 1


def test_large_collections_off_the_inline_form(engine, rng):
    options = {"inline-max-bytes": "0"}
    with redis_master() as master, replica_of(master, engine, options) as replica:
        wait_up(replica)
        Load(rng).run(master, COMMANDS)
        assert_same(master, replica)


def test_data_that_were_there_before(engine, rng):
    with redis_master() as master:
        load = Load(rng, everything=False)
        load.run(master, COMMANDS)
        with replica_of(master, engine) as replica:
            wait_up(replica)
            assert_same(master, replica)
            load.run(master, COMMANDS)
            assert_same(master, replica)


def test_the_old_data_go_when_the_new_ones_are_there(engine, rng):
    with redis_master() as master, replica_of(master, engine, {"replicaof": None}) as replica:
        with replica.client() as client:
            Load(rng).run(replica, 2000)
            client.call("SET", "only here", "x")
            Load(rng, everything=False).run(master, 2000)
            assert client.call("REPLICAOF", "127.0.0.1", master.port).value == b"OK"
            wait_up(replica)
            assert client.call("EXISTS", "only here").value == 0
        assert_same(master, replica)


def while_loaded(master, load, rounds, disturb):
    """Runs the load beside `disturb`, so often."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            load.run(master, 500)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(rounds):
            disturb()
    finally:
        stop.set()
        thread.join()


def test_kills_of_the_replica(engine, rng):
    """Nothing is applied twice or skipped, and the data need not come again."""
    with redis_master() as master, replica_of(master, engine) as replica:
        wait_up(replica)

        def disturb():
            time.sleep(rng.uniform(0.05, 0.6))
            replica.restart(kill=True)
            if rng.random() < 0.7:
                wait_up(replica)

        while_loaded(master, Load(rng), ROUNDS, disturb)
        assert_same(master, replica)
        assert full_syncs(master) == 1


def test_restarts_of_the_replica(engine, rng):
    with redis_master() as master, replica_of(master, engine) as replica:
        wait_up(replica)
        load = Load(rng)
        for _ in range(3):
            load.run(master, 300)
            replica.restart()
        assert_same(master, replica)
        assert full_syncs(master) == 1


def test_cuts_of_the_link_at_any_byte(engine, rng):
    with redis_master() as master:
        limits = [rng.randrange(1, rng.choice([300, 5_000, 500_000])) for _ in range(ROUNDS * 2)]
        with Proxy(master.port, limits) as proxy, replica_of(master, engine, port=proxy.port) as replica:
            while_loaded(master, Load(rng), ROUNDS, lambda: time.sleep(0.7))
            proxy.limits = iter(())  # a transaction longer than most of them would never come
            assert_same(master, replica)
            assert proxy.accepted > 2


def test_kills_of_the_master(engine, rng):
    """It comes back as another one: with other data, all of which come."""
    with redis_master({"appendonly": "yes"}) as master, replica_of(master, engine) as replica:
        wait_up(replica)
        load = Load(rng, everything=False)
        for _ in range(ROUNDS // 2):
            load.run(master, 1000)
            master.restart(kill=True)
            assert_same(master, replica)


def test_a_new_master(engine, rng):
    """From one to another, and on as a master of its own."""
    with redis_master() as first, redis_master() as second, replica_of(first, engine) as replica:
        Load(rng).run(first, 1000)
        Load(rng, everything=False).run(second, 1000)
        assert_same(first, replica)
        with replica.client() as client:
            assert client.call("REPLICAOF", "127.0.0.1", second.port).value == b"OK"
            assert_same(second, replica)
            before = info(client)
            assert client.call("REPLICAOF", "NO", "ONE").value == b"OK"
            assert client.call("SET", "mine", "now").value == b"OK"
            kept = state(replica)
            with second.client() as writer:
                writer.call("SET", "not mine", "x")
            eventually(lambda: info(client)["role"] == "master", "still a replica")
            after = info(client)
            assert after["master_replid"] != before["master_replid"]
            assert state(replica) == kept


def test_a_master_that_stands_still(engine):
    with redis_master({"repl-ping-replica-period": "1"}) as master:
        with replica_of(master, engine, {"repl-timeout": "2"}) as replica, replica.client() as client:
            wait_up(replica)
            time.sleep(3)  # its PINGs alone
            assert is_up(client)
            import signal

            master.signal(signal.SIGSTOP)
            try:
                eventually(lambda: not is_up(client), "a silent master is not noticed", 10)
            finally:
                master.signal(signal.SIGCONT)
            wait_up(replica)


def test_expiry_is_the_masters(engine):
    with redis_master() as master, replica_of(master, engine) as replica:
        wait_up(replica)
        with master.client() as writer, replica.client() as reader:
            writer.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            writer.call("SET", "a", 1, "PX", 100)
            writer.call("HSET", "h", "f", 1)
            writer.call("PEXPIRE", "h", 100)
            writer.call("SET", "b", 5, "PX", 100)
            writer.call("SET", "c", 5)
            wait_in_step(master, replica)
            time.sleep(0.2)
            # Gone for those who read, and there still for the master's commands.
            assert reader.call("GET", "a").is_null()
            assert reader.call("EXISTS", "a", "b", "h", "c").value == 1
            assert reader.call("TTL", "a").value == -2
            assert reader.pipeline([("MULTI",), ("GET", "a"), ("GET", "c"), ("EXEC",)])[-1].value[0].is_null()
            assert reader.call("DBSIZE").value == 4
            assert int(info(reader, "stats")["expired_keys"]) == 0
            # The master's reads remove it, and tell.
            writer.call("GET", "a")
            writer.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)
            eventually(lambda: reader.call("DBSIZE").value == 1, "the master's DEL has not come")
            assert_same(master, replica)
            # As a master it removes what is due by itself.
            writer.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            writer.call("SET", "d", 1, "PX", 50)
            wait_in_step(master, replica)
            reader.call("REPLICAOF", "NO", "ONE")
            eventually(lambda: reader.call("DBSIZE").value == 1, "nothing expires")


def test_clients_see_the_stream(engine):
    """Who waits, watches, tracks or listens learns of what the master does."""
    with redis_master() as master, replica_of(master, engine, {"notify-keyspace-events": "KEA"}) as replica:
        wait_up(replica)
        with master.client() as writer, replica.client() as reader, replica.client() as listener:
            listener.call("SUBSCRIBE", "channel", "__keyevent@0__:set")
            listener.read()
            reader.call("WATCH", "k")
            writer.call("SET", "k", "v")
            writer.call("PUBLISH", "channel", "hello")
            heard = [[each.value for each in listener.read().value] for _ in range(2)]
            assert heard == [[b"message", b"__keyevent@0__:set", b"k"], [b"message", b"channel", b"hello"]]
            assert reader.pipeline([("MULTI",), ("GET", "k"), ("EXEC",)])[-1].is_null()
            reader.send("XREAD", "BLOCK", 10_000, "STREAMS", "s", "$")
            eventually(lambda: int(info(writer, "clients")["connected_clients"]) > 0, "")
            time.sleep(0.2)
            writer.call("XADD", "s", "1-1", "f", "v")
            assert reader.read().value[0].value[0].value == b"s"


@pytest.mark.parametrize("key", ["in both", "gone", "new"])
def test_watched_key_that_all_of_the_data_change(engine, key):
    with redis_master() as first, redis_master() as second, Server.ingot(engine) as replica:
        for master, only in ((first, "gone"), (second, "new")):
            with master.client() as client:
                client.call("MSET", "in both", master.port, only, "1")
        with replica.client() as client, replica.client() as watcher:
            client.call("REPLICAOF", "127.0.0.1", first.port)
            eventually(lambda: client.call("EXISTS", "gone").value == 1, "no data")
            watcher.call("WATCH", key)
            client.call("REPLICAOF", "127.0.0.1", second.port)
            eventually(lambda: client.call("EXISTS", "new").value == 1, "no data")
            client.call("REPLICAOF", "NO", "ONE")
            assert watcher.pipeline([("MULTI",), ("SET", key, "mine"), ("EXEC",)])[-1].is_null()


@pytest.mark.parametrize("many", [200_000 if FULL else 20_000])
def test_a_pace_with_cold_blocks(engine, rng, many):
    """Every key is on disk when the master changes it again."""
    with redis_master() as master, replica_of(master, engine, {"maxmemory": "64mb"}) as replica:
        wait_up(replica)
        names = [b"key:%d" % i for i in range(many)]
        with master.client(timeout=60) as client:
            for at in range(0, many, 1000):
                client.pipeline([(b"RPUSH", name, b"x" * 100) for name in names[at : at + 1000]])
            wait_in_step(master, replica)
            replica.restart()
            rng.shuffle(names)
            for at in range(0, many, 1000):
                client.pipeline([(b"RPUSH", name, b"y") for name in names[at : at + 1000]])
        assert_same(master, replica)


def test_a_chain(engine, rng):
    """Who follows the replica is told the same, byte for byte, also when the first link was broken."""
    with redis_master() as master:
        with Proxy(master.port) as proxy, replica_of(master, engine, port=proxy.port) as replica:
            wait_up(replica)
            load = Load(rng)
            load.run(master, 500)
            with Server.redis({"replicaof": ["127.0.0.1", str(replica.port)]}) as last:
                wait_up(last)
                load.run(master, 2000)
                proxy.cut()
                load.run(master, 1000)
                assert_same(master, replica)
                assert_same(master, last)
                # Another history from here on: it is told.
                with replica.client() as client, last.client() as other:
                    assert client.call("REPLICAOF", "NO", "ONE").value == b"OK"
                    assert client.call("SET", "a new", "master").value == b"OK"
                    eventually(lambda: other.call("GET", "a new").value == b"master", lambda: last.log_tail())
                    assert info(other)["master_replid"] == info(client)["master_replid"] != info(client)["master_replid2"]
                assert full_syncs(replica) == 1
                assert_same(replica, last)


@pytest.mark.parametrize("kind", ["redis", "ingot"])
def test_a_pause_at_the_replica_holds_back_the_stream(engine, kind):
    """Nothing changes there while it lasts, whatever the master tells, and nothing is lost behind it."""
    with redis_master() if kind == "redis" else Server.ingot(engine) as master, replica_of(master, engine) as replica:
        wait_up(replica)
        with master.client() as client, replica.client() as here:
            client.call("SET", "k", "before")
            wait_in_step(master, replica)
            assert here.call("CLIENT", "PAUSE", "60000", "WRITE").value == b"OK"
            for i in range(3000):
                client.call("SET", f"k{i % 30}", "x" * 3000)  # more than may wait there
            client.call("SET", "k", "behind")
            time.sleep(1.5)
            assert here.call("GET", "k").value == b"before" and here.call("DBSIZE").value == 1
            assert info(here)["master_link_status"] == "up"
            here.call("CLIENT", "UNPAUSE")
            assert_same(master, replica)
            # It ends by itself, and a link ends in it.
            here.call("CLIENT", "PAUSE", "500", "ALL")
            client.call("SET", "k", "later")
            assert_same(master, replica)
            here.call("CLIENT", "PAUSE", "60000", "WRITE")
            client.call("SET", "k", "last")
            time.sleep(0.2)
            assert here.call("REPLICAOF", "NO", "ONE").value == b"OK"
            here.call("CLIENT", "UNPAUSE")
            assert here.call("GET", "k").value == b"later" and here.call("SET", "k", "own").value == b"OK"
