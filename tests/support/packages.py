"""Programs of the tests that are written in other languages: their packages, and Go programs built.

Packages come from the language's own registry, at the versions checked in, and go below build/fetched. A test
is skipped only when its toolchain is absent or cannot fetch packages.
"""

import shutil
import subprocess

import pytest
from support.servers import ROOT

FETCHED = ROOT / "build" / "fetched"
FETCH_SECONDS = 240


def fetch(command, what, **keywords):
    """Runs a package manager; skips when it cannot do its work."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{what}: no {command[0]} on this machine")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, **keywords)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what}: {command[0]} could not fetch its packages in time")
    if done.returncode != 0:
        pytest.skip(f"{what}: {command[0]} cannot fetch its packages: {done.stderr.strip()[-300:]}")


def go_program(folder, what):
    """The path of the program in `folder`, built."""
    binary = FETCHED / "go" / folder.name
    fetch(["go", "mod", "download"], what, cwd=folder)
    subprocess.run(["go", "build", "-o", str(binary), "."], cwd=folder, check=True, timeout=FETCH_SECONDS)
    return str(binary)
