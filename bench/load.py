#!/usr/bin/python3
"""Filling a server: the rate of SET over time, which must not sag, peak memory and disk space.

Ingot gets far less memory than the data needs; redis-server is loaded with the same keys by the
same loader for its rate alone.
"""

import sys
import time

import arguments
import common
import devices
import generator
from common import MB, median, thousands

VALUE_BYTES = 100
SLICES = 20


def fill(server, keys):
    """Loads it and checks that every key counts."""
    slices, busy = generator.timed_fill(server, keys, VALUE_BYTES, SLICES)
    seconds, cpu = zip(*slices)
    if server.client.dbsize() != keys:
        sys.exit(f"{server.name}: DBSIZE is {server.client.dbsize()} after {keys} keys")
    rates = [keys / SLICES / slice_seconds for slice_seconds in seconds]
    quarter = SLICES // 4
    return {
        "rate": keys / sum(seconds),
        "slices": rates,
        "slices_cpu_us": [cpu_seconds * SLICES / keys * 1e6 for cpu_seconds in cpu],
        "last_to_first_quarter": sum(seconds[:quarter]) / sum(seconds[-quarter:]),
        "generator_busy": busy,
        "cpu_us": sum(cpu) / keys * 1e6,
        "peak_memory": server.peak_memory(),
        "disk": server.disk_bytes(),
    }


def report(ours, theirs, args):
    rows = [
        [f"{100 * (index + 1) // SLICES} %", thousands(a), thousands(b), f"{a / b:.2f}",
         f"{ours['slices_cpu_us'][index]:.2f}", f"{theirs['slices_cpu_us'][index]:.2f}"]
        for index, (a, b) in enumerate(zip(ours["slices"], theirs["slices"]))
    ]  # fmt: skip
    ratio = ours["rate"] / theirs["rate"]
    rows.append(
        ["all", thousands(ours["rate"]), thousands(theirs["rate"]), f"{ratio:.2f}",
         f"{ours['cpu_us']:.2f}", f"{theirs['cpu_us']:.2f}"]
    )  # fmt: skip
    common.table(
        ["of the keys", "ingot SET/s", "redis SET/s", "ratio", "ingot us", "redis us"], rows
    )

    def line(what, value):
        print(f"{what:34} {value}")

    for name, one in (("ingot", ours), ("redis", theirs)):
        line(f"{name}: last quarter / first", f"{one['last_to_first_quarter']:.2f}")
        slowest = min(one["slices"]) / median(one["slices"])
        line(f"{name}: slowest slice / median", f"{slowest:.2f}")
        line(f"{name}: generator's own share of time", f"{one['generator_busy']:.2f}")
    of_limit = ours["peak_memory"] / args.maxmemory
    line("ingot: peak memory (VmHWM)", f"{ours['peak_memory'] / MB:,.0f} MB")
    line("ingot: of maxmemory", f"{of_limit:.2f} of {args.maxmemory / MB:,.0f} MB")
    line("redis: peak memory (VmHWM)", f"{theirs['peak_memory'] / MB:,.0f} MB")
    line("ingot: on disk right after", f"{ours['disk'] / MB:,.0f} MB")
    line("ingot: on disk when it was quiet", f"{ours['disk_quiet'] / MB:,.0f} MB, "
         f"{ours['seconds_to_quiet']:.0f} s later")  # fmt: skip
    line("keys (DBSIZE, both)", f"{args.keys:,}")
    common.print_load()


def run(args):
    devices.check_room(args.dir, args.keys * VALUE_BYTES)
    common.title(f"Loading {args.keys:,} keys with {VALUE_BYTES}-byte values")
    with common.ingot(args, {"maxmemory": args.maxmemory}) as server:
        ours = fill(server, args.keys)
        start = time.monotonic()
        server.wait_until_quiet(300)
        ours |= {"seconds_to_quiet": time.monotonic() - start, "disk_quiet": server.disk_bytes()}
    with common.redis_server(args) as server:
        theirs = fill(server, args.keys)
    report(ours, theirs, args)
    return {"keys": args.keys, "maxmemory": args.maxmemory, "ingot": ours, "redis": theirs}


def parse(words=None):
    parser = arguments.options(__doc__)
    parser.add_argument("--keys", type=arguments.whole_within(1000, 10**12), help="how many: 5 million; 1 million when quick")
    parser.add_argument("--maxmemory", type=arguments.parse_bytes, help="of Ingot: 256mb; 64mb when quick")
    args = parser.parse_args(words)
    args.keys = args.keys or (1_000_000 if args.quick else 5_000_000)
    args.maxmemory = args.maxmemory or arguments.parse_bytes("64mb" if args.quick else "256mb")
    return args


if __name__ == "__main__":
    common.run_alone("load", run, parse())
