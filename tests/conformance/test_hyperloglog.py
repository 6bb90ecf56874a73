"""HyperLogLogs with many elements: the same estimates and the same bytes as Redis at every step."""

import random

import pytest

SEED = 20231121


def equal(pair, *command):
    expected, actual = pair.both(*command)
    assert expected == actual, command[:3]
    return expected


def grow(pair, key, chance, elements, at_a_time):
    """Adds random elements, some of them twice, and compares after each command."""
    for start in range(0, elements, at_a_time):
        batch = [b"%d" % chance.randrange(elements * 2) for _ in range(at_a_time)]
        equal(pair, "PFADD", key, *batch)
        equal(pair, "GET", key)
        if start % (at_a_time * 7) == 0:
            equal(pair, "PFCOUNT", key)
            equal(pair, "GET", key)


@pytest.mark.parametrize("sparse_bytes_max", [0, 18, 40, 300, 3000, 16000, 40000])
def test_growth(empty_pair, sparse_bytes_max):
    pair = empty_pair
    pair.both("CONFIG", "SET", "hll-sparse-max-bytes", sparse_bytes_max)
    try:
        chance = random.Random(SEED + sparse_bytes_max)
        grow(pair, "fine", chance, 300, 1)
        grow(pair, "coarse", chance, 20000, 211)
        equal(pair, "PFDEBUG", "ENCODING", "coarse")
        equal(pair, "PFCOUNT", "fine", "coarse", "missing")
        equal(pair, "PFMERGE", "merged", "fine", "coarse")
        equal(pair, "GET", "merged")
        equal(pair, "PFCOUNT", "merged")
    finally:
        pair.both("CONFIG", "SET", "hll-sparse-max-bytes", 3000)


def test_merges_of_sparse_ones(empty_pair):
    pair, chance = empty_pair, random.Random(SEED)
    for round_ in range(30):
        names = [f"k{chance.randrange(6)}" for _ in range(chance.randint(1, 4))]
        equal(pair, "PFADD", names[0], *(chance.randbytes(chance.randint(0, 20)) for _ in range(60)))
        equal(pair, "PFMERGE", *names)
        equal(pair, "GET", names[0])
        equal(pair, "PFDEBUG", "ENCODING", names[0])
        equal(pair, "PFCOUNT", *names)


def test_many_elements(empty_pair):
    pair = empty_pair
    for start in range(0, 200_000, 5000):
        equal(pair, "PFADD", "many", *(b"element:%d" % i for i in range(start, start + 5000)))
        equal(pair, "PFCOUNT", "many")
    equal(pair, "GET", "many")


def test_bytes_changed_by_hand(empty_pair):
    """Whatever stands in the string, both say the same of it: nothing is trusted."""
    pair, chance = empty_pair, random.Random(SEED)
    for round_ in range(150):
        equal(pair, "DEL", "k", "d")
        equal(pair, "PFADD", "k", *(b"%d" % chance.randrange(10**6) for _ in range(chance.randint(0, 80))))
        length = equal(pair, "STRLEN", "k").value
        # A byte of a value run or a short run of zeros: lengths change, so most are corrupt.
        at, byte = chance.randrange(16, length), chance.randrange(256)
        equal(pair, "SETRANGE", "k", at, bytes([byte]))
        for command in (["PFCOUNT", "k"], ["PFCOUNT", "k", "x"], ["PFMERGE", "d", "k"], ["GET", "d"]):
            expected, actual = pair.both(*command)
            assert expected == actual, (round_, at, byte, command)
