"""What the tests of ACL share: a connection to both servers, and how users and the log are compared.

Of a user's commands Redis lists those that no category says in the order of a table with a random seed, so lists of rules
are compared without regard to that order.
"""

import re

import pytest
from support.resp import Reply
from support.servers import Server

OK = Reply("simple", b"OK")
# Those of later versions: where a category is described by its single commands, they are among them.
LATER = re.compile(rb" [+-](hp?expire(at|time)?|hp?ttl|hpersist|waitaof|client\|(setinfo|no-touch))(?= |\)|$)")


@pytest.fixture
def acl_pair(pair):
    """Both servers, with the default user alone, and an empty log."""
    yield pair
    for server in pair.servers:
        with server.client() as client:
            users = [name.value for name in client.call("ACL", "USERS").value if name.value != b"default"]
            if users:
                client.call("ACL", "DELUSER", *users)
            client.call("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all")
            client.call("CONFIG", "SET", "requirepass", "")
            client.call("CONFIG", "SET", "acllog-max-len", 128, "acl-pubsub-default", "resetchannels")
            client.call("ACL", "LOG", "RESET")


@pytest.fixture
def make():
    made = []

    def make_one(kind, options=None, **keywords):
        server = Server.redis(options, **keywords) if kind == "oracle" else Server.ingot(kind, options, **keywords)
        made.append(server)
        return server

    yield make_one
    for server in made:
        server.stop()
        server.remove()


class Both:
    """A connection to each server, which must answer alike."""

    def __init__(self, servers, protocol=2):
        self.clients = [server.client(protocol) for server in servers]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()

    def call(self, *command, compare=lambda reply: reply):
        expected, actual = (client.call(*command) for client in self.clients)
        assert compare(actual) == compare(expected), command
        return actual


def rules_sorted(text):
    """A line of ACL LIST, or the rules in ACL GETUSER, with its single commands in order."""

    def part(words):
        categories = [word for word in words if not re.match(rb"[+-][^@]", word)]
        return categories + sorted(set(words) - set(categories))

    outside, *selectors = LATER.sub(b"", text).split(b" (")
    return [part(outside.split())] + [part(selector.rstrip(b")").split()) for selector in selectors]


def by_rules(reply):
    if reply.kind == "bulk" and re.match(rb"(user |[+-]@)", reply.value):
        return rules_sorted(reply.value)
    if reply.kind in ("array", "set"):
        return Reply(reply.kind, [by_rules(item) for item in reply.value])
    if reply.kind == "map":
        return Reply("map", [(key, by_rules(value)) for key, value in reply.value])
    return reply


LOGGED = {b"name", b"flags", b"db", b"multi", b"cmd", b"user", b"resp"}


def without_times(reply):
    """ACL LOG without ages, and of client-info the fields that are alike on both sides."""
    entries = []
    for entry in reply.value:
        pairs = entry.value if entry.kind == "map" else list(zip(entry.value[::2], entry.value[1::2]))
        values = {name.value: value for name, value in pairs}
        age = values.pop(b"age-seconds")
        assert age.kind in ("double", "bulk") and 0 <= float(age.value) < 60
        info = dict(field.split(b"=", 1) for field in values.pop(b"client-info").value.split())
        entries.append((entry.kind, age.kind, list(values.items()), {name: info[name] for name in LOGGED}))
    return entries
