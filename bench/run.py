#!/usr/bin/python3
"""What is compared with redis-server and fio, one after another: --quick takes some six minutes.

Each part is a script that also runs alone. A run that was stopped goes on behind its last finished part with --run-dir,
and inside a part where that one can.
"""

import os
import subprocess
import sys

import common
import generator
import runs

# Those of the first kind write one JSON file; the others have directories of runs.
FILES = ("cached", "load", "large", "churn")
PARTS = ("cached", "compare", "readers", "load", "large", "churn")


def words_of(name, run, args):
    words = ["--dir", args.dir, "--server", args.server]
    words += ["--quick"] if args.quick else []
    if name in FILES:
        words += ["--redis", args.redis, "--json", run.path(f"{name}.json")]
    else:
        words += ["--run-dir", run.path(name)]
    if name == "compare":
        words += [args.server, args.redis]
    if name == "cached" and args.profile:
        words.append("--profile")
    return words


def part(name, run, args):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    process = subprocess.Popen(common.with_us(sys.executable, script, *words_of(name, run, args)))
    try:
        code = process.wait()
    finally:
        process.terminate()  # and not kill: it has files of its own to remove
        process.wait()
    if code != 0:
        sys.exit(f"{name}.py has failed")
    return {}


def work(run, args):
    run.expect(len(PARTS))
    for name in PARTS:
        run.step(name, lambda name=name: part(name, run, args))


def main():
    parser = runs.options(__doc__, target=False)
    parser.add_argument("--redis", default="redis-server", help="the server to compare with (redis-server in PATH)")
    parser.add_argument("--profile", action="store_true", help="see cached.py")
    args = runs.parse(parser, "run")
    runs.alone("run", work, args, dict(vars(args)), [generator.PROGRAM, args.redis, "redis-benchmark", "fio"])


if __name__ == "__main__":
    main()
