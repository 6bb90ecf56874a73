"""Scripts as units: whole after kill -9, right when their keys are cold, ended when they must be, bounded in memory."""

import contextlib
import random
import time

import pytest
from harness import MB, Crew, eventually, info, ingot, memory, until_answered
from support.effort import FULL
from support.resp import CLOSED
from support.servers import engines

ACCOUNTS = 20
EACH = 1000
TRANSFER = """
local from = tonumber(redis.call('GET', KEYS[1]))
local amount = math.min(from, tonumber(ARGV[1]))
redis.call('DECRBY', KEYS[1], amount)
redis.call('INCRBY', KEYS[2], amount)
return amount"""
SUM = "local sum = 0 for _, key in ipairs(KEYS) do sum = sum + redis.call('GET', key) end return sum"
names = [f"account:{i}" for i in range(ACCOUNTS)]


def open_accounts(server):
    with server.client() as client:
        assert client.call("MSET", *(word for name in names for word in (name, EACH))).value == b"OK"


def transfer(server, seed, stop):
    chance = random.Random(seed)
    with server.client() as client:
        while not stop.is_set():
            a, b = chance.sample(names, 2)
            if chance.random() < 0.5:
                reply = client.call("EVAL", TRANSFER, 2, a, b, chance.randrange(50))
            else:
                commands = [("MULTI",), ("DECRBY", a, 5), ("INCRBY", b, 5), ("EXEC",)]
                reply = client.pipeline(commands)[-1]
            if reply == CLOSED:
                return
            assert not reply.is_error(), reply


def watch_sum(server, stop):
    with server.client() as client:
        while not stop.is_set():
            read_only = client.call("EVAL_RO", SUM, ACCOUNTS, *names)
            in_writer = client.call("EVAL", SUM, ACCOUNTS, *names)
            if CLOSED in (read_only, in_writer):
                return
            assert read_only.value == in_writer.value == ACCOUNTS * EACH


@pytest.mark.parametrize("engine", engines())
def test_transfers_keep_the_sum(engine):
    with ingot(engine) as server:
        open_accounts(server)
        for _ in range(20 if FULL else 3):
            with Crew() as crew:
                for seed in range(3):
                    crew.add(transfer, server, seed, crew.stop)
                for _ in range(2):
                    crew.add(watch_sum, server, crew.stop)
                crew.run_for(1.0)
                server.kill()
            server.start()
            with server.client() as client:
                assert sum(int(r.value) for r in client.call("MGET", *names).value) == ACCOUNTS * EACH


@pytest.mark.parametrize("engine", engines())
def test_an_answered_script_survives_kill(engine):
    with ingot(engine) as server:
        for i in range(20 if FULL else 5):
            with server.client() as client:
                script = "for i = 1, 200 do redis.call('SET', KEYS[1] .. i, ARGV[1]) end return redis.call('GET', KEYS[1] .. 1)"
                assert client.call("EVAL", script, 1, f"k{i}:", i).value == str(i).encode()
            server.restart(kill=True)
            with server.client() as client:
                replies = client.call("MGET", *(f"k{i}:{n}" for n in range(1, 201))).value
                assert {reply.value for reply in replies} == {str(i).encode()}


@pytest.mark.parametrize("engine", engines())
def test_cold_keys(engine):
    """Scripts that miss are repeated: each effect counts once, also of keys that only the data names."""
    keys = 60_000
    with ingot(engine, maxmemory="32mb", cache_size="4mb", direct_reads="yes") as server:
        with server.client(timeout=120) as client:
            for begin in range(0, keys, 1000):
                words = [w for i in range(begin, begin + 1000)
                         for w in (f"cold:{i}", f"{(i * 7919) % keys}," + "x" * 400)]  # fmt: skip
                client.call("MSET", *words)
            client.call("DEBUG", "RELOAD")
            chance = random.Random(5)
            expected = {}
            follow = """
                local at, sum = KEYS[1], 0
                for i = 1, 5 do
                  local next = string.match(redis.call('GET', 'cold:' .. at), '^(%d+),')
                  sum = sum + redis.call('INCR', 'met:' .. at)
                  redis.call('RPUSH', 'path', at)
                  at = next
                end
                return {redis.call('INCR', 'calls'), at, sum, math.random() < 1}"""
            calls = 300
            for call in range(1, calls + 1):
                at = start = chance.randrange(keys)
                total = 0
                for _ in range(5):
                    expected[at] = expected.get(at, 0) + 1
                    total += expected[at]
                    at = (at * 7919) % keys
                reply = client.call("EVAL", follow, 1, start)
                assert [part.value for part in reply.value] == [call, str(at).encode(), total, 1]
            assert client.call("LLEN", "path").value == 5 * calls
            figures = client.call("INFO", "threads").value
            assert server.options["engine"] != "rocksdb" or int(figures.split(b"rollbacks:")[1].split()[0]) > 100
            read = client.call("EVAL_RO", "return #redis.call('GET', 'cold:' .. KEYS[1])", 1, 17)
            assert read.value > 400


def test_what_the_pool_prepares_for_a_script():
    """Commands that ask the pool for work see the script's own strings until they are done."""
    script = """
        redis.call('DEL', 's', 't', 'u')
        local members = {}
        for i = 1, 7000 do members[i] = i end
        redis.call('SADD', 's', unpack(members))
        members = nil
        collectgarbage()
        redis.call('SUNIONSTORE', 't', 's')
        redis.call('COPY', 't', 'u')
        return {redis.call('SCARD', 's'), redis.call('SCARD', 't'), redis.call('SCARD', 'u'), redis.call('DEL', 's')}"""
    with ingot() as server, server.client() as client:
        for _ in range(5):
            assert [r.value for r in client.call("EVAL", script, 0).value] == [7000, 7000, 7000, 1]
            transaction = [("MULTI",), ("SET", "a", 1), ("EVAL", script, 0), ("EVAL", script, 0), ("EXEC",)]
            replies = client.pipeline(transaction)[-1].value
            assert [[r.value for r in reply.value] for reply in replies[1:]] == 2 * [[7000, 7000, 7000, 1]]


class Running:
    """A command that is under way on a connection of its own."""

    def __init__(self, server, *command, protocol=2):
        self.client = server.client(protocol, timeout=60)
        self.client.send(*command)

    def reply(self):
        with self.client:
            return self.client.read()


ENDLESS = [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do redis.call('GET', 'x') end",
    "while true do redis.pcall('GET', 'x') end",
    "while true do xpcall(function() while true do end end, function() while true do end end) end",
    "local f = coroutine.wrap(function() while true do pcall(function() while true do end end) end end) f()",
    "while true do loadstring('while true do end')() end",
    "while true do load(function() while true do end end) end",
    "table.sort({1, 2, 3}, function() while true do end end)",
    "string.gsub('x', '.', function() while true do end end)",
    "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
]


@pytest.mark.parametrize("how", ["EVAL", "EVAL_RO", "EVAL in MULTI"])
def test_scripts_are_killed(how):
    with ingot(busy_reply_threshold=100) as server, server.client() as admin:
        for script in ENDLESS:
            if how == "EVAL in MULTI":
                running = Running(server, "MULTI")
                running.client.read()
                running.client.pipeline([("EVAL", script, 0)])
                running.client.send("EXEC")
            else:
                running = Running(server, how, script, 0)
            if how == "EVAL_RO":
                assert admin.call("SET", "x", 1).value == b"OK"  # it is in nobody's way
            else:
                until_answered(admin, b"BUSY", "GET", "x")
                assert admin.call("FUNCTION", "KILL").value.startswith(b"BUSY")
            until_answered(admin, b"OK", "SCRIPT", "KILL")
            reply = running.reply()
            reply = reply.value[0] if how == "EVAL in MULTI" else reply
            assert b"Script killed by user" in reply.value, script
            assert admin.call("SET", "x", 1).value == b"OK"
        assert admin.call("SCRIPT", "KILL").value.startswith(b"NOTBUSY")


def test_who_came_before_the_threshold_is_answered_too():
    """They waited in the writer's queue for as long as the script ran, and were carried out then."""
    early = [("SET", "a", 1), ("INCR", "n"), ("BLPOP", "l", 0), ("EVAL", "return redis.call('incr', 'n')", 0), ("PUBLISH", "c", "m")]
    with ingot(busy_reply_threshold=500) as server, server.client() as admin, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(4 * len(early))]
        watching, still_watching = (stack.enter_context(server.client()) for _ in range(2))
        watching.pipeline([("WATCH", "a"), ("MULTI",), ("INCR", "n")])
        assert still_watching.call("WATCH", "n").value == b"OK"
        running = Running(server, "EVAL", "while true do end", 0)
        eventually(lambda: b"cmd=eval" in admin.call("CLIENT", "LIST").value, 10, "the script has not come", pause=0.005)
        for number, client in enumerate(clients):
            client.send(*early[number % len(early)])
        watching.send("EXEC")
        still_watching.send("SET", "a", 2)
        for client in [*clients, still_watching]:
            assert client.read().value.startswith(b"BUSY Redis is busy running a script.")
        assert watching.read().value == (
            b"EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. "
            b"You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        )
        assert admin.call("SCRIPT", "KILL").value == b"OK"
        assert b"Script killed by user" in running.reply().value
        assert admin.call("DBSIZE").value == 0
        for client in [*clients, watching]:
            assert client.call("INCR", "n").kind == "integer"
        assert watching.pipeline([("MULTI",), ("INCR", "n"), ("EXEC",)])[-1].value is not None  # nothing is watched
        assert still_watching.pipeline([("MULTI",), ("INCR", "n"), ("EXEC",)])[-1].is_null()  # that has changed since
        assert info(admin)["blocked_clients"] == "0"


@pytest.mark.parametrize("threads", [1, 2, 3, 10])
def test_endless_reading_scripts_hold_up_nobody(threads):
    """They take the places of scripts alone, and a script that finds none is answered BUSY after a while."""
    function = """#!lua name=l
redis.register_function{function_name='f', callback=function() while true do end end, flags={'no-writes'}}"""
    with ingot(busy_reply_threshold=500, reader_threads=threads) as server, server.client(timeout=20) as admin:
        assert admin.call("FUNCTION", "LOAD", function).value == b"l"
        admin.pipeline([("SET", f"k{i}", i) for i in range(100)])
        running = [Running(server, "EVAL_RO", "while true do end", 0) for _ in range(threads + 1)]
        running += [Running(server, "FCALL_RO", "f", 0) for _ in range(threads + 1)]
        until_answered(admin, b"BUSY", "EVAL_RO", "return 'before them'", 0)
        # What is long, what is short, what compiles, what writes.
        assert len(admin.call("KEYS", "*").value) == 100
        assert admin.call("CLIENT", "LIST").text().count("cmd=eval_ro") == threads + 1
        assert admin.call("MGET", *(f"k{i}" for i in range(100))).value[99].value == b"99"
        assert admin.call("FUNCTION", "LOAD", "REPLACE", function).value == b"l"
        assert len(admin.call("SCRIPT", "LOAD", "return 2").value) == 40
        assert admin.call("EVAL", "return redis.call('INCR', 'n')", 0).value == 1
        assert admin.call("SUNIONSTORE", "t", "none").value == 0
        for script in (("EVAL_RO", "return 1", 0), ("FCALL_RO", "f", 0), ("EVAL", "#!lua flags=no-writes\nreturn 1", 0)):
            refused = admin.call(*script).value
            assert refused.startswith(b"BUSY Redis is busy running a script. You can only call SCRIPT KILL"), script
        refused = admin.pipeline([("MULTI",), ("GET", "k1"), ("EVAL_RO", "return 1", 0), ("EXEC",)])
        assert refused[-1].value.startswith(b"EXECABORT Transaction discarded because of: BUSY Redis is busy")
        assert admin.call("GET", "k1").value == b"1"
        # Fewer threads: nobody waits for those that are at it.
        assert admin.call("CONFIG", "SET", "reader-threads", 1).value == b"OK"
        assert len(admin.call("KEYS", "*").value) == 101
        ended = set()
        until_answered(admin, b"OK", "SCRIPT", "KILL")
        while len(ended) < len(running):  # some get their turn only when others are killed
            for kind in ("SCRIPT", "FUNCTION"):
                admin.call(kind, "KILL")
            ended |= {each for each in running if each not in ended and each.client.has_input()}
        replies = [each.reply().value for each in running]
        assert all(b"Script killed by user" in reply or reply.startswith(b"BUSY") for reply in replies), replies
        assert admin.call("EVAL_RO", "return redis.call('GET', 'k1')", 0).value == b"1"
        assert info(admin, "stats")["total_error_replies"] != "0"


def test_short_reading_scripts_are_not_busy():
    """Many that wait for each other for longer than the threshold, because there are so many."""
    with ingot(busy_reply_threshold=50, reader_threads=2) as server, server.client(timeout=60) as client:
        script = "local x = 0 for i = 1, 2e5 do x = x + i end return 1"
        assert {reply.value for reply in client.pipeline([("EVAL_RO", script, 0)] * 200)} == {1}


def test_nothing_runs_for_who_wants_a_debugger():
    """redis-cli --ldb sends its script whatever SCRIPT DEBUG was answered."""
    refused = b"ERR Ingot has no debugger for scripts"
    with ingot() as server, server.client() as client, server.client() as other:
        sha = client.call("SCRIPT", "LOAD", "return redis.call('INCR', 'n')").value
        for mode in ("YES", "sync"):
            assert client.call("SCRIPT", "DEBUG", mode).value == refused
            assert client.call("EVAL", "return redis.call('INCR', 'n')", 0).value == refused
            assert client.call("EVALSHA", sha, 0).value == refused
            assert client.pipeline([("MULTI",), ("EVAL", "return 1", 0), ("EXEC",)])[1].value == refused
        assert other.call("EVALSHA", sha, 0).value == 1
        assert client.call("SCRIPT", "DEBUG", "NO").value == b"OK"
        assert client.call("EVALSHA", sha, 0).value == 2


def test_what_has_written_is_not_killed():
    with ingot(busy_reply_threshold=100) as server, server.client() as admin:
        running = Running(server, "EVAL", "redis.call('SET', 'x', 1) for i = 1, 3e8 do end return 'end'", 0)
        until_answered(admin, b"BUSY", "GET", "x")
        assert admin.call("SCRIPT", "KILL").value.startswith(b"UNKILLABLE")
        assert admin.call("FUNCTION", "KILL").value.startswith(b"UNKILLABLE")
        assert admin.call("SHUTDOWN").value.startswith(b"BUSY")
        assert running.reply().value == b"end"
        Running(server, "EVAL", "redis.call('SET', 'x', 2) while true do end", 0)
        until_answered(admin, b"BUSY", "GET", "x")  # killed sooner, it might not have written
        assert admin.call("SCRIPT", "KILL").value.startswith(b"UNKILLABLE")
        admin.send("SHUTDOWN", "NOSAVE")
        assert server.wait() == 0
        server.start()
        with server.client() as client:
            assert client.call("GET", "x").value == b"1"  # of the other one nothing is left


def test_sigterm_ends_a_script():
    with ingot(busy_reply_threshold=100) as server:
        with server.client() as client:
            Running(server, "EVAL", "redis.call('SET', 'x', 1) while true do end", 0)
            until_answered(client, b"BUSY", "GET", "x")
            assert client.call("SCRIPT", "KILL").value.startswith(b"UNKILLABLE")
        assert server.stop() == 0


def test_functions_are_killed():
    code = """#!lua name=endless
redis.register_function('f', function() while true do pcall(function() while true do end end) end end)"""
    with ingot(busy_reply_threshold=100) as server, server.client() as admin:
        admin.call("FUNCTION", "LOAD", code)
        running = Running(server, "FCALL", "f", 0, "an argument")
        until_answered(admin, b"BUSY", "PING")
        assert admin.call("SCRIPT", "KILL").value.startswith(b"BUSY")
        told = admin.call("FUNCTION", "STATS").value[1].value
        assert told[1].value == b"f" and [w.value for w in told[3].value] == [b"FCALL", b"f", b"0", b"an argument"]
        assert admin.call("FUNCTION", "KILL").value == b"OK"
        assert b"Script killed by user" in running.reply().value
        loaded = admin.call("FUNCTION", "LOAD", "#!lua name=b\nwhile true do end")
        assert b"FUNCTION LOAD timeout" in loaded.value


def test_the_caller_leaves():
    """Its script runs to its end, and others wait no longer than for that."""
    with ingot() as server, server.client() as client:
        running = Running(server, "EVAL", "for i = 1, 1e8 do end redis.call('SET', 'x', 1)", 0)
        running.client.close()
        eventually(lambda: client.call("GET", "x").value == b"1", 30, "the script has run")


def test_the_callers_of_reading_scripts_leave():
    """What only they wanted to know is not found out: their scripts end, and leave their places to others."""
    with ingot(busy_reply_threshold=60_000, reader_threads=4) as server, server.client(timeout=30) as client:
        running = [Running(server, "EVAL_RO", script, 0) for script in ENDLESS]
        running += [Running(server, "EVAL", "#!lua flags=no-writes\n" + script, 0) for script in ENDLESS]
        transaction = Running(server, "MULTI")
        for command in (("GET", "x"), ("EVAL_RO", ENDLESS[1], 0), ("GET", "x"), ("EXEC",)):
            transaction.client.send(*command)
        eventually(lambda: client.call("CLIENT", "LIST").text().count("cmd=eval") == 2 * len(ENDLESS), 20, "they run")
        for each in (*running, transaction):
            each.client.close()
        assert client.call("EVAL_RO", "return 'free'", 0).value == b"free"
        eventually(lambda: client.call("SCRIPT", "KILL").value.startswith(b"NOTBUSY"), 20, "all have ended")
        eventually(lambda: info(client, "clients")["connected_clients"] == "1", 20, "nobody is left")


BOMBS = [
    "return string.rep('x', 1e10)",
    "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} for i = 1, 1e8 do t[i] = {} end",
    "local t = {} for i = 1, 40 do t = {t, t} end return t",
    "collectgarbage('stop') for i = 1, 1e8 do local t = {} end",
    "collectgarbage('setpause', 1e6) for i = 1, 1e8 do local t = {('x'):rep(100)} end",
    "local t = {} while true do t = {t} t[2] = redis.call('PING', ('x'):rep(10000) .. tostring(t)) end",
    "local function f() return f() + 1 end return f()",
    "local f = function(f) return pcall(f, f) end return f(f)",
    "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
    "return cjson.decode(('['):rep(1e6))",
    "return cmsgpack.unpack(('\\145'):rep(1e6))",
    "return struct.pack('c2147483647', 'x')",
    "for i = 1, 1e6 do redis.call('SET', 'k' .. i % 1000, ('x'):rep(1000)) end",
    "local t = {} for i = 1, 1e7 do t[i] = redis.call('GET', 'big') .. i end",
    "while true do redis.call('APPEND', 'bigger', ('x'):rep(1e6)) end",
    # What ends a process with Debian's Lua, cjson and bitop as they are.
    "return bit.tohex(1, -2147483648)",
    "return string.find(('a'):rep(200000), ('a?'):rep(200000))",
    "return ('a'):rep(200000):gsub(('a?'):rep(200000), '')",
    "for _ in string.gmatch(('a'):rep(200000), ('a?'):rep(200000)) do end",
    "return {pcall(unpack, {}, 0, 2147483647)}",
    "return {pcall(unpack, {}, -2147483648, 2147483647)}",
    "local s, t = ('x'):rep(1e6), {} for i = 1, 3000 do t[i] = s end return cjson.encode(t)",
    "local s, t = ('x'):rep(1e6), {} for i = 1, 3000 do t[i] = s end return cjson.new().encode(t)",
    "cjson.encode_sparse_array(false, 0) return cjson.encode({[1] = 1, [2^30] = 1})",
    "local s = '[' .. ('[],'):rep(1e6) .. '[]]' for i = 1, 100 do pcall(cjson.decode, s) end",
    "local s, t = ('x'):rep(1e6), {} for i = 1, 3000 do t[i] = s end return cmsgpack.pack(t)",
    "local s, t = ('x'):rep(1e6), {} for i = 1, 3000 do t[i] = s end return struct.pack(('s'):rep(3000), unpack(t))",
    "local s = ('x'):rep(1e5) for i = 1, 3000 do redis.log(redis.LOG_DEBUG, s) end",
    "local t = {} t[1] = t return t",
    "return loadstring(string.dump(function() end):gsub('%z', '\\1'))",
]


@pytest.mark.usefixtures("deep_replies")
def test_memory_is_bounded():
    with ingot(maxmemory="64mb") as server, server.client(timeout=60) as client:
        client.call("SET", "big", "x" * (5 * MB))
        start = memory(server)[0]
        for script in BOMBS:
            for command in ("EVAL", "EVAL_RO"):
                reply = client.call(command, script, 0)
                assert reply != CLOSED, script
                assert memory(server)[0] < start + 200 * MB, script
        assert client.call("PING").value == b"PONG"


def test_many_scripts():
    """As many distinct ones as somebody makes who writes his arguments into them."""
    with ingot(maxmemory="64mb") as server, server.client(timeout=60) as client:
        sha = client.call("SCRIPT", "LOAD", "return 'kept'").value
        start = memory(server)[0]
        filler = "--" + "x" * 1000
        for begin in range(0, 100_000 if FULL else 40_000, 500):
            commands = [("EVAL", f"return {i} {filler}", 0) for i in range(begin, begin + 500)]
            assert [reply.value for reply in client.pipeline(commands)] == list(range(begin, begin + 500))
        assert memory(server)[0] < start + 100 * MB
        assert client.call("SCRIPT", "EXISTS", sha).value[0].value == 1
        info = client.call("INFO", "memory").value
        assert b"number_of_cached_scripts:" in info
        assert client.call("SCRIPT", "FLUSH").value == b"OK"
        assert b"number_of_cached_scripts:0" in client.call("INFO", "memory").value


@pytest.mark.timed
def test_neighbours_of_a_read_only_script():
    """It runs in the pool: neither writes nor other reads wait for it."""
    with ingot() as server, server.client() as client:
        running = [Running(server, "EVAL_RO", "for i = 1, 3e8 do end return 1", 0) for _ in range(3)]
        waits = []
        for i in range(200):
            begin = time.monotonic()
            client.call("SET", "x", i)
            client.call("GET", "x")
            waits.append(time.monotonic() - begin)
        assert sorted(waits)[len(waits) // 2] < 0.1
        for each in running:
            assert each.reply().value == 1


def test_threads_share_scripts():
    """Readers and the writer run the same scripts, and the cache is flushed under them."""
    with ingot() as server:
        def work(number, stop):
            with server.client() as client:
                while not stop.is_set():
                    command = ("EVAL", "EVAL_RO")[number % 2]
                    reply = client.call(command, "return {KEYS[1], #redis.call('KEYS', '*')}", 1, number)
                    assert reply.value[0].value == str(number).encode(), reply
                    if number == 3:
                        client.call("SCRIPT", "FLUSH")

        with Crew() as crew:
            for number in range(6):
                crew.add(work, number, crew.stop)
            crew.run_for(2.0)
