"""P5: clients that do not read their replies, or do not finish their commands, take no memory
beyond the limit, and other clients do not notice them."""

import socket
import time

import pytest
from harness import MB, OK, Crew, eventually, info, ingot, load, process_status, timed_ms
from large_values import block, receive_exactly, receive_line, send_command, slow_socket, store
from memory_bound import limited
from support.resp import encode
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

OTHERS_ANSWERED_WITHIN_MS = 1000


def settle(server, seconds=20):
    """Waits until the server's memory stays the same for a while."""
    sizes = []

    def quiet():
        sizes.append(process_status(server)["RssAnon"])
        return len(sizes) > 10 and max(sizes[-10:]) - min(sizes[-10:]) < MB

    eventually(quiet, seconds, "memory settles", pause=0.1)


def check_others_are_served(client):
    for command in (("SET", "other", "x"), ("GET", "other"), ("PING",)):
        reply, took_ms = timed_ms(client, *command)
        assert not reply.is_error()
        assert took_ms < OTHERS_ANSWERED_WITHIN_MS


def test_hot_records_give_back_what_clients_come_to_need(engine):
    with ingot(engine, maxmemory="256mb") as server, server.client() as good:

        def capacity():
            return int(info(good, "engine")["record_cache_capacity"])

        for number in range(4):
            store(server, f"large:{number}", 4 * MB)
        eventually(lambda: capacity() > 45 * MB, 5, "their share is 31 MB, and nobody needs the rest")
        alone = capacity()
        greedy = [slow_socket(server) for _ in range(30)]
        for sock in greedy:
            sock.sendall(b"".join(encode(("GET", f"large:{n % 4}")) for n in range(40)))
        eventually(lambda: capacity() < alone - 5 * MB, 10, "clients need some of it")
        for sock in greedy:
            sock.close()
        eventually(lambda: capacity() > alone - 3 * MB, 10, "they have it again")


@pytest.mark.timed
@pytest.mark.seconds(120)
def test_clients_that_never_read_large_values(engine):
    with limited(engine) as (server, memory), server.client() as good:
        for number in range(20):
            store(server, f"large:{number}", 4 * MB)
        greedy = [slow_socket(server) for _ in range(30)]
        for sock in greedy:  # each asks for 160 MB
            sock.sendall(b"".join(encode(("GET", f"large:{n % 20}")) for n in range(40)))
        settle(server)
        check_others_are_served(good)
        memory.check("clients that never read large values")
        # They were slowed down, not cut: whoever reads gets everything.
        for _ in range(40):
            assert receive_line(greedy[0]) == b"$%d" % (4 * MB)
            for number in range(4):
                assert receive_exactly(greedy[0], MB) == block(number)
            receive_exactly(greedy[0], 2)
        for sock in greedy:
            sock.close()
        check_others_are_served(good)
        memory.check("after they left")


@pytest.mark.timed
@pytest.mark.seconds(120)
def test_a_pipeline_of_gets_that_is_never_read(engine, rng):
    """The server stops reading it; then everything comes, in order."""
    keys = 1000
    values = [rng.randbytes(10_000) for _ in range(keys)]
    with limited(engine) as (server, memory), server.client() as good:
        load(good, ((f"key:{n}", value) for n, value in enumerate(values)), batch=50)
        sock = slow_socket(server)
        sock.setblocking(False)
        commands = 2_000_000  # 20 GB of replies
        batch = b"".join(encode(("GET", f"key:{n}")) for n in range(keys))
        sent = send_until_stuck(sock, batch, commands // keys)
        settle(server)
        assert sent < commands // keys * len(batch) // 2, "nobody slowed the client down"
        print(f"{sent >> 10} KB of commands were taken")
        check_others_are_served(good)
        memory.check("a pipeline that is never read")
        sock.settimeout(60)
        complete = sent // len(batch) * keys
        for number in range(complete):
            value = values[number % keys]
            assert receive_line(sock) == b"$10000"
            assert receive_exactly(sock, len(value) + 2) == value + b"\r\n", f"reply {number}"
        sock.close()


@pytest.mark.parametrize("data", ["warm", "cold"])
def test_clients_that_read_are_never_cut(engine, rng, data):
    """Deep pipelines ask for more than the memory, in the largest replies that are not streamed."""
    keys = 3000
    value = rng.randbytes(16_384)

    def read_everything(server):
        with server.client(timeout=30) as client:
            client.send_raw(b"".join(encode(("GET", f"key:{n}")) for n in range(keys)))
            for number in range(keys):
                reply = client.read()
                assert reply.value == value, f"reply {number}: {reply!r:.100}"

    with limited(engine, direct_reads="yes") as (server, memory):
        with server.client() as client:
            load(client, ((f"key:{n}", value) for n in range(keys)), batch=50)
        if data == "cold":
            server.restart()
        with Crew() as crew:
            for _ in range(6):
                crew.add(read_everything, server)
            crew.wait(60)
        memory.check("deep pipelines of GETs")


@pytest.mark.parametrize("form", ["alone", "transactions"])
def test_clients_that_read_collections_are_never_cut(engine, form):
    """Each reply is made whole in the pool, and a pipeline asks for as much as all replies together may take."""
    fields = [f"field:{n}" for n in range(1000)]
    value = "x" * 60

    def read_everything(server):
        with server.client(timeout=30) as client:
            if form == "alone":
                client.send_raw(encode(("HGETALL", "hash")) * 100)
                replies = [client.read() for _ in range(100)]
            else:
                transaction = (("MULTI",), ("HGETALL", "hash"), ("HGETALL", "hash"), ("EXEC",))
                client.send_raw(b"".join(encode(each) for each in transaction) * 50)
                read = [client.read() for _ in range(4 * 50)]
                replies = [reply for each in read[3::4] for reply in each.value]
            assert all(len(reply.value) == 2 * len(fields) for reply in replies)

    with limited(engine) as (server, memory):
        with server.client() as client:
            client.call("HSET", "hash", *(word for field in fields for word in (field, value)))
        with Crew() as crew:
            for _ in range(16):
                crew.add(read_everything, server)
            crew.wait(60)
        memory.check("deep pipelines of HGETALLs")


def send_until_stuck(sock, batch, repeats):
    """Bytes that the peer took before it stopped for a second and a half."""
    sent, stuck_since = 0, time.monotonic()
    total = len(batch) * repeats
    while sent < total and time.monotonic() - stuck_since < 1.5:
        try:
            sent += sock.send(memoryview(batch)[sent % len(batch) :])
            stuck_since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    return sent


@pytest.mark.parametrize("command", ["SET", "APPEND", "ECHO", "MSET"])
def test_many_unfinished_large_arguments(engine, command):
    """Each of many clients sends a part of a large argument and then nothing for a while."""
    announced, part = 24 * MB, 12 * MB
    clients = 25
    before_it = {"ECHO": (), "MSET": ("a", "1", "b")}.get(command, ("key",))
    with limited(engine) as (server, memory), server.client() as good:
        socks = []
        for _ in range(clients):
            sock = slow_socket(server, timeout=3)
            socks.append(sock)
            head = b"*%d\r\n" % (len(before_it) + 2)
            for argument in (command, *before_it):
                head += b"$%d\r\n%b\r\n" % (len(argument), argument.encode())
            try:
                sock.sendall(head + b"$%d\r\n" % announced)
                for number in range(part // MB):
                    sock.sendall(block(number))
            except (socket.timeout, ConnectionError):
                pass  # slowed down or cut: both keep the memory
            check_others_are_served(good)
        settle(server)
        memory.check(f"unfinished arguments of {command}")
        for sock in socks:
            sock.close()
        check_others_are_served(good)
        assert good.call("DBSIZE").value == 1


def test_a_slow_pipeline_of_large_writes(engine):
    """Writes that come faster than the disk takes them wait in the socket, not in memory."""
    with limited(engine, appendfsync="always") as (server, memory), server.client() as good:
        socks = [slow_socket(server) for _ in range(8)]
        for round_number in range(10):
            for number, sock in enumerate(socks):
                send_command(sock, "SET", f"key:{number}:{round_number}", large_bytes=2 * MB)
        for sock in socks:
            for _ in range(10):
                assert receive_line(sock) == b"+OK"
        memory.check("a pipeline of large writes")
        assert good.call("DBSIZE").value == 80
        assert good.call("SET", "other", "x") == OK
