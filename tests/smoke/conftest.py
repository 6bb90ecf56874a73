"""Real clients and programs: nothing but their own libraries and a running Ingot. See test_clients.py and test_programs.py."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from support.servers import Server, engines, free_port  # noqa: E402  (needs the path set above)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A folder with server.crt, which signs itself, and server.key."""
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
         "-keyout", "server.key", "-out", "server.crt", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        cwd=folder, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module", params=engines())
def server(request, certificate):
    """One with a TLS port; `smoke` with the password `secret` may do what is ordinary with keys and channels smoke:*."""
    options = {
        "tls-port": free_port(),
        "tls-cert-file": certificate / "server.crt",
        "tls-key-file": certificate / "server.key",
        "tls-ca-cert-file": certificate / "server.crt",
        "tls-auth-clients": "no",
        "user": ["smoke", "on", ">secret", "~smoke:*", "&smoke:*", "+@all", "-flushall"],
    }
    with Server.ingot(request.param, options) as running:
        yield running


def end_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def run(server):
    """Runs a program on an empty server; it has to end well, with the word ok."""

    def run_one(command, *, seconds=60, **keywords):
        with server.client() as client:
            client.call("FLUSHALL")
            client.call("FUNCTION", "FLUSH")
        # Its own group: what it has started ends with it, too.
        process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True, **keywords,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end_group(process)
            said, _ = process.communicate()
            pytest.fail(f"not done after {seconds} s:\n{said[-6000:]}\n{server.log_tail()}", pytrace=False)
        end_group(process)
        assert process.returncode == 0, said[-6000:]
        assert said.strip().endswith("ok"), said[-6000:]
        assert server.alive(), server.log_tail()

    return run_one
