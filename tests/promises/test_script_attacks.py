"""The ways out of Redis' sandbox, and into its memory, that were found over the years, each tried; Ingot alone, for some
of them end an older Redis. What test_scripts.py has of endless loops and of memory is not repeated here.
"""

import time

import pytest
from harness import MB, eventually, ingot, memory, until_answered
from support.resp import CLOSED

pytestmark = pytest.mark.usefixtures("deep_replies")

# Walks over all that a script can reach, and tries to change each table of it.
WALK = """
local seen, open = {[KEYS] = true, [ARGV] = true}, {}
local function try(name, f, ...) if pcall(f, ...) then open[#open + 1] = name end end
local function look(value, path)
  if type(value) ~= 'table' or seen[value] then return end
  seen[value] = true
  try(path .. ' is written', function() value.attack = 1 end)
  try(path .. ' is written at 1', function() value[1] = 1 end)
  try(path .. ' by rawset', rawset, value, 'attack', 1)
  try(path .. ' by setmetatable', setmetatable, value, {})
  try(path .. ' by insert', table.insert, value, 1)
  for name, member in pairs(value) do look(member, path .. '.' .. tostring(name)) end
  table.foreach(value, function(name, member) look(member, path .. '.' .. tostring(name)) end)
  look(getmetatable(value), path .. "'s metatable")
end
look(_G, '_G')
for _, basic in ipairs({'', 1, true, look, coroutine.create(look), cjson.null}) do
  local meta = getmetatable(basic)
  look(meta, type(basic) .. "'s metatable")
  if meta then look(meta.__index, type(basic) .. "'s methods") end
end
for _, name in ipairs({'dofile', 'loadfile', 'module', 'require', 'package', 'newproxy', 'print', 'getfenv', 'setfenv', 'os', 'io',
                       'debug', 'arg'}) do
  try(name .. ' is there', function() return _G[name] end)
end
return open"""

# Each answers what it got; "held" where the sandbox did.
ESCAPES = {
    "byte code (CVE-2015-4335)": """
        local code = string.dump(function() return 1 end)
        for _, pieces in ipairs({{code}, {'', code}, {code:sub(1, 1), code:sub(2)}, {code:sub(1, 7), code:sub(8)}}) do
          local at = 0
          if load(function() at = at + 1 return pieces[at] end) then return 'loaded' end
        end
        return loadstring(code) and 'loaded' or 'held'""",
    "a library of C (CVE-2022-0543)": """
        local ok = pcall(function() return package.loadlib('/lib/x86_64-linux-gnu/liblua5.1.so.0', 'luaopen_io') end)
        return ok and 'loaded' or 'held'""",
    "functions of others (CVE-2022-24735)": """
        local ok = pcall(function() redis.call = function() return 'mine' end end)
            or pcall(function() string.rep = nil end) or pcall(function() redis = {} end)
            or pcall(function() function tostring() return 'mine' end end)
        return ok and 'changed' or 'held'""",
    "metatables of basic types (CVE-2025-46818)": """
        local ok = pcall(function() getmetatable('').__index = function() return 'mine' end end)
            or pcall(function() getmetatable('').__add = function() return 'mine' end end)
            or pcall(rawset, getmetatable(''), '__index', {}) or pcall(setmetatable, '', {})
        return (ok or ('x'):upper() ~= 'X') and 'changed' or 'held'""",
    "finalizers (CVE-2024-46981)": """
        local t = setmetatable({}, {__gc = function() redis.call('SET', 'gc', '1') end})
        t = nil
        collectgarbage() collectgarbage()
        return (pcall(function() return newproxy(true) end) or redis.call('EXISTS', 'gc') == 1) and 'ran' or 'held'""",
    "environments": """
        local ok = pcall(function() setfenv(1, {}) end) or pcall(function() getfenv(0).x = 1 end)
        return ok and 'changed' or 'held'""",
    "the handler of errors": """
        local ok = pcall(function() __redis__err__handler = function() return 'mine' end end)
        return ok and 'changed' or 'held'""",
    "a global by its table": "return pcall(rawset, _G, 'x', 1) and 'changed' or 'held'",
}

# Whatever they answer or fail with: the server lives, and scripts go on as they did.
CRASHES = {
    "cmsgpack and the stack (CVE-2018-11218)": """
        local t = {} for i = 1, 7000 do t[i] = i end
        pcall(cmsgpack.pack, unpack(t))
        pcall(cmsgpack.unpack, cmsgpack.pack(unpack(t)))
        pcall(cmsgpack.unpack, ('\\1'):rep(1e6))
        for _, s in ipairs({'\\221\\255\\255\\255\\255', '\\223\\255\\255\\255\\255', '\\219\\255\\255\\255\\255x', '\\217', '\\144\\199'}) do
          pcall(cmsgpack.unpack, s)
          pcall(cmsgpack.unpack_one, s, #s)
          pcall(cmsgpack.unpack_limit, s, 2147483647, 0)
          pcall(cmsgpack.unpack_limit, s, -2147483648, -2147483648)
        end
        pcall(cmsgpack.unpack, ('\\145'):rep(1e5) .. '\\1')
        pcall(cmsgpack.unpack, ('\\129\\1'):rep(1e5) .. '\\1')""",
    "struct and its sizes (CVE-2018-11219, CVE-2020-14147)": """
        for _, format in ipairs({'>I2147483647', '>I2147483648', 'i99999999999999999999', 'c2147483647', 'c4294967295',
            'bc0', 'Bc0', 'i8c0', 'Lc0', '!2147483648i', '!1073741824i', '!0i', '!3i', 'i33', 'i0', 'I0', 'x2147483647', 's', '\\0'}) do
          pcall(struct.pack, format, 10)
          pcall(struct.pack, format, 2^53, 'text')
          pcall(struct.pack, format, 0/0)
          pcall(struct.pack, format, 'text')
          pcall(struct.size, format)
          for _, offset in ipairs({1, 0, -1, 8, 9, 2147483647, -2147483648, 2^53, 2^63, -2^63, 0/0}) do
            pcall(struct.unpack, format, ('\\255'):rep(8), offset)
          end
        end""",
    "replies that are deep (CVE-2021-32626)": """
        local t = {} for i = 1, 1e5 do t = {t} end
        pcall(cjson.encode, t) pcall(cmsgpack.pack, t)
        pcall(cjson.decode, ('['):rep(1e5) .. (']'):rep(1e5))
        pcall(cjson.decode, ('{"a":'):rep(1e5) .. '1' .. ('}'):rep(1e5))
        return t""",
    "deep maps": """
        redis.setresp(3)
        local t = {} for i = 1, 1e5 do t = {map = {x = t}} end
        return t""",
    "deep sets": "redis.setresp(3) local t = {} for i = 1, 1e5 do t = {set = {[t] = true}} end return t",
    "bit.tohex (CVE-2024-31449)": """
        for _, digits in ipairs({-2147483648, '-2147483648', ' -2147483648 ', '0x80000000', 2147483647, 1e308, -1e308, 0/0, '1e308'}) do
          pcall(bit.tohex, 65535, digits)
        end""",
    "unpack and its ends (CVE-2025-46817)": """
        for _, ends in ipairs({{0, 2147483647}, {-2147483648, 2147483647}, {-1, 2147483646}, {1, 2^53}, {-2^53, 2^53}, {2^31, 2^32},
            {2147483647, 2147483647}, {-2147483648, -2147483648}, {0/0, 0/0}, {'1', '8000'}}) do
          pcall(unpack, {1, 2, 3}, ends[1], ends[2])
          pcall(table.concat, {1, 2, 3}, ',', ends[1], ends[2])
          pcall(string.byte, 'text', ends[1], ends[2])
          pcall(string.sub, 'text', ends[1], ends[2])
        end
        pcall(string.byte, ('x'):rep(1e6), 1, -1)
        pcall(string.char, unpack({65, 66, -1, 2^31}))""",
    "long brackets (CVE-2025-46819)": """
        pcall(loadstring, 'return [' .. ('='):rep(1e6) .. '[x]' .. ('='):rep(1e6) .. ']')
        pcall(loadstring, '[' .. ('='):rep(1e6)) pcall(loadstring, '--[' .. ('='):rep(1e6)) pcall(loadstring, '--[' .. ('='):rep(1e6) .. '[')
        local line = ('='):rep(1e6)
        local pieces = 0
        pcall(load, function() pieces = pieces + 1 return pieces == 1 and 'return [' or line end)""",
    "names of chunks (CVE-2025-49844)": """
        for i = 1, 2000 do
          load(function() collectgarbage() return nil end, ('name'):rep(100) .. i)
          pcall(loadstring, 'x = = ' .. i, ('other'):rep(100) .. i)
        end
        local i = 0
        load(function() i = i + 1 collectgarbage('step', 100) return i < 3000 and ('x' .. i .. ' = [[' .. ('y'):rep(1000) .. ']] ') or nil end,
             ('z'):rep(1000) .. i)""",
    "the parser's depth (CVE-2022-24736)": """
        for _, piece in ipairs({'(', '{', '[[', 'function() ', 'if x then ', 'a.', 'a[', 'not ', '- ', 'a..', 'a^', 'f{', 'do ', 'local a ',
            'for i=1,2 do ', 'repeat ', 'return ', 'x,', '#', '"a"..'}) do
          pcall(loadstring, 'return ' .. (piece):rep(1e4)) pcall(loadstring, (piece):rep(1e4)) pcall(loadstring, (piece):rep(300))
        end
        local names = {} for i = 1, 300 do names[i] = 'a' .. i end
        pcall(loadstring, 'local ' .. table.concat(names, ',')) pcall(loadstring, 'return function(' .. table.concat(names, ',') .. ') end')
        pcall(loadstring, 'local ' .. table.concat(names, ' local '))
        local constants = {} for i = 1, 3e5 do constants[i] = 'x(' .. i .. '.5)' end
        pcall(loadstring, table.concat(constants, '\\n'))""",
    "coroutines": """
        local function deeper() return coroutine.wrap(deeper)() end
        pcall(deeper)
        local function inside() return string.gsub('x', '.', inside) end
        pcall(inside)
        local co co = coroutine.create(function() return coroutine.resume(co) end)
        coroutine.resume(co) pcall(coroutine.wrap(coroutine.yield))
        pcall(table.sort, {3, 2, 1}, function() coroutine.yield() end)
        pcall(string.gsub, 'x', '.', coroutine.yield)
        pcall(coroutine.wrap(function() pcall(coroutine.yield, 1) load(coroutine.yield) end))
        coroutine.yield(1)""",
    "sorting by no order": """
        local t = {} for i = 1, 1000 do t[i] = i % 7 end
        pcall(table.sort, t, function() return true end)
        pcall(table.sort, t, function(a, b) t[a] = nil return a > b end)""",
    "formats": """
        for _, format in ipairs({'%99999d', '%.99999f', '%*d', '%n', '%', '%s%s%s', '%-+ #0100d', '%q', '%c', '%099.99f', '%99.99e', '%5'}) do
          pcall(string.format, format, 1e308) pcall(string.format, format, ('x'):rep(1e5))
        end""",
    "patterns": """
        for _, pattern in ipairs({'%', '[', '[^', '[]', '[%', '%b', '%bx', '%f', '%f[', '(', ')', '(()', '%1', '(%1)', '%9', '[a-', '[a-%',
            ('('):rep(40), ('()'):rep(40), '^*', '^-', '%z+'}) do
          pcall(string.find, 'text (of) a[b]c', pattern) pcall(string.gsub, 'text (of) a[b]c', pattern, '%1%9') pcall(string.match, '', pattern)
        end
        pcall(string.gsub, 'x', 'x', '%2') pcall(string.gsub, ('x'):rep(1e5), '', 'y') pcall(string.gsub, 'x', '(x)', '%1%2')""",
    "errors that are not texts": """
        pcall(error, setmetatable({}, {__index = function(t, k) return k end}))
        pcall(error, nil) pcall(error, coroutine.create(function() end))
        xpcall(error, error) xpcall(error, function() error() end)
        error(setmetatable({}, {__index = function() error('again') end, __tostring = function() error('again') end,
                                __newindex = function() error('again') end}))""",
    "what cjson is set to": """
        for _, set in ipairs({'encode_max_depth', 'decode_max_depth', 'encode_number_precision', 'encode_sparse_array', 'encode_keep_buffer'}) do
          for _, value in ipairs({2147483647, -1, 0, 2^53, 0/0, false, 'x'}) do pcall(cjson.new()[set], value, value, value) end
        end
        local own = cjson.new()
        pcall(own.encode_max_depth, 2147483647) pcall(own.decode_max_depth, 2147483647)
        local t = {} for i = 1, 1e5 do t = {t} end
        pcall(own.encode, t) pcall(own.decode, ('['):rep(1e6))
        pcall(own.encode, {[1e9] = 1}) pcall(own.encode, {[0.5] = 1, [1] = 1}) pcall(own.encode, {[0/1] = 0/0})
        for _, text in ipairs({'"\\\\u', '"\\\\ud800\\\\u', '1e', '-', '0x', 'nul', '[1,', '{"a"', '{1:2}', '"\\\\', '\\0', '', '\\239\\187\\191[]', '[\\0]'}) do
          pcall(own.decode, text)
        end""",
    "the interface itself": """
        pcall(redis.call) pcall(redis.pcall, {}) pcall(redis.call, 'GET', {}) pcall(redis.setresp, 4) pcall(redis.setresp, 0/0)
        pcall(redis.log, 'x', 'y') pcall(redis.log, 1e308, 'y') pcall(redis.log, redis.LOG_DEBUG, {}, nil)
        pcall(redis.sha1hex) pcall(redis.set_repl, 1e308) pcall(redis.set_repl, 0/0) pcall(redis.acl_check_cmd) pcall(redis.acl_check_cmd, {})
        pcall(redis.acl_check_cmd, 'GET') pcall(redis.error_reply, ('\\r\\n'):rep(10)) pcall(redis.status_reply, {})
        pcall(redis.call, 'SET', 'nan', 0/0) pcall(redis.call, 'SET', 'inf', 1/0) pcall(math.random, 0) pcall(math.random, -2^31, 2^31)
        pcall(math.randomseed, 0/0) pcall(redis.register_function, 'x', function() end) pcall(redis.breakpoint) pcall(redis.debug, {})
        return {err = ('\\r\\n'):rep(10), ok = 1, double = 'x', map = 1}""",
}
HOW = ["EVAL", "EVAL_RO", "FCALL", "FUNCTION LOAD"]



@pytest.fixture(scope="module")
def server():
    with ingot(maxmemory="64mb", busy_reply_threshold=100) as running:
        yield running


def library(script):
    """A function of this body; what FCALL gives as arguments is KEYS and ARGV of a script."""
    return f"#!lua name=attack\nredis.register_function{{function_name='f', callback=function(KEYS, ARGV)\n{script}\nend}}"


def run(client, how, script):
    if how == "FCALL":
        loaded = client.call("FUNCTION", "LOAD", "REPLACE", library(script))
        return loaded if loaded.is_error() else client.call("FCALL", "f", 0)
    if how == "FUNCTION LOAD":
        return client.call("FUNCTION", "LOAD", "REPLACE", f"#!lua name=attack\nlocal KEYS, ARGV = {{}}, {{}}\nlocal f = function()\n{script}\nend f()")
    return client.call(how, script, 0)


def check_sound(client):
    """Scripts of all kinds see what they always saw."""
    script = """return {type(redis.call), type(string.rep), ('x'):upper(), tostring(1), #ARGV, cjson.encode({1}), type(next), redis.call('PING').ok,
        rawget(_G, 'attack') == nil, pcall(function() return x end)}"""
    expected = [b"function", b"function", b"X", b"1", 0, b"[1]", b"function", b"PONG", 1, None]
    for how in ("EVAL", "EVAL_RO", "FCALL"):
        reply = run(client, how, script)
        assert reply.kind == "array" and [part.value for part in reply.value][:10] == expected, reply


@pytest.mark.parametrize("how", HOW[:3])
def test_nothing_that_is_reached_can_be_changed(server, how):
    with server.client() as client:
        assert run(client, how, WALK).value == []
        check_sound(client)


@pytest.mark.parametrize("how", HOW[:3])
@pytest.mark.parametrize("name", ESCAPES)
def test_escapes(server, how, name):
    with server.client() as client:
        assert run(client, how, ESCAPES[name]).value == b"held"
        check_sound(client)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", CRASHES)
def test_crashes(server, how, name):
    with server.client(timeout=60) as client:
        assert run(client, how, CRASHES[name]) != CLOSED
        assert server.alive(), server.log_tail()
        check_sound(client)
        assert memory(server)[0] < 300 * MB


def test_byte_code_as_the_script():
    """It begins with an escape, behind whatever stands before it."""
    with ingot() as server, server.client() as client:
        code = client.call("EVAL", "return string.dump(function() return 1 end)", 0).value
        assert code.startswith(b"\x1bLua")
        for body in (code, b"#!lua\n" + code, b"#!lua flags=no-writes\n" + code):
            assert b"Error compiling script" in client.call("EVAL", body, 0).value
            assert client.call("SCRIPT", "LOAD", body).is_error()
        assert b"Error compiling function" in client.call("FUNCTION", "LOAD", b"#!lua name=a\n" + code).value
        check_sound(client)


# Loops that begin where a script has ended, or run inside what it does not do itself.
LATE_LOOPS = {
    "an error that is never told": "error(setmetatable({}, {__index = function() while true do end end}))",
    "an error that cannot be completed": "error(setmetatable({}, {__newindex = function() while true do end end}))",
    "a text that is never made": "error(setmetatable({}, {__tostring = function() while true do end end}))",
    "many short coroutines": """
        local function level(n)
          if n == 0 then for i = 1, 20000 do end return end
          for i = 1, 20000 do coroutine.wrap(level)(n - 1) end
        end
        level(4)""",
    "many resumed coroutines": """
        local function level(n)
          if n == 0 then for i = 1, 20000 do end return end
          for i = 1, 20000 do coroutine.resume(coroutine.create(level), n - 1) end
        end
        level(4)""",
    "long calls of C": "local s = '[' .. ('1,'):rep(1e5) .. '1]' while true do cjson.decode(s) end",
    "empty strings": "while true do string.rep('', 2147483647) end",
}


@pytest.mark.parametrize("how", ["EVAL", "EVAL_RO", "FCALL"])
@pytest.mark.parametrize("name", LATE_LOOPS)
def test_every_loop_is_ended(how, name):
    """By SCRIPT KILL or by itself, and others are served then."""
    kill = ("FUNCTION" if how == "FCALL" else "SCRIPT", "KILL")
    with ingot(busy_reply_threshold=100) as server, server.client() as admin, server.client(timeout=60) as client:
        if how == "FCALL":
            assert not client.call("FUNCTION", "LOAD", "REPLACE", library(LATE_LOOPS[name])).is_error()
            client.send("FCALL", "f", 0)
        else:
            client.send(how, LATE_LOOPS[name], 0)
        if not client.has_input(0.3):
            until_answered(admin, b"OK", *kill)
            assert client.has_input(10), "it goes on"
        assert client.read().is_error()
        assert admin.call("SET", "x", 1).value == b"OK"
        check_sound(admin)


def test_a_shutdown_ends_what_cannot_be_killed():
    for script in (LATE_LOOPS["an error that is never told"], LATE_LOOPS["many short coroutines"]):
        with ingot(busy_reply_threshold=100) as server:
            with server.client() as client, server.client() as admin:
                client.send("EVAL", "redis.call('SET', 'x', 1) " + script, 0)
                eventually(lambda: not admin.call("GET", "x") == b"1", 10, "it runs")
            assert server.stop() == 0


# One after the other in one server, each many times: a little that is lost for good is much in the end.
LEAKS = {
    "cjson's own buffer": """
        cjson.encode_keep_buffer(false)
        local s, held = ('x'):rep(4e6), {}
        while pcall(function() held[#held + 1] = ('y'):rep(1e6) .. #held end) do end
        for i = 1, 50 do pcall(cjson.encode, s) end
        cjson.encode_keep_buffer(true)""",
    "what cannot be decoded": "local s = '[' .. ('[],'):rep(1e6) .. '[]]' for i = 1, 20 do pcall(cjson.decode, s) end",
    "a line of the log": "local s, t = ('x'):rep(4e6), {} for i = 1, 1000 do t[i] = s end redis.log(redis.LOG_WARNING, unpack(t))",
    "a command of many arguments": "local s, t = ('x'):rep(4e6), {} for i = 1, 1000 do t[i] = s end pcall(redis.call, 'RPUSH', 'l', unpack(t))",
    "a command that only reads them": "local s, t = ('x'):rep(4e6), {} for i = 1, 1000 do t[i] = s end pcall(redis.call, 'MGET', unpack(t))",
    "many names": "local s, t = ('x'):rep(4e6), {} for i = 1, 1000 do t[i] = s end pcall(redis.call, 'SUNION', unpack(t))",
    "a table of itself": "local t = {} t[1] = t t[2] = t pcall(cjson.encode, t) pcall(cmsgpack.pack, t) return t",
    "codes of errors": "for i = 1, 1e5 do redis.pcall('x' .. i) end return redis.error_reply('CODE' .. math.random(1e9) .. ' x')",
}


@pytest.mark.parametrize("name", LEAKS)
def test_nothing_is_lost(name):
    with ingot(maxmemory="64mb") as server, server.client(timeout=60) as client:
        check_sound(client)
        start = memory(server)[0]
        for command in 4 * ("EVAL", "EVAL_RO"):
            assert client.call(command, LEAKS[name], 0) != CLOSED
            assert memory(server)[1] < start + 250 * MB
            client.call("DEL", "l")
        check_sound(client)
        assert client.call("EVAL", "return #('x'):rep(8e6)", 0).value == 8_000_000


def test_code_without_an_end(server):
    """It is given up before the compiler's own counts overflow."""
    blanks = "local s, n = (' '):rep(8e6), 0 return {load(function() n = n + 1 return n < 200 and s or nil end)}"
    with server.client(timeout=60) as client:
        reply = client.call("EVAL", blanks, 0)
        assert reply.kind == "array" and reply.value == []
        reply = client.call("EVAL", blanks.replace("return {load", "return select(2, load").replace("nil end)}", "nil end))"), 0)
        assert b"too many bytes" in reply.value
        check_sound(client)


def test_libraries_are_bounded():
    """Their code, what a payload unpacks to, and what their number costs."""
    with ingot(maxmemory="64mb") as server, server.client(timeout=60) as client:
        filler = "--" + "x" * 900_000
        refused = 0
        for i in range(60):
            reply = client.call("FUNCTION", "LOAD", f"#!lua name=l{i}\nredis.register_function('f{i}', function() return {i} end) {filler}")
            refused += reply.is_error() and reply.value.startswith(b"OOM")
        assert 20 < refused < 60
        assert memory(server)[1] < 250 * MB
        assert client.call("FCALL", "f3", 0).value == 3
        assert client.call("FUNCTION", "DELETE", "l0").value == b"OK"
        assert client.call("FUNCTION", "LOAD", "REPLACE", "#!lua name=l1\nredis.register_function('f1', function() return 1 end)").value == b"l1"
        dump = client.call("FUNCTION", "DUMP").value
        assert client.call("FUNCTION", "RESTORE", dump, "FLUSH").value == b"OK"
        server.restart()
        with server.client() as again:
            assert again.call("FCALL", "f3", 0).value == 3


def test_payloads_that_unpack_to_much():
    with ingot(maxmemory="64mb") as server, server.client(timeout=60) as client:
        # A thousand libraries of some megabytes that are one letter.
        client.call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() end) --" + "x" * 4_000_000)
        dump = client.call("FUNCTION", "DUMP").value
        payload = sealed(dump[:-10] * 100, dump)
        before = memory(server)[0]
        assert client.call("FUNCTION", "RESTORE", payload, "FLUSH").is_error()
        assert memory(server)[1] < before + 100 * MB


def sealed(body, dump):
    """A dump of this body: the version of `dump`, and the checksum of Redis' CRC-64."""
    data = body + dump[-10:-8]
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
        table.append(crc)
    crc = 0
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return data + crc.to_bytes(8, "little")


@pytest.mark.timed
def test_very_many_libraries(server):
    """FUNCTION RESTORE of five thousand: others wait no longer than for one of the pool's tasks."""
    with server.client(timeout=120) as client, server.client() as other:
        client.call("FUNCTION", "FLUSH")
        client.call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() end)")
        dump = client.call("FUNCTION", "DUMP").value
        code = b"#!lua name=l%d\nredis.register_function('f%d', function(keys) return #keys end)"
        bodies = b"".join(b"\xf5" + (0x4000 | len(text)).to_bytes(2, "big") + text for text in (code % (i, i) for i in range(5000)))
        client.send("FUNCTION", "RESTORE", sealed(bodies, dump), "FLUSH")
        client.flush()
        worst = 0.0
        while not client.has_input(0.01):
            began = time.monotonic()
            other.call("SET", "x", "1")
            worst = max(worst, time.monotonic() - began)
        assert client.read().value == b"OK"
        assert worst < 0.5
        assert client.call("FCALL", "f4999", 2, "a", "b").value == 2
        client.call("FUNCTION", "FLUSH")
