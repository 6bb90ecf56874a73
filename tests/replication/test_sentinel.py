"""An unmodified Redis Sentinel fails three servers over, whatever happens to the one that leads: nothing that was
acknowledged is lost, and who led before follows and serves nothing that was rolled back.

    INGOT_TEST_FULL=1 /usr/bin/python3 -m pytest tests/replication/test_sentinel.py -s     100 rounds and more

Sentinel looks for a dead master for two seconds here, as docs/replication.md has it; its periods are half a second, where
they are two and ten by themselves.
"""

import pathlib
import signal
import statistics
import subprocess
import time

import pytest
from pairs import eventually, state
from sentinels import DOWN_MS, FAILOVER_MS, NAME, SETTLE_SECONDS, Cluster, Node, Writers, follows, members_of
from support.effort import FULL
from support.packages import go_program
from support.servers import ingot_binary

HERE = pathlib.Path(__file__).resolve().parent

ROUNDS = 100 if FULL else 3
FAILOVER_SECONDS = DOWN_MS / 1000 + 4  # until the sentinels name another one
SETTINGS = {"protected-mode": "no", "repl-timeout": "10", "enable-debug-command": "yes"}
AUTH = [f"sentinel auth-user {NAME} sentinel", f"sentinel auth-pass {NAME} watch"]
INGOT = SETTINGS | {"write-acks": "1", "write-acks-timeout": "3000", "repl-backlog-size": "64mb", "maxmemory": "64mb"}
REDIS = SETTINGS | {"save": '""', "appendonly": "yes", "repl-diskless-sync-delay": "0"}


def ingot(engine, settings=None):
    return lambda: (Node(ingot_binary(), {}, name="ingot"), INGOT | {"engine": engine} | (settings or {}))


def redis():
    return Node("redis-server", {}, name="redis"), REDIS


class Disturbance:
    """What happens to the one that leads, and what ends it."""

    def __init__(self, cluster, node, rng):
        self.cluster, self.node, self.rng = cluster, node, rng
        self.network = cluster.network
        self.must_fail_over = True

    def begin(self):
        raise NotImplementedError

    def end(self):
        raise NotImplementedError


class Killed(Disturbance):
    def begin(self):
        self.node.kill()

    def end(self):
        self.node.start()


class Stopped(Disturbance):
    def begin(self):
        self.node.signal(signal.SIGSTOP)

    def end(self):
        self.node.signal(signal.SIGCONT)


class CutOff(Disturbance):
    def begin(self):
        self.network.isolate(self.node.place)

    def end(self):
        self.network.isolate(self.node.place, cut=False)


class Hidden(Disturbance):
    """From the sentinels only: it goes on, with replicas and clients, until these are told to leave."""

    def begin(self):
        self.network.hide_from_sentinels(self.node.place)

    def end(self):
        self.network.hide_from_sentinels(self.node.place, cut=False)


class Asked(Disturbance):
    """Nothing has happened to it: somebody wants another one."""

    def begin(self):
        with self.rng.choice(self.cluster.sentinels).client() as client:
            eventually(lambda: client.call("SENTINEL", "FAILOVER", NAME).value == b"OK", "no replica is good enough")

    def end(self):
        pass


class HandedOver(Disturbance):
    """By FAILOVER, of which the sentinels know nothing: the one they have in mind says that it follows, and they choose."""

    def begin(self):
        with self.node.client() as client:
            reply = client.call("FAILOVER", "TIMEOUT", "5000")
            assert reply.value == b"OK", reply

    def end(self):
        pass


class Restarted(Disturbance):
    """At the moment when the sentinels give it up, or some before or after."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.must_fail_over = False

    def begin(self):
        self.node.kill()
        time.sleep(DOWN_MS / 1000 + self.rng.uniform(-0.5, 1.5))
        self.node.start()

    def end(self):
        pass


class BesideOneThatLags(Killed):
    """A replica hears nothing for a while, and is back when the master dies: it must not be chosen."""

    def begin(self):
        other = self.rng.choice([each for each in self.cluster.nodes if each is not self.node])
        self.network.isolate(other.place)
        time.sleep(self.rng.uniform(0.3, 0.9))
        super().begin()
        self.network.isolate(other.place, cut=False)


class Round:
    def __init__(self, cluster, writers, kind, rng, end_others):
        self.cluster, self.writers, self.rng, self.end_others = cluster, writers, rng, end_others
        self.old = cluster.master()
        self.disturbance = kind(cluster, self.old, rng)
        self.syncs = {node: node.syncs() for node in cluster.nodes}
        self.downs = {node: self.downs_of(node) for node in cluster.nodes}
        self.switched_s = self.answered_s = None

    def run(self):
        self.writers.go()
        self.wait_for_an_answer()  # who has just been started lets write-acks-timeout pass first
        time.sleep(self.rng.uniform(0.3, 1.2))
        time.sleep(max(0, self.cluster.failed_over_at + 2.2 * FAILOVER_MS / 1000 - time.monotonic()))
        began = time.monotonic()
        self.disturbance.begin()
        if self.disturbance.must_fail_over:
            self.wait_for_another(began)
        self.cluster.failed_over_at = time.monotonic()
        time.sleep(self.rng.uniform(0, 1))
        self.disturbance.end()
        self.wait_for_the_old_one()
        eventually(self.cluster.is_settled, self.cluster.describe, SETTLE_SECONDS)
        self.writers.pause()
        self.end_others()
        self.check()

    def wait_for_another(self, began):
        new = eventually(lambda: self.others_master(), self.cluster.describe, 30)
        self.switched_s = time.monotonic() - began
        if new.name == "redis":
            return  # its writers wait for all replicas, and one is away
        self.wait_for_an_answer()
        self.answered_s = time.monotonic() - began

    def wait_for_an_answer(self):
        before = self.writers.acked()
        eventually(lambda: self.writers.acked() > before, self.cluster.describe, 30)

    def others_master(self):
        master = self.cluster.master()
        return master if master is not self.old else None

    def wait_for_the_old_one(self):
        """From the moment on at which it follows it serves nothing that its master does not have."""

        def has_rejoined():
            master = self.cluster.master()
            if master is None or master is self.old:
                return self.cluster.is_settled()
            return follows(self.old, master)

        eventually(has_rejoined, self.cluster.describe, SETTLE_SECONDS)
        self.served = eventually(lambda: members_of(self.old, self.writers), self.cluster.describe)

    def downs_of(self, node):
        return sum(sentinel.downs(node) for sentinel in self.cluster.sentinels)

    def check(self):
        master = self.cluster.master()
        if master is not self.old:
            assert self.downs_of(master) == self.downs[master], "nothing has happened to the new one"
        self.writers.assert_all_there(master)
        for served, kept in zip(self.served, members_of(master, self.writers), strict=True):
            assert served <= kept, f"rolled back, and served: {sorted(served - kept)[:20]}"
        replicas = [node for node in self.cluster.nodes if node is not master]
        eventually(lambda: len({str(state(node)) for node in [master, *replicas]}) == 1,
                   lambda: f"{[(node.name, state(node)) for node in self.cluster.nodes]}\n{self.cluster.describe()}")  # fmt: skip

    def rejoined_by(self):
        """Whether the old one went on where it was; nothing when nobody took its place."""
        if self.cluster.master() is self.old:
            return None
        before, after = self.syncs[self.old], self.old.syncs()
        return "full" if after[1] > before[1] else "partial"


def kinds_of(cluster):
    kinds = [Killed, Stopped, Restarted, Asked, HandedOver]
    return kinds + [CutOff, Hidden, BesideOneThatLags] if cluster.network.can_cut else kinds


def run_rounds(cluster, rng, rounds, only=None, end_others=lambda: None):
    """end_others: ends whoever else writes; what the servers hold is compared after it."""
    lines, rejoined = [], []
    with Writers(cluster, 4) as writers:
        kinds = []
        for i in range(rounds):
            if not kinds:
                kinds = [only] if only else rng.sample(kinds_of(cluster), len(kinds_of(cluster)))
            one = Round(cluster, writers, kinds.pop(), rng, end_others)
            one.run()
            rejoined.append(one.rejoined_by())
            lines.append(one)
            if one.switched_s is not None:
                print(f"{i}: {type(one.disturbance).__name__} of {one.old.name}: another one after "
                      f"{one.switched_s:.1f} s, answers after {one.answered_s or 0:.1f} s, back by {rejoined[-1]} sync, "
                      f"{writers.acked()} acknowledged", flush=True)  # fmt: skip
            else:
                print(f"{i}: {type(one.disturbance).__name__} of {one.old.name}: back by {rejoined[-1]} sync", flush=True)
    times = [each.switched_s for each in lines if each.switched_s is not None]
    if times:
        answers = [each.answered_s for each in lines if each.answered_s is not None]
        print(f"switched after {statistics.median(times):.1f} s, at most {max(times):.1f}; answers after "
              f"{statistics.median(answers or [0]):.1f} s, at most {max(answers or [0]):.1f}; back: {rejoined.count('partial')} by a "
              f"partial, {rejoined.count('full')} by a full sync")  # fmt: skip
        assert statistics.median(times) < FAILOVER_SECONDS


def test_three_ingots(engine, rng):
    with Cluster([ingot(engine)] * 3) as cluster:
        run_rounds(cluster, rng, ROUNDS)


def test_users_with_few_rights(engine, rng):
    """Those that the documents of Redis and Sentinel name."""
    users = {
        "user sentinel": "on >watch allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role +publish +info "
                         "+client|setname +client|kill +script|kill",
        "user follower": "on >follow +psync +replconf +ping",
        "masteruser": "follower",
        "masterauth": "follow",
    }  # fmt: skip
    with Cluster([ingot(engine), ingot(engine), redis], users, AUTH) as cluster:
        run_rounds(cluster, rng, 1, only=Killed)


def test_password_announced_addresses_and_min_replicas(engine, rng):
    settings = {"requirepass": "secret", "masterauth": "secret", "min-replicas-to-write": "1", "min-replicas-max-lag": "3"}
    one = ingot(engine)
    with Cluster([one] * 3, settings | {"replica-announce-ip": "yes"}, [f"sentinel auth-pass {NAME} secret"]) as cluster:
        if not cluster.network.can_cut:
            pytest.skip("no addresses can be made here")
        run_rounds(cluster, rng, ROUNDS if FULL else 2)


def test_failover_of_which_sentinel_knows_nothing(engine, rng):
    with Cluster([ingot(engine)] * 3) as cluster:
        run_rounds(cluster, rng, ROUNDS if FULL else 1, only=HandedOver)


def test_replica_of_priority_0_never_leads(engine, rng):
    with Cluster([ingot(engine), ingot(engine, {"replica-priority": "0"}), ingot(engine)]) as cluster:
        run_rounds(cluster, rng, 1, only=Killed)
        assert cluster.master() is cluster.nodes[2]


def test_go_redis(engine, rng):
    program = go_program(HERE / "go", "go-redis")
    with Cluster([ingot(engine)] * 3) as cluster:
        addresses = [f"{host}:{port}" for host, port in cluster.sentinel_addresses()]
        acked = []
        with subprocess.Popen([program, NAME, "numbers", *addresses], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as writer:  # fmt: skip
            run_rounds(cluster, rng, 1, end_others=lambda: acked.extend(writer.communicate(timeout=30)[0].split()))
        with cluster.master().client() as client:
            kept = {each.text() for each in client.call("SMEMBERS", "numbers").value}
        assert len(acked) > 100
        assert set(acked) <= kept, sorted(map(int, set(acked) - kept))[:20]


def test_two_ingots_and_a_redis(engine, rng):
    with Cluster([ingot(engine), ingot(engine), redis]) as cluster:
        run_rounds(cluster, rng, ROUNDS if FULL else 2)
