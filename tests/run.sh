#!/bin/sh
# Every test, from the quickest to the slowest; stops at the first suite that fails.
# INGOT_TEST_FULL=1 runs the long forms as well.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
python=/usr/bin/python3

step() { printf '\n== %s (%s s)\n' "$*" "$(($(date +%s) - began))"; }
began=$(date +%s)

step "build, release"
cmake --preset release >/dev/null
cmake --build --preset release -j "$jobs"

step "unit tests"
ctest --test-dir build/release --output-on-failure -j "$jobs"

# A suite with each engine at the same time: they mostly wait. What is printed comes at the end.
both_engines() {
    $python -m pytest -q -x "$@" -k leveldb >"$leveldb_log" 2>&1 &
    others=0
    $python -m pytest -q -x "$@" -k "not leveldb" || others=$?
    wait $! || { cat "$leveldb_log"; return 1; }
    tail -n 1 "$leveldb_log"
    return $others
}
leveldb_log=$(mktemp)
trap 'rm -f "$leveldb_log"' EXIT

step "conformance with redis-server"
both_engines tests/conformance

step "promises"
both_engines tests/promises --ignore=tests/promises/test_p6_latency.py
$python -m pytest -q -x tests/promises/test_p6_latency.py  # alone: it looks at latencies

step "clients"
$python -m pytest -q -x tests/smoke

# The sanitizers look at the unit tests; the server itself is not built again.
step "unit tests, address and undefined behaviour sanitizers"
cmake --preset asan >/dev/null
cmake --build --preset asan -j "$jobs" --target net_tests storage_tests src_tests
ctest --test-dir build/asan --output-on-failure -j "$jobs"

step "unit tests, thread sanitizer"
cmake --preset tsan >/dev/null
cmake --build --preset tsan -j "$jobs" --target net_tests storage_tests src_tests
export TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp"
ctest --test-dir build/tsan --output-on-failure -j "$jobs" -R '^(net|storage)$'
build/tsan/tests/src/src_tests "[exec]"

step "all tests passed"
