#!/bin/sh
# Installs what the benchmarks need, builds, and runs them: bench/run.sh [options of run.py].
set -eu
here=$(dirname "$0")
"$here/../deps/install.sh" bench
"$here/../deps/build.sh"
exec /usr/bin/python3 "$here/run.py" "$@"
