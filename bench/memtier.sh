#!/bin/sh
# GET alone and SET alone, 256 bytes, pipelines of 1 and 30, by memtier_benchmark where that is installed. See memtier.py.
#   bench/memtier.sh [options]
exec "$(dirname "$0")/start.sh" memtier.py "$@"
