"""ingot-import copies an SSDB server: every type as it is there, names that several types have, what is in the target
already, either side going away, and memory that does not grow with what is copied.

The SSDB is support/ssdb.py, made from the documentation of the protocol: no package of the real one exists.
"""

import os
import socketserver
import subprocess
import threading
import types

import pytest
from harness import MB, eventually
from support.effort import FULL
from support.servers import Server, ingot_binary, self_check
from support.ssdb import SsdbServer

pytestmark = pytest.mark.skipif(self_check(), reason="a program of Ingot's")


def command_line(source, target, *options):
    program = os.path.join(os.path.dirname(os.path.abspath(ingot_binary())), "ingot-import")
    return [program, *options, f"127.0.0.1:{source.port}", f"127.0.0.1:{target.port}"]


def ingot_import(source, target, *options, **environment):
    done = subprocess.run(command_line(source, target, *options), capture_output=True, text=True, errors="replace",
                          timeout=60, env=os.environ | environment)  # fmt: skip
    print(done.stdout + done.stderr)
    return done.returncode, done.stdout + done.stderr


def fill(source, rng, names=300):
    """Every type, small and large, with bytes of all kinds."""
    for number in range(names):
        source.kv[b"kv:%d" % number] = rng.randbytes(number % 97)
        source.hashes[b"hash:%d" % number] = {rng.randbytes(9): rng.randbytes(20) for _ in range(number % 7 + 1)}
        source.zsets[b"zset:%d" % number] = {b"m%d" % member: member * 7 - 30 for member in range(number % 11 + 1)}
        source.queues[b"queue:%d" % number] = [rng.randbytes(12) for _ in range(number % 5 + 1)]
    source.kv[b"\x00 \r\n\xff"] = b"\r\n\r\n"
    source.kv[b"large"] = rng.randbytes(3 * MB)
    source.kv[b"zero"] = b""
    source.hashes[b"large hash"] = {b"field %07d" % number: rng.randbytes(50) for number in range(5000)}
    source.zsets[b"large zset"] = {b"member %d" % number: number // 100 for number in range(5000)}  # equal scores
    source.queues[b"large queue"] = [b"%d" % number for number in range(5000)]
    source.hashes[b"wide"] = {b"%d" % number: rng.randbytes(MB) for number in range(4)}


def check(source, client, prefixes=(b"", b"", b"", b"")):
    """The target has what the source has, and nothing else."""
    kv, hashes, zsets, queues = prefixes
    for name, value in source.kv.items():
        assert client.call("GET", kv + name).value == value, name
        left = client.call("TTL", kv + name).value
        assert source.ttl.get(name, -1) - 20 <= left <= max(1, source.ttl.get(name, -1)), (name, left)
    for name, fields in source.hashes.items():
        words = [word.value for word in client.call("HGETALL", hashes + name).value]
        assert dict(zip(words[::2], words[1::2], strict=True)) == fields, name
    for name, members in source.zsets.items():
        words = [word.value for word in client.call("ZRANGE", zsets + name, 0, -1, "WITHSCORES").value]
        assert list(zip(words[::2], map(int, words[1::2]), strict=True)) == sorted(members.items(), key=lambda m: (m[1], m[0])), name
    for name, items in source.queues.items():
        assert [word.value for word in client.call("LRANGE", queues + name, 0, -1).value] == items, name
    assert client.call("DBSIZE").value == sum(map(len, (source.kv, source.hashes, source.zsets, source.queues)))


def test_everything(engine, rng):
    with SsdbServer() as source, Server.ingot(engine) as target, target.client(timeout=30) as client:
        fill(source, rng)
        source.ttl[b"kv:1"], source.ttl[b"kv:2"], source.ttl[b"large"] = 1000, 2**31, 500
        code, said = ingot_import(source, target, "--dry-run")
        assert code == 0 and client.call("DBSIZE").value == 0
        assert "kv -> string: 303 copied" in said and "zset -> sorted set: 301 copied" in said, said
        code, said = ingot_import(source, target)
        assert code == 0, said
        assert "kv -> string: 303 copied, 0 there already, 0 refused, 0 failed; 303 elements, 3 expire" in said
        assert "hash -> hash: 302 copied" in said and "queue -> list: 301 copied" in said, said
        check(source, client)
        code, said = ingot_import(source, target)
        assert code == 0 and "hash -> hash: 0 copied, 302 there already" in said, said
        check(source, client)


def test_a_real_redis(rng):
    with SsdbServer(password=b"x" * 32) as source, Server.redis({"requirepass": "secret"}) as target:
        fill(source, rng, names=30)
        source.ttl[b"kv:1"] = 0  # in its last second
        assert ingot_import(source, target)[0] == 2
        assert ingot_import(source, target, SSDB_AUTH="y" * 32)[0] == 2
        assert "NOAUTH" in ingot_import(source, target, SSDB_AUTH="x" * 32)[1]
        assert "WRONGPASS" in ingot_import(source, target, SSDB_AUTH="x" * 32, REDISCLI_AUTH="wrong")[1]
        assert ingot_import(source, target, "--db", "99", SSDB_AUTH="x" * 32, REDISCLI_AUTH="secret")[0] == 2
        code, said = ingot_import(source, target, "--db", "3", SSDB_AUTH="x" * 32, REDISCLI_AUTH="secret")
        assert code == 0, said
        with target.client(timeout=30) as client:
            client.call("AUTH", "secret")
            client.call("SELECT", 3)
            del source.kv[b"kv:1"]
            eventually(lambda: client.call("EXISTS", "kv:1").value == 0, 5, "its last second")
            check(source, client)


def test_names_of_several_types(rng):
    with SsdbServer() as source, Server.ingot("rocksdb") as target, target.client() as client:
        source.kv |= {b"a": b"1", b"b": b"2", b"h:c": b"3"}
        source.hashes |= {b"a": {b"f": b"v"}, b"c": {b"f": b"v"}, b"d": {b"f": b"v"}}
        source.zsets |= {b"c": {b"m": 1}, b"e": {b"m": 2}}
        source.queues |= {b"a": [b"x"], b"e": [b"y"], b"f": [b"z"]}
        source.zsets[b"\xff\xff\xff\xff\xff|EXPIRE_LIST|KV"] = {b"a": 123}  # SSDB's own
        code, said = ingot_import(source, target)
        assert code == 1, said
        for told in ("kv -> string: 3 copied", "hash -> hash: 2 copied, 0 there already, 1 refused",
                     "zset -> sorted set: 1 copied, 0 there already, 1 refused", "queue -> list: 1 copied, 0 there already, 2 refused",
                     "hash 'a': a kv of SSDB has its key", "zset 'c': a hash of SSDB has its key"):  # fmt: skip
            assert told in said, (told, said)
        found = {reply.value: client.call("TYPE", reply.value).value for reply in client.call("KEYS", "*").value}
        assert found == {b"a": b"string", b"b": b"string", b"h:c": b"string", b"c": b"hash", b"d": b"hash",
                         b"e": b"zset", b"f": b"list"}  # fmt: skip

        client.call("FLUSHALL")
        code, said = ingot_import(source, target, "--prefix-hash", "h:", "--prefix-zset", "z:", "--prefix-queue", "q:")
        assert code == 1 and "hash 'c': a kv of SSDB has its key" in said, said  # h:c
        assert client.call("DBSIZE").value == 10 and client.call("GET", "h:c").value == b"3"
        assert client.call("LRANGE", "q:a", 0, -1).value[0].value == b"x"
        assert client.call("HGET", "h:a", "f").value == b"v"


def test_keys_that_are_there(rng):
    with SsdbServer() as source, Server.ingot("rocksdb") as target, target.client() as client:
        source.kv |= {b"a": b"1", b"b": b"1", b"c": b"1"}
        source.hashes |= {b"h": {b"f": b"v"}, b"i": {b"f": b"v"}, b"j": {b"f": b"v"}}
        client.pipeline([("SET", "a", "old"), ("SADD", "b", "old"), ("HSET", "h", "old", "1"), ("SET", "i", "old")])
        code, said = ingot_import(source, target)
        assert code == 1, said
        assert "kv 'b': the target has a set of this name" in said
        assert "hash 'i': the target has a string of this name" in said
        assert "kv -> string: 1 copied, 1 there already, 1 refused" in said, said
        assert client.call("GET", "a").value == b"old" and client.call("HGET", "h", "old").value == b"1"
        code, said = ingot_import(source, target, "--replace")
        assert code == 0, said
        check(source, client)


def test_scores_that_no_double_has(rng):
    with SsdbServer() as source, Server.ingot("rocksdb") as target, target.client() as client:
        source.zsets[b"exact"] = {b"a": 2**53, b"b": -(2**53), b"c": 2**62, b"d": -(2**63)}
        assert ingot_import(source, target)[0] == 0
        source.zsets[b"rounded"] = {b"a": 2**53 + 1, b"b": 2**63 - 1, b"c": 5}
        source._orders.clear()
        code, said = ingot_import(source, target)
        assert code == 1 and "2 scores rounded" in said, said
        assert float(client.call("ZSCORE", "rounded", "a").value) == 2.0**53
        assert float(client.call("ZSCORE", "exact", "c").value) == 2.0**62


@pytest.mark.seconds(120)
def test_the_source_goes_away(engine, rng):
    """At any command; what was begun is run again, to the same end."""
    with SsdbServer() as source, Server.ingot(engine) as target, target.client(timeout=30) as client:
        fill(source, rng, names=40)
        for _ in range(40 if FULL else 6):
            client.call("FLUSHALL")
            source.hang_up_after = rng.randrange(1, 900)
            code, said = ingot_import(source, target)
            if code == 0:
                continue
            assert code == 2 and "SSDB" in said and "has hung up" in said, said
            for name, fields in source.hashes.items():  # whole, or not there
                assert client.call("HLEN", name).value in (0, len(fields))
            source.hang_up_after = None
            code, said = ingot_import(source, target)
            assert code == 0, said
            check(source, client)


@pytest.mark.seconds(120)
def test_the_target_goes_away(engine, rng):
    with SsdbServer() as source, Server.ingot(engine) as target:
        fill(source, rng, names=40)
        for _ in range(20 if FULL else 3):
            number = rng.randrange(5, 900)
            source.before_command = lambda at, _, number=number: target.kill() if at == number else None
            code, said = ingot_import(source, target)
            source.before_command = lambda *_: None
            target.kill()
            target.start()
            assert code == 0 or code == 2 and "target has hung up" in said, said
            assert ingot_import(source, target)[0] == 0
            with target.client(timeout=30) as client:
                check(source, client)
                client.call("FLUSHALL")


def test_a_target_that_refuses(rng):
    with SsdbServer() as source, Server.ingot("rocksdb", {"maxmemory": "100mb"}) as target, target.client() as client:
        source.hashes[b"too wide"] = {b"small": b"1", b"f": bytes(17 * MB)}
        source.hashes[b"well"] = {b"f": b"v"}
        code, said = ingot_import(source, target)
        assert code == 1 and "hash 'too wide': OOM" in said and "hash -> hash: 1 copied" in said, said
        assert [key.value for key in client.call("KEYS", "*").value] == [b"well"]
        client.call("ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@read", "+@connection")
        code, said = ingot_import(source, target, "--user", "reader", "--replace", REDISCLI_AUTH="any")
        assert code == 2 and "the target refuses: NOPERM" in said, said


def peak_bytes(process):
    """Of memory, as long as the process runs."""
    peak = 0
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM"):
                    peak = int(line.split()[1]) * 1024
        threading.Event().wait(0.02)
    return peak


@pytest.mark.seconds(180)
def test_memory_is_bounded(rng):
    """Values that come in pages of much more than fits."""
    value = rng.randbytes(MB)
    count = 300 if FULL else 80
    with SsdbServer() as source, Server.ingot("rocksdb") as target:
        source.queues[b"queue"] = [value] * count
        source.hashes[b"hash"] = {b"%d" % number: b"x" if number < 2000 else value for number in range(2000 + count)}
        source.kv |= {b"%d" % number: value for number in range(count)}
        with subprocess.Popen(command_line(source, target)) as process:
            peak = peak_bytes(process)
        assert process.returncode == 0
        assert peak < 40 * MB, peak


def test_what_is_no_ssdb(rng):
    with SsdbServer() as source, Server.redis() as target:
        assert ingot_import(target, target)[0] == 2
        assert ingot_import(source, source)[0] == 2
        source.hang_up_after = 0
        assert ingot_import(source, target)[0] == 2
        program = command_line(source, target)[0]
        for arguments in ((), ("a:1",), ("a:1", "b:2", "c:3"), ("--prefix-kv",), ("a", "b"), ("--nonsense", "a:1", "b:2"), ("a:x", "b:1")):
            assert subprocess.run([program, *arguments], capture_output=True, check=False).returncode == 2, arguments
        assert subprocess.run([program, "--help"], capture_output=True, check=False).returncode == 0
        target.stop()
        assert ingot_import(source, target)[0] == 2


class Nonsense(socketserver.BaseRequestHandler):
    replies = ()

    def handle(self):
        for reply in self.replies:
            self.request.recv(1000)
            self.request.sendall(reply)


@pytest.mark.parametrize("replies", [
    [b"HTTP/1.1 400\r\n\r\n"], [b"x\n"], [b"-1\n"], [b"99999999999\nx\n\n"], [b"99999999999999999999999\n"], [b"2\nokay\n\n"],
    [b"2\n"], [b"\n"], [b"x" * 200_000], [b"2\nok\n\n", b"2\nok\n1\na\n\n", b"2\nok\n\n2\nok\n\n2\nok\n1\na\n\n"],
])  # fmt: skip
def test_nonsense(replies, rng):
    handler = type("Handler", (Nonsense,), {"replies": replies})
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as listening, Server.redis() as target:
        source = types.SimpleNamespace(port=listening.server_address[1])
        threading.Thread(target=listening.handle_request, daemon=True).start()
        assert ingot_import(source, target)[0] == 2
