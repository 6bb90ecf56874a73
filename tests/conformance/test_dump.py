"""DUMP and RESTORE, both ways between Ingot and a real redis-server.

Of every value the dump of each server is restored on the other; type, encoding and digest must then
be the same. Where Redis' bytes follow from the contents alone, Ingot's must be the very same. Dumps
in the forms of earlier versions are made here and given to both.
"""

import random
import struct

import pytest
from support.resp import Reply

POLYNOMIAL = 0x95AC9329AC4BC9B5  # of CRC-64 Jones, its bits reversed


def crc64(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc


def sealed(body, version=10):
    body = body + struct.pack("<H", version)
    return body + struct.pack("<Q", crc64(body))


def raw(text):
    assert len(text) < 1 << 14
    return (bytes([len(text)]) if len(text) < 64 else struct.pack(">H", 0x4000 | len(text))) + text


def ziplist(*items):
    entries, before, tail = b"", 0, 10
    for item in items:
        tail = 10 + len(entries)
        entry = bytes([before, len(item)]) + item
        before = len(entry)
        entries += entry
    return struct.pack("<IIH", 11 + len(entries), tail, len(items)) + entries + b"\xff"


# --- values: name -> (commands on the key "k", whether the bytes must be equal)

MIXED = [b"", b"a", b"0", b"-1", b"127", b"128", b"4095", b"-4097", b"32768", b"8388608", b"2147483648",
         b"-9223372036854775808", b"9223372036854775807", b"9223372036854775808", b"007", b"-0", b"+1",
         b"x" * 20, b"x" * 21, b"x" * 63, b"x" * 64, b"y" * 4095, b"z" * 4096, bytes(range(256)),
         b"the quick brown fox " * 20]  # fmt: skip
SHORT = [item for item in MIXED if len(item) <= 64]


def noise(seed, size, letters):
    chance = random.Random(seed)
    return bytes(chance.randrange(letters) for _ in range(size))


VALUES = {f"string {i}": ([("SET", "k", value)], True) for i, value in enumerate(MIXED)}
VALUES["a long string"] = ([("SET", "k", random.Random(1).randbytes(3 << 20))], False)
VALUES["a long string that compresses"] = ([("SET", "k", bytes(range(256)) * (8 << 10))], False)
for size in (40, 1000, 20000, 300000):
    for letters in (2, 30, 256):
        VALUES[f"string of {size} bytes, {letters} letters"] = ([("SET", "k", noise(size, size, letters))], True)
VALUES |= {
    "list": ([("RPUSH", "k", *MIXED)], True),
    "list: one": ([("RPUSH", "k", "a")], True),
    "list: large": ([("RPUSH", "k", *[b"element %d" % i for i in range(3000)])], True),
    "list: large elements": ([("RPUSH", "k", *[noise(i, 3000 + 997 * i, 40) for i in range(12)])], True),
    "sorted set": ([("ZADD", "k", 1, "a", 2.5, "b", "-inf", "c", 1e17, "d", 3, "12")], True),
    "sorted set: long members": ([("ZADD", "k", 1, "m" * 65, 2, "b" * 600)], True),
    "sorted set: scores of -0": (
        [("ZADD", "k", *[w for i in range(200) for w in (-1, f"member {i}")]), ("ZADD", "k", "-0", "a")], True),
    "sorted set: a long member, and -0": ([("ZADD", "k", 1, "m" * 65), ("ZADD", "k", "-0", "a")], True),
    "sorted set: large": ([("ZADD", "k", *[w for i in range(600) for w in (i / 7, f"member {i}")])], True),
    "intset: 16 bits": ([("SADD", "k", 3, -1, 2)], True),
    "intset: 32 bits": ([("SADD", "k", 3, -70000, 2)], True),
    "intset: 64 bits": ([("SADD", "k", 3, 1 << 40, 2)], True),
    "intset: 512": ([("SADD", "k", *range(512))], True),
    "set of integers": ([("SADD", "k", *range(513))], False),
    "set": ([("SADD", "k", *MIXED)], False),
    "set: large": ([("SADD", "k", *[b"member %d" % i for i in range(3000)])], False),
    "hash": ([("HSET", "k", *[w for f in SHORT for w in (f, f + b"v"[: 64 - len(f)])])], True),
    "hash: long value": ([("HSET", "k", *[w for f in MIXED for w in (f, b"v")])], False),
    "stream": ([("XADD", "k", "1-1", "a", 1), ("XADD", "k", "1-2", "a", "text", "b", ""), ("XADD", "k", "9", "a", 7)], True),
    "stream: large": ([("XADD", "k", f"{i // 3}-{i}", *[w for j in range(i % 4 + 1) for w in (f"f{j}", "v" * (i % 90))])
                       for i in range(1, 500)], True),
    "stream: empty": ([("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")], True),
    "stream: trimmed and deleted": (
        [("XADD", "k", f"{i}-1", "field", i) for i in range(1, 150)]
        + [("XTRIM", "k", "MAXLEN", 120), ("XDEL", "k", "60-1", "149-1", "150-1")], False),
    "stream: groups": (
        [("XADD", "k", f"{i}-1", "field", i) for i in range(1, 9)]
        + [("XGROUP", "CREATE", "k", "g", 0), ("XGROUP", "CREATE", "k", "other", "3-1", "ENTRIESREAD", 3),
           ("XREADGROUP", "GROUP", "g", "alice", "COUNT", 3, "STREAMS", "k", ">"),
           ("XREADGROUP", "GROUP", "g", "bob", "COUNT", 2, "STREAMS", "k", ">"), ("XACK", "k", "g", "2-1"),
           ("XGROUP", "CREATECONSUMER", "k", "other", "idle one"), ("XSETID", "k", "20-5")], False),
    "hash: 513 fields": ([("HSET", "k", *[w for f in range(513) for w in (f, f)])], False),
}  # fmt: skip

# --- dumps by hand: name -> body

BODIES = {
    "list, one by one": b"\x01\x03" + raw(b"a") + raw(b"12") + b"\xc0\x05",
    "list, one ziplist": b"\x0a" + raw(ziplist(b"a", b"bc", b"12")),
    "list of ziplists": b"\x0e\x02" + raw(ziplist(b"a")) + raw(ziplist(b"b", b"c")),
    "list, a plain node": b"\x12\x01\x01" + raw(b"plain"),
    "set": b"\x02\x02" + raw(b"a") + raw(b"b"),
    "set of integers": b"\x02\x02\xc0\x07" + raw(b"1"),
    "hash": b"\x04\x01" + raw(b"f") + raw(b"v"),
    "hash, zipmap": b"\x09" + raw(b"\x02\x01f\x02\x03vw---\x01g\x01\x00x\xff"),
    "hash, zipmap with a long value": b"\x09" + raw(b"\x01\x01f\x46\x00" + b"v" * 70 + b"\xff"),
    "hash, ziplist": b"\x0d" + raw(ziplist(b"f", b"v", b"g", b"12")),
    "hash, ziplist with a long value": b"\x0d" + raw(ziplist(b"f", b"v" * 62)),
    "sorted set, scores as text": b"\x03\x02" + raw(b"a") + b"\x011" + raw(b"b") + b"\xfe",
    "sorted set": b"\x05\x01" + raw(b"a") + b"\0\0\0\0\0\0\xf0\x3f",
    "sorted set, ziplist": b"\x0c" + raw(ziplist(b"a", b"1", b"b", b"2.5")),
    "empty list": b"\x01\x00",
    "empty set": b"\x02\x00",
    "empty hash": b"\x04\x00",
    "empty quicklist": b"\x12\x00",
    "a member twice": b"\x02\x02" + raw(b"a") + raw(b"a"),
    "a module's": b"\x07\x01",
    "unknown type": b"\x63",
    "intset: unknown width": b"\x0b" + raw(b"\x03\x00\x00\x00\x01\x00\x00\x00abc"),
    "ziplist: wrong length": b"\x0a" + raw(b"\x20" + ziplist(b"a")[1:]),
    "listpack: wrong length": b"\x10" + raw(b"\x09\x00\x00\x00\x00\x00\xff"),
    "LZF: broken": b"\x00\xc3\x03\x0a\xff\xff\xff",
}  # fmt: skip

HELLO = bytes.fromhex("000568656c6c6f0a006372df766534200a")
ERRORS = [
    ("DUMP",), ("DUMP", "a", "b"), ("DUMP", "missing"), ("RESTORE", "k", 0), ("SET", "there", "v"),
    ("RESTORE", "there", 0, HELLO), ("RESTORE", "there", "x", "bad"), ("RESTORE", "there", -1, "bad", "REPLACE"),
    ("RESTORE", "there", "x", "bad", "REPLACE"), ("RESTORE", "there", 0, "bad", "REPLACE"),
    ("RESTORE", "k", 0, HELLO[:-1] + b"x"), ("RESTORE", "k", 0, sealed(HELLO[:-10], 11)),
    ("RESTORE", "k", 0, sealed(HELLO[:-10], 7)), ("GET", "k"), ("RESTORE", "k", 0, HELLO, "FOO"),
    ("RESTORE", "there", 0, HELLO, "IDLETIME"), ("RESTORE", "there", 0, HELLO, "IDLETIME", "x"),
    ("RESTORE", "there", 0, HELLO, "IDLETIME", -1), ("RESTORE", "there", 0, HELLO, "FREQ", 256),
    ("RESTORE", "there", 0, HELLO, "FREQ", -1), ("RESTORE", "there", 0, HELLO, "FREQ", 1, "IDLETIME", 1),
    ("RESTORE", "there", 0, HELLO, "IDLETIME", 1, "FREQ", 1), ("RESTORE", "i", 0, HELLO, "IDLETIME", 1),
    ("RESTORE", "there", 0, HELLO, "replace"), ("GET", "there"), ("TTL", "there"),
    ("RESTORE", "there", 1000000, HELLO, "REPLACE", "REPLACE"), ("TTL", "there"),
    ("RESTORE", "there", 32503680000000, HELLO, "REPLACE", "ABSTTL"), ("PEXPIRETIME", "there"),
    ("RESTORE", "there", 1, HELLO, "REPLACE", "ABSTTL"), ("EXISTS", "there"),
    ("RESTORE", "new", 1, HELLO, "ABSTTL"), ("EXISTS", "new"),
]  # fmt: skip


def same(pair, *command):
    expected, actual = pair.both(*command)
    assert expected == actual, f"{command!r:.200}: {expected} and {actual}"
    return expected


@pytest.mark.parametrize("name", VALUES)
def test_values(empty_pair, name):
    commands, equal = VALUES[name]
    for command in commands:
        same(empty_pair, *command)
    dumps = [reply.value for reply in empty_pair.both("DUMP", "k")]
    if equal:
        assert dumps[0] == dumps[1]
    for dump in dumps:
        same(empty_pair, "RESTORE", "copy", "0", dump, "REPLACE")
        for question in (("TYPE", "copy"), ("OBJECT", "ENCODING", "copy"), ("DEBUG", "DIGEST-VALUE", "k", "copy")):
            same(empty_pair, *question)
        if name.startswith("stream"):
            for question in (("XINFO", "GROUPS", "copy"), ("XPENDING", "copy", "g"), ("XINFO", "CONSUMERS", "copy", "x"),
                             ("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "copy", 0)):  # fmt: skip
                same(empty_pair, *question)
            told = [reply.value for reply in empty_pair.both("XINFO", "STREAM", "copy")]
            assert [told[0][i] for i in range(len(told[0])) if i not in (3, 5)] == [
                told[1][i] for i in range(len(told[1])) if i not in (3, 5)
            ]  # how many nodes Redis has, ours does not follow
        digests = empty_pair.both("DEBUG", "DIGEST-VALUE", "k", "copy")[1].value
        assert digests[0] == digests[1]


@pytest.mark.parametrize("name", BODIES)
def test_bodies(empty_pair, name):
    reply = same(empty_pair, "RESTORE", "k", "0", sealed(BODIES[name]))
    if reply.kind != "error":
        same(empty_pair, "OBJECT", "ENCODING", "k")
        same(empty_pair, "DEBUG", "DIGEST-VALUE", "k")
    same(empty_pair, "DBSIZE")


def test_errors(empty_pair):
    for command in ERRORS:
        same(empty_pair, *command)


# --- a stream as Redis 6.2 dumps it, which does not tell how far its groups have read


class Scanner:
    """Reads the bytes of a dump that compresses nothing."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def length(self):
        first = self.take(1)[0]
        if first >> 6 == 0:
            return first
        if first >> 6 == 1:
            return (first & 63) << 8 | self.take(1)[0]
        return int.from_bytes(self.take(4 if first == 0x80 else 8), "big")

    def string(self):
        return self.take(self.length())

    def copy(self, read):
        begin = self.at
        read()
        return self.data[begin : self.at]


def in_form_of_redis_62(dump):
    """The payload of a stream without pending entries, of type 19 as Redis 7.0 writes it, as one of type 15."""
    scanner = Scanner(dump)
    assert scanner.take(1) == b"\x13"
    body = b"\x0f"
    nodes = scanner.length()
    scanner.at = 1
    body += scanner.copy(lambda: [scanner.length()] + [scanner.string() for _ in range(2 * nodes)])
    body += scanner.copy(lambda: [scanner.length() for _ in range(3)])  # length, last ID
    for _ in range(5):  # first ID, the highest that was deleted, entries ever added
        scanner.length()
    groups = scanner.length()
    body += bytes([groups])
    for _ in range(groups):
        body += scanner.copy(lambda: [scanner.string(), scanner.length(), scanner.length()])
        scanner.length()  # entries read
        body += scanner.copy(lambda: [scanner.length(), scanner.length()])  # nothing pending, no consumers
    return sealed(body, version=9)


@pytest.mark.parametrize("entries", [0, 1, 5])
def test_a_stream_of_redis_62(empty_pair, entries):
    redis = empty_pair.admins[0]
    redis.call("CONFIG", "SET", "rdbcompression", "no")
    for i in range(entries):
        redis.call("XADD", "s", f"{10 + i}-0", "f", i)
    for i, position in enumerate(("0", "5-0", "10-0", "11-5", "12-0", "14-0", "20-0")):
        redis.call("XGROUP", "CREATE", "s", f"g{i}", position, "MKSTREAM")
    payload = in_form_of_redis_62(redis.call("DUMP", "s").value)
    redis.call("CONFIG", "SET", "rdbcompression", "yes")
    assert empty_pair.both("RESTORE", "k", 0, payload) == (Reply("simple", b"OK"),) * 2
    for command in (("XINFO", "GROUPS", "k"), ("DEBUG", "DIGEST-VALUE", "k")):
        expected, actual = empty_pair.both(*command)
        assert actual == expected, command


def test_entries_from_a_host_whose_clock_is_ahead(empty_pair):
    redis = empty_pair.admins[0]
    redis.pipeline([("XADD", "s", "1-1", "f", "v"), ("XGROUP", "CREATE", "s", "g", 0)])
    redis.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    body = redis.call("DUMP", "s").value[:-10]
    entry = struct.pack(">QQ", 1, 1)
    at = body.rindex(entry, 0, body.rindex(entry)) + len(entry)  # in the group's list, the consumer's stands behind it
    payload = sealed(body[:at] + struct.pack("<Q", 4_102_444_800_000) + body[at + 8 :])
    assert empty_pair.both("RESTORE", "k", 0, payload) == (Reply("simple", b"OK"),) * 2
    for command in (("XPENDING", "k", "g", "-", "+", 9), ("XPENDING", "k", "g", "IDLE", 0, "-", "+", 9, "c")):
        expected, actual = empty_pair.both(*command)
        assert actual == expected and len(expected.value) == 1, command
