#!/usr/bin/env bash
# Puts zig, and what has cargo call it, into a directory: wheels of PyPI, named by version and hash in zig.txt.
set -euo pipefail
directory=$1
here=$(dirname "$0")
exec </dev/null
cmp -s "$here/zig.txt" "$directory/zig.txt" && exit 0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian's python3 has venv in a package of its own.
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    echo "agents: python3 with venv is needed for zig: installing" >&2
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends python3-venv; } >/dev/null
fi
rm -rf "$directory"
python3 -m venv "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r "$here/zig.txt"
cp "$here/zig.txt" "$directory/zig.txt"
