"""The benchmarks in their smallest form: they run, go on where they were stopped, leave nothing behind, and say plainly
what is wrong. What they measure is nobody's business here, but that a slow disk is as slow as it says.
"""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from support.servers import ROOT, Server, ingot_binary, self_check

BENCH = ROOT / "bench"
PROGRAMS = ROOT / "build" / "release" / "bench"
SECONDS = 60
PANELS = 16

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "generator").exists() or not shutil.which("fio") or self_check(),
    reason="deps/build.sh bench has not been called, or there is no fio",
)


def command(script, *words, server=True):
    words = [*map(str, words), *(("--server", ingot_binary()) if server else ())]
    return [sys.executable, str(BENCH / script), *words]


def run(script, *words, code=0, **keywords):
    done = subprocess.run(command(script, *words, **keywords), capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def rows(directory):
    return [json.loads(line) for line in (directory / "raw.jsonl").read_text().splitlines()]


def finished(directory):
    return {row["step"]: row["finished"] for row in rows(directory) if "finished" in row}


def wait_for(what, process):
    """Until that is true, while the script runs."""
    deadline = time.monotonic() + SECONDS
    while not what():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_line(process, directory, text):
    """Until the run's raw lines hold this."""
    raw = directory / "raw.jsonl"
    wait_for(lambda: raw.exists() and text in raw.read_text(), process)


def children_of(directory):
    """Processes with this directory on their command line, or in which they work."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            work = os.readlink(path.parent / "cwd")
            if any(str(directory) in word for word in [*words, work]) and not words[0].startswith("python"):
                found.append(words)
    return found


def has_fuse():
    return (PROGRAMS / "slowdisk").exists() and os.path.exists("/dev/fuse") and shutil.which("fusermount3")


@contextlib.contextmanager
def slow_disk(folder, *words):
    """A slowdisk over `folder`; skips where file systems cannot be mounted."""
    if not has_fuse():
        pytest.skip("no FUSE here, or no libfuse3 when it was built")
    mount = folder.parent / "mount"
    mount.mkdir()
    process = subprocess.Popen([PROGRAMS / "slowdisk", folder, mount, *words], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not os.path.ismount(mount) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is not None:
            pytest.skip("file systems cannot be mounted here (FUSE)")
        yield mount
    finally:
        process.terminate()
        process.wait(10)
        if os.path.ismount(mount):
            subprocess.run(["fusermount3", "-u", "-z", mount], check=False)


# ------------------------------------------------------------------ the generator


def generate(server, *words, code=0, password=""):
    """Its lines; with another exit code, what it says."""
    done = subprocess.run(
        [PROGRAMS / "generator", "--port", str(server.port), *map(str, words)],
        capture_output=True, text=True, timeout=SECONDS, env=os.environ | {"REDISCLI_AUTH": password},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()] if code == 0 else done.stderr


def test_generator():
    """Every key once, whatever their number and in how many parts; replies of any shape are counted."""
    with Server.redis() as server, server.client() as client:
        for keys in (1, 2, 3, 1000, 4097):
            client.call("FLUSHALL")
            for first, count in ((0, keys // 2), (keys // 2, keys - keys // 2)):
                if count == 0:
                    continue
                [total] = generate(server, "--keys", keys, "--first", first, "--requests", count, "--connections", 3,
                                   "--pipeline", 7, "SET", "key:{next}", "{value}")  # fmt: skip
                assert total["requests"] == count
            assert client.call("DBSIZE").value == keys
            assert client.call("STRLEN", f"key:{keys - 1:012}").value == 100
        [total] = generate(server, "--keys", 4097, "--hot-keys", 5, "--requests", 1000, "INCR", "hot:{hot}")
        assert client.call("DBSIZE").value == 4097 + 5
        generate(server, "--keys", 500, "--requests", 500, "XADD", "stream", "*", "field", "{next}")
        for words in (
            ("XRANGE", "stream", "-", "+"),
            ("COMMAND",),
            ("CONFIG", "GET", "*"),
            ("EVAL", "return {}", 0),
        ):
            [total] = generate(server, "--requests", 50, "--pipeline", 5, "--connections", 2, *words)
            assert (total["requests"], total["nils"]) == (50, 0)
        [total] = generate(
            server, "--requests", 10, "--pipeline", 5, "--last", "GET key:000000000000", "GET", "none"
        )
        assert total["nils"] == 8
        assert total["p50_us"] <= total["p99_us"] <= total["p999_us"] <= total["max_us"]
        *lines, total = generate(server, "--seconds", 0.5, "--rate", 200, "--report-seconds", 0.1, "PING")
        assert total["total"] and total["requests"] == sum(line["requests"] for line in lines) <= 110
        assert "WRONGTYPE" in generate(server, "--seconds", 5, "LPOP", "stream", code=1)
        assert "no such place" in generate(server, "--seconds", 5, "GET", "{nonsense}", code=2)
        client.call("CONFIG", "SET", "requirepass", "secret")
        assert generate(server, "--requests", 5, "PING", password="secret")[-1]["requests"] == 5
        assert "WRONGPASS" in generate(server, "--requests", 5, "PING", password="wrong", code=1)


# ------------------------------------------------------------------ every script


@pytest.mark.parametrize("script", sorted(path.name for path in BENCH.glob("*.sh") if path.name != "start.sh"))
def test_every_front_door_has_help(script):
    done = subprocess.run([BENCH / script, "--help"], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0 and len(done.stdout) > 100, done.stderr


@pytest.mark.parametrize(
    "script", ["disk.py", "readers.py", "io_threads.py", "memtier.py", "queue.py", "compare.py"]
)
def test_a_server_that_is_not_there_is_told(script, tmp_path):
    pair = ("127.0.0.1:1", "127.0.0.1:1") if script == "compare.py" else ("--target", "127.0.0.1:1")
    assert "127.0.0.1:1" in run(script, *pair, "--dir", tmp_path, "--run-dir", tmp_path / "run", code=1).stderr


def test_bad_words_are_told_plainly(tmp_path):
    """Before anything is measured, which takes an hour for some."""
    assert "host:port" in run("memtier.py", "--target", "nonsense", "--run-dir", tmp_path / "run", code=1).stderr
    bad = [
        ("queue.py", "--parts", "nonsense"), ("queue.py", "--pipelines", "1,x"), ("queue.py", "--seconds", "-1"),
        ("cached.py", "--rounds", "0"), ("load.py", "--keys", "-5"), ("churn.py", "--turns", "nan"),
        ("large.py", "--maxmemory", "foo"), ("soak.py", "--minutes", "1"), ("overload.py", "nonsense"),
        ("overload.py", "--share", "2"), ("compare.py", "a", "b", "--connections", "99999999"), ("compare.py", "a"),
        ("rdb_load.py", "--engine", "foo"), ("full_sync.py", "--json", tmp_path / "none" / "file"),
    ]  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in pool.map(lambda words: run(*words, code=2), bad):
            assert re.search("wanted|invalid choice|cannot be written", done.stderr), done.stderr
    done = subprocess.run([BENCH / "start.sh"], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 2 and "usage" in done.stderr


def test_a_directory_that_is_not_this_runs_stays_as_it_is(tmp_path):
    def refused(word):
        before = {path: path.read_text() for path in directory.iterdir()}
        assert word in run("memtier.py", "--target", "127.0.0.1:1", "--run-dir", directory, code=1).stderr
        assert {path: path.read_text() for path in directory.iterdir()} == before

    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "letter").write_text("x")
    refused("something else than a run")
    (directory / "run.json").write_text('{"script": "mem')
    refused("cannot be read")
    (directory / "run.json").write_text('{"script": "queue", "asked": {}}')
    refused("is a run of queue and not of memtier")
    (directory / "run.json").write_text('{"script": "memtier", "asked": {}}')
    with open(directory / "raw.jsonl", "w", encoding="utf-8") as raw:
        fcntl.flock(raw, fcntl.LOCK_EX)
        refused("under way")


# ------------------------------------------------------------------ the disk

SMALL = ("--keys", "20000", "--maxmemory", "8mb", "--seconds", "0.6", "--fio-seconds", "0.2", "--fio-size", "4mb",
         "--sample-seconds", "0.2")  # fmt: skip


def check_report(directory):
    page = (directory / "report.html").read_text()
    assert page.count("<svg") == PANELS
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", page), "it should need nothing from elsewhere"
    assert (directory / "panels.png").read_bytes().startswith(b"\x89PNG")
    return page


def test_disk_is_killed_and_goes_on(tmp_path):
    """kill -9 in the middle of the load: no process is left, and what was finished is not done again."""
    directory, data = tmp_path / "run", tmp_path / "data"
    words = ("--run-dir", directory, "--dir", data, *SMALL)
    others = data / f"data-{directory.name}" / "precious"  # what somebody has there stays
    others.parent.mkdir(parents=True)
    others.touch()
    process = subprocess.Popen(command("disk.py", *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_line(process, directory, '"load 1/2", "finished"')
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 5
    while children_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not children_of(tmp_path)
    before = finished(directory)
    assert "is a run with keys" in run("disk.py", "--run-dir", directory, "--keys", "30000", code=1).stderr
    done = run("disk.py", "--run-dir", directory)  # with the options that it was begun with
    after = finished(directory)
    assert before.items() <= after.items() and "hot reads" in after
    assert sum(after[f"load {part}/2"]["requests"] for part in (1, 2)) == 20_000
    assert len([row for row in rows(directory) if row.get("phase") == "random reads"]) >= 2
    page = check_report(directory)
    for what in ("share of the device", "write amplification", "space amplification", "fio, 4 KB"):
        assert (what in page) == (what in done.stdout)
    assert "space amplification" in page
    assert list(data.rglob("*")) == [others.parent, others], "the data is gone at the end, and no other"
    lines = (directory / "raw.jsonl").read_text()
    (directory / "report.html").unlink()
    run("disk.py", "--run-dir", directory)  # writes the report once more
    check_report(directory)
    assert (directory / "raw.jsonl").read_text() == lines


def test_disk_of_a_server_elsewhere_and_of_one_that_ends(tmp_path):
    with Server.redis() as server:
        target = f"127.0.0.1:{server.port}"
        words = ("--target", target, *SMALL)
        done = run("disk.py", *words, "--run-dir", tmp_path / "run")
        page = check_report(tmp_path / "run")
        assert "left out" in page and "left out" in done.stdout
        assert "amplification" not in page and page.count("not known here") > 8
        process = subprocess.Popen(command("disk.py", *words, "--seconds", "30", "--run-dir", tmp_path / "run2"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
        wait_for_line(process, tmp_path / "run2", '"phase": "random reads"')
        server.kill()
        said = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 1 and "Traceback" not in said
    assert re.search("closed the connection|server is gone|does not answer|refused", said), said


def test_a_server_that_refuses_ends_the_step(tmp_path):
    """What was not loaded is not taken for loaded, also when the run goes on."""
    with Server.ingot(options={"max-disk": "1mb"}) as server, server.client() as client:
        deadline = time.monotonic() + SECONDS
        while not client.call("SET", "much", os.urandom(1 << 20)).is_error():
            assert time.monotonic() < deadline
        words = (
            "--target",
            f"127.0.0.1:{server.port}",
            "--keys",
            100_000,
            "--seconds",
            1,
            "--run-dir",
            tmp_path / "run",
        )
        for _ in range(2):
            done = run("disk.py", *words, code=1)
            assert "the server answers: OOM command not allowed" in done.stderr
        assert not finished(tmp_path / "run")


def test_too_small_a_disk_is_told(tmp_path):
    done = run(
        "disk.py",
        "--run-dir",
        tmp_path / "run",
        "--dir",
        tmp_path / "data",
        *SMALL,
        "--fio-size",
        "99999gb",
        code=1,
    )
    assert "too little space" in done.stderr


# ------------------------------------------------------------------ the others


def test_the_short_ones(tmp_path, monkeypatch):
    """Each writes its lines and its page; a second call with the same directory measures nothing."""
    with Server.redis() as server, Server.ingot() as ingot:
        with server.client() as client:
            client.call("CONFIG", "SET", "requirepass", "secret")  # and not of the other one
        monkeypatch.setenv("REDISCLI_AUTH", "secret")
        redis, target = (f"127.0.0.1:{each.port}" for each in (server, ingot))
        scripts = {
            "readers.py": ("--target", target, "--keys", 5000, "--threads", "1,4", "--seconds", 0.3),
            "io_threads.py": ("--target", redis, "--only", "get,xadd 1", "--pipelines", 5, "--payloads", 3,
                              "--keys", 1000, "--seconds", 0.1, "--connections", 20),
            "compare.py": (target, redis, "--only", "sadd,rpop", "--rounds", 1, "--seconds", 0.1, "--keys", 1000,
                           "--pipelines", 5),
            "memtier.py": ("--target", target, "--keys", 1000, "--seconds", 0.2, "--connections", 10),
            "queue.py": ("--target", target, "--pipelines", 10, "--connections", 1, "--payloads", 250, "--rates", 1000,
                         "--seconds", 0.2, "--messages", 240, "--kills", 1, "--work-us", 10_000),
        }  # fmt: skip
        # All at the same time: they mostly wait, and figures do not matter.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            running = [pool.submit(run, script, "--quick", *words, "--run-dir", tmp_path / script)
                       for script, words in scripts.items()]  # fmt: skip
        for each in running:
            each.result()
        for script in scripts:
            assert "</html>" in (tmp_path / script / "report.html").read_text()
            assert len(finished(tmp_path / script)) > 1
        for script in ("queue.py", "compare.py"):
            lines = (tmp_path / script / "raw.jsonl").read_text()
            run(script, "--run-dir", tmp_path / script)
            assert (tmp_path / script / "raw.jsonl").read_text() == lines, "it measured again"
        kills = {name: one for name, one in finished(tmp_path / "queue.py").items() if name.startswith("kills")}
        assert [one["lost"] for name, one in kills.items() if "LPOP" not in name] == [0, 0]
        # Who only gets a target touches no other keys of it than their own.
        with ingot.client() as client:
            names = {name.value.split(b":")[0].split(b"-")[0] for name in client.call("KEYS", "*").value}
        assert names <= {b"key", b"bench", b"memtier"}


def test_a_server_that_is_killed_ends_the_script(tmp_path):
    """With its log, and with nothing left: redis-benchmark would wait for ever, and threads that run beside have errors
    of their own."""

    def child(process, name):
        """The number of this child of a script; None when there is none."""
        for number in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            if pathlib.Path(f"/proc/{number}/comm").read_text().startswith(name):
                return int(number)
        return None

    cached, overload = (
        subprocess.Popen(command(*words, "--dir", tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for words in (("cached.py", "--keys", 1000, "--seconds", 50), ("overload.py", "keyspace"))
    )  # fmt: skip
    wait_for(lambda: child(cached, "redis-benchmark"), cached)
    wait_for(lambda: child(overload, "ingot-server"), overload)
    time.sleep(0.5)  # the neighbour comes soon after the server
    for process in (cached, overload):
        os.kill(child(process, "ingot-server"), signal.SIGKILL)
        said = process.communicate(timeout=SECONDS)[0]
        assert process.returncode == 1 and "Traceback" not in said, said
        assert "ingot has ended with -9; its log:" in said
    assert not children_of(tmp_path) and not list(tmp_path.iterdir())


def test_full_sync_and_rdb_load(tmp_path):
    words = ("--elements", 100, "--rounds", 1, "--shape", "one set", "--dir", tmp_path / "data")
    scripts = ("full_sync", "rdb_load")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda script: run(f"{script}.py", *words, "--json", tmp_path / script), scripts))
    for script in scripts:
        [one] = json.loads((tmp_path / script).read_text())[script]
        assert one["bytes"] > 100
    process = subprocess.Popen(
        command("rdb_load.py", *words, "--elements", 9_000_000), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    wait_for(lambda: list((tmp_path / "data").glob("*/log")), process)
    process.terminate()
    assert process.communicate(timeout=SECONDS)[1] == "stopped\n"
    assert not children_of(tmp_path) and not list((tmp_path / "data").iterdir())


def test_ceilings(tmp_path):
    done = run("ceilings.py", "--quick", "--seconds", 0.2, "--fio-size", "4mb", "--dir", tmp_path, "--run-dir",
               tmp_path / "run", server=False)  # fmt: skip
    assert "there and back" in done.stdout
    assert (
        "no directory of a run"
        in run("ceilings.py", "--result", tmp_path / "none", "--run-dir", tmp_path / "run2", code=1).stderr
    )


# ------------------------------------------------------------------ settings of the machine

MACHINE = {
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "proc/sys/net/core/somaxconn": "128",
    "proc/sys/vm/overcommit_memory": "2",
    "sys/block/sdx/queue/scheduler": "[mq-deadline] none",
    "sys/block/sdx/queue/rotational": "0",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
}
TUNED = ["madvise", "4096", "0", "none", "0", "performance"]


def test_tune_changes_only_when_asked(tmp_path):
    """In a folder that stands for the machine."""
    for name, text in MACHINE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")

    def tune(*words, before=None):
        return subprocess.run([BENCH / "tune.sh", *words], capture_output=True, text=True, timeout=SECONDS,
                              preexec_fn=before, env=os.environ | {"TUNE_ROOT": str(tmp_path), "TUNE_BLOCK": "sdx"})  # fmt: skip

    def read():
        return [(tmp_path / name).read_text().strip() for name in MACHINE]

    checked = tune("--check")
    assert checked.returncode == 1 and checked.stdout.count("better:") >= 5
    assert read() == list(MACHINE.values())
    applied = tune("--apply")
    assert applied.returncode == 0 and "undo: echo 128" in applied.stdout, applied.stdout + applied.stderr
    assert read() == TUNED
    (tmp_path / "sys/block/sdx/queue/scheduler").write_text("[none]")  # as the kernel says it
    limited = tune("--check", before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
    assert limited.returncode == 1 and "by hand" in limited.stdout and "--apply" not in limited.stdout
    assert tune().returncode == tune("--nonsense").returncode == 2


# ------------------------------------------------------------------ slow disks


def timed(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def counters(mount):
    return [int(word) for word in os.getxattr(mount, "user.diskstats").split()]


def test_slowdisk_is_as_slow_as_it_says(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(os.urandom(1 << 20))
    with slow_disk(folder, "--read-latency-us", "20000", "--iops", "200", "--fsync-us", "50000") as mount:
        handle = os.open(mount / "file", os.O_RDWR)
        before = counters(mount)
        assert timed(lambda: [os.pread(handle, 4096, 4096 * (7 * n % 256)) for n in range(10)]) >= 0.2
        after = counters(mount)
        assert after[0] - before[0] == 10 and after[2] - before[2] == 80 and after[3] - before[3] >= 200
        # 40 at the same time are bound by the budget, not each by the latency.
        readers = [
            f"import os; [os.pread(os.open({str(mount / 'file')!r}, os.O_RDONLY), 4096, 0) for _ in range(5)]"
        ] * 8
        began = time.monotonic()
        processes = [subprocess.Popen([sys.executable, "-c", code]) for code in readers]
        assert all(process.wait(SECONDS) == 0 for process in processes)
        assert time.monotonic() - began >= 0.18
        # Writes are nobody's wait until somebody asks for them.
        assert timed(lambda: os.pwrite(handle, b"x" * 4096, 0)) < 1
        assert timed(lambda: os.fsync(handle)) >= 0.05
        os.close(handle)
        assert (folder / "file").read_bytes()[:4096] == b"x" * 4096
    assert not os.path.ismount(mount)


def test_slowdisk_keeps_a_server(tmp_path):
    """A server lives on it, and finds its data in the folder again."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with slow_disk(folder, "--profile", "cloud") as mount, Server.ingot(directory=mount) as server:
        with server.client() as client:
            for number in range(100):
                client.call("SET", f"key:{number}", "x" * 1000)
        server.restart(kill=True)
        with server.client() as client:
            assert client.call("DBSIZE").value == 100
    assert (folder / "ingot-data").is_dir()


@pytest.mark.parametrize(
    "words", [("a",), ("a", "b", "--profile", "floppy"), ("a", "b", "--iops", "many"), ("a", "b", "--x", "1")]
)
def test_slowdisk_refuses_what_it_does_not_know(words):
    if not (PROGRAMS / "slowdisk").exists():
        pytest.skip("no libfuse3 when it was built")
    done = subprocess.run([PROGRAMS / "slowdisk", *words], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 2 and "usage" in done.stderr


def test_ctrl_c_leaves_no_mount(tmp_path):
    if not has_fuse():
        pytest.skip("no FUSE here")
    words = ("--run-dir", tmp_path / "run", "--dir", tmp_path / "data", *SMALL, "--slowdisk", "cloud")
    # As from a terminal: what a shell starts in the background ignores Ctrl-C.
    process = subprocess.Popen(
        command("disk.py", *words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    wait_for_line(process, tmp_path / "run", "fio randread 1")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=SECONDS)[1]
    assert "to go on: --run-dir" in said and "Traceback" not in said
    assert not children_of(tmp_path)
    assert str(tmp_path) not in pathlib.Path("/proc/mounts").read_text()
