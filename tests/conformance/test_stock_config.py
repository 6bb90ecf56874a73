"""Debian's stock redis.conf of 7.0 starts Ingot as it starts Redis, and CONFIG GET knows all of it.

Only dir, port, logfile and pidfile are given on the command line. The file says `daemonize yes`, so
the servers run as daemons here and are found by their pid file.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from support.resp import Client
from support.servers import free_port, ingot_binary, self_check

STOCK = pathlib.Path("/etc/redis/redis.conf")
GIVEN = ("dir", "port", "logfile", "pidfile")
START_SECONDS = 20
# What a commented line of the file shows as an example is not a directive's own value.
EXAMPLE = re.compile(r"^# ?([a-z][a-z0-9-]+)( |$)")


class Daemon:
    """A server started from the stock file, in the background as the file says."""

    def __init__(self, binary, more=()):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="ingot-stock-"))
        self.port = free_port()
        self.pidfile = self.directory / "server.pid"
        self.log = self.directory / "server.log"
        line = [binary, str(STOCK), "--dir", str(self.directory), "--port", str(self.port)]
        line += ["--logfile", str(self.log), "--pidfile", str(self.pidfile), *more]
        done = subprocess.run(line, capture_output=True, text=True, timeout=START_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr + self.log_text()
        self.client = self._connect()

    def _connect(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return Client(self.port)
            except OSError:
                assert time.monotonic() < deadline, "no answer\n" + self.log_text()
                time.sleep(0.02)

    def log_text(self):
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else "(no log)"

    def config(self, name):
        reply = self.client.call("CONFIG", "GET", name)
        return reply.value[1].text() if reply.value else None

    def stop(self):
        self.client.close()
        pid = int(self.pidfile.read_text())
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + START_SECONDS
        while pathlib.Path(f"/proc/{pid}/stat").exists() and time.monotonic() < deadline:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                break
            time.sleep(0.02)
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture(scope="module")
def daemons(engine):
    if not os.access(STOCK, os.R_OK):
        pytest.skip(f"{STOCK} is not there or cannot be read")
    more = () if self_check() else ("--engine", engine)
    redis, other = Daemon("redis-server"), None
    try:
        other = Daemon(ingot_binary(), more)
        yield redis, other
    finally:
        redis.stop()
        if other is not None:
            other.stop()


def active_directives():
    lines = STOCK.read_text().splitlines() if os.access(STOCK, os.R_OK) else []
    names = {line.split()[0].lower() for line in lines if line.strip() and not line.startswith("#")}
    return sorted(names)


def test_it_starts_and_serves(daemons):
    for daemon in daemons:
        assert daemon.client.call("SET", "k", "v").value == b"OK"
        assert daemon.client.call("GET", "k").value == b"v"


@pytest.mark.parametrize("name", active_directives())
def test_active_directive_is_answered(daemons, name):
    redis, other = (daemon.config(name) for daemon in daemons)
    assert other is not None, "CONFIG GET knows nothing of it"
    if name not in GIVEN:
        assert other == redis


def test_commented_directives_are_answered(daemons):
    redis, other = daemons
    matches = filter(None, map(EXAMPLE.match, STOCK.read_text().splitlines()))
    known = {match[1] for match in matches if redis.config(match[1]) is not None}
    unanswered = sorted(name for name in known if other.config(name) is None)
    assert not unanswered
