"""COMMAND INFO and COMMAND DOCS of every command that Ingot has, against Redis' own.

INFO must be equal: arity, flags, key positions, ACL categories, tips, key specifications. DOCS must
be equal but for wording, which is Ingot's own: summary, complexity, the reason of a deprecation and
the text of the history; those must be there when Redis has them, and the history's versions agree.
"""

import pytest
from differences import LATER_COMMANDS, LATER_SUBCOMMANDS
from support import command_list
from support.resp import Reply
from support.servers import self_check

FAMILIES = """
    append decr decrby get getdel getex getrange getset incr incrby incrbyfloat lcs mget mset msetnx
    psetex set setex setnx setrange strlen substr
    copy del exists expire expireat expiretime keys move object persist pexpire pexpireat pexpiretime
    pttl randomkey rename renamenx scan touch ttl type unlink
    hset hsetnx hmset hget hmget hdel hexists hlen hstrlen hincrby hincrbyfloat hgetall hkeys hvals
    hscan hrandfield
    multi exec discard watch unwatch
    subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe publish spublish pubsub
    bgrewriteaof lolwut memory module monitor restore restore-asking
    acl auth client echo hello ping quit reset select
    command config dbsize flushall flushdb info lastsave save bgsave role shutdown swapdb time wait
    migrate
    replicaof debug cluster readonly
    eval eval_ro evalsha evalsha_ro script fcall fcall_ro function
"""
SUBCOMMANDS = """
    client|id client|info client|list client|kill client|setname client|getname client|reply
    client|pause client|unpause client|unblock client|no-evict client|help client|tracking client|trackinginfo client|caching client|getredir
    command|count command|list command|info command|docs command|getkeys command|getkeysandflags
    command|help
    config|get config|set config|rewrite config|resetstat config|help
    pubsub|channels pubsub|numpat pubsub|numsub pubsub|shardchannels pubsub|shardnumsub pubsub|help
    script|exists script|flush script|help script|kill script|load
    function|delete function|dump function|flush function|help function|kill function|list function|load
    function|restore function|stats
    memory|doctor memory|help memory|malloc-stats memory|purge memory|stats memory|usage
    module|help module|list module|load module|loadex module|unload script|debug
    object|encoding object|freq object|idletime object|refcount object|help
"""
COMMANDS = FAMILIES.split()
# Containers of which Ingot has a part; the others must have every subcommand of Redis.
PARTIAL = ("client", "cluster")
CATEGORIES = "keyspace read write string hash admin dangerous connection transaction fast slow blocking pubsub scripting".split()
WORDING = ("summary", "complexity", "replaced_by")
INFO_SUBCOMMANDS_AT = 9


def subcommands_of(info):
    """The subcommands in an entry of COMMAND INFO: name -> entry."""
    return {entry.value[0].text(): entry for entry in info.value[INFO_SUBCOMMANDS_AT].value}


def without_notes(keyspecs):
    """Key specifications with the wording of their notes left out: it is our own."""
    return [{key: value for key, value in pairs(spec).items() if key != "notes"}
            | {"has notes": "notes" in pairs(spec)} for spec in keyspecs.value]


def compare_info(expected, actual, name):
    assert actual.kind == expected.kind == "array", f"{name}: {actual!r}"
    ours, theirs = actual.value, expected.value
    assert len(ours) == len(theirs), name
    fields = "name arity flags first last step categories tips keyspecs".split()
    for field, left, right in zip(fields, theirs, ours):
        if field == "keyspecs":
            left, right = without_notes(left), without_notes(right)
        assert right == left, f"{name}: {field}"
    left, right = subcommands_of(expected), subcommands_of(actual)
    if name not in PARTIAL:
        assert sorted(right) == sorted(left), name
    for subcommand, entry in right.items():
        if subcommand in LATER_SUBCOMMANDS:
            continue
        assert subcommand in left, f"{subcommand} is unknown to Redis"
        compare_info(left[subcommand], entry, subcommand)


@pytest.mark.parametrize("name", COMMANDS + SUBCOMMANDS.split())
def test_command_info(pair, protocol, name):
    expected, actual = both(pair, protocol, "COMMAND", "INFO", name)
    compare_info(expected.value[0], actual.value[0], name)


def plain(reply):
    """A reply without its wire types: maps and flat pair arrays of DOCS become dicts."""
    if reply.kind == "map":
        return {key.text(): plain(value) for key, value in reply.value}
    if reply.kind in ("array", "set"):
        return [plain(value) for value in reply.value]
    return reply.value


def doc_of(reply):
    """One command's documentation, RESP2 or RESP3, as a dict; a subcommand's inside it likewise."""
    doc = pairs(reply)
    if "arguments" in doc:
        doc["arguments"] = [argument_of(argument) for argument in doc["arguments"].value]
    if "subcommands" in doc:
        doc["subcommands"] = {name: doc_of(entry) for name, entry in pairs(doc["subcommands"]).items()}
    if "history" in doc:
        doc["history"] = [entry.value[0].value for entry in doc["history"].value]
    return {key: plain(value) if isinstance(value, Reply) else value for key, value in doc.items()}


def argument_of(reply):
    argument = pairs(reply)
    if "arguments" in argument:
        argument["arguments"] = [argument_of(inner) for inner in argument["arguments"].value]
    return {k: plain(v) if isinstance(v, Reply) else v for k, v in argument.items()}


def pairs(reply):
    if reply.kind == "map":
        return {key.text(): value for key, value in reply.value}
    return {reply.value[i].text(): reply.value[i + 1] for i in range(0, len(reply.value), 2)}


def compare_docs(expected, actual, name):
    assert sorted(actual) == sorted(expected), f"{name}: the fields"
    for field, value in expected.items():
        if field in WORDING:
            assert actual[field], f"{name}: {field} is empty"
        elif field != "subcommands":
            assert actual[field] == value, f"{name}: {field}"
    for subcommand, doc in actual.get("subcommands", {}).items():
        if subcommand in LATER_SUBCOMMANDS:
            assert doc["since"] > b"7.0.15"
            continue
        assert subcommand in expected["subcommands"], f"{subcommand} is unknown to Redis"
        compare_docs(expected["subcommands"][subcommand], doc, subcommand)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_docs(pair, protocol, name):
    expected, actual = both(pair, protocol, "COMMAND", "DOCS", name)
    assert actual.kind == expected.kind
    docs = [pairs(reply) for reply in (expected, actual)]
    assert list(docs[1]) == list(docs[0]) == [name]
    # A container whose subcommands are all left out has no such field.
    theirs, ours = (doc_of(doc[name]) for doc in docs)
    if name in PARTIAL:
        theirs.setdefault("subcommands", {})
        ours.setdefault("subcommands", {})
    compare_docs(theirs, ours, name)


def both(pair, protocol, *command):
    replies = []
    for server in pair.servers:
        with server.client(protocol) as client:
            replies.append(client.call(*command))
    return replies


def names(reply):
    return {item.text() for item in reply.value}


def test_list_count_and_table_agree(empty_pair, protocol):
    with empty_pair.servers[1].client(protocol) as client:
        listed = names(client.call("COMMAND", "LIST"))
        top = {name for name in listed if "|" not in name}
        assert set(COMMANDS) | set(SUBCOMMANDS.split()) <= listed
        assert client.call("COMMAND", "COUNT") == Reply("integer", len(top))
        for command in (("COMMAND",), ("COMMAND", "INFO")):
            assert {entry.value[0].text() for entry in client.call(*command).value} == top
        docs = client.call("COMMAND", "DOCS")
        assert set(pairs(docs)) == top


def test_every_command_is_one_of_redis(empty_pair):
    replies = empty_pair.both("COMMAND", "LIST")
    assert names(replies[1]) <= names(replies[0]) | LATER_COMMANDS | LATER_SUBCOMMANDS


@pytest.mark.skipif(self_check(), reason="Redis has what Redis has")
def test_the_list_in_the_docs_is_current(pair):
    assert command_list.FILE.read_text() == command_list.text_of(*pair.servers), (
        "run /usr/bin/python3 tests/support/command_list.py"
    )


def test_only_clusters_are_missing(pair):
    with pair.servers[0].client() as redis, pair.servers[1].client() as other:
        absent = command_list.missing(command_list.groups_of(redis), command_list.names_of(other))
    assert not {name for name, why in absent.items() if why != command_list.CLUSTER}


@pytest.mark.parametrize("category", CATEGORIES)
def test_acl_categories(empty_pair, category):
    expected, actual = map(names, empty_pair.both("COMMAND", "LIST", "FILTERBY", "ACLCAT", category))
    mine = set(COMMANDS) | set(SUBCOMMANDS.split())
    assert actual & mine == expected & mine
