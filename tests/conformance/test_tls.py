"""TLS, as Redis has it: certificates on both sides, protocols, reloading; and clients that break it off."""

import contextlib
import os
import re
import socket
import ssl
import subprocess
import time

import pytest
import redis
from support.servers import Server, ServerError, engines, free_port, self_check

REJECTED = (redis.ConnectionError, ssl.SSLError, ConnectionError)


def openssl(*words, cwd):
    subprocess.run(["openssl", *words], cwd=cwd, check=True, capture_output=True, timeout=60)


class Certificates:
    """A folder with a CA, another one, and certificates: NAME.crt and NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        for ca in ("ca", "foreign-ca"):
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{ca}.key", "-out", f"{ca}.crt",
                    "-days", "30", "-subj", f"/CN={ca}", cwd=folder)  # fmt: skip
        for name in ("server", "client"):
            self.issue(name)
        self.issue("foreign", ca="foreign-ca")
        self.issue("expired", days="-1")
        openssl("rsa", "-aes256", "-in", "server.key", "-out", "locked.key", "-passout", "pass:secret", cwd=folder)

    def issue(self, name, ca="ca", days="20"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
                f"/CN={name}", cwd=self.folder)  # fmt: skip
        (self.folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial",
                "-days", days, "-extfile", "names", "-out", f"{name}.crt", cwd=self.folder)  # fmt: skip

    def __getitem__(self, name):
        return str(self.folder / name)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=["redis", "ingot"])
def make(request, certificates):
    """A function that starts a server with a TLS port, Redis or Ingot."""
    made = []

    def make_one(options=None):
        given = {
            "tls-port": free_port(),
            "tls-cert-file": certificates["server.crt"],
            "tls-key-file": certificates["server.key"],
            "tls-ca-cert-file": certificates["ca.crt"],
            "tls-auth-clients": "no",
        } | (options or {})
        made.append(Server.redis(given) if request.param == "redis" else Server.ingot("rocksdb", given))
        return made[-1].start()

    yield make_one
    for server in made:
        server.stop()
        server.remove()


def tls_client(server, certificates, name=None, **more):
    given = {} if name is None else {"ssl_certfile": certificates[f"{name}.crt"], "ssl_keyfile": certificates[f"{name}.key"]}
    return redis.Redis(port=server.options["tls-port"], ssl=True, ssl_ca_certs=certificates["ca.crt"],
                       ssl_check_hostname=False, socket_timeout=30, **given, **more)  # fmt: skip


def tls_socket(port, certificates, *, most=None, ciphers=None):
    context = ssl.create_default_context(cafile=certificates["ca.crt"])
    context.check_hostname = False
    if most is not None:
        context.maximum_version = most
    if ciphers:
        context.set_ciphers(ciphers)
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10))


def refusal(action):
    with pytest.raises(redis.ResponseError) as error:
        action()
    return str(error.value)


def test_everything_goes_through(make, certificates):
    server = make()
    client = tls_client(server, certificates)
    plain = redis.Redis(port=server.port)
    large = os.urandom(5 << 20)
    assert client.set("large", large)
    assert client.get("large") == plain.get("large") == large
    pipe = client.pipeline(transaction=False)
    for i in range(20_000):
        pipe.rpush("list", b"%d" % i * 20)
    assert pipe.execute() == list(range(1, 20_001))
    assert client.lrange("list", 0, -1) == [b"%d" % i * 20 for i in range(20_000)]
    pipe = client.pipeline(transaction=True)
    pipe.set("a", 1).incr("a").get("large")
    assert pipe.execute() == [True, 2, large]
    assert client.blpop("list", timeout=1) == (b"list", b"0" * 20)
    assert client.blpop("nothing", timeout=0.1) is None
    assert plain.ping()


def test_many_clients(make, certificates):
    server = make()
    clients = [tls_client(server, certificates) for _ in range(60)]
    for i, client in enumerate(clients):
        client.set(f"k{i}", i)
    assert [int(client.get(f"k{i}")) for i, client in enumerate(clients)] == list(range(60))


@pytest.mark.parametrize("wanted", ["yes", "optional", "no"])
def test_client_certificates(make, certificates, wanted):
    server = make({"tls-auth-clients": wanted})
    taken = {}
    for name in (None, "client", "foreign", "expired"):
        try:
            taken[name] = tls_client(server, certificates, name).ping()
        except REJECTED:
            taken[name] = False
    others = {"yes": False, "optional": False, "no": True}[wanted]
    assert taken == {None: wanted != "yes", "client": True, "foreign": others, "expired": others}
    assert redis.Redis(port=server.port).ping()


def test_a_server_is_known_by_its_certificate(make, certificates):
    server = make({"tls-cert-file": certificates["foreign.crt"], "tls-key-file": certificates["foreign.key"]})
    with pytest.raises(REJECTED):
        tls_client(server, certificates).ping()
    server = make({"tls-cert-file": certificates["expired.crt"], "tls-key-file": certificates["expired.key"]})
    with pytest.raises(REJECTED):
        tls_client(server, certificates).ping()


def test_a_certificate_is_replaced_while_clients_stay(make, certificates, tmp_path):
    for kind in ("crt", "key"):
        (tmp_path / f"own.{kind}").write_bytes(open(certificates[f"server.{kind}"], "rb").read())
    server = make({"tls-cert-file": str(tmp_path / "own.crt"), "tls-key-file": str(tmp_path / "own.key")})

    def serial():
        with tls_socket(server.options["tls-port"], certificates) as connection:
            return connection.getpeercert()["serialNumber"]

    stays = tls_client(server, certificates)
    assert stays.ping()
    first = serial()
    plain = redis.Redis(port=server.port)
    for kind in ("crt", "key"):
        (tmp_path / f"own.{kind}").write_bytes(open(certificates[f"client.{kind}"], "rb").read())
    assert serial() == first
    # The same name: what the file holds has changed.
    plain.execute_command("CONFIG", "SET", "tls-cert-file", str(tmp_path / "own.crt"), "tls-key-file",
                          str(tmp_path / "own.key"))  # fmt: skip
    second = serial()
    assert second != first
    text = refusal(lambda: plain.execute_command("CONFIG", "SET", "tls-cert-file", "/nowhere"))
    assert text == ("CONFIG SET failed (possibly related to argument 'tls-cert-file') - Unable to update TLS "
                    "configuration. Check server logs.")  # fmt: skip
    assert "argument 'tls-protocols'" in refusal(lambda: plain.config_set("tls-protocols", "TLSv9"))
    assert plain.config_get("tls-cert-file") == {"tls-cert-file": str(tmp_path / "own.crt")}
    assert serial() == second
    assert stays.ping()


@pytest.mark.parametrize("engine", engines())
def test_links_by_tls_need_certificates(engine):
    """As in Redis: the first attempt to follow somebody told it in the log, again and again."""
    with Server.ingot(engine) as server, Server.redis() as oracle:
        for each in (server, oracle):
            text = refusal(lambda port=each.port: redis.Redis(port=port).config_set("tls-replication", "yes"))
            assert "Unable to update TLS configuration. Check server logs." in text
    with pytest.raises(ServerError):
        Server.ingot(engine, {"tls-replication": "yes"}).start()


def test_a_change_that_fails_changes_nothing(make, certificates):
    server = make()
    plain = redis.Redis(port=server.port)

    def certificate():
        with tls_socket(server.options["tls-port"], certificates) as connection:
            return connection.getpeercert()["serialNumber"]

    before = certificate()
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        refusal(lambda: plain.execute_command(
            "CONFIG", "SET", "tls-cert-file", certificates["client.crt"], "tls-key-file", certificates["client.key"],
            "tls-port", taken.getsockname()[1]))  # fmt: skip
    assert certificate() == before
    assert plain.config_get("tls-cert-file") == {"tls-cert-file": certificates["server.crt"]}


def test_protocols_and_ciphers(make, certificates):
    server = make({"tls-protocols": "TLSv1.3", "tls-ciphersuites": "TLS_AES_256_GCM_SHA384"})
    port = server.options["tls-port"]
    with tls_socket(port, certificates) as connection:
        assert connection.version() == "TLSv1.3"
        assert connection.cipher()[0] == "TLS_AES_256_GCM_SHA384"
    with pytest.raises(ssl.SSLError):
        tls_socket(port, certificates, most=ssl.TLSVersion.TLSv1_2)
    plain = redis.Redis(port=server.port)
    plain.execute_command("CONFIG", "SET", "tls-protocols", "TLSv1.2", "tls-ciphers", "ECDHE-RSA-AES128-GCM-SHA256",
                          "tls-prefer-server-ciphers", "yes")  # fmt: skip
    with tls_socket(port, certificates) as connection:
        assert connection.version() == "TLSv1.2"
        assert connection.cipher()[0] == "ECDHE-RSA-AES128-GCM-SHA256"
    with pytest.raises(ssl.SSLError):
        tls_socket(port, certificates, most=ssl.TLSVersion.TLSv1_2, ciphers="ECDHE-RSA-AES256-GCM-SHA384")
    assert "Unable to update TLS" in refusal(lambda: plain.execute_command("CONFIG", "SET", "tls-protocols", "SSLv9"))
    with tls_socket(port, certificates) as connection:
        assert connection.version() == "TLSv1.2"


def test_a_key_behind_a_password(make, certificates):
    options = {"tls-key-file": certificates["locked.key"], "tls-key-file-pass": "secret"}
    assert tls_client(make(options), certificates).ping()
    with pytest.raises(ServerError):
        make(options | {"tls-key-file-pass": "wrong"})


@pytest.mark.parametrize("wrong", [
    {"tls-cert-file": None}, {"tls-key-file": None}, {"tls-ca-cert-file": None, "tls-auth-clients": "yes"},
    {"tls-cert-file": "/nowhere"}, {"tls-protocols": "none"}, {"tls-ciphers": "no-such-cipher"},
    {"tls-dh-params-file": "/nowhere"},
])  # fmt: skip
def test_a_start_that_cannot_serve_tls_stops(make, wrong):
    with pytest.raises(ServerError, match="TLS|tls"):
        make(wrong)


def test_ports_come_and_go(make, certificates):
    server = make({"tls-port": None})
    plain = redis.Redis(port=server.port)
    plain.set("key", "value")
    first, second = free_port(), free_port()
    plain.config_set("tls-port", first)
    server.options["tls-port"] = first
    stays = tls_client(server, certificates)
    assert stays.get("key") == b"value"
    plain.config_set("tls-port", second)
    with pytest.raises(REJECTED):
        tls_client(server, certificates).ping()
    server.options["tls-port"] = second
    assert tls_client(server, certificates).ping()
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        text = refusal(lambda: plain.config_set("tls-port", taken.getsockname()[1]))
        assert "Unable to listen on this port. Check server logs." in text
    assert tls_client(server, certificates).ping()
    plain.config_set("tls-port", 0)
    with pytest.raises(REJECTED):
        tls_client(server, certificates).ping()
    assert stays.ping()
    assert plain.ping()


@pytest.mark.skipif(self_check(), reason="Redis cannot swap them")
def test_tls_takes_over_the_plain_port(certificates):
    options = {"tls-cert-file": certificates["server.crt"], "tls-key-file": certificates["server.key"],
               "tls-auth-clients": "no"}  # fmt: skip
    with Server.ingot("rocksdb", options) as server:
        plain = redis.Redis(port=server.port)
        plain.execute_command("CONFIG", "SET", "port", "0", "tls-port", server.port)
        server.options["tls-port"] = server.port
        client = tls_client(server, certificates)
        assert client.ping()
        client.execute_command("CONFIG", "SET", "tls-port", "0", "port", server.port)
        assert redis.Redis(port=server.port).ping()


def resident_kb(server):
    status = open(f"/proc/{server.process.pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def test_clients_that_break_off_leave_nothing(make, certificates):
    server = make()
    port = server.options["tls-port"]
    hello = bytes.fromhex("16030100c8010000c40303") + os.urandom(40)

    def rude(kind):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        if kind == 0:
            connection.sendall(b"PING\r\n")  # no TLS at all
        elif kind == 1:
            connection.sendall(hello)  # half a handshake
        elif kind == 2:
            connection.sendall(os.urandom(300))
        return connection

    for _ in range(3):
        for kind in range(4):
            for connection in [rude(kind) for _ in range(50)]:
                connection.close()
    before = resident_kb(server)
    for _ in range(10):
        for kind in range(4):
            for connection in [rude(kind) for _ in range(50)]:
                connection.close()
    for _ in range(50):
        connection = tls_socket(port, certificates)
        connection.sendall(b"*2\r\n$3\r\nGET\r\n$1000000\r\n" + b"x" * 20_000)
        raw = socket.socket(fileno=connection.detach())
        raw.sendall(os.urandom(100))  # no record
        raw.close()
    client = tls_client(server, certificates)
    deadline = time.monotonic() + 20
    while client.info("clients")["connected_clients"] > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert client.info("clients")["connected_clients"] == 1
    assert resident_kb(server) < before + 16_384


def test_a_slow_reader_gets_all_of_it(make, certificates):
    server = make()
    filler = redis.Redis(port=server.port)
    value = os.urandom(1 << 20)
    filler.set("value", value)
    with tls_socket(server.options["tls-port"], certificates) as connection:
        connection.sendall(b"*2\r\n$3\r\nGET\r\n$5\r\nvalue\r\n" * 30)
        time.sleep(1)
        assert filler.ping()
        expected = (b"$%d\r\n" % len(value) + value + b"\r\n") * 30
        got = bytearray()
        while len(got) < len(expected):
            piece = connection.recv(100_000)
            assert piece
            got += piece
        assert got == expected


def test_who_says_goodbye_still_gets_replies(make, certificates):
    server = make()
    with tls_socket(server.options["tls-port"], certificates) as connection:
        connection.sendall(b"PING\r\n" * 1000 + b"QUIT\r\n")
        got = b""
        with contextlib.suppress(ssl.SSLEOFError):
            while piece := connection.recv(65536):
                got += piece
        assert got == b"+PONG\r\n" * 1000 + b"+OK\r\n"


def test_redis_cli(make, certificates):
    server = make({"tls-auth-clients": "yes"})
    words = ["redis-cli", "-p", str(server.options["tls-port"]), "--tls", "--cacert", certificates["ca.crt"],
             "--cert", certificates["client.crt"], "--key", certificates["client.key"]]  # fmt: skip
    assert subprocess.run([*words, "set", "a", "b"], capture_output=True, timeout=20).stdout == b"OK\n"
    assert subprocess.run([*words, "get", "a"], capture_output=True, timeout=20).stdout == b"b\n"
    lines = b"".join(b"SET key:%d %d\r\n" % (i, i) for i in range(20_000))
    piped = subprocess.run([*words, "--pipe"], input=lines, capture_output=True, timeout=60)
    assert b"errors: 0, replies: 20000" in piped.stdout
