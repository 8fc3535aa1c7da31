#!/usr/bin/env bash
# Puts programs that a chore needs into a directory: wheels of PyPI, named by version and hash in a list beside this
# script. zig.txt: zig, and what has cargo call it. packages.txt: what makes and judges packages.
set -euo pipefail
directory=$1
list=$(dirname "$0")/$2
exec </dev/null
cmp -s "$list" "$directory/$2" && exit 0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian's python3 has venv in a package of its own.
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    echo "python3 with venv is needed for the tools of $2: installing" >&2
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends python3-venv; } >/dev/null
fi
rm -rf "$directory"
python3 -m venv "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$list"
cp "$list" "$directory/$2"
