"""What a replica makes of what a master says, with a master that the test plays itself: the handshake,
refusals, damaged data, and a stream that is not as it should be. The old data stay through all of it."""

import contextlib
import hashlib
import signal
import socket
import struct
import threading
import time

import pytest
from pairs import EMPTY_RDB, RUN_ID, FakeMaster, eventually, full_resync, info, is_up, replica_of, told, wait_up
from support.replica import Replica
from support.servers import Server

KEPT = {"repl-timeout": "2"}
SCRIPT_SECONDS = 1
ACK_SECONDS = 1.1  # then one is due


@contextlib.contextmanager
def with_data(port, engine="rocksdb", options=None):
    """A replica of that port that had data of its own before."""
    with Server.ingot(engine, KEPT | (options or {})) as server:
        with server.client() as client:
            client.call("SET", "old", "data")
            client.call("REPLICAOF", "127.0.0.1", port)
        yield server


def log(server):
    return server.log_path.read_text(errors="replace")


def stays_old(server):
    with server.client() as client:
        assert client.call("GET", "old").value == b"data"
        assert not is_up(client)


def test_the_handshake(engine):
    heard = []

    def talk(peer):
        while not heard or heard[-1][0] != "PSYNC":
            heard.append(peer.command())
            peer.send(b"+OK\r\n" if heard[-1][0] != "PSYNC" else b"")
        full_resync(peer, 100)
        while True:
            heard.append(peer.command())

    with FakeMaster(talk) as master:
        options = {"masterauth": "secret", "masteruser": "me", "replica-announce-ip": "10.1.2.3",
                   "replica-announce-port": "77"}  # fmt: skip
        with replica_of(None, engine, KEPT | options, port=master.port) as replica:
            wait_up(replica)
            assert heard[:6] == [
                ["PING"], ["AUTH", "me", "secret"], ["REPLCONF", "listening-port", "77"],
                ["REPLCONF", "ip-address", "10.1.2.3"], ["REPLCONF", "capa", "eof", "capa", "psync2", "capa", "ingot"],
                ["PSYNC", "?", "-1"],
            ]  # fmt: skip
            eventually(lambda: len(heard) > 7, "no acknowledgement")
            assert heard[6:8] == [["REPLCONF", "ACK", "100"]] * 2


@pytest.mark.parametrize(
    "word, answer, logged",
    [
        ("PING", b"-ERR go away\r\n", "Error reply to PING from master"),
        ("PING", b"GET / HTTP/1.1\r\n", "Error reply to PING from master"),
        ("AUTH", b"-WRONGPASS no\r\n", "Unable to AUTH to MASTER"),
        ("PSYNC", b"-NOMASTERLINK Can't SYNC\r\n", "currently unable to PSYNC"),
        ("PSYNC", b"-LOADING Redis is loading\r\n", "currently unable to PSYNC"),
        ("PSYNC", b"-ERR unknown command\r\n", "Unexpected reply to PSYNC"),
        ("PSYNC", b"+CONTINUE\r\n", "was not asked for"),
        ("PSYNC", b"+FULLRESYNC x 1\r\n", "Unexpected reply to PSYNC"),
        ("PSYNC", b"+FULLRESYNC " + RUN_ID.encode() + b" 1\r\n-ERR broken\r\n", "MASTER aborted replication"),
        ("PSYNC", b"+FULLRESYNC " + RUN_ID.encode() + b" 1\r\nrubbish\r\n", "Bad protocol from MASTER"),
        ("PSYNC", b"+FULLRESYNC " + RUN_ID.encode() + b" 1\r\n$5\r\nhello", "should"),
        ("PSYNC", b"+FULLRESYNC " + RUN_ID.encode() + b" 1\r\n$10\r\n" + EMPTY_RDB[:10], "should"),
        ("PSYNC", b"+FULLRESYNC " + RUN_ID.encode() + b" 1\r\n$30\r\n" + EMPTY_RDB, "connection ended|should"),
        ("PSYNC", b"+FULLRESYNC " + RUN_ID.encode() + b" 1\r\n$EOF:" + b"e" * 40 + b"\r\n" + EMPTY_RDB + b"f" * 40, "should"),
        ("PSYNC", b"+FULLRESYNC " + RUN_ID.encode() + b" 1\r\n$18\r\n" + b"REDIS9999" + bytes(9), "the data cannot be taken"),
    ],
)  # fmt: skip
def test_refusals_and_damage(word, answer, logged):
    def talk(peer):
        while True:
            words = peer.command()
            if words[0] == word:
                peer.send(answer)
                time.sleep(0.3)
                return
            peer.send(b"+OK\r\n")

    with FakeMaster(talk) as master:
        with with_data(master.port, options={"masterauth": "secret"}) as replica:
            alternatives = logged.split("|")
            eventually(lambda: any(each in log(replica) for each in alternatives), lambda: log(replica))
            stays_old(replica)
            # About one attempt a second, not more.
            eventually(lambda: master.accepted >= 2, "no other attempt")
            assert master.accepted <= 4


def test_nobody_listens_and_silence():
    with FakeMaster(lambda peer: time.sleep(30)) as master:
        with with_data(master.port) as replica, replica.client() as client:
            eventually(lambda: master.accepted >= 2, "a silent master is not given up")
            assert client.call("ROLE").value[3].value in (b"connecting", b"handshake", b"connect")
            assert client.call("REPLICAOF", "127.0.0.1", 1).value == b"OK"
            eventually(lambda: "Unable to connect to MASTER" in log(replica), lambda: log(replica))
            stays_old(replica)


def test_an_endless_file_ends_with_its_master():
    """However much comes, the old data are served; and another master is followed at once."""

    def talk(peer):
        peer.shake_hands()
        peer.send(b"+FULLRESYNC %s 1\r\n$EOF:%s\r\n" % (RUN_ID.encode(), b"e" * 40))
        peer.send(b"REDIS0010")
        while True:
            peer.send(b"\xfa\x01a\x41\x00" + b"x" * 256)
            time.sleep(0.001)

    with FakeMaster(talk) as master:
        with with_data(master.port) as replica, replica.client() as client:
            eventually(lambda: info(client)["master_sync_in_progress"] == "1", "no transfer")
            eventually(lambda: int(info(client)["master_sync_read_bytes"]) > 10_000, "nothing comes")
            assert client.call("ROLE").value[3].value == b"sync"
            stays_old(replica)
            begun = time.monotonic()
            assert client.call("REPLICAOF", "NO", "ONE").value == b"OK"
            assert client.call("SET", "new", "data").value == b"OK"
            assert time.monotonic() - begun < 2
            assert client.call("GET", "old").value == b"data"


def stream_master(parts, offset=100, then=None, pause=0.01):
    """Sends these parts of a stream behind an empty file, then reads on."""

    def talk(peer):
        peer.shake_hands()
        full_resync(peer, offset)
        for part in parts:
            peer.send(part)
            time.sleep(pause)
        while True:
            words = peer.command()
            if then is not None:
                then.append(words)

    return FakeMaster(talk)


def test_cut_anywhere_and_told_in_pieces(engine):
    """One byte at a time, with values of every size."""
    stream = told("SELECT", "0") + told("SET", "k", "v" * 300) + told("MULTI") + told("INCR", "n")
    stream += told("SELECT", "3") + told("RPUSH", "l", "a", "b") + told("EXEC") + told("PING") + told("INCR", "n")
    heard = []
    with stream_master([stream[i : i + 1] for i in range(len(stream))], then=heard) as master:
        with replica_of(None, engine, KEPT, port=master.port) as replica, replica.client() as client:
            wait_up(replica)
            end = str(100 + len(stream))
            eventually(lambda: ["REPLCONF", "ACK", end] in [words[:3] for words in heard], lambda: f"{heard[-3:]} {end}\n{log(replica)}")
            assert client.call("GET", "k").value == b"v" * 300
            assert client.call("GET", "n").value == b"1"
            client.call("SELECT", 3)
            assert client.call("LLEN", "l").value == 2
            assert client.call("GET", "n").value == b"1"


def test_getack_is_answered_at_once():
    heard = []
    stream = told("SELECT", "0") + told("SET", "k", "v")
    with stream_master([stream + told("REPLCONF", "GETACK", "*")], then=heard) as master:
        with replica_of(None, "rocksdb", KEPT, port=master.port) as replica:
            wait_up(replica)
            eventually(lambda: len(heard) >= 2, "no answer")
            # The second one comes a second after the first, unless it is asked for.
            assert int(heard[1][2]) >= 100 + len(stream), heard


def test_commands_that_fail_are_logged_and_passed_over():
    stream = told("SELECT", "0") + told("SET", "k", "v") + told("RPUSH", "k", "x") + told("NOSUCH", "x")
    stream += told("SHUTDOWN") + told("SUBSCRIBE", "c") + told("MULTI") + told("HSET", "k", "f", "v")
    stream += told("SET", "in", "multi") + told("EXEC") + told("BLPOP", "nothing", "0") + told("SET", "end", "1")
    with stream_master([stream]) as master, replica_of(None, "rocksdb", KEPT, port=master.port) as replica:
        with replica.client() as client:
            wait_up(replica)
            eventually(lambda: client.call("GET", "end").value == b"1", lambda: log(replica))
            assert client.call("GET", "in").value == b"multi"
            assert info(client)["slave_repl_offset"] == str(100 + len(stream))
            assert is_up(client)
        errors = [line for line in log(replica).splitlines() if "== CRITICAL ==" in line]
        assert len(errors) == 5, "\n".join(errors)
        assert sum("WRONGTYPE" in each and "'rpush'" in each for each in errors) == 1


def test_scripts_of_masters_before_redis_7():
    """They tell SCRIPT LOAD, and with 'lua-replicate-commands no' EVALSHA behind it."""
    code = "return redis.call('SET', KEYS[1], ARGV[1])"
    sha = hashlib.sha1(code.encode()).hexdigest()
    stream = told("SELECT", "0") + told("SCRIPT", "LOAD", code) + told("EVALSHA", sha, "1", "k", "v") + told("SCRIPT", "FLUSH")
    stream += told("SET", "end", "1")
    with stream_master([stream]) as master, replica_of(None, "rocksdb", KEPT, port=master.port) as replica:
        with replica.client() as client:
            wait_up(replica)
            eventually(lambda: client.call("GET", "end").value == b"1", lambda: log(replica))
            assert client.call("GET", "k").value == b"v"
            client.call("REPLICAOF", "NO", "ONE")
            assert client.call("EVALSHA", sha, 1, "k", "mine").value == b"OK"
        assert "== CRITICAL ==" not in log(replica)


@pytest.mark.parametrize(
    "bad", [b"\x00\x01rubbish\r\n", b"*1\r\n$-5\r\n", b"*2\r\n:1\r\n", told("EXEC"), told("SELECT", "16"), b"PING\r\n"]
)
def test_a_stream_of_rubbish_is_not_followed(bad):
    good = told("SELECT", "0") + told("SET", "k", "v")
    with stream_master([good, bad], pause=0.3) as master, replica_of(None, "rocksdb", KEPT, port=master.port) as replica:
        with replica.client() as client:
            eventually(lambda: client.call("GET", "k").value == b"v", lambda: log(replica))
            eventually(lambda: master.accepted >= 2, lambda: log(replica))
            time.sleep(1)
            assert master.accepted <= 5  # no faster than that


def test_another_id_for_the_same_stream():
    """+CONTINUE with an id: of a master that was made one, with the same past."""
    other = "f" * 40
    asked = []

    def talk(peer):
        asked.append(peer.shake_hands())
        if len(asked) == 1:
            full_resync(peer, 100)
            peer.send(told("SELECT", "0") + told("SET", "k", "1"))
            time.sleep(1.5)
            return
        peer.send(b"+CONTINUE %s\r\n" % other.encode() + told("INCR", "k"))
        while True:
            peer.command()

    with FakeMaster(talk) as master, replica_of(None, "rocksdb", KEPT, port=master.port) as replica:
        with replica.client() as client:
            eventually(lambda: client.call("GET", "k").value == b"2", lambda: log(replica))
            begin = 100 + len(told("SELECT", "0") + told("SET", "k", "1"))
            assert asked == [["?", "-1"], [RUN_ID, str(begin + 1)]]
            assert info(client)["master_replid"] == other
            replica.restart(kill=True)
            eventually(lambda: len(asked) >= 3, "not asked again")
            assert asked[2] == [other, str(begin + len(told("INCR", "k")) + 1)]


def test_offset_is_that_of_the_masters_stream(engine):
    """Sentinel takes the replica with the highest one for the next master: not one that has parted from the stream."""
    sent = []

    def talk(peer):
        known = peer.shake_hands()
        sent.append(known)
        if len(sent) == 1:
            full_resync(peer, 5000)
            time.sleep(0.5)
        elif len(sent) == 2:
            peer.send(b"+FULLRESYNC %s 7\r\n" % RUN_ID.encode())
            time.sleep(2)
        else:
            time.sleep(2)

    with FakeMaster(talk) as master, replica_of(None, engine, KEPT, port=master.port) as replica:
        with replica.client() as client:

            def offset():
                return info(client)["slave_repl_offset"]

            eventually(lambda: is_up(client), "no link")
            assert offset() == "5000"
            eventually(lambda: len(sent) == 2 and offset() == "1", "it claims a place in another stream")
            eventually(lambda: len(sent) == 3, "it does not come back")
            assert offset() == "1"


def test_it_asks_from_behind_all_that_clients_had_sent(engine):
    """What is still to run when REPLICAOF comes moves the place; a stream that goes on in front of it would be misread."""
    asked = []

    def talk(peer):
        asked.append(int(peer.shake_hands()[1]))
        time.sleep(2 * SCRIPT_SECONDS)  # the answer finds the script over, however slow this machine is
        peer.send(b"+CONTINUE " + b"1" * 40 + b"\r\n" + told("SELECT", "0") + told("SET", "k", "of the master"))
        time.sleep(20)

    script = f"local t = redis.call('time') local till = t[1] * 1000000 + t[2] + {SCRIPT_SECONDS * 1_000_000} repeat " \
        "t = redis.call('time') until t[1] * 1000000 + t[2] > till return redis.call('set', 'late', 'x')"  # fmt: skip
    with FakeMaster(talk) as master, Server.ingot(engine, KEPT | {"repl-timeout": "20"}) as server:
        with Replica(server.port), server.client() as client, server.client() as busy:
            client.call("SET", "a", "b")
            before = int(info(client)["master_repl_offset"])
            busy.send("EVAL", script, "0")
            client.call("REPLICAOF", "127.0.0.1", master.port)
            assert busy.read().value == b"OK"
            eventually(lambda: client.call("GET", "k").value == b"of the master", lambda: log(server))
            bytes_told = len(told("SELECT", "0") + told("SET", "k", "of the master"))
            assert asked == [int(info(client)["master_repl_offset"]) - bytes_told + 1]
            assert asked[0] > before + 1


def test_what_has_come_is_taken_though_the_master_is_gone(engine):
    """Its end was met by an acknowledgement that could not be sent: 50 writes stood unread in the socket."""
    sent = threading.Event()
    stopped = threading.Event()
    calls = []

    def talk(peer):
        calls.append(peer.shake_hands())
        if len(calls) > 1:
            return
        full_resync(peer, 0)
        peer.command()
        assert stopped.wait(10)
        peer.send(told("SELECT", "0") + b"".join(told("SET", f"key:{n}", "x" * 1000) for n in range(50)))
        time.sleep(ACK_SECONDS)
        peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        peer.connection.close()
        sent.set()

    with FakeMaster(talk) as master, replica_of(None, engine, KEPT, port=master.port) as replica:
        wait_up(replica)
        replica.signal(signal.SIGSTOP)
        stopped.set()
        assert sent.wait(10)
        replica.signal(signal.SIGCONT)
        with replica.client() as client:
            eventually(lambda: client.call("DBSIZE").value == 50, "what had come was not taken")
