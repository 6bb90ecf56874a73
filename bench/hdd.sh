#!/bin/sh
# Cold reads on a hard disk: cold.py with the profile conf/ingot-hdd.conf, data in the directory
# given. Long measurements and few threads, because a seek takes ten milliseconds.
#   bench/hdd.sh /mnt/hdd [options of cold.py, such as --size 8gb]
set -eu
[ $# -ge 1 ] && [ -d "$1" ] || { sed -n '2,4s/^# *//p' "$0" >&2; exit 1; }
directory=$1
shift
here=$(dirname "$0")
"$here/../deps/install.sh" bench
"$here/../deps/build.sh"
exec /usr/bin/python3 "$here/cold.py" --conf "$here/../conf/ingot-hdd.conf" --dir "$directory" \
  --threads 1,4,8,16,32 --seconds 10 "$@"
