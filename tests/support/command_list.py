"""docs/commands.md: every command and subcommand that Redis 7.0 has, and whether Ingot has it.

    /usr/bin/python3 tests/support/command_list.py      writes the file anew

The names come from a real redis-server, what Ingot has from its own table; both servers are started
for it. tests/conformance/test_command_table.py checks that the file is current.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
if str(ROOT / "tests") not in sys.path:
    sys.path.insert(0, str(ROOT / "tests"))

from support.servers import Server  # noqa: E402  (needs the path set above)

FILE = ROOT / "docs" / "commands.md"
CLUSTER = "cluster mode is not there yet"
# Why Ingot does not have a command: by its name, or by that of its container.
MISSING = {
    "asking": CLUSTER, "cluster": CLUSTER,
}  # fmt: skip
# Of a command that is there and refuses what it is for.
PARTS = {
    "module|load": "fails: modules are code for Redis' own address space",
    "module|loadex": "fails as MODULE LOAD does",
    "module|unload": "fails: no module is loaded",
    "script|debug": "only `NO`: there is no debugger for scripts",
    "restore-asking": "as RESTORE: " + CLUSTER,
}
HEAD = """\
# Commands

Every command and subcommand of Redis 7.0, from the table of a real redis-server, and whether Ingot has it; made by
`tests/support/command_list.py`. Where a command answers otherwise than in Redis, [differences.md](differences.md) says so.
"""


def pairs(reply):
    return {reply.value[i].text(): reply.value[i + 1] for i in range(0, len(reply.value), 2)}


def groups_of(client):
    """The commands of a Redis by their groups: group -> [name]; "container|name" for a subcommand."""
    groups = {}
    for name, doc in pairs(client.call("COMMAND", "DOCS")).items():
        fields = pairs(doc)
        names = groups.setdefault(fields["group"].text(), [])
        names.append(name)
        if "subcommands" in fields:
            names += pairs(fields["subcommands"])
    return {group: sorted(names) for group, names in sorted(groups.items())}


def names_of(client):
    return {name.text() for name in client.call("COMMAND", "LIST").value}


def missing(groups, names):
    """What Redis has and Ingot does not: name -> why, or None where nobody has said."""
    absent = [name for group in groups.values() for name in group if name not in names]
    return {name: MISSING.get(name, MISSING.get(name.partition("|")[0])) for name in absent}


def render(groups, names, later):
    """The text of the file. later: commands of later versions of Redis that Ingot has."""
    absent = missing(groups, names)
    known = [name for group in groups.values() for name in group]
    commands = [name for name in known if "|" not in name]
    left = [sum("|" in name for name in absent), sum("|" not in name for name in absent)]
    lines = [HEAD]
    lines.append(f"Of {len(commands)} commands {len(commands) - left[1]} are there, of {len(known) - len(commands)} "
                 f"subcommands {len(known) - len(commands) - left[0]}.")  # fmt: skip
    for group, members in groups.items():
        lines += ["", f"## {group}", "", "| command | |", "|---|---|"]
        for name in members:
            said = f"no: {absent[name]}" if name in absent else PARTS.get(name, "yes")
            lines.append(f"| `{name.replace('|', ' ').upper()}` | {said} |")
    lines += ["", "## of later versions", "", ", ".join(f"`{n.replace('|', ' ').upper()}`" for n in sorted(later)) + "."]
    return "\n".join(lines) + "\n"


def text_of(redis, ingot):
    """The text of the file, asked of two running servers."""
    with redis.client() as one, ingot.client() as other:
        groups, names = groups_of(one), names_of(other)
        return render(groups, names, names - {name for group in groups.values() for name in group})


if __name__ == "__main__":
    with Server.redis() as oracle, Server.ingot() as server:
        FILE.write_text(text_of(oracle, server))
