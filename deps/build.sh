#!/bin/sh
# Builds build/release/ingot-server, and installs first what that needs: deps/build.sh [bench], with bench also what
# the benchmarks have of their own. Says nothing when there is nothing to do.
set -eu
cd "$(dirname "$0")/.."
case ${1-} in
  "") needs=build targets="ingot-server ingot-check ingot-repair ingot-backup ingot-import" ;;
  bench) needs=bench targets="ingot-server generator probe slowdisk" ;;
  *) echo "usage: deps/build.sh [bench]" >&2; exit 2 ;;
esac
deps/install.sh "$needs"
# A folder that was configured otherwise, or moved, is configured anew.
cmake --preset release >/dev/null 2>&1 || cmake --preset release --fresh >/dev/null

compile() { cmake --build --preset release -j "$(nproc)" --target $targets; }  # shellcheck disable=SC2086
newer=$(find CMakeLists.txt src net storage -newer build/release/ingot-server 2>&1 | head -n 1)
if [ -n "$newer" ]; then
  compile
else
  said=$(compile) || { printf '%s\n' "$said" >&2; exit 1; }
fi
