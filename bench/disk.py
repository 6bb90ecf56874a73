#!/usr/bin/python3
"""More data than memory on a disk: what the disk can do, how fast the data goes in, random reads of it, hot reads.

The disk is measured first, with fio. Then every key is set once, in no order; the server is started again, so that
nothing is cached; and random keys are read, and then a few of them all the time. Meanwhile the server's and the disk's
counters are read every few seconds: raw.jsonl has them all, report.html and panels.png show them.
"""

import math
import os
import shutil
import sys

import arguments
import common
import devices
import generator
import report
import runs
import sampling
from common import MB, thousands

JOBS = (1, 10, 50)
KEY_BYTES = len("key:") + 12
LOAD_PARTS_MAX, PART_KEYS_MIN = 20, 100_000
CONNECTIONS = 50
RESULT = "result"  # the step after which a run is over
BLOCK_BYTES = 4096  # of the server's tables
QUIET_SECONDS = 600
# Reads and writes of a profile: its configuration, and for how long; a seek takes ten milliseconds.
PROFILES = {"ssd": {"seconds": 60, "fio_seconds": 10}, "hdd": {"seconds": 300, "fio_seconds": 20}}

# title of the panel, the value in a sample, whether peaks are what counts
PANELS = [
    ("requests/s", lambda s: s["rate"], False),
    ("latency p50, ms", lambda s: s["p50_us"] / 1000, True),
    ("latency p99, ms", lambda s: s["p99_us"] / 1000, True),
    ("latency p99.9, ms", lambda s: s["p999_us"] / 1000, True),
    ("processor time, cores", lambda s: s["cpu"], False),
    ("memory, MB", lambda s: s["memory"] and s["memory"] / MB, True),
    ("disk use, MB", lambda s: s["data"] and s["data"] / MB, True),
    ("util, %", lambda s: s["device"]["util"] * 100, False),
    ("reads/s", lambda s: s["device"]["reads_s"], False),
    ("read MB/s", lambda s: s["device"]["read_kb_s"] / 1024, False),
    ("read await, ms", lambda s: s["device"]["read_await_ms"], True),
    ("queue size", lambda s: s["device"]["queue"], False),
    ("writes/s", lambda s: s["device"]["writes_s"], False),
    ("write MB/s", lambda s: s["device"]["write_kb_s"] / 1024, False),
    ("write await, ms", lambda s: s["device"]["write_await_ms"], True),
    ("request size, KB", lambda s: s["device"]["request_kb"], False),
]


# ------------------------------------------------------------------ the steps


def measure_device(run, folder, args):
    """fio's figures, "randread 1" -> {iops, ...}."""

    def lay():
        path = os.path.join(folder, "fio.data")
        devices.write_random_file(
            path, args.fio_size, lambda done: run.tell(f"{done / MB:,.0f} MB", done / args.fio_size)
        )
        return {"bytes": args.fio_size}

    def measure(kind, jobs):
        path = os.path.join(folder, "fio.data")
        if not os.path.exists(path):
            lay()
        run.tell(f"for {args.fio_seconds:g} s")
        return devices.fio(path, kind, jobs, args.fio_seconds)

    run.step("fio's file", lay)
    found = {f"{kind} {jobs}": run.step(f"fio {kind} {jobs}", lambda kind=kind, jobs=jobs: measure(kind, jobs))
             for kind in ("randread", "randwrite") for jobs in JOBS}  # fmt: skip
    if os.path.exists(path := os.path.join(folder, "fio.data")):
        os.remove(path)
    return found


def load_parts(args):
    """How many steps the load has: where a long one can be stopped."""
    return max(2, min(LOAD_PARTS_MAX, args.keys // PART_KEYS_MIN))


def load_steps(run, sampler, args):
    """Sets every key, in parts so that a long load can be stopped; waits until the server has put all in order."""

    def load(part):
        first, end = (args.keys * each // count for each in (part, part + 1))
        return sampler.load("load", "SET", "key:{next}", "{value}", keys=args.keys, first=first,
                            requests=end - first, value_bytes=args.value_bytes, connections=CONNECTIONS, pipeline=16,
                            threads=generator.default_threads(), report_seconds=args.sample_seconds)  # fmt: skip

    def settle():
        run.tell("waiting for compactions")
        begin = sampler.read()
        quiet = sampler.server.wait_until_quiet(QUIET_SECONDS)
        end = sampler.read()
        size = sampler.server.disk_bytes()
        return {"quiet": quiet, "seconds": end["at"] - begin["at"], "data": size, **sampler.whole(begin, end)}

    count = load_parts(args)
    parts = [run.step(f"load {part + 1}/{count}", lambda part=part: load(part)) for part in range(count)]
    return parts, run.step("settle", settle)


def read_steps(run, sampler, args):
    """Random keys, then hot ones, of which each has been read once before."""

    def read(phase, place, seconds, **options):
        found = sampler.load(phase, "GET", f"key:{place}", keys=args.keys, hot_keys=args.hot_keys,
                             connections=CONNECTIONS, threads=generator.default_threads(),
                             report_seconds=args.sample_seconds, seconds=seconds, **options)  # fmt: skip
        if found["nils"]:
            sys.exit(f"{found['nils']} keys of {found['requests']} were not there: these figures mean nothing")
        return found

    def warm():
        generator.measure(sampler.server, "GET", "key:{next}", keys=args.keys, requests=args.hot_keys,
                          connections=CONNECTIONS, pipeline=4)  # fmt: skip

    def hot():
        run.tell("reading each once")
        warm()
        return read("hot reads", "{hot}", args.seconds)

    return (run.step("random reads", lambda: read("random reads", "{random}", args.seconds)),
            run.step("hot reads", hot))  # fmt: skip


# ------------------------------------------------------------------ the report


def sum_of(parts, *names):
    """Of a counter in all these results; None when one does not have it."""
    total = 0
    for part in parts:
        for name in names:
            part = part.get(name) if isinstance(part, dict) else None
        if part is None:
            return None
        total += part
    return total


def summary(found, args):
    """Rows of (what, value, how it was found); without what could not be measured."""
    rows = []
    payload = args.keys * (args.value_bytes + KEY_BYTES)
    loading = [*found["load"], found["settle"]]
    seconds = sum(part["seconds"] for part in found["load"])
    rows.append(("SET/s while loading", thousands(args.keys / seconds), f"{args.keys:,} keys in {seconds:,.0f} s"))
    for name in ("random reads", "hot reads"):
        one = found[name]
        rows.append((f"GET/s, {name}", thousands(one["rate"]),
                     f"p50 {one['p50_us'] / 1000:.2f} ms, p99 {one['p99_us'] / 1000:.2f} ms, "
                     f"p99.9 {one['p999_us'] / 1000:.2f} ms"))  # fmt: skip
    cold = found["random reads"]
    if "device" in cold:
        device_rate = cold["device"]["reads"] / cold["seconds"]
        best = max(found["fio"][f"randread {jobs}"]["iops"] for jobs in JOBS)
        rows.append(("share of the device's IOPS", f"{device_rate / best:.0%}",
                     f"{device_rate:,.0f} reads/s of fio's best {best:,.0f} in random reads"))  # fmt: skip
        rows.append(("device reads per GET", f"{cold['device']['reads'] / cold['requests']:.2f}",
                     f"{cold['device']['sectors_read'] / 2 / cold['requests']:.1f} KB for each, random reads"))  # fmt: skip
    written = sum_of(loading, "device", "sectors_written")
    if written is not None:
        rows.append(("write amplification", f"{written * devices.SECTOR / payload:.2f}",
                     f"{written * devices.SECTOR / MB:,.0f} MB written to the device for {payload / MB:,.0f} MB of keys "
                     "and values"))  # fmt: skip
    if found["settle"].get("data") is not None:
        size = found["settle"]["data"]
        note = "" if found["settle"]["quiet"] else "; compactions were STILL RUNNING"
        rows.append(("space amplification", f"{size / payload:.2f}", f"{size / MB:,.0f} MB on disk{note}"))
    if "cpu" in cold:
        rows.append(("processor time per GET", f"{cold['cpu'] / cold['requests'] * 1e6:.1f} us", "random reads"))
    return rows


def timeline(samples):
    """(samples with "x", the seconds of measuring at their ends), and the bands of phases."""
    x, placed, bands = 0.0, [], []
    for sample in samples:
        if not bands or bands[-1][0] != sample["phase"]:
            bands.append([sample["phase"], x, x])
        x += sample["interval"]
        bands[-1][2] = x
        placed.append(sample | {"x": x})
    return placed, bands


def points(samples, value):
    """(x, value), NaN where it is not known."""
    found = []
    for sample in samples:
        try:
            y = value(sample)
        except TypeError:  # no such counters
            y = None
        found.append((sample["x"], math.nan if y is None else y))
    return found


def write_report(run, found, device_name, args):
    samples, bands = timeline(run.samples())
    title = f"{args.profile.upper()}: {args.keys:,} keys of {args.value_bytes} bytes, maxmemory {args.maxmemory / MB:,.0f} MB"
    if args.target:
        title = f"{args.target}: {args.keys:,} keys of {args.value_bytes} bytes"
    series = [(name, points(samples, value), peaks) for name, value, peaks in PANELS]
    drawn = report.panels(title, series, bands, run.path("panels.png"))
    rows = summary(found, args)
    sections = [("Summary", report.table(("", "", ""), rows, text_columns=(2,)))]
    fio_rows = [(name, thousands(one["iops"]), f"{one['p50_us'] / 1000:.2f}", f"{one['p99_us'] / 1000:.2f}")
                for name, one in found["fio"].items()]  # fmt: skip
    fio_head = ("fio, 4 KB, threads", "a second", "p50 ms", "p99 ms")
    if fio_rows:
        sections.append(("The disk alone", report.table(fio_head, fio_rows)))
    sections.append(("Over time", report.grid(drawn)))
    left_out = ""
    if args.target:
        left_out = ("The server is not ours: its processor time, its files and its disk are not known here and left out. "
                    "Its memory is what it says itself. ")  # fmt: skip
    elif not device_name:
        left_out = f"The kernel does not tell which disk is under {args.dir}: its counters are left out. "
    lead = (f"{left_out}Every key was set once in no order ({CONNECTIONS} connections, pipelines of 16); random and hot "
            f"keys ({args.hot_keys:,} of them) were read by {CONNECTIONS} connections without a pipeline for "
            f"{args.seconds:g} s each. A sample each {args.sample_seconds:g} s.")  # fmt: skip
    facts = run.facts | ({"disk": f"{run.facts['disk']}; measured: {device_name}"} if device_name else {})
    report.page(run.path("report.html"), title, lead, facts, sections)
    if fio_rows:
        common.title("The disk alone")
        common.table(fio_head, fio_rows)
    common.title(title)
    for what, value, how in rows:
        print(f"{what:28} {value:>12}  {how}")
    if left_out:
        print(left_out)
    print(f"\n{run.path('report.html')}\n{run.path('panels.png')}")


# ------------------------------------------------------------------ the run


def measure(run, server, folder, args):
    device = devices.under(folder) if folder else None
    sampler = sampling.Sampler(run, server, device)
    found = {}
    found["load"], found["settle"] = load_steps(run, sampler, args)
    # With key-count estimate, as conf/ingot-hdd.conf has it, DBSIZE may be off; a random read that finds nothing tells then.
    if server.client.info().get("key_counts_settled", 1) and server.client.dbsize() < args.keys:
        sys.exit(f"DBSIZE is {server.client.dbsize()} after loading {args.keys} keys")
    server.restart()
    found["random reads"], found["hot reads"] = read_steps(run, sampler, args)
    return found, device.name if device else None


def figures(run, args, settings, measure, prepare=lambda folder: None):
    """What measure(server, folder, prepare(folder)) has found, as JSON has it: of the target, where there is no folder,
    or of a server of ours, whose data outlives a stop of the run and goes with its end. prepare() is called before
    the server is there. A run that is over is not measured again."""
    kept = None if args.target else runs.kept_folder(run, args)
    found = None
    if not run.is_finished(RESULT):
        if args.target:
            with common.Target(args.target) as server:
                found = measure(server, None, None)
        else:
            found = _figures_of_ours(run, args, settings, measure, prepare, kept)
    found = run.step(RESULT, lambda: found)
    if kept and not args.keep_data:
        shutil.rmtree(kept, ignore_errors=True)
    return found


def _figures_of_ours(run, args, settings, measure, prepare, kept):
    if run.is_finished(f"load 1/{load_parts(args)}"):
        if not os.path.exists(kept):
            sys.exit(f"the data of this run is gone from {kept}: begin another one")
    else:
        payload = args.keys * (args.value_bytes + KEY_BYTES)
        devices.check_space(args.dir, args.fio_size + payload * 3)
    with devices.data_folder(kept, args.slowdisk) as folder:
        prepared = prepare(folder)
        settings = {"maxmemory": args.maxmemory, "dir": folder} | settings
        with common.ingot(args, settings, conf_of(args.profile), directory=folder) as server:
            return measure(server, folder, prepared)


def work(run, args):
    run.expect((1 + 2 * len(JOBS) if not args.target else 0) + load_parts(args) + 4)

    def measure_one(server, folder, disk):
        found, name = measure(run, server, folder, args)
        return {"found": found | {"fio": disk or {}}, "device": name}

    settings = {} if args.page_cache else {"direct-reads": "yes"}
    result = figures(run, args, settings, measure_one, lambda folder: measure_device(run, folder, args))
    write_report(run, result["found"], result["device"], args)


def conf_of(profile):
    return os.path.join(common.ROOT, f"conf/ingot-{profile}.conf")


def add_options(parser):
    """What the data is, and where."""
    size = arguments.parse_bytes
    parser.add_argument("--profile", choices=list(PROFILES), default="ssd", help="of conf/ (ssd)")
    parser.add_argument("--keys", type=arguments.whole, help="how many: as many as make four times maxmemory")
    parser.add_argument("--maxmemory", type=size, help="of Ingot: 256mb, 16mb when quick; a quarter of the data with --keys")
    parser.add_argument("--value-bytes", type=arguments.value_bytes, default=100, help="bytes of a value (100)")
    parser.add_argument(
        "--page-cache", action="store_true", help="read as the profile says, and not past the page cache"
    )
    parser.add_argument("--keep-data", action="store_true", help="do not remove the data at the end")
    devices.add_slowdisk_option(parser)


def derive(args):
    """Options that follow from others."""
    record = args.value_bytes + KEY_BYTES
    if args.keys and not args.maxmemory:
        args.maxmemory = max(8 * MB, args.keys * record // 4)
    args.maxmemory = args.maxmemory or arguments.parse_bytes("16mb" if args.quick else "256mb")
    args.keys = args.keys or 4 * args.maxmemory // record
    if args.keys < 1000 or args.value_bytes < 1:
        sys.exit("1,000 keys of a byte at least are wanted")


def main():
    parser = runs.options(__doc__)
    add_options(parser)
    parser.add_argument(
        "--hot-keys",
        type=arguments.whole,
        help="a hundredth of the keys, or fewer where a quarter of maxmemory does not hold them",
    )
    parser.add_argument(
        "--seconds",
        type=arguments.above_zero,
        help="of random reads, and of hot reads: 60, 300 for hdd; 5 when quick",
    )
    parser.add_argument(
        "--fio-seconds",
        type=arguments.above_zero,
        help="of each measurement of the disk: 10, 20 for hdd; 2 when quick",
    )
    parser.add_argument(
        "--fio-size", type=arguments.parse_bytes, help="of the file it reads: as the data, 4gb at most"
    )
    parser.add_argument("--sample-seconds", type=arguments.above_zero, help="between two samples: 2; 0.5 when quick")
    args = runs.parse(parser, *PROFILES)
    asked = dict(vars(args))
    derive(args)
    profile = PROFILES[args.profile]
    # Each lies in a block of its own, and they should take a quarter of the memory.
    args.hot_keys = args.hot_keys or max(1, min(args.keys // 100, args.maxmemory // 4 // BLOCK_BYTES))
    args.seconds = args.seconds or (5 if args.quick else profile["seconds"])
    args.fio_seconds = args.fio_seconds or (2 if args.quick else profile["fio_seconds"])
    args.fio_size = args.fio_size or min(args.keys * (args.value_bytes + KEY_BYTES), 4 << 30)
    args.sample_seconds = args.sample_seconds or (0.5 if args.quick else 2)
    needed = [generator.PROGRAM] + ([] if args.target else ["fio"])
    runs.alone(args.profile, work, args, asked, needed)


if __name__ == "__main__":
    main()
