#!/usr/bin/env bash
# Runs the recipe of Nextflow: input comes from an endpoint, output goes back. Its first copy is stopped as by a
# signal, and tried again. Nextflow comes from Maven Central, into target/nextflow; java and mvn must be there.
# -resume is not tried: the Nextflow that is there finds nothing in its cache, whatever the workflow.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${CARRACK_TEST_PROGRAM:-target/debug/carrack}") home=$PWD/target/nextflow
recipe=$PWD/contrib/recipes/transfer.nf
[ -d "$home" ] || mvn -q -B -f tests/recipes/nextflow.xml dependency:copy-dependencies -DoutputDirectory="$home"

work=$(mktemp -d)
mkdir -p "$work"/{bin,state,config,data/raw,run,home}
cat >"$work/bin/carrack" <<END
#!/bin/sh
# The first copy into a directory is stopped.
[ "\$3" = in ] && mkdir "$work/stopped" 2>/dev/null && exit 75
exec "$program" "\$@"
END
chmod +x "$work/bin/carrack"
export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config PATH=$work/bin:$PATH
export NXF_HOME=$work/home NXF_OFFLINE=true NXF_ANSI_LOG=false
carrack serve --root "$work/data" --listen 127.0.0.1:0 --json >"$work/said" 2>"$work/log" &
service=$!
trap 'kill "$service"; wait "$service" || true; rm -rf "$work"' EXIT
until grep -q '"serving"' "$work/said"; do kill -0 "$service"; done
carrack endpoint add lab "$work/data" >/dev/null

fail() { echo "nextflow: $1" >&2 && cat "$work/out" >&2 && exit 1; }
workflow() {
    cd "$work/run"
    java -cp "$home/*" nextflow.cli.Launcher run "$recipe" --from @lab:/raw --to @lab:/results >"$work/out" 2>&1
}
seq 3 >"$work/data/raw/one"
seq 5 >"$work/data/raw/two"
workflow || fail "it has failed"
[ "$(cat "$work/data/results/one.count" "$work/data/results/two.count")" = $'3\n5' ] || fail "the results are not there"
grep -q "Re-submitted process > fetch" "$work/out" || fail "the copy that was stopped was not tried again"
echo "nextflow: a workflow of three processes, whose first copy was stopped and tried again"
