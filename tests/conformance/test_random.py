"""Seeded random sequences: the same commands to both servers, in pipelines of random depth.

Every reply is compared, and at the end DBSIZE and DEBUG DIGEST. INGOT_RANDOM_COMMANDS sets how many
commands (20,000), INGOT_SEED the seed (else a new one). A failure prints the seed and the shortest
sequence found that still shows it.
"""

import os
import random
import time

import pytest
import commands as strings
import type_commands as types
from commands import DATABASES, commands
from compare import compare
from support.effort import SEED
from support.resp import Reply, Timeout

COUNT = int(os.environ.get("INGOT_RANDOM_COMMANDS", "10000"))
COUNT_OF_TYPES = int(os.environ.get("INGOT_RANDOM_COMMANDS", "12000"))  # for each engine and protocol
DEEPEST_PIPELINE = 100
REPLY_SECONDS = 30.0
REDUCE_SECONDS = 30.0
SETTLE_SECONDS = 5.0
SHOWN_BYTES = 60
HOW = {
    b"TTL": "near=20", b"PTTL": "near=20000", b"EXPIRETIME": "near=20", b"PEXPIRETIME": "near=20000",
    b"KEYS": "sorted", b"SCAN": "sorted", b"RANDOMKEY": "kind", **types.HOW,
}  # fmt: skip
# What counts or shows keys that have expired but were not removed yet.
SEES_EXPIRED = (b"DBSIZE", b"RANDOMKEY", b"DEBUG DIGEST")


class Checker:
    """Compares the replies of one connection, command after command."""

    def __init__(self):
        self.queued = []
        self.maybe_expired = False  # a SET with a past expiry may have left a key to be removed

    def how(self, words):
        name = b" ".join(words) if words[0] == b"DEBUG" else words[0]
        if self.maybe_expired and name.startswith(SEES_EXPIRED):
            return "kind"
        return HOW.get(name, "")

    def same(self, words, expected, actual):
        if words[0] == b"FLUSHALL" and expected == Reply("simple", b"OK"):
            self.maybe_expired = False
        if words[0] == b"SET" and words[-1] == b"1000":
            self.maybe_expired = True
        if expected == Reply("simple", b"QUEUED"):
            self.queued.append(self.how(words))
            return actual == expected
        hows = self.queued
        if words[0] in (b"EXEC", b"DISCARD"):
            self.queued = []
        if words[0] == b"EXEC" and expected.kind == actual.kind == "array":
            return len(expected.value) == len(actual.value) and all(
                map(compare, hows, expected.value, actual.value)
            )
        return compare(self.how(words), expected, actual)


def pipelines(sequence, depths):
    """Cuts a sequence into pipelines; the shorter ones are the more frequent."""
    at = 0
    while at < len(sequence):
        depth = int(depths.paretovariate(0.7))
        yield sequence[at : at + min(depth, DEEPEST_PIPELINE)]
        at += min(depth, DEEPEST_PIPELINE)


def first_difference(pair, protocol, sequence):
    """(index, Redis' reply, the other's) of the first reply that differs, or None."""
    pair.reset()
    clients = [server.client(protocol, timeout=REPLY_SECONDS) for server in pair.servers]
    checker, at = Checker(), 0
    try:
        for batch in pipelines(sequence, random.Random(SEED)):
            expected = clients[0].pipeline(batch)
            try:
                actual = clients[1].pipeline(batch)
            except Timeout:
                return at + len(batch) - 1, Reply("a pipeline of replies", None), Reply("silent", None)
            actual += [Reply("closed", None)] * (len(batch) - len(actual))
            for words, left, right in zip(batch, expected, actual):
                if not checker.same(words, left, right):
                    return at, left, right
                at += 1
        return None
    finally:
        for client in clients:
            client.close()


def reduced(pair, protocol, sequence):
    """A shorter sequence that still differs: the shortest tail by doubling, then parts left out."""
    deadline = time.monotonic() + REDUCE_SECONDS
    length = 1
    while length < len(sequence) and first_difference(pair, protocol, sequence[-length:]) is None:
        length *= 2
    tail = sequence[-length:]
    if length >= len(sequence) and first_difference(pair, protocol, tail) is None:
        return None
    part = max(1, len(tail) // 2)
    while time.monotonic() < deadline:
        at = 0
        while at < len(tail) and time.monotonic() < deadline:
            shorter = tail[:at] + tail[at + part :]
            if shorter and first_difference(pair, protocol, shorter) is not None:
                tail = shorter
            else:
                at += part
        if part == 1:
            break
        part //= 2
    return tail


def shown(words):
    def short(word):
        return repr(word[:SHOWN_BYTES]) + (f"...({len(word)} bytes)" if len(word) > SHOWN_BYTES else "")

    return "    " + " ".join(map(short, words))


def report(pair, protocol, sequence, found):
    index, expected, actual = found
    lines = [f"seed {SEED}, command {index}: {shown(sequence[index]).strip()}"]
    lines += [f"  redis: {expected!r}", f"  other: {actual!r}"]
    if not pair.servers[1].alive():
        lines.append("the server died\n" + pair.servers[1].log_tail())
    tail = reduced(pair, protocol, sequence[: index + 1])
    if tail is None:
        lines.append("it does not happen again in the same sequence; the last commands were:")
        tail = sequence[max(0, index - 30) : index + 1]
    else:
        found = first_difference(pair, protocol, tail)
        lines.append(f"{len(tail)} commands are enough (now {found}):")
    return "\n".join(lines + [shown(words) for words in tail[-60:]])


def totals(pair):
    """Of each server: the sizes of the databases and the digest of everything."""
    sizes = ([], [])
    for database in range(DATABASES):
        pair.both("SELECT", database)
        for list_, reply in zip(sizes, pair.both("DBSIZE")):
            list_.append(reply.value)
    pair.both("SELECT", 0)
    return list(zip(sizes, (reply.value for reply in pair.both("DEBUG", "DIGEST"))))


@pytest.mark.parametrize("dice", ["strings", "types"])
def test_random_sequence(empty_pair, protocol, dice):
    pair = empty_pair
    if dice == "strings":
        sequence = commands(strings.Chance(SEED), strings.TABLE, COUNT)
    else:
        sequence = commands(types.TypeChance(SEED), types.TABLE, COUNT_OF_TYPES)
    found = first_difference(pair, protocol, sequence)
    if found is not None:
        pytest.fail(report(pair, protocol, sequence, found), pytrace=False)
    # Keys that had expired when they were set go away by themselves, soon but not at once.
    deadline = time.monotonic() + SETTLE_SECONDS
    while (ends := totals(pair))[0] != ends[1] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ends[0] == ends[1], f"seed {SEED}: databases differ at the end"
