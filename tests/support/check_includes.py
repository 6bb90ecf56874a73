#!/usr/bin/env python3
"""Checks our own #include lines against the directions that docs/architecture.md allows.

Prints each line that breaks a rule and exits with 1 if there is any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Folder -> the folders of ours that it may include.
ALLOWED = {
    "net": {"net"},
    "storage": {"storage"},
    "src": {"src", "net", "storage"},
}
# Libraries that only some paths may name.
CONFINED = [
    (re.compile(r"^rocksdb/"), ("storage/rocksdb/",)),
    (re.compile(r"^leveldb/"), ("storage/leveldb/",)),
    (re.compile(r"^boost/asio"), ("net/", "src/main.cc")),
]
# Layers inside src: what stands left must not include what stands right of it.
SRC_BELOW = {
    "types": {"commands"},
    "command": {"commands"},
    "exec": {"commands"},
}


def problems(path: pathlib.Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    folder = name.split("/")[0]
    layer = name.split("/")[1] if folder == "src" else ""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(2)
        where = f"{name}:{number}: "
        if match.group(1) == '"':
            top = target.split("/")[0]
            if top not in ALLOWED[folder]:
                found.append(where + f"{folder} must not include {target}")
            if layer in SRC_BELOW and top == "src" and target.split("/")[1] in SRC_BELOW[layer]:
                found.append(where + f"src/{layer} must not include {target}")
        for library, homes in CONFINED:
            if library.match(target) and not name.startswith(homes):
                found.append(where + f"{target} belongs in {' or '.join(homes)} only")
    return found


def main() -> int:
    sources = [path for folder in ALLOWED for path in (ROOT / folder).rglob("*")
               if path.suffix in (".h", ".cc")]
    found = [problem for path in sorted(sources) for problem in problems(path)]
    print("\n".join(found) or f"{len(sources)} files, every #include points the allowed way")
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
