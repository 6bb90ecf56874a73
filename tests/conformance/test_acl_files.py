"""Users in ACL files and in the configuration, on Redis and on Ingot: both pass every test."""

import os

import pytest
from acl_tools import OK, make, rules_sorted  # noqa: F401
from support.resp import CLOSED, Reply
from support.servers import ServerError, engines

BOTH = ["oracle"] + engines()[:1]  # what a file does has nothing to do with the engine


def listed(server):
    with server.client() as client:
        client.call("AUTH", "default", "x")
        client.call("AUTH", "admin", "x")
        return [rules_sorted(line.value) for line in client.call("ACL", "LIST").value]


USERS = """\
user alice on >secret ~a:* %R~shared:* &ch* +@read +@write -flushall

user admin on nopass ~* &* +@all
user bob off (~x +get) (%W~y +set) +config|get
"""


@pytest.mark.parametrize("kind", BOTH)
def test_acl_file(make, tmp_path, kind):
    path = tmp_path / "users.acl"
    path.write_text(USERS)
    path.chmod(0o640)
    server = make(kind, {"aclfile": path}).start()
    before = listed(server)
    assert [words[0][:2] for words in before] == [[b"user", name] for name in (b"admin", b"alice", b"bob", b"default")]
    with server.client() as client, server.client() as alice, server.client() as admin:
        assert alice.call("AUTH", "alice", "secret") == OK
        assert admin.call("AUTH", "admin", "x") == OK
        assert client.call("ACL", "SETUSER", "carol", "on", ">c") == OK
        assert client.call("ACL", "SAVE") == OK
        after = listed(server)
        assert rules_of_file(path) == after and len(after) == 5
        if kind != "oracle":
            assert path.stat().st_mode & 0o777 == 0o640
            assert os.listdir(tmp_path) == ["users.acl"]
        # A file with mistakes changes nothing, and all of them are told.
        path.write_text("user alice on foo\nnonsense\n\nuser bob (~a\nuser alice on\nuser c ~x +nosuch +get zz yy\nuser default on\n")
        reply = client.call("ACL", "LOAD")
        assert reply.is_error() and reply.text().replace(str(path), "FILE") == LOAD_ERRORS
        assert listed(server) == after
        # A good one replaces all; whoever was another user than the default one is cut.
        path.write_text(USERS.replace("user bob", "user dave"))
        assert client.call("ACL", "LOAD") == OK
        assert [words[0][1] for words in listed(server)] == [b"admin", b"alice", b"dave", b"default"]
        assert alice.call("PING") == CLOSED
        assert admin.call("PING") == CLOSED
        path.unlink()
        missing = client.call("ACL", "LOAD").text().replace(str(path), "FILE")
        assert missing == "ERR Error loading ACLs, opening file 'FILE': No such file or directory"
        assert client.call("PING") == Reply("simple", b"PONG")


LOAD_ERRORS = (
    "ERR FILE:1: Syntax error. FILE:2 should start with user keyword followed by the username. FILE:4: Unmatched parenthesis in "
    "selector definition.WARNING: Duplicate user 'alice' found on line 5. FILE:6: Error in applying operation '+nosuch': Unknown "
    "command or category name in ACL. FILE:6: Syntax error. WARNING: ACL errors detected, no change to the previously active ACL "
    "rules was performed"
)


def rules_of_file(path):
    return [rules_sorted(line.encode()) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", BOTH)
def test_acl_load_by_a_user_that_it_deletes(make, tmp_path, kind):
    path = tmp_path / "users.acl"
    path.write_text(USERS)
    server = make(kind, {"aclfile": path}).start()
    with server.client() as admin:
        admin.call("AUTH", "admin", "x")
        assert admin.call("ACL", "LOAD") == OK
        assert admin.read() == CLOSED


@pytest.mark.parametrize("kind", BOTH)
def test_acl_file_that_cannot_be_written(make, tmp_path, kind):
    folder = tmp_path / "gone"
    folder.mkdir()
    (folder / "users.acl").write_text("user default on nopass ~* &* +@all\n")
    server = make(kind, {"aclfile": folder / "users.acl"}).start()
    (folder / "users.acl").unlink()
    folder.rmdir()
    with server.client() as client:
        assert client.call("ACL", "SAVE").text() == (
            "ERR There was an error trying to save the ACLs. Please check the server logs for more information"
        )


CONF = """\
# Users.
user alice on >secret ~a:* (~x:* +get) +@read
user bob on nopass ~* +@all -@dangerous
requirepass one
"""


@pytest.mark.parametrize("kind", BOTH)
def test_users_in_the_configuration(make, tmp_path, kind):
    conf = tmp_path / "test.conf"
    conf.write_text(CONF)
    server = make(kind, conf=conf).start()
    with server.client() as client:
        assert client.call("PING").text().startswith("NOAUTH")
        assert client.call("AUTH", "one") == OK
        assert client.call("ACL", "SETUSER", "carol", "on", "nopass", "+@all", "~c") == OK
        assert client.call("ACL", "DELUSER", "alice") == Reply("integer", 1)
        users = [line.value for line in client.call("ACL", "LIST").value]
        assert client.call("CONFIG", "REWRITE") == OK
    lines = conf.read_text().splitlines()
    assert sorted(line.encode() for line in lines if line.startswith("user ")) == sorted(users)
    assert lines[0] == "# Users." and 'requirepass "one"' in [line.replace("requirepass one", 'requirepass "one"') for line in lines]
    server.restart()
    with server.client() as client:
        assert client.call("AUTH", "one") == OK
        again = [line.value.replace(b"default on sanitize-payload", b"default on") for line in client.call("ACL", "LIST").value]
        assert again == users  # a "user" line resets the default one, which leaves its mark


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "conf, acl, message",
    [
        ("user a on +nosuch\n", None, "Error loading ACL rule '+nosuch' for the user named 'a': Unknown command or category name in ACL"),
        ("user a on +nosuch\n", None, "Critical error while loading ACLs. Exiting."),
        ('user "a b" on\n', None, "Spaces not allowed in ACL usernames"),
        ("user a on\nuser a off\n", None, "Error in user declaration 'a': Duplicate user found. A user can only be defined once in config files"),
        ("user a on ~x foo\n", None, "Syntax error"),
        ("user a on (~x\n", None, "Error in user declaration"),
        ("user\n", None, "Bad directive or wrong number of arguments"),
        ("aclfile FILE\nuser a on\n", "user b on\n", "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid."),
        ("aclfile FILE\n", None, "Aborting Redis startup because of ACL errors: Error loading ACLs, opening file 'FILE': No such file or directory"),
        ("aclfile FILE\n", "user a on\nuser a off\n", "Aborting Redis startup because of ACL errors: WARNING: Duplicate user 'a' found on line 2."),
    ],
)  # fmt: skip
def test_broken_users_stop_the_start(make, tmp_path, kind, conf, acl, message):
    path = tmp_path / "users.acl"
    if acl is not None:
        path.write_text(acl)
    (tmp_path / "test.conf").write_text(conf.replace("FILE", str(path)))
    server = make(kind, conf=tmp_path / "test.conf")
    with pytest.raises(ServerError) as error:
        server.start()
    assert message.replace("FILE", str(path)) in str(error.value)


@pytest.mark.parametrize("kind", BOTH)
def test_a_disabled_user_is_told_in_the_log(make, tmp_path, kind):
    (tmp_path / "test.conf").write_text("user a +get\nuser default on nopass ~* +@all\n")
    server = make(kind, conf=tmp_path / "test.conf").start()
    assert "The user 'a' is disabled (there is no 'on' modifier" in server.log_path.read_text()
    assert listed(server)[1][0][2:5] == [b"on", b"nopass", b"sanitize-payload"]


@pytest.mark.parametrize("kind", BOTH)
def test_a_pattern_that_is_all_keys(make, tmp_path, kind):
    """It is shown as the rule for all keys, which no pattern may follow. Redis writes it, and cannot load the file."""
    path = tmp_path / "users.acl"
    path.write_text("user default on nopass ~* &* +@all\n")
    server = make(kind, {"aclfile": path}).start()
    with server.client() as client:
        assert client.call("ACL", "SETUSER", "u", "%RW~*") == OK
        assert client.call("ACL", "SAVE") == OK and client.call("ACL", "LOAD") == OK
        assert client.call("ACL", "SETUSER", "v", "%R~*", "%W~*", "~b") == OK
        saved = client.call("ACL", "SAVE")
        if kind == "oracle":
            assert saved == OK
            assert b"Adding a pattern after" in client.call("ACL", "LOAD").value
        else:
            assert saved.is_error()
