"""ACL under load: very many users, patterns and keys, rules that change all the time, users that go. Ingot alone."""

import contextlib
import itertools
import os
import threading
import time

import pytest
from acl_tools import OK, make  # noqa: F401
from support.effort import FULL
from support.resp import CLOSED, Reply
from support.servers import engines, self_check

@pytest.fixture
def alone(make):
    if self_check():
        pytest.skip("of Ingot alone")
    return make(engines()[0]).start()


@pytest.mark.timed
def test_ten_thousand_users(alone, tmp_path):
    """They are made, listed, found and deleted, while others are served at once."""
    with alone.client(timeout=60) as client:
        for start in range(0, 10_000, 1000):
            lines = [("ACL", "SETUSER", f"u{i}", "on", f">p{i}", f"~u{i}:*", "+@all", "-@dangerous") for i in range(start, start + 1000)]
            assert all(reply == OK for reply in client.pipeline(lines))
        slowest = [0.0]
        done = threading.Event()

        def ping():
            with alone.client() as other:
                while not done.is_set():
                    began = time.monotonic()
                    other.call("GET", "x")
                    slowest[0] = max(slowest[0], time.monotonic() - began)

        thread = threading.Thread(target=ping)
        thread.start()
        assert len(client.call("ACL", "LIST").value) == 10_001
        assert len(client.call("ACL", "USERS").value) == 10_001
        with alone.client() as user:
            assert user.call("AUTH", "u9999", "p9999") == OK
            assert user.call("SET", "u9999:x", "1") == OK
            assert user.call("GET", "u1:x").is_error()
            assert client.call("ACL", "DELUSER", *[f"u{i}" for i in range(10_000)]) == Reply("integer", 10_000)
            assert user.call("PING") == CLOSED
        done.set()
        thread.join()
        assert slowest[0] < 0.5
        assert len(client.call("ACL", "USERS").value) == 1


@pytest.mark.timed
def test_a_user_of_many_patterns(alone):
    rules = [f"~key:{i}:*" for i in range(50_000)] + [f"&channel:{i}" for i in range(50_000)]
    with alone.client(timeout=60) as client, alone.client() as user:
        began = time.monotonic()
        assert client.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", *rules) == OK
        assert client.call("ACL", "SETUSER", "u", *rules) == OK
        assert time.monotonic() - began < 3
        assert len(client.call("ACL", "LIST").value[1].value.split()) == 100_000 + len("user u on nopass resetchannels +@all".split())
        assert user.call("AUTH", "u", "x") == OK
        assert user.call("SET", "key:49999:x", 1) == OK
        assert user.call("SET", "key:50000:x", 1).is_error()


@pytest.mark.timed
def test_neighbours_do_not_wait_for_long_checks(alone):
    """Very many keys under very many patterns: on no thread that others share, alone, in a transaction, and in order."""
    names = [f"key:{i}" for i in range(100_000)]
    with alone.client(timeout=120) as user, alone.client() as admin:
        assert admin.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", *[f"~*:{i}x" for i in range(300)], "~key:*") == OK
        assert user.call("AUTH", "u", "x") == OK
        slowest, done = [0.0], threading.Event()

        def ping():
            with contextlib.ExitStack() as stack:
                others = [stack.enter_context(alone.client()) for _ in range(8)]  # some on each thread
                while not done.is_set():
                    for other in others:
                        began = time.monotonic()
                        other.call("SET", "x", "1")
                        slowest[0] = max(slowest[0], time.monotonic() - began)

        thread = threading.Thread(target=ping)
        thread.start()
        began = time.monotonic()
        replies = user.pipeline([("INCR", "key:n"), ("EXISTS", *names), ("INCR", "key:n"), ("EXISTS", "other", *names), ("PING",)])
        assert replies[0].value == 1 and replies[2].value == 2 and replies[4] == Reply("simple", b"PONG")
        assert replies[1] == Reply("integer", 0) and replies[3].text().startswith("NOPERM")
        replies = user.pipeline([("MULTI",), ("EXISTS", *names), ("INCR", "key:n"), ("EXEC",), ("GET", "key:n")])
        assert replies[3].value == [Reply("integer", 0), Reply("integer", 3)] and replies[4].value == b"3"
        took = time.monotonic() - began
        done.set()
        thread.join()
        assert slowest[0] < max(0.3, took / 4), (slowest, took)


def test_long_passwords(alone):
    """They are right or wrong as short ones are; in a transaction, where the writer would hash them, they are wrong."""
    password = "x" * 1_000_000
    with alone.client() as client:
        client.call("ACL", "SETUSER", "u", "on", ">" + password, "+@all")
        replies = client.pipeline([("AUTH", "u", password + "x"), ("ACL", "WHOAMI"), ("AUTH", "u", password), ("ACL", "WHOAMI"), ("HELLO", 2, "AUTH", "u", password)])
        assert replies[0].text().startswith("WRONGPASS") and replies[1].value == b"default"
        assert replies[2] == OK and replies[3].value == b"u" and replies[4].kind == "array"
        replies = client.pipeline([("MULTI",), ("AUTH", "u", password), ("EXEC",)])
        assert replies[2].value[0].text().startswith("WRONGPASS")


def test_large_values_that_are_refused_are_not_written(alone):
    value = os.urandom(8 << 20)
    with alone.client(timeout=60) as client:
        client.call("ACL", "SETUSER", "u", "on", "nopass", "+@all", "-append", "~k*")
        client.call("AUTH", "u", "x")
        for command in (["SET", "x"], ["APPEND", "k"]) * 10:
            assert client.call(*command, value).text().startswith("NOPERM")
        assert sum(file.stat().st_size for file in alone.directory.rglob("*") if file.is_file()) < 40 << 20
        assert client.call("SET", "k", value) == OK
        assert client.call("STRLEN", "k") == Reply("integer", len(value))


def test_setuser_storm(alone):
    """While rules change, each command is checked by one state of them or another, never by half of one."""
    stop = threading.Event()
    failures = []

    def change(client):
        for i in itertools.count():
            if stop.is_set():
                return
            key = "a" if i % 2 == 0 else "b"
            client.call("ACL", "SETUSER", "u", "reset", "on", "nopass", "+mget", "+multi", "+exec", "+set", f"~{key}", f"%R~{key}{key}")

    def use(client):
        client.call("AUTH", "u", "x")
        while not stop.is_set():
            for reply in client.pipeline([("MGET", "a", "b"), ("MGET", "aa", "b"), ("MULTI",), ("SET", "a", "1"), ("SET", "bb", "1"), ("EXEC",)]):
                if not (reply.is_error() or reply in (OK, Reply("simple", b"QUEUED"))) and reply.kind != "array":
                    failures.append(reply)
                if reply.kind == "array" and len(reply.value) == 2 and not any(each.is_error() for each in reply.value):
                    failures.append(reply)

    def come_and_go():
        while not stop.is_set():
            with alone.client() as client:
                client.call("ACL", "SETUSER", "t", "on", "nopass", "~*", "+@all")
                client.call("AUTH", "t", "x")
                client.send("GET", "a")
                client.send("ACL", "DELUSER", "t")

    with alone.client() as first:
        first.call("ACL", "SETUSER", "u", "on", "nopass", "+@all")
    clients = [alone.client() for _ in range(6)]
    threads = [threading.Thread(target=change, args=(clients[0],)), threading.Thread(target=come_and_go), threading.Thread(target=come_and_go)]
    threads += [threading.Thread(target=use, args=(client,)) for client in clients[1:]]
    for thread in threads:
        thread.start()
    time.sleep(10 if FULL else 3)
    stop.set()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    assert not failures and alone.alive()


def test_nothing_runs_after_deluser_is_answered(alone):
    """A pipeline that is on its way when its user is deleted ends there."""
    for _ in range(20):
        with alone.client() as admin, alone.client() as user:
            admin.call("DEL", "n")
            admin.call("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all")
            user.call("AUTH", "u", "x")
            user.send_raw(b"INCR n\r\n" * 20_000)
            admin.call("ACL", "DELUSER", "u")
            # What was handed to the writer before is done; nothing is that came later.
            time.sleep(0.02)
            first = admin.call("GET", "n")
            time.sleep(0.02)
            assert admin.call("GET", "n") == first


def test_nobody_gets_rights_of_others(make, tmp_path):  # noqa: F811
    """Users are made, changed, deleted, saved and loaded by thousands, while some work who never may do more than one thing."""
    if self_check():
        pytest.skip("of Ingot alone")
    server = make(engines()[0], {"aclfile": str(tmp_path / "users.acl")})
    (tmp_path / "users.acl").write_text(
        "user default on nopass ~* &* +@all\nuser reader on nopass ~* +get +mget +exec +multi\nuser owner on nopass ~owner:* +@all -@admin\n")
    server.start()
    stop, failures, counts = threading.Event(), [], {"taken": 0, "refused": 0}

    def guarded(work, *args):
        def run():
            try:
                with server.client(timeout=60) as client:
                    work(client, *args)
            except Exception as failure:  # told below
                failures.append(failure)
                stop.set()

        return threading.Thread(target=run)

    def as_user(name, commands):
        """The replies to them, over and over. ACL LOAD cuts all users but the default one, as in Redis 7.0."""
        while not stop.is_set():
            with server.client(timeout=60) as client:
                if client.call("AUTH", name, "x") != OK:
                    assert client.call("PING") == CLOSED
                    continue
                replies = []
                while CLOSED not in replies and not stop.is_set():
                    replies = client.pipeline(commands)
                    yield [reply for reply in replies if reply != CLOSED]

    def refused(reply):
        return reply.is_error() and (b"NOPERM" in reply.value or b"executing the script can't" in reply.value)

    def reads_only(_):
        commands = [("GET", "owner:n"), ("SET", "owner:n", "x"), ("EVAL", "return 1", 0), ("MULTI",), ("GET", "n"), ("EXEC",), ("ACL", "LIST"),
                    ("CONFIG", "GET", "*")]  # fmt: skip
        for replies in as_user("reader", commands):
            expected = [False, True, True, False, False, False, True, True][: len(replies)]
            assert [reply.is_error() for reply in replies] == expected, replies
            assert all(refused(reply) for reply in replies if reply.is_error()), replies
            counts["refused"] += sum(expected)

    def owns(_, number):
        commands = [("INCR", f"owner:{number}"), ("INCR", "other"), ("MGET", f"owner:{number}", "other"),
                    ("EVAL", "return redis.pcall('INCR', 'other')", 0), ("ACL", "DELUSER", "reader")]  # fmt: skip
        last = 0
        for replies in as_user("owner", commands):
            assert not replies or replies[0].value > last and all(map(refused, replies[1:])), replies
            last = replies[0].value if replies else last
            counts["taken"] += len(replies) > 0

    def storms(client, number):
        names = [f"u{number}:{i}" for i in range(200)]
        while not stop.is_set():
            for command in (("ACL", "SETUSER", "{}", "reset", "on", "nopass", "~{}:*", "+@all"), ("ACL", "SETUSER", "{}", "reset", "~*", "+@read"),
                            ("ACL", "DELUSER", "{}")):  # fmt: skip
                for reply in client.pipeline([[word.format(name) for word in command] for name in names]):
                    assert not reply.is_error(), reply

    def saves_and_loads(client):
        while not stop.is_set():
            for command in ("SAVE", "LOAD"):
                reply = client.call("ACL", command)
                assert reply == OK, reply

    def comes_and_goes(client, number):
        """Uses users that are deleted under it: it has their rights, or it is cut."""
        while not stop.is_set():
            with server.client() as user:
                name = f"u{number}:0"
                if user.call("AUTH", name, "x") != OK:
                    continue
                for reply in user.pipeline([("SET", f"{name}:x", 1), ("SET", "other", "x"), ("ACL", "WHOAMI")]):
                    assert reply != Reply("bulk", b"default")
                assert client.call("GET", "other").is_null()

    threads = [guarded(reads_only), guarded(reads_only), guarded(saves_and_loads)]
    for number in range(2):
        threads += [guarded(owns, number), guarded(storms, number), guarded(comes_and_goes, number)]
    for thread in threads:
        thread.start()
    stop.wait(30 if FULL else 4)
    stop.set()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert server.alive() and min(counts.values()) > 0, counts


def test_a_right_that_was_taken_is_gone(alone):
    """Once ACL SETUSER is answered and what was under way is done, nothing more is done by the old rules."""
    with alone.client() as admin:
        admin.call("ACL", "SETUSER", "u", "on", "nopass", "~n", "+incr")
        stop = threading.Event()

        def work():
            with alone.client(timeout=60) as client:
                client.call("AUTH", "u", "x")
                while not stop.is_set():
                    client.pipeline([("INCR", "n")] * 10)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(200 if FULL else 30):
            admin.call("ACL", "SETUSER", "u", "+incr")
            before = int(admin.call("GET", "n").value or 0)
            deadline = time.monotonic() + 10
            while int(admin.call("GET", "n").value or 0) == before:
                assert time.monotonic() < deadline
            admin.call("ACL", "SETUSER", "u", "-incr")
            time.sleep(0.03)
            after = admin.call("GET", "n")
            time.sleep(0.03)
            assert admin.call("GET", "n") == after
        stop.set()
        for thread in threads:
            thread.join()
