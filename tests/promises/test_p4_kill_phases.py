"""P4: kill -9 in the middle of whatever the server does beside serving: nothing answered is lost, nothing is half done."""

import random
import signal
import subprocess
import time

import pytest
from collections_of import fill, size
from diary import Diary
from harness import Crew, check_key_count, eventually
from support.effort import FULL
from support.servers import Server, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps other promises")

ROUNDS = 20 if FULL else 2  # of each phase
WRITERS = 2
ELEMENTS = 3000
OTHER_KEYS = 2000


def other_database(server):
    client = server.client(timeout=30)
    client.call("SELECT", 1)
    return client


def start(server, delay):
    """Killed while it starts."""
    server.kill()
    with open(server.log_path, "ab") as log:
        process = subprocess.Popen(server.command_line(), stdout=log, stderr=log, cwd=server.directory)
    time.sleep(delay)
    process.kill()
    process.wait()


def checkpoint(server, delay):
    with server.client() as client:
        assert not client.call("BGSAVE").is_error()
        time.sleep(delay)
        server.kill()


def flush_and_compaction(server, delay):
    with other_database(server) as client:
        noise = random.Random(1)
        client.pipeline([("SET", f"noise:{n % 50}", noise.randbytes(100_000)) for n in range(150)])
        time.sleep(delay)
        server.kill()


def flushing(server, delay):
    with other_database(server) as client:
        client.pipeline([("SET", f"k:{n}", "v") for n in range(OTHER_KEYS)])
        client.send("FLUSHDB")
        client.flush()
        time.sleep(delay / 10)
        server.kill()


def config_rewrite(server, delay):
    with server.client() as client:
        for number in range(5):
            client.send("CONFIG", "SET", "timeout", 1000 + number)
            client.send("CONFIG", "REWRITE")
        client.flush()
        time.sleep(delay / 10)
        server.kill()


def reclaiming(server, delay):
    with other_database(server) as client:
        for kind in ("hash", "zset"):
            fill(client, kind, kind, ELEMENTS)
            assert client.call("DEL", kind).value == 1
        time.sleep(delay * 4)
        server.kill()


def shutdown(server, delay):
    server.signal(signal.SIGTERM)
    time.sleep(delay / 4)
    server.kill()


PHASES = {each.__name__: each for each in
          (start, checkpoint, flush_and_compaction, flushing, config_rewrite, reclaiming, shutdown)}  # fmt: skip


@pytest.mark.seconds(240)
@pytest.mark.parametrize("phase", PHASES)
def test_kill_9_while(engine, rng, phase, tmp_path):
    conf = tmp_path / "ingot.conf"
    conf.write_text("# a comment that stays\ntimeout 1000\n")
    diaries = [Diary(f"w{number}") for number in range(WRITERS)]
    server = Server.ingot(engine, {"maxmemory": "32mb"}, conf=conf)
    with server:
        for _ in range(ROUNDS):
            with Crew() as crew:
                for diary in diaries:
                    crew.add(diary.write, server, crew.stop)
                time.sleep(0.1)
                PHASES[phase](server, rng.uniform(0, 0.2))
            answered = [len(diary.answered) - 1 for diary in diaries]
            server.start()
            with server.client(timeout=30) as client:
                assert all(diary.remembered(client) >= least for diary, least in zip(diaries, answered, strict=True))
                check_key_count(client)
                assert "a comment that stays" in conf.read_text()
                assert 1000 <= int(client.call("CONFIG", "GET", "timeout").value[1].value) <= 1004
            with other_database(server) as client:
                check_key_count(client)
                if phase == "flushing":
                    assert client.call("DBSIZE").value in (0, OTHER_KEYS)
                if phase == "reclaiming":
                    fill(client, "hash", "hash", ELEMENTS // 10)
                    assert size(client, "hash", "hash") == ELEMENTS // 10
                eventually(lambda: client.call("FLUSHDB").value == b"OK", 10, "flushed")
