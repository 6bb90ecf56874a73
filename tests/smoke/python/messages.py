"""redis-py where clients meet: pub/sub, blocking pops, streams with groups, locks, client side caches, TLS."""

import threading
import time

import redis

WAIT_SECONDS = 20


def next_message(listener):
    """The next message proper; confirmations are passed over."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        found = listener.get_message(timeout=1)
        if found and found["type"].endswith("message"):
            return found["type"], found["pattern"], found["channel"], found["data"]
    raise AssertionError("no message came")


def wait_for(condition, what):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def publishing(r, other):
    with other.pubsub() as listener:
        listener.subscribe("smoke:news")
        listener.psubscribe("smoke:w*")
        wait_for(lambda: r.pubsub_numsub("smoke:news") == [(b"smoke:news", 1)], "SUBSCRIBE")
        wait_for(lambda: r.pubsub_numpat() == 1, "PSUBSCRIBE")
        assert r.publish("smoke:news", "one") == 1
        assert r.publish("smoke:weather", b"\x00\xff") == 1
        assert r.publish("smoke:other", "nobody") == 0
        assert next_message(listener) == ("message", None, b"smoke:news", b"one")
        assert next_message(listener) == ("pmessage", b"smoke:w*", b"smoke:weather", b"\x00\xff")
        listener.unsubscribe("smoke:news")
        wait_for(lambda: r.publish("smoke:news", "two") == 0, "UNSUBSCRIBE")
        listener.ping()
    heard = []
    with other.pubsub() as listener:
        listener.subscribe(**{"smoke:thread": lambda message: heard.append(message["data"])})
        thread = listener.run_in_thread(sleep_time=0.01)
        wait_for(lambda: r.publish("smoke:thread", "x") == 1, "the thread's subscription")
        wait_for(lambda: heard == [b"x"], heard)
        thread.stop()
        thread.join()


def blocking(r, other):
    assert r.blpop("smoke:absent", timeout=0.05) is None

    def waits_in(command):
        return lambda: any(c["cmd"] == command for c in other.client_list())

    def push():
        wait_for(waits_in("blpop"), "a blocked client")
        other.rpush("smoke:queue", "job")
        wait_for(waits_in("bzpopmin"), "another blocked client")
        other.zadd("smoke:ranked", {"first": 1, "second": 2})

    thread = threading.Thread(target=push)
    thread.start()
    found = r.blpop(["smoke:none", "smoke:queue"], timeout=WAIT_SECONDS)
    assert list(found) == [b"smoke:queue", b"job"], found
    found = r.bzpopmin("smoke:ranked", timeout=WAIT_SECONDS)
    assert list(found) == [b"smoke:ranked", b"first", 1.0], found
    thread.join()
    r.rpush("smoke:from", "a", "b")
    assert r.blmove("smoke:from", "smoke:to", 1, "LEFT", "RIGHT") == b"a"
    assert r.blmpop(1, 2, "smoke:none", "smoke:to", direction="LEFT") == [b"smoke:to", [b"a"]]


def streams(r, other):
    r.delete("smoke:log")
    ids = [r.xadd("smoke:log", {"n": n}) for n in range(20)]
    assert r.xgroup_create("smoke:log", "workers", id="0")
    try:
        r.xgroup_create("smoke:log", "workers")
        raise AssertionError("the group was made twice")
    except redis.ResponseError as error:
        assert "BUSYGROUP" in str(error)

    def entries(reply):
        """RESP3 has a map, and redis-py a list more for each stream."""
        found = reply[b"smoke:log"][0] if isinstance(reply, dict) else reply[0][1]
        return [id for id, _ in found]

    assert entries(r.xreadgroup("workers", "ann", {"smoke:log": ">"}, count=12)) == ids[:12]
    assert entries(other.xreadgroup("workers", "bob", {"smoke:log": ">"})) == ids[12:]
    assert r.xack("smoke:log", "workers", *ids[:10]) == 10
    pending = r.xpending("smoke:log", "workers")
    assert pending["pending"] == 10 and pending["min"] == ids[10]
    assert {x["name"]: x["pending"] for x in pending["consumers"]} == {b"ann": 2, b"bob": 8}
    start, claimed, deleted = r.xautoclaim("smoke:log", "workers", "bob", min_idle_time=0, start_id="0-0", count=2)
    assert [id for id, _ in claimed] == ids[10:12] and deleted == []
    assert r.xinfo_groups("smoke:log")[0]["pending"] == 10
    assert r.xinfo_stream("smoke:log")["length"] == 20
    adder = threading.Timer(0.1, lambda: other.xadd("smoke:log", {"late": 1}, id="9999999999999-1"))
    adder.start()
    late = r.xreadgroup("workers", "ann", {"smoke:log": ">"}, block=1000 * WAIT_SECONDS)
    assert entries(late) == [b"9999999999999-1"]
    adder.join()
    assert r.xtrim("smoke:log", maxlen=5, approximate=False) == 16
    assert [int(fields[b"n"]) for _, fields in r.xrange("smoke:log", max=ids[-1])] == [16, 17, 18, 19]


def locks(r, other):
    held = []

    def work(client, number):
        for _ in range(10):
            with client.lock("smoke:lock", timeout=30, sleep=0.002):
                held.append(number)
                assert len(held) == 1
                held.pop()
                client.set("smoke:sum", int(client.get("smoke:sum") or 0) + 1)

    r.delete("smoke:sum")
    threads = [threading.Thread(target=work, args=(client, n)) for n, client in enumerate((r, other, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(r.get("smoke:sum")) == 30


def pushed_tracking(connect, other):
    """RESP3. The library's own cache wants a server of 7.4; what it stands on is this."""
    heard = []
    with connect(single_connection_client=True) as r:
        r.connection._parser.set_invalidation_push_handler(heard.append)
        r.execute_command("CLIENT", "TRACKING", "ON")
        other.set("smoke:cached", "1")
        assert r.get("smoke:cached") == b"1"
        other.set("smoke:cached", "2")
        wait_for(lambda: r.ping() and heard == [[b"invalidate", [b"smoke:cached"]]], heard)
        assert r.get("smoke:cached") == b"2"
        other.flushdb()
        wait_for(lambda: r.ping() and heard[1:] == [[b"invalidate", None]], heard)


def redirected_tracking(connect, other):
    """RESP2 hears of changes on a second connection."""
    with connect(single_connection_client=True) as r, other.pubsub() as listener:
        listener.subscribe("__redis__:invalidate")
        assert listener.get_message(timeout=WAIT_SECONDS)["type"] == "subscribe"
        listener.connection.send_command("PING")  # answers of a subscriber are messages
        number = [c for c in other.client_list() if c["sub"] == "1"][0]["id"]
        assert r.execute_command("CLIENT", "TRACKING", "ON", "REDIRECT", number) in (True, b"OK")
        r.get("smoke:cached")
        other.set("smoke:cached", "3")
        kind, _, _, keys = next_message(listener)
        assert (kind, keys) == ("message", [b"smoke:cached"])


def secured(connect, tls_port, ca_file):
    options = {"port": int(tls_port), "ssl": True, "ssl_ca_certs": ca_file, "username": "smoke"}
    with connect(**options, password="secret") as r:
        assert r.set("smoke:secret", "x") and r.get("smoke:secret") == b"x"
        assert r.acl_whoami() in ("smoke", b"smoke")
        try:
            r.get("another's")
            raise AssertionError("the user read a key that it may not read")
        except redis.exceptions.NoPermissionError:
            pass
        with r.pubsub() as listener:
            listener.subscribe("smoke:tls")
            wait_for(lambda: r.publish("smoke:tls", "x" * 100_000) == 1, "a subscription over TLS")
            assert next_message(listener)[3] == b"x" * 100_000
    with connect(**options, password="wrong") as r:
        try:
            r.ping()
            raise AssertionError("the wrong password was taken")
        except redis.RedisError as error:  # which one depends on the version of redis-py
            assert isinstance(error, redis.AuthenticationError) or "WRONGPASS" in str(error), error
