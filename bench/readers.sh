#!/bin/sh
# Which reader-threads a disk wants: the curve of cold reads beside that of fio. See readers.py, which does the work.
#   bench/readers.sh --dir /mnt/disk [options]
exec "$(dirname "$0")/start.sh" readers.py "$@"
