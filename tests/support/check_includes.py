#!/usr/bin/env python3
"""Checks our own #include lines against the floors that docs/architecture.md draws.

Prints each line that breaks a rule and exits with 1 if there is any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Libraries: folder -> the folders of ours that it may include.
ALLOWED = {
    "net": {"net"},
    "storage": {"storage"},
    "src": {"src", "net", "storage"},
}
# Libraries of others that only some paths may name.
CONFINED = [
    (re.compile(r"^rocksdb/"), ("storage/rocksdb/",)),
    (re.compile(r"^leveldb/"), ("storage/leveldb/",)),
    (re.compile(r"^boost/asio"), ("net/", "src/main.cc")),
]
# The floors of src/, the lowest first: a file includes its own floor and those below it. What lies
# in src/ itself, main and instance, is the roof.
FLOORS = ["types", "types/rdb", "check", "repair", "client", "ssdb", "contract", "settings", "metrics", "access", "script", "data", "exec", "replication", "server",
          "commands", ""]
# What a floor may not see although it lies below: types are bytes, so no connection is known there;
# settings are read by everybody, so they know nobody; handlers do not know who runs them.
UNSEEN = {
    "types": ("net/",),
    "types/rdb": ("net/",),
    "settings": ("net/", "src/contract/"),
    "commands": ("src/exec/", "src/replication/", "src/data/collector.h", "src/data/reader_pool.h",
                 "src/data/services.h", "src/data/store.h", "src/data/syncer.h"),
}


def floor_of(path: str) -> str:
    """The floor of a path such as "src/types/rdb/rdb_bytes.h"."""
    return path.removeprefix("src/").rpartition("/")[0]


def floor_problem(name: str, target: str) -> str | None:
    """Why the file `name` of src/ must not include `target`."""
    floor = floor_of(name)
    if target.startswith("src/"):
        below = floor_of(target)
        if below not in FLOORS:
            return f"{below} is no floor"
        if FLOORS.index(below) > FLOORS.index(floor):
            return f"src/{floor} lies below src/{below}"
    if target.startswith(UNSEEN.get(floor, ())) and name != target:
        return f"src/{floor} must not see it"
    return None


def problems(path: pathlib.Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    folder = name.split("/")[0]
    if folder == "src" and floor_of(name) not in FLOORS:
        return [f"{name}: {floor_of(name)} is no floor"]
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(2)
        where = f"{name}:{number}: {target}: "
        if match.group(1) == '"':
            if target.split("/")[0] not in ALLOWED[folder]:
                found.append(where + f"{folder} must not include it")
            elif folder == "src" and (why := floor_problem(name, target)):
                found.append(where + why)
        for library, homes in CONFINED:
            if library.match(target) and not name.startswith(homes):
                found.append(where + f"it belongs in {' or '.join(homes)} only")
    return found


def repeated_names(sources: list[pathlib.Path]) -> list[str]:
    """Two .cc files of one name cannot be told apart in a debugger, a log or a conversation."""
    homes: dict[str, pathlib.Path] = {}
    found = []
    for path in sources:
        if path.suffix == ".cc" and (other := homes.setdefault(path.name, path)) != path:
            found.append(f"{path.relative_to(ROOT)}: {other.relative_to(ROOT)} has the same name")
    return found


def self_test() -> None:
    """The rules themselves: a check that lets everything pass is none."""
    assert floor_problem("src/types/hash_value.h", "src/contract/row.h")
    assert floor_problem("src/types/hash_value.h", "src/types/rdb/rdb_bytes.h")
    assert floor_problem("src/types/hash_value.h", "net/connection.h")
    assert floor_problem("src/contract/row.h", "src/settings/config.h")
    assert floor_problem("src/exec/group.h", "src/server/info.h")
    assert floor_problem("src/server/info.h", "src/instance.h")
    assert floor_problem("src/exec/writer.h", "src/replication/link_keeper.h")
    assert floor_problem("src/commands/string.cc", "src/exec/writer.h")
    assert floor_problem("src/commands/string.cc", "src/data/store.h")
    assert floor_problem("src/data/store.h", "src/other/thing.h")
    assert not floor_problem("src/commands/string.cc", "src/data/built_value.h")
    assert not floor_problem("src/exec/group.h", "src/types/keyspace.h")
    assert not floor_problem("src/main.cc", "src/instance.h")
    assert not floor_problem("src/instance.cc", "src/commands/families.h")


def main() -> int:
    self_test()
    sources = sorted(path for folder in ALLOWED for path in (ROOT / folder).rglob("*")
                     if path.suffix in (".h", ".cc"))
    found = [problem for path in sources for problem in problems(path)]
    found += repeated_names(sources)
    print("\n".join(found) or f"{len(sources)} files, every #include points the allowed way")
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
