"""Fields of hashes that expire: Redis has them since 7.4, so what is expected stands here."""

import time

import pytest
from differences import LATER_COMMANDS
from support.resp import Reply

KINDS = {"small": b"v", "large": b"v" * 3000}
FIELDS_MISSING = "ERR Mandatory argument FIELDS is missing or not at the right position"
NO_MATCH = "ERR The `numfields` parameter must match the number of arguments"
NOT_POSITIVE = "ERR Number of fields must be a positive integer"
NOT_GREATER = "ERR Parameter `numFields` should be greater than 0"
SETTERS = ("HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT")
ASKERS = ("HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME", "HPERSIST")
FAR = 4_102_444_800
UNTIL_SECONDS = 5.0


@pytest.fixture(params=KINDS)
def value(request):
    return KINDS[request.param]


@pytest.fixture
def client(empty_pair, protocol, value):
    with empty_pair.servers[1].client(protocol) as client:
        client.call("HSET", "h", "a", "1", "b", "2", "c", "3", "filler", value)
        yield client


def ask(client, *command):
    """The values of an array, or the text of an error."""
    reply = client.call(*command)
    if reply.kind == "error":
        return reply.value if isinstance(reply.value, str) else reply.value.decode()
    return [item.value for item in reply.value] if reply.kind == "array" else reply.value


def until(client, expected, *command):
    deadline = time.monotonic() + UNTIL_SECONDS
    while (reply := client.call(*command)) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reply == expected


def test_set_and_ask(client):
    assert ask(client, "HEXPIRE", "h", 100, "FIELDS", 2, "a", "x") == [1, -2]
    assert ask(client, "HTTL", "h", "FIELDS", 3, "a", "b", "x") == [100, -1, -2]
    assert 99_000 < ask(client, "HPTTL", "h", "fields", 1, "a")[0] <= 100_000
    assert ask(client, "HPEXPIRE", "h", 100_000, "FIELDS", 1, "b") == [1]
    assert ask(client, "HTTL", "h", "FIELDS", 1, "b") == [100]
    assert ask(client, "HEXPIREAT", "h", FAR, "FIELDS", 1, "a") == [1]
    assert ask(client, "HEXPIRETIME", "h", "FIELDS", 2, "a", "c") == [FAR, -1]
    assert ask(client, "HPEXPIREAT", "h", FAR * 1000 + 1, "FIELDS", 1, "a") == [1]
    assert ask(client, "HPEXPIRETIME", "h", "FIELDS", 2, "a", "x") == [FAR * 1000 + 1, -2]
    assert ask(client, "HEXPIRETIME", "h", "FIELDS", 1, "a") == [FAR + 1]
    assert ask(client, "HEXPIREAT", "h", FAR, "FIELDS", 3, "a", "a", "a") == [1, 1, 1]
    assert ask(client, "HGET", "h", "a") == b"1"
    assert ask(client, "HLEN", "h") == 4


def test_conditions(client):
    assert ask(client, "HEXPIREAT", "h", FAR, "XX", "FIELDS", 1, "a") == [0]
    assert ask(client, "HEXPIREAT", "h", FAR, "GT", "FIELDS", 1, "a") == [0]
    assert ask(client, "HEXPIREAT", "h", FAR, "nx", "FIELDS", 2, "a", "x") == [1, -2]
    assert ask(client, "HEXPIREAT", "h", FAR + 5, "NX", "FIELDS", 2, "a", "b") == [0, 1]
    assert ask(client, "HEXPIREAT", "h", FAR, "GT", "FIELDS", 2, "a", "b") == [0, 0]
    assert ask(client, "HEXPIREAT", "h", FAR + 1, "gt", "FIELDS", 2, "a", "b") == [1, 0]
    assert ask(client, "HEXPIREAT", "h", FAR + 1, "LT", "FIELDS", 3, "a", "b", "c") == [0, 1, 1]
    assert ask(client, "HEXPIREAT", "h", FAR + 9, "xx", "FIELDS", 1, "c") == [1]
    assert ask(client, "HEXPIREAT", "h", 1, "GT", "FIELDS", 1, "c") == [0]
    assert ask(client, "HEXPIREAT", "h", 1, "LT", "FIELDS", 1, "c") == [2]
    assert ask(client, "HEXPIRETIME", "h", "FIELDS", 3, "a", "b", "c") == [FAR + 1, FAR + 1, -2]


def test_a_past_time_deletes(client):
    assert ask(client, "HEXPIRE", "h", 0, "FIELDS", 2, "a", "a") == [2, -2]
    assert ask(client, "HPEXPIREAT", "h", 1, "FIELDS", 1, "b") == [2]
    assert ask(client, "HLEN", "h") == 2
    assert ask(client, "HPEXPIRE", "h", 0, "FIELDS", 2, "c", "filler") == [2, 2]
    assert ask(client, "EXISTS", "h") == 0


def test_persist(client):
    ask(client, "HEXPIRE", "h", 100, "FIELDS", 2, "a", "b")
    assert ask(client, "HPERSIST", "h", "FIELDS", 4, "a", "c", "x", "a") == [1, -1, -2, -1]
    assert ask(client, "HTTL", "h", "FIELDS", 2, "a", "b") == [-1, 100]
    assert ask(client, "HGET", "h", "a") == b"1"


def test_what_keeps_an_expiry_and_what_does_not(client):
    fields = ("FIELDS", 3, "a", "b", "c")
    ask(client, "HEXPIRE", "h", 100, *fields)
    ask(client, "HINCRBY", "h", "a", 5)
    ask(client, "HINCRBYFLOAT", "h", "b", "0.5")
    ask(client, "HSETNX", "h", "c", "x")
    assert ask(client, "HTTL", "h", *fields) == [100, 100, 100]
    ask(client, "HSET", "h", "a", "1")
    ask(client, "HMSET", "h", "b", "1")
    ask(client, "HDEL", "h", "c")
    ask(client, "HSET", "h", "c", "1")
    assert ask(client, "HTTL", "h", *fields) == [-1, -1, -1]
    ask(client, "HEXPIREAT", "h", FAR, *fields)
    ask(client, "RENAME", "h", "i")
    ask(client, "COPY", "i", "j")
    ask(client, "HPERSIST", "i", "FIELDS", 1, "a")
    assert ask(client, "HEXPIRETIME", "i", *fields) == [-1, FAR, FAR]
    assert ask(client, "HEXPIRETIME", "j", *fields) == [FAR, FAR, FAR]
    ask(client, "SET", "j", "v")
    ask(client, "DEL", "j")
    assert ask(client, "HTTL", "j", *fields) == [-2, -2, -2]


def test_expired_fields_are_not_there(client, value):
    ask(client, "HEXPIRE", "h", 100, "FIELDS", 1, "c")
    ask(client, "HPEXPIRE", "h", 30, "FIELDS", 2, "a", "b")
    time.sleep(0.04)
    for command, reply in (
        (("HGET", "h", "a"), None), (("HMGET", "h", "a", "b", "c"), [None, None, b"3"]),
        (("HEXISTS", "h", "a"), 0), (("HSTRLEN", "h", "b"), 0), (("HLEN", "h"), 2),
        (("HTTL", "h", "FIELDS", 2, "a", "c"), [-2, 100]), (("HDEL", "h", "a"), 0),
        (("HPERSIST", "h", "FIELDS", 1, "b"), [-2]),
    ):  # fmt: skip
        assert ask(client, *command) == reply, command
    assert sorted(ask(client, "HKEYS", "h")) == [b"c", b"filler"]
    assert sorted(ask(client, "HVALS", "h")) == sorted([b"3", value])
    assert sorted(ask(client, "HRANDFIELD", "h", 9)) == [b"c", b"filler"]
    assert set(ask(client, "HRANDFIELD", "h", -50)) == {b"c", b"filler"}
    assert [r.value for r in client.call("HSCAN", "h", 0, "MATCH", "?").value[1].value] == [b"c", b"3"]
    assert ask(client, "HINCRBY", "h", "a", 7) == 7
    assert ask(client, "HSETNX", "h", "b", "new") == 1
    assert ask(client, "HTTL", "h", "FIELDS", 2, "a", "b") == [-1, -1]


def test_very_many_fields_at_once(client):
    """HSET makes the hash anew: the fields that it does not name keep their time, and one that expired is new."""
    ask(client, "HPEXPIRE", "h", 100_000, "FIELDS", 2, "a", "b")
    ask(client, "HPEXPIRE", "h", 10, "FIELDS", 1, "c")
    time.sleep(0.02)
    more = [word for number in range(5000) for word in (f"more{number}", "v")]
    assert client.call("HSET", "h", "a", "new", "c", "again", *more).value == 5001
    assert ask(client, "HTTL", "h", "FIELDS", 3, "a", "b", "c") == [-1, 100, -1]
    assert ask(client, "HMGET", "h", "a", "b", "c", "more4999") == [b"new", b"2", b"again", b"v"]
    assert client.call("HLEN", "h").value == 5004


def test_fields_and_their_key_go_by_themselves(client):
    ask(client, "HPEXPIRE", "h", 20, "FIELDS", 4, "a", "b", "c", "filler")
    until(client, Reply("integer", 0), "DBSIZE")
    ask(client, "HSET", "h", "a", "1", "b", "2")
    ask(client, "HPEXPIRE", "h", 20, "FIELDS", 1, "a")
    ask(client, "EXPIRE", "h", 100)
    ask(client, "PERSIST", "h")
    until(client, Reply("integer", 1), "HLEN", "h")
    assert ask(client, "TTL", "h") == -1


def test_events(client, empty_pair, protocol):
    events = []
    client.call("CONFIG", "SET", "notify-keyspace-events", "Ehgx")
    try:
        with empty_pair.servers[1].client(protocol) as listener:
            listener.call("PSUBSCRIBE", "__keyevent@0__:*")
            ask(client, "HEXPIRE", "h", 100, "FIELDS", 1, "a")
            ask(client, "HPERSIST", "h", "FIELDS", 1, "a")
            ask(client, "HEXPIRE", "h", 0, "FIELDS", 1, "a")
            ask(client, "HPEXPIRE", "h", 20, "FIELDS", 3, "b", "c", "filler")
            while not events or events[-1] != b"del":
                events.append(listener.read().value[2].value.partition(b":")[2])
    finally:
        client.call("CONFIG", "SET", "notify-keyspace-events", "")
    assert events == [b"hexpire", b"hpersist", b"hdel", b"hexpire", b"hexpired", b"del"]


@pytest.mark.parametrize("command", SETTERS)
def test_errors_of_the_setters(client, command):
    name = command.lower()
    too_late = f"ERR invalid expire time in '{name}' command"
    arity = f"ERR wrong number of arguments for '{name}' command"
    for words, error in (
        (("h", 1, "FIELDS", 1), arity), (("h", 1), arity), ((), arity),
        (("h", "x", "FIELDS", 1, "a"), "ERR value is not an integer or out of range"),
        (("h", -1, "FIELDS", 1, "a"), "ERR invalid expire time, must be >= 0"),
        (("h", 1 << 48, "FIELDS", 1, "a"), too_late),
        (("h", 2**63 - 1, "FIELDS", 1, "a"), too_late),
        (("h", FAR, "FIELD", 1, "a"), FIELDS_MISSING),
        (("h", FAR, "YY", "FIELDS", 1, "a"), FIELDS_MISSING),
        (("h", FAR, "NX", "XX", "FIELDS", 1, "a"), FIELDS_MISSING),
        (("h", FAR, "FIELDS", 0, "a"), NOT_GREATER), (("h", FAR, "FIELDS", -1, "a"), NOT_GREATER),
        (("h", FAR, "FIELDS", "x", "a"), NOT_GREATER),
        (("h", FAR, "FIELDS", 2, "a"), NO_MATCH), (("h", FAR, "FIELDS", 1, "a", "b"), NO_MATCH),
        (("h", FAR, "NX", "FIELDS", 1), NO_MATCH), (("none", FAR, "FIELDS", 2, "a"), NO_MATCH),
    ):  # fmt: skip
        assert ask(client, command, *words) == error, words
    assert ask(client, command, "none", 1, "FIELDS", 2, "a", "b") == [-2, -2]
    ask(client, "SET", "s", "v")
    assert ask(client, command, "s", "x", "FIELDS", 1, "a").startswith("WRONGTYPE")
    assert ask(client, "HTTL", "h", "FIELDS", 2, "a", "b") == [-1, -1]


@pytest.mark.parametrize("command", ASKERS)
def test_errors_of_the_askers(client, command):
    arity = f"ERR wrong number of arguments for '{command.lower()}' command"
    for words, error in (
        (("h", "FIELDS", 1), arity), ((), arity), (("h", "FIELD", 1, "a"), FIELDS_MISSING),
        (("h", "FIELDS", 0, "a"), NOT_POSITIVE), (("h", "FIELDS", "x", "a"), NOT_POSITIVE),
        (("h", "FIELDS", 2, "a"), NO_MATCH), (("h", "FIELDS", 1, "a", "b"), NO_MATCH),
    ):  # fmt: skip
        assert ask(client, command, *words) == error, words
    assert ask(client, command, "none", "FIELDS", 2, "a", "b") == [-2, -2]
    ask(client, "SET", "s", "v")
    assert ask(client, command, "s", "FIELDS", 1, "a").startswith("WRONGTYPE")


def test_redis_7_0_does_not_have_them(empty_pair):
    listed = [{name.text() for name in reply.value} for reply in empty_pair.both("COMMAND", "LIST")]
    assert {name.lower() for name in SETTERS + ASKERS} <= LATER_COMMANDS
    assert LATER_COMMANDS <= listed[1] - listed[0]


def test_rows(empty_pair):
    info = empty_pair.both("COMMAND", "INFO", "hexpire", "httl", "hpersist")[1].value
    assert [entry.value[1].value for entry in info] == [-6, -5, -5]
    assert [{flag.text() for flag in entry.value[2].value} for entry in info] == [
        {"write", "denyoom", "fast"}, {"readonly", "fast"}, {"write", "fast"}]
    keys = empty_pair.both("COMMAND", "GETKEYS", "HEXPIRE", "h", "1", "FIELDS", "1", "a")[1]
    assert [key.value for key in keys.value] == [b"h"]
