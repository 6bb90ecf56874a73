"""Random units over a few keys (see model.py), mixed so that each depends on those before it."""

import time

SMALL_BYTES = 40
# Strings above 16384 bytes are kept in chunks: some values stand on either side, and cross over.
LARGE_BYTES = (15000, 40000)
LARGE_SHARE = 0.02
FAR_MS = (3_600_000, 7_200_000)  # no expiry comes during a test

READS = ("get", "get", "mget", "exists", "strlen", "getrange", "pexpiretime", "echo")
WRITES = (
    "set", "set", "set_option", "incr", "incr", "incrby", "append", "append", "del", "unlink",
    "mset", "msetnx", "getset", "getdel", "setrange", "rename", "copy", "pexpireat", "persist",
)  # fmt: skip


class Workload:
    """An endless source of units. One thread."""

    def __init__(self, rng, keys, *, reads=True, databases=1):
        self.rng = rng
        self.keys = keys
        self.kinds = READS * 2 + WRITES if reads else WRITES
        self.databases = databases

    def unit(self):
        if self.rng.random() > 0.1:
            return [self.command()]
        return [self.command() for _ in range(self.rng.randint(2, 6))]

    def command(self):
        if self.databases > 1 and self.rng.random() < 0.02:
            return (b"SELECT", b"%d" % self.rng.randrange(self.databases))
        return getattr(self, "_" + self.rng.choice(self.kinds))()

    def key(self):
        return self.rng.choice(self.keys)

    def some_keys(self):
        return [self.key() for _ in range(self.rng.randint(1, 5))]

    def value(self):
        if self.rng.random() < LARGE_SHARE:
            return self.rng.randbytes(self.rng.randint(*LARGE_BYTES))
        if self.rng.random() < 0.4:
            return b"%d" % self.rng.randint(-1000, 1000)
        return self.rng.randbytes(self.rng.randint(0, SMALL_BYTES))

    def far_time(self):
        return b"%d" % (int(time.time() * 1000) + self.rng.randint(*FAR_MS))

    def pairs(self):
        return [part for key in self.some_keys() for part in (key, self.value())]

    def _get(self):
        return (b"GET", self.key())

    def _mget(self):
        return (b"MGET", *self.some_keys())

    def _exists(self):
        return (b"EXISTS", *self.some_keys())

    def _strlen(self):
        return (b"STRLEN", self.key())

    def _getrange(self):
        start, end = self.rng.randint(-20, 20000), self.rng.randint(-10, 20000)
        return (b"GETRANGE", self.key(), b"%d" % start, b"%d" % end)

    def _pexpiretime(self):
        return (b"PEXPIRETIME", self.key())

    def _echo(self):
        return (b"ECHO", b"%d" % self.rng.randrange(1 << 30))

    def _set(self):
        return (b"SET", self.key(), self.value())

    def _set_option(self):
        options = self.rng.choice([(b"NX",), (b"XX",), (b"KEEPTTL",), (b"PXAT", self.far_time())])
        return (b"SET", self.key(), self.value(), *options)

    def _incr(self):
        return (b"INCR", self.key())

    def _incrby(self):
        return (b"INCRBY", self.key(), b"%d" % self.rng.randint(-50, 50))

    def _append(self):
        return (b"APPEND", self.key(), self.value())

    def _del(self):
        return (b"DEL", *self.some_keys())

    def _unlink(self):
        return (b"UNLINK", self.key())

    def _mset(self):
        return (b"MSET", *self.pairs())

    def _msetnx(self):
        return (b"MSETNX", *self.pairs())

    def _getset(self):
        return (b"GETSET", self.key(), self.value())

    def _getdel(self):
        return (b"GETDEL", self.key())

    def _setrange(self):
        where = self.rng.randint(0, 60 if self.rng.random() < 0.9 else 30000)
        return (b"SETRANGE", self.key(), b"%d" % where, self.rng.randbytes(self.rng.randint(1, 30)))

    def _rename(self):
        return (b"RENAME", self.key(), self.key())

    def _copy(self):
        source, target = self.key(), self.key()
        if source == target:  # an error in Redis, and dull
            return self._get()
        return (b"COPY", source, target, *self.rng.choice([(), (b"REPLACE",)]))

    def _pexpireat(self):
        return (b"PEXPIREAT", self.key(), self.far_time())

    def _persist(self):
        return (b"PERSIST", self.key())
