"""A first start beside the files of a Redis: what Redis would load is loaded, and compares equal to what Redis loads.

The files are those of a real redis-server, and, in the encodings of other versions, made by support/rdb_maker.py.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from support import rdb_maker as rdb
from support.resp import Reply
from support.servers import Server, ServerError, free_port, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis loads its own files")

OK = Reply("simple", b"OK")
LOADING = b"LOADING Redis is loading the dataset in memory"
LIBRARY = "#!lua name=lib\nredis.register_function('twice', function(keys, args) return args[1] * 2 end)"
IN_A_DAY = 86_400_000


@pytest.fixture
def directory():
    path = pathlib.Path(tempfile.mkdtemp(prefix="ingot-test-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def now_ms():
    return int(time.time() * 1000)


def fill(client, elements=1500):
    """Every type, small and large, in several databases, with and without expiry."""
    commands = [("FUNCTION", "LOAD", LIBRARY)]
    for db in (0, 3):
        commands.append(("SELECT", db))
        commands += [("SET", f"string:{i}", "v" * (i % 50)) for i in range(300)]
        commands += [("SET", "number", 12345), ("SET", "long", "abc" * 30_000), ("SET", "noise", os.urandom(50_000))]
        commands += [("SET", f"expiring:{i}", i, "PX", IN_A_DAY + i) for i in range(50)]
        for size in (3, elements):
            commands += [("RPUSH", f"list:{size}", *(f"e{i}" * (1 + i % 3) for i in range(size)))]
            commands += [("SADD", f"set:{size}", *(f"m{i}" for i in range(size)))]
            commands += [("SADD", f"numbers:{size}", *(i * 7 - 50 for i in range(size)))]
            commands += [("HSET", f"hash:{size}", *(x for i in range(size) for x in (f"f{i}", i)))]
            commands += [("ZADD", f"zset:{size}", *(x for i in range(size) for x in (i * 37 % 101 / 8, f"m{i}")))]
            commands += [("PFADD", f"hll:{size}", *range(size))]
            stream = f"stream:{size}"
            commands += [("XADD", stream, f"{i // 3 + 1}-{i}", "field", i, f"f{i % 2}", "x") for i in range(size)]
            commands += [("XGROUP", "CREATE", stream, "g", "0"), ("XGROUP", "CREATE", stream, "empty", "$")]
            commands += [("XREADGROUP", "GROUP", "g", name, "COUNT", size // 3, "STREAMS", stream, ">") for name in "ab"]
            commands += [("XACK", stream, "g", "1-1"), ("XDEL", stream, "1-2"), ("PEXPIRE", f"hash:{size}", IN_A_DAY)]
    for reply in client.pipeline(commands):
        assert not reply.is_error(), reply


def state(client):
    """What there is to compare, of all databases."""
    told = {"digest": client.call("DEBUG", "DIGEST").value}
    for db in range(16):
        client.call("SELECT", db)
        told[f"keys {db}"] = client.call("DBSIZE").value
        for key in sorted(reply.value for reply in client.call("KEYS", "*").value):
            told[f"expiry {db} {key}"] = client.call("PEXPIRETIME", key).value
            if client.call("TYPE", key).value == b"stream":
                told[f"groups {db} {key}"] = client.call("XINFO", "GROUPS", key)
                told[f"pending {db} {key}"] = client.call("XPENDING", key, "g").value
    client.call("SELECT", 0)
    told["functions"] = client.call("FUNCTION", "LIST", "WITHCODE")
    return told


def same_state(directory, engine, expected, options=None):
    with Server.ingot(engine, options, directory=directory) as server, server.client(timeout=30) as client:
        found = state(client)
        for name, value in expected.items():
            assert found[name] == value, name
        assert found.keys() == expected.keys()
        log = server.log_path.read_text()
        if "Loaded" in log and "dump.rdb" in log:
            assert b"rdb_changes_since_last_save:0\r\n" in client.call("INFO", "persistence").value
        return log


def redis_in(directory, options=None):
    return Server.redis(options, directory=directory)


def ingot_check(directory):
    binary = pathlib.Path(os.environ.get("INGOT_SERVER", "build/release/ingot-server")).resolve().parent / "ingot-check"
    if not binary.exists():
        return
    found = subprocess.run([binary, directory / "ingot-data"], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stdout + found.stderr


def test_dump_is_loaded_once(directory, engine):
    with redis_in(directory) as redis, redis.client(timeout=30) as client:
        fill(client)
        expected = state(client)
        assert client.call("SAVE") == OK
    before = (directory / "dump.rdb").read_bytes()
    log = same_state(directory, engine, expected)
    assert "dump.rdb" in log and "Loaded" in log
    ingot_check(directory)
    with Server.ingot(engine, directory=directory) as server, server.client() as client:
        assert client.call("SET", "mine", 1) == OK
        assert client.call("FCALL", "twice", 0, 21).value == 42
        server.restart(kill=True)
        with server.client() as again:
            assert again.call("GET", "mine").value == b"1"
    assert (directory / "dump.rdb").read_bytes() == before
    assert not (directory / "ingot-data.loading").exists()


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_log_is_loaded(directory, engine, preamble):
    options = {"appendonly": "yes", "aof-use-rdb-preamble": preamble}
    with redis_in(directory, options) as redis, redis.client(timeout=30) as client:
        fill(client, 400)
        assert not client.call("BGREWRITEAOF").is_error()
        while b"aof_rewrite_in_progress:1" in client.call("INFO", "persistence").value:
            time.sleep(0.05)
        client.pipeline([("SELECT", 3), ("MULTI",), ("SET", "in", "multi"), ("SELECT", 1), ("LPUSH", "l", 1, 2), ("EXEC",)])
        client.pipeline([("SELECT", 0), ("SPOP", "set:400", 30), ("INCRBYFLOAT", "float", "1.25"), ("DEL", "list:3")])
        client.call("EVAL", "redis.call('SET', 'a', 1) redis.call('EXPIRE', 'a', 1000)", 0)
        # What Redis makes of its own log: the commands do not tell all of what groups have read.
        redis.restart()
        with redis.client(timeout=30) as again:
            expected = state(again)
    same_state(directory, engine, expected, {"appendonly": "yes"})
    ingot_check(directory)


def test_old_log_is_loaded(directory, engine):
    (directory / "appendonly.aof").write_bytes(
        rdb.RdbFile(9).select(0).key("base", *rdb.plain("rdb")).finish()
        + b"*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n#TS:1600000000\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
    )
    with Server.ingot(engine, {"appendonly": "yes"}, directory=directory) as server, server.client() as client:
        assert client.call("GET", "base").value == b"rdb"
        client.call("SELECT", 2)
        assert client.call("GET", "k").value == b"v"


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(rdb.raw(w)), rdb.raw(w)) for w in words)


def write_log(directory, log, base=None):
    folder = directory / "appendonlydir"
    folder.mkdir()
    manifest = "file appendonly.aof.1.incr.aof seq 1 type i\n"
    if base is not None:
        manifest = "file appendonly.aof.1.base.rdb seq 1 type b\n" + manifest
        (folder / "appendonly.aof.1.base.rdb").write_bytes(base)
    (folder / "appendonly.aof.manifest").write_text(manifest)
    (folder / "appendonly.aof.1.incr.aof").write_bytes(log)


def test_a_key_that_expired_since_does_not_come_back(directory, engine):
    """It was there when the log was written, and INCR kept its expiry."""
    past = now_ms() - 1000
    base = rdb.RdbFile().select(0).key("base", *rdb.plain("5"), expire_ms=past).finish()
    log = command("SELECT", 0) + command("INCR", "base") + command("SET", "k", 5) + command("PEXPIREAT", "k", past)
    log += command("INCR", "k") + command("SET", "stays", 1)
    write_log(directory, log, base)
    with Server.ingot(engine, {"appendonly": "yes"}, directory=directory) as server, server.client() as client:
        assert client.call("EXISTS", "base", "k", "stays").value == 1
        deadline = time.monotonic() + 5
        while client.call("DBSIZE").value != 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert client.call("DBSIZE").value == 1


def test_times_in_a_log(directory, engine):
    """They were held against the beginning of 1970: what had just been delivered was idle for 56 years, and what
    expires some time after it was written had expired."""
    log = command("SELECT", 0) + command("XADD", "x", "1-1", "f", "v") + command("XGROUP", "CREATE", "x", "g", 0)
    claims = [("c", "TIME", now_ms() - 5000), ("late", "TIME", now_ms() + 100_000)]
    for number, (consumer, *when) in enumerate(claims):
        log += command("XADD", "x", f"2-{number}", "f", "v")
        log += command("XCLAIM", "x", "g", consumer, 0, f"2-{number}", *when, "RETRYCOUNT", 1, "FORCE", "JUSTID")
    log += command("SET", "k", 1) + command("EXPIRE", "k", 100) + command("SETEX", "s", 100, 1)
    log += command("XADD", "own", "*", "f", "v")
    write_log(directory, log)
    with Server.ingot(engine, {"appendonly": "yes"}, directory=directory) as server, server.client() as client:
        first, second = client.call("XPENDING", "x", "g", "-", "+", 10).value
        assert 5000 <= first.value[2].value < 25_000 and 0 <= second.value[2].value < 20_000
        assert client.call("XAUTOCLAIM", "x", "g", "thief", 3_600_000, 0).value[1].value == []
        assert 80 <= client.call("TTL", "k").value <= 100 and 80 <= client.call("TTL", "s").value <= 100
        assert int(client.call("XRANGE", "own", "-", "+").value[0].value[0].value.split(b"-")[0]) > now_ms() - 60_000


@pytest.mark.parametrize("cut", [1, 10, "in multi"])
def test_log_that_is_cut_off(directory, engine, cut):
    whole = command("SELECT", 0) + command("SET", "k", 1)
    tail = command("MULTI") + command("SET", "k", 2) + command("SET", "k", 3)
    log = whole + tail if cut == "in multi" else (whole + command("SET", "k", "2" * 20))[:-cut]
    write_log(directory, log)
    before = {file: file.read_bytes() for file in (directory / "appendonlydir").iterdir()}
    server = Server.ingot(engine, {"appendonly": "yes", "aof-load-truncated": "no"}, directory=directory)
    with pytest.raises(ServerError, match=f"which begins at byte {len(whole)}"):
        server.start()
    server.options["aof-load-truncated"] = "yes"
    with server, server.client() as client:
        assert client.call("GET", "k").value == b"1"
        assert "are not loaded" in server.log_path.read_text()
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.parametrize(
    ("lines", "bad"),
    [
        (["1.base.rdb seq 1 type b", "1.incr.aof seq 1 type i", "1.base.rdb seq 1 type b"], 3),
        (["1.incr.aof seq 1 type i", "1.incr.aof seq 1 type i"], 2),
        (["1.incr.aof seq x type i"], 1),
    ],
)
def test_manifest_that_names_files_twice(directory, engine, lines, bad):
    """Redis refuses it as well: what is run twice gives other data."""
    write_log(directory, command("SELECT", 0) + command("INCR", "n"), rdb.RdbFile().select(0).finish())
    manifest = directory / "appendonlydir" / "appendonly.aof.manifest"
    manifest.write_text("".join(f"file appendonly.aof.{line}\n" for line in lines))
    for server in (Server.redis({"appendonly": "yes"}, directory=directory),
                   Server.ingot(engine, {"appendonly": "yes"}, directory=directory)):  # fmt: skip
        with pytest.raises(ServerError, match=f"line {bad}"):
            server.start()


def test_log_with_a_large_transaction(directory, engine):
    """As a script makes it: larger than what EXEC may change here."""
    large = command("MULTI") + b"".join(command("SET", f"k{i}", "v" * 1000) for i in range(60_000)) + command("EXEC")
    write_log(directory, command("SELECT", 0) + command("SET", "before", 1) + large + command("SET", "behind", 1))
    options = {"appendonly": "yes", "maxmemory": "64mb"}
    with Server.ingot(engine, options, directory=directory) as server, server.client(timeout=30) as client:
        assert client.call("DBSIZE").value == 60_002
        assert client.call("EXISTS", "before", "k0", "k59999", "behind").value == 4


@pytest.mark.parametrize("unit", ["command", "transaction"])
def test_log_that_the_disk_has_no_room_for(directory, engine, unit):
    sets = [command("SET", f"k{i}", "v" * 1000) for i in range(5000)]
    sets = ([command("MULTI"), *sets, command("EXEC")] if unit == "transaction" else sets) * 10
    # What a value says is no refusal.
    head = command("SELECT", 0) + command("SET", "k", "1\r\n-OOM no\r\n") + command("GETSET", "k", 2)
    write_log(directory, head + b"".join(sets) + command("SET", "last", 1))
    free = 2 * shutil.disk_usage(directory).free
    server = Server.ingot(engine, {"appendonly": "yes", "min-free-disk": free}, directory=directory)
    with pytest.raises(ServerError, match="refused here: .*min-free-disk"):
        server.start()
    server.options["min-free-disk"] = 0
    with server, server.client(timeout=30) as client:
        assert client.call("EXISTS", "k0", "k4999", "last").value == 3


def test_log_with_what_is_no_command(directory, engine):
    write_log(directory, command("SELECT", 0) + command("SET", "k", 1) + b"garbage\r\n")
    server = Server.ingot(engine, {"appendonly": "yes"}, directory=directory)
    with pytest.raises(ServerError, match="damaged at byte"):
        server.start()
    for name, log in (
        ("NOSUCHTHING", command("NOSUCHTHING", 0)),
        ("SET", command("SET", "k")),
        ("SET", command("MULTI") + command("SET", "k") + command("EXEC")),
        ("SELECT", command("SELECT")),
    ):
        (directory / "appendonlydir" / "appendonly.aof.1.incr.aof").write_bytes(log)
        with pytest.raises(ServerError, match=f"not known here: '{name}'"):
            server.start()


def test_a_damaged_dump_stops_the_start_and_changes_nothing(directory, engine):
    with redis_in(directory) as redis, redis.client(timeout=30) as client:
        fill(client)
        expected = state(client)
        assert client.call("SAVE") == OK
    dump = directory / "dump.rdb"
    good = dump.read_bytes()
    for damaged, says in (
        (good[: len(good) // 2], "before its end"),
        (good[:-1] + bytes([good[-1] ^ 1]), "checksum is wrong"),
        (b"REDIS0099" + good[9:], "RDB version 99 cannot be read"),
        (b"", "ends at byte 0, before its end"),
    ):
        dump.write_bytes(damaged)
        server = Server.ingot(engine, directory=directory)
        with pytest.raises(ServerError, match=says):
            server.start()
        assert dump.read_bytes() == damaged
    dump.unlink()
    dump.mkdir()
    with pytest.raises(ServerError, match="dump.rdb is no file"):
        Server.ingot(engine, directory=directory).start()
    dump.rmdir()
    dump.write_bytes(good)
    same_state(directory, engine, expected)


def large_dump(directory, keys=600_000):
    """One that takes a second or two to load."""
    body = b"".join(b"\x00" + rdb.string(f"key:{i}") + rdb.string("x" * 100) for i in range(keys))
    (directory / "dump.rdb").write_bytes(rdb.RdbFile().select(0).add(body).finish(checksum=False))
    return keys


def begin_start(server):
    """Without waiting until it is ready."""
    server.port = server.port or free_port()
    with open(server.log_path, "ab") as log:
        server.process = subprocess.Popen(
            server.command_line(), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=server.directory
        )


def when_it_listens(server):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            return server.client()
        except OSError:
            time.sleep(0.005)
    raise AssertionError(server.log_tail())


def test_kill_while_loading(directory, engine):
    """The data that are half there are never taken for data: the load begins anew."""
    keys = large_dump(directory)
    server = Server.ingot(engine, directory=directory)
    for pause in (0, 0.1, 0.3):
        begin_start(server)
        with when_it_listens(server) as client:
            assert client.call("GET", "key:0").value == LOADING
            told = client.call("INFO", "persistence").value
            assert b"loading:1" in told and b"loading_total_bytes:" in told and b"loading_eta_seconds:" in told
            assert client.call("SET", "k", "v").value == LOADING
            client.call("MULTI")
            assert client.call("GET", "k").value == LOADING
            assert client.call("EXEC").value.startswith(b"EXECABORT")
            assert not client.call("CONFIG", "GET", "port").is_error()
        time.sleep(pause)
        server.kill()
        assert (directory / "ingot-data.loading").exists()
    with server, server.client() as client:
        assert client.call("DBSIZE").value == keys
        assert client.call("GET", f"key:{keys - 1}").value == b"x" * 100
        assert b"loading:0" in client.call("INFO", "persistence").value
        assert "has not come to its end" in server.log_path.read_text()
    ingot_check(directory)


@pytest.mark.parametrize("how", ["SIGTERM", "SHUTDOWN"])
def test_end_while_loading(directory, engine, how):
    keys = large_dump(directory)
    server = Server.ingot(engine, directory=directory)
    begin_start(server)
    with when_it_listens(server) as client:
        if how == "SHUTDOWN":
            client.call("SHUTDOWN")
        else:
            server.signal(signal.SIGTERM)
    assert server.wait() == 0
    with server, server.client() as client:
        assert client.call("DBSIZE").value == keys


# --- which files


@pytest.mark.parametrize(
    ("files", "appendonly", "says"),
    [
        (["appendonlydir/appendonly.aof.manifest"], "no", "with 'appendonly no'"),
        (["appendonly.aof"], "no", "with 'appendonly no'"),
        (["dump.rdb"], "yes", "with 'appendonly yes'"),
        (["appendonlydir/appendonly.aof.1.incr.aof"], "yes", "has no manifest"),
        (["appendonlydir/appendonly.aof.manifest"], "yes", "is none of a manifest"),
    ],
)
def test_a_choice_that_would_lose_data_is_refused(directory, engine, files, appendonly, says):
    for name in files:
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(b"REDIS0010")
    server = Server.ingot(engine, {"appendonly": appendonly}, directory=directory)
    with pytest.raises(ServerError, match=says):
        server.start()
    server.options["ignore-redis-files"] = "yes"
    with server, server.client() as client:
        assert client.call("DBSIZE").value == 0
    del server.options["ignore-redis-files"]
    with server, server.client() as client:  # it has data of its own now
        assert client.call("DBSIZE").value == 0


def test_log_before_dump(directory, engine):
    (directory / "dump.rdb").write_bytes(rdb.RdbFile().select(0).key("from", *rdb.plain("dump")).finish())
    write_log(directory, command("SELECT", 0) + command("SET", "from", "log"))
    with Server.ingot(engine, {"appendonly": "yes"}, directory=directory) as server, server.client() as client:
        assert client.call("GET", "from").value == b"log"
        assert "dump.rdb is passed over" in server.log_path.read_text()


# --- encodings


def old_values():
    """Names and values in every form up to that of Redis 7.0, with the version that brought each."""
    pairs = [(f"field{i}", f"value{i}") for i in range(40)]
    scores = [("a", -1.5), ("b", 0.0), ("c", 3.0), ("d", float("inf")), ("e", float("-inf")), ("f", 1e17 + 2)]
    numbers = [1, -5, 12, 13, 300, -40_000, 1 << 20, 1 << 40, -(1 << 62), "text", "x" * 70, "y" * 20_000]
    stream = {
        "entries": [((5, 1), [("a", 1), ("b", 2)]), ((5, 2), [("a", 3), ("b", "x")]), ((9, 0), [("c", "y")])],
        "last": (9, 7),
        "groups": [
            ("g", (5, 2), 2, [((5, 1), 1000, 1), ((5, 2), 2000, 3)], [("alice", 1500, [1]), ("bob", 1600, [0])]),
            ("h", (0, 0), 0, [], []),
        ],
    }
    yield "string", 1, rdb.plain("hello")
    yield "empty", 1, rdb.plain("")
    yield from ((f"int{n}", 1, (0, rdb.int_string(n))) for n in (0, -1, 127, 128, -32768, 40_000, -(1 << 31)))
    yield "packed", 1, (0, rdb.lzf_string("z" * 5000))
    yield "long", 1, rdb.plain("ab" * 40_000)
    yield "list", 1, rdb.plain_list(numbers)
    yield "set", 1, rdb.plain_set([f"m{i}" for i in range(2000)])
    yield "zset text", 1, rdb.text_zset(scores)
    yield "zset many", 1, rdb.text_zset([(f"m{i}", i * 7919 % 1000) for i in range(3000)])
    yield "hash", 1, rdb.plain_hash(pairs)
    yield "zipmap", 2, rdb.zipmap_hash([*pairs, ("long", "v" * 300), ("", "")])
    yield "list ziplist", 2, rdb.ziplist_list(numbers)
    yield "intset16", 2, rdb.intset_set([5, -7, 300])
    yield "intset64", 2, rdb.intset_set([5, -7, 1 << 40])
    yield "zset ziplist", 2, rdb.ziplist_zset(sorted(((m, s) for m, s in scores if abs(s) < 1e9), key=lambda x: x[1]))
    yield "hash ziplist", 4, rdb.ziplist_hash(pairs)
    yield "quicklist", 7, rdb.quicklist([numbers, ["one"], [str(i) for i in range(500)]])
    yield "zset doubles", 8, rdb.double_zset(scores)
    yield "stream 1", 9, rdb.stream(1, **stream)
    yield "stream 1 empty", 9, rdb.stream(1, [], last=(7, 7))
    yield "hash listpack", 10, rdb.listpack_hash(pairs)
    yield "zset listpack", 10, rdb.listpack_zset([("a", -3), ("b", "1.5"), ("c", 100_000)])
    yield "quicklist 2", 10, rdb.quicklist2([numbers, "p" * 100_000, ["last"]])
    yield "stream 2", 10, rdb.stream(2, **stream, added=77, max_deleted=(5, 9))


@pytest.mark.parametrize("version", range(1, 11))
def test_encodings_of_every_version(directory, engine, version):
    file = rdb.RdbFile(version)
    if version >= 7:
        file.aux("redis-ver", "6.9").aux("unknown", "field")
    file.select(0, 30 if version >= 7 else None)
    at = now_ms() + IN_A_DAY
    for name, since, value in old_values():
        if since <= version:
            file.key(name, *value)
    file.key("seconds", *rdb.plain("s"), expire_s=at // 1000)
    file.key("gone", *rdb.plain_list(["x"] * 3000), expire_s=5)
    if version >= 3:
        file.key("ms", *rdb.plain_hash([("f", "v")]), expire_ms=at)
        file.key("gone too", *rdb.plain("s"), expire_ms=5)
    if version >= 9:
        file.key("idle", *rdb.plain("s"), idle=5000).key("freq", *rdb.plain("s"), freq=77)
        file.key("gone stream", *rdb.stream(1, [((1, 1), [("a", "b")])], last=(1, 1)), expire_ms=7)
    file.select(9).key("elsewhere", *rdb.plain("x"))
    if version >= 10:
        file.function(LIBRARY)
    (directory / "dump.rdb").write_bytes(file.finish())
    with redis_in(directory) as redis, redis.client() as client:
        expected = look_at(client)
    with Server.ingot(engine, directory=directory) as server, server.client() as client:
        found = look_at(client)
        for name, value in expected.items():
            assert found[name] == value, name
        assert found.keys() == expected.keys()
        if version >= 9:
            assert 5000 <= client.call("OBJECT", "IDLETIME", "idle").value <= 5060
            assert client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu") == OK
            assert 70 <= client.call("OBJECT", "FREQ", "freq").value <= 77
    ingot_check(directory)


def look_at(client):
    """What there is in database 0, and the digest of all."""
    told = {"digest": client.call("DEBUG", "DIGEST").value, "functions": client.call("FUNCTION", "LIST", "WITHCODE")}
    for key in (reply.value for reply in client.call("KEYS", "*").value):
        told[key, "encoding"] = client.call("OBJECT", "ENCODING", key).value
        told[key, "expires"] = client.call("PEXPIRETIME", key).value
        if client.call("TYPE", key).value == b"stream":
            told[key, "entries"] = client.call("XRANGE", key, "-", "+")
            told[key, "groups"] = client.call("XINFO", "GROUPS", key)
            told[key, "pending"] = client.call("XPENDING", key, "g")
    return told


def test_encodings_of_later_versions(directory, engine):
    """Of Redis 7.2, 7.4 and Valkey 8, which the redis-server here cannot read."""
    at = now_ms() + IN_A_DAY
    fields = [("a", "1", 0), ("b", "2", at), ("c", "3", at + 5)]
    many = [(f"f{i}", f"v{i}", at + i if i % 2 else 0) for i in range(2000)]
    file = rdb.RdbFile(12).aux("valkey-ver", "8.0.1").select(0)
    file.add(b"\xf4" + rdb.length(7) + rdb.length(100) + rdb.length(5))  # slot info
    file.key("set", *rdb.listpack_set(["one", "two", 3]))
    file.key("stream", *rdb.stream(3, [((1, 1), [("a", "b")])], last=(1, 1), groups=[
        ("g", (1, 1), 1, [((1, 1), 5, 1)], [("alice", 9, [0])])]))  # fmt: skip
    file.key("timed", *rdb.timed_hash(fields)).key("early", *rdb.timed_hash(fields, early=True))
    file.key("packed", *rdb.timed_listpack_hash(fields)).key("packed early", *rdb.timed_listpack_hash(fields, early=True))
    file.key("many", *rdb.timed_hash(many), expire_ms=at)
    (directory / "dump.rdb").write_bytes(file.finish())
    with Server.ingot(engine, directory=directory) as server, server.client() as client:
        assert {m.value for m in client.call("SMEMBERS", "set").value} == {b"one", b"two", b"3"}
        assert client.call("XPENDING", "stream", "g").value[0].value == 1
        for name in ("timed", "early", "packed", "packed early"):
            found = client.call("HPEXPIRETIME", name, "FIELDS", 3, "a", "b", "c").value
            assert [r.value for r in found] == [-1, at, at + 5], name
            assert client.call("HGET", name, "c").value == b"3"
        assert client.call("HLEN", "many").value == 2000
        assert client.call("HPEXPIRETIME", "many", "FIELDS", 2, "f1", "f2").value[0].value == at + 1
        assert client.call("PEXPIRETIME", "many").value == at
    ingot_check(directory)


def test_a_large_set_in_little_memory(directory, engine):
    """A collection far larger than what may be held of it."""
    count = 2_000_000 if os.environ.get("INGOT_TEST_FULL") else 200_000
    file = rdb.RdbFile().select(0)
    body = rdb.length(count) + b"".join(rdb.string(f"member:{i:09d}:" + "x" * 40) for i in range(count))
    scores = rdb.length(count) + b"".join(rdb.string(f"{i:09d}") + b"\0\0\0\0" + (i * 7919 % 65536).to_bytes(2, "little")
                                          + b"\xf0\x3f" for i in range(count))  # fmt: skip
    file.key("set", 2, body).key("zset", 5, scores)
    (directory / "dump.rdb").write_bytes(file.finish(checksum=False))
    with Server.ingot(engine, directory=directory) as server, server.client(timeout=30) as client:
        assert client.call("SCARD", "set").value == count
        assert client.call("ZCARD", "zset").value == count
        assert client.call("ZRANK", "zset", "000000000").value is not None
        peak = int(next(line.split()[1] for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
                        if line.startswith("VmHWM")))  # fmt: skip
        assert peak < 250_000, f"{peak} KB"
    ingot_check(directory)


# --- out


@pytest.mark.parametrize("inline_max", [0, 1024])
def test_what_redis_cli_takes_from_us_redis_loads(directory, engine, inline_max):
    with Server.ingot(engine, {"inline-max-bytes": inline_max}) as server, server.client(timeout=30) as client:
        fill(client, 3000)
        client.call("SELECT", 5)
        client.call("HSET", "timed", "a", 1, "b", 2)
        client.call("HPEXPIRE", "timed", IN_A_DAY, "FIELDS", 1, "b")
        expected = state(client)
        done = subprocess.run(["redis-cli", "-p", str(server.port), "--rdb", directory / "dump.rdb"],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    checked = subprocess.run(["redis-check-rdb", directory / "dump.rdb"], capture_output=True, text=True, timeout=60)
    assert "RDB looks OK" in checked.stdout, checked.stdout + checked.stderr
    with redis_in(directory) as redis, redis.client(timeout=30) as client:
        found = state(client)
        for name, value in expected.items():
            assert found[name] == value, name
        encodings = {name: client.call("OBJECT", "ENCODING", name).value for name in ("hash:3", "zset:3", "list:3000", "numbers:3")}
        assert encodings == {"hash:3": b"listpack", "zset:3": b"listpack", "list:3000": b"quicklist", "numbers:3": b"intset"}
    same_state(directory, engine, expected)
