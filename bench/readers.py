#!/usr/bin/python3
"""Data four times larger than the memory, read at random past the page cache, for several numbers of reader threads
and by io_uring: which number gets the most of the disk?

For every number, one after another on the same disk: fio with as many threads, 50 connections without a pipeline, and
one connection with a pipeline of 100. A cold GET is one that the cache could not answer; only those count against
fio's reads.
"""

import os
import sys

import arguments
import common
import devices
import disk
import generator
import report
import runs
import sampling
from common import MB, median, thousands

FORMS = (("50 connections, no pipeline", 50, 1), ("1 connection, pipeline of 100", 1, 100))
RING = "io_uring"  # in place of a number of threads
NEAR = 0.9  # of the best rate: the smallest number of threads that gets so much is the one to take


def cold_gets(sampler, args, connections, pipeline):
    """GETs a second, the share of them that the cache answered, KB read for each other one, and processor time for
    each; without what is not known."""
    before = sampler.server.info()
    found = sampler.load("", "GET", "key:{random}", keys=args.keys, connections=connections, pipeline=pipeline,
                         seconds=args.seconds, report_seconds=args.seconds / 4)  # fmt: skip
    after = sampler.server.info()
    if found["nils"]:
        sys.exit(f"{found['nils']} GETs found no key: these figures mean nothing")
    result = {"rate": found["rate"], "p50_us": found["p50_us"], "p99_us": found["p99_us"]}
    if "probes" not in after:
        return result
    probes, hits = (after[name] - before[name] for name in ("probes", "probe_hits"))
    result["hit"] = hits / probes if probes else 0.0
    result["cold"] = found["rate"] * (1 - result["hit"])
    cold = found["requests"] * (1 - result["hit"])
    if "device" in found and cold:
        result["device_reads"] = found["device"]["reads"] / cold
        result["kb"] = found["device"]["sectors_read"] / 2 / cold
    if "cpu" in found:
        result["cpu_us"] = found["cpu"] / found["requests"] * 1e6
    return result


def measure(run, sampler, path, threads, args):
    """One round of one number of reader threads, or of the ring, next to as much of fio as there is."""
    if threads and threads != RING:
        sampler.server.set_config("reader-threads", threads)
    once = {}
    if path:
        run.tell("fio")
        jobs = max(args.threads) if threads == RING else threads
        once["fio"] = devices.fio(path, "randread", jobs, args.seconds)["iops"]
    for name, connections, pipeline in FORMS:
        run.tell(name, 0.5)
        once[name] = cold_gets(sampler, args, connections, pipeline)
        if path and "cold" in once[name]:
            once[name]["share"] = once[name]["cold"] / once["fio"]
    return once


def middle(rounds, form, field):
    """The median of a figure over the rounds, None where it is not known."""
    values = [each[form].get(field) if form != "fio" else each.get("fio") for each in rounds]
    return None if None in values else median(values)


def cell(value, text):
    return "-" if value is None else text(value)


def rows_of(results, form):
    return [
        [threads or "as it is", cell(middle(rounds, "fio", ""), thousands), thousands(middle(rounds, form, "rate")),
         cell(middle(rounds, form, "hit"), lambda v: f"{v:.1%}"), cell(middle(rounds, form, "cold"), thousands),
         cell(middle(rounds, form, "device_reads"), lambda v: f"{v:.2f}"),
         cell(middle(rounds, form, "kb"), lambda v: f"{v:.1f}"),
         f"{middle(rounds, form, 'p99_us') / 1000:.1f}",
         cell(middle(rounds, form, "cpu_us"), lambda v: f"{v:.1f}"),
         cell(middle(rounds, form, "share"), lambda v: f"{v:.0%}")]
        for threads, rounds in results.items()
    ]  # fmt: skip


HEAD = [
    "threads",
    "fio/s",
    "GET/s",
    "from cache",
    "cold GET/s",
    "reads/GET",
    "KB/GET",
    "p99 ms",
    "us/GET",
    "of fio",
]


def rate_of(rounds, form):
    """Cold GETs a second where they are known, else all."""
    return middle(rounds, form, "cold") or middle(rounds, form, "rate")


def advice(results, args):
    """The sentences that a user wants."""
    form = FORMS[0][0]
    known = {threads: rate_of(rounds, form) for threads, rounds in results.items() if threads and threads != RING}
    if len(known) < 2:
        return "The number of reader threads could not be changed, or is not asked: this is the server as it is."
    best = max(known.values())
    enough = min(threads for threads, rate in known.items() if rate >= NEAR * best)
    most = max(known, key=known.get)
    said = (f"reader-threads {enough} gets {known[enough] / best:.0%} of the most that they reached here ({best:,.0f} "
            f"cold GETs a second, with {most}), {form}.")  # fmt: skip
    if RING in results:
        ring = rate_of(results[RING], form)
        said += (f" By io_uring (read-io auto), where look-ups need none of them, it was {ring:,.0f}: {ring / best:.2f} times "
                 "that.")  # fmt: skip
    return said


def lines_of(results, args):
    """What is drawn: name -> [(number of threads, rate)]."""
    threads = [number for number in results if number and number != RING]
    lines = {"fio, random reads of 4 KB": [(number, middle(results[number], "fio", "")) for number in threads]}
    for form, _, _ in FORMS:
        lines[f"cold GET, {form}"] = [(number, rate_of(results[number], form)) for number in threads]
        if RING in results and threads:
            ring = rate_of(results[RING], form)
            lines[f"by io_uring, {form}"] = [(min(threads), ring), (max(threads), ring)]
    return {name: [(x, y) for x, y in line if y is not None] for name, line in lines.items()}


def show(run, results, device_name, args):
    said = advice(results, args)
    lines = lines_of(results, args)
    title = (
        f"reader-threads: {args.keys:,} keys of {args.value_bytes} bytes, maxmemory {args.maxmemory / MB:,.0f} MB"
    )
    if args.target:
        title = f"{args.target}: cold reads of {args.keys:,} keys of {args.value_bytes} bytes"
    sections, drawn = [("What to set", f"<p>{said}</p>")], []
    if any(lines.values()):
        drawn.append(run.path("readers.png"))
        svg = report.curves("Reads a second", "reader-threads, and fio's threads", "a second", lines, *drawn)
        sections.append(("The curve", report.figure(svg)))
    for form, _, _ in FORMS:
        sections.append((form, report.table(HEAD, rows_of(results, form))))
    lead = f"{common.counted(args.rounds, 'round')} of {args.seconds:g} s each; medians."
    if args.target:
        lead += (" The server is not ours: fio, its disk and its processor time are left out, and whether its page cache "
                 "helps is not known.")  # fmt: skip
    else:
        lead += " GETs of random keys, past the page cache."
    facts = run.facts | ({"measured": device_name} if device_name else {})
    report.page(run.path("report.html"), title, lead, facts, sections)
    common.title(title)
    for form, _, _ in FORMS:
        print(f"\n{form}")
        common.table(HEAD, rows_of(results, form))
    print(f"\n{said}\n{lead}")
    print(*(run.path("report.html"), *drawn), sep="\n")


def measure_all(run, server, folder, args):
    sampler = sampling.Sampler(run, server, devices.under(folder) if folder else None)
    disk.load_steps(run, sampler, args)
    if server.client.dbsize() < args.keys:
        sys.exit(f"DBSIZE is {server.client.dbsize()} after loading {args.keys} keys")
    server.restart()
    path = os.path.join(folder, "fio.data") if folder else None

    def lay():
        devices.write_random_file(
            path, args.fio_size, lambda done: run.tell(f"{done / MB:,.0f} MB", done / args.fio_size)
        )

    if path:
        run.step("fio's file", lay)
    can_set = server.info().get("read_io") != "uring" and server.set_config("reader-threads", args.threads[0])
    results = {}
    for number in range(args.rounds):
        for threads in args.threads if can_set else [0]:
            name = f"{threads or 'its'} threads, round {number + 1}"
            once = run.step(name, lambda threads=threads: measure(run, sampler, path, threads, args))
            results.setdefault(threads, []).append(once)
    if server.local:
        server.restart(read_io="auto")
        if server.info().get("read_io") == "uring":
            results[RING] = [
                run.step(f"{RING}, round {number + 1}", lambda: measure(run, sampler, path, RING, args))
                for number in range(args.rounds)
            ]
    return results, sampler.device.name if sampler.device else None


def work(run, args):
    run.expect(disk.load_parts(args) + 3 + args.rounds * (len(args.threads) + 1))

    def measure_one(server, folder, _):
        results, name = measure_all(run, server, folder, args)
        return {"results": list(results.items()), "device": name}

    settings = {"direct-reads": "yes", "read-io": "threads"}
    result = disk.figures(run, args, settings, measure_one)
    show(run, dict(result["results"]), result["device"], args)


def parse():
    parser = runs.options(__doc__)
    disk.add_options(parser)
    parser.add_argument("--threads", type=arguments.list_of(arguments.threads), default=[1, 5, 10, 20, 50],
                        help="numbers of reader threads: 1,5,10,20,50")  # fmt: skip
    parser.add_argument("--rounds", type=arguments.rounds, help="of each measurement: 3; 1 when quick")
    parser.add_argument("--seconds", type=arguments.above_zero, help="of one measurement: 5; 2 when quick")
    parser.add_argument(
        "--fio-size", type=arguments.parse_bytes, help="of the file it reads: as the data, 4gb at most"
    )
    args = runs.parse(parser, "readers")
    asked = dict(vars(args))
    disk.derive(args)
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.seconds = args.seconds or (2 if args.quick else 5)
    args.fio_size = args.fio_size or min(args.keys * (args.value_bytes + disk.KEY_BYTES), 4 << 30)
    args.sample_seconds = 0.5 if args.quick else 2
    return args, asked


def main():
    args, asked = parse()
    runs.alone("readers", work, args, asked, [generator.PROGRAM] + ([] if args.target else ["fio"]))


if __name__ == "__main__":
    main()
