"""/metrics: what Prometheus reads, checked with its own promtool, and clients that misbehave."""

import contextlib
import http.client
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest
import redis
from support.servers import Server, engines, free_port, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis has no such page")


@pytest.fixture(params=engines())
def server(request):
    with Server.ingot(request.param, {"metrics-port": free_port()}) as made:
        yield made


def page(port, path="/metrics", method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode(), dict(response.getheaders())
    finally:
        connection.close()


def samples(text):
    """name{labels} -> value"""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, value = line.rsplit(" ", 1)
        assert name not in found
        found[name] = float(value)
    return found


def test_the_page(server):
    port = server.options["metrics-port"]
    client = redis.Redis(port=server.port)
    for i in range(100):
        client.set(f"k{i}", i)
    client.get("k1")
    client.get("none")
    with contextlib.suppress(redis.ResponseError):
        client.lpush("k1", "x")
    client.config_get("timeout")
    status, text, headers = page(port)
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, timeout=30)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    found = samples(text)
    assert found['ingot_commands_total{command="set"}'] == 100
    assert found['ingot_commands_total{command="config|get"}'] == 1
    assert found['ingot_command_failures_total{command="lpush"}'] == 1
    assert found['ingot_errors_total{error="WRONGTYPE"}'] == 1
    assert found['ingot_command_duration_seconds_count{command="set"}'] == 100
    assert found['ingot_command_duration_seconds_bucket{command="set",le="+Inf"}'] == 100
    assert 0 < found['ingot_command_duration_seconds_sum{command="set"}'] < 10
    assert found['ingot_keys{db="0"}'] == 100
    assert found["ingot_keyspace_hits_total"] == found["ingot_keyspace_misses_total"] == 1
    assert found["ingot_connected_clients"] == 1
    assert found["ingot_engine_healthy"] == 1
    assert found["ingot_group_units_sum"] >= found["ingot_group_units_count"] > 0
    client.execute_command("DEBUG", "RELOAD")
    found = samples(page(port)[1])
    assert sum(value for name, value in found.items() if name.startswith("ingot_engine_level_files")) > 0


def test_other_requests(server):
    port = server.options["metrics-port"]
    assert page(port, "/")[0] == 404
    assert page(port, "/metrics?x=y")[0] == 200
    assert page(port, method="POST")[0] == 405
    status, text, headers = page(port, method="HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 1000
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(3):  # kept alive
        connection.request("GET", "/metrics")
        assert connection.getresponse().read().startswith(b"# HELP")
    connection.close()


def test_the_port_comes_and_goes(server):
    client = redis.Redis(port=server.port)
    first, second = server.options["metrics-port"], free_port()
    client.config_set("metrics-port", second)
    assert page(second)[0] == 200
    with pytest.raises(ConnectionError):
        page(first)
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        with pytest.raises(redis.ResponseError, match="Unable to listen on this port"):
            client.config_set("metrics-port", taken.getsockname()[1])
    assert page(second)[0] == 200
    client.execute_command("CONFIG", "SET", "bind", "127.0.0.1")
    assert page(second)[0] == 200
    client.config_set("metrics-port", 0)
    with pytest.raises(ConnectionError):
        page(second)
    assert client.ping()


def test_clients_that_misbehave(server):
    port = server.options["metrics-port"]
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    for connection in silent[:40]:
        connection.sendall(b"GET /met")
    for connection in silent[40:50]:
        connection.sendall(b"\x00\xff" * 2000)
    for connection in silent[50:60]:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 20_000)
    for connection in silent[60:80]:
        connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" * 50)  # and reads nothing
    assert redis.Redis(port=server.port).ping()
    for connection in silent:
        connection.close()
    deadline = time.monotonic() + 20
    while True:
        with contextlib.suppress(OSError):
            assert page(port)[0] == 200
            break
        assert time.monotonic() < deadline
    descriptors = subprocess.run(["ls", f"/proc/{server.process.pid}/fd"], capture_output=True, text=True, timeout=10)
    assert len(re.findall(r"\d+", descriptors.stdout)) < 100


@pytest.mark.timed
def test_silent_clients_give_way(server):
    port = server.options["metrics-port"]
    with contextlib.ExitStack() as open_ones:
        for _ in range(200):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        begin = time.monotonic()
        assert page(port)[0] == 200
        assert time.monotonic() - begin < 3


def test_silent_clients_are_closed(server):
    port = server.options["metrics-port"]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        begin = time.monotonic()
        assert connection.recv(1) == b""
        assert 5 < time.monotonic() - begin < 25


@pytest.mark.timed
def test_many_scrapers_under_load(server):
    """A dozen that scrape all the time and some that never read: nobody's commands wait for them, and memory stays."""
    port, stop = server.options["metrics-port"], threading.Event()
    pages, failures = [], []

    def scrape():
        while not stop.is_set():
            try:
                status, text, _ = page(port)
                assert status == 200 and text.startswith("# HELP")
                pages.append(len(text))
            except Exception as failure:
                failures.append(failure)
                return

    def resident_kb():
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{server.process.pid}/status").read()).group(1))

    client = redis.Redis(port=server.port)
    deaf = []
    for _ in range(20):
        deaf.append(socket.create_connection(("127.0.0.1", port), timeout=10))
        deaf[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 30)
    before = resident_kb()
    threads = [threading.Thread(target=scrape) for _ in range(12)]
    for thread in threads:
        thread.start()
    waits, end = [], time.monotonic() + 4
    while time.monotonic() < end and not failures:
        began = time.monotonic()
        client.set(f"key:{len(waits) % 100}", "value")
        waits.append(time.monotonic() - began)
    stop.set()
    for thread in threads:
        thread.join()
    for connection in deaf:
        connection.close()
    if failures:
        raise failures[0]
    print(f"{len(pages)} pages, {len(waits)} writes, {max(waits):.3f} s at most")
    assert len(pages) > 50
    assert sorted(waits)[len(waits) * 99 // 100] < 0.2 and max(waits) < 1
    assert resident_kb() < before + 32_000
