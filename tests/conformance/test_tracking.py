"""Client side caching against Redis: CLIENT TRACKING in all its modes, and what every connection is told."""

import pytest
from listening import play
from support.resp import Reply

SCRIPTS = {
    "what was read is told once": """
        3>a> CLIENT TRACKING ON | GET k
        b> SET k 1
        b> SET k 2
        a> GET k
        a> SET k 3 | GET k
        a> SET k 4
        b> GET k | SET k 5
        b> DEL k
        a> GET k | MGET k l m | EXISTS n
        b> MSET k 1 l 2 n 3 o 4   ~any
        b> SET m 1
    """,
    "what might have written is not remembered": """
        3>a> CLIENT TRACKING ON | SORT l ALPHA | BITFIELD k GET u8 0 | GEORADIUS g 0 0 1 km | GEORADIUS_RO h 0 0 1 km | SORT_RO m
        a> MULTI | SORT n | EXEC
        b> RPUSH l 1 | RPUSH n 1 | SET k v | GEOADD g 1 1 x
        b> GEOADD h 1 1 x
        b> RPUSH m 1
    """,
    "every way to change a key": """
        3>a> CLIENT TRACKING ON | GET k
        b> SET k 1 | RENAME k j
        a> MGET k j
        b> RENAME j k   ~any
        a> MGET k j
        b> COPY k j
        a> MGET k j
        b> EXPIRE k 100
        a> GET k
        b> PERSIST k
        a> GET k
        b> PERSIST k | GETEX k | TOUCH k | SETNX k 2
        b> APPEND k x
        a> GET k
        b> MOVE k 3
        a> LRANGE l 0 -1
        b> RPUSH l 1 2 3
        a> LLEN l
        b> LPOP l
        a> LINDEX l 0
        b> SORT l STORE l2
        a> HGET h f
        b> HSET h f v
        a> SMEMBERS s
        b> SADD s a
        a> SISMEMBER s b
        b> SADD s a
        b> SUNIONSTORE t s
        a> ZSCORE z m | XLEN x | GETBIT bits 1 | PFCOUNT hll
        b> ZADD z 1 m
        b> XADD x 1-1 f v
        b> SETBIT bits 1 1
        b> PFADD hll a b
        a> PFCOUNT hll
        b> PFADD hll c d e f
        a> OBJECT ENCODING z | TTL t | TYPE s | DUMP h | SORT_RO l2 | BITFIELD_RO bits GET u8 0
        b> DEL z t s h l2 bits   ~any
    """,
    "expiry": """
        3>a> CLIENT TRACKING ON NOLOOP | SET k v PX 1000 | GET k
        !sleep 1.3
        b> GET k
    """,
    "reads that are none": """
        3>a> CLIENT TRACKING ON | LPUSH k | GET | GETDEL k | SET k v GET | HGET k f
        b> SET k 1
        a> GETSET k 2 | INCR k
        b> SET k 1
    """,
    "transactions": """
        3>a> CLIENT TRACKING ON | GET k
        a> MULTI | SET k 1 | GET k | SET k 2 | EXEC
        b> SET k 3
        a> MULTI | GET k | GET j | EXEC
        b> MSET k 1 j 2   ~any
        a> WATCH k
        b> SET k 1
        a> MULTI | GET k | EXEC
        b> SET k 2
        a> MULTI | GET k | DISCARD
        b> SET k 2
        b> MULTI | SET k 1 | INCR k | DEL k | EXEC
        a> GET k
        b> MULTI | SET k 1 | INCR k | DEL k | EXEC
        a> MULTI | CLIENT TRACKING OFF | GET k | EXEC
        b> SET k 3
        a> MULTI | CLIENT TRACKING ON | GET k | EXEC
        b> SET k 4
    """,
    "flush": """
        3>a> CLIENT TRACKING ON | GET k
        b> FLUSHALL
        b> FLUSHDB
        b> SET k 1
        a> GET k | FLUSHALL
        a> GET k
        b> SELECT 3 | FLUSHDB
        b> SET k 1
        a> MULTI | GET k | FLUSHDB | SET k 1 | EXEC
        b> MULTI | FLUSHALL | EXEC
        a> GET k
        b> SWAPDB 0 1
        b> SET k 1
    """,
    "off, reset and RESP2 alone": """
        3>a> CLIENT TRACKING ON | GET k | CLIENT TRACKING OFF
        b> SET k 1
        a> CLIENT TRACKING ON | GET k | RESET | CLIENT TRACKINGINFO
        b> SET k 2
        2>c> CLIENT TRACKING ON | GET k | CLIENT TRACKINGINFO | CLIENT GETREDIR
        b> SET k 3
        b> FLUSHALL
    """,
    "errors": """
        3>a> CLIENT TRACKING | CLIENT TRACKING FOO | CLIENT TRACKING ON FOO | CLIENT TRACKING OFF FOO | CLIENT TRACKING FOO BAR
        a> CLIENT TRACKING ON PREFIX a | CLIENT TRACKING ON BCAST OPTIN | CLIENT TRACKING ON OPTIN OPTOUT
        a> CLIENT TRACKING ON REDIRECT 99999 | CLIENT TRACKING ON REDIRECT abc | CLIENT TRACKING ON REDIRECT
        a> CLIENT TRACKING ON REDIRECT {id:a} REDIRECT 1 | CLIENT TRACKING ON PREFIX | CLIENT TRACKING ON REDIRECT 0
        a> CLIENT TRACKING ON BCAST PREFIX foo PREFIX fo | CLIENT TRACKING ON BCAST PREFIX a PREFIX a
        a> CLIENT CACHING YES | CLIENT GETREDIR | CLIENT TRACKINGINFO
        a> CLIENT TRACKING ON BCAST PREFIX foo PREFIX bar | CLIENT TRACKING ON BCAST PREFIX foobar | CLIENT TRACKING ON
        a> CLIENT TRACKING ON BCAST PREFIX qux | CLIENT TRACKINGINFO
        a> CLIENT TRACKING ON BCAST | CLIENT TRACKINGINFO
        a> CLIENT TRACKING OFF | CLIENT TRACKING ON | CLIENT CACHING YES | CLIENT TRACKING ON BCAST
        a> CLIENT TRACKING ON OPTIN | CLIENT CACHING NO | CLIENT CACHING FOO | CLIENT CACHING YES | CLIENT TRACKINGINFO
        a> CLIENT TRACKINGINFO | PING | CLIENT TRACKINGINFO | CLIENT TRACKING ON OPTOUT | CLIENT TRACKING ON
        a> CLIENT TRACKINGINFO | CLIENT TRACKING OFF | CLIENT TRACKING ON OPTOUT NOLOOP | CLIENT CACHING YES
        a> CLIENT CACHING NO | CLIENT TRACKINGINFO | CLIENT TRACKING OFF BCAST | CLIENT TRACKINGINFO | CLIENT GETREDIR
        a> CLIENT TRACKING ON BCAST PREFIX "" | CLIENT TRACKINGINFO | CLIENT TRACKING ON BCAST PREFIX x
    """,
    "opt in": """
        3>a> CLIENT TRACKING ON OPTIN | GET k | GET j | CLIENT CACHING YES | GET k | GET j
        b> SET k 1 | SET j 1
        a> CLIENT CACHING YES | CLIENT GETNAME | GET j | GET k
        b> SET k 1 | SET j 1
        a> CLIENT CACHING YES | MULTI | GET j | GET k | EXEC | GET l
        b> SET j 1 | SET k 1 | SET l 1   ~any
        a> CLIENT CACHING YES | PING | GET j
        b> SET j 2
        a> CLIENT CACHING YES | FOO | GET j
        b> SET j 2
        a> CLIENT CACHING YES | GET | GET j
        b> SET j 2
        a> MULTI | CLIENT CACHING YES | GET j | GET k | EXEC | GET l
        b> SET j 3 | SET k 3 | SET l 3   ~any
        a> MULTI | GET j | CLIENT CACHING YES | GET k | EXEC
        b> SET j 3 | SET k 3
        a> CLIENT CACHING YES | MGET j k l
        b> SET j 3 | SET k 3 | SET l 3
    """,
    "opt out": """
        3>a> CLIENT TRACKING ON OPTOUT | GET k | CLIENT CACHING NO | GET j | GET l
        b> SET k 1 | SET j 1 | SET l 1
        a> CLIENT CACHING NO | MULTI | GET k | EXEC | GET j
        b> SET k 1 | SET j 1
    """,
    "no loop": """
        3>a> CLIENT TRACKING ON NOLOOP | GET k | SET k 1
        b> SET k 2
        a> GET k
        b> SET k 3
        a> GET k | MULTI | SET k 4 | EXEC
        a> FLUSHALL
    """,
    "broadcasting": """
        3>a> CLIENT TRACKING ON BCAST PREFIX a: PREFIX b:
        b> MULTI | MSET a:1 x b:2 y c:3 z a:2 w | DEL a:1 | EXEC
        a> SET a:1 2
        b> SET c:3 1
        3>c> CLIENT TRACKING ON BCAST NOLOOP
        c> SET q 1 | SET r 2
        b> SET q 2
        b> MSET a:1 1 b:1 2 c:1 3
        c> MULTI | SET a:9 1 | EXEC
        b> FLUSHDB
        b> SELECT 5 | SET b:x 1
        c> CLIENT TRACKING OFF
        b> SET a:1 1
        !close a
        b> SET a:1 2
    """,
    "redirected to a subscriber": """
        2>r> SUBSCRIBE __redis__:invalidate
        2>a> CLIENT TRACKING ON REDIRECT {id:r} | GET k | CLIENT TRACKINGINFO
        b> SET k 1
        3>c> CLIENT TRACKING ON REDIRECT {id:r} BCAST PREFIX x
        b> SET x1 1
        a> GET k
        b> FLUSHALL   ~any
        r> UNSUBSCRIBE
        a> GET k
        b> SET k 1
        r> SUBSCRIBE other
        a> GET k
        b> SET k 1
    """,
    "redirected to RESP3": """
        3>r> PING
        2>a> CLIENT TRACKING ON REDIRECT {id:r} | GET k
        b> SET k 1
        a> GET k
        b> FLUSHALL
        3>c> CLIENT TRACKING ON REDIRECT {id:c} | GET k
        b> SET k 1
    """,
    "redirected to nobody": """
        2>r> SUBSCRIBE __redis__:invalidate
        2>a> CLIENT TRACKING ON REDIRECT {id:r} | GET k
        3>c> CLIENT TRACKING ON REDIRECT {id:r} | GET j
        d> PING
        !close r
        b> PING
        b> SET k 1 | SET j 1
        a> CLIENT TRACKINGINFO
        a> CLIENT TRACKING ON | CLIENT TRACKINGINFO
    """,
    "in the middle of pub/sub": """
        3>a> CLIENT TRACKING ON | SUBSCRIBE news | GET k
        b> MULTI | PUBLISH news 1 | SET k 1 | PUBLISH news 2 | EXEC
        a> CLIENT REPLY OFF | GET k
        b> SET k 2
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(empty_pair, protocol, name):
    play(empty_pair, protocol, SCRIPTS[name])


def test_what_waits_is_told_meanwhile(empty_pair):
    for server in empty_pair.servers:
        with server.client(protocol=3) as a, server.client() as b:
            a.pipeline([("CLIENT", "TRACKING", "ON"), ("GET", "k")])
            a.send("BLPOP", "list", "0")
            while b"blocked_clients:1" not in b.call("INFO", "clients").value:
                pass
            b.call("SET", "k", "1")
            assert repr(a.read()) == "push[$'invalidate', array[$'k']]"
            b.call("RPUSH", "list", "x")
            assert repr(a.read()) == "array[$'list', $'x']"


def figures(server, client):
    lines = [line.split(":", 1) for line in client.call("INFO").text().split("\r\n") if ":" in line]
    return {name: value for name, value in lines if name.startswith("tracking_")}


def test_info_and_client_list(empty_pair):
    told = []
    for server in empty_pair.servers:
        with server.client(protocol=3) as a, server.client() as b, server.client(protocol=3) as c:
            a.pipeline([("CLIENT", "TRACKING", "ON"), ("MGET", "k", "l"), ("GET", "k")])
            b.pipeline([("CLIENT", "TRACKING", "ON", "REDIRECT", a.call("CLIENT", "ID").value)])
            c.pipeline([("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "p", "PREFIX", "q")])
            flags = [dict(word.split("=", 1) for word in client.call("CLIENT", "INFO").text().split())["flags"]
                     for client in (a, b, c)]  # fmt: skip
            redirect = b.call("CLIENT", "INFO").text().split("redir=")[1].split()[0]
            assert redirect == str(a.call("CLIENT", "ID").value)
            told.append((flags, figures(server, b)))
            b.call("SET", "k", "1")
            told[-1] += (figures(server, b)["tracking_total_items"],)
    assert told[1] == told[0]
    assert told[0][0] == ["t", "t", "tB"]


def test_the_table_has_a_limit(empty_pair):
    """Keys beyond it are forgotten, and whoever has read them is told."""
    server = empty_pair.servers[1]
    with server.client(protocol=3) as a, server.client() as b:
        b.call("CONFIG", "SET", "tracking-table-max-keys", "10")
        try:
            a.call("CLIENT", "TRACKING", "ON")
            a.pipeline([("GET", f"k{n}") for n in range(10)])
            assert a.call("PING") == Reply("simple", b"PONG")
            for n in range(10, 50):
                a.send("GET", f"k{n}")
            told, replies = set(), 0
            while replies < 40 or len(told) < 40:
                reply = a.read()
                if reply.kind == "push":
                    told.add(reply.value[1].value[0].value)
                else:
                    replies += 1
            assert figures(server, b)["tracking_total_keys"] == "10"
            b.pipeline([("SET", f"k{n}", "v") for n in range(50)])
            while len(told) < 50:
                told.add(a.read().value[1].value[0].value)
            assert told == {b"k%d" % n for n in range(50)}
        finally:
            b.call("CONFIG", "SET", "tracking-table-max-keys", "1000000")
