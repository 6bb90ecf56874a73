"""ACL beside a real redis-server: users and their rules, what they may do, AUTH, ACL LOG, files.

Of a user's single commands Redis lists those that no category says in the order of a table with a random seed, so lists
of rules are compared without regard to order.
"""

import contextlib
import itertools
import os
import random
import re
import threading
import time

import pytest
from support.effort import FULL, SEED
from support.resp import CLOSED, Client, Reply
from support.servers import Server, ServerError, engines, self_check

OK = Reply("simple", b"OK")
# Those of later versions: where a category is described by its single commands, they are among them.
LATER = re.compile(rb" [+-](hp?expire(at|time)?|hp?ttl|hpersist|client\|(setinfo|no-touch))(?= |\)|$)")


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


def any_order(reply):
    """Sorted by what stands in it, at every depth."""
    if reply.kind in ("array", "set"):
        return Reply(reply.kind, sorted(map(any_order, reply.value), key=repr))
    return reply


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


SETUSER = """
    ~*, ~a | &*, &a | allkeys, ~a | allchannels, &a | ~* | ~a b | ~ | ~A, ~a, ~a | %R~a, %W~a | %R~a, %R~b, %W~c | %RW~a | %r~a |
    %~a | %R | %RWR~a | %Q~a | % | resetkeys, %R~* | %RW~* | &a, &b, &a | & | &a b | &A, &a | resetchannels, &x | allchannels, resetchannels |
    on | off | ON, OFF | on, off, on | nopass | nopass, >p | >p, nopass | >p, >q, >p | >p, <p | <p | > | <  |
    #zz | #HASH | #HASH, !HASH | !HASH | #HASHa | #UPPER | >p, resetpass | resetpass, >p, reset |
    sanitize-payload | skip-sanitize-payload | skip-sanitize-payload, sanitize-payload | skip-sanitize-payload, reset |
    +get | +GET | -get | +get, -get | +@all | +@ALL, -get | allcommands | nocommands | +@all, nocommands | -@all, +get | +nosuch | -nosuch |
    + | - | +@ | -@ | +@nosuch | -@nosuch | +@all|x | +get| | +|get | +get|a | -get|a | +get|a|b | +get|a, +get|A, +get|b | +get|a, -get | +get|a, +get |
    +get|a, +@read | +get|a, -@read | +get|a, -@all | +select|0, +select|1 | +debug|object | +config | +config|get | +config|GET | +config|get|x |
    +config|nosuch | -config|nosuch | +config, -config|set | +config|set, -config | +@admin, -config | +@all, -config|set | +@all, -config, +config|get | +acl|whoami |
    +@read | +@read, -@hash | +@read, -@hash, +hget | +@write | +@all, -@dangerous | +@all, -@admin | +@all, -@admin, -@dangerous, +info | +@all, -@slow | +@fast, -@dangerous |
    +@all, -@all, +@set, -@set | +@string, +@hash, +@list, +@set, +@sortedset | +@pubsub | +@scripting | +@all, -@scripting, -@pubsub | +@connection, +ping | +@keyspace |
    +@blocking, -brpop | +@transaction | +@stream, +@geo, +@bitmap, +@hyperloglog | +psync, +replconf, +ping | +@all, -psync, -debug | +sentinel | +module|load | -@dangerous |
    (~a +get) | (~a, +get) | (, ~a, +get, ) | () | ( ) | (~a | (~a, +get | ~a) | (~a, (~b) | ((~a)) | (on) | (+nosuch) | (~a +get), (~b +set) | (~a +get), clearselectors |
    clearselectors | (~a +get), reset | (%R~x +get), (%W~x +set) | (allkeys allchannels +@all) | (&a +publish) | (+get "~a b") | (+get "unbalanced) | (+select|0) | (+@all -@all +get) |
    foo | ~a, foo | user | reset | reset, reset | ~a, reset | +get, ~a, &b, >p, on, reset | , | +get,, ~a
"""


def setuser_lines():
    digest = "0123456789abcdef" * 4
    text = " ".join(SETUSER.split()).replace("HASH", digest).replace("UPPER", digest.upper())
    return [[word.strip() for word in line.split(",")] for line in text.split(" | ")]


@pytest.mark.parametrize("default", ["resetchannels", "allchannels"])
def test_setuser(acl_pair, protocol, default):
    """Every kind of rule: the error, or the user that it makes."""
    with Both(acl_pair.servers, protocol) as both:
        both.call("CONFIG", "SET", "acl-pubsub-default", default)
        for rules in setuser_lines():
            both.call("ACL", "SETUSER", "u", *rules)
            both.call("ACL", "GETUSER", "u", compare=by_rules)
            both.call("ACL", "LIST", compare=by_rules)
            both.call("ACL", "DELUSER", "u")


def random_rule(rng, commands, categories):
    glob = "".join(rng.choice("ab*?[]k:-^") for _ in range(rng.randrange(4)))
    name = rng.choice(commands)
    kinds = [
        lambda: rng.choice("+-") + name,
        lambda: rng.choice("+-") + "@" + rng.choice(categories + ["all"]),
        lambda: rng.choice(["~", "%R~", "%W~", "%RW~", "%r~", "&", "%", "%~"]) + glob,
        lambda: rng.choice("><") + rng.choice("pq"),
        lambda: "+" + name + "|" + rng.choice(["0", "1", "get", "set", ""]),
        lambda: rng.choice(["on", "off", "nopass", "resetpass", "resetkeys", "resetchannels", "allkeys", "allchannels",
                            "allcommands", "nocommands", "clearselectors", "reset", "sanitize-payload", "~*", "&*"]),
        lambda: "(" + " ".join(random_rule(rng, commands, categories) for _ in range(rng.randrange(4))) + ")",
        lambda: "".join(rng.choice("+-~&%@|()#<>!RW a") for _ in range(rng.randrange(1, 6))),
    ]  # fmt: skip
    return rng.choices(kinds, [6, 6, 5, 1, 1, 2, 2, 1])[0]()


CALLS = """
    get a | get k | set a b | set a b get | mget a b k | mset a 1 k 2 | del ab | copy a b | rename a k | sort a | sort a by w* get # store k |
    zunionstore a 2 b k | zunionstore a x | zunionstore a 9 b | sunion a b | bitfield a get u8 0 | bitfield a set u8 0 1 | bitop not a b | pfcount a b |
    xread streams a b 0 0 | xadd a * f v | georadius a 1 1 1 m store b | georadius a 1 1 1 m | lmpop 1 a left | blpop a b 0 | getdel a | getex a | object encoding a |
    migrate h 1 a 0 1 | migrate h 1 "" 0 1 keys a b | config get x | config set x y | client list | acl whoami | acl list | select 0 | select 1 | ping | debug object a |
    publish a b | subscribe a b | psubscribe a* b | ssubscribe a | spublish a b | unsubscribe a | eval x 1 a | eval x 0 | fcall f 1 a b | auth a | hello | reset | exec | watch a | command | nosuch | get
"""


def test_random_rules(acl_pair):
    """Any rules, one after another: the same users, who may do the same."""
    rng = random.Random(SEED)
    with Both(acl_pair.servers) as both:
        oracle, other = both.clients
        redis_names, names = (
            {name.text() for name in client.call("COMMAND", "LIST").value} for client in both.clients
        )
        commands = sorted(redis_names)
        categories = [name.text() for name in oracle.call("ACL", "CAT").value]
        calls = [call.replace('""', "").split(" ") for call in " ".join(CALLS.split()).split(" | ")]
        calls = [call for call in calls if call[0] in names or call[0] not in redis_names]
        for _ in range(2000 if FULL else 250):
            rules = [random_rule(rng, commands, categories) for _ in range(rng.randrange(1, 7))]
            both.call("ACL", "SETUSER", "u", *rules)
            both.call("ACL", "GETUSER", "u", compare=by_rules)
            both.call("ACL", "LIST", compare=by_rules)
            for call in rng.sample(calls, 12):
                both.call("ACL", "DRYRUN", "u", *call)
            if rng.random() < 0.3:
                both.call("ACL", "DELUSER", "u")


def test_every_command_needs_its_permission(acl_pair):
    """By command, and by category: who has nothing, or one category, may do as much as in Redis."""
    with Both(acl_pair.servers) as both:
        listed = [{name.text() for name in client.call("COMMAND", "LIST").value} for client in both.clients]
        categories = [name.text() for name in both.call("ACL", "CAT").value]
        lines = []
        # PFMERGE of nothing makes its key: in Redis it needs no permission for that.
        for name in sorted(listed[0] & listed[1] - {"pfmerge"}):
            arity = both.clients[0].call("COMMAND", "INFO", name).value[0].value[1].value
            words = name.split("|")
            lines.append(words + ["1"] * (abs(arity) - len(words)))
        users = {"nobody": ["~*", "&*"]} | {name: ["~*", "&*", "+@" + name] for name in categories}
        users |= {"keyless": ["allcommands", "allchannels"], "reader": ["+@all", "&*", "%R~*"],
                  "writer": ["+@all", "&*", "%W~*"], "deaf": ["+@all", "~*"]}  # fmt: skip
        for user, rules in users.items():
            assert both.call("ACL", "SETUSER", user, *rules) == OK
            for client in both.clients:
                for line in lines:
                    client.send("ACL", "DRYRUN", user, *line)
            for line in lines:
                expected, actual = (client.read() for client in both.clients)
                assert actual == expected, (user, line)


def test_cat(acl_pair, protocol):
    with Both(acl_pair.servers, protocol) as both:
        redis_only = None
        for category in both.call("ACL", "CAT").value:
            expected, actual = (
                {name.value for name in client.call("ACL", "CAT", category.value).value} for client in both.clients
            )
            redis_names, names = (
                {name.value for name in client.call("COMMAND", "LIST").value} for client in both.clients
            )
            redis_only = redis_names - names
            assert actual & redis_names == expected - redis_only, category
        both.call("ACL", "CAT", "READ", compare=lambda reply: reply.kind)
        both.call("ACL", "CAT", "x" * 200)
        both.call("ACL", "CAT", "")


PLAIN = """
    ACL | ACL HELP | ACL FOO | ACL WHOAMI | ACL WHOAMI x | ACL USERS | ACL USERS x | ACL LIST x | ACL GETUSER | ACL GETUSER nobody | ACL GETUSER a b | ACL CAT | ACL CAT nosuch | ACL CAT a b |
    ACL DELUSER | ACL DELUSER nobody | ACL DELUSER default | ACL DELUSER nobody default | ACL SETUSER | ACL SETUSER u | ACL SETUSER u on | ACL DELUSER u u |
    ACL GENPASS 0 | ACL GENPASS -1 | ACL GENPASS 4097 | ACL GENPASS x | ACL GENPASS 1 2 | ACL LOAD | ACL SAVE | ACL LOAD x | ACL LOG | ACL LOG 0 | ACL LOG -5 | ACL LOG x | ACL LOG 1 2 |
    ACL LOG RESET | ACL LOG RESET x | ACL DRYRUN | ACL DRYRUN default | ACL DRYRUN nobody get a | ACL DRYRUN default get a | ACL DRYRUN default get | ACL DRYRUN default nosuch |
    ACL DRYRUN default config | ACL DRYRUN default config nosuch | ACL DRYRUN default config get x | AUTH | AUTH x | AUTH default x | AUTH nobody x | AUTH a b c | CLIENT KILL USER nobody |
    CONFIG GET acllog-max-len | CONFIG GET aclfile | CONFIG GET acl-pubsub-default | CONFIG SET acllog-max-len -1 | CONFIG SET aclfile x | CONFIG SET acl-pubsub-default x | CONFIG GET requirepass
"""


def test_replies(acl_pair, protocol):
    with Both(acl_pair.servers, protocol) as both:
        for line in " ".join(PLAIN.split()).split(" | "):
            both.call(*line.split())
        both.call("ACL", "SETUSER", "a b")
        both.call("ACL", "SETUSER", "a\0b")
        both.call("ACL", "SETUSER", "", "on", ">p")
        both.call("AUTH", "", "p")
        both.call("ACL", "WHOAMI")
    with acl_pair.servers[1].client(protocol) as client:
        lengths = {bits: len(client.call("ACL", "GENPASS", bits).value) for bits in (1, 4, 5, 256, 4096)}
        assert lengths == {1: 1, 4: 1, 5: 2, 256: 64, 4096: 1024}
        passwords = {client.call("ACL", "GENPASS").value for _ in range(50)}
        assert len(passwords) == 50 and all(re.fullmatch(rb"[0-9a-f]{64}", each) for each in passwords)


LIMITED = ["on", ">p", "~k*", "%R~r*", "%W~w*", "+@read", "+@write", "+@transaction", "+select|1", "+client|id", "-sort", "(~s* +sort +sort_ro)"]
ATTEMPTS = """
    GET k1 | GET r1 | GET w1 | GET x | SET k1 v | SET r1 v | SET w1 v | SET w1 v GET | GETDEL r1 | GETDEL w1 | MGET k1 r1 x | MSET k1 1 w1 2 | MSET k1 1 r1 2 | COPY r1 w2 | COPY w1 r1 | RENAME r1 k |
    SELECT 0 | SELECT 1 | SELECT 0 | CLIENT ID x | CLIENT LIST | CONFIG GET x | ACL WHOAMI | NOSUCH a | GET | GET a b | INFO | FLUSHALL | KEYS * | DBSIZE | RANDOMKEY | SCAN 0 |
    RPUSH k2 2 1 | SORT k2 | RPUSH s1 x | SORT s1 | SORT s1 BY nosort | SORT s1 BY w* | SORT s1 GET # | SORT s1 LIMIT a b BY w* | SORT s1 BY w* LIMIT a b | SORT_RO s1 GET k* | SORT s1 STORE s2 | SORT s1 STORE x |
    ZADD k3 1 a | ZUNIONSTORE k4 1 k3 | ZUNIONSTORE k4 1 x | ZUNIONSTORE x 3 k | ZUNIONSTORE x 0 k3 | ZUNIONSTORE r 1 k3 | PFCOUNT r1 | PFCOUNT w1 | BITFIELD r1 GET u8 0 | BITFIELD r1 SET u8 0 1 |
    OBJECT ENCODING k2 | OBJECT ENCODING x | XADD w3 * f v | XREAD STREAMS k9 r9 0 0 | XREAD STREAMS k9 w9 0 0 | AUTH u wrong | HELLO 3 AUTH u wrong | PING | ECHO x
"""


def test_commands_of_a_limited_user(acl_pair, protocol):
    """What such a user is answered: alone, in a transaction, and what the log keeps of it."""
    with Both(acl_pair.servers, protocol) as both, Both(acl_pair.servers) as admin:
        admin.call("FLUSHALL")
        admin.call("ACL", "SETUSER", "u", *LIMITED)
        both.call("AUTH", "u", "p")
        lines = [line.split() for line in " ".join(ATTEMPTS.split()).split(" | ")]
        for line in lines:
            skip = line[0] in ("KEYS", "RANDOMKEY", "SCAN", "XADD", "INFO", "CLIENT")
            both.call(*line, compare=(lambda reply: reply.kind) if skip else (lambda reply: reply))
        for line in lines:
            if line[0] in ("AUTH", "HELLO", "XADD", "KEYS", "RANDOMKEY", "SCAN", "SELECT"):
                continue
            both.call("MULTI")
            both.call(*line)
            both.call("GET", "k1")
            both.call("EXEC")
        admin.call("ACL", "LOG", 200, compare=without_times)
        for client in admin.clients:
            names = client.call("CLIENT", "LIST").text()
            assert re.search(r"cmd=exec user=u ", names) and "user=default" in names


def test_rules_change_between_multi_and_exec(acl_pair, protocol):
    """What was queued is checked again: reads alone, with writes, and with session commands."""
    queues = [["GET k", "GET x", "GET k"], ["GET k", "SET x 1", "SET k 2", "GET x"], ["PING", "SET x 1", "SET k 3", "CLIENT ID"]]
    with Both(acl_pair.servers, protocol) as both, Both(acl_pair.servers) as admin:
        for queue in queues:
            admin.call("ACL", "SETUSER", "u", "reset", "on", "nopass", "~*", "+@all")
            both.call("AUTH", "u", "any")
            both.call("MULTI")
            for line in queue:
                both.call(*line.split())
            admin.call("ACL", "SETUSER", "u", "resetkeys", "~k", "-ping", "-client")
            both.call("EXEC")
            both.call("PING")
            both.call("GET", "x")
        admin.call("ACL", "LOG", compare=without_times)
        # The right to EXEC itself, and a transaction that changes its own user.
        admin.call("ACL", "SETUSER", "u", "+@all", "~*")
        both.call("MULTI")
        both.call("GET", "k")
        admin.call("ACL", "SETUSER", "u", "-exec")
        both.call("EXEC")
        both.call("PING")
        admin.call("ACL", "SETUSER", "u", "+@all")
        both.call("MULTI")
        for line in ("SET k 4", "ACL SETUSER u resetkeys ~y", "GET k", "SET y 1", "AUTH default x", "GET k", "ACL WHOAMI", "AUTH u x", "GET k"):
            both.call(*line.split())
        both.call("EXEC")
        both.call("ACL", "WHOAMI")
        admin.call("ACL", "LOG", compare=without_times)


def test_denied_exec_forgets_watched_keys(acl_pair):
    with Both(acl_pair.servers) as both, Both(acl_pair.servers) as admin:
        admin.call("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "-exec")
        both.call("AUTH", "u", "x")
        for client in both.clients:
            client.send_raw(b"WATCH a\r\nMULTI\r\nSET a 1\r\nEXEC\r\nPING\r\n")
        for _ in range(5):
            expected, actual = (client.read() for client in both.clients)
            assert actual == expected
        admin.call("ACL", "LOG", compare=without_times)  # one entry, counted once


def test_log(acl_pair, protocol):
    """Entries that repeat are one, the newest first; there are no more than acllog-max-len."""
    with Both(acl_pair.servers, protocol) as both, Both(acl_pair.servers, protocol) as admin:
        admin.call("ACL", "SETUSER", "u", "on", ">p", "~k*", "+get", "+multi", "+set")
        both.call("auth", "u", "wrong")
        both.call("AUTH", "u", "wrong")
        both.call("AUTH", "u", "wrong")
        both.call("HELLO", 3, "AUTH", "nobody", "wrong")
        both.call("AUTH", "u", "p")
        for line in ("get x", "get x", "get y", "config get x", "Config Get x", "get x", "multi", "get x", "set x 1", "config get x"):
            both.call(*line.split())
        admin.call("ACL", "LOG", compare=without_times)
        admin.call("ACL", "LOG", 2, compare=without_times)
        admin.call("CONFIG", "SET", "acllog-max-len", 3)
        admin.call("ACL", "LOG", 100, compare=without_times)
        both.call("get", "z")
        admin.call("ACL", "LOG", 100, compare=without_times)
        admin.call("CONFIG", "SET", "acllog-max-len", 0)
        both.call("get", "z2")
        admin.call("ACL", "LOG", 100, compare=without_times)
        admin.call("CONFIG", "SET", "acllog-max-len", 128)
        for i in range(15):  # only ten are looked through for the same
            both.call("get", f"x{i}")
        both.call("get", "x0")
        admin.call("ACL", "LOG", 100, compare=without_times)
        admin.call("ACL", "LOG", "RESET")
        admin.call("ACL", "LOG")


def test_log_of_large_keys_is_bounded(acl_pair):
    server = acl_pair.servers[1]
    with server.client() as client, server.client() as admin:
        admin.call("ACL", "SETUSER", "u", "on", "nopass", "+get", "~k")
        client.call("AUTH", "u", "x")
        for i in range(50):
            assert client.call("GET", str(i) + "x" * 1_000_000).is_error()
        entries = admin.call("ACL", "LOG", 100).value
        assert len(entries) == 50 and sum(len(entry.value[7].value) for entry in entries) < 1_000_000


def test_auth(acl_pair, protocol):
    """Passwords, disabled users, the default user, RESET and HELLO; who is connected stays."""
    with Both(acl_pair.servers, protocol) as both, Both(acl_pair.servers) as admin:
        admin.call("ACL", "SETUSER", "u", "on", ">p", ">q", "~*", "+@all", ">" + "long" * 1000)
        for user, password in (("u", "x"), ("u", ""), ("nobody", "p"), ("default", "x"), ("U", "p"), ("u", "p"), ("u", "q"), ("u", "long" * 1000)):
            both.call("AUTH", user, password)
            both.call("ACL", "WHOAMI")
        both.call("RESET")
        both.call("ACL", "WHOAMI")
        both.call("HELLO", 2, "AUTH", "u", "q", "SETNAME", "me", compare=lambda reply: reply.kind)
        both.call("ACL", "WHOAMI")
        admin.call("ACL", "SETUSER", "u", "off")
        both.call("PING")
        both.call("AUTH", "u", "q")
        admin.call("ACL", "SETUSER", "u", "on", "nopass")
        both.call("AUTH", "u", "whatever")
        admin.call("ACL", "SETUSER", "u", "resetpass")
        both.call("AUTH", "u", "whatever")
        both.call("ACL", "WHOAMI")


DEFAULT_USER = [
    "CONFIG SET requirepass one", "CONFIG GET requirepass", "ACL LIST", "new", "AUTH one", "AUTH two", "ACL SETUSER default >two", "AUTH two", "CONFIG GET requirepass",
    "CONFIG SET requirepass one", "ACL LIST", "CONFIG SET requirepass three", "ACL LIST", "new", "AUTH one", "AUTH three", "ACL SETUSER default nopass", "CONFIG GET requirepass", "AUTH three", "new",
    "AUTH x", "CONFIG SET requirepass", "ACL SETUSER default off", "ACL LIST", "PING", "new", "PING", "AUTH default x", "HELLO 3", "old ACL SETUSER default on", "PING", "AUTH default x", "PING",
    "ACL SETUSER default -get ~k +get", "ACL SETUSER default resetkeys ~k", "GET x", "new", "GET x", "GET k", "old ACL SETUSER default allkeys", "GET x", "old ACL SETUSER default resetpass", "GET x", "new", "GET x",
    "AUTH x", "old CONFIG SET requirepass", "GET x", "old ACL LIST", "old ACL SETUSER default reset", "old PING", "GET x",
]  # fmt: skip


def test_default_user_and_requirepass(acl_pair):
    """As Redis ties them: a new connection, an old one, and one that never authenticated."""
    with Both(acl_pair.servers) as old, Both(acl_pair.servers) as keeper:
        keeper.call("ACL", "SETUSER", "keeper", "on", "nopass", "~*", "&*", "+@all")
        keeper.call("AUTH", "keeper", "x")
        used = [old]
        try:
            for line in DEFAULT_USER:
                words = line.split()
                if words == ["CONFIG", "SET", "requirepass"]:
                    words.append("")
                if words[0] == "new":
                    used.append(Both(acl_pair.servers))
                elif words[0] == "old":
                    words = words[1:] + ([""] if words[-1] == "requirepass" else [])
                    keeper.call(*words, compare=by_rules)
                else:
                    used[-1].call(*words, compare=by_rules)
        finally:
            for both in used[1:]:
                both.__exit__()
            keeper.call("ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all")


def test_deleted_users_are_cut(acl_pair):
    with Both(acl_pair.servers) as admin:
        admin.call("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all")
        admin.call("ACL", "SETUSER", "v", "on", "nopass", "~*", "+@all")
        with Both(acl_pair.servers) as first, Both(acl_pair.servers) as second, Both(acl_pair.servers) as waits, Both(acl_pair.servers) as stays:
            for both, name in ((first, "u"), (second, "v"), (waits, "u"), (stays, "default")):
                both.call("AUTH", name, "x")
            for client in waits.clients:
                client.send("BLPOP", "nosuch", 0)
            admin.call("ACL", "DELUSER", "u", "nobody")
            assert first.call("PING") == CLOSED
            assert [client.read() for client in waits.clients] == [CLOSED, CLOSED]
            second.call("PING")
            stays.call("PING")
            assert second.call("ACL", "DELUSER", "v") == Reply("integer", 1)  # itself
            assert [client.read() for client in second.clients] == [CLOSED, CLOSED]
            # A user of the same name is another one.
            admin.call("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all")
            stays.call("AUTH", "u", "x")
            stays.call("PING")
            assert admin.call("CLIENT", "KILL", "USER", "u") == Reply("integer", 1)
            assert stays.call("PING") == CLOSED
            admin.call("CLIENT", "KILL", "USER", "u")
            admin.call("CLIENT", "KILL", "USER", "default", "ID", 1_000_000)


# --- files, with servers of their own

BOTH = ["oracle"] + engines()[:1]  # what a file does has nothing to do with the engine


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


def listed(server):
    with server.client() as client:
        client.call("AUTH", "default", "x")
        client.call("AUTH", "admin", "x")
        return [rules_sorted(line.value) for line in client.call("ACL", "LIST").value]


USERS = """\
user alice on >secret ~a:* %R~shared:* &ch* +@read +@write -flushall

user admin on nopass ~* &* +@all
user bob off (~x +get) (%W~y +set) +config|get
"""


@pytest.mark.parametrize("kind", BOTH)
def test_acl_file(make, tmp_path, kind):
    path = tmp_path / "users.acl"
    path.write_text(USERS)
    path.chmod(0o640)
    server = make(kind, {"aclfile": path}).start()
    before = listed(server)
    assert [words[0][:2] for words in before] == [[b"user", name] for name in (b"admin", b"alice", b"bob", b"default")]
    with server.client() as client, server.client() as alice, server.client() as admin:
        assert alice.call("AUTH", "alice", "secret") == OK
        assert admin.call("AUTH", "admin", "x") == OK
        assert client.call("ACL", "SETUSER", "carol", "on", ">c") == OK
        assert client.call("ACL", "SAVE") == OK
        after = listed(server)
        assert rules_of_file(path) == after and len(after) == 5
        if kind != "oracle":
            assert path.stat().st_mode & 0o777 == 0o640
            assert os.listdir(tmp_path) == ["users.acl"]
        # A file with mistakes changes nothing, and all of them are told.
        path.write_text("user alice on foo\nnonsense\n\nuser bob (~a\nuser alice on\nuser c ~x +nosuch +get zz yy\nuser default on\n")
        reply = client.call("ACL", "LOAD")
        assert reply.is_error() and reply.text().replace(str(path), "FILE") == LOAD_ERRORS
        assert listed(server) == after
        # A good one replaces all; whoever was another user than the default one is cut.
        path.write_text(USERS.replace("user bob", "user dave"))
        assert client.call("ACL", "LOAD") == OK
        assert [words[0][1] for words in listed(server)] == [b"admin", b"alice", b"dave", b"default"]
        assert alice.call("PING") == CLOSED
        assert admin.call("PING") == CLOSED
        path.unlink()
        missing = client.call("ACL", "LOAD").text().replace(str(path), "FILE")
        assert missing == "ERR Error loading ACLs, opening file 'FILE': No such file or directory"
        assert client.call("PING") == Reply("simple", b"PONG")


LOAD_ERRORS = (
    "ERR FILE:1: Syntax error. FILE:2 should start with user keyword followed by the username. FILE:4: Unmatched parenthesis in "
    "selector definition.WARNING: Duplicate user 'alice' found on line 5. FILE:6: Error in applying operation '+nosuch': Unknown "
    "command or category name in ACL. FILE:6: Syntax error. WARNING: ACL errors detected, no change to the previously active ACL "
    "rules was performed"
)


def rules_of_file(path):
    return [rules_sorted(line.encode()) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", BOTH)
def test_acl_load_by_a_user_that_it_deletes(make, tmp_path, kind):
    path = tmp_path / "users.acl"
    path.write_text(USERS)
    server = make(kind, {"aclfile": path}).start()
    with server.client() as admin:
        admin.call("AUTH", "admin", "x")
        assert admin.call("ACL", "LOAD") == OK
        assert admin.read() == CLOSED


@pytest.mark.parametrize("kind", BOTH)
def test_acl_file_that_cannot_be_written(make, tmp_path, kind):
    folder = tmp_path / "gone"
    folder.mkdir()
    (folder / "users.acl").write_text("user default on nopass ~* &* +@all\n")
    server = make(kind, {"aclfile": folder / "users.acl"}).start()
    (folder / "users.acl").unlink()
    folder.rmdir()
    with server.client() as client:
        assert client.call("ACL", "SAVE").text() == (
            "ERR There was an error trying to save the ACLs. Please check the server logs for more information"
        )


CONF = """\
# Users.
user alice on >secret ~a:* (~x:* +get) +@read
user bob on nopass ~* +@all -@dangerous
requirepass one
"""


@pytest.mark.parametrize("kind", BOTH)
def test_users_in_the_configuration(make, tmp_path, kind):
    conf = tmp_path / "test.conf"
    conf.write_text(CONF)
    server = make(kind, conf=conf).start()
    with server.client() as client:
        assert client.call("PING").text().startswith("NOAUTH")
        assert client.call("AUTH", "one") == OK
        assert client.call("ACL", "SETUSER", "carol", "on", "nopass", "+@all", "~c") == OK
        assert client.call("ACL", "DELUSER", "alice") == Reply("integer", 1)
        users = [line.value for line in client.call("ACL", "LIST").value]
        assert client.call("CONFIG", "REWRITE") == OK
    lines = conf.read_text().splitlines()
    assert sorted(line.encode() for line in lines if line.startswith("user ")) == sorted(users)
    assert lines[0] == "# Users." and 'requirepass "one"' in [line.replace("requirepass one", 'requirepass "one"') for line in lines]
    server.restart()
    with server.client() as client:
        assert client.call("AUTH", "one") == OK
        again = [line.value.replace(b"default on sanitize-payload", b"default on") for line in client.call("ACL", "LIST").value]
        assert again == users  # a "user" line resets the default one, which leaves its mark


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "conf, acl, message",
    [
        ("user a on +nosuch\n", None, "Error loading ACL rule '+nosuch' for the user named 'a': Unknown command or category name in ACL"),
        ("user a on +nosuch\n", None, "Critical error while loading ACLs. Exiting."),
        ('user "a b" on\n', None, "Spaces not allowed in ACL usernames"),
        ("user a on\nuser a off\n", None, "Error in user declaration 'a': Duplicate user found. A user can only be defined once in config files"),
        ("user a on ~x foo\n", None, "Syntax error"),
        ("user a on (~x\n", None, "Error in user declaration"),
        ("user\n", None, "Bad directive or wrong number of arguments"),
        ("aclfile FILE\nuser a on\n", "user b on\n", "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid."),
        ("aclfile FILE\n", None, "Aborting Redis startup because of ACL errors: Error loading ACLs, opening file 'FILE': No such file or directory"),
        ("aclfile FILE\n", "user a on\nuser a off\n", "Aborting Redis startup because of ACL errors: WARNING: Duplicate user 'a' found on line 2."),
    ],
)  # fmt: skip
def test_broken_users_stop_the_start(make, tmp_path, kind, conf, acl, message):
    path = tmp_path / "users.acl"
    if acl is not None:
        path.write_text(acl)
    (tmp_path / "test.conf").write_text(conf.replace("FILE", str(path)))
    server = make(kind, conf=tmp_path / "test.conf")
    with pytest.raises(ServerError) as error:
        server.start()
    assert message.replace("FILE", str(path)) in str(error.value)


@pytest.mark.parametrize("kind", BOTH)
def test_a_disabled_user_is_told_in_the_log(make, tmp_path, kind):
    (tmp_path / "test.conf").write_text("user a +get\nuser default on nopass ~* +@all\n")
    server = make(kind, conf=tmp_path / "test.conf").start()
    assert "The user 'a' is disabled (there is no 'on' modifier" in server.log_path.read_text()
    assert listed(server)[1][0][2:5] == [b"on", b"nopass", b"sanitize-payload"]


# --- attacks, on Ingot alone


@pytest.fixture
def alone(make):
    if self_check():
        pytest.skip("of Ingot alone")
    return make(engines()[0]).start()


def test_ten_thousand_users(alone, tmp_path):
    """They are made, listed, found and deleted, while others are served at once."""
    with alone.client(timeout=60) as client:
        for start in range(0, 10_000, 1000):
            lines = [("ACL", "SETUSER", f"u{i}", "on", f">p{i}", f"~u{i}:*", "+@all", "-@dangerous") for i in range(start, start + 1000)]
            assert all(reply == OK for reply in client.pipeline(lines))
        slowest = [0.0]
        done = threading.Event()

        def ping():
            with alone.client() as other:
                while not done.is_set():
                    began = time.monotonic()
                    other.call("GET", "x")
                    slowest[0] = max(slowest[0], time.monotonic() - began)

        thread = threading.Thread(target=ping)
        thread.start()
        assert len(client.call("ACL", "LIST").value) == 10_001
        assert len(client.call("ACL", "USERS").value) == 10_001
        with alone.client() as user:
            assert user.call("AUTH", "u9999", "p9999") == OK
            assert user.call("SET", "u9999:x", "1") == OK
            assert user.call("GET", "u1:x").is_error()
            assert client.call("ACL", "DELUSER", *[f"u{i}" for i in range(10_000)]) == Reply("integer", 10_000)
            assert user.call("PING") == CLOSED
        done.set()
        thread.join()
        assert slowest[0] < 0.5
        assert len(client.call("ACL", "USERS").value) == 1


def test_a_user_of_many_patterns(alone):
    rules = [f"~key:{i}:*" for i in range(50_000)] + [f"&channel:{i}" for i in range(50_000)]
    with alone.client(timeout=60) as client, alone.client() as user:
        began = time.monotonic()
        assert client.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", *rules) == OK
        assert client.call("ACL", "SETUSER", "u", *rules) == OK
        assert time.monotonic() - began < 10
        assert len(client.call("ACL", "LIST").value[1].value.split()) == 100_000 + len("user u on nopass resetchannels +@all".split())
        assert user.call("AUTH", "u", "x") == OK
        assert user.call("SET", "key:49999:x", 1) == OK
        assert user.call("SET", "key:50000:x", 1).is_error()


def test_neighbours_do_not_wait_for_long_checks(alone):
    """Very many keys under very many patterns: on no thread that others share, alone, in a transaction, and in order."""
    names = [f"key:{i}" for i in range(100_000)]
    with alone.client(timeout=120) as user, alone.client() as admin:
        assert admin.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", *[f"~*:{i}x" for i in range(300)], "~key:*") == OK
        assert user.call("AUTH", "u", "x") == OK
        slowest, done = [0.0], threading.Event()

        def ping():
            with contextlib.ExitStack() as stack:
                others = [stack.enter_context(alone.client()) for _ in range(8)]  # some on each thread
                while not done.is_set():
                    for other in others:
                        began = time.monotonic()
                        other.call("SET", "x", "1")
                        slowest[0] = max(slowest[0], time.monotonic() - began)

        thread = threading.Thread(target=ping)
        thread.start()
        began = time.monotonic()
        replies = user.pipeline([("INCR", "key:n"), ("EXISTS", *names), ("INCR", "key:n"), ("EXISTS", "other", *names), ("PING",)])
        assert replies[0].value == 1 and replies[2].value == 2 and replies[4] == Reply("simple", b"PONG")
        assert replies[1] == Reply("integer", 0) and replies[3].text().startswith("NOPERM")
        replies = user.pipeline([("MULTI",), ("EXISTS", *names), ("INCR", "key:n"), ("EXEC",), ("GET", "key:n")])
        assert replies[3].value == [Reply("integer", 0), Reply("integer", 3)] and replies[4].value == b"3"
        took = time.monotonic() - began
        done.set()
        thread.join()
        assert slowest[0] < max(0.3, took / 4), (slowest, took)


def test_setuser_storm(alone):
    """While rules change, each command is checked by one state of them or another, never by half of one."""
    stop = threading.Event()
    failures = []

    def change(client):
        for i in itertools.count():
            if stop.is_set():
                return
            key = "a" if i % 2 == 0 else "b"
            client.call("ACL", "SETUSER", "u", "reset", "on", "nopass", "+mget", "+multi", "+exec", "+set", f"~{key}", f"%R~{key}{key}")

    def use(client):
        client.call("AUTH", "u", "x")
        while not stop.is_set():
            for reply in client.pipeline([("MGET", "a", "b"), ("MGET", "aa", "b"), ("MULTI",), ("SET", "a", "1"), ("SET", "bb", "1"), ("EXEC",)]):
                if not (reply.is_error() or reply in (OK, Reply("simple", b"QUEUED"))) and reply.kind != "array":
                    failures.append(reply)
                if reply.kind == "array" and len(reply.value) == 2 and not any(each.is_error() for each in reply.value):
                    failures.append(reply)

    def come_and_go():
        while not stop.is_set():
            with alone.client() as client:
                client.call("ACL", "SETUSER", "t", "on", "nopass", "~*", "+@all")
                client.call("AUTH", "t", "x")
                client.send("GET", "a")
                client.send("ACL", "DELUSER", "t")

    with alone.client() as first:
        first.call("ACL", "SETUSER", "u", "on", "nopass", "+@all")
    clients = [alone.client() for _ in range(6)]
    threads = [threading.Thread(target=change, args=(clients[0],)), threading.Thread(target=come_and_go), threading.Thread(target=come_and_go)]
    threads += [threading.Thread(target=use, args=(client,)) for client in clients[1:]]
    for thread in threads:
        thread.start()
    time.sleep(10 if FULL else 3)
    stop.set()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert not failures and alone.alive()


def test_nothing_runs_after_deluser_is_answered(alone):
    """A pipeline that is on its way when its user is deleted ends there."""
    for _ in range(20):
        with alone.client() as admin, alone.client() as user:
            admin.call("DEL", "n")
            admin.call("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all")
            user.call("AUTH", "u", "x")
            user.send_raw(b"INCR n\r\n" * 20_000)
            admin.call("ACL", "DELUSER", "u")
            # What was handed to the writer before is done; nothing is that came later.
            time.sleep(0.02)
            first = admin.call("GET", "n")
            time.sleep(0.02)
            assert admin.call("GET", "n") == first
