"""Servers under Redis Sentinel, each with a network of its own that can be cut, and clients that remember what was
acknowledged.

A network is a namespace of the kernel's, joined to the others by a bridge: root may make them, on most machines. Where
that is not allowed all servers share 127.0.0.1, and nothing can be cut (`Network.can_cut`).
"""

import contextlib
import random
import subprocess
import threading
import time

import redis
from pairs import eventually
from redis.sentinel import MasterNotFoundError, Sentinel
from support.resp import Timeout
from support.servers import Server, free_port

NAME = "ingot"
DOWN_MS = 2000  # well above the second and a tenth after which Sentinel may first connect to a new master
FAILOVER_MS = 2000  # twice that lies between two attempts of Sentinel
SETTLE_SECONDS = 60


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, timeout=10)


class Network:
    """Of so many servers. Sentinels and clients have addresses of their own on the bridge."""

    def __init__(self, servers):
        self.tag = f"ig{random.SystemRandom().randrange(1 << 24):06x}"
        self.made = []
        self.can_cut = self._make(servers)
        if not self.can_cut:
            self.hosts, self.sentinel_host = ["127.0.0.1"] * servers, "127.0.0.1"

    def _make(self, servers):
        dice = random.SystemRandom()
        subnet = f"10.{dice.randrange(64, 250)}.{dice.randrange(250)}"
        self.hosts = [f"{subnet}.{i + 1}" for i in range(servers)]
        self.announced = [f"{subnet}.{i + 101}" for i in range(servers)]
        self.sentinel_host = f"{subnet}.253"
        try:
            ip("link", "add", self.tag, "type", "bridge")
            self.made.append(("link", "del", self.tag))
            for host in (f"{subnet}.254", self.sentinel_host):
                ip("addr", "add", f"{host}/24", "dev", self.tag)
            ip("link", "set", self.tag, "up")
            for i, host in enumerate(self.hosts):
                space = self.space(i)
                ip("netns", "add", space)
                self.made.append(("netns", "del", space))
                ip("link", "add", space, "type", "veth", "peer", "name", "inner", "netns", space)
                ip("link", "set", space, "master", self.tag, "up")
                for address in (host, self.announced[i]):
                    ip("-n", space, "addr", "add", f"{address}/24", "dev", "inner")
                for device in ("inner", "lo"):
                    ip("-n", space, "link", "set", device, "up")
        except (OSError, subprocess.CalledProcessError):
            self.close()
            return False
        return True

    def space(self, i):
        return f"{self.tag}n{i}"

    def close(self):
        for words in reversed(self.made):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip(*words)
        self.made = []

    def prefix(self, i):
        return ["ip", "netns", "exec", self.space(i)] if self.can_cut else []

    def isolate(self, i, cut=True):
        """From everybody."""
        ip("link", "set", self.space(i), "down" if cut else "up")

    def hide_from_sentinels(self, i, cut=True):
        """Replicas and clients still reach it."""
        ip("-n", self.space(i), "route", "add" if cut else "del", "blackhole", f"{self.sentinel_host}/32")


class Node(Server):
    """One of the servers. What it is told to keep it writes into its file, as CONFIG REWRITE does."""

    network = None
    place = 0
    password = None

    def join(self, network, place, settings):
        """One that announces itself serves under that address alone, and not under the one it connects from."""
        self.network, self.place, self.host = network, place, network.hosts[place]
        self.password = settings.get("requirepass")
        if settings.get("replica-announce-ip") == "yes":
            self.host, self.port = network.announced[place], free_port()
            settings = settings | {"replica-announce-ip": self.host, "replica-announce-port": str(self.port)}
        self.conf = self.directory / "node.conf"
        settings = settings | {"bind": f"{self.host} 127.0.0.1" if network.can_cut else "127.0.0.1"}
        self.conf.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        return self

    def command_line(self):
        return self.network.prefix(self.place) + super().command_line()

    def client(self, protocol=2, timeout=10.0):
        client = super().client(protocol, timeout)
        if self.password:
            client.call("AUTH", self.password)
        return client

    def address(self):
        return self.host, self.port

    def syncs(self):
        """How often it went on where it was, and how often it took all of its master's data."""
        text = self.log_path.read_text(errors="replace")
        return text.count("accepted a Partial Resynchronization"), text.count("Full resync from master")


class SentinelProcess(Server):
    def __init__(self, host):
        super().__init__("redis-server", {})
        self.host = host

    def watch(self, node, settings):
        self.port = free_port()
        self.conf = self.directory / "sentinel.conf"
        lines = [f"port {self.port}", f"bind {self.host}", f"dir {self.directory}", f"bind-source-addr {self.host}",
                 f"sentinel monitor {NAME} {node.host} {node.port} 2",
                 f"sentinel down-after-milliseconds {NAME} {DOWN_MS}",
                 f"sentinel failover-timeout {NAME} {FAILOVER_MS}",
                 f"sentinel parallel-syncs {NAME} 2", *settings]  # fmt: skip
        self.conf.write_text("\n".join(lines) + "\n")
        return self

    def command_line(self):
        return [self.binary, str(self.conf), "--sentinel"]

    def speed_up(self):
        """Its own periods: an old master is told to follow the new one after two seconds, and not after eight."""
        with self.client() as client:
            for period in ("info-period", "publish-period"):
                reply = client.call("SENTINEL", "DEBUG", period, "500")
                assert reply.value == b"OK", reply

    def downs(self, node):
        """How often it has taken this one for dead while it was the master."""
        return self.log_path.read_text(errors="replace").count(f"+sdown master {NAME} {node.host} {node.port}\n")

    def fields(self, *words):
        with self.client() as client:
            flat = [each.text() for each in client.call("SENTINEL", *words, NAME).value]
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def master(self):
        with self.client() as client:
            host, port = client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME).value
        return host.text(), int(port.text())


class Cluster:
    """nodes: (binary's Server class method, settings). The first one leads."""

    def __init__(self, makers, settings=None, sentinel_settings=()):
        self.stack = contextlib.ExitStack()
        with self.stack:
            self.network = Network(len(makers))
            self.stack.callback(self.network.close)
            self.nodes = []
            for place, make in enumerate(makers):
                node, own = make()
                self.nodes.append(node.join(self.network, place, own | (settings or {})))
                self.stack.callback(node.remove)
                if place > 0:
                    with open(node.conf, "a") as conf:
                        conf.write(f"replicaof {self.nodes[0].host} {self.nodes[0].port}\n")
                node.start()
                self.stack.callback(node.stop)
            self.sentinels = []
            for _ in range(3):
                sentinel = SentinelProcess(self.network.sentinel_host).watch(self.nodes[0], sentinel_settings)
                self.stack.callback(sentinel.remove)
                self.sentinels.append(sentinel.start())
                self.stack.callback(sentinel.stop)
                sentinel.speed_up()
            eventually(self.is_settled, self.describe, SETTLE_SECONDS)
            self.failed_over_at = 0.0
            self.kept = self.stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kept.close()

    def describe(self):
        return "not settled\n" + "\n".join(each.log_tail() for each in self.nodes + self.sentinels)

    def sentinel_addresses(self):
        return [(each.host, each.port) for each in self.sentinels]

    def master(self):
        """As the sentinels have it; None while they differ."""
        named = {each.master() for each in self.sentinels}
        return next((node for node in self.nodes if {node.address()} == named), None)

    def is_settled(self):
        """All agree on who leads, everybody follows it, and all know of all."""
        master = self.master()
        if master is None:
            return False
        replicas = [node for node in self.nodes if node is not master]
        leads = {"role": "master", "connected_slaves": str(len(replicas))}
        return (leads.items() <= replication_of(master).items() and all(follows(node, master) for node in replicas)
                and all(self.knows_all(each) for each in self.sentinels))  # fmt: skip

    def knows_all(self, sentinel):
        fields = sentinel.fields("MASTER")
        return (fields["flags"] == "master" and fields["num-slaves"] == str(len(self.nodes) - 1)
                and fields["num-other-sentinels"] == "2")  # fmt: skip


def replication_of(node):
    """Its INFO; nothing while it cannot be asked."""
    try:
        with node.client(timeout=2) as client:
            reply = client.call("INFO", "replication")
    except (OSError, Timeout):
        return {}
    lines = reply.text().splitlines() if reply.kind == "bulk" else []
    return dict(line.split(":", 1) for line in lines if ":" in line)


def follows(node, master):
    wanted = {"role": "slave", "master_host": master.host, "master_port": str(master.port), "master_link_status": "up"}
    return wanted.items() <= replication_of(node).items()


# What a client through Sentinel meets while a master is replaced. Anything else is a failure.
REFUSALS = ("NOREPLICAS", "UNBLOCKED", "because of: READONLY")  # the last by EXEC, when its server has come to follow
REFUSED = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.ReadOnlyError, MasterNotFoundError)


class Writer(threading.Thread):
    """Adds unique numbers through Sentinel, and remembers those that were acknowledged: by the master's own word
    where that has write-acks, else by WAIT for all replicas."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.number = number
        self.by_wait = any(node.name == "redis" for node in cluster.nodes)
        self.replicas = len(cluster.nodes) - 1
        sentinel = Sentinel(cluster.sentinel_addresses(), socket_timeout=1)
        self.client = sentinel.master_for(NAME, socket_timeout=4, socket_connect_timeout=1, password=cluster.nodes[0].password)
        self.names = [f"{kind}:{number}" for kind in ("list", "set", "count")]
        self.next = 0
        self.acked = []  # members of list and set
        self.counted = 0  # the counter's last value that was acknowledged
        self.refused = 0
        self.unexpected = None
        self.running = threading.Event()
        self.idle = threading.Event()
        self.ended = False
        self.start()

    def run(self):
        while True:
            self.idle.set()
            self.running.wait()
            if self.ended:
                return
            self.idle.clear()
            try:
                self.write()
            except BaseException as error:
                if not isinstance(error, REFUSED) and not any(word in str(error) for word in REFUSALS):
                    self.unexpected = error
                    return
                self.refused += 1
                self.client.connection_pool.disconnect()  # another one leads by now, perhaps
                time.sleep(0.02)

    def write(self):
        self.next += 1
        members, unique, count = self.names
        pipe = self.client.pipeline(transaction=not self.by_wait and self.next % 3 == 0)
        pipe.rpush(members, self.next).sadd(unique, self.next).incr(count)
        if self.by_wait:
            pipe.execute_command("WAIT", self.replicas, 300).config_get("write-acks")
        answers = pipe.execute()
        if self.by_wait and not answers[4] and answers[3] < self.replicas:
            raise redis.TimeoutError("WAIT")
        assert answers[2] > self.counted, f"INCR gave {answers[2]} after {self.counted}"
        self.counted = answers[2]
        self.acked.append(self.next)

    def missing(self, client):
        """What was acknowledged and is not there."""
        members, unique, count = self.names
        listed = {int(each.value) for each in client.call("LRANGE", members, "0", "-1").value}
        known = {int(each.value) for each in client.call("SMEMBERS", unique).value}
        counted = int(client.call("GET", count).value or 0)
        lost = [n for n in self.acked if n not in listed or n not in known]
        return lost + ([f"count {self.counted}, here {counted}"] if counted < self.counted else [])

    def end(self):
        self.ended = True
        self.running.set()
        self.join(20)


class Writers:
    def __init__(self, cluster, count):
        self.all = [Writer(cluster, n) for n in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.all:
            each.end()

    def go(self):
        for each in self.all:
            each.running.set()

    def pause(self):
        for each in self.all:
            each.running.clear()
        for each in self.all:
            assert each.idle.wait(30) or each.unexpected
        self.acked()

    def acked(self):
        for each in self.all:
            if each.unexpected:
                raise each.unexpected
        return sum(len(each.acked) for each in self.all)

    def assert_all_there(self, master):
        with master.client(timeout=60) as client:
            lost = {each.number: each.missing(client)[:20] for each in self.all}
        assert not any(lost.values()), f"acknowledged and lost: {lost}"


def members_of(node, writers):
    """What the node serves of the sets, or nothing while it cannot be asked."""
    with contextlib.suppress(OSError, Timeout), node.client(timeout=5) as client:
        replies = client.pipeline([["SMEMBERS", each.names[1]] for each in writers.all])
        if all(reply.kind == "array" for reply in replies):  # Sentinel has not closed the connection
            return [{each.value for each in reply.value} for reply in replies]
    return None
