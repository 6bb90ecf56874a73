"""Conformance: the same commands to Ingot and to a real redis-server 7.0; the replies must be equal.

How to run (Debian's python3-pytest and python3-redis, redis-server, a release build):

    /usr/bin/python3 -m pytest tests/conformance                     everything, both engines
    ... -k "rocksdb and resp3 and string"                            a part of it
    ... -k "watch and flush"                                         the cases whose names hold both words
    INGOT_SERVER=/path/to/ingot-server ...                           another binary
    INGOT_SERVER=redis-server ...                                    Redis against Redis: checks the tests
    INGOT_RANDOM_COMMANDS=1000000 INGOT_SEED=7 ... test_random.py    longer, or repeated, random sequences

What is here: cases/*.txt are the written cases (script.py explains their format, dump.py prints what
Redis answers to them), compare.py how replies are compared, runner.py runs a case on both servers,
differences.py lists the cases in which Ingot differs on purpose. Each engine's server is started
once; cases begin with empty databases and new connections.
"""

import pathlib
import shutil
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE.parent, HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from runner import Pair  # noqa: E402  (needs the path set above)
from support.servers import Server, end_on_sigterm, engines, ingot_binary  # noqa: E402


def pytest_sessionstart(session):
    end_on_sigterm()
    for binary in ("redis-server", ingot_binary()):
        if shutil.which(binary) is None:
            pytest.exit(f"{binary}: no such program; build it or set INGOT_SERVER", returncode=1)


@pytest.fixture(scope="session", params=engines())
def engine(request):
    return request.param


@pytest.fixture(scope="session")
def pair(engine):
    """A fresh redis-server and an Ingot with this engine, for the whole session."""
    with Server.redis() as redis, Server.ingot(engine) as other:
        yield Pair(redis, other)


@pytest.fixture(scope="session")
def large_pair(engine):
    """The same, with an Ingot in which no collection stands inside its key's record."""
    with Server.redis() as redis, Server.ingot(engine, {"inline-max-bytes": 0}) as other:
        yield Pair(redis, other)


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request):
    return request.param


@pytest.fixture
def empty_pair(pair):
    pair.reset()
    yield pair
    assert pair.servers[1].alive(), "the server died\n" + pair.servers[1].log_tail()
