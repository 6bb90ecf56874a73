"""P5 for what clients send and the server keeps for them: queues of MULTI, transactions that grow, arguments larger than
the memory; keys that are watched or waited for, names, prefixes, what consumers are given."""

import re
import select
import time

import pytest
from harness import MB, OK
from large_values import receive_line, send_command, slow_socket
from memory_bound import limited
from support.resp import Reply, encode
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

OOM = b"OOM command not allowed when used memory > 'maxmemory'."
DISCARDED = b"EXECABORT Transaction discarded because of previous errors."
UNDONE = b"EXECABORT Transaction discarded because of: " + OOM
SMALL = b"v" * (900 * 1024)  # no argument of this size is diverted


def test_a_transaction_queues_no_more_than_there_is_memory_for(engine):
    with limited(engine) as (server, memory), server.client(timeout=30) as client:
        with server.client() as other:
            assert client.call("MULTI") == OK
            replies = [client.call("SET", f"key:{number}", SMALL) for number in range(200)]
            errors = [reply.value for reply in replies if reply.is_error()]
            assert errors == [OOM]  # from there on nothing is kept, as in Redis
            assert replies[-1].value == b"QUEUED"
            memory.check("180 MB queued")
            assert other.call("SET", "other", "x") == OK
        assert client.call("EXEC").value == DISCARDED
        assert client.call("DBSIZE").value == 1
        # What there is memory for is done, however small its parts.
        assert client.call("MULTI") == OK
        for number in range(7):
            assert client.call("SET", f"key:{number}", SMALL).value == b"QUEUED"
        for _ in range(5):
            client.send_raw(encode(("INCR", "counter")) * 1000)
            assert {client.read().value for _ in range(1000)} == {b"QUEUED"}
        assert client.call("EXEC").value[-1].value == 5000
        memory.check("a transaction of 7 MB")


def test_what_is_watched_is_bounded(engine):
    """It was 600 bytes for each key, however many there were, and SETs of watched keys looked through all of them."""
    with limited(engine) as (server, memory), server.client(timeout=30) as other:
        clients = [server.client(timeout=30) for _ in range(10)]
        refused = 0
        for number, client in enumerate(clients):
            for begin in range(0, 100_000, 10_000):
                keys = [f"{number}:{key:060}" for key in range(begin, begin + 10_000)]
                reply = client.call("WATCH", *keys)
                refused += reply.is_error()
                assert reply == OK or reply.value == OOM
        assert 0 < refused < 100
        # Who has not heard of that must not go on as if it watched.
        last = clients[-1].pipeline([("WATCH", *keys), ("MULTI",), ("SET", "k", "x"), ("EXEC",)])
        assert last[0].value == OOM and last[3].value is None, last
        assert clients[-1].pipeline([("MULTI",), ("EXISTS", "k"), ("EXEC",)])[2] == Reply("array", [Reply("integer", 0)])
        memory.check("a million keys to watch")
        # Small ones are always taken, and what was taken is heeded.
        assert other.call("WATCH", "k") == OK
        assert other.call("SET", f"0:{0:060}", "x") == OK
        assert clients[0].call("MULTI") == OK
        assert clients[0].call("EXEC").value is None
        assert other.call("MULTI") == OK and other.call("EXEC") == Reply("array", [])
        for client in clients[1:]:
            assert client.call("UNWATCH") == OK
        for _ in range(3):  # one key many times is one key
            assert clients[0].call("WATCH", *["k"] * 30_000) == OK
        assert clients[0].call("WATCH", *(f"{key:060}" for key in range(10_000))) == OK


def test_what_all_listen_to_is_bounded(engine):
    """Each client had its bound, all of them together none."""
    with limited(engine) as (server, memory):
        clients = [server.client(timeout=30) for _ in range(16)]
        refused = 0
        for number, client in enumerate(clients):
            for begin in range(0, 20_000, 2_000):
                names = [f"{number}:{name}" for name in range(begin, begin + 2_000)]
                reply = client.call("SUBSCRIBE", *names)
                if reply.is_error():
                    assert reply.value == OOM
                    refused += 1
                    continue
                for _ in names[1:]:
                    client.read()
        print(f"{refused} of 160 were refused")
        assert 0 < refused < 160
        memory.check("320,000 channels")
        # Small ones are always taken.
        with server.client(timeout=30) as other:
            assert not other.call("SUBSCRIBE", "news").is_error()
            with server.client(timeout=30) as publisher:
                assert publisher.call("PUBLISH", "news", "x").value == 1


@pytest.mark.parametrize("command", [("APPEND", "grown"), ("RPUSH", "list")], ids=lambda c: c[0])
def test_many_clients_with_open_transactions(engine, command):
    """All queues together are bounded, and small ones are always taken."""
    with limited(engine) as (server, memory):
        clients = [server.client(timeout=30) for _ in range(20)]
        refused = 0
        for client in clients:
            assert client.call("MULTI") == OK
            refused += any(client.call(*command, SMALL).is_error() for _ in range(8))
        assert 0 < refused < len(clients)
        memory.check("twenty queues of 7 MB")
        with server.client() as small:
            assert small.call("MULTI") == OK
            assert small.call("SET", "k", "v").value == b"QUEUED"
            assert small.call("EXEC") == Reply("array", [OK])
        done = sum(not client.call("EXEC").is_error() for client in clients)
        assert done == len(clients) - refused
        memory.check("and their EXEC")
        for client in clients:
            client.close()


@pytest.mark.parametrize("grows", ["writes", "replies", "reads"])
def test_a_transaction_that_grows_is_undone(engine, grows):
    """Few bytes are queued; what they change, or answer, does not fit."""
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        members = [b"%03d" % number + b"m" * 4000 for number in range(200)]
        assert client.call("SADD", "set", *members).value == len(members)
        assert client.call("SET", "string", b"s" * 60_000) == OK
        # (Longer replies of a transaction that only reads are streamed.)
        command, times = {"writes": (("SUNIONSTORE", "copy", "set"), 100),
                          "replies": (("SMEMBERS", "set"), 100),
                          "reads": (("GET", "string"), 1400)}[grows]  # fmt: skip
        client.call("MULTI")
        if grows != "reads":
            client.call("SET", "before", "x")
        client.send_raw(encode(command) * times)
        assert {client.read().value for _ in range(times)} == {b"QUEUED"}
        assert client.call("EXEC").value == UNDONE
        memory.check(f"80 MB of {grows}")
        assert client.call("EXISTS", "before", "copy").value == 0
        # The connection is as after any EXEC.
        assert client.call("EXEC").value == b"ERR EXEC without MULTI"
        assert client.call("SET", "after", "x") == OK


def test_a_script_that_changes_very_many_keys(engine):
    """Few bytes each; what finds and undoes them took 300 MB."""
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        script = "for i = 1, 1000000 do redis.call('SET', 'key:' .. i, i) end"
        assert client.call("EVAL", script, 0).value.startswith(OOM)
        memory.check("a script of a million changes")
        # What it had done until then stays, as in Redis.
        done = client.call("DBSIZE").value
        assert 100_000 < done < 1_000_000
        assert client.call("MGET", f"key:{done}", f"key:{done + 1}") == Reply("array", [Reply("bulk", b"%d" % done), Reply("nullbulk", None)])


# Those of a kind are refused in the same place.
TAKE_A_VALUE = [("ECHO",), ("HSET", "k", "f"), ("LSET", "list", "0"), ("XADD", "k", "*", "f"),
                ("MSET", "k"), ("GETRANGE", "k", "0"), ("NOSUCH",)]  # fmt: skip


def test_an_argument_larger_than_the_memory_is_refused(engine):
    """And what stands behind it on the same connection is served."""
    with limited(engine) as (server, memory), server.client() as client:
        client.call("RPUSH", "list", "x")
        for command in TAKE_A_VALUE:
            with slow_socket(server, buffer_bytes=MB) as sock:
                send_command(sock, *command, large_bytes=20 * MB)
                send_command(sock, "SET", "served", command[0])
                assert receive_line(sock) == b"-" + OOM, command
                assert receive_line(sock) == b"+OK"
            assert client.call("GET", "served").value == command[0].encode()
        assert client.call("DBSIZE").value == 2
        memory.check("arguments of 20 MB")
        # Many that are not large themselves; in MULTI they spoil the transaction.
        words = encode(["SADD", "k"] + [b"w" * 1000] * 20_000)
        with slow_socket(server, buffer_bytes=MB) as sock:
            for before, reply in ((b"PING\r\n", b"+PONG"), (b"MULTI\r\n", b"+OK")):
                sock.sendall(before + words)
                assert receive_line(sock) == reply
                assert receive_line(sock) == b"-" + OOM
            sock.sendall(b"EXEC\r\n")
            assert receive_line(sock) == b"-" + DISCARDED
        memory.check("20 MB of arguments")


def filled_stream(client, entries):
    for begin in range(0, entries, 10_000):
        client.send_raw(b"".join(encode(("XADD", "stream", f"{i + 1}-0", "f", "v")) for i in range(begin, begin + 10_000)))
        assert all(client.read().kind == "bulk" for _ in range(10_000))


def test_what_a_consumer_is_given_at_once(engine):
    """400,000 entries in one XREADGROUP took 330 MB at 64mb, in XAUTOCLAIM 520, and others waited for seconds."""
    with limited(engine) as (server, memory), server.client(timeout=30) as client:
        filled_stream(client, 100_000)
        assert client.call("XGROUP", "CREATE", "stream", "g", "0") == OK
        given = []
        while True:
            reply = client.call("XREADGROUP", "GROUP", "g", "a", "STREAMS", "stream", ">")
            if reply.value is None:
                break
            entries = [entry.value[0].text() for entry in reply.value[0].value[1].value]
            assert 0 < len(entries) <= 16_384
            given += entries
        assert given == [f"{i + 1}-0" for i in range(100_000)]
        assert client.call("XPENDING", "stream", "g").value[0].value == 100_000
        again = client.call("XREADGROUP", "GROUP", "g", "a", "COUNT", "90000", "STREAMS", "stream", "5-0").value[0].value[1].value
        assert [entry.value[0].text() for entry in again] == [f"{i + 6}-0" for i in range(16_384)]
        claimed, at = [], "0"
        while at != "0-0":
            reply = client.call("XAUTOCLAIM", "stream", "g", "b", "0", "0" if at == "0" else at, "COUNT", "100000", "JUSTID")
            at = reply.value[0].text()
            claimed += [entry.text() for entry in reply.value[1].value]
        assert claimed == given
        memory.check("100,000 entries given and claimed")
        # Large ones are bounded by their bytes, and one is given however large it is.
        for i in range(40):
            assert client.call("XADD", "large", f"{i + 1}-0", "f", "x" * MB).kind == "bulk"
        assert client.call("XGROUP", "CREATE", "large", "g", "0") == OK
        counts = []
        while sum(counts) < 40:
            counts.append(len(client.call("XREADGROUP", "GROUP", "g", "a", "STREAMS", "large", ">").value[0].value[1].value))
        assert max(counts) <= 17
        first = client.call("XAUTOCLAIM", "large", "g", "b", "0", "0", "COUNT", "40").value
        assert len(first[1].value) <= 17 and first[0].text() != "0-0"
        memory.check("40 MB of large entries")


def test_what_waits_is_bounded(engine):
    """Keys that blocked clients wait for took 250 bytes each beside the command, whoever they were."""
    with limited(engine) as (server, memory), server.client(timeout=30) as other:
        clients = [server.client(timeout=30) for _ in range(12)]
        for number, client in enumerate(clients):
            client.send_raw(encode(("BLPOP", *(f"{number}:{key:040}" for key in range(30_000)), "0")))

        def waiting():
            return int(re.search(r"blocked_clients:(\d+)", other.call("INFO", "clients").text())[1])

        answered = []
        deadline = time.monotonic() + 30
        while len(answered) + waiting() < len(clients):
            assert time.monotonic() < deadline
            time.sleep(0.05)
            answered = select.select([client.socket for client in clients], [], [], 0)[0]
        refused = [client for client in clients if client.socket in answered]
        assert 0 < len(refused) < len(clients) and {client.read().value for client in refused} == {OOM}
        memory.check("360,000 keys to wait for")
        # Whatever is done to all of them at once is done soon: FLUSHALL took 81 s with 100,000 of them.
        assert other.call("FLUSHALL") == OK
        assert other.call("SWAPDB", "0", "1") == OK
        other.send_raw(encode(("MULTI",)) + b"".join(encode(("SET", f"{n}:{key:040}", "x")) for n in range(12) for key in range(500)) + encode(("EXEC",)))
        replies = [other.read() for _ in range(6002)]
        assert replies[-1].kind == "array"


def test_names_and_prefixes_are_bounded(engine):
    with limited(engine) as (server, memory), server.client(timeout=30) as client:
        assert client.call("CLIENT", "SETNAME", "x" * 4096) == OK
        assert client.call("CLIENT", "SETNAME", "x" * 4097).value == OOM
        assert client.call("CLIENT", "SETINFO", "LIB-NAME", "x" * 4097).value == OOM
        assert client.call("HELLO", "3", "SETNAME", "x" * 4097).value == OOM
        clients = [server.client(protocol=3, timeout=30) for _ in range(20)]
        replies = []
        for number, each in enumerate(clients):
            words = [word for i in range(10_000) for word in ("PREFIX", f"{number}:{i:0300}")]
            replies.append(each.call("CLIENT", "TRACKING", "ON", "BCAST", *words))
        assert replies[0] == OK and replies[-1].value == OOM
        memory.check("200,000 prefixes")
        assert clients[0].call("CLIENT", "TRACKING", "OFF") == OK
        assert clients[-1].call("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a", "PREFIX", "b") == OK


def test_all_of_a_stream_with_many_consumers(engine):
    """Each of 20,000 that had nothing pending was looked for in all of them: 28 s, on a thread that others shared."""
    with limited(engine) as (server, memory), server.client(timeout=10) as client:
        filled_stream(client, 10_000)
        for word in ("XGROUP CREATE stream g{} 0", "XGROUP CREATECONSUMER stream g0 c{}"):
            client.send_raw(b"".join(encode(tuple(word.format(i).split())) for i in range(20_000)))
            assert not any(client.read().is_error() for _ in range(20_000))
        reply = client.call("XINFO", "STREAM", "stream", "FULL", "COUNT", "1")
        assert len(reply.value) == 18 and len(reply.value[-1].value) == 20_000
        memory.check("20,000 groups and consumers")
