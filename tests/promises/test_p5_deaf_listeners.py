"""P5 for all who are told at once: clients that listen by MONITOR, SUBSCRIBE and CLIENT TRACKING, and never read, during a
load of writes and messages. Memory stays, those who read miss nothing, and nobody else waits."""

import time

import pytest
from harness import Crew, eventually, info, timed_ms
from large_values import slow_socket
from memory_bound import limited
from support.effort import FULL
from support.resp import encode
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

DEAF = 15  # of each kind
SECONDS = 30 if FULL else 5
WAIT_MAX_MS = 1000
KINDS = {
    "MONITOR": [("MONITOR",)],
    "SUBSCRIBE": [("SUBSCRIBE", "news", "__keyevent@0__:set")],
    "PSUBSCRIBE": [("PSUBSCRIBE", "*")],
    "TRACKING": [("HELLO", 3), ("CLIENT", "TRACKING", "ON", "BCAST")],
    "TRACKING of what it has read": [("HELLO", 3), ("CLIENT", "TRACKING", "ON"), ("MGET", *(f"key:{i}" for i in range(2000)))],
}


def deaf(server, commands):
    sock = slow_socket(server)
    sock.sendall(b"".join(map(encode, commands)))
    return sock


def work(server, name, stop):
    value = b"x" * (20_000 if name == 0 else 500)  # what connections send without copying it, too
    with server.client(timeout=60) as client:
        number = 0
        while not stop.is_set():
            commands = []
            for _ in range(20):
                number += 1
                commands += [("SET", f"key:{number % 2000}", value), ("PUBLISH", "news", b"y" * 500)]
            assert not any(reply.is_error() for reply in client.pipeline(commands)), name


@pytest.mark.timed
@pytest.mark.seconds(180)
@pytest.mark.parametrize("limits", ["the usual ones", "none"])
def test_who_never_reads_costs_nobody_anything(engine, limits):
    with limited(engine, notify_keyspace_events="KEA") as (server, memory), server.client(timeout=60) as client:
        limit = "8mb 2mb 5" if limits == "the usual ones" else "0 0 0"
        for kind in ("normal", "pubsub"):
            assert client.call("CONFIG", "SET", "client-output-buffer-limit", f"{kind} {limit}").value == b"OK"
        good = server.client(timeout=60)
        good.call("SUBSCRIBE", "counted")
        socks = [deaf(server, commands) for commands in KINDS.values() for _ in range(DEAF)]
        eventually(lambda: int(info(client, "clients")["tracking_clients"]) == 2 * DEAF, 20, "all listen")
        worst_ms, told = 0.0, 0
        with Crew() as crew:
            for name in range(3):
                crew.add(work, server, name, crew.stop)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end and crew.is_working():
                reply, took_ms = timed_ms(client, "PUBLISH", "counted", told)
                worst_ms = max(worst_ms, took_ms)
                assert not reply.is_error()
                assert good.read(30).value[2].value == b"%d" % told
                told += 1
        memory.check("clients that listen and do not read")
        cut = int(info(client, "stats")["client_output_buffer_limit_disconnections"])
        print(f"{told} messages, each answered within {worst_ms:.0f} ms, {cut} of {len(socks)} cut")
        assert worst_ms < WAIT_MAX_MS and told > 20
        # Invalidations are short, so those who only track may stay.
        assert limits == "none" or cut >= 3 * DEAF
        for sock in [*socks, good.socket]:
            sock.close()
        eventually(lambda: int(info(client, "clients")["connected_clients"]) == 1, 20, "all have gone")
        eventually(lambda: int(info(client, "clients")["tracking_clients"]) == 0, 20, "and nothing is remembered of them")
