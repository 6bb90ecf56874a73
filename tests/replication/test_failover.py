"""FAILOVER: from and to Ingot, under load, and all that can come between."""

import signal
import threading

import pytest
from pairs import MASTER, OK, Load, assert_same, eventually, info, is_up, wait_in_step, wait_up
from support.replica import Replica
from support.resp import Client
from support.servers import Server

OPTIONS = MASTER | {"repl-timeout": "10", "repl-ping-replica-period": "1", "enable-debug-command": "yes"}
PAIRS = ["ingot-ingot", "ingot-redis", "redis-ingot"]
READONLY = b"READONLY You can't write against a read only replica."


def server_of(kind, engine, options=None):
    options = OPTIONS | (options or {})
    return Server.redis(options) if kind == "redis" else Server.ingot(engine, options)


@pytest.fixture
def two(engine, request):
    """A master and its replica, in step; of the kinds that the test is given."""
    kinds = getattr(request, "param", "ingot-ingot").split("-")
    with server_of(kinds[0], engine) as master:
        with server_of(kinds[1], engine, {"replicaof": ["127.0.0.1", str(master.port)]}) as replica:
            wait_up(replica)
            with master.client() as client:
                client.call("SET", "k", "v")
            wait_in_step(master, replica)
            eventually(lambda: "state=online" in of(master, "slave0"), "the replica is not online")
            yield master, replica


def of(server, field):
    with server.client() as client:
        return info(client)[field]


def call(server, *words):
    with server.client() as client:
        return client.call(*words)


def ended(server):
    eventually(lambda: of(server, "master_failover_state") == "no-failover", server.log_tail)


class Writer(threading.Thread):
    """One connection that appends numbers until it is refused, and knows which were acknowledged."""

    def __init__(self, server):
        super().__init__()
        self.client = Client(server.port, timeout=30)
        self.acknowledged = []
        self.last = None
        self.start()

    def run(self):
        while self.last is None:
            number = len(self.acknowledged)
            reply = self.client.call("RPUSH", "numbers", number)
            if reply.kind == "error":
                self.last = reply.value
            else:
                self.acknowledged.append(b"%d" % number)
        self.client.close()


def numbers(server):
    return [each.value for each in call(server, "LRANGE", "numbers", 0, -1).value]


@pytest.mark.parametrize("two", PAIRS, indirect=True)
def test_replica_takes_over_from_a_master_under_load(two, rng):
    master, replica = two
    Load(rng).run(master, 500)
    writer = Writer(master)
    eventually(lambda: len(writer.acknowledged) > 100, "nothing is written")
    assert call(master, "FAILOVER") == OK
    writer.join()
    assert writer.last == READONLY
    ended(master)
    assert of(replica, "role") == "master" and of(master, "role") == "slave"
    wait_up(master)
    assert numbers(replica) == writer.acknowledged
    Load(rng).run(replica, 500)
    assert_same(replica, master)
    with replica.client() as client:
        assert info(client, "stats")["sync_full"] == "0"
        assert info(client, "stats")["sync_partial_ok"] == "1"


def test_who_only_listens_is_not_chosen(two):
    master, replica = two
    fake = Replica(master.port, listening_port=0)
    follows = threading.Thread(target=fake.keep_up)
    follows.start()
    try:
        eventually(lambda: of(master, "connected_slaves") == "2", "it does not follow")
        assert call(master, "FAILOVER") == OK
        ended(master)
        assert of(replica, "role") == "master"
    finally:
        fake.close()
        follows.join()


def test_there_and_back(two):
    for turn in range(4):
        master, replica = two[turn % 2], two[1 - turn % 2]
        with master.client() as client:
            assert client.call("INCR", "turns").value == turn + 1
            assert client.call("FAILOVER", "TO", "127.0.0.1", replica.port, "TIMEOUT", 20000) == OK
        ended(master)
        wait_up(master)
        wait_in_step(replica, master)
    assert_same(two[0], two[1])


def test_third_server_follows_the_old_master_on(two, engine):
    master, replica = two
    with server_of("ingot", engine, {"replicaof": ["127.0.0.1", str(master.port)]}) as third:
        wait_up(third)
        wait_in_step(master, third)
        assert call(master, "FAILOVER", "TO", "127.0.0.1", replica.port) == OK
        ended(master)
        wait_up(master)
        assert call(replica, "SET", "k", "new") == OK
        eventually(lambda: call(third, "GET", "k").value == b"new", third.log_tail)
        with master.client() as client:
            assert info(client, "stats")["sync_full"] == "2"  # when they were new


def test_changes_wait_for_its_end(two):
    """The replica stands still: nobody comes to the end of the stream."""
    master, replica = two
    with master.client(timeout=30) as client, master.client(timeout=30) as waiting, master.client() as admin:
        replica.signal(signal.SIGSTOP)
        try:
            assert client.call("SET", "k", "behind") == OK
            assert admin.call("FAILOVER", "TIMEOUT", 1500) == OK
            assert info(admin)["master_failover_state"] == "waiting-for-sync"
            assert admin.call("FAILOVER").value == b"ERR FAILOVER already in progress."
            assert admin.call("REPLICAOF", "NO", "ONE").value == b"ERR REPLICAOF not allowed while failing over."
            assert admin.call("CLIENT", "UNPAUSE") == OK
            waiting.send("SET", "k", "waited")
            assert admin.call("GET", "k").value == b"behind"
            assert waiting.read() == OK  # the time is over
            assert info(admin)["master_failover_state"] == "no-failover"
            assert admin.call("FAILOVER", "ABORT").value == b"ERR No failover in progress."

            assert admin.call("FAILOVER") == OK
            waiting.send("SET", "k", "aborted")
            assert admin.call("GET", "k").value == b"waited"
            assert admin.call("FAILOVER", "ABORT") == OK
            assert waiting.read() == OK
        finally:
            replica.signal(signal.SIGCONT)
    assert_same(master, replica)


def test_force_does_not_wait_for_what_the_replica_lacks(two):
    master, replica = two
    words = ("FAILOVER", "TO", "127.0.0.1", replica.port)
    needs = b"ERR FAILOVER with force option requires both a timeout and target HOST and IP."

    def force(client):
        assert client.call("SET", "k", "behind") == OK
        assert client.call(*words, "FORCE", "TIMEOUT", 200) == OK
        eventually(lambda: info(client)["master_failover_state"] == "failover-in-progress", "not forced")
        assert client.call("SET", "k", "x").value == READONLY

    with master.client(timeout=30) as client:
        assert client.call(*words, "FORCE").value == needs
        assert client.call("FAILOVER", "FORCE", "TIMEOUT", 1).value == needs
        replica.signal(signal.SIGSTOP)
        try:
            force(client)
            # Nobody answers, so an operator takes it back.
            assert client.call("FAILOVER", "ABORT") == OK
            assert info(client)["role"] == "master"
            assert client.call("SET", "k", "mine") == OK
        finally:
            replica.signal(signal.SIGCONT)
        assert_same(master, replica)
        replica.signal(signal.SIGSTOP)
        try:
            force(client)
        finally:
            replica.signal(signal.SIGCONT)
        ended(master)
    assert of(replica, "role") == "master"
    wait_up(master)
    assert_same(replica, master)


def test_target_that_cannot_lead(two, engine):
    """It says that it listens where another master does."""
    master, _ = two
    with server_of("ingot", engine) as other, Replica(master.port, listening_port=other.port) as fake:
        with master.client() as client:
            assert client.call("FAILOVER", "TO", "127.0.0.1", other.port, "TIMEOUT", 10000) == OK
            fake.keep_up()
            assert "Failover target rejected psync request" in master.log_tail()
            ended(master)
            assert info(client)["role"] == "master"
            assert client.call("SET", "k", "mine") == OK


def test_master_that_is_killed_meanwhile_leads_on(two):
    master, replica = two
    replica.signal(signal.SIGSTOP)
    try:
        assert call(master, "SET", "k", "kept") == OK
        assert call(master, "FAILOVER") == OK
        master.restart(kill=True)
        assert of(master, "master_failover_state") == "no-failover"
        assert call(master, "APPEND", "k", "!").value == 5
    finally:
        replica.signal(signal.SIGCONT)
    assert_same(master, replica)


def test_blocked_clients_are_told(two):
    master, _ = two
    with master.client(timeout=30) as blocked:
        blocked.send("BLPOP", "nothing", 0)
        with master.client() as client:
            eventually(lambda: info(client, "clients")["blocked_clients"] == "1", "not blocked")
        assert call(master, "FAILOVER") == OK
        assert blocked.read().value.startswith(b"UNBLOCKED force unblock from blocking operation")


ERRORS = """FAILOVER a | FAILOVER TIMEOUT 0 | FAILOVER TIMEOUT x | FAILOVER TIMEOUT | FAILOVER TO h x | FAILOVER TO h |
    FAILOVER TO h 1 TO h 1 | FAILOVER TIMEOUT 5 TIMEOUT 5 | FAILOVER ABORT | FAILOVER ABORT TIMEOUT 5 | FAILOVER TO h 1 |
    FAILOVER TO 127.0.0.1 2 | FAILOVER FORCE | FAILOVER FORCE FORCE | FAILOVER TO  1 FORCE TIMEOUT 9 |
    PSYNC x 1 FAILOVER | PSYNC x 1 failover more"""


@pytest.mark.parametrize("replicas", [0, 1])
def test_errors(engine, replicas):
    answers = []
    for kind in ("redis", "ingot"):
        with server_of(kind, engine) as master:
            following = Replica(master.port) if replicas else None
            with master.client() as client:
                answers.append([client.call(*line.split(" ")) for line in map(str.strip, ERRORS.split("|"))])
            if following:
                following.close()
    assert answers[0] == answers[1]


def test_errors_of_a_replica(engine):
    answers = []
    for kind in ("redis", "ingot"):
        with server_of("redis", engine) as master:
            with server_of(kind, engine, {"replicaof": ["127.0.0.1", str(master.port)]}) as replica:
                wait_up(replica)
                with replica.client() as client:
                    answers.append([client.call("FAILOVER"), client.call("FAILOVER", "ABORT"),
                                    client.call("PSYNC", "0" * 40, 1, "FAILOVER")])  # fmt: skip
                    assert is_up(client)
    assert answers[0] == answers[1]
