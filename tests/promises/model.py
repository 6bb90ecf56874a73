"""Strings as Redis keeps them, in a few lines of Python: what every answer must be.

A *unit* is what takes effect as a whole: a list of one command, or of several that go out as a
MULTI block. Model.run() turns a unit into the commands to send and the replies to expect, and
applies it. Commands and keys are bytes. Expiry times are kept but never come: use far ones.
"""

import re

from support.resp import Reply

OK = Reply("simple", b"OK")
QUEUED = Reply("simple", b"QUEUED")
NIL = Reply("nullbulk", None)
NOT_AN_INTEGER = Reply("error", b"ERR value is not an integer or out of range")
OVERFLOW = Reply("error", b"ERR increment or decrement would overflow")
NO_SUCH_KEY = Reply("error", b"ERR no such key")
INT64_MAX = (1 << 63) - 1


def integer(number):
    return Reply("integer", int(number))


def bulk(value):
    return NIL if value is None else Reply("bulk", value)


class Model:
    def __init__(self):
        self.databases = {0: {}}  # number -> key -> (value, expires at ms or None)
        self.db = 0

    @property
    def data(self):
        return self.databases.setdefault(self.db, {})

    def run(self, unit):
        """(commands to send, replies to expect)"""
        if len(unit) == 1:
            return unit, [self.apply(unit[0])]
        replies = [self.apply(command) for command in unit]
        wire = [(b"MULTI",), *unit, (b"EXEC",)]
        return wire, [OK, *[QUEUED] * len(unit), Reply("array", replies)]

    def apply(self, command):
        return getattr(self, "_" + command[0].decode().lower())(*command[1:])

    def value(self, key):
        return self.data.get(key, (None, None))[0]

    def _put(self, key, value, expires=None):
        self.data[key] = (value, expires)

    def _change(self, key, value):
        """A new value under the old expiry time."""
        self.data[key] = (value, self.data.get(key, (None, None))[1])

    def _select(self, number):
        self.db = int(number)
        return OK

    def _echo(self, text):
        return Reply("bulk", text)

    def _get(self, key):
        return bulk(self.value(key))

    def _set(self, key, value, *options):
        if (b"NX" in options and key in self.data) or (b"XX" in options and key not in self.data):
            return NIL
        expires = int(options[options.index(b"PXAT") + 1]) if b"PXAT" in options else None
        if b"KEEPTTL" in options:
            self._change(key, value)
        else:
            self._put(key, value, expires)
        return OK

    def _getset(self, key, value):
        before = self.value(key)
        self._put(key, value)
        return bulk(before)

    def _getdel(self, key):
        return bulk(self.data.pop(key, (None, None))[0])

    def _append(self, key, suffix):
        self._change(key, (self.value(key) or b"") + suffix)
        return integer(len(self.value(key)))

    def _strlen(self, key):
        return integer(len(self.value(key) or b""))

    def _getrange(self, key, start, end):
        value = self.value(key) or b""
        start, end = (max(n + len(value), 0) if n < 0 else n for n in (int(start), int(end)))
        return Reply("bulk", value[start : end + 1])

    def _setrange(self, key, offset, piece):
        value, offset = self.value(key) or b"", int(offset)
        value = value.ljust(offset, b"\0")
        self._change(key, value[:offset] + piece + value[offset + len(piece) :])
        return integer(len(self.value(key)))

    def _incrby(self, key, step):
        value = self.value(key)
        if value is not None and not re.fullmatch(rb"0|-?[1-9][0-9]{0,18}", value):
            return NOT_AN_INTEGER
        number = int(value or 0)
        if not -INT64_MAX - 1 <= number <= INT64_MAX:
            return NOT_AN_INTEGER
        number += int(step)
        if not -INT64_MAX - 1 <= number <= INT64_MAX:
            return OVERFLOW
        self._change(key, b"%d" % number)
        return integer(number)

    def _incr(self, key):
        return self._incrby(key, 1)

    def _mset(self, *pairs):
        for key, value in zip(pairs[::2], pairs[1::2]):
            self._put(key, value)
        return OK

    def _msetnx(self, *pairs):
        if any(key in self.data for key in pairs[::2]):
            return integer(0)
        self._mset(*pairs)
        return integer(1)

    def _mget(self, *keys):
        return Reply("array", [bulk(self.value(key)) for key in keys])

    def _exists(self, *keys):
        return integer(sum(key in self.data for key in keys))

    def _del(self, *keys):
        return integer(sum(self.data.pop(key, None) is not None for key in keys))

    _unlink = _del

    def _rename(self, source, target):
        if source not in self.data:
            return NO_SUCH_KEY
        self.data[target] = self.data.pop(source) if source != target else self.data[source]
        return OK

    def _copy(self, source, target, *replace):
        if source not in self.data or (target in self.data and not replace):
            return integer(0)
        self.data[target] = self.data[source]
        return integer(1)

    def _pexpireat(self, key, when_ms):
        if key not in self.data:
            return integer(0)
        self._put(key, self.value(key), int(when_ms))
        return integer(1)

    def _persist(self, key):
        value, expires = self.data.get(key, (None, None))
        if expires is None:
            return integer(0)
        self._put(key, value)
        return integer(1)

    def _pexpiretime(self, key):
        value, expires = self.data.get(key, (None, None))
        return integer(-2 if value is None else -1 if expires is None else expires)
