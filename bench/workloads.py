"""Commands that are measured: what is sent, and what has to be there before. {random} and {value} are the generator's
(bench/generator/requests.h). Their keys are named key:... and bench:..., so that nobody else's are touched."""

import dataclasses

import generator

FILLING = {"connections": 8, "pipeline": 250}
TAKEN_PER_SECOND = {
    False: 80_000,
    True: 400_000,
}  # with a pipeline: what there should be for those who take elements


@dataclasses.dataclass(frozen=True)
class Workload:
    """`words` are one request.

    `before`: commands that are sent once; x stands for a payload. `fill`: a command that is sent once for each key,
    {next}. `stock`: one that brings what the request takes away, again before each measurement.
    """

    name: str
    words: tuple
    before: tuple = ()
    fill: tuple = ()
    stock: tuple = ()

    def prepare(self, server, keys, payload):
        for command in self.before:
            server.client.execute_command(*("x" * payload if word == "x" else word for word in command))
        if self.fill:
            generator.measure(server, *self.fill, keys=keys, requests=keys, value_bytes=payload, **FILLING)

    def restock(self, server, payload, pipeline, seconds):
        """So much that a measurement should not find an end."""
        if self.stock:
            count = int(TAKEN_PER_SECOND[pipeline > 1] * seconds)
            generator.measure(server, *self.stock, keys=count, requests=count, value_bytes=payload, **FILLING)

    def measure(self, server, keys, payload, pipeline, seconds, connections, threads):
        """The generator's figures."""
        return generator.measure(server, *self.words, keys=keys, value_bytes=payload, pipeline=pipeline,
                                 seconds=seconds, connections=connections, threads=threads)  # fmt: skip


def _entry(stream, fields):
    pairs = [word for number in range(fields) for word in (f"field{number}", "{value}")]
    return ("XADD", stream, "*", *pairs)


def _xadd(fields):
    stream = f"bench:stream:{fields}"
    name = f"xadd {fields} field{'s' if fields > 1 else ''}"
    return Workload(name, _entry(stream, fields), (("DEL", stream),))


def _mset():
    return Workload("mset 10", ("MSET", *[word for number in range(10) for word in ("key:{random}", "{value}")]))


SET = Workload("set", ("SET", "key:{random}", "{value}"))
GET = Workload("get", ("GET", "key:{random}"), fill=("SET", "key:{next}", "{value}"))
_LIST_OF_600 = (("DEL", "bench:range"), ("RPUSH", "bench:range", *["x"] * 600))

# What is usually shown of servers with I/O threads.
MATRIX = [
    _mset(), SET, GET,
    Workload("hset", ("HSET", "bench:hash", "element:{random}", "{value}"), (("DEL", "bench:hash"),)),
    Workload("lrange_100", ("LRANGE", "bench:range", 0, 99), _LIST_OF_600),
    _xadd(1), _xadd(5), _xadd(10),
]  # fmt: skip


def _hash_of(fields):
    pairs = [word for number in range(fields) for word in (f"field{number}", f"value{number}")]
    return (("HSET", f"bench:hash:{fields}", *pairs),)


def _scores(count):
    return (("ZADD", "bench:scores", *[word for i in range(count) for word in (str(i), f"member:{i}")]),)


TYPES = [
    SET, GET, _mset(),
    Workload("hset", ("HSET", "bench:hash:{random}", "field", "{value}")),
    Workload("hset, one large", ("HSET", "bench:large", "field:{random}", "{value}")),
    Workload("hget, one large", ("HGET", "bench:large", "field:{random}"),
             fill=("HSET", "bench:large", "field:{next}", "{value}")),
    Workload("hgetall, 10 fields", ("HGETALL", "bench:hash:10"), _hash_of(10)),
    Workload("hgetall, 1000 fields", ("HGETALL", "bench:hash:1000"), _hash_of(1000)),
    Workload("lpush", ("LPUSH", "bench:list", "{value}")),
    Workload("rpop", ("RPOP", "bench:list"), stock=("LPUSH", "bench:list", "{value}")),
    Workload("lrange_100", ("LRANGE", "bench:range", 0, 99), _LIST_OF_600),
    Workload("lrange_300", ("LRANGE", "bench:range", 0, 299), _LIST_OF_600),
    Workload("lrange_600", ("LRANGE", "bench:range", 0, 599), _LIST_OF_600),
    Workload("sadd", ("SADD", "bench:set", "member:{random}")),
    Workload("spop", ("SPOP", "bench:set"), stock=("SADD", "bench:set", "member:{next}")),
    Workload("zadd", ("ZADD", "bench:zset", "{random}", "member:{random}")),
    Workload("zpopmin", ("ZPOPMIN", "bench:zset"), stock=("ZADD", "bench:zset", "{next}", "member:{next}")),
    Workload("zrange_100", ("ZRANGE", "bench:scores", 300, 399), _scores(1000)),
    _xadd(1), _xadd(5), _xadd(10),
    Workload("xread 10", ("XREAD", "COUNT", 10, "STREAMS", "bench:entries", 0),
             fill=_entry("bench:entries", 1)),
]  # fmt: skip

# A leaderboard's: a member gains, and hears of its place.
_GAIN = "redis.call('ZINCRBY', KEYS[1], 1, ARGV[1]) return redis.call('ZREVRANK', KEYS[1], ARGV[1])"

# Of one large sorted set, and of a long list.
_RANKED = ("ZADD", "bench:ranked", "{random}", "member:{next}")
RANKS = [
    Workload("zrank", ("ZRANK", "bench:ranked", "member:{random}"), fill=_RANKED),
    Workload("zcount", ("ZCOUNT", "bench:ranked", "{random}", "+inf"), fill=_RANKED),
    Workload("zrangebyscore 10", ("ZRANGEBYSCORE", "bench:ranked", "{random}", "+inf", "LIMIT", 0, 10), fill=_RANKED),
    Workload("zrevrange 10", ("ZREVRANGE", "bench:ranked", 0, 9), fill=_RANKED),
    Workload("eval zincrby, zrevrank", ("EVAL", _GAIN, 1, "bench:ranked", "member:{random}"), fill=_RANKED),
    Workload("zpopmax", ("ZPOPMAX", "bench:zset"), stock=("ZADD", "bench:zset", "{next}", "member:{next}")),
    Workload("sort limit 10", ("SORT", "bench:numbers", "LIMIT", 0, 10), (("DEL", "bench:numbers"),),
             fill=("RPUSH", "bench:numbers", "{random}")),
]  # fmt: skip

SETS = {"matrix": MATRIX, "types": TYPES, "ranks": RANKS, "memtier": [GET, SET]}


def chosen(which, only):
    """Those of a set whose names contain one of `only` (comma-separated; empty: all)."""
    words = [word.strip() for word in only.lower().split(",") if word.strip()]
    return [each for each in SETS[which] if not words or any(word in each.name for word in words)]
