"""Large collections of each type: how to fill one, read all of it, and tell that it is whole."""

import random

NOISE_BYTES = 1 << 20
NOISE = random.Random(7).randbytes(NOISE_BYTES + 1024)
BATCH = 500


def padded(number):
    """Some 800 bytes that tell their number and do not compress."""
    at = number * 7919 % NOISE_BYTES
    return b"%012d" % number + NOISE[at : at + 790]


def hash_words(number):
    return b"f%012d" % number, padded(number)


# type -> (command, words of an element, command that reads all)
TYPES = {
    "hash": (b"HSET", hash_words, (b"HGETALL",)),
    "list": (b"RPUSH", lambda number: (padded(number),), (b"LRANGE", b"0", b"-1")),
    "set": (b"SADD", lambda number: (padded(number),), (b"SMEMBERS",)),
    "zset": (b"ZADD", lambda number: (b"%d" % number, padded(number)), (b"ZRANGE", b"0", b"-1")),
    "stream": (b"XADD", lambda number: (b"%d-1" % (number + 1), b"f", padded(number)), (b"XRANGE", b"-", b"+")),
}
COUNT_COMMANDS = {"hash": b"HLEN", "list": b"LLEN", "set": b"SCARD", "zset": b"ZCARD", "stream": b"XLEN"}


def fill(client, kind, key, count):
    """Elements 0 to count - 1, in pipelines."""
    command, words, _ = TYPES[kind]
    each = 1 if kind == "stream" else BATCH
    pipeline = []
    for first in range(0, count, each):
        line = [command, key]
        for number in range(first, min(first + each, count)):
            line += words(number)
        pipeline.append(line)
        if len(pipeline) * each >= 10 * BATCH or first + each >= count:
            replies = client.pipeline(pipeline)
            assert not any(reply.is_error() for reply in replies), replies[0]
            pipeline = []


def read_all(kind, key):
    command, *rest = TYPES[kind][2]
    return (command, key, *rest)


def size(client, kind, key):
    return client.call(COUNT_COMMANDS[kind], key).value
