#!/usr/bin/python3
"""More than a server is meant for: very many connections, a keyspace read by one command, the removal of huge collections.

What is asked each time: do others wait, does the memory stay within its bound, is the server still there? For each
scene the longest and the usual wait of a neighbour is shown, who sends one SET and one GET after the other, and
the peak of the server's memory beside `maxmemory`.
"""

import argparse
import contextlib
import itertools
import resource
import selectors
import socket
import sys
import time

import arguments
import beside
import common
from common import MB

PIPELINE_BYTES = 1 << 20
PER_COMMAND = 500  # elements


class Neighbour(beside.Beside):
    """Sends single commands and notes how long each took."""

    def __init__(self, server):
        super().__init__(self._send)
        self._port = server.port
        self._times = {"SET": [], "GET": []}

    def _send(self, ended):
        with common.redis.Redis(port=self._port, socket_timeout=600) as client:
            for number in itertools.count():
                if ended.is_set():
                    return
                for name, words in (("SET", (b"%d" % number,)), ("GET", ())):
                    start = time.monotonic()
                    client.execute_command(name, "neighbour", *words)
                    self._times[name].append((time.monotonic() - start) * 1000)
                time.sleep(0.001)

    def waits(self):
        found = {}
        for name, times in self._times.items():
            ordered = sorted(times)
            found |= {f"{name} p50": ordered[len(ordered) // 2], f"{name} p99": ordered[len(ordered) * 99 // 100],
                      f"{name} max": ordered[-1]}  # fmt: skip
        return found


def encode(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def send_all(server, commands, reply_lines=1):
    """A pipeline without end; each reply has so many lines."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        sent = 0

        def drain(lines):
            while lines > 0:
                data = connection.recv(1 << 20)
                if not data:
                    raise ConnectionError("the server hung up")
                if data.startswith(b"-"):
                    sys.exit(f"refused: {data[:200]!r}")
                lines -= data.count(b"\r\n")
            return lines

        waiting, ahead, buffer = 0, 0, []
        for command in commands:
            buffer.append(command)
            sent += len(command)
            if sent < PIPELINE_BYTES:
                continue
            connection.sendall(b"".join(buffer))
            ahead = drain(waiting + ahead)
            waiting, sent, buffer = reply_lines * len(buffer), 0, []
        connection.sendall(b"".join(buffer))
        drain(waiting + ahead + reply_lines * len(buffer))


def discard_reply(server, *words, idle=600):
    """Sends one command and throws away what comes, until an ECHO behind it is answered; its bytes and seconds."""
    end = b"end-of-replies"
    mark = b"$%d\r\n%s\r\n" % (len(end), end)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(idle)
        start = time.monotonic()
        connection.sendall(encode(*words) + encode(b"ECHO", end))
        total, tail, head = 0, b"", b""
        while not tail.endswith(mark):
            data = connection.recv(1 << 20)
            if not data:
                raise ConnectionError(f"{words[0].decode()}: the server hung up")
            head = head or data[:80]
            total += len(data)
            tail = (tail + data)[-len(mark):]  # fmt: skip
        if head.startswith(b"-"):
            sys.exit(f"{words[0]}: {head!r}")
        return total, time.monotonic() - start


def reset_peak(server):
    with open(f"/proc/{server.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def scene(server, name, work, *arguments):
    """Calls `work` with these arguments beside a neighbour; a row of the table."""
    reset_peak(server)
    with Neighbour(server) as neighbour:
        time.sleep(0.5)
        start = time.monotonic()
        work(*arguments)
        seconds = time.monotonic() - start
        time.sleep(0.2)
    row = {"scene": name, "seconds": seconds} | neighbour.waits() | {"peak MB": server.peak_memory() / MB}
    print(f"  {name}: {seconds:.1f} s, longest SET {row['SET max']:.0f} ms", flush=True)
    return row


# ------------------------------------------------------------------ connections


def connections(server, count):
    """Opens so many, each of which sends a PING and stays; then a tenth of them send commands."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(count, hard - 500)
    opened = []

    def open_all():
        for number in range(count):
            # An address has some 28,000 ports to connect from.
            source = (f"127.0.0.{1 + number // 10_000}", 0)
            opened.append(socket.create_connection(("127.0.0.1", server.port), source_address=source))
            opened[-1].sendall(b"PING\r\n")
        for each in opened:
            if each.recv(100) != b"+PONG\r\n":
                sys.exit("a connection was not answered")

    def talk(rounds=20):
        active = opened[::10]
        poll = selectors.DefaultSelector()
        left = len(active) * rounds
        for number, each in enumerate(active):
            each.sendall(encode(b"SET", b"key:%d" % number, b"v" * 100))
            poll.register(each, selectors.EVENT_READ, [rounds - 1])
        while left:
            for key, _ in poll.select():
                key.fileobj.recv(1000)
                left -= 1
                if key.data[0]:
                    key.data[0] -= 1
                    key.fileobj.sendall(encode(b"SET", b"key:%d" % key.fd, b"v" * 100))

    rows = [scene(server, f"{count} connections come", open_all)]
    rows.append(scene(server, "a tenth of them send 20 SET each", talk))
    rows.append(scene(server, "INFO, 20 times", lambda: [server.client.info() for _ in range(20)]))
    rows.append(scene(server, "CLIENT LIST", server.client.client_list))
    rows.append(scene(server, "they go", lambda: [each.close() for each in opened]))
    return rows


# ------------------------------------------------------------------ one command for the whole keyspace


def keyspace(server, count):
    per = 1000
    values = [b"x"] * per

    def fill():
        for first in range(0, count, per):
            names = (b"key:%010d" % number for number in range(first, first + per))
            yield encode(b"MSET", *itertools.chain.from_iterable(zip(names, values)))

    rows = [scene(server, f"{count} keys come", send_all, server, fill())]
    if server.client.dbsize() < count:
        sys.exit("DBSIZE is not what was sent")
    rows.append(scene(server, "KEYS *", discard_reply, server, b"KEYS", b"*"))

    def run_four():
        with contextlib.ExitStack() as four:
            for _ in range(4):
                four.enter_context(beside.Beside(lambda _: discard_reply(server, b"KEYS", b"*9")))

    rows.append(scene(server, "KEYS *9 of four clients", run_four))
    rows.append(scene(server, "FLUSHALL", server.client.flushall))
    return rows


# ------------------------------------------------------------------ removals


def name(number):
    return b"e%09d" % number


ELEMENTS = {
    b"ZADD": lambda number: (b"%d" % number, name(number)),
    b"RPUSH": lambda number: (name(number),),
    b"SADD": lambda number: (name(number),),
    b"HSET": lambda number: (name(number), b"v"),
}


def fill_collection(command, count):
    if command == b"XADD":
        for number in range(count):
            yield encode(command, b"c", b"%d-1" % (number + 1), b"f", b"v")
        return
    for first in range(0, count, PER_COMMAND):
        words = itertools.chain.from_iterable(map(ELEMENTS[command], range(first, first + PER_COMMAND)))
        yield encode(command, b"c", *words)


def removals(server, count):
    half = b"%d" % (count // 2)
    scenes = {
        b"ZADD": [(b"ZREMRANGEBYRANK", b"c", b"0", half), (b"ZPOPMAX", b"c", b"%d" % (count // 4))],
        b"RPUSH": [(b"LTRIM", b"c", b"0", half), (b"LPOP", b"c", b"%d" % (count // 4))],
        b"SADD": [(b"SPOP", b"c", half), (b"SREM", b"c", *(name(i) for i in range(count // 20)))],
        b"HSET": [(b"HDEL", b"c", *(name(i) for i in range(count // 20)))],
        b"XADD": [(b"XTRIM", b"c", b"MAXLEN", half)],
    }
    rows = []
    for command, removing in scenes.items():
        filling = fill_collection(command, count)
        reply_lines = 2 if command == b"XADD" else 1  # its reply is a bulk string
        rows.append(scene(server, f"{command.decode()} of {count}", send_all, server, filling, reply_lines))
        for words in removing:
            title = " ".join(word.decode() for word in words[:4])
            rows.append(scene(server, title, discard_reply, server, *words))
        rows.append(scene(server, "DEL", discard_reply, server, b"DEL", b"c"))
    return rows


SCENES = {"connections": (connections, 20_000), "keyspace": (keyspace, 50_000_000), "removals": (removals, 10_000_000)}


def run(args):
    results = {}
    for which in args.scenes or SCENES:
        work, count = SCENES[which]
        count = int(count * args.share)
        settings = {"maxmemory": args.memory, "engine": args.engine, "maxclients": 30_000, "maxmemory-clients": 0}
        common.title(which)
        with common.ingot(args, settings) as server:
            rows = work(server, count)
        results[which] = rows
        columns = [column for column in rows[0] if column != "scene"]
        common.table(
            ("", *columns), [(row["scene"], *(f"{row[column]:.1f}" for column in columns)) for row in rows]
        )
    return results


def scene_name(text):
    if text not in SCENES:
        raise argparse.ArgumentTypeError(f"one of {', '.join(SCENES)} is wanted and not '{text}'")
    return text


def main():
    parser = arguments.options(__doc__)
    parser.add_argument(
        "scenes", nargs="*", metavar="scene", type=scene_name, help=", ".join(SCENES) + " (all)"
    )
    parser.add_argument("--memory", type=arguments.parse_bytes, default=96 * MB, help="maxmemory (96mb)")
    arguments.add_engine(parser)
    parser.add_argument("--share", type=arguments.number_within(0.001, 1),
                        help="of the sizes that are meant: 1; 0.01 when quick")  # fmt: skip
    args = parser.parse_args()
    args.share = args.share or (0.01 if args.quick else 1)
    common.run_alone("overload", run, args)


if __name__ == "__main__":
    main()
