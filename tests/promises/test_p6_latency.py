"""P6: the latency of cached reads does not move while others read cold data. RocksDB only: LevelDB
cannot tell whether a read would wait for the disk."""

import multiprocessing
import random
import time

import pytest
from harness import FULL, MB, info, ingot, load, percentile, timed_ms
from support.resp import Client
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis has no cold data")

COLD_KEYS = 120_000
VALUE_BYTES = 2000
HOT_KEYS = 100
SECONDS = 15 if FULL else 2.5  # of each measurement
LOADERS = 2  # processes, so that Python's lock does not stand between them and the measurement
PAUSE_S = 0.01  # of a loader after each round: it is to use the disk, not all of the processor
CONNECTIONS = 4  # of each
DEPTH = 20
P99_MAX_MS = 20.0


def read_in_pipelines(port, seed, keys, stop, counts, index):
    """A loader: GETs of random keys on several connections at the same time."""
    rng = random.Random(seed)
    clients = [Client(port, timeout=30) for _ in range(CONNECTIONS)]
    while not stop.is_set():
        for client in clients:
            for _ in range(DEPTH):
                client.send("GET", f"{keys[0]}:{rng.randrange(keys[1])}")
        for client in clients:
            for _ in range(DEPTH):
                assert client.read().kind == "bulk"
        counts[index] += CONNECTIONS * DEPTH
        time.sleep(PAUSE_S)


def measure(client, rng):
    times = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        reply, took_ms = timed_ms(client, "GET", f"hot:{rng.randrange(HOT_KEYS)}")
        assert reply.kind == "bulk"
        times.append(took_ms)
    return times


def measure_beside(server, client, rng, keys):
    """Latencies while loaders read keys[0]:0 ... of keys[1] keys; and the loaders' GETs."""
    processes = multiprocessing.get_context("fork")
    stop, counts = processes.Event(), processes.Array("q", LOADERS)
    loaders = [
        processes.Process(target=read_in_pipelines,
                          args=(server.port, rng.random(), keys, stop, counts, i), daemon=True)
        for i in range(LOADERS)
    ]  # fmt: skip
    for loader in loaders:
        loader.start()
    try:
        times = measure(client, rng)
    finally:
        stop.set()
        for loader in loaders:
            loader.join(30)
    assert [loader.exitcode for loader in loaders] == [0] * LOADERS
    return times, sum(counts)


def test_cached_reads_beside_cold_reads(rng):
    with ingot("rocksdb", maxmemory="96mb", direct_reads="yes") as server:
        assert COLD_KEYS * VALUE_BYTES > 2 * 96 * MB
        with server.client(timeout=30) as client:
            load(client, ((f"cold:{i}", rng.randbytes(VALUE_BYTES)) for i in range(COLD_KEYS)))
            load(client, ((f"hot:{i}", rng.randbytes(VALUE_BYTES)) for i in range(HOT_KEYS)))
        server.restart()
        with server.client(timeout=30) as client:
            for i in range(HOT_KEYS):
                client.call("GET", f"hot:{i}")
            idle = measure(client, rng)
            beside_hot, hot_reads = measure_beside(server, client, rng, ("hot", HOT_KEYS))
            read_before = int(info(client, "engine")["engine_bytes_read"])
            beside_cold, cold_reads = measure_beside(server, client, rng, ("cold", COLD_KEYS))
            read_bytes = int(info(client, "engine")["engine_bytes_read"]) - read_before
    for name, times, others in (
        ("alone", idle, 0), ("beside cached reads", beside_hot, hot_reads),
        ("beside cold reads", beside_cold, cold_reads),
    ):  # fmt: skip
        print(f"{name}: p50 {percentile(times, 0.5):.3f} ms, p99 {percentile(times, 0.99):.3f} ms, "
              f"max {max(times):.1f} ms, {others} reads by others")  # fmt: skip
    ratio = percentile(beside_cold, 0.99) / percentile(beside_hot, 0.99)
    print(f"p99 beside cold reads is {ratio:.2f} times p99 beside cached reads; {read_bytes >> 20} MB read")
    assert read_bytes > 20 * MB, "the cold reads were not cold: this measured nothing"
    assert percentile(beside_cold, 0.99) < P99_MAX_MS
