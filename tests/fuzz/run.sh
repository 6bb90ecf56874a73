#!/bin/sh
# Runs one fuzzer for so many seconds: tests/fuzz/run.sh resp|config|acl|restore|commands|script [3600].
# Inputs that reach new code stay in build/fuzz/corpus; `merge` for the seconds keeps the smallest
# of them that reach as much in tests/fuzz/corpus, which the unit tests replay. An input that
# breaks something is in build/fuzz, named after what it did.
set -eu
cd "$(dirname "$0")/../.."
target=$1
kept=tests/fuzz/corpus/$target
found=build/fuzz/corpus/$target
deps/install.sh fuzz
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target "fuzz_$target"
mkdir -p "$found"
# Of `commands` the entropic schedule would take half of the time for itself.
fuzzer() {
    TMPDIR=$(test -d /dev/shm && echo /dev/shm || echo /tmp) \
        "build/fuzz/tests/fuzz/fuzz_$target" -timeout=20 -entropic=0 -rss_limit_mb=3000 \
        "-artifact_prefix=build/fuzz/$target-" "$@"
}
if [ "${2-}" = merge ]; then
    fuzzer -set_cover_merge=1 -use_counters=0 "$kept" "$found"
else
    dictionary=tests/fuzz/$target.dict
    [ ! -f "$dictionary" ] || set -- "$1" "${2-3600}" "-dict=$dictionary"
    fuzzer "-max_total_time=${2-3600}" ${3+"$3"} "$found" "$kept"
fi
