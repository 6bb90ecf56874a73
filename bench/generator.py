"""Runs the load generator (bench/generator/, built by deps/build.sh bench) against a server."""

import json
import os
import resource
import subprocess
import sys
import time

import common

PROGRAMS = os.environ.get("INGOT_BENCH_PROGRAMS", os.path.join(common.ROOT, "build/release/bench"))
PROGRAM = os.path.join(PROGRAMS, "generator")


def start(server, *words, **options):
    """The process: `words` are the request, the options those of the program, with _ for -. What has no value is left out."""
    command = [PROGRAM, "--host", server.host, "--port", str(server.port)]
    environment = os.environ | {"REDISCLI_AUTH": server.password or ""}
    for name, value in options.items():
        if value:
            command += [f"--{name.replace('_', '-')}", str(value)]
    return subprocess.Popen(
        common.with_us(*command, *map(str, words)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def lines(server, *words, **options):
    """The program's lines as they come; the last one has "total", and comes only when the program has not failed: that
    ends the script."""
    process = start(server, *words, **options)
    try:
        for line in map(json.loads, process.stdout):
            if line.get("total"):
                check(process, server)  # before anybody takes a part for the whole
            yield line
        check(process, server)
    finally:
        process.kill()
        process.communicate()


def check(process, server):
    """Ends the script with the reason when a generator that has come to its end has failed."""
    said = process.stderr.read().strip()
    if process.wait() != 0:
        sys.exit("\n".join(filter(None, (said, server.why_gone()))))


def measure(server, *words, **options):
    """The figures of a whole run."""
    return list(lines(server, *words, **options))[-1]


def default_threads():
    """With few cores the server needs them more."""
    return max(1, (os.cpu_count() or 1) // 4)


def fill_lines(server, keys, value_bytes, **options):
    """Sets every key once, in no order; the generator's lines meanwhile."""
    return lines(server, "SET", "key:{next}", "{value}", keys=keys, requests=keys, value_bytes=value_bytes,
                 connections=8, pipeline=250, **options)  # fmt: skip


def fill(server, keys, value_bytes):
    """Sets every key once."""
    return list(fill_lines(server, keys, value_bytes))[-1]


def timed_fill(server, keys, value_bytes, slices):
    """The same of a server of ours. For each slice of the keys the seconds and the server's processor time; and the
    generator's own processor time as a share of the whole: near 1 it was the limit and not the server."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    marks = [(time.monotonic(), server.cpu_seconds())]
    done = 0
    for line in fill_lines(server, keys, value_bytes, report_requests=max(1, keys // slices // 10)):
        done += 0 if "total" in line else line["requests"]
        while len(marks) < slices and done >= keys * len(marks) / slices:
            marks.append((time.monotonic(), server.cpu_seconds()))
    marks.append((time.monotonic(), server.cpu_seconds()))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - own.ru_utime - own.ru_stime
    parts = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:])]
    return parts, busy / (marks[-1][0] - marks[0][0])
