"""redis-py's own tests, as its source package carries them, against Ingot.

With INGOT_SERVER=redis-server they pass against Redis 7.0 with the same tests left out; LEFT_OUT tells why.
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

# Of files: what is about no server of this kind (modules of Redis Stack, clusters), or needs certificates of a container.
FILES_LEFT_OUT = ["bloom", "cluster", "graph", "json", "search", "sentinel", "ssl", "timeseries", "cwe_404", "sentinel_managed_connection"]

# Words in a test's name -> why it is left out. All of these fail against redis-server, too, unless said.
LEFT_OUT = {
    "busy_loading": "connects to port 6379, whatever port it is told",
    "read_only_error": "the same",
    "oom_error": "the same",
    "retry_connect_on_timeout": "the same",
    "single_connection_client_from_url": "the same",
    "connect_no_auth": "the same",
    "connect_invalid": "the same",
    "TestConnectionPool and test_multiple_connections": "the same (asyncio)",
    "TestConnectionPool and test_max_connections": "the same (asyncio)",
    "TestConnectionPool and test_reuse_previously": "the same (asyncio)",
    "acl_getuser_setuser": "expects the rules of a user in an order that Redis 7.0 does not have",
    "acl_log": "expects fields of ACL LOG that Redis has since 7.2",
    "psync": "replication is not built yet",
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
