"""Programs that keep their work in Redis: each does a real job with a real worker, and looks at the result.

They are programs of their own (python/programs/, node/, asynq/, java/, ruby/), called with a port. A few of them
run always; all do with INGOT_TEST_FULL=1. How they get their packages: support/packages.py.
"""

import os
import pathlib
import shutil
import sys

import pytest
from support.packages import go_program, java_programs, node_programs, python_packages

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "python" / "programs"
FULL = pytest.mark.full
RUN_SECONDS = 150


def run_python(run, server, name, requirements):
    packages = python_packages(PROGRAMS / requirements, name)
    run([sys.executable, PROGRAMS / f"{name}.py", server.port], seconds=RUN_SECONDS,
        env=os.environ | {"PYTHONPATH": str(packages), "PYTHONWARNINGS": "ignore"})  # fmt: skip


@pytest.mark.parametrize("name", ["huey_jobs", "rq_jobs"])
def test_python_short(run, server, name):
    run_python(run, server, name, "short.txt")


@FULL
@pytest.mark.parametrize(
    "name",
    ["dramatiq_jobs", "arq_jobs", "channel_layers", "locks_and_limits", "web"],
)
def test_python(run, server, name):
    run_python(run, server, name, "full.txt")


@FULL
@pytest.mark.parametrize("name", ["celery_jobs", "kombu_queues"])
def test_celery(run, server, name):
    """They want a later redis-py than others allow."""
    run_python(run, server, name, "celery.txt")


@pytest.mark.parametrize(
    "name",
    ["bullmq", "bee-queue"]
    + [pytest.param(name, marks=FULL) for name in ("bull", "socketio", "sessions", "limits")],
)
def test_node(run, server, name):
    run(["node", node_programs(HERE / "node", name) / f"{name}.js", server.port], seconds=RUN_SECONDS)


@FULL
def test_asynq(run, server):
    run([go_program(HERE / "asynq", "asynq"), server.port], seconds=RUN_SECONDS)


@FULL
def test_redisson(run, server):
    run(["java", "-cp", java_programs(HERE / "java", "redisson"), "RedissonJobs", server.port], seconds=RUN_SECONDS)


@FULL
def test_sidekiq(run, server):
    """Debian's package, which is no more than a program's."""
    if shutil.which("sidekiq") is None:
        pytest.skip("sidekiq: not on this machine; deps/install.sh full installs it")
    run(["ruby", HERE / "ruby" / "sidekiq_jobs.rb", server.port], seconds=RUN_SECONDS)
