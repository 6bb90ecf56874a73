"""A link to the master by TLS: with certificates of both sides, and with those that are not to be trusted."""

import pytest
from pairs import MASTER, Load, assert_same, eventually, is_up, wait_up
from support.servers import Server, free_port
from test_tls import Certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


def tls(certificates, name):
    return {"tls-cert-file": certificates[f"{name}.crt"], "tls-key-file": certificates[f"{name}.key"],
            "tls-ca-cert-file": certificates["ca.crt"]}  # fmt: skip


@pytest.fixture
def master(certificates):
    with Server.redis(MASTER | tls(certificates, "server") | {"tls-port": str(free_port())}) as server:
        yield server


def follow(master, options):
    of = {"replicaof": ["127.0.0.1", master.options["tls-port"]], "tls-replication": "yes", "repl-timeout": "5"}
    return Server.ingot("rocksdb", of | options)


def test_a_load_by_tls(master, certificates, rng):
    load = Load(rng, everything=False)
    load.run(master, 2000)
    own = {"tls-client-cert-file": certificates["client.crt"], "tls-client-key-file": certificates["client.key"]}
    for options in (tls(certificates, "server"), tls(certificates, "foreign") | own):
        with follow(master, options) as replica:
            wait_up(replica)
            load.run(master, 1000)
            assert_same(master, replica)


@pytest.mark.parametrize("name", ["foreign", "expired"])
def test_who_is_not_trusted(master, certificates, name):
    with follow(master, tls(certificates, name)) as replica, replica.client() as client:
        eventually(lambda: "TLS with MASTER failed" in replica.log_path.read_text(), lambda: replica.log_tail())
        assert not is_up(client)


def test_a_master_that_is_not_trusted(certificates):
    options = MASTER | tls(certificates, "foreign") | {"tls-port": str(free_port()), "tls-auth-clients": "no"}
    with Server.redis(options) as master:
        with follow(master, tls(certificates, "server")) as replica, replica.client() as client:
            eventually(lambda: "TLS with MASTER failed" in replica.log_path.read_text(), lambda: replica.log_tail())
            assert not is_up(client)
