"""Sets, sorted sets and lists of thousands of elements on both servers: unions, intersections, differences,
ranges, searches and SORT of them, answered and stored, inside and outside of transactions."""

import functools
import random

import pytest
from compare import compare
from support.resp import Reply

SEED = 11
MEMBERS = 2500
LONG = 1300  # bytes: with members of this length a result no longer fits into the memory of a sort

ANSWERED = [  # (how replies are compared, command)
    ("sorted", "SUNION s1 s2 s3"),
    ("sorted", "SUNION s1 small ints"),
    ("sorted", "SINTER s1 s2"),
    ("sorted", "SINTER s1 s2 none"),
    ("sorted", "SDIFF s1 s2 small"),
    ("sorted", "SDIFF none s1"),
    ("sorted", "SUNION ints more"),
    ("", "SUNION few more"),
    ("", "SDIFF more few none"),
    ("", "SINTER few more"),
    ("", "SINTERCARD 2 s1 s2"),
    ("", "SINTERCARD 2 s1 s2 LIMIT 700"),
    ("", "ZUNION 2 z1 z2 WITHSCORES"),
    ("", "ZUNION 3 z1 s1 z2 WEIGHTS 2 -0.5 1e300 AGGREGATE MAX WITHSCORES"),
    ("", "ZUNION 2 z1 z2 WEIGHTS inf 0 WITHSCORES"),
    ("", "ZUNION 2 z1 z2 AGGREGATE MIN"),
    ("", "ZINTER 2 z1 z2 WITHSCORES"),
    ("", "ZINTER 3 z1 z2 s1 WEIGHTS 0.1 3 7 WITHSCORES"),
    ("", "ZDIFF 2 z1 z2 WITHSCORES"),
    ("", "ZDIFF 3 z1 none s2 WITHSCORES"),
    ("", "ZINTERCARD 2 z1 z2"),
    # Of unlike sizes, which are walked side by side all the same.
    ("sorted", "SINTER s1 sparse s2"),
    ("sorted", "SDIFF sparse s1"),
    ("sorted", "SDIFF s1 sparse"),
    ("", "SINTERCARD 2 sparse s1 LIMIT 90"),
    ("", "ZINTER 2 zsparse z1 WEIGHTS 2 -1 WITHSCORES"),
    ("", "ZINTER 3 zsparse s1 z2 AGGREGATE MIN WITHSCORES"),
    ("", "ZDIFF 2 zsparse z1 WITHSCORES"),
    ("", "ZINTERCARD 2 z1 z2 LIMIT 600"),
    ("", "ZRANGE z1 0 -1 REV WITHSCORES"),
    ("", "ZREVRANGE z1 100 900"),
    ("", "ZREVRANGEBYSCORE z1 +inf 10 WITHSCORES LIMIT 5 700"),
    ("", "XREVRANGE x + -"),
    ("", "XREVRANGE x 2400 (100 COUNT 900"),
    ("", "SORT l ALPHA"),
    ("", "SORT l ALPHA DESC LIMIT 10 900"),
    # Dropped beyond the limit in memory; dropped, and in the engine nevertheless; in the engine before anything is.
    ("", "SORT l ALPHA LIMIT 0 3"),
    ("", "SORT l ALPHA LIMIT 5 1200"),
    ("", "SORT l ALPHA LIMIT 100 2000"),
    ("", "SORT l ALPHA LIMIT 0 0"),
    ("", "SORT l BY nosort LIMIT 3 7 GET #"),
    ("", "SORT l BY nosort DESC LIMIT 3 7"),
    ("", "SORT ints DESC LIMIT 2490 100"),
    ("", "SORT ints DESC"),
    ("", "SORT ints BY w:* GET # GET g:*->f"),
    ("", "SORT few BY v:* ALPHA DESC LIMIT 3 300"),
    ("", "SORT l BY nosort DESC GET #"),
    ("", "SORT z1 BY nosort LIMIT 600 700"),
    ("", "SORT z1"),
    ("", "GEOSEARCH places FROMLONLAT 10 45 BYRADIUS 3000 km ASC WITHDIST WITHCOORD WITHHASH"),
    ("", "GEOSEARCH places FROMLONLAT 10 45 BYBOX 4000 3000 km DESC COUNT 900 WITHDIST"),
    ("", "GEOSEARCH places FROMLONLAT 10 45 BYRADIUS 3000 km COUNT 1100 WITHDIST"),
    ("", "GEOSEARCH places FROMMEMBER place:1 BYRADIUS 2000 km"),
    ("", "GEORADIUS places 10 45 800 km COUNT 3 ANY"),
]
STORED = [
    "SUNIONSTORE dst s1 s2 s3",
    "SUNIONSTORE ints ints more",
    "SINTERSTORE dst s1 s2",
    "SINTERSTORE dst s1 s2 none",
    "SDIFFSTORE s1 s1 s2",
    "SDIFFSTORE dst ints more",
    "ZUNIONSTORE dst 2 z1 z2",
    "ZUNIONSTORE z1 3 z1 s1 z2 WEIGHTS 2 -0.5 -0 AGGREGATE MIN",
    "ZINTERSTORE dst 2 z1 z2 WEIGHTS 1 -1",
    "ZINTERSTORE dst 2 z1 s1 AGGREGATE MAX",
    "ZDIFFSTORE dst 2 z1 z2",
    "ZDIFFSTORE dst 2 none z1",
    "ZRANGESTORE dst z1 100 -100",
    "ZRANGESTORE dst z1 900 -inf BYSCORE REV LIMIT 10 1000",
    "ZRANGESTORE z1 z1 -5 -1",
    "SORT l ALPHA STORE dst",
    "SORT ints DESC LIMIT 5 900 STORE ints",
    "SORT ints BY w:* GET g:*->f STORE dst",
    "SORT l STORE dst",
    "SORT l ALPHA LIMIT 5 1200 STORE dst",
    "SORT l BY nosort LIMIT 3 7 STORE dst",
    "SORT s1 BY nosort STORE dst",
    "GEOSEARCHSTORE dst places FROMLONLAT 10 45 BYRADIUS 3000 km",
    "GEOSEARCHSTORE dst places FROMLONLAT 10 45 BYBOX 4000 3000 km ASC COUNT 700 STOREDIST",
    "GEORADIUS places 10 45 2500 km STORE places",
]
CHANGED = ["dst", "s1", "z1", "ints", "places"]


def member(chance, length):
    name = b"m:%d" % chance.randrange(2 * MEMBERS)
    return name + b"-" * (length - len(name))


@functools.cache
def batches_of(length):
    """The commands that fill both servers, as bytes."""
    chance = random.Random(SEED)
    special = [b"inf", b"-inf", b"-0", b"0", b"1e-300", b"3"]

    def score():
        return chance.choice(special) if chance.random() < 0.1 else b"%.3f" % chance.uniform(-1000, 1000)

    batches = []
    for _ in range(MEMBERS // 50):
        for name in ("s1", "s2", "s3"):
            batches.append(["SADD", name, *(member(chance, length) for _ in range(50))])
        for name in ("z1", "z2"):
            batches.append(["ZADD", name, *(w for _ in range(50) for w in (score(), member(chance, length)))])
        batches.append(["RPUSH", "l", *(member(chance, length) for _ in range(50))])
        batches.append(["SADD", "ints", *(b"%d" % chance.randrange(-9999, 9999) for _ in range(40))])
        batches.append(["GEOADD", "places", *(
            w for _ in range(50) for w in (b"%.4f" % chance.uniform(-30, 50), b"%.4f" % chance.uniform(20, 70),
                                           b"place:%d" % chance.randrange(MEMBERS)))])
    for _ in range(7):
        batches.append(["SADD", "sparse", *(member(chance, length) for _ in range(50))])
        batches.append(["ZADD", "zsparse", *(w for _ in range(50) for w in (score(), member(chance, length)))])
    batches.append(["SADD", "small", "a", "m:7", "b"])
    batches.append(["SADD", "more", *(b"%d" % chance.randrange(-9999, 9999) for _ in range(100))])
    batches.append(["SADD", "few", *(b"%d" % (7 * n) for n in range(-200, 200))])
    batches.append(["GEOADD", "places", "10", "45", "place:1"])
    for number in range(-9999, 9999, 3):
        batches.append(["SET", f"w:{number}", b"%d" % (chance.randrange(50) * 99999 + number)])
    for number in range(-1400, 1400, 7):
        batches.append(["SET", f"v:{number}", b"%d:%d" % (chance.randrange(50), number)])
    for number in range(-9999, 9999, 100):
        batches.append(["HSET", f"g:{number}", "f", b"got %d" % number])
    for number in range(1, MEMBERS):
        batches.append(["XADD", "x", f"{number}-1", "f", member(chance, length)])
    return [[w if isinstance(w, bytes) else w.encode() for w in words] for words in batches]


def fill(pair, length):
    pair.reset()
    for server in pair.servers:
        with server.client() as client:
            assert not any(reply.is_error() for reply in client.pipeline(batches_of(length)))


def both(pair, protocol, *commands):
    """The replies of both servers to a pipeline."""
    replies = []
    for server in pair.servers:
        with server.client(protocol) as client:
            replies.append(client.pipeline([[w.encode() for w in words] for words in commands]))
    return replies


@pytest.fixture(scope="module", params=[10, LONG], ids=["short", "long"])
def length(request):
    return request.param


@pytest.fixture(scope="module")
def filled_once(pair, length):
    """For the tests that change none of it, which stand first; the others fill the servers for themselves."""
    fill(pair, length)
    return pair


@pytest.fixture
def filled(pair, length):
    fill(pair, length)
    return pair


@pytest.fixture(autouse=True)
def alive(pair):
    yield
    assert pair.servers[1].alive(), "the server died\n" + pair.servers[1].log_tail()


def check(lines, expected, actual):
    for (how, line), redis, ingot in zip(lines, expected, actual, strict=True):
        assert compare(how, redis, ingot), (line, str(redis)[:300], str(ingot)[:300])


def test_answers(filled_once, protocol):
    check(ANSWERED, *both(filled_once, protocol, *(line.split() for _, line in ANSWERED)))


def test_answers_inside_a_transaction(filled_once, protocol):
    """One that writes has no view to stream from."""
    for first in range(0, len(ANSWERED), 4):
        lines = ANSWERED[first : first + 4]
        commands = [["MULTI"], ["SET", "k", "v"], *(line.split() for _, line in lines), ["EXEC"]]
        expected, actual = (replies[-1].value[1:] for replies in both(filled_once, protocol, *commands))
        check(lines, expected, actual)


@pytest.mark.parametrize("wrap", [False, True], ids=["alone", "transaction"])
def test_stored(filled, wrap):
    for line in STORED:
        commands = [["MULTI"], line.split(), ["EXEC"]] if wrap else [line.split()]
        expected, actual = both(filled, 2, *commands)
        assert expected == actual, line
        digests = filled.both("DEBUG", "DIGEST-VALUE", *CHANGED)
        assert digests[0] == digests[1], line
        for command in (["TYPE", "dst"], ["OBJECT", "ENCODING", "dst"], ["PTTL", "dst"]):
            assert filled.both(*command)[0] == filled.both(*command)[1], (line, command)
    digests = filled.both("DEBUG", "DIGEST")
    assert digests[0] == digests[1]
    # Whole and usable: ranks are right, and what is in the order is in the table, too.
    for number in (0, 1, 500, -1):
        replies = filled.both("ZRANGE", "z1", number, number, "WITHSCORES")
        assert replies[0] == replies[1]
    assert filled.both("DEL", "dst", "s1", "z1")[1] == Reply("integer", 3)
