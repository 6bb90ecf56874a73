"""CLIENT PAUSE, UNPAUSE and UNBLOCK beside redis-server: who waits, for what, and what each is answered when.

A scenario is a list of lines "connection command | command ...", sent at once. After each line, once both servers are
quiet, what each connection has got so far must be equal. {id:b} is connection b's CLIENT ID.
"!sleep 0.1" waits, "!close b" closes a connection, "!blocked 2" waits until each server says that so many clients are. At the end
the pause, if any, is ended.
"""

import re
import shlex
import threading
import time

import pytest
from runner import Pair
from support.resp import CLOSED, Reply, encode
from support.servers import Server

QUIET_SECONDS = 0.02
LATE_SECONDS = 1.5
SECONDS = 8.0

PAUSES = {
    "errors": [
        "a CLIENT PAUSE", "a CLIENT PAUSE abc", "a CLIENT PAUSE -1", "a CLIENT PAUSE 1.5", "a CLIENT PAUSE 10 foo",
        "a CLIENT PAUSE 10 WRITE x", "a CLIENT PAUSE 9223372036854775808",
        "a CLIENT PAUSE abc foo", 'a CLIENT PAUSE ""', "a CLIENT UNPAUSE x", "a CLIENT UNPAUSE", "a SET k v"],
    "of no time": ["a CLIENT PAUSE 0", "a SET k v", "a CLIENT PAUSE 0 WRITE", "a SET k w", "a CLIENT PAUSE 0 ALL", "a GET k"],
    "of writes": [
        "a SET k v", "a CLIENT PAUSE 60000 WRITE", "b GET k", "b SET k w", "c PING", "c GET k", "!blocked 1",
        "a CLIENT UNPAUSE", "c GET k", "!blocked 0"],
    "of all": ["a SET k v", "a CLIENT PAUSE 700 ALL", "b GET k", "c PING", "d SET k w", "!sleep 0.7", "b GET k"],
    "of all, by default": ["a CLIENT PAUSE 700", "b GET k", "c CLIENT UNPAUSE", "!sleep 0.7", "a GET k"],
    "of all: what is wrong is answered at once": [
        "a CLIENT PAUSE 800 ALL", "b NOSUCH x", "b GET", "c CLIENT nosuch", "b MULTI", "!sleep 0.7", "b DISCARD"],
    "unpaused by another": ["a CLIENT PAUSE 60000 WRITE", "b SET k v", "!blocked 1", "c CLIENT UNPAUSE", "a GET k"],
    "the longer time wins": [
        "a CLIENT PAUSE 60000 WRITE", "a CLIENT PAUSE 50 WRITE", "!sleep 0.2", "b SET k v", "a CLIENT UNPAUSE"],
    "the stricter mode wins": ["a CLIENT PAUSE 1000 WRITE", "a CLIENT PAUSE 50 ALL", "!sleep 0.2", "b GET k", "!sleep 0.8"],
    "no weaker mode": ["a CLIENT PAUSE 700 ALL", "b CLIENT PAUSE 50 WRITE", "c GET k", "!sleep 0.8", "c SET k v"],
    "what counts as a write": [
        "a SET k v", "a PFADD hll a b c", "a CLIENT PAUSE 60000 WRITE", "b PUBLISH c m", "c SPUBLISH c m", "d PFCOUNT hll",
        "e EVAL 'return 1' 0", "f EVAL_RO 'return 1' 0", "g EVALSHA 0123456789012345678901234567890123456789 0",
        "h SCRIPT LOAD 'return 2'", "i UNLINK none", "j EVAL '#!lua flags=no-writes\nreturn 3' 0", "k FCALL nosuch 0",
        "l FCALL_RO nosuch 0", "m BLPOP q 0.01", "n XREAD BLOCK 10 STREAMS s 0", "o WAIT 0 0", "p EXPIRE none 10",
        "q DEL none", "r SORT k2", "s SORT k2 STORE k3", "t BITFIELD k GET u8 0", "u BITFIELD_RO k GET u8 0",
        "v GETEX k", "w GEORADIUS g 0 0 1 km", "x GEORADIUS_RO g 0 0 1 km", "y SWAPDB 5 6", "z FUNCTION FLUSH",
        "aa OBJECT IDLETIME none", "ab TOUCH k", "ac WATCH k", "ad SUBSCRIBE c", "ae CONFIG SET timeout 0", "af DBSIZE",
        "ag RESTORE k2 0 x", "ah SCRIPT FLUSH", "ai FUNCTION LOAD x", "aj DEBUG SLEEP 0", "ak COPY k k4", "al LPUSH l x",
        "!blocked 21", "a CLIENT UNPAUSE", "!blocked 0"],
    "transactions": [
        "a SET k v", "b MULTI", "b GET k", "c MULTI", "c SET k w", "a CLIENT PAUSE 60000 WRITE", "b EXEC", "c EXEC",
        "d MULTI | GET k", "d SET k x", "!blocked 2", "a CLIENT UNPAUSE", "a GET k", "d EXEC", "a GET k"],
    "begins at the end of a transaction": [
        "a MULTI", "a SET k v", "a CLIENT PAUSE 60000 WRITE", "a SET k w", "a EXEC", "b SET k x", "a GET k", "a CLIENT UNPAUSE",
        "a GET k"],
    "begins in a transaction that reads": [
        "a MULTI | GET k | CLIENT PAUSE 700 ALL | GET k", "a EXEC", "b GET k", "!sleep 0.7", "b GET k"],
    "ends in a transaction": ["a CLIENT PAUSE 60000 WRITE", "b SET k v", "a MULTI | GET k | CLIENT UNPAUSE | GET k | EXEC", "a GET k"],
    "a pipeline": ["a SET k v | CLIENT PAUSE 60000 WRITE | GET k | SET k w | PING | GET k", "b GET k", "b CLIENT UNPAUSE"],
    "a pipeline, all": ["a SET k v | CLIENT PAUSE 700 ALL | PING | GET k", "!sleep 0.7"],
    "one that waits, and goes": [
        "a CLIENT PAUSE 60000 WRITE", "b SET k v", "!blocked 1", "!close b", "!blocked 0", "a CLIENT UNPAUSE", "a GET k"],
    "one that waits, and is killed": [
        "a CLIENT PAUSE 60000 WRITE", "b SET k v", "!blocked 1", "a CLIENT KILL ID {id:b}", "!blocked 0", "a CLIENT UNPAUSE", "a GET k"],
    "one that waits is shown": ["a CLIENT PAUSE 60000 WRITE", "b SET k v", "!blocked 1", "a FLAGS {id:b}", "a CLIENT UNPAUSE", "a FLAGS {id:b}"],
    "who waits for an element goes on waiting": [
        "b BLPOP l 0", "!blocked 1", "a CLIENT PAUSE 60000 WRITE", "c RPUSH l x", "!blocked 2", "a CLIENT UNPAUSE", "a EXISTS l"],
    "a wait ends in time": ["b BLPOP l 0.3", "!blocked 1", "a CLIENT PAUSE 60000 WRITE", "!sleep 0.5", "!blocked 0", "a CLIENT UNPAUSE"],
    "fed by the transaction that pauses": [
        "b BLPOP l 0", "a MULTI | CLIENT PAUSE 60000 WRITE | RPUSH l x | EXEC", "a EXISTS l", "a CLIENT UNPAUSE", "a EXISTS l"],
    "messages come": ["b SUBSCRIBE c", "a CLIENT PAUSE 60000 WRITE", "c PUBLISH c m", "b PING", "a CLIENT UNPAUSE"],
    "what has expired stays": [
        "a SET k v PX 400", "a SET m v", "a CLIENT PAUSE 60000 WRITE", "!sleep 0.6", "a DBSIZE", "a GET k", "a EXISTS k",
        "a TTL k", "a DBSIZE", "b WATCH m", "b MULTI | GET k | EXISTS k | TTL k | DBSIZE | EXEC", "a DBSIZE",
        "a CLIENT UNPAUSE", "a GET k", "!sleep 0.3", "a DBSIZE"],
    "acl is asked when it goes on": [
        "a ACL SETUSER bob on nopass ~* +@all", "b AUTH bob x", "a CLIENT PAUSE 60000 WRITE", "b SET k v", "!blocked 1",
        "a ACL SETUSER bob -set", "a CLIENT UNPAUSE", "a GET k", "a ACL DELUSER bob"],
    "silent ones": ["b CLIENT REPLY OFF", "a CLIENT PAUSE 60000 WRITE", "b SET k v", "!blocked 1", "a GET k", "a CLIENT UNPAUSE", "a GET k"],
    "watched meanwhile": [
        "b WATCH k", "a CLIENT PAUSE 60000 WRITE", "c SET k v", "b MULTI | PING | EXEC", "b WATCH k | MULTI | PING",
        "a CLIENT UNPAUSE", "b EXEC"],
}  # fmt: skip

UNBLOCKS = {
    "errors": [
        "a CLIENT UNBLOCK", "a CLIENT UNBLOCK abc", "a CLIENT UNBLOCK 1 foo", "a CLIENT UNBLOCK 1 TIMEOUT x", "a CLIENT UNBLOCK -1",
        "a CLIENT UNBLOCK 0", "a CLIENT UNBLOCK 99999999", "a CLIENT UNBLOCK 99999999 ERROR", "a CLIENT UNBLOCK {id:a}",
        "a CLIENT UNBLOCK abc foo", "a CLIENT UNBLOCK 9223372036854775808", "a CLIENT UNBLOCK 1.5"],
    "as after its time": ["b BLPOP l 0", "!blocked 1", "a CLIENT UNBLOCK {id:b}", "b PING", "b BLPOP l 0", "!blocked 1", "a CLIENT UNBLOCK {id:b} timeout"],
    "as an error": ["b BLPOP l 0", "!blocked 1", "a CLIENT UNBLOCK {id:b} ERROR", "a CLIENT UNBLOCK {id:b} ERROR", "b PING"],
    "every command that waits": [
        "b BLPOP l 0", "c BRPOP l 5", "d BLMOVE l m LEFT LEFT 0", "e BRPOPLPUSH l m 0", "f BLMPOP 0 1 l LEFT", "g BZPOPMIN z 0",
        "h BZPOPMAX z 0", "i BZMPOP 0 1 z MIN", "j XREAD BLOCK 0 STREAMS s $", "a XGROUP CREATE s g $ MKSTREAM",
        "k XREADGROUP GROUP g one BLOCK 0 STREAMS s >", "!blocked 10",
        *[f"a CLIENT UNBLOCK {{id:{name}}}" for name in "bcdefghijk"], "!blocked 0"],
    "every command that waits, as an error": [
        "b BLPOP l 0", "c BRPOP l 5", "d BLMOVE l m LEFT LEFT 0", "e BRPOPLPUSH l m 0", "f BLMPOP 0 1 l LEFT", "g BZPOPMIN z 0",
        "h BZPOPMAX z 0", "i BZMPOP 0 1 z MIN", "j XREAD BLOCK 0 STREAMS s $", "a XGROUP CREATE s g $ MKSTREAM",
        "k XREADGROUP GROUP g one BLOCK 0 STREAMS s >", "!blocked 10",
        *[f"a CLIENT UNBLOCK {{id:{name}}} ERROR" for name in "bcdefghijk"], "!blocked 0"],
    "takes nothing any more": ["b BLPOP l 0", "!blocked 1", "a CLIENT UNBLOCK {id:b} | RPUSH l x | LLEN l", "b LPOP l"],
    "in a transaction": ["b BLPOP l 0", "!blocked 1", "a MULTI | CLIENT UNBLOCK {id:b} | RPUSH l x | CLIENT UNBLOCK {id:b} | EXEC", "a LLEN l"],
    "behind a push in a transaction": ["b BLPOP l 0", "!blocked 1", "a MULTI | RPUSH l x | CLIENT UNBLOCK {id:b} | EXEC", "a LLEN l"],
    "fed before": ["b BLPOP l 0", "!blocked 1", "a RPUSH l x | CLIENT UNBLOCK {id:b}"],
    "what stands behind runs": ["b BLPOP l 0 | SET after 1 | GET after", "!blocked 1", "a EXISTS after", "a CLIENT UNBLOCK {id:b} ERROR", "!blocked 0", "a EXISTS after"],
    "silent ones": ["b CLIENT REPLY OFF", "b BLPOP l 0", "!blocked 1", "a CLIENT UNBLOCK {id:b} ERROR", "a CLIENT UNBLOCK {id:b}"],
    "is shown": ["b BLPOP l 0", "!blocked 1", "a FLAGS {id:b}", "a CLIENT UNBLOCK {id:b}", "a FLAGS {id:b}"],
    "one that has gone": ["b BLPOP l 0", "!blocked 1", "!close b", "a CLIENT UNBLOCK {id:b}"],
    "counts its error": ["a CONFIG RESETSTAT", "b BLPOP l 0", "!blocked 1", "a CLIENT UNBLOCK {id:b} ERROR", "a INFO errorstats"],
    "one that only reads": ["b GET k", "a CLIENT UNBLOCK {id:b}", "b SUBSCRIBE c", "a CLIENT UNBLOCK {id:b}", "c MULTI", "a CLIENT UNBLOCK {id:c}"],
}  # fmt: skip


def blocked(server):
    with server.client() as client:
        info = client.call("INFO", "clients").value
    return int(re.search(rb"blocked_clients:(\d+)", info)[1])


def wait_until(condition, side=None):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, side and (side.server.name, blocked(side.server), side.got)
        time.sleep(0.01)


class Side:
    """One server, and what its connections have got."""

    def __init__(self, server, protocol):
        self.server, self.protocol, self.clients, self.ids = server, protocol, {}, {}
        self.got = {}

    def client(self, name):
        if name not in self.clients:
            self.clients[name] = self.server.client(self.protocol, timeout=SECONDS)
            self.ids[name] = self.clients[name].call("CLIENT", "ID").value
            self.got[name] = []
        return self.clients[name]

    def words(self, command):
        words = shlex.split(re.sub(r"\{id:(\w+)\}", lambda match: str(self.ids[match[1]]), command))
        return ["CLIENT", "LIST", "ID", words[1]] if words[0] == "FLAGS" else words

    def send(self, line):
        name, _, rest = line.partition(" ")
        client = self.client(name)
        commands = rest.split(" | ")
        client.send_raw(b"".join(encode(self.words(command)) for command in commands))

    def take(self):
        """Adds what has come to self.got."""
        for name, client in self.clients.items():
            replies = self.got[name]
            while client.has_input() and (not replies or replies[-1] != CLOSED):
                reply = client.read()
                if isinstance(reply.value, bytes) and reply.value.removeprefix(b"txt:").startswith(b"id="):
                    reply = re.findall(rb" flags=\w+| cmd=\S+", reply.value)
                replies.append(reply)

    def close(self):
        for client in self.clients.values():
            client.close()


def compare(sides, line):
    """What each has answered by now, when both are quiet. Whoever is slower than the other gets some time."""
    deadline = time.monotonic() + LATE_SECONDS
    before = None
    while time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        for side in sides:
            side.take()
        if sides[0].got == sides[1].got == before:
            return
        before = {name: list(replies) for name, replies in sides[0].got.items()}
    assert sides[1].got == sides[0].got, line


def play(pair, protocol, lines):
    sides = [Side(server, protocol) for server in pair.servers]
    try:
        for side in sides:  # before anything is paused
            for line in lines:
                if not line.startswith("!"):
                    side.client(line.split()[0])
        for line in lines:
            if line.startswith("!sleep"):
                time.sleep(float(line.split()[1]))
            elif line.startswith("!blocked"):
                for side in sides:
                    wait_until(lambda: blocked(side.server) == int(line.split()[1]), side)
            elif line.startswith("!close"):
                for side in sides:
                    side.clients.pop(line.split()[1]).close()
            else:
                for side in sides:
                    side.send(line)
            compare(sides, line)
    finally:
        for side in sides:
            side.close()


@pytest.fixture
def unpaused(empty_pair):
    yield empty_pair
    for reply in empty_pair.both("CLIENT", "UNPAUSE"):
        assert reply.value == b"OK"


@pytest.mark.parametrize("name", PAUSES)
def test_pause(unpaused, name):
    play(unpaused, 2, PAUSES[name])


def test_pause_ends_in_the_order_of_coming():
    """Where one thread does each step: several I/O threads, and LevelDB's readers, let one client overtake another."""
    lines = [
        "a CLIENT PAUSE 60000 WRITE", "b APPEND k b", "c APPEND k c", "d APPEND k d", "b2 APPEND k e", "!blocked 4", "a CLIENT UNPAUSE",
        "a STRLEN k"]  # fmt: skip
    with Server.redis() as redis, Server.ingot(options={"io-threads": 1}) as ingot:
        play(Pair(redis, ingot), 2, lines)


def test_each_goes_on_when_a_pause_ends(unpaused):
    server = unpaused.servers[1]
    with server.client() as admin:
        clients = [server.client() for _ in range(4)]
        admin.call("CLIENT", "PAUSE", "60000", "WRITE")
        for client in clients:
            client.send("APPEND", "k", "x")
        wait_until(lambda: blocked(server) == 4)
        admin.call("CLIENT", "UNPAUSE")
        assert sorted(client.read().value for client in clients) == [1, 2, 3, 4]
        for client in clients:
            client.close()


@pytest.mark.parametrize("name", UNBLOCKS)
def test_unblock(empty_pair, protocol, name):
    play(empty_pair, protocol, UNBLOCKS[name])


def test_a_pause_beyond_all_time(empty_pair):
    """Redis since 7.2 refuses it; in 7.0 its end overflows."""
    with empty_pair.servers[1].client() as client:
        assert client.call("CLIENT", "PAUSE", 2**63 - 1).value == b"ERR timeout is out of range"
        assert client.call("SET", "k", "v").value == b"OK"


def test_who_is_held_back_is_not_unblocked(unpaused):
    """As Redis since 7.2 has it; Redis 7.0 ends."""
    server = unpaused.servers[1]
    with server.client() as admin, server.client() as client:
        number = client.call("CLIENT", "ID").value
        admin.call("CLIENT", "PAUSE", "60000", "WRITE")
        client.send("SET", "k", "v")
        wait_until(lambda: blocked(server) == 1)
        assert admin.call("CLIENT", "UNBLOCK", number, "ERROR").value == 0
        admin.call("CLIENT", "UNPAUSE")
        assert client.read().value == b"OK"


def test_many_are_held_back_and_some_leave(unpaused):
    """They take no thread: others are served, and those who have left are forgotten at once, with what they had sent."""
    server = unpaused.servers[1]
    with server.client() as admin:
        admin.call("SET", "n", "0")
        admin.call("CLIENT", "PAUSE", "60000", "WRITE")
        clients = [server.client() for _ in range(400)]
        for client in clients:
            client.send_raw(encode(["INCR", "n"]) * 50)
        wait_until(lambda: blocked(server) == 400)
        assert admin.pipeline([("GET", "n")] * 100) == [Reply("bulk", b"0")] * 100
        for client in clients[::2]:
            client.close()
        wait_until(lambda: blocked(server) == 200)
        assert admin.call("CLIENT", "UNPAUSE").value == b"OK"
        for client in clients[1::2]:
            assert [client.read().kind for _ in range(50)] == ["integer"] * 50
            client.close()
        assert admin.call("GET", "n").value == b"10000"


def test_what_is_held_back_is_bounded(unpaused):
    """A client that goes on sending is read no further, and nothing of it is lost."""
    server = unpaused.servers[1]
    value = b"x" * 500_000
    with server.client() as admin, server.client(timeout=60) as client:
        admin.call("CLIENT", "PAUSE", "60000", "WRITE")
        sender = threading.Thread(target=lambda: client.pipeline([("APPEND", "k", value)] * 200))
        sender.start()
        wait_until(lambda: blocked(server) == 1)
        time.sleep(0.5)
        line = admin.call("CLIENT", "LIST").value.splitlines()[-1]
        held = sum(int(size) for size in re.findall(rb"(?:qbuf|qbuf-free|argv-mem)=(\d+)", line))
        assert value[:1] and 1_000_000 < held < 16_000_000, line
        admin.call("CLIENT", "UNPAUSE")
        sender.join()
        assert admin.call("STRLEN", "k").value == 200 * len(value)


def test_nothing_changes_once_the_pause_is_answered(unpaused):
    """Whatever was on its way when it came has been done, or waits."""
    server = unpaused.servers[1]
    stop = threading.Event()

    def write(index):
        with server.client() as client:
            while not stop.is_set():
                client.pipeline([("INCR", f"n{index}"), ("RPUSH", f"l{index}", "x" * 50), ("SET", f"s{index}", "y" * 2000)] * 20)

    writers = [threading.Thread(target=write, args=(i,)) for i in range(6)]
    for writer in writers:
        writer.start()
    names = [f"n{i}" for i in range(6)]
    try:
        with server.client() as admin:
            for _ in range(20):
                time.sleep(0.03)
                assert admin.call("CLIENT", "PAUSE", "60000", "WRITE").value == b"OK"
                first = admin.call("MGET", *names)
                for _ in range(20):
                    assert admin.call("MGET", *names) == first
                admin.call("CLIENT", "UNPAUSE")
                wait_until(lambda: admin.call("MGET", *names) != first)
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_unblock_races_with_being_fed_and_with_leaving(empty_pair):
    """An element goes to one client or stays; who was unblocked is told so exactly once."""
    server = empty_pair.servers[1]
    waiters = [server.client() for _ in range(8)]
    ids = [waiter.call("CLIENT", "ID").value for waiter in waiters]
    with server.client() as pusher, server.client() as admin:
        taken = unblocked = pushed = 0
        for turn in range(150):
            for waiter in waiters:
                waiter.send("BLPOP", "l", "0")
            pusher.send_raw(encode(["RPUSH", "l", "x"]) * 4)
            answers = admin.pipeline([("CLIENT", "UNBLOCK", id, ("TIMEOUT", "ERROR")[turn % 2]) for id in ids])
            pushed += 4
            assert [pusher.read().kind for _ in range(4)] == ["integer"] * 4
            unblocked += sum(answer.value for answer in answers)
            while not all(waiter.has_input() for waiter in waiters):
                unblocked += sum(answer.value for answer in admin.pipeline([("CLIENT", "UNBLOCK", id) for id in ids]))
            replies = [waiter.read() for waiter in waiters]
            taken += sum(reply.kind == "array" for reply in replies)
            told = sum(reply.kind == "nullarray" or reply.value == b"UNBLOCKED client unblocked via CLIENT UNBLOCK" for reply in replies)
            assert told + sum(reply.kind == "array" for reply in replies) == len(waiters)
            unblocked -= told
        assert unblocked == 0
        assert taken + admin.call("LLEN", "l").value == pushed
        for waiter in waiters:  # who leaves is as good as unblocked
            waiter.send("BLPOP", "none", "0")
        for waiter, id in zip(waiters, ids):
            waiter.close()
            admin.call("CLIENT", "UNBLOCK", id)
    wait_until(lambda: blocked(server) == 0)
