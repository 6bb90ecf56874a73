"""Ranks of large sorted sets in scripts and transactions, which ask the writer in the middle of what it changes, next to
clients whose ranks are found in memory."""

import random

import pytest
from support.effort import SEED

MEMBERS = 20_000
RANKS = """local found = {}
for i = 1, #ARGV, 3 do
  redis.call('ZINCRBY', KEYS[1], ARGV[i + 1], ARGV[i])
  if i % 2 == 0 then redis.call('ZREM', KEYS[1], ARGV[i + 2]) end
  found[#found + 1] = redis.call('ZRANK', KEYS[1], ARGV[i])
  found[#found + 1] = redis.call('ZREVRANK', KEYS[1], ARGV[i + 2])
  found[#found + 1] = redis.call('ZRANGE', KEYS[1], i * 7, i * 7 + 3)
  found[#found + 1] = redis.call('ZREVRANGE', KEYS[1], 0, 2, 'WITHSCORES')
  found[#found + 1] = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[i + 1])
end
return found"""


def member(number):
    return b"member:%06d" % number


def fill(pair):
    pair.reset()
    for server in pair.servers:
        with server.client(timeout=60) as client:
            for first in range(0, MEMBERS, 2000):
                numbers = range(first, first + 2000)
                client.call("ZADD", "board", *(word for n in numbers for word in (n // 3, member(n))))


@pytest.mark.parametrize("form", ["EVAL", "MULTI"])
def test_ranks_of_what_the_unit_changes(pair, form):
    fill(pair)
    rng = random.Random(SEED)
    for unit in range(120):
        chosen = [(member(rng.randrange(MEMBERS)), rng.randrange(-500, 7000), member(rng.randrange(MEMBERS)))
                  for _ in range(1 + unit % 12)]  # fmt: skip
        if form == "EVAL":
            lines = [["EVAL", RANKS, 1, "board", *(word for each in chosen for word in each)]]
        else:
            lines = [["MULTI"]]
            for name, by, other in chosen:
                lines += [["ZRANK", "board", other], ["ZINCRBY", "board", by, name], ["ZREVRANK", "board", name],
                          ["ZREM", "board", other], ["ZRANK", "board", name], ["ZRANGE", "board", by, by + 40, "WITHSCORES"],
                          ["ZCOUNT", "board", 100, by], ["ZADD", "board", by, other], ["ZREVRANK", "board", other],
                          ["ZREMRANGEBYRANK", "board", 5000, 5000 + unit], ["ZRANK", "board", name]]  # fmt: skip
            lines.append(["EXEC" if unit % 5 else "DISCARD"])
        # What is committed, between.
        lines += [["ZRANK", "board", chosen[0][0]], ["ZRANGE", "board", 4990, 5030], ["ZCARD", "board"]]
        replies = []
        for server in pair.servers:
            with server.client(timeout=30) as client:
                replies.append(client.pipeline(lines))
        assert replies[0] == replies[1], (unit, str(replies)[:600])
    redis, ingot = pair.both("DEBUG", "DIGEST-VALUE", "board")
    assert redis == ingot
