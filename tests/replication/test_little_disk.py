"""All of the data at once, where 'min-free-disk' leaves no room for it: nothing is taken, and nothing stays behind."""

import shutil
import socket

import pytest
from pairs import eventually, is_up, redis_master, told, wait_up
from support.servers import Server
from test_masters_words import log, stays_old, with_data

MB = 1 << 20
KEYS = 40  # of a megabyte


def fill(server):
    with server.client(timeout=60) as client:
        for number in range(KEYS):
            client.call("SET", f"k{number}", bytes([number]) * MB)



def test_a_replica_leaves_room(engine):
    with redis_master() as master, with_data(1, engine) as replica:
        fill(master)
        with replica.client() as client:
            # Whatever others do with the disk meanwhile: there is too little room from the start.
            free = shutil.disk_usage(replica.directory).free
            assert client.call("CONFIG", "SET", "min-free-disk", 2 * free).value == b"OK"
            client.call("REPLICAOF", "127.0.0.1", master.port)
            eventually(lambda: "'min-free-disk'" in log(replica), lambda: log(replica))
            stays_old(replica)
            client.call("CONFIG", "SET", "min-free-disk", 0)
            eventually(lambda: is_up(client), lambda: log(replica))
            assert client.call("DBSIZE").value == KEYS


def test_the_first_start_leaves_room(engine, tmp_path):
    with Server.redis(directory=tmp_path) as redis:
        fill(redis)
        with redis.client(timeout=60) as client:
            assert client.call("SAVE").value == b"OK"
    server = Server.ingot(engine, {"min-free-disk": 2 * shutil.disk_usage(tmp_path).free}, directory=tmp_path)
    with pytest.raises(Exception, match="exited with"):
        server.start()
    assert "less than 'min-free-disk' is left" in log(server)
    server.options["min-free-disk"] = 0
    with server, server.client() as client:
        assert client.call("DBSIZE").value == KEYS


def test_a_master_leaves_room():
    """Who asks in the old way is sent an RDB that had to be written to a file first."""
    with Server.ingot() as master, master.client() as client:
        fill(master)
        client.call("CONFIG", "SET", "min-free-disk", 2 * shutil.disk_usage(master.directory).free)
        with socket.create_connection(("127.0.0.1", master.port), 10) as replica:
            replica.sendall(told("SYNC"))
            while piece := replica.recv(100):
                assert not piece.strip()  # newlines at most
        eventually(lambda: "'min-free-disk' is left for a temporary file" in log(master), lambda: log(master))
        assert client.call("GET", "k0").value == bytes(MB)
        client.call("CONFIG", "SET", "min-free-disk", 0)
        with Server.redis({"replicaof": ["127.0.0.1", str(master.port)]}) as redis:
            wait_up(redis)
