"""Disks of a master and its replica that are full, fail, or hang, for a while or until a restart: nobody else suffers, old
data stay, and in the end both are the same. support/faulty_disk.py is such a disk."""

import errno
import threading
import time

import pytest
from pairs import Load, assert_same, eventually, info, is_up, on_faulty_disk, state, wait_in_step, wait_up
from support.effort import FULL
from support.servers import Server
from support.small_disk import small_disk

ROUNDS = 60 if FULL else 4
LOAD = 2_000
OPTIONS = {"repl-backlog-size": "64mb", "repl-timeout": "5", "maxmemory": "32mb"}
HEALED_SECONDS = 40


def with_disk(engine, tmp_path, name, options=None, master=None):
    return on_faulty_disk(engine, tmp_path, name, OPTIONS | (options or {}), master)


def push(client, count=300):
    client.pipeline([["RPUSH", "list", "x" * 100] for _ in range(count)])


def full_syncs(master):
    with master.client() as client:
        return int(info(client, "stats")["sync_full"])


def test_replica_whose_disk_is_full_goes_on_when_there_is_space(engine, tmp_path):
    with Server.ingot(engine, OPTIONS) as master, master.client(timeout=30) as client:
        with with_disk(engine, tmp_path, "replica", None, master) as (replica, disk), replica.client(timeout=30) as there:
            push(client)
            wait_in_step(master, replica)
            for _ in range(2):
                here = there.call("LLEN", "list").value
                disk.fail("growth", 0, errno.ENOSPC)
                push(client)
                time.sleep(2)
                push(client)
                assert there.call("LLEN", "list").value >= here
                disk.heal()
                wait_in_step(master, replica, HEALED_SECONDS)
            assert_same(master, replica)
            assert full_syncs(master) == 1
            assert "cannot be kept" in replica.log_tail() or "No space" in replica.log_path.read_text()


@pytest.mark.parametrize("failing", ["change", "read"])
def test_replica_whose_disk_fails_goes_on_after_a_restart(engine, failing, rng, tmp_path):
    with Server.ingot(engine, OPTIONS) as master, master.client(timeout=30) as client:
        with with_disk(engine, tmp_path, "replica", None, master) as (replica, disk):
            load = Load(rng)
            load.run(master, LOAD)
            wait_in_step(master, replica)
            for _ in range(3):
                disk.fail(failing, rng.randrange(1, 100), errno.EIO)
                load.run(master, LOAD)
                push(client)
                time.sleep(0.5)
                disk.fail(failing, 0, errno.EIO)
                load.run(master, LOAD)
                time.sleep(0.5)
                assert replica.alive(), replica.log_tail()
                disk.heal()
                replica.restart(kill=True)
                wait_in_step(master, replica, HEALED_SECONDS)
            assert_same(master, replica)


@pytest.fixture(name="small_disk")
def disk_of_160_mb(tmp_path):
    with small_disk(tmp_path / "disk", 160) as path:
        yield path


def test_data_too_large_for_the_replica_leave_its_old_ones(engine, rng, small_disk, tmp_path):
    """It tries again and again, each time on all the disk there is; once they fit they come."""
    with Server.ingot(engine, OPTIONS) as master, master.client(timeout=30) as client:
        for number in range(150):
            client.pipeline([["SET", f"k{number}:{i}", rng.randbytes(10_000)] for i in range(100)])
        replica = Server.ingot(engine, OPTIONS | {"min-free-disk": "48mb"}, directory=small_disk)
        replica.log_path = tmp_path / "replica.log"
        try:
            with replica.start().client(timeout=30) as there:
                there.pipeline([["SET", f"old{i}", rng.randbytes(100)] for i in range(1000)])
                old = state(replica)
                there.call("REPLICAOF", "127.0.0.1", master.port)
                eventually(lambda: replica.log_path.read_text().count("cannot be taken") >= 3, replica.log_tail, 60)
                assert state(replica) == old and not is_up(there)
                client.call("FLUSHALL")
                push(client)
                eventually(lambda: is_up(there), replica.log_tail, 60)
            assert_same(master, replica)
        finally:
            replica.kill()


@pytest.mark.timed
def test_disk_of_the_replica_that_hangs_holds_up_nobody_else(engine, tmp_path):
    with Server.ingot(engine, OPTIONS) as master, master.client(timeout=30) as client:
        with with_disk(engine, tmp_path, "replica", None, master) as (replica, disk):
            wait_up(replica)
            push(client)
            wait_in_step(master, replica)
            disk.hang()
            longest, until = 0.0, time.monotonic() + 8  # longer than repl-timeout
            while time.monotonic() < until:
                begin = time.monotonic()
                push(client, 10)
                longest = max(longest, time.monotonic() - begin)
            assert longest < 2, longest
            client.call("CONFIG", "SET", "write-acks", "1", "write-acks-timeout", "300")
            begin = time.monotonic()
            assert client.call("SET", "k", "v").text().startswith("NOREPLICAS")
            assert time.monotonic() - begin < 3
            disk.resume()
            eventually(lambda: client.call("SET", "k", "v").value == b"OK", "nothing is acknowledged")
            assert_same(master, replica)
            assert full_syncs(master) == 1


def test_anything_fails_on_both(engine, rng, tmp_path):
    with with_disk(engine, tmp_path, "master") as (master, its_disk):
        with with_disk(engine, tmp_path, "replica", None, master) as (replica, disk):
            nodes = [(master, its_disk), (replica, disk)]
            load = Load(rng)
            for _ in range(ROUNDS):
                server, failing = rng.choice(nodes)
                writer = threading.Thread(target=load.run, args=(master, LOAD))
                writer.start()
                time.sleep(rng.uniform(0, 0.3))
                code = rng.choice([errno.ENOSPC, errno.EIO])
                kind = rng.choice(["change", "read"]) if code == errno.EIO else "growth"
                failing.fail(kind, rng.choice([0, rng.randrange(1, 200)]), code)
                time.sleep(rng.uniform(0, 1))
                if rng.random() < 0.3:
                    replica.restart(kill=True) if failing is its_disk else master.restart(kill=True)
                writer.join()
                assert server.alive(), server.log_tail()
                failing.heal()
                if code == errno.EIO or rng.random() < 0.5:
                    server.restart(kill=True)
                with master.client() as client:
                    eventually(lambda: client.call("SET", "healed", "x").value == b"OK", master.log_tail, HEALED_SECONDS)
                wait_in_step(master, replica, HEALED_SECONDS)
            assert_same(master, replica)
