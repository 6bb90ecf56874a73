"""Blocking commands: who is served, in which order, by what; the same on both servers.

A scenario is a list of lines "connection command". A command that waits holds up only its
connection. In the end every connection's replies, in their order, must be equal, and what INFO counts of the commands.
"""

import re
import shlex
import time

import pytest
from support.resp import Timeout

SECONDS = 5.0
QUIET_SECONDS = 0.05
COUNTS = r"(cmdstat_(?!info|config)\S+?):(calls=\d+),.*(rejected_calls=\d+,failed_calls=\d+)"

SCENARIOS = {
    "there is something at once": ["a RPUSH l 1 2 3", "b BLPOP l 0", "b BRPOP l 0", "a LRANGE l 0 -1"],
    "one waits and is fed": ["b BLPOP l 0", "a RPUSH l x y", "a LRANGE l 0 -1"],
    "first come, first served": [
        "b BLPOP l 0", "c BRPOP l 0", "d BLPOP l 0", "a RPUSH l 1 2", "a RPUSH l 3 4", "a LRANGE l 0 -1"],
    "several keys, the first that has something": [
        "a RPUSH l2 two", "b BLPOP l1 l2 l3 0", "b BLPOP l1 l2 0", "a RPUSH l2 again", "a EXISTS l1 l2 l3"],
    "fed on several keys by one transaction": [
        "b BLPOP l1 l2 0", "a MULTI", "a RPUSH l2 second", "a RPUSH l1 first", "a EXEC",
        "a LRANGE l1 0 -1", "a LRANGE l2 0 -1"],
    "pushed and removed in one transaction": [
        "b BLPOP l 0", "a MULTI", "a RPUSH l x", "a DEL l", "a EXEC", "a RPUSH l y", "a EXISTS l"],
    "pushed, removed and pushed again": [
        "b BLPOP l 0", "a MULTI", "a RPUSH l x", "a DEL l", "a RPUSH l z", "a EXEC", "a EXISTS l"],
    "inside of a transaction nothing waits": [
        "a MULTI", "a BLPOP l 0", "a BLMOVE l m LEFT RIGHT 0", "a BRPOPLPUSH l m 0", "a BLMPOP 0 1 l LEFT",
        "a BZPOPMIN z 0", "a BZMPOP 0 1 z MIN", "a XREAD BLOCK 0 STREAMS s $", "a EXEC"],
    "time-outs": [
        "b BLPOP l 0.05", "c BRPOP l m 0.06", "d BLMOVE l m LEFT LEFT 0.05", "e BRPOPLPUSH l m 0.05",
        "f BLMPOP 0.05 2 l m LEFT", "g BZPOPMIN z 0.05", "h BZMPOP 0.05 1 z MAX", "i XREAD BLOCK 50 STREAMS s 0",
        "a PING"],
    "a wrong type does not feed": [
        "b BLPOP k 0", "a SET k string", "a DEL k", "a RPUSH k x", "c BLPOP k 0.1", "a SET k string",
        "d BLPOP k 0", "d BLPOP nothing k 0"],
    "another type wakes nobody": ["b BLPOP k 0", "a ZADD k 1 m", "a DEL k", "a RPUSH k x", "a EXISTS k"],
    "moved on, and served there": [
        "b BLPOP dst 0", "c BLMOVE src dst LEFT RIGHT 0", "a RPUSH src x", "a EXISTS src dst"],
    "a chain of moves": [
        "b BLMOVE l1 l2 LEFT RIGHT 0", "c BRPOPLPUSH l2 l3 0", "d BLPOP l3 0", "a LPUSH l1 v", "a EXISTS l1 l2 l3"],
    "a move onto itself": ["b BLMOVE l l LEFT RIGHT 0", "a RPUSH l 1 2 3", "a LRANGE l 0 -1"],
    "a move to a wrong type": ["a SET s x", "b BLMOVE l s LEFT RIGHT 0", "a RPUSH l 1", "a LRANGE l 0 -1"],
    "fed by rename": ["b BLPOP l 0", "a RPUSH other 1 2", "a RENAME other l", "a LRANGE l 0 -1"],
    "fed by copy": ["b BLPOP l 0", "a RPUSH other 1 2", "a COPY other l", "a LRANGE l 0 -1"],
    "fed by move from another database": [
        "b BLPOP l 0", "a SELECT 1", "a RPUSH l 1 2", "a MOVE l 0", "a SELECT 0", "a LRANGE l 0 -1"],
    "fed by swapdb": ["b BLPOP l 0", "a SELECT 1", "a RPUSH l 1 2", "a SWAPDB 0 1", "a SELECT 0", "a LRANGE l 0 -1"],
    "fed by insertion at the head of another type of push": ["b BRPOP l 0", "a LPUSH l 1 2 3", "a LRANGE l 0 -1"],
    "fed by rpoplpush and lmove": [
        "a RPUSH src 1 2", "b BLPOP dst 0", "a RPOPLPUSH src dst", "c BLPOP dst 0", "a LMOVE src dst LEFT LEFT",
        "a EXISTS src dst"],
    "several elements for one who takes several": [
        "b BLMPOP 0 1 l LEFT COUNT 3", "c BLMPOP 0 2 x l RIGHT COUNT 2", "a RPUSH l 1 2 3 4", "a LRANGE l 0 -1"],
    "sorted sets": [
        "b BZPOPMIN z 0", "c BZPOPMAX z 0", "a ZADD z 1 one 2 two 3 three", "a ZRANGE z 0 -1", "d BZMPOP 0 1 z MAX COUNT 5",
        "e BZMPOP 0 2 y z MIN", "a ZADD z 5 five", "a EXISTS z"],
    "sorted sets fed by union": ["b BZPOPMIN z 0", "a ZADD y 1 m 2 n", "a ZUNIONSTORE z 1 y", "a ZRANGE z 0 -1"],
    "streams": [
        "b XREAD BLOCK 0 STREAMS s $", "c XREAD COUNT 1 BLOCK 0 STREAMS s t 0 0", "a XADD s 1-1 f v", "a XADD t 2-1 f v",
        "b XREAD BLOCK 0 STREAMS s t $ $", "a XADD t 3-1 g w", "b XREAD BLOCK 50 STREAMS s 5"],
    "stream groups": [
        "a XGROUP CREATE s g $ MKSTREAM", "b XREADGROUP GROUP g one BLOCK 0 STREAMS s >",
        "c XREADGROUP GROUP g two BLOCK 0 STREAMS s >", "a XADD s 1-1 f v", "a XADD s 2-1 f v", "a XPENDING s g"],
    "a stream that another database had": [
        "b XREAD BLOCK 0 STREAMS s $", "a SELECT 1", "a XADD s 1-1 f v", "a MOVE s 0", "a XADD s 2-1 g w"],
    "streams: $ is what was last when the wait began": [
        "a XADD s 5-1 f v", "b XREAD BLOCK 0 STREAMS s $", "a DEL s", "a XADD s 1-1 f v", "a XADD s 6-1 f v"],
    "streams: all who wait are served": [
        "b XREAD BLOCK 0 STREAMS s $", "c XREAD BLOCK 0 STREAMS s 0", "d XREAD COUNT 1 BLOCK 0 STREAMS t s $ $",
        "a MULTI", "a XADD s 1-1 f v", "a XADD s 1-2 f v", "a EXEC", "a INFO commandstats2"],
    "streams: a group goes": [
        "a XGROUP CREATE s g $ MKSTREAM", "b XREADGROUP GROUP g one BLOCK 0 STREAMS s >", "a XGROUP DESTROY s g",
        "a XINFO GROUPS s"],
    "streams: the key goes from many who wait": [
        "a XGROUP CREATE s g $ MKSTREAM", "b XREADGROUP GROUP g one BLOCK 0 STREAMS s >",
        "c XREAD BLOCK 300 STREAMS other s $ $", "d XREADGROUP GROUP g two BLOCK 0 STREAMS s >",
        "e XREADGROUP GROUP g two BLOCK 0 STREAMS s >", "a MULTI", "a DEL s", "a EXEC"],
    "streams: the key goes": [
        "a XGROUP CREATE s g $ MKSTREAM", "b XREADGROUP GROUP g one BLOCK 0 STREAMS s >", "c XREAD BLOCK 300 STREAMS s $",
        "a DEL s"],
    "streams: the key becomes another": [
        "a XGROUP CREATE s g $ MKSTREAM", "b XREADGROUP GROUP g one BLOCK 0 STREAMS s >", "a SET s x"],
    "streams: the key expires": [
        "a XGROUP CREATE s g $ MKSTREAM", "b XREADGROUP GROUP g one BLOCK 3000 STREAMS s >", "a PEXPIRE s 20"],
    "streams: all data goes": [
        "a XGROUP CREATE s g $ MKSTREAM", "b XREADGROUP GROUP g one BLOCK 0 STREAMS s >", "a FLUSHALL"],
    "streams: what feeds nobody": [
        "a XADD s 1-1 f v", "a XGROUP CREATE s g $", "b XREADGROUP GROUP g one BLOCK 0 STREAMS s >",
        "c XREAD BLOCK 0 STREAMS s $", "a XDEL s 1-1", "a XTRIM s MAXLEN 0", "a XGROUP CREATE s h 0", "a XACK s g 1-1",
        "a XADD s 2-1 g w", "a XINFO GROUPS s"],
    "streams: fed by rename and restore": [
        "b XREAD BLOCK 0 STREAMS s 0", "c XREAD BLOCK 0 STREAMS t 0", "a XADD o 1-1 f v", "a COPY o t", "a RENAME o s"],
    "streams: a reader that waited gets a thousand": [
        "b XREAD BLOCK 0 STREAMS s t 5 5", "a XADD s 1-1 f v", "a XADD t 9-1 f v"],
    "commands behind a waiting one": ["b BLPOP l 0", "b SET after 1", "b GET after", "a EXISTS after", "a RPUSH l x"],
    "argument errors": [
        "a BLPOP l x", "a BLPOP l -1", "a BLPOP l", "a BLPOP 0", "a BRPOP l 1e400", "a BLMOVE l m UP LEFT 0", "a BLMOVE l m LEFT LEFT nan",
        "a BLMPOP -1 1 l LEFT", "a BLMPOP 0 0 l LEFT", "a BLMPOP 0 1 l LEFT COUNT 0", "a BZPOPMIN z inf", "a BZMPOP 0 1 z",
        "a XREAD BLOCK x STREAMS s 0", "a XREAD BLOCK -1 STREAMS s 0", "a BRPOPLPUSH a b -2"],
}  # fmt: skip


class Scene:
    """One server, and what its connections were answered."""

    def __init__(self, server, protocol):
        self.server, self.protocol = server, protocol
        self.admin = server.client(timeout=SECONDS)
        self.admin.call("CONFIG", "RESETSTAT")
        self.clients, self.replies, self.owed = {}, {}, {}

    def blocked(self):
        info = self.admin.call("INFO", "clients").value
        return int(info.split(b"blocked_clients:")[1].split(b"\r\n")[0])

    def send(self, name, words):
        if name not in self.clients:
            self.clients[name] = self.server.client(self.protocol, timeout=SECONDS)
            self.replies[name], self.owed[name] = [], 0
        before = self.blocked()
        waiting = self.owed[name] > 0
        self.clients[name].send(*words)
        self.owed[name] += 1
        deadline = time.monotonic() + SECONDS
        while not waiting and not self.take(name) and self.blocked() <= before:
            assert time.monotonic() < deadline, (name, words)

    def take(self, name):
        """Whatever has come; whether the connection is owed nothing now."""
        while self.owed[name] and self.clients[name].has_input(0.002):
            self.replies[name].append(self.clients[name].read())
            self.owed[name] -= 1
        return self.owed[name] == 0

    def finish(self):
        for name, client in self.clients.items():
            while self.owed[name]:
                try:
                    self.replies[name].append(client.read(timeout=0.5))
                    self.owed[name] -= 1
                except Timeout:
                    self.replies[name].append("waits")
                    break
            client.close()
        deadline = time.monotonic() + SECONDS
        while self.blocked():  # those whose connection is gone
            assert time.monotonic() < deadline, "a waiting client that left is still counted"
        statistics = self.admin.call("INFO", "commandstats").text()
        self.admin.close()
        return self.replies, sorted(re.findall(COUNTS, statistics))


@pytest.mark.parametrize("name", SCENARIOS)
def test_blocking(empty_pair, protocol, name):
    scenes = [Scene(server, protocol) for server in empty_pair.servers]
    for line in SCENARIOS[name]:
        connection, *words = shlex.split(line)
        for scene in scenes:
            scene.send(connection, words)
            for other in scene.clients:
                scene.take(other)
    time.sleep(QUIET_SECONDS)
    expected, actual = (scene.finish() for scene in scenes)
    assert actual == expected
