"""P2: once a write is answered, every later read on any connection sees it."""

import random

import pytest
from harness import Crew, ingot
from support.effort import FULL

REGISTERS = 6
READERS = 12
SECONDS = 20 if FULL else 4
COUNTERS = 5
CONNECTIONS_PER_THREAD = 6
THREADS = 10
INCREMENTS = 3000 if FULL else 300  # of each connection


class Register:
    """A key with one writer: what it has sent, and what it knows to be written."""

    def __init__(self, number):
        self.key = b"register:%d" % number
        self.sent = 0
        self.acknowledged = 0


def write(server, register, stop):
    with server.client() as client:
        while not stop.is_set():
            register.sent += 1
            reply = client.call("INCR", register.key)
            assert reply.value == register.sent, reply
            register.acknowledged = register.sent


def check_read(register, low, value):
    # What was sent by now is the most that may be seen, what was answered before the least.
    assert low <= value <= register.sent, (
        f"{register.key}: read {value}; {low} was answered before, {register.sent} sent at most"
    )


def read(server, registers, how, seed, stop):
    rng = random.Random(seed)
    seen = dict.fromkeys(registers, 0)
    with server.client() as client:
        while not stop.is_set():
            chosen = registers if how != "get" else [rng.choice(registers)]
            lows = [max(register.acknowledged, seen[register]) for register in chosen]
            keys = [register.key for register in chosen]
            if how == "mget":
                replies = client.call("MGET", *keys).value
            elif how == "exec":
                replies = client.pipeline([("MULTI",), *(("GET", k) for k in keys), ("EXEC",)])[-1].value
            else:
                replies = client.pipeline([("GET", key) for key in keys])
            for register, low, reply in zip(chosen, lows, replies, strict=True):
                value = int(reply.value or 0)
                check_read(register, low, value)
                seen[register] = value


@pytest.mark.parametrize("appendfsync", ["everysec", "always"])
def test_an_answered_write_is_seen_by_everybody(engine, rng, appendfsync):
    with ingot(engine, appendfsync=appendfsync) as server:
        registers = [Register(i) for i in range(REGISTERS)]
        with Crew() as crew:
            for register in registers:
                crew.add(write, server, register, crew.stop)
            for number in range(READERS):
                how = ("get", "pipeline", "mget", "exec")[number % 4]
                crew.add(read, server, registers, how, rng.random(), crew.stop)
            crew.run_for(SECONDS)
        assert min(register.acknowledged for register in registers) > 10
        print("writes:", sum(register.acknowledged for register in registers))


def increment(server, seed, answers):
    rng = random.Random(seed)
    clients = [server.client(timeout=30) for _ in range(CONNECTIONS_PER_THREAD)]
    left = INCREMENTS
    while left > 0:
        depth = min(left, rng.randint(1, 30))
        left -= depth
        sent = []
        for client in clients:
            counters = [rng.randrange(COUNTERS) for _ in range(depth)]
            sent.append(counters)
            for counter in counters:
                client.send("INCR", f"counter:{counter}")
        for client, counters in zip(clients, sent):
            for counter in counters:
                answers[counter].append(client.read().value)
    for client in clients:
        client.close()


def test_increments_by_many_connections_sum_exactly(engine, rng):
    """Every number is answered once: no increment is lost, none is done twice."""
    answers = [[] for _ in range(COUNTERS)]
    with ingot(engine) as server:
        with Crew() as crew:
            for _ in range(THREADS):
                crew.add(increment, server, rng.random(), answers)
            crew.wait(80)
        for counter, numbers in enumerate(answers):
            assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"counter {counter}"
        assert sum(map(len, answers)) == THREADS * CONNECTIONS_PER_THREAD * INCREMENTS
        with server.client() as client:
            finals = client.call("MGET", *(f"counter:{i}" for i in range(COUNTERS))).value
            assert [int(final.value) for final in finals] == [len(numbers) for numbers in answers]
