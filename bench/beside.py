"""What runs beside a measurement, in a thread of its own: what goes wrong there ends the script as it would here."""

import threading


class Beside:
    """Calls work(ended) while the block runs; `ended` is an event, which is set at the end of the block."""

    def __init__(self, work):
        self._work, self._ended, self._error = work, threading.Event(), None
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            self._work(self._ended)
        except BaseException as error:  # also SystemExit, which a thread keeps to itself
            self._error = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self._ended.set()
        self._thread.join()
        if kind is None:
            self.check()

    def check(self):
        """For those who wait for something that will not come when the work has failed."""
        if self._error:
            raise self._error
