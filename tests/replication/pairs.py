"""A master and its replica, a proxy between them, random load, and how to see that both are the same."""

import contextlib
import pathlib
import random
import select
import socket
import threading
import time

import commands as strings
import type_commands as types
from support.faulty_disk import mounted
from support.resp import Client, Reply
from support.servers import Server, free_port

SECONDS = 30  # for anything that should happen
DATABASES = 4
OK = Reply("simple", b"OK")
# A master that keeps what it has over kill -9, sends its data at once, and knows much of the past.
MASTER = {"repl-diskless-sync-delay": "0", "repl-backlog-size": "1gb", "appendonly": "no"}


def eventually(condition, what, seconds=SECONDS):
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)
    return answer


def redis_master(options=None):
    return Server.redis(MASTER | (options or {}))


def replica_of(master, engine="rocksdb", options=None, port=None):
    """An Ingot that is to follow this server, or whatever listens on `port`; not started."""
    of = {"replicaof": ["127.0.0.1", str(port or master.port)], "repl-timeout": "10"}
    return Server.ingot(engine, of | (options or {}))


@contextlib.contextmanager
def on_faulty_disk(engine, tmp_path, name, options, master=None):
    """A server on a disk of its own that fails, hangs or loses its power as the test wants it, and that disk."""
    of = {"replicaof": ["127.0.0.1", str(master.port)]} if master else {}
    with mounted() as disk:
        server = Server.ingot(engine, of | options, directory=disk.folder)
        server.log_path = tmp_path / f"{name}.log"
        try:
            yield server.start(), disk
        finally:
            disk.resume()
            server.kill()


def info(client, section="replication"):
    """Its fields, as text."""
    lines = client.call("INFO", section).text().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def is_up(client):
    return info(client)["master_link_status"] == "up"


def wait_up(replica):
    with replica.client() as client:
        eventually(lambda: is_up(client), lambda: "no link\n" + replica.log_tail())


def in_step(master, replica):
    """Whether all that the master has told is applied."""
    with master.client() as one, replica.client() as other:
        told, here = info(one), info(other)
        return (here.get("master_link_status") == "up" and here["master_replid"] == told["master_replid"]
                and int(here["slave_repl_offset"]) >= int(told["master_repl_offset"]))  # fmt: skip


def wait_in_step(master, replica, seconds=SECONDS):
    eventually(lambda: in_step(master, replica), lambda: f"not in step\n{replica.log_tail()}", seconds)


def state(server):
    """The digest of everything, and the sizes of the databases."""
    with server.client(timeout=60) as client:
        sizes = []
        for database in range(DATABASES):
            client.call("SELECT", database)
            sizes.append(client.call("DBSIZE").value)
        return client.call("DEBUG", "DIGEST").value, sizes


def assert_same(master, replica):
    """Once all is told and applied, and what has expired is gone."""
    wait_in_step(master, replica)
    try:
        eventually(lambda: in_step(master, replica) and state(master) == state(replica), "")
    except AssertionError:
        raise AssertionError(differences(master, replica) + "\n" + replica.log_tail()) from None


def differences(master, replica):
    lines = [f"master {state(master)}, replica {state(replica)}"]
    with master.client(timeout=60) as one, replica.client(timeout=60) as other:
        for database in range(DATABASES):
            for client in (one, other):
                client.call("SELECT", database)
            names = [{key.value for key in client.call("KEYS", "*").value} for client in (one, other)]
            for name in sorted(names[0] | names[1]):
                digests = [client.call("DEBUG", "DIGEST-VALUE", name).value for client in (one, other)]
                times = [client.call("PEXPIRETIME", name).value for client in (one, other)]
                if digests != digests[::-1] or times != times[::-1]:
                    kinds = [client.call("TYPE", name).value for client in (one, other)]
                    lines.append(f"  {database} {name[:60]!r}: {kinds} {times} {only_on_one(name, kinds[0], one, other)}")
    return "\n".join(lines[:40])


ELEMENTS = {
    b"list": ["LRANGE", 0, -1],
    b"set": ["SMEMBERS"],
    b"zset": ["ZRANGE", 0, -1, "WITHSCORES"],
    b"hash": ["HGETALL"],
    b"stream": ["XRANGE", "-", "+"],
}


def only_on_one(name, kind, one, other):
    """What of a value only one of the two has; a list's order does not show."""
    if kind not in ELEMENTS:
        return ""
    command, *rest = ELEMENTS[kind]
    step = 2 if kind in (b"zset", b"hash") else 1
    found = []
    for client in (one, other):
        words = [repr(part.value) for part in client.call(command, name, *rest).value or []]
        found.append({tuple(words[at : at + step]) for at in range(0, len(words), step)})
    return f"only there {sorted(found[0] - found[1])[:5]}, only here {sorted(found[1] - found[0])[:5]}"


def peak_mb(server):
    """What it has had in memory at most."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


class Load:
    """Random commands over all types, with EXEC, scripts, expiry and whole databases that go.

    Each part begins where the last one ended. What a command answers is nobody's concern here, only
    that it is answered.
    """

    SCRIPTS = [
        "redis.call('set', KEYS[1], ARGV[1]) return redis.call('incr', 'scripted')",
        "redis.call('rpush', 'script:list', ARGV[1]) redis.call('del', KEYS[1])",
        "for i = 1, 20 do redis.call('sadd', 'script:set', ARGV[1] .. i) end redis.call('spop', 'script:set')",
        "redis.call('hset', 'script:hash', ARGV[1], KEYS[1]) redis.call('nosuch')",
    ]

    def __init__(self, rng, everything=True):
        self.seed = rng.randrange(1 << 30)
        self.dice = random.Random(self.seed)
        self.chances = [strings.Chance(self.seed), types.TypeChance(self.seed)]
        self.everything = everything

    def commands(self, count):
        made = []
        while len(made) < count:
            kind = self.dice.random()
            if kind < 0.45:
                made += strings.commands(self.chances[0], strings.TABLE, 20)
            elif kind < 0.9:
                made += strings.commands(self.chances[1], types.TABLE, 20)
            else:
                made += self.special()
        plain = [words for words in made if self.is_wanted(words)]
        return plain

    def is_wanted(self, words):
        if words[0] in (b"SELECT", b"SWAPDB") or self.everything:
            return True
        return words[0] not in (b"FLUSHALL", b"FLUSHDB")

    def special(self):
        dice, chance = self.dice, self.chances[0]
        key = chance.key()
        kind = dice.randrange(8)
        if kind == 0:
            return [[b"EVAL", dice.choice(self.SCRIPTS).encode(), b"1", key, b"%d" % dice.randrange(100)]]
        if kind == 1:
            return [[b"SET", b"soon%d" % dice.randrange(20), b"x", b"PX", b"%d" % dice.randint(1, 300)]]
        if kind == 2:
            return [[b"MULTI"], [b"INCR", b"in multi"], [b"SELECT", b"2"], [b"RPUSH", b"m", key], [b"SELECT", b"0"], [b"EXEC"]]
        if kind == 3:
            return [[b"SPOP", self.chances[1].of("set"), b"2"]]
        if kind == 4:
            group = b"g%d" % dice.randrange(2)
            stream = self.chances[1].of("stream")
            return [[b"XGROUP", b"CREATE", stream, group, b"0", b"MKSTREAM"],
                    [b"XREADGROUP", b"GROUP", group, b"c%d" % dice.randrange(3), b"COUNT", b"3", b"STREAMS", stream, b">"]]  # fmt: skip
        if kind == 5:
            return [[b"PUBLISH", b"channel", key], [b"EXPIRE", key, b"%d" % dice.choice([-1, 1, 1000])]]
        if kind == 6:
            return [[b"XADD", self.chances[1].of("stream"), b"MAXLEN", b"~", b"50", b"*", b"f", key]]
        return [[b"SET", b"large%d" % dice.randrange(3), dice.randbytes(dice.choice([5_000, 200_000, 1_500_000]))]]

    def run(self, server, count):
        """Into the server, as one client; `server` may die meanwhile."""
        with contextlib.suppress(ConnectionError, EOFError), server.client(timeout=60) as client:
            todo = self.commands(count)
            while todo:
                depth = self.dice.choice([1, 5, 50])
                client.pipeline(todo[:depth])
                todo = todo[depth:]
            client.call("DISCARD")


class Proxy:
    """Stands between a replica and its master; cuts the links that go through it when it is told to,
    or each after so many bytes of the master's. One thread for each link."""

    def __init__(self, port, limits=None):
        """limits: bytes after which link after link is cut; None or an end of them: never."""
        self.target = port
        self.limits = iter(limits or ())
        self.links = []
        self.accepted = 0
        self.closing = False
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port = free_port()
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing = True
        self.listener.close()
        self.cut()

    def cut(self):
        for pair in list(self.links):
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while not self.closing:
            try:
                inner, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            limit = next(self.limits, None)
            threading.Thread(target=self._carry, args=(inner, limit), daemon=True).start()

    def _carry(self, inner, limit):
        try:
            outer = socket.create_connection(("127.0.0.1", self.target), 5)
        except OSError:
            inner.close()
            return
        pair = (inner, outer)
        self.links.append(pair)
        with inner, outer, contextlib.suppress(OSError):
            while not self.closing:
                ready, _, _ = select.select(pair, [], [], 1)
                for end in ready:
                    data = end.recv(65536)
                    if not data:
                        return
                    if end is outer and limit is not None:
                        data = data[:limit]
                        limit -= len(data)
                    (inner if end is outer else outer).sendall(data)
                    if limit == 0:
                        return


class FakeMaster:
    """A master of the test's own words: `talk(connection)` for each connection, on a thread of its own."""

    def __init__(self, talk):
        self.talk = talk
        self.accepted = 0
        self.failures = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port = free_port()
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.listener.close()
        if kind is None and self.failures:
            raise self.failures[0]

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            try:
                self.talk(Peer(connection))
            except (ConnectionError, EOFError, TimeoutError):
                pass
            except BaseException as failure:
                self.failures.append(failure)


class Peer:
    """The master's end of a link."""

    def __init__(self, connection):
        connection.settimeout(SECONDS)
        self.connection = connection
        self.bytes = b""

    def send(self, data):
        self.connection.sendall(data)

    def line(self):
        while b"\n" not in self.bytes:
            data = self.connection.recv(65536)
            if not data:
                raise EOFError
            self.bytes += data
        line, self.bytes = self.bytes.split(b"\n", 1)
        return line.rstrip(b"\r")

    def command(self):
        """The next one, in words; newlines alone are passed over."""
        while not (line := self.line()):
            pass
        words = []
        for _ in range(int(line[1:])):
            self.line()
            words.append(self.line().decode())
        return words

    def shake_hands(self):
        """Up to PSYNC, whose arguments are answered."""
        while True:
            words = self.command()
            if words[0] == "PSYNC":
                return words[1:]
            self.send(b"+PONG\r\n" if words[0] == "PING" else b"+OK\r\n")


# An RDB file without keys; a checksum of 0 is none.
EMPTY_RDB = b"REDIS0010\xff" + bytes(8)
RUN_ID = "0123456789" * 4


def full_resync(peer, offset, rdb=EMPTY_RDB):
    peer.send(b"+FULLRESYNC %s %d\r\n" % (RUN_ID.encode(), offset))
    peer.send(b"$%d\r\n" % len(rdb) + rdb)


def told(*words):
    """A command as a master tells it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words))


def connect(server, timeout=10):
    return Client(server.port, timeout=timeout)
