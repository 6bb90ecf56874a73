#!/bin/sh
# What of this machine's settings would help a server like this one; changes them only when asked.
#   bench/tune.sh --check [--dir DIR]    says what is set, what would be better, and why; exits with 1 if anything would
#   bench/tune.sh --apply [--dir DIR]    sets that until the next start of the machine, as root, and says how to undo it
# DIR: where the data is, for the disk's scheduler (the current directory).
set -eu

usage() { sed -n '2,5s/^# *//p' "$0"; }
mode="" directory=. root=${TUNE_ROOT:-}  # TUNE_ROOT: a folder that stands for /, to try this out
while [ $# -gt 0 ]; do
  case $1 in
    --check | --apply) mode=$1 ;;
    --dir) [ $# -ge 2 ] || { usage >&2; exit 2; }; directory=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "tune.sh: there is no option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
[ -n "$mode" ] || { usage >&2; exit 2; }
[ -d "$directory" ] || { echo "tune.sh: $directory is no directory" >&2; exit 2; }
[ "$mode" = --check ] || [ -n "$root" ] || [ "$(id -u)" = 0 ] || { echo "tune.sh: --apply takes root" >&2; exit 2; }

found=0 failed=0
by_hand=0  # of those found: what cannot be set from here

# A file of the kernel: its name, what it is now, what would be better, why.
better() {
  found=$((found + 1))
  printf '%-28s %s; better: %s\n%-28s %s\n' "$1" "$3" "$4" "" "$5"
  [ "$mode" = --apply ] || return 0
  if printf '%s\n' "$4" 2>/dev/null >"$2"; then
    printf '%-28s set; undo: echo %s > %s\n' "" "$3" "$2"
  else
    printf '%-28s it could not be set: %s\n' "" "$2"
    failed=1
  fi
}
good() { printf '%-28s %s, good\n' "$1" "$2"; }
unknown() { printf '%-28s not known on this machine\n' "$1"; }

# The choice in brackets: "always [madvise] never".
choice() { sed -n 's/.*\[\([^]]*\)\].*/\1/p' "$1"; }

file=$root/sys/kernel/mm/transparent_hugepage/enabled
if [ ! -r "$file" ]; then unknown "huge pages"
elif [ "$(choice "$file")" = always ]; then
  better "huge pages" "$file" always madvise "a page of 2 MB for a few bytes costs memory, and time when one is put together"
else good "huge pages" "$(choice "$file")"; fi

file=$root/proc/sys/net/core/somaxconn
if [ ! -r "$file" ]; then unknown somaxconn
elif [ "$(cat "$file")" -lt 4096 ]; then
  better somaxconn "$file" "$(cat "$file")" 4096 "many connections at once are refused while they wait to be accepted"
else good somaxconn "$(cat "$file")"; fi

file=$root/proc/sys/vm/overcommit_memory
if [ ! -r "$file" ]; then unknown overcommit
elif [ "$(cat "$file")" = 2 ]; then
  better overcommit "$file" 2 0 "memory that is reserved and never used is refused"
else good overcommit "$(cat "$file") (a redis-server that writes snapshots wants 1)"; fi

device=$(stat -c %d "$directory")
block=$(readlink -f "$root/sys/dev/block/$((device >> 8 & 0xfff)):$((device & 0xff | device >> 12 & 0xfff00))" || true)
[ -n "${TUNE_BLOCK:-}" ] && block=$root/sys/block/$TUNE_BLOCK
[ -n "$block" ] && [ -e "$block/partition" ] && block=$(dirname "$block")
file=$block/queue/scheduler
if [ ! -r "$file" ]; then unknown "disk scheduler"
else
  if [ "$(cat "$block/queue/rotational")" = 1 ]; then
    wanted=mq-deadline why="the kernel calls this disk rotational: reads should not starve behind writes"
  else
    wanted=none why="an SSD sorts for itself"
  fi
  now=$(choice "$file")
  case " $(tr -d '[]' <"$file") " in
    *" $wanted "*)
      if [ "$now" = "$wanted" ]; then good "disk scheduler" "$now"
      else better "disk scheduler" "$file" "$now" "$wanted" "$why"; fi ;;
    *) good "disk scheduler" "${now:-$(cat "$file")}, and no $wanted to choose" ;;
  esac
fi

governors=$(find "$root/sys/devices/system/cpu" -path '*cpufreq/scaling_governor' 2>/dev/null | sort)
if [ -z "$governors" ]; then unknown "processor governor"
else
  slow=0
  for file in $governors; do
    now=$(cat "$file")
    [ "$now" = performance ] || { slow=1; better "governor, $(basename "$(dirname "$(dirname "$file")")")" "$file" "$now" performance \
      "a processor that has to speed up first answers late"; }
  done
  [ "$slow" = 1 ] || good "processor governor" performance
fi

# A limit of the shell that starts the server: nothing that could be set from here.
limit=$(ulimit -n)
if [ "$limit" != unlimited ] && [ "$limit" -lt 65536 ]; then
  found=$((found + 1)) by_hand=1
  printf '%-28s %s; better: 65536\n%-28s %s\n' "open files" "$limit" "" \
    "connections and files of data need one each; ulimit -n 65536 in the shell, or LimitNOFILE= in the unit"
else good "open files" "$limit"; fi

if [ "$found" = 0 ]; then echo "nothing to do"; exit 0; fi
if [ "$mode" = --check ]; then
  if [ "$found" = "$by_hand" ]; then echo "$found to mend, by hand as it says there"
  else echo "$((found - by_hand)) to mend: bench/tune.sh --apply$([ "$by_hand" = 0 ] || echo "; and $by_hand by hand")"; fi
  exit 1
fi
exit "$failed"
