#!/usr/bin/python3
"""Collections of millions: what one element costs next to a collection of a hundred, what memory and
whole replies take, how a queue holds its speed, and how the space of what is dropped comes back.

One client, one request at a time: the figures are latencies as a client sees them.
"""

import random
import socket
import time

import arguments
import beside
import common
import devices
from common import MB, median, thousands

SMALL = 100
BATCH = 200
PIPELINE = 20
VALUE = "x" * 40


def member(number):
    return f"member:{number:012d}"


# type -> (command that adds, the words of element i, command that counts, command that reads all)
TYPES = {
    "hash": ("HSET", lambda i: (member(i), VALUE), "HLEN", ("HGETALL",)),
    "set": ("SADD", lambda i: (member(i),), "SCARD", ("SMEMBERS",)),
    "list": ("RPUSH", lambda i: (member(i),), "LLEN", ("LRANGE", 0, -1)),
    "zset": ("ZADD", lambda i: (i * 7919 % 10_000_019, member(i)), "ZCARD", ("ZRANGE", 0, -1)),
}

# name, type, the words of one request behind the key; n is how many elements there are
REQUESTS = [
    ("HGET", "hash", lambda n, r: (member(r.randrange(n)),)),
    ("HSET", "hash", lambda n, r: (member(r.randrange(n)), VALUE)),
    ("HRANDFIELD", "hash", lambda n, r: ()),
    ("SISMEMBER", "set", lambda n, r: (member(r.randrange(2 * n)),)),
    ("SADD", "set", lambda n, r: (member(r.randrange(n)),)),
    ("SRANDMEMBER", "set", lambda n, r: ()),
    ("LINDEX", "list", lambda n, r: (r.randrange(n),)),
    ("LSET", "list", lambda n, r: (r.randrange(n), VALUE)),
    ("RPOPLPUSH", "list", lambda n, r: ("list:small" if n == SMALL else "list:large",)),
    ("ZSCORE", "zset", lambda n, r: (member(r.randrange(n)),)),
    ("ZADD", "zset", lambda n, r: (r.randrange(10_000_000), member(r.randrange(n)))),
    ("ZRANK", "zset", lambda n, r: (member(r.randrange(n)),)),
    ("ZRANGE", "zset", lambda n, r: ((first := r.randrange(n)), first)),
    ("ZCOUNT", "zset", lambda n, r: (r.randrange(5_000_000), "+inf")),
    ("ZPOPMIN", "zset", lambda n, r: ()),
]


def fill(client, kind, key, count):
    add, words, _, _ = TYPES[kind]
    for begin in range(0, count, BATCH * PIPELINE):
        with client.pipeline(transaction=False) as pipeline:
            for first in range(begin, min(count, begin + BATCH * PIPELINE), BATCH):
                line = [word for i in range(first, min(count, first + BATCH)) for word in words(i)]
                pipeline.execute_command(add, key, *line)
            pipeline.execute()


def latencies(client, request, key, count, requests):
    name, _, words = request
    chance = random.Random(count)
    took = []
    for _ in range(requests):
        line = words(count, chance)
        start = time.perf_counter()
        client.execute_command(name, key, *line)
        took.append((time.perf_counter() - start) * 1e6)
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100]


def fill_all(server, args):
    rows, result = [], {}
    for kind, (_, _, count_command, _) in TYPES.items():
        fill(server.client, kind, f"{kind}:small", SMALL)
        start = time.monotonic()
        fill(server.client, kind, f"{kind}:large", args.elements)
        seconds = time.monotonic() - start
        if server.client.execute_command(count_command, f"{kind}:large") != args.elements:
            raise SystemExit(f"{count_command} is wrong")
        result[kind] = args.elements / seconds
        rows.append([kind, thousands(args.elements / seconds), f"{server.disk_bytes() / MB:,.0f} MB",
                     f"{server.peak_memory() / MB:.0f} MB"])  # fmt: skip
    common.table(["filled with 200 elements a command", "elements/s", "disk so far", "peak memory"], rows)
    return result


def single_elements(server, args):
    rows, result = [], {}
    for request in REQUESTS:
        name, kind, _ = request
        small = latencies(server.client, request, f"{kind}:small", SMALL, min(args.requests, 60 if name == "ZPOPMIN" else 10**9))
        large = latencies(server.client, request, f"{kind}:large", args.elements, args.requests)
        result[name] = {"small": small, "large": large}
        rows.append([name, *(f"{value:.0f}" for value in (*small, *large)), f"{large[0] / small[0]:.2f}"])
    common.table(["microseconds", f"p50 of {SMALL}", "p99", f"p50 of {args.elements:,}", "p99", "p50 ratio"], rows)
    return result


def read_all(server, kind):
    """Reads a whole collection through a socket, keeping nothing; its bytes and seconds."""
    command = [str(word).encode() for word in (TYPES[kind][3][0], f"{kind}:large", *TYPES[kind][3][1:])]
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in command)
        start = time.monotonic()
        connection.sendall(b"*%d\r\n" % len(command) + head + b"*1\r\n$4\r\nPING\r\n")
        total, tail = 0, b""
        while not tail.endswith(b"+PONG\r\n"):
            data = connection.recv(1 << 18)
            if not data:
                raise ConnectionError(f"{TYPES[kind][3][0]}: the server hung up")
            total += len(data)
            tail = (tail + data)[-7:]
        return total, time.monotonic() - start


def whole_replies(server):
    rows, result = [], {}
    for kind, (_, _, _, words) in TYPES.items():
        size, seconds = read_all(server, kind)
        result[kind] = size / seconds
        rows.append([words[0], f"{size / MB:.0f} MB", f"{size / MB / seconds:.0f} MB/s",
                     f"{server.peak_memory() / MB:.0f} MB"])  # fmt: skip
    common.table(["whole reply", "size", "rate", "peak memory"], rows)
    return result


def pushed_and_popped(server, key, seconds):
    """LPUSH and RPOP in pipelines of 200 for so long: commands a second."""
    start, done = time.monotonic(), 0
    while (took := time.monotonic() - start) < seconds:
        with server.client.pipeline(transaction=False) as pipeline:
            for _ in range(100):
                pipeline.execute_command("LPUSH", key, VALUE)
                pipeline.execute_command("RPOP", key)
            pipeline.execute()
        done += 200
    return done / took


def queue(server, args):
    """A queue of many elements, pushed and popped: the rate in slices of time, against that of a new
    queue of a few elements in the same slice, because the machine does not keep its speed either."""
    rates, ratios = [], []
    for index in range(10):
        small = f"queue:{index}"
        server.client.rpush(small, *[VALUE] * SMALL)
        rates.append(pushed_and_popped(server, "list:large", args.queue_seconds * 0.08))
        ratios.append(rates[-1] / pushed_and_popped(server, small, args.queue_seconds * 0.02))
    print(f"\nLPUSH and RPOP on {args.elements:,} elements for {args.queue_seconds:g} s, a pipeline of 200: "
          f"{thousands(median(rates))} commands/s; last tenth / first {rates[-1] / rates[0]:.2f}; "
          f"against a new queue of {SMALL}: first tenth {ratios[0]:.2f}, last {ratios[-1]:.2f}")  # fmt: skip
    return {"rates": rates, "to_new_queue": ratios}


def drop(server, args):
    """Drops everything and waits for the space, while another client reads and writes."""
    before, took = server.disk_bytes(), []
    dropped = 2 * args.elements
    for kind in ("hash", "set"):  # 10 million elements in the full run
        server.client.execute_command("DEL", f"{kind}:large")
    start = time.monotonic()

    def others(ended):
        client = common.redis.Redis(port=server.port)
        while not ended.is_set():
            for words in (("SET", "beside", "x"), ("GET", "beside"), ("ZSCORE", "zset:large", member(5))):
                begin = time.perf_counter()
                client.execute_command(*words)
                took.append((time.perf_counter() - begin) * 1000)

    with beside.Beside(others) as client:
        smallest, settled = before, start
        while time.monotonic() - start < 600 and time.monotonic() - settled < 20:
            time.sleep(0.2)
            client.check()
            if server.disk_bytes() < smallest - MB:
                smallest, settled = min(smallest, server.disk_bytes()), time.monotonic()
    took.sort()
    print(f"\nDEL of {dropped:,} elements: {before / MB:,.0f} MB on disk became {smallest / MB:,.0f} MB within "
          f"{settled - start:.0f} s; GET, SET and ZSCORE meanwhile: p50 {took[len(took) // 2]:.2f} ms, "
          f"p99 {took[len(took) * 99 // 100]:.2f} ms, at most {took[-1]:.0f} ms")  # fmt: skip
    return {"before": before, "after": smallest, "seconds": settled - start, "p99_ms": took[len(took) * 99 // 100]}


def run(args):
    devices.check_room(args.dir, args.elements * len(TYPES) * len(member(0)))
    common.title(f"Collections of {args.elements:,} elements, maxmemory {args.maxmemory / MB:,.0f} MB")
    with common.ingot(args, {"maxmemory": args.maxmemory}) as server:
        result = {"fill": fill_all(server, args)}
        server.wait_until_quiet()
        result["single"] = single_elements(server, args)
        result["whole"] = whole_replies(server)
        result["queue"] = queue(server, args)
        result["drop"] = drop(server, args)
        result["memory"] = server.peak_memory() / args.maxmemory
        print(f"peak memory {server.peak_memory() / MB:.0f} MB = {result['memory']:.2f} of maxmemory")
        common.print_load()
    return result


def parse(words=None):
    parser = arguments.options(__doc__)
    parser.add_argument("--elements", type=arguments.whole_within(SMALL, 10**9),
                        help="of each large collection: 5,000,000; 200,000 when quick")  # fmt: skip
    parser.add_argument("--requests", type=arguments.whole_within(1, 10**7), help="of each kind: 20,000; 2,000 when quick")
    arguments.add_maxmemory(parser, "256mb")
    parser.add_argument("--queue-seconds", type=arguments.above_zero, help="of the queue: 60; 5 when quick")
    args = parser.parse_args(words)
    args.elements = args.elements or (200_000 if args.quick else 5_000_000)
    args.requests = args.requests or (2_000 if args.quick else 20_000)
    args.queue_seconds = args.queue_seconds or (5 if args.quick else 60)
    return args


if __name__ == "__main__":
    common.run_alone("large", run, parse())
