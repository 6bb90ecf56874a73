"""Keyspace notifications, as they are delivered: those of every written case of the types, against Redis."""

from collections import Counter

import pytest
from listening import play
from runner import Run
from script import load_cases

FAMILIES = ("bitfield", "bitmap", "generic_expire", "generic_keys", "geo", "hash", "hyperloglog", "list", "set",
            "sort", "stream", "string_number", "string_range", "string_set", "transaction", "zset")  # fmt: skip
CASES = [case for case in load_cases() if case.name.split("/")[0] in FAMILIES]
# Everything but new keys and misses.
KINDS = "KEA"
# Redis removes keys that have expired when it comes across them: these may stand elsewhere among the others, or
# not have been told yet.
AT_ANY_TIME = (b"expired",)
# Why the events of a case differ.
DIFFERENCES: dict[str, str] = {}


class Listener:
    """Hears everything of one server."""

    def __init__(self, server):
        self.client = server.client()
        self.client.call("PSUBSCRIBE", "__key*__:*")
        self.pings = 0

    def heard(self):
        """(channel, text) of all messages since the last call."""
        self.pings += 1
        token = b"%d" % self.pings
        self.client.send("PING", token)
        messages = []
        while (reply := self.client.read()).value[0].value != b"pong":
            messages.append(tuple(part.value for part in reply.value[2:]))
        assert reply.value[1].value == token
        return messages


@pytest.fixture
def listeners(empty_pair):
    empty_pair.both("CONFIG", "SET", "notify-keyspace-events", KINDS)
    listeners = [Listener(server) for server in empty_pair.servers]
    yield listeners
    empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")
    for listener in listeners:
        listener.client.close()


def split(messages):
    """Those in their order, and those that may come at any time."""
    moved = [each for each in messages if each[0].endswith(AT_ANY_TIME) or each[1] in AT_ANY_TIME]
    return [each for each in messages if each not in moved], Counter(moved)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_of_case(pair, listeners, case):
    for listener in listeners:
        listener.heard()
    Run(pair, case, 2).run("step_by_step")
    redis, ours = (listener.heard() for listener in listeners)
    (ordered, expired), (our_order, our_expired) = split(redis), split(ours)
    same = our_order == ordered and our_expired >= expired
    if case.name in DIFFERENCES:
        assert not same, "declared as different, but it is equal: take it off the list"
        return
    missing, more = Counter(redis) - Counter(ours), Counter(ours) - Counter(redis)
    assert same, f"redis alone: {list(missing)}; other alone: {list(more)}" + (
        "" if missing or more else f"; the order: {redis} {ours}")


def test_kinds(empty_pair, protocol):
    try:
        play(empty_pair, protocol, """
            2>a> PSUBSCRIBE *
            b> CONFIG SET notify-keyspace-events KEA | SET k v | DEL k
            b> CONFIG SET notify-keyspace-events K$ | SET k v | DEL k | LPUSH l x
            b> CONFIG SET notify-keyspace-events Eg | SET k v | DEL k
            b> CONFIG SET notify-keyspace-events g | SET k v | DEL k
            b> CONFIG SET notify-keyspace-events Kn | SET k v | SET k w | LPUSH k2 x | GETSET k3 v | XADD s 1-1 a b
            b> CONFIG SET notify-keyspace-events Em | GET none | MGET none k none | EXISTS none | HGET no f | DEL none
            b> MULTI | SET x 1 | GET none | EXEC | MULTI | GET none | EXEC
            b> CONFIG SET notify-keyspace-events "" | SET k v
            b> SELECT 3 | CONFIG SET notify-keyspace-events KEA | SET k v | MOVE k 4
            a> PUNSUBSCRIBE * | SUBSCRIBE __keyevent@3__:set __keyspace@3__:k
            b> SET k v | SET l v | DEL k
            a> UNSUBSCRIBE __keyevent@3__:set
            b> SET k v | SET l v | DEL k
            b> FLUSHALL | CONFIG SET notify-keyspace-events ""
        """)  # fmt: skip
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")


def test_expiry_is_told_on_time(empty_pair):
    empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "Ex")
    try:
        for server in empty_pair.servers:
            with server.client() as listener, server.client() as client:
                listener.call("SUBSCRIBE", "__keyevent@0__:expired")
                client.pipeline([("SET", f"k{i}", "v", "PX", 20 + i) for i in range(50)])
                heard = {listener.read(timeout=5).value[2].value for _ in range(50)}
                assert heard == {b"k%d" % i for i in range(50)}
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")


def test_events_of_clients_that_were_fed(empty_pair):
    told = []
    try:
        for server in empty_pair.servers:
            with server.client() as admin, server.client() as waiter:
                admin.call("CONFIG", "SET", "notify-keyspace-events", "El")
                listener = Listener(server)
                waiter.send("BLMOVE", "a", "b", "LEFT", "RIGHT", "0")
                while b"blocked_clients:1" not in admin.call("INFO", "clients").value:
                    pass
                admin.call("RPUSH", "a", "x")
                waiter.read()
                told.append(listener.heard())
                listener.client.close()
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")
    assert told[1] == told[0] != []
