"""What the system sees of the process: its name, its place before the out-of-memory killer, its lines in syslog, and from
which address it connects."""

import os
import pathlib
import signal
import socket
import time

import pytest
from support.resp import Reply
from support.servers import Server, ServerError, engines

OK = Reply("simple", b"OK")


@pytest.fixture(params=engines())
def engine(request):
    return request.param


def title(server):
    return pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_bytes().split(b"\0")[0].decode()


def oom_score(server):
    return int(pathlib.Path(f"/proc/{server.process.pid}/oom_score_adj").read_text())


def until(condition):
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_the_title(engine):
    options = {"proc-title-template": "x {listen-addr} {config-file} y"}
    with Server.ingot(engine, options) as server, server.client() as client:
        assert until(lambda: title(server) == f"x *:{server.port} - y"), title(server)
        assert client.call("CONFIG", "SET", "proc-title-template", "{title} " + "long " * 20000) == OK
        assert "ingot-server long" in title(server)
        assert client.call("CONFIG", "SET", "proc-title-template", "{title} {port}") == OK
        assert title(server).endswith(f"ingot-server {server.port}")
        wrong = client.call("CONFIG", "SET", "proc-title-template", "{nothing}")
        assert b"template format is invalid" in wrong.value
        assert title(server).endswith(f"ingot-server {server.port}")
    with Server.ingot(engine, {"set-proc-title": "no"}) as server:
        assert title(server).endswith("ingot-server")


def test_the_out_of_memory_score(engine):
    with Server.ingot(engine) as server, server.client() as client:
        before = oom_score(server)
        assert client.call("CONFIG", "SET", "oom-score-adj-values", "10 20 30", "oom-score-adj", "yes") == OK
        assert oom_score(server) == min(1000, before + 10)
        assert client.call("REPLICAOF", "127.0.0.1", "1") == OK
        assert until(lambda: oom_score(server) == min(1000, before + 20))
        assert client.call("REPLICAOF", "NO", "ONE") == OK
        assert until(lambda: oom_score(server) == min(1000, before + 10))
        assert client.call("CONFIG", "SET", "oom-score-adj", "absolute", "oom-score-adj-values", "950 2000 2000") == OK
        assert oom_score(server) == 950
        assert client.call("CONFIG", "SET", "oom-score-adj", "no") == OK
        if os.geteuid() == 0:
            assert oom_score(server) == before
        text = client.call("CONFIG", "SET", "oom-score-adj-values", "1 2 2001").value
        assert b"elements must be between -2000 and 2000" in text


@pytest.mark.skipif(bool(os.environ.get("ASAN_OPTIONS") or os.environ.get("TSAN_OPTIONS")), reason="the sanitizer tells")
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_leaves_its_stack(engine, number, tmp_path):
    for logfile, enabled in ((None, "yes"), (tmp_path / "log", "yes"), (None, "no")):
        server = Server.ingot(engine, {"crash-log-enabled": enabled} | ({"logfile": str(logfile)} if logfile else {}))
        try:
            server.start()
            if logfile:
                logfile.unlink()  # as when it was rotated
            server.process.send_signal(number)
            assert server.process.wait(timeout=30) == -number
            text = logfile.read_text() if logfile else server.log_path.read_text()
            assert (f"crashed by signal: {int(number)}, si_code: 0" in text) == (enabled == "yes")
            assert ("STACK TRACE" in text and "(+0x" in text) == (enabled == "yes")
            # What it was doing is not lost.
            server.start()
        finally:
            server.stop()
            server.remove()


def test_a_log_that_is_rotated(engine, tmp_path):
    """Debian's script for redis-server renames it and says nothing to the server."""
    log = tmp_path / "log"
    with Server.ingot(engine, {"logfile": str(log)}) as server, server.client() as client:
        log.rename(tmp_path / "log.1")
        assert client.call("BGSAVE").value == b"Background saving started"
        assert until(lambda: log.exists() and "Background saving" in log.read_text())
        assert "Background saving" not in (tmp_path / "log.1").read_text()


def test_clients_stand_in_the_log(engine, tmp_path):
    log = tmp_path / "log"
    with Server.ingot(engine, {"logfile": str(log), "loglevel": "verbose"}) as server:
        with server.client() as client:
            address = client.call("CLIENT", "INFO").value.decode().split("addr=")[1].split()[0]
            assert f"Accepted {address}" in log.read_text()
        assert until(lambda: "Client closed connection: id=" in log.read_text())
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", server.port)) as browser:
                browser.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET k v\r\n")
                browser.settimeout(5)
                assert browser.recv(100) == b""
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            stranger.sendall(b"*abc\r\n")
            assert b"invalid multibulk length" in stranger.recv(100)
        text = log.read_text()
        assert text.count("Possible SECURITY ATTACK detected") == 1  # in a minute
        assert "Protocol error: invalid multibulk length: id=" in text


def test_standard_files_that_are_closed(engine):
    """The next files took their numbers: a log of the data was standard error."""
    server = Server.ingot(engine)
    command = server.command_line
    server.command_line = lambda: ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command()]
    with server, server.client() as client:
        assert client.call("SET", "k", "v") == OK
        for number in range(3):
            assert os.readlink(f"/proc/{server.process.pid}/fd/{number}") == "/dev/null"


def test_a_pipe_for_a_log(engine, tmp_path):
    """Nobody reads it any more: who writes a line does not wait."""
    os.mkfifo(tmp_path / "log")
    with open(os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        with Server.ingot(engine, {"logfile": str(tmp_path / "log")}) as server, server.client() as client:
            assert b"Ready to accept connections" in reader.read()
            for _ in range(2000):  # more than a pipe holds
                assert client.call("CONFIG", "SET", "tls-replication", "yes").is_error()  # and a line
            reader.close()
            assert client.call("CONFIG", "SET", "tls-replication", "yes").is_error()  # and a line
    with pytest.raises(ServerError, match="Can't open the log file: No such device or address"):
        Server.ingot(engine, {"logfile": str(tmp_path / "log")}).start()


def test_syslog(engine):
    path = "/dev/log"
    if os.geteuid() != 0 or os.path.lexists(path):
        pytest.skip("somebody else has syslog's socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(path)
        try:
            log.settimeout(10)
            options = {"syslog-enabled": "yes", "syslog-ident": "tester", "syslog-facility": "local3"}
            with Server.ingot(engine, options) as server:
                line = log.recv(4096)
                # local3 is 19, a notice 5.
                assert line.startswith(b"<157>") and b"tester[%d]: " % server.process.pid in line
                assert "is starting" in server.log_tail()  # as before
        finally:
            os.unlink(path)


def test_the_address_of_the_link_to_a_master(engine):
    with Server.ingot(engine) as master, Server.ingot(engine, {"bind-source-addr": "127.0.0.2"}) as replica:
        with master.client() as there, replica.client() as here:
            def from_where():
                lines = there.call("INFO", "replication").text().splitlines()
                return [line.split("ip=")[1].split(",")[0] for line in lines if line.startswith("slave0:")]

            here.call("REPLICAOF", "127.0.0.1", master.port)
            assert until(lambda: from_where() == ["127.0.0.2"])
            # One that this machine does not have.
            here.call("REPLICAOF", "NO", "ONE")
            assert until(lambda: from_where() == [])
            assert here.call("CONFIG", "SET", "bind-source-addr", "192.0.2.1") == OK
            here.call("REPLICAOF", "127.0.0.1", master.port)
            assert until(lambda: from_where() == ["127.0.0.1"])
