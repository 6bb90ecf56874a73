"""Keyspace notifications, as they are delivered: those of every written case of the types, against Redis."""

import re
import shlex
from collections import Counter

import pytest
from listening import play
from runner import Run
from script import load_cases

FAMILIES = ("bitfield", "bitmap", "generic_expire", "generic_keys", "geo", "hash", "hyperloglog", "list", "set",
            "sort", "stream", "string_number", "string_range", "string_set", "transaction", "zset")  # fmt: skip
CASES = [case for case in load_cases() if case.name.split("/")[0] in FAMILIES]
# Everything but new keys and misses.
KINDS = "KEA"
# Redis removes keys that have expired when it comes across them: these may stand elsewhere among the others, or
# not have been told yet.
AT_ANY_TIME = (b"expired",)
# Why the events of a case differ.
DIFFERENCES: dict[str, str] = {}


class Listener:
    """Hears everything of one server."""

    def __init__(self, server):
        self.client = server.client()
        self.client.call("PSUBSCRIBE", "__key*__:*")
        self.pings = 0

    def heard(self):
        """(channel, text) of all messages since the last call."""
        self.pings += 1
        token = b"%d" % self.pings
        self.client.send("PING", token)
        messages = []
        while (reply := self.client.read()).value[0].value != b"pong":
            messages.append(tuple(part.value for part in reply.value[2:]))
        assert reply.value[1].value == token
        return messages


@pytest.fixture
def listeners(empty_pair):
    empty_pair.both("CONFIG", "SET", "notify-keyspace-events", KINDS)
    listeners = [Listener(server) for server in empty_pair.servers]
    yield listeners
    empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")
    for listener in listeners:
        listener.client.close()


def split(messages):
    """Those in their order, and those that may come at any time."""
    moved = [each for each in messages if each[0].endswith(AT_ANY_TIME) or each[1] in AT_ANY_TIME]
    return [each for each in messages if each not in moved], Counter(moved)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events_of_case(pair, listeners, case):
    for listener in listeners:
        listener.heard()
    Run(pair, case, 2).run("step_by_step")
    redis, ours = (listener.heard() for listener in listeners)
    (ordered, expired), (our_order, our_expired) = split(redis), split(ours)
    same = our_order == ordered and our_expired >= expired
    if case.name in DIFFERENCES:
        assert not same, "declared as different, but it is equal: take it off the list"
        return
    missing, more = Counter(redis) - Counter(ours), Counter(ours) - Counter(redis)
    assert same, f"redis alone: {list(missing)}; other alone: {list(more)}" + (
        "" if missing or more else f"; the order: {redis} {ours}")


def test_kinds(empty_pair, protocol):
    try:
        play(empty_pair, protocol, """
            2>a> PSUBSCRIBE *
            b> CONFIG SET notify-keyspace-events KEA | SET k v | DEL k
            b> CONFIG SET notify-keyspace-events K$ | SET k v | DEL k | LPUSH l x
            b> CONFIG SET notify-keyspace-events Eg | SET k v | DEL k
            b> CONFIG SET notify-keyspace-events g | SET k v | DEL k
            b> CONFIG SET notify-keyspace-events Kn | SET k v | SET k w | LPUSH k2 x | GETSET k3 v | XADD s 1-1 a b
            b> CONFIG SET notify-keyspace-events Eng | SET a 1 | SET b 2 | COPY a b REPLACE | COPY a c | RENAME a b | RENAME b d | COPY d c REPLACE
            b> CONFIG SET notify-keyspace-events Em | GET none | MGET none k none | EXISTS none | HGET no f | DEL none
            b> MULTI | SET x 1 | GET none | EXEC | MULTI | GET none | EXEC
            b> CONFIG SET notify-keyspace-events "" | SET k v
            b> SELECT 3 | CONFIG SET notify-keyspace-events KEA | SET k v | MOVE k 4
            a> PUNSUBSCRIBE * | SUBSCRIBE __keyevent@3__:set __keyspace@3__:k
            b> SET k v | SET l v | DEL k
            a> UNSUBSCRIBE __keyevent@3__:set
            b> SET k v | SET l v | DEL k
            b> FLUSHALL | CONFIG SET notify-keyspace-events ""
        """)  # fmt: skip
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")


def test_an_exec_that_asks_for_events(empty_pair, protocol):
    """By the setting: each command tells what is asked for at its turn."""
    try:
        play(empty_pair, protocol, """
            2>a> PSUBSCRIBE *
            c> CONFIG SET notify-keyspace-events KEA
            c> MULTI | SET k 1 | CONFIG SET notify-keyspace-events K$ | SET k 2 | DEL k | CONFIG SET notify-keyspace-events Eg | SET k 3 | DEL k
            c> CONFIG SET notify-keyspace-events "" | SET k 4 | CONFIG SET notify-keyspace-events Em | GET none | DEL k | EXEC
        """)  # fmt: skip
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")


def heard_by_itself(server, others, commands):
    """What an EXEC's own client hears of it."""
    with server.client() as other, server.client(protocol=3) as client:
        client.call("CONFIG", "SET", "notify-keyspace-events", "EA")
        if others:
            other.call("PSUBSCRIBE", "*")
        replies = [*client.pipeline([("MULTI",), *(command.split() for command in commands)])]
        client.send("EXEC")
        client.send("PING")
        while replies[-1].value != b"PONG":
            replies.append(client.read())
        client.call("CONFIG", "SET", "notify-keyspace-events", "")
        return re.findall(r"\$'(?:__keyevent@0__:)?(set|c)', \$", repr(replies))


@pytest.mark.parametrize("others", [False, True], ids=["alone", "with others"])
def test_an_exec_that_subscribes(empty_pair, others):
    """It hears what its later commands tell (where in its reply is a difference, see test_pubsub.py)."""
    expected, actual = (heard_by_itself(server, others, ["PSUBSCRIBE *", "SET k 1", "PUBLISH c m"]) for server in empty_pair.servers)
    assert actual == expected == ["set", "c"]


def test_an_exec_that_subscribes_behind_what_it_tells(empty_pair):
    """A difference: it hears that, too, where somebody else does; Redis looks for receivers at once."""
    heard = [heard_by_itself(server, True, ["SET k 1", "PUBLISH c m", "PSUBSCRIBE *"]) for server in empty_pair.servers]
    assert heard == [[], ["set", "c"]]


def test_expiry_is_told_on_time(empty_pair):
    empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "Ex")
    try:
        for server in empty_pair.servers:
            with server.client() as listener, server.client() as client:
                listener.call("SUBSCRIBE", "__keyevent@0__:expired")
                client.pipeline([("SET", f"k{i}", "v", "PX", 20 + i) for i in range(50)])
                heard = {listener.read(timeout=5).value[2].value for _ in range(50)}
                assert heard == {b"k%d" % i for i in range(50)}
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")


def test_events_of_clients_that_were_fed(empty_pair):
    told = []
    try:
        for server in empty_pair.servers:
            with server.client() as admin, server.client() as waiter:
                admin.call("CONFIG", "SET", "notify-keyspace-events", "El")
                listener = Listener(server)
                waiter.send("BLMOVE", "a", "b", "LEFT", "RIGHT", "0")
                while b"blocked_clients:1" not in admin.call("INFO", "clients").value:
                    pass
                admin.call("RPUSH", "a", "x")
                waiter.read()
                told.append(listener.heard())
                listener.client.close()
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")
    assert told[1] == told[0] != []


MISSES = """
    COPY n d | BITOP AND d n n2 | BITOP NOT d n | SUNIONSTORE d n n2 | SINTERSTORE d n n2 | SDIFFSTORE d n n2 | ZUNIONSTORE d 2 n n2 |
    ZINTERSTORE d 2 n n2 | ZDIFFSTORE d 2 n n2 | ZRANGESTORE d n 0 -1 | SORT n | SORT n STORE d | SORT n BY x GET y STORE d | SORT_RO n |
    SORT_RO l BY w_* | GEORADIUS n 0 0 1 km | GEORADIUS n 0 0 1 km STORE d | GEORADIUSBYMEMBER n m 1 km STORE d |
    GEOSEARCHSTORE d n FROMLONLAT 0 0 BYRADIUS 1 km | XREADGROUP GROUP g c STREAMS n > | XREADGROUP GROUP g c STREAMS s n > > | XACK n g 1-1 |
    XCLAIM n g c 0 1-1 | XAUTOCLAIM n g c 0 0 | XPENDING n g | XREAD STREAMS n 0 | XREAD STREAMS n $ | XREAD BLOCK 10 STREAMS n 0 |
    XREAD BLOCK 10 STREAMS n $ | XLEN n | XRANGE n - + | XINFO STREAM n | XDEL n 1-1 | XTRIM n MAXLEN 1 | XSETID n 1-1 | BITFIELD n GET u8 0 |
    BITFIELD n SET u8 0 0 | BITFIELD n GET u8 0 INCRBY u8 0 0 | BITFIELD_RO n GET u8 0 | PFCOUNT n | PFCOUNT n n2 | PFMERGE d n | GETDEL n | GETEX n |
    GETSET n v | SET n v GET | SET n v XX | APPEND n x | LMOVE n d LEFT LEFT | RPOPLPUSH n d | SMOVE n d m | RENAME n d | MOVE n 1 | DUMP n |
    OBJECT ENCODING n | OBJECT IDLETIME n | TTL n | TYPE n | TOUCH n | EXISTS n | DEL n | UNLINK n | EXPIRE n 10 | PERSIST n | LPOP n | SPOP n |
    SPOP n 2 | ZPOPMIN n | BLPOP n 0.01 | BZPOPMIN n 0.01 | LMPOP 1 n LEFT | ZMPOP 1 n MIN | BLMOVE n d LEFT LEFT 0.01 | HINCRBY n f 1 |
    SINTERCARD 2 n n2 | ZINTERCARD 2 n n2 | LCS n n2 | STRLEN n | SUBSTR n 0 1 | MGET n n2 | SCAN 0 | HSCAN n 0 | SRANDMEMBER n | HRANDFIELD n |
    ZRANDMEMBER n | GEOPOS n m | GEODIST n a b | LPOS n x | WATCH n | RESTORE n 0 x | MSETNX n 1 | SETNX n 1 | SETRANGE n 1 x | SETRANGE n 1 "" |
    LPUSHX n x | LINSERT n BEFORE a b | LREM n 0 a | LSET n 0 a | LTRIM n 0 1 | HDEL n f | SREM n f | ZREM n f | SINTER n n2 | SUNION n n2 |
    ZUNION 2 n n2 | ZINTER 2 n n2 | ZREMRANGEBYSCORE n 0 1 | SETBIT n 0 0 | GETBIT n 0 | BITCOUNT n | BITPOS n 1 | INCR n |
    EVAL "return redis.call('GET',KEYS[1])" 1 n | EVAL "return redis.call('COPY',KEYS[1],'d')" 1 n | SORT n LIMIT 0 0 | SWAPDB 0 1 |
    XGROUP CREATE n g $ MKSTREAM | XGROUP CREATE n g $ | XGROUP DESTROY n g | XADD n NOMKSTREAM * a b | XINFO GROUPS n | ZRANK n m | ZADD n XX 1 m |
    GEOADD n XX 1 1 m | PFADD n | KEYS n | RANDOMKEY | COPY l d | COPY l l2 REPLACE | BITOP NOT d str | SUNIONSTORE d set n | ZUNIONSTORE d 2 set n |
    SORT l ALPHA STORE d | XACK s g 1-1 | XCLAIM s g c 0 1-1 | BITFIELD str GET u8 0 | BITFIELD str SET u8 0 1 |
    XREADGROUP GROUP g c BLOCK 10 STREAMS s > | XREAD BLOCK 10 STREAMS s $ | GETEX str | COPY set l
"""


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in exec"])
def test_what_counts_as_a_look_up(empty_pair, inside):
    """Hits, misses and "keymiss" of each command; n is not there."""
    servers = empty_pair.servers
    commands = [command.strip() for command in " ".join(MISSES.split("\n")).split(" | ")]
    there = ["FLUSHALL", "RPUSH l a b", "SADD set a b", "SET str abc", "XGROUP CREATE s g $ MKSTREAM", "CONFIG RESETSTAT"]

    def told(server, listener, client, command):
        client.pipeline([line.split() for line in there])
        words = shlex.split(command)
        client.pipeline([("MULTI",), words, ("EXEC",)] if inside else [words])
        stats = client.call("INFO", "stats").value
        return listener.heard(), re.findall(rb"keyspace_(?:hits|misses):\d+", stats)

    wrong = []
    empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "Em")
    listeners, clients = [Listener(server) for server in servers], [server.client() for server in servers]
    try:
        for command in commands:
            redis, ours = (told(*side, command) for side in zip(servers, listeners, clients))
            if redis != ours:
                wrong.append((command, redis, ours))
    finally:
        empty_pair.both("CONFIG", "SET", "notify-keyspace-events", "")
        for each in clients + [listener.client for listener in listeners]:
            each.close()
    assert not wrong
