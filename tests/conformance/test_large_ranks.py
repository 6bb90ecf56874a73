"""A large sorted set whose ranks are asked for while it changes, on both servers: what is found in memory of its order
must follow every commit."""

import random

import pytest

MEMBERS = 6000
ROUNDS = 400


def member(chance):
    return b"m:%d" % chance.randrange(MEMBERS)


def score(chance, scores):
    return b"%g" % chance.choice([chance.randrange(scores), chance.randrange(scores) / 7, -chance.randrange(scores)])


def change(chance, scores):
    first = chance.randrange(MEMBERS)
    return chance.choice([
        [b"ZADD", b"z", score(chance, scores), member(chance)],
        [b"ZADD", b"z", *(w for _ in range(40) for w in (score(chance, scores), member(chance)))],
        [b"ZADD", b"z", *(w for _ in range(30) for w in (b"%d" % chance.randrange(10**7, 10**8), member(chance)))],
        [b"ZREM", b"z", member(chance), member(chance)],
        [b"ZINCRBY", b"z", b"-10", member(chance)],
        [b"ZPOPMIN", b"z", b"%d" % chance.choice([1, 30])],
        [b"ZPOPMAX", b"z", b"%d" % chance.choice([1, 30])],
        [b"ZREMRANGEBYRANK", b"z", b"%d" % first, b"%d" % (first + chance.randrange(20))],
        [b"RENAME", b"z", b"z"],
    ])


def question(chance, scores):
    first = chance.randrange(MEMBERS)
    return chance.choice([
        [b"ZRANK", b"z", member(chance)],
        [b"ZREVRANK", b"z", member(chance)],
        [b"ZCOUNT", b"z", score(chance, scores), b"+inf"],
        [b"ZCOUNT", b"z", b"(%s" % score(chance, scores), score(chance, scores)],
        [b"ZRANGE", b"z", b"%d" % first, b"%d" % (first + chance.choice([0, 9, 100, 900]))],
        [b"ZREVRANGE", b"z", b"%d" % first, b"%d" % (first + 20), b"WITHSCORES"],
        [b"ZRANGEBYSCORE", b"z", score(chance, scores), b"+inf", b"LIMIT", b"%d" % chance.choice([0, 300]), b"10"],
        [b"ZREVRANGEBYSCORE", b"z", b"+inf", score(chance, scores), b"WITHSCORES", b"LIMIT", b"5", b"10"],
    ])


@pytest.mark.parametrize("scores", [20, 10**6])
@pytest.mark.parametrize("changes", [0.05, 0.5])
def test_ranks_while_they_change(empty_pair, scores, changes):
    chance = random.Random(scores)
    batches = [[[b"ZADD", b"z", score(chance, scores), member(chance)] for _ in range(500)] for _ in range(30)]
    for _ in range(ROUNDS):
        batches.append([(change if chance.random() < changes else question)(chance, scores)
                        for _ in range(chance.choice([1, 5, 30]))])
        if chance.random() < 0.1:
            batches[-1] = [[b"MULTI"], *batches[-1], [b"EXEC"]]
    replies = []
    for server in empty_pair.servers:
        # Two in turn: what one has read before is not what the other one changes.
        with server.client() as first, server.client() as second:
            clients = random.Random(1)
            replies.append([clients.choice([first, second]).pipeline(batch) for batch in batches])
    for batch, expected, actual in zip(batches, *replies, strict=True):
        for command, wanted, got in zip(batch, expected, actual, strict=True):
            assert got == wanted, command
