"""P8: each call of the file system fails once, one after the other, or all do from one on. The server says so, never
crashes, keeps what it answered, and heals where the disk does. One that does not return at all holds up who writes, and nobody who looks."""

import contextlib
import errno
import threading
import time

import pytest
from diary import Diary
from harness import check_key_count, eventually
from support.effort import FULL
from support.faulty_disk import mounted
from support.servers import Server, ServerError, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps other promises")

AFTER_SECONDS = 0.3 if FULL else 0.15  # of writing, once the call has failed
HEALED_SECONDS = 20
STARTING, WRITING = (12, 60) if FULL else (2, 4)  # how many calls are chosen of each phase
FILLED = 100 if FULL else 8  # how often the disk is full
FAULTS = {
    "write error": ("change", errno.EIO, False),
    "disk full": ("change", errno.ENOSPC, True),
    "read-only": ("change", errno.EROFS, True),
    "read error": ("read", errno.EIO, False),
}


class Attempt:
    """One server on one disk, which fails once."""

    def __init__(self, engine, appendfsync, disk, log_path):
        options = {"appendfsync": appendfsync, "maxmemory": "32mb"}
        self.disk, self.diary = disk, Diary("w")
        self.server = Server.ingot(engine, options, directory=disk.folder)
        self.server.log_path = log_path

    def start(self):
        """Whether it did; one that cannot start must have said why, and not crashed."""
        try:
            self.server.start()
            return True
        except ServerError:
            assert self.server.process.returncode == 1, self.server.log_tail()
            assert "Can't" in self.server.log_tail() or "FATAL" in self.server.log_tail(), self.server.log_tail()
            return False

    def write(self, seconds=None):
        """Until it is refused, or for a while."""
        with self.server.client(timeout=30) as client:
            return self.diary.write_until_refused(client, seconds)

    def check(self):
        """Everything answered is there, after a heal and a kill."""
        self.disk.heal()
        self.server.restart(kill=True)
        answered = len(self.diary.answered) - 1
        with self.server.client(timeout=30) as client:
            assert self.diary.remembered(client) >= answered
            check_key_count(client)

    def heals(self):
        """Or an fsync has failed since: what it was for is undecided, be it for want of space."""
        self.disk.heal()
        with self.server.client(timeout=30) as client:
            replies = []

            def is_decided():
                replies.append(client.call("SET", "probe", "x"))
                return not replies[-1].is_error() or b"until a restart" in replies[-1].value

            eventually(is_decided, HEALED_SECONDS, "healed")
            if replies[-1].is_error():
                assert "cannot sync" in self.server.log_tail(), replies[-1]
            client.call("DEL", "probe")


@pytest.mark.seconds(240)
@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_fails(engine, rng, fault, appendfsync, tmp_path):
    kind, code, lasts = FAULTS[fault]
    for phase, count in (("start", STARTING), ("write", WRITING)):
        for number in range(count):
            with mounted() as disk:
                attempt = Attempt(engine, appendfsync, disk, tmp_path / f"{phase}{number}.log")
                try:
                    run(attempt, phase, kind, code, lasts, rng)
                except Exception:
                    print(attempt.server.log_tail())
                    raise
                finally:
                    attempt.server.kill()


def run(attempt, phase, kind, code, lasts, rng):
    disk = attempt.disk
    if phase == "start":
        attempt.server.start()
        attempt.write(seconds=AFTER_SECONDS)
        attempt.server.kill()
        which = rng.randint(1, 40)
    else:
        attempt.server.start()
        attempt.write(seconds=AFTER_SECONDS)
        which = rng.randint(1, 200)
    print(f"{phase}: call {which}")
    disk.fail(kind, which, code)
    if phase == "start" and not attempt.start():
        return attempt.check()
    refusal = attempt.write(seconds=AFTER_SECONDS)
    print(f"refused: {refusal}")
    assert attempt.server.alive(), attempt.server.log_tail()
    if lasts:
        disk.fail(kind, 0, code)
        refusal = attempt.write(seconds=60)
        print(f"refused: {refusal}")
        assert refusal is not None and b"MISCONF" in refusal.value, refusal
        with attempt.server.client(timeout=30) as client:  # reads go on
            assert not client.call("GET", "w:s").is_error()
        time.sleep(0.1)
        assert attempt.server.alive(), attempt.server.log_tail()
        if b"until a restart" not in refusal.value:
            attempt.heals()
    attempt.check()


@pytest.mark.seconds(240)
@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
def test_a_full_disk_heals_wherever_it_strikes(engine, rng, appendfsync, tmp_path):
    """Nothing grows for a moment, again and again, while logs change often: no restart is needed, not even where what
    overwrites a file needs space."""
    ends = threading.Event()

    def load(server):
        while not ends.is_set():
            with contextlib.suppress(OSError, ServerError), server.client(timeout=30) as client:
                value = b"x" * rng.randrange(100, 9000)
                client.pipeline([["SET", f"k{rng.randrange(20000)}", value] for _ in range(50)])

    with mounted() as disk:
        server = Attempt(engine, appendfsync, disk, tmp_path / "log").server
        writers = [threading.Thread(target=load, args=(server,)) for _ in range(2)]
        try:
            server.start()
            for writer in writers:
                writer.start()
            for _ in range(FILLED):
                time.sleep(rng.uniform(0, 0.3))
                disk.fail("growth", rng.choice([0, rng.randrange(1, 100)]), errno.ENOSPC)
                time.sleep(rng.uniform(0, 0.3))
                disk.heal()
                with server.client(timeout=30) as client:
                    last = []

                    def is_taken(client=client, last=last):
                        last[:] = [client.call("SET", "healed", "x")]
                        return not last[0].is_error()

                    eventually(is_taken, HEALED_SECONDS, last)
            assert "restart" not in server.log_path.read_text()
        except Exception:
            print(server.log_tail())
            raise
        finally:
            ends.set()
            for writer in writers:
                writer.join()
            server.kill()


LOOKS = ["PING", "INFO", "INFO everything", "CLIENT LIST", "SLOWLOG GET", "LATENCY LATEST", "CONFIG GET *", "DBSIZE"]
LOOKS += ["MEMORY STATS", "GET hot", "CLIENT INFO", "COMMAND COUNT", "ROLE"]


def test_who_looks_at_a_server_whose_disk_hangs(engine, tmp_path):
    with mounted() as disk:
        server = Attempt(engine, "always", disk, tmp_path / "log").server
        try:
            server.start()
            with server.client(timeout=60) as writer, server.client(timeout=5) as looker:
                assert not writer.call("SET", "hot", "x").is_error()
                looker.call("GET", "hot")
                disk.hang()
                try:
                    for number in range(100):
                        writer.send("SET", f"k{number}", "x" * 1000)
                    writer.flush()
                    time.sleep(1.5)  # what looks at the disk by itself hangs by now
                    for look in LOOKS:
                        assert not looker.call(*look.split()).is_error(), look
                finally:
                    disk.resume()
                for _ in range(100):
                    assert not writer.read().is_error()
        finally:
            server.kill()
