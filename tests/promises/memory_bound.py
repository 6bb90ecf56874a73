"""P5's number: how far the process' memory may go beyond maxmemory.

maxmemory covers what grows with data and clients. Code, libraries, stacks and the allocator's slack
stand beside it. Measured with 96 MB: up to 114 MB with RocksDB, 82 MB with LevelDB.
"""

import contextlib
import threading

from harness import MB, ingot, memory, process_status, reset_memory_peak

MAXMEMORY_BYTES = 96 * MB
MAXMEMORY = "96mb"
ALLOWED_BYTES = MAXMEMORY_BYTES + 64 * MB
SAMPLE_SECONDS = 0.02


class MemoryWatch:
    """Measures a server's memory from now on; a context manager.

    The peak is the kernel's own (VmHWM). LevelDB maps its files, and what it has mapped counts as
    resident though the kernel may drop it at any time: there the private memory is sampled instead.
    """

    def __init__(self, server):
        self.server = server
        self.maps_files = server.options.get("engine") == "leveldb"
        self._peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self):
        reset_memory_peak(self.server)
        if self.maps_files:
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()

    def _sample(self):
        while not self._stop.wait(SAMPLE_SECONDS) and self.server.alive():
            with contextlib.suppress(OSError):  # it ends just now
                self._peak = max(self._peak, process_status(self.server).get("RssAnon", 0))

    def peak(self):
        if not self.maps_files:
            return memory(self.server)[1]
        return max(self._peak, process_status(self.server)["RssAnon"])

    def check(self, what):
        """The peak since the last check stays within the bound."""
        peak = self.peak()
        print(f"{what}: {peak / MB:.0f} MB at most")
        assert self.server.alive(), self.server.log_tail()
        assert peak <= ALLOWED_BYTES, (
            f"{what}: {peak / MB:.0f} MB with a maxmemory of {MAXMEMORY}, "
            f"{ALLOWED_BYTES / MB:.0f} allowed"
        )
        self._peak = 0
        reset_memory_peak(self.server)


@contextlib.contextmanager
def limited(engine, **options):
    """(a server with that maxmemory, the watch over its memory)"""
    with ingot(engine, maxmemory=MAXMEMORY, **options) as server, MemoryWatch(server) as watch:
        yield server, watch
