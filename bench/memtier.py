#!/usr/bin/python3
"""GET alone and SET alone, 256 bytes, pipelines of 1 and 30, everything in memory: by memtier_benchmark where it is
installed, else by redis-benchmark. The report names which of them it was: their figures are not for comparing.
"""

import json
import os
import shutil
import sys
import tempfile

import arguments
import common
import generator
import report
import runs
from common import thousands

TOOL = shutil.which("memtier_benchmark")
KINDS = ("GET", "SET")


def memtier(server, kind, pipeline, args):
    """One run of memtier_benchmark over the keys that are there."""
    threads = args.client_threads
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        password = ["-a", server.password] if server.password else []
        command = [TOOL, *password, "-s", server.host, "-p", str(server.port), "--hide-histogram", "--json-out-file", result.name,
                   "--ratio", "1:0" if kind == "SET" else "0:1", "--data-size", str(args.value_bytes), "--random-data",
                   "--pipeline", str(pipeline), "--threads", str(threads), "--clients", str(-(-args.connections // threads)),
                   "--test-time", str(max(1, round(args.seconds))), "--key-prefix", "memtier-", "--key-minimum", "1",
                   "--key-maximum", str(args.keys), "--key-pattern", "R:R"]  # fmt: skip
        common.output_of(server, *command)
        totals = json.load(result)["ALL STATS"]["Totals"]
    quantiles = totals.get("Percentile Latencies", {})
    return {"rate": totals["Ops/sec"], "p50_ms": quantiles.get("p50.00"), "p99_ms": quantiles.get("p99.00")}


def redis_benchmark(server, kind, pipeline, args):
    found = common.redis_benchmark_row(
        server, args.seconds, args.keys, "-t", kind.lower(), "-d", str(args.value_bytes),
        guess=5000 * pipeline, connections=args.connections, pipeline=pipeline, threads=args.client_threads,
    )  # fmt: skip
    return {"rate": found["rps"], "p50_ms": found.get("p50_latency_ms"), "p99_ms": found.get("p99_latency_ms")}


def fill(server, args):
    """Every key that is read is there; each tool has names of its own."""
    if TOOL:
        # Its numbers have no zeros in front, and begin with 1.
        password = ["-a", server.password] if server.password else []
        common.output_of(
            server, TOOL, *password, "-s", server.host, "-p", str(server.port), "--hide-histogram", "--ratio", "1:0",
            "--data-size", str(args.value_bytes), "--pipeline", "100", "--threads", "1", "--clients", "4", "--key-prefix", "memtier-",
            "--key-minimum", "1", "--key-maximum", str(args.keys), "--key-pattern", "P:P", "-n", "allkeys")  # fmt: skip
    else:
        generator.fill(server, args.keys, args.value_bytes)
    server.wait_until_quiet(30)


def work(run, args):
    names = [(kind, pipeline) for kind in KINDS for pipeline in args.pipelines]
    run.expect(len(names))
    rows, filled = [], False
    with runs.server_for(args, {"maxmemory": "1gb"}) as server:
        for kind, pipeline in names:

            def measure(kind=kind, pipeline=pipeline):
                nonlocal filled
                if not filled:
                    run.tell("loading")
                    fill(server, args)
                    filled = True
                run.tell("")
                before = server.info().get("keyspace_misses", 0)
                found = (memtier if TOOL else redis_benchmark)(server, kind, pipeline, args)
                missed = server.info().get("keyspace_misses", 0) - before
                if server.local and missed and kind == "GET":  # elsewhere they may be somebody else's
                    sys.exit(f"{missed} keys were not there: these figures mean nothing")
                return found

            found = run.step(f"{kind}, pipeline {pipeline}", measure)
            latencies = ["-" if found[name] is None else f"{found[name]:.2f}" for name in ("p50_ms", "p99_ms")]
            rows.append([f"{kind} alone, pipeline {pipeline}", thousands(found["rate"]), *latencies])
    head = ["", "a second", "p50 ms", "p99 ms"]
    tool = "memtier_benchmark" if TOOL else "redis-benchmark (memtier_benchmark is not installed)"
    title = (
        f"{args.target or 'Ingot'}: {args.value_bytes} bytes, {args.connections} connections, {args.keys:,} keys"
    )
    lead = f"By {tool}, {common.counted(args.client_threads, 'thread')}, {args.seconds:g} s for each figure."
    common.title(title)
    common.table(head, rows)
    print(f"\n{lead}")
    report.page(run.path("report.html"), title, lead, run.facts, [("Figures", report.table(head, rows))])
    print(run.path("report.html"))


def main():
    parser = runs.options(__doc__)
    parser.add_argument("--value-bytes", type=arguments.value_bytes, default=256, help="bytes of a value (256)")
    parser.add_argument("--pipelines", type=arguments.pipelines, default=[1, 30],
                        help="requests that are sent at a time (1,30)")  # fmt: skip
    parser.add_argument(
        "--connections", type=arguments.connections, default=200, help="at the same time (200)"
    )
    parser.add_argument("--client-threads", type=arguments.threads, default=max(1, (os.cpu_count() or 1) // 2),
                        help="of the tool (half of the cores)")  # fmt: skip
    parser.add_argument("--keys", type=arguments.whole_within(1, 10**9), help="different names: 1 million; 100,000 when quick")
    parser.add_argument("--seconds", type=arguments.benchmark_seconds, help="of one measurement: 20; 1 when quick")
    args = runs.parse(parser, "memtier")
    asked = dict(vars(args))
    args.keys = args.keys or (100_000 if args.quick else 1_000_000)
    args.seconds = args.seconds or (1 if args.quick else 20)
    runs.alone("memtier", work, args, asked, [generator.PROGRAM, TOOL or "redis-benchmark"])


if __name__ == "__main__":
    main()
