#!/bin/sh
# Installs what the benchmarks need, builds, and runs all that compare and keep to promises: bench/run.sh [options of
# run.py].
exec "$(dirname "$0")/start.sh" run.py "$@"
