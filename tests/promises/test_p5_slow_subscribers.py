"""P5 and P6 for those who listen: subscribers that do not read are cut, and neither publishers nor other subscribers
wait for them; messages to thousands, large ones among them, stay within the memory; who vanishes leaves nothing."""

import os
import re
import select
import socket
import time

import pytest
from harness import MB, Crew, eventually, info, timed_ms
from large_values import slow_socket
from memory_bound import limited
from support.resp import Client, encode
from support.servers import Server, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

PUBLISHED_WITHIN_MS = 1000


def subscribe(server, *channels, command="SUBSCRIBE"):
    """A subscriber that never reads on, and keeps little in its socket."""
    sock = slow_socket(server)
    sock.sendall(encode((command, *channels)))
    return sock


def listeners(client, channel):
    return client.call("PUBSUB", "NUMSUB", channel).value[1].value


def subscribers(server, count, channel):
    """Clients that have been told that they are subscribed."""
    clients = [server.client(timeout=60) for _ in range(count)]
    for client in clients:
        client.send("SUBSCRIBE", channel)
    for client in clients:
        client.read()
    return clients


@pytest.mark.timed
@pytest.mark.seconds(120)
def test_subscribers_that_never_read_are_cut(engine):
    with limited(engine) as (server, memory), server.client() as client, server.client() as good:
        client.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 2mb 5")
        good.call("SUBSCRIBE", "news")
        slow = [subscribe(server, "news") for _ in range(20)]
        eventually(lambda: listeners(client, "news") == 21, 10, "all have subscribed")
        text = b"x" * 50_000
        for number in range(1000):  # 50 MB to each
            reply, took_ms = timed_ms(client, "PUBLISH", "news", b"%d:" % number + text)
            assert not reply.is_error() and took_ms < PUBLISHED_WITHIN_MS
            assert good.read().value[2].value.startswith(b"%d:" % number)
        eventually(lambda: listeners(client, "news") == 1, 10, "the slow ones are cut")
        assert info(client, "stats")["client_output_buffer_limit_disconnections"] == "20"
        memory.check("subscribers that never read")
        for sock in slow:
            sock.close()


@pytest.mark.seconds(60)
def test_the_soft_limit(engine):
    with limited(engine) as (server, _), server.client() as client:
        client.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 1mb 1")
        slow = subscribe(server, "news")
        eventually(lambda: listeners(client, "news") == 1, 10, "it has subscribed")
        for _ in range(60):
            client.call("PUBLISH", "news", b"x" * 100_000)
        assert listeners(client, "news") == 1
        eventually(lambda: listeners(client, "news") == 0, 10, "it is cut after a second")
        slow.close()


@pytest.mark.seconds(120)
def test_no_limit_but_the_memory(engine):
    """Without limits of the class the bound on all output holds."""
    with limited(engine) as (server, memory), server.client() as client, server.client() as good:
        client.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0")
        good.call("SUBSCRIBE", *(f"news:{n}" for n in range(10)))
        for _ in range(9):
            good.read()
        slow = [subscribe(server, f"news:{n}") for n in range(10)]
        eventually(lambda: listeners(client, "news:9") == 2, 10, "they have subscribed")
        for number in range(1000):  # 100 MB
            client.call("PUBLISH", f"news:{number % 10}", b"x" * 100_000)
            good.read()
        memory.check("subscribers without a limit")
        assert not client.call("SET", "k", "v").is_error()
        for sock in slow:
            sock.close()


@pytest.mark.seconds(180)
def test_large_messages_to_many(engine):
    """4 MB to 200 subscribers: they share one copy."""
    with limited(engine) as (server, memory), server.client() as client:
        crowd = subscribers(server, 200, "news")
        text = bytes(range(256)) * (4 * MB // 256)
        for _ in range(2):
            assert client.call("PUBLISH", "news", text).value == 200
            for listener in crowd:
                assert listener.read().value[2].value == text
        memory.check("large messages to many")
        assert info(client, "stats")["client_output_buffer_limit_disconnections"] == "0"
        for listener in crowd:
            listener.close()


@pytest.mark.timed
@pytest.mark.seconds(180)
def test_two_thousand_subscribers(engine):
    with limited(engine, maxclients=4000) as (server, memory), server.client() as client:
        crowd = subscribers(server, 2000, "news")
        for number in range(20):
            assert client.call("PUBLISH", "news", number).value == 2000
        _, took_ms = timed_ms(client, "SET", "k", "v")
        assert took_ms < PUBLISHED_WITHIN_MS
        for listener in crowd:
            assert [listener.read().value[2].value for _ in range(20)] == [b"%d" % n for n in range(20)]
        memory.check("two thousand subscribers")
        for listener in crowd:
            listener.close()
        eventually(lambda: listeners(client, "news") == 0, 20, "all have left")


@pytest.mark.seconds(120)
@pytest.mark.parametrize("publishers, count, text_bytes, listeners", [(4, 1000, 1000, 100), (2, 5000, 10, 20)])
def test_more_than_can_be_carried(engine, publishers, count, text_bytes, listeners):
    """Pipelines of messages to many who read: all get all, in one order, and others are served."""
    with limited(engine) as (server, memory), server.client() as other:
        other.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0")
        crowd = [client.socket for client in subscribers(server, listeners, "news")]
        with Crew() as crew:
            for name in range(publishers):
                crew.add(publish, server, name, count, b"x" * text_bytes, listeners)
            streams = []
            crew.add(lambda: streams.extend(drain(crowd, publishers * count)))
            worst_ms = 0
            while crew.is_working():
                worst_ms = max(worst_ms, timed_ms(other, "SET", "k", "v")[1])
                time.sleep(0.01)
        print(f"another client's SET took {worst_ms:.0f} ms at most")
        memory.check("more than can be carried")
        assert all(stream == streams[0] for stream in streams)
        for name in range(publishers):
            assert [number for by, number in streams[0] if by == name] == list(range(count))


def publish(server, name, count, text, listeners):
    with server.client(timeout=100) as client:
        replies = client.pipeline([("PUBLISH", "news", b"<%d %d>" % (name, n) + text) for n in range(count)])
        assert all(reply.value == listeners for reply in replies)


def drain(sockets, count):
    """What each has heard, (publisher, number) of each message; all are read as fast as they come."""
    streams = {sock.fileno(): [] for sock in sockets}
    rests = dict.fromkeys(streams, b"")
    poll = select.poll()
    for sock in sockets:
        poll.register(sock, select.POLLIN)
    while any(len(stream) < count for stream in streams.values()):
        for number, _ in poll.poll(60_000):
            data = os.read(number, 1 << 20)
            assert data, "it was cut"
            data = rests[number] + data
            streams[number] += [tuple(map(int, pair)) for pair in re.findall(rb"<(\d+) (\d+)>", data)]
            rests[number] = data[-20:] if b"<" in data[-20:] and b">" not in data[-20:] else b""
    return list(streams.values())


@pytest.mark.seconds(120)
def test_subscribers_that_vanish(engine, rng):
    """Clients subscribe, are published to, and hang up without a word, again and again."""
    with limited(engine) as (server, memory), server.client() as client:
        with Crew() as crew:
            for _ in range(3):
                crew.add(come_and_go, server, crew, rng.randrange(1 << 30))
            crew.add(publish_on, server, crew)
            crew.run_for(8)
        eventually(lambda: info(client, "stats")["pubsub_channels"] == "0", 10, "no channel is left")
        assert info(client, "stats")["pubsub_patterns"] == "0"
        assert info(client, "clients")["connected_clients"] == "1"
        memory.check("subscribers that vanish")


def come_and_go(server, crew, seed):
    import random

    random_ = random.Random(seed)
    while not crew.stop.is_set():
        with Client(server.port) as client:
            for _ in range(random_.randrange(1, 5)):
                command = random_.choice(("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE"))
                client.send(command, *(f"c{random_.randrange(20)}" for _ in range(5)))
            if random_.random() < 0.5:
                client.read()
            if random_.random() < 0.3:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def publish_on(server, crew):
    with server.client() as client:
        while not crew.stop.is_set():
            client.pipeline([(command, f"c{n}", "x" * 100) for n in range(20) for command in ("PUBLISH", "SPUBLISH")])


@pytest.mark.seconds(120)
def test_thousands_of_patterns(engine):
    with limited(engine) as (server, memory), server.client() as client, server.client() as listener:
        patterns = [f"user:{n}:*" for n in range(20_000)]
        listener.send("PSUBSCRIBE", *patterns)
        for _ in patterns:
            listener.read()
        _, took_ms = timed_ms(client, "PUBLISH", "user:77:name", "x")
        assert listener.read().value[1].value == b"user:77:*"
        started = time.monotonic()
        replies = client.pipeline([("PUBLISH", f"user:{n}:x", "y") for n in range(5000)])
        assert all(reply.value == 1 for reply in replies)
        print(f"{(time.monotonic() - started) / 5000 * 1e6:.0f} us for a message among 20,000 patterns")
        for n in range(5000):
            assert listener.read().value[2].value == b"user:%d:x" % n
        memory.check("thousands of patterns")


@pytest.mark.timed
@pytest.mark.seconds(120)
def test_a_client_with_very_many_subscriptions_leaves(engine):
    with limited(engine) as (server, memory), server.client() as client:
        listener = server.client(timeout=60)
        answers = 0
        for start in range(0, 200_000, 1000):
            listener.send("SUBSCRIBE", *(f"a-rather-long-channel-name:{n}" for n in range(start, start + 1000)))
            replies = [listener.read()]
            if replies[0].is_error():
                break
            replies += [listener.read() for _ in range(999)]
            answers += 1000
        print(f"{answers} subscriptions, then {replies[0]!r}")
        assert answers >= 50_000 and replies[0].value.startswith(b"OOM")
        memory.check("very many subscriptions")
        listener.close()
        worst_ms = 0
        while info(client, "stats")["pubsub_channels"] != "0":
            worst_ms = max(worst_ms, timed_ms(client, "PUBLISH", "a-rather-long-channel-name:1", "x")[1])
        assert worst_ms < PUBLISHED_WITHIN_MS


@pytest.mark.seconds(60)
def test_messages_that_wait_for_replies_count_as_output(engine):
    """RESP3: a command that takes long holds up the messages behind it, but not without bound."""
    with limited(engine) as (server, memory), server.client() as client:
        client.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 2mb 0 0")
        listener = server.client(protocol=3)
        listener.call("SUBSCRIBE", "news")
        listener.send("DEBUG", "SLEEP", "4")
        time.sleep(0.2)
        for _ in range(100):
            client.call("PUBLISH", "news", b"x" * 50_000)
        eventually(lambda: listeners(client, "news") == 0, 10, "it is cut")
        memory.check("messages that wait")
        listener.close()


def test_invalidations_that_nobody_reads_are_bounded():
    """Large ones are not copied into the output: they count all the same."""
    with Server.ingot("rocksdb", {"maxmemory": "32mb"}) as server, server.client(protocol=3) as silent:
        assert silent.call("CLIENT", "TRACKING", "ON", "BCAST").value == b"OK"
        with server.client() as writer:
            deadline = time.monotonic() + 60
            while b"flags=tB" in writer.call("CLIENT", "LIST").value:
                assert time.monotonic() < deadline
                for i in range(200):
                    writer.send("SET", b"%d" % i * 2000, "v")
                assert all(writer.read().value == b"OK" for _ in range(200))
