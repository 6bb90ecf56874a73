"""Ingot as the master: of real redis-servers, of other Ingots, and of clients that only say they follow."""

import os
import signal
import socket
import threading
import time

import pytest
from pairs import Load, Proxy, assert_same, connect, eventually, info, peak_mb, wait_in_step, wait_up
from support.effort import FULL
from support.replica import Replica
from support.resp import Client, Timeout
from support.servers import Server

LOAD = 20_000 if FULL else 3_000
ROUNDS = 50 if FULL else 3
LIBRARY = "#!lua name=one\nredis.register_function('f', function() return 1 end)"
MASTER = {"repl-backlog-size": "64mb", "enable-debug-command": "yes"}


def master_of(engine, options=None):
    return Server.ingot(engine, MASTER | (options or {}))


def follower(kind, engine, port, options=None):
    of = {"replicaof": ["127.0.0.1", str(port)], "repl-timeout": "10"} | (options or {})
    return Server.redis(of | {"appendonly": "no"}) if kind == "redis" else Server.ingot(engine, of)


@pytest.mark.parametrize("kind", ["redis", "ingot"])
def test_replica_comes_to_the_same_data(engine, kind, rng):
    """Before, during and after its full sync the master is written to."""
    with master_of(engine) as master:
        load = Load(rng)
        load.run(master, LOAD)
        with follower(kind, engine, master.port) as replica:
            load.run(master, LOAD)
            wait_up(replica)
            load.run(master, LOAD)
            assert_same(master, replica)
            with master.client() as client:
                told = info(client)
                assert told["connected_slaves"] == "1"
                assert info(client, "clients")["connected_clients"] == "1"  # replicas are none, as in Redis
                assert told["slave0"].startswith(f"ip=127.0.0.1,port={replica.port},state=online,offset=")


def test_full_sync_of_four_times_the_memory(engine):
    few = {"maxmemory": "32mb"}
    with master_of(engine, few) as master, master.client(timeout=60) as client:
        for i in range(260):
            names = [f"{i}:{j}" for j in range(1000)]
            values = [os.urandom(250).hex() for _ in names]
            pairs = [word for both in zip(names, values, strict=True) for word in both]
            words = [("MSET", *pairs), ("HSET", "hash", *pairs), ("RPUSH", "list", *values), ("SADD", "set", *values)][i % 4]
            assert not client.call(*words).is_error()
        with follower("ingot", engine, master.port, few) as replica:
            wait_up(replica)
            assert_same(master, replica)
            assert peak_mb(master) < 100
            assert peak_mb(replica) < 100


@pytest.mark.parametrize("kind", ["redis", "ingot"])
def test_replica_whose_link_is_cut_goes_on_where_it_was(engine, kind, rng):
    with master_of(engine) as master, Proxy(master.port) as proxy:
        with follower(kind, engine, proxy.port) as replica:
            wait_up(replica)
            load = Load(rng)
            for _ in range(ROUNDS):
                load.run(master, LOAD // 10)
                proxy.cut()
                load.run(master, LOAD // 10)
                wait_in_step(master, replica)
            assert_same(master, replica)
            with master.client() as client:
                told = info(client, "stats")
                assert told["sync_full"] == "1"
                assert int(told["sync_partial_ok"]) >= ROUNDS


@pytest.mark.parametrize("kind", ["redis", "ingot"])
def test_killed_master_goes_on_where_it_was(engine, kind, rng):
    """Redis would send all of its data again."""
    with master_of(engine) as master, follower(kind, engine, master.port) as replica:
        wait_up(replica)
        load = Load(rng)
        for _ in range(ROUNDS):
            writer = threading.Thread(target=load.run, args=(master, LOAD))
            writer.start()
            time.sleep(rng.uniform(0.05, 0.5))
            master.kill()
            writer.join()
            master.start()
            wait_in_step(master, replica)
            with master.client() as client:
                assert info(client, "stats")["sync_full"] == "0"
        assert_same(master, replica)


def test_killed_replica_goes_on_where_it_was(engine, rng):
    """Nothing is applied twice, and nothing skipped: Redis would need all of the data."""
    with master_of(engine) as master, follower("ingot", engine, master.port) as replica:
        wait_up(replica)
        load = Load(rng)
        for _ in range(ROUNDS):
            writer = threading.Thread(target=load.run, args=(master, LOAD))
            writer.start()
            time.sleep(rng.uniform(0.05, 0.5))
            replica.kill()
            writer.join()
            replica.start()
            wait_in_step(master, replica)
        assert_same(master, replica)
        with master.client() as client:
            assert info(client, "stats")["sync_full"] == "1"


def test_replica_that_starts_removes_nothing_by_itself(engine):
    """What has expired meanwhile it would tell in its master's stream, and the places in that would part."""
    with master_of(engine) as master, follower("ingot", engine, master.port) as replica:
        wait_up(replica)
        with master.client() as client:
            for _ in range(ROUNDS):
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
                client.pipeline([["SET", f"k{i}", "x", "PX", "200"] for i in range(500)])
                wait_in_step(master, replica)
                replica.kill()
                time.sleep(0.3)
                replica.start()
                wait_in_step(master, replica)
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")
            eventually(lambda: client.call("DBSIZE").value == 0, "they are still there")
            assert_same(master, replica)
            assert info(client, "stats")["sync_full"] == "1"


def test_replica_that_names_its_master_after_a_start_keeps_the_stream(engine, rng):
    """Between the start and REPLICAOF it is a master, which would tell what follows under an id of its own."""
    with master_of(engine) as master, Server.ingot(engine, {"repl-timeout": "10"}) as replica:

        def write():  # nothing that expires: as a master it would remove that
            with master.client() as client:
                client.pipeline([["RPUSH", "list", rng.randbytes(50)] for _ in range(300)])

        def follow():
            with replica.client() as client:
                assert client.call("REPLICAOF", "127.0.0.1", master.port).value == b"OK"
            wait_in_step(master, replica)

        follow()
        for _ in range(2):
            write()
            wait_in_step(master, replica)
            replica.kill()
            replica.start()
            follow()
            write()
            with master.client() as client:
                client.call("CLIENT", "KILL", "TYPE", "replica")
            wait_in_step(master, replica)
        assert_same(master, replica)
        with master.client() as client:
            assert info(client, "stats")["sync_full"] == "1"


def test_expiry_of_fields_comes_along(engine):
    """Redis 7.0's form of a hash has no place for it: Ingots agree on one that has."""
    with master_of(engine) as master, master.client() as client:
        fields = [word for i in range(2000) for word in (f"f{i}", "v")]
        client.call("HSET", "large", *fields)
        client.call("HSET", "small", "f1", "v", "f2", "v")
        for key in ("large", "small"):
            client.call("HPEXPIREAT", key, "9999999999999", "FIELDS", "1", "f1")
        with follower("ingot", engine, master.port) as replica:
            wait_up(replica)
            client.call("HPEXPIREAT", "small", "8888888888888", "FIELDS", "1", "f2")
            wait_in_step(master, replica)
            with replica.client() as there:
                for words in (["large", "FIELDS", "2", "f1", "f2"], ["small", "FIELDS", "2", "f1", "f2"]):
                    asked = [one.call("HPEXPIRETIME", *words) for one in (client, there)]
                    assert asked[0] == asked[1]


def test_minus_zero_comes_along(engine):
    """Redis' packed sorted sets have none; one that was large has, also when it has become small. It may come later, and
    the limit may have been another when a set was packed."""
    with master_of(engine) as master, master.client() as client:
        client.call("ZADD", "zeros", "-0", "b" * 100, "-0", "a")
        client.call("ZADD", "later", "1", "b" * 100, "1", "a")
        for key in ("zeros", "later"):
            client.call("ZREM", key, "b" * 100)
        client.call("ZADD", "zeros", "-0", "c")
        client.call("ZADD", "packed", "-0", "a", "1", "b", "2", "c")
        client.call("CONFIG", "SET", "zset-max-listpack-entries", "2")
        limit = {"zset-max-listpack-entries": "2"}
        with follower("ingot", engine, master.port, limit) as replica, replica.client() as there:
            wait_up(replica)
            client.call("ZADD", "later", "-0", "a")
            client.call("ZADD", "packed", "-0", "b")
            assert_same(master, replica)
            asked = [["zeros", "c"], ["later", "a"], ["packed", "a"], ["packed", "b"]]
            assert [there.call("ZSCORE", *words).text() for words in asked] == ["-0", "-0", "0", "0"]


def test_stream_lost_on_a_full_disk_costs_a_full_sync_and_no_write(engine, rng):
    """The backlog's directory turns into something that cannot be written to."""
    with master_of(engine, {"repl-backlog-size": "256kb"}) as master:
        with follower("redis", engine, master.port) as replica:
            wait_up(replica)
            path = master.directory / "ingot-backlog"
            with master.client() as client:
                client.call("SET", "k", "v")
            for each in path.iterdir():
                each.unlink()
            path.rmdir()
            path.write_text("in the way")
            with master.client() as client:
                for i in range(2000):
                    assert client.call("SET", f"k{i}", "x" * 1000).value == b"OK"
            assert_same(master, replica)
            assert master.log_path.read_text().count("the backlog is lost") == 1


def test_slow_replica_costs_no_memory_and_is_cut_at_its_limit(engine):
    options = {"client-output-buffer-limit": ["replica", "8mb", "0", "0"], "maxmemory": "64mb", "repl-timeout": "3600"}
    with master_of(engine, options) as master, Replica(master.port):
        with master.client(timeout=60) as client:
            client.call("SET", "k", "x")
            before = int(info(client, "memory")["used_memory"])
            for _ in range(6):
                client.pipeline([["SET", "k", "y" * 10_000]] * 100)
            assert "flags=S" in client.call("CLIENT", "LIST").text()
            for _ in range(60):
                client.pipeline([["SET", "k", "y" * 10_000]] * 100)
            eventually(lambda: "flags=S" not in client.call("CLIENT", "LIST").text(), "it is not cut")
            assert int(info(client, "memory")["used_memory"]) < before + (40 << 20)


def test_wait_counts_those_who_have_what_was_written(engine):
    with master_of(engine) as master, follower("redis", engine, master.port) as replica:
        wait_up(replica)
        with master.client() as client, replica.client() as there:
            for i in range(200):
                client.call("SET", "k", i)
                assert client.call("WAIT", "1", "5000").value == 1
                assert there.call("GET", "k").value == b"%d" % i
            begin = time.monotonic()
            assert client.call("WAIT", "2", "300").value == 1
            assert 0.25 < time.monotonic() - begin < 3
            assert client.call("WAIT", "0", "0").value in (0, 1)
            assert client.pipeline([["MULTI"], ["SET", "k", "v"], ["WAIT", "1", "0"], ["EXEC"]])[-1].value[0].value == b"OK"


def test_wait_of_a_client_that_leaves_is_forgotten(engine):
    with master_of(engine) as master:
        for _ in range(20):
            leaving = Client(master.port)
            leaving.send("WAIT", "1", "0")
            leaving.close()
        with master.client() as client:
            eventually(lambda: info(client, "clients")["blocked_clients"] == "0", "somebody still waits")
            waiting = Client(master.port)
            number = waiting.call("CLIENT", "ID").value
            waiting.send("WAIT", "1", "0")
            eventually(lambda: client.call("CLIENT", "UNBLOCK", str(number)).value == 1, "it does not wait")
            assert waiting.read().value == 0


def counts(reply):
    return [each.value for each in reply.value]


def test_waitaof_counts_those_who_have_it_on_stable_storage(engine):
    """Of Redis 7.2, whose words for it redis-server 7.0 does not say: it never counts."""
    with master_of(engine) as master, master.client() as client:
        with follower("ingot", engine, master.port) as replica, replica.client() as there:
            wait_up(replica)
            for i in range(3):
                client.call("SET", "k", i)
                assert counts(client.call("WAITAOF", "1", "1", "20000")) == [1, 1]
                assert there.call("GET", "k").value == b"%d" % i
            there.call("CONFIG", "SET", "appendfsync", "always")
            for i in range(50):
                client.call("SET", "k", i)
                assert counts(client.call("WAITAOF", "0", "1", "20000"))[1] == 1
            assert counts(client.pipeline([["MULTI"], ["WAITAOF", "0", "1", "0"], ["EXEC"]])[-1].value[0]) == [0, 1]
            begin = time.monotonic()
            assert counts(client.call("WAITAOF", "1", "2", "300")) == [1, 1]
            assert 0.25 < time.monotonic() - begin < 3
            there.call("CONFIG", "SET", "appendfsync", "no")
            client.call("SET", "k", "v")
            assert counts(client.call("WAITAOF", "1", "1", "300")) == [1, 0]
            assert client.call("WAIT", "1", "20000").value == 1
            there.call("CONFIG", "SET", "appendfsync", "everysec")
            assert counts(client.call("WAITAOF", "1", "1", "20000")) == [1, 1]
            for words in (["WAIT", "0", "0"], ["WAITAOF", "0", "0", "0"]):
                error = there.call(*words)
                assert error.kind == "error" and "cannot be used with replica instances" in error.text()
        with follower("redis", engine, master.port) as replica:
            wait_up(replica)
            client.call("SET", "k", "v")
            assert counts(client.call("WAITAOF", "1", "1", "300")) == [1, 0]


def test_waitaof_believes_what_a_replica_says(engine):
    with master_of(engine) as master, master.client() as client, master.client() as waiting:
        with Replica(master.port) as replica:
            client.call("SET", "k", "v")
            offset = int(info(client)["master_repl_offset"])
            for sync in ([], ["FACK", str(offset - 1)]):
                replica.send("REPLCONF", "ACK", str(offset), *sync)
                assert counts(client.call("WAITAOF", "1", "1", "100")) == [1, 0]
            waiting.send("WAITAOF", "0", "1", "0")
            eventually(lambda: info(client, "clients")["blocked_clients"] == "1", "it does not wait")
            number = int(info(client)["master_repl_offset"])
            replica.send("REPLCONF", "ACK", str(number), "FACK", str(number))
            assert counts(waiting.read())[1] == 1
            # Who waits may be unblocked, or leave.
            client.call("SET", "k", "w")
            waiting.send("WAITAOF", "1", "1", "0")
            eventually(lambda: info(client, "clients")["blocked_clients"] == "1", "it does not wait")
            ids = [line.split()[0][3:] for line in client.call("CLIENT", "LIST").text().splitlines() if "flags=b" in line]
            assert client.call("CLIENT", "UNBLOCK", ids[0]).value == 1
            assert counts(waiting.read())[1] == 0
            waiting.send("WAITAOF", "1", "1", "0")
            waiting.close()
            eventually(lambda: info(client, "clients")["blocked_clients"] == "0", "it still waits")


def behind(client):
    """What the replica has yet to be sent, as of half a second ago."""
    line = next(line for line in client.call("CLIENT", "LIST").text().splitlines() if "flags=S" in line)
    return int(dict(word.split("=", 1) for word in line.split(" "))["omem"])


def test_slow_replica_is_cut_at_the_soft_limit_after_its_time(engine):
    options = {"client-output-buffer-limit": ["replica", "0", "8mb", "2"], "repl-timeout": "3600"}

    def fall_behind():
        for _ in range(40):
            replies = client.pipeline([["SET", "k", "y" * 10_000]] * 100)
            assert all(reply.value == b"OK" for reply in replies), (replies, master.log_tail())

    def follows():
        return "flags=S" in client.call("CLIENT", "LIST").text()

    with master_of(engine, options) as master, master.client(timeout=60) as client:
        with Replica(master.port) as replica:
            fall_behind()
            eventually(lambda: behind(client) > (8 << 20), "CLIENT LIST does not tell")
            time.sleep(0.5)
            replica.commands_until(client)  # in time: it is not over the limit for so long
            eventually(lambda: behind(client) < (1 << 20), "it is still behind")
            time.sleep(2.5)
            assert follows()
            begin = time.monotonic()
            fall_behind()
            eventually(lambda: not follows(), lambda: client.call("CLIENT", "LIST").text() + master.log_tail())
            assert time.monotonic() - begin > 1.5


@pytest.mark.parametrize("limit", [["8mb", "0", "0"], ["0", "4mb", "1"]])
def test_what_changes_during_a_full_sync_does_not_count_against_limits(engine, limit):
    options = {"client-output-buffer-limit": ["replica", *limit], "repl-backlog-size": "1mb", "repl-timeout": "3600"}
    with master_of(engine, options) as master, master.client(timeout=60) as client:
        client.pipeline([["SET", f"k{i}", "x" * 10_000] for i in range(1000)])

        def change():
            for _ in range(60):
                client.pipeline([["SET", "k", "y" * 10_000]] * 100)
            time.sleep(2.5)

        with Replica(master.port, before_data=change) as replica:
            assert len(replica.commands_until(client)) > 6000
            change()  # but this does
            with pytest.raises((EOFError, ConnectionError)):
                replica.commands_until(client)


def test_answers_wait_for_acknowledgements(engine):
    options = {"write-acks": "1", "write-acks-timeout": "400"}
    with master_of(engine, options) as master:
        with master.client() as client, master.client() as reader:
            with Replica(master.port) as deaf:
                error = client.call("SET", "k", "v")
                assert error.kind == "error" and error.text().startswith("NOREPLICAS"), error
                assert reader.call("GET", "k").value == b"v"
                del deaf
            with follower("redis", engine, master.port) as replica:
                wait_up(replica)
                with replica.client() as there:
                    for i in range(200):
                        assert client.call("SET", "k", i).value == b"OK"
                        assert there.call("GET", "k").value == b"%d" % i
                assert client.call("GET", "k").value == b"199"
                assert client.call("DEL", "nosuch").value == 0


def test_messages_wait_for_no_replica(engine):
    """They are told and change nothing. Sentinel sends its own behind each other on one connection, with PING."""
    with master_of(engine, {"write-acks": "1", "write-acks-timeout": "60000"}) as master, Replica(master.port):
        with master.client() as client, master.client() as other:
            assert client.call("PUBLISH", "__sentinel__:hello", "x").value == 0
            assert client.pipeline([["MULTI"], ["PUBLISH", "a", "b"], ["SPUBLISH", "a", "b"], ["EXEC"]])[-1].kind == "array"
            assert client.call("EVAL", "return redis.call('publish', 'a', 'b')", "0").value == 0
            for words in (["SET", "k", "v"], ["SWAPDB", "0", "1"], ["FLUSHALL"], ["FUNCTION", "LOAD", LIBRARY]):
                with master.client(timeout=0.5) as writer, pytest.raises(Timeout):
                    writer.call(*words)
            assert other.call("PING").value == b"PONG"


def test_no_replica_acknowledges_nothing(engine):
    """Also where none was ever there, and no stream."""
    options = {"write-acks": "1", "write-acks-timeout": "300", "repl-backlog-ttl": "1"}
    with master_of(engine, options) as master, master.client() as client:
        assert client.call("SET", "k", "v").text().startswith("NOREPLICAS")
        client.call("CONFIG", "SET", "write-acks", "0")
        assert client.call("SET", "k", "v").value == b"OK"
        eventually(lambda: info(client)["repl_backlog_active"] == "0", "the stream goes on")
        client.call("CONFIG", "SET", "write-acks", "1")
        assert client.call("SET", "k", "v").text().startswith("NOREPLICAS")
        time.sleep(2)
        assert client.call("SET", "k", "v").text().startswith("NOREPLICAS")


def seconds_of_a_change(client):
    begin = time.monotonic()
    assert client.call("INCR", "k").kind == "integer"
    return time.monotonic() - begin


@pytest.mark.timed
def test_answers_wait_for_all_who_could_take_over(engine):
    """With write-acks 1 one of two has to have a change; but Sentinel may choose the other."""
    options = {"write-acks": "1", "write-acks-timeout": "2000"}
    with master_of(engine, options) as master, follower("ingot", engine, master.port) as one:
        with follower("redis", engine, master.port) as other, master.client() as client:

            def wait_for_both():
                for replica in (one, other):
                    wait_up(replica)
                eventually(lambda: seconds_of_a_change(client) < 1, "it waits for somebody")
                eventually(lambda: client.call("WAIT", "2", "1000").value == 2, "they are not in step")

            wait_for_both()
            for away, back in ((lambda: one.signal(signal.SIGSTOP), lambda: one.signal(signal.SIGCONT)),
                               (lambda: other.signal(signal.SIGSTOP), lambda: other.signal(signal.SIGCONT)),
                               (one.kill, one.start)):  # fmt: skip
                away()
                assert seconds_of_a_change(client) > 1.5, "it was answered when one had it"
                assert seconds_of_a_change(client) < 1.5, "it waits for one that was given up"
                back()
                wait_for_both()


def test_master_that_has_just_started_waits_for_those_who_are_not_back(engine):
    options = {"write-acks": "1", "write-acks-timeout": "4000"}
    with master_of(engine, options) as master, follower("ingot", engine, master.port) as replica:
        wait_up(replica)
        master.kill()
        begin = time.monotonic()
        master.start()
        wait_up(replica)
        with master.client() as client:
            assert client.call("INCR", "k").value == 1
        assert time.monotonic() - begin > 3.5


def test_everything_a_pipeline_changes_is_refused_with_it(engine):
    """It takes so long that it is committed in parts."""
    with master_of(engine, {"write-acks": "1", "write-acks-timeout": "500"}) as master, Replica(master.port):
        with master.client(timeout=60) as client:
            replies = client.pipeline([["SET", f"k{i}", "x" * 500] for i in range(20_000)])
            assert {reply.kind for reply in replies} == {"error"}
            assert client.call("GET", "k0").value == b"x" * 500


def test_change_that_waits_for_replicas_ends_when_its_server_follows(engine):
    """A replica of the same offset in another stream would acknowledge it, else."""
    with master_of(engine, {"write-acks": "1", "write-acks-timeout": "60000"}) as master, Replica(master.port):
        with master.client() as client, master.client() as admin:
            client.send("SET", "k", "v")
            eventually(lambda: admin.call("GET", "k").value == b"v", "it is not committed")
            begin = time.monotonic()
            assert admin.call("REPLICAOF", "127.0.0.1", "1").value == b"OK"
            assert client.read().text().startswith("NOREPLICAS")
            assert time.monotonic() - begin < 5


def test_too_few_replicas_refuse_writes(engine):
    with master_of(engine, {"min-replicas-to-write": "1"}) as master, master.client() as client:
        text = "NOREPLICAS Not enough good replicas to write."
        assert client.call("SET", "k", "v").text() == text
        assert client.call("EVAL", "return redis.call('set', 'k', 'v')", "0").text().startswith(text)
        assert client.call("GET", "k").value is None
        # What may write is refused whatever it does, where it says whether it may.
        assert client.call("EVAL", "return 1", "0").value == 1
        assert client.call("EVAL", "#!lua\nreturn 1", "0").text() == text
        assert client.call("EVAL", "#!lua flags=no-writes\nreturn 1", "0").value == 1
        with follower("redis", engine, master.port) as replica:
            wait_up(replica)
            eventually(lambda: client.call("SET", "k", "v").value == b"OK", "it is still refused")
        eventually(lambda: client.call("SET", "k", "v").kind == "error", "it is not refused")


def test_stream_ends_when_nobody_follows(engine):
    with master_of(engine, {"repl-backlog-ttl": "1"}) as master, master.client() as client:
        assert info(client)["repl_backlog_active"] == "0"
        with Replica(master.port):
            assert info(client)["repl_backlog_active"] == "1"
            client.call("SET", "k", "v")
            time.sleep(2)
            assert info(client)["repl_backlog_active"] == "1"
            assert list((master.directory / "ingot-backlog").iterdir())
        eventually(lambda: info(client)["repl_backlog_active"] == "0", "it goes on")
        eventually(lambda: not list((master.directory / "ingot-backlog").iterdir()), "files are left")


def test_silent_replica_is_given_up(engine):
    with master_of(engine, {"repl-timeout": "1"}) as master, master.client() as client:
        with Replica(master.port) as replica:
            eventually(lambda: "flags=S" not in client.call("CLIENT", "LIST").text(), "it is still there")
            del replica


def mark_of(data):
    """What stands before an RDB and behind it."""
    head = data.partition(b"$EOF:")[2][:42]
    return head[:40] if head.endswith(b"\r\n") else b"?" * 40


def receive_until(connection, data, is_enough):
    while not is_enough(data):
        piece = connection.recv(65536)
        assert piece, "the master has closed the connection"
        data += piece
    return data


def test_replica_that_loads_for_long_is_waited_for(engine):
    """It sends empty lines meanwhile, as Redis does, and takes nothing."""
    with master_of(engine, {"repl-timeout": "1"}) as master, master.client() as client:
        with socket.create_connection(("127.0.0.1", master.port)) as one:
            one.settimeout(10)
            one.sendall(b"REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n")
            received = receive_until(one, b"", lambda data: data.count(mark_of(data)) == 2)
            for _ in range(20):
                time.sleep(0.2)
                one.sendall(b"\n")
            client.call("SET", "k", "of the stream")
            one.sendall(b"REPLCONF ACK 1\r\n")
            receive_until(one, received, lambda data: b"of the stream" in data)


def test_those_who_say_that_they_follow(engine):
    """Clients that ask for the data and go away at any moment, or send what no replica would."""
    with master_of(engine) as master, master.client() as client:
        client.pipeline([["SET", f"k{i}", "x" * 1000] for i in range(3000)])
        for i in range(40):
            with socket.create_connection(("127.0.0.1", master.port)) as one:
                one.settimeout(5)
                one.sendall(b"SYNC\r\n" if i % 2 else b"REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n")
                if i % 4 < 2:
                    one.recv(1 << (i % 16))
                if i % 8 == 0:
                    one.sendall(b"PSYNC ? -1\r\nGET k1\r\nSET k1 y\r\nREPLCONF ACK 999999999\r\nREPLCONF ACK -1\r\nnonsense\r\n")
        eventually(lambda: info(client)["connected_slaves"] == "0", "some are still there")
        assert client.call("GET", "k1").value == b"x" * 1000
        assert client.call("DBSIZE").value == 3000
        for words in (["PSYNC", "a", "b"], ["REPLCONF", "x"], ["REPLCONF", "x", "y"], ["REPLCONF", "listening-port", "x"]):
            assert client.call(*words).kind == "error"
        with connect(master) as own:
            assert own.pipeline([["MULTI"], ["PSYNC", "?", "-1"]])[-1].kind == "error"


def test_who_has_acknowledged_what_was_never_told_has_not():
    """Neither what there is now, nor what will be."""
    with master_of("rocksdb", {"write-acks-timeout": "300"}) as master, master.client() as client:
        with Replica(master.port) as replica:
            for offset in (1 << 62, replica.offset + 100_000, "-5", "x"):
                replica.send("REPLCONF", "ACK", str(offset))
            eventually(lambda: ",state=online," in info(client)["slave0"], "not online")
            assert client.call("SET", "k", "1").value == b"OK"
            assert client.call("WAIT", 1, 200).value == 0
            client.call("CONFIG", "SET", "write-acks", 1)
            assert client.call("SET", "k", "2").value.startswith(b"NOREPLICAS")
            end = int(info(client)["master_repl_offset"])
            replica.send("REPLCONF", "ACK", str(end))
            eventually(lambda: client.call("WAIT", 1, 200).value == 1 or replica.send("REPLCONF", "ACK", info(client)["master_repl_offset"]),
                       "it is not believed any more")  # fmt: skip


def test_a_ping_period_holds_at_once(engine):
    """It was looked at when the last one had passed."""
    with master_of(engine, {"repl-ping-replica-period": "3600"}) as master, Replica(master.port):
        with master.client() as client:
            client.call("SET", "k", "v")
            offset = info(client)["master_repl_offset"]
            time.sleep(1.5)
            assert info(client)["master_repl_offset"] == offset
            client.call("CONFIG", "SET", "repl-ping-replica-period", "1")
            eventually(lambda: info(client)["master_repl_offset"] != offset, "no ping comes")
