"""What a script may do: its sender's rights count for each command that it calls."""

import re

import pytest
from conformance.acl_tools import Both, acl_pair  # noqa: F401

SCRIPTS = [
    "return redis.call('set', 'open:a', '1')",
    "return redis.call('get', 'open:a')",
    "return redis.call('get', 'shut:a')",
    "return redis.call('del', 'open:a')",
    "return redis.pcall('set', 'shut:a', '1')",
    "return redis.pcall('set', 'shut:a', '1')['err']",
    "return redis.call('publish', 'news', 'x')",
    "return redis.call('publish', 'gossip', 'x')",
    "return redis.call('config', 'get', 'port')",
    "return redis.call('mget', 'open:a', 'shut:a')",
    "return redis.call('sort', 'open:l', 'by', 'shut:*')",
    "return {redis.acl_check_cmd('set', 'open:a', '1') and 1 or 0, redis.acl_check_cmd('set', 'shut:a', '1') and 1 or 0,"
    " redis.acl_check_cmd('del', 'open:a') and 1 or 0}",
    "return redis.acl_check_cmd('nothing')",
    "redis.call('set', 'open:b', '2'); return redis.call('set', 'shut:b', '2')",
]


def without_sender(text):
    return re.sub(rb"script: [0-9a-f]{40}", b"script: -", text) if isinstance(text, bytes) else text


@pytest.mark.parametrize("command", ["EVAL", "EVAL_RO"])
def test_each_call_is_checked(acl_pair, command):  # noqa: F811
    with Both(acl_pair.servers) as both:
        both.call("ACL", "SETUSER", "clerk", "on", ">pw", "+@all", "-del", "-config", "~open:*", "resetchannels", "&news")
        both.call("SET", "shut:a", "secret")
        both.call("RPUSH", "open:l", "1", "2")
        both.call("AUTH", "clerk", "pw")
        for script in SCRIPTS:
            both.call(command, script, "0")
        both.call("MULTI")
        for script in SCRIPTS[:8]:
            both.call(command, script, "0")
        both.call("EXEC")
        both.call("AUTH", "default", "")
        both.call("GET", "shut:a")
        both.call("GET", "open:b")


def test_the_log_says_that_it_was_a_script(acl_pair):  # noqa: F811
    logs = []
    for server in acl_pair.servers:
        with server.client() as client, server.client() as admin:
            admin.call("ACL", "SETUSER", "clerk", "on", "nopass", "+eval", "+get", "~open:*")
            client.call("AUTH", "clerk", "any")
            assert client.call("EVAL", "return redis.call('get', 'shut')", "0").is_error()
            assert client.call("EVAL", "return redis.call('set', 'open:a', 1)", "0").is_error()
            entries = [[field.value for field in entry.value] for entry in admin.call("ACL", "LOG").value]
            logs.append([entry[1:10] for entry in entries])
    assert logs[0] == logs[1]
    assert [entry[4] for entry in logs[0]] == [b"lua", b"lua"]


def test_a_later_auth_does_not_change_what_a_script_may_do(acl_pair):  # noqa: F811
    for server in acl_pair.servers:
        with server.client() as client, server.client() as admin:
            admin.call("ACL", "SETUSER", "clerk", "on", ">pw", "+eval", "+auth", "~open:*")
            admin.call("ACL", "SETUSER", "boss", "on", ">pw", "+@all", "~*")
            client.call("AUTH", "clerk", "pw")
            for _ in range(50):
                client.send("EVAL", "return redis.call('set', 'shut', 1)", "0")
                client.send("AUTH", "boss", "pw")
                client.send("AUTH", "clerk", "pw")
            replies = [client.read() for _ in range(150)]
            assert all(reply.is_error() for reply in replies[::3])
            assert all(not reply.is_error() for reply in replies[1::3] + replies[2::3])
            assert admin.call("EXISTS", "shut").value == 0
