"""What the benchmarks share: options, machine facts, servers in directories of their own, the loader,
redis-benchmark, tables and the JSON result."""

import argparse
import contextlib
import csv
import itertools
import json
import os
import platform
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import redis
except ImportError:
    sys.exit("the benchmarks need python3-redis: run deps/install.sh bench")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MB = 1 << 20
UNITS = {"": 1, "k": 1000, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20, "g": 10**9, "gb": 1 << 30}


def parse_bytes(text):
    """'256mb' as the configuration files mean it."""
    match = re.fullmatch(r"(\d+)(|k|kb|m|mb|g|gb)", text.lower())
    if not match:
        raise argparse.ArgumentTypeError(f"not an amount of memory: {text}")
    return int(match[1]) * UNITS[match[2]]


def options(description):
    """The parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="a look instead of a measurement")
    parser.add_argument("--dir", help="where the data goes; it should be on the disk that is meant")
    parser.add_argument("--server", default=os.path.join(ROOT, "build/release/ingot-server"))
    parser.add_argument("--redis", default="redis-server", help="the server to compare with")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    return parser


def prepare(args):
    """Checks what the options name; a clean end also for SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    for tool in (args.server, args.redis, "redis-benchmark", "fio"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: deps/build.sh makes the server, deps/install.sh bench brings the rest")
    args.dir = os.path.abspath(args.dir or os.path.join(ROOT, "build/bench"))
    os.makedirs(args.dir, exist_ok=True)


def run_alone(name, run, args):
    """The whole life of one benchmark that was started by itself."""
    prepare(args)
    facts = machine_facts(args)
    print_facts(facts)
    write_json(args, {"machine": facts, name: run(args)})


def write_json(args, result):
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


# ------------------------------------------------------------------ the machine


def first_line(path, default="unknown"):
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip()
    except OSError:
        return default


def proc_value(path, name):
    """The value behind `name:` in a file of /proc, as text; empty when it is not there."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


def version_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "missing"
    return (done.stdout + done.stderr).strip().split("\n")[0]


def file_system(directory):
    return subprocess.run(
        ["stat", "-f", "-c", "%T", directory], capture_output=True, text=True, check=True
    ).stdout.strip()


def disk_facts(directory):
    device = os.stat(directory).st_dev
    block = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if os.path.exists(os.path.join(block, "partition")):
        block = os.path.dirname(block)
    kind = {"0": "not rotational", "1": "rotational"}.get(
        first_line(os.path.join(block, "queue/rotational")), "of unknown kind"
    )
    model = first_line(os.path.join(block, "device/model"), "")
    free = shutil.disk_usage(directory).free >> 30
    name = " ".join(filter(None, (os.path.basename(block), model)))
    return f"{name} ({kind}, says the kernel), {file_system(directory)}, {free} GB free"


def machine_facts(args):
    return {
        "cores": f"{os.cpu_count()} x {proc_value('/proc/cpuinfo', 'model name') or platform.machine()}",
        "memory": f"{int(proc_value('/proc/meminfo', 'MemTotal').split()[0]) >> 20} GB",
        "kernel": platform.release(),
        "disk": disk_facts(args.dir),
        "ingot": version_of(args.server, "--version"),
        "redis": version_of(args.redis, "--version"),
        "fio": version_of("fio", "--version"),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "mode": "quick" if args.quick else "full",
    }


def print_facts(facts):
    for name, value in facts.items():
        print(f"{name:12} {value}")
    if float(facts["load before"]) > 0.3 * os.cpu_count():
        print("WARNING: the machine is busy with something else; these figures will be low and vary")
    sys.stdout.flush()


# ------------------------------------------------------------------ servers


class Server:
    """A server on a port and in a directory of its own; both are gone when the block ends.

    `command` is what comes before the options: the binary, and perhaps a configuration file.
    """

    def __init__(self, name, command, parent, settings):
        self.name = name
        self._command = command
        self._settings = settings
        self.directory = tempfile.mkdtemp(prefix=f"bench-{name}-", dir=parent)
        self.port = free_port()
        self._process = None
        self.client = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._process:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def pid(self):
        return self._process.pid

    def start(self):
        given = {"port": self.port, "dir": self.directory, "bind": "127.0.0.1"} | self._settings
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        log_path = os.path.join(self.directory, "log")
        with open(log_path, "ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.client = redis.Redis(port=self.port, socket_timeout=60)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client.ping()
                return
            except redis.exceptions.ConnectionError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    with open(log_path, encoding="utf-8", errors="replace") as log:
                        sys.exit(f"{self.name} does not serve:\n{log.read()[-2000:]}")
                time.sleep(0.05)

    def restart(self):
        """Ends it as an operator would (everything is flushed to the disk), and starts it again."""
        self.client.close()
        self._process.terminate()
        self._process.wait()
        self.start()

    def wait_until_quiet(self, seconds=120):
        """Until no compaction runs or waits, or the seconds are over; whether it is quiet."""
        deadline = time.monotonic() + seconds
        calm = 0
        while calm < 5:
            info = self.client.info("everything")
            busy = info.get("engine_running_compactions", 0) or info.get(
                "engine_pending_compaction_bytes", 0
            )
            calm = 0 if busy else calm + 1
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def peak_memory(self):
        return int(proc_value(f"/proc/{self.pid}/status", "VmHWM").split()[0]) << 10

    def cpu_seconds(self):
        """Processor time that all its threads used so far."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def bytes_read(self):
        """What it had to get from the disk so far; 0 when the kernel does not tell."""
        try:
            return int(proc_value(f"/proc/{self.pid}/io", "read_bytes") or 0)
        except PermissionError:
            return 0

    def disk_bytes(self):
        total = 0
        for folder, _, names in os.walk(self.directory):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # a file that was just merged away
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512
        return total


def ingot(args, settings, conf=None):
    return Server("ingot", [args.server] + ([conf] if conf else []), args.dir, settings)


def redis_server(args, settings=None):
    """It keeps nothing on disk unless the settings say so: the fastest that it can be."""
    quiet = {"save": "", "appendonly": "no"}
    return Server("redis", [args.redis], args.dir, quiet | (settings or {}))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ------------------------------------------------------------------ loading


class Loader:
    """Sets `keys` keys (rounded up to thousands), key:000000000000 and on, as redis-benchmark names
    them, each once, spread over the whole range at every moment; the values do not compress.

    One thread keeps a pipeline under way on each of several connections.
    """

    SPREAD = 1000  # key numbers are slot * SPREAD + step; a step is one pass over all slots
    CONNECTIONS = 8
    PIPELINE = 250

    def __init__(self, keys, value_bytes, seed=1):
        self.slots = -(-keys // self.SPREAD)
        self.keys = self.slots * self.SPREAD
        self._random = random.Random(seed)
        head = b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%09d"
        self._heads = [head % slot for slot in range(self.slots)]
        self._length = b"\r\n$%d\r\n" % value_bytes
        pool_bytes = os.urandom(min(32 * MB, 20000 * value_bytes))
        self._values = [
            pool_bytes[at : at + value_bytes] + b"\r\n"
            for at in range(0, len(pool_bytes) - value_bytes + 1, value_bytes)
        ]

    def pipelines(self):
        """(bytes, commands) one after another."""
        steps = list(range(self.SPREAD))
        self._random.shuffle(steps)
        values = self._values
        for step in steps:
            middle = itertools.repeat(b"%03d" % step + self._length)
            for slot in range(0, self.slots, self.PIPELINE):
                heads = self._heads[slot : slot + self.PIPELINE]
                at = self._random.randrange(max(1, len(values) - len(heads)))
                parts = zip(heads, middle, values[at : at + len(heads)])
                yield b"".join(itertools.chain.from_iterable(parts)), len(heads)

    def load(self, server, slices=1):
        """For each slice of the keys the seconds and the server's processor time; and the share of the
        whole that this process itself was computing: near 1 it was the limit and not the server."""
        sockets = [
            socket.create_connection(("127.0.0.1", server.port)) for _ in range(self.CONNECTIONS)
        ]
        waiting = [0] * len(sockets)
        marks = [(time.monotonic(), server.cpu_seconds())]
        own = time.process_time()
        done = 0
        for (data, count), turn in zip(self.pipelines(), itertools.cycle(range(len(sockets)))):
            done += self._take_replies(sockets[turn], waiting[turn])
            sockets[turn].sendall(data)
            waiting[turn] = count
            while len(marks) < slices and done >= self.keys * len(marks) / slices:
                marks.append((time.monotonic(), server.cpu_seconds()))
        for turn, connection in enumerate(sockets):
            self._take_replies(connection, waiting[turn])
            connection.close()
        marks.append((time.monotonic(), server.cpu_seconds()))
        share = (time.process_time() - own) / (marks[-1][0] - marks[0][0])
        return [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(marks)], share

    @staticmethod
    def _take_replies(connection, count):
        expected = b"+OK\r\n" * count
        received = b""
        while len(received) < len(expected):
            data = connection.recv(1 << 16)
            received += data
            if not data or not expected.startswith(received):
                sys.exit(f"SET failed: {received.lstrip(b'+OK').strip()[:200]!r}")
        return count


# ------------------------------------------------------------------ redis-benchmark


def redis_benchmark(server, seconds, keys, *words, guess=20000, connections=50, pipeline=1, threads=0):
    """Requests per second of one redis-benchmark of some `seconds`; `words` say which request.

    It takes a number of requests and not a time: a short run, of `guess` requests, tells how many.
    """

    def rate(requests):
        requests = max(connections * pipeline, requests // pipeline * pipeline)
        command = ["redis-benchmark", "-p", str(server.port), "-c", str(connections), "--csv"]
        command += ["-P", str(pipeline), "-r", str(keys), "-n", str(requests)]
        command += ["--threads", str(threads)] if threads else []
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        rows = list(csv.reader(done.stdout.splitlines()))
        if done.returncode != 0 or len(rows) < 2:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return float(rows[-1][1])

    return rate(int(rate(int(guess)) * seconds))


# ------------------------------------------------------------------ results


def median(values):
    return statistics.median(values)


def thousands(value):
    return f"{value:,.0f}"


def ratio_text(ours, theirs):
    """Round by round, the median with the range."""
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    return f"{median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"


def title(text):
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def print_load():
    print(f"the machine's load at the end, with this benchmark's own: {os.getloadavg()[0]:.2f}")


def table(headers, rows):
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(headers, *rows)]
    for row in (headers, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths)]
        cells[0] = row[0].ljust(widths[0])
        print("  ".join(cells).rstrip())
    sys.stdout.flush()
