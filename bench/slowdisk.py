#!/usr/bin/python3
"""What a slowdisk gives when fio asks it, at queue depths of 1 and 50, beside what it is meant to give.

First without any delay: that is what FUSE takes on this machine, and no slowdisk can be faster. Then each profile.
--take-off has that latency taken off every request, so that a fast disk is met more closely.
"""

import os
import shutil
import time

import arguments
import common
import devices
import report
import runs

JOBS = (1, 50)
NO_DELAY = "no delay"


def fsync_ms(folder, seconds):
    """The median time of an fsync behind a page that was written."""
    times = []
    with open(os.path.join(folder, "fsync"), "wb", buffering=0) as file:
        end = time.monotonic() + seconds
        while time.monotonic() < end or not times:
            file.write(b"x" * 4096)
            begin = time.monotonic()
            os.fsync(file.fileno())
            times.append((time.monotonic() - begin) * 1000)
    return common.median(times)


def measure(run, folder, words, args):
    """fio's figures, an fsync's, and what the disk says of itself and has counted."""
    with devices.slowdisk(folder, words) as mount:
        path = os.path.join(mount, "fio.data")
        if not os.path.exists(path):
            # Not through the mount: its disk would take its time.
            devices.write_random_file(os.path.join(folder, "fio.data"), args.fio_size)
        device = devices.under(mount)
        found = {"speed": os.getxattr(mount, "user.speed").decode()}
        for kind in ("randread", "randwrite"):
            for jobs in JOBS:
                run.tell(f"{kind}, {jobs}")
                before = device.counters()
                found[f"{kind} {jobs}"] = devices.fio(path, kind, jobs, args.seconds)
                found[f"{kind} {jobs}"]["util"] = devices.difference(before, device.counters())["util"]
        run.tell("fsync")
        found["fsync_ms"] = fsync_ms(mount, min(args.seconds, 2))
    return found


def row(name, found):
    cells = [name, found["speed"]]
    for kind in ("randread", "randwrite"):
        for jobs in JOBS:
            one = found[f"{kind} {jobs}"]
            cells.append(f"{one['iops']:,.0f} ({one['mean_us'] / 1000:.2f} ms)")
    return [*cells, f"{found['fsync_ms']:.2f}"]


def work(run, args):
    folder = runs.kept_folder(run, args)
    devices.check_space(args.dir, args.fio_size * 2)
    os.makedirs(folder, exist_ok=True)
    run.expect(1 + len(args.profiles))
    head = [
        "",
        "meant to be",
        *(f"{kind}, depth {jobs}" for kind in ("read", "write") for jobs in JOBS),
        "fsync ms",
    ]
    plain = run.step(NO_DELAY, lambda: measure(run, folder, [], args))
    rows = [row(NO_DELAY, plain)]
    overhead = ["--overhead-us", str(round(plain["randread 1"]["mean_us"]))] if args.take_off else []
    for profile in args.profiles:
        words = ["--profile", profile, *overhead]
        rows.append(row(profile, run.step(profile, lambda words=words: measure(run, folder, words, args))))
    common.title("Requests of 4 KB a second, and what one takes on average")
    common.table(head, rows)
    lead = (
        f"By fio, {args.seconds:g} s for each figure; the last column is the median of a write of 4 KB and fsync."
    )
    print(f"\n{lead}")
    report.page(
        run.path("report.html"),
        "Slow disks",
        lead,
        run.facts,
        [("Figures", report.table(head, rows, text_columns=(1,)))],
    )
    print(run.path("report.html"))
    shutil.rmtree(folder)


def main():
    parser = runs.options(__doc__, target=False)
    parser.add_argument("--profiles", type=lambda text: text.split(","), default=list(devices.PROFILES),
                        help=",".join(devices.PROFILES))  # fmt: skip
    parser.add_argument("--take-off", action="store_true", help="take what FUSE takes off every request")
    parser.add_argument("--seconds", type=arguments.above_zero, help="of each measurement: 5; 1 when quick")
    parser.add_argument(
        "--fio-size", type=arguments.parse_bytes, help="of the file that fio reads: 256mb; 32mb when quick"
    )
    args = runs.parse(parser, "slowdisk")
    asked = dict(vars(args))
    for profile in args.profiles:
        if profile not in devices.PROFILES:
            parser.error(f"there is no profile {profile}")
    args.seconds = args.seconds or (1 if args.quick else 5)
    args.fio_size = args.fio_size or arguments.parse_bytes("32mb" if args.quick else "256mb")
    runs.alone("slowdisk", work, args, asked, [devices.SLOWDISK, "fio"], server=False)


if __name__ == "__main__":
    main()
