"""ingot-backup and backup-keep: a backup is the server as it was at one moment, whatever happened to the backups before
and after it: kills, a full disk, damage, others who save at the same time."""

import os
import shutil
import signal
import subprocess
import threading
import time

import pytest
from diary import Diary
from harness import MB, OK, Crew, eventually, info
from support.effort import FULL
from support.faulty_disk import mounted
from support.servers import Server, ingot_binary, self_check
from support.small_disk import small_disk
from test_p8_check import ingot_check, written
from test_p8_repair import contents

pytestmark = pytest.mark.skipif(self_check(), reason="programs and files of Ingot's")

ROUNDS = 30 if FULL else 4


def command_line(*words):
    return [os.path.join(os.path.dirname(os.path.abspath(ingot_binary())), "ingot-backup"), *map(str, words)]


def ingot_backup(*words, **environment):
    done = subprocess.run(command_line(*words), capture_output=True, text=True, errors="replace", timeout=60,
                          env=os.environ | environment)  # fmt: skip
    print(done.stdout + done.stderr)
    return done.returncode, done.stdout + done.stderr


def create(server, backups):
    code, said = ingot_backup("create", backups, "-p", server.port)
    assert code == 0, said
    return int(said.split()[1].rstrip(":"))


def ids(backups):
    code, said = ingot_backup("list", backups)
    assert code == 0, said
    return [int(line.split()[0]) for line in said.splitlines()]


def restored(backups, number, target):
    """What a server has that is started on it."""
    shutil.rmtree(target, ignore_errors=True)
    code, said = ingot_backup("restore", backups, number, target)
    assert code == 0, said
    assert ingot_check(target)[0] == 0
    with Server.ingot("rocksdb", directory=target) as server, server.client(timeout=30) as client:
        return contents(client)


def bytes_of(folder):
    return sum(os.lstat(os.path.join(path, name)).st_size for path, _, names in os.walk(folder) for name in names)


@pytest.mark.seconds(120)
def test_backups_are_of_their_time(tmp_path):
    backups = tmp_path / "backups"
    with Server.ingot("rocksdb") as server, server.client(timeout=30) as client:
        written(server)
        one = contents(client)
        assert create(server, backups) == 1
        alone = bytes_of(backups)
        client.call("SET", "new in two", "x")
        assert create(server, backups) == 2
        assert bytes_of(backups) < 1.2 * alone, "what both have is stored twice"
        client.pipeline([("DEL", "hash"), ("HSET", "new in three", "f", "v")])
        three = contents(client)
        assert create(server, backups) == 3
        client.call("FLUSHALL")
        assert create(server, backups) == 4
        assert ids(backups) == [1, 2, 3, 4]
        code, said = ingot_backup("verify", backups)
        assert code == 0 and said.count("sound") == 4, said
        assert restored(backups, 1, tmp_path / "one") == one
        assert restored(backups, 3, tmp_path / "three") == three
        assert restored(backups, "latest", tmp_path / "four") == {}
        assert ingot_backup("restore", backups, 1, tmp_path / "one")[0] == 2  # is there
        assert ingot_backup("restore", backups, 9, tmp_path / "nine")[0] == 2
        assert not (tmp_path / "nine").exists()
        assert ingot_backup("purge", backups, "--keep", 1)[0] == 0
        assert ids(backups) == [4]
        # What FLUSHALL dropped is in the tables until the collector has come to them.
        eventually(lambda: int(info(client)["engine_disk_bytes"]) < alone / 2, 20, "reclaimed")
        assert create(server, backups) == 5
        assert ingot_backup("verify", backups, 5)[0] == 0
        assert ingot_backup("verify", backups, 1)[0] == 2
        assert ingot_backup("purge", backups, "--keep", 1)[0] == 0
        assert bytes_of(backups) < alone, "what nobody needs is still there"
        assert sorted(os.listdir(tmp_path)) == ["backups", "four", "one", "three"]


@pytest.mark.seconds(120)
def test_under_load(tmp_path):
    """Others write and save meanwhile: each backup is what one moment had, for all of them."""
    diaries = [Diary(f"w{number}") for number in range(2)]
    backups = tmp_path / "backups"
    with Server.ingot("rocksdb") as server:
        stop_saving = threading.Event()

        def save(stop):
            with server.client(timeout=30) as client:
                while not stop.is_set() and not stop_saving.is_set():
                    client.call("BGSAVE")
                    time.sleep(0.05)

        with Crew() as crew:
            for diary in diaries:
                crew.add(diary.write, server, crew.stop)
            crew.add(save, crew.stop)
            crew.run_for(0.5)
            code, said = ingot_backup("create", backups, "-p", server.port)
            assert code in (0, 2) and (code == 0 or "was replaced while it was copied" in said), said
            stop_saving.set()
            known = [len(diary.answered) - 1 for diary in diaries]
            create(server, backups)
            crew.run_for(0.2)
    target = tmp_path / "target"
    assert ingot_backup("restore", backups, "latest", target)[0] == 0
    assert ingot_check(target)[0] == 0
    with Server.ingot("rocksdb", directory=target) as server, server.client(timeout=30) as client:
        for diary, at_least in zip(diaries, known, strict=True):
            assert diary.remembered(client) >= at_least


@pytest.mark.seconds(150)
def test_a_backup_that_is_killed(tmp_path, rng):
    """It harms no other, and leaves nothing once the next one is done."""
    backups = tmp_path / "backups"
    with Server.ingot("rocksdb") as server, server.client(timeout=30) as client:
        client.pipeline([("SET", f"k{number}", rng.randbytes(20_000)) for number in range(1500)])
        first = contents(client)
        began = time.monotonic()
        create(server, backups)
        takes = time.monotonic() - began
        alone = bytes_of(backups)
        killed = 0
        for number in range(ROUNDS):
            client.pipeline([("SET", f"k{number}", rng.randbytes(20_000)) for number in range(500)])
            with subprocess.Popen(command_line("create", backups, "-p", server.port), stdout=subprocess.DEVNULL) as process:
                time.sleep(takes * rng.random())
                process.send_signal(signal.SIGKILL)
            killed += process.returncode == -signal.SIGKILL
            assert ingot_backup("verify", backups, 1)[0] == 0
        assert killed > 0
        now = contents(client)
        last = create(server, backups)
        assert ingot_backup("verify", backups)[0] == 0
        assert restored(backups, last, tmp_path / "last") == now
        assert restored(backups, 1, tmp_path / "first") == first
        assert ingot_backup("purge", backups, "--keep", 1)[0] == 0
        assert bytes_of(backups) < 2 * alone, "what was killed has left something"


def test_a_full_backup_disk(tmp_path, rng):
    with small_disk(tmp_path / "disk", 40) as disk:
        backups = disk / "backups"
        with Server.ingot("rocksdb") as server, server.client(timeout=30) as client:
            client.pipeline([("SET", f"k{number}", rng.randbytes(20_000)) for number in range(500)])
            first = contents(client)
            create(server, backups)
            used = bytes_of(backups)
            client.pipeline([("SET", f"more{number}", rng.randbytes(20_000)) for number in range(2500)])
            code, said = ingot_backup("create", backups, "-p", server.port)
            assert code == 2 and "No space left on device" in said, said
            assert bytes_of(backups) < used + MB, "the torn one still takes space"
            assert ids(backups) == [1]
            assert ingot_backup("verify", backups)[0] == 0
            assert restored(backups, 1, tmp_path / "first") == first
            client.call("FLUSHALL")
            client.call("SET", "k", "v")
            eventually(lambda: int(info(client)["engine_disk_bytes"]) < 10 * MB, 20, "reclaimed")
            assert restored(backups, create(server, backups), tmp_path / "last") == contents(client)
            # A restore to a disk that is full leaves nothing that a server would start on.
            code, said = ingot_backup("restore", backups, 1, disk / "target")
            for number in range(100):
                if code == 2:
                    break
                code, said = ingot_backup("restore", backups, 1, disk / f"target{number}")
            assert code == 2 and "No space left on device" in said, said
            assert not [name for name in os.listdir(disk) if ".restore-" in name]


@pytest.mark.seconds(120)
def test_backups_on_a_failing_disk(tmp_path, rng):
    """Any call of the disk may fail: what was there is whole, and the next backup is."""
    with mounted() as disk, Server.ingot("rocksdb") as server, server.client(timeout=30) as client:
        backups = os.path.join(disk.folder, "backups")
        written(server)
        create(server, backups)
        first = contents(client)
        before = disk.calls("change")
        client.call("SET", "k", "v")
        create(server, backups)
        calls = disk.calls("change") - before
        for _ in range(ROUNDS):
            client.call("SET", "k", rng.randbytes(5000))
            disk.fail("change", rng.randrange(1, calls + 1), 5)
            assert ingot_backup("create", backups, "-p", server.port)[0] in (0, 2)
            disk.heal()
            assert ingot_backup("verify", backups, 1)[0] == 0
        disk.fail("read", 0, 5)
        code, said = ingot_backup("verify", backups)
        assert code == 2 and "damaged" not in said, (code, said)
        before = disk.calls("read")
        disk.heal()
        assert ingot_backup("verify", backups)[0] == 0
        reads = disk.calls("read") - before
        for _ in range(ROUNDS):
            disk.fail("read", rng.randrange(1, reads + 1), 5)
            code, said = ingot_backup("verify", backups)
            disk.heal()
            assert code in (0, 2), (code, said)
        now = contents(client)
        assert restored(backups, create(server, backups), tmp_path / "last") == now
        assert restored(backups, 1, tmp_path / "first") == first


def test_damage_is_told(tmp_path, rng):
    backups = tmp_path / "backups"
    with Server.ingot("rocksdb") as server:
        written(server)
        create(server, backups)
    code, said = ingot_backup("verify", os.path.relpath(backups))  # RocksDB takes no such path
    assert code == 0 and "sound" in said, said
    table = max((path for path in backups.rglob("*.sst")), key=lambda path: path.stat().st_size)
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 4
    table.write_bytes(data)
    code, said = ingot_backup("verify", backups)
    assert code == 1 and "backup 1: " in said and "sound" not in said, said
    assert ingot_backup("restore", backups, 1, tmp_path / "target")[0] == 2
    assert not (tmp_path / "target").exists()
    table.unlink()
    for command in ("list", "verify"):
        code, said = ingot_backup(command, backups)
        assert code == 1 and "damaged" in said, said


def test_one_at_a_time(tmp_path):
    backups = tmp_path / "backups"
    with Server.ingot("rocksdb") as server, server.client() as client:
        create(server, backups)
        os.kill(server.process.pid, signal.SIGSTOP)
        with subprocess.Popen(command_line("create", backups, "-p", server.port), stdout=subprocess.DEVNULL) as first:
            eventually(lambda: ingot_backup("list", backups)[0] == 3, 20, "the first one is at work")
            for words in (("create", backups, "-p", server.port), ("purge", backups, "--keep", 1)):
                code, said = ingot_backup(*words)
                assert code == 3 and "another process is at work" in said, said
            os.kill(server.process.pid, signal.SIGCONT)
            assert first.wait(30) == 0
        assert ids(backups) == [1, 2]
        assert client.call("PING").value == b"PONG"


def test_what_is_refused(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("of somebody")
    with Server.ingot("leveldb") as server:
        code, said = ingot_backup("create", tmp_path / "backups", "-p", server.port)
        assert code == 2 and "leveldb" in said, said
    with Server.redis() as server:
        code, said = ingot_backup("create", tmp_path / "backups", "-p", server.port)
        assert code == 2 and "no Ingot" in said, said
    with Server.ingot("rocksdb", {"requirepass": "secret", "unixsocket": str(tmp_path / "socket")}) as server:
        assert ingot_backup("create", other, "-p", server.port, REDISCLI_AUTH="secret")[0] == 2
        assert os.listdir(other) == ["file"]
        assert "NOAUTH" in ingot_backup("create", tmp_path / "backups", "-p", server.port)[1]
        assert "WRONGPASS" in ingot_backup("create", tmp_path / "backups", "-p", server.port, REDISCLI_AUTH="wrong")[1]
        code, said = ingot_backup("create", tmp_path / "backups", "-s", tmp_path / "socket", REDISCLI_AUTH="secret")
        assert code == 0, said
    code, said = ingot_backup("create", tmp_path / "backups", "-p", server.port)
    assert code == 2 and "cannot connect" in said, said
    for words in ((), ("list",), ("list", other), ("list", tmp_path / "absent"), ("purge", other), ("purge", other, "--keep", "0"),
                  ("verify", other), ("verify", tmp_path / "backups", "one"), ("restore", tmp_path / "backups", 1),
                  ("nonsense", other), ("create", other, "-p")):  # fmt: skip
        assert ingot_backup(*words)[0] == 2, words
    assert ingot_backup("--help")[0] == 0


def test_restore_to_a_file_system_of_its_own(tmp_path):
    with small_disk(tmp_path / "disk", 64) as target:
        (target / "lost+found").mkdir()
        with Server.ingot("rocksdb") as server, server.client() as client:
            client.call("SET", "key", "value")
            create(server, tmp_path / "backups")
        assert ingot_backup("restore", tmp_path / "backups", "latest", target)[0] == 0
        assert sorted(os.listdir(target)) == ["ingot-data", "lost+found"]
        assert ingot_check(target)[0] == 0
        assert ingot_backup("restore", tmp_path / "backups", "latest", target)[0] == 2


def test_damaged_lists_and_latest(tmp_path):
    backups = tmp_path / "backups"
    with Server.ingot("rocksdb") as server, server.client() as client:
        for number in (1, 2):
            client.call("SET", "key", number)
            assert create(server, backups) == number
    listed = (backups / "meta" / "2").read_bytes()
    at = listed.index(b"\n", listed.index(b"shared_checksum")) - 1  # of a file that both have
    (backups / "meta" / "2").write_bytes(listed[:at] + bytes([listed[at] ^ 1]) + listed[at + 1 :])
    code, said = ingot_backup("list", backups)
    assert code == 2 and "meta/2" in said, said
    (backups / "meta" / "2").write_bytes(listed)
    next((backups / "private" / "2").iterdir()).unlink()
    code, said = ingot_backup("restore", backups, "latest", tmp_path / "target")
    assert code == 2 and "backup 2 is later, and damaged" in said, said
    assert ingot_backup("restore", backups, 1, tmp_path / "target")[0] == 0


def checkpoints(server):
    return sorted(name for name in os.listdir(server.directory) if ".checkpoint" in name)


@pytest.mark.seconds(120)
def test_backup_keep(tmp_path):
    with Server.ingot("rocksdb", {"backup-keep": 3}) as server, server.client(timeout=30) as client:
        assert client.call("CONFIG", "GET", "backup-keep").value[1].value == b"3"
        held = []
        for number in range(5):
            client.call("SET", "number", number)
            client.pipeline([("SET", f"k{key}", os.urandom(20_000)) for key in range(300)])
            if number % 2:
                saves = int(info(client)["rdb_saves"])
                assert client.call("BGSAVE").value == b"Background saving started"
                eventually(lambda saves=saves: int(info(client)["rdb_saves"]) > saves, 20, "saved")
            else:
                assert client.call("SAVE") == OK
            eventually(lambda: client.call("BGREWRITEAOF").kind == "simple", 20, "rewritten")
            eventually(lambda: info(client)["aof_rewrite_in_progress"] == "0", 20, "rewritten")
            held.append(info(client))
        assert checkpoints(server) == ["dump.rdb.checkpoint", "dump.rdb.checkpoint.1", "dump.rdb.checkpoint.2"]
        assert [int(each["checkpoints"]) for each in held] == [1, 2, 3, 3, 3]
        assert int(held[4]["checkpoints_disk_bytes"]) > 5 * MB  # of rounds before
        for place, number in (("", b"4"), (".1", b"3"), (".2", b"2")):
            folder = tmp_path / f"copy{place}"
            shutil.copytree(server.directory / f"dump.rdb.checkpoint{place}", folder / "ingot-data")
            with Server.ingot("rocksdb", directory=folder) as copy, copy.client(timeout=30) as reader:
                assert reader.call("GET", "number").value == number
                assert reader.call("DBSIZE").value == 301
        for wrong in ("0", "-1", "x"):
            assert client.call("CONFIG", "SET", "backup-keep", wrong).is_error()
        assert client.call("CONFIG", "SET", "backup-keep", 1) == OK
        assert len(checkpoints(server)) == 3  # until there is a newer one
        # A compaction behind a checkpoint would leave it the tables of before.
        quiet = {"engine_running_compactions": "0", "engine_pending_compaction_bytes": "0"}
        eventually(lambda: quiet.items() <= info(client).items(), 20, "nothing compacts")
        assert client.call("SAVE") == OK
        assert checkpoints(server) == ["dump.rdb.checkpoint"]
        assert int(info(client)["checkpoints_disk_bytes"]) < MB


@pytest.mark.seconds(150)
def test_backup_keep_and_kills(tmp_path, rng):
    """Whatever has the name of a checkpoint is whole, and none is missing."""
    with Server.ingot("rocksdb", {"backup-keep": 2}) as server:
        with server.client() as client:
            for number in range(2):
                client.call("SET", "number", number)
                assert client.call("SAVE") == OK
        for number in range(2, 2 + ROUNDS):
            with server.client() as client:
                client.pipeline([("SET", f"k{key}", rng.randbytes(20_000)) for key in range(200)])
                client.call("SET", "number", number)
                client.call("BGSAVE")
                time.sleep(rng.random() * 0.1)
            server.kill()
            names = [name for name in checkpoints(server) if ".new" not in name]
            assert len(names) >= 2, names
            for name in names:
                folder = tmp_path / f"{number}{name}"
                shutil.copytree(server.directory / name, folder / "ingot-data")
                assert ingot_check(folder)[0] == 0
                shutil.rmtree(folder)
            server.start()
        with server.client() as client:
            assert client.call("SAVE") == OK
        assert checkpoints(server) == ["dump.rdb.checkpoint", "dump.rdb.checkpoint.1"]


def test_backup_keep_in_a_file(engine, tmp_path):
    conf = tmp_path / "ingot.conf"
    conf.write_text("backup-keep 5\n")
    with Server.ingot(engine, conf=conf) as server, server.client() as client:
        assert client.call("CONFIG", "GET", "backup-keep").value[1].value == b"5"
        assert client.call("CONFIG", "SET", "backup-keep", 7) == OK
        assert client.call("CONFIG", "REWRITE") == OK
        assert "backup-keep 7\n" in conf.read_text()
        assert client.call("SAVE") == OK
        assert len(checkpoints(server)) == (engine == "rocksdb")
        assert info(client)["checkpoints"] == str(int(engine == "rocksdb"))
