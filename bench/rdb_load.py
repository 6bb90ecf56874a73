#!/usr/bin/python3
"""How fast is a dump.rdb loaded at the first start, next to the redis-server that wrote it?

    bench/rdb_load.py                        the shapes below, 1 M elements each
    bench/rdb_load.py --elements 5000000 --rounds 5
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from arguments import whole
from common import ROOT, MB  # noqa: F401  (common also looks for python3-redis)

import redis
import tempfile

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


def port_of(server):
    return 20_000 + os.getpid() % 10_000 + server


class Running:
    """A server on `directory`, until it has loaded what is there."""

    def __init__(self, command, directory, port):
        self.port = port
        self.log = open(os.path.join(directory, "bench.log"), "ab")
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [*command, "--port", str(port), "--dir", directory], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )  # fmt: skip
        self.client = redis.Redis(port=port, socket_timeout=600)
        self.seconds = self.wait()

    def wait(self):
        while self.process.poll() is None:
            try:
                if self.client.ping():
                    return time.monotonic() - self.begun
            except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
                time.sleep(0.005)
        sys.exit(f"{self.process.args[0]} ended; see {self.log.name}")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def write_dump(shape, elements, directory):
    server = Running(["redis-server", "--save", ""], directory, port_of(0))
    each = 1 if shape in ONE_EACH else 10
    pipeline = server.client.pipeline(transaction=False)
    for at in range(elements // each):
        pipeline.execute_command(*SHAPES[shape](at))
        if at % 1000 == 999:
            pipeline.execute()
    pipeline.execute()
    server.client.save()
    server.stop()
    return os.path.getsize(os.path.join(directory, "dump.rdb"))


def load_seconds(command, dump, empty_seconds):
    """Of one load, without what a start takes anyway."""
    directory = tempfile.mkdtemp(dir=os.path.dirname(dump))
    try:
        os.link(dump, os.path.join(directory, "dump.rdb"))
        server = Running(command, directory, port_of(1))
        server.stop()
        return max(server.seconds - empty_seconds, 0.001)
    finally:
        shutil.rmtree(directory)


def empty_start(command, base):
    directory = tempfile.mkdtemp(dir=base)
    server = Running(command, directory, port_of(1))
    server.stop()
    shutil.rmtree(directory)
    return server.seconds


def parse_options(description, rounds):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=whole, default=1_000_000)
    parser.add_argument("--rounds", type=whole, default=3, help=rounds)
    parser.add_argument("--engine", default="rocksdb")
    parser.add_argument("--server", default=os.path.join(ROOT, "build", "release", "ingot-server"))
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"))
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    options = parse_options(__doc__, "loads by each server, in turn; the median counts")
    commands = {"redis": ["redis-server", "--save", ""], "ingot": [options.server, "--engine", options.engine]}
    results = []
    print(f"{'':24}{'MB':>8}{'redis s':>10}{'ingot s':>10}{'ratio':>8}")
    base = tempfile.mkdtemp(prefix="rdb-load-", dir=options.dir)
    try:
        empty = {name: empty_start(command, base) for name, command in commands.items()}
        for shape in options.shape or SHAPES:
            directory = tempfile.mkdtemp(dir=base)
            size = write_dump(shape, options.elements, directory)
            dump = os.path.join(directory, "dump.rdb")
            seconds = {name: [] for name in commands}
            for _ in range(options.rounds):
                for name, command in commands.items():
                    seconds[name].append(load_seconds(command, dump, empty[name]))
            median = {name: statistics.median(values) for name, values in seconds.items()}
            ratio = median["redis"] / median["ingot"]
            results.append({"shape": shape, "bytes": size, "seconds": seconds, "ratio": ratio})
            print(f"{shape:24}{size / MB:8.1f}{median['redis']:10.2f}{median['ingot']:10.2f}{ratio:8.2f}", flush=True)
            shutil.rmtree(directory)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
