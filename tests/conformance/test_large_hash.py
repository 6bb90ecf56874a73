"""Hashes of thousands of fields, built alike on both servers: what is streamed, walked and drawn."""

import random

import pytest
from compare import as_dict
from support.resp import Reply

FIELDS = 3000
SEED = 7


@pytest.fixture
def model(empty_pair):
    """The hash `h`, changed at random on both servers."""
    chance, model = random.Random(SEED), {}
    for _ in range(2 * FIELDS // 50):
        words = []
        for _ in range(50):
            field = b"field:%d" % chance.randrange(2 * FIELDS)
            value = chance.randbytes(chance.choice([0, 3, 20, 100]))
            words += [field, value]
            model[field] = value
        assert_same(empty_pair, "HSET", "h", *words)
        gone = [b"field:%d" % chance.randrange(2 * FIELDS) for _ in range(10)]
        assert_same(empty_pair, "HDEL", "h", *gone)
        for field in gone:
            model.pop(field, None)
    return model


def assert_same(pair, *command):
    replies = pair.both(*command)
    assert replies[0] == replies[1]


def values(reply):
    return [item.value for item in reply.value]


def call(pair, protocol, *commands):
    """The replies of Ingot to a pipeline."""
    with pair.servers[1].client(protocol) as client:
        return client.pipeline([[str(w).encode() if not isinstance(w, bytes) else w for w in words]
                                for words in commands])


def test_everything_at_once(empty_pair, protocol, model):
    for command in (("HLEN", "h"), ("DEBUG", "DIGEST"), ("OBJECT", "ENCODING", "h"), ("TYPE", "h")):
        assert_same(empty_pair, *command)
    whole, fields, vals, echo = call(
        empty_pair, protocol, ["HGETALL", "h"], ["HKEYS", "h"], ["HVALS", "h"], ["ECHO", "x"])
    assert {key: value.value for key, value in as_dict(whole).items()} == model
    assert sorted(values(fields)) == sorted(model)
    assert sorted(values(vals)) == sorted(model.values())
    assert echo == Reply("bulk", b"x")


def test_everything_inside_a_transaction(empty_pair, protocol, model):
    reply = call(empty_pair, protocol, ["MULTI"], ["HSET", "h", "new", "1"], ["HGETALL", "h"],
                 ["HRANDFIELD", "h", -2000], ["HDEL", "h", "new"], ["HKEYS", "h"], ["EXEC"])[-1].value
    assert {key: value.value for key, value in as_dict(reply[1]).items()} == model | {b"new": b"1"}
    assert len(reply[2].value) == 2000 and set(values(reply[2])) <= set(model) | {b"new"}
    assert sorted(values(reply[4])) == sorted(model)


@pytest.mark.parametrize("count", [1, 7, 500, 2000, 100_000])
def test_scan_sees_every_field_once(empty_pair, protocol, model, count):
    cursor, seen = b"0", []
    while True:
        [reply] = call(empty_pair, protocol, ["HSCAN", "h", cursor, "COUNT", count])
        page = values(reply.value[1])
        seen += zip(page[::2], page[1::2])
        cursor = reply.value[0].value
        if cursor == b"0":
            break
        assert len(page) >= 2 * min(count, 10)
    assert sorted(seen) == sorted(model.items())


def test_scan_with_a_pattern_while_fields_go(empty_pair, protocol, model):
    cursor, seen = b"0", set()
    wanted = {field for field in model if field.endswith(b"7")}
    while True:
        [reply] = call(empty_pair, protocol, ["HSCAN", "h", cursor, "MATCH", "*7", "COUNT", 100])
        page = values(reply.value[1])[::2]
        assert not seen & set(page)
        seen |= set(page)
        call(empty_pair, protocol, ["HDEL", "h", "no such field", *page])
        cursor = reply.value[0].value
        if cursor == b"0":
            break
    assert seen == wanted
    assert call(empty_pair, protocol, ["HLEN", "h"])[0].value == len(model) - len(wanted)


@pytest.mark.parametrize("count", [1, 5, 32, 33, 500, 600, 2000, 5000])
def test_random_fields(empty_pair, protocol, model, count):
    distinct, repeated, echo = call(
        empty_pair, protocol, ["HRANDFIELD", "h", count], ["HRANDFIELD", "h", -count], ["ECHO", "x"])
    assert len(distinct.value) == min(count, len(model)) == len(set(values(distinct)))
    assert len(repeated.value) == count
    assert set(values(distinct)) | set(values(repeated)) <= set(model)
    assert echo == Reply("bulk", b"x")


@pytest.mark.parametrize("count", [3, 700, -3, -700, -30_000])
def test_random_fields_with_values(empty_pair, protocol, model, count):
    [reply] = call(empty_pair, protocol, ["HRANDFIELD", "h", count, "WITHVALUES"])
    if protocol == 3:
        drawn = [tuple(values(pair)) for pair in reply.value]
    else:
        flat = values(reply)
        drawn = list(zip(flat[::2], flat[1::2]))
    assert len(drawn) == abs(count)
    assert set(drawn) <= set(model.items())
    assert count < 0 or len(set(drawn)) == count


def test_random_fields_are_all_as_likely(empty_pair, protocol, model):
    fields = len(model)
    counts = dict.fromkeys(model, 0)
    for reply in call(empty_pair, protocol, *[["HRANDFIELD", "h", -20 * fields]] * 2,
                      *[["HRANDFIELD", "h", fields // 2]] * 20):
        for field in values(reply):
            counts[field] += 1
    expected = 50  # of each field; six deviations for more than 3,000 fields
    assert all(abs(count - expected) < 45 for count in counts.values()), sorted(counts.values())


def test_a_pattern_of_lookups(empty_pair, protocol, model):
    asked = [b"field:%d" % n for n in range(2 * FIELDS)]
    [reply] = call(empty_pair, protocol, ["HMGET", "h", *asked])
    assert values(reply) == [model.get(field) for field in asked]
