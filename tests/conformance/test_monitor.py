"""MONITOR beside redis-server: which commands it tells of, in which words and order; and who listens badly."""

import re
import socket
import time

import pytest
from support.resp import Client
from support.servers import Server, engines


@pytest.fixture(params=["redis"] + engines())
def server(request):
    options = {"client-output-buffer-limit": ["pubsub", "4mb", "2mb", "5", "normal", "4mb", "2mb", "5"]}
    made = Server.redis(options) if request.param == "redis" else Server.ingot(request.param, options)
    with made as running:
        yield running


class Monitor:
    def __init__(self, server):
        self.client = server.client()
        assert self.client.call("MONITOR").value == b"OK"

    def lines_until(self, end):
        """What follows the time in each line, without ports, up to the first line with `end` in it."""
        lines = []
        while True:
            line = self.client.read().value
            match = re.fullmatch(rb"\d{10}\.\d{6} \[(\d+ \S+)\] (.*)", line, re.DOTALL)
            assert match, line
            if end in line:
                return lines
            lines.append((re.sub(rb":\d+$", b"", match[1]), match[2]))


SENT = [
    ("SET", "a", b"x\n\x00\"y\\\xff"), ("GET", "a"), ("get", "none"), ("MULTI",), ("GET", "a"), ("SET", "b", "c"), ("EXEC",),
    ("MULTI",), ("GET", "a"), ("EXEC",), ("MULTI",), ("DISCARD",), ("AUTH", "secret"), ("CLIENT", "ID"),
    ("CONFIG", "GET", "port"), ("SELECT", "3"), ("GET",), ("NOSUCH", "x"), ("LPUSH", "a", "x"), ("SET", "a", "1"),
    ("LPUSH", "a", "x"), ("WATCH", "a"), ("UNWATCH",), ("PING",), ("BLPOP", "q", "0.05"), ("KEYS", "*"), ("SPOP", "none"),
    ("EVAL", "redis.call('set', 'x', '1'); return redis.pcall('lpush', 'x', 'y')", "0"),
    ("EVAL_RO", "return redis.call('get', 'x')", "0"), ("PUBLISH", "channel", "message"), ("DEBUG", "SLEEP", "0"),
    ("FLUSHDB",), ("DBSIZE",), ("MULTI",), ("SELECT", "5"), ("PING",), ("EXEC",), ("RESET",),
]  # fmt: skip
EXPECTED = [
    (b"0 127.0.0.1", b'"SET" "a" "x\\n\\x00\\"y\\\\\\xff"'), (b"0 127.0.0.1", b'"GET" "a"'), (b"0 127.0.0.1", b'"get" "none"'),
    (b"0 127.0.0.1", b'"MULTI"'), (b"0 127.0.0.1", b'"GET" "a"'), (b"0 127.0.0.1", b'"SET" "b" "c"'), (b"0 127.0.0.1", b'"EXEC"'),
    (b"0 127.0.0.1", b'"MULTI"'), (b"0 127.0.0.1", b'"GET" "a"'), (b"0 127.0.0.1", b'"EXEC"'),
    (b"0 127.0.0.1", b'"MULTI"'), (b"0 127.0.0.1", b'"DISCARD"'), (b"0 127.0.0.1", b'"AUTH" "(redacted)"'),
    (b"0 127.0.0.1", b'"CLIENT" "ID"'), (b"3 127.0.0.1", b'"SELECT" "3"'),
]  # fmt: skip


def test_what_is_told(server):
    """The same lines as Redis'."""
    monitor = Monitor(server)
    with server.client() as client:
        for words in SENT:
            client.call(*words)
        client.call("ECHO", "the end")
    lines = monitor.lines_until(b"the end")
    assert lines[: len(EXPECTED)] == EXPECTED
    rest = lines[len(EXPECTED) :]
    sender = b"3 127.0.0.1"
    assert rest == [
        (sender, b'"LPUSH" "a" "x"'), (sender, b'"SET" "a" "1"'), (sender, b'"LPUSH" "a" "x"'), (sender, b'"WATCH" "a"'),
        (sender, b'"UNWATCH"'), (sender, b'"PING"'), (sender, b'"BLPOP" "q" "0.05"'), (sender, b'"KEYS" "*"'),
        (sender, b'"SPOP" "none"'),
        (sender, b"\"EVAL\" \"redis.call('set', 'x', '1'); return redis.pcall('lpush', 'x', 'y')\" \"0\""),
        (b"3 lua", b'"set" "x" "1"'), (b"3 lua", b'"lpush" "x" "y"'),
        (sender, b"\"EVAL_RO\" \"return redis.call('get', 'x')\" \"0\""), (b"3 lua", b'"get" "x"'),
        (sender, b'"PUBLISH" "channel" "message"'), (sender, b'"FLUSHDB"'), (sender, b'"DBSIZE"'),
        (sender, b'"MULTI"'), (b"5 127.0.0.1", b'"SELECT" "5"'), (b"5 127.0.0.1", b'"PING"'), (b"5 127.0.0.1", b'"EXEC"'),
        (b"0 127.0.0.1", b'"RESET"'),
    ]  # fmt: skip


def test_a_large_value_is_no_empty_word(server):
    """A difference: what is in the engine already is not shown, but for its length in SLOWLOG."""
    value = b"v" * 2_000_000
    monitor = Monitor(server)
    with server.client() as client:
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        client.pipeline([("SET", "k", value), ("MULTI",), ("APPEND", "k", value), ("EXEC",), ("CONFIG", "SET", "slowlog-log-slower-than", "-1")])
        client.call("ECHO", "the end")
        slow = [[word.value for word in entry.value[3].value] for entry in client.call("SLOWLOG", "GET", "10").value]
    is_redis = server.name == "redis"
    lines = [text[:40] for _, text in monitor.lines_until(b"the end")]
    shown = b'"' + value if is_redis else b"..."
    assert lines == [each[:40] for each in (b'"SET" "k" ' + shown, b'"MULTI"', b'"APPEND" "k" ' + shown, b'"EXEC"')]
    rest = value[:128] + b"... (1999872 more bytes)" if is_redis else b"... (2000000 more bytes)"
    assert [words for words in slow if len(words) == 3 and words[1] == b"k"] == [[b"APPEND", b"k", rest], [b"SET", b"k", rest]]


def test_who_monitors(server):
    monitor = Monitor(server)
    with server.client() as client:
        assert b"flags=O " in client.call("CLIENT", "LIST").value
        # A monitor's own commands are answered, and told.
        monitor.client.send("PING")
        replies = {monitor.client.read().value for _ in range(2)}
        assert b"PONG" in replies
        assert any(b'"PING"' in reply for reply in replies)
        monitor.client.send("RESET")
        while monitor.client.read().value != b"RESET":
            pass
        client.call("SET", "a", "b")
        assert monitor.client.call("PING").value == b"PONG"
        assert b"flags=O " not in client.call("CLIENT", "LIST").value
        client.call("MULTI")
        reply = client.call("MONITOR")
        if not reply.is_error():
            reply = client.call("EXEC").value[0]
        assert reply.value == b"ERR MONITOR isn't allowed for DENY BLOCKING client"


def test_writes_of_many_are_told_once_and_in_order(server):
    monitor = Monitor(server)
    clients = [server.client() for _ in range(8)]
    for i in range(300):
        for client in clients:
            client.send("INCR", "counter")
            client.send("SET", f"k{i}", "v")
    answers = [[client.read() for _ in range(600)] for client in clients]
    assert sorted(reply.value for replies in answers for reply in replies[::2]) == list(range(1, 2401))
    clients[0].call("ECHO", "the end")
    lines = [text for _, text in monitor.lines_until(b"the end")]
    assert lines.count(b'"INCR" "counter"') == 2400
    assert len(lines) == 4800
    for client in clients:
        client.close()


def test_reads_are_told_in_the_order_in_which_they_were_sent(server):
    """Also where some wait for the disk longer than others."""
    script = "return {redis.call('get', KEYS[1]), redis.call('get', 'none')}"
    with server.client() as client:
        client.pipeline([("SET", f"k{i}", "v" * 3000) for i in range(2000)])
    server.restart()
    monitor = Monitor(server)
    sent, expected = [], []
    for i in range(0, 2000, 5):
        sent += [("GET", f"k{i}"), ("MGET", f"k{i}", f"k{i + 1}", f"k{1999 - i}"), ("GET", f"none{i}"), ("STRLEN", f"k{i + 2}")]
        expected += sent[-4:]
        if i % 7 == 0:
            sent += [("PING",), ("EVAL_RO", script, "1", f"k{i}")]
            expected += [*sent[-2:], ("get", f"k{i}"), ("get", "none")]
    with server.client() as client:
        client.pipeline([*sent, ("ECHO", "the end")])
    lines = [text for _, text in monitor.lines_until(b"the end")]
    assert lines == [b" ".join(b'"%s"' % word.encode() for word in words) for words in expected]


def test_a_monitor_that_does_not_read_is_cut(server):
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        silent.sendall(b"MONITOR\r\n")
        with server.client() as client:
            deadline = time.monotonic() + 30
            while b"cmd=monitor" in client.call("CLIENT", "LIST").value:
                assert time.monotonic() < deadline
                for _ in range(50):
                    client.send("SET", "k", b"x" * 20_000)
                assert all(client.read().value == b"OK" for _ in range(50))


def test_a_monitor_that_leaves(server):
    for _ in range(20):
        monitor = Monitor(server)
        monitor.client.close()
        with Client(server.port) as client:
            assert client.call("SET", "a", "b").value == b"OK"
