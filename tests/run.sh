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
ctest --test-dir build/release --output-on-failure

step "conformance with redis-server"
$python -m pytest -q -x tests/conformance

step "promises"
$python -m pytest -q -x tests/promises

step "clients"
$python -m pytest -q -x tests/smoke

# The sanitizers look at the unit tests; the server itself is not built again.
step "unit tests, address and undefined behaviour sanitizers"
cmake --preset asan >/dev/null
cmake --build --preset asan -j "$jobs" --target net_tests storage_tests src_tests
ctest --test-dir build/asan --output-on-failure

step "unit tests, thread sanitizer"
cmake --preset tsan >/dev/null
cmake --build --preset tsan -j "$jobs" --target net_tests storage_tests src_tests
export TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp"
ctest --test-dir build/tsan --output-on-failure -R '^(net|storage)$'
build/tsan/tests/src/src_tests "[exec]"

step "all tests passed"
