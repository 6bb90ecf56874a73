"""Masters that lie, or never come to an end: what they can do to a replica is nothing worse than to have it ask again."""

import struct
import time

import pytest
from pairs import EMPTY_RDB, RUN_ID, FakeMaster, eventually, full_resync, info, told
from support.effort import FULL
from test_masters_words import KEPT, log, stays_old, with_data

HEAD, END = EMPTY_RDB[:9], EMPTY_RDB[9:]


def short(text):
    return bytes([len(text)]) + text


def resident_mb(server):
    lines = open(f"/proc/{server.process.pid}/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


def ends(replica):
    """Nothing of the master is left to wait for."""
    begun = time.monotonic()
    with replica.client() as client:
        assert client.call("REPLICAOF", "NO", "ONE").value == b"OK"
        assert client.call("SET", "new", "data").value == b"OK"
    assert replica.stop() == 0
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("database", ["99999", "16", "-1", "4294967296"])
def test_a_database_that_is_not_there(engine, database):
    """Selected where the data was taken: what follows in the stream would go there."""
    rdb = HEAD + b"\xfa" + short(b"repl-stream-db") + short(database.encode()) + END

    def talk(peer):
        peer.shake_hands()
        full_resync(peer, 100, rdb)
        peer.send(told("SET", "k", "v"))
        time.sleep(2)

    with FakeMaster(talk) as master, with_data(master.port, engine) as replica:
        eventually(lambda: f"the master uses database {database}, and there are 16" in log(replica), lambda: log(replica))
        stays_old(replica)
        ends(replica)


@pytest.mark.parametrize("offset", [-1, (1 << 62) + 1, 1 << 63, (1 << 64) - 1, 1 << 64])
def test_an_offset_that_no_stream_has(offset):
    def talk(peer):
        peer.shake_hands()
        full_resync(peer, offset)
        time.sleep(2)

    with FakeMaster(talk) as master, with_data(master.port) as replica:
        eventually(lambda: "Unexpected reply to PSYNC" in log(replica), lambda: log(replica))
        stays_old(replica)


def test_more_bytes_than_the_data_have():
    """They are not gathered until there are as many as were announced."""
    sent = []

    def talk(peer):
        peer.shake_hands()
        peer.send(b"+FULLRESYNC %s 1\r\n$900000000000\r\n" % RUN_ID.encode() + EMPTY_RDB)
        while True:
            peer.send(b"x" * (1 << 20))
            sent.append(1)

    with FakeMaster(talk) as master, with_data(master.port) as replica:
        eventually(lambda: "the data do not end where they should" in log(replica), lambda: log(replica))
        eventually(lambda: master.accepted >= 2, "no other attempt")
        assert len(sent) < 100
        stays_old(replica)
        ends(replica)


def test_endless_libraries_of_functions():
    def talk(peer):
        peer.shake_hands()
        peer.send(b"+FULLRESYNC %s 1\r\n$900000000000\r\n" % RUN_ID.encode() + HEAD)
        while True:
            peer.send(b"\xf5\x80" + struct.pack(">I", 1 << 20) + b"x" * (1 << 20))

    with FakeMaster(talk) as master, with_data(master.port) as replica:
        eventually(lambda: "its libraries of functions take more than" in log(replica), lambda: log(replica))
        stays_old(replica)
        ends(replica)


@pytest.mark.parametrize("code", [b"while true do end", b"redis.call('set', 'k', 'v')", b"local x"])
def test_a_library_that_does_not_load(code):
    library = b"#!lua name=lib\n" + code

    def talk(peer):
        peer.shake_hands()
        full_resync(peer, 100, HEAD + b"\xf5" + bytes([0x40, len(library)]) + library + END)
        time.sleep(2)

    with FakeMaster(talk) as master, with_data(master.port) as replica:
        eventually(lambda: "a library of functions cannot be loaded" in log(replica), lambda: log(replica))
        stays_old(replica)
        ends(replica)


def test_commands_that_would_wait():
    """What waits on a master waits for nobody here, and nothing behind it does."""
    stream = told("SELECT", "0") + told("BLPOP", "q", "0") + told("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
    stream += told("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">") + told("WAIT", "1", "0")
    stream += told("BLMOVE", "q", "r", "LEFT", "LEFT", "0") + told("BZPOPMIN", "z", "0") + told("SET", "end", "1")

    def talk(peer):
        peer.shake_hands()
        full_resync(peer, 100)
        peer.send(stream)
        while True:
            peer.command()

    with FakeMaster(talk) as master, with_data(master.port) as replica, replica.client() as client:
        eventually(lambda: client.call("GET", "end").value == b"1", lambda: log(replica))
        assert info(client)["slave_repl_offset"] == str(100 + len(stream))
        ends(replica)


@pytest.mark.skipif(not FULL, reason="hundreds of megabytes")
def test_a_transaction_without_end():
    def talk(peer):
        peer.shake_hands()
        full_resync(peer, 100)
        peer.send(told("MULTI"))
        while True:
            peer.send(told("SET", "k", "v" * 1000) * 1000)

    with FakeMaster(talk) as master, with_data(master.port, options=KEPT) as replica:
        eventually(lambda: "transaction is larger than memory allows" in log(replica), lambda: log(replica), 60)
        assert resident_mb(replica) < 1500
        with replica.client() as client:
            assert client.call("PING").value == b"PONG"
        ends(replica)
