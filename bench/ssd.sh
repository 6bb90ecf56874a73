#!/bin/sh
# Data four times larger than memory on an SSD, with conf/ingot-ssd.conf: see disk.py, which does the work.
#   bench/ssd.sh --dir /mnt/ssd [options]     --keys 1000000000 --maxmemory 32gb is the classic run
exec "$(dirname "$0")/start.sh" disk.py --profile ssd "$@"
