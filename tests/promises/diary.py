"""A client that writes down what it did, over all types, and finds afterwards how far the server remembers it.

Its commands follow from their number alone. So the state after the first n of them can be computed, and what a
server holds after a crash must be such a state, for all keys the same n.
"""

import copy
import time

from support.resp import CLOSED, encode

DEPTH = 10
LARGE = 20_000  # bytes: what is written in this size makes the engine flush


def is_refusal(reply):
    return reply == CLOSED or reply.is_error()


class Diary:
    """One connection with keys of its own. One thread at a time."""

    def __init__(self, name):
        self.name = name
        self.sent = 0  # the number of the last command sent
        self.refused = False  # that one was
        self.answered = [0.0]  # by number: when it was answered
        self.known = (0, {})  # a number, and the state after it

    def key(self, what):
        return f"{self.name}:{what}".encode()

    def commands(self, number):
        """The command of this number, or those of its transaction."""
        n, key = b"%d" % number, self.key
        match number % 10:
            case 0:
                return [(b"SET", key(f"large{number // 10 % 30}"), n + b"." * LARGE)]
            case 1:
                return [(b"SET", key("s"), n)]
            case 2:
                return [(b"HSET", key("h"), b"f%d" % (number % 70), n)]
            case 3:
                return [(b"RPUSH", key("l"), n)]
            case 4:
                return [(b"SADD", key("t"), n)]
            case 5:
                return [(b"ZADD", key("z"), n, b"m%d" % (number % 90))]
            case 6:
                return [(b"INCR", key("c")), (b"RPUSH", key("l"), n), (b"SET", key("s"), n), (b"HDEL", key("h"), b"f12")]
            case 7:
                return [(b"XADD", key("x"), n + b"-1", b"f", n)]
            case 8:
                return [(b"LPOP", key("l"))]
            case _:
                return [(b"DEL", key("t"))] if number % 1000 == 9 else [(b"SREM", key("t"), b"%d" % (number - 505))]

    def apply(self, state, number):
        """What the commands of this number do to a state: name of a key -> its value."""
        for command, key, *words in self.commands(number):
            name = key.decode().split(":")[1]
            if command == b"SET":
                state[name] = words[0]
            elif command == b"INCR":
                state[name] = b"%d" % (int(state.get(name, b"0")) + 1)
            elif command in (b"HSET", b"ZADD"):
                score_first = command == b"ZADD"
                state.setdefault(name, {})[words[score_first]] = words[not score_first]
            elif command == b"HDEL":
                state.get(name, {}).pop(words[0], None)
            elif command == b"RPUSH":
                state.setdefault(name, []).append(words[0])
            elif command == b"XADD":
                state.setdefault(name, []).append(words[0])
            elif command == b"LPOP":
                state.get(name) and state[name].pop(0)
            elif command == b"SADD":
                state.setdefault(name, set()).add(words[0])
            elif command == b"SREM":
                state.get(name, set()).discard(words[0])
            elif command == b"DEL":
                state.pop(name, None)
            if name in state and not state[name]:
                del state[name]

    def write(self, server, stop):
        """Until `stop`, or until the server has gone."""
        try:
            with server.client(timeout=30) as client:
                while not stop.is_set():
                    numbers = range(self.sent + 1, self.sent + 1 + DEPTH)
                    self.sent += DEPTH
                    units = [self.commands(number) for number in numbers]
                    wire = [c for unit in units for c in (unit if len(unit) == 1 else [(b"MULTI",), *unit, (b"EXEC",)])]
                    client.send_raw(b"".join(map(encode, wire)))
                    for unit in units:
                        replies = [client.read() for _ in range(1 if len(unit) == 1 else len(unit) + 2)]
                        if CLOSED in replies:
                            return
                        assert not any(reply.is_error() for reply in replies), (unit, replies)
                        self.answered.append(time.monotonic())
        except ConnectionError:
            return

    def write_until_refused(self, client, seconds):
        """One after the other, until one is refused, or for a while: the refusal, or None. What was refused is
        tried again by the next call: a removal behind it may be taken."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self.sent += not self.refused
                self.refused = False
                unit = self.commands(self.sent)
                wire = unit if len(unit) == 1 else [(b"MULTI",), *unit, (b"EXEC",)]
                replies = client.pipeline(wire)
                if any(map(is_refusal, replies)):
                    self.refused = True
                    return next(filter(is_refusal, replies))
                self.answered.append(time.monotonic())
        except ConnectionError:
            return CLOSED

    def answered_before(self, moment):
        """How many were answered before this time."""
        return sum(when < moment for when in self.answered[1:])

    def remembered(self, client):
        """After a crash: the number of commands whose effects are there. Goes on from there."""
        found = self.read(client)
        number, state = self.known
        while state != found:
            if number == self.sent:
                raise AssertionError(f"{self.name}: no number of commands, up to {self.sent}, explains {found!r:.3000}")
            number += 1
            self.apply(state, number)
        number += self._without_effect(state, number)
        self.known = (number, state)
        self.sent, self.refused = number, False
        del self.answered[number + 1 :]
        self.answered += [0.0] * (number + 1 - len(self.answered))
        return number

    def _without_effect(self, state, number):
        """How many commands behind this one change nothing."""
        after = copy.deepcopy(state)
        for count in range(self.sent - number):
            self.apply(after, number + 1 + count)
            if after != state:
                return count
        return self.sent - number

    def read(self, client):
        """What the server holds of this one's keys, in the form of apply()."""
        strings = ["s", "c", *(f"large{n}" for n in range(30))]
        values = client.call("MGET", *map(self.key, strings)).value
        found = {name: value.value for name, value in zip(strings, values, strict=True)}

        def words(*command):
            reply = client.call(*command)
            assert not reply.is_error(), (self.name, command, reply)
            return [each.value for each in reply.value]

        pairs = words("HGETALL", self.key("h"))
        found["h"] = dict(zip(pairs[::2], pairs[1::2], strict=True))
        pairs = words("ZRANGE", self.key("z"), 0, -1, "WITHSCORES")
        found["z"] = dict(zip(pairs[::2], pairs[1::2], strict=True))
        found["l"] = words("LRANGE", self.key("l"), 0, -1)
        found["t"] = set(words("SMEMBERS", self.key("t")))
        found["x"] = [entry.value[0].value for entry in client.call("XRANGE", self.key("x"), "-", "+").value]
        sizes = {"h": "HLEN", "z": "ZCARD", "l": "LLEN", "t": "SCARD", "x": "XLEN"}
        for name, command in sizes.items():
            size = client.call(command, self.key(name)).value
            assert size == len(found[name]), f"{command} {self.name}:{name} is {size}, but {len(found[name])} are there"
        return {name: value for name, value in found.items() if value}
