#!/bin/sh
# What slow disks give when fio asks them, one request at a time and fifty: see slowdisk.py, which does the work. To use
# one by hand: build/release/bench/slowdisk FOLDER MOUNT --profile hdd
exec "$(dirname "$0")/start.sh" slowdisk.py "$@"
