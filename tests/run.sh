#!/bin/sh
# Every test, from the quickest to the slowest; stops at the first suite that fails.
# INGOT_TEST_FULL=1 runs the long forms as well.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
python=/usr/bin/python3

step() { printf '\n== %s\n' "$*"; }

step "build (release)"
cmake --preset release >/dev/null
cmake --build --preset release -j "$jobs"

step "unit tests (release)"
ctest --test-dir build/release --output-on-failure -j "$jobs"

step "conformance with redis-server"
$python -m pytest -q -x tests/conformance

step "promises"
$python -m pytest -q -x tests/promises

step "clients"
$python -m pytest -q -x tests/smoke

step "unit tests (address and undefined behaviour sanitizers)"
cmake --preset asan >/dev/null
cmake --build --preset asan -j "$jobs"
ctest --test-dir build/asan --output-on-failure -j "$jobs"

step "net, exec and overlay (thread sanitizer)"
cmake --preset tsan >/dev/null
cmake --build --preset tsan -j "$jobs"
ctest --test-dir build/tsan --output-on-failure -j "$jobs"
