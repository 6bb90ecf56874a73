"""What the promise tests share: threads under a leash, waiting, memory, disk, key listing."""

import os
import threading
import time

from support.resp import Reply
from support.servers import Server, self_check

MB = 1 << 20
OK = Reply("simple", b"OK")
# Redis stands in for Ingot in a self-check, and keeps nothing unless told to.
KEEPS_DATA = {"appendonly": "yes"} if self_check() else {}


def ingot(engine="rocksdb", **options):
    """A server that keeps its data over kill -9; option_name=value for --option-name value."""
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return Server.ingot(engine, KEEPS_DATA | given)


class Crew:
    """Threads that work until `stop` is set; leaving the block stops and joins them.

    with Crew() as crew:
        crew.add(function, arguments)      # looks at crew.stop now and then
        crew.run_for(3.0)                  # ends early when one of them fails

    The first exception of a thread is raised where the block ends.
    """

    def __init__(self):
        self.stop = threading.Event()
        self._failed = threading.Event()
        self._failures = []
        self._threads = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.finish(raise_failure=kind is None)

    def add(self, work, *args):
        def run():
            try:
                work(*args)
            except BaseException as failure:
                self._failures.append(failure)
                self._failed.set()

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def run_for(self, seconds):
        self._failed.wait(seconds)

    def is_working(self):
        return any(thread.is_alive() for thread in self._threads)

    def wait(self, seconds):
        """Waits until all have ended by themselves."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def finish(self, seconds=60.0, raise_failure=True):
        self.stop.set()
        self.wait(seconds)
        if raise_failure and self._failures:
            raise self._failures[0]
        if raise_failure:
            assert not any(thread.is_alive() for thread in self._threads), "a thread hangs"


def eventually(condition, seconds, what, pause=0.05):
    """Waits until condition() is true; the seconds that took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, f"not within {seconds} s: {what}"
        time.sleep(pause)
    return time.monotonic() - start


def until_answered(client, begin, *command):
    """Asks until the answer begins so."""
    last = []
    eventually(lambda: last.append(client.call(*command)) or (last[-1].value or b"").startswith(begin), 20, (command, begin))
    return last[-1]


def process_status(server):
    """The sizes in bytes that the kernel tells of the server's process."""
    fields = {}
    with open(f"/proc/{server.process.pid}/status") as status:
        for line in status:
            name, _, value = line.partition(":")
            if value.endswith("kB\n"):
                fields[name] = int(value.split()[0]) * 1024
    return fields


def memory(server):
    """(resident bytes now, their peak) of the server's process."""
    fields = process_status(server)
    return fields["VmRSS"], fields["VmHWM"]


def reset_memory_peak(server):
    with open(f"/proc/{server.process.pid}/clear_refs", "w") as control:
        control.write("5")


def disk_bytes(server):
    """What the data takes on the disk, as du counts it."""
    total = 0
    for folder, _, names in os.walk(server.directory / "ingot-data"):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                pass  # a file that the engine has just deleted
    return total


def info(client, *sections):
    text = client.call("INFO", *sections).text()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def scan(client, *options):
    """All keys by a full SCAN, each as often as it was answered."""
    keys, cursor = [], b"0"
    while True:
        reply = client.call("SCAN", cursor, "COUNT", 1000, *options)
        assert reply.kind == "array", reply
        cursor = reply.value[0].value
        keys += [item.value for item in reply.value[1].value]
        if cursor == b"0":
            return keys


def check_key_count(client, expected=None):
    """DBSIZE is what a full SCAN finds, and what the model says."""
    count, keys = client.call("DBSIZE").value, scan(client)
    assert len(keys) == len(set(keys)), "SCAN answered a key twice with nobody writing"
    assert count == len(keys), f"DBSIZE {count}, but SCAN finds {len(keys)}"
    assert expected is None or count == expected, f"DBSIZE {count}, expected {expected}"


def load(client, pairs, batch=200):
    """Writes (key, value) pairs with MSET."""
    command = ["MSET"]

    def send():
        if len(command) > 1:
            reply = client.call(*command)
            assert reply == OK, reply

    for key, value in pairs:
        command += [key, value]
        if len(command) > 2 * batch:
            send()
            command = ["MSET"]
    send()


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def timed_ms(client, *command):
    """(the reply, the milliseconds it took)"""
    start = time.perf_counter()
    reply = client.call(*command)
    return reply, (time.perf_counter() - start) * 1000
