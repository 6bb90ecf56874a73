"""P3 under load: whoever sums all accounts, in whatever way that sees one state, always finds the same, while others move
money between them by EXEC, by WATCH and by scripts; also with cold keys, and after kill -9. bank.py says how."""

import itertools
import random

import pytest
from bank import Bank, Teller
from harness import Crew, ingot
from support.effort import FULL
from support.servers import self_check

SECONDS = 30 if FULL else 3
KILLS = 100 if FULL else 4
# Many accounts among other keys, at a cache far smaller than they are.
COLD_ACCOUNTS, COLD_KEYS, COLD_BYTES = 1000, 20_000, 400
COLD_OPTIONS = {"maxmemory": "24mb", "cache-size": "1mb", "direct-reads": "yes"}


def cold_bank(server):
    step = COLD_KEYS // COLD_ACCOUNTS
    bank = Bank([f"account:{number:06}" for number in range(0, COLD_KEYS, step)])
    noise = random.Random(3)
    with server.client(timeout=60) as client:
        bank.open(client)
        for begin in range(0, COLD_KEYS, 500):
            others = [f"account:{number:06}" for number in range(begin, begin + 500) if number % step]
            client.call("MSET", *(word for name in others for word in (name, noise.randbytes(COLD_BYTES))))
        if not self_check():
            client.call("DEBUG", "RELOAD")  # nothing is in memory
    return bank


def tellers_of(bank, rng):
    return [Teller(bank, f"{how.__name__}", how, random.Random(rng.random())) for how in Teller.HOW]


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_the_sum_never_differs(engine, cache, rng):
    with ingot(engine, **(COLD_OPTIONS if cache == "cold" else {})) as server:
        if cache == "cold":
            bank = cold_bank(server)
        else:
            bank = Bank([f"account:{number}" for number in range(15)])
            with server.client() as client:
                bank.open(client)
        tellers, counts = tellers_of(bank, rng), {}
        with Crew() as crew:
            for teller in tellers:
                crew.add(teller.work, server, crew.stop)
            for how in Bank.HOW:
                crew.add(bank.audit, server, how, counts, crew.stop)
            crew.run_for(SECONDS)
        print({teller.how.__name__: (teller.done, teller.conflicts) for teller in tellers}, counts)
        with server.client(timeout=60) as client:
            bank.check(client, tellers)
        assert all(teller.done > 0 for teller in tellers)
        # Who reads one after the other may never find a quiet moment.
        assert set(counts) >= {how.__name__ for how in Bank.HOW} - {"by_watch"}


@pytest.mark.seconds(180)
def test_the_sum_after_kill_9(engine, rng):
    with ingot(engine) as server:
        bank = Bank([f"account:{number}" for number in range(40)])
        with server.client() as client:
            bank.open(client)
        tellers, counts = tellers_of(bank, rng), {}
        for _ in range(KILLS):
            with Crew() as crew:
                for teller in tellers:
                    crew.add(teller.work, server, crew.stop)
                for how in (Bank.by_mget, Bank.by_eval_ro):
                    crew.add(bank.audit, server, how, counts, crew.stop)
                crew.run_for(rng.uniform(0.1, 0.6))
                server.kill()
            server.start()
            with server.client(timeout=60) as client:
                bank.check(client, tellers)
        assert all(teller.done > 0 for teller in tellers)


def test_libraries_change_under_their_callers(engine, rng):
    """Once FUNCTION LOAD is answered nobody runs older code, and in a transaction nobody sees half of a change."""
    code = """#!lua name=versions
local version = {version}
redis.register_function('write', function(keys, args) redis.call('SET', keys[1], version) return version end)
redis.register_function{{function_name='read', callback=function() return version end, flags={{'no-writes'}}}}"""
    answered = [0]

    def change(stop):
        with server.client(timeout=60) as client:
            for version in itertools.count(1):
                if stop.is_set():
                    return
                if version % 5 == 0:
                    dump = client.call("FUNCTION", "DUMP").value
                    commands = [("MULTI",), ("FUNCTION", "FLUSH"), ("FUNCTION", "RESTORE", dump), ("FCALL", "write", 1, "own"), ("EXEC",)]
                    reply = client.pipeline(commands)[-1]
                    assert reply.value[-1].value == version - 1, reply
                reply = client.call("FUNCTION", "LOAD", "REPLACE", code.format(version=version))
                assert reply.value == b"versions", reply
                answered[0] = version

    def call(number, stop):
        with server.client(timeout=60) as client:
            while not stop.is_set():
                least = answered[0]
                commands = [("FCALL", "write", 1, f"k{number}"), ("FCALL_RO", "read", 0), ("MULTI",), ("FCALL", "write", 1, f"k{number}"),
                            ("GET", f"k{number}"), ("FCALL_RO", "read", 0), ("EXEC",), ("MULTI",), ("FCALL_RO", "read", 0), ("FCALL_RO", "read", 0),
                            ("EXEC",)]  # fmt: skip
                replies = client.pipeline(commands)
                wrote, read, both, twice = replies[0].value, replies[1].value, replies[6].value, replies[10].value
                assert least <= wrote <= read <= both[0].value == int(both[1].value) == both[2].value, (least, replies)
                assert twice[0].value == twice[1].value >= both[0].value, replies
                calls[number] += 1

    calls = [0] * 4
    with ingot(engine) as server:
        with server.client() as client:
            client.call("FUNCTION", "LOAD", code.format(version=0))
        with Crew() as crew:
            crew.add(change, crew.stop)
            for number in range(len(calls)):
                crew.add(call, number, crew.stop)
            crew.run_for(SECONDS)
        print(answered, calls)
        assert answered[0] > 10 and min(calls) > 10
