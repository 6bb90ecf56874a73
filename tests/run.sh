#!/bin/sh
# Every test; stops where one fails and shows what. INGOT_TEST_FULL=1 runs the long forms as well.
# The suites in Python mostly wait, so they run beside what is compiled next, which is nice to them. Those marked as
# timed come first, one after another: they bound how long somebody waits, and the other suites keep a disk and two
# processors busy.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
logs=$(mktemp -d)
suites=""  # the processes of those in the background; each has a log of that name
# shellcheck disable=SC2086
trap 'kill $suites 2>/dev/null || true; wait; rm -rf "$logs"' EXIT
trap 'exit 1' INT TERM

# One that has failed in the background ends the run, whatever the others still do.
end_if_one_failed() {
    for each in $suites; do
        ! grep -qs "stopping after\|Errors while running CTest" "$logs/$each" || { cat "$logs/$each"; exit 1; }
    done
}
step() {
    end_if_one_failed
    printf '\n== %s (%s s)\n' "$*" "$(($(date +%s) - began))"
}
began=$(date +%s)

build() {  # preset, targets
    preset=$1
    shift
    cmake --preset "$preset" >/dev/null
    nice -n 19 cmake --build --preset "$preset" -j "$jobs" --target "$@"
}

start() {
    log=$(mktemp -p "$logs")
    "$@" >"$log" 2>&1 &
    suites="$suites $!"
    ln -s "$log" "$logs/$!"
}
black_box="tests/conformance tests/promises tests/replication tests/smoke --ignore=tests/promises/test_p6_latency.py"
timed_suite() {
    status=0
    # shellcheck disable=SC2086
    /usr/bin/python3 -m pytest -q -x $black_box -m timed || status=$?
    : >"$logs/timed-is-over"
    return "$status"
}
behind_the_timed_suite() {
    while [ ! -e "$logs/timed-is-over" ]; do sleep 1; done
    "$@"
}
# What the sanitized server answers below need not be asked of the other one.
elsewhere=" and not (test_cases.py or test_blocking.py or test_dump.py)"
[ -z "${INGOT_TEST_FULL:-}" ] || elsewhere=""
# Of these parts, one after another, those that no other process has taken.
black_box_tests() {
    for part in "rocksdb and not leveldb and conformance$elsewhere" "rocksdb and not leveldb and promises" \
        "leveldb and not promises" "leveldb and promises" \
        "rocksdb and not leveldb and not promises and not conformance" "not rocksdb and not leveldb"; do
        mkdir "$logs/$part" 2>/dev/null || continue
        # shellcheck disable=SC2086
        /usr/bin/python3 -m pytest -q -x $black_box -m "not timed" -k "$part" || return
    done
}
unit_tests() {  # preset, which
    ctest --test-dir "build/$1" --output-on-failure --no-tests=error -j "$jobs" -R "$2"
}
finish_suites() {
    for suite in $suites; do
        while kill -0 "$suite" 2>/dev/null; do
            end_if_one_failed
            sleep 1
        done
        wait "$suite" || { cat "$logs/$suite"; exit 1; }
        tail -n 1 "$logs/$suite"
    done
    suites=""
}

step "layout and first words of every file"
for check in includes style; do
    /usr/bin/python3 "tests/support/check_$check.py"
done

step "build, release"
build release ingot-server ingot-check ingot-repair ingot-backup ingot-import faulty_disk generator probe slowdisk

step "conformance with redis-server, promises, clients: in the background"
start timed_suite
for process in 1 2 3; do
    start behind_the_timed_suite black_box_tests
done

step "build, address and undefined behaviour sanitizers"
build asan ingot-server

# With one engine: the server's code is the same with the other, whose own the unit tests look at.
step "conformance of the sanitized server: in the background"
export INGOT_SERVER="$PWD/build/asan/ingot-server" UBSAN_OPTIONS=print_stacktrace=1
set -- tests/conformance/test_cases.py tests/conformance/test_blocking.py tests/conformance/test_dump.py
start behind_the_timed_suite /usr/bin/python3 -m pytest -q -x "$@" -k "${INGOT_TEST_FULL:+leveldb or }not leveldb"
unset INGOT_SERVER

step "build, unit tests with these sanitizers"
build asan net_tests storage_tests src_tests

step "unit tests, address and undefined behaviour sanitizers: in the background"
start unit_tests asan '^(net|storage|src)$'
if [ -n "${INGOT_TEST_FULL:-}" ]; then
    build release all
    start unit_tests release .
fi

step "build, thread sanitizer"
build tsan net_tests storage_tests src_tests

step "unit tests, thread sanitizer"
export TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp"
unit_tests tsan '^(net|storage)$'
build/tsan/tests/src/src_tests -w NoTests "[exec]"

step "what runs in the background"
finish_suites

step "latencies, with nothing beside them"
/usr/bin/python3 -m pytest -q -x tests/promises/test_p6_latency.py

step "all tests passed"
