#!/usr/bin/env bash
# Checks python/: formatting, lints, types, then the tests, with the built program. The package is installed as users
# get it, from its wheel. What else is needed comes from PyPI the first time, as python/requirements.txt pins it, and
# stays in target/python. Arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/target/python wanted=python/requirements.txt

if ! cmp -s "$wanted" "$home/requirements.txt"; then
    rm -rf "$home"
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet --disable-pip-version-check --no-compile --require-hashes -r "$wanted"
    cp "$wanted" "$home/requirements.txt"
fi
"$home/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall \
    ./python

cd python
"$home/bin/ruff" format --quiet --check .
"$home/bin/ruff" check --quiet .
"$home/bin/mypy" --no-error-summary src tests generate.py
exec "$home/bin/pytest" --quiet "$@"
