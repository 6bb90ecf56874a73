#!/bin/sh
# Data four times larger than memory on a hard disk, with conf/ingot-hdd.conf and longer measurements: see disk.py.
#   bench/hdd.sh --dir /mnt/hdd [options]     or --slowdisk hdd on a machine that has none
exec "$(dirname "$0")/start.sh" disk.py --profile hdd "$@"
