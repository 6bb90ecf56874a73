#!/bin/sh
# Runs clang-tidy with .clang-tidy's checks over all sources, or over the files that are named.
# Several files are looked at as one, as in the sanitizers' builds: most of the time goes into headers.
set -eu
cd "$(dirname "$0")/../.."
tidy=$(command -v clang-tidy-16) || { echo "clang-tidy-16 is missing: apt-get install clang-tidy-16" >&2; exit 1; }
cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DINGOT_TESTS=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
[ $# -gt 0 ] || set -- $(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' build/tidy/compile_commands.json)
# clang 16 takes g++ 12's <expected> only when it says that it knows concepts as C++20 has them.
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 sh -c '"$0" "$@" || [ $? -gt 128 ]' "$tidy" -p build/tidy --quiet --checks=-bugprone-suspicious-include --extra-arg=-std=c++2b \
    --extra-arg=-D__cpp_concepts=202002L --extra-arg=-Wno-builtin-macro-redefined --extra-arg=-Wno-macro-redefined
