"""P2, P3 and P4 together: what many connections saw while the server was killed and started again is linearizable.

tests/histories is the program that works, kills and checks; `redis-server` without persistence fails it.
"""

import os
import pathlib
import shutil
import subprocess

import pytest
from support.effort import FULL, SEED
from support.packages import go_program
from support.servers import ingot_binary, self_check

pytestmark = pytest.mark.skipif(self_check(), reason="the program starts Ingot by its own options")

RUNS = 100 if FULL else 2
RUN_SECONDS = 60


@pytest.fixture(scope="session")
def histories():
    return go_program(pathlib.Path(__file__).resolve().parents[1] / "histories", "porcupine")


@pytest.mark.seconds(240)
@pytest.mark.parametrize("appendfsync", ["no", "always"])
def test_histories_with_kills(engine, appendfsync, histories, tmp_path):
    for run in range(RUNS // 2):
        folder = tmp_path / str(run)
        folder.mkdir()
        done = subprocess.run(
            [histories, "-server", os.path.abspath(ingot_binary()), "-dir", str(folder), "-seed", str(SEED + run),
             "-seconds", "1", "--", "--engine", engine, "--appendfsync", appendfsync],
            capture_output=True, text=True, timeout=RUN_SECONDS + 120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        print(done.stdout, end="")
        shutil.rmtree(folder)
