"""Starts and stops the servers that black-box tests talk to: Ingot, and redis-server as the oracle.

    with Server.ingot("rocksdb", options={"appendfsync": "always"}) as server:
        server.client().call("SET", "k", "v")
        server.kill()       # kill -9
        server.start()      # again, on the same directory and port

Every server runs in a temporary directory of its own (or in `directory`, which is then kept) on an
free port of 127.0.0.1. start() returns once the server answers PING; when it does not, the
error holds the end of its log.

The binary is build/release/ingot-server; the environment variable INGOT_SERVER overrides it. Set to
`redis-server` it makes the tests compare Redis with Redis, which proves the tests themselves;
options that only Ingot knows are then left out. A server built with sanitizers
(build/asan/ingot-server) fails the test, or the fixture, that removes it after a report.
"""

import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from support.resp import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 30
STOP_SECONDS = 30
LOG_TAIL_LINES = 40
REPORT_LINES = 60
# How the reports of the sanitizers begin, which go to the standard error.
SANITIZER_REPORT = re.compile(r"ERROR: (Address|Leak)Sanitizer|AddressSanitizer:DEADLYSIGNAL"
                              r"|WARNING: ThreadSanitizer|: runtime error: ")  # fmt: skip
INGOT_ONLY_OPTIONS = (
    "engine", "cache-size", "max-disk", "min-free-disk", "ignore-redis-files", "bloom-bits", "compression",
    "compaction-threads", "compaction-rate", "backup-keep", "direct-reads", "inline-max-bytes", "reader-threads", "key-count",
)  # fmt: skip
# Of the last ports that were given out; the process' end gives them back, too.
_ports_taken = collections.deque(maxlen=500)


def ingot_binary():
    return os.environ.get("INGOT_SERVER", str(ROOT / "build" / "release" / "ingot-server"))


def self_check():
    """True when the tests run Redis against Redis."""
    return os.path.basename(ingot_binary()) == "redis-server"


def engines():
    return ["redis"] if self_check() else ["rocksdb", "leveldb"]


def end_on_sigterm():
    """SIGTERM ends the tests as Ctrl-C does, so that no server outlives them. Main thread."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def free_port():
    """Below those that connections are given for themselves: one of them would have it when the server starts again.

    No other process that runs tests is given the same one, whether somebody listens there yet or not:
    one test's server would answer the clients of the other's."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        mark = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.socket() as probe:
            mark.bind(f"\0ingot-test-port-{port}")
            probe.bind(("", port))
            _ports_taken.append(mark)
            return port


class ServerError(Exception):
    """The server did not start, or stopped when it should not have."""


class Server:
    """One server process. Not thread-safe; its clients are independent of it."""

    def __init__(self, binary, options, *, conf=None, directory=None, name=None):
        """options: directive -> value (a list gives several arguments); conf: a config file."""
        self.binary = binary
        self.options = {key: value for key, value in options.items() if value is not None}
        self.conf = conf
        self.name = name or os.path.basename(binary)
        self.host = "127.0.0.1"
        self.port = None
        self.process = None
        self._own_directory = directory is None
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="ingot-test-"))
        self.log_path = self.directory / "server.log"

    @classmethod
    def ingot(cls, engine="rocksdb", options=None, **keywords):
        """An Ingot of 64 MB; `options` adds directives, None as a value takes one away."""
        given = {"engine": engine, "maxmemory": "64mb", "enable-debug-command": "yes"}
        given |= options or {}
        if self_check():
            given["save"] = given.get("save", "")
            given = {k: v for k, v in given.items() if k not in INGOT_ONLY_OPTIONS}
            given.pop("maxmemory", None)
        return cls(ingot_binary(), given, name=f"ingot ({engine})", **keywords)

    @classmethod
    def redis(cls, options=None, **keywords):
        """The oracle: Redis without snapshots."""
        given = {"save": "", "enable-debug-command": "yes"} | (options or {})
        return cls("redis-server", given, name="redis", **keywords)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        self.remove()

    def command_line(self):
        line = [self.binary] + ([str(self.conf)] if self.conf else [])
        line += ["--port", str(self.port), "--dir", str(self.directory)]
        for directive, value in self.options.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            line += [f"--{directive}", *map(str, values)]
        return line

    def start(self):
        """Starts the server (on the port it had before, if any) and waits until it answers."""
        if shutil.which(self.binary) is None:
            raise ServerError(f"{self.binary}: no such program; build it or set INGOT_SERVER")
        for attempt in range(3):
            if self.port is None or attempt > 0:
                self.port = free_port()
            with open(self.log_path, "ab") as log:
                self.process = subprocess.Popen(
                    self.command_line(), stdout=log, stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL, cwd=self.directory, start_new_session=True,
                )  # fmt: skip
            try:
                self.wait_ready()
                return self
            except ServerError:
                # Somebody else may have taken the port between the probe and the bind.
                if attempt == 2 or "Address already in use" not in self.log_tail():
                    raise
        raise AssertionError("unreachable")

    def wait_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise ServerError(f"{self.name} exited with {self.process.returncode}"
                                  f"\n{self.log_tail()}")  # fmt: skip
            if self.answers():
                return
            time.sleep(0.01)
        self.kill()
        raise ServerError(f"{self.name} did not answer in {START_SECONDS} s\n{self.log_tail()}")

    def answers(self):
        """Whether PING gets PONG (or NOAUTH, from a server with a password) right now."""
        try:
            with Client(self.port, self.host, timeout=2.0) as client:
                reply = client.call("PING")
        except Exception:
            return False
        return reply == ("simple", b"PONG") or (reply.is_error() and b"NOAUTH" in reply.value)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def client(self, protocol=2, timeout=10.0):
        return Client(self.port, self.host, protocol=protocol, timeout=timeout)

    def signal(self, number):
        """Sends a signal; of SIGSTOP each thread has taken notice."""
        self.process.send_signal(number)
        deadline = time.monotonic() + STOP_SECONDS
        # One thread hears of it first, maybe late on a busy machine, and the others run on until then.
        while number == signal.SIGSTOP and not self._is_stopped():
            assert time.monotonic() < deadline, "the process does not stop"
            time.sleep(0.001)

    def _is_stopped(self):
        states = []
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{self.process.pid}/task/{task}/stat") as stat:
                states.append(stat.read().rpartition(")")[2].split()[0])
        return all(state == "T" for state in states)

    def wait(self, timeout=STOP_SECONDS):
        """Waits for the process to end; its exit code."""
        return self.process.wait(timeout)

    def kill(self):
        """kill -9."""
        if self.alive():
            self.process.kill()
        if self.process is not None:
            self.process.wait()

    def stop(self):
        """SIGTERM; kill -9 when that does not help. Returns the exit code, None if never started."""
        if self.process is None:
            return None
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.returncode

    def restart(self, *, kill=False):
        """Stops (or kills) and starts again on the same directory and port."""
        self.kill() if kill else self.stop()
        return self.start()

    def remove(self):
        """Deletes the temporary directory of a stopped server; fails if a sanitizer reported anything."""
        report = self.sanitizer_report()
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)
        if report:
            raise ServerError(f"a sanitizer's report on {self.name}:\n{report}")

    def sanitizer_report(self):
        """What a sanitizer had to say, of any process since the first start; "" for nothing."""
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        first = next((i for i, line in enumerate(lines) if SANITIZER_REPORT.search(line)), len(lines))
        return "\n".join(lines[first : first + REPORT_LINES])

    def threads(self):
        """What each of its threads waits for, for those who find the server silent."""
        lines = []
        for task in sorted(pathlib.Path(f"/proc/{self.process.pid}/task").glob("*")):
            with contextlib.suppress(OSError):
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                name, waits = ((task / file).read_text().strip() for file in ("comm", "wchan"))
                lines.append(f"    {name}: {fields[0]} {waits}, {fields[11]}+{fields[12]} ticks")
        return "\n".join(lines)

    def log_tail(self):
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except OSError:
            return "(no log)"
        report = self.sanitizer_report()
        return (f"--- end of {self.name}'s log ---\n" + "\n".join(lines[-LOG_TAIL_LINES:])
                + (f"\n--- a sanitizer's report ---\n{report}" if report else ""))  # fmt: skip
