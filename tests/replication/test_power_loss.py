"""The power of a master, of a replica, or of anybody goes: what either has after it is one history, and in the end the same.

support/faulty_disk.py is the disk whose power goes: what was not synced is lost, kept, torn, or comes back, each file and
name for itself. So a master may have less than its replica, and a backlog other bytes than its data.
"""

import contextlib
import errno
import itertools
import threading
import time

import pytest
from pairs import RUN_ID, FakeMaster, Load, assert_same, eventually, full_resync, info, on_faulty_disk, wait_in_step, wait_up
from support.effort import FULL
from support.replica import Replica
from support.servers import Server

ROUNDS = 40 if FULL else 2
ACTIONS = 150 if FULL else 12
LOAD = 3_000
SYNCED_SECONDS = 2.5  # everysec
OPTIONS = {"repl-backlog-size": "64mb", "repl-timeout": "10", "maxmemory": "32mb"}


def powered(engine, tmp_path, name, options=None, master=None):
    """A server on a disk whose power goes, and the disk."""
    return on_faulty_disk(engine, tmp_path, name, OPTIONS | (options or {}), master)


class Diary:
    """Appends one word after another to a list, beside other load: what is lost, skipped or comes twice shows in it."""

    def __init__(self, rng):
        self.rng = rng
        self.load = Load(rng, everything=False)
        self.words = itertools.count()

    def write(self, server, commands=LOAD):
        with contextlib.suppress(ConnectionError, EOFError), server.client(timeout=60) as client:
            for _ in range(0, commands, 100):
                todo = self.load.commands(100)
                for at in range(0, len(todo), 10):
                    client.pipeline([*todo[at : at + 10], ["SELECT", "3"], ["RPUSH", "diary", next(self.words)], ["SELECT", "0"]])
            client.call("DISCARD")

    @contextlib.contextmanager
    def writing(self, server):
        writer = threading.Thread(target=self.write, args=(server,))
        writer.start()
        try:
            time.sleep(self.rng.uniform(0.05, 1.0))
            yield
        finally:
            writer.join()


def lose_power(server, disk, rng):
    server.kill()
    disk.power_loss(rng.randrange(1 << 32))
    server.start()


@pytest.mark.parametrize("appendfsync", ["always", "everysec", "no"])
def test_master_that_comes_back_with_less(engine, appendfsync, rng, tmp_path):
    """What its replica had more goes; nothing of the lost past is mixed into what is told next."""
    with powered(engine, tmp_path, "master", {"appendfsync": appendfsync}) as (master, disk):
        diary = Diary(rng)
        of = {"replicaof": ["127.0.0.1", str(master.port)]}
        with Server.ingot(engine, OPTIONS | of) as replica:
            of["replicaof"][1] = str(replica.port)
            with Server.ingot(engine, OPTIONS | of) as its_replica:
                wait_up(replica)
                for _ in range(ROUNDS):
                    with diary.writing(master):
                        lose_power(master, disk, rng)
                    diary.write(master, 300)
                    assert_same(master, replica)
                assert_same(master, its_replica)


@pytest.mark.parametrize("appendfsync", ["everysec", "no"])
def test_replica_that_comes_back_with_less_goes_on_from_there(engine, appendfsync, rng, tmp_path):
    with Server.ingot(engine, OPTIONS) as master:
        diary = Diary(rng)
        with powered(engine, tmp_path, "replica", {"appendfsync": appendfsync}, master) as (replica, disk):
            wait_up(replica)
            of = {"replicaof": ["127.0.0.1", str(replica.port)]}
            with Server.ingot(engine, OPTIONS | of) as its_replica, master.client() as client:
                wait_in_step(master, replica)
                time.sleep(SYNCED_SECONDS)  # or the full synchronization itself may be lost
                for _ in range(ROUNDS):
                    with diary.writing(master):
                        lose_power(replica, disk, rng)
                    assert_same(master, replica)
                    assert_same(master, its_replica)
                if appendfsync == "everysec":
                    assert info(client, "stats")["sync_full"] == "1"


def test_anything_happens_to_three_servers(engine, rng, tmp_path):
    """They follow each other as chance will have it, are promoted, killed, and lose their power, while the one that leads
    is written to. In the end they stand in one chain."""
    diary = Diary(rng)
    with contextlib.ExitStack() as stack:
        nodes = []
        for name in "abc":
            mode = rng.choice(["everysec", "no"])
            nodes.append(stack.enter_context(powered(engine, tmp_path, name, {"appendfsync": mode})))
        servers = [server for server, _ in nodes]

        def follow(server, master):
            with server.client(timeout=30) as client:
                words = ["NO", "ONE"] if master is None else ["127.0.0.1", str(master.port)]
                assert client.call("REPLICAOF", *words).value.startswith(b"OK")

        def chain(order):
            follow(order[0], None)
            for master, replica in itertools.pairwise(order):
                follow(replica, master)

        order = list(servers)
        chain(order)
        for _ in range(ACTIONS):
            with diary.writing(order[0]):
                kind = rng.randrange(6)
                server, disk = rng.choice(nodes)
                if kind < 2:
                    lose_power(server, disk, rng)
                elif kind == 2:
                    server.restart(kill=True)
                elif kind == 3:
                    follow(rng.choice(order[1:]), None)
                    time.sleep(rng.uniform(0, 0.3))
                else:
                    rng.shuffle(order)
            if rng.random() < 0.7:
                chain(order)
        chain(order)
        diary.write(order[0], 300)
        for master, replica in itertools.pairwise(order):
            assert_same(master, replica)


def test_promoted_server_has_an_id_of_its_own_also_when_that_cannot_be_written(engine, tmp_path):
    """Else what it takes from clients would stand in its old master's stream, in which other bytes stand there."""
    with Server.ingot(engine, OPTIONS) as master, powered(engine, tmp_path, "replica", None, master) as (replica, disk):
        with master.client() as client, replica.client() as there:
            client.call("SET", "k", "v")
            wait_in_step(master, replica)
            old = info(there)["master_replid"]
            disk.fail("change", 0, errno.ENOSPC)
            there.call("REPLICAOF", "NO", "ONE")
            time.sleep(0.5)
            disk.heal()
            eventually(lambda: there.call("SET", "k", "mine").kind == "simple", "it takes nothing")
            assert info(there)["master_replid"] != old
            client.pipeline([["SET", "k", "theirs"], ["SET", "more", "x" * 100]])
            there.call("REPLICAOF", "127.0.0.1", master.port)
            assert_same(master, replica)


@contextlib.contextmanager
def fake_master_at(place):
    """Its data are empty, and stand at this place of its stream."""

    def talk(peer):
        peer.shake_hands()
        full_resync(peer, place)
        while peer.connection.recv(1000):
            pass

    with FakeMaster(talk) as master:
        yield master


def test_removed_backlog_of_another_past_comes_back(engine, tmp_path):
    """Its files were removed when the data became another stream's; the power went before that was synced. What it holds
    ends where the data stand, by chance, and must not be told."""
    commands = [["SET", f"key:{i:04}", "of the past"] for i in range(200)]
    with Server.ingot(engine, OPTIONS) as node, node.client() as client, Replica(node.port) as follower:
        ends = []
        for words in commands:  # a group for each
            client.call(*words)
            ends.append(int(info(client)["master_repl_offset"]))
        client.call("PUBLISH", "c", "m")
        files = {each: each.read_bytes() for each in (node.directory / "ingot-backlog").iterdir()}
        assert files
        follower.close()
        place = next(end for end in ends if end > ends[-1] // 2)
        asked = ends[ends.index(place) - 10]
        with fake_master_at(place) as master:
            client.call("REPLICAOF", "127.0.0.1", master.port)
            eventually(lambda: info(client)["master_link_status"] == "up", node.log_tail)
        node.kill()
        for each, content in files.items():
            each.write_bytes(content)
        node.start()
        with node.client() as again:
            answer = again.call("PSYNC", RUN_ID, asked + 1)
            assert answer.text().startswith("FULLRESYNC"), answer
