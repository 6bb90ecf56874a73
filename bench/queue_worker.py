"""A consumer that is going to be killed: takes messages from a queue in one of three ways, and writes the number of
each that it has worked on into a file. Started by queue.py:

    queue_worker.py HOST PORT FORM NAME BATCH WORK_SECONDS LOG
"""

import os
import sys
import time

import common

QUEUE, STREAM, GROUP = "bench:queue", "bench:stream", "bench:group"


class Worker:
    def __init__(self, client, name, batch, work_seconds, log):
        self.client, self.name, self.batch, self.work_seconds, self.log = client, name, batch, work_seconds, log
        self.own_list = f"bench:processing:{name}"

    def work_on(self, message):
        """A line in the file is what this worker's work is; it outlives a kill."""
        time.sleep(self.work_seconds)
        os.write(self.log, message.split(b" ")[0] + b"\n")

    def pipeline(self, commands):
        with self.client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return pipeline.execute()

    def lpop(self):
        """What was taken is nowhere but here until it is worked on."""
        taken = self.pipeline([("LPOP", QUEUE)] * self.batch)
        for message in filter(None, taken):
            self.work_on(message)
        return any(taken)

    def lmove(self):
        """What was taken stands in a list of this worker's own until it is worked on."""
        taken = self.client.lrange(self.own_list, 0, -1)  # after a kill
        if not taken:
            taken = self.pipeline([("LMOVE", QUEUE, self.own_list, "LEFT", "RIGHT")] * self.batch)
        for message in filter(None, taken):
            self.work_on(message)
        self.pipeline([("LREM", self.own_list, 1, message) for message in taken if message])
        return any(taken)

    def xack(self):
        """What was read is pending in the group until it is worked on."""
        for since in ("0", ">"):
            found = self.client.xreadgroup(GROUP, self.name, {STREAM: since}, count=self.batch)
            entries = found[0][1] if found else []
            if entries:
                break
        for _, fields in entries:
            self.work_on(fields[b"message"])
        if entries:
            self.client.xack(STREAM, GROUP, *[number for number, _ in entries])
        return bool(entries)


def main():
    host, port, form, name, batch, work_seconds, log = sys.argv[1:]
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    client = common.redis.Redis(
        host=host, port=int(port), password=os.environ.get("REDISCLI_AUTH") or None, socket_timeout=60
    )
    worker = Worker(client, name, int(batch), float(work_seconds), handle)
    turn = getattr(worker, form)
    try:
        while True:
            if not turn():
                time.sleep(0.01)
    except common.redis.exceptions.ConnectionError:
        sys.exit(1)  # the server is gone, which queue.py tells


if __name__ == "__main__":
    main()
