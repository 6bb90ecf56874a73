"""Prints what Redis answers to the written cases: python3 dump.py [part of a name] [--resp3]."""

import sys

import conftest  # noqa: F401  (sets the import path)
from runner import Pair, Run
from script import load_cases
from support.servers import Server


def main():
    protocol = 3 if "--resp3" in sys.argv else 2
    part = next((word for word in sys.argv[1:] if not word.startswith("--")), "")
    with Server.redis() as first, Server.redis() as second:
        pair = Pair(first, second)
        for case in load_cases():
            if part in case.name:
                pair.reset()
                run = Run(pair, case, protocol)
                run.run("step_by_step")
                print(f"== {case.name}")
                for source, reply in run.transcript:
                    print(f"   {source[:150]}\n      {repr(reply)[:400]}")


if __name__ == "__main__":
    main()
