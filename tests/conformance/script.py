"""The text format of conformance cases, parsed.

A file of cases/ holds many cases:

    == set: nx and xx {nomulti}
    SET k v NX | SET k w NX | GET k
    TTL k ~near=1
    b> GET k

`== name {tags}` opens a case; names are unique in their file. Lines and ` | ` separate steps. A step
is a command, on connection `a` unless a prefix like `b>` names another. Its words are split as
redis-cli does ("..." with \\n \\r \\t \\\\ \\" \\xHH; '...' literally), and an unquoted word may be

    @now+10  @nowms-5   the time (s, ms) at which the case began, plus or minus a number
    @x*5000             the text before the `*` so many times; @bytes*5000: a pattern of all bytes
    @id:b  @addr:b  @laddr:b   connection b's CLIENT ID, its address, the server's address

A last word `~how` says how the replies are compared (compare.py); without it they must be equal.
Steps that begin with `!` are directives:

    !sleep 0.05              wait so many seconds
    !raw 2 "..."             send these bytes, read two replies; !raw1: one byte per write
    !noreply CLIENT REPLY OFF   send a command that gets no reply
    !scan MATCH a* COUNT 3   iterate SCAN with these options to the end, compare the sorted keys
    !until :0 DBSIZE         repeat on both servers until that is the reply, for at most 5 s
    !close                   close the connection
    !finally CONFIG SET x y  run at the end whatever happens, on a connection that is always let in

Every case is run with RESP2 and RESP3. When it is a plain list of commands, it is run again as one
pipeline, and once more inside MULTI/EXEC. Tags: {nomulti}: not inside MULTI; {resp2}: not under RESP3.
"""

import functools
import pathlib
import re
from dataclasses import dataclass, field

CASES_DIR = pathlib.Path(__file__).parent / "cases"
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b"}
# Commands that end, start or break a transaction, or the connection it is on.
NEVER_IN_MULTI = set("MULTI EXEC DISCARD WATCH UNWATCH HELLO RESET QUIT AUTH SHUTDOWN".split())


@dataclass
class Step:
    connection: str
    directive: str | None  # None for a plain command
    words: list  # (text, quoted) pairs
    compare: str = ""
    source: str = ""


@dataclass
class Case:
    name: str
    tags: set
    steps: list = field(default_factory=list)
    cleanup: list = field(default_factory=list)  # the !finally commands, as word lists

    def variants(self):
        """The ways to run it, as names of methods of runner.Run."""
        if not all(step.directive is None and step.connection == "a" for step in self.steps):
            return ["step_by_step"]
        names = {step.words[0][0].upper() for step in self.steps}
        wrapped = [] if "nomulti" in self.tags or names & NEVER_IN_MULTI else ["inside_multi"]
        return ["step_by_step", "as_one_pipeline"] + wrapped


def split_words(line):
    """The words of a line, as (text, quoted) pairs; text is str with one char per byte."""
    words, at = [], 0
    while at < len(line):
        if line[at] in " \t":
            at += 1
        elif line[at] == '"':
            text, at = _double_quoted(line, at + 1)
            words.append((text, True))
        elif line[at] == "'":
            end = line.index("'", at + 1)
            words.append((line[at + 1 : end], True))
            at = end + 1
        else:
            end = at
            while end < len(line) and line[end] not in " \t":
                end += 1
            words.append((line[at:end], False))
            at = end
    return words


def _double_quoted(line, at):
    text = ""
    while line[at] != '"':
        if line[at] != "\\":
            text += line[at]
            at += 1
        elif line[at + 1] == "x":
            text += chr(int(line[at + 2 : at + 4], 16))
            at += 4
        else:
            text += ESCAPES.get(line[at + 1], line[at + 1])
            at += 2
    return text, at + 1


def parse_step(words):
    connection, directive, compare = "a", None, ""
    source = " ".join(repr(text) if quoted else text for text, quoted in words)
    if re.fullmatch(r"[a-z]>", words[0][0]) and not words[0][1]:
        connection, words = words[0][0][0], words[1:]
    if words[0][0].startswith("!") and not words[0][1]:
        directive, words = words[0][0][1:], words[1:]
    if words and words[-1][0].startswith("~") and not words[-1][1]:
        compare, words = words[-1][0][1:], words[:-1]
    return Step(connection, directive, words, compare, source)


def parse_cases(text, family):
    cases = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            name, _, tags = line[3:].partition("{")
            cases.append(Case(f"{family}/{name.strip()}", set(tags.rstrip("} ").split())))
            continue
        pending = []
        try:
            for word in split_words(line) + [("|", False)]:
                if word != ("|", False):
                    pending.append(word)
                    continue
                step, pending = parse_step(pending), []
                if step.directive == "finally":
                    cases[-1].cleanup.append([text for text, _ in step.words])
                else:
                    cases[-1].steps.append(step)
        except (IndexError, ValueError) as error:
            raise ValueError(f"{family} line {number}: {line}") from error
    return cases


def load_cases():
    cases = []
    for path in sorted(CASES_DIR.glob("*.txt")):
        cases += parse_cases(path.read_text(encoding="latin-1"), path.stem)
    names = [case.name for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"case names used twice: {sorted(twice)}"
    return cases


def expand(word, now):
    """The bytes of a word, for words that mean the same on both servers."""
    text, quoted = word
    if not quoted and text.startswith("@"):
        if match := re.fullmatch(r"@now(ms)?([+-]\d+)?", text):
            unit = 1000 if match[1] else 1
            return str(int(now * unit) + int(match[2] or 0)).encode()
        if match := re.fullmatch(r"@(.+)\*(\d+)", text):
            return pattern(match[1], int(match[2]))
    return text.encode("latin-1")


@functools.lru_cache(maxsize=16)
def pattern(text, count):
    if text == "bytes":
        return bytes((i * 7 + (i >> 8) * 13) & 0xFF for i in range(count))
    return text.encode("latin-1") * count
