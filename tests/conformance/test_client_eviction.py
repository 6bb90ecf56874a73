"""maxmemory-clients: who takes most memory is cut until the others fit, but for those with CLIENT NO-EVICT. Beside redis-server."""

import re
import time

import pytest
from support.resp import CLOSED
from support.servers import Server, engines

MB = 1 << 20


@pytest.fixture(params=["redis"] + engines())
def make(request):
    def make_one(options):
        return Server.redis(options) if request.param == "redis" else Server.ingot(request.param, options)

    return make_one


def queue(client, megabytes):
    """What waits in MULTI counts. Whether it was taken."""
    client.send("MULTI")
    for _ in range(megabytes):
        client.send("RPUSH", "k", *(b"x" * 1000 for _ in range(1000)))
    replies = [client.read()]
    while replies[-1] != CLOSED and len(replies) <= megabytes:
        replies.append(client.read())
    return replies[-1] != CLOSED


def is_cut(client, seconds=5):
    """It is told nothing more, and sends nothing that would count."""
    return client.has_input(seconds) and client.read() == CLOSED


def evicted(admin):
    return int(re.search(rb"evicted_clients:(\d+)", admin.call("INFO", "stats").value)[1])


@pytest.mark.parametrize("options", [{"maxmemory-clients": "12mb"}, {"maxmemory": "120mb", "maxmemory-clients": "10%"}], ids=["bytes", "percent"])
def test_the_largest_is_cut(make, options):
    with make(options) as server, server.client() as admin, server.client() as small, server.client() as large:
        assert queue(small, 2) and not is_cut(small, 0.5)
        assert evicted(admin) == 0
        assert not queue(large, 12) or is_cut(large)
        assert evicted(admin) == 1
        assert small.call("PING").value == b"QUEUED"
        admin.call("CONFIG", "SET", "maxmemory-clients", "1mb")
        assert is_cut(small)
        assert evicted(admin) == 2 and admin.call("PING").value == b"PONG"
        admin.call("CONFIG", "RESETSTAT")
        assert evicted(admin) == 0
        admin.call("CONFIG", "SET", "maxmemory-clients", "0")
        with server.client() as another:
            assert queue(another, 14) and not is_cut(another, 0.5)


def test_who_is_spared(make):
    """What it takes counts all the same, so that others go in its place."""
    with make({"maxmemory-clients": "12mb"}) as server, server.client() as admin, server.client() as spared, server.client() as other:
        admin.call("CLIENT", "NO-EVICT", "ON")
        spared.call("CLIENT", "NO-EVICT", "ON")
        assert queue(spared, 9) and not is_cut(spared, 0.5)
        assert not queue(other, 5) or is_cut(other)
        assert evicted(admin) == 1
        assert spared.call("PING").value == b"QUEUED"


def test_subscribers_that_do_not_read(make):
    options = {"maxmemory-clients": "12mb", "client-output-buffer-limit": ["pubsub", "0", "0", "0"]}
    with make(options) as server, server.client() as admin, server.client() as deaf:
        deaf.call("SUBSCRIBE", "c")
        deadline = time.monotonic() + 20
        while evicted(admin) == 0:
            admin.call("PUBLISH", "c", b"x" * MB)
            time.sleep(0.02)
            assert time.monotonic() < deadline
        assert admin.call("PUBLISH", "c", "x").value == 0
