"""P5: no value is too large for the memory: 512 MB through slow sockets, and every command on it."""

import time

import pytest
from harness import MB, OK, disk_bytes, eventually, ingot
from large_values import BLOCK_BYTES, block, receive_bulk, receive_line, receive_value
from large_values import send_command, slow_socket, store
from memory_bound import MAXMEMORY, limited
from support.effort import FULL
from support.resp import Reply
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

PAUSE_S = 0.002  # after each MB
LARGE = 96 * MB  # as large as all the memory
TOO_LONG = b"ERR string exceeds maximum allowed size (proto-max-bulk-len)"


def largest(engine):
    """As much as a value may be; LevelDB takes long over it, so in the ordinary run less."""
    return 512 * MB if engine == "rocksdb" or FULL else 128 * MB


@pytest.mark.seconds(150)
def test_set_and_get_of_512_mb_through_slow_sockets(engine):
    size = largest(engine)
    with limited(engine) as (server, memory), server.client(timeout=30) as good:
        assert good.call("CONFIG", "SET", "proto-max-bulk-len", size) == OK
        with slow_socket(server) as sock:
            start = time.monotonic()
            send_command(sock, "SET", "largest", large_bytes=size, pause_s=PAUSE_S)
            assert receive_line(sock) == b"+OK"
            print(f"SET of {size >> 20} MB took {time.monotonic() - start:.1f} s")
            memory.check("SET of it")
            assert good.call("STRLEN", "largest").value == size
            send_command(sock, "GET", "largest")
            receive_value(sock, size, PAUSE_S)
            memory.check("GET of it")
        assert good.call("GETRANGE", "largest", 7 * MB, 7 * MB + 7).value == block(7)[:8]
        assert good.call("APPEND", "largest", "x").value == TOO_LONG
        assert good.call("DEL", "largest").value == 1


def test_a_large_value_is_whole_or_not_there_after_a_crash(engine):
    """A client that leaves in the middle, and a server that dies there, leave nothing behind."""
    with ingot(engine, maxmemory=MAXMEMORY) as server:
        with server.client() as client:
            assert client.call("SET", "largest", "before") == OK
        for ending in ("client", "server"):
            with slow_socket(server) as sock:
                sock.sendall(b"*3\r\n$3\r\nSET\r\n$7\r\nlargest\r\n$%d\r\n" % (512 * MB))
                for number in range(60):
                    sock.sendall(block(number))
                if ending == "server":
                    server.kill()
                    server.start()
            with server.client() as client:
                assert client.call("GET", "largest").value == b"before"
                assert client.call("DBSIZE").value == 1
        eventually(lambda: disk_bytes(server) < 30 * MB, 60, "the space of the staged parts comes back")


@pytest.mark.seconds(150)
def test_append_and_setrange_to_512_mb(engine):
    size = largest(engine)
    with limited(engine) as (server, memory), server.client(timeout=30) as client:
        assert client.call("CONFIG", "SET", "proto-max-bulk-len", size) == OK
        assert client.call("SETRANGE", "sparse", size - 1, "x").value == size
        assert client.call("SETRANGE", "sparse", size, "x").value == TOO_LONG
        assert client.call("SETRANGE", "sparse", 5 * MB, "in the middle").value == size
        with slow_socket(server, buffer_bytes=MB) as sock:
            send_command(sock, "APPEND", "grown", large_bytes=size - 16 * MB)
            assert receive_line(sock) == b":%d" % (size - 16 * MB)
            send_command(sock, "APPEND", "grown", large_bytes=16 * MB)
            assert receive_line(sock) == b":%d" % size
            memory.check(f"APPEND to {size >> 20} MB")
            send_command(sock, "GET", "sparse")
            receive_value(sock, size, expected=lambda number: sparse_block(number, size))
            memory.check(f"SETRANGE to {size >> 20} MB and GET of it")
        assert client.call("APPEND", "grown", "x").value == TOO_LONG


def sparse_block(number, size):
    nothing = bytes(BLOCK_BYTES)
    if number == 5:
        return b"in the middle" + nothing[13:]
    return nothing[:-1] + b"x" if number == size // BLOCK_BYTES - 1 else nothing


# The last ones take it away.
REPLIES_WITH_IT = [
    ("GET", "large"), ("GETRANGE", "large", 0, -1), ("GETEX", "large", "PERSIST"),
    ("SUBSTR", "large", 0, -1), ("GETSET", "large", "small"), ("SET", "large", "small", "GET"),
    ("GETDEL", "large"),
]  # fmt: skip


@pytest.mark.seconds(150)
def test_replies_with_a_value_as_large_as_the_memory(engine):
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        store(server, "source", LARGE)
        for command in REPLIES_WITH_IT:
            assert client.call("COPY", "source", "large", "REPLACE").value == 1
            with slow_socket(server, buffer_bytes=MB) as sock:
                send_command(sock, *command)
                receive_value(sock, LARGE)
            memory.check(" ".join(map(str, command)))
        assert client.call("GET", "large").is_null()


def test_one_reply_with_many_large_values(engine):
    """MGET, and EXEC of GETs: 300 MB in one reply."""
    with limited(engine) as (server, memory):
        for number in range(10):
            store(server, f"large:{number}", 10 * MB)
        keys = [f"large:{number % 10}" for number in range(30)]
        with slow_socket(server, buffer_bytes=MB) as sock:
            send_command(sock, "MGET", *keys)
            assert receive_line(sock) == b"*30"
            for _ in keys:
                receive_value(sock, 10 * MB)
            memory.check("MGET of 300 MB")
            send_command(sock, "MULTI")
            for key in keys:
                send_command(sock, "GET", key)
            send_command(sock, "EXEC")
            assert [receive_line(sock) for _ in range(32)] == [b"+OK"] + [b"+QUEUED"] * 30 + [b"*30"]
            for _ in keys:
                receive_value(sock, 10 * MB)
            memory.check("EXEC of 300 MB")


def test_commands_that_work_on_a_value_as_large_as_the_memory(engine):
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        store(server, "large", LARGE)
        for command, wanted in [
            (("STRLEN", "large"), Reply("integer", LARGE)),
            (("COPY", "large", "copy"), Reply("integer", 1)),
            (("SETRANGE", "large", LARGE // 2, "changed"), Reply("integer", LARGE)),
            (("APPEND", "large", "end"), Reply("integer", LARGE + 3)),
            (("GETRANGE", "large", LARGE // 2, LARGE // 2 + 6), Reply("bulk", b"changed")),
            (("GETRANGE", "copy", LARGE // 2, LARGE // 2 + 7), Reply("bulk", block(LARGE // 2 // MB)[:8])),
            (("RENAME", "copy", "other"), OK),
            (("INCR", "large"), Reply("error", b"ERR value is not an integer or out of range")),
            (("EXPIRE", "large", 1000), Reply("integer", 1)),
            (("OBJECT", "ENCODING", "large"), Reply("bulk", b"raw")),
            (("COPY", "large", "other", "REPLACE"), Reply("integer", 1)),
            (("MOVE", "large", 1), Reply("integer", 1)),
        ]:
            assert client.call(*command) == wanted, command
            memory.check(" ".join(map(str, command)))
        digest = client.call("DEBUG", "DIGEST")
        assert not digest.is_error()
        memory.check("DEBUG DIGEST")


def test_keys_with_a_reply_that_is_not_held(engine):
    names = [f"key:{number:07d}:{'x' * 200}" for number in range(60_000)]
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        for at in range(0, len(names), 1000):
            client.call("MSET", *[word for name in names[at : at + 1000] for word in (name, "v")])
        with slow_socket(server, buffer_bytes=MB) as sock:
            send_command(sock, "KEYS", "key:*")
            send_command(sock, "DEL", names[0])
            send_command(sock, "KEYS", "key:000000*")
            assert receive_line(sock) == b"*60000"
            assert sorted(receive_bulk(sock) for _ in names) == [name.encode() for name in names]
            assert receive_line(sock) == b":1"
            assert receive_line(sock) == b"*9"
        memory.check("KEYS of 13 MB")
