"""A real client of each language does what applications do, over RESP2 and RESP3.

    /usr/bin/python3 -m pytest tests/smoke        (-rs tells why one was skipped)

Each client is a program of its own (python/, go/, node/), called with a port and the protocol
version; it checks what its library makes of the answers and exits with 0. How they get their packages:
support/packages.py.
"""

import pathlib
import shutil
import subprocess
import sys

import pytest
from support.packages import FETCHED, fetch, go_program
from support.servers import Server, engines

HERE = pathlib.Path(__file__).resolve().parent
RUN_SECONDS = 60


@pytest.fixture(scope="session")
def python_client():
    """redis-py of Debian for RESP2; RESP3 came with version 5, which is fetched."""
    program = str(HERE / "python" / "smoke.py")
    return {2: [sys.executable, program]}


@pytest.fixture(scope="session")
def python_resp3_client(python_client):
    packages = FETCHED / "python"
    fetch(
        [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--upgrade",
         "--target", str(packages), "-r", str(HERE / "python" / "requirements.txt")],
        "redis-py",
    )  # fmt: skip
    return {3: [*python_client[2], str(packages)]}


@pytest.fixture(scope="session")
def go_client():
    return dict.fromkeys((2, 3), [go_program(HERE / "go", "go-redis")])


@pytest.fixture(scope="session")
def node_client():
    """The program stands beside its packages, where Node looks for them."""
    folder = FETCHED / "node"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "smoke.js"):
        shutil.copy(HERE / "node" / name, folder / name)
    fetch(["npm", "ci", "--no-audit", "--no-fund"], "node-redis", cwd=folder)
    return dict.fromkeys((2, 3), ["node", str(folder / "smoke.js")])


@pytest.fixture(scope="session", params=engines())
def server(request):
    with Server.ingot(request.param) as running:
        yield running


def run(server, command, protocol):
    with server.client() as client:
        client.call("FLUSHALL")
    done = subprocess.run(
        [*command, str(server.port), str(protocol)],
        capture_output=True, text=True, timeout=RUN_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.strip().endswith("ok"), done.stdout
    assert server.alive(), server.log_tail()


def test_python_resp2(server, python_client):
    run(server, python_client[2], 2)


def test_python_resp3(server, python_resp3_client):
    run(server, python_resp3_client[3], 3)


@pytest.mark.parametrize("protocol", [2, 3])
def test_go(server, go_client, protocol):
    run(server, go_client[protocol], protocol)


@pytest.mark.parametrize("protocol", [2, 3])
def test_node(server, node_client, protocol):
    run(server, node_client[protocol], protocol)
