"""What an operator and test suites ask of a server: MEMORY, BGREWRITEAOF, WAITAOF, DEBUG POPULATE, MODULE, and what is
counted and removed on the way. Replies that must be equal stand in cases/; here is what needs more than one reply."""

import os
import re
import threading
import time

import pytest
from support.resp import CLOSED, Reply
from support.servers import Server, engines, self_check
from test_info import fields_of

OK = Reply("simple", b"OK")
only_ingot = pytest.mark.skipif(self_check(), reason="Redis 7.0 does not have it")


def until(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


# --- MEMORY


def memory_stats(client):
    reply = client.call("MEMORY", "STATS").value
    return {reply[i].text(): reply[i + 1] for i in range(0, len(reply), 2)}


def test_memory_stats_has_the_fields_of_redis(empty_pair):
    empty_pair.both("SET", "k", "v")
    redis, other = map(memory_stats, empty_pair.admins)
    assert list(other) == list(redis)
    for name, value in redis.items():
        assert other[name].kind == value.kind, name
    assert [item.text() for item in other["db.0"].value[::2]] == [item.text() for item in redis["db.0"].value[::2]]


def test_memory_stats_add_up(empty_pair):
    client = empty_pair.admins[1]
    client.call("EVAL", "return 1", 0)
    client.pipeline([("SET", f"k{i}", "x" * 1000) for i in range(2000)])
    stats = {name: value.value for name, value in memory_stats(client).items() if value.kind == "integer"}
    parts = ("startup.allocated", "replication.backlog", "clients.slaves", "clients.normal", "cluster.links",
             "aof.buffer", "lua.caches", "functions.caches")  # fmt: skip
    if not self_check():  # Redis has tables of keys, too
        assert stats["overhead.total"] == sum(stats[part] for part in parts)
        assert stats["lua.caches"] > 0
    assert stats["overhead.total"] + stats["dataset.bytes"] == pytest.approx(stats["total.allocated"], rel=0.01)
    assert stats["keys.count"] == 2000
    assert stats["keys.bytes-per-key"] == (stats["total.allocated"] - stats["startup.allocated"]) // 2000
    assert stats["peak.allocated"] >= stats["total.allocated"] > stats["startup.allocated"] > 0
    assert stats["dataset.bytes"] > 2000 * 1000


def test_info_and_memory_stats_tell_the_same(empty_pair):
    client = empty_pair.admins[1]

    def told():
        stats, info = memory_stats(client), fields_of(client, "memory")
        assert int(info["used_memory_startup"]) == stats["startup.allocated"].value
        assert int(info["used_memory"]) == int(info["used_memory_overhead"]) + int(info["used_memory_dataset"])
        pairs = (("used_memory", "total.allocated"), ("used_memory_overhead", "overhead.total"))
        return [(int(info[field]), stats[name].value) for field, name in pairs]

    for _ in range(20):  # between one and the other an engine may begin a flush
        figures = told()
        if all(by_info == pytest.approx(by_stats, rel=0.05) for by_info, by_stats in figures):
            return
    raise AssertionError(figures)


def test_malloc_stats_tells_of_the_allocator(empty_pair):
    assert len(empty_pair.admins[1].call("MEMORY", "MALLOC-STATS").value) > 500


@only_ingot
def test_memory_doctor_complains_of_many_scripts(empty_pair):
    client = empty_pair.admins[1]
    client.call("SCRIPT", "FLUSH")
    assert b"scripts are cached" not in client.call("MEMORY", "DOCTOR").value
    client.pipeline([("EVAL", f"return {i}", 0) for i in range(1100)])
    assert b"1100 scripts are cached" in client.call("MEMORY", "DOCTOR").value
    client.call("SCRIPT", "FLUSH")


def test_lolwut_ends_with_the_version(empty_pair):
    for command in (("LOLWUT",), ("LOLWUT", "VERSION", 5, 20, 2, 2), ("LOLWUT", "VERSION", 6), ("LOLWUT", "VERSION", 9)):
        for reply in empty_pair.both(*command):
            assert reply.value.endswith(b"Redis ver. 7.0.15\n"), command


# --- BGREWRITEAOF


def rewriting(client):
    return fields_of(client, "persistence")


@only_ingot
def test_bgrewriteaof_gives_space_back_and_keeps_the_data(engine):
    with Server.ingot(engine, {"save": ""}) as server, server.client(timeout=60) as client:
        before = rewriting(client)
        assert (before["aof_rewrites"], before["aof_last_rewrite_time_sec"]) == ("0", "-1")
        for _ in range(3):
            client.pipeline([("SET", f"k{i}", bytes([i % 251]) * 3000) for i in range(4000)])
            client.call("DEBUG", "RELOAD")
        disk = int(fields_of(client, "engine")["engine_disk_bytes"])
        client.call("DEL", *(f"k{i}" for i in range(2000)))
        digest = client.call("DEBUG", "DIGEST")
        assert client.call("BGREWRITEAOF") == Reply("simple", b"Background append only file rewriting started")
        until(lambda: rewriting(client)["aof_rewrite_in_progress"] == "0", "it never ends")
        after = rewriting(client)
        assert (after["aof_rewrites"], after["aof_last_bgrewrite_status"]) == ("1", "ok")
        assert int(after["aof_last_rewrite_time_sec"]) >= 0 and after["aof_current_rewrite_time_sec"] == "-1"
        assert client.call("DEBUG", "DIGEST") == digest
        assert int(fields_of(client, "engine")["engine_disk_bytes"]) < disk


@only_ingot
def test_bgrewriteaof_needs_space(engine):
    with Server.ingot(engine) as server, server.client() as client:
        client.call("SET", "k", "v")
        assert client.call("CONFIG", "SET", "min-free-disk", "1000000gb") == OK
        client.call("BGREWRITEAOF")
        until(lambda: rewriting(client)["aof_last_bgrewrite_status"] == "err", "it does not fail")
        assert rewriting(client)["aof_rewrites_consecutive_failures"] == "1"
        assert b"free disk space" in server.log_path.read_bytes()
        client.call("CONFIG", "SET", "min-free-disk", "1mb")
        client.call("BGREWRITEAOF")
        until(lambda: rewriting(client)["aof_last_bgrewrite_status"] == "ok", "it does not recover")
        assert rewriting(client)["aof_rewrites_consecutive_failures"] == "0"


@only_ingot
def test_a_stop_does_not_wait_for_a_rewriting(engine):
    with Server.ingot(engine, {"maxmemory": "64mb"}) as server, server.client(timeout=60) as client:
        client.pipeline([("SET", f"k{i}", os.urandom(10_000)) for i in range(4000)])
        assert client.call("CONFIG", "SET", "compaction-rate", "1mb") == OK
        assert client.call("BGREWRITEAOF").kind == "simple"
        running = client.call("BGREWRITEAOF")
        in_progress = Reply("error", b"ERR Background append only file rewriting already in progress")
        assert running == in_progress or rewriting(client)["aof_rewrite_in_progress"] == "0"
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 15


# --- WAITAOF, of Redis 7.2


def synced(local):
    return Reply("array", [Reply("integer", local), Reply("integer", 0)])


@only_ingot
def test_waitaof_waits_for_the_sync(engine):
    with Server.ingot(engine, {"appendfsync": "everysec"}) as server, server.client() as client:
        for i in range(5):
            assert client.pipeline([("SET", "k", i), ("WAITAOF", 1, 0, 0)]) == [OK, synced(1)]
        assert client.call("WAITAOF", 1, 0, 0) == synced(1)  # nothing is left to sync
        assert client.call("WAITAOF", 1, 3, 100) == synced(1)  # there are no replicas that could have it
        assert client.call("WAITAOF", 0, 0, 0) == synced(0)
        client.call("CONFIG", "SET", "appendfsync", "no")
        assert client.pipeline([("SET", "k", 1), ("WAITAOF", 1, 0, 0), ("GET", "k")])[1] == synced(1)
        client.call("CONFIG", "SET", "appendfsync", "always")
        assert client.pipeline([("SET", "k", 1), ("WAITAOF", 0, 0, 0)])[1] == synced(1)
        assert client.pipeline([("MULTI",), ("SET", "k", 1), ("WAITAOF", 1, 0, 0), ("EXEC",)])[-1].value[1] == synced(1)
        client.call("CONFIG", "SET", "appendfsync", "everysec")
        assert client.pipeline([("MULTI",), ("SET", "k", 1), ("WAITAOF", 1, 0, 0), ("EXEC",)])[-1].value[1] == synced(0)


@only_ingot
def test_waitaof_of_many_shares_the_syncs(engine):
    with Server.ingot(engine) as server:
        clients = [server.client() for _ in range(100)]
        for round_number in range(3):
            for i, client in enumerate(clients):
                client.send("SET", f"k{i}", round_number)
                client.send("WAITAOF", 1, 0, 10_000)
            for client in clients:
                assert (client.read(), client.read()) == (OK, synced(1))
        clients[0].send("WAITAOF", 1, 0, 0)
        for client in clients:
            client.close()
        with server.client() as client:
            assert client.call("SET", "k", "v") == OK


@only_ingot
def test_waitaof_errors(empty_pair):
    client = empty_pair.admins[1]
    for arguments, error in (
        (("x", 0, 0), b"ERR value is not an integer or out of range"),
        ((2, 0, 0), b"ERR value is out of range, value must between 0 and 1"),
        ((-1, 0, 0), b"ERR value is out of range, value must between 0 and 1"),
        ((1, -1, 0), b"ERR value is out of range, must be positive"),
        ((1, 0, -1), b"ERR timeout is negative"),
        ((1, 0, "x"), b"ERR timeout is not an integer or out of range"),
    ):
        assert client.call("WAITAOF", *arguments) == Reply("error", error), arguments
    assert client.call("WAITAOF", 1, 0).is_error()
    assert client.call("EVAL", "return redis.call('waitaof', 1, 0, 0)", 0).is_error()


# --- DEBUG POPULATE


@pytest.mark.timed
def test_populate_leaves_others_their_turn(empty_pair):
    count = 200_000 if not self_check() else 2000
    filler, other = (empty_pair.servers[1].client(timeout=120) for _ in range(2))
    with filler, other:
        filler.send("DEBUG", "POPULATE", count, "filled", 50)
        longest = 0.0
        answered = threading.Event()
        waiter = threading.Thread(target=lambda: (filler.read(), answered.set()))
        waiter.start()
        while not answered.is_set():
            began = time.monotonic()
            assert other.call("SET", "mine", "1") == OK
            longest = max(longest, time.monotonic() - began)
        waiter.join()
        assert other.call("DBSIZE") == Reply("integer", count + 1)
        assert other.call("STRLEN", f"filled:{count - 1}") == Reply("integer", 50)
        assert longest < 1.0


@only_ingot
def test_populate_ends_with_its_client(empty_pair):
    server = empty_pair.servers[1]
    with server.client() as watcher:
        with server.client() as filler:
            filler.send("DEBUG", "POPULATE", 50_000_000)
            until(lambda: watcher.call("EXISTS", "key:0").value == 1, "it does not begin")
        sizes = []
        for _ in range(120):
            sizes.append(watcher.call("DBSIZE").value)
            if sizes[-10:] == [sizes[-1]] * 10:  # not only for as long as one of its pieces waits for the disk
                break
            time.sleep(0.2)
        else:
            raise AssertionError("it goes on for nobody")
        assert watcher.call("FLUSHALL") == OK


@only_ingot
def test_populate_is_bounded(empty_pair):
    client = empty_pair.admins[1]
    assert client.call("DEBUG", "POPULATE", 1, "k", 1 << 40).value.startswith(b"OOM")
    replies = client.pipeline([("MULTI",), ("DEBUG", "POPULATE", 1001), ("EXEC",)])
    assert replies[-1].value[0].is_error()
    assert client.call("DBSIZE") == Reply("integer", 0)


# --- MODULE, DEBUG: who may


@pytest.mark.parametrize("setting", ["yes", "local"])
def test_module_load_where_it_is_allowed(setting):
    replies = []
    for make in (Server.redis, Server.ingot):
        with make(options={"enable-module-command": setting}) as server, server.client() as client:
            replies.append([
                client.call("MODULE", "LOAD", "/nosuch.so"),
                client.call("MODULE", "LOADEX", "/nosuch.so", "ARGS", "x"),
                client.call("MODULE", "UNLOAD", "x"),
                client.call("MODULE", "LIST"),
                client.call("CONFIG", "GET", "enable-module-command"),
            ])  # fmt: skip
    assert replies[0] == replies[1]


@pytest.mark.parametrize("setting", ["no", "local", "yes"])
def test_enable_debug_command(setting):
    replies = []
    for make in (Server.redis, Server.ingot):
        with make(options={"enable-debug-command": setting}) as server, server.client() as client:
            replies.append([
                client.call("DEBUG", "SLEEP", 0),
                client.call("DEBUG", "POPULATE", 1),
                client.call("MULTI"),
                client.call("DEBUG", "POPULATE", 1),
                client.call("EXEC"),
                client.call("DBSIZE"),
            ])  # fmt: skip
    assert replies[0] == replies[1]


def test_change_repl_id(empty_pair):
    for admin in empty_pair.admins:
        before = fields_of(admin, "replication")["master_replid"]
        assert admin.call("DEBUG", "CHANGE-REPL-ID") == OK
        after = fields_of(admin, "replication")["master_replid"]
        assert re.fullmatch("[0-9a-f]{40}", after) and after != before


@only_ingot
def test_stringmatch_test(empty_pair):
    with empty_pair.servers[1].client(timeout=60) as client:
        assert client.call("DEBUG", "STRINGMATCH-TEST").kind == "simple"


# --- RESTORE-ASKING


def test_restore_asking(empty_pair):
    for admin in empty_pair.admins:
        admin.call("RPUSH", "l", "a", "b")
        dump = admin.call("DUMP", "l").value
        assert admin.call("RESTORE-ASKING", "m", 0, dump) == OK
        assert admin.call("LRANGE", "m", 0, -1).value[1].value == b"b"
        assert admin.call("RESTORE-ASKING", "m", 0, dump).value.startswith(b"BUSYKEY")
        assert admin.call("RESTORE-ASKING", "m", 0, dump, "REPLACE") == OK


# --- expired keys that are read

READS = ("GET k", "EXISTS k", "TTL k", "TYPE k", "STRLEN k", "OBJECT ENCODING k", "MGET k j k", "TOUCH k", "DUMP k",
         "HGETALL k", "SUNION k j", "EVAL_RO return(redis.call('get',KEYS[1])) 1 k", "GETRANGE k 0 1")  # fmt: skip


@pytest.mark.parametrize("read", READS)
def test_a_read_removes_what_has_expired(empty_pair, read):
    results = []
    for server in empty_pair.servers:
        with server.client() as client, server.client(3) as listener:
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            client.call("CONFIG", "SET", "notify-keyspace-events", "KEx")
            listener.call("SUBSCRIBE", "__keyevent@0__:expired")
            try:
                client.call("SET", "k", "v", "PX", 1)
                client.call("SET", "j", "v", "PX", 1)
                time.sleep(0.01)
                client.call("CONFIG", "RESETSTAT")
                size = client.call("DBSIZE")
                reply = client.call(*read.split()), client.call("DBSIZE")
                event = listener.read()
                counted = fields_of(client, "stats")["expired_keys"]
                results.append((size, reply, event, counted))
            finally:
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)
                client.call("CONFIG", "SET", "notify-keyspace-events", "")
    assert results[0] == results[1]


def test_reads_in_transactions_remove_what_has_expired(empty_pair):
    results = []
    for server in empty_pair.servers:
        with server.client() as client:
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            try:
                client.call("MSET", "a", 1, "b", 2)
                for key in ("k", "j"):
                    client.call("SET", key, "v", "PX", 1)
                time.sleep(0.01)
                client.call("CONFIG", "RESETSTAT")
                replies = client.pipeline([("MULTI",), ("GET", "k"), ("GET", "a"), ("EXEC",)])
                replies.append(client.call("DBSIZE"))
                replies += client.pipeline([("GET", "j"), ("GET", "a"), ("SET", "c", 1), ("GET", "j"), ("DBSIZE",)])
                results.append((replies, fields_of(client, "stats")["expired_keys"]))
            finally:
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert results[0] == results[1]


def test_dbsize_counts_nothing_that_reads_before_it_found_expired(empty_pair):
    keys = [f"k{i}" for i in range(100)]
    results = []
    for server in empty_pair.servers:
        with server.client() as client:
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", 0)
            try:
                client.pipeline([("SET", key, "v", "PX", 1) for key in keys])
                time.sleep(0.01)
                results.append(client.pipeline([("SET", "a", 1), *(("GET", key) for key in keys), ("DBSIZE",)]))
            finally:
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    assert results[0] == results[1]


# --- rdb_changes_since_last_save

CHANGES = """
    SADD s a b c | HSET h a 1 b 2 | HSET h a 1 | RPUSH l a b c d e f | LPUSHX l z | ZADD z 1 a 2 b 3 c 4 d | ZADD z 1 a |
    SET k v | MSET a 1 b 2 c 3 | DEL a b c zz | EXPIRE k 100 | EXPIRE k 100 NX | PERSIST k | PERSIST k | SETBIT bm 1 1 |
    BITFIELD bf SET u8 0 5 | BITFIELD bf SET u8 0 6 INCRBY u8 8 1 | BITFIELD bn INCRBY u2 8 1 INCRBY u8 8 1 |
    BITFIELD bf GET u8 0 | BITFIELD bq OVERFLOW FAIL INCRBY u2 0 5 | INCR n | HDEL h a b zz | SREM s a q | SMOVE s s2 b |
    SADD s x y z | SPOP s 2 | SPOP s | LREM l 0 a | LSET l 0 q | LMOVE l l2 LEFT RIGHT | RPOPLPUSH l l2 | LPOP l2 5 |
    LPOP l | LMPOP 1 l LEFT COUNT 2 | BLPOP l 0 | ZREM z a zz | ZPOPMIN z 2 | ZADD z 1 a 2 b 3 c 4 d | ZMPOP 1 z MIN COUNT 2 |
    ZREMRANGEBYRANK z 0 0 | BZPOPMIN z 0 | GEOADD g 1 1 a 2 2 b | XADD x 1-0 a 1 | XADD x MAXLEN 1 2-0 a 1 | XDEL x 2-0 |
    COPY k k2 | RENAME k2 k3 | RENAMENX k3 k4 | MOVE k4 1 | SWAPDB 0 1 | SWAPDB 0 1 | FUNCTION FLUSH | TOUCH k | UNLINK k |
    SWAPDB 0 0 | PFADD p | PFADD p a b c | PFADD p a d | PFADD p a | PFMERGE p2 p | PFMERGE p2 p | RPUSH t 3 1 2 9 | SORT t STORE l3 |
    SORT none STORE l3 | SORT none STORE l3 | LTRIM t 1 2 | LTRIM t 0 -1 | LTRIM t 5 0 | GEOSEARCHSTORE g2 g FROMLONLAT 1 1 BYRADIUS 9999 km |
    GEOSEARCHSTORE g2 g FROMLONLAT 9 9 BYRADIUS 1 m | XADD y 1-0 a 1 | XADD y 2-0 a 1 | XADD y 3-0 a 1 | XADD y 4-0 a 1 |
    XGROUP CREATE y g 0 | XREADGROUP GROUP g c COUNT 2 STREAMS y > | XREADGROUP GROUP g c STREAMS y > | XREADGROUP GROUP g c STREAMS y > |
    XREADGROUP GROUP g c STREAMS y 0 | XREADGROUP GROUP g d STREAMS y 0 | XCLAIM y g e 0 1-0 2-0 | XCLAIM y g e 0 1-0 JUSTID |
    XCLAIM y g f 0 9-0 | XCLAIM y g f 100000 1-0 | XCLAIM y g e 0 9-0 LASTID 8-0 | XCLAIM y g e 0 9-0 LASTID 7-0 |
    XCLAIM y g e 0 1-0 LASTID 9-0 | XAUTOCLAIM y g h 0 0 COUNT 1 | XAUTOCLAIM y g i 100000 0 | XDEL y 1-0 | XCLAIM y g j 0 1-0 |
    XDEL y 2-0 | XAUTOCLAIM y g k 0 0 | XACK y g 3-0 4-0 9-0 | XACK y g 3-0 | XDEL y 3-0 9-0 | XADD y 10-0 a 1 | XADD y 11-0 a 1 |
    XTRIM y MAXLEN 1 | XTRIM y MAXLEN 1 | XGROUP SETID y g 0 | XGROUP CREATECONSUMER y g z | XGROUP DELCONSUMER y g z | XGROUP DESTROY y g
"""


def changes(client):
    return int(fields_of(client, "persistence")["rdb_changes_since_last_save"])


def test_changes_are_counted_as_in_redis(empty_pair):
    before = [changes(admin) for admin in empty_pair.admins]
    for command in CHANGES.split("|"):
        empty_pair.both(*command.split())
        after = [changes(admin) for admin in empty_pair.admins]
        assert after[1] - before[1] == after[0] - before[0], command
        before = after


@pytest.mark.parametrize("waits, feeds", [
    ("BLPOP l 0", "RPUSH l a"), ("BLMOVE l k LEFT RIGHT 0", "RPUSH l a"), ("BZPOPMIN z 0", "ZADD z 1 a"),
    ("BLMPOP 0 1 l LEFT COUNT 5", "RPUSH l a"), ("BLPOP q 0", "LPUSH q a b c"), ("BRPOPLPUSH q q 0", "LPUSH q a"),
    ("BZMPOP 0 1 z MIN COUNT 3", "ZADD z 1 a 2 b"), ("XREAD BLOCK 0 STREAMS s $", "XADD s 1-1 a b"),
    ("XREADGROUP GROUP g new BLOCK 0 STREAMS s >", "XADD s 1-1 a b"), ("XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "XADD s 1-1 a b"),
])  # fmt: skip
def test_changes_of_who_waited(empty_pair, waits, feeds):
    counted = []
    for server, admin in zip(empty_pair.servers, empty_pair.admins):
        admin.call("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
        admin.call("XGROUP", "CREATECONSUMER", "s", "g", "c")
        before = changes(admin)
        with server.client() as client:
            client.send(*waits.split())
            until(lambda: fields_of(admin, "clients")["blocked_clients"] == "1", "it does not wait")
            admin.call(*feeds.split())
            client.read()
        counted.append(changes(admin) - before)
    assert counted[0] == counted[1]


def test_what_expires_is_no_change(empty_pair):
    for read in (True, False):
        empty_pair.both("SET", "k", "v", "PX", 20)
        before = [changes(admin) for admin in empty_pair.admins]
        for admin in empty_pair.admins:
            until(lambda: admin.call(*("GET k" if read else "DBSIZE").split()).value in (None, 0), "it does not expire")
        assert [changes(admin) for admin in empty_pair.admins] == before


# --- OBJECT FREQ and IDLETIME


def test_uses_are_counted(empty_pair):
    settings = ("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu", "lfu-log-factor", 0, "lfu-decay-time", 0)
    assert empty_pair.both(*settings) == (OK, OK)
    try:
        commands = ["SET k v", "OBJECT FREQ k", "GET k", "GET k", "OBJECT FREQ k", "SET k w", "OBJECT FREQ k", "SET n 100000", "INCR n",
                    "OBJECT FREQ n", "INCR n", "OBJECT FREQ n", "HSET h a 1", "HGET h a", "HSET h a 2", "OBJECT FREQ h",
                    "TTL k", "OBJECT ENCODING k", "OBJECT FREQ k", "TOUCH k", "OBJECT FREQ k", "DEL k", "SET k v",
                    "OBJECT FREQ k", "MGET k n k", "OBJECT FREQ k", "APPEND k z",
                    "OBJECT FREQ k", "EXPIRE k 100", "OBJECT FREQ k", "OBJECT IDLETIME k", "OBJECT FREQ nosuch",
                    "LPUSH l a", "LPUSH l a", "LRANGE l 0 -1", "OBJECT FREQ l"]  # fmt: skip
        for command in commands:
            redis, other = empty_pair.both(*command.split())
            assert other == redis, command
        for _ in range(300):
            empty_pair.both("GET", "k")
        assert empty_pair.both("OBJECT", "FREQ", "k") == (Reply("integer", 255),) * 2
        dumps = [admin.call("DUMP", "k").value for admin in empty_pair.admins]
        for admin, dump in zip(empty_pair.admins, dumps):
            assert admin.call("RESTORE", "r", 0, dump, "FREQ", 77) == OK
            assert admin.call("OBJECT", "FREQ", "r") == Reply("integer", 77)
        # A high factor: a use hardly counts.
        empty_pair.both("CONFIG", "SET", "lfu-log-factor", 1000000)
        for _ in range(20):
            empty_pair.both("GET", "r")
        for reply in empty_pair.both("OBJECT", "FREQ", "r"):
            assert reply.value <= 79
    finally:
        empty_pair.both("CONFIG", "SET", "maxmemory-policy", "noeviction", "lfu-log-factor", 10, "lfu-decay-time", 1)
    for reply in empty_pair.both("OBJECT", "FREQ", "k"):
        assert reply.is_error()


def test_restore_keeps_the_idle_time(empty_pair):
    for admin in empty_pair.admins:
        admin.call("SET", "k", "v")
        dump = admin.call("DUMP", "k").value
        assert admin.call("RESTORE", "i", 0, dump, "IDLETIME", 1000) == OK
        assert 1000 <= admin.call("OBJECT", "IDLETIME", "i").value <= 1002
        admin.call("GET", "i")
        assert admin.call("OBJECT", "IDLETIME", "i").value <= 2


# --- FUNCTION inside EXEC


def test_function_list_in_exec_tells_of_its_own_changes(empty_pair):
    code = "#!lua name=mine\nredis.register_function('f', function() return 1 end)"
    empty_pair.both("FUNCTION", "FLUSH")
    results = []
    for server in empty_pair.servers:
        with server.client() as client:
            results.append(client.pipeline([
                ("MULTI",), ("FUNCTION", "LIST"), ("FUNCTION", "LOAD", code), ("FUNCTION", "LIST"), ("FUNCTION", "STATS"),
                ("FUNCTION", "DUMP"), ("FCALL", "f", 0), ("FUNCTION", "FLUSH"), ("FUNCTION", "LIST"), ("FUNCTION", "STATS"),
                ("EXEC",), ("FUNCTION", "LIST"),
            ]))  # fmt: skip
    assert results[0] == results[1]
