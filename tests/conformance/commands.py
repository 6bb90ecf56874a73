"""Seeded random commands for test_random.py: a table of generators over the commands there are.

Every row is (weight, function of a Chance returning the command's words). Keys are few, so that
commands meet; sizes lie around the multiples of 16384, where Ingot cuts long strings. Expiries are
far away or long past, so that no reply depends on when exactly a command ran.
"""

import random

LONG_KEYS = [b"long0", b"long1"]  # more often than the others they hold a long string
KEYS = [b"k%d" % i for i in range(10)] + [b"", b"\x00\xff\r\n", b"user:1:a", b"user:1:b"] + LONG_KEYS
DATABASES = 4
PIECE = 16384
LARGEST = 100_000
FAR = 4_102_444_800  # in seconds: the year 2100
INTEGERS = [0, 1, -1, 7, -42, 10**6, 2**31, 2**63 - 1, -(2**63), 2**63 - 2]
FLOATS = [b"0.1", b"-2.5", b"3.0e3", b"1e-5", b"10.50", b"1e17", b"-0", b"5."]
NOT_NUMBERS = [b"abc", b"", b" 1", b"1.5", b"9223372036854775808", b"0x10", b"nan", b"+1"]
PATTERNS = [b"*", b"k*", b"k[0-4]", b"user:1:*", b"user:*", b"k?", b"", b"nothing*", b"[^k]*", b"*1*"]


class Chance(random.Random):
    """The dice, and what is made of them."""

    def key(self):
        return self.choice(KEYS)

    def keys(self, most=4):
        return [self.key() for _ in range(self.randint(1, most))]

    def long_key(self):
        return self.choice(LONG_KEYS) if self.random() < 0.6 else self.key()

    def size(self):
        if self.random() < 0.5:
            return PIECE * self.randint(1, 6) + self.randint(-2, 2)
        return self.randint(PIECE - 100, LARGEST)

    def value(self):
        kind = self.random()
        if kind < 0.30:
            return b"%d" % (self.choice(INTEGERS) if self.random() < 0.5 else self.randint(-99, 99))
        if kind < 0.38:
            return self.choice(FLOATS)
        if kind < 0.44:
            return self.choice(NOT_NUMBERS)
        if kind < 0.92:
            return self.randbytes(self.choice([0, 1, 3, 20, 43, 44, 45, 46, 200, 1000]))
        return self.long_value()

    def long_value(self):
        return self.randbytes(61) * (self.size() // 61) + self.randbytes(self.randint(0, 60))

    def integer(self):
        if self.random() < 0.1:
            return self.choice(NOT_NUMBERS)
        return b"%d" % (self.choice(INTEGERS) if self.random() < 0.3 else self.randint(-50, 50))

    def offset(self):
        """A place in a string: small, near a border of pieces, from the end, or absurd."""
        kind = self.random()
        if kind < 0.4:
            return self.randint(0, 60)
        if kind < 0.8:
            return PIECE * self.randint(0, 6) + self.randint(-3, 3)
        if kind < 0.95:
            return -self.randint(1, LARGEST)
        return self.choice([2**63 - 1, -(2**63), 536870912])

    def range(self):
        """Two ends: any two offsets, or a short stretch."""
        start = self.offset()
        end = start + self.randint(0, 20) if self.random() < 0.6 else self.offset()
        return [b"%d" % start, b"%d" % end]

    def database(self):
        if self.random() < 0.05:
            return self.choice([b"-1", b"16", b"x"])
        return b"%d" % self.randrange(DATABASES)

    def expiry(self):
        """The words of an expiry option of SET and GETEX; rarely wrong, rarely in the past."""
        kind = self.random()
        if kind < 0.05:
            unit = self.choice([b"EX", b"PX", b"EXAT", b"PXAT"])
            return [unit, self.choice([b"0", b"-1", b"x", b"9223372036854775807"])]
        if kind < 0.07:
            return [b"PXAT", b"1000"]
        unit, scale = self.choice([(b"EX", 1), (b"PX", 1000)])
        if self.random() < 0.5:
            return [unit, b"%d" % (scale * self.randint(10_000, 10_000_000))]
        return [unit + b"AT", b"%d" % (scale * (FAR + self.randint(0, 1000)) + scale // 7)]

    def set(self):
        words = [b"SET", self.key(), self.value()]
        for option in ([b"NX"], [b"XX"], [b"GET"], [b"KEEPTTL"]):
            if self.random() < 0.12:
                words += option
        return words + (self.expiry() if self.random() < 0.15 else [])

    def getex(self):
        if self.random() < 0.3:
            return [b"GETEX", self.key()] + self.choice([[], [b"PERSIST"]])
        return [b"GETEX", self.key()] + self.expiry()

    def expire(self):
        name = self.choice([b"EXPIRE", b"PEXPIRE", b"EXPIREAT", b"PEXPIREAT"])
        scale = 1000 if name.startswith(b"P") else 1
        base = FAR if name.endswith(b"AT") else 0
        when = scale * (base + self.randint(10_000, 10_000_000))
        if self.random() < 0.1:
            when = self.choice([0, -1, 1000 if base else -5])
        options = self.choice([b"", b"", b"", b"NX", b"XX", b"GT", b"LT", b"XX GT", b"NX XX"]).split()
        return [name, self.key(), b"%d" % when] + options

    def setrange(self):
        data = self.value() if self.random() < 0.3 else self.randbytes(self.randint(0, 8))
        offset = min(self.offset(), LARGEST) if self.random() < 0.97 else self.offset()
        return [b"SETRANGE", self.long_key(), b"%d" % offset, data]

    def copy(self):
        words = [b"COPY", self.key(), self.key()]
        words += [b"DB", self.database()] if self.random() < 0.4 else []
        return words + ([b"REPLACE"] if self.random() < 0.5 else [])

    def wrong(self):
        """Something refused before it runs; inside MULTI it aborts the transaction."""
        return self.choice([b"NOSUCH x", b"GET", b"SET k", b"OBJECT NOSUCH", b"INCRBY k"]).split()

    def pairs(self):
        return [word for _ in range(self.randint(1, 4)) for word in (self.key(), self.value())]


TABLE = [
    (14, Chance.set),
    (2, lambda c: [b"SET", c.choice(LONG_KEYS), c.long_value()]),
    (10, lambda c: [b"GET", c.key()]),
    (3, lambda c: [b"MGET", *c.keys()]),
    (3, lambda c: [b"MSET", *c.pairs()]),
    (2, lambda c: [b"MSETNX", *c.pairs()]),
    (2, lambda c: [b"SETNX", c.key(), c.value()]),
    (2, lambda c: [b"GETSET", c.key(), c.value()]),
    (1, lambda c: [b"SETEX", c.key(), b"%d" % c.choice([0, 10_000, 20_000]), c.value()]),
    (1, lambda c: [b"PSETEX", c.key(), b"%d" % c.choice([-1, 10**8]), c.value()]),
    (1, lambda c: [b"GETDEL", c.key()]),
    (3, Chance.getex),
    (5, lambda c: [b"APPEND", c.long_key(), c.value()]),
    (3, lambda c: [b"STRLEN", c.key()]),
    (6, lambda c: [b"GETRANGE", c.long_key(), *c.range()]),
    (1, lambda c: [b"SUBSTR", c.long_key(), *c.range()]),
    (5, Chance.setrange),
    (4, lambda c: [c.choice([b"INCR", b"DECR"]), c.key()]),
    (4, lambda c: [c.choice([b"INCRBY", b"DECRBY"]), c.key(), c.integer()]),
    (2, lambda c: [b"INCRBYFLOAT", c.key(), c.choice(FLOATS + NOT_NUMBERS)]),
    (2, lambda c: [b"DEL", *c.keys(2)]),
    (1, lambda c: [b"UNLINK", *c.keys(2)]),
    (3, lambda c: [b"EXISTS", *c.keys()]),
    (1, lambda c: [b"TOUCH", *c.keys()]),
    (2, lambda c: [b"TYPE", c.key()]),
    (3, lambda c: [b"RENAME", c.key(), c.key()]),
    (2, lambda c: [b"RENAMENX", c.key(), c.key()]),
    (3, Chance.copy),
    (2, lambda c: [b"MOVE", c.key(), c.database()]),
    (6, Chance.expire),
    (3, lambda c: [b"PERSIST", c.key()]),
    (5, lambda c: [c.choice([b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME"]), c.key()]),
    (1, lambda c: [b"KEYS", c.choice(PATTERNS)]),
    (1, lambda c: [b"SCAN", b"0", b"COUNT", b"10000", b"MATCH", c.choice(PATTERNS)]),
    (1, lambda c: [b"RANDOMKEY"]),
    (3, lambda c: [b"OBJECT", b"ENCODING", c.key()]),
    (1, lambda c: [b"DEBUG", b"DIGEST-VALUE", *c.keys(2)]),
    (0.5, lambda c: [b"DEBUG", b"DIGEST"]),
    (2, lambda c: [b"DBSIZE"]),
    (3, lambda c: [b"SELECT", c.database()]),
    (0.5, lambda c: [b"SWAPDB", c.database(), c.database()]),
    (0.4, lambda c: [b"FLUSHDB"] + c.choice([[], [b"ASYNC"], [b"SYNC"]])),
    (0.4, lambda c: [b"FLUSHALL"] + c.choice([[], [b"ASYNC"], [b"SYNC"]])),
    (1, Chance.wrong),
    (2, lambda c: [b"WATCH", *c.keys(2)]),
    (1, lambda c: [b"UNWATCH"]),
    (0.3, lambda c: [c.choice([b"EXEC", b"DISCARD"])]),
]  # fmt: skip
MULTI_SHARE = 0.03


def commands(chance, table, count):
    """`count` commands, the same for the same dice; MULTI blocks among them."""
    rows = [make for _, make in table]
    weights = [weight for weight, _ in table]

    def one():
        return chance.choices(rows, weights)[0](chance)

    made = []
    while len(made) < count:
        if chance.random() > MULTI_SHARE:
            made.append(one())
            continue
        made.append([b"MULTI"])
        for _ in range(chance.choice([0, 1, 3, 8, 20])):
            words = one()
            if words[0] not in (b"EXEC", b"DISCARD"):
                made.append(words)
        made.append([b"DISCARD"] if chance.random() < 0.1 else [b"EXEC"])
    return made
