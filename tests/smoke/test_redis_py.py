"""redis-py's own tests, as its source package carries them, against Ingot.

With INGOT_SERVER=redis-server they run against Redis 7.0. What is left out is listed here with its reason.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest
from support.packages import fetch, files_of, made_once, python_packages

HERE = pathlib.Path(__file__).resolve().parent / "redis_py"
RUN_SECONDS = 1500

# Modules of Redis Stack, clusters, sentinels on fixed ports, and certificates that its makers' containers have.
FILES_LEFT_OUT = [
    "bloom", "cluster", "graph", "json", "search", "timeseries", "sentinel", "sentinel_managed_connection", "connect", "ssl",
]  # fmt: skip

# What is left out of the others, and why. It fails against redis-server 7.0 in the same way.
LEFT_OUT = {
    "test_retry_connect_on_timeout_error": "connects to a fixed port",
    "test_create_single_connection_client_from_url": "the same",
    "TestConnectionPool and test_multiple_connections": "the same, in asyncio",
    "TestConnectionPool and test_max_connections": "the same, in asyncio",
    "TestConnectionPool and test_reuse_previously_released_connection": "the same, in asyncio",
    "test_acl_getuser_setuser": "expects -@geo behind -@all, which Redis keeps since 7.2",
    "test_acl_log": "expects an entry for what its client sends first, which Redis makes since 7.2",
    "test_psync": "wants a replica's answer, which Redis gives to no client of this kind",
}


@pytest.fixture(scope="session")
def sources():
    with made_once("redis-py-tests", [HERE / "source.txt"]) as (folder, is_made):
        if not is_made:
            shutil.rmtree(folder)
            fetch([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes",
                   "--dest", folder, "-r", HERE / "source.txt"], "redis-py's tests")  # fmt: skip
            (archive,) = files_of(folder)
            with tarfile.open(archive) as packed:
                packed.extractall(folder)
    return next(path for path in folder.iterdir() if path.is_dir())


@pytest.mark.full
@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py(server, sources, protocol):
    with server.client() as client:
        client.call("FLUSHALL")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-W", "ignore",
               "--redis-url", f"redis://localhost:{server.port}/0", "--protocol", protocol, "tests",
               "-m", "not onlycluster and not redismod and not ssl",
               "-k", " and ".join(f"not ({words})" for words in LEFT_OUT)]  # fmt: skip
    command += [f"--ignore-glob=*/test_{name}.py" for name in FILES_LEFT_OUT]
    done = subprocess.run(
        list(map(str, command)), cwd=sources, env=os.environ | {"PYTHONPATH": str(python_packages(HERE / "runner.txt", "pytest"))},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
    assert server.alive(), server.log_tail()
