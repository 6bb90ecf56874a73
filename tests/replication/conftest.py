"""Replication: Ingot beside real redis-servers, as their replica.

    /usr/bin/python3 -m pytest tests/replication                     some minutes
    INGOT_TEST_FULL=1 /usr/bin/python3 -m pytest tests/replication   many rounds of kills and cuts
    INGOT_SEED=7 ...                                                 a run repeated

pairs.py holds what the tests share: a master and its replica, a proxy that cuts the link between them,
and random load over all types.
"""

import pathlib
import random
import shutil
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE.parent, HERE.parent / "conformance", HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from support.effort import SEED  # noqa: E402  (needs the path set above)
from support.servers import end_on_sigterm, engines, ingot_binary  # noqa: E402


def pytest_sessionstart(session):
    end_on_sigterm()
    for binary in ("redis-server", ingot_binary()):
        if shutil.which(binary) is None:
            pytest.exit(f"{binary}: no such program; build it or set INGOT_SERVER", returncode=1)


@pytest.fixture(params=engines())
def engine(request):
    return request.param


@pytest.fixture
def rng():
    """The same choices for the same seed, which is printed."""
    print(f"INGOT_SEED={SEED}")
    return random.Random(SEED)
