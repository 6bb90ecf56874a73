"""A replica beside a redis-server that is one of the same master: what both answer to clients."""

import re
import time

import pytest
from pairs import MASTER, OK, eventually, info, is_up, redis_master, replica_of, wait_in_step, wait_up
from support.servers import Server, free_port

OPTIONS = {"repl-timeout": "10"}
# In the order of Redis' INFO; those behind differ by what either has of a backlog.
FIELDS = ["role", "master_host", "master_port", "master_link_status", "master_last_io_seconds_ago",
          "master_sync_in_progress", "slave_read_repl_offset", "slave_repl_offset", "slave_priority",
          "slave_read_only", "replica_announced", "connected_slaves"]  # fmt: skip


@pytest.fixture(scope="module")
def trio():
    """The master, a Redis and an Ingot that follow it."""
    with redis_master() as master:
        of = {"replicaof": ["127.0.0.1", str(master.port)]} | OPTIONS
        with Server.redis(of) as redis, replica_of(master, "rocksdb", OPTIONS) as ingot:
            for server in (redis, ingot):
                wait_up(server)
            with master.client() as client:
                client.call("SET", "k", "v")
                client.call("RPUSH", "l", "a")
            for server in (redis, ingot):
                wait_in_step(master, server)
            yield master, redis, ingot


def both(trio, *commands):
    """The replies of both replicas to a pipeline, which must be the same."""
    answers = []
    for server in trio[1:]:
        with server.client() as client:
            answers.append(client.pipeline(commands))
    assert answers[0] == answers[1]
    return answers[0]


def test_role_and_info(trio):
    with trio[1].client() as redis, trio[2].client() as ingot:
        assert redis.call("ROLE").value[:4] == ingot.call("ROLE").value[:4]
        eventually(lambda: redis.call("ROLE") == ingot.call("ROLE"), "the offsets differ")
        infos = [client.call("INFO", "replication").text().splitlines() for client in (redis, ingot)]
        names = [[line.split(":")[0] for line in lines if ":" in line] for lines in infos]
        assert names[0][: len(FIELDS)] == names[1][: len(FIELDS)] == FIELDS
        assert set(names[0]) == set(names[1])
        fields = [info(client) for client in (redis, ingot)]
        for name in set(FIELDS) - {"master_last_io_seconds_ago", "slave_read_repl_offset", "slave_repl_offset"}:
            assert fields[0][name] == fields[1][name], name
        assert fields[0]["master_replid"] == fields[1]["master_replid"]
        for name in ("slave_repl_offset", "slave_read_repl_offset"):
            eventually(lambda: info(redis)[name] == info(ingot)[name], name)


def test_writes_are_refused(trio):
    both(trio, ("SET", "k", "x"), ("DEL", "k"), ("GET", "k"), ("FLUSHALL",), ("EXPIRE", "k", 1), ("INCR",),
         ("PFADD", "p", "x"), ("PFCOUNT", "p"), ("BLPOP", "l", 1), ("SORT", "l", "STORE", "m"), ("SORT", "l", "ALPHA"),
         ("SWAPDB", 0, 1), ("PUBLISH", "c", "x"), ("SCRIPT", "LOAD", "return 1"), ("GETEX", "k", "EX", 1),
         ("RESTORE", "x", 0, "y"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"),
         ("SPUBLISH", "c", "x"), ("FUNCTION", "FLUSH"), ("GETDEL", "k"), ("GEOADD", "g", 1, 1, "m"))  # fmt: skip


def test_an_estimate_that_is_asked_for_at_a_replica_is_not_kept_there(trio):
    """Redis keeps it, and so has other bytes than its master."""
    master, _, ingot = trio
    with master.client() as client, ingot.client() as there:
        client.call("PFADD", "estimated", *range(100))
        wait_in_step(master, ingot)
        assert there.call("PFCOUNT", "estimated").value > 90
        assert there.call("EVAL", "return redis.call('pfcount', KEYS[1])", 1, "estimated").value > 90
        assert there.call("DUMP", "estimated") == client.call("DUMP", "estimated")
        client.call("PFCOUNT", "estimated")
        wait_in_step(master, ingot)
        assert there.call("DUMP", "estimated") == client.call("DUMP", "estimated")


def test_transactions(trio):
    both(trio, ("MULTI",), ("GET", "k"), ("SET", "k", "x"), ("GET", "k"), ("EXEC",), ("GET", "k"))
    both(trio, ("MULTI",), ("GET", "k"), ("EXEC",))
    both(trio, ("WATCH", "k"), ("MULTI",), ("GET", "k"), ("PUBLISH", "c", "x"), ("EXEC",))


def test_scripts(trio):
    both(trio, ("EVAL", "return redis.call('get', KEYS[1])", 1, "k"),
         ("EVAL", "return redis.call('set', KEYS[1], 'x')", 1, "k"),
         ("EVAL", "return redis.pcall('set', KEYS[1], 'x')", 1, "k"),
         ("EVAL", "#!lua\nreturn 1", 0), ("EVAL", "#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])", 1, "k"),
         ("EVAL", "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], 'x')", 1, "k"),
         ("EVAL_RO", "return redis.call('get', KEYS[1])", 1, "k"), ("GET", "k"))  # fmt: skip


def test_functions_come_with_the_stream(trio):
    master = trio[0]
    with master.client() as client:
        code = ("#!lua name=lib\nredis.register_function('writes', function() return redis.call('set', 'f', 1) end)\n"
                "redis.register_function{function_name='reads', callback=function() return 7 end, flags={'no-writes'}}\n")
        assert client.call("FUNCTION", "LOAD", "REPLACE", code).value == b"lib"
    for server in trio[1:]:
        wait_in_step(master, server)
    both(trio, ("FCALL", "reads", 0), ("FCALL", "writes", 0), ("FCALL_RO", "reads", 0), ("FCALL_RO", "writes", 0))


def test_the_master_in_client_list(trio):
    for server in trio[1:]:
        with server.client() as client:
            lines = client.call("CLIENT", "LIST", "TYPE", "master").text().splitlines()
            assert len(lines) == 1
            assert "flags=M" in lines[0] and "user=(superuser)" in lines[0]
            assert f"addr=127.0.0.1:{trio[0].port} " in lines[0]
            assert client.call("CLIENT", "LIST", "TYPE", "normal").text().count("\n") == 1
            # The link comes back by itself.
            assert client.call("CLIENT", "KILL", "TYPE", "master").value == 1
            eventually(lambda: not is_up(client) or True, "")
        wait_up(server)


def test_stale_data(trio):
    """While the link is down, and replica-serve-stale-data is no."""
    nobody = free_port()
    script = "return redis.call('get', KEYS[1])"
    try:
        for server in trio[1:]:
            with server.client() as client:
                assert client.call("CONFIG", "SET", "replica-serve-stale-data", "no") == OK
                assert client.call("REPLICAOF", "127.0.0.1", nobody) == OK
                eventually(lambda: not is_up(client), "still up")
        both(trio, ("GET", "k"), ("SET", "k", "x"), ("PING",), ("INFO", "nothing"), ("MULTI",), ("GET", "k"), ("EXEC",),
             ("MULTI",), ("EXEC",), ("EVAL", script, 1, "k"), ("EVAL", "#!lua flags=no-writes\n" + script, 1, "k"),
             ("EVAL", "#!lua flags=no-writes,allow-stale\n" + script, 1, "k"), ("EVAL", "return 5", 0),
             ("EVAL_RO", script, 1, "k"), ("DBSIZE",), ("SELECT", 1), ("PUBLISH", "c", "x"), ("CONFIG", "GET", "port1"),
             ("FUNCTION", "LIST"), ("SUBSCRIBE", "c"))  # fmt: skip
        for server in trio[1:]:
            with server.client() as client:
                fields = info(client)
                assert fields["master_link_status"] == "down"
                assert int(fields["master_link_down_since_seconds"]) >= -1
                assert client.call("ROLE").value[3].value in (b"connect", b"connecting")
                assert client.call("ROLE").value[4].value == -1
    finally:
        for server in trio[1:]:
            with server.client() as client:
                client.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
                client.call("REPLICAOF", "127.0.0.1", trio[0].port)
            wait_up(server)


def test_replicaof_again(trio):
    port = trio[0].port
    both(trio, ("REPLICAOF", "127.0.0.1", port), ("SLAVEOF", "127.0.0.1", port), ("REPLICAOF", "127.0.0.1", "x"),
         ("REPLICAOF", "a", 65536), ("REPLICAOF", "no"), ("CONFIG", "GET", "replicaof"), ("CONFIG", "GET", "slaveof"),
         ("CONFIG", "GET", "replica-read-only"), ("CONFIG", "GET", "slave-priority"),
         ("CONFIG", "SET", "replicaof", "no one"))  # fmt: skip


def test_a_replica_that_may_be_written(trio):
    try:
        for server in trio[1:]:
            with server.client() as client:
                assert client.call("CONFIG", "SET", "replica-read-only", "no") == OK
        both(trio, ("SET", "own", "x"), ("GET", "own"), ("SET", "brief", "x", "PX", 1), ("DEL", "own"),
             ("INFO", "nothing"), ("EVAL", "return redis.call('set', 'own', 'y')", 0), ("DEL", "own"))  # fmt: skip
        time.sleep(0.05)
        # Redis removes it some time, so that DBSIZE tells nothing yet.
        both(trio, ("GET", "brief"), ("SET", "brief", "y"), ("TTL", "brief"), ("DEL", "brief"), ("DBSIZE",))
    finally:
        for server in trio[1:]:
            with server.client() as client:
                client.call("CONFIG", "SET", "replica-read-only", "yes")


def test_blocked_clients_are_let_go():
    ends = b"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
    with redis_master() as master, Server.redis() as redis, Server.ingot() as ingot:
        for server in (redis, ingot):
            with server.client() as waits, server.client() as reads, server.client() as client:
                waits.send("BLPOP", "l", 0)
                reads.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
                eventually(lambda: info(client, "clients")["blocked_clients"] == "2", "nobody waits")
                assert client.call("REPLICAOF", "127.0.0.1", master.port) == OK
                for each in (waits, reads):
                    assert each.read().value == ends
            with server.client() as reads, server.client() as client:
                reads.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
                eventually(lambda: info(client, "clients")["blocked_clients"] == "1", "nobody waits")
                assert client.call("REPLICAOF", "localhost", master.port) == OK
                assert reads.read().value == ends


def test_sentinels_way(tmp_path):
    """As Sentinel tells a server whom to follow: in a transaction, which the configuration keeps."""
    conf = tmp_path / "ingot.conf"
    with redis_master() as master:
        conf.write_text("engine rocksdb\n")
        server = Server.ingot("rocksdb", {}, conf=conf)
        server.options = {}
        with server:
            with server.client() as client:
                replies = client.pipeline(
                    [("MULTI",), ("SLAVEOF", "127.0.0.1", master.port), ("CONFIG", "REWRITE"),
                     ("CLIENT", "KILL", "TYPE", "normal"), ("CLIENT", "KILL", "TYPE", "pubsub"), ("EXEC",)])  # fmt: skip
                assert [reply.value for reply in replies[-1].value[:2]] == [b"OK", b"OK"]
            wait_up(server)
            assert re.search(rf"^replicaof 127\.0\.0\.1 {master.port}$", conf.read_text(), re.M)
            server.restart(kill=True)
            wait_up(server)
            with server.client() as client:
                replies = client.pipeline([("MULTI",), ("SLAVEOF", "NO", "ONE"), ("CONFIG", "REWRITE"), ("EXEC",)])
                assert [reply.value for reply in replies[-1].value] == [b"OK", b"OK"]
                assert client.call("SET", "k", "v") == OK
                assert client.call("ROLE").value[0].value == b"master"
            assert "replicaof" not in conf.read_text()


def test_a_password(tmp_path):
    with redis_master(MASTER | {"requirepass": "secret"}) as master:
        with replica_of(master) as replica, replica.client() as client:
            eventually(lambda: "-NOAUTH" in replica.log_path.read_text(errors="replace"), lambda: replica.log_tail())
            assert not is_up(client)
            assert client.call("CONFIG", "SET", "masterauth", "wrong") == OK
            eventually(lambda: "Unable to AUTH" in replica.log_path.read_text(errors="replace"), lambda: replica.log_tail())
            assert client.call("CONFIG", "SET", "masterauth", "secret") == OK
            wait_up(replica)
