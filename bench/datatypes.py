#!/usr/bin/python3
"""Commands of all data types next to redis-server: 50 connections, pipelines of 1 and 16, in memory.

The two servers take turns. Rates are of requests; every request of a kind does the same work on both.
"""

import common
from common import median, ratio_text, thousands

PIPELINES = (1, 16)
VALUE = "x" * 100
RANDOM = "__rand_int__"


def fill_hash(fields):
    return [["HSET", f"hash:{fields}", *[f"{k}{i}" for i in range(fields) for k in ("field", "value")]]]


def fill_list(count):
    return [["RPUSH", "range", *[f"element:{i}" for i in range(count)]]]


def fill_scores(count):
    return [["ZADD", "scores", *[word for i in range(count) for word in (str(i), f"member:{i}")]]]


def entry(fields):
    return [word for i in range(fields) for word in (f"field{i}", VALUE)]


# name, commands sent before (each once), the command that is measured
TESTS = [
    ("HSET", [], ["HSET", f"hash:{RANDOM}", "field", VALUE]),
    ("HSET one large", [], ["HSET", "large", f"field:{RANDOM}", VALUE]),
    ("HGET one large", [], ["HGET", "large", f"field:{RANDOM}"]),
    ("HGETALL 10 fields", fill_hash(10), ["HGETALL", "hash:10"]),
    ("HGETALL 1000 fields", fill_hash(1000), ["HGETALL", "hash:1000"]),
    ("LPUSH", [], ["LPUSH", "list", VALUE]),
    ("RPOP", [], ["RPOP", "list"]),
    ("LRANGE 100", fill_list(600), ["LRANGE", "range", "0", "99"]),
    ("LRANGE 300", [], ["LRANGE", "range", "0", "299"]),
    ("LRANGE 600", [], ["LRANGE", "range", "0", "599"]),
    ("SADD", [], ["SADD", "set", f"member:{RANDOM}"]),
    ("SPOP", [], ["SPOP", "set"]),
    ("ZADD", [], ["ZADD", "zset", RANDOM, f"member:{RANDOM}"]),
    ("ZPOPMIN", [], ["ZPOPMIN", "zset"]),
    ("ZRANGE 100", fill_scores(1000), ["ZRANGE", "scores", "300", "399"]),
    ("XADD 1 field", [], ["XADD", "stream:1", "*", *entry(1)]),
    ("XADD 5 fields", [], ["XADD", "stream:5", "*", *entry(5)]),
    ("XADD 10 fields", [], ["XADD", "stream:10", "*", *entry(10)]),
    ("XREAD 10", [], ["XREAD", "COUNT", "10", "STREAMS", "stream:1", "0"]),
    ("MSET 10", [], ["MSET", *[word for i in range(10) for word in (f"key:{i}:{RANDOM}", VALUE)]]),
]


def measure(servers, test, pipeline, args):
    _, before, command = test
    rates = {server.name: [] for server in servers}
    for server in servers:
        for words in before if pipeline == PIPELINES[0] else []:
            server.client.execute_command(*words)
    for _ in range(args.rounds):
        for server in servers:
            rate = common.redis_benchmark(
                server, args.seconds, args.keys, *command, guess=2000 * pipeline, pipeline=pipeline
            )
            rates[server.name].append(rate)
    return rates


def run(args):
    common.title(f"Data types in memory: 50 connections, {args.keys:,} different names")
    result, rows = {"keys": args.keys}, []
    with common.ingot(args, {"maxmemory": "1gb"}) as ingot, common.redis_server(args) as other:
        for test in TESTS:
            if args.only and args.only not in test[0]:
                continue
            for pipeline in PIPELINES:
                rates = measure((ingot, other), test, pipeline, args)
                result[f"{test[0]}-{pipeline}"] = rates
                rows.append([f"{test[0]}, pipeline {pipeline}", thousands(median(rates["ingot"])),
                             thousands(median(rates["redis"])), ratio_text(rates["ingot"], rates["redis"])])  # fmt: skip
        common.table(["", "ingot/s", "redis/s", "ratio (min-max)"], rows)
        common.print_load()
    return result


def parse(words=None):
    parser = common.options(__doc__)
    parser.add_argument("--keys", type=int, help="100,000; 20,000 when quick")
    parser.add_argument("--rounds", type=int, help="3; 1 when quick")
    parser.add_argument("--seconds", type=float, help="of one measurement: 2; 0.5 when quick")
    parser.add_argument("--only", default="", help="only tests whose name contains this")
    args = parser.parse_args(words)
    args.keys = args.keys or (20_000 if args.quick else 100_000)
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.seconds = args.seconds or (0.5 if args.quick else 2)
    return args


if __name__ == "__main__":
    common.run_alone("datatypes", run, parse())
