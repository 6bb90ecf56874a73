"""ACL beside a real redis-server: users and their rules, whom they allow what, and what the subcommands answer."""

import random
import re
import time

import pytest
from acl_tools import OK, Both, acl_pair, by_rules  # noqa: F401
from script import expand, load_cases
from support.effort import FULL, SEED

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
        for name in sorted(listed[0] & listed[1]):
            if name.upper().encode() in STRICTER:
                continue
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


# In Redis a range of keys that begins behind the last argument makes a command one without keys.
STRICTER = {b"PFMERGE"}


def test_keys_of_every_written_command(acl_pair):
    """Whatever the other tests send: which of its keys it reads and writes."""
    users = {"reader": ["%R~*"], "writer": ["%W~*"], "keyless": [], "some": ["~k*", "%R~[a-m]*", "%W~[d-z]*"], "two": ["~k*", "(+@all ~*[0-9])"]}
    with Both(acl_pair.servers) as both:
        for name, rules in users.items():
            assert both.call("ACL", "SETUSER", name, "+@all", *rules) == OK
        now = time.time()
        lines = {tuple(expand(word, now) for word in step.words) for case in load_cases() for step in case.steps
                 if step.directive is None and not any(text.startswith("@") for text, _ in step.words)}  # fmt: skip
        lines = sorted(line for line in lines if line[0].upper() not in STRICTER and not any(b"\0" in word for word in line))
        assert len(lines) > 3000
        for name in users:
            wrong = []
            for start in range(0, len(lines), 200):
                part = [("ACL", "DRYRUN", name, *line) for line in lines[start : start + 200]]
                for line, *replies in zip(part, *(client.pipeline(part) for client in both.clients)):
                    expected, actual = replies
                    if actual != expected and b"not found" not in actual.value:
                        wrong.append((line, expected, actual))
            assert not wrong, wrong


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
