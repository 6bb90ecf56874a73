"""What replicas are told: Ingot's stream beside that of a real redis-server, to which the same commands were sent.

The cases stand in replication_stream.txt. A second test runs the random sequences of test_random.py, and a third plays
Ingot's stream to a redis-server, which must come to the same data.
"""

import pathlib
import random
import re
import shlex
import threading
import time

import pytest
import commands as strings
import type_commands as types
from commands import commands
from support.effort import FULL, SEED
from support.replica import Replica
from support.servers import ROOT, Server

CASES = pathlib.Path(__file__).with_name("replication_stream.txt")
DOCS = ROOT / "docs" / "replication-stream.md"
NEAR_MS = 10_000
ENDS = (b"left", b"right")  # so Redis writes them for who has waited
OPTIONS = {"repl-diskless-sync-delay": "0", "repl-ping-replica-period": "3600", "repl-backlog-size": "64mb"}
WAIT_SECONDS = 10.0
RANDOM_COMMANDS = 20_000 if FULL else 4000
LIBRARY = "#!lua name=lib\nredis.register_function('f', function(keys, args) return 1 end)"
TIME = re.compile(rb"(\d{13})(-\d+)?")


class Streams:
    """A redis-server and an Ingot, and a replica of each."""

    def __init__(self, engine):
        self.servers = (Server.redis(OPTIONS), Server.ingot(engine, {**OPTIONS, "hash-max-listpack-entries": "128"}))
        self.replicas = []

    def __enter__(self):
        for server in self.servers:
            server.start()
            self.replicas.append(Replica(server.port))
        return self

    def __exit__(self, *_):
        for server, replica in zip(self.servers, self.replicas):
            replica.close()
            server.stop()
            server.remove()

    def told_until(self, clients):
        return [replica.commands_until(client) for replica, client in zip(self.replicas, clients)]


@pytest.fixture(scope="module")
def streams(engine):
    with Streams(engine) as streams:
        yield streams


def same_word(expected, actual):
    if expected == actual or expected in ENDS and expected == actual.lower():
        return True
    left, right = TIME.fullmatch(expected), TIME.fullmatch(actual)
    return bool(left and right and abs(int(left[1]) - int(right[1])) < NEAR_MS)


def same_command(expected, actual):
    if len(expected) != len(actual) or expected[0].upper() != actual[0].upper():
        return False
    return all(map(same_word, expected[1:], actual[1:]))


def shown(told):
    return "".join(f"\n      {b' '.join(words)!r}" for words in told) or "\n      nothing"


def is_same(expected, actual, by_chance=False):
    if by_chance:
        return [words[:2] for words in expected] == [words[:2] for words in actual]
    return len(expected) == len(actual) and all(map(same_command, expected, actual))


def read_cases():
    cases, name = {}, None
    for line in CASES.read_text().splitlines():
        if line.startswith("## "):
            name = line[3:]
            cases[name] = []
        elif line and not line.startswith("#"):
            cases[name].append(line)
    return cases


def words_of(text):
    return [word.encode("latin-1").decode("unicode_escape").encode("latin-1") for word in shlex.split(text)]


def wait_until(what, holds):
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def blocked_clients(admin):
    return int(re.search(r"blocked_clients:(\d+)", admin.call("INFO", "clients").text())[1])


class Run:
    """One case: its connections to both servers."""

    def __init__(self, streams):
        self.streams = streams
        self.clients = {}
        self.waiting = set()
        self.in_multi = False

    def of(self, number):
        if number not in self.clients:
            self.clients[number] = [server.client() for server in self.streams.servers]
        return self.clients[number]

    def step(self, line):
        by_chance = line.startswith("~")
        number, _, text = line.lstrip("~& ").rpartition("> ") if re.match(r"[~& ]*\d> ", line) else ("1", "", line.lstrip("~ "))
        words = words_of(text)
        clients = self.of(number)
        if line.startswith("&"):
            for client in clients:
                client.send(*words)
            self.waiting.add(number)
            for admin in self.of("admin"):
                wait_until("nobody waits", lambda: blocked_clients(admin) == len(self.waiting))  # noqa: B023
            return None
        for client in clients:
            client.call(*words)
        self.in_multi = (self.in_multi or words[0].upper() == b"MULTI") and words[0].upper() not in (b"EXEC", b"DISCARD")
        if self.in_multi:
            return None
        expected, actual = self.streams.told_until(clients)
        if self.waiting:
            self.read_served()
        if is_same(expected, actual, by_chance):
            return None
        return f"  {line}\n    redis:{shown(expected)}\n    other:{shown(actual)}"

    def read_served(self):
        """Whoever waits no more on the real one has been served by both."""
        left = blocked_clients(self.of("admin")[0])
        deadline = time.monotonic() + WAIT_SECONDS
        while len(self.waiting) > left and time.monotonic() < deadline:
            for number in list(self.waiting):
                if any(client.has_input(0.01) for client in self.of(number)):
                    for client in self.of(number):
                        client.read(WAIT_SECONDS)
                    self.waiting.discard(number)
        assert len(self.waiting) == left

    def wait_empty(self):
        for admin in self.of("admin"):
            wait_until("keys are left", lambda: admin.call("DBSIZE").value == 0)  # noqa: B023

    def close(self):
        for admin in self.of("admin"):
            admin.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        for clients in self.clients.values():
            for client in clients:
                client.close()


@pytest.mark.parametrize("name", read_cases())
def test_told_as_by_redis(streams, name):
    run = Run(streams)
    differences = []
    for client in run.of("1"):
        client.call("FLUSHALL")
    streams.told_until(run.of("1"))
    try:
        for line in read_cases()[name]:
            if line.startswith("sleep "):
                time.sleep(float(line.split()[1]))
            elif line == "until empty":
                run.wait_empty()
            elif difference := run.step(line):
                differences.append(difference)
    finally:
        run.close()
    assert not differences, "\n" + "\n".join(differences)


@pytest.fixture
def clients(streams):
    """One to each server, both empty."""
    both = [server.client(timeout=30.0) for server in streams.servers]
    for client in both:
        client.call("FLUSHALL")
    streams.told_until(both)
    yield both
    for client in both:
        client.close()


def check_each(streams, clients, steps):
    """Runs each step, a command or a function of the client that gives one, and compares what it tells."""
    for step in steps:
        for client in clients:
            client.call(*(step(client) if callable(step) else step))
        expected, actual = streams.told_until(clients)
        assert is_same(expected, actual), f"redis:{shown(expected)[:2000]}\nother:{shown(actual)[:2000]}"
        yield actual


def test_restored(streams, clients):
    for client in clients:
        client.call("SET", "v", "1")
        client.call("FUNCTION", "LOAD", LIBRARY)
    streams.told_until(clients)
    dump = clients[0].call("DUMP", "v").value
    library = clients[0].call("FUNCTION", "DUMP").value
    steps = [
        ("RESTORE", "w", "0", dump), ("RESTORE", "w", "0", dump), ("RESTORE", "w", "100000", dump, "REPLACE"),
        ("RESTORE", "w", "9999999999999", dump, "ABSTTL", "REPLACE"), ("RESTORE", "w", "1", dump, "ABSTTL", "REPLACE"),
        ("RESTORE", "w", "1", dump, "ABSTTL", "REPLACE"), ("RESTORE", "w", "500000", dump, "IDLETIME", "5"),
        ("RESTORE-ASKING", "x", "500000", dump), ("RESTORE", "y", "0", b"x" + dump),
        ("FUNCTION", "RESTORE", library), ("FUNCTION", "RESTORE", library, "REPLACE"), ("FUNCTION", "FLUSH"),
        ("FUNCTION", "RESTORE", library, "FLUSH"), ("FUNCTION", "DELETE", "lib"),
    ]  # fmt: skip
    told = list(check_each(streams, clients, steps))
    assert [len(each) for each in told] == [1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1]


def test_migrated(streams, clients):
    with Server.redis() as target:

        def migrate(key, *rest):
            return lambda client: ("MIGRATE", "127.0.0.1", target.port, key, clients.index(client), "5000", *rest)

        steps = [
            ("MSET", "a", "1", "b", "2", "c", "3", "d", "4"), migrate("a"), migrate("a"),
            migrate("", "COPY", "KEYS", "b"), migrate("", "REPLACE", "KEYS", "b", "no", "c"),
            ("SET", "a", "5"), migrate("", "KEYS", "a", "d"),
        ]  # fmt: skip
        told = list(check_each(streams, clients, steps))
        assert [each[0][:2] for each in told if each][1:] == [[b"DEL", b"a"], [b"DEL", b"b"], [b"SET", b"a"], [b"DEL", b"d"]]


def test_large_arguments(streams, clients):
    """They are in the engine, and read back."""
    large, larger = bytes(range(256)) * 5000, b"0123456789" * 450_000
    steps = [
        ("SET", "k", large), ("SET", "k", larger, "NX"), ("SET", "k", larger, "GET"), ("SET", "k", large, "EX", "1000"),
        ("SETEX", "k", "1000", larger), ("PSETEX", "k", "1000000", large), ("GETSET", "k", larger), ("SETNX", "n", large),
        ("APPEND", "k", large), ("SETRANGE", "k", "7", larger), ("SETRANGE", "s", "1000000", large), ("APPEND", "n", larger),
        ("LPUSH", "l", large, b"x"), ("HSET", "k", "f", large), ("SET", "k", "short"), ("SET", "k", larger, "PX", "1000000", "XX"),
    ]  # fmt: skip
    for told in check_each(streams, clients, steps):
        assert len(told) < 2 or told[0] in ([b"MULTI"], [b"SELECT", b"0"])
    clients[0].call("SET", "r", random.Random(SEED).randbytes(1_300_000))
    payload = clients[0].call("DUMP", "r").value
    clients[0].call("DEL", "r")
    streams.told_until(clients)
    list(check_each(streams, clients, [("RESTORE", "r", "0", payload), ("RESTORE", "r", "100000", payload, "REPLACE")]))
    for client in clients:
        client.pipeline([("MULTI",), ("SET", "a", large), ("APPEND", "a", larger), ("DEL", "a"), ("SET", "b", large), ("EXEC",)])
    expected, actual = streams.told_until(clients)
    assert [words[:2] for words in actual] == [words[:2] for words in expected] and expected == actual


def test_large_draws(streams, clients):
    """What SPOP takes beside the writer is told member by member."""
    for client in clients:
        client.call("SADD", "s", *range(20_000))
    streams.told_until(clients)
    client = clients[1]
    replica = streams.replicas[1]
    for count in (200, 6000, 10_000):
        drawn = sorted(member.value for member in client.call("SPOP", "s", count).value)
        told = replica.commands_until(client)
        assert (told[0], told[-1]) == ([b"MULTI"], [b"EXEC"])
        assert {tuple(words[:2]) for words in told[1:-1]} == {(b"SREM", b"s")}
        assert sorted(words[2] for words in told[1:-1]) == drawn and len(drawn) == count
    assert client.call("SPOP", "s", "5000").kind == "array"
    assert replica.commands_until(client) == [[b"DEL", b"s"]]
    clients[0].call("DEL", "s")
    streams.told_until(clients)


def test_fields_that_expire(streams, clients):
    """Redis 7.0 has none."""
    client, replica = clients[1], streams.replicas[1]
    client.call("HSET", "h", "a", "1", "b", "2", "c", "3")
    client.call("HPEXPIRE", "h", "20", "FIELDS", "2", "a", "b")
    told = []

    def is_told():
        client.call("HPERSIST", "h", "FIELDS", "1", "c")  # changes nothing
        told.extend(replica.commands_until(client))
        return len(told) >= 3

    wait_until("fields are left", is_told)
    assert [words[:2] for words in told] == [[b"HSET", b"h"], [b"HPEXPIREAT", b"h"], [b"HDEL", b"h"]]
    assert told[1][3:] == [b"FIELDS", b"2", b"a", b"b"] and sorted(told[2][2:]) == [b"a", b"b"]
    streams.told_until(clients)


# Commands that run in test functions; the oracle has no fields that expire.
OUTSIDE_CASES = {"RESTORE", "RESTORE-ASKING", "MIGRATE", "FUNCTION RESTORE", "HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT", "HPERSIST"}


def writing_commands(client):
    """Names in upper case of all that may be told."""
    for row in client.call("COMMAND").value:
        for command in row.value[9].value or [row]:
            flags = {flag.value for flag in command.value[2].value}
            if flags & {b"write", b"may_replicate"}:
                yield command.value[0].text().upper().replace("|", " ")


def test_every_command_is_documented_and_tried(streams):
    told = set(re.findall(r"`([A-Z][A-Z -]*[A-Z])`", DOCS.read_text().split("## Commands with words of their own")[1]))
    cases = "\n" + "\n".join(re.sub(r"^[~& ]*(\d> )?", "", line).upper() for lines in read_cases().values() for line in lines)
    with streams.servers[1].client() as client:
        commands_told = sorted(writing_commands(client))
    assert len(commands_told) > 100
    assert [name for name in commands_told if name not in told] == []
    tried = [name for name in commands_told if f"\n{name} " not in cases + " " and f"\n{name}\n" not in cases]
    assert [name for name in tried if name not in OUTSIDE_CASES] == []


def without_past(words):
    """A key that is set with a time long past goes when somebody looks, which the two servers do at different times."""
    return words[:-2] if words[0] == b"SET" and words[-1] == b"1000" else words


# Whose members are drawn, and what an approximate trim leaves: nodes are not alike.
CHANCE = re.compile(rb"SPOP|XADD .* ~ .*|XTRIM .* ~ .*", re.DOTALL)


@pytest.mark.parametrize("dice", ["strings", "types"])
def test_random_sequence(streams, dice):
    module, chance = (strings, strings.Chance) if dice == "strings" else (types, types.TypeChance)
    sequence = [without_past(words) for words in commands(chance(SEED), module.TABLE, RANDOM_COMMANDS)]
    sequence = [words for words in sequence if not CHANCE.match(b" ".join(words))]
    sequence += [[b"DISCARD"], [b"SELECT", b"0"]]
    clients = [server.client(timeout=30.0) for server in streams.servers]
    for client in clients:
        client.call("FLUSHALL")
    streams.told_until(clients)
    for at in range(0, len(sequence), 50):
        for client in clients:
            client.pipeline(sequence[at : at + 50])
    expected, actual = streams.told_until(clients)
    for index, (left, right) in enumerate(zip(expected, actual)):
        before = shown(expected[max(0, index - 5) : index])
        assert same_command(left, right), f"seed {SEED}, behind{before}\n    redis:{shown([left])}\n    other:{shown([right])}"
    assert len(expected) == len(actual), f"seed {SEED}"


def digest(client):
    return client.call("DEBUG", "DIGEST").value


def as_a_client(words):
    """A master's commands may say LIMIT beside an exact trim, a client's not."""
    upper = [word.upper() for word in words[:8]]
    if upper[0] not in (b"XADD", b"XTRIM") or b"LIMIT" not in upper:
        return words
    at = upper.index(b"LIMIT")
    return words[:at] + words[at + 2 :]


# What waits, draws, and runs in the writer's turn of others.
MORE = [
    lambda c: [b"BLPOP", c.of("list"), c.of("list"), b"0.01"],
    lambda c: [b"BLMOVE", c.of("list"), c.of("list"), b"LEFT", b"RIGHT", b"0.01"],
    lambda c: [b"BZMPOP", b"0.01", b"2", c.of("zset"), c.of("zset"), b"MAX", b"COUNT", b"2"],
    lambda c: [b"SPOP", c.of("set"), b"%d" % c.randint(0, 3)],
    lambda c: [b"EVAL", b"redis.call('sadd', KEYS[1], ARGV[1]) return redis.call('spop', KEYS[1])", b"1", c.of("set"), c.member()],
    lambda c: [b"EVAL", b"redis.call('rpush', KEYS[1], '1', '2') redis.pcall('incr', KEYS[1])", b"1", c.of("list")],
]
MORE_SHARE = 0.1


def some_commands(seed, count):
    chance = types.TypeChance(seed)
    for words in commands(chance, types.TABLE, count):
        yield words
        if chance.random() < MORE_SHARE:
            yield chance.choice(MORE)(chance)
    yield [b"DISCARD"]


def run_all(server, seed, count):
    with server.client(timeout=60.0) as client:
        sequence = list(some_commands(seed, count))
        for at in range(0, len(sequence), 20):
            client.pipeline(sequence[at : at + 20])


def digest(client):
    return client.call("DEBUG", "DIGEST").value


@pytest.mark.parametrize("connections", [1, 8])
def test_redis_comes_to_the_same(engine, connections):
    """Whatever was told makes the same data elsewhere, of many clients at once as well."""
    with Server.ingot(engine, OPTIONS) as ingot, Server.redis() as follower, Replica(ingot.port) as replica:
        threads = [
            threading.Thread(target=run_all, args=(ingot, SEED + i, RANDOM_COMMANDS // connections)) for i in range(connections)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client, to = ingot.client(timeout=30.0), follower.client(timeout=30.0)
        told = [as_a_client(words) for words in replica.commands_until(client)]
        assert len(told) > RANDOM_COMMANDS // 10
        failed = [(words, reply) for words, reply in zip(told, to.pipeline(told)) if reply.is_error()]
        assert not failed, f"seed {SEED}: {failed[:5]}"
        for database in range(strings.DATABASES):
            for each in (client, to):
                each.call("SELECT", database)
            assert client.call("DBSIZE") == to.call("DBSIZE"), f"seed {SEED}, database {database}"
        assert digest(client) == digest(to), f"seed {SEED}"
        client.close()
        to.close()
