"""A worker in a process of its own, for the programs beside this file: started, and ended in any case."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WAIT_SECONDS = 60


def port():
    """The server's: an argument of the program, and a variable for the worker that it starts."""
    return int(os.environ.get("INGOT_PORT") or sys.argv[1])


@contextlib.contextmanager
def worker(*arguments):
    """`python -m arguments` in this folder; tells what it wrote when the work beside it fails."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *map(str, arguments)], cwd=HERE, env=os.environ | {"INGOT_PORT": str(port())},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            yield process
        except BaseException:
            output.seek(0)
            print(output.read().decode(errors="replace")[-6000:], file=sys.stderr)
            raise
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(condition, what):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
