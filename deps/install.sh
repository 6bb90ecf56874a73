#!/bin/sh
# Installs the Debian 12 packages that Ingot needs: deps/install.sh build | test | full | bench | fuzz.
# Says nothing and needs no network when all are there.
set -eu

build="g++ cmake ninja-build pkgconf libboost1.81-dev librocksdb-dev libleveldb-dev liblz4-dev libsnappy-dev
  libzstd-dev liburing-dev libjemalloc-dev libssl-dev libxxhash-dev libisal-dev libbsd-dev liblua5.1-0-dev lua-cjson-dev lua-bitop-dev libfmt-dev libspdlog-dev catch2"  # spdlog's package needs Catch2 anyway
redis="redis-server redis-tools python3 python3-redis"
measuring="fio python3-matplotlib libfuse3-dev fuse3"
testing="$build $redis $measuring iproute2 python3-pytest python3-pip clang-format openssl prometheus golang-go nodejs npm"
case ${1-} in
  build) wanted=$build ;;
  test) wanted=$testing ;;
  full) wanted="$testing ruby-sidekiq default-jdk-headless maven cargo-web rustc-web" ;;  # what INGOT_TEST_FULL=1 needs
  bench) wanted="$build $redis $measuring" ;;
  fuzz) wanted="$build clang-16 libclang-rt-16-dev llvm-16" ;;  # llvm-16: names in what sanitizers print
  *) echo "usage: deps/install.sh build | test | full | bench | fuzz" >&2; exit 2 ;;
esac

# shellcheck disable=SC2086
installed=$(dpkg-query -W -f='${db:Status-Status} ${Package} ' $wanted 2>/dev/null) || true
there() {
  case $1 in  # Go, Node, Java and Rust may have come from elsewhere.
    golang-go) command -v go >/dev/null ;;
    nodejs) command -v node >/dev/null ;;
    npm) command -v npm >/dev/null ;;
    default-jdk-headless) command -v javac >/dev/null ;;
    maven) command -v mvn >/dev/null ;;
    cargo-web) command -v cargo >/dev/null ;;
    rustc-web) command -v rustc >/dev/null ;;
    *) case " $installed" in *" installed $1 "*) ;; *) return 1 ;; esac ;;
  esac
}
missing=""
for package in $wanted; do
  there "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

fail() {
  printf '%s\nAs root, on Debian 12 and with a network, this installs them:\n  apt-get update\n' "$1" >&2
  printf '  apt-get install --no-install-recommends%s\n' "$missing" >&2
  exit 1
}
root=""
command -v apt-get >/dev/null || fail "Packages are missing, and there is no apt-get."
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || fail "Packages are missing, and to install them takes root or sudo."
  root=sudo
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing:$missing"
$root apt-get update -qq >"$log" 2>&1 || true  # a source that does not answer may not matter
# shellcheck disable=SC2086
$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o DPkg::Lock::Timeout=300 $missing >>"$log" 2>&1 || {
  tail -n 6 "$log" >&2
  fail "Packages are missing and could not be installed; apt-get said why."
}
# The tests start what they need themselves; the packaged services would hold port 6379, and memory.
for service in redis-server prometheus; do
  case "$missing " in *" $service "*)
    [ ! -d /run/systemd/system ] || $root systemctl disable --now $service >/dev/null 2>&1 || true
  esac
done
