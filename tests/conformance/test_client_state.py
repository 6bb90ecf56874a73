"""What a connection is, and what ends that: RESET, CLIENT SETINFO, NO-TOUCH, CLIENT REPLY in a transaction, the figures of
CLIENT LIST; beside redis-server where that has them.
"""

import re
import time

import pytest
from support.resp import CLOSED, Reply, encode

OK = Reply("simple", b"OK")
FIELDS = "name flags db sub psub ssub multi user redir resp".split()

STATES = {
    "multi": ["MULTI", "GET k"], "multi that failed": ["MULTI", "GET"], "watch": ["WATCH k"],
    "subscribed": ["SUBSCRIBE a b"], "subscribed to patterns": ["PSUBSCRIBE a*"], "subscribed to shards": ["SSUBSCRIBE a"],
    "monitor": ["MONITOR"], "tracking": ["HELLO 3", "CLIENT TRACKING ON"],
    "tracking prefixes": ["HELLO 3", "CLIENT TRACKING ON BCAST PREFIX a PREFIX b"],
    "tracking by choice": ["HELLO 3", "CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES"],
    "silent": ["CLIENT REPLY OFF"], "skipping": ["CLIENT REPLY SKIP"], "spared": ["CLIENT NO-EVICT ON"], "resp3": ["HELLO 3"],
    "named": ["CLIENT SETNAME x"], "another user": ["ACL SETUSER bob on nopass +@all ~*", "AUTH bob x"], "database": ["SELECT 5"],
    "all at once": ["HELLO 3 SETNAME y", "SELECT 3", "CLIENT TRACKING ON", "WATCH k", "SUBSCRIBE a", "PSUBSCRIBE b", "MULTI", "GET k"],
}  # fmt: skip


def drain(client, seconds=0.03, first_within=None):
    got = []
    while client.has_input(seconds if got else first_within or seconds):
        got.append(client.read())
    return got


def state(admin, number):
    line = admin.call("CLIENT", "LIST", "ID", number).value.decode()
    return {name: re.search(rf" {name}=(\S*)", line)[1] for name in FIELDS}


@pytest.mark.parametrize("name", STATES)
def test_reset(empty_pair, name):
    """The same state before and after it on both servers, and nothing that was set up is heard of any more."""

    def run(server):
        with server.client() as client, server.client() as admin:
            number = client.call("CLIENT", "ID").value
            for line in STATES[name]:
                client.send(*line.split())
                drain(client)
            seen = [state(admin, number)]
            client.send("RESET")
            replies = drain(client) if name == "skipping" else drain(client, first_within=10)
            seen.append([reply for reply in replies if reply.value == b"RESET"])
            seen.append(state(admin, number))
            admin.pipeline([("SET", "k", "v"), ("PUBLISH", "a", "m"), ("PUBLISH", "b", "m"), ("SPUBLISH", "a", "m"), ("DEL", "k")])
            seen.append(drain(client))
            seen += [client.call(*line.split()) for line in ("GET k", "CLIENT TRACKINGINFO", "MULTI", "PING", "EXEC", "EXEC")]
            return seen

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected
    assert bool(expected[1]) == (name != "skipping")


def test_idle_time(empty_pair):
    """In seconds since the last command; each server's clock may tick in between."""
    for server in empty_pair.servers:
        with server.client() as client, server.client() as admin:
            number = client.call("CLIENT", "ID").value

            def idle(admin=admin, number=number):
                return int(re.search(rb" idle=(\d+)", admin.call("CLIENT", "LIST", "ID", number).value)[1])

            assert idle() <= 1
            time.sleep(2.1)
            assert 2 <= idle() <= 4
            client.call("PING")
            assert idle() <= 1


def test_setinfo(empty_pair, protocol):
    """As Redis 7.2 has it. The library stays over RESET, for it is what speaks."""
    with empty_pair.servers[1].client(protocol) as client:
        assert re.search(rb" lib-name= lib-ver=$", client.call("CLIENT", "INFO").value.strip())
        assert client.call("CLIENT", "SETINFO", "LIB-NAME", "redis-py(x)") == OK
        assert client.call("client", "setinfo", "lib-ver", "1.2.3") == OK
        wanted = b" resp=%d lib-name=redis-py(x) lib-ver=1.2.3" % protocol
        assert client.call("CLIENT", "INFO").value.strip().endswith(wanted)
        for bad in ("a b", "a\nb", "\x7f", "\xe9"):
            error = b"ERR lib-name cannot contain spaces, newlines or special characters."
            assert client.call("CLIENT", "SETINFO", "lib-name", bad) == Reply("error", error)
        assert client.call("CLIENT", "SETINFO", "lib-x", "a").value == b"ERR Unrecognized option 'lib-x'"
        wrong = b"ERR wrong number of arguments for 'client|setinfo' command"
        assert client.call("CLIENT", "SETINFO", "lib-ver").value == wrong
        client.call("RESET")
        assert b"lib-name=redis-py(x) lib-ver=1.2.3" in client.call("CLIENT", "INFO").value
        assert client.call("CLIENT", "SETINFO", "lib-ver", "") == OK
        assert client.call("CLIENT", "INFO").value.strip().endswith(b"lib-ver=")


READS = ["GET s", "EXISTS s", "MGET s", "STRLEN s", "LRANGE l 0 -1", "LPUSH l x", "LINDEX l 0", "EVAL redis.call('GET',KEYS[1]) 1 s",
         "EVAL_RO redis.call('GET',KEYS[1]) 1 s", "GETEX s", "SORT l", "XREAD BLOCK 1 STREAMS none 0"]  # fmt: skip


def test_no_touch(empty_pair):
    """What such a client looks up keeps its time; what it stores anew does not, and neither does what it touches."""
    server = empty_pair.servers[1]

    def idle(admin, *keys):
        return [admin.call("OBJECT", "IDLETIME", key).value for key in keys]

    with server.client() as admin, server.client() as client:
        admin.pipeline([("SET", "s", "v"), ("RPUSH", "l", "a"), ("SET", "t", "v")])
        assert client.call("CLIENT", "NO-TOUCH", "foo").value == b"ERR syntax error"
        assert client.call("CLIENT", "NO-TOUCH", "ON") == OK
        assert b" flags=T " in client.call("CLIENT", "INFO").value
        time.sleep(2.1)
        for line in READS:
            client.call(*line.split())
            client.pipeline([("MULTI",), line.split(), ("EXEC",)])
        assert min(idle(admin, "s", "l")) >= 2
        assert idle(client, "s")[0] >= 2  # it sees the time as others do
        assert client.call("TOUCH", "s").value == 1
        client.call("SET", "t", "w")
        assert max(idle(admin, "s", "t")) <= 1
        assert client.call("CLIENT", "NO-TOUCH", "OFF") == OK
        client.call("LRANGE", "l", "0", "-1")
        assert idle(admin, "l")[0] <= 1
        client.call("CLIENT", "NO-TOUCH", "ON")
        client.call("RESET")
        assert b" flags=N " in client.call("CLIENT", "INFO").value


REPLIES = [
    "MULTI | SET k 1 | CLIENT REPLY OFF | INCR k | GET k | EXEC | PING | CLIENT REPLY ON | GET k",
    "MULTI | SET k 1 | CLIENT REPLY OFF | INCR k | CLIENT REPLY ON | GET k | EXEC | PING",
    "MULTI | SET k 1 | CLIENT REPLY SKIP | INCR k | EXEC | PING | GET k",
    "CLIENT REPLY OFF | MULTI | SET k 1 | INCR k | CLIENT REPLY ON | GET k | EXEC | PING",
    "MULTI | GET k | SET l v | CLIENT REPLY OFF | CLIENT REPLY foo | NOSUCH | EXEC | CLIENT REPLY ON | PING",
    "WATCH k | SET k 1 | CLIENT REPLY OFF | MULTI | CLIENT REPLY ON | GET k | EXEC | CLIENT REPLY ON | PING",
    "MULTI | CLIENT REPLY OFF | SUBSCRIBE c | UNSUBSCRIBE c | PING | EXEC | CLIENT REPLY ON | PING",
    "CLIENT REPLY SKIP | MULTI | CLIENT REPLY SKIP | PING | EXEC | PING | PING",
]


@pytest.mark.parametrize("line", REPLIES)
def test_replies_are_turned_off_at_their_place_in_a_transaction(empty_pair, line):
    """Byte for byte: an array may be announced with more elements than follow."""

    def run(server):
        with server.client() as client:
            client.send_raw(b"".join(encode(command.split()) for command in line.split(" | ")))
            raw = b""
            client.socket.setblocking(True)
            client.socket.settimeout(0.3)
            try:
                while piece := client.socket.recv(65536):
                    raw += piece
            except TimeoutError:
                return raw

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected


def test_the_figures_of_a_line(empty_pair):
    """Those that Redis has as zero are zero; the others grow with what they tell of."""

    def figures(line):
        return {name: int(value) for name, value in re.findall(r" ([a-z-]+)=(-?\d+)(?= )", line.decode())}

    def run(server):
        with server.client() as client, server.client() as admin:
            number = client.call("CLIENT", "ID").value

            def told():
                return figures(admin.call("CLIENT", "LIST", "ID", number).value)

            own = figures(client.call("CLIENT", "INFO").value)
            assert own["argv-mem"] > 0 and own["tot-mem"] > own["argv-mem"]
            idle = told()
            client.pipeline([("MULTI",), ("SET", "k", "x" * 100_000), ("GET", "k")])
            queued = told()
            client.call("EXEC")
            done = told()
            client.send_raw(b"*2\r\n$4\r\nECHO\r\n$100000\r\n" + b"x" * 50_000)
            time.sleep(0.1)
            partly = told()
            client.send_raw(b"x" * 50_000 + b"\r\n")
            client.read()
            admin.call("SET", "large", "y" * 4_000_000)
            client.send_raw(encode(["GET", "large"]) * 3)  # and is not read
            time.sleep(0.2)
            owed = told()
            return idle, queued, done, partly, owed

    for server in empty_pair.servers:
        idle, queued, done, partly, owed = run(server)
        for name in ("multi-mem", "rbp", "obl", "oll", "omem", "qbuf", "argv-mem"):
            assert idle[name] == 0 or name in ("rbp", "obl", "qbuf"), name
        assert queued["multi-mem"] > 100_000 and queued["multi"] == 2
        assert queued["tot-mem"] > idle["tot-mem"] + 100_000
        assert done["multi-mem"] == 0 and done["multi"] == -1
        assert partly["qbuf"] >= 50_000 or partly["argv-mem"] >= 50_000
        assert owed["oll"] > 0 and owed["omem"] > 0


def test_flags_of_watchers(empty_pair):
    """A key has changed that is watched: the next EXEC will fail."""

    def run(server):
        with server.client() as client, server.client() as admin:
            number = client.call("CLIENT", "ID").value

            def flags():
                return state(admin, number)["flags"]

            client.call("WATCH", "k")
            seen = [flags()]
            admin.call("SET", "k", "v")
            seen.append(flags())
            client.call("MULTI")
            seen.append(flags())
            client.call("EXEC")
            seen.append(flags())
            client.pipeline([("WATCH", "k"), ("SET", "k", "w")])
            seen.append(flags())
            client.call("UNWATCH")
            return [*seen, flags()]

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected


def test_a_monitor_reads_no_data(empty_pair):
    """As Redis, which takes it for a replica."""
    commands = ["GET k", "SET k v", "PUBLISH c m", "EVAL 'return 1' 0", "KEYS *", "PFCOUNT h", "WATCH k", "CLIENT ID", "MULTI", "GET k", "EXEC",
                "DBSIZE", "TYPE k", "XREAD BLOCK 0 STREAMS s 0", "SUBSCRIBE c"]  # fmt: skip

    def run(server):
        with server.client() as client:
            client.call("MONITOR")
            got = []
            for line in commands:
                client.send(*line.split())
                got += [(line, reply.kind, reply.value if reply.is_error() else None) for reply in drain(client, 0.1)
                        if not re.match(rb"\d+\.\d+ \[", reply.value if isinstance(reply.value, bytes) else b"")]  # fmt: skip
            return got

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected


def test_a_transaction_that_fails_is_told_to_monitors(empty_pair):
    lines = ["EXEC", "MULTI", "GET", "EXEC", "MULTI", "WATCH k", "EXEC", "WATCH k", "SET k v", "MULTI", "PING", "EXEC"]

    def run(server):
        with server.client() as monitor, server.client() as client, server.client() as admin:
            admin.call("CONFIG", "RESETSTAT")
            monitor.call("MONITOR")
            replies = [client.call(*line.split()) for line in lines]
            told = [re.sub(rb".*?\] ", b"", reply.value) for reply in drain(monitor, 0.1, first_within=10)]
            stats = admin.call("INFO", "commandstats").value
            counted = re.findall(rb"cmdstat_(exec|watch|multi):calls=(\d+).*?(rejected_calls=\d+,failed_calls=\d+)", stats)
            errors = re.findall(rb"errorstat_\w+:count=\d+", admin.call("INFO", "errorstats").value)
            return replies, told, sorted(counted), sorted(errors)

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected


@pytest.mark.parametrize("target", ["ID", "TYPE", "address"])
def test_who_kills_itself_in_a_transaction(empty_pair, target):
    """A difference: Redis ends in the midst of the reply."""
    def run(server, is_redis):
        with server.client() as client, server.client() as other:
            other.call("PING")  # it is known by then
            me = client.call("CLIENT", "ID").value
            words = {"ID": ("ID", me, "SKIPME", "no"), "TYPE": ("TYPE", "normal", "SKIPME", "no"), "address": (client.local_address(),)}[target]
            replies = client.pipeline([("MULTI",), ("SET", "k", 1), ("CLIENT", "KILL", *words), ("INCR", "k"), ("EXEC",), ("SET", "k", 9)])
            if is_redis:
                assert replies[4] == CLOSED
            else:
                answers = [part.value for part in replies[4].value]
                assert (answers[0], answers[2]) == (b"OK", 2) and client.read() == CLOSED
            with server.client() as another:
                assert another.call("GET", "k").value == b"2"
            assert target != "TYPE" or other.call("PING") == CLOSED

    for server in empty_pair.servers:
        run(server, server is empty_pair.servers[0])


def test_the_last_command(empty_pair):
    lines = ["GET k", "CONFIG GET port", "NOSUCH x", "PING", "CONFIG NOSUCH", "CLIENT", "GET", "OBJECT", "EVAL"]

    def run(server):
        with server.client() as client, server.client() as admin:
            number = client.call("CLIENT", "ID").value
            seen = []
            for line in lines:
                client.call(*line.split())
                seen.append(re.search(r" cmd=(\S+)", admin.call("CLIENT", "LIST", "ID", number).text())[1])
            return seen

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected


@pytest.mark.parametrize("lines", [["BLPOP l 0", "WAIT 0 0"], ["SET a 1", "BZPOPMIN z 0", "XADD s * a b"], ["WAIT 1 0", "GET q"]])
def test_the_command_of_who_waits(empty_pair, lines):
    """What stands behind it in the pipeline has been read, and does not run."""

    def run(server):
        with server.client() as client, server.client() as admin:
            number = client.call("CLIENT", "ID").value
            for line in lines:
                client.send(*line.split())
            deadline = time.monotonic() + 10
            while True:
                line = admin.call("CLIENT", "LIST", "ID", number).text()
                if " flags=b " in line or time.monotonic() > deadline:
                    return re.search(r" flags=(\S+)", line)[1], re.search(r" cmd=(\S+)", line)[1]

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected


def test_hello_on_a_replica(empty_pair):
    def run(server):
        with server.client(protocol=3) as client:
            roles = []
            for target in (("127.0.0.1", "1"), ("NO", "ONE")):
                client.call("REPLICAOF", *target)
                roles += [value for name, value in client.call("HELLO", "3").value if name.value == b"role"]
            return roles

    expected, actual = map(run, empty_pair.servers)
    assert actual == expected
