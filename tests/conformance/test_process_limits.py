"""What the system allows a process: few open files or threads, files that may not grow, less memory than
maxmemory says."""

import os
import resource
import subprocess
import time
from pathlib import Path

import pytest
from support.resp import Reply
from support.servers import Server, ServerError, engines

OK = Reply("simple", b"OK")


@pytest.fixture(params=engines())
def engine(request):
    return request.param


def with_files(engine, files, options=None):
    """A server that may open so many files, unless it may raise that."""
    server = Server.ingot(engine, options)
    command = server.command_line
    server.command_line = lambda: ["prlimit", f"--nofile={files}:{files}", *command()]
    return server


def test_clients_leave_files_to_the_engine(engine):
    """They took all there were, and the engine refused writes until a restart."""
    with with_files(engine, 400) as server, server.client() as client:
        most = int(client.call("CONFIG", "GET", "maxclients").value[1].text())
        if most == 10000:
            pytest.skip("the limit could be raised")
        assert 150 <= most <= 400
        refused = client.call("CONFIG", "SET", "maxclients", most + 1000)
        assert refused.kind == "error" and b"try with %d" % most in refused.value
        assert client.call("CONFIG", "SET", "maxclients", most - 1) == OK
        assert client.call("CONFIG", "SET", "maxclients", most) == OK
        idle, told = [], None
        while told is None:
            idle.append(server.client())
            reply = idle[-1].call("PING")
            told = reply if reply.kind == "error" else None
        assert told.value == b"ERR max number of clients reached" and len(idle) == most
        for number in range(40):
            assert client.call("SET", f"k{number}", b"%d" % (number % 10) * (1 << 20)) == OK
        for each in idle:
            each.close()
        assert client.call("STRLEN", "k39").value == 1 << 20


def test_too_few_files_to_start(engine):
    server = with_files(engine, 80)
    try:
        with server:
            assert server.client().call("CONFIG", "GET", "maxclients").value[1].text() == "10000"  # could be raised
    except ServerError:
        assert "Your current 'ulimit -n' is not enough for the server to start." in server.log_tail()
    finally:
        server.stop()
        server.remove()


def with_threads(engine, threads):
    """A server whose user, who has no other process, may have so many threads; and the words to be that user."""
    user = 60_000 + os.getpid() % 5000
    server = Server.ingot(engine, {"reader-threads": 4})
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    if os.geteuid() != 0 or subprocess.run([*as_user, "test", "-x", server.binary], check=False).returncode != 0:
        pytest.skip("no other user can start the server")
    os.chown(server.directory, user, user)
    command = server.command_line
    server.command_line = lambda: ["prlimit", f"--nproc={threads}:{threads}", *as_user, *command()]
    return server, as_user


def test_too_few_threads_to_start(engine):
    server, _ = with_threads(engine, 12)
    with pytest.raises(ServerError):
        server.start()
    assert "The server needs more of them than the system allows it" in server.log_tail()
    assert server.process.wait() == 1
    server.remove()


def test_no_more_threads(engine):
    """Each reader thread that could not be had ended the server."""
    refused = b"ERR CONFIG SET failed (possibly related to argument 'reader-threads') - "
    server, as_user = with_threads(engine, 60)
    with server, server.client() as client:
        reply = client.call("CONFIG", "SET", "reader-threads", 200)
        assert reply == Reply("error", refused + b"The operating system gives no more threads, check server logs.")
        assert client.call("CONFIG", "GET", "reader-threads").value[1].text() == "4"
        limit = [*as_user, "prlimit", f"--pid={server.process.pid}"]
        subprocess.run([*limit, "--nproc=1:60"], check=True)
        assert client.call("BGSAVE").value == b"ERR Can't start a thread: Resource temporarily unavailable"
        assert client.call("BGREWRITEAOF").value == b"ERR Can't start a thread: Resource temporarily unavailable"
        assert client.call("REPLICAOF", "no.such.host.invalid", 1) == OK
        assert client.call("REPLICAOF", "NO", "ONE") == OK
        assert client.call("SET", "k", "v") == OK
        subprocess.run([*limit, "--nproc=60:60"], check=True)
        assert client.call("BGSAVE") == Reply("simple", b"Background saving started")
        assert client.call("GET", "k").value == b"v"


@pytest.mark.parametrize("disabled", ["yes", "no"])
def test_huge_pages(engine, disabled):
    """Where all get them, as by Debian's default, the process took 30 MB more."""
    with Server.ingot(engine, {"disable-thp": disabled}) as server:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    if "THP_enabled" not in status:
        pytest.skip("the kernel does not tell")
    assert ("THP_enabled:\t0" in status) == (disabled == "yes")


def test_files_that_may_not_grow(engine):
    with Server.ingot(engine, {"maxmemory": "24mb"}) as server, server.client() as client:
        assert client.call("SET", "before", "v") == OK
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        refused = None
        for number in range(3000):
            reply = client.call("SET", f"k{number}", "v" * 1000)
            refused = refused or (reply if reply != OK else None)
        assert refused is not None and refused.value.startswith(b"MISCONF")
        assert client.call("GET", "before").value == b"v"


@pytest.mark.parametrize("value", [1 << 62, (1 << 63) - 1, (1 << 64) - 1])
def test_more_memory_than_there_is(engine, value):
    with Server.ingot(engine) as server, server.client() as client:
        assert client.call("CONFIG", "SET", "maxmemory", value) == OK
        assert client.call("SET", "k", "v") == OK
        time.sleep(0.5)
        assert client.call("GET", "k").value == b"v"
    with Server.ingot(engine, {"maxmemory": value, "cache-size": value}) as server, server.client() as client:
        assert client.call("CONFIG", "GET", "maxmemory").value[1].text() == str(value)
        told = client.call("INFO", "memory").text()
        assert int(told.split("\r\nmaxmemory:")[1].split("\r\n")[0]) < 1 << 50
        assert client.call("SET", "k", "v") == OK
