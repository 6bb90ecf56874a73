"""Random arguments for HELLO, AUTH and CLIENT among commands that change what a connection is: the same replies as redis-server.

INGOT_SEED and INGOT_RANDOM_COMMANDS choose another or a longer run, as in test_random.py.
"""

import os
import random
import re

import pytest
from support.effort import FULL, SEED
from support.resp import CLOSED, Timeout

COMMANDS = int(os.environ.get("INGOT_RANDOM_COMMANDS", 20_000 if FULL else 1_500))
SECONDS = 3.0  # some states answer nothing, as in Redis
FIRST = """HELLO HELLO AUTH CLIENT CLIENT CLIENT CLIENT CLIENT MULTI EXEC DISCARD WATCH UNWATCH RESET SELECT PING SUBSCRIBE PSUBSCRIBE
    SSUBSCRIBE READONLY ECHO COMMAND""".split()  # fmt: skip
SECOND = {
    "HELLO": ["2", "3", "0", "abc", "AUTH"], "AUTH": ["default", "bob", "pw"],
    "CLIENT": "LIST INFO KILL TRACKING CACHING GETREDIR TRACKINGINFO GETNAME SETNAME NO-EVICT UNBLOCK HELP PAUSE UNPAUSE".split(),
    "COMMAND": ["GETKEYS", "GETKEYSANDFLAGS"],
}  # fmt: skip
WORDS = """2 3 0 -1 abc default bob pw x SETNAME AUTH me LIST INFO KILL ID TYPE normal pubsub replica master SKIPME yes no ADDR LADDR 1.2.3.4:5 USER nobody
    TRACKING ON OFF REDIRECT BCAST PREFIX foo OPTIN OPTOUT NOLOOP CACHING YES NO GETREDIR UNBLOCK TIMEOUT ERROR 99999 HELP WATCH k GET SET 5 99 PING
    CLIENT HELLO""".split() + ["", "a b", "a\nb", "\xff"]  # fmt: skip
ALONE = ("MULTI", "EXEC", "DISCARD", "RESET", "UNWATCH")


def command(chance):
    words = [chance.choice(FIRST)]
    if words[0] in SECOND and (words[0] == "COMMAND" or chance.random() < 0.9):
        words.append(chance.choice(SECOND[words[0]]))
    more = 0 if words[0] in ALONE else chance.choice([0, 0, 1, 1, 2, 2, 3, 4, 5])
    words += [chance.choice(WORDS) for _ in range(more)]
    if words == ["CLIENT", "ID"]:
        words.append("")
    # What would pause both servers, or end connections.
    if words[:2] == ["CLIENT", "PAUSE"] and len(words) > 2:
        words[2] = chance.choice(["0", "abc", "-1", ""])
    if words[:2] == ["CLIENT", "KILL"] and len(words) > 3:
        words += ["ID", "99999"]
    return words


def shown(reply):
    """Without what no two servers have in common."""
    text = re.sub(r"'id'[:,] :\d+", "'id'", repr(reply).replace("$'id'", "'id'"))
    return re.sub(r"id=\d+ addr=.*", "a line", text)


def exchange(client, words, number):
    """All replies to a command, up to that of the ECHO behind it (which has other replies in MULTI, or unauthenticated)."""
    token = f"%{number}"
    client.send(*words)
    client.send("ECHO", token)
    got = []
    while not got or not any(end in got[-1] for end in (token, "execute 'echo'", "NOAUTH Auth")):
        try:
            reply = client.read(timeout=SECONDS)
        except Timeout:
            return [*got, "no more"]
        if reply == CLOSED:
            return [*got, "closed"]
        got.append(shown(reply))
        if len(got) == 2 and got[-1] == "+'QUEUED'":
            break
    return got


@pytest.mark.parametrize("part", range(4))
def test_random_connections(empty_pair, part):
    chance = random.Random(f"{SEED} {part}")
    empty_pair.both("ACL", "SETUSER", "bob", "on", ">pw", "+@all", "~*", "&*")
    clients, sent = [], []
    try:
        for number in range(COMMANDS // 4):
            if chance.random() < 0.05 or not clients:
                for client in clients:
                    client.close()
                clients, sent = [server.client() for server in empty_pair.servers], []
            sent.append(command(chance))
            expected, actual = (exchange(client, sent[-1], number) for client in clients)
            assert actual == expected, f"seed {SEED}, part {part}, after {sent[-8:]}"
            if "closed" in expected:
                clients = []
    finally:
        for client in clients:
            client.close()
        empty_pair.both("ACL", "DELUSER", "bob")
