"""What the benchmarks share: machine facts, servers in directories of their own or elsewhere,
redis-benchmark, tables and the JSON result."""

import sys

# Whoever imports `queue` means Python's own, and not the benchmark that stands here.
sys.path.append(sys.path.pop(0))

import contextlib
import csv
import errno
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

try:
    import redis
except ImportError:
    sys.exit("the benchmarks need python3-redis: run deps/install.sh bench")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MB = 1 << 20
BUSY_PERCENT = 15  # of all processors: more than that before anything was started is somebody else


def need(*tools):
    """Ends the script when one of these programs is missing."""
    for tool in ("setpriv", *tools):  # that one starts all others, so that they go with the script
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: deps/build.sh bench builds ours, deps/install.sh bench brings the rest")


def end_cleanly():
    """SIGTERM ends the script as Ctrl-C does: through every `finally`, so that no server and no mount is left."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))


def prepare(args):
    """Checks what the options name; a clean end also for SIGTERM."""
    end_cleanly()
    need(args.server, args.redis, "redis-benchmark", "fio")
    args.dir = os.path.abspath(args.dir or os.path.join(ROOT, "build/bench"))
    os.makedirs(args.dir, exist_ok=True)


@contextlib.contextmanager
def plain_errors():
    """What a user can do something about ends the script with a sentence instead of a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit("stopped")
    except OSError as error:
        full = "the disk is full: " if error.errno == errno.ENOSPC else ""
        sys.exit(f"{full}{error}")
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
        sys.exit(f"the server is gone: {error}")
    except redis.exceptions.RedisError as error:
        sys.exit(f"the server answers: {error}")


def run_alone(name, run, args):
    """The whole life of one benchmark that was started by itself."""
    with plain_errors():
        _run_alone(name, run, args)


def _run_alone(name, run, args):
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


def block_device(directory):
    """The folder of /sys of the disk under the directory; a disk, not a partition. It may not exist."""
    device = os.stat(directory).st_dev
    block = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if os.path.exists(os.path.join(block, "partition")):
        block = os.path.dirname(block)
    return block


def busy_share(seconds=0.3):
    """How much of all processors is used right now."""

    def times():
        fields = [int(word) for word in first_line("/proc/stat").split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = times()
    time.sleep(seconds)
    total_after, idle_after = times()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def disk_facts(directory):
    block = block_device(directory)
    kind = {"0": "not rotational", "1": "rotational"}.get(
        first_line(os.path.join(block, "queue/rotational")), "of unknown kind"
    )
    model = first_line(os.path.join(block, "device/model"), "")
    free = shutil.disk_usage(directory).free >> 30
    name = " ".join(filter(None, (os.path.basename(block), model)))
    return f"{name} ({kind}, says the kernel), {file_system(directory)}, {free} GB free"


def machine_facts(args):
    facts = machine()
    return facts | {
        "disk": disk_facts(args.dir),
        "ingot": version_of(args.server, "--version"),
        "redis": version_of(args.redis, "--version"),
        "fio": version_of("fio", "--version"),
        "mode": "quick" if args.quick else "full",
    }


def machine():
    """What is true of the machine whatever is measured."""
    return {
        "cores": f"{os.cpu_count()} x {proc_value('/proc/cpuinfo', 'model name') or platform.machine()}",
        "memory": f"{int(proc_value('/proc/meminfo', 'MemTotal').split()[0]) >> 20} GB",
        "kernel": platform.release(),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "busy before": f"{busy_share():.0%} of the processors",
    }


def busy_warning(facts):
    """What to say of the machine's other work; empty when there is little."""
    if int(facts["busy before"].split("%")[0]) < BUSY_PERCENT:
        return ""
    return "WARNING: the machine is busy with something else; these figures will be low and vary"


def print_facts(facts):
    for name, value in facts.items():
        print(f"{name:12} {value}")
    if warning := busy_warning(facts):
        print(warning)
    sys.stdout.flush()


# ------------------------------------------------------------------ servers


class Endpoint:
    """A server, wherever it is. `local`: it is ours, so that its processor time and its files are known."""

    local = False
    password = None
    patience = 60  # seconds: for an answer, and for a server of ours until it serves

    def __init__(self, name, host, port):
        self.name, self.host, self.port = name, host, port
        self.client = None

    def __exit__(self, *_):
        self.client.close()

    def connect(self):
        self.client = redis.Redis(host=self.host, port=self.port, password=self.password, socket_timeout=self.patience)

    def info(self):
        """All that INFO tells; a server that has no "everything" gives what it has."""
        try:
            return self.client.info("everything")
        except redis.exceptions.ResponseError:
            return self.client.info()

    def set_config(self, name, value):
        """Whether it took that."""
        try:
            self.client.config_set(name, value)
        except redis.exceptions.ResponseError:
            return False
        return True

    def wait_until_quiet(self, seconds=120):
        """Until no compaction runs or waits, or the seconds are over; whether it is quiet."""
        deadline = time.monotonic() + seconds
        calm = 0
        while calm < 5:
            info = self.info()
            busy = info.get("engine_running_compactions", 0) or info.get(
                "engine_pending_compaction_bytes", 0
            )
            calm = 0 if busy else calm + 1
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def why_gone(self):
        """What is known of the end of the server; empty when it is there, or when nothing is known."""
        return ""


class Target(Endpoint):
    """A server that was there before and stays: nothing is known of its processes and its disk, and it is not
    started again. Its password stands in the environment, as redis-cli wants it."""

    def __init__(self, address):
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdecimal() and 0 < int(port) < 65536):
            sys.exit(f"--target wants host:port and not '{address}'")
        super().__init__(address, host.strip("[]"), int(port))
        self.password = os.environ.get("REDISCLI_AUTH")

    def __enter__(self):
        self.connect()
        try:
            self._greet()
        except redis.exceptions.RedisError as error:
            sys.exit(f"no server answers at {self.name}: {error}")
        return self

    def _greet(self):
        """The password is for those that have one: of two servers that are compared it may be only one."""
        try:
            self.client.ping()
        except redis.exceptions.RedisError as error:
            if "without any password" not in str(error):
                raise
            self.password = None
            self.connect()
            self.client.ping()

    def why_gone(self):
        try:
            self.client.ping()
        except redis.exceptions.ConnectionError as error:
            return f"{self.name} does not answer any more: {error}"
        return ""

    def restart(self, **_):
        """Not ours to do."""

    def memory(self):
        """What it says itself; None when it does not."""
        return self.info().get("used_memory_rss")

    def cpu_seconds(self):
        return None

    def disk_bytes(self):
        return None


class Server(Endpoint):
    """A server on a port and in a directory of its own; both are gone when the block ends.

    `command` is what comes before the options: the binary, and perhaps a configuration file. A `directory` that is
    given stays.
    """

    local = True

    def __init__(self, name, command, parent, settings, directory=None):
        super().__init__(name, "127.0.0.1", free_port())
        self._command = command
        self._settings = settings
        self._keep = directory is not None
        self.directory = directory or tempfile.mkdtemp(prefix=f"bench-{name}-", dir=parent)
        self._process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind=None, *_):
        # Who lost the connection does not know why; the log tells, and is about to go.
        lost = kind and issubclass(kind, (OSError, redis.exceptions.ConnectionError))
        why = self.why_gone() if lost and self._process else ""
        if self._process:
            self._process.kill()
            self._process.wait()
        if not self._keep:
            shutil.rmtree(self.directory, ignore_errors=True)
        if why:
            sys.exit(why)

    @property
    def pid(self):
        return self._process.pid

    def start(self):
        given = {"port": self.port, "dir": self.directory, "bind": "127.0.0.1"} | self._settings
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                with_us(*self._command, *words), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.connect()
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self.client.ping()
                return
            except redis.exceptions.ConnectionError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{self.name} does not serve:\n{self._log_tail()}")
                time.sleep(0.005)

    @property
    def _log_path(self):
        return os.path.join(self.directory, "log")

    def _log_tail(self):
        with open(self._log_path, encoding="utf-8", errors="replace") as log:
            return log.read()[-2000:]

    def why_gone(self):
        time.sleep(0.1)  # a process that has just closed its sockets may still be on its way out
        if self._process.poll() is None:
            return ""
        return f"{self.name} has ended with {self._process.returncode}; its log:\n{self._log_tail()}"

    def restart(self, **settings):
        """Ends it as an operator would (everything is flushed to the disk), and starts it again, with some settings
        changed: read_io="auto"."""
        self._settings |= {name.replace("_", "-"): value for name, value in settings.items()}
        self.client.close()
        self._process.terminate()
        self._process.wait()
        self.start()

    def memory(self):
        return int(proc_value(f"/proc/{self.pid}/status", "VmRSS").split()[0]) << 10

    def peak_memory(self):
        return int(proc_value(f"/proc/{self.pid}/status", "VmHWM").split()[0]) << 10

    def cpu_seconds(self):
        """Processor time that all its threads used so far."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def writer_seconds(self):
        """The same of its writer alone, to the nanosecond; None of a server that has no thread of that name."""
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            if first_line(f"/proc/{self.pid}/task/{thread}/comm") == "writer":
                return int(first_line(f"/proc/{self.pid}/task/{thread}/schedstat").split()[0]) / 1e9
        return None

    def io_bytes(self, which):
        """What it had to get from the disk so far ("read_bytes"), or wrote there; 0 when the kernel does not tell."""
        try:
            return int(proc_value(f"/proc/{self.pid}/io", which) or 0)
        except PermissionError:
            return 0

    def disk_bytes(self):
        return directory_bytes(self.directory)


def with_us(*command):
    """The command so that it dies with this script, however that ends. From the main thread only."""
    return ["setpriv", "--pdeathsig", "KILL", *command]


def directory_bytes(directory):
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # a file that was just merged away
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
    return total


def ingot(args, settings, conf=None, directory=None):
    return Server("ingot", [args.server] + ([conf] if conf else []), args.dir, settings, directory)


def redis_server(args, settings=None):
    """It keeps nothing on disk unless the settings say so: the fastest that it can be."""
    quiet = {"save": "", "appendonly": "no"}
    return Server("redis", [args.redis], args.dir, quiet | (settings or {}))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ------------------------------------------------------------------ redis-benchmark


def output_of(server, *command):
    """What a program that measures this server prints; the script ends when that fails, or when the server does:
    redis-benchmark waits for ever for one that is gone."""
    process = subprocess.Popen(
        with_us(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while True:
            try:
                out, said = process.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if why := server.why_gone():
                    sys.exit(why)
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        sys.exit(server.why_gone() or f"{' '.join(command)} failed:\n{out}{said}")
    return out


def redis_benchmark(server, seconds, keys, *words, **load):
    """Requests per second of one redis-benchmark of some `seconds`; `words` say which request."""
    return redis_benchmark_row(server, seconds, keys, *words, **load)["rps"]


def redis_benchmark_row(server, seconds, keys, *words, guess=20000, connections=50, pipeline=1, threads=0):
    """The figures of one redis-benchmark as it names them, latencies in milliseconds.

    It takes a number of requests and not a time: a short run, of `guess` requests, tells how many.
    """

    def measure(requests):
        requests = max(connections * pipeline, int(requests) // pipeline * pipeline)
        command = ["redis-benchmark", "-h", server.host, "-p", str(server.port), "-c", str(connections), "--csv"]
        command += ["-P", str(pipeline), "-r", str(keys), "-n", str(requests)]
        command += ["--threads", str(threads)] if threads else []
        command += ["-a", server.password] if server.password else []
        out = output_of(server, *command, *words)
        rows = list(csv.reader(out.splitlines()))
        if len(rows) < 2:
            sys.exit(f"{' '.join(command)} failed:\n{out}")
        return {name: float(value) for name, value in zip(rows[0][1:], rows[-1][1:])}

    return measure(measure(guess)["rps"] * seconds)


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


def counted(number, what):
    """'1 round', '3 rounds'."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def table(headers, rows):
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(headers, *rows)]
    for row in (headers, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row, widths)]
        cells[0] = row[0].ljust(widths[0])
        print("  ".join(cells).rstrip())
    sys.stdout.flush()
