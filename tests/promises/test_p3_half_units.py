"""P3: an EXEC or a script of hundreds of changes, of every type, ends in the middle: by kill -9, by a power loss, by a disk
that fails or is full. Never is half of it there, and never is lost what was answered."""

import errno
import time

import pytest
from harness import Crew, check_key_count, ingot
from support.effort import FULL
from support.faulty_disk import mounted
from support.resp import CLOSED
from support.servers import Server, self_check

KILLS = 100 if FULL else 10
POWER_LOSSES = 100 if FULL else 3
FAILING_CALLS = 25 if FULL else 2  # of each fault
COUNT = 200  # elements of each key
LARGE = 3000  # times the stamp: kept in chunks
FAR_MS = 4_000_000_000_000

SCRIPT = f"""
local n = ARGV[1]
for i = 0, {COUNT - 1} do redis.call('SET', 'k:' .. i, n) end
redis.call('SET', 'large', (('%010d'):format(n)):rep({LARGE}))
redis.call('DEL', 'l', 's')
for i = 0, {COUNT - 1} do
  redis.call('HSET', 'h', 'f' .. i, n)
  redis.call('RPUSH', 'l', n)
  redis.call('SADD', 's', n .. ':' .. i)
  redis.call('ZADD', 'z', n, 'm' .. i)
end
redis.call('COPY', 'h', 'h2', 'REPLACE')
redis.call('SUNIONSTORE', 's2', 's')
redis.call('XADD', 'x', 'MAXLEN', '=', '1', n .. '-1', 'n', n)
redis.call('SET', 'e', n, 'PXAT', string.format('%.0f', {FAR_MS} + n))
return redis.call('GET', 'k:0')"""


def commands(n):
    """What the script does, as commands."""
    each = range(COUNT)
    return [
        ("MSET", *(word for i in each for word in (f"k:{i}", n))),
        ("SET", "large", f"{n:010}" * LARGE),
        ("DEL", "l", "s"),
        ("HSET", "h", *(word for i in each for word in (f"f{i}", n))),
        ("RPUSH", "l", *([n] * COUNT)),
        ("SADD", "s", *(f"{n}:{i}" for i in each)),
        ("ZADD", "z", *(word for i in each for word in (n, f"m{i}"))),
        ("COPY", "h", "h2", "REPLACE"),
        ("SUNIONSTORE", "s2", "s"),
        ("XADD", "x", "MAXLEN", "=", 1, f"{n}-1", "n", n),
        ("SET", "e", n, "PXAT", FAR_MS + n),
    ]


class Stamper:
    """Gives everything one stamp after the other, each in one unit. One thread."""

    def __init__(self, how):
        self.how = how
        self.sent = self.done = 0  # stamps: sent, answered
        self.answered_at = [0.0]
        self.refusal = None

    def work(self, server, stop):
        """Until `stop`, until it is refused, or until the server has gone."""
        try:
            with server.client(timeout=60) as client:
                while not stop.is_set() and self.refusal is None:
                    self._stamp(client)
        except ConnectionError:
            return

    def _stamp(self, client):
        self.sent += 1
        if self.how == "EVAL":
            reply = client.call("EVAL", SCRIPT, 0, self.sent)
        else:
            reply = client.pipeline([("MULTI",), *commands(self.sent), ("EXEC",)])[-1]
        if reply == CLOSED:
            raise ConnectionError
        # A script that was refused in the middle says so itself.
        if reply.is_error():
            self.refusal = reply
            return
        assert reply.value is not None and (self.how == "EVAL" or not any(part.is_error() for part in reply.value)), reply
        self.done = self.sent
        self.answered_at += [time.monotonic()] * (self.sent + 1 - len(self.answered_at))

    def answered_before(self, moment):
        return max((n for n, when in enumerate(self.answered_at) if 0 < when < moment), default=0)

    def go_on_from(self, n):
        self.sent = self.done = n
        del self.answered_at[n + 1 :]
        self.refusal = None


def stamp(client):
    """That of all keys, 0 when there are none; fails when they have several."""
    keys = [f"k:{i}" for i in range(COUNT)]
    text, *values = (reply.value for reply in client.call("MGET", "large", "e", *keys).value)
    stamps = {int(value) if value else 0 for value in values}
    assert text is None or text == text[:10] * LARGE
    stamps.add(int(text[:10]) if text else 0)
    for name in ("h", "h2"):
        fields = [reply.value for reply in client.call("HGETALL", name).value]
        assert len(fields) in (0, 2 * COUNT)
        stamps |= {int(value) for value in fields[1::2]} or {0}
    elements = client.call("LRANGE", "l", 0, -1).value
    assert len(elements) in (0, COUNT)
    stamps |= {int(reply.value) for reply in elements} or {0}
    for name in ("s", "s2"):
        members = [reply.value.split(b":") for reply in client.call("SMEMBERS", name).value]
        assert sorted(int(i) for _, i in members) in ([], list(range(COUNT)))
        stamps |= {int(n) for n, _ in members} or {0}
    scores = [reply.value for reply in client.call("ZRANGE", "z", 0, -1, "WITHSCORES").value][1::2]
    assert len(scores) in (0, COUNT)
    stamps |= {int(score) for score in scores} or {0}
    entries = client.call("XRANGE", "x", "-", "+").value
    assert len(entries) < 2
    stamps |= {int(entry.value[0].value.split(b"-")[0]) for entry in entries} or {0}
    expires = client.call("PEXPIRETIME", "e").value
    stamps.add(max(0, expires - FAR_MS))
    assert len(stamps) == 1, f"parts of several units: {sorted(stamps)}"
    return stamps.pop()


@pytest.fixture(params=["EXEC", "EVAL"])
def stamper(request):
    return Stamper(request.param)


@pytest.mark.seconds(120)
def test_kill_9_in_the_middle(engine, stamper, rng):
    middles = 0
    with ingot(engine) as server:
        for _ in range(KILLS):
            with Crew() as crew:
                crew.add(stamper.work, server, crew.stop)
                time.sleep(rng.uniform(0.02, 0.25))
                server.kill()
            server.start()
            with server.client(timeout=30) as client:
                there = stamp(client)
                assert stamper.done <= there <= stamper.sent
                middles += stamper.sent > stamper.done
                check_key_count(client)
            stamper.go_on_from(there)
        print(f"{stamper.sent} units, {middles} of {KILLS} kills in the middle of one")
        assert stamper.refusal is None and stamper.sent > 0


@pytest.mark.skipif(self_check(), reason="Redis keeps other promises")
@pytest.mark.seconds(180)
@pytest.mark.parametrize("appendfsync, lost_s", [("always", 0.0), ("everysec", 2.0)])
def test_the_power_goes_in_the_middle(engine, stamper, rng, appendfsync, lost_s, tmp_path):
    with mounted() as disk:
        server = Server.ingot(engine, {"appendfsync": appendfsync, "maxmemory": "32mb"}, directory=disk.folder)
        server.log_path = tmp_path / "server.log"
        try:
            server.start()
            for _ in range(POWER_LOSSES):
                with Crew() as crew:
                    crew.add(stamper.work, server, crew.stop)
                    time.sleep(rng.uniform(0.05, 0.5))
                    gone = time.monotonic()
                    server.kill()
                seed = rng.randrange(1 << 32)
                disk.power_loss(seed)
                server.start()
                with server.client(timeout=30) as client:
                    there = stamp(client)
                    print(f"seed {seed}: sent {stamper.sent}, answered {stamper.done}, there {there}")
                    assert stamper.answered_before(gone - lost_s) <= there <= stamper.sent
                    check_key_count(client)
                stamper.go_on_from(there)
        finally:
            server.kill()


FAULTS = {"write error": (errno.EIO, False), "disk full": (errno.ENOSPC, True)}


@pytest.mark.skipif(self_check(), reason="Redis keeps other promises")
@pytest.mark.seconds(180)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_disk_fails_in_the_middle(engine, stamper, rng, fault, tmp_path):
    """A unit that was refused is not seen at all; undecided is only what an fsync was for that failed."""
    code, lasts = FAULTS[fault]
    for number in range(FAILING_CALLS):
        with mounted() as disk:
            server = Server.ingot(engine, {"appendfsync": "always", "maxmemory": "32mb"}, directory=disk.folder)
            server.log_path = tmp_path / f"{number}.log"
            try:
                server.start()
                with Crew() as crew:
                    crew.add(stamper.work, server, crew.stop)
                    time.sleep(rng.uniform(0.05, 0.3))
                    disk.fail("change", rng.randint(1, 40), code)
                    time.sleep(0.2)
                    if lasts:
                        disk.fail("change", 0, code)
                    crew.run_for(2.0)
                assert server.alive(), server.log_tail()
                assert not lasts or stamper.refusal is not None
                with server.client(timeout=30) as client:
                    assert stamp(client) == stamper.done, stamper.refusal
                disk.heal()
                server.restart(kill=True)
                with server.client(timeout=30) as client:
                    assert stamper.done <= stamp(client) <= stamper.sent
                    check_key_count(client)
            finally:
                server.kill()
        stamper.go_on_from(0)
