"""P1: a connection's commands take effect, and are answered, in the order sent."""

import random
import time

import pytest
from harness import MB, Crew, ingot, load
from support.effort import FULL
from model import Model
from workload import Workload

CONNECTIONS = 4
PIPELINES = 200 if FULL else 5
DEPTH = 2500  # units in one pipeline
HOT_KEYS = 8
COLD_KEYS = 12000
COLD_VALUE_BYTES = 1200
ANSWER_SECONDS = 60


def send_and_compare(client, model, units):
    wire, expected = [], []
    for unit in units:
        commands, replies = model.run(unit)
        wire += commands
        expected += replies
    for index, (wanted, got) in enumerate(zip(expected, client.pipeline(wire), strict=True)):
        if wanted != got:
            start = index
            while wire[index] == (b"EXEC",) and wire[start] != (b"MULTI",):
                start -= 1
            used = {argument for command in wire[start : index + 1] for argument in command[1:]}
            before = [(at, c) for at, c in enumerate(wire[:start]) if used & set(c[1:])][-8:]
            raise AssertionError(
                f"command {index} of {len(wire)}: {wire[start : index + 1]!r:.600}\n"
                f"answered {got}\nexpected {wanted}\nbefore it: {before!r:.2500}"
            )


def check_state(client, model):
    """What the server keeps in the end is what the model keeps."""
    for db, data in model.databases.items():
        units = [[(b"SELECT", b"%d" % db)]]
        units += [[(b"GET", key)] for key in data] + [[(b"PEXPIRETIME", key)] for key in data]
        send_and_compare(client, model, units)


def drive(server, model, keys, seed, keys_at_once):
    rng = random.Random(seed)
    with server.client(timeout=ANSWER_SECONDS) as client:
        for _ in range(PIPELINES):
            chosen = rng.sample(keys, min(keys_at_once, len(keys)))
            workload = Workload(rng, chosen, databases=2)
            send_and_compare(client, model, [workload.unit() for _ in range(DEPTH)])
        check_state(client, model)


def run(server, rng, keys_of, models, keys_at_once):
    start = time.monotonic()
    with Crew() as crew:
        for number, (keys, model) in enumerate(zip(keys_of, models)):
            crew.add(drive, server, model, keys, f"{rng.random()} {number}", keys_at_once)
        crew.wait(600)
    assert server.alive(), server.log_tail()
    units = CONNECTIONS * PIPELINES * DEPTH
    print(f"{units} units in {time.monotonic() - start:.1f} s")


def test_deep_mixed_pipelines(engine, rng):
    """Few keys: nearly every command depends on one just before it in the same pipeline."""
    keys_of = [[b"c%d:%d" % (c, i) for i in range(HOT_KEYS)] for c in range(CONNECTIONS)]
    with ingot(engine) as server:
        run(server, rng, keys_of, [Model() for _ in keys_of], HOT_KEYS)


@pytest.mark.seconds(120)
def test_deep_mixed_pipelines_over_cold_data(engine, rng):
    """Data larger than the cache, and nothing of it in memory: reads and writes wait for the disk."""
    keys_of = [[b"c%d:%d" % (c, i) for i in range(COLD_KEYS)] for c in range(CONNECTIONS)]
    models = [Model() for _ in keys_of]
    with ingot(engine, maxmemory="32mb", direct_reads="yes") as server:
        assert CONNECTIONS * COLD_KEYS * COLD_VALUE_BYTES > 50 * MB
        with server.client() as client:
            for keys, model in zip(keys_of, models):
                for key in keys:
                    model.data[key] = (rng.randbytes(COLD_VALUE_BYTES), None)
                load(client, ((key, model.value(key)) for key in keys))
        server.restart()
        run(server, rng, keys_of, models, keys_at_once=300)


def test_one_connection_in_many_small_pieces(engine, rng):
    """The order holds however the bytes arrive."""
    keys = [b"k%d" % i for i in range(4)]
    model, workload = Model(), Workload(rng, keys)
    with ingot(engine) as server, server.client() as client:
        wire, expected = [], []
        for _ in range(400):
            commands, replies = model.run(workload.unit())
            wire += commands
            expected += replies
        data = b"".join(b"*%d\r\n" % len(c) + b"".join(b"$%d\r\n%b\r\n" % (len(a), a) for a in c)
                        for c in wire)  # fmt: skip
        at = 0
        while at < len(data):
            step = rng.choice([1, 7, 100, 5000])
            client.send_raw(data[at : at + step])
            at += step
        client.flush()
        for wanted in expected:
            assert client.read() == wanted


def test_a_block_that_runs_again_begins_in_its_own_database(engine):
    """Cold keys make a block run more than once; a SELECT inside must not reach the next run."""
    with ingot(engine, direct_reads="yes") as server:
        with server.client() as client:
            load(client, ((f"key:{i}", "7") for i in range(1000)))
        server.restart()
        with server.client() as client:
            for i in range(0, 1000, 50):
                block = [("SELECT", 1), ("MULTI",), ("ECHO", "x"), ("INCR", f"key:{i}"), ("SELECT", 0),
                         ("INCR", f"key:{i}"), ("EXEC",), ("GET", f"key:{i}")]  # fmt: skip
                *_, done, last = client.pipeline(block)
                assert [reply.value for reply in done.value] == [b"x", 1, b"OK", 8]
                assert last.value == b"8"


def test_reads_of_one_connection_never_go_back(engine):
    """Single reads, blocks of reads, and scripts, some answered by the I/O thread and some in the pool."""
    reads = [
        [("MGET", "counter", "other")], [("GET", "counter")], [("EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "counter")],
        [("MULTI",), ("GET", "counter"), ("EXEC",)]]  # fmt: skip
    rng = random.Random(7)
    with ingot(engine) as server, server.client() as reader, Crew() as crew:
        reader.pipeline([("SET", "counter", "0"), ("SET", "other", "1")])

        def count():
            with server.client() as writer:
                while not crew.stop.is_set():
                    writer.call("INCR", "counter")

        def read():
            last = 0
            while not crew.stop.is_set():
                commands = [command for _ in range(30) for command in rng.choice(reads)]
                for command, reply in zip(commands, reader.pipeline(commands), strict=True):
                    if command[0] == "MULTI" or reply.value == b"QUEUED":
                        continue
                    value = reply.value[0].value if command[0] in ("MGET", "EXEC") else reply.value
                    assert int(value) >= last, command
                    last = int(value)

        crew.add(count)
        crew.add(read)
        crew.run_for(2.0)


def test_what_has_expired_stays_so_for_one_connection(engine):
    reads = {
        "EVAL_RO": [("EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "key"), ("GET", "key")],
        "EXEC": [("MULTI",), ("GET", "key"), ("EXEC",), ("GET", "key")],
    }
    with ingot(engine) as server, server.client() as client:
        ends = time.monotonic() + 3
        while time.monotonic() < ends:
            for commands in reads.values():
                client.call("SET", "key", "value", "PX", "3")
                time.sleep(0.002)
                replies = [reply.value for reply in client.pipeline(commands * 150)]
                found = [
                    bool(value[0].value if isinstance(value, list) else value)
                    for value in replies
                    if value not in (b"OK", b"QUEUED")
                ]
                assert found == sorted(found, reverse=True)
