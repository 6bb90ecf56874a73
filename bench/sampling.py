"""A load, and beside it what the server and its disk do: one sample for each line of the generator."""

import time

import devices
import generator


class Sampler:
    """What is known of one server, and of the disk under its data (or None)."""

    def __init__(self, run, server, device):
        self.run, self.server, self.device = run, server, device

    def read(self):
        """All counters now."""
        local = self.server.local
        return {
            "at": time.monotonic(),
            "cpu": self.server.cpu_seconds(),
            "written": self.server.io_bytes("write_bytes") if local else None,
            "read": self.server.io_bytes("read_bytes") if local else None,
            "device": self.device.counters() if self.device else None,
        }

    def load(self, phase, *words, **options):
        """Runs the generator and notes the samples. Its totals, with what the server and the disk did meanwhile."""
        seconds, requests = options.get("seconds", 0), options.get("requests", 0)
        begin = before = self.read()
        done = 0
        for line in generator.lines(self.server, *words, **options):
            now = self.read()
            if line.get("total"):
                break
            done += line["requests"]
            self.run.note(phase=phase, **line, **self.sample(before, now))
            share = done / requests if requests else line["seconds"] / seconds
            self.run.tell(f"{line['rate']:,.0f}/s, p99 {line['p99_us'] / 1000:.2f} ms", share)
            before = now
        return {**line, **self.whole(begin, now)}

    def sample(self, before, after):
        """None where nothing is known."""
        cpu = None
        if after["cpu"] is not None:
            cpu = (after["cpu"] - before["cpu"]) / (after["at"] - before["at"])
        device = devices.difference(before["device"], after["device"]) if self.device else None
        return {"cpu": cpu, "memory": self.server.memory(), "data": self.server.disk_bytes(), "device": device}

    @staticmethod
    def whole(begin, end):
        """What was counted from begin to end; without what is not known."""
        found = {name: end[name] - begin[name] for name in ("cpu", "written", "read") if end[name] is not None}
        if end["device"]:
            found["device"] = {name: end["device"][name] - begin["device"][name] for name in devices.FIELDS}
        return found
