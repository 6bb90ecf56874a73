#!/usr/bin/python3
"""Commands, payloads and pipelines by the number of io-threads, with 512 connections: where do more threads help?

Every number of threads is a server of its own, everything is in memory. A server that is not ours is measured with the
threads that it has.
"""

import collections
import os

import arguments
import common
import generator
import report
import runs
import workloads
from common import thousands


def counts_of(args):
    """The numbers of threads; None for a server that is not ours."""
    return [None] if args.target else args.threads


def cell_name(threads, workload, payload, pipeline):
    return f"{threads or 'its'} threads: {workload.name}, {payload} bytes, pipeline {pipeline}"


def measure_server(run, server, threads, chosen, args):
    """{cell: figures} of one server; what a workload needs is made once for each payload."""
    found = {}
    for payload in args.payloads:
        for workload in chosen:
            ready = False
            for pipeline in args.pipelines:

                def measure(workload=workload, payload=payload, pipeline=pipeline):
                    nonlocal ready
                    if not ready:
                        workload.prepare(server, args.keys, payload)
                        ready = True
                    run.tell("")
                    one = workload.measure(
                        server, args.keys, payload, pipeline, args.seconds, args.connections, args.client_threads
                    )
                    return {name: one[name] for name in ("rate", "p50_us", "p99_us", "p999_us")}

                found[workload.name, payload, pipeline] = run.step(
                    cell_name(threads, workload, payload, pipeline), measure
                )
    return found


def all_done(run, threads, chosen, args):
    return all(run.is_finished(cell_name(threads, workload, payload, pipeline))
               for payload in args.payloads for workload in chosen for pipeline in args.pipelines)  # fmt: skip


def figures(run, threads, chosen, args):
    if all_done(run, threads, chosen, args):  # read from the directory: no server is needed
        return measure_server(run, None, threads, chosen, args)
    # The connections of one measurement may still be there when those of the next one come.
    settings = {"maxmemory": args.maxmemory, "maxclients": 3 * args.connections + 100}
    if threads:
        settings["io-threads"] = threads
    with runs.server_for(args, settings) as server:
        return measure_server(run, server, threads, chosen, args)


def show(run, found, chosen, args):
    """found: threads -> {cell: figures}."""
    title = f"io-threads: {args.connections} connections"
    heads = [common.counted(number, "thread") if number else "its threads" for number in found]
    sections, names = [], ", ".join(str(number or "as it is") for number in found)
    for workload in chosen:
        lines = collections.defaultdict(list)
        rows = []
        for payload in args.payloads:
            for pipeline in args.pipelines:
                cells = {number: cells[workload.name, payload, pipeline] for number, cells in found.items()}
                name = f"{payload} bytes, pipeline {pipeline}"
                lines[name] = [(number, one["rate"]) for number, one in cells.items() if number]
                rows.append(
                    [
                        name,
                        *(
                            f"{thousands(one['rate'])} (p99 {one['p99_us'] / 1000:.1f} ms)"
                            for one in cells.values()
                        ),
                    ]
                )
        content = report.table(["", *heads], rows)
        if not args.target:
            path = run.path(f"{workload.name.replace(' ', '-')}.png")
            content = (
                report.figure(report.curves(workload.name, "io-threads", "requests a second", lines, path))
                + content
            )
        sections.append((workload.name, content))
        common.title(workload.name)
        common.table(["", *heads], rows)
    lead = (f"Requests a second, {args.seconds:g} s for each figure, {args.keys:,} different names, io-threads {names}. The "
            f"generator ({common.counted(args.client_threads, 'thread')}) and the server share {os.cpu_count()} cores.")  # fmt: skip
    if args.target:
        lead = (f"{args.target} is not ours: its io-threads are not known here and stay as they are. {args.seconds:g} s for "
                "each figure.")  # fmt: skip
    report.page(run.path("report.html"), title, lead, run.facts, sections)
    print(f"\n{lead}\n{run.path('report.html')}")


def work(run, args):
    chosen = workloads.chosen("matrix", args.only)
    if not chosen:
        raise SystemExit(f"there is no command like {args.only}")
    run.expect(len(counts_of(args)) * len(chosen) * len(args.payloads) * len(args.pipelines))
    found = {number: figures(run, number, chosen, args) for number in counts_of(args)}
    show(run, found, chosen, args)


def main():
    parser = runs.options(__doc__)
    parser.add_argument("--threads", type=arguments.list_of(arguments.threads),
                        help="io-threads: 1,2,4,8,16,32,64; 1,2 when quick")  # fmt: skip
    parser.add_argument("--payloads", type=arguments.payloads, help="bytes of a value: 3,100,1000; 100 when quick")
    parser.add_argument("--pipelines", type=arguments.pipelines, help="requests that are sent at a time: 1,5,10; 1,10 when quick")
    parser.add_argument(
        "--connections", type=arguments.connections, default=512, help="at the same time (512)"
    )
    parser.add_argument("--client-threads", type=arguments.threads, default=max(1, (os.cpu_count() or 1) // 2),
                        help="of the generator (half of the cores)")  # fmt: skip
    parser.add_argument("--only", default="", help="only commands whose name contains one of these: get,xadd")
    parser.add_argument(
        "--keys", type=arguments.whole, default=100_000, help="different names (100,000)"
    )
    arguments.add_maxmemory(parser, "2gb")
    parser.add_argument("--seconds", type=arguments.above_zero, help="of one measurement: 2; 0.5 when quick")
    args = runs.parse(parser, "io-threads")
    asked = dict(vars(args))
    args.threads = args.threads or ([1, 2] if args.quick else [1, 2, 4, 8, 16, 32, 64])
    args.payloads = args.payloads or ([100] if args.quick else [3, 100, 1000])
    args.pipelines = args.pipelines or ([1, 10] if args.quick else [1, 5, 10])
    args.seconds = args.seconds or (0.5 if args.quick else 2)
    arguments.check_at_once(args)
    runs.alone("io-threads", work, args, asked, [generator.PROGRAM])


if __name__ == "__main__":
    main()
