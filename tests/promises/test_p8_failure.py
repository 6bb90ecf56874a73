"""P8: what goes wrong gives a clear error, loses nothing that was answered, and crashes nothing."""

import pytest
from harness import MB, OK, check_key_count, ingot
from log_patch import patch_log
from support.resp import Reply
from support.servers import Server, ServerError, self_check
from test_p8_check import ingot_check

pytestmark = pytest.mark.skipif(self_check(), reason="about Ingot's own files")

KEYS = 3000
VALUE_BYTES = 1000


def refused_start(server):
    """Starts a server that must refuse to; what it printed on that."""
    offset = server.log_path.stat().st_size if server.log_path.exists() else 0
    with pytest.raises(ServerError):
        server.start()
    assert server.process.returncode == 1, f"exit code {server.process.returncode}\n{server.log_tail()}"
    return server.log_path.read_text()[offset:]


def test_a_second_server_on_the_same_directory_is_refused(engine):
    with ingot(engine) as first, first.client() as client:
        assert client.call("SET", "k", "v") == OK
        second = Server.ingot(engine, directory=first.directory)
        second.log_path = first.directory / "second.log"
        said = refused_start(second).lower()
        assert any(word in said for word in ("lock", "in use", "another")), said
        assert str(first.directory) in said
        assert client.call("GET", "k").value == b"v"
        assert client.call("SET", "k", "w") == OK
        # The lock goes with its owner, however that ended.
        first.kill()
        with second, second.client() as other:
            assert other.call("GET", "k").value == b"w"


def test_the_engine_of_a_directory_cannot_be_changed(engine):
    other = {"rocksdb": "leveldb", "leveldb": "rocksdb"}[engine]
    with ingot(engine) as server:
        with server.client() as client:
            assert client.call("SET", "k", "v") == OK
        server.stop()
        changed = Server.ingot(other, directory=server.directory)
        said = refused_start(changed)
        assert engine in said, said
        server.start()
        with server.client() as client:
            assert client.call("GET", "k").value == b"v"


def test_data_of_a_newer_version_is_refused(engine):
    """The directory is made newer by changing the version record in the engine's log."""
    with ingot(engine) as server:
        server.kill()
        changed = sum(
            patch_log(log, b"v\x04\x04\0\0\0", b"v\x04\x05\0\0\0")
            for log in sorted((server.directory / "ingot-data").glob("*.log"))
        )
        assert changed == 1, f"{changed} version records found"
        said = refused_start(server)
        assert "version 5" in said and "version 4" in said, said
        code, said = ingot_check(server.directory)
        assert code == 2 and "version 5" in said and "version 4" in said, said


def fill(client, rng):
    values = {b"key:%d" % i: rng.randbytes(VALUE_BYTES) for i in range(KEYS)}
    values[b"large"] = rng.randbytes(3 * MB)
    for at in range(0, KEYS, 500):
        assert client.call("MSET", *(p for pair in list(values.items())[at : at + 500] for p in pair)) == OK
    assert client.call("SET", "large", values[b"large"]) == OK
    return values


def damage(path, rng):
    """Flips bytes in the first nine tenths of the file, where its data blocks are; but on LevelDB the
    server's own tables come first, and without them it rightly does not start."""
    data = bytearray(path.read_bytes())
    first = 16 << 10 if path.suffix == ".ldb" else 0
    for _ in range(max(3, len(data) // 200_000)):
        at = rng.randrange(first, len(data) * 9 // 10)
        data[at] ^= 0xFF
    path.write_bytes(data)


def table_files(server):
    folder = server.directory / "ingot-data"
    return [path for path in folder.iterdir() if path.suffix in (".sst", ".ldb")]


def read_everything(client, values):
    """(right answers, errors); an answer that is wrong fails."""
    right, errors = 0, []
    for key, value in values.items():
        reply = client.call("GET", key)
        if reply == Reply("bulk", value):
            right += 1
        else:
            assert reply.is_error(), f"{key!r}: a wrong answer: {reply!r:.200}"
            errors.append(reply.text())
    return right, errors


def test_flipped_bytes_are_an_error_and_no_crash(engine, rng):
    with ingot(engine, compression="none", direct_reads="yes") as server:
        with server.client(timeout=30) as client:
            values = fill(client, rng)
        server.restart()  # everything into table files, nothing in the cache
        server.stop()
        files = [path for path in table_files(server) if path.stat().st_size > 100_000]
        assert files, "no table files to damage"
        for path in files:
            damage(path, rng)
        server.start()
        small = {key: value for key, value in values.items() if key != b"large"}
        with server.client(timeout=30) as client:
            right, errors = read_everything(client, small)
            print(f"{right} right, {len(errors)} errors, such as {errors[:1]}")
            assert right > 0 and errors
            assert any("orrupt" in error or "checksum" in error for error in errors), errors[:3]
            for command in (("SET", "new", "value"), ("INCR", "count"), ("APPEND", "key:1", "x")):
                client.call(*command)
                assert server.alive(), server.log_tail()
        with server.client() as client:
            assert client.call("PING").value == b"PONG"
        assert server.alive(), server.log_tail()


@pytest.mark.parametrize("name", ["MANIFEST-*", "CURRENT"])
def test_a_damaged_catalogue_stops_the_start(engine, rng, name):
    with ingot(engine) as server:
        with server.client() as client:
            assert client.call("SET", "k", "v") == OK
        server.stop()
        for path in (server.directory / "ingot-data").glob(name):
            path.write_bytes(bytes(byte ^ 0xFF for byte in path.read_bytes()))
        said = refused_start(server)
        assert "ingot-data" in said or "orrupt" in said, said


def test_a_directory_that_cannot_be_written(engine, tmp_path):
    """A file stands where the data directory should be."""
    (tmp_path / "ingot-data").write_text("something else")
    server = Server.ingot(engine, directory=tmp_path)
    said = refused_start(server)
    assert "ingot-data" in said, said
    assert (tmp_path / "ingot-data").read_text() == "something else"


def test_bad_input_never_harms(engine, rng):
    """Garbage on many connections, while another one works."""
    with ingot(engine) as server, server.client() as good:
        for number in range(150):
            with server.client() as bad:
                kind = number % 4
                if kind == 0:
                    bad.send_raw(rng.randbytes(rng.randint(1, 5000)))
                elif kind == 1:
                    bad.send_raw(b"*%d\r\n$%d\r\n" % (rng.randint(-5, 1 << 40), rng.randint(-5, 1 << 40)))
                elif kind == 2:
                    bad.send_raw(b"*3\r\n$3\r\nSET\r\n$%d\r\n" % rng.randint(1, 1 << 29))
                else:
                    bad.send_raw(b"*2\r\n$3\r\nGET\r\n$3\r\nabcde\r\n" + rng.randbytes(100))
                bad.has_input(0.005)
            assert good.call("SET", "k", number) == OK
            assert good.call("GET", "k").value == b"%d" % number
        check_key_count(good, 1)
        assert server.alive()
