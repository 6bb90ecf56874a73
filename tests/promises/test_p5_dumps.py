"""P5: a long string leaves by DUMP or MIGRATE, and comes by RESTORE, without being held."""

import pytest
from harness import MB, OK, Crew, eventually, ingot
from large_values import block, receive_exactly, receive_line, send_blocks, send_command
from large_values import slow_socket, store
from memory_bound import MAXMEMORY, MemoryWatch, limited
from support.servers import Server, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

LARGE = 96 * MB
OOM = b"OOM command not allowed when used memory > 'maxmemory'."


@pytest.mark.seconds(120)
def test_dump_restore_and_migrate_of_a_string_larger_than_the_memory(engine):
    with limited(engine) as (server, memory), ingot(engine, maxmemory=MAXMEMORY) as other:
        with server.client(timeout=60) as client, MemoryWatch(other) as others_memory:
            store(server, "large", LARGE)
            with slow_socket(server, buffer_bytes=MB) as source:
                with slow_socket(other, buffer_bytes=MB) as target:
                    carry_dump(source, target)
                    memory.check("DUMP")
                    others_memory.check("RESTORE")
            assert client.call("MIGRATE", "127.0.0.1", other.port, "large", 0, 60_000) == OK
            memory.check("MIGRATE")
            others_memory.check("RESTORE by MIGRATE")
            with slow_socket(other, buffer_bytes=MB) as target:
                for name in ("restored", "large"):
                    send_command(target, "GETRANGE", name, LARGE - MB, LARGE)
                    assert receive_line(target) == b"$%d" % MB
                    assert receive_exactly(target, MB) == block(LARGE // MB - 1)
                    receive_exactly(target, 2)


def carry_dump(source, target):
    send_command(source, "DUMP", "large")
    left = int(receive_line(source)[1:])
    target.sendall(b"*4\r\n$7\r\nRESTORE\r\n$8\r\nrestored\r\n$1\r\n0\r\n$%d\r\n" % left)
    left += 2
    while left:
        piece = source.recv(min(left, MB))
        assert piece, "the server hung up"
        target.sendall(piece)
        left -= len(piece)
    assert receive_line(target) == b"+OK"


def test_a_wrong_checksum_behind_a_long_string(engine):
    with limited(engine) as (server, _), server.client() as client:
        with slow_socket(server, buffer_bytes=MB) as sock:
            head = b"\x00\x80" + (4 * MB).to_bytes(4, "big")
            sock.sendall(b"*4\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n$%d\r\n" % (4 * MB + 16) + head)
            send_blocks(sock, 4 * MB)
            sock.sendall(b"\x0a\x00" + b"checksum" + b"\r\n")
            assert receive_line(sock) == b"-ERR DUMP payload version or checksum are wrong"
        assert client.call("EXISTS", "k").value == 0


def test_a_dump_that_does_not_fit_is_refused(engine):
    with limited(engine) as (server, memory), server.client(timeout=30) as client:
        for number in range(20):
            assert client.call("RPUSH", "list", b"%d" % number + b"x" * MB).value == number + 1
        assert client.call("DUMP", "list").value == OOM
        memory.check("DUMP of a list of 20 MB")
        with server.client() as target:
            reply = client.call("MIGRATE", "127.0.0.1", server.port, "list", 1, 10_000)
            assert reply.value == OOM
            assert target.call("LLEN", "list").value == 20


def restore_two(server, dump):
    """Beside each other, several times over."""

    def restore(key):
        with server.client(timeout=60) as client:
            for _ in range(3):
                assert client.call("RESTORE", key, 0, dump, "REPLACE") == OK

    with Crew() as crew:
        crew.add(restore, "one")
        crew.add(restore, "two")


def test_large_collections_are_restored_beside_each_other(engine, rng):
    """Each stood in memory five times over: two took 224 MB."""
    with Server.redis() as other, other.client(timeout=60) as source, limited(engine) as (server, memory):
        for number in range(1000):
            source.call("ZADD", "k", number, b"%05d" % number + rng.randbytes(12_000))
        restore_two(server, source.call("DUMP", "k").value)
        memory.check("RESTORE")
        with server.client() as client:
            for key in ("one", "two"):
                assert client.call("ZCARD", key).value == 1000
                assert client.call("ZRANGE", key, 500, 509) == source.call("ZRANGE", "k", 500, 509)


def test_large_streams_are_restored_beside_each_other(engine):
    """Each entry was held as objects, and as records beside those: 327 MB."""
    add = "for i = 1, 150000 do redis.call('XADD', 'k', i .. '-1', 'f', ARGV[1]) end"
    with Server.redis() as other, other.client(timeout=60) as source, limited(engine) as (server, memory):
        assert not source.call("EVAL", add, 0, "v" * 200).is_error()
        source.call("XGROUP", "CREATE", "k", "g", 0)
        source.call("XREADGROUP", "GROUP", "g", "c", "COUNT", 100_000, "STREAMS", "k", ">")
        restore_two(server, source.call("DUMP", "k").value)
        memory.check("RESTORE")
        with server.client() as client:
            for key in ("one", "two"):
                assert client.call("XLEN", key).value == 150_000
                for command, *rest in (("XRANGE", "75000", "75002"), ("XRANGE", "150000", "+"), ("XPENDING", "g")):
                    assert client.call(command, key, *rest) == source.call(command, "k", *rest)


@pytest.mark.seconds(60)
def test_a_master_whose_string_is_compressed_to_little(engine):
    with limited(engine) as (server, memory), Server.redis() as master:
        with server.client(timeout=60) as client, master.client(timeout=60) as source:
            source.call("SETRANGE", "large", 2 * LARGE - 1, "x")
            assert client.call("REPLICAOF", "127.0.0.1", master.port) == OK
            eventually(lambda: client.call("STRLEN", "large").value == 2 * LARGE, 40, "followed")
            memory.check("a full synchronization")
            assert client.call("GETRANGE", "large", -3, -1).value == b"\0\0x"
