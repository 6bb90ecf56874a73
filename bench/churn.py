#!/usr/bin/python3
"""Sessions that come and go: how many bytes Ingot writes again to get the space of dead ones back.

A store is filled with sessions, hashes of about 2 KB that stand in records of their own. Then sessions die, at random
or the oldest first, and others are made in their place, until every session was replaced `--turns` times. Memory is
small against the data (`--ratio`), so that a store of a gigabyte behaves as one of fifty does.
"""

import random
import time

import arguments
import common
import devices
from common import MB

FIELDS = 8
FIELD_BYTES = 250
PIPELINE = 200


def session(number, rng):
    words = ["HSET", f"session:{number:012d}"]
    for field in range(FIELDS):
        words += [f"f{field}", rng.randbytes(FIELD_BYTES)]
    return words


def send(server, commands):
    with server.client.pipeline(transaction=False) as pipeline:
        for words in commands:
            pipeline.execute_command(*words)
        pipeline.execute()


def written(server):
    """What the process has given the kernel to write to files, in bytes."""
    with open(f"/proc/{server.pid}/io", encoding="ascii") as file:
        return int(dict(line.split(": ") for line in file)["wchar"])


def sessions(args):
    """How many there are at any time."""
    return args.data // (FIELDS * (FIELD_BYTES + 20))


def churn(server, args, order):
    rng = random.Random(1)
    count = sessions(args)
    alive = list(range(count))
    for first in range(0, count, PIPELINE):
        send(server, (session(number, rng) for number in alive[first : first + PIPELINE]))
    server.wait_until_quiet()
    server.client.config_resetstat()
    full, before, start = server.disk_bytes(), written(server), time.monotonic()
    made, user, largest = count, 0, full
    for step in range(int(args.turns * count) // PIPELINE):
        dying = []
        for i in range(PIPELINE):
            place = rng.randrange(count) if order == "random" else (step * PIPELINE + i) % count
            dying.append(f"session:{alive[place]:012d}")
            alive[place] = made
            made += 1
        # Some are deleted, some expire.
        half = len(dying) // 2
        commands = [("DEL", *dying[:half])] + [("PEXPIRE", key, 1) for key in dying[half:]]
        commands += [session(number, rng) for number in range(made - PIPELINE, made)]
        send(server, commands)
        user += PIPELINE * FIELDS * FIELD_BYTES
        if step % 50 == 0:
            largest = max(largest, server.disk_bytes())
    took = time.monotonic() - start
    settled, smallest = time.monotonic(), server.disk_bytes()
    while time.monotonic() - settled < 20:
        time.sleep(0.5)
        if server.disk_bytes() < smallest - MB:
            settled, smallest = time.monotonic(), server.disk_bytes()
    info = server.client.info("everything")
    rewritten, freed = info["garbage_rewritten_bytes"], info["garbage_freed_bytes"]
    result = {
        "full": full, "largest": largest, "smallest": smallest, "rewritten": rewritten, "freed": freed,
        "ratio": rewritten / freed if freed else 0, "user": user, "written": written(server) - before,
        "seconds": took, "pending": info["garbage_pending"],
    }  # fmt: skip
    print(f"{order:7} {user / MB:7.0f} MB of sessions replaced in {took:4.0f} s; on disk {full / MB:.0f} MB when full, "
          f"at most {largest / MB:.0f}, {smallest / MB:.0f} in the end; for dead data {rewritten / MB:.0f} MB written "
          f"again, {freed / MB:.0f} MB given back: {result['ratio']:.2f}; written for all {result['written'] / MB:.0f} MB, "
          f"{result['written'] / user:.1f} for each byte of the user's; {result['pending']:,} ids pending")  # fmt: skip
    return result


def run(args):
    devices.check_room(args.dir, args.data)
    common.title(f"{args.data / MB:,.0f} MB of sessions, {args.ratio} times maxmemory")
    result = {}
    for order in ("random", "oldest"):
        memory = max(32, args.data // args.ratio // MB)
        with common.ingot(args, {"maxmemory": f"{memory}mb", "engine": args.engine}) as server:
            result[order] = churn(server, args, order)
    return result


def parse(words=None):
    parser = arguments.options(__doc__)
    parser.add_argument("--data", type=arguments.parse_bytes, help="bytes of sessions: 1gb; 200mb when quick")
    parser.add_argument("--ratio", type=arguments.whole, default=16,
                        help="of the data to maxmemory, which is 32 MB at least (16)")  # fmt: skip
    parser.add_argument("--turns", type=arguments.above_zero, help="how often every session is replaced: 3; 1.5 when quick")
    arguments.add_engine(parser)
    args = parser.parse_args(words)
    args.data = args.data or (200 * MB if args.quick else 1024 * MB)
    args.turns = args.turns or (1.5 if args.quick else 3)
    if args.turns * sessions(args) < PIPELINE:
        parser.error(f"{PIPELINE} sessions at least are to be replaced: give more --data or --turns")
    return args


if __name__ == "__main__":
    common.run_alone("churn", run, parse())
