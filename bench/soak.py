#!/usr/bin/python3
"""Hours of everything at a constant size: does anything grow?

A store that is larger than `maxmemory` is filled once. Then each second so many random commands of every type come,
which replace, expire and delete what they add, so that there is always about as much. Every ten seconds the server's
memory, disk, handles and threads are noted, and how long single GETs and SETs took. In the end the last quarter of
the time is compared with the second one: the medians must not have grown (ALLOWED says by how much they may vary).
"""

import os
import random
import sys
import time

import arguments
import beside
import common
import report
from common import MB

SAMPLE_SECONDS = 10
SAMPLES_MIN = 8  # for two in each quarter
BATCH = 50
STRINGS, HASHES, SETS, QUEUES = 150_000, 5_000, 2_000, 200
VALUE_BYTES = 600
# What may grow by how much, in shares of itself.
ALLOWED = {
    "memory MB": 0.1, "disk MB": 0.2, "handles": 0.2, "threads": 0.1,
    "GET p50 ms": 0.5, "GET p99 ms": 0.5, "SET p50 ms": 0.5, "SET p99 ms": 0.5,
}  # fmt: skip


class Load:
    """Random commands whose effects stay within a constant size."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._serial = 0

    def fill(self):
        """Everything that is there in the beginning, command by command."""
        rng = self._random
        for number in range(STRINGS):
            yield "SET", f"s:{number}", rng.randbytes(VALUE_BYTES)
        for number in range(HASHES):
            fields = [word for i in range(40) for word in (f"f{i}", rng.randbytes(100))]
            yield "HSET", f"h:{number}", *fields
        for number in range(QUEUES):
            yield "RPUSH", f"q:{number}", *(rng.randbytes(100) for _ in range(500))
        for number in range(SETS):
            yield "SADD", f"m:{number}", *(f"member:{i:020d}" for i in range(0, 400, 2))
            yield "ZADD", f"z:{number}", *(word for i in range(200) for word in (i, f"member:{i:020d}"))

    def commands(self):
        """A turn of some commands, of each type."""
        rng = self._random
        self._serial += 1
        string, session = f"s:{rng.randrange(STRINGS)}", f"session:{self._serial}"
        queue, fields = f"q:{rng.randrange(QUEUES)}", f"h:{rng.randrange(HASHES)}"
        small, order = f"m:{rng.randrange(SETS)}", f"z:{rng.randrange(SETS)}"
        yield "SET", string, rng.randbytes(VALUE_BYTES)
        yield "GET", f"s:{rng.randrange(STRINGS)}"
        yield "HSET", session, "user", rng.randbytes(50), "cart", rng.randbytes(300)
        yield "EXPIRE", session, rng.randrange(1, 120)
        yield "INCR", f"counter:{rng.randrange(1000)}"
        yield "HSET", fields, f"f{rng.randrange(40)}", rng.randbytes(100)
        yield "HGETALL", fields
        yield "RPUSH", queue, rng.randbytes(100)
        yield "LPOP", queue
        yield "SADD" if rng.random() < 0.5 else "SREM", small, f"member:{rng.randrange(400):020d}"
        yield "SISMEMBER", small, f"member:{rng.randrange(400):020d}"
        yield "ZADD", order, rng.randrange(10_000), f"member:{rng.randrange(200):020d}"
        yield "ZRANGE", order, 0, 10
        yield "XADD", f"x:{rng.randrange(100)}", "MAXLEN", "~", 1000, "*", "event", rng.randbytes(60)
        if self._serial % 20 == 0:  # a large collection dies, and one as large takes its place
            yield "DEL", fields
            yield "HSET", fields, *(word for i in range(40) for word in (f"f{i}", rng.randbytes(100)))


def work(server, rate, ended):
    load = Load(2)
    with common.redis.Redis(port=server.port, socket_timeout=120) as client:
        due = time.monotonic()
        while not ended.is_set():
            commands = []
            while len(commands) < BATCH:
                commands += load.commands()
            with client.pipeline(transaction=load._serial % 10 == 0) as pipeline:
                for words in commands:
                    pipeline.execute_command(*words)
                pipeline.execute()
            due = max(due + len(commands) / rate, time.monotonic() - 1)
            ended.wait(max(0.0, due - time.monotonic()))


def measure(server, seconds):
    """What single GETs and SETs take for some seconds: {"GET p50 ms": ...}"""
    times = {"GET": [], "SET": []}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, words in (("GET", ()), ("SET", (b"x" * 100,))):
            start = time.monotonic()
            server.client.execute_command(name, "probe", *words)
            times[name].append((time.monotonic() - start) * 1000)
        time.sleep(0.02)
    found = {}
    for name, took in times.items():
        took.sort()
        found |= {f"{name} p50 ms": took[len(took) // 2], f"{name} p99 ms": took[len(took) * 99 // 100]}
    return found


def sample(server):
    status = f"/proc/{server.pid}/status"
    return {
        "memory MB": int(common.proc_value(status, "VmRSS").split()[0]) / 1024,
        "disk MB": server.disk_bytes() / MB,
        "handles": len(os.listdir(f"/proc/{server.pid}/fd")),
        "threads": int(common.proc_value(status, "Threads")),
        "keys": server.client.dbsize(),
        "waiting to be reclaimed": server.client.info("everything")["garbage_pending"],
    }


def verdict(samples):
    """Name -> (median of the second quarter, of the last, whether that is still the same)."""
    quarter = len(samples) // 4
    found = {}
    for name, share in ALLOWED.items():
        before = common.median(each[name] for each in samples[quarter : 2 * quarter])
        after = common.median(each[name] for each in samples[-quarter:])
        found[name] = (before, after, after <= before * (1 + share))
    return found


def draw(samples, path):
    pyplot = report.pyplot()
    names = [name for name in samples[0] if name != "minutes"]
    figure, axes = pyplot.subplots(len(names), 1, sharex=True, figsize=(8, 1.5 * len(names)))
    for name, axis in zip(names, axes):
        axis.plot([each["minutes"] for each in samples], [each[name] for each in samples], linewidth=0.8)
        axis.set_title(name, fontsize=8, loc="left")
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=7)
    axes[-1].set_xlabel("minutes", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, format="svg")


def run(args):
    seconds = args.minutes * 60
    settings = {"maxmemory": args.memory, "engine": args.engine, "appendfsync": "everysec"}
    samples = []
    with common.ingot(args, settings) as server:
        with server.client.pipeline(transaction=False) as pipeline:
            for number, words in enumerate(Load(1).fill()):
                pipeline.execute_command(*words)
                if number % 500 == 499:
                    pipeline.execute()
            pipeline.execute()
        with beside.Beside(lambda ended: work(server, args.rate, ended)) as load:
            start = time.monotonic()
            while time.monotonic() < start + seconds:
                found = measure(server, SAMPLE_SECONDS)
                load.check()
                samples.append({"minutes": (time.monotonic() - start) / 60} | sample(server) | found)
    if len(samples) < SAMPLES_MIN:
        sys.exit(f"{len(samples)} samples were all in {seconds:g} s, and {SAMPLES_MIN} are needed: give more --minutes")
    results = verdict(samples)
    rows = [(name, f"{a:.2f}", f"{b:.2f}", "" if same else "GROWN") for name, (a, b, same) in results.items()]
    common.table(("", "second quarter", "last quarter", ""), rows)
    common.print_load()
    if args.plot:
        try:
            draw(samples, args.plot)
        except OSError as error:  # the figures are worth more
            print(f"there is no drawing: {error}", file=sys.stderr)
    return {"seconds": seconds, "rate": args.rate, "engine": args.engine, "samples": samples, "verdict": results}


def main():
    parser = arguments.options(__doc__)
    least = SAMPLES_MIN * SAMPLE_SECONDS / 60
    parser.add_argument("--minutes", type=arguments.number_within(round(least, 3), 1e6),
                        help=f"of the load: 120; 2 when quick; {least:.2f} at least")  # fmt: skip
    parser.add_argument("--rate", type=arguments.whole_within(1, 10**6), default=5000, help="commands a second (5000)")
    parser.add_argument("--memory", type=arguments.parse_bytes, default=64 * MB, help="maxmemory (64mb)")
    arguments.add_engine(parser)
    parser.add_argument("--plot", metavar="FILE", type=arguments.writable,
                        help="draw the samples there, as SVG (nowhere)")  # fmt: skip
    args = parser.parse_args()
    args.minutes = args.minutes or (2 if args.quick else 120)
    if args.plot:
        report.pyplot()  # without it there is no run
    common.run_alone("soak", run, args)


if __name__ == "__main__":
    main()
