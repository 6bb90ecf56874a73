"""A small file system of its own, in memory: the right to mount one is needed."""

import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def small_disk(path, megabytes):
    """Mounted on the new directory `path` meanwhile; skips the test where that is not allowed."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file systems can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
