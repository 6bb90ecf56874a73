"""WATCH, EXEC and what is in it, beside redis-server: which commands break a transaction, of every type and in every way;
blocking commands and scripts inside; the texts of errors.
"""

import re
import shlex
import time

import pytest

SETUPS = {
    "absent": [],
    "string": ["SET k 10"],
    "string that expires": ["SET k 10 EX 1000"],
    "list": ["RPUSH k a b c a"],
    "hash": ["HSET k a 1 b 2"],
    "set": ["SADD k a b c"],
    "zset": ["ZADD k 1 a 2 b 3 c"],
    "geo": ["GEOADD k 13.36 38.11 a 15.08 37.5 b"],
    "stream": ["XADD k 1-1 f v", "XADD k 2-1 f v", "XGROUP CREATE k g 0", "XREADGROUP GROUP g c COUNT 1 STREAMS k >"],
    "hyperloglog": ["PFADD k a b c"],
}
OTHERS = ["SET string 1", "RPUSH list a b", "HSET hash a 1", "SADD set a x", "ZADD zset 1 a 5 x", "GEOADD geo 13.36 38.11 a", "PFADD hll a z",
          "SELECT 1", "SET k other", "SET m other", "SELECT 0"]  # fmt: skip
COMMANDS = """
    GET k | SET k 10 | SET k 11 | SET k 11 NX | SET k 11 XX | SET k 11 KEEPTTL | SET k 10 GET | SETEX k 100 10 | SETNX k 10 | GETSET k 10
    GETDEL k | GETEX k | GETEX k EX 500 | GETEX k PERSIST | APPEND k "" | APPEND k x | SETRANGE k 0 "" | SETRANGE k 0 1 | SETRANGE k 0 10
    INCR k | INCRBY k 0 | DECR k | INCRBYFLOAT k 0 | INCRBYFLOAT k 1.5 | MSET k 1 j 2 | MSETNX k 1 j 2 | STRLEN k | LCS k string
    SETBIT k 1 0 | SETBIT k 1 1 | SETBIT k 1000 0 | BITOP AND k string | BITOP OR k none | BITOP NOT j k | BITCOUNT k | BITFIELD k GET u8 0
    BITFIELD k SET u8 0 49 | BITFIELD k INCRBY u8 0 0 | BITFIELD k INCRBY u8 0 1 | BITFIELD k OVERFLOW FAIL SET u8 0 1
    PFADD k | PFADD k a | PFADD k new | PFCOUNT k | PFMERGE k | PFMERGE k hll | PFMERGE j k
    DEL k | UNLINK k | DEL j | EXPIRE k 100 | EXPIRE k 100 NX | EXPIRE k 100 XX | EXPIRE k 100 GT | EXPIRE k 100 LT | EXPIRE k -1 | PERSIST k
    PEXPIREAT k 1 | EXPIREAT k 99999999999 | TTL k | TYPE k | TOUCH k | EXISTS k | OBJECT ENCODING k | DUMP k | RANDOMKEY | KEYS * | SCAN 0
    RENAME k j | RENAME k k | RENAME string k | RENAME none k | RENAMENX k j | RENAMENX string k | RENAMENX k k
    COPY k j | COPY string k | COPY string k REPLACE | COPY none k REPLACE | COPY k k DB 1 | COPY k k DB 1 REPLACE | MOVE k 1 | MOVE m 1
    RESTORE_OF string k | RESTORE_OF string k REPLACE | RESTORE k 0 x | RESTORE_OF string k REPLACE ABSTTL
    FLUSHDB | FLUSHALL | FLUSHDB ASYNC | SWAPDB 0 1 | SWAPDB 0 2 | SWAPDB 1 2 | SWAPDB 0 0 | IN_1 SET k x | IN_1 DEL k | IN_1 FLUSHDB | IN_1 MOVE m 0
    IN_1 MOVE k 0 | IN_1 COPY m k DB 0 REPLACE
    LPUSH k x | RPUSHX k x | LPUSHX k x | LPOP k | LPOP k 0 | LPOP k 100 | RPOP k 2 | LINSERT k BEFORE a x | LINSERT k AFTER none x | LREM k 0 a
    LREM k 0 none | LSET k 0 a | LSET k 0 z | LSET k 99 z | LTRIM k 0 -1 | LTRIM k 1 1 | LTRIM k 5 1 | LMOVE k j LEFT RIGHT | LMOVE k k LEFT LEFT
    LMOVE list k LEFT LEFT | RPOPLPUSH k k | LMPOP 2 none k LEFT | BLPOP k 0.01 | BRPOPLPUSH k j 0.01 | BLMPOP 0.01 1 k LEFT COUNT 2 | LRANGE k 0 -1
    LPOS k a | SORT k | SORT k ALPHA STORE j | SORT list ALPHA STORE k | SORT none STORE k
    HSET k a 1 | HSET k a 2 | HSET k c 3 | HSETNX k a 1 | HSETNX k c 1 | HDEL k a | HDEL k none | HDEL k a b | HINCRBY k a 0 | HINCRBY k a 1
    HINCRBYFLOAT k a 0 | HMSET k a 1 | HGETALL k | HRANDFIELD k
    SADD k a | SADD k new | SREM k a | SREM k none | SREM k a b c | SPOP k | SPOP k 0 | SPOP k 100 | SMOVE k j a | SMOVE k set a | SMOVE set k x
    SMOVE set k a | SMOVE k k a | SINTERSTORE k set | SINTERSTORE k none | SUNIONSTORE k k | SUNIONSTORE j k | SDIFFSTORE k set set | SMEMBERS k
    ZADD k 1 a | ZADD k 2 a | ZADD k NX 5 a | ZADD k XX 5 none | ZADD k GT 0 a | ZADD k INCR 0 a | ZADD k CH 1 a | ZADD k 9 new | ZINCRBY k 0 a | ZREM k a
    ZREM k none | ZREM k a b c | ZPOPMIN k | ZPOPMAX k 100 | ZPOPMIN k 0 | BZPOPMIN k 0.01 | ZMPOP 1 k MIN | ZREMRANGEBYRANK k 0 0
    ZREMRANGEBYSCORE k 100 200 | ZREMRANGEBYLEX k - + | ZRANGESTORE k zset 0 -1 | ZRANGESTORE k none 0 -1 | ZRANGESTORE j k 0 -1
    ZUNIONSTORE k 1 zset | ZINTERSTORE k 2 k zset | ZDIFFSTORE k 2 zset zset | ZRANGE k 0 -1 | ZSCORE k a
    GEOADD k 13.36 38.11 a | GEOADD k 10 10 c | GEOADD k XX 1 1 none | GEOSEARCHSTORE k geo FROMLONLAT 13 38 BYRADIUS 500 km
    GEOSEARCHSTORE k geo FROMLONLAT 0 0 BYRADIUS 1 m | GEORADIUS k 13 38 500 km STORE j | GEORADIUS geo 13 38 500 km STORE k
    XADD k 9-9 f v | XADD k NOMKSTREAM 9-9 f v | XADD k 1-1 f v | XDEL k 1-1 | XDEL k 7-7 | XTRIM k MAXLEN 100 | XTRIM k MAXLEN 1 | XSETID k 9-9
    XGROUP CREATE k h 0 | XGROUP CREATE k g 0 | XGROUP CREATE k h 0 MKSTREAM | XGROUP DESTROY k g | XGROUP DESTROY k none | XGROUP SETID k g 0
    XGROUP CREATECONSUMER k g d | XGROUP CREATECONSUMER k g c | XGROUP DELCONSUMER k g c | XGROUP DELCONSUMER k g none
    XREADGROUP GROUP g c STREAMS k > | XREADGROUP GROUP g c STREAMS k 0 | XREADGROUP GROUP g new STREAMS k > | XREADGROUP GROUP g c NOACK STREAMS k >
    XACK k g 1-1 | XACK k g 7-7 | XCLAIM k g d 0 1-1 | XCLAIM k g c 0 7-7 | XAUTOCLAIM k g d 0 0 | XREAD STREAMS k 0 | XREAD BLOCK 10 STREAMS k $
    XPENDING k g | XLEN k
    EVAL "redis.call('SET',KEYS[1],'x')" 1 k | EVAL "redis.call('GET',KEYS[1])" 1 k | EVAL "redis.call('DEL','k')" 0 | EVAL_RO "return 1" 1 k
    EVAL "redis.call('SELECT',1) redis.call('SET','k','x')" 0 | EVAL "redis.call('SET',KEYS[1],'x') return redis.error_reply('no')" 1 k
    PUBLISH k x | CLIENT NO-EVICT ON | CONFIG SET timeout 0 | DEBUG SLEEP 0 | WAIT 0 0 | SCRIPT FLUSH | FUNCTION FLUSH
"""
LINES = [command.strip() for line in COMMANDS.strip().splitlines() for command in line.split(" | ")]


def words(other, command):
    """RESTORE_OF source target ...: with the dump of that key; IN_1: in database 1."""
    parts = shlex.split(command)
    if parts[0] == "RESTORE_OF":
        return ["RESTORE", parts[2], "0", other.call("DUMP", parts[1]).value, *parts[3:]]
    return parts


def outcome(server, setup, command):
    with server.client() as watcher, server.client() as other:
        watcher.pipeline([("FLUSHALL",), *map(shlex.split, OTHERS), *map(shlex.split, setup), ("WATCH", "k")])
        in_1 = command.startswith("IN_1 ")
        if in_1:
            other.call("SELECT", "1")
        reply = other.call(*words(other, command.removeprefix("IN_1 ")))
        return reply.is_error(), watcher.pipeline([("MULTI",), ("PING",), ("EXEC",)])[2]


@pytest.mark.parametrize("setup", SETUPS)
def test_what_breaks_a_transaction(empty_pair, setup):
    wrong = []
    for command in LINES:
        expected, actual = (outcome(server, SETUPS[setup], command) for server in empty_pair.servers)
        if actual != expected:
            wrong.append((command, f"redis {expected}", f"ingot {actual}"))
    assert not wrong


INSIDE = {
    "what would wait": [
        "BLPOP none 0", "BRPOP none 0", "BLMOVE none k LEFT LEFT 0", "BRPOPLPUSH none k 0", "BLMPOP 0 1 none LEFT", "BZPOPMIN none 0",
        "BZPOPMAX none 0", "BZMPOP 0 1 none MIN", "XREAD BLOCK 0 STREAMS none 0", "XREAD BLOCK 0 STREAMS none $", "WAIT 0 0",
        "XGROUP CREATE s g $ MKSTREAM", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"],
    "what need not wait": [
        "RPUSH l a b c", "BLPOP l 0", "BLMOVE l m LEFT LEFT 0", "BLMPOP 0 1 l LEFT COUNT 5", "ZADD z 1 a", "BZPOPMIN z 0", "XADD s 1-1 f v",
        "XREAD BLOCK 0 STREAMS s 0"],
    "scripts": [
        "EVAL \"redis.call('SET','k','1') return redis.call('INCR','k')\" 0", "EVAL \"return redis.call('GET','k')\" 0",
        "EVAL \"redis.call('SET','k','x') return redis.call('INCR','k')\" 0", "GET k", "EVAL 'return {err=\"MY error\"}' 0", "EVAL 'syntax (' 0",
        "EVALSHA 0123456789012345678901234567890123456789 0", "EVAL \"return redis.call('MULTI')\" 0", "EVAL \"return redis.call('NOSUCH')\" 0",
        "EVAL_RO \"return redis.call('SET','k','1')\" 0", "EVAL \"return redis.pcall('LPUSH','k','x')\" 0", "FCALL none 0", "EVAL 'return 1' 2 k",
        "SCRIPT LOAD 'return 1'", "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"],
    "errors": [
        "SET k v", "INCR k", "LPUSH k x", "HSET k a", "SET k v EX 0", "SET k v EX abc", "GETEX k EX -1", "EXPIRE k abc", "RENAME none k", "SELECT 99",
        "MSET a", "SETRANGE k -1 x", "ZADD k 1 a", "XADD k * f", "OBJECT ENCODING none", "DEBUG OBJECT none", "RESTORE k 0 x", "CLIENT KILL 1.2.3.4:5",
        "CLIENT UNBLOCK abc", "CLIENT PAUSE abc", "CLIENT TRACKING foo", "CLIENT CACHING YES", "CONFIG SET nosuch 1", "CONFIG GET nosuch",
        "AUTH a b c", "SWAPDB 0 99", "MOVE k 0", "COPY k k", "GET k"],
    "connection": [
        "CLIENT SETNAME x", "CLIENT GETNAME", "SELECT 3", "SET k v", "CLIENT NO-EVICT ON", "CLIENT TRACKINGINFO", "CLIENT GETREDIR", "SUBSCRIBE c",
        "UNSUBSCRIBE c", "PSUBSCRIBE c", "PUNSUBSCRIBE", "SSUBSCRIBE c", "SUNSUBSCRIBE", "MONITOR", "PING", "ECHO x", "GET k"],
    "not allowed": ["WATCH k", "SET k v", "SAVE", "GET k"],
    "nested": ["MULTI", "SET k v", "DISCARD", "EXEC", "GET k"],
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_inside_of_a_transaction(empty_pair, protocol, name):
    def run(server):
        with server.client(protocol) as client:
            client.send("MULTI")
            replies = [client.read()]
            for command in [*INSIDE[name], "EXEC", "GET k"]:
                client.send(*shlex.split(command))
                replies.append(client.read())
                while client.has_input(0.01):
                    replies.append(client.read())
            return replies

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected


def test_while_a_script_runs(empty_pair):
    """WATCH and UNWATCH are answered; and what is watched then is watched from the script's end on at least."""

    def run(server):
        with server.client() as admin, server.client() as slow, server.client() as client, server.client() as other:
            admin.pipeline([("SET", "k", "1"), ("CONFIG", "SET", "busy-reply-threshold", "50")])
            slow.send("EVAL", "while true do end", "0")
            while not client.call("GET", "k").value.startswith(b"BUSY"):
                time.sleep(0.01)
            seen = [client.call(*line.split()) for line in ("WATCH k", "UNWATCH", "UNWATCH", "GET k", "MULTI")]
            seen += other.pipeline([("UNWATCH",), ("WATCH", "k"), ("GET", "k")])
            seen += [admin.call("SCRIPT", "KILL"), slow.read()]
            admin.call("CONFIG", "SET", "busy-reply-threshold", "5000")
            seen += [client.call("DISCARD"), client.call("WATCH", "k"), client.call("GET", "k"), other.call("GET", "k")]
            admin.call("SET", "k", "2")
            for each in (client, other):
                seen.append(each.pipeline([("MULTI",), ("GET", "k"), ("EXEC",)]))
            return seen

    def shown(reply):
        return re.sub(r"f_[0-9a-f]{40}", "f", repr(reply))

    expected, actual = ([shown(reply) for reply in run(server)] for server in empty_pair.servers)
    assert actual == expected
