#!/usr/bin/python3
"""How fast is a dump.rdb loaded at the first start, next to the redis-server that wrote it?

    bench/rdb_load.py                        the shapes below, 1 M elements each
    bench/rdb_load.py --elements 5000000 --rounds 5
"""

import os
import tempfile
import time

import arguments
import common
from common import MB, median

# What each shape writes, with the elements of one command.
SHAPES = {
    "strings of 100 bytes": lambda at: ("SET", f"key:{at}", "x" * 100),
    "strings that expire": lambda at: ("SET", f"key:{at}", "x" * 20, "EX", 1_000_000),
    "hashes of 10 fields": lambda at: ("HSET", f"h:{at}", *(x for i in range(10) for x in (f"field{i}", f"value{at}"))),
    "lists of 10": lambda at: ("RPUSH", f"l:{at}", *(f"element{i}" for i in range(10))),
    "one hash": lambda at: ("HSET", "hash", *(x for i in range(10) for x in (f"field:{at}:{i}", "x" * 20))),
    "one set": lambda at: ("SADD", "set", *(f"member:{at}:{i}" for i in range(10))),
    "one sorted set": lambda at: ("ZADD", "zset", *(x for i in range(10) for x in ((at * 7919 + i) % 100_003, f"m:{at}:{i}"))),
}  # fmt: skip
ONE_EACH = ("strings of 100 bytes", "strings that expire")


class Loading(common.Server):
    """A server that loads what is in its directory when it starts, and how long it was until it served."""

    patience = 600  # of millions of elements

    def start(self):
        begun = time.monotonic()
        super().start()
        self.seconds = time.monotonic() - begun


def servers_of(args, **redis_settings):
    """name -> the command and the settings."""
    return {"redis": ([args.redis], {"save": ""} | redis_settings), "ingot": ([args.server], {"engine": args.engine})}


def loading(name, servers, base, dump=None):
    """One of them in a directory of its own below `base`, with this dump."""
    command, settings = servers[name]
    server = Loading(name, command, base, settings)
    if dump:
        os.link(dump, os.path.join(server.directory, "dump.rdb"))
    return server


def write_dump(shape, args, directory):
    """The path of the dump.rdb that redis-server makes of so many elements."""
    each = 1 if shape in ONE_EACH else 10
    with Loading("redis", [args.redis], None, {"save": ""}, directory) as server:
        pipeline = server.client.pipeline(transaction=False)
        for at in range(args.elements // each):
            pipeline.execute_command(*SHAPES[shape](at))
            if at % 1000 == 999:
                pipeline.execute()
        pipeline.execute()
        server.client.save()
    return os.path.join(directory, "dump.rdb")


def start_seconds(name, servers, base, dump=None):
    with loading(name, servers, base, dump) as server:
        return server.seconds


def run(args):
    servers = servers_of(args)
    results = []
    print(f"{'':24}{'MB':>8}{'redis s':>10}{'ingot s':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory(prefix="rdb-load-", dir=args.dir) as base:
        # A start takes something without any data, too.
        empty = {name: start_seconds(name, servers, base) for name in servers}
        for shape in args.shape or SHAPES:
            dump = write_dump(shape, args, base)
            size = os.path.getsize(dump)
            seconds = {name: [] for name in servers}
            for _ in range(args.rounds):
                for name in servers:
                    seconds[name].append(max(start_seconds(name, servers, base, dump) - empty[name], 0.001))
            os.remove(dump)
            redis, ingot = (median(seconds[name]) for name in ("redis", "ingot"))
            results.append({"shape": shape, "bytes": size, "seconds": seconds, "ratio": redis / ingot})
            print(f"{shape:24}{size / MB:8.1f}{redis:10.2f}{ingot:10.2f}{redis / ingot:8.2f}", flush=True)
    return results


def parse(description, rounds):
    parser = arguments.options(description)
    parser.add_argument("--elements", type=arguments.whole_within(10, 10**9),
                        help="of each shape: 1,000,000; 100,000 when quick")  # fmt: skip
    parser.add_argument("--rounds", type=arguments.rounds, help=f"{rounds}: 3; 1 when quick")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="only this one; may be given again (all)")
    arguments.add_engine(parser)
    args = parser.parse_args()
    args.elements = args.elements or (100_000 if args.quick else 1_000_000)
    args.rounds = args.rounds or (1 if args.quick else 3)
    return args


if __name__ == "__main__":
    common.run_alone("rdb_load", run, parse(__doc__, "loads by each server, in turn; the median counts"))
