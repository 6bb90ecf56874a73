"""P5 and COPY: a collection larger than the memory is copied beside the writer."""

import pytest
from collections_of import TYPES, fill, read_all, size
from harness import Crew, info, timed_ms
from memory_bound import limited
from support.effort import FULL
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

COUNT = 75_000
SERVED_MEANWHILE = 20  # the copy takes a second; if the writer made it, it would serve nobody


def prepared_units(client):
    return int(info(client, "threads")["prepared_units"])


def beside_the_writer(server, client, *command, served_min=0):
    """The reply to a command whose work the pool does while other writes are served."""
    before, took = prepared_units(client), []

    def write(stop):
        with server.client(timeout=60) as other:
            while not stop.is_set():
                took.append(timed_ms(other, "SET", "beside", "x")[1])

    with Crew() as crew:
        crew.add(write, crew.stop)
        served = len(took)
        reply = client.call(*command)
        served = len(took) - served
    print(f"{len(took)} SETs meanwhile, {max(took, default=0):.1f} ms at most")
    assert prepared_units(client) > before
    assert served >= served_min
    return reply


@pytest.mark.seconds(240)
@pytest.mark.parametrize("kind", ["hash", "list", "stream"])
def test_copy_of_a_collection_larger_than_the_memory(engine, kind):
    with limited(engine) as (server, memory), server.client(timeout=120) as client:
        fill(client, kind, "large", COUNT)
        memory.check("filling")
        assert beside_the_writer(server, client, "COPY", "large", "copy", served_min=SERVED_MEANWHILE).value == 1
        memory.check("copying")
        assert size(client, kind, "copy") == COUNT
        # The copy is its own: what goes from one stays in the other.
        assert client.call("DEL", "large").value == 1
        fill(client, kind, "large", 10)
        server.restart(kill=True)
        with server.client(timeout=60) as again:
            assert size(again, kind, "copy") == COUNT
            assert size(again, kind, "large") == 10
            assert len(again.call(*read_all(kind, "copy")).value) >= COUNT
            assert again.call("COPY", "none", "copy", "REPLACE").value == 0
            assert again.call("COPY", "large", "copy", "REPLACE").value == 1
            assert size(again, kind, "copy") == 10


def test_a_source_that_changes_all_the_time(engine):
    """What is copied is one state: all elements of a push, or none."""
    with limited(engine) as (server, _), server.client(timeout=60) as client:
        fill(client, "list", "large", 5_000)

        def push(stop):
            with server.client(timeout=60) as other:
                while not stop.is_set():
                    other.call("RPUSH", "large", "one", "two", "three", "four")

        with Crew() as crew:
            crew.add(push, crew.stop)
            for _ in range(5):
                assert client.call("COPY", "large", "copy", "REPLACE").value == 1
                elements = client.call("LRANGE", "copy", 5_000, -1).value
                assert len(elements) % 4 == 0
                assert [each.value for each in elements[-4:]] in ([], [b"one", b"two", b"three", b"four"])


@pytest.mark.parametrize("kind", TYPES)
def test_a_large_dump_is_restored_beside_the_writer(engine, kind):
    if engine == "leveldb" and kind not in ("hash", "zset") and not FULL:
        pytest.skip("two types show it")
    with limited(engine) as (server, _), server.client(timeout=60) as client:
        fill(client, kind, "large", 12_500)
        digest = client.call("DEBUG", "DIGEST-VALUE", "large")
        dump = client.call("DUMP", "large").value
        assert beside_the_writer(server, client, "RESTORE", "again", 0, dump).value == b"OK"
        assert client.call("DEBUG", "DIGEST-VALUE", "again") == digest
        assert client.call("RESTORE", "again", 0, dump).is_error()  # BUSYKEY
        broken = dump[:-1] + bytes([dump[-1] ^ 1])
        assert b"checksum" in client.call("RESTORE", "again", 0, broken, "REPLACE").value
        assert client.call("RESTORE", "again", 60_000, dump, "REPLACE").value == b"OK"
        assert 0 < client.call("PTTL", "again").value <= 60_000
        client.call("PERSIST", "again")  # an expiry is part of the digest
        client.call("MULTI")
        client.call("RESTORE", "third", 0, dump)
        assert client.call("EXEC").value[0].value == b"OK"
        server.restart(kill=True)
        with server.client(timeout=60) as later:
            for key in ("again", "third"):
                assert later.call("DEBUG", "DIGEST-VALUE", key) == digest


def test_what_has_few_but_large_elements(engine):
    """No more of them than the writer copies itself."""
    value = b"v" * (250 << 10)
    with limited(engine) as (server, memory), server.client(timeout=120) as client:
        for number in range(300):
            assert client.call("RPUSH", "list", b"%d" % number + value).value == number + 1
            assert client.call("HSET", "hash", number, value).value == 1
        memory.check("filling")
        for kind in ("list", "hash"):
            assert beside_the_writer(server, client, "COPY", kind, "copy", "REPLACE").value == 1
            memory.check(f"copying a {kind}")
            assert size(client, kind, "copy") == 300
        assert beside_the_writer(server, client, "SORT", "list", "BY", "nosort", "STORE", "copy").value == 300
        memory.check("sorting")
        client.call("MULTI")
        client.call("COPY", "list", "copy", "REPLACE")
        client.call("SORT", "list", "BY", "nosort", "GET", "none*", "STORE", "absent")
        assert [each.value for each in client.call("EXEC").value] == [1, 300]
        memory.check("a transaction")
        assert client.call("LINDEX", "copy", -1).value == b"299" + value
