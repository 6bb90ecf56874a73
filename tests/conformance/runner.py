"""Runs cases against two servers in lockstep and collects where their replies differ."""

import re
import time

from compare import compare
from script import expand
from support.resp import CLOSED, Client, Reply, Timeout, encode

REPLY_SECONDS = 8.0
UNTIL_SECONDS = 5.0
DIFFERENCES_SHOWN = 6
SILENT = Reply("silent", None)  # no reply came in time


class Pair:
    """Redis, the other server, and a connection to each that no case can lock out."""

    def __init__(self, redis, other):
        self.servers = (redis, other)
        self.admins = None

    def both(self, *command):
        """Runs a command on both admin connections; the two replies."""
        return tuple(admin.call(*command) for admin in self.admins)

    def reset(self):
        """Both servers empty; starts the second one again when it has died or hangs."""
        try:
            self._reset()
        except (Timeout, AssertionError, OSError):
            for admin in self.admins or ():
                admin.close()
            self.admins = None
            self.servers[1].restart(kill=True)
            self._reset()

    def _reset(self):
        if self.admins is None:
            self.admins = tuple(server.client(timeout=REPLY_SECONDS) for server in self.servers)
        replies = self.both("FLUSHALL")
        assert all(reply == Reply("simple", b"OK") for reply in replies), replies


class Run:
    """One run of one case: its connections, and the differences found so far."""

    def __init__(self, pair, case, protocol):
        self.pair, self.case, self.protocol = pair, case, protocol
        self.now = time.time()
        self.connections = {}
        self.differences = []
        self.transcript = []  # (step, Redis' reply), for the dump

    def run(self, variant):
        try:
            getattr(self, variant)()
            for name in list(self.connections):
                self.check("at the end", "", self.exchange(name, lambda _: ("ECHO", "end")))
        except Timeout:
            pass  # noted already; what follows would only repeat it
        finally:
            for command in self.case.cleanup:
                self.pair.both(*command)
            for clients in self.connections.values():
                for client in clients:
                    client.close()
        return self.differences

    # Variant: every step as it stands, each after the reply to the one before.

    def step_by_step(self):
        for step in self.case.steps:
            if step.directive is None:
                replies = self.exchange(step.connection, lambda i: self.command(step, i))
                self.check(step.source, step.compare, replies)
            else:
                getattr(self, "do_" + step.directive)(step)

    def do_sleep(self, step):
        time.sleep(float(step.words[0][0]))

    def do_close(self, step):
        for client in self.connections.pop(step.connection):
            client.close()

    def do_noreply(self, step):
        for i, client in enumerate(self.clients(step.connection)):
            client.send(*self.command(step, i))

    def do_raw(self, step, one_byte_at_a_time=False):
        count, data = int(step.words[0][0]), expand(step.words[1], self.now)
        for client in self.clients(step.connection):
            for piece in [data[i : i + 1] for i in range(len(data))] if one_byte_at_a_time else [data]:
                client.send_raw(piece)
        for _ in range(count):
            self.check(step.source, step.compare, self.read(step.connection))

    def do_raw1(self, step):
        self.do_raw(step, one_byte_at_a_time=True)

    def do_scan(self, step):
        options = [expand(word, self.now) for word in step.words]
        results = []
        for client in self.clients(step.connection):
            cursor, keys = b"0", set()
            while True:
                reply = client.call("SCAN", cursor, *options)
                if reply.kind != "array":
                    keys.add(repr(reply))
                    break
                cursor = reply.value[0].value
                keys.update(key.value for key in reply.value[1].value)
                if cursor == b"0":
                    break
            results.append(Reply("scan", sorted(keys)))
        self.check(step.source, "", results)

    def do_until(self, step):
        wanted, words = step.words[0][0], step.words[1:]
        command = [expand(word, self.now) for word in words]
        deadline = time.monotonic() + UNTIL_SECONDS
        while True:
            replies = self.exchange(step.connection, lambda _: command)
            if all(repr(reply) == wanted for reply in replies) or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        expected = Reply(f"until {wanted}", None)
        for reply in replies:
            self.check(step.source, "", (expected, expected if repr(reply) == wanted else reply))

    # Variant: all commands in one write.

    def as_one_pipeline(self):
        for i, client in enumerate(self.clients("a")):
            client.send_raw(b"".join(encode(self.command(step, i)) for step in self.case.steps))
        for step in self.case.steps:
            replies = self.read("a")
            self.check(step.source, step.compare, replies)
            if CLOSED in replies:
                break

    # Variant: all in one MULTI/EXEC; then, when queueing refused some of it, once more without.

    def inside_multi(self):
        refused = self.transaction(self.case.steps)
        if refused and len(refused) < len(self.case.steps):
            self.pair.reset()
            self.transaction([step for step in self.case.steps if step not in refused])

    def transaction(self, steps):
        """Returns the steps that were not queued."""
        refused, queued = [], []
        self.check("MULTI", "", self.exchange("a", lambda _: ("MULTI",)))
        for step in steps:
            replies = self.exchange("a", lambda i: self.command(step, i))
            self.check(f"(queueing) {step.source}", "", replies)
            (refused if replies[0].is_error() else queued).append(step)
        expected, actual = self.exchange("a", lambda _: ("EXEC",))
        if expected.kind == actual.kind == "array" and len(expected.value) == len(actual.value):
            for step, *replies in zip(queued, expected.value, actual.value):
                self.check(f"(in EXEC) {step.source}", step.compare, replies)
        else:
            self.check("EXEC", "", (expected, actual))
        return refused

    # Connections: two sockets per name, one to each server.

    def clients(self, name):
        if name not in self.connections:
            self.connections[name] = [
                Client(server.port, protocol=self.protocol, timeout=REPLY_SECONDS)
                for server in self.pair.servers
            ]
        return self.connections[name]

    def command(self, step, server_index):
        return [self.word(word, server_index) for word in step.words]

    def word(self, word, server_index):
        match = re.fullmatch(r"@(id|addr|laddr):([a-z])", word[0]) if not word[1] else None
        if match is None:
            return expand(word, self.now)
        client = self.clients(match[2])[server_index]
        if match[1] == "id":
            return client.call("CLIENT", "ID").value
        return client.local_address() if match[1] == "addr" else client.remote_address()

    def exchange(self, name, command_for):
        """Sends to both servers, then reads both replies."""
        clients = self.clients(name)
        commands = [command_for(i) for i in range(len(clients))]
        for client, command in zip(clients, commands):
            client.send(*command)
        return self.read(name)

    def read(self, name):
        replies = []
        for client, server in zip(self.clients(name), self.pair.servers):
            try:
                replies.append(client.read())
            except Timeout:
                replies.append(SILENT)
                self.differences.append(f"no reply in {REPLY_SECONDS} s from {server.name}:\n{server.threads()}")
        return replies

    def check(self, source, how, replies):
        expected, actual = replies
        self.transcript.append((source, expected))
        if expected == SILENT or not compare(how, expected, actual):
            note = f"{source}\n    redis: {expected!r}\n    other: {actual!r}{place(expected, actual)}"
            if len(self.differences) < DIFFERENCES_SHOWN:
                self.differences.append(note)
        if SILENT in replies:
            raise Timeout
        if expected == CLOSED and actual != CLOSED:
            raise Timeout  # the connections no longer go in step


def place(expected, actual):
    """For two long strings: where they part."""
    left, right = expected.value, actual.value
    if not isinstance(left, bytes) or not isinstance(right, bytes) or max(len(left), len(right)) < 100:
        return ""
    pairs = enumerate(zip(left, right))
    at = next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))
    return f"\n    first different byte: {at}; redis {left[at:at + 30]!r}, other {right[at:at + 30]!r}"


def run_case(pair, case, protocol):
    """All variants of one case; the differences as printable notes, [] when there are none."""
    notes = []
    for variant in case.variants():
        pair.reset()
        found = Run(pair, case, protocol).run(variant)
        notes += [f"{variant}: {note}" for note in found]
        if not pair.servers[1].alive():
            notes.append(f"the server died\n{pair.servers[1].log_tail()}")
            break
    return notes
