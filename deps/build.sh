#!/bin/sh
# Builds build/release/ingot-server, and installs first what that needs. Says nothing when there is
# nothing to do.
set -eu
cd "$(dirname "$0")/.."
deps/install.sh build
# A folder that was configured otherwise, or moved, is configured anew.
cmake --preset release >/dev/null 2>&1 || cmake --preset release --fresh >/dev/null

compile() { cmake --build --preset release -j "$(nproc)" --target ingot-server ingot-check ingot-repair; }
newer=$(find CMakeLists.txt src net storage -newer build/release/ingot-server 2>&1 | head -n 1)
if [ -n "$newer" ]; then
  compile
else
  said=$(compile) || { printf '%s\n' "$said" >&2; exit 1; }
fi
