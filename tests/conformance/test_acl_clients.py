"""Clients of users who may not do everything, beside a real redis-server: what they are answered, AUTH, ACL LOG, who is cut."""

import re

import pytest
from acl_tools import Both, acl_pair, by_rules, without_times  # noqa: F401
from support.resp import CLOSED, Reply

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


def test_what_subscribers_are_denied_is_logged(acl_pair):
    """Before they are told that they may call little else."""
    with Both(acl_pair.servers) as both, Both(acl_pair.servers) as admin:
        admin.call("ACL", "SETUSER", "u", "on", "nopass", "~k*", "&c", "+subscribe", "+get", "+select")
        both.call("AUTH", "u", "x")
        both.call("SUBSCRIBE", "c")
        for line in ("GET x", "GET k", "SET k 1", "SUBSCRIBE d", "SELECT 1", "NOSUCH", "GET"):
            both.call(*line.split())
        admin.call("ACL", "LOG", compare=without_times)
        admin.call("ACL", "LOG", "RESET")


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
        admin.call("ACL", "SETUSER", "u", "on", ">p", ">q", "~*", "+@all", ">" + "long" * 1000, ">" + "x" * 100_000)
        for user, password in (("u", "x"), ("u", ""), ("nobody", "p"), ("default", "x"), ("U", "p"), ("u", "p"), ("u", "q"), ("u", "long" * 1000), ("default", "x" * 100_000), ("u", "x" * 100_000), ("u", "y" * 100_000)):
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


REVOKED = [
    (["allchannels"], ["resetchannels"], ["SUBSCRIBE", "foo"]),
    (["allchannels"], ["resetchannels", "&foo"], ["SUBSCRIBE", "foo"]),
    (["allchannels"], ["resetchannels", "&f*"], ["PSUBSCRIBE", "f*"]),
    (["allchannels"], ["resetchannels", "&f*"], ["PSUBSCRIBE", "fo*"]),
    (["&foo", "&bar"], ["resetchannels", "&bar"], ["SUBSCRIBE", "foo"]),
    (["&foo", "&bar"], ["resetchannels", "&bar"], ["SSUBSCRIBE", "foo"]),
    (["&foo", "&bar"], ["resetchannels", "&bar"], ["SUBSCRIBE", "bar"]),
    (["&foo", "&bar"], ["resetchannels", "(&foo &bar)"], ["SUBSCRIBE", "bar"]),
]


@pytest.mark.parametrize("before, after, listen", REVOKED)
def test_subscribers_whose_channels_are_revoked_are_cut(acl_pair, before, after, listen):
    with Both(acl_pair.servers) as admin, Both(acl_pair.servers) as both:
        if admin.clients[1].call("COMMAND", "INFO", "subscribe").value[0].is_null():
            pytest.skip("this Ingot has no channels")
        admin.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", *before)
        both.call("AUTH", "u", "x")
        both.call(*listen)
        admin.call("ACL", "SETUSER", "u", *after)
        both.call("PING")
