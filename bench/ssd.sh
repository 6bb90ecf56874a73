#!/bin/sh
# Cold reads on an SSD: cold.py with the profile conf/ingot-ssd.conf, data in the directory given.
#   bench/ssd.sh /mnt/ssd [options of cold.py, such as --size 8gb]
set -eu
[ $# -ge 1 ] && [ -d "$1" ] || { sed -n '2,3s/^# *//p' "$0" >&2; exit 1; }
directory=$1
shift
here=$(dirname "$0")
"$here/../deps/install.sh" bench
"$here/../deps/build.sh"
exec /usr/bin/python3 "$here/cold.py" --conf "$here/../conf/ingot-ssd.conf" --dir "$directory" "$@"
