"""Seeded random commands over all data types, for test_random.py.

Keys are few and each has a favourite type, so that commands meet; one in ten goes to a key of
another type. Members and values are small or just beyond the limits at which Redis changes an
encoding and Ingot leaves the inline form. What a command picks at random (SPOP of a few) is left out.
"""

from commands import Chance, DATABASES

TYPES = ["hash", "list", "set", "zset", "stream", "string"]
SCORES = [b"0", b"1", b"-1", b"2.5", b"-0.5", b"1e10", b"inf", b"-inf", b"3", b"3", b"0.1"]
LEX = [b"-", b"+", b"[a", b"(a", b"[m1", b"(m2", b"[m5", b"[zz", b"(", b"["]
BOUNDS = [b"-inf", b"+inf", b"0", b"(0", b"1", b"(1", b"(2.5", b"3", b"-1", b"10"]
WRONG_NUMBERS = [b"abc", b"", b"1.5x", b"9223372036854775808", b"nan"]
NAMES = 4  # keys of each type


class TypeChance(Chance):
    def of(self, kind):
        if self.random() < 0.04:
            kind = self.choice(TYPES)
        return b"%s%d" % (kind.encode(), self.randrange(NAMES))

    def several(self, kind, most=3):
        return [self.of(kind) for _ in range(self.randint(1, most))]

    def any_key(self):
        return self.of(self.choice(TYPES))

    def member(self):
        dice = self.random()
        if dice < 0.5:
            return b"m%d" % self.randrange(12)
        if dice < 0.75:
            return b"%d" % self.choice([self.randrange(20), self.randrange(-(2**40), 2**40)])
        if dice < 0.95:
            return b"m%d" % self.randrange(1000)
        return b"l" * self.choice([63, 64, 65, 66, 300, 2000]) + b"%d" % self.randrange(3)

    def members(self, most=4):
        if self.random() < 0.02:
            return [b"many%d" % self.randrange(2000) for _ in range(self.choice([100, 200, 600]))]
        return [self.member() for _ in range(self.randint(1, most))]

    def score(self):
        return self.choice(SCORES) if self.random() < 0.95 else self.choice(WRONG_NUMBERS)

    def index(self):
        if self.random() < 0.03:
            return self.choice(WRONG_NUMBERS)
        return b"%d" % self.choice([0, 1, 2, -1, -2, self.randint(-15, 15), self.randint(-700, 700)])

    def count(self):
        return b"%d" % self.choice([0, 1, 2, 3, 10, 1000])

    def maybe(self, share, *words):
        return list(words) if self.random() < share else []

    def limit(self):
        return self.maybe(0.3, b"LIMIT", b"%d" % self.randint(-1, 5), b"%d" % self.randint(-1, 5))

    def numbered(self, keys):
        return [b"%d" % len(keys), *keys]

    # --- hash

    def hset(self):
        words = [b"HSET", self.of("hash")]
        for field in self.members():
            words += [field, self.value() if self.random() < 0.9 else self.integer()]
        return words

    # --- sorted set

    def zadd(self):
        words = [b"ZADD", self.of("zset")]
        words += self.maybe(0.1, b"NX") + self.maybe(0.1, b"XX") + self.maybe(0.1, b"GT")
        words += self.maybe(0.1, b"LT") + self.maybe(0.2, b"CH")
        for member in self.members():
            words += [self.score(), member]
        return words

    def zrange(self):
        dice = self.random()
        rev = self.maybe(0.3, b"REV")
        scores = self.maybe(0.4, b"WITHSCORES")
        if dice < 0.4:
            return [b"ZRANGE", self.of("zset"), self.index(), self.index(), *rev, *scores]
        if dice < 0.7:
            ends = [self.choice(BOUNDS), self.choice(BOUNDS)]
            return [b"ZRANGE", self.of("zset"), *ends, b"BYSCORE", *rev, *self.limit(), *scores]
        return [b"ZRANGE", self.lex(), *self.lex_ends(), b"BYLEX", *rev, *self.limit()]

    def lex(self):
        """A sorted set whose scores are all the same: else Redis' answers BYLEX depend on chance."""
        return b"lex%d" % self.randrange(NAMES)

    def lex_ends(self):
        return [self.choice(LEX), self.choice(LEX)]

    def zaggregate(self, store):
        kind = self.choice([b"ZUNION", b"ZINTER", b"ZDIFF"])
        keys = [self.of(self.choice(["zset", "zset", "zset", "set"])) for _ in range(self.randint(1, 3))]
        words = [kind + b"STORE", self.of("zset")] if store else [kind]
        words += self.numbered(keys)
        if kind != b"ZDIFF":
            if self.random() < 0.3:
                words += [b"WEIGHTS", *(self.choice([b"1", b"2", b"-1", b"0.5", b"0", b"inf"]) for _ in keys)]
            words += self.maybe(0.3, b"AGGREGATE", self.choice([b"SUM", b"MIN", b"MAX"]))
        return words + ([] if store else self.maybe(0.5, b"WITHSCORES"))

    # --- stream

    def stream_id(self):
        return self.choice([b"-", b"+", b"0", b"1", b"2-1", b"(2-1", b"5", b"7-3", b"20", b"900-5", b"x"])

    def xadd(self):
        words = [b"XADD", self.of("stream")] + self.maybe(0.05, b"NOMKSTREAM")
        words += self.maybe(0.1, self.choice([b"MAXLEN", b"MINID"]), b"=", b"%d" % self.randint(0, 30))
        self.clock = getattr(self, "clock", 0) + 1
        dice = self.random()
        words += [b"%d-*" % self.clock if dice < 0.2 else b"%d-%d" % (self.clock, self.randint(0, 3))]
        for field in [self.member() for _ in range(self.randint(1, 3))]:
            words += [field, self.value() if self.random() < 0.1 else self.member()]
        return words


    def entry_id(self):
        return b"%d-%d" % (self.randint(0, getattr(self, "clock", 0) + 2), self.randint(0, 3))

    def group(self):
        return b"g%d" % self.randrange(3)

    def consumer(self):
        return b"c%d" % self.randrange(4)

    # --- geo

    def place(self):
        return [b"%.4f" % self.uniform(-20, 20), b"%.4f" % self.uniform(-20, 20)]

    def geo(self):
        """A sorted set of places alone: other scores are far from any place."""
        return b"geo%d" % self.randrange(2) if self.random() < 0.97 else self.any_key()

    def geoadd(self):
        words = [b"GEOADD", self.geo()] + self.maybe(0.1, b"NX") + self.maybe(0.1, b"XX") + self.maybe(0.2, b"CH")
        for member in self.members():
            words += [*self.place(), member]
        return words

    def geosearch(self, store):
        words = [b"GEOSEARCHSTORE", b"geo9", self.geo()] if store else [b"GEOSEARCH", self.geo()]
        words += [b"FROMMEMBER", self.member()] if self.random() < 0.3 else [b"FROMLONLAT", *self.place()]
        size = b"%d" % self.choice([0, 1, 100, 500, 1500, 4000])
        words += [b"BYRADIUS", size, b"km"] if self.random() < 0.5 else [b"BYBOX", size, b"900", b"km"]
        words += self.maybe(0.4, self.choice([b"ASC", b"DESC"])) + self.maybe(0.4, b"COUNT", b"%d" % self.randint(0, 9))
        return words + ([] if store else self.maybe(0.4, b"WITHDIST") + self.maybe(0.3, b"WITHCOORD"))

    # --- sort

    def sort(self):
        """Of lists and sets alone: Redis gives a sorted set another encoding when it is sorted."""
        key = self.choice([b"sort:list", b"sort:set"])
        if self.random() < 0.4:
            return [b"RPUSH" if key == b"sort:list" else b"SADD", key, *self.members()]
        words = [b"SORT", key] + self.maybe(0.3, *self.limit())
        words += self.maybe(0.2, b"DESC") + [b"ALPHA"]
        return words + self.maybe(0.2, b"STORE", self.of("list"))


def names(chance, kind, command, *rest):
    return [command, chance.of(kind), *rest]


TABLE = [
    (10, TypeChance.hset),
    (3, lambda c: names(c, "hash", b"HDEL", *c.members())),
    (3, lambda c: names(c, "hash", b"HGET", c.member())),
    (2, lambda c: names(c, "hash", b"HMGET", *c.members())),
    (2, lambda c: names(c, "hash", c.choice([b"HGETALL", b"HKEYS", b"HVALS"]))),
    (2, lambda c: names(c, "hash", b"HLEN")),
    (2, lambda c: names(c, "hash", c.choice([b"HEXISTS", b"HSTRLEN"]), c.member())),
    (1, lambda c: names(c, "hash", b"HSETNX", c.member(), c.value())),
    (2, lambda c: names(c, "hash", b"HINCRBY", c.member(), c.integer())),
    (1, lambda c: names(c, "hash", b"HINCRBYFLOAT", c.member(), c.score())),
    (8, lambda c: names(c, "list", c.choice([b"LPUSH", b"RPUSH"]), *c.members())),
    (1, lambda c: names(c, "list", c.choice([b"LPUSHX", b"RPUSHX"]), *c.members())),
    (4, lambda c: names(c, "list", c.choice([b"LPOP", b"RPOP"]), *c.maybe(0.3, c.count()))),
    (3, lambda c: names(c, "list", b"LRANGE", c.index(), c.index())),
    (2, lambda c: names(c, "list", b"LINDEX", c.index())),
    (2, lambda c: names(c, "list", b"LSET", c.index(), c.member())),
    (2, lambda c: names(c, "list", b"LINSERT", c.choice([b"BEFORE", b"AFTER"]), c.member(), c.member())),
    (2, lambda c: names(c, "list", b"LREM", b"%d" % c.randint(-3, 3), c.member())),
    (1, lambda c: names(c, "list", b"LTRIM", c.index(), c.index())),
    (2, lambda c: names(c, "list", b"LLEN")),
    (2, lambda c: names(c, "list", b"LPOS", c.member(), *c.maybe(0.4, b"RANK", b"%d" % c.randint(-3, 3)),
                        *c.maybe(0.4, b"COUNT", c.count()), *c.maybe(0.2, b"MAXLEN", c.count()))),
    (2, lambda c: [b"LMOVE", c.of("list"), c.of("list"), c.choice([b"LEFT", b"RIGHT"]),
                   c.choice([b"LEFT", b"RIGHT"])]),
    (1, lambda c: [b"RPOPLPUSH", c.of("list"), c.of("list")]),
    (1, lambda c: [b"LMPOP", *c.numbered(c.several("list")), c.choice([b"LEFT", b"RIGHT"]),
                   *c.maybe(0.5, b"COUNT", b"%d" % c.randint(1, 20))]),
    (8, lambda c: names(c, "set", b"SADD", *c.members())),
    (3, lambda c: names(c, "set", b"SREM", *c.members())),
    (2, lambda c: names(c, "set", b"SISMEMBER", c.member())),
    (1, lambda c: names(c, "set", b"SMISMEMBER", *c.members())),
    (2, lambda c: names(c, "set", b"SCARD")),
    (2, lambda c: names(c, "set", b"SMEMBERS")),
    (2, lambda c: [b"SMOVE", c.of("set"), c.of("set"), c.member()]),
    (3, lambda c: [c.choice([b"SINTER", b"SUNION", b"SDIFF"]), *c.several("set")]),
    (2, lambda c: [c.choice([b"SINTERSTORE", b"SUNIONSTORE", b"SDIFFSTORE"]), c.of("set"), *c.several("set")]),
    (1, lambda c: [b"SINTERCARD", *c.numbered(c.several("set")), *c.maybe(0.4, b"LIMIT", c.count())]),
    (0.3, lambda c: names(c, "set", b"SPOP", b"100000")),
    (10, TypeChance.zadd),
    (3, lambda c: names(c, "zset", b"ZREM", *c.members())),
    (2, lambda c: names(c, "zset", b"ZINCRBY", c.score(), c.member())),
    (2, lambda c: names(c, "zset", b"ZSCORE", c.member())),
    (1, lambda c: names(c, "zset", b"ZMSCORE", *c.members())),
    (3, lambda c: names(c, "zset", c.choice([b"ZRANK", b"ZREVRANK"]), c.member())),
    (2, lambda c: names(c, "zset", b"ZCARD")),
    (2, lambda c: names(c, "zset", b"ZCOUNT", c.choice(BOUNDS), c.choice(BOUNDS))),
    (3, lambda c: [b"ZADD", c.lex(), b"0", c.member(), b"0", c.member(), b"0", c.member()]),
    (1, lambda c: [b"ZLEXCOUNT", c.lex(), *c.lex_ends()]),
    (6, TypeChance.zrange),
    (1, lambda c: names(c, "zset", b"ZREVRANGEBYSCORE", c.choice(BOUNDS), c.choice(BOUNDS), *c.limit())),
    (1, lambda c: [c.choice([b"ZRANGEBYLEX", b"ZREVRANGEBYLEX"]), c.lex(), *c.lex_ends(), *c.limit()]),
    (1, lambda c: [b"ZRANGESTORE", c.of("zset"), c.of("zset"), c.index(), c.index()]),
    (2, lambda c: names(c, "zset", c.choice([b"ZPOPMIN", b"ZPOPMAX"]), *c.maybe(0.4, c.count()))),
    (1, lambda c: [b"ZMPOP", *c.numbered(c.several("zset")), c.choice([b"MIN", b"MAX"]),
                   *c.maybe(0.5, b"COUNT", b"%d" % c.randint(1, 20))]),
    (1, lambda c: names(c, "zset", b"ZREMRANGEBYRANK", c.index(), c.index())),
    (1, lambda c: names(c, "zset", b"ZREMRANGEBYSCORE", c.choice(BOUNDS), c.choice(BOUNDS))),
    (0.5, lambda c: [b"ZREMRANGEBYLEX", c.lex(), *c.lex_ends()]),
    (2, lambda c: c.zaggregate(False)),
    (2, lambda c: c.zaggregate(True)),
    (1, lambda c: [b"ZINTERCARD", *c.numbered(c.several("zset")), *c.maybe(0.4, b"LIMIT", c.count())]),
    (7, TypeChance.xadd),
    (2, lambda c: names(c, "stream", b"XLEN")),
    (3, lambda c: names(c, "stream", c.choice([b"XRANGE", b"XREVRANGE"]), c.stream_id(), c.stream_id(),
                        *c.maybe(0.4, b"COUNT", c.count()))),
    (1, lambda c: names(c, "stream", b"XDEL", b"%d-%d" % (c.randint(1, 400), c.randint(0, 3)))),
    (1, lambda c: names(c, "stream", b"XTRIM", c.choice([b"MAXLEN", b"MINID"]), b"%d" % c.randint(0, 300))),
    (1, lambda c: [b"XREAD", *c.maybe(0.5, b"COUNT", c.count()), b"STREAMS", c.of("stream"), c.of("stream"),
                   c.choice([b"0", b"5-1", b"50"]), c.choice([b"0", b"$"])]),
    (0.3, lambda c: names(c, "stream", b"XSETID", c.entry_id())),
    (3, lambda c: [b"XGROUP", b"CREATE", c.of("stream"), c.group(), c.choice([b"0", b"$", c.entry_id()]),
                   *c.maybe(0.3, b"MKSTREAM"), *c.maybe(0.1, b"ENTRIESREAD", c.count())]),
    (0.5, lambda c: [b"XGROUP", b"SETID", c.of("stream"), c.group(), c.choice([b"0", b"$", c.entry_id()])]),
    (0.3, lambda c: [b"XGROUP", b"DESTROY", c.of("stream"), c.group()]),
    (0.5, lambda c: [b"XGROUP", b"CREATECONSUMER", c.of("stream"), c.group(), c.consumer()]),
    (0.3, lambda c: [b"XGROUP", b"DELCONSUMER", c.of("stream"), c.group(), c.consumer()]),
    (6, lambda c: [b"XREADGROUP", b"GROUP", c.group(), c.consumer(), *c.maybe(0.7, b"COUNT", c.count()),
                   *c.maybe(0.1, b"NOACK"), b"STREAMS", c.of("stream"), c.choice([b">", b">", b"0", c.entry_id()])]),
    (3, lambda c: names(c, "stream", b"XACK", c.group(), c.entry_id(), c.entry_id(), c.entry_id())),
    (2, lambda c: names(c, "stream", b"XCLAIM", c.group(), c.consumer(), b"0", c.entry_id(), c.entry_id(),
                        *c.maybe(0.3, b"FORCE"), *c.maybe(0.3, b"JUSTID"), *c.maybe(0.2, b"RETRYCOUNT", c.count()))),
    (2, lambda c: names(c, "stream", b"XAUTOCLAIM", c.group(), c.consumer(), b"0", c.entry_id(),
                        *c.maybe(0.5, b"COUNT", c.count()), *c.maybe(0.3, b"JUSTID"))),
    (2, lambda c: names(c, "stream", b"XPENDING", c.group())),
    (2, lambda c: names(c, "stream", b"XPENDING", c.group(), c.stream_id(), c.stream_id(), c.count(),
                        *c.maybe(0.3, c.consumer()))),
    (2, lambda c: [b"XINFO", b"GROUPS", c.of("stream")]),
    (3, TypeChance.geoadd),
    (2, lambda c: c.geosearch(False)),
    (1, lambda c: c.geosearch(True)),
    (1, lambda c: [b"GEODIST", c.geo(), c.member(), c.member(), *c.maybe(0.3, b"km")]),
    (1, lambda c: [c.choice([b"GEOPOS", b"GEOHASH"]), c.geo(), *c.members()]),
    (2, TypeChance.sort),
    (2, lambda c: names(c, "string", b"SETBIT", b"%d" % c.choice([0, 7, 100, 200000]), b"%d" % c.randrange(2))),
    (1, lambda c: names(c, "string", b"BITCOUNT")),
    (1, lambda c: [b"BITOP", c.choice([b"AND", b"OR", b"XOR"]), c.of("string"), *c.several("string")]),
    (2, lambda c: [b"PFADD", b"hll%d" % c.randrange(3), *c.members()]),
    (1, lambda c: [b"PFCOUNT", b"hll%d" % c.randrange(3), *c.maybe(0.4, b"hll1")]),
    (1, lambda c: [b"PFMERGE", b"hll%d" % c.randrange(3), b"hll%d" % c.randrange(3)]),
    (3, lambda c: [b"SET", c.of("string"), c.value()]),
    (1, lambda c: [b"GET", c.any_key()]),
    (1, lambda c: [b"APPEND", c.any_key(), c.value()]),
    (3, lambda c: [b"OBJECT", b"ENCODING", c.any_key()]),
    (2, lambda c: [b"TYPE", c.any_key()]),
    (2, lambda c: [b"DEL", *c.several(c.choice(TYPES))]),
    (1, lambda c: [b"EXISTS", c.any_key(), c.any_key()]),
    (2, lambda c: [b"RENAME", c.any_key(), c.any_key()]),
    (2, lambda c: [b"COPY", c.any_key(), c.any_key(), *c.maybe(0.5, b"REPLACE")]),
    (1, lambda c: [b"MOVE", c.any_key(), c.database()]),
    (1, lambda c: [b"EXPIRE", c.any_key(), b"100000"]),
    (1, lambda c: [b"PERSIST", c.any_key()]),
    (1, lambda c: [b"PEXPIRE", c.any_key(), b"-1"]),
    (1, lambda c: [b"DEBUG", b"DIGEST-VALUE", c.any_key()]),
    (0.5, lambda c: [b"DEBUG", b"DIGEST"]),
    (1, lambda c: [b"DBSIZE"]),
    (0.3, lambda c: [b"SELECT", b"%d" % c.randrange(DATABASES)]),
    (0.1, lambda c: [b"SWAPDB", c.database(), c.database()]),
    (0.1, lambda c: [b"FLUSHDB"]),
    (0.5, lambda c: [b"WATCH", c.any_key()]),
]  # fmt: skip

# Replies whose order Redis does not define.
HOW = {name: "sorted" for name in (b"HKEYS", b"HVALS", b"SMEMBERS", b"SINTER", b"SUNION", b"SDIFF", b"SPOP")}
HOW[b"HGETALL"] = "pairs"
HOW[b"XPENDING"] = "near=60000"  # it tells how long entries have been idle
