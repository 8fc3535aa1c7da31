#!/usr/bin/env bash
# Installs, by apt-get, the programs that the system tests start: only those that are missing, as
# root or through sudo without a password. Elsewhere it names them and goes on: a test that cannot
# start its program says so itself. Then it installs, by npm, what drives a browser in tests/page.
set -euo pipefail
cd "$(dirname "$0")"
exec </dev/null
export DEBIAN_FRONTEND=noninteractive
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" # sshd and ip, which a user's PATH may lack

# command:package
needs=(sshd:openssh-server ssh:openssh-client rsync:rsync b3sum:b3sum xxh128sum:xxhash strace:strace ip:iproute2 python3:python3
    mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs chattr:e2fsprogs curl:curl openssl:openssl bon_csv2html:bonnie++
    fio_jsonplus_clat2csv:fio iperf3:iperf3 chromium:chromium node:nodejs npm:npm)

missing() {
    local need
    for need in "${needs[@]}"; do
        command -v "${need%%:*}" >/dev/null || echo "${need##*:}"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install() {
    as_root env DEBIAN_FRONTEND="$DEBIAN_FRONTEND" \
        apt-get install -qq -y --no-install-recommends "$@" >>"$log" 2>&1
}

# What package-lock.json names, and nothing else. npm keeps a list of what it has installed.
drivers() {
    [ page/node_modules/.package-lock.json -nt page/package-lock.json ] && return
    (cd page && npm ci --loglevel=error) ||
        echo "tests: npm ci has failed in tests/page: the tests of the page cannot run" >&2
}

mapfile -t packages < <(missing)
if [ "${#packages[@]}" -eq 0 ]; then
    drivers
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! command -v apt-get >/dev/null; then
    echo "this system has no apt-get" >"$log"
elif ! as_root true 2>>"$log"; then
    echo "neither root nor sudo without a password" >>"$log"
else
    echo "tests need ${packages[*]}: installing" >&2
    as_root apt-get update -qq >>"$log" 2>&1 || true # stale lists may still do
    # One package that this release lacks must not keep the others away.
    install "${packages[@]}" || for package in "${packages[@]}"; do install "$package" || true; done
fi

mapfile -t packages < <(missing)
if [ "${#packages[@]}" -gt 0 ]; then
    cat "$log" >&2
    echo "tests: still missing, please install: ${packages[*]}" >&2
fi
drivers
