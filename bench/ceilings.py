#!/usr/bin/python3
"""What this machine can do at most, whatever the server: loopback, memory, disk; and the share of that a result reached.

With --result the figures of a finished run (its --run-dir) are set beside the ceilings: bytes over the loopback, reads
of the disk, cores.
"""

import json
import os
import subprocess
import sys

import arguments
import common
import devices
import generator
import report
import runs
from common import MB, thousands

PROBE = os.path.join(generator.PROGRAMS, "probe")
MESSAGE_BYTES = 64  # a small request, or its answer
RESP_BYTES = 50  # what a request and its answer have beside their value


def probe(what, seconds, number):
    done = subprocess.run(
        common.with_us(PROBE, what, str(seconds), str(number)), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def disk_ceilings(run, args):
    """fio's figures by name."""
    folder = runs.kept_folder(run, args)
    path = os.path.join(folder, "fio.data")
    devices.check_space(args.dir, args.fio_size)
    os.makedirs(folder, exist_ok=True)

    def measure(kind, jobs):
        if not os.path.exists(path):
            devices.write_random_file(
                path, args.fio_size, lambda done: run.tell("writing fio's file", done / args.fio_size)
            )
        return devices.fio(path, kind, jobs, args.seconds)

    try:
        return {f"{kind} {jobs}": run.step(f"fio {kind} {jobs}", lambda kind=kind, jobs=jobs: measure(kind, jobs))
                for kind in ("randread", "randwrite") for jobs in (1, 50)}  # fmt: skip
    finally:
        if os.path.exists(path):
            os.remove(path)
        os.rmdir(folder)


def read_result(directory):
    """(script, options, finished steps with a rate) of a run."""
    described = runs.describe(directory)
    if described is None:
        sys.exit(f"{directory} is no directory of a run: nothing is there")
    try:
        with open(os.path.join(directory, "raw.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    except (OSError, ValueError) as error:
        sys.exit(f"{directory} is no directory of a run: {error}")
    steps = [(row["step"], row["finished"]) for row in rows if "finished" in row]
    steps = [(name, one) for name, one in steps if isinstance(one, dict) and "rate" in one and "/" not in name]
    if not steps:
        sys.exit(f"{directory} has no finished step with a rate of requests")
    return described["script"], described["asked"], steps


def shares(described, found):
    """A row for each finished step: its part of what there is. Without what its run did not measure."""
    _, asked, steps = described
    value_bytes = asked.get("value_bytes")
    rows = []
    for name, one in steps:
        network = disk = cores = "-"
        if value_bytes:
            network = f"{one['rate'] * (value_bytes + RESP_BYTES) / found['loopback']['bytes_s']:.1%}"
        if "device" in one and "randread 50" in found:
            best = max(found[f"randread {jobs}"]["iops"] for jobs in (1, 50))
            disk = f"{one['device']['reads'] / one['seconds'] / best:.0%}"
        if "cpu" in one:
            cores = f"{one['cpu'] / one['seconds'] / os.cpu_count():.0%}"
        rows.append([name, thousands(one["rate"]), network, disk, cores])
    return rows


def work(run, args):
    described = read_result(args.result) if args.result else None
    run.expect(5 + len({1, os.cpu_count()}))
    found = {"loopback": run.step("loopback", lambda: probe("loopback", args.seconds, MESSAGE_BYTES))}
    for threads in sorted({1, os.cpu_count()}):
        found[f"memory {threads}"] = run.step(
            f"memory, threads: {threads}", lambda n=threads: probe("memory", args.seconds, n)
        )
    found |= disk_ceilings(run, args)
    trip = found["loopback"]["round_trip_us"]
    rows = [("loopback, one connection", f"{found['loopback']['bytes_s'] / MB:,.0f} MB/s"),
            (f"loopback, {MESSAGE_BYTES} bytes there and back", f"{trip:.1f} us"),
            ("so one connection without a pipeline sends at most", f"{1e6 / trip:,.0f} requests/s")]  # fmt: skip
    for threads in sorted({1, os.cpu_count()}):
        one = found[f"memory {threads}"]
        rows.append((f"memory, {common.counted(threads, 'thread')}",
                     f"{one['read_bytes_s'] / MB:,.0f} MB/s read, {one['copy_bytes_s'] / MB:,.0f} MB/s copied"))  # fmt: skip
    for kind in ("randread", "randwrite"):
        rows += [(f"disk, {kind} of 4 KB, {common.counted(jobs, 'thread')}", f"{found[f'{kind} {jobs}']['iops']:,.0f} a second")
                 for jobs in (1, 50)]  # fmt: skip
    common.title("Ceilings")
    common.table(["", ""], rows)
    sections = [("Ceilings", report.table(("", ""), rows))]
    if described:
        head = ["", "requests/s", "of the loopback", "of the disk's reads", "of the cores"]
        reached = shares(described, found)
        common.title(f"What {args.result} reached")
        common.table(head, reached)
        sections.append((f"What a run of {described[0]} reached", report.table(head, reached)))
    lead = (f"{args.seconds:g} s for each figure. Shares of the loopback count {RESP_BYTES} bytes and the value for each "
            "request; those of the cores are the server's processor time alone.")  # fmt: skip
    print(f"\n{lead}")
    report.page(run.path("report.html"), "Ceilings", lead, run.facts, sections)
    print(run.path("report.html"))


def main():
    parser = runs.options(__doc__, target=False)
    parser.add_argument("--result", metavar="RUN_DIR", help="set the figures of this run beside them")
    parser.add_argument("--seconds", type=arguments.above_zero, help="of each measurement: 5; 1 when quick")
    parser.add_argument(
        "--fio-size", type=arguments.parse_bytes, help="of the file that fio reads: 1gb; 64mb when quick"
    )
    args = runs.parse(parser, "ceilings")
    asked = dict(vars(args))
    args.seconds = args.seconds or (1 if args.quick else 5)
    args.fio_size = args.fio_size or arguments.parse_bytes("64mb" if args.quick else "1gb")
    runs.alone("ceilings", work, args, asked, [PROBE, "fio"], server=False)


if __name__ == "__main__":
    main()
