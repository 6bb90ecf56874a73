#!/bin/sh
# Installs and builds what the benchmarks need, and runs one: bench/start.sh SCRIPT.py [options]. For --help it does
# neither.
set -eu
here=$(dirname "$0")
[ $# -ge 1 ] || { echo "usage: bench/start.sh SCRIPT.py [options]" >&2; exit 2; }
script=$1
shift
case " $* " in
  *" --help "* | *" -h "*) ;;
  *) "$here/../deps/build.sh" bench ;;
esac
exec /usr/bin/python3 "$here/$script" "$@"
