#!/usr/bin/python3
"""Lists and streams as queues: how many messages go through, how long they wait, and how many are lost with their
consumers.

Throughput: producers with RPUSH and as many consumers at the same time, either LPOP after LPOP, or the batch form: a
pipeline of N-1 LPOP and one BLPOP, which waits where the queue is empty. Batches: producers get messages at a steady
rate and send a batch when it is full or its first message has waited long enough. Kills: consumers are killed at
random and begin again; what was taken by LPOP and not worked on is gone, while LMOVE to a list of the consumer's own
and stream groups with XACK lose nothing, and work on some messages twice.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import arguments
import common
import generator
import report
import runs
from common import thousands
from queue_worker import GROUP, QUEUE, STREAM

FORMS = {"LPOP": (("LPOP", QUEUE), ""), "N-1 LPOP, BLPOP": (("LPOP", QUEUE), f"BLPOP {QUEUE} 1")}
SAFE = {"LPOP": "lpop", "LMOVE, LREM": "lmove", "XREADGROUP, XACK": "xack"}
KEYS = (QUEUE, STREAM)


# ------------------------------------------------------------------ throughput


def finish(process, server):
    """The totals of a generator that ends by itself."""
    out = process.stdout.read()
    generator.check(process, server)
    return json.loads(out.splitlines()[-1])


def through(server, form, payload, connections, pipeline, args):
    """Producers and consumers for some seconds."""
    words, last = FORMS[form]
    server.client.delete(QUEUE)
    common_options = {"connections": connections, "pipeline": pipeline, "seconds": args.seconds}
    producer = generator.start(server, "RPUSH", QUEUE, "{value}", value_bytes=payload, **common_options)
    consumer = generator.start(server, *words, last=last, **common_options)
    try:
        made, taken = finish(producer, server), finish(consumer, server)
    finally:
        for each in (producer, consumer):
            each.kill()
            each.communicate()
    left = server.client.llen(QUEUE)
    got = taken["requests"] - taken["nils"]
    server.client.delete(QUEUE)
    return {"produced": made["rate"], "consumed": got / taken["seconds"], "empty": taken["nils"] / taken["requests"],
            "left": left, "missing": made["requests"] - got - left,
            "push_p99_us": made["p99_us"], "pop_p99_us": taken["p99_us"]}  # fmt: skip


def throughput_part(run, server, args):
    rows, curves = [], {}
    for form in FORMS:
        for payload in args.payloads:
            for connections in args.connections:
                for pipeline in args.pipelines:
                    name = f"{form}: {payload} bytes, {connections} connections, pipeline {pipeline}"
                    one = run.step(
                        name,
                        lambda f=form, d=payload, c=connections, p=pipeline: through(server, f, d, c, p, args),
                    )
                    if one["missing"]:
                        sys.exit(f"{name}: {one['missing']} messages are missing, and nobody was killed")
                    rows.append([form, payload, connections, pipeline, thousands(one["produced"]), thousands(one["consumed"]),
                                 f"{one['empty']:.0%}", f"{one['left']:,}", f"{one['push_p99_us'] / 1000:.2f}",
                                 f"{one['pop_p99_us'] / 1000:.2f}"])  # fmt: skip
                    curves.setdefault(f"{form}, {payload} bytes, {connections} conn.", []).append(
                        (pipeline, one["consumed"])
                    )
    return rows, curves


# ------------------------------------------------------------------ batches by size or time


def batches(server, rate, size, milliseconds, args):
    server.client.delete(QUEUE)
    made = generator.measure(server, "RPUSH", QUEUE, "{value}", value_bytes=args.payloads[-1], connections=1,
                             pipeline=size, batch_ms=milliseconds, rate=rate, seconds=args.seconds)  # fmt: skip
    server.client.delete(QUEUE)
    return made


def batches_part(run, server, args):
    rows = []
    for rate in args.rates:
        for size in args.pipelines:
            name = f"{rate} messages a second, batches of {size} or {args.batch_ms:g} ms"
            one = run.step(name, lambda r=rate, s=size: batches(server, r, s, args.batch_ms, args))
            rows.append([f"{rate:,}", size, f"{args.batch_ms:g}", thousands(one["rate"]), f"{one['p50_us'] / 1000:.2f}",
                         f"{one['p99_us'] / 1000:.2f}", f"{one['p999_us'] / 1000:.2f}"])  # fmt: skip
    return rows


# ------------------------------------------------------------------ kills


class Workers:
    """Consumers in processes of their own, with the files that they write; all gone at the end."""

    def __init__(self, server, form, args, folder):
        self._server, self._form, self._args, self._folder = server, form, args, folder
        self._processes = {}
        self._begun = {}  # how long its file was when a consumer began

    def __enter__(self):
        for number in range(self._args.workers):
            self._start(number)
        return self

    def __exit__(self, *_):
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _start(self, number):
        here = os.path.dirname(os.path.abspath(__file__))
        self._begun[number] = self._written(number)
        words = [self._server.host, self._server.port, self._form, f"worker{number}", self._args.batch,
                 self._args.work_us / 1e6, os.path.join(self._folder, str(number))]  # fmt: skip
        # Ctrl-C is for us to answer, and they go with us.
        self._processes[number] = subprocess.Popen(
            common.with_us(sys.executable, os.path.join(here, "queue_worker.py"), *map(str, words)),
            env=os.environ | {"REDISCLI_AUTH": self._server.password or ""}, start_new_session=True,
        )  # fmt: skip

    def _written(self, number):
        path = os.path.join(self._folder, str(number))
        return os.path.getsize(path) if os.path.exists(path) else 0

    def kill_one(self, chance):
        """Kills one that has worked since it began; before that, nothing is at stake. Whether there was one."""
        working = [number for number in self._processes if self._written(number) > self._begun[number]]
        if not working:
            return False
        number = chance.choice(working)
        self._processes[number].kill()
        self._processes[number].wait()
        self._start(number)
        return True

    def done(self):
        """The numbers that were worked on, each as often as it was."""
        numbers = []
        for name in os.listdir(self._folder):
            with open(os.path.join(self._folder, name), encoding="ascii") as file:
                numbers += [int(line) for line in file if line.strip()]
        return numbers


def send(server, form, count, payload):
    """Messages that begin with their numbers."""
    client = server.client
    if form == "xack":
        client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    with client.pipeline(transaction=False) as pipeline:
        for number in range(count):
            message = f"{number} ".ljust(payload, "x")
            if form == "xack":
                pipeline.xadd(STREAM, {"message": message})
            else:
                pipeline.rpush(QUEUE, message)
            if number % 500 == 499:
                pipeline.execute()
        pipeline.execute()


def unfinished(server, form, workers):
    """How many messages somebody may still work on."""
    client = server.client
    if form == "xack":
        [group] = client.xinfo_groups(STREAM)
        read = client.xrange(STREAM, min=f"({group['last-delivered-id'].decode()}", count=1)
        return group["pending"] + len(read)
    return client.llen(QUEUE) + sum(client.llen(f"bench:processing:worker{number}") for number in range(workers))


def kills(run, server, form, args):
    names = [*KEYS, *(f"bench:processing:worker{number}" for number in range(args.workers))]
    server.client.delete(*names)
    send(server, form, args.messages, args.payloads[-1])
    chance = random.Random(args.seed)
    killed = 0
    with tempfile.TemporaryDirectory() as folder, Workers(server, form, args, folder) as workers:
        deadline = time.monotonic() + args.patience
        while (left := unfinished(server, form, args.workers)) and time.monotonic() < deadline:
            if killed < args.kills:
                time.sleep(chance.uniform(0.1, 0.3))
                killed += workers.kill_one(chance)
            else:
                time.sleep(0.05)
            run.tell(f"{left} left, {killed} killed", 1 - left / args.messages)
        if left:
            sys.exit(f"{left} messages were not worked on in {args.patience:g} s")
        time.sleep(0.2 + args.batch * args.work_us / 1e6)  # what LPOP took last is still being worked on
        numbers = workers.done()
    server.client.delete(*names)
    once = set(numbers)
    return {
        "killed": killed,
        "sent": args.messages,
        "lost": args.messages - len(once),
        "twice": len(numbers) - len(once),
    }


def kills_part(run, server, args):
    rows = []
    for name, form in SAFE.items():
        one = run.step(f"kills: {name}", lambda form=form: kills(run, server, form, args))
        rows.append([name, f"{one['sent']:,}", one["killed"], one["lost"], one["twice"]])
    return rows


# ------------------------------------------------------------------ all of it


def steps_of(args):
    cells = len(FORMS) * len(args.payloads) * len(args.connections) * len(args.pipelines)
    return {"throughput": cells, "batches": len(args.rates) * len(args.pipelines), "kills": len(SAFE)}


def work(run, args):
    run.expect(sum(count for part, count in steps_of(args).items() if part in args.parts))
    sections = []

    def part(heading, head, rows, before="", text_columns=()):
        common.title(heading)
        common.table(head, rows)
        sections.append((heading, before + report.table(head, rows, text_columns)))

    with runs.server_for(args, {"maxmemory": "1gb"}) as server:
        if "throughput" in args.parts:
            rows, lines = throughput_part(run, server, args)
            wanted = {
                name: line
                for name, line in lines.items()
                if name.endswith((f", {args.connections[-1]} conn.", ", 1 conn."))
            }
            svg = report.curves(
                "Messages consumed a second", "pipeline", "a second", wanted, run.path("queue.png")
            )
            part("Producers and consumers at the same time",
                 ["consumers", "bytes", "connections each", "pipeline", "pushed/s", "popped/s", "empty pops", "left at the end",
                  "push p99 ms", "pop p99 ms"], rows, report.figure(svg))  # fmt: skip
        if "batches" in args.parts:
            part("Batches on size or time: what a message waits until it is answered",
                 ["messages/s", "size", "or ms", "sent/s", "p50 ms", "p99 ms", "p99.9 ms"], batches_part(run, server, args))  # fmt: skip
        if "kills" in args.parts:
            part(f"{args.workers} consumers, killed at random; batches of {args.batch}, {args.work_us} us of work for a message",
                 ["consumers", "messages", "kills", "lost", "worked on twice"], kills_part(run, server, args))  # fmt: skip
    lead = (f"{args.seconds:g} s for each figure. A pipeline's replies are timed from when it was sent; batches from when each "
            "message was due. The batch form's p99 includes its waits for an empty queue.")  # fmt: skip
    print(f"\n{lead}")
    report.page(run.path("report.html"), f"{args.target or 'Ingot'}: queues", lead, run.facts, sections)
    print(run.path("report.html"))


def parts(text):
    found = text.split(",")
    if not set(found) <= {"throughput", "batches", "kills"}:
        raise argparse.ArgumentTypeError(f"some of throughput,batches,kills are wanted and not '{text}'")
    return found


def main():
    parser = runs.options(__doc__)
    parser.add_argument(
        "--parts", type=parts, default=["throughput", "batches", "kills"], help="throughput,batches,kills"
    )
    parser.add_argument("--pipelines", type=arguments.pipelines,
                        help="requests that are sent at a time, and sizes of batches: 1,10,50,100,200; 1,50 when quick")  # fmt: skip
    parser.add_argument(
        "--connections", type=arguments.list_of(arguments.connections), help="of producers, and of consumers: 1,2,4,8,16; 1,4 when quick"
    )
    parser.add_argument("--payloads", type=arguments.payloads, default=[3, 250], help="bytes of a message (3,250)")
    parser.add_argument(
        "--rates", type=arguments.wholes, help="messages a second for batches: 1000,10000; 1000 when quick"
    )
    parser.add_argument(
        "--batch-ms", type=arguments.above_zero, default=20, help="a batch is sent after so long (20)"
    )
    parser.add_argument("--seconds", type=arguments.above_zero, help="of one measurement: 3; 0.5 when quick")
    parser.add_argument(
        "--messages", type=arguments.whole, help="when consumers are killed: 50,000; 5,000 when quick"
    )
    parser.add_argument("--kills", type=arguments.whole, help="how many: 50; 5 when quick")
    parser.add_argument("--workers", type=arguments.threads, default=4, help="consumers that are killed (4)")
    parser.add_argument(
        "--batch", type=arguments.whole, default=20, help="messages that a consumer takes at a time (20)"
    )
    parser.add_argument("--work-us", type=arguments.whole, default=500, help="the time of a consumer for a message (500)")
    parser.add_argument(
        "--patience", type=arguments.above_zero, default=300, help="seconds for all messages to be worked on (300)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the kills (1)")
    args = runs.parse(parser, "queue")
    asked = dict(vars(args))
    args.pipelines = args.pipelines or ([1, 50] if args.quick else [1, 10, 50, 100, 200])
    args.connections = args.connections or ([1, 4] if args.quick else [1, 2, 4, 8, 16])
    args.rates = args.rates or ([1000] if args.quick else [1000, 10_000])
    args.seconds = args.seconds or (0.5 if args.quick else 3)
    args.messages = args.messages or (5_000 if args.quick else 50_000)
    args.kills = args.kills or (5 if args.quick else 50)
    runs.alone("queue", work, args, asked, [generator.PROGRAM])


if __name__ == "__main__":
    main()
