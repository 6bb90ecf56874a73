"""MIGRATE between Ingot and a real redis-server, both ways, and between two Ingots.

Each reply must be what Redis answers to the same command against the same target.
"""

import socket
import threading
import time

import pytest
from support.resp import Reply
from support.servers import Server, free_port
from test_dump import VALUES

OK, NOKEY = Reply("simple", b"OK"), Reply("simple", b"NOKEY")
BUSY = b"ERR Target instance replied with error: BUSYKEY Target key name already exists."
AMPLE_MS = 20_000
LONG_MS = 100_000_000  # a time to live that no test sees the end of
ROUTES = ["ingot to redis", "redis to ingot", "ingot to ingot"]


@pytest.fixture(scope="module")
def second(engine):
    """One more Ingot."""
    with Server.ingot(engine) as server:
        yield server


@pytest.fixture(params=ROUTES)
def route(request, empty_pair, second):
    """Clients of the source and of the target, and the target's port."""
    redis, ingot = empty_pair.servers
    source, target = {"ingot to redis": (ingot, redis), "redis to ingot": (redis, ingot),
                      "ingot to ingot": (ingot, second)}[request.param]  # fmt: skip
    with source.client() as one, target.client() as other:
        other.call("FLUSHALL")
        yield one, other, target.port


@pytest.fixture
def target():
    """A Redis that both servers of the pair send to."""
    with Server.redis() as server, server.client() as client:
        yield server, client


def migrate(source, port, key, *options, db=0, timeout=AMPLE_MS):
    return source.call("MIGRATE", "127.0.0.1", port, key, db, timeout, *options)


@pytest.mark.parametrize("name", VALUES)
def test_values(route, name):
    source, target, port = route
    for command in VALUES[name][0]:
        source.call(*command)
    digest = source.call("DEBUG", "DIGEST-VALUE", "k")
    assert migrate(source, port, "k", "COPY") == OK
    assert source.call("EXISTS", "k") == Reply("integer", 1)
    assert target.call("DEBUG", "DIGEST-VALUE", "k") == digest
    assert migrate(source, port, "k", db=3) == OK
    assert source.call("EXISTS", "k") == Reply("integer", 0)
    target.call("SELECT", 3)
    assert target.call("DEBUG", "DIGEST-VALUE", "k") == digest
    assert target.call("PTTL", "k") == Reply("integer", -1)


def test_time_to_live(route):
    source, target, port = route
    source.call("SET", "k", "v", "PX", LONG_MS)
    assert migrate(source, port, "k") == OK
    assert LONG_MS - AMPLE_MS < target.call("PTTL", "k").value <= LONG_MS


def test_binary_names(route):
    source, target, port = route
    names = [bytes(range(256)), b"\r\n", b"", b"*1\r\n$4\r\nPING\r\n"]
    for name in names:
        source.call("SET", name, name)
    assert migrate(source, port, "", "KEYS", *names) == OK
    assert target.call("MGET", *names).value == [Reply("bulk", name) for name in names]
    assert source.call("DBSIZE") == Reply("integer", 0)


def test_copy_replace_busy(route):
    source, target, port = route
    source.call("SET", "k", "new")
    target.call("SET", "k", "old")
    assert migrate(source, port, "k") == Reply("error", BUSY)
    assert target.call("GET", "k") == Reply("bulk", b"old")
    assert migrate(source, port, "k", "copy", "replace") == OK
    assert target.call("GET", "k") == source.call("GET", "k") == Reply("bulk", b"new")
    assert migrate(source, port, "k", "REPLACE") == OK
    assert source.call("GET", "k") == Reply("nullbulk", None)
    assert migrate(source, port, "k") == NOKEY


def test_keys_that_arrived_are_gone_though_another_failed(route):
    source, target, port = route
    for name in "abcd":
        source.call("SET", name, name)
    target.call("SET", "b", "busy")
    assert migrate(source, port, "", "KEYS", "a", "b", "none", "c") == Reply("error", BUSY)
    assert [source.call("GET", name).value for name in "abcd"] == [None, b"b", None, b"d"]
    assert [target.call("GET", name).value for name in "abcd"] == [b"a", b"busy", b"c", None]
    assert migrate(source, port, "", "KEYS", "none", "a") == NOKEY
    assert migrate(source, port, "", "KEYS") == NOKEY
    # The same key twice is refused the second time.
    assert migrate(source, port, "", "KEYS", "d", "d") == Reply("error", BUSY)
    assert source.call("EXISTS", "d") == Reply("integer", 0)


def test_many_keys(route):
    source, target, port = route
    values = {b"key %d" % i: b"%d" % i * (1 + i * 7 % 2000) for i in range(3000)}
    source.call("MSET", *[word for pair in values.items() for word in pair])
    assert migrate(source, port, "", "KEYS", *values) == OK
    assert source.call("DBSIZE") == Reply("integer", 0)
    assert target.call("MGET", *values).value == [Reply("bulk", value) for value in values.values()]


def test_large_string(route):
    source, target, port = route
    value = bytes(range(256)) * (20 << 12)  # 20 MB
    source.call("SET", "k", value)
    source.call("SET", "small", "v")
    assert migrate(source, port, "", "KEYS", "k", "small") == OK
    assert target.call("GET", "k") == Reply("bulk", value)
    assert source.call("DBSIZE") == Reply("integer", 0)


# --- the same commands to both servers of the pair

ERRORS = [
    ("MIGRATE",), ("MIGRATE", "h", "1", "k", "0"),
    ("MIGRATE", "h", "1", "k", "x", "10"), ("MIGRATE", "h", "1", "k", "0", "x"),
    ("MIGRATE", "h", "1", "k", "x", "x"), ("MIGRATE", "h", "1", "k", "0", "10", "FOO"),
    ("MIGRATE", "h", "1", "k", "x", "10", "FOO"), ("MIGRATE", "h", "1", "k", "0", "10", "AUTH"),
    ("MIGRATE", "h", "1", "k", "0", "10", "AUTH2"), ("MIGRATE", "h", "1", "k", "0", "10", "AUTH2", "u"),
    ("MIGRATE", "h", "1", "k", "0", "10", "COPY", "COPY", "FOO"),
    ("MIGRATE", "h", "1", "k", "0", "10", "KEYS"), ("MIGRATE", "h", "1", "k", "0", "10", "KEYS", "a"),
    ("MIGRATE", "h", "1", "k", "0", "10", "FOO", "KEYS", "a"), ("MIGRATE", "h", "1", "k", "0", "10"),
    ("MIGRATE", "h", "1", "", "0", "10"), ("MIGRATE", "h", "1", "", "0", "10", "KEYS"),
    ("MIGRATE", "", "1", "here", "0", "1000"), ("MIGRATE", "127.0.0.1", "x", "here", "0", "1000"),
    ("MIGRATE", "127.0.0.1", "", "here", "0", "1000"), ("MIGRATE", "127.0.0.1", "0", "here", "0", "1000"),
    ("MIGRATE", "127.0.0.1", str(free_port()), "here", "0", "1000"), ("EXISTS", "here"),
    ("COMMAND", "GETKEYS", "MIGRATE", "h", "1", "k", "0", "10"),
    ("COMMAND", "GETKEYS", "MIGRATE", "h", "1", "k", "0", "10", "AUTH", "keys"),
    ("COMMAND", "GETKEYSANDFLAGS", "MIGRATE", "h", "1", "", "0", "10", "AUTH2", "keys", "p", "KEYS", "a", "b"),
]  # fmt: skip


@pytest.mark.parametrize("command", ERRORS, ids=" ".join)
def test_errors(empty_pair, command):
    empty_pair.both("SET", "here", "v")
    expected, actual = empty_pair.both(*command)
    assert actual == expected


def both(pair, port, *options, db=0, timeout=AMPLE_MS):
    return pair.both("MIGRATE", "127.0.0.1", port, "k", db, timeout, *options)


def test_errors_of_the_target(empty_pair, target):
    server, client = target
    client.call("CONFIG", "SET", "requirepass", "secret")  # before Redis keeps a connection
    empty_pair.both("SET", "k", "v")
    for options in ([], ["AUTH", "wrong"], ["AUTH2", "default", "wrong"], ["AUTH2", "nobody", "secret"]):
        expected, actual = both(empty_pair, server.port, *options)
        assert actual == expected and actual.is_error(), options
    for options in (["AUTH", "secret"], ["AUTH2", "default", "secret"]):
        assert both(empty_pair, server.port, "COPY", "REPLACE", *options) == (OK, OK)
    for db in (-2, 16, 1 << 40):  # Redis takes -1 for 0, by mistake
        expected, actual = both(empty_pair, server.port, "AUTH", "secret", db=db)
        assert actual == expected and actual.is_error(), db
    client.call("CONFIG", "SET", "maxmemory", 1)
    expected, actual = both(empty_pair, server.port, "REPLACE", "AUTH", "secret")
    assert actual == expected and b"OOM" in actual.value
    assert empty_pair.both("GET", "k") == (Reply("bulk", b"v"),) * 2


def test_password_of_an_ingot(empty_pair, second):
    redis, _ = empty_pair.servers
    with second.client() as other, redis.client() as source:
        other.call("FLUSHALL")
        other.call("CONFIG", "SET", "requirepass", "secret")
        try:
            source.call("SET", "k", "v")
            assert migrate(source, second.port, "k").is_error()
            assert migrate(source, second.port, "k", "AUTH", "secret") == OK
        finally:
            other.call("CONFIG", "SET", "requirepass", "")
        assert other.call("GET", "k") == Reply("bulk", b"v")


class Listener:
    """A server that accepts, and then does what it is told with each connection."""

    def __init__(self, serve):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.kept = []
        self.serve = serve
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while True:
                connection, _ = self.socket.accept()
                self.kept.append(connection)
                self.serve(connection)
        except OSError:
            pass  # closed

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()
        for connection in self.kept:
            connection.close()


def test_a_target_that_never_answers(empty_pair):
    empty_pair.both("SET", "k", "v")
    with Listener(lambda connection: None) as listener:
        began = time.monotonic()
        expected, actual = both(empty_pair, listener.port, timeout=300)
        assert actual == expected == Reply("error", b"IOERR error or timeout reading to target instance")
        assert 0.6 <= time.monotonic() - began < 5
    assert empty_pair.both("GET", "k") == (Reply("bulk", b"v"),) * 2


def test_a_target_that_hangs_up(empty_pair):
    empty_pair.both("SET", "k", "v")
    with Listener(lambda connection: connection.close()) as listener:
        for reply in both(empty_pair, listener.port):
            assert reply.value.startswith(b"IOERR error or timeout ")
    assert empty_pair.both("GET", "k") == (Reply("bulk", b"v"),) * 2


def test_a_target_that_hangs_up_halfway(empty_pair):
    """The key whose reply came is gone, the other is not."""

    def serve(connection):
        reader = connection.makefile("rb")
        received = b""
        while received.count(b"RESTORE") < 2:
            received += reader.read1()
            if received.count(b"SELECT") == 1:
                received = received.replace(b"SELECT", b"")
                connection.sendall(b"+OK\r\n")
        connection.sendall(b"+OK\r\n")
        connection.shutdown(socket.SHUT_RDWR)

    empty_pair.both("MSET", "a", "1", "b", "2")
    with Listener(serve) as listener:
        command = ("MIGRATE", "127.0.0.1", listener.port, "", 0, AMPLE_MS, "KEYS", "a", "b")
        expected, actual = empty_pair.both(*command)
    assert actual == expected == Reply("error", b"IOERR error or timeout reading to target instance")
    assert empty_pair.both("MGET", "a", "b")[1].value == [Reply("nullbulk", None), Reply("bulk", b"2")]


class Slow(Listener):
    """Answers as a server that takes everything, RESTORE only when it is let."""

    def __init__(self):
        self.asked, self.let = threading.Semaphore(0), threading.Semaphore(0)
        self.restored = []
        super().__init__(lambda connection: threading.Thread(target=self.talk, args=(connection,), daemon=True).start())

    def talk(self, connection):
        reader = connection.makefile("rb")
        while header := reader.readline():
            words = []
            for _ in range(int(header[1:])):
                words.append(reader.read(int(reader.readline()[1:])))
                reader.readline()
            if words[0] == b"RESTORE":
                self.restored.append(words[1:])
                self.asked.release()
                self.let.acquire()
            connection.sendall(b"+OK\r\n")


@pytest.fixture
def ingot(empty_pair):
    with empty_pair.servers[1].client() as client:
        yield client


def test_others_are_served_while_keys_travel(empty_pair, ingot):
    admin = empty_pair.admins[1]
    admin.call("SET", "k", "v")
    with Slow() as slow:
        ingot.send("MIGRATE", "127.0.0.1", slow.port, "k", 0, AMPLE_MS)
        slow.asked.acquire()
        assert admin.call("SET", "other", "v") == OK
        assert not ingot.has_input()
        slow.let.release()
        assert ingot.read() == OK
    assert admin.call("EXISTS", "k") == Reply("integer", 0)


def test_what_changed_on_the_way_is_sent_again(empty_pair, ingot):
    admin = empty_pair.admins[1]
    admin.call("MSET", "k", "old", "same", "v")
    with Slow() as slow:
        ingot.send("MIGRATE", "127.0.0.1", slow.port, "", 0, AMPLE_MS, "KEYS", "k", "same")
        slow.asked.acquire()
        admin.call("SET", "k", "new")
        slow.let.release(), slow.let.release(), slow.let.release()
        assert ingot.read() == OK
        assert [words[0] for words in slow.restored] == [b"k", b"same", b"k"]
        assert b"old" in slow.restored[0][2] and slow.restored[0][3:] == []
        assert b"new" in slow.restored[2][2] and slow.restored[2][3:] == [b"REPLACE"]
    assert admin.call("EXISTS", "k", "same") == Reply("integer", 0)


def test_what_is_deleted_on_the_way_has_arrived(empty_pair, ingot):
    admin = empty_pair.admins[1]
    admin.call("SET", "k", "v")
    with Slow() as slow:
        ingot.send("MIGRATE", "127.0.0.1", slow.port, "k", 0, AMPLE_MS)
        slow.asked.acquire()
        assert admin.call("DEL", "k") == Reply("integer", 1)
        slow.let.release()
        assert ingot.read() == OK
        assert len(slow.restored) == 1


def test_a_copy_is_sent_once(empty_pair, ingot):
    admin = empty_pair.admins[1]
    admin.call("SET", "k", "old")
    with Slow() as slow:
        ingot.send("MIGRATE", "127.0.0.1", slow.port, "k", 0, AMPLE_MS, "COPY")
        slow.asked.acquire()
        admin.call("SET", "k", "new")
        slow.let.release()
        assert ingot.read() == OK
        assert len(slow.restored) == 1
    assert admin.call("GET", "k") == Reply("bulk", b"new")


def test_a_key_that_never_stays_the_same_arrives(empty_pair, ingot, target):
    server, client = target
    stop = threading.Event()

    def count():
        with empty_pair.servers[1].client() as busy:
            while not stop.is_set():
                busy.call("INCR", "k")

    thread = threading.Thread(target=count)
    thread.start()
    try:
        while ingot.call("EXISTS", "k") == Reply("integer", 0):
            pass
        for _ in range(20):
            assert migrate(ingot, server.port, "k", "REPLACE") in (OK, NOKEY)
    finally:
        stop.set()
        thread.join()
    assert int(client.call("GET", "k").value) > 0


@pytest.mark.parametrize("options", [[], ["COPY"]], ids=["move", "copy"])
def test_inside_a_transaction(empty_pair, target, options):
    """What the transaction itself wrote is what arrives."""
    server, client = target
    for pair_client in empty_pair.admins:
        client.call("FLUSHALL")
        pair_client.call("SET", "k", "old")
        pair_client.call("MULTI")
        pair_client.call("SET", "k", "new")
        pair_client.call("SET", "fresh", "v")
        for name in ("k", "fresh", "none"):
            migrate(pair_client, server.port, name, "REPLACE", *options)
        pair_client.call("EXISTS", "k", "fresh")
        replies = pair_client.call("EXEC").value
        assert replies == [OK, OK, OK, OK, NOKEY, Reply("integer", 2 if options else 0)]
        assert client.call("MGET", "k", "fresh").value == [Reply("bulk", b"new"), Reply("bulk", b"v")]


def test_to_itself(ingot, empty_pair):
    """Redis waits for itself until the time is over."""
    port = empty_pair.servers[1].port
    ingot.call("SET", "k", "v")
    assert migrate(ingot, port, "k", db=1) == OK
    assert ingot.call("EXISTS", "k") == Reply("integer", 0)
    ingot.call("SELECT", 1)
    assert ingot.call("GET", "k") == Reply("bulk", b"v")


def test_moving_a_key_breaks_watch(empty_pair, ingot, target):
    server, _ = target
    ingot.call("SET", "k", "v")
    ingot.call("WATCH", "k")
    with empty_pair.servers[1].client() as other:
        assert migrate(other, server.port, "k") == OK
    ingot.call("MULTI")
    ingot.call("PING")
    assert ingot.call("EXEC") == Reply("nullarray", None)
