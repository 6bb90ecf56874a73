"""redis-benchmark with all its tests, and redis-cli in its modes: each ends in time and prints what it prints of Redis."""

import csv
import os
import re
import select
import subprocess
import time

import pytest
from support.effort import FULL
from support.servers import Server, engines

# Those that redis-benchmark 7.0 has under -t all; LPUSH alone stands there twice.
BENCHMARKS = {"PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET", "SPOP", "ZADD",
              "ZPOPMIN", "LPUSH (needed to benchmark LRANGE)", "LRANGE_100 (first 100 elements)", "LRANGE_300 (first 300 elements)",
              "LRANGE_500 (first 500 elements)", "LRANGE_600 (first 600 elements)", "MSET (10 keys)"}  # fmt: skip
REQUESTS = 20_000 if FULL else 1000


@pytest.fixture(scope="module", params=engines())
def server(request):
    with Server.ingot(request.param, {"maxmemory-policy": "allkeys-lfu"}) as running:
        yield running


@pytest.fixture
def filled(server):
    """A key of each type, one of them the biggest, and a hundred small ones."""
    with server.client() as client:
        client.call("FLUSHALL")
        client.call("MSET", *(word for i in range(100) for word in (f"small:{i:03}", i)))
        client.call("SET", "big:string", "x" * 50_000)
        client.call("RPUSH", "big:list", *range(500))
        client.call("SADD", "big:set", *range(400))
        client.call("HSET", "big:hash", *range(600))
        client.call("ZADD", "big:zset", *range(200))
        for i in range(7):
            client.call("XADD", "big:stream", "*", "n", i)
    return server


def cli(server, *words, typed=b"", seconds=60):
    done = subprocess.run(["redis-cli", "-p", str(server.port), *map(str, words)], input=typed, capture_output=True, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.alive(), server.log_tail()
    return done.stdout.decode()


@pytest.mark.parametrize("words", [(), ("-P", "16"), ("--threads", "2"), ("-3", "-r", "1000", "-d", "300"), ("-k", "0", "-c", "5")])
def test_benchmark(server, words):
    with server.client() as client:
        client.call("FLUSHALL")
    requests = REQUESTS // 10 if "-k" in words else REQUESTS
    done = subprocess.run(["redis-benchmark", "-p", str(server.port), "-n", str(requests), "--csv", *words], capture_output=True, text=True,
                          timeout=240)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rror" not in done.stdout + done.stderr, done.stdout + done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert {row["test"] for row in rows} == BENCHMARKS
    assert all(float(row["rps"]) > 0 for row in rows)


def test_benchmark_of_a_command(server):
    words = ["redis-benchmark", "-p", str(server.port), "-n", "1000", "-P", "10", "-r", "100", "-q", "eval", "return redis.call('incr', KEYS[1])",
             "1", "key:__rand_int__"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "requests per second" in done.stdout, done.stdout + done.stderr
    with server.client() as client:
        keys = client.call("KEYS", "key:000000000*").value
        assert sum(int(reply.value) for reply in client.call("MGET", *(key.value for key in keys)).value) >= 1000


def test_bigkeys(filled):
    text = cli(filled, "--bigkeys", "-i", "0.001")
    assert "Sampled 106 keys in the keyspace!" in text
    for kind, size in (("string", "50000 bytes"), ("list", "500 items"), ("set", "400 members"), ("hash", "300 fields"),
                       ("zset", "100 members"), ("stream", "7 entries")):  # fmt: skip
        assert re.search(rf"Biggest +{kind} found '\"big:{kind}\"' has {size}", text), (kind, text)


def test_memkeys(filled):
    text = cli(filled, "--memkeys")
    assert "Sampled 106 keys in the keyspace!" in text
    assert re.search(r"Biggest +string found '\"big:string\"' has \d{5,} bytes", text), text
    assert len(re.findall(r"Biggest +\w+ found '\"big:", text)) == 6


def test_hotkeys(filled):
    text = cli(filled, "--hotkeys")
    assert "Sampled 106 keys in the keyspace!" in text


def test_scan(filled):
    names = cli(filled, "--scan", "--pattern", "small:*").split()
    assert sorted(names) == [f"small:{i:03}" for i in range(100)]
    assert len(cli(filled, "--scan").split()) == 106
    assert sorted(cli(filled, "--scan", "--quoted-pattern", '"big:\\x73*"').split()) == ["big:set", "big:stream", "big:string"]


def test_pipe(server):
    lines = b"".join(b"*3\r\n$3\r\nSET\r\n$8\r\nq:%06d\r\n$5\r\n%05d\r\n" % (i, i) for i in range(20_000))
    assert "errors: 0, replies: 20000" in cli(server, "--pipe", typed=lines + b"")
    failing = lines + b"LPUSH q:000001 x\r\n" * 10
    text = subprocess.run(["redis-cli", "-p", str(server.port), "--pipe"], input=failing, capture_output=True, timeout=60)
    assert b"errors: 10, replies: 20010" in text.stdout
    with server.client() as client:
        assert client.call("GET", "q:019999").value == b"19999"


def test_eval(server, tmp_path):
    script = tmp_path / "script.lua"
    script.write_text("redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], ARGV, redis.call('GET', KEYS[1])}")
    text = cli(server, "--eval", script, "one", ",", "two", "three")
    assert text.split() == ["one", "two", "three", "two"]


def test_resp3_and_forms(server):
    with server.client() as client:
        client.call("DEL", "h")
        client.call("HSET", "h", "a", "1")
    assert cli(server, "-3", "HGETALL", "h") == "a 1\n"
    assert cli(server, "--no-raw", "-3", "HGETALL", "h") == '1# "a" => "1"\n'
    assert cli(server, "-3", "--json", "HGETALL", "h") == '{"a":"1"}\n'
    assert cli(server, "--csv", "HGETALL", "h") == '"a","1"\n'
    assert cli(server, "-r", "3", "-i", "0.01", "PING") == "PONG\n" * 3
    assert cli(server, "-x", "SET", "x", typed=b"from the input") == "OK\n"
    assert cli(server, "-n", "3", "DBSIZE") == "0\n"
    assert cli(server, "GET", "x") == "from the input\n"
    assert cli(server, typed=b"SELECT 2\nSET only here\nMULTI\nGET only\nEXEC\nHELP @string\nGET x\n").splitlines()[:4] == ["OK", "OK", "OK", "QUEUED"]
    assert subprocess.run(["redis-cli", "-p", str(server.port), "-e", "NOSUCH"], capture_output=True, timeout=20).returncode == 1


def watched(server, *words, seconds=30, enough):
    """What a mode without an end prints to a terminal, until `enough` matches; then it is ended."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(["redis-cli", "-p", str(server.port), *map(str, words)], stdout=theirs, stderr=theirs,
                               stdin=subprocess.DEVNULL)  # fmt: skip
    text, deadline = b"", time.monotonic() + seconds
    try:
        while not re.search(enough, text, re.DOTALL):
            ready = select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, text
            text += os.read(ours, 65536)
    finally:
        process.terminate()  # SIGINT is ignored by what runs in the background
        process.wait(10)
        os.close(ours)
        os.close(theirs)
    assert server.alive(), server.log_tail()
    return text


def test_stat(server):
    text = watched(server, "--stat", "-i", "0.1", enough=rb"(\d+ +[\d.]+[KMG] +\d+ +\d+ +\d+ \(\+\d+\) +\d+ *\s+){3}")
    assert re.search(rb"keys +mem +clients +blocked +requests", text)


def test_latency(server):
    assert re.fullmatch(r"\d+ \d+ [\d.]+ \d+\n", cli(server, "--latency", "-i", "0.3", seconds=20))
    watched(server, "--latency", enough=rb"min: \d+, max: \d+, avg: [\d.]+ \([1-9]\d* samples\)")
    watched(server, "--latency-history", "-i", "0.3", enough=rb"(samples\) -- 0\.3\d seconds range.*){2}")
    watched(server, "--latency-dist", "-i", "0.3", enough=rb"\.01 +\.125.*\n.*\n")


def test_lru_test(server):
    text = watched(server, "--lru-test", "10000", enough=rb"(\d+ Gets/sec \| Hits: \d+ [^\n]*\n){2}")
    assert b"rror" not in text


def test_subscribe_and_monitor(server):
    def publish_soon(count):
        with server.client() as client:
            return [client.call("PUBLISH", "news", f"message {i}").value for i in range(count)]

    def until_told(words, enough):
        process = subprocess.Popen(["redis-cli", "-p", str(server.port), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL)  # fmt: skip
        text, deadline = b"", time.monotonic() + 20
        try:
            while not re.search(enough, text, re.DOTALL):
                assert time.monotonic() < deadline, text
                publish_soon(2)
                if select.select([process.stdout], [], [], 0.05)[0]:
                    text += os.read(process.stdout.fileno(), 65536)
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()
        return text

    assert b"subscribe\nnews\n1\n" in until_told(["SUBSCRIBE", "news"], rb"message\nnews\nmessage 0\nmessage\nnews\nmessage 1\n")
    until_told(["PSUBSCRIBE", "n*"], rb"pmessage\nn\*\nnews\nmessage 1\n")
    until_told(["-3", "SUBSCRIBE", "news"], rb"message.*message 1")
    told = until_told(["MONITOR"], rb'"PUBLISH" "news" "message 0".*"PUBLISH" "news" "message 1"')
    assert told.startswith(b"OK\n") and re.search(rb"\n\d+\.\d{6} \[0 127\.0\.0\.1:\d+\] \"PUBLISH\" \"news\" \"message 0\"\n", told)
