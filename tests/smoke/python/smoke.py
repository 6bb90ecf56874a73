"""redis-py against a server: smoke.py [folder of packages] port protocol, port of TLS, certificate of its CA"""

import os
import sys
import time

*folders, PORT, PROTOCOL, TLS_PORT, CA_FILE = sys.argv[1:]
sys.path[:0] = folders

import messages  # noqa: E402  (needs the path set above)
import redis  # noqa: E402


def connect(**options):
    if PROTOCOL == "3":
        options["protocol"] = 3
    return redis.Redis(**{"port": int(PORT), "socket_timeout": 30} | options)


def strings(r):
    assert r.ping()
    assert r.set("greeting", "hello") is True
    assert r.get("greeting") == b"hello"
    assert r.get("absent") is None
    assert r.set("greeting", "again", nx=True) is None
    assert r.set("greeting", "bye", get=True) == b"hello"
    assert [r.incr("count"), r.incr("count", 5), r.decr("count")] == [1, 6, 5]
    assert r.incrbyfloat("real", 1.5) == 1.5
    assert r.mset({"a": "1", "b": "2"}) is True
    assert r.mget("a", "absent", "b") == [b"1", None, b"2"]
    assert r.append("a", "23") == 3 and r.strlen("a") == 3 and r.getrange("a", 1, -1) == b"23"
    assert r.exists("a", "b", "absent") == 2 and r.delete("a", "b", "absent") == 2
    assert r.type("count") == b"string"


def expiry(r):
    r.set("short", "x", px=100)
    assert 0 < r.pttl("short") <= 100
    r.set("long", "x", ex=1000)
    assert 995 <= r.ttl("long") <= 1000 and r.persist("long") and r.ttl("long") == -1
    assert r.ttl("absent") == -2
    deadline = time.monotonic() + 5
    while r.exists("short"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pipelines(r):
    with r.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"p:{number}", number).get(f"p:{number}")
        results = pipe.execute()
    assert results == [x for n in range(1000) for x in (True, str(n).encode())]
    with r.pipeline(transaction=False) as pipe:
        pipe.set("text", "abc").incr("text").get("text")
        ok, error, value = pipe.execute(raise_on_error=False)
    assert ok is True and isinstance(error, redis.ResponseError) and value == b"abc"


def transactions(r, other):
    with r.pipeline(transaction=True) as pipe:
        assert pipe.set("t", 1).incr("t").get("t").execute() == [True, 2, b"2"]
        pipe.watch("t")
        before = int(pipe.get("t"))
        other.set("t", 100)  # a conflict
        pipe.multi()
        pipe.set("t", before + 1)
        try:
            pipe.execute()
            raise AssertionError("the conflict was not noticed")
        except redis.WatchError:
            pass
    assert r.get("t") == b"100"

    def add_one(pipe):
        pipe.multi()
        pipe.incr("t")

    assert r.transaction(add_one, "t") == [101]


def scanning(r):
    r.flushdb()
    r.mset({f"user:{n}": n for n in range(500)} | {f"item:{n}": n for n in range(100)})
    assert r.dbsize() == 600
    assert sorted(r.scan_iter("user:*", count=50)) == sorted(b"user:%d" % n for n in range(500))
    assert len(set(r.scan_iter(count=7))) == 600
    assert len(r.keys("item:*")) == 100


def values(r):
    everything = bytes(range(256))
    assert r.set(everything, everything * 3) and r.get(everything) == everything * 3
    large = os.urandom(5 << 20)
    assert r.set("large", large) and r.get("large") == large
    assert r.set("empty", b"") and r.get("empty") == b""


def errors(r):
    for call, text in (
        (lambda: r.incr("large"), "not an integer"),
        (lambda: r.execute_command("NOSUCH", "x"), "unknown command"),
        (lambda: r.execute_command("GET"), "wrong number of arguments"),
        (lambda: r.execute_command("SET", "k", "v", "EX", "0"), "invalid expire time"),
        (lambda: r.rename("absent", "x"), "no such key"),
    ):
        try:
            call()
        except redis.ResponseError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"no error with {text!r}")


TOKEN_BUCKET = """
local capacity, per_second, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(state[1]) or capacity, tonumber(state[2]) or now
tokens = math.min(capacity, tokens + (now - at) * per_second)
local allowed = tokens >= 1
if allowed then tokens = tokens - 1 end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / per_second * 1000))
return {allowed and 1 or 0, tostring(tokens)}"""


def scripts(r, other):
    # Its release and extension are scripts.
    with r.lock("lock", timeout=10) as lock:
        assert lock.owned() and lock.extend(5) and not other.lock("lock", blocking=False).acquire()
    assert not r.exists("lock")
    lock.acquire()
    other.set("lock", "another's")
    try:
        lock.release()
    except redis.exceptions.LockError:
        pass
    else:
        raise AssertionError("released the lock of another")

    bucket = r.register_script(TOKEN_BUCKET)
    answers = [bucket(keys=["bucket"], args=[3, 1, now]) for now in (10, 10, 10, 10, 11.5)]
    assert answers == [[1, b"2"], [1, b"1"], [1, b"0"], [0, b"0"], [1, b"0.5"]], answers
    r.script_flush()
    assert r.script_exists(bucket.sha) == [False]
    with r.pipeline() as pipe:  # loads it again by itself
        bucket(keys=["bucket"], args=[3, 1, 11.5], client=pipe)
        pipe.get("greeting")
        assert pipe.execute()[0] == [0, b"0.5"]

    code = "#!lua name=smoke\nredis.register_function('twice', function(keys, args) return 2 * args[1] end)"
    assert r.function_load(code, replace=True) in ("smoke", b"smoke")
    assert r.fcall("twice", 0, 21) == 42
    assert len(r.function_list()) == 1 and r.function_delete("smoke")


def server(r):
    assert r.client_setname("smoke")
    assert r.client_getname() in ("smoke", b"smoke")
    clients = [client for client in r.client_list() if client["name"] == "smoke"]
    assert len(clients) == 1 and int(clients[0]["id"]) == r.client_id()
    info = r.info()
    assert info["redis_version"].startswith("7.") and info["db0"]["keys"] == r.dbsize()
    assert info["connected_clients"] >= 1 and info["role"] == "master"
    assert r.config_get("appendfsync")["appendfsync"] in ("always", "everysec", "no")
    assert r.command_count() > 50 and r.time()[0] > 1_600_000_000


def main():
    with connect(single_connection_client=True) as r, connect() as other:
        strings(r)
        expiry(r)
        pipelines(r)
        transactions(r, other)
        scanning(r)
        values(r)
        errors(r)
        scripts(r, other)
        server(r)
        messages.publishing(r, other)
        messages.blocking(r, other)
        messages.streams(r, other)
        messages.locks(r, other)
        if PROTOCOL == "3":
            messages.pushed_tracking(connect, other)
        else:
            messages.redirected_tracking(connect, other)
    messages.secured(connect, TLS_PORT, CA_FILE)
    with connect(db=3, decode_responses=True, client_name="third") as third:
        assert third.set("k", "ü") and third.get("k") == "ü" and third.dbsize() == 1
    print(f"redis-py {redis.__version__}, RESP{PROTOCOL}: ok")


main()
