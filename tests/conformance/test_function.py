"""FUNCTION and FCALL: libraries, their errors, dumps that each server takes from the other, a restart."""

import pytest
from support.servers import Server, engines

ONE = b"#!lua name=one\nredis.register_function('f', function(keys, args) return {keys, args} end)"
SEVERAL = b"""#!lua name=several
local function both(keys, args) return redis.call('SET', keys[1], args[1]) end
redis.register_function('put', both)
redis.register_function{function_name='look', callback=function(keys) return redis.call('GET', keys[1]) end,
                        flags={'no-writes', 'allow-stale'}, description='what is there'}
redis.register_function('fails', function() error('boom') end)
redis.register_function('unknown', function() return nothing end)
redis.register_function('assigns', function() x = 1 end)
redis.register_function('spoils', function() redis.x = 1 end)
redis.register_function('registers', function() redis.register_function('g', both) end)
redis.register_function('keys', function() return KEYS end)
redis.register_function('wrong', function() redis.call('SET', 'x', 1) return redis.call('LPUSH', 'x', 1) end)
redis.register_function('api', function()
  local names = {}
  for name in pairs(redis) do names[#names + 1] = name end
  table.sort(names)
  return names
end)
redis.register_function('globals', function()
  local names = {}
  for name in pairs(_G) do names[#names + 1] = name end
  table.sort(names)
  return names
end)
redis.register_function('sneaks', function() return redis.call('SET', 'x', 1) end)
redis.register_function{function_name='liar', callback=function() return redis.call('SET', 'x', 1) end,
                        flags={'no-writes'}}"""
BAD_CODE = [
    b"return 1", b"#!lua", b"#!lua\n", b"#!foo name=x\n", b"#!lua name=b\n", b"#!lua name=b\nreturn 1",
    b"#!lua name=b foo=x\nreturn 1", b"#!lua name=b name=c\n", b"#!lua name=b-c\n", b"#!lua name=\n",
]  # fmt: skip
# Behind "#!lua name=b".
BAD_BODIES = [
    "foo(", "error('x')", "redis.call('get','x')", "return x.y", "x=1", "redis.x=1", "string.x=1",
    "redis.log('a','b')", "redis.log(redis.LOG_DEBUG,'b')", "redis.setresp(3)", "return KEYS", "return _G",
    "redis.register_function()", "redis.register_function('a')", "redis.register_function(1,2)",
    "redis.register_function('a-b',function() end)", "redis.register_function('a',1)",
    "redis.register_function('a',function() end,3)", "redis.register_function({})",
    "redis.register_function({},function() end)", "redis.register_function{1}",
    "redis.register_function{function_name='x'}", "redis.register_function{callback=function() end}",
    "redis.register_function{function_name='x',callback=1}",
    "redis.register_function{function_name='x',callback=function() end,foo=1}",
    "redis.register_function{function_name='x',callback=function() end,flags=1}",
    "redis.register_function{function_name='x',callback=function() end,flags={'bad'}}",
    "redis.register_function{function_name='x',callback=function() end,flags={1}}",
    "redis.register_function{function_name={},callback=function() end}",
    "redis.register_function{function_name='',callback=function() end}",
    "redis.register_function{function_name='x',callback=function() end,description={}}",
    "redis.register_function('x',function() end) redis.register_function('x',function() end)",
    "redis.register_function('f',function() end)",
]  # fmt: skip


@pytest.fixture
def both(empty_pair, protocol):
    clients = [server.client(protocol) for server in empty_pair.servers]
    for client in clients:
        client.call("FUNCTION", "FLUSH")

    def call(*command):
        expected, actual = (client.call(*command) for client in clients)
        assert actual == expected, command
        return actual

    yield call
    for client in clients:
        client.call("FUNCTION", "FLUSH")


def test_load(both):
    both("FUNCTION", "LOAD", ONE)
    both("FUNCTION", "LOAD", ONE)
    both("FUNCTION", "LOAD", "REPLACE", ONE)
    both("FUNCTION", "LOAD", "REPLAC", ONE)
    both("FUNCTION", "LOAD", "REPLACE")
    both("FUNCTION", "LOAD", ONE.replace(b"one", b"other"))
    for code in BAD_CODE:
        both("FUNCTION", "LOAD", code)
    for body in BAD_BODIES:
        both("FUNCTION", "LOAD", "#!lua name=b\n" + body)
    both("FUNCTION", "LIST", "WITHCODE")


def test_engines_and_functions_in_any_case(both):
    both("FUNCTION", "LOAD", "#!LUA name=upper\nredis.register_function('up', function() return 1 end)")
    both("FCALL", "UP", 0)
    both("FUNCTION", "LIST", "WITHCODE")
    both("FUNCTION", "LOAD", "#!Lua name=UPPER\nredis.register_function('uP', function() return 1 end)")
    both("FUNCTION", "LOAD", "#!Lua2 name=other\nredis.register_function('other', function() return 1 end)")
    both("FUNCTION", "DELETE", "upper")
    both("FCALL", "UP", 0)


@pytest.mark.parametrize("count", [7000, 7980, 7999])
def test_arguments_that_fill_the_stack(both, count):
    body = f"local a = {{}} for i = 1, {count} do a[i] = 1 end return redis.call('RPUSH', 'list', unpack(a))"
    both("FUNCTION", "LOAD", f"#!lua name=many\nredis.register_function('many', function() {body} end)")
    both("FCALL", "many", 0)
    both("EVAL", body, 0)
    both("DEL", "list")


def test_calls(both):
    both("FUNCTION", "LOAD", ONE)
    both("FUNCTION", "LOAD", SEVERAL)
    for arguments in ("0", "x", "-1", "1", "1 k a b", "2 k l"):
        both("FCALL", "f", *arguments.split())
        both("FCALL", "nothing", *arguments.split())
    both("fcall", "F", 0)
    both("FCALL", "f")
    both("FCALL_RO", "f", 0)
    both("FCALL", "put", 1, "k", "v")
    both("FCALL_RO", "put", 1, "k", "w")
    both("FCALL", "look", 1, "k")
    both("FCALL_RO", "look", 1, "k")
    for name in "fails unknown assigns spoils registers keys wrong api globals sneaks liar".split():
        both("FCALL", name, 0)
        both("FCALL_RO", name, 0)
    both("GET", "x")
    both("EVAL", "return redis.call('fcall', 'f', 0)", 0)


def test_inside_a_transaction(both):
    both("MULTI")
    both("FUNCTION", "LOAD", ONE)
    both("FCALL", "f", 1, "k", "a")
    both("FUNCTION", "DELETE", "one")
    both("FCALL", "f", 1, "k", "a")
    both("EXEC")
    both("FUNCTION", "LIST")


@pytest.mark.parametrize("first", ["SET k 0", "GET k"])
def test_what_reads_sees_the_libraries_of_its_transaction(both, first):
    for version in range(3):
        both("MULTI")
        both(*first.split())
        both("FCALL_RO", "read", 0)
        both("FUNCTION", "LOAD", "REPLACE", f"#!lua name=versions\nredis.register_function{{function_name='read', callback=function() return {version} end, flags={{'no-writes'}}}}")
        both("FCALL_RO", "read", 0)
        both("FCALL", "read", 0)
        both("EXEC")
        both("FCALL", "read", 0)


def test_delete_flush_list(both):
    both("FUNCTION", "LOAD", ONE)
    for pattern in ("one", "ONE", "o*", "x*"):
        both("FUNCTION", "LIST", "LIBRARYNAME", pattern)
        both("FUNCTION", "LIST", "WITHCODE", "LIBRARYNAME", pattern)
    both("FUNCTION", "LIST", "x")
    both("FUNCTION", "LIST", "LIBRARYNAME")
    both("FUNCTION", "LIST", "WITHCODE", "WITHCODE")
    both("FUNCTION", "LIST", "LIBRARYNAME", "a", "LIBRARYNAME", "b")
    both("FUNCTION", "STATS")
    both("FUNCTION", "DELETE", "nothing")
    both("FUNCTION", "DELETE", "ONE")
    both("FUNCTION", "DELETE", "one")
    both("FCALL", "f", 0)
    both("FUNCTION", "LOAD", ONE)
    both("FLUSHALL")
    both("FCALL", "f", 0)
    both("FUNCTION", "FLUSH", "x")
    both("FUNCTION", "FLUSH", "SYNC", "x")
    both("FUNCTION", "FLUSH", "ASYNC")
    both("FCALL", "f", 0)
    both("FUNCTION", "KILL")
    both("FUNCTION", "NOTHING")


def test_stats_come_behind_what_was_sent_before(empty_pair):
    """In one pipeline: STATS is answered while others run, but not before its own connection's changes."""
    commands = [("FUNCTION", "FLUSH"), ("FUNCTION", "LOAD", ONE), ("FUNCTION", "STATS"), ("FUNCTION", "FLUSH"), ("FUNCTION", "STATS")] * 20
    expected, actual = (admin.pipeline(commands) for admin in empty_pair.admins)
    assert actual == expected


def test_dumps(empty_pair, both):
    redis, other = (server.client() for server in empty_pair.servers)
    both("FUNCTION", "DUMP")
    both("FUNCTION", "LOAD", ONE)
    payload = both("FUNCTION", "DUMP").value
    both("FUNCTION", "RESTORE", payload)
    both("FUNCTION", "RESTORE", payload, "APPEND")
    both("FUNCTION", "RESTORE", payload, "REPLACE")
    both("FUNCTION", "RESTORE", payload, "FLUSH")
    both("FUNCTION", "RESTORE", payload, "NOTHING")
    both("FUNCTION", "RESTORE", payload, "FLUSH", "x")
    both("FUNCTION", "RESTORE", payload[:-1] + b"x")
    both("FUNCTION", "RESTORE", b"x", "FLUSH")
    both("FUNCTION", "RESTORE", redis.call("FUNCTION", "DUMP").value[:5])
    both("SET", "k", "v")
    both("FUNCTION", "RESTORE", both("DUMP", "k").value)
    both("FUNCTION", "DELETE", "one")
    both("FUNCTION", "LOAD", ONE.replace(b"one", b"other"))
    both("FUNCTION", "RESTORE", payload)
    both("FUNCTION", "RESTORE", payload, "REPLACE")
    both("FUNCTION", "FLUSH")
    # Several libraries, long enough to be compressed, from one to the other and back.
    for server in (redis, other):
        for code in (ONE, SEVERAL):
            server.call("FUNCTION", "LOAD", code)
    dumps = [server.call("FUNCTION", "DUMP").value for server in (redis, other)]
    assert redis.call("FUNCTION", "RESTORE", dumps[1], "FLUSH").value == b"OK"
    assert other.call("FUNCTION", "RESTORE", dumps[0], "FLUSH").value == b"OK"
    both("FCALL", "put", 1, "k", "v")
    both("FCALL", "f", 1, "k")


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_restart(engine, killed):
    options = {"appendonly": "yes"} if engine == "redis" else {}
    with Server.ingot(engine, options) as server:
        client = server.client()
        for code in (ONE, SEVERAL):
            assert not client.call("FUNCTION", "LOAD", code).is_error()
        client.call("FUNCTION", "DELETE", "one")
        client.call("SCRIPT", "LOAD", "return 1")
        client.call("FCALL", "put", 1, "k", "v")
        before = client.call("FUNCTION", "LIST", "WITHCODE")
        server.restart(kill=killed)
        client = server.client()
        assert len(before.value) == 1
        assert client.call("FUNCTION", "DUMP").value.count(b"name=several") == 1
        assert client.call("FCALL", "look", 1, "k").value == b"v"
        assert client.call("FCALL_RO", "look", 1, "k").value == b"v"
        assert client.call("FCALL", "f", 0).is_error()
        # Scripts are forgotten, as in Redis.
        assert client.call("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0).value.startswith(b"NOSCRIPT")
