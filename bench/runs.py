"""Runs that can be stopped and go on: a directory with what was asked (run.json), every sample and the result of every
finished step (raw.jsonl), and a bar that tells how far it is.

A step that was cut leaves its samples behind; they are dropped when the run goes on, and the step begins again.
"""

import contextlib
import fcntl
import json
import os
import secrets
import sys
import time

import arguments
import common

BAR = 24  # characters
DRAW_SECONDS = 0.2


def options(description, target=True):
    """The options of every script that has runs."""
    parser = arguments.base_options(description)
    parser.add_argument(
        "--run-dir", metavar="DIR", help="for results (build/bench/NAME-TIME); with that of a run that was stopped, goes on"
    )
    if target:
        parser.add_argument("--target", metavar="HOST:PORT", help="measure the server there, which stays as it is")
    return parser


def parse(parser, *scripts):
    """Like parse_args(); a run that goes on has the options that it was begun with. scripts: the names that its runs
    may have."""
    args = parser.parse_args()
    described = describe(args.run_dir)
    if described is None:
        return args
    if described["script"] not in scripts:
        sys.exit(f"{args.run_dir} is a run of {described['script']} and not of {' or '.join(scripts)}: choose another")
    asked = described["asked"]
    parser.set_defaults(**asked)
    again = parser.parse_args()
    for name, value in asked.items():
        if getattr(again, name, None) != value:
            sys.exit(
                f"{args.run_dir} is a run with {name.replace('_', '-')} {value}: go on with that, or begin another"
            )
    return again


def describe(directory):
    """The run.json of a directory; None where a run can begin, because nothing is there yet. What is no run's stays as it
    is."""
    if not directory or not os.path.exists(directory) or os.path.isdir(directory) and not os.listdir(directory):
        return None
    path = os.path.join(directory, "run.json")
    if not os.path.isfile(path):
        sys.exit(f"{directory} holds something else than a run: choose another directory, or a new one")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return {"script": found["script"], "asked": dict(found["asked"]), "id": found.get("id")}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        sys.exit(f"{path} cannot be read, so that the run cannot go on: {error}")


class Run:
    """One run. Its steps are called in the same order each time; those that are finished are not done again."""

    def __init__(self, name, args, asked, facts):
        """asked: the options as they were given, before anything was derived from them."""
        self.name, self.facts = name, facts
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.directory = os.path.abspath(args.run_dir or os.path.join(common.ROOT, f"build/bench/{name}-{stamp}"))
        self.worked = False  # a step was done here, not read
        self._steps_total = 0
        self._steps_done = 0
        self._step = None
        self._drawn = 0.0
        self._begun = time.monotonic()
        self._finished = {}
        self._samples = []
        # What this run has elsewhere is named after it, and so is nobody else's.
        self.identity = (describe(self.directory) or {}).get("id") or secrets.token_hex(4)
        os.makedirs(self.directory, exist_ok=True)
        self._raw = open(self.path("raw.jsonl"), "a+", encoding="utf-8")
        self._lock()
        self._recover()
        kept = {key: value for key, value in asked.items() if key != "run_dir"}
        with open(self.path("run.json.new"), "w", encoding="utf-8") as file:
            json.dump({"script": name, "id": self.identity, "asked": kept, "machine": facts}, file, indent=1)
        os.replace(self.path("run.json.new"), self.path("run.json"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._raw.close()
        self._clear()
        if kind is not None and self._finished:
            print(f"stopped; to go on: --run-dir {self.directory}", file=sys.stderr)

    def _lock(self):
        """Two at the same time would write over each other. The lock goes with this process."""
        try:
            fcntl.flock(self._raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{self.directory} is a run that is under way: wait for its end, or choose another --run-dir")

    def _recover(self):
        """Reads what is there, up to the end of the last step that was finished; the rest goes."""
        self._raw.seek(0)
        lines = self._raw.buffer.readlines()
        while lines and not (lines[-1].endswith(b"\n") and b'"finished"' in lines[-1]):
            lines.pop()
        self._raw.truncate(sum(map(len, lines)))
        for row in map(json.loads, lines):
            if "finished" in row:
                self._finished[row["step"]] = row["finished"]
            else:
                self._samples.append(row)

    def expect(self, steps):
        """How many steps there will be in all."""
        self._steps_total = steps

    def step(self, name, work):
        """The result of work(), which becomes JSON; of a step that was finished before, what it was."""
        self._step = name
        if name not in self._finished:
            self._draw("", force=True)
            begin = time.monotonic()
            result = work()
            self._write({"step": name, "finished": result})
            self._finished[name] = result
            self.worked = True
            self._plain(f"{name}: {time.monotonic() - begin:.1f} s")
        self._steps_done += 1
        if self._steps_done >= self._steps_total:
            self._clear()
        return self._finished[name]

    def is_finished(self, name):
        return name in self._finished

    def note(self, **fields):
        """A sample of the step under way."""
        row = {"step": self._step, "at": round(time.time(), 3)} | fields
        self._write(row)
        self._samples.append(row)

    def samples(self):
        return self._samples

    def path(self, name):
        return os.path.join(self.directory, name)

    def _write(self, row):
        json.dump(row, self._raw)
        self._raw.write("\n")
        self._raw.flush()

    # The bar, on a terminal; else a line for each step.

    def tell(self, text, share=0.0):
        """What the step under way is doing, and how much of it is done."""
        self._draw(text, share)

    def _draw(self, text, share=0.0, force=False):
        now = time.monotonic()
        if not sys.stderr.isatty() or (not force and now < self._drawn + DRAW_SECONDS):
            return
        self._drawn = now
        total = max(self._steps_total, self._steps_done + 1)
        filled = int(BAR * (self._steps_done + min(share, 1)) / total)
        line = f"[{'#' * filled}{'.' * (BAR - filled)}] {self._steps_done + 1}/{total} {self._step} {text}"
        print(f"\r\x1b[K{line[: os.get_terminal_size(2).columns - 1]}", end="", file=sys.stderr, flush=True)

    def _plain(self, text):
        if not sys.stderr.isatty():
            print(f"[{self._steps_done + 1}/{max(self._steps_total, self._steps_done + 1)}] {text}",
                  file=sys.stderr, flush=True)  # fmt: skip

    def _clear(self):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def facts_of(args, needed, server):
    """Checks the programs that are needed, and what stands at the head of every result."""
    target = getattr(args, "target", None)
    common.need(*needed)
    if server and not target:
        common.need(args.server)
    facts = common.machine()
    if target:
        return facts | {"server": f"{target}, not ours: its processor time and its disk are not known here"}
    args.dir = os.path.abspath(args.dir or os.path.join(common.ROOT, "build/bench"))
    os.makedirs(args.dir, exist_ok=True)
    facts["disk"] = common.disk_facts(args.dir)
    return facts | ({"server": common.version_of(args.server, "--version")} if server else {})


def alone(name, work, args, asked, needed=(), server=True):
    """The whole life of a script: `work(run, args)`, with its directory, and plain words for what goes wrong. `server`:
    it starts args.server, unless there is a target."""
    common.end_cleanly()
    with common.plain_errors():
        facts = facts_of(args, needed, server)
        common.print_facts(facts)
        with Run(name, args, asked, facts) as run:
            print(f"{'results':12} {run.directory}", flush=True)
            work(run, args)


@contextlib.contextmanager
def server_for(args, settings, conf=None):
    """The target, or a server of ours in a directory that goes with it."""
    if args.target:
        with common.Target(args.target) as server:
            yield server
        return
    with common.ingot(args, settings, conf) as server:
        yield server


def kept_folder(run, args):
    """Where data stands that outlives a stop; this run's alone, whatever else is called so."""
    return os.path.join(args.dir, f"data-{os.path.basename(run.directory)}-{run.identity}")
