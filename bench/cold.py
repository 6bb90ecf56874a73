#!/usr/bin/python3
"""Data four times larger than the memory, read at random past the page cache: how much of the disk
do GETs get?

For every number of reader threads, one after another on the same disk: fio with as many threads, 50
connections without a pipeline, and one connection with a pipeline of 100. A cold GET is one that
the cache could not answer; only those count against fio's reads.
"""

import json
import os
import shutil
import subprocess
import sys

import common
from common import MB, median, thousands

FORMS = (("50 connections, no pipeline", 50, 1), ("1 connection, pipeline of 100", 1, 100))


def write_random_file(path, size):
    with open(path, "wb") as file:
        for _ in range(-(-size // MB)):
            file.write(os.urandom(MB))
        file.flush()
        os.fsync(file.fileno())


def fio(path, threads, seconds):
    """Random 4k reads a second past the page cache, one at a time on each thread."""
    words = {
        "name": "cold", "filename": path, "rw": "randread", "bs": "4k", "ioengine": "psync",
        "direct": 1, "numjobs": threads, "runtime": seconds, "norandommap": 1, "randrepeat": 0,
        "output-format": "json",
    }  # fmt: skip
    command = ["fio", "--thread", "--time_based", "--group_reporting", "--readonly"]
    command += [f"--{name}={value}" for name, value in words.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"fio failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]["iops"]


def counters(server):
    info = server.client.info("everything")
    names = ("probes", "probe_hits", "keyspace_hits", "keyspace_misses")
    own = {"bytes": server.bytes_read(), "cpu": server.cpu_seconds()}
    return {name: info[name] for name in names} | own


def cold_gets(server, keys, guess, seconds, connections, pipeline):
    """GETs a second, the share of them that the cache answered, KB read for each other one, and
    processor time for each."""
    before = counters(server)
    rate = common.redis_benchmark(
        server, seconds, keys, "GET", "key:__rand_int__",
        guess=guess, connections=connections, pipeline=pipeline,
    )  # fmt: skip
    delta = {name: value - before[name] for name, value in counters(server).items()}
    if delta["keyspace_misses"]:
        sys.exit(f"{delta['keyspace_misses']} GETs found no key: these figures mean nothing")
    hit = delta["probe_hits"] / delta["probes"] if delta["probes"] else 0.0
    cold = delta["keyspace_hits"] * (1 - hit)
    return {
        "rate": rate,
        "hit": hit,
        "kb": delta["bytes"] / 1024 / cold if cold else 0.0,
        "cpu_us": delta["cpu"] / delta["keyspace_hits"] * 1e6,
    }


def measure(server, path, keys, threads, args):
    """One number of reader threads: fio's rate, and by form the rate, hits and share of fio.

    Every round has a share of its own, so that a disk whose mood changes tells on both alike.
    """
    server.client.config_set("reader-threads", threads)
    rounds = {name: [] for name, _, _ in FORMS}
    disk = []
    for _ in range(args.rounds):
        disk.append(fio(path, threads, args.seconds))
        for name, connections, pipeline in FORMS:
            guess = min(5000.0, disk[-1] / 4)
            once = cold_gets(server, keys, guess, args.seconds, connections, pipeline)
            once["cold"] = once["rate"] * (1 - once["hit"])
            once["share"] = once["cold"] / disk[-1]
            rounds[name].append(once)
    forms = {
        name: {field: median([once[field] for once in all_rounds]) for field in all_rounds[0]}
        for name, all_rounds in rounds.items()
    }
    return {"threads": threads, "fio": median(disk), "fio_rounds": disk, "rounds": rounds} | forms


def load_cold(server, loader):
    """Fills the server, and starts it again with everything in files and an empty cache."""
    [(seconds, _)], _ = loader.load(server)
    server.restart()
    quiet = server.wait_until_quiet()
    if server.client.dbsize() != loader.keys:
        sys.exit(f"DBSIZE is {server.client.dbsize()} after loading {loader.keys} keys")
    disk = server.disk_bytes()
    print(
        f"{loader.keys:,} keys loaded in {seconds:.0f} s, {disk / MB:,.0f} MB on disk, "
        f"compactions {'done' if quiet else 'STILL RUNNING'}"
    )
    return disk


def report(results, args):
    for name, _, _ in FORMS:
        rows = [
            [result["threads"], thousands(result["fio"]), thousands(result[name]["rate"]),
             f"{result[name]['hit']:.1%}", thousands(result[name]["cold"]),
             f"{result[name]['kb']:.1f}", f"{result[name]['cpu_us']:.1f}",
             f"{result[name]['share']:.2f}"]
            for result in results
        ]  # fmt: skip
        print(f"\n{name}")
        common.table(
            ["threads", "fio/s", "GET/s", "from cache", "cold GET/s", "KB/cold GET", "us/GET", "of fio"],
            rows,
        )
    print(f"\nrounds: {args.rounds} of {args.seconds:g} s each")
    common.print_load()


def run(args):
    common.title(
        f"Cold reads: {args.size / MB:,.0f} MB of {args.value_bytes}-byte values, "
        f"maxmemory {args.maxmemory / MB:,.0f} MB, direct reads"
    )
    if common.file_system(args.dir) in ("tmpfs", "ramfs"):
        sys.exit(f"{args.dir} is memory and not a disk: choose another --dir")
    if shutil.disk_usage(args.dir).free < args.size * 3.5:
        sys.exit(f"too little space in {args.dir}: loading and fio need {args.size * 3.5 / MB:,.0f} MB")
    settings = {"maxmemory": args.maxmemory, "direct-reads": "yes"}
    with common.ingot(args, settings, args.conf) as server:
        loader = common.Loader(args.size // args.value_bytes, args.value_bytes)
        disk = load_cold(server, loader)
        path = os.path.join(server.directory, "fio.data")
        write_random_file(path, max(disk, args.size))
        results = [measure(server, path, loader.keys, threads, args) for threads in args.threads]
    report(results, args)
    return {"size": args.size, "maxmemory": args.maxmemory, "keys": loader.keys, "rows": results}


def parse(words=None):
    parser = common.options(__doc__)
    size = common.parse_bytes
    parser.add_argument("--size", type=size, help="of the values: 1gb; 256mb when quick")
    parser.add_argument("--maxmemory", type=size, help="a quarter of the size")
    parser.add_argument("--value-bytes", type=int, default=1000)
    parser.add_argument(
        "--threads", type=lambda text: [int(word) for word in text.split(",")],
        default=[1, 5, 10, 20, 50], help="numbers of reader threads: 1,5,10,20,50",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, help="3; 1 when quick")
    parser.add_argument("--seconds", type=float, help="of one measurement: 5; 2 when quick")
    parser.add_argument("--conf", help="a configuration file for Ingot, such as conf/ingot-ssd.conf")
    args = parser.parse_args(words)
    args.size = args.size or common.parse_bytes("256mb" if args.quick else "1gb")
    args.maxmemory = args.maxmemory or args.size // 4
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.seconds = args.seconds or (2 if args.quick else 5)
    return args


if __name__ == "__main__":
    common.run_alone("cold", run, parse())
