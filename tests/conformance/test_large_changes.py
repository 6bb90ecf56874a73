"""Commands that add thousands of elements to a collection, take as many from one, or look for one among
thousands: what they answer, what they leave, alone and inside a transaction, and that it can be changed further."""

import contextlib

import pytest
from compare import compare
from support.resp import Reply
from support.servers import self_check

COUNT = 6000
MOST = 5000
LARGE = 12_000
ENTRIES = 34_000


def name(number):
    return b"e%06d" % number


NAMES = [name(number) for number in range(MOST)]
FILLED = {
    "zset": ["ZADD", "zset", *(word for n in range(COUNT) for word in (b"%d" % (n // 3), name(n)))],
    "lexset": ["ZADD", "lexset", *(word for n in range(COUNT) for word in (b"0", name(n)))],
    "set": ["SADD", "set", *(name(n) for n in range(COUNT))],
    "hash": ["HSET", "hash", *(word for n in range(COUNT) for word in (name(n), b"v%d" % n))],
    "list": ["RPUSH", "list", *(name(n % 5000) for n in range(COUNT))],
    # Much larger than what comes to it, or goes.
    "large": ["ZADD", "large", *(word for n in range(30_000) for word in (b"%d" % (n // 3), name(n)))],
    "largeset": ["SADD", "largeset", *(name(n) for n in range(33_000))],
    "largehash": ["HSET", "largehash", *(word for n in range(33_000) for word in (name(n), b"v%d" % n))],
    "largelist": ["RPUSH", "largelist", *(name(n % 5000) for n in range(LARGE))],
    "largegapped": ["RPUSH", "largegapped", *(name(n % 5000) for n in range(LARGE))],
    "largestream": None,
    "wide": None,  # so that too many bytes go
    "gapped": ["RPUSH", "gapped", *(name(n % 5000) for n in range(COUNT))],
    "stream": None,
    "none": None,
}
NEW = [b"new%06d" % number for number in range(MOST)]


def pairs(*words):
    """One of each, in turn: of a word that stands alone, always that."""
    several = [each if isinstance(each, list) else [each] * MOST for each in words]
    return [word for turn in zip(*several) for word in turn]


NUMBERS = [b"%d" % (number * 7 % 4001) for number in range(MOST)]
# The collection, its copy being "k"; how replies are compared; the command.
CASES = [
    ("zset", "", ["ZREMRANGEBYRANK", "k", "100", "-100"]),
    ("zset", "", ["ZREMRANGEBYRANK", "k", "0", "4999"]),
    ("zset", "", ["ZREMRANGEBYRANK", "k", "-5000", "-1"]),
    ("zset", "", ["ZREMRANGEBYRANK", "k", "30", "3000"]),  # the writer's own way
    ("zset", "", ["ZREMRANGEBYRANK", "k", "0", "-1"]),
    ("zset", "", ["ZREMRANGEBYSCORE", "k", "(10", "1900"]),
    ("lexset", "", ["ZREMRANGEBYLEX", "k", "[" + name(20).decode(), "+"]),
    ("zset", "", ["ZPOPMIN", "k", "5000"]),
    ("zset", "", ["ZPOPMAX", "k", "5000"]),
    ("zset", "", ["ZPOPMAX", "k", "4000"]),
    ("zset", "", ["ZPOPMIN", "k", "100000"]),
    ("zset", "", ["ZMPOP", "2", "none", "k", "MAX", "COUNT", "5999"]),
    ("zset", "", ["BZMPOP", "0", "1", "k", "MIN", "COUNT", "5000"]),
    ("zset", "", ["ZREM", "k", "none", *NAMES]),
    ("zset", "", ["ZREM", "k", *(b"none%d" % n for n in range(MOST))]),
    ("set", "", ["SREM", "k", "none", *NAMES]),
    ("set", "sorted", ["SPOP", "k", "100000"]),
    ("hash", "", ["HDEL", "k", "none", *NAMES]),
    ("hash", "", ["HDEL", "k", *(name(n) for n in range(COUNT))]),
    ("list", "", ["LTRIM", "k", "4500", "-10"]),
    ("list", "", ["LTRIM", "k", "-3", "-1"]),
    ("list", "", ["LPOP", "k", "5000"]),
    ("list", "", ["RPOP", "k", "5000"]),
    ("list", "", ["RPOP", "k", "100000"]),
    ("list", "", ["LMPOP", "1", "k", "RIGHT", "COUNT", "5000"]),
    ("list", "", ["BLMPOP", "0", "1", "k", "LEFT", "COUNT", "5000"]),
    ("list", "", ["LINSERT", "k", "BEFORE", name(4000), "x"]),
    ("list", "", ["LINSERT", "k", "AFTER", name(4000), "x"]),
    ("list", "", ["LINSERT", "k", "BEFORE", name(0), "x"]),
    ("list", "", ["LINSERT", "k", "AFTER", "none", "x"]),
    ("list", "", ["LREM", "k", "0", name(4000)]),
    ("list", "", ["LREM", "k", "0", name(10)]),
    ("list", "", ["LREM", "k", "-1", name(10)]),
    ("list", "", ["LREM", "k", "1", name(0)]),
    ("list", "", ["LREM", "k", "3", "none"]),
    ("stream", "", ["XTRIM", "k", "MAXLEN", "1000"]),
    ("stream", "", ["XTRIM", "k", "MAXLEN", "0"]),
    ("stream", "", ["XTRIM", "k", "MINID", "5500-0"]),
    ("stream", "", ["XADD", "k", "MAXLEN", "100", "99999-1", "f", "v"]),
    ("stream", "", ["XADD", "k", "MINID", "99999", "99999-1", "f", "v"]),
    ("stream", "", ["XADD", "k", "MAXLEN", "0", "99999-1", "f", "v"]),
    ("stream", "", ["XGROUP", "DESTROY", "k", "group"]),
    ("stream", "", ["XGROUP", "DESTROY", "k", "none"]),
    ("stream", "", ["XGROUP", "DELCONSUMER", "k", "group", "a"]),
    ("stream", "", ["XGROUP", "DELCONSUMER", "k", "group", "b"]),  # the writer's own way
    ("stream", "", ["XGROUP", "DELCONSUMER", "k", "group", "none"]),
]
REMOVALS = [
    ("large", "", ["ZREMRANGEBYRANK", "k", "100", "5200"]),
    ("large", "", ["ZREMRANGEBYRANK", "k", "0", "4999"]),
    ("large", "", ["ZREMRANGEBYRANK", "k", "-5000", "-1"]),
    ("large", "", ["ZREMRANGEBYSCORE", "k", "(10", "1900"]),
    ("large", "", ["ZPOPMIN", "k", "5000"]),
    ("large", "", ["ZPOPMAX", "k", "5000"]),
    ("large", "", ["ZMPOP", "2", "none", "k", "MAX", "COUNT", "5999"]),
    ("large", "", ["ZREM", "k", "none", *NAMES[::2]]),
    ("large", "", ["ZREM", "k", *(b"none%d" % n for n in range(1100))]),
    ("wide", "", ["ZPOPMAX", "k", "5000"]),
    ("largeset", "", ["SREM", "k", "none", *NAMES[:4100], *NAMES[:9]]),
    ("largeset", "", ["SREM", "k", *(b"none%d" % n for n in range(4100))]),
    ("largehash", "", ["HDEL", "k", "none", *NAMES[:4100], *NAMES[:9]]),
    ("largelist", "", ["LTRIM", "k", "3000", "-3000"]),
    ("largelist", "", ["LPOP", "k", "5000"]),
    ("largelist", "", ["LMPOP", "1", "k", "RIGHT", "COUNT", "5000"]),
    ("largegapped", "", ["LTRIM", "k", "3000", "-3000"]),
    ("largegapped", "", ["LPOP", "k", "5000"]),
    ("largegapped", "", ["RPOP", "k", "5000"]),
    ("largestream", "", ["XTRIM", "k", "MAXLEN", "23900"]),
    ("largestream", "", ["XTRIM", "k", "MINID", "10020-0"]),
    ("largestream", "", ["XADD", "k", "MAXLEN", "23900", "99999-1", "f", "v"]),
    ("largestream", "", ["XGROUP", "DESTROY", "k", "group"]),
    ("largestream", "", ["XGROUP", "DELCONSUMER", "k", "group", "a"]),
]
# The same, for what is added. To see that the mode does not matter, every third and sixth is enough.
ADDITIONS = [
    ("set", "", ["SADD", "k", *NAMES, *NAMES]),
    ("set", "", ["SADD", "k", *NEW, *NAMES, *NEW]),
    ("none", "", ["SADD", "k", *NEW]),
    ("none", "", ["SADD", "k", *NUMBERS]),
    ("none", "", ["SADD", "k", *["same"] * MOST]),
    ("zset", "", ["SADD", "k", *NEW]),
    ("hash", "", ["HSET", "k", *pairs(NAMES, "other"), *pairs(NEW, NAMES), *pairs(NEW, "last")]),
    ("hash", "", ["HMSET", "k", *pairs(NEW, NAMES)]),
    ("none", "", ["HSET", "k", *pairs(NEW, NAMES)]),
    ("none", "", ["HSET", "k", *pairs("same", NAMES)]),
    ("list", "", ["HSET", "k", *pairs(NEW, NAMES)]),
    ("hash", "", ["HSET", "k", *pairs(NEW, NAMES), "odd"]),
    ("zset", "", ["ZADD", "k", *pairs(NUMBERS, NAMES)]),
    ("zset", "", ["ZADD", "k", "CH", *pairs(NUMBERS, NAMES), *pairs("7", NEW)]),
    ("zset", "", ["ZADD", "k", "CH", "GT", *pairs(NUMBERS, NAMES), *pairs("700", NAMES), *pairs(NUMBERS, NEW)]),
    ("zset", "", ["ZADD", "k", "CH", "LT", "XX", *pairs(NUMBERS, NAMES), *pairs(NUMBERS, NEW)]),
    ("zset", "", ["ZADD", "k", "NX", *pairs(NUMBERS, NAMES), *pairs(NUMBERS, NEW), *pairs("1", NEW)]),
    ("zset", "", ["ZADD", "k", "XX", *pairs(NUMBERS, NEW)]),
    ("zset", "", ["ZADD", "k", *pairs(NUMBERS, NEW), "x", "not a number"]),
    ("none", "", ["ZADD", "k", *pairs(NUMBERS, NEW)]),
    ("none", "", ["ZADD", "k", "XX", *pairs(NUMBERS, NEW)]),
    ("none", "", ["ZADD", "k", "CH", *pairs(NUMBERS, "same")]),
    ("set", "", ["ZADD", "k", *pairs(NUMBERS, NEW)]),
    ("none", "", ["GEOADD", "k", *pairs([b"%d" % (n % 180) for n in range(MOST)], "40.5", NEW)]),
    ("list", "", ["RPUSH", "k", *NAMES, *NEW]),
    ("list", "", ["LPUSH", "k", *NAMES, *NEW]),
    ("list", "", ["LPUSHX", "k", *NEW, *NEW]),
    ("list", "", ["RPUSH", "k", *NEW]),  # the writer's own way
    ("none", "", ["LPUSH", "k", *NEW]),
    ("none", "", ["RPUSHX", "k", *NEW]),
    ("hash", "", ["RPUSH", "k", *NEW]),
    ("large", "", ["ZADD", "k", *pairs(NUMBERS, NEW)[:3000]]),
    ("large", "", ["ZADD", "k", "CH", *pairs(NUMBERS, NAMES)[:2000], *pairs("7", NEW)[:2000], *pairs("8", NAMES)[:200]]),
    ("large", "", ["ZADD", "k", "XX", *pairs(NUMBERS, NEW)[:3000]]),
    ("gapped", "", ["LPUSH", "k", *NEW]),
    ("gapped", "", ["RPUSH", "k", *NEW, *NEW]),
    ("gapped", "", ["LPUSH", "k", *NEW, *NEW]),
]
# What is left is changed and read like any other.
AFTERWARDS = {
    "zset": [["ZADD", "k", "-5", "new", "3", "e000003", "9999", "last"], ["ZRANK", "k", "last"],
             ["ZRANGE", "k", "0", "-1", "WITHSCORES"], ["ZPOPMIN", "k"], ["ZSCORE", "k", "e000100"]],
    "set": [["SADD", "k", "new", "e000001"], ["SISMEMBER", "k", "e000002"]],
    "hash": [["HSET", "k", "new", "1"], ["HGET", "k", "e005999"], ["HLEN", "k"]],
    "list": [["RPUSH", "k", "right"], ["LPUSH", "k", "left"], ["LINDEX", "k", "5"], ["LSET", "k", "1", "set"],
             ["LINSERT", "k", "AFTER", "set", "beside"], ["LREM", "k", "2", "e000030"], ["LRANGE", "k", "0", "-1"]],
    "stream": [["XADD", "k", "999999-1", "f", "v"], ["XLEN", "k"], ["XINFO", "STREAM", "k"], ["XRANGE", "k", "-", "+"],
               ["XPENDING", "k", "other"], ["XPENDING", "k", "group"], ["XACK", "k", "group", "5100-1", "100-1"],
               ["XREADGROUP", "GROUP", "group", "b", "COUNT", "3", "STREAMS", "k", "0"]],
}  # fmt: skip
AFTERWARDS["lexset"] = AFTERWARDS["large"] = AFTERWARDS["zset"]
AFTERWARDS["gapped"] = AFTERWARDS["list"]
AFTERWARDS |= {"large" + kind: AFTERWARDS[kind] for kind in ("set", "hash", "list", "gapped", "stream")}
AFTERWARDS["wide"] = AFTERWARDS["large"]
for kind in (kind for kind in FILLED if kind.startswith(("large", "wide"))):  # its digest tells as much
    AFTERWARDS[kind] = [line for line in AFTERWARDS[kind] if line[0] not in ("ZRANGE", "LRANGE", "XRANGE")]
# Whatever was made where there was nothing.
AFTERWARDS["none"] = [["SADD", "k", "x", "new000001"], ["SCARD", "k"], ["SISMEMBER", "k", "new000001"],
                      ["HSET", "k", "x", "1"], ["HGET", "k", "new000001"], ["HLEN", "k"],
                      ["ZADD", "k", "5", "new000009"], ["ZRANGE", "k", "0", "-1", "WITHSCORES"], ["ZRANK", "k", "same"],
                      ["RPUSH", "k", "x"], ["LRANGE", "k", "0", "-1"], ["LREM", "k", "1", "new000001"]]  # fmt: skip


def fill(pair):
    pair.reset()
    for server in pair.servers:
        with server.client(timeout=60) as client:
            lines = [words for words in FILLED.values() if words]
            for key in ("gapped", "largegapped"):
                lines += [["LINSERT", key, "AFTER", name(n), "between"] for n in range(0, 1000, 90)]
            for key, entries in (("stream", COUNT), ("largestream", ENTRIES)):
                lines += [["XADD", key, f"{n}-1", "f", b"v%d" % n] for n in range(1, entries)]
                lines += [["XGROUP", "CREATE", key, each, "0"] for each in ("group", "other")]
                lines += [["XREADGROUP", "GROUP", "group", "a", "COUNT", "5000", "STREAMS", key, ">"],
                          ["XREADGROUP", "GROUP", "group", "b", "COUNT", "500", "STREAMS", key, ">"],
                          ["XREADGROUP", "GROUP", "other", "c", "COUNT", "5", "STREAMS", key, ">"]]  # fmt: skip
            for first in range(0, 11_000, 1000):
                members = range(first, first + 1000)
                lines.append(["ZADD", "wide", *(word for n in members for word in (b"%d" % (n // 3), name(n) + b"x" * 2000))])
            replies = client.pipeline(lines)
            assert not any(reply.is_error() for reply in replies), [reply for reply in replies if reply.is_error()][:3]


@pytest.mark.parametrize("mode", ["alone", "expires-resp3", "transaction"])
def test_large_changes(pair, mode):
    protocol = 3 if mode == "expires-resp3" else 2
    wrap = mode == "transaction"
    fill(pair)
    cases = CASES + (ADDITIONS + REMOVALS if mode == "alone" else ADDITIONS[::6] + [case for case in REMOVALS if case[0] != "wide"][::3])
    for kind, how, command in cases:
        before = [["DEL", "k"], ["COPY", kind, "k", "REPLACE"]]
        if mode == "expires-resp3":
            before.append(["EXPIRE", "k", "5000"])
        if kind == "large":  # so that the writer has its counts in memory
            before.append(["ZADD", "k", "5", "counted"])
        lines = [["MULTI"], command, ["EXEC"]] if wrap else [command]
        replies = []
        for server in pair.servers:
            with server.client(protocol, timeout=30) as client:
                replies.append(client.pipeline(before + lines)[-1])
        what = (kind, command[:5])
        assert compare(how, *replies), (what, str(replies[0])[:300], str(replies[1])[:300])
        digest = ["DEBUG", "DIGEST-VALUE", "k"]
        same = [digest, ["OBJECT", "ENCODING", "k"], ["TTL", "k"], *AFTERWARDS[kind], digest]
        for line in same:
            redis, ingot = pair.both(*line)
            if line[0] == "XINFO":  # how it is kept differs
                continue
            if line[:1] == ["TTL"]:
                assert abs(redis.value - ingot.value) <= 2, what
            else:
                assert redis == ingot, (what, line, str(redis)[:300], str(ingot)[:300])


def test_removals_from_what_the_transaction_has_changed(pair):
    changes = {"large": ["ZADD", "k", "1", "new"], "wide": ["ZADD", "k", "1", "new"], "largeset": ["SADD", "k", "new"],
               "largehash": ["HSET", "k", "new", "v"], "largelist": ["LPUSH", "k", "new"],
               "largegapped": ["RPUSH", "k", "new"], "largestream": ["XADD", "k", "90000-1", "f", "v"]}  # fmt: skip
    fill(pair)
    for kind, _, command in REMOVALS:
        lines = [["DEL", "k"], ["COPY", kind, "k"], ["MULTI"], changes[kind], command, changes[kind][:-1] + ["newer"], ["EXEC"]]
        replies = []
        for server in pair.servers:
            with server.client(timeout=30) as client:
                replies.append(client.pipeline(lines)[-1])
        assert replies[0] == replies[1], (kind, command[:5], str(replies)[:300])
        digests = pair.both("DEBUG", "DIGEST-VALUE", "k")
        assert digests[0] == digests[1], (kind, command[:5])


def test_what_is_taken_in_a_transaction_from_a_far_larger_one(pair):
    """All of it was written anew, by the writer: nobody else could write for seconds."""
    pair.reset()
    replies = []
    for server in pair.servers:
        with server.client(timeout=60) as client:
            for first in range(0, 90_000, 5000):
                numbers = range(first, first + 5000)
                client.call("ZADD", "k", *(word for n in numbers for word in (n // 3, name(n))))
            replies.append(client.pipeline([["MULTI"], ["ZADD", "k", "1", "new"], ["ZPOPMIN", "k", 16_385],
                                            ["ZREMRANGEBYRANK", "k", 40_000, 56_500], ["ZPOPMAX", "k", 3], ["EXEC"]])[-1])  # fmt: skip
    assert replies[0] == replies[1], str(replies)[:300]
    redis, ingot = pair.both("DEBUG", "DIGEST-VALUE", "k")
    assert redis == ingot


@pytest.mark.parametrize("removal", [["DESTROY", "k", "g"], ["DELCONSUMER", "k", "g", "c"]])
def test_a_group_with_much_pending_goes_in_a_transaction(pair, removal):
    pair.reset()
    replies = []
    for server in pair.servers:
        with server.client(timeout=60) as client:
            for first in range(1, 34_001, 2000):
                client.pipeline([["XADD", "k", f"{n}-1", "f", "v"] for n in range(first, first + 2000)])
            for group in "gh":
                client.call("XGROUP", "CREATE", "k", group, "0")
                for count, consumer in ((11_300, "c"), (11_300, "c"), (11_300, "c"), (5, "d")):
                    client.call("XREADGROUP", "GROUP", group, consumer, "COUNT", count, "STREAMS", "k", ">")
            lines = [["MULTI"], ["XADD", "k", "40000-1", "f", "v"], ["XGROUP", *removal], ["XADD", "k", "40001-1", "f", "v"], ["EXEC"]]
            replies.append([*client.pipeline(lines), client.call("XINFO", "GROUPS", "k"), client.call("XPENDING", "k", "h")])
    assert replies[0] == replies[1], str(replies)[:300]
    redis, ingot = pair.both("DEBUG", "DIGEST-VALUE", "k")
    assert redis == ingot


@pytest.mark.parametrize("first", ["DEL", "RENAME", "SET", "itself"])
def test_additions_to_what_the_transaction_has_changed(pair, first):
    fill(pair)
    for kind, _, command in ADDITIONS[::2]:
        before = {"DEL": ["DEL", "k"], "RENAME": ["RENAME", "none" if kind == "none" else "k", "other"],
                  "SET": ["SET", "k", "v"], "itself": command}[first]  # fmt: skip
        copied = [["DEL", "k", "other"], ["COPY", kind, "k", "REPLACE"]]
        replies = []
        for server in pair.servers:
            with server.client(timeout=30) as client:
                replies.append(client.pipeline([*copied, ["MULTI"], before, command, ["EXEC"]])[-1])
        assert replies[0] == replies[1], (kind, command[:5], str(replies)[:300])
        for key in ("k", "other"):
            digests = pair.both("DEBUG", "DIGEST-VALUE", key)
            assert digests[0] == digests[1], (kind, command[:5], key)
    digests = pair.both("DEBUG", "DIGEST")
    assert digests[0] == digests[1]


@pytest.mark.parametrize("key, size, count", [("set", COUNT, count) for count in (200, 3000, 4500, 5999)] + [("largeset", 33_000, 5000)])
def test_members_taken_at_random(pair, key, size, count):
    fill(pair)
    members = {name(number) for number in range(size)}
    with pair.servers[1].client(timeout=30) as client:
        reply = client.call("SPOP", key, count)
        taken = [each.value for each in reply.value]
        left = [each.value for each in client.call("SMEMBERS", key).value]
        assert reply.kind == "array" and len(taken) == count
        assert set(taken) | set(left) == members and len(taken) + len(left) == size
        assert client.call("SCARD", key) == Reply("integer", size - count)
        # Not those that happen to stand first.
        assert abs(sum(int(each[1:]) for each in taken) / count - size / 2) < size * 0.1


@pytest.mark.parametrize("count", [1, 7, 100])
def test_every_member_is_popped_once(pair, count):
    """What is drawn ahead, while members come and go meanwhile."""
    fill(pair)
    with pair.servers[1].client(timeout=30) as client:
        taken, size = [], COUNT
        while size > 0:
            added = [f"new:{size}", f"newer:{size}"] if size > COUNT / 2 else []
            removed = client.call("SRANDMEMBER", "set").value
            commands = [("SREM", "set", removed), *[("SADD", "set", each) for each in added]]
            replies = client.pipeline([*commands, *[("SPOP", "set", count)] * 16])
            taken += [removed, *(each.value for reply in replies[len(commands):] for each in reply.value)]
            assert len(taken) == len(set(taken))
            size += len(added) - 1
            size = max(0, size - 16 * count)
            assert client.call("SCARD", "set") == Reply("integer", size)
        assert {name(number) for number in range(COUNT)} <= set(taken)


@pytest.mark.parametrize("count", [500, 513, 3000, 5000])
@pytest.mark.parametrize("wrap", [["EVAL"], ["MULTI"], ["FCALL"]], ids=lambda wrap: wrap[0])
def test_what_a_script_takes_it_gets(pair, wrap, count):
    """In a script no reply is streamed. Members were removed that nobody got."""
    fill(pair)
    library = "#!lua name=taking\nredis.register_function('take', function(keys, args) return redis.call(unpack(args)) end)"
    for kind, command in (("set", ["SPOP", "set", count]), ("list", ["LPOP", "list", count]), ("zset", ["ZPOPMAX", "zset", count])):
        replies = []
        for server in pair.servers:
            with server.client(timeout=30) as client:
                client.call("FUNCTION", "LOAD", "REPLACE", library)
                if wrap == ["MULTI"]:
                    script = ["EVAL", "return redis.call(unpack(ARGV))", 1, kind, *command]
                    reply = client.pipeline([["MULTI"], script, ["EXEC"]])[-1].value[0]
                elif wrap == ["EVAL"]:
                    reply = client.call("EVAL", "return redis.call(unpack(ARGV))", 1, kind, *command)
                else:
                    reply = client.call("FCALL", "take", 1, kind, *command)
                size = client.call({"set": "SCARD", "list": "LLEN", "zset": "ZCARD"}[kind], kind)
            assert reply.kind == "array", (kind, reply)
            replies.append((len(reply.value), len({each.value for each in reply.value}), size) if kind == "set" else (reply, size))
        assert replies[0] == replies[1], (kind, str(replies)[:300])


TAKERS = {
    "list": (["LPOP", "k", MOST], ["RPOP", "k", MOST], ["LTRIM", "k", MOST, -1]),
    "zset": (["ZPOPMIN", "k", MOST], ["ZPOPMAX", "k", MOST], ["ZREMRANGEBYRANK", "k", 0, MOST - 1]),
    "set": (["SPOP", "k", MOST], ["SPOP", "k", MOST], ["SPOP", "k", MOST]),
}


@pytest.mark.parametrize("kind", TAKERS)
def test_several_take_from_one(empty_pair, kind):
    """Each finds as many as it wants, and fewer when it is its turn."""
    server = empty_pair.servers[1]
    with contextlib.ExitStack() as stack:
        if not self_check():  # the pool sees what those before have left
            threads = empty_pair.admins[1].call("CONFIG", "GET", "reader-threads").value[1].value
            assert empty_pair.admins[1].call("CONFIG", "SET", "reader-threads", 1).value == b"OK"
            stack.callback(empty_pair.admins[1].call, "CONFIG", "SET", "reader-threads", threads)
        clients = [stack.enter_context(server.client(timeout=60)) for _ in range(9)]
        command = {"list": "RPUSH", "zset": "ZADD", "set": "SADD"}[kind]
        for size in (2 * LARGE, COUNT, 2 * LARGE, 2 * COUNT):
            words = [word for n in range(size) for word in ((n, name(n)) if kind == "zset" else (name(n),))]
            clients[0].call(command, "k", *words)
            for number, client in enumerate(clients):
                client.send(*TAKERS[kind][number // 3])
            replies = [client.read() for client in clients]
            assert not any(reply.is_error() for reply in replies), [reply for reply in replies if reply.is_error()][:1]
            taken = [each.value for reply in replies if isinstance(reply.value, list) for each in reply.value if each.value.startswith(b"e")]
            assert len(taken) == len(set(taken))
            assert clients[0].call("EXISTS", "k").value == 0
