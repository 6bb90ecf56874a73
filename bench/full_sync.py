#!/usr/bin/python3
"""How fast does a new replica get all of the data, and what does that cost the master's clients?

    bench/full_sync.py                       the shapes of rdb_load.py, 1 M elements each
    bench/full_sync.py --elements 5000000 --shape "one hash"

Each pair is a master that has loaded the same dump.rdb and an empty replica: "ingot>redis" is an Ingot
that a redis-server follows. The seconds go from REPLICAOF to a link that is up; the latency is that of
one client at the master, SET and GET in turn, meanwhile. Everything runs on this machine, so both
share its processors.
"""

import contextlib
import json
import os
import shutil
import statistics
import tempfile
import threading
import time

from common import MB
from rdb_load import SHAPES, Running, parse_options, port_of, write_dump

PAIRS = ["redis>redis", "redis>ingot", "ingot>redis", "ingot>ingot"]


class Neighbour(threading.Thread):
    """A client of the master, and how long it waits."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.waits, self.ended = client, [], threading.Event()

    def run(self):
        while not self.ended.is_set():
            for words in (("SET", "neighbour", "x"), ("GET", "neighbour")):
                begun = time.perf_counter()
                self.client.execute_command(*words)
                self.waits.append(time.perf_counter() - begun)

    def stop(self):
        self.ended.set()
        self.join()
        return {"p99": statistics.quantiles(self.waits, n=100)[-1] * 1e3, "max": max(self.waits) * 1e3}


@contextlib.contextmanager
def running(command, base, port, dump=None):
    directory = tempfile.mkdtemp(dir=base)
    if dump:
        os.link(dump, os.path.join(directory, "dump.rdb"))
    server = Running(command, directory, port)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)


def sync(pair, commands, base, dump):
    """The seconds of one full sync, and the milliseconds that the neighbour waited."""
    first, second = pair.split(">")
    with running(commands[first], base, port_of(0), dump) as master, running(commands[second], base, port_of(1)) as replica:
        neighbour = Neighbour(master.client)
        neighbour.start()
        begun = time.monotonic()
        replica.client.execute_command("REPLICAOF", "127.0.0.1", master.port)
        while replica.client.info("replication")["master_link_status"] != "up":
            time.sleep(0.01)
        seconds = time.monotonic() - begun
        return seconds, neighbour.stop()


def main():
    options = parse_options(__doc__, "syncs of each pair, in turn; the median counts")
    commands = {"redis": ["redis-server", "--save", "", "--repl-diskless-sync-delay", "0"],
                "ingot": [options.server, "--engine", options.engine]}  # fmt: skip
    results = []
    print(f"{'seconds (ms: p99, max)':24}{'MB':>8}" + "".join(f"{pair:>26}" for pair in PAIRS))
    base = tempfile.mkdtemp(prefix="full-sync-", dir=options.dir)
    try:
        for shape in options.shape or SHAPES:
            size = write_dump(shape, options.elements, base)
            dump = os.path.join(base, "dump.rdb")
            figures = {pair: [] for pair in PAIRS}
            for _ in range(options.rounds):
                for pair in PAIRS:
                    figures[pair].append(sync(pair, commands, base, dump))
            line = f"{shape:24}{size / MB:8.1f}"
            for pair in PAIRS:
                median = statistics.median(seconds for seconds, _ in figures[pair])
                p99, most = (statistics.median(waits[name] for _, waits in figures[pair]) for name in ("p99", "max"))
                line += f"{median:10.2f} ({p99:6.1f},{most:6.0f})"
            print(line, flush=True)
            results.append({"shape": shape, "bytes": size, "syncs": figures})
            os.remove(dump)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
