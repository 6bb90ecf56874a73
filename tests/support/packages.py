"""Programs of the tests that are written in other languages: their packages fetched, and built where they are compiled.

Packages come from the language's own registry, at the versions checked in, and go below build/fetched. A test
is skipped only when its toolchain is absent or cannot fetch packages.
"""

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys

import pytest
from support.servers import ROOT

FETCHED = ROOT / "build" / "fetched"
FETCH_SECONDS = 300


def fetch(command, what, **keywords):
    """Runs a package manager; skips when it cannot do its work."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{what}: no {command[0]} on this machine")
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=FETCH_SECONDS, stdin=subprocess.DEVNULL, **keywords
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what}: {command[0]} could not fetch its packages in time")
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        pytest.skip(f"{what}: {command[0]} cannot fetch its packages: {said[-300:]}")


def build(command, **keywords):
    """Runs a compiler; what it complains about fails the test."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=FETCH_SECONDS, **keywords)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-6000:]


@contextlib.contextmanager
def made_once(name, sources):
    """`with made_once(...) as (folder, is_made)`: build/fetched/NAME, to be filled unless is_made: from the same sources.

    One process at a time, because ./test has two that look for the same.
    """
    FETCHED.mkdir(parents=True, exist_ok=True)
    folder, stamp = FETCHED / name, FETCHED / f"{name}.made-from"
    state = hashlib.sha256(b"\0".join(source.read_bytes() for source in sorted(sources))).hexdigest()
    with open(FETCHED / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_made = stamp.exists() and stamp.read_text() == state and folder.is_dir()
        if not is_made:
            stamp.unlink(missing_ok=True)
            folder.mkdir(exist_ok=True)
        yield folder, is_made
        stamp.write_text(state)


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def python_packages(requirements, what):
    """The folder of the packages that a file names, for PYTHONPATH."""
    with made_once(f"python-{requirements.parent.name}-{requirements.stem}", [requirements]) as (folder, is_made):
        if not is_made:
            shutil.rmtree(folder)
            fetch([sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-compile", "--no-deps",
                   "--only-binary", ":all:", "--target", folder, "-r", requirements], what)  # fmt: skip
    return folder


def go_program(source, what):
    """The path of the program in `source`, built."""
    with made_once(f"go-{source.name}", files_of(source)) as (folder, is_made):
        if not is_made:
            fetch(["go", "mod", "download"], what, cwd=source)
            build(["go", "build", "-o", folder / source.name, "."], cwd=source)
    return folder / source.name


def node_programs(source, what):
    """A folder with the programs of `source` and their packages: Node looks for them beside a program."""
    with made_once(f"node-{source.name}", files_of(source)) as (folder, is_made):
        if not is_made:
            for path in files_of(source):
                shutil.copy(path, folder / path.name)
            fetch(["npm", "ci", "--ignore-scripts"], what, cwd=folder)
    return folder


def java_programs(source, what):
    """The class path of the programs in `source`, compiled."""
    with made_once(f"java-{source.name}", files_of(source)) as (folder, is_made):
        if not is_made:
            shutil.rmtree(folder)
            fetch(["mvn", "-q", "-B", "-f", source / "pom.xml", "dependency:copy-dependencies",
                   f"-DoutputDirectory={folder / 'packages'}"], what)  # fmt: skip
            build(["javac", "-Xlint:all,-serial", "-cp", folder / "packages" / "*", "-d", folder / "classes",
                   *source.glob("*.java")])  # fmt: skip
    return f"{folder / 'classes'}:{folder / 'packages'}/*"


def rust_program(source, what):
    """The path of the program in `source`, built."""
    with made_once(f"rust-{source.name}", files_of(source)) as (folder, is_made):
        if not is_made:
            shutil.copytree(source, folder, dirs_exist_ok=True)
            fetch(["cargo", "fetch", "--quiet"], what, cwd=folder)
            build(["cargo", "build", "--quiet", "--offline"], cwd=folder)
    return folder / "target" / "debug" / "smoke"
