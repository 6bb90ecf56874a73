"""Promises: what Ingot guarantees whatever happens, tested from outside with real crashes and faults.

    /usr/bin/python3 -m pytest tests/promises                     the ordinary run, some minutes
    INGOT_TEST_FULL=1 /usr/bin/python3 -m pytest tests/promises   the long forms
    INGOT_SEED=7 ... -k kill                                      a run repeated

The promises P1 to P8 have a file each (test_p1_order.py ...); harness.py holds what they share,
model.py what the answers must be. Every test ends in bounded time; random choices follow from one
seed, which is printed. INGOT_SERVER names another binary; with `redis-server` the tests that Redis
can pass run against it, which proves the tests.
"""

import pathlib
import random
import shutil
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE.parent, HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from support.effort import FULL, SEED  # noqa: E402  (needs the path set above)
from support.servers import end_on_sigterm, engines, ingot_binary  # noqa: E402

SECONDS_MAX = 90


def pytest_configure(config):
    config.addinivalue_line("markers", "seconds(n): the most a test may take, ten times that in full")


def pytest_sessionstart(session):
    end_on_sigterm()
    if shutil.which(ingot_binary()) is None:
        pytest.exit(f"{ingot_binary()}: no such program; build it or set INGOT_SERVER", returncode=1)


@pytest.fixture(params=engines())
def engine(request):
    return request.param


@pytest.fixture
def rng(request):
    """Random choices of one test: the same for the same seed."""
    print(f"INGOT_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(autouse=True)
def bounded_time(request):
    marker = request.node.get_closest_marker("seconds")
    seconds = (marker.args[0] if marker else SECONDS_MAX) * (10 if FULL else 1)

    def too_late(*_):
        raise TimeoutError(f"the test took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def deep_replies():
    """Our own client reads them by recursion, thousands of arrays in one another."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(before)
