"""SLOWLOG and LATENCY beside redis-server, and what they tell of the disk."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from support.servers import Server, engines

SECRETS = [
    (["AUTH", "secret"], ["AUTH", "(redacted)"]),
    (["AUTH", "user", "secret"], ["AUTH", "(redacted)", "(redacted)"]),
    (["HELLO", "2", "AUTH", "user", "secret", "SETNAME", "x"],
     ["HELLO", "2", "AUTH", "(redacted)", "(redacted)", "SETNAME", "x"]),
    (["CONFIG", "SET", "masterauth", "secret", "timeout", "0"],
     ["CONFIG", "SET", "masterauth", "(redacted)", "timeout", "0"]),
    (["MIGRATE", "127.0.0.1", "1", "nokey", "0", "10", "AUTH", "secret"],
     ["MIGRATE", "127.0.0.1", "1", "nokey", "0", "10", "AUTH", "(redacted)"]),
]  # fmt: skip


@pytest.fixture(params=["redis"] + engines())
def server(request):
    options = {"slowlog-log-slower-than": "0", "latency-monitor-threshold": "20"}
    made = Server.redis(options) if request.param == "redis" else Server.ingot(request.param, options)
    with made as running:
        yield running


def client_of(server):
    return redis.Redis(port=server.port, decode_responses=True)


def raw(client, *words):
    connection = client.connection_pool.get_connection("_")
    try:
        connection.send_command(*words)
        return connection.read_response()
    finally:
        client.connection_pool.release(connection)


def try_raw(client, *words):
    try:
        return raw(client, *words)
    except redis.ResponseError as error:
        return error


def test_the_slow_log(server):
    client = client_of(server)
    client.client_setname("me")
    raw(client, "SLOWLOG", "RESET")
    client.set("key", "x" * 200)
    client.rpush("list", *range(40))
    client.get("key")
    client.lrange("list", 0, 2)
    with client.pipeline(transaction=True) as pipe:
        pipe.set("a", "b").get("a").execute()
    found = raw(client, "SLOWLOG", "GET", "-1")
    assert [entry[3] for entry in found] == [
        ["GET", "a"], ["SET", "a", "b"], ["MULTI"], ["LRANGE", "list", "0", "2"], ["GET", "key"],
        ["RPUSH", "list", *map(str, range(29)), "... (11 more arguments)"],
        ["SET", "key", "x" * 128 + "... (72 more bytes)"], ["SLOWLOG", "RESET"],
    ]  # fmt: skip
    identities = [entry[0] for entry in found]
    assert identities == list(range(identities[0], identities[0] - len(found), -1))
    for entry in found:
        assert abs(entry[1] - time.time()) < 60
        assert 0 <= entry[2] < 1_000_000
        assert entry[4].startswith("127.0.0.1:")
        assert entry[5] == "me"
    assert len(raw(client, "SLOWLOG", "GET", "3")) == 3
    assert raw(client, "SLOWLOG", "LEN") > len(found)
    assert raw(client, "SLOWLOG", "RESET") == "OK"
    assert raw(client, "SLOWLOG", "LEN") == 1
    for words in (["GET", "-2"], ["GET", "x"], ["GET", "1", "2"], ["LEN", "1"], ["NONE"]):
        assert isinstance(try_raw(client, "SLOWLOG", *words), redis.ResponseError)


@pytest.mark.parametrize("words, shown", SECRETS)
def test_secrets_are_not_logged(server, words, shown):
    client = client_of(server)
    try_raw(client, *words)
    assert raw(client, "SLOWLOG", "GET", "1")[0][3] == shown


def test_the_slow_log_is_bounded_and_can_be_off(server):
    client = client_of(server)
    client.config_set("slowlog-max-len", 5)
    for i in range(20):
        client.set(f"k{i}", i)
    assert raw(client, "SLOWLOG", "LEN") == 5
    assert [entry[3][1] for entry in raw(client, "SLOWLOG", "GET")][-1] == "k16"
    client.config_set("slowlog-log-slower-than", 1_000_000)
    raw(client, "SLOWLOG", "RESET")
    client.set("k", "v")
    assert raw(client, "SLOWLOG", "LEN") == 0
    client.config_set("slowlog-log-slower-than", -1)
    raw(client, "DEBUG", "SLEEP", "0.01")
    assert raw(client, "SLOWLOG", "LEN") == 0


def test_spikes(server):
    client = client_of(server)
    client.config_set("latency-monitor-threshold", 200)  # what a busy machine does not reach by itself
    raw(client, "LATENCY", "RESET")
    assert raw(client, "LATENCY", "LATEST") == []
    assert raw(client, "LATENCY", "HISTORY", "command") == []
    assert "no latency spike was observed" in raw(client, "LATENCY", "DOCTOR")
    assert str(try_raw(client, "LATENCY", "GRAPH", "command")) == "No samples available for event 'command'"
    raw(client, "DEBUG", "SLEEP", "0.5")
    time.sleep(1.1)
    raw(client, "DEBUG", "SLEEP", "1")
    latest = {event[0]: event[1:] for event in raw(client, "LATENCY", "LATEST")}
    at_s, last_ms, most_ms = latest["command"]
    assert abs(at_s - time.time()) < 60
    assert 1000 <= last_ms < 10_000
    assert most_ms >= last_ms
    history = raw(client, "LATENCY", "HISTORY", "command")
    assert len(history) == 2
    assert history[0][0] < history[1][0]
    assert 500 <= history[0][1] < history[1][1] == last_ms
    graph = raw(client, "LATENCY", "GRAPH", "command").split("\n")
    assert graph[0] == f"command - high {last_ms} ms, low {history[0][1]} ms (all time high {most_ms} ms)"
    assert graph[1] == "-" * 80
    assert graph[2:7] == [" #", " |", " |", "_|", "  "]
    assert graph[7][1] in "01" and graph[8] == "ss"
    report = raw(client, "LATENCY", "DOCTOR")
    assert report.startswith("Dave, I have observed latency spikes in this Redis instance.")
    assert "1. command: 2 latency spikes (average " in report
    assert raw(client, "LATENCY", "RESET", "nothing") == 0
    assert raw(client, "LATENCY", "RESET", "command") == 1
    assert raw(client, "LATENCY", "HISTORY", "command") == []
    client.config_set("latency-monitor-threshold", 0)
    raw(client, "DEBUG", "SLEEP", "0.5")
    assert raw(client, "LATENCY", "LATEST") == []
    assert "Latency monitoring is disabled" in raw(client, "LATENCY", "DOCTOR")


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2], strict=True))


def test_histograms(server):
    client = client_of(server)
    client.config_resetstat()
    for i in range(300):
        client.set(f"k{i}", i)
        client.get(f"k{i}")
    raw(client, "DEBUG", "SLEEP", "0.05")
    client.config_get("timeout")
    all_of_them = pairs(raw(client, "LATENCY", "HISTOGRAM"))
    assert {"set", "get", "debug|sleep", "config|get"} - set(all_of_them) in ({"debug|sleep"}, set())
    counted = pairs(all_of_them["set"])
    assert counted["calls"] == 300
    steps = list(pairs(counted["histogram_usec"]).items())
    assert steps == sorted(steps)
    assert steps[-1][1] == 300
    assert {bound for bound, _ in steps} <= {1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113, 4227, 8454, 16909,
                                             33818, 67637, 135274, 270549, 541098}  # fmt: skip
    some = raw(client, "LATENCY", "HISTOGRAM", "get", "nothing", "config|get", "config")
    assert some[::2] == ["get", "config|get", "config|resetstat", "config|get"] or \
        some[::2] == ["get", "config|get", "config|get", "config|resetstat"]  # fmt: skip
    info = client.info("latencystats")
    assert info["latency_percentiles_usec_set"].keys() == {"p50", "p99", "p99.9"}
    assert 0 < info["latency_percentiles_usec_set"]["p50"] <= info["latency_percentiles_usec_set"]["p99.9"] < 1e6
    client.config_set("latency-tracking-info-percentiles", "0 12.5 100")
    assert client.info("latencystats")["latency_percentiles_usec_get"].keys() == {"p0", "p12.5", "p100"}
    client.config_set("latency-tracking", "no")
    assert client.info("latencystats") == {}
    client.get("k")
    assert pairs(pairs(raw(client, "LATENCY", "HISTOGRAM", "get"))["get"])["calls"] == 300
    client.config_resetstat()
    assert raw(client, "LATENCY", "HISTOGRAM", "get") == []


def test_where_the_time_of_writes_goes(tmp_path, monkeypatch):
    """A slow fsync holds up its own group, and in the queue those who come meanwhile."""
    faults = tmp_path / "faults"
    faults.write_text("")
    monkeypatch.setenv("INGOT_FAULT_FILE", str(faults))
    options = {"latency-monitor-threshold": "20", "appendfsync": "always"}
    with Server.ingot("rocksdb", options) as server:
        first, second = client_of(server), client_of(server)
        assert first.set("a", 1) and second.set("b", 1)
        faults.write_text("slow-sync")
        time.sleep(0.05)
        with ThreadPoolExecutor() as pool:
            set_a = pool.submit(first.set, "a", 2)
            time.sleep(0.2)
            assert second.set("b", 2) and set_a.result()
        latest = {event[0]: event[1:] for event in raw(first, "LATENCY", "LATEST")}
        assert latest.keys() == {"commit", "queue"}
        assert latest["commit"][2] >= 500
        assert latest["queue"][2] >= 200
        assert "Writing to the log was slow" in raw(first, "LATENCY", "DOCTOR")
