#!/bin/sh
# What this machine can do at most (loopback, memory, disk), and the share of that a result reached. See ceilings.py.
#   bench/ceilings.sh [--result RUN_DIR] [options]
exec "$(dirname "$0")/start.sh" ceilings.py "$@"
