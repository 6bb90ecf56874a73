"""A real client of each language does what applications do, over RESP2 and RESP3.

    /usr/bin/python3 -m pytest tests/smoke        (-rs tells why one was skipped)

Each client is a program of its own (python/, go/, node/, java/, rust/), called with a port, the protocol
version, the port of TLS and the certificate of its CA; it checks what its library makes of the answers and
exits with 0. How they get their packages: support/packages.py.
"""

import pathlib
import sys

import pytest
from support.packages import go_program, java_programs, node_programs, python_packages, rust_program

HERE = pathlib.Path(__file__).resolve().parent
PROTOCOLS = pytest.mark.parametrize("protocol", [2, 3])


@pytest.fixture
def run_client(run, server):
    def run_one(command, protocol):
        tls = (server.options["tls-port"], server.options["tls-ca-cert-file"])
        run([*command, server.port, protocol, *tls])

    return run_one


def test_python_resp2(run_client):
    """redis-py of Debian."""
    run_client([sys.executable, HERE / "python" / "smoke.py"], 2)


def test_python_resp3(run_client):
    """RESP3 came with version 5, which is fetched."""
    packages = python_packages(HERE / "python" / "requirements.txt", "redis-py")
    run_client([sys.executable, HERE / "python" / "smoke.py", packages], 3)


@PROTOCOLS
def test_go(run_client, protocol):
    run_client([go_program(HERE / "go", "go-redis")], protocol)


@PROTOCOLS
def test_node_redis(run_client, protocol):
    run_client(["node", node_programs(HERE / "node", "node-redis") / "smoke.js"], protocol)


def test_ioredis(run_client):
    run_client(["node", node_programs(HERE / "node", "ioredis") / "ioredis.js"], 2)


@pytest.mark.full
@PROTOCOLS
def test_jedis(run_client, protocol):
    run_client(["java", "-cp", java_programs(HERE / "java", "Jedis"), "JedisSmoke"], protocol)


@pytest.mark.full
@PROTOCOLS
def test_lettuce(run_client, protocol):
    run_client(["java", "-cp", java_programs(HERE / "java", "Lettuce"), "LettuceSmoke"], protocol)


@pytest.mark.full
@PROTOCOLS
def test_rust(run_client, protocol):
    run_client([rust_program(HERE / "rust", "redis-rs")], protocol)
