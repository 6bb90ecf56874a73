"""P8 with clients that leave in the middle of something: what was received is run, nothing is handed to
nobody, and what they asked for does not go on without them."""

import fcntl
import socket
import termios

from harness import eventually, ingot
from support.resp import encode

COMMANDS = 50
CLIENTS = 40


def all_sent(connection):
    """Waits until the kernel holds nothing back: that would be lost with the connection."""
    held = b"\0" * 4
    eventually(lambda: fcntl.ioctl(connection, termios.TIOCOUTQ, held) == held, 10, "all sent", pause=0.001)


def test_commands_are_run_though_their_client_left(engine):
    """One by one, so that the first is answered, and its answer unread, when the others come."""
    with ingot(engine, appendfsync="always") as server, server.client() as client:
        for _ in range(CLIENTS):
            with socket.create_connection(("127.0.0.1", server.port)) as gone:
                gone.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for number in range(COMMANDS):
                    gone.sendall(encode(["INCR", "n"]))
                    if number == 0:
                        gone.recv(1, socket.MSG_PEEK)
                all_sent(gone)
        expected = b"%d" % (COMMANDS * CLIENTS)
        eventually(lambda: client.call("GET", "n").value == expected, 10, f"{expected} INCR")
        eventually(lambda: len(client.call("CLIENT", "LIST").text().splitlines()) == 1, 10, "all closed")


def test_a_long_pipeline_is_run_though_its_client_left(engine):
    """More than the server takes at a time, reads and a transaction among it."""
    block = [["SET", "k", b"x" * 3000], ["GET", "k"], ["WATCH", "k"], ["MULTI"], ["INCR", "n"],
             ["STRLEN", "k"], ["EXEC"]]  # fmt: skip
    payload = b"".join(map(encode, block)) * 200
    with ingot(engine) as server, server.client() as client:
        with socket.create_connection(("127.0.0.1", server.port)) as gone:
            gone.sendall(payload)
            all_sent(gone)
        eventually(lambda: client.call("GET", "n").value == b"200", 10, "200 INCR")


def test_elements_stay_when_who_waited_has_left(engine):
    with ingot(engine) as server, server.client() as client:
        for number in range(CLIENTS):
            with socket.create_connection(("127.0.0.1", server.port)) as gone:
                gone.sendall(encode(["BLPOP", f"l{number}", 0]))
        eventually(lambda: len(client.call("CLIENT", "LIST").text().splitlines()) == 1, 10, "all closed")
        for number in range(CLIENTS):
            client.call("RPUSH", f"l{number}", "x")
        assert [client.call("LLEN", f"l{n}").value for n in range(CLIENTS)] == [1] * CLIENTS
        eventually(lambda: "blocked_clients:0" in client.call("INFO", "clients").text(), 10, "nobody waits")


def blocked_client(server, client, *command):
    waiting = server.client()
    number = waiting.call("CLIENT", "ID").value
    waiting.send(*command)
    eventually(lambda: "blocked_clients:1\r" in client.call("INFO", "clients").text(), 10, "it waits", pause=0.001)
    return waiting, number


def test_who_was_killed_takes_nothing_any_more(engine):
    """Also right behind the reply to CLIENT KILL, and in the transaction that kills."""
    waits = {"l": ("BLPOP", "l", 0), "m": ("BLMOVE", "m", "n", "LEFT", "LEFT", 0), "z": ("BZPOPMIN", "z", 0)}
    pushes = {"l": ("RPUSH", "l", "x"), "m": ("RPUSH", "m", "x"), "z": ("ZADD", "z", 1, "x")}
    with ingot(engine) as server, server.client() as client:
        for number in range(60):
            key = "lmz"[number % 3]
            waiting, who = blocked_client(server, client, *waits[key])
            if number % 2:
                client.pipeline([("MULTI",), ("CLIENT", "KILL", "ID", who), pushes[key], ("EXEC",)])
            else:
                assert client.call("CLIENT", "KILL", "ID", who).value == 1
                client.call(*pushes[key])
            assert client.call("DEL", key).value == 1, waits[key]
            waiting.close()
            eventually(lambda: "blocked_clients:0\r" in client.call("INFO", "clients").text(), 10, "it is gone", pause=0.001)
