"""Plays a script with many connections to both servers and compares all that each of them gets.

    play(pair, protocol, '''
        a> SUBSCRIBE news
        b> PUBLISH news hello | PUBLISH news again
        b> PUBSUB CHANNELS                              ~any
    ''')

A line names a connection and the commands that it sends at once, separated by ` | `; words are split as by
a shell. `2>a` or `3>a` for a name opens connection `a` with that protocol, whatever the test's is. After each line every
connection that was named so far is sent a PING of its own (unless it is in a MULTI, or not answered), and what it has got up to the
answer is compared: replies, pushes, and their order. `~any` at the end: the order within what this line gives does not count.
`!sleep 0.1` waits, `!close a` closes. {id:a} is a connection's CLIENT ID, {addr:a} its address.
"""

import re
import shlex
import time

from support.resp import CLOSED, Client, Reply, Timeout, encode

SECONDS = 8.0


class Listener:
    """One connection, with what it has been sent."""

    def __init__(self, server, protocol):
        self.client = Client(server.port, protocol=protocol, timeout=SECONDS)
        self.id = self.client.call("CLIENT", "ID").value
        self.silent = False  # its PINGs are not answered
        self.pings = 0
        self.address = self.client.local_address()

    def catch_up(self):
        """All that came up to the answer of a PING."""
        if self.silent:
            return self.so_far()
        self.pings += 1
        token = b"ping-%d" % self.pings
        try:
            self.client.send("PING", token)
        except OSError:
            return [CLOSED]
        got = []
        while True:
            try:
                reply = self.client.read()
            except ConnectionError:
                return [*got, CLOSED]
            except Timeout:
                raise AssertionError(f"no PONG in {SECONDS} s, after {got!r}") from None
            if reply == CLOSED:
                return [*got, CLOSED]
            if token in repr(reply).encode():
                return got
            got.append(reply)

    def so_far(self):
        got = []
        while self.client.has_input(0.2):
            got.append(self.client.read())
        return got


class Side:
    """One server with its connections."""

    def __init__(self, server, protocol):
        self.server, self.protocol, self.connections, self.ids = server, protocol, {}, {}

    def connection(self, name):
        protocol = int(name[0]) if name[0].isdigit() else self.protocol
        name = name.lstrip("23>")
        if name not in self.connections:
            self.connections[name] = Listener(self.server, protocol)
            self.ids[name] = self.connections[name].id
        return self.connections[name]

    def command(self, text):
        text = re.sub(r"\{id:(\w+)\}", lambda match: str(self.connections[match[1]].id), text)
        text = re.sub(r"\{addr:(\w+)\}", lambda match: self.connections[match[1]].address, text)
        return shlex.split(text)

    def line(self, name, commands):
        to = self.connection(name)
        if commands:
            to.client.send_raw(b"".join(encode(self.command(command)) for command in commands))
        if any("REPLY" in command.upper().split() for command in commands):
            to.silent = commands[-1].upper().split()[-1] != "ON"
        in_multi = [name.lstrip("23>")] if any("MULTI" in command for command in commands) else []
        if any("EXEC" in command for command in commands):
            in_multi = []
        mine = name.lstrip("23>")
        others = [each for each in self.connections if each != mine]
        if in_multi:
            got = {mine: to.so_far()}
            return got | {each: self.connections[each].catch_up() for each in others}
        got = {each: self.connections[each].catch_up() for each in [mine, *others]}
        # A PING may be answered before what was sent in front of it has been carried out.
        return {each: replies + self.connections[each].catch_up() for each, replies in got.items()}

    def close(self):
        for connection in self.connections.values():
            connection.client.close()


def leaves(reply):
    if isinstance(reply.value, list) and reply.value and isinstance(reply.value[0], Reply):
        return [leaf for each in reply.value for leaf in leaves(each)]
    return [reply]


def in_any_order(got):
    return {name: sorted((leaf for reply in replies for leaf in leaves(reply)), key=repr)
            for name, replies in got.items()}  # fmt: skip


def masked(got, id_of):
    """Ids of clients differ: where one is told, the name stands for it."""
    text = {name: [repr(reply) for reply in replies] for name, replies in got.items()}
    for name, identity in id_of.items():
        told = re.compile(rf"(redir.*|'id'[:,] ):{identity}\b")
        text = {k: [told.sub(rf"\1:id-{name}", r) for r in v] for k, v in text.items()}
    return text


def play(pair, protocol, script, servers=None):
    sides = [Side(server, protocol) for server in servers or pair.servers]
    try:
        for line in filter(None, map(str.strip, script.splitlines())):
            step(sides, line)
    finally:
        for side in sides:
            side.close()


def step(sides, line):
    if line.startswith("!"):
        word, _, rest = line[1:].partition(" ")
        if word == "sleep":
            return time.sleep(float(rest))
        assert word == "close"
        for side in sides:
            side.connections.pop(rest).client.close()
        return None
    any_order = line.endswith("~any")
    name, _, commands = line.removesuffix("~any").partition("> ")
    got = [side.line(name, list(filter(None, map(str.strip, commands.split(" | "))))) for side in sides]
    got = [in_any_order(each) for each in got] if any_order else got
    got = [masked(each, side.ids) for each, side in zip(got, sides)]
    assert got[1] == got[0], f"{line}\n  redis: {got[0]}\n  other: {got[1]}"
    return None
