#!/usr/bin/python3
"""All benchmarks in one run, each of which also runs alone. --quick takes some four minutes."""

import cached
import churn
import cold
import common
import datatypes
import large
import load

SECTIONS = {"cached": cached, "datatypes": datatypes, "cold": cold, "load": load, "large": large, "churn": churn}


def main():
    parser = common.options(__doc__)
    parser.add_argument("--profile", action="store_true", help="see cached.py")
    args = parser.parse_args()
    common.prepare(args)
    words = ["--dir", args.dir, "--server", args.server, "--redis", args.redis]
    words += ["--quick"] if args.quick else []
    facts = common.machine_facts(args)
    common.print_facts(facts)
    result = {"machine": facts}
    for name, section in SECTIONS.items():
        extra = ["--profile"] if args.profile and section is cached else []
        result[name] = section.run(section.parse(words + extra))
        common.write_json(args, result)


if __name__ == "__main__":
    main()
