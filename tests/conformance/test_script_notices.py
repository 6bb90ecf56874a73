"""What scripts tell others, against Redis: messages, keyspace events and invalidations of what they change and read."""

import pytest
from listening import play

SCRIPTS = {
    "messages": """
        a> SUBSCRIBE news
        b> EVAL 'redis.call("SET", "k", 1) redis.call("PUBLISH", "news", "one") return redis.call("PUBLISH", "news", "two")' 0
        b> EVAL 'redis.call("PUBLISH", "news", "kept") error("mine")' 0
        b> EVAL 'return redis.pcall("PUBLISH", "news")' 0
        b> EVAL_RO 'return redis.call("PUBLISH", "news", "refused")' 0
        b> EVAL 'return redis.call("PUBSUB", "NUMSUB", "news")' 0
        b> EVAL 'return redis.call("SUBSCRIBE", "news")' 0
        b> MULTI | PUBLISH news first | EVAL 'redis.call("PUBLISH", "news", "second")' 0 | PUBLISH news third | EXEC
    """,
    "events": """
        b> CONFIG SET notify-keyspace-events KEA
        a> PSUBSCRIBE __key*
        b> EVAL 'redis.call("SET", "k", 1) redis.call("INCR", "k") redis.pcall("LPUSH", "k", 1) redis.call("DEL", "k")' 0
        b> EVAL 'redis.call("RPUSH", "l", 1, 2) redis.call("SELECT", 3) redis.call("SET", "k", 1) error("mine")' 0
        b> CONFIG SET notify-keyspace-events ""
    """,
    "changes and reads": """
        3>a> CLIENT TRACKING ON | GET k | EVAL 'return redis.call("GET", "l")' 1 l
        b> EVAL 'redis.call("SET", "k", 1) redis.call("SET", "k", 2)' 0
        b> SET l 1
        a> EVAL 'redis.call("GET", "m") redis.call("GET", "n") return 1' 0
        b> SET m 1
        b> EVAL 'redis.call("SET", "n", 1)' 0
        a> GET k | EVAL 'redis.call("SET", "k", 5)' 0
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(empty_pair, protocol, name):
    play(empty_pair, protocol, SCRIPTS[name])
