"""Whoever goes on in a stream knows which database is selected there: each test goes on behind a SELECT of another
one than 0, with no more words between than the next SET."""

import pytest
from pairs import assert_same, eventually, info, is_up, redis_master, replica_of, wait_in_step, wait_up
from support.servers import Server

QUIET = {"repl-ping-replica-period": "60"}


def master_of(kind, engine):
    return redis_master(QUIET) if kind == "redis" else Server.ingot(engine, QUIET)


def put(client, key):
    client.call("SELECT", 3)
    assert client.call("SET", key, "v").value == b"OK"


@pytest.mark.parametrize("kind", ["redis", "ingot"])
def test_replicas_of_a_replica_that_come_one_after_the_other(engine, kind):
    with master_of(kind, engine) as top, replica_of(top, engine) as middle, top.client() as client:
        wait_up(middle)
        put(client, "a")
        wait_in_step(top, middle)
        with replica_of(middle, engine) as first:
            wait_up(first)
            with replica_of(middle, engine) as second:
                wait_up(second)
                put(client, "b")
                wait_in_step(top, middle)
                assert_same(middle, first)
                assert_same(middle, second)


@pytest.mark.parametrize("kind", ["redis", "ingot"])
def test_replica_that_has_given_all_of_its_data_goes_on_behind_a_cut(engine, kind):
    with master_of(kind, engine) as top, replica_of(top, engine) as middle, top.client() as client:
        wait_up(middle)
        put(client, "a")
        wait_in_step(top, middle)
        with replica_of(middle, engine) as low, middle.client() as own:
            wait_up(low)
            own.call("CLIENT", "KILL", "TYPE", "master")
            eventually(lambda: int(info(top.client(), "stats")["sync_partial_ok"]) == 1, "it has not gone on")
            put(client, "b")
            assert_same(top, middle)
            assert_same(middle, low)


@pytest.mark.parametrize("kind", ["redis", "ingot"])
def test_old_master_follows_the_one_that_took_its_place(engine, kind):
    with master_of(kind, engine) as old, replica_of(old, engine) as new, old.client() as one, new.client() as other:
        wait_up(new)
        put(one, "a")
        with replica_of(old, engine) as third:  # which is told the database with the data
            wait_up(third)
        wait_in_step(old, new)
        other.call("REPLICAOF", "NO", "ONE")
        one.call("REPLICAOF", "127.0.0.1", new.port)
        eventually(lambda: is_up(one), "no link")
        put(other, "b")
        assert_same(new, old)


def test_failover(engine):
    with Server.ingot(engine, QUIET) as old, replica_of(old, engine) as new, old.client() as one:
        wait_up(new)
        put(one, "a")
        with replica_of(old, engine) as third, new.client() as other:
            wait_up(third)
            wait_in_step(old, new)
            one.call("FAILOVER", "TO", "127.0.0.1", new.port)
            eventually(lambda: info(other)["role"] == "master" and is_up(one), "no failover")
            put(other, "b")
            assert_same(new, old)
            assert info(other, "stats")["sync_full"] == "0"


def test_replica_that_names_its_master_after_a_start(engine):
    """Until then it leads, and could be followed; but its stream is still that of its master."""
    with redis_master(QUIET) as master, Server.ingot(engine) as replica, master.client() as client:
        with replica.client() as own:
            own.call("REPLICAOF", "127.0.0.1", master.port)
        wait_up(replica)
        put(client, "a")
        wait_in_step(master, replica)
        replica.kill()
        replica.start()
        with replica.client() as own:
            own.call("REPLICAOF", "127.0.0.1", master.port)
        wait_up(replica)
        put(client, "b")
        assert_same(master, replica)
        assert info(client, "stats")["sync_partial_ok"] == "1"
