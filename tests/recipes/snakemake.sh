#!/usr/bin/env bash
# Runs the recipe of Snakemake: the suite that Snakemake has for storage plug-ins, then the workflow of three rules. The
# second run must find nothing to do, the third do what an input that has changed asks for. From PyPI comes what
# tests/recipes/snakemake.txt names, into target/snakemake.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${CARRACK_TEST_PROGRAM:-$PWD/target/debug/carrack} home=$PWD/target/snakemake

if [ ! -x "$home/bin/snakemake" ]; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet -r tests/recipes/snakemake.txt
fi
"$home/bin/pip" install --quiet --no-deps --force-reinstall python/ python/snakemake-storage-plugin-carrack/

work=$(mktemp -d)
export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
mkdir -p "$work"/{state,config,data/project/raw,run}
"$program" serve --root "$work/data" --listen 127.0.0.1:0 --json >"$work/said" 2>"$work/log" &
service=$!
trap 'kill "$service"; wait "$service" || true; rm -rf "$work"' EXIT
until grep -q '"serving"' "$work/said"; do kill -0 "$service"; done
"$program" endpoint add lab "$work/data" --uploads >/dev/null

export CARRACK_PROGRAM=$program
socket=$XDG_STATE_HOME/carrack/service/service.sock
CARRACK_TEST_SOCKET=$socket "$home/bin/pytest" --quiet python/snakemake-storage-plugin-carrack/tests

seq 3 >"$work/data/project/raw/one.txt"
seq 5 >"$work/data/project/raw/two.txt"
workflow() {
    cd "$work/run"
    "$home/bin/snakemake" --snakefile "$recipe" --cores 2 --config place=carrack://lab/project \
        --storage-carrack-service "$socket" 2>&1
}
recipe=$PWD/contrib/recipes/Snakefile
fail() { echo "snakemake: $1" >&2 && cat "$work/out" >&2 && exit 1; }

workflow >"$work/out" || fail "the first run has failed"
[ "$(cat "$work/data/project/report.txt")" = $'3\n5' ] || fail "the report is not what the workflow makes"
workflow >"$work/out" || fail "the second run has failed"
grep -q "Nothing to be done" "$work/out" || fail "the second run does something"
seq 7 >"$work/data/project/raw/two.txt"
workflow >"$work/out" || fail "the third run has failed"
[ "$(cat "$work/data/project/report.txt")" = $'3\n7' ] || fail "the changed input is not in the report"
grep -q "one.txt" "$work/out" && grep -qE "count +1" "$work/out" || fail "the third run does more than it must"
echo "snakemake: the suite of plug-ins, and a workflow of three rules, run three times"
