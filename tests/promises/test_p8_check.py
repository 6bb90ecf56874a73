"""P8: damage is found, named and never served. ingot-check verifies what a stopped server left; flipped bits in every
kind of file are noticed by it, and by the server that starts on them."""

import os
import random
import shutil
import subprocess

import pytest
from collections_of import TYPES, fill
from diary import Diary
from harness import Crew
from support.effort import FULL
from support.resp import Reply
from support.servers import Server, ServerError, ingot_binary, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps other files")

FLIPS = 100 if FULL else 6  # of each kind of file
WRITERS = 2


def ingot_check(directory):
    program = os.path.join(os.path.dirname(os.path.abspath(ingot_binary())), "ingot-check")
    done = subprocess.run([program, str(directory)], capture_output=True, text=True, errors="replace", timeout=60)
    print(done.stdout + done.stderr)
    return done.returncode, done.stdout + done.stderr


def written(server):
    """Every type, small and large, fields and keys that expire, a flushed database, things that were deleted."""
    with server.client(timeout=30) as client:
        for kind in TYPES:
            fill(client, kind, kind, 300)
        client.pipeline([
            ("LINSERT", "list", "AFTER", client.call("LINDEX", "list", 100).value, "between"),
            ("HPEXPIRE", "hash", 100_000, "FIELDS", 1, b"f%012d" % 7), ("SET", "large", b"x" * 50_000),
            ("SETRANGE", "sparse", 100_000, "x"), ("SET", "soon", "x", "PX", 200_000), ("EXPIRE", "set", 1000),
            ("XGROUP", "CREATE", "stream", "g", "0"), ("XREADGROUP", "GROUP", "g", "c", "COUNT", 5, "STREAMS", "stream", ">"),
            ("COPY", "zset", "gone"), ("DEL", "gone"), ("SELECT", 1), ("MSET", "a", 1, "b", 2), ("FLUSHDB",),
            ("SET", "c", 3), ("SELECT", 2), ("SET", "d", 4), ("SWAPDB", 2, 3),
        ])  # fmt: skip


@pytest.mark.seconds(120)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_sound_directory(engine, end):
    diaries = [Diary(f"w{number}") for number in range(WRITERS)]
    with Server.ingot(engine) as server:
        written(server)
        assert ingot_check(server.directory)[0] == 2  # a server has it
        with Crew() as crew:
            for diary in diaries:
                crew.add(diary.write, server, crew.stop)
            crew.run_for(1)
            server.stop() if end == "stop" else server.kill()
        before = sorted(os.listdir(server.directory / "ingot-data"))
        code, said = ingot_check(server.directory)
        assert code == 0 and engine in said, said
        assert sorted(os.listdir(server.directory / "ingot-data")) == before
        assert not [name for name in os.listdir(server.directory) if ".check" in name]
        left = server.directory / "ingot-data.check-4711"  # as a check leaves it that was killed
        left.mkdir()
        (left / "000001.sst").write_bytes(b"x")
        assert ingot_check(server.directory)[0] == 0 and not left.exists()
        left.mkdir()
        server.start()
        assert not left.exists()
        with server.client(timeout=30) as client:
            for diary in diaries:
                diary.remembered(client)


def kinds_of_files(folder):
    kinds = {}
    for name in sorted(os.listdir(folder)):
        if os.path.getsize(folder / name) > 0 and not name.startswith("LOG"):
            kinds.setdefault(name.split(".")[-1] if "." in name else name.split("-")[0], []).append(name)
    return kinds


@pytest.mark.seconds(240)
def test_flipped_bits(engine, rng):
    """What is answered from damaged files is right, or an error."""
    with Server.ingot(engine, {"appendfsync": "always"}) as server:  # damage there is no hole
        written(server)
        server.restart()  # some of it in tables,
        with server.client(timeout=30) as client:
            assert not client.call("SET", "in:the:log", "x").is_error()
            keys = sorted(reply.value for reply in client.call("KEYS", "*").value)
            digests = [client.call("DEBUG", "DIGEST-VALUE", key) for key in keys]
        server.kill()  # and some in the log
        data = server.directory / "ingot-data"
        sound = server.directory / "sound"
        shutil.copytree(data, sound)
        for kind, names in kinds_of_files(sound).items():
            noticed = 0
            for _ in range(FLIPS):
                shutil.rmtree(data)
                shutil.copytree(sound, data)
                noticed += flip_and_look(server, data / rng.choice(names), rng, keys, digests)
            print(f"{kind}: noticed {noticed} of {FLIPS}")


def flip_and_look(server, path, rng, keys, digests):
    """Whether the check or the start noticed one byte that is another."""
    where = rng.randrange(path.stat().st_size)
    with open(path, "r+b") as file:
        file.seek(where)
        old = file.read(1)[0]
        file.seek(where)
        file.write(bytes([old ^ (1 << rng.randrange(8))]))
    what = f"{path.name}, byte {where} of {path.stat().st_size}"
    print(what)
    code, said = ingot_check(server.directory)
    assert code in (0, 1, 2), said
    try:
        server.start()
    except ServerError:
        assert server.process.returncode == 1, (what, server.log_tail())
        return True
    with server.client(timeout=30) as client:
        for key, digest in zip(keys, digests, strict=True):
            found = client.call("DEBUG", "DIGEST-VALUE", key)
            assert found == digest or found.is_error(), (what, key, found)
            if found != digest:
                assert code != 0, (what, key, said)
        assert client.call("PING") == Reply("simple", b"PONG")
    server.kill()
    return code != 0
