"""The model test with reopen: random commands over all types, kill -9, start again, compare.

redis-server is the model. Ingot is killed between two pipelines, so everything was answered: all of
it must be there, and the commands go on from it.
"""

import random

import pytest
import type_commands as types
from commands import DATABASES, commands
from runner import Pair
from support.effort import FULL, SEED
from support.servers import Server, self_check
from test_random import Checker, pipelines, totals

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps nothing over kill -9")

ROUNDS = 40 if FULL else 6
COMMANDS = 4000  # in each round


def run_part(pair, sequence, protocol):
    clients = [server.client(protocol, timeout=30) for server in pair.servers]
    checker = Checker()
    for batch in pipelines(sequence, random.Random(SEED)):
        for words, expected, actual in zip(batch, *(client.pipeline(batch) for client in clients)):
            assert checker.same(words, expected, actual), (SEED, words, expected, actual)
    for client in clients:
        client.close()


def groups(pair):
    """What the digest does not tell."""
    told = ([], [])
    for database in range(DATABASES):
        pair.both("SELECT", database)
        for i in range(types.NAMES):
            for question in (("XINFO", "GROUPS"), ("XPENDING",)):
                extra = ("g1",) if question == ("XPENDING",) else ()
                for answers, reply in zip(told, pair.both(*question, f"stream{i}", *extra)):
                    answers.append(reply)
    pair.both("SELECT", 0)
    return told


@pytest.mark.parametrize("form", ["small", "large"])
def test_reopen(engine, form):
    """`large`: no collection stands inside its key's record."""
    options = {"inline-max-bytes": 0} if form == "large" else {}
    with Server.redis() as redis, Server.ingot(engine, options) as other:
        pair = Pair(redis, other)
        sequence = commands(types.TypeChance(SEED), types.TABLE, ROUNDS * COMMANDS)
        for number in range(ROUNDS):
            part = sequence[number * COMMANDS : (number + 1) * COMMANDS]
            run_part(pair, part, 2 + number % 2)
            other.restart(kill=True)
            pair.admins = tuple(server.client(timeout=30) for server in pair.servers)
            expected, actual = totals(pair)
            assert expected == actual, f"seed {SEED}, round {number}"
            expected, actual = groups(pair)
            assert expected == actual, f"seed {SEED}, round {number}"
