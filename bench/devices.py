"""What a disk does and can do: the kernel's counters (or those of a slowdisk), fio, and slowdisks mounted."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

import common
import generator
from common import MB

SLOWDISK = os.path.join(generator.PROGRAMS, "slowdisk")
PROFILES = ("hdd", "sata", "cloud")
SECTOR = 512  # bytes, in these counters and on any disk
FIELDS = ("reads", "reads_merged", "sectors_read", "read_ms", "writes", "writes_merged", "sectors_written",
          "write_ms", "in_flight", "busy_ms", "queue_ms")  # fmt: skip


class Device:
    """The disk under a directory: its counters, as /proc/diskstats has them."""

    def __init__(self, name, read):
        self.name = name
        self._read = read

    def counters(self):
        return dict(zip(FIELDS, map(int, self._read().split()))) | {"at": time.monotonic()}


def under(directory):
    """The Device, or None when the kernel does not tell which it is (memory, a network, layers of file systems)."""
    with contextlib.suppress(OSError):
        os.getxattr(directory, "user.diskstats")
        mount = directory
        speed = os.getxattr(mount, "user.speed").decode()
        return Device(f"slowdisk ({speed})", lambda: os.getxattr(mount, "user.diskstats").decode())
    block = common.block_device(directory)
    path = os.path.join(block, "stat")
    if not os.path.exists(path):
        return None
    return Device(os.path.basename(block), lambda: common.first_line(path))


def difference(before, after):
    """What a disk did between two readings of its counters, as iostat names it."""
    seconds = after["at"] - before["at"]
    delta = {name: after[name] - before[name] for name in FIELDS}
    read_kb, write_kb = (delta[name] * SECTOR / 1024 for name in ("sectors_read", "sectors_written"))
    requests = delta["reads"] + delta["writes"]
    return {
        "reads_s": delta["reads"] / seconds,
        "writes_s": delta["writes"] / seconds,
        "read_kb_s": read_kb / seconds,
        "write_kb_s": write_kb / seconds,
        "request_kb": (read_kb + write_kb) / requests if requests else None,
        "queue": delta["queue_ms"] / 1000 / seconds,
        "read_await_ms": delta["read_ms"] / delta["reads"] if delta["reads"] else None,
        "write_await_ms": delta["write_ms"] / delta["writes"] if delta["writes"] else None,
        "util": min(1.0, delta["busy_ms"] / 1000 / seconds),
    }


# ------------------------------------------------------------------ fio


def check_space(directory, wanted):
    """Ends the script when the directory is no disk, or has too little room."""
    if common.file_system(directory) in ("tmpfs", "ramfs"):
        sys.exit(f"{directory} is memory and not a disk: choose another --dir")
    check_room(directory, wanted)


def check_room(directory, wanted):
    """The same where it need not be a disk."""
    stat = os.statvfs(directory)
    free = stat.f_bavail * stat.f_frsize
    if free < wanted:
        sys.exit(
            f"too little space in {directory}: {wanted / MB:,.0f} MB are needed, {free / MB:,.0f} MB are free"
        )


def write_random_file(path, size, tell=lambda done: None):
    """What fio reads. `tell` hears how many bytes are there."""
    with open(path, "wb") as file:
        for number in range(-(-size // MB)):
            file.write(os.urandom(MB))
            tell(number * MB)
        file.flush()
        os.fsync(file.fileno())


def fio(path, kind, jobs, seconds):
    """Random 4k requests past the page cache, one at a time on each of so many threads. kind: randread, randwrite."""
    words = {
        "name": kind, "filename": path, "rw": kind, "bs": "4k", "ioengine": "psync", "direct": 1, "numjobs": jobs,
        "runtime": f"{seconds * 1000:.0f}ms", "norandommap": 1, "randrepeat": 0, "output-format": "json",
        "size": os.path.getsize(path),
    }  # fmt: skip
    command = ["fio", "--thread", "--time_based", "--group_reporting"]
    command += [f"--{name}={value}" for name, value in words.items()]
    # Its own files go where it can write.
    done = subprocess.run(
        common.with_us(*command), capture_output=True, text=True, check=False, cwd=os.path.dirname(path)
    )
    if done.returncode != 0:
        sys.exit(f"fio failed:\n{done.stdout}{done.stderr}")
    result = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    side = result["read" if kind == "randread" else "write"]
    quantiles = side["clat_ns"].get("percentile", {})
    return {"iops": side["iops"], "mean_us": side["clat_ns"]["mean"] / 1000,
            "p50_us": quantiles.get("50.000000", 0) / 1000, "p99_us": quantiles.get("99.000000", 0) / 1000}  # fmt: skip


# ------------------------------------------------------------------ slowdisks


@contextlib.contextmanager
def slowdisk(folder, words):
    """A folder that shows what is in `folder`, as slowly as these options of slowdisk say; gone at the end."""
    common.need(SLOWDISK)
    os.makedirs(folder, exist_ok=True)
    mount = tempfile.mkdtemp(prefix="bench-slowdisk-")
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            common.with_us(SLOWDISK, folder, mount, *words), stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        try:
            deadline = time.monotonic() + 10
            while not os.path.ismount(mount):
                if process.poll() is not None or time.monotonic() > deadline:
                    said.seek(0)
                    sys.exit(f"a slowdisk cannot be mounted here (FUSE): {said.read().strip()}")
                time.sleep(0.02)
            yield mount
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if os.path.ismount(mount):
                subprocess.run(["fusermount3", "-u", "-z", mount], check=False)
            with contextlib.suppress(OSError):
                os.rmdir(mount)


def add_slowdisk_option(parser):
    parser.add_argument("--slowdisk", metavar="PROFILE", choices=PROFILES,
                        help=f"put the data on a disk that is as slow as {', '.join(PROFILES)} (the disk as it is)")  # fmt: skip


@contextlib.contextmanager
def data_folder(folder, profile):
    """Where the data goes: the folder itself, or a slowdisk of this profile over it."""
    os.makedirs(folder, exist_ok=True)
    if not profile:
        yield folder
        return
    with slowdisk(folder, ["--profile", profile]) as mount:
        yield mount
