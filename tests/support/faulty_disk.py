"""A folder on a disk whose power goes and whose calls fail when a test wants it: tests/faulty_disk/faulty_disk.cc."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time

import pytest
from support.servers import ROOT

PROGRAM = ROOT / "build" / "release" / "tests" / "faulty_disk"
MOUNT_SECONDS = 10


class FaultyDisk:
    def __init__(self, folder, process):
        self.folder = folder
        self._process = process

    def slow_syncs(self, seconds):
        """How long each fsync of a file takes from now on."""
        os.setxattr(self.folder, "user.slow-syncs", b"%d" % (seconds * 1000))

    def kill(self, server):
        """kill -9; what it waited for is not synced, if fsyncs are slow."""
        os.setxattr(self.folder, "user.hold-syncs", b"-")
        server.process.kill()
        os.setxattr(self.folder, "user.drop-syncs", b"-")
        server.kill()

    def power_loss(self, seed):
        """Whoever uses the files has been killed before."""
        os.setxattr(self.folder, "user.power-loss", b"%d" % seed)

    def fail(self, kind, number, code):
        """The call of this number, from now on, fails with this errno; 0: all from now on. kind: change, read,
        growth (changes that take space)."""
        os.setxattr(self.folder, f"user.fail-{kind}", b"%d %d" % (number, code))

    def heal(self):
        os.setxattr(self.folder, "user.fail-none", b"-")

    def hang(self):
        """No call returns before resume()."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def calls(self, kind):
        """How many there were so far."""
        return int(os.getxattr(self.folder, f"user.{kind}s"))


@contextlib.contextmanager
def mounted():
    if not PROGRAM.exists():
        pytest.skip("no libfuse3 when it was built")
    with tempfile.TemporaryDirectory(prefix="ingot-test-") as folder:
        process = subprocess.Popen([PROGRAM, folder, "-f", "-o", "max_threads=10"])
        try:
            deadline = time.monotonic() + MOUNT_SECONDS
            while not os.path.ismount(folder) and process.poll() is None:
                assert time.monotonic() < deadline, "not mounted"
                time.sleep(0.01)
            if process.poll() is not None:
                pytest.skip("file systems cannot be mounted here (FUSE)")
            yield FaultyDisk(folder, process)
        finally:
            with contextlib.suppress(FileNotFoundError):
                subprocess.run(["fusermount3", "-u", "-z", folder], check=False)
            process.kill()
            process.wait()
