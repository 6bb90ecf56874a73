"""Pub/sub against Redis: what every connection gets, replies and messages, in order."""

import pytest
from listening import play

SCRIPTS = {
    "subscribe and publish": """
        a> SUBSCRIBE news
        b> PUBLISH news hello | PUBLISH news "" | PUBLISH other x
        a> SUBSCRIBE news news more | SUBSCRIBE ""
        b> PUBLISH more 1 | PUBLISH news 2 | PUBLISH "" 3
        a> UNSUBSCRIBE more nothing | UNSUBSCRIBE more
        b> PUBLISH more 1 | PUBLISH news 2
        a> UNSUBSCRIBE   ~any
        a> UNSUBSCRIBE | PUNSUBSCRIBE | SUNSUBSCRIBE
        b> PUBLISH news 3
    """,
    "patterns": """
        a> PSUBSCRIBE n*
        a> PSUBSCRIBE new? n[a-f]ws "*" new\\\\s n^ ""
        b> PUBLISH news 1 | PUBLISH ne 2 | PUBLISH x 3 | PUBLISH "" 4 | PUBLISH n^ 5   ~any
        a> PUNSUBSCRIBE n* none
        b> PUBLISH news 1 | PUBSUB NUMPAT | PUBSUB NUMSUB news n*   ~any
        c> PSUBSCRIBE "*" x*
        b> PUBLISH x1 1 | PUBSUB NUMPAT | PUBSUB CHANNELS   ~any
        a> PUNSUBSCRIBE   ~any
        b> PUBLISH x1 1 | PUBSUB NUMPAT   ~any
    """,
    "a channel and its patterns": """
        a> SUBSCRIBE news
        a> PSUBSCRIBE news
        b> PUBLISH news 1
        a> UNSUBSCRIBE
        b> PUBLISH news 2
    """,
    "shard channels are a world of their own": """
        a> SSUBSCRIBE news more
        a> SUBSCRIBE news | PSUBSCRIBE n*
        b> SPUBLISH news 1 | PUBLISH news 2 | SPUBLISH x 3
        b> PUBSUB SHARDCHANNELS | PUBSUB SHARDCHANNELS n* | PUBSUB SHARDNUMSUB news more x | PUBSUB SHARDNUMSUB   ~any
        a> SUNSUBSCRIBE more | SUNSUBSCRIBE x
        b> SPUBLISH news 1 | SPUBLISH more 2
        a> SUNSUBSCRIBE
        b> SPUBLISH news 1
    """,
    "asking": """
        a> SUBSCRIBE one two three
        b> SUBSCRIBE two | PSUBSCRIBE t*
        c> PUBSUB CHANNELS   ~any
        c> PUBSUB CHANNELS on* | PUBSUB CHANNELS x* | PUBSUB NUMSUB one two x | PUBSUB NUMSUB | PUBSUB NUMPAT
        c> PUBSUB HELP | PUBSUB NONSENSE | PUBSUB CHANNELS a b | PUBSUB NUMPAT x | PUBSUB | PUBSUB SHARDCHANNELS a b
        c> SUBSCRIBE | PSUBSCRIBE | SSUBSCRIBE | PUBLISH | PUBLISH a | PUBLISH a b c | SPUBLISH a
        !close a
        c> PUBSUB NUMSUB one two
    """,
    "only some commands under RESP2": """
        2>a> SUBSCRIBE news
        2>a> GET k | SET k v | CLIENT LIST | MULTI | EXEC | DISCARD | HELLO 3 | PUBLISH news x | PUBSUB NUMPAT | AUTH x
        2>a> NONSENSE | GET | PING | PING x | PING x y | ECHO x
        2>a> PSUBSCRIBE p | SSUBSCRIBE s | UNSUBSCRIBE | PUNSUBSCRIBE | GET k
        2>a> SUNSUBSCRIBE | GET k | PING | PING x
        2>a> SSUBSCRIBE s | GET k
        2>a> RESET | GET k | PING
        2>a> SUBSCRIBE a | QUIT
    """,
    "everything under RESP3": """
        3>a> SUBSCRIBE news | SET k v | GET k | PING | PING x
        b> PUBLISH news 1
        a> MULTI
        a> GET k | PSUBSCRIBE n* | EXEC
        b> PUBLISH news 2
        a> HELLO 2 | GET k
        b> PUBLISH news 3
    """,
    "inside a transaction": """
        a> MULTI | SUBSCRIBE news | PUBLISH news x | PUBLISH nobody x | EXEC   ~any
        b> PUBLISH news 1
        b> MULTI | PUBLISH news 1 | SET k v | PUBLISH news 2 | GET k | EXEC
        b> MULTI | PUBLISH news 1 | DISCARD
        b> MULTI | PUBLISH news 1 | NONSENSE | EXEC
        b> SET n x
        b> MULTI | PUBLISH news 1 | INCR n | PUBLISH news 2 | EXEC
        b> WATCH n | SET n y | MULTI | PUBLISH news 1 | EXEC
        a> UNSUBSCRIBE
        a> MULTI | SUBSCRIBE news | UNSUBSCRIBE news | EXEC
        b> PUBLISH news 1
        a> MULTI | PSUBSCRIBE n* | GET k | EXEC
    """,
    "refused inside a transaction": """
        2>a> MULTI | SUBSCRIBE x | EXEC
        2>a> EXEC | MULTI
    """,
    "reset, quit and closing leave everything": """
        a> SUBSCRIBE one | PSUBSCRIBE o* | SSUBSCRIBE s | RESET
        b> PUBLISH one x | SPUBLISH s x | PUBSUB NUMPAT | PUBSUB CHANNELS | PUBSUB SHARDCHANNELS
        c> SUBSCRIBE one | PSUBSCRIBE o* | SSUBSCRIBE s
        !close c
        b> PING
        b> PUBLISH one x | SPUBLISH s x | PUBSUB NUMPAT | PUBSUB CHANNELS | PUBSUB SHARDCHANNELS
        d> SUBSCRIBE one | QUIT
        b> PUBLISH one x
    """,
    "killing": """
        a> SUBSCRIBE one
        c> PING
        b> CLIENT KILL TYPE pubsub SKIPME yes
        b> PUBLISH one x
        a> PING
        d> SUBSCRIBE one
        b> CLIENT KILL ID {id:d}
        b> PUBLISH one x
        c> CLIENT KILL TYPE PUBSUB | CLIENT KILL TYPE nonsense
    """,
    "messages in spite of CLIENT REPLY OFF": """
        3>a> CLIENT REPLY OFF | SUBSCRIBE news | PING
        b> PUBLISH news 1
        a> UNSUBSCRIBE news
        b> PUBLISH news 2
        a> SUBSCRIBE more | CLIENT REPLY ON
        b> PUBLISH more 1
        a> CLIENT REPLY SKIP | SUBSCRIBE one more | PING
        a> CLIENT REPLY SKIP | PING | SUBSCRIBE one
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(empty_pair, protocol, name):
    play(empty_pair, protocol, SCRIPTS[name])


def test_a_message_to_oneself_from_a_transaction_that_unsubscribes(empty_pair):
    """A difference: Redis has it in the midst of EXEC's reply."""
    heard = []
    for server in empty_pair.servers:
        with server.client(protocol=3) as client:
            client.call("SUBSCRIBE", "c")
            for command in (("MULTI",), ("PUBLISH", "c", "hello"), ("UNSUBSCRIBE", "c"), ("EXEC",), ("ECHO", "end")):
                client.send(*command)
            replies = ""
            while "$'end'" not in replies:
                replies += repr(client.read())
            assert "unsubscribe" in replies
            heard.append("hello" in replies)
    assert heard == [True, False]


def test_a_message_comes_after_what_was_set_before_it(empty_pair):
    """SET and PUBLISH of one client, and GET by who has got the message."""
    server = empty_pair.servers[1]
    with server.client() as listener, server.client() as reader, server.client() as writer:
        listener.call("SUBSCRIBE", "news")
        for i in range(500):
            writer.send_raw(b"".join(command(i) for command in (set_command, publish_command)))
            message = listener.read()
            assert message.value[2].value == b"%d" % i
            assert reader.call("GET", "k").value == b"%d" % i
            assert [writer.read().value, writer.read().value] == [b"OK", 1]


def set_command(i):
    return b"SET k %d\r\n" % i


def publish_command(i):
    return b"PUBLISH news %d\r\n" % i


def test_messages_while_a_command_waits(empty_pair):
    """Under RESP3 a client that waits for a list gets its messages meanwhile."""
    for server in empty_pair.servers:
        with server.client(protocol=3) as a, server.client() as b:
            a.call("SUBSCRIBE", "news")
            a.send("BLPOP", "list", "0")
            wait_until(lambda: b"blocked_clients:1" in b.call("INFO", "clients").value)
            assert b.call("PUBLISH", "news", "1").value == 1
            assert repr(a.read()) == "push[$'message', $'news', $'1']"
            b.call("RPUSH", "list", "x")
            assert repr(a.read()) == "array[$'list', $'x']"


def wait_until(condition):
    import time

    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_client_list_tells_of_subscriptions(empty_pair):
    lines = []
    for server in empty_pair.servers:
        with server.client(protocol=3) as a:
            a.pipeline([("SUBSCRIBE", "x"), ("SUBSCRIBE", "y"), ("PSUBSCRIBE", "p*"), ("SSUBSCRIBE", "s")])
            fields = dict(word.split("=", 1) for word in a.call("CLIENT", "INFO").text().split()[1:])
            listed = a.call("CLIENT", "LIST", "TYPE", "pubsub").text().count("\n")
            normal = a.call("CLIENT", "LIST", "TYPE", "normal").text().count("flags=P")
            info = dict(line.split(":", 1) for line in a.call("INFO", "stats").text().split("\r\n") if ":" in line)
            figures = [info[name] for name in ("pubsub_channels", "pubsub_patterns", "pubsubshard_channels")]
            lines.append([fields[name] for name in ("flags", "sub", "psub", "ssub")] + [listed, normal] + figures)
    assert lines[0] == lines[1] == ["P", "2", "1", "1", 1, 0, "2", "1", "1"]
