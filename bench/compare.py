#!/usr/bin/python3
"""Two servers, the same requests, in turn: the ratio of their rates and of their latencies, with its spread.

A and B are each host:port of a server that is there, or a program (a redis-server, an ingot-server of another build),
which is started with its data in a temporary directory. The ratio is taken round by round, because two runs next to
each other have met the same machine; who is first changes with every round. A and A tells how much noise there is. Many short
rounds (--rounds 14 --seconds 0.5) tell of two builds what few long ones do not: 5 % of the writer's processor time.
"""

import contextlib
import os
import sys

import arguments
import common
import generator
import report
import runs
import workloads
from common import median, thousands


def endpoint(word, args):
    """The server that A or B means, as a context."""
    if ":" in word:
        return common.Target(word)
    common.need(word)
    name = os.path.basename(word)
    if "redis" in name:
        return common.Server("redis", [word], args.dir, {"save": "", "appendonly": args.appendonly})
    settings = {"maxmemory": args.maxmemory, "engine": args.engine}
    return common.Server(name.removesuffix("-server"), [word], args.dir, settings)


def cells(args):
    """(name, workload, payload, pipeline) of everything that is measured."""
    for payload in args.payloads:
        for workload in workloads.chosen(args.workloads, args.only):
            for pipeline in args.pipelines:
                name = f"{workload.name}, {payload} bytes, pipeline {pipeline}"
                yield name, workload, payload, pipeline


def processor_times(server):
    """Seconds so far of a server that is ours: all of it, and its writer where it has one."""
    both = {"cpu_us": server.cpu_seconds()}
    if both["cpu_us"] is not None:
        both["writer_us"] = server.writer_seconds()
    return {field: seconds for field, seconds in both.items() if seconds is not None}


def measure(run, pair, workload, payload, pipeline, args):
    """For A and for B the figures of each round. What has to be there before is made for both, once a cell."""
    found = {"A": [], "B": []}
    for server in pair:
        workload.prepare(server, args.keys, payload)
        server.wait_until_quiet(30)
    for number in range(args.rounds):
        order = "AB" if number % 2 == 0 else "BA"
        for letter in order:
            server = pair["AB".index(letter)]
            run.tell(f"round {number + 1}, {letter}", number / args.rounds)
            workload.restock(server, payload, pipeline, args.seconds)
            before = processor_times(server)
            one = workload.measure(
                server, args.keys, payload, pipeline, args.seconds, args.connections, args.client_threads
            )
            for field, seconds in processor_times(server).items():
                one[field] = (seconds - before[field]) / one["requests"] * 1e6
            one["empty"] = one["nils"] / one["requests"]
            found[letter].append(one)
    return found


def spread(a, b, field):
    """B's figures divided by A's: the median and the range."""
    ratios = sorted(y[field] / x[field] for x, y in zip(a, b) if x[field])
    return f"{median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})" if ratios else "-"


def cpu_text(rounds):
    """The lower quartile of what a request cost, which others on the machine touch least; in brackets the writer's part."""
    parts = [sorted(each[field] for each in rounds if field in each) for field in ("cpu_us", "writer_us")]
    texts = [f"{known[len(known) // 4]:.2f}" for known in parts if known]
    return f"{texts[0]} ({texts[1]})" if len(texts) == 2 else "".join(texts) or "-"


def row(name, found):
    a, b = found["A"], found["B"]
    # A pop that finds nothing is cheaper than one that does: such a rate means little.
    empty = max(each["empty"] for each in (*a, *b))
    return [name, thousands(median(each["rate"] for each in a)), thousands(median(each["rate"] for each in b)),
            spread(a, b, "rate"), spread(a, b, "p99_us"), cpu_text(a), cpu_text(b),
            f"{empty:.0%} empty" if empty > 0.01 else ""]  # fmt: skip


def work(run, args):
    all_cells = list(cells(args))
    if not all_cells:
        sys.exit(f"there is no workload of {args.workloads} like {args.only}")
    run.expect(len(all_cells))
    rows = []
    with contextlib.ExitStack() as stack:
        pair = [stack.enter_context(endpoint(word, args)) for word in (args.a, args.b)]
        for name, workload, payload, pipeline in all_cells:
            found = run.step(name, lambda w=workload, d=payload, p=pipeline: measure(run, pair, w, d, p, args))
            rows.append(row(name, found))
    head = ["", "A/s", "B/s", "B/A rate", "B/A p99", "A us", "B us", ""]
    title = f"A: {args.a}, B: {args.b}"
    common.title(title)
    common.table(head, rows)
    lead = (f"{args.rounds} rounds of {args.seconds:g} s in turn, {args.connections} connections, {args.keys:,} different "
            "names. Ratios are medians with their range; us: the server's processor time for a request, where the "
            "server is ours.")  # fmt: skip
    print(f"\n{lead}")
    report.page(run.path("report.html"), title, lead, run.facts, [("Figures", report.table(head, rows))])
    print(run.path("report.html"))


def main():
    parser = runs.options(__doc__, target=False)
    # With the directory of a run that was stopped they stand there.
    parser.add_argument("a", metavar="A", nargs="?", help="host:port, or a program")
    parser.add_argument("b", metavar="B", nargs="?", help="the same")
    parser.add_argument(
        "--workloads", choices=list(workloads.SETS), default="types", help="which commands (types)"
    )
    parser.add_argument("--only", default="", help="only workloads whose name contains one of these: hset,zadd")
    parser.add_argument("--payloads", type=arguments.payloads, default=[100], help="bytes of a value (100)")
    parser.add_argument("--pipelines", type=arguments.pipelines, default=[1, 16],
                        help="requests that are sent at a time (1,16)")  # fmt: skip
    parser.add_argument(
        "--connections", type=arguments.connections, default=50, help="at the same time (50)"
    )
    parser.add_argument("--client-threads", type=arguments.threads, default=generator.default_threads(),
                        help="of the generator (a quarter of the cores)")  # fmt: skip
    parser.add_argument("--keys", type=arguments.whole, help="different names: 100,000; 20,000 when quick")
    parser.add_argument("--rounds", type=arguments.rounds, help="of each measurement: 5; 2 when quick")
    parser.add_argument("--seconds", type=arguments.above_zero, help="of one measurement: 2; 0.5 when quick")
    arguments.add_maxmemory(parser, "1gb")
    arguments.add_engine(parser)
    parser.add_argument(
        "--appendonly", choices=("yes", "no"), default="no", help="of a redis-server that is started (no)"
    )
    args = runs.parse(parser, "compare")
    if args.b is None:
        parser.error("A and B are wanted, or the --run-dir of a run that was stopped")
    arguments.check_at_once(args)
    asked = dict(vars(args))
    args.keys = args.keys or (20_000 if args.quick else 100_000)
    args.rounds = args.rounds or (2 if args.quick else 5)
    args.seconds = args.seconds or (0.5 if args.quick else 2)
    args.target = None
    runs.alone("compare", work, args, asked, [generator.PROGRAM], server=False)


if __name__ == "__main__":
    main()
