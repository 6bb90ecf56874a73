#!/usr/bin/python3
"""Everything in memory: GET and SET next to redis-server, 50 connections, pipelines of 1 and 16.

The two servers take turns, several rounds, so that a change of the machine's mood meets both. The
keys are there before, and are read once, so that what is measured is the way from socket to cache.
"""

import collections
import os
import shutil
import subprocess

import arguments
import common
import generator
from common import median, ratio_text, thousands

AIM = 0.9  # of redis-server, at a pipeline of 1
VALUE_BYTES = 100
PIPELINES = (1, 16)


def warm(server, keys):
    """Reads every key, so that the cache holds what it can."""
    for first in range(0, keys, 500):
        names = [b"key:%012d" % number for number in range(first, min(first + 500, keys))]
        missing = server.client.mget(names).count(None)
        if missing:
            raise SystemExit(f"{server.name}: {missing} keys of {len(names)} are missing")


def cost(server, test, pipeline, args):
    """Requests per second, and the microseconds of processor time that the server took for each."""
    commands = server.client.info("stats")["total_commands_processed"]
    cpu = server.cpu_seconds()
    rate = common.redis_benchmark(
        server, args.seconds, args.keys, "-t", test, "-d", str(VALUE_BYTES),
        guess=10000 * pipeline, pipeline=pipeline, threads=args.client_threads,
    )  # fmt: skip
    cpu = server.cpu_seconds() - cpu
    commands = server.client.info("stats")["total_commands_processed"] - commands
    return rate, cpu / commands * 1e6


def measure(servers, test, pipeline, args):
    """For each server its rates and costs, round by round; and Ingot's probe hit rate (1: everything
    was answered without a reader thread)."""
    result = {server.name: {"rates": [], "cpu_us": []} for server in servers}
    before = servers[0].client.info("everything")
    for _ in range(args.rounds):
        for server in servers:
            rate, cpu_us = cost(server, test, pipeline, args)
            result[server.name]["rates"].append(rate)
            result[server.name]["cpu_us"].append(cpu_us)
            if test == "set":
                server.wait_until_quiet(30)
    after = servers[0].client.info("everything")
    if after["keyspace_misses"] != before["keyspace_misses"]:
        raise SystemExit("some keys were not there: these figures mean nothing")
    probes = after.get("probes", 0) - before.get("probes", 0)
    hits = after.get("probe_hits", 0) - before.get("probe_hits", 0)
    return result | {"probe_hit_rate": hits / probes if probes else None}


def row(test, pipeline, result):
    ours, theirs, hits = result["ingot"], result["redis"], result["probe_hit_rate"]
    return [
        f"{test.upper()} pipeline {pipeline}",
        thousands(median(ours["rates"])),
        thousands(median(theirs["rates"])),
        ratio_text(ours["rates"], theirs["rates"]),
        f"{median(ours['cpu_us']):.2f}",
        f"{median(theirs['cpu_us']):.2f}",
        "-" if test == "set" or hits is None else f"{hits:.4f}",
    ]


def profile(server, test, args):
    """(share, thread, symbol) from the largest down, while `test` runs at a pipeline of 16."""
    data = os.path.join(server.directory, "perf.data")
    record = subprocess.Popen(
        ["perf", "record", "-g", "-F", "999", "-o", data, "-p", str(server.pid)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    common.redis_benchmark(
        server, args.seconds, args.keys, "-t", test, "-d", str(VALUE_BYTES), guess=160000, pipeline=16
    )
    if record.poll() is None:
        record.send_signal(2)
    message = record.communicate()[1]
    if not os.path.exists(data):
        print(f"perf cannot record here: {message.strip()[:200]}")
        return []
    report = subprocess.run(
        ["perf", "report", "-i", data, "--stdio", "--no-children", "-g", "none", "-F",
         "overhead,comm,sym", "-t", "\t"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows = [line.split("\t") for line in report.splitlines() if line and not line.startswith("#")]
    return [
        (float(share.strip().rstrip("%")), thread.strip(), symbol.strip())
        for share, thread, symbol in rows
    ]


def print_profile(server, args):
    if not shutil.which("perf"):
        print("\nno profile: perf is not installed (package linux-perf)")
        return {}
    result = {}
    for test in ("get", "set"):
        rows = profile(server, test, args)
        threads = collections.Counter()
        for share, thread, _ in rows:
            threads[thread] += share
        common.title(f"Where {test.upper()} at a pipeline of 16 spends Ingot's processor time")
        for thread, total in threads.most_common():
            if total < 1:
                continue
            print(f"{total:5.1f} %  {thread}")
            for share, _, symbol in [row for row in rows if row[1] == thread and row[0] >= 0.3][:15]:
                print(f"        {share:5.1f} %  {symbol[:100]}")
        result[test] = rows[:200]
    return result


def run(args):
    common.title(f"In cache: {args.keys:,} keys, {VALUE_BYTES}-byte values, 50 connections")
    ingot = common.ingot(args, {"maxmemory": "1gb"})
    other = common.redis_server(args, {"appendonly": "yes"} if args.redis_appendonly else {})
    rows, result = [], {"keys": args.keys, "redis_appendonly": args.redis_appendonly}
    with ingot, other:
        for server in (ingot, other):
            generator.fill(server, args.keys, VALUE_BYTES)
            server.wait_until_quiet()
            warm(server, args.keys)
        for test in ("get", "set"):
            for pipeline in PIPELINES:
                measured = measure((ingot, other), test, pipeline, args)
                result[f"{test}-{pipeline}"] = measured
                rows.append(row(test, pipeline, measured))
        common.table(
            ["", "ingot/s", "redis/s", "ratio (min-max)", "ingot us", "redis us", "probe hits"], rows
        )
        print(f"rounds: {args.rounds}; aim at a pipeline of 1: {AIM}; us: processor time a command")
        common.print_load()
        if args.profile:
            result["profile"] = print_profile(ingot, args)
    return result


def parse(words=None):
    parser = arguments.options(__doc__)
    parser.add_argument("--keys", type=arguments.whole_within(1, 10**9), help="different names: 1 million; 200,000 when quick")
    parser.add_argument("--rounds", type=arguments.rounds, help="of each measurement: 5; 2 when quick")
    parser.add_argument("--seconds", type=arguments.benchmark_seconds, help="of one measurement: 5; 1 when quick")
    parser.add_argument(
        "--client-threads", type=arguments.whole_within(0, 256), default=0 if os.cpu_count() < 8 else 4,
        help="of redis-benchmark; 0 (and the default below 8 cores): its single-threaded form",
    )  # fmt: skip
    parser.add_argument("--profile", action="store_true", help="show where pipeline 16 spends time")
    parser.add_argument(
        "--redis-appendonly", action="store_true", help="let redis-server keep its data too"
    )
    args = parser.parse_args(words)
    args.keys = args.keys or (200_000 if args.quick else 1_000_000)
    args.rounds = args.rounds or (2 if args.quick else 5)
    args.seconds = args.seconds or (1 if args.quick else 5)
    return args


if __name__ == "__main__":
    common.run_alone("cached", run, parse())
