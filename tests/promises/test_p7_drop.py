"""P7: dropping takes constant time whatever the size, and the space comes back by itself."""

import os

import pytest
from harness import MB, OK, check_key_count, disk_bytes, eventually, ingot, load, timed_ms
from large_values import store
from support.effort import FULL
from support.servers import self_check
from test_p8_check import ingot_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis has no data on disk")

LARGE = 200 * MB
SMALLER = LARGE if FULL else 40 * MB  # where one of 200 MB was dropped already
KEYS = 200_000
KEY_VALUE_BYTES = 300
QUICK_MS = 150.0  # generous: reading or writing what is dropped would take many times as long
SPACE_BACK_SECONDS = 90


def quick(client, *command):
    """The command's reply; it must not take long."""
    reply, took_ms = timed_ms(client, *command)
    print(f"{' '.join(map(str, command))}: {took_ms:.2f} ms")
    assert not reply.is_error(), reply
    assert took_ms < QUICK_MS, f"{command} took {took_ms:.0f} ms"
    return reply


def files_of(server):
    """The larger files of the engine with their KB, for a message."""
    sizes = {path.name: path.stat().st_blocks // 2
             for path in (server.directory / "ingot-data").iterdir()}  # fmt: skip
    return {name: size for name, size in sorted(sizes.items()) if size > 100}


def check_space_comes_back(server, written):
    """Bytes on the disk fall to a little, with nobody doing anything."""
    # RocksDB reserves some megabytes for each log and catalogue before it fills them.
    bound = written // 4 + 16 * MB
    print(f"{disk_bytes(server) >> 20} MB on disk")
    try:
        took = eventually(lambda: disk_bytes(server) < bound, SPACE_BACK_SECONDS,
                          f"{written >> 20} MB come back", pause=0.2)  # fmt: skip
    except AssertionError as failure:
        raise AssertionError(f"{failure}; left are {files_of(server)}\n{server.log_tail()}") from None
    print(f"{disk_bytes(server) >> 20} MB after {took:.1f} s")


def make_cold(server, size):
    """Starts the server again: what it keeps is in table files, nothing in memory or in a log."""
    server.restart()
    assert disk_bytes(server) > size * 9 // 10
    return server.client(timeout=60)


@pytest.mark.timed
@pytest.mark.seconds(150)
def test_a_large_string(engine):
    with ingot(engine) as server:
        with server.client() as client:
            assert client.call("SET", "small", "x") == OK
            quick(client, "RENAME", "small", "tiny")
            quick(client, "DEL", "tiny")
        store(server, "large", LARGE)
        client = make_cold(server, LARGE)
        assert quick(client, "RENAME", "large", "renamed") == OK
        assert quick(client, "EXPIRE", "renamed", 1000).value == 1
        assert quick(client, "PERSIST", "renamed").value == 1
        assert quick(client, "STRLEN", "renamed").value == LARGE
        assert quick(client, "DEL", "renamed").value == 1
        assert quick(client, "EXISTS", "renamed").value == 0
        check_space_comes_back(server, LARGE)


@pytest.mark.timed
@pytest.mark.seconds(150)
@pytest.mark.parametrize("how", ["unlink", "overwrite", "rename over", "expire", "in a block"])
def test_ways_to_drop_a_large_string(engine, how):
    with ingot(engine) as server:
        store(server, "large", SMALLER)
        client = make_cold(server, SMALLER)
        assert client.call("SET", "small", "x") == OK
        if how == "unlink":
            quick(client, "UNLINK", "large")
        elif how == "overwrite":
            quick(client, "SET", "large", "x")
        elif how == "rename over":
            quick(client, "RENAME", "small", "large")
        elif how == "expire":
            quick(client, "PEXPIRE", "large", 1)
            eventually(lambda: client.call("DBSIZE").value == 1, 2, "it expires", pause=0.01)
        else:
            client.pipeline([("MULTI",), ("DEL", "large"), ("EXEC",)])
        quick(client, "GET", "small")
        check_space_comes_back(server, SMALLER)


@pytest.mark.timed
@pytest.mark.seconds(150)
def test_a_database_of_many_keys(engine):
    """FLUSHDB and SWAPDB of 200,000 keys; another database is not touched."""
    with ingot(engine) as server:
        with server.client(timeout=60) as client:
            assert client.pipeline([("SELECT", 1), ("SET", "stays", "here"), ("SELECT", 0)])[-1] == OK
            assert client.call("SET", "k", "v") == OK
            quick(client, "FLUSHDB")
            load(client, ((f"key:{i}", os.urandom(KEY_VALUE_BYTES)) for i in range(KEYS)))
        client = make_cold(server, KEYS * KEY_VALUE_BYTES)
        assert client.call("DBSIZE").value == KEYS
        assert quick(client, "SWAPDB", 0, 2) == OK
        assert quick(client, "DBSIZE").value == 0
        assert quick(client, "SELECT", 2) == OK
        assert quick(client, "DBSIZE").value == KEYS
        assert quick(client, "FLUSHDB") == OK
        assert quick(client, "DBSIZE").value == 0
        assert quick(client, "GET", "key:1").is_null()
        assert client.call("SET", "key:1", "new") == OK
        check_key_count(client, 1)
        check_space_comes_back(server, KEYS * KEY_VALUE_BYTES)
        assert client.call("GET", "key:1").value == b"new"
        assert client.pipeline([("SELECT", 1), ("GET", "stays")])[-1].value == b"here"


@pytest.mark.seconds(150)
def test_what_was_dropped_is_reclaimed_after_a_crash(engine):
    """The garbage is noted with the drop itself: a kill -9 right after loses no space for good."""
    with ingot(engine) as server:
        with server.client(timeout=60) as client:
            store(server, "large", SMALLER)
            load(client, ((f"key:{i}", os.urandom(KEY_VALUE_BYTES)) for i in range(KEYS // 10)))
            assert client.call("SELECT", 1) == OK
            assert client.call("SET", "stays", "here") == OK
        client = make_cold(server, SMALLER)
        assert client.pipeline([("DEL", "large"), ("FLUSHDB",)])[-1] == OK
        server.restart(kill=True)
        with server.client() as client:
            assert client.call("DBSIZE").value == 0
            check_space_comes_back(server, SMALLER)
            assert client.pipeline([("SELECT", 1), ("GET", "stays")])[-1].value == b"here"


def test_what_has_expired_before_it_is_restored_goes(engine):
    """It made no key, and its value stayed on the disk for ever."""
    with ingot(engine) as server:
        with server.client(timeout=30) as client:
            client.call("SET", "string", bytes(3 * MB))
            client.pipeline([("SADD", "set", b"%d" % number + bytes(1000)) for number in range(100)])
            for key in ("string", "set"):
                restore = ("RESTORE", "k", 1, client.call("DUMP", key).value, "REPLACE", "ABSTTL")
                assert client.call(*restore) == OK
                assert client.pipeline([("MULTI",), restore, ("EXEC",)])[-1].value == [OK]
                assert client.call("RESTORE", "k", 2**63 - 1, *restore[3:5]) == OK
            assert client.call("DBSIZE").value == 2
        server.stop()
        code, said = ingot_check(server.directory)
        assert code == 0, said
