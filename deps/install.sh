#!/bin/sh
# Installs the Debian 12 packages that Ingot is built, tested and measured with. Says nothing and
# needs no network when all are there.
set -eu

build="g++ cmake ninja-build ccache pkg-config make
  libboost1.81-dev librocksdb-dev libleveldb-dev libsnappy-dev liblz4-dev libzstd-dev
  libjemalloc-dev libssl-dev libxxhash-dev libfmt-dev libspdlog-dev catch2"
tests="redis-server redis-tools python3 python3-redis python3-pytest fio sysstat"

missing=""
for package in $build $tests; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
    missing="$missing $package"
done
# Go and Node may have come from elsewhere.
command -v go >/dev/null 2>&1 || missing="$missing golang-go"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
[ -z "$missing" ] && exit 0

root=""
[ "$(id -u)" = 0 ] || root="sudo"
export DEBIAN_FRONTEND=noninteractive
echo "installing:$missing"
$root apt-get update -qq
# shellcheck disable=SC2086
$root apt-get install -y -qq --no-install-recommends $missing >/dev/null
# The oracle is started by the tests; the packaged service would hold port 6379.
if [ -d /run/systemd/system ] && echo "$missing" | grep -q redis-server; then
  $root systemctl disable --now redis-server >/dev/null 2>&1 || true
fi
