"""P8: ingot-repair makes a sound directory of a damaged one. What it does not name as lost is there and exact, nothing
is invented, and what was not damaged stays as it was."""

import contextlib
import os
import re
import shutil
import subprocess

import pytest
from harness import OK, eventually, info
from support.effort import FULL
from support.servers import Server, ingot_binary, self_check
from test_p8_check import ingot_check, written

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps other files")

ROUNDS = 12 if FULL else 1  # of each kind of damage
KEYS = 600  # small ones, in their order
DATABASES = (0, 1, 2, 3)


def ingot_repair(directory, target):
    program = os.path.join(os.path.dirname(os.path.abspath(ingot_binary())), "ingot-repair")
    done = subprocess.run([program, str(directory), str(target)], capture_output=True, text=True, errors="replace", timeout=60)
    print(done.stdout + done.stderr)
    return done.returncode, done.stdout + done.stderr


def contents(client):
    """(database, key) -> (digest of the value, when it expires, what no digest tells)."""
    found = {}
    for database in DATABASES:
        assert client.call("SELECT", database) == OK
        keys = sorted(reply.value for reply in client.call("KEYS", "*").value)
        replies = client.pipeline([("DEBUG", "DIGEST-VALUE", key) for key in keys])
        times = client.pipeline([("PEXPIRETIME", key) for key in keys])
        for key, digest, time in zip(keys, replies, times, strict=True):
            assert not digest.is_error(), (key, digest)
            found[database, key.decode()] = (digest.value[0].value, time.value)
        assert client.call("DBSIZE").value == len(keys)
    assert client.call("SELECT", 0) == OK
    return found


@pytest.fixture(scope="module", params=["rocksdb", "leveldb"])
def sound(request, tmp_path_factory):
    """A directory with tables and a log, and what it holds."""
    folder = tmp_path_factory.mktemp(request.param)
    with Server.ingot(request.param, {"appendfsync": "always"}) as server:
        with server.client(timeout=30) as client:
            client.pipeline([("SET", f"key:{number:06}", f"{number} " * 30) for number in range(KEYS)])
        written(server)
        server.restart()  # some of it in tables,
        with server.client(timeout=30) as client:
            client.pipeline([("SET", f"key:{number:06}", "newer" * 20) for number in range(0, KEYS, 50)])
            client.pipeline([("SET", f"log:{number:04}", "x" * 100) for number in range(300)])
            client.pipeline([("SADD", "set", "a new one"), ("RENAME", "log:0007", "renamed"), ("LPUSH", "list", "first")])
            eventually(lambda: info(client)["engine_running_compactions"] == "0", 20, "compacted")
            whole = contents(client)
            digest = client.call("DEBUG", "DIGEST")
            rest = details(client)
            assert not any(reply.is_error() for reply in rest), rest
        server.kill()  # and some in the log
        shutil.copytree(server.directory / "ingot-data", folder / "ingot-data")
    return request.param, folder, whole, (digest, rest)


def details(client):
    """What digests leave out: encodings, when fields expire, groups of streams."""
    asked = [("OBJECT", "ENCODING", key) for key in ("hash", "list", "set", "zset", "stream", "large", "key:000007")]
    asked += [("HPEXPIRETIME", "hash", "FIELDS", 2, b"f%012d" % 7, b"f%012d" % 8), ("XINFO", "GROUPS", "stream")]
    asked += [("XPENDING", "stream", "g"), ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", 0)]
    return client.pipeline(asked)


def repaired(sound, folder, damage):
    """What ingot-repair makes of a damaged copy: (exit code, what it said, what a server finds there)."""
    engine, whole_folder, _, _ = sound
    shutil.copytree(whole_folder, folder / "damaged")
    damage(folder / "damaged" / "ingot-data")
    before = bytes_of(folder / "damaged")
    code, said = ingot_repair(folder / "damaged", folder / "target")
    assert bytes_of(folder / "damaged") == before, "it changed what it was to read"
    assert sorted(os.listdir(folder)) == ["damaged", "target"]
    assert code in (0, 1), said
    assert (code == 1) == ("lost: " in said.replace("nothing lost: ", "")), said
    checked, what = ingot_check(folder / "target")
    assert checked == 0, what
    with Server.ingot(engine, directory=folder / "target") as server, server.client(timeout=30) as client:
        found = contents(client)
        rest = (client.call("DEBUG", "DIGEST"), details(client))
        for command in ("LPUSH list again", "SADD new 1", "APPEND large x", "XADD stream * f v", "ZADD zset 7 new"):
            assert not client.call(*command.split()).is_error(), command
    return code, said, found, rest


def bytes_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def only_named_losses(said, whole, found):
    """Keys that are not exact are named, or stand in a range that is named."""
    if "which database the keys" in said:  # they are there, elsewhere
        whole, found = ({key: value for (_, key), value in each.items()} for each in (whole, found))
        whole, found = ({(0, key): value for key, value in each.items()} for each in (whole, found))
    named = set(re.findall(r'lost: database (\d+), "((?:[^"\\]|\\.)*)"', said))
    ranges = []
    for line in said.splitlines():
        if match := re.search(r": keys(?: behind database (\d+), \"(.*?)\")?(?: up to (?:database|keyspace) (\d+), \"(.*?)\")? that stood", line):
            first = (int(match[1]), match[2]) if match[1] else (-1, "")
            last = (int(match[3]), match[4]) if match[3] else (1 << 40, "")
            ranges.append((first, last))
    for key, value in whole.items():
        if found.get(key) == value or (str(key[0]), key[1]) in named:
            continue
        assert any(first < key <= last for first, last in ranges), f"{key} is lost, and not named"
    assert not set(found) - set(whole), "keys that nobody had set"


def flip(path, where):
    with open(path, "r+b") as file:
        file.seek(where)
        old = file.read(1)[0]
        file.seek(where)
        file.write(bytes([old ^ 0x10]))


def files(folder, pattern):
    return sorted(path for path in folder.glob(pattern) if path.stat().st_size > 0)


def test_a_sound_directory(sound, tmp_path):
    code, said, found, rest = repaired(sound, tmp_path, lambda _: None)
    assert code == 0, said
    assert found == sound[2]
    assert rest == sound[3]
    # What is there already is not touched, and neither is what a server has, or what is to be salvaged.
    assert ingot_repair(tmp_path / "damaged", tmp_path / "damaged" / "ingot-data" / "target")[0] == 2
    assert ingot_repair(tmp_path / "damaged", tmp_path / "target")[0] == 2
    with Server.ingot(sound[0], directory=tmp_path / "target"):
        assert ingot_repair(tmp_path / "target", tmp_path / "other")[0] == 2
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("share", [1, 2])
def test_a_table_that_was_being_written(sound, tmp_path, share):
    """As a kill in the middle of a compaction leaves it, or behind its last byte."""

    def damage(data):
        (table, *_) = files(data, "*.sst") + files(data, "*.ldb")
        (data / f"900000{table.suffix}").write_bytes(table.read_bytes()[: table.stat().st_size // share])

    code, said, found, _ = repaired(sound, tmp_path, damage)
    assert code == 0, said
    assert found == sound[2]


FILES = ["ENGINE flipped", "ENGINE unreadable", "SYNCED flipped", "CURRENT flipped", "CURRENT missing", "CURRENT unreadable"]


@pytest.mark.parametrize("what", FILES)
def test_files_that_can_be_done_without(sound, tmp_path, what):
    name, how = what.split()

    def damage(data):
        if how == "flipped":
            return flip(data / name, 3)
        (data / name).unlink()
        if how == "unreadable":
            (data / name).mkdir()

    code, said, found, _ = repaired(sound, tmp_path, damage)
    assert name in said or name == "SYNCED"  # where the mark stands twice
    assert found == sound[2], said
    assert code == 0 or "CURRENT" in what, said


@pytest.mark.parametrize("how", ["flipped", "cut off", "missing"])
def test_the_manifest(sound, tmp_path, how):
    """Nothing is lost; what had been removed may be back."""

    def damage(data):
        for path in files(data, "MANIFEST-*"):
            size = path.stat().st_size
            if how == "flipped":
                flip(path, size // 2)
            elif how == "cut off":
                os.truncate(path, size // 2)
            else:
                path.unlink()

    code, said, found, _ = repaired(sound, tmp_path, damage)
    assert code == 1 and "removed" in said
    assert {key: found.get(key) for key in sound[2]} == sound[2]


@pytest.mark.seconds(120)
def test_tables_with_flipped_bits(sound, tmp_path, rng):
    """Anywhere in a file: in blocks of data, filters, the index, the properties, the footer."""
    for round_number in range(ROUNDS):
        for number in range(3):
            folder = tmp_path / f"{round_number}-{number}"
            folder.mkdir()

            def damage(data):
                path = rng.choice(files(data, "*.sst") + files(data, "*.ldb"))
                size = path.stat().st_size
                where = rng.randrange(size) if number == 0 else rng.randrange(max(0, size - 3000), size)
                where = size - rng.randrange(1, 48) if number == 2 else where
                print(path.name, where, "of", size)
                flip(path, where)

            _, said, found, _ = repaired(sound, folder, damage)
            only_named_losses(said, sound[2], found)


def test_a_table_without_footer_is_read_all_the_same(sound, tmp_path):
    def damage(data):
        for path in files(data, "*.sst") + files(data, "*.ldb"):
            flip(path, path.stat().st_size - 1)

    code, said, found, _ = repaired(sound, tmp_path, damage)
    assert code == 0 and "its index is damaged" in said, said
    assert found == sound[2]


def current_table_damaged(sound, folder, damage):
    """Damages the largest table that counts: one may lie about that a compaction has done with."""
    for number in range(10):
        (folder / str(number)).mkdir()

        def damage_one(data):
            tables = files(data, "*.sst") + files(data, "*.ldb")
            damage(sorted(tables, key=lambda path: -path.stat().st_size)[number])

        code, said, found, _ = repaired(sound, folder / str(number), damage_one)
        if code == 1:
            return said, found
        assert found == sound[2]
    raise AssertionError("no table counts")


def test_a_missing_table(sound, tmp_path):
    """Also beside one that was being written."""

    def damage(table):
        (table.parent / f"900000{table.suffix}").write_bytes(table.read_bytes()[: table.stat().st_size // 2])
        table.unlink()

    said, found = current_table_damaged(sound, tmp_path, damage)
    assert "is missing" in said
    only_named_losses(said, sound[2], found)


@pytest.mark.seconds(120)
def test_a_damaged_log(sound, tmp_path, rng):
    """One flipped bit loses one group of changes, and says so; what was written later is there."""
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()

        def damage(data):
            path = max(files(data, "*.log"), key=lambda each: each.stat().st_size)
            where = path.read_bytes().index(b"log:%04d" % rng.randrange(20, 280))
            flip(path, where)

        code, said, found, _ = repaired(sound, folder, damage)
        assert code == 1
        lost = sum(int(count) for count in re.findall(r"(\d+) changes are lost", said))
        different = [key for key, value in sound[2].items() if found.get(key) != value]
        print(lost, different)
        assert lost > 0 and len(different) <= lost
        assert found[0, "renamed"] == sound[2][0, "renamed"]
        assert not set(found) - set(sound[2])


def test_collections_lose_no_more_than_what_was_damaged(sound, tmp_path, rng):
    """Every tenth block of the largest table."""

    def damage(path):
        for where in range(20_000, path.stat().st_size // 2, 40_960):  # its index is in the other half
            flip(path, where + rng.randrange(500))

    said, found = current_table_damaged(sound, tmp_path, damage)
    only_named_losses(said, sound[2], found)
    assert sum(found.get(key) == value for key, value in sound[2].items()) > len(sound[2]) // 2
    assert re.search(r"\d+ of its \d+ elements are lost", said), said


def test_elements_of_a_list_whose_node_is_back_stand_once(tmp_path):
    """A node was put apart by a change in the middle, and the block that has its removal is damaged."""
    elements = [b"%03d." % number + os.urandom(90) for number in range(320)]
    with Server.ingot("leveldb") as server:
        with server.client(timeout=30) as client:
            for first in range(0, 320, 80):
                client.call("RPUSH", "list", *elements[first : first + 80])
        server.restart()  # into a table
        with server.client(timeout=30) as client:
            assert not client.call("LINSERT", "list", "BEFORE", elements[160], "new").is_error()
        server.restart()
        server.kill()
        tables = files(server.directory / "ingot-data", "*.ldb")
        newest = max(tables, key=lambda path: path.stat().st_mtime)
        several = 0
        for where in range(500, newest.stat().st_size, 3000):
            folder = tmp_path / str(where)
            shutil.copytree(server.directory, folder / "damaged")
            flip(folder / "damaged" / "ingot-data" / newest.name, where)
            several += ingot_repair(folder / "damaged", folder / "target")[0]
            with Server.ingot("leveldb", directory=folder / "target") as repaired, repaired.client() as client:
                kept = [reply.value for reply in client.call("LRANGE", "list", 0, -1).value if reply.value != b"new"]
                assert kept == sorted(set(kept)) and set(kept) <= set(elements)
        assert several > 1


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_tables(tmp_path, compression):
    """RocksDB compresses what it has compacted once."""
    value = "so long " * 500
    with Server.ingot("rocksdb", {"compression": compression}) as server:
        for _ in range(5):  # each start leaves a table
            with server.client(timeout=30) as client:
                client.pipeline([("SET", f"key:{number:04}", value) for number in range(300)])
            server.restart(kill=True)
        data = server.directory / "ingot-data"
        eventually(lambda: any(3000 < size < 300_000 for size in sizes_of_tables(data)), 20, "compacted")
        server.kill()
        code, said = ingot_repair(server.directory, tmp_path / "target")
        assert code == 0, said
    with Server.ingot("rocksdb", directory=tmp_path / "target") as server, server.client(timeout=30) as client:
        replies = client.pipeline([("GET", f"key:{number:04}") for number in range(300)])
        assert {reply.value for reply in replies} == {value.encode()}


def test_a_string_in_a_compacted_table_is_named(tmp_path):
    """There RocksDB has no record of which change was the last one."""
    with Server.ingot("rocksdb") as server:
        with server.client(timeout=30) as client:
            client.call("SET", "large", os.urandom(50_000))
            client.call("BGREWRITEAOF")
            eventually(lambda: info(client)["aof_rewrite_in_progress"] == "0", 20, "compacted")
        server.kill()
        data = server.directory / "ingot-data"
        flip(max(files(data, "*.sst"), key=lambda path: path.stat().st_size), 20_000)
        code, said = ingot_repair(server.directory, tmp_path / "target")
        assert code == 1
        assert re.search(r'"large" \(string, .*: bytes 16384 to 32767 are not there', said), said


def sizes_of_tables(data):
    sizes = []
    for path in data.glob("*.sst"):
        with contextlib.suppress(FileNotFoundError):  # obsolete ones go meanwhile
            sizes.append(path.stat().st_size)
    return sizes


def test_what_is_no_data_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert ingot_repair(tmp_path / "empty", tmp_path / "target")[0] == 2
    assert ingot_repair(tmp_path / "absent", tmp_path / "target")[0] == 2
    assert not (tmp_path / "target").exists()
