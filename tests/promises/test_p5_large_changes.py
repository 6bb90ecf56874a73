"""P5 and units without end: whatever is removed from a large collection or added to it, nobody else waits for
it, the memory stays within its bound, and kill -9 leaves all of it or nothing."""

import os
import signal
import threading
import time

import pytest
from harness import OK, Crew, check_key_count, info, timed_ms
from memory_bound import MemoryWatch, limited
from support.effort import FULL
from support.servers import Server, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis does all of it on one thread")

COUNT = 1_000_000 if FULL else 100_000
HALF = COUNT // 2
FEW = 5000
# On an idle machine some tens of milliseconds; when the writer did it all: many seconds. LevelDB's writes wait
# for its compactions.
LONGEST_WAIT_MS = {"rocksdb": 1000.0, "leveldb": 3000.0}


def name(number):
    return b"e%09d" % number


ELEMENTS = {  # type -> command, words of an element
    "hash": (b"HSET", lambda number: (name(number), b"v")),
    "list": (b"RPUSH", lambda number: (name(number),)),
    "set": (b"SADD", lambda number: (name(number),)),
    "zset": (b"ZADD", lambda number: (b"%d" % number, name(number))),
    "stream": (b"XADD", lambda number: (b"%d-1" % (number + 1), b"f", b"v")),
}
COUNTED = {"hash": "HLEN", "list": "LLEN", "set": "SCARD", "zset": "ZCARD", "stream": "XLEN"}
EVERY_SECOND = [name(number) for number in range(0, COUNT, 2)]

NEW = [b"new%09d" % number for number in range(HALF)]
SCORED = [word for number, member in enumerate(NEW) for word in (number * 7919 % COUNT, member)]

# type -> (command, how many elements go)
CHANGES = {
    "zset": [
        (("ZREMRANGEBYRANK", "k", COUNT // 10, COUNT // 10 + HALF - 1), HALF),
        (("ZREMRANGEBYSCORE", "k", 0, HALF - 1), HALF),
        (("ZPOPMIN", "k", HALF), HALF),
        (("ZPOPMAX", "k", FEW), FEW),
        (("ZMPOP", 1, "k", "MAX", "COUNT", HALF), HALF),
        (("ZREM", "k", *EVERY_SECOND), HALF),
        (("ZADD", "k", *SCORED), -HALF),
    ],
    "set": [
        (("SPOP", "k", COUNT - 1), COUNT - 1),
        (("SPOP", "k", 1000), 1000),
        (("SPOP", "k", FEW), FEW),
        (("SREM", "k", *EVERY_SECOND), HALF),
        (("SADD", "k", *NEW), -HALF),
    ],
    "hash": [
        (("HDEL", "k", *EVERY_SECOND), HALF),
        (("HSET", "k", *(word for field in NEW for word in (field, b"v"))), -HALF),
    ],
    "list": [
        (("LTRIM", "k", HALF, -1), HALF),
        (("RPOP", "k", HALF), HALF),
        (("LMPOP", 1, "k", "LEFT", "COUNT", HALF), HALF),
        (("LINSERT", "k", "BEFORE", name(HALF), "x"), -1),
        (("LREM", "k", 0, name(HALF)), 1),
        (("LPUSH", "k", *NEW), -HALF),
    ],
    "stream": [
        (("XTRIM", "k", "MAXLEN", HALF), HALF),
        (("XTRIM", "k", "MINID", HALF + 1), HALF),
        (("XADD", "k", "MAXLEN", HALF, "*", "f", "v"), HALF),
        (("XGROUP", "DESTROY", "k", "group"), 0),
        (("XGROUP", "DELCONSUMER", "k", "group", "one"), 0),
    ],
}


def fill(client, kind, key, count):
    command, words = ELEMENTS[kind]
    each = 1 if kind == "stream" else 500
    lines = []
    for first in range(0, count, each):
        line = [command, key]
        for number in range(first, min(first + each, count)):
            line += words(number)
        lines.append(line)
        if len(lines) * each >= 5000 or first + each >= count:
            assert not any(reply.is_error() for reply in client.pipeline(lines))
            lines = []


def read_by_group(client, key, count):
    assert client.call("XGROUP", "CREATE", key, "group", "0").value == b"OK"
    for _ in range(0, count, 10_000):
        client.call("XREADGROUP", "GROUP", "group", "one", "COUNT", 10_000, "STREAMS", key, ">")


def size(client, kind, key):
    return client.call(COUNTED[kind], key).value


def longest_wait_ms(server, work):
    """The longest that another client's SET took while `work` ran."""
    took = []

    def write(stop):
        with server.client(timeout=120) as other:
            while not stop.is_set():
                took.append(timed_ms(other, "SET", "beside", "x")[1])

    with Crew() as crew:
        crew.add(write, crew.stop)
        time.sleep(0.05)
        work()
    return max(took)


@pytest.mark.timed
@pytest.mark.seconds(240)
@pytest.mark.parametrize("kind", CHANGES)
def test_nobody_waits_for_a_large_change(engine, kind):
    if engine == "leveldb" and kind not in ("zset", "list") and not FULL:
        pytest.skip("two types show it")
    with limited(engine) as (server, memory), server.client(timeout=240) as client:
        fill(client, kind, "all", COUNT)
        if kind == "stream":
            read_by_group(client, "all", COUNT)
        for command, gone in CHANGES[kind]:
            assert client.call("COPY", "all", "k", "REPLACE").value == 1
            memory.check("filling")
            wait_ms = longest_wait_ms(server, lambda command=command: client.call(*command))
            what = " ".join(str(word) for word in command[:4])
            print(f"{what}: others waited {wait_ms:.1f} ms at most")
            assert size(client, kind, "k") == COUNT - gone
            memory.check(what)
            assert wait_ms < LONGEST_WAIT_MS[engine], what


@pytest.mark.timed
def test_nobody_waits_while_large_members_change_places(engine):
    """Each is a leaf of the order: whoever looked for the next one walked over all that had gone (1.7 s, LevelDB 6)."""
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        members = [b"%05d" % number + bytes(6000) for number in range(3000)]
        for first in range(0, 3000, 250):
            client.call("ZADD", "k", *(word for number in range(first, first + 250) for word in (number, members[number])))
        moved = members[1000:2000]
        for scores in ([10_000] * 1000, range(500, 1500)):
            command = ["ZADD", "k", "CH", *(word for pair in zip(scores, moved, strict=True) for word in pair)]
            wait_ms = longest_wait_ms(server, lambda command=command: client.call(*command))
            print(f"others waited {wait_ms:.1f} ms at most")
            memory.check("ZADD")
            assert wait_ms < LONGEST_WAIT_MS[engine]
            wanted = sorted([*zip(scores, moved, strict=True), *((number, members[number]) for number in (*range(1000), *range(2000, 3000)))])
            for at in range(0, 3000, 500):
                assert [name.value for name in client.call("ZRANGE", "k", at, at + 499).value] == [name for _, name in wanted[at : at + 500]]


LARGE = 700
POPS = {
    "list": [("LPOP", "k", LARGE), ("RPOP", "k", LARGE), ("LMPOP", 1, "k", "LEFT", "COUNT", LARGE)],
    "zset": [("ZPOPMIN", "k", LARGE), ("ZPOPMAX", "k", LARGE), ("ZMPOP", 1, "k", "MAX", "COUNT", LARGE)],
}


@pytest.mark.parametrize("kind", POPS)
def test_what_is_popped_at_once_arrives(engine, kind):
    """By their number they are few, and 42 MB: the connection was closed, and they were gone."""
    with limited(engine) as (server, watch), server.client(timeout=60) as client:
        large = {b"%05d" % number + bytes(60_000) for number in range(LARGE)}
        for pop in POPS[kind]:
            for score, element in enumerate(sorted(large)):
                client.call(*(("ZADD", "k", score, element) if kind == "zset" else ("RPUSH", "k", element)))
            client.call(*(("ZADD", "k", -1, "first") if kind == "zset" else ("LPUSH", "k", "first")))
            watch.check("filling")
            reply = client.call(*pop)
            assert not reply.is_error(), reply
            watch.check(pop[0])
            words = reply.value if "MPOP" not in pop[0] else reply.value[1].value
            got = [word.value[0].value if word.kind == "array" else word.value for word in words]
            assert len(large & set(got)) == LARGE - ("MAX" not in pop and pop[0] not in ("RPOP", "ZPOPMAX"))
            assert size(client, kind, "k") == 1
            if kind == "zset":
                for score, element in enumerate(sorted(large)):
                    client.call("ZADD", "k", score, element)
                assert client.call("ZREMRANGEBYRANK", "k", 1, LARGE - 1).value == LARGE - 1
                watch.check("ZREMRANGEBYRANK")
            client.call("DEL", "k")


def test_what_is_drawn_at_once_arrives(engine):
    """It was held, and the connection closed. What an EXEC or a script cannot be given is refused."""
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        large = [b"%05d" % number + bytes(60_000) for number in range(LARGE)]
        for score, element in enumerate(large):
            client.call("SADD", "s", element)
            client.call("ZADD", "z", score, element)
            client.call("XADD", "x", "%d-1" % (score + 1), "f", element)
        memory.check("filling")
        for draw in (("SRANDMEMBER", "s"), ("ZRANDMEMBER", "z")):
            for count in (LARGE, LARGE // 2, LARGE // 4, 3):
                drawn = {each.value for each in client.call(*draw, count).value}
                assert len(drawn) == count and drawn <= set(large), (draw, count)
                memory.check(draw[0])
        scores = [each.value for each in client.call("ZRANDMEMBER", "z", LARGE, "WITHSCORES").value]
        assert dict(zip(scores[::2], map(int, scores[1::2]), strict=True)) == {name: at for at, name in enumerate(large)}
        for read in (("SRANDMEMBER", "s", LARGE), ("SUNION", "s", "nosuch"), ("XRANGE", "x", "-", "+"), ("XREAD", "STREAMS", "x", 0)):
            refused = client.pipeline([["MULTI"], ["SET", "w", "1"], read, ["EXEC"]])[-1]
            assert refused.value.startswith(b"EXECABORT"), read
            refused = client.call("EVAL", "return #redis.call(unpack(ARGV))", 0, *read)
            assert refused.value.startswith(b"OOM"), read
        assert client.call("EXISTS", "w").value == 0


def test_few_elements_that_are_drawn_may_be_large(engine):
    with limited(engine, **{"client-output-buffer-limit": "normal 1mb 0 0"}) as (server, _), server.client(timeout=60) as client:
        large = [b"%05d" % number + bytes(30_000) for number in range(200)]
        for element in large:
            client.call("SADD", "s", element)
            client.call("ZADD", "z", 1, element)
            client.call("HSET", "h", element, "v")
        for draw in (("SRANDMEMBER", "s"), ("ZRANDMEMBER", "z"), ("HRANDFIELD", "h")):
            for count in (60, -60, -300, -600):
                drawn = [each.value for each in client.call(*draw, count).value]
                assert len(drawn) == abs(count) and set(drawn) <= set(large), (draw, count)
                assert count < 0 or len(set(drawn)) == count, draw


def test_what_is_popped_is_large_behind_a_small_one(engine):
    with limited(engine) as (server, _), server.client(timeout=60) as client:
        large = bytes(2_000_000)
        for pop in (("LPOP", "k", 11), ("LMPOP", 1, "k", "LEFT", "COUNT", 11), ("RPOP", "k", 11)):
            for element in ("small", *[large] * 10, "small"):
                assert not client.call("RPUSH", "k", element).is_error()
            reply = client.call(*pop)
            elements = reply.value[1].value if pop[0] == "LMPOP" else reply.value
            assert [each.value for each in elements] == [b"small", *[large] * 10], pop
            assert client.call("LLEN", "k").value == 1
            client.call("DEL", "k")


def test_large_members_that_come_and_go(engine):
    """6 MB at a time: the writer held them some times over, LevelDB's indexes once more, and what was freed stayed (12 MB: 259 and 186 MB)."""
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        for number in range(20):
            members = [word for i in range(100) for word in (number * 100 + i, os.urandom(60_000))]
            assert client.call("ZADD", "k", *members).value == 100
            memory.check("ZADD")
            assert client.call("ZCARD", "k").value == 100
            assert client.call("ZRANK", "k", members[199]).value == 99
            assert client.call("DEL", "k").value == 1


def test_a_claim_of_more_than_can_be_answered_is_refused(engine):
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        client.call("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
        ids = [client.call("XADD", "s", "*", "f", bytes(60_000)).value for _ in range(LARGE)]
        for _ in range(3):
            client.call("XREADGROUP", "GROUP", "g", "one", "COUNT", LARGE // 2, "STREAMS", "s", ">")
        memory.check("filling")
        claim = client.call("XCLAIM", "s", "g", "two", 0, *ids)
        assert claim.value == b"OOM command not allowed when used memory > 'maxmemory'."
        memory.check("XCLAIM")
        assert [each.value for each in client.call("XPENDING", "s", "g").value[3].value[0].value] == [b"one", b"%d" % LARGE]
        assert len(client.call("XCLAIM", "s", "g", "two", 0, *ids[:100]).value) == 100


def busy(server, kind, stop):
    """Changes the collection all the time."""
    change = {
        "zset": ("ZADD", "k", 1, "another"),
        "set": ("SADD", "k", "another"),
        "list": ("LSET", "k", 0, "x"),
    }[kind]
    undo = {"zset": ("ZREM", "k", "another"), "set": ("SREM", "k", "another"), "list": ("LSET", "k", 0, "y")}[kind]
    with server.client(timeout=120) as client:
        while not stop.is_set():
            client.call(*change)
            client.call(*undo)


@pytest.mark.timed
@pytest.mark.parametrize("kind", ["zset", "set", "list"])
def test_a_collection_that_changes_all_the_time(engine, kind):
    """Those who change it wait for the removal in the end; others never do."""
    count = COUNT // 4
    command = {"zset": ("ZPOPMAX", "k"), "set": ("SPOP", "k"), "list": ("RPOP", "k")}[kind] + (count // 2,)
    if engine == "leveldb" and kind != "zset" and not FULL:
        pytest.skip("one type shows it")
    with limited(engine) as (server, _), server.client(timeout=120) as client:
        fill(client, kind, "k", count)
        with Crew() as crew:
            crew.add(busy, server, kind, crew.stop)
            replies = []
            wait_ms = longest_wait_ms(server, lambda: replies.append(client.call(*command)))
        print(f"others waited {wait_ms:.1f} ms at most")
        assert len(replies[0].value) == count // 2 * (2 if kind == "zset" else 1)
        assert count // 2 <= size(client, kind, "k") <= count // 2 + 2
        assert wait_ms < LONGEST_WAIT_MS[engine]


@pytest.mark.timed
def test_a_store_whose_sources_change_all_the_time(engine):
    """SORT with BY and GET reads keys that its arguments do not name, and sees one state of them."""
    count = 20_000
    with limited(engine) as (server, _), server.client(timeout=120) as client:
        fill(client, "set", "k", count)
        pair = ["MSET", "w:" + name(7).decode(), 0, "g:" + name(7).decode(), 0]
        client.call(*pair)

        def change(stop):
            with server.client(timeout=120) as other:
                number = 0
                while not stop.is_set():
                    number += 1
                    other.call("MSET", pair[1], number, pair[3], number)

        sort = ("SORT", "k", "BY", "w:*", "GET", "w:*", "GET", "g:*", "STORE", "sorted")
        with Crew() as crew:
            crew.add(change, crew.stop)
            for _ in range(3):
                wait_ms = longest_wait_ms(server, lambda: client.call(*sort))
                weight, gotten = (each.value for each in client.call("LRANGE", "sorted", -2, -1).value)
                assert weight == gotten
                assert wait_ms < LONGEST_WAIT_MS[engine]
        assert client.call("LLEN", "sorted").value == 2 * count


@pytest.mark.seconds(120)
@pytest.mark.parametrize("kind", ["zset", "list", "stream"])
def test_kill_9_in_the_middle_of_a_removal(engine, kind, rng):
    """All of it or nothing: the counts agree with the elements, and an answered removal has happened."""
    if engine == "leveldb" and kind != "zset" and not FULL:
        pytest.skip("one type shows it")
    count = 30_000
    command = {
        "zset": ("ZREMRANGEBYRANK", "k", 0, count // 2 - 1),
        "list": ("LTRIM", "k", count // 2, -1),
        "stream": ("XTRIM", "k", "MAXLEN", count // 2),
    }[kind]
    read_all = {"zset": ("ZRANGE", "k", 0, -1), "list": ("LRANGE", "k", 0, -1), "stream": ("XRANGE", "k", "-", "+")}
    with limited(engine) as (server, _):
        with server.client(timeout=60) as client:
            fill(client, kind, "all", count)
        for _ in range(20 if FULL else 4):
            with server.client(timeout=60) as client:
                assert client.call("COPY", "all", "k", "REPLACE").value == 1
                ends = threading.Timer(rng.uniform(0.0, 0.25), os.kill, (server.process.pid, signal.SIGKILL))
                ends.start()
                reply = client.call(*command)
                answered = reply.kind != "closed"
                assert not reply.is_error(), reply
                ends.join()
            server.restart(kill=True)
            with server.client(timeout=60) as client:
                left = size(client, kind, "k")
                assert left in ((count // 2,) if answered else (count, count // 2))
                assert len(client.call(*read_all[kind]).value) == left
                if kind == "zset":
                    assert client.call("ZSCORE", "k", name(0)).is_null() == (left != count)
                    assert client.call("ZRANK", "k", name(count - 1)).value == left - 1
                check_key_count(client, 2)


@pytest.mark.seconds(60)
def test_transactions_while_others_change_their_key(engine):
    """What was built of another state than the transaction sees is not taken, be it of nothing."""
    few, many = 3000, 5000
    fresh = {
        "list": lambda turn: ("RPUSH", "list", *(b"%d.%d" % (turn, n) for n in range(many))),
        "set": lambda turn: ("SADD", "set", *(b"%d.%d" % (turn, n) for n in range(many))),
        "zset": lambda turn: ("ZADD", "zset", *(w for n in range(many) for w in (n, b"%d.%d" % (turn, n)))),
        "hash": lambda turn: ("HSET", "hash", *(w for n in range(many) for w in (b"%d.%d" % (turn, n), b"v"))),
    }
    small = [("RPUSH", "list", "x"), ("LPOP", "list"), ("SADD", "set", "x"), ("SREM", "set", "x"),
             ("ZINCRBY", "zset", 1, "x"), ("HINCRBY", "hash", "x", 1)]  # fmt: skip

    def change(stop):
        with server.client(timeout=60) as other:
            while not stop.is_set():
                assert not any(reply.is_error() for reply in other.pipeline(small))

    with Server.ingot(engine) as server, server.client(timeout=60) as client:
        for turn in range(60 if FULL else 12):
            for kind in fresh:
                client.call("DEL", kind)
                fill(client, kind, kind, few)
            with Crew() as crew:
                crew.add(change, crew.stop)
                for kind, command in fresh.items():
                    before = size(client, kind, kind)
                    replies = client.pipeline([["MULTI"], command(turn), ["EXEC"]])[-1].value
                    assert replies[0].value >= many, (kind, turn, str(replies)[:100])
                    assert size(client, kind, kind) >= before + many - 2, (kind, turn)
                client.pipeline([["MULTI"], ["COPY", "set", "copy", "REPLACE"], ["EXEC"]])
                assert client.call("TYPE", "copy").value == b"set"


def test_what_a_large_unit_needed_is_given_back(engine):
    """All later writes took its memory, and as long as its tables."""
    with Server.ingot(engine, {"maxmemory": "96mb"}) as server, server.client(timeout=60) as client:
        client.call("SET", "k", "v")
        before = int(info(client, "memory")["used_memory"])
        script = "for n = 1, 300000 do redis.call('SET', 'k:' .. n, '') redis.call('DEL', 'k:' .. n) end"
        assert not client.call("EVAL", script, 0).is_error()
        client.call("SET", "k", "v")
        client.call("MEMORY", "PURGE")
        assert int(info(client, "memory")["used_memory"]) - before < 25 << 20


def test_flushall_of_many_databases(engine):
    """Each of them took a copy of what all of them stand for."""
    with Server.ingot(engine, {"maxmemory": "96mb", "databases": 10_000}) as server, server.client(timeout=60) as client:
        for database in range(10_000):
            client.send("SELECT", database)
            client.send("SET", "k", "v")
        for _ in range(20_000):
            assert not client.read().is_error()
        with MemoryWatch(server) as watch:
            before = watch.peak()
            assert client.call("FLUSHALL") == OK
            assert watch.peak() - before < 50 << 20
        assert client.call("DBSIZE").value == 0
