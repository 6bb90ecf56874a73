"""SHUTDOWN and SIGTERM of a master whose replica lags: the same of Ingot and of redis-server."""

import signal
import time

import pytest
from pairs import eventually, info, wait_in_step, wait_up
from support.resp import Reply
from support.servers import Server

MASTERS = {
    "ingot": lambda options: Server.ingot("rocksdb", options),
    "redis": lambda options: Server.redis({"repl-diskless-sync-delay": "0"} | options),
}
OK = Reply("simple", b"OK")
CALLED_OFF = Reply("error", b"ERR Errors trying to SHUTDOWN. Check logs.")
NONE = Reply("error", b"ERR No shutdown in progress.")
SYNTAX = Reply("error", b"ERR syntax error")


@pytest.fixture(params=MASTERS)
def master(request):
    with MASTERS[request.param]({}) as server:
        yield server


@pytest.fixture
def replica(master):
    with Server.redis({"replicaof": ["127.0.0.1", str(master.port)], "appendonly": "no"}) as server:
        wait_up(server)
        yield server
        server.kill()


def leave_behind(master, replica):
    """The replica stands still, and lacks a change."""
    wait_in_step(master, replica)
    replica.signal(signal.SIGSTOP)
    with master.client() as client:
        assert client.call("SET", "k", "v") == OK


def log(server):
    return server.log_path.read_text(errors="replace")


def is_leaving(client):
    return "shutdown_in_milliseconds" in info(client, "server")


@pytest.mark.parametrize("how", ["SHUTDOWN", "SIGTERM"])
def test_replicas_get_time_to_catch_up(master, replica, how):
    leave_behind(master, replica)
    with master.client() as one, master.client() as other, master.client() as third:
        one.send("SHUTDOWN") if how == "SHUTDOWN" else master.signal(signal.SIGTERM)
        eventually(lambda: is_leaving(third), lambda: master.log_tail())
        assert 0 < int(info(third, "server")["shutdown_in_milliseconds"]) <= 10_000
        other.send("SET", "late", "v")  # is held back
        assert third.call("GET", "k").value == b"v"
        time.sleep(0.3)
        assert master.alive()
        assert third.call("EXISTS", "late").value == 0
        replica.signal(signal.SIGCONT)
        assert master.wait(8) == 0
    assert "Waiting for replicas before shutting down." in log(master)
    assert "1 of 1 replicas are in sync when shutting down." in log(master)
    with replica.client() as client:
        assert client.call("GET", "k").value == b"v"
        assert client.call("EXISTS", "late").value == 0


def test_who_insists_does_not_wait(master, replica):
    leave_behind(master, replica)
    with master.client() as client:
        client.call("CONFIG", "SET", "shutdown-timeout", 60)
        master.signal(signal.SIGINT)
        eventually(lambda: is_leaving(client), lambda: master.log_tail())
        master.signal(signal.SIGINT)
        assert master.wait(20) is not None  # redis-server answers 1
    assert "You insist... exiting now." in log(master)
    replica.signal(signal.SIGCONT)


@pytest.mark.parametrize("seconds", [0, 1])
def test_they_do_not_get_more_than_so_much(master, replica, seconds):
    with master.client() as client:
        client.call("CONFIG", "SET", "shutdown-timeout", seconds)
    leave_behind(master, replica)
    begin = time.monotonic()
    with master.client() as client:
        client.send("SHUTDOWN")
        assert master.wait(20) == 0
    assert seconds <= time.monotonic() - begin + 0.1
    assert "Lagging replica 127.0.0.1:" in log(master)
    assert "0 of 1 replicas are in sync when shutting down." in log(master)


@pytest.mark.parametrize("how", ["command", "setting"])
def test_now_waits_for_nobody(master, replica, how):
    leave_behind(master, replica)
    with master.client() as client:
        begin = time.monotonic()
        if how == "command":
            client.send("SHUTDOWN", "NOW")
        else:
            assert client.call("CONFIG", "SET", "shutdown-on-sigterm", "nosave now") == OK
            assert client.call("CONFIG", "GET", "shutdown-on-sigterm").value[1].value == b"nosave now"
            master.signal(signal.SIGTERM)
        assert master.wait(20) == 0
        assert time.monotonic() - begin < 6
    assert "Waiting for replicas" not in log(master)


def call_off(master, client, asks, waits):
    """`asks` has asked for the end, `waits` is held back by it."""
    eventually(lambda: is_leaving(client), lambda: master.log_tail())
    waits.send("INCR", "n")
    assert client.call("CLIENT", "UNPAUSE") == OK  # is of CLIENT PAUSE alone
    time.sleep(0.1)
    assert client.call("EXISTS", "n").value == 0
    assert client.call("SHUTDOWN", "ABORT") == OK
    assert asks.read() == CALLED_OFF
    assert waits.read().value == 1
    assert client.call("DEL", "n").value == 1
    assert not is_leaving(client)
    assert client.call("SHUTDOWN", "ABORT") == NONE


def test_it_can_be_called_off(master, replica):
    leave_behind(master, replica)
    with master.client() as one, master.client() as other, master.client() as third:
        assert third.call("SHUTDOWN", "ABORT") == NONE
        one.send("SHUTDOWN")
        call_off(master, third, one, other)
    assert "Shutdown manually aborted." in log(master)


def test_it_can_be_called_off_again():
    """Not that of Redis 7.0, whose server ends with a failed assertion then."""
    with Server.ingot() as master, Server.redis({"replicaof": ["127.0.0.1", str(master.port)]}) as replica:
        wait_up(replica)
        leave_behind(master, replica)
        with master.client() as one, master.client() as other, master.client() as third:
            for _ in range(2):
                one.send("SHUTDOWN")
                call_off(master, third, one, other)
            # CLIENT PAUSE outlives it.
            assert third.call("CLIENT", "PAUSE", "60000", "WRITE") == OK
            one.send("SHUTDOWN")
            eventually(lambda: is_leaving(third), lambda: master.log_tail())
            other.send("INCR", "n")
            assert third.call("SHUTDOWN", "ABORT") == OK
            assert one.read() == CALLED_OFF
            time.sleep(0.1)
            assert third.call("EXISTS", "n").value == 0
            assert third.call("CLIENT", "UNPAUSE") == OK
            assert other.read().value == 1
            # Who has asked may leave.
            one.send("SHUTDOWN")
            eventually(lambda: is_leaving(third), lambda: master.log_tail())
            one.close()
            assert third.call("SHUTDOWN", "ABORT") == OK
            assert third.call("SET", "k", "v") == OK
        replica.kill()


def test_words_that_do_not_go_together(master):
    with master.client() as client:
        for words in (["ABORT", "NOW"], ["ABORT", "FORCE"], ["SAVE", "NOSAVE"], ["ABORT", "SAVE"], ["SOON"]):
            assert client.call("SHUTDOWN", *words) == SYNTAX
        assert client.call("SHUTDOWN", "ABORT", "ABORT") == NONE
