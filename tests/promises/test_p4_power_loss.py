"""P4 when the power goes: `always` loses nothing that was answered, `everysec` at most the last two seconds, as if
they had not been. faulty_disk.py is the disk whose power goes."""

import time

import pytest
from diary import Diary
from harness import Crew, check_key_count
from support.effort import FULL
from support.faulty_disk import mounted
from support.servers import Server, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps other promises")

WRITERS = 4
ROUNDS = 125 if FULL else 5  # for each engine and each mode
LOST_SECONDS = {"always": 0.0, "everysec": 2.0}
LOAD_SECONDS = {"always": (0.2, 1.0), "everysec": (0.5, 3.5)}
SYNC_SECONDS = (0, 0.02, 0.3)


@pytest.mark.seconds(240)
@pytest.mark.parametrize("appendfsync", LOST_SECONDS)
def test_the_power_goes(engine, rng, appendfsync, tmp_path):
    diaries = [Diary(f"w{number}") for number in range(WRITERS)]
    with mounted() as disk:
        server = Server.ingot(engine, {"appendfsync": appendfsync, "maxmemory": "32mb"}, directory=disk.folder)
        server.log_path = tmp_path / "server.log"
        try:
            server.start()
            for number in range(ROUNDS):
                disk.slow_syncs(rng.choice(SYNC_SECONDS))
                with Crew() as crew:
                    for diary in diaries:
                        crew.add(diary.write, server, crew.stop)
                    crew.run_for(rng.uniform(*LOAD_SECONDS[appendfsync]))
                    gone = time.monotonic()
                    disk.kill(server)
                disk.slow_syncs(0)
                seed = rng.randrange(1 << 32)
                promised = [diary.answered_before(gone - LOST_SECONDS[appendfsync]) for diary in diaries]
                answered = [len(diary.answered) - 1 for diary in diaries]
                disk.power_loss(seed)
                server.start()
                with server.client(timeout=30) as client:
                    remembered = [diary.remembered(client) for diary in diaries]
                    check_key_count(client)
                print(f"round {number}, seed {seed}: answered {answered}, promised {promised}, remembered {remembered}")
                assert all(there >= least for there, least in zip(remembered, promised, strict=True))
        finally:
            server.kill()
