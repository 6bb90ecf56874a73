"""A writer whose server may die at any moment, and what it may expect to find afterwards.

Its commands take effect in the order sent (P1), a MULTI block as a whole (P3), and what was
answered stays (P4). So after a crash the state is that after the first n of its units, where n is
at least the number answered and at most the number sent. Each writer has keys of its own.
"""

import copy
from collections import deque

from model import Model
from support.resp import CLOSED, encode
from workload import Workload

SHARED_KEYS = 30  # used over and over
NEW_KEYS = 20  # that one unit adds at times, so that the number of keys grows
DEPTH_MAX = 30
ANSWER_SECONDS = 20


class Survivor:
    """One connection's writes. One thread at a time."""

    def __init__(self, name, rng):
        self.name = name
        self.rng = rng
        self.model = Model()  # after all answered units
        self.sent = deque()  # units whose answer has not come, oldest first
        self.workload = Workload(rng, [f"{name}:{i}".encode() for i in range(SHARED_KEYS)], reads=False)
        self.new_keys = 0
        self.answered = 0

    def _unit(self):
        choice = self.rng.random()
        if choice < 0.05:
            self.new_keys += NEW_KEYS
            return [(b"MSET", *(part for i in range(NEW_KEYS) for part in (self._new_key(i + 1), b"new")))]
        if choice < 0.08 and self.new_keys:
            return [(b"DEL", *(self._new_key(self.rng.randint(1, self.new_keys)) for _ in range(5)))]
        return self.workload.unit()

    def _new_key(self, back):
        return b"%s:new:%d" % (self.name.encode(), self.new_keys - back)

    def write(self, server, stop, depth_max=DEPTH_MAX):
        """Pipelines of units until `stop` or until the server has gone."""
        try:
            with server.client(timeout=ANSWER_SECONDS) as client:
                while not stop.is_set() and self._pipeline(client, self.rng.randint(1, depth_max)):
                    pass
        except ConnectionError:
            return

    def _pipeline(self, client, depth):
        self.sent.extend(self._unit() for _ in range(depth))
        wire = [c for unit in self.sent for c in (unit if len(unit) == 1 else
                [(b"MULTI",), *unit, (b"EXEC",)])]  # fmt: skip
        client.send_raw(b"".join(map(encode, wire)))
        while self.sent:
            unit = self.sent[0]
            replies = [client.read() for _ in range(1 if len(unit) == 1 else len(unit) + 2)]
            if CLOSED in replies or stopping(replies[-1]):
                return False
            expected = self.model.run(unit)[1]
            assert replies == expected, f"{unit!r:.300}\nanswered {replies}\nexpected {expected}"
            self.sent.popleft()
            self.answered += 1
        return True

    def settle(self, client):
        """After a crash: finds out which units were done and goes on from there. Fails when an
        answered one is lost, or when there is something that no order of events explains."""
        keys = set(self.model.data) | {key for unit in self.sent for c in unit for key in keys_of(c)}
        actual = read_state(client, sorted(keys))
        candidate = copy.deepcopy(self.model)
        undecided = list(self.sent)
        for done in range(len(undecided) + 1):
            if actual == candidate.data:
                self.model = candidate
                self.sent.clear()
                return done, len(undecided)
            if done < len(undecided):
                candidate.run(undecided[done])
        raise AssertionError(self._difference(actual, undecided))

    def _difference(self, actual, undecided):
        wrong = [key for key in set(actual) | set(self.model.data)
                 if actual.get(key) != self.model.data.get(key)]  # fmt: skip
        shown = [f"{key!r}: found {actual.get(key)!r:.100}, answered {self.model.data.get(key)!r:.100}"
                 for key in sorted(wrong)[:10]]  # fmt: skip
        return (f"writer {self.name}: after {self.answered} answered units and any of "
                f"{len(undecided)} undecided ones the state is another\n" + "\n".join(shown)
                + f"\nundecided: {undecided!r:.1000}")  # fmt: skip


def stopping(reply):
    """The answer of a server that shuts down: the unit was not done, or not promised."""
    return reply.is_error() and b"shutting down" in reply.value


def keys_of(command):
    """Whatever may be a key among the arguments; others are simply not found."""
    return [argument for argument in command[1:] if b":" in argument and len(argument) < 40]


def read_state(client, keys):
    """key -> (value, expires at ms or None), of those that exist."""
    state = {}
    for at in range(0, len(keys), 500):
        some = keys[at : at + 500]
        values = client.call("MGET", *some).value
        times = client.pipeline([("PEXPIRETIME", key) for key in some])
        for key, value, time in zip(some, values, times, strict=True):
            assert not value.is_error() and not time.is_error(), (key, value, time)
            if value.value is not None:
                state[key] = (value.value, None if time.value == -1 else time.value)
    return state


def total_keys(survivors):
    return sum(len(survivor.model.data) for survivor in survivors)
