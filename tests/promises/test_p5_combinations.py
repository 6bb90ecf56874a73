"""P5 and commands over several collections, or that sort one: answered and stored within maxmemory, beside
the writer."""

import time

import pytest
from collections_of import fill, size
from harness import MB
from large_values import send_command, slow_socket
from memory_bound import limited
from support.effort import FULL
from support.servers import self_check
from test_p5_collections import drain
from test_p5_copy import beside_the_writer

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

COUNT = 50_000  # of some 800 bytes
PART = 45_000
GATHERED = 32 * MB  # would be more

ANSWERED = {
    "set": ["SUNION large part", "SINTER large part", "SDIFF large few", "SORT large ALPHA DESC"],
    "zset": ["ZUNION 2 large part WITHSCORES", "ZINTER 2 large part", "ZDIFF 2 large few", "ZREVRANGE large 0 -1"],
}
STORED = {
    "set": ["SUNIONSTORE dst large part", "SORT large ALPHA STORE dst"],
    "zset": ["ZUNIONSTORE dst 2 large part", "ZRANGESTORE dst large 0 -1"],
}


def fill_all(client, engine, kind):
    if engine == "leveldb" and kind == "set" and not FULL:
        pytest.skip("one type shows it")
    for key, count in (("large", COUNT), ("part", PART), ("few", 10)):
        fill(client, kind, key, count)


@pytest.mark.seconds(240)
@pytest.mark.parametrize("kind", ANSWERED)
def test_a_reply_larger_than_the_memory(engine, kind):
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        fill_all(client, engine, kind)
        filling = memory.peak()
        for line in ANSWERED[kind]:
            with slow_socket(server) as sock:
                send_command(sock, *line.split())
                send_command(sock, "PING")
                answered = drain(sock)
            assert answered > 30 * MB
            assert memory.peak() < filling + GATHERED
            memory.check(f"{line}: a reply of {answered >> 20} MB")


@pytest.mark.seconds(240)
@pytest.mark.parametrize("kind", STORED)
def test_what_is_stored_is_larger_than_the_memory(engine, kind):
    with limited(engine) as (server, memory), server.client(timeout=120) as client:
        fill_all(client, engine, kind)
        memory.check("filling")
        for line in STORED[kind]:
            assert beside_the_writer(server, client, *line.split()).value == COUNT
            memory.check(line)
        stored = "list" if kind == "set" else "zset"
        assert size(client, stored, "dst") == COUNT
        client.call("DEL", "large")
        server.restart(kill=True)
        with server.client(timeout=60) as again:
            assert size(again, stored, "dst") == COUNT
            first = ("LINDEX", "dst", 0) if kind == "set" else ("ZRANGE", "dst", 0, 0)
            reply = again.call(*first)
            assert b"000000000000" in (reply.value if kind == "set" else reply.value[0].value)
            # Nothing is left of what was made on the way.
            again.call("DEL", "dst")
            assert again.call("DBSIZE").value == 3


@pytest.mark.seconds(120)
def test_what_sort_gets_is_larger_than_the_memory(engine):
    count, value = 20_000, b"v" * 10_000
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        client.pipeline(["RPUSH", "l", n] for n in range(count))
        client.pipeline(["SET", f"w:{n}", value] for n in range(count))
        memory.check("filling")
        with slow_socket(server) as sock:
            send_command(sock, *"SORT l GET w:*".split())
            send_command(sock, "PING")
            assert drain(sock) > count * len(value)
        memory.check("SORT with GET")


@pytest.mark.seconds(120)
@pytest.mark.parametrize("line", ["SORT l ALPHA", "ZUNION 1 z", "LRANGE few 0 -1"])
def test_replies_that_nobody_reads(line):
    """Each is small enough to be sorted, or written, in memory. (LevelDB takes more than is allowed.)"""
    with limited("rocksdb") as (server, memory), server.client(timeout=60) as client:
        for n in range(2900):
            member = b"%05d" % n + b"m" * 1200
            client.pipeline([["RPUSH", "l", member], ["ZADD", "z", 1, member]])
        client.pipeline([["RPUSH", "few", b"%04d" % n + b"e" * 8000] for n in range(440)])
        memory.check("filling")
        greedy = [slow_socket(server) for _ in range(50)]
        for sock in greedy:
            send_command(sock, *line.split())
        with server.client(timeout=60) as late:
            assert len(late.call(*line.split()).value) in (2900, 440)
        time.sleep(2)  # the memory must stay where it is
        memory.check(line)
        for sock in greedy:
            sock.close()
