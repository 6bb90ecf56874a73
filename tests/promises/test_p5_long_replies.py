"""P5: one command whose reply is larger than the memory, made of many small parts: it is streamed, whole."""

import pytest
from harness import MB
from large_values import send_command, slow_socket
from memory_bound import limited
from support.servers import self_check
from test_p5_collections import drain

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

PENDING = 200_000
CONSUMER = "c" * 60


def fill_strings(client):
    client.call("SET", "inline", "v" * 16_000)
    client.call("SET", "chunked", "v" * 60_000)


def fill_hash(client):
    for number in range(20):
        client.call("HSET", "hash", f"field:{number}", "v" * 30_000)


def fill_stream(client):
    client.call("XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM")
    script = "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'f', 'v') end"
    for _ in range(PENDING // 10_000):
        client.call("EVAL", script, "1", "stream", "10000")
        reply = client.call("XREADGROUP", "GROUP", "group", CONSUMER, "COUNT", "10000", "STREAMS", "stream", ">")
        assert not reply.is_error()


ALL = ["-", "+", "1000000"]
LONG = {  # what fills; commands and the least sizes of their replies
    "strings": (
        fill_strings,
        [(["MGET"] + ["inline", "none"] * 10_000, 150 * MB), (["MGET"] + ["chunked", "inline"] * 3_000, 210 * MB)],
    ),
    "fields": (fill_hash, [(["HMGET", "hash"] + ["field:3", "none"] * 5_000, 140 * MB)]),
    "pending": (
        fill_stream,
        [
            (["XPENDING", "stream", "group", *ALL], 17 * MB),
            (["XPENDING", "stream", "group", "IDLE", "0", *ALL, CONSUMER], 17 * MB),
            (["XINFO", "STREAM", "stream", "FULL", "COUNT", "0"], 30 * MB),
        ],
    ),
}


@pytest.mark.seconds(150)
@pytest.mark.parametrize("kind", LONG)
def test_a_reply_larger_than_the_memory(engine, kind):
    fill, commands = LONG[kind]
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        fill(client)
        before = memory.peak()
        for command, bytes_least in commands:
            with slow_socket(server) as one, slow_socket(server) as another:
                for sock in (one, another):
                    send_command(sock, *command)
                    send_command(sock, "PING")
                for sock in (one, another):
                    assert drain(sock) > bytes_least
            assert memory.peak() < before + 32 * MB
            memory.check(" ".join(command[:3]))


def test_the_parts_are_in_order(engine):
    """What is streamed from the middle on is what a small reply says."""
    with limited(engine) as (server, _), server.client(timeout=60) as client:
        names = []
        for number in range(300):
            names += [f"string:{number}", f"none:{number}", f"list:{number}"]
            size = (10, 16_000, 20_000, 150_000)[number % 4]  # in records and in chunks
            client.call("SET", f"string:{number}", f"{number}:" + "v" * size)
            client.call("RPUSH", f"list:{number}", "not a string")
            client.call("HSET", "hash", f"string:{number}", f"{number}:" + "v" * size)
        one_by_one = [client.call("MGET", name).value[0] for name in names]
        assert client.call("MGET", *names).value == one_by_one
        fields = [client.call("HMGET", "hash", name).value[0] for name in names]
        assert client.call("HMGET", "hash", *names).value == fields
        for word in ("MULTI", ("SET", "a", "b"), ("MGET", *names), ("HMGET", "hash", *names)):
            client.call(*([word] if isinstance(word, str) else word))
        assert [reply.value for reply in client.call("EXEC").value[1:]] == [one_by_one, fields]


def test_what_is_pending_is_in_order(engine):
    with limited(engine) as (server, _), server.client(timeout=60) as client:
        client.call("XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM")
        script = "for i = 1, 6000 do redis.call('XADD', KEYS[1], i .. '-1', 'f', 'v') end"
        client.call("EVAL", script, "1", "stream")
        for number in range(60):
            consumer = f"consumer:{number % 3}:" + "c" * 40
            client.call("XREADGROUP", "GROUP", "group", consumer, "COUNT", "100", "STREAMS", "stream", ">")
        client.call("XACK", "stream", "group", *[f"{number}-1" for number in range(1, 6000, 7)])

        def pending(*words):
            reply = client.call("XPENDING", "stream", "group", *words)
            return [(entry.value[0].value, entry.value[1].value) for entry in reply.value]

        whole = pending("-", "+", "10000")
        parts = [entry for first in range(1, 6001, 50) for entry in pending(f"{first}-1", f"{first + 49}-1", "50")]
        assert len(whole) == 6000 - len(range(1, 6000, 7)) and whole == parts
        for number in range(3):
            consumer = f"consumer:{number}:" + "c" * 40
            own = [entry for entry in whole if entry[1] == consumer.encode()]
            assert pending("-", "+", "10000", consumer) == own
            assert pending("-", "+", "1500", consumer) == own[:1500]
        assert pending("IDLE", "3600000", "-", "+", "10000") == []
        assert pending("-", "+", "0") == pending("-", "+", "10", "nobody") == []
