#!/usr/bin/python3
"""How fast does a new replica get all of the data, and what does that cost the master's clients?

    bench/full_sync.py                       the shapes of rdb_load.py, 1 M elements each
    bench/full_sync.py --elements 5000000 --shape "one hash"

Each pair is a master that has loaded the same dump.rdb and an empty replica: "ingot>redis" is an Ingot
that a redis-server follows. The seconds go from REPLICAOF to a link that is up; the latency is that of
one client at the master, SET and GET in turn, meanwhile. Everything runs on this machine, so both
share its processors.
"""

import os
import statistics
import tempfile
import time

import beside
import common
from common import MB, median
from rdb_load import SHAPES, loading, parse, servers_of, write_dump

PAIRS = ["redis>redis", "redis>ingot", "ingot>redis", "ingot>ingot"]


class Neighbour(beside.Beside):
    """A client of the master, and how long it waits."""

    def __init__(self, client):
        super().__init__(self._send)
        self._client, self._waits = client, []

    def _send(self, ended):
        while not ended.is_set():
            for words in (("SET", "neighbour", "x"), ("GET", "neighbour")):
                begun = time.perf_counter()
                self._client.execute_command(*words)
                self._waits.append(time.perf_counter() - begun)

    def waits(self):
        return {"p99": statistics.quantiles(self._waits, n=100)[-1] * 1e3, "max": max(self._waits) * 1e3}


def sync(pair, servers, base, dump):
    """The seconds of one full sync, and the milliseconds that the neighbour waited."""
    first, second = pair.split(">")
    with loading(first, servers, base, dump) as master, loading(second, servers, base) as replica:
        with Neighbour(master.client) as neighbour:
            begun = time.monotonic()
            replica.client.execute_command("REPLICAOF", "127.0.0.1", master.port)
            while replica.client.info("replication")["master_link_status"] != "up":
                time.sleep(0.01)
                neighbour.check()
            seconds = time.monotonic() - begun
        return seconds, neighbour.waits()


def run(args):
    servers = servers_of(args, **{"repl-diskless-sync-delay": "0"})
    results = []
    print(f"{'seconds (ms: p99, max)':24}{'MB':>8}" + "".join(f"{pair:>26}" for pair in PAIRS))
    with tempfile.TemporaryDirectory(prefix="full-sync-", dir=args.dir) as base:
        for shape in args.shape or SHAPES:
            dump = write_dump(shape, args, base)
            size = os.path.getsize(dump)
            figures = {pair: [] for pair in PAIRS}
            for _ in range(args.rounds):
                for pair in PAIRS:
                    figures[pair].append(sync(pair, servers, base, dump))
            os.remove(dump)
            line = f"{shape:24}{size / MB:8.1f}"
            for pair in PAIRS:
                seconds = median(seconds for seconds, _ in figures[pair])
                p99, most = (median(waits[name] for _, waits in figures[pair]) for name in ("p99", "max"))
                line += f"{seconds:10.2f} ({p99:6.1f},{most:6.0f})"
            print(line, flush=True)
            results.append({"shape": shape, "bytes": size, "syncs": figures})
    return results


if __name__ == "__main__":
    common.run_alone("full_sync", run, parse(__doc__, "syncs of each pair, in turn; the median counts"))
