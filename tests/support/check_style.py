#!/usr/bin/env python3
"""Checks what nobody should have to look for: the layout of the C++ files, and that every file opens
with a comment that says what it is for.

Prints what is wrong and exits with 1 if there is anything.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("net", "storage", "src", "tests", "bench", "deps", ".ci")
SCRIPTS = ("run", "test")  # without a suffix, in the root
CPP = (".cc", ".h")
WORDS_MIN = 5
# "See x.h." where something is to be said.
POINTER = re.compile(r"\b[Ss]ee (the header|[\w/]+\.h)\b\.?")
HEADER = re.compile(r"[\w/]+\.h\b")


def opening(text: str, suffix: str) -> str:
    """The first paragraph of the comment or docstring that a file opens with; "" without one."""
    text = re.sub(r"\A#!.*\n", "", text)
    if suffix == ".py":
        match = re.match(r'"""(.*?)"""', text, re.S)
        lines = match.group(1).splitlines() if match else []
    else:
        mark = "//" if suffix in CPP else "#"
        lines = re.match(rf"(?:{mark}.*\n)*", text).group().splitlines()
        lines = [line.removeprefix(mark).strip() for line in lines]
    return " ".join("\n".join(lines).partition("\n\n")[0].split())


def opening_problem(said: str, name: str, headers: set[str]) -> str | None:
    """Why `said` is not enough for the file `name`. headers: the names of all that there are."""
    if not said:
        return "it does not open with a comment"
    own = pathlib.PurePath(name).stem + ".h"
    for match in POINTER.finditer(said):
        if match.group(1) in ("the header", own) or match.end() == len(said) and match.start() == 0:
            return f'"{match.group()}" says nothing of this file'
    if len(said.split()) < WORDS_MIN:
        return f'"{said}" is too short to say what the file is for'
    for header in HEADER.findall(said):
        if pathlib.PurePath(header).name not in headers:
            return f"there is no {header}"
    return None


def files() -> list[pathlib.Path]:
    """Ours, and nothing that a package manager has put beside them."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")
             if path.is_file() and "node_modules" not in path.parts
             and (path.suffix in (".cc", ".h", ".py", ".sh") or path == ROOT / ".ci" / "run")]
    return sorted(found + [ROOT / script for script in SCRIPTS])


def layout_problems(sources: list[pathlib.Path], command: str = "clang-format") -> list[str]:
    if shutil.which(command) is None:
        return [f"There is no {command} to check the layout with: deps/install.sh test installs it."]
    run = subprocess.run([command, f"--style=file:{ROOT}/.clang-format", "--dry-run", "--Werror",
                          *map(str, sources)], capture_output=True, text=True)
    if run.returncode == 0:
        return []
    return (run.stderr or f"{command} failed with {run.returncode}").splitlines()


def self_test() -> None:
    """The rules themselves: a check that lets everything pass is none."""
    headers = {"store.h", "engine.h"}
    for bad in ("", "See store.h.", "Opening the data.", "Opening the data for all; see store.h.",
                "Opening the data for all executors; see the header.",
                "See storage/engine.h.", "The views of what gone.h keeps."):
        assert opening_problem(bad, "src/data/store.cc", headers), bad
    for good in ("Opening the data and handing out views.",
                 "The engine over LevelDB. See storage/engine.h for the contract."):
        assert not opening_problem(good, "storage/leveldb/leveldb_engine.cc", headers), good
    assert opening("// One\n// two.\n//\n// Three.\n#include <x>\n", ".cc") == "One two."
    assert opening("#include <x>\n// One.\n", ".cc") == ""
    assert opening('#!/usr/bin/python3\n"""One.\n\nTwo."""\n', ".py") == "One."
    assert opening("import x\n", ".py") == ""
    assert opening("#!/bin/sh\n# One.\nset -eu\n", ".sh") == "One."
    assert opening("#!/bin/sh\nset -eu\n", ".sh") == ""
    assert "no-such-format" in layout_problems([], "no-such-format")[0]
    with tempfile.TemporaryDirectory() as folder:
        sloppy = pathlib.Path(folder) / "sloppy.cc"
        sloppy.write_text("int  f( ){return 1 ;}\n")
        assert layout_problems([sloppy]), "clang-format lets everything pass"


def main() -> int:
    self_test()
    sources = files()
    headers = {path.name for path in sources if path.suffix == ".h"}
    found = layout_problems([path for path in sources if path.suffix in CPP])
    for path in sources:
        name = path.relative_to(ROOT).as_posix()
        if problem := opening_problem(opening(path.read_text(), path.suffix), name, headers):
            found.append(f"{name}:1: {problem}")
    print("\n".join(found) or f"{len(sources)} files, laid out and introduced")
    return 1 if found or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
