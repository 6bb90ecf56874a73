"""Session commands of an EXEC whose unit is undone and runs again, because the pool makes what it stores: what they do to more
than their client is done once, what they answered stays, and what is told when EXEC ends is told once. Beside redis-server."""

import re
import time

import pytest
from support.resp import CLOSED, Reply, encode
from support.servers import Server

MEMBERS = [b"m%05d" % number for number in range(20_000)]
AGAIN = "COPY big copy REPLACE"
LIBRARY = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
FIELDS = "flags name db sub psub user redir resp".split()
SHA = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"  # of "return 1"

# What is before; the commands, AGAIN behind some of them; what is asked afterwards.
CASES = {
    "a user is deleted": (["ACL SETUSER bob on"], ["ACL DELUSER bob", AGAIN], ["ACL USERS"]),
    "a password is removed": (["ACL SETUSER bob >x"], ["ACL SETUSER bob <x", AGAIN], ["ACL GETUSER bob"]),
    "selectors": (
        [],
        ["ACL USERS", "ACL SETUSER bob (+get ~a)", AGAIN, "ACL SETUSER bob (+set ~b)", AGAIN, AGAIN],
        ["ACL GETUSER bob"],
    ),
    "AUTH fails": (["ACL LOG RESET"], ["AUTH nobody x", AGAIN, "HELLO 3 AUTH nobody x", AGAIN], ["ACL LOG"]),
    "another user": (
        ["ACL SETUSER bob on nopass ~* +select +copy +get +acl|whoami +client|info", "ACL LOG RESET"],
        ["GET k", "SET k 1", "ACL WHOAMI", "AUTH bob x", "SET k 2", "SELECT 3", "GET k", AGAIN, "SELECT 0", "ACL WHOAMI", AGAIN, "GET k"],
        ["ACL LOG", "GET k"],
    ),
    "rules change": (
        ["ACL SETUSER bob on nopass ~* +@all", "ACL LOG RESET"],
        ["AUTH bob x", "SET k 1", "ACL SETUSER bob -get -set", "SET k 2", AGAIN, "GET k", AGAIN, "PING"],
        ["ACL LOG", "GET k"],
    ),
    "scripts": (["SCRIPT FLUSH"], [f"SCRIPT EXISTS {SHA}", "SCRIPT LOAD 'return 1'", AGAIN, f"EVALSHA {SHA} 0"], [f"SCRIPT EXISTS {SHA}"]),
    "scripts are forgotten": (["SCRIPT LOAD 'return 1'"], [f"SCRIPT EXISTS {SHA}", "SCRIPT FLUSH", AGAIN], [f"SCRIPT EXISTS {SHA}"]),
    "settings": ([], ["CONFIG GET slowlog-max-len", "CONFIG SET slowlog-max-len 77", AGAIN, "CONFIG GET slowlog-max-len"], []),
    "libraries": (
        ["FUNCTION FLUSH"],
        ["CLIENT SETNAME a", "FUNCTION LIST", ["FUNCTION", "LOAD", LIBRARY], "FUNCTION LIST", AGAIN, "FCALL f 0", "CLIENT GETNAME"],
        ["FUNCTION LIST"],
    ),
    "the client": (
        [],
        ["CLIENT GETNAME", "CLIENT SETNAME a", "SET k 0", "SELECT 2", "SET k 2", AGAIN, "CLIENT GETNAME", "CLIENT SETNAME b", "SELECT 0",
         AGAIN, "GET k", "SELECT 2", "GET k", "CLIENT NO-EVICT ON", "HELLO 3", AGAIN, "CLIENT GETNAME", "DEBUG PROTOCOL null"],
        [],
    ),
    "subscriptions": (
        [],
        ["PUBLISH c 1", "SUBSCRIBE c d", "PSUBSCRIBE e*", AGAIN, "UNSUBSCRIBE d", "PUBSUB NUMSUB c d", "PUBSUB NUMPAT", AGAIN, "PING"],
        ["PUBSUB CHANNELS", "PUBSUB NUMPAT"],
    ),
    "tracking": (
        [],
        ["CLIENT TRACKINGINFO", "CLIENT TRACKING ON BCAST PREFIX a", "CLIENT TRACKINGINFO", AGAIN, "CLIENT TRACKING ON BCAST PREFIX b",
         AGAIN, "CLIENT TRACKINGINFO", "CLIENT TRACKING OFF", "CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES", AGAIN, "CLIENT TRACKINGINFO"],
        [],
    ),
    "rejected words": (["CONFIG RESETSTAT"], ["CONFIG SET nosuch 1", "GET big", AGAIN], ["INFO errorstats"]),
}  # fmt: skip


def words(line):
    return [re.sub("^'|'$", "", word) for word in re.findall(r"'[^']*'|\S+", line)] if isinstance(line, str) else line


OURS = rb"^id=.*? name=| (age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|omem|tot-mem|lib-name|lib-ver)=\S*"


def plain(reply):
    """Without what differs from run to run."""
    kind, value = reply
    if isinstance(value, list):
        items = [plain(item) if isinstance(item, Reply) else [plain(part) for part in item] for item in value]
        for i, item in enumerate(items[:-1]):
            if item[1] == b"age-seconds" or item == ("bulk", b"id"):
                items[i + 1] = "any"
        return kind, [[part if pair[0][1] != b"id" else "any" for part in pair] if isinstance(pair, list) else pair for pair in items]
    return kind, re.sub(OURS, b"", value) if isinstance(value, bytes) else value


@pytest.fixture
def filled(empty_pair):
    for server in empty_pair.servers:
        with server.client() as admin:
            admin.pipeline([("CONFIG", "SET", "enable-debug-command", "yes"), ("ACL", "DELUSER", "bob"), ("SADD", "big", *MEMBERS)])
    yield empty_pair
    for server in empty_pair.servers:
        with server.client() as admin:
            admin.pipeline([("ACL", "DELUSER", "bob"), ("ACL", "LOG", "RESET"), ("FUNCTION", "FLUSH"), ("SCRIPT", "FLUSH"),
                            ("CONFIG", "SET", "slowlog-max-len", "128"), ("CONFIG", "RESETSTAT")])  # fmt: skip


def drain(client, seconds=0.1):
    got = []
    while client.has_input(seconds):
        got.append(client.read())
        if got[-1] == CLOSED:
            break
    return got


@pytest.mark.parametrize("name", CASES)
def test_what_lasts(filled, name):
    before, commands, asked = CASES[name]

    def run(server):
        with server.client() as admin, server.client() as client:
            for line in before:
                assert not admin.call(*words(line)).is_error(), line
            number = client.call("CLIENT", "ID").value
            client.send_raw(encode(["MULTI"]) + b"".join(encode(words(line)) for line in commands) + encode(["EXEC"]))
            told = [client.read() for _ in range(len(commands) + 2)] + drain(client)
            own = admin.call("CLIENT", "LIST", "ID", number).text()
            asks = [admin.call(*words(line)) for line in asked]
            return [plain(reply) for reply in told], [re.search(rf" {name}=\S*", own)[0] for name in FIELDS], [plain(reply) for reply in asks]

    expected, actual = map(run, filled.servers)
    assert actual == expected


def test_which_answers_are_silenced(filled):
    """Byte for byte: an array is announced with more elements than follow."""
    commands = ["SET k 1", "CLIENT REPLY OFF", "ECHO a", AGAIN, "CLIENT REPLY ON", AGAIN, "ECHO b"]

    def run(server):
        with server.client() as client:
            client.send_raw(b"".join(encode(words(line)) for line in ["MULTI", *commands, "EXEC", "ECHO end"]))
            raw = b""
            client.socket.setblocking(True)
            client.socket.settimeout(5)
            while not raw.endswith(b"end\r\n"):
                piece = client.socket.recv(65536)
                assert piece, raw
                raw += piece
            return raw

    expected, actual = map(run, filled.servers)
    assert actual == expected


def test_who_is_killed(filled):
    """The one that is named, and nobody who comes later."""

    def run(server):
        with server.client() as client, server.client() as victim, server.client() as same:
            number = victim.call("CLIENT", "ID").value
            replies = client.pipeline([("MULTI",), ("CLIENT", "KILL", "ID", number), AGAIN.split(), ("EXEC",)])
            ended = victim.read()
            same.call("PING")  # it is known by then
            client.pipeline([("MULTI",), ("CLIENT", "KILL", "TYPE", "normal")] + [AGAIN.split()] * 20)
            client.send("EXEC")
            assert same.read() == CLOSED  # so it has run
            with server.client() as late:
                answer = late.call("PING")
                client.read()
                return replies[-1], ended, answer, late.call("PING")

    expected, actual = map(run, filled.servers)
    assert actual == expected


def test_who_connects_while_it_runs_is_not_killed(filled):
    """As Sentinel does that has seen the new role: its EXEC is REPLICAOF, CONFIG REWRITE, CLIENT KILL, and the second may take long."""

    def run(server):
        with server.client() as client, server.client() as victim, server.client() as same:
            number = victim.call("CLIENT", "ID").value
            same.call("PING")  # it is known by then
            client.pipeline([("MULTI",), ("CLIENT", "KILL", "ID", number)] + [AGAIN.split()] * 20 + [("CLIENT", "KILL", "TYPE", "normal")])
            client.send("EXEC")
            assert victim.read() == CLOSED  # so it has begun
            with server.client() as late:
                answer = late.call("PING")
                client.read()
                return answer, late.call("PING"), same.read()

    expected, actual = map(run, filled.servers)
    assert actual == expected


def test_what_is_told_when_it_ends(filled):
    """Lines of MONITOR, messages, events; and each command counts once."""
    commands = ["GET none", "CLIENT GETNAME", "PUBLISH c 1", "SET k 1", AGAIN, "CLIENT SETNAME x", "EVAL 'return redis.call(\"incr\", \"n\")' 0", AGAIN,
                "PUBLISH c 2", "EVAL 'return redis.pcall(\"incr\", \"big\")' 0", AGAIN]  # fmt: skip

    def run(server):
        with server.client() as admin, server.client() as monitor, server.client() as listener, server.client() as client:
            admin.call("CONFIG", "SET", "notify-keyspace-events", "Em$gs")
            listener.call("PSUBSCRIBE", "*")
            admin.call("CONFIG", "RESETSTAT")
            monitor.call("MONITOR")
            replies = client.pipeline([("MULTI",)] + [words(line) for line in commands] + [("EXEC",)])
            told = [re.sub(rb".*?\] ", b"", reply.value) for reply in drain(monitor)]
            heard = drain(listener)
            stats = b"".join(admin.call("INFO", section).value for section in ("commandstats", "errorstats", "stats"))
            admin.call("CONFIG", "SET", "notify-keyspace-events", "")
            counted = re.findall(rb"cmdstat_(\S+?):calls=(\d+)|(errorstat_\S+)|(keyspace_(?:hits|misses):\d+)", stats)
            return replies, told, heard, sorted(each for each in counted if each[0] not in (b"info", b"config|resetstat"))

    expected, actual = map(run, filled.servers)
    assert actual == expected


def test_what_runs_in_the_background_has_begun_once(filled):
    server = filled.servers[1]
    for command, answer in (("BGSAVE", b"Background saving scheduled"), ("BGREWRITEAOF", b"Background append only file rewriting scheduled")):
        with server.client() as client:
            assert client.pipeline([("MULTI",), (command,), AGAIN.split(), AGAIN.split(), ("EXEC",)])[-1].value[0].value == answer
            for field in (b"rdb_bgsave_in_progress:0", b"aof_rewrite_in_progress:0"):
                while field not in client.call("INFO", "persistence").value:
                    time.sleep(0.01)


def test_of_one_that_is_too_large_its_client_is_as_before(engine):
    """A difference: such an EXEC is undone. What its session commands did to others stays."""
    lines = ["ACL DELUSER bob", "CLIENT SETNAME after", "SELECT 3", AGAIN, "SET k v", "SELECT 0"]
    with Server.ingot(engine, {"maxmemory": "64mb"}) as server, server.client(timeout=60) as client:
        client.pipeline([("ACL", "SETUSER", "bob", "on"), ("SET", "s", "x" * 100_000), ("SADD", "big", *MEMBERS), ("CLIENT", "SETNAME", "before")])
        reply = client.pipeline([("MULTI",)] + [line.split() for line in lines] + [("GET", "s")] * 400 + [("EXEC",)])[-1]
        assert reply.is_error() and reply.value.startswith(b"EXECABORT")
        assert client.call("CLIENT", "GETNAME").value == b"before"
        assert b" db=0 " in client.call("CLIENT", "INFO").value
        assert [user.value for user in client.call("ACL", "USERS").value] == [b"default"]
        assert client.call("EXISTS", "k", "copy").value == 0
