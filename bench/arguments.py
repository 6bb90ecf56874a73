"""What the options of the benchmarks take: amounts, numbers within their bounds, files that can be written; and the
options that several scripts have."""

import argparse
import os
import re

import common

UNITS = {"": 1, "k": 1000, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20, "g": 10**9, "gb": 1 << 30}
ENGINES = ("rocksdb", "leveldb")


def parse_bytes(text):
    """'256mb' as the configuration files mean it."""
    match = re.fullmatch(r"(\d{1,15})(|k|kb|m|mb|g|gb)", text.lower())
    if not match or not int(match[1]):
        raise argparse.ArgumentTypeError(f"an amount like 256mb is wanted and not '{text}'")
    return int(match[1]) * UNITS[match[2]]


def whole_within(least, most):
    """The type of an option that is a whole number from `least` to `most`."""

    def parse(text):
        if not re.fullmatch(r"\d{1,15}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"a whole number from {least:,} to {most:,} is wanted and not '{text}'"
            )
        return int(text)

    return parse


def list_of(kind):
    """Several of such values with commas between them: 1,5,10."""
    return lambda text: [kind(word) for word in text.split(",")]


def number_within(least, most):
    """The type of an option that is a number from `least` to `most`."""

    def parse(text):
        if not re.fullmatch(r"\d{1,12}\.?\d{0,9}|\.\d{1,9}", text) or not least <= float(text) <= most:
            raise argparse.ArgumentTypeError(f"a number from {least:,.10g} to {most:,.10g} is wanted and not '{text}'")
        return float(text)

    return parse


whole = whole_within(1, 10**12)
wholes = list_of(whole)
above_zero = number_within(1e-3, 1e7)
connections = whole_within(1, 28_000)  # an address has some 28,000 ports to connect from
threads = whole_within(1, 256)
rounds = whole_within(1, 10_000)
benchmark_seconds = number_within(1e-3, 1000)  # redis-benchmark counts up to two thousand million requests
pipelines = list_of(whole_within(1, 100_000))
value_bytes = whole_within(1, 512 << 20)  # the longest string of the protocol
payloads = list_of(value_bytes)
AT_ONCE_MAX = 1 << 30  # bytes


def check_at_once(args):
    """Ends the script when what all connections send at once is more than generator and server can hold."""
    size = args.connections * max(args.pipelines) * max(args.payloads)
    if size > AT_ONCE_MAX:
        raise SystemExit(f"{args.connections} connections with these pipelines and payloads send {size >> 20:,} MB at once: "
                         f"{AT_ONCE_MAX >> 20:,} MB at most can be measured")  # fmt: skip


def writable(text):
    """The type of an option that names a file: it is written at the end, and what was measured should not be lost then."""
    new = not os.path.lexists(text)
    try:
        with open(text, "ab"):
            pass
    except OSError as error:
        raise argparse.ArgumentTypeError(f"it cannot be written: {error}") from error
    if new:
        os.remove(text)
    return text


def base_options(description):
    """The parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="a look instead of a measurement")
    parser.add_argument(
        "--dir", help="where the data goes; it should be on the disk that is meant (build/bench)"
    )
    parser.add_argument("--server", default=os.path.join(common.ROOT, "build/release/ingot-server"),
                        help="the ingot-server that is started (build/release/ingot-server)")  # fmt: skip
    return parser


def options(description):
    """The same, for those that compare with redis-server and write one JSON file."""
    parser = base_options(description)
    parser.add_argument(
        "--redis", default="redis-server", help="the server to compare with (redis-server in PATH)"
    )
    parser.add_argument("--json", metavar="FILE", type=writable, help="write the figures there too (nowhere)")
    return parser


def add_engine(parser):
    parser.add_argument("--engine", choices=ENGINES, default="rocksdb", help="of an Ingot that is started (rocksdb)")


def add_maxmemory(parser, default):
    parser.add_argument("--maxmemory", type=parse_bytes, default=default,
                        help=f"of an Ingot that is started, as 256mb ({default})")  # fmt: skip
