"""Servers of their own: command line and config file, CONFIG REWRITE, start and stop, limits."""

import os
import signal
import socket
import subprocess
import time

import pytest
from support.resp import CLOSED, Client, Reply
from support.servers import Server, ServerError, engines, self_check

OK = Reply("simple", b"OK")
DENIED_BYTES = 1064  # of Redis' long explanation


@pytest.fixture(params=["oracle"] + engines())
def make(request):
    """A function that makes a server, of Redis and of Ingot on each engine: all pass every test."""
    made = []

    def make_one(options=None, **keywords):
        if request.param == "oracle":
            server = Server.redis(options, **keywords)
        else:
            server = Server.ingot(request.param, options, **keywords)
        made.append(server)
        return server

    yield make_one
    for server in made:
        server.stop()
        server.remove()


def value(server, name):
    with server.client() as client:
        return client.call("CONFIG", "GET", name).value[1].text()


def test_options_on_the_command_line(make):
    server = make({"databases": 4, "timeout": "77", "save": ["900", "1"], "maxclients": "123"}).start()
    with server.client() as client:
        assert client.call("SELECT", 3) == OK
        assert client.call("SELECT", 4).value == b"ERR DB index is out of range"
    assert value(server, "databases") == "4"
    assert value(server, "timeout") == "77"
    assert value(server, "save") == "900 1"
    assert value(server, "maxclients") == "123"


CONF = """\
# A comment that stays.
timeout 11
hash-max-listpack-entries 99   

  # An indented comment.
loglevel "verbose"
notify-keyspace-events 'KEA'
save 900 1
save 300 10
include {included}
proto-max-bulk-len 2mb
CLIENT-query-buffer-limit 2gb
client-output-buffer-limit normal 1mb 2mb 3
client-output-buffer-limit pubsub 1gb 2gb 5
requirepass "with \\"quotes\\" \\x41"
"""


def write_conf(tmp_path):
    included = tmp_path / "included.conf"
    included.write_text("timeout 22\ntcp-keepalive 44\n")
    conf = tmp_path / "test.conf"
    conf.write_text(CONF.format(included=included))
    return conf


def test_config_file(make, tmp_path):
    server = make({"tcp-keepalive": 55, "save": None}, conf=write_conf(tmp_path)).start()
    expected = {
        "timeout": "22", "hash-max-listpack-entries": "99", "loglevel": "verbose",
        "notify-keyspace-events": "AKE", "tcp-keepalive": "55", "proto-max-bulk-len": "2097152",
        "client-query-buffer-limit": "2147483648", "save": "900 1 300 10",
        "client-output-buffer-limit":
            "normal 1048576 2097152 3 slave 268435456 67108864 60 pubsub 1073741824 2147483648 5",
    }  # fmt: skip
    with server.client() as client:
        assert client.call("AUTH", 'with "quotes" A') == OK
        for name, wanted in expected.items():
            assert client.call("CONFIG", "GET", name).value[1].text() == wanted, name


def test_rewrite_keeps_comments_and_changes_what_was_set(make, tmp_path):
    conf = write_conf(tmp_path)
    (tmp_path / "included.conf").write_text("")  # what it says would win over the rewritten lines
    server = make({"save": None}, conf=conf).start()
    with server.client() as client:
        client.call("AUTH", 'with "quotes" A')
        assert client.call("CONFIG", "SET", "timeout", 33, "maxclients", 321, "requirepass", "") == OK
        assert client.call("CONFIG", "SET", "notify-keyspace-events", "") == OK
        assert client.call("CONFIG", "REWRITE") == OK
        before = dict_of(client.call("CONFIG", "GET", "*"))
    lines = conf.read_text().splitlines()
    assert "# A comment that stays." in lines and "# An indented comment." in map(str.strip, lines)
    assert "timeout 33" in lines and "maxclients 321" in lines and "save 300 10" in lines
    assert not [line for line in lines if line.startswith("requirepass")]
    order = ["# A comment that stays.", "timeout 33", "hash-max-listpack-entries 99"]
    assert [line for line in lines if line in order] == order
    server.stop()
    server.options = {key: server.options[key] for key in server.options if key == "engine"}
    server.start()
    with server.client() as client:
        assert dict_of(client.call("CONFIG", "GET", "*")) == before


def dict_of(reply):
    values = [item.text() for item in reply.value]
    return dict(zip(values[::2], values[1::2]))


@pytest.mark.parametrize(
    "options",
    [{"nosuch-directive": "1"}, {"timeout": "abc"}, {"databases": "0"}, {"appendfsync": "maybe"},
     {"timeout": ["1", "2"]}],
    ids=str,
)
def test_a_wrong_option_stops_the_start(make, options):
    server = make(options)
    with pytest.raises(ServerError):
        server.start()
    assert server.process.returncode == 1
    assert next(iter(options)) in server.log_path.read_text(), "the log does not name the directive"


def test_a_missing_config_file_stops_the_start(make, tmp_path):
    server = make(conf=tmp_path / "missing.conf")
    with pytest.raises(ServerError):
        server.start()
    assert server.process.returncode == 1


def test_version_and_help(make):
    binary = make().binary
    for flag in ("--version", "-v", "--help", "-h"):
        done = subprocess.run([binary, flag], capture_output=True, timeout=10)
        assert done.stdout + done.stderr
        if "v" in flag:  # of --help Redis says 1
            assert done.returncode == 0


def test_debug_is_off_unless_enabled(make):
    for mode, allowed in (("no", False), ("local", True), ("yes", True)):
        server = make({"enable-debug-command": mode}).start()
        with server.client() as client:
            reply = client.call("DEBUG", "SLEEP", 0)
        assert (reply == OK) == allowed
        if not allowed:
            assert reply.value == (
                b"ERR DEBUG command not allowed. If the enable-debug-command option is set to "
                b'"local", you can run it from a local connection, otherwise you need to set this '
                b"option in the configuration file, and then restart the server."
            )


def test_password_from_the_start(make):
    server = make({"requirepass": "secret"}).start()
    with server.client() as client:
        assert client.call("PING").value == b"NOAUTH Authentication required."
        assert client.call("AUTH", "secret") == OK
        assert client.call("PING") == Reply("simple", b"PONG")


def test_protected_mode(make):
    """Without a password other machines are refused; here one's own address stands for another."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 1))  # sends nothing
    except OSError:
        pytest.skip("no address but the loopback's")
    address = probe.getsockname()[0]
    server = make({"bind": "*"}).start()
    with Client(server.port, host=address) as client:
        reply = client.read()
        assert reply.is_error() and reply.value.startswith(b"DENIED Redis is running in protected mode")
        assert reply.value.endswith(b"accepting connections from the outside.")
        assert len(reply.value) == DENIED_BYTES
        assert client.read() == CLOSED
    with server.client() as client:
        assert client.call("CONFIG", "SET", "protected-mode", "no") == OK
        with Client(server.port, host=address) as other:
            assert other.call("PING") == Reply("simple", b"PONG")
        assert client.call("CONFIG", "SET", "protected-mode", "yes", "requirepass", "secret") == OK
        with Client(server.port, host=address) as other:
            assert other.call("PING").value == b"NOAUTH Authentication required."
            for wrong in ("", "s", "secre", "secret2", "secretsecret"):
                assert other.call("AUTH", wrong).is_error()
            assert other.call("AUTH", "secret") == OK


@pytest.mark.parametrize("name", ["appendonlydir/appendonly.aof.1.base.rdb", "appendonly.aof"])
@pytest.mark.skipif(self_check(), reason="Redis loads them")
def test_files_of_redis_are_not_passed_over(name):
    server = Server.ingot("rocksdb")
    file = server.directory / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"REDIS0010")
    try:
        with pytest.raises(ServerError, match="data of Redis in .*'ignore-redis-files yes'"):
            server.start()
        server.options["ignore-redis-files"] = "yes"
        server.start()
        del server.options["ignore-redis-files"]
        server.restart()  # it has data of its own now
        with server.client() as client:
            assert client.call("DBSIZE").value == 0
        assert file.read_bytes() == b"REDIS0010"
    finally:
        server.stop()
        server.remove()


@pytest.mark.skipif(self_check(), reason="Redis does all of this")
def test_what_is_not_served_is_refused_at_the_start():
    with pytest.raises(ServerError, match="FATAL CONFIG FILE ERROR"):
        Server.ingot("rocksdb", {"cluster-enabled": "yes"}).start()
    with Server.ingot("rocksdb", {"replicaof": ["no", "one"], "cluster-enabled": "no"}) as server:
        with server.client() as client:
            assert client.call("PING").value == b"PONG"


@pytest.mark.parametrize("options", [{"bind": ""}, {"port": 0}], ids=["no address", "no port"])
def test_nowhere_to_listen(make, options):
    with pytest.raises(ServerError, match="Configured to not listen anywhere, exiting."):
        make(options).start()


def test_unix_socket(make):
    server = make({"unixsocketperm": "700"})
    path = str(server.directory / "s.sock")
    server.options["unixsocket"] = path
    server.start()
    assert os.stat(path).st_mode & 0o777 == 0o700
    with Client(path=path) as client:
        assert client.call("SET", "k", "v") == OK
        fields = client.call("CLIENT", "INFO").text().split()
        assert fields[1] == f"addr={path}:0" and "flags=U" in fields
    with server.client() as client:
        assert client.call("GET", "k") == Reply("bulk", b"v")


def test_too_many_clients(make):
    server = make({"maxclients": 5}).start()
    clients = [server.client() for _ in range(5)]
    # wait_ready()'s own connection may still be counted for a moment.
    deadline = time.monotonic() + 5
    while clients[-1].call("PING").is_error() and time.monotonic() < deadline:
        clients[-1] = server.client()
    extra = server.client()
    assert extra.read() == Reply("error", b"ERR max number of clients reached")
    assert extra.read() == CLOSED
    assert clients[0].call("CONFIG", "SET", "maxclients", 50) == OK
    with server.client() as one_more:
        assert one_more.call("PING") == Reply("simple", b"PONG")
    for client in clients:
        client.close()


def test_idle_clients_are_closed(make):
    server = make({"timeout": 1}).start()
    with server.client() as idle, server.client() as busy:
        for _ in range(8):
            time.sleep(0.4)
            assert busy.call("PING") == Reply("simple", b"PONG")
        assert idle.read() == CLOSED


@pytest.mark.parametrize("words", [("SHUTDOWN", "SAVE"), ("SHUTDOWN", "SAVE", "NOW", "FORCE")], ids=" ".join)
def test_shutdown_keeps_the_data(make, words):
    server = make().start()
    with server.client() as client:
        client.call("SET", "k", "v")
        client.call("SET", "long", "x" * 50000, "EX", 1000)
        assert client.call(*words) == CLOSED
    assert server.wait() == 0
    server.start()
    with server.client() as client:
        assert client.call("GET", "k") == Reply("bulk", b"v")
        assert client.call("STRLEN", "long") == Reply("integer", 50000)
        assert 990 < client.call("TTL", "long").value <= 1000
        assert client.call("DBSIZE") == Reply("integer", 2)


def test_sigterm_ends_well(make):
    server = make().start()
    with server.client() as client:
        client.call("SET", "k", "v")
        server.signal(signal.SIGTERM)
        assert client.read() == CLOSED
    assert server.wait() == 0


def test_pidfile_and_daemonize(make):
    server = make({"daemonize": "no"})
    pidfile = server.directory / "server.pid"
    server.options["pidfile"] = str(pidfile)
    server.start()
    assert int(pidfile.read_text()) == server.process.pid
    server.stop()
    assert not pidfile.exists()


@pytest.mark.skipif(self_check(), reason="Redis has no lock on its directory")
def test_a_second_server_on_the_same_directory_is_refused(engine):
    with Server.ingot(engine) as first:
        second = Server.ingot(engine, directory=first.directory)
        second.log_path = first.directory / "second.log"
        with pytest.raises(ServerError):
            second.start()
        assert second.process.returncode == 1
        said = second.log_path.read_text().lower()
        assert "lock" in said or "in use" in said or "another" in said
        with first.client() as client:
            assert client.call("PING") == Reply("simple", b"PONG")


@pytest.mark.skipif(self_check(), reason="Redis keeps nothing without a save")
def test_what_was_answered_survives_kill_9(engine):
    with Server.ingot(engine) as server:
        with server.client() as client:
            client.call("SET", "k", "v")
            client.call("SET", "long", b"x" * 50000)
            client.call("DEL", "k")
            digest = client.call("DEBUG", "DIGEST")
        server.restart(kill=True)
        with server.client() as client:
            assert client.call("DEBUG", "DIGEST") == digest
            assert client.call("DBSIZE") == Reply("integer", 1)


COMMENTED = """\
# A comment   with  blanks   \n   # an indented\tone   \n\n\n  \t\ntimeout 10   \n  # the last  """


def test_rewrite_keeps_comments_as_redis_does(tmp_path):
    kept = []
    for make in (Server.redis, Server.ingot):
        conf = tmp_path / "test.conf"
        conf.write_text(COMMENTED)
        with make(options={"save": None}, conf=conf) as server, server.client() as client:
            assert client.call("CONFIG", "SET", "timeout", 20) == OK
            assert client.call("CONFIG", "REWRITE") == OK
        kept.append(conf.read_text().partition("# Generated by CONFIG REWRITE")[0].rstrip())
    assert kept[0] == kept[1]
