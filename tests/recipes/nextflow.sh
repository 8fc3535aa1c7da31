#!/usr/bin/env bash
# Runs the recipe of Nextflow: input comes from an endpoint, output goes back. Its first copy is stopped as by a
# signal, and tried again; with -resume a second run copies nothing, and a third what a failed one lacked. Nextflow
# comes from Maven Central, into target/nextflow; java and mvn must be there.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${CARRACK_TEST_PROGRAM:-target/debug/carrack}") home=$PWD/target/nextflow
unset CARRACK_TEST_PROGRAM
recipe=$PWD/contrib/recipes/transfer.nf
[ -d "$home" ] || mvn -q -B -f tests/recipes/nextflow.xml dependency:copy-dependencies -DoutputDirectory="$home"

work=$(mktemp -d)
mkdir -p "$work"/{bin,state,config,data/raw,run,home}
cat >"$work/bin/carrack" <<END
#!/bin/sh
echo "\$*" >>"$work/calls"
# The first copy into a directory is stopped.
[ "\$3" = in ] && mkdir "$work/stopped" 2>/dev/null && exit 75
# Results go nowhere while this is there.
[ "\$2" = --copy-links ] && [ -e "$work/closed" ] && exit 77
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
# As Nextflow's own launcher does: without these its cache remembers nothing, and -resume does all again.
opens=(java.{lang,lang.invoke,io,nio,net,util,util.concurrent,util.concurrent.atomic} sun.nio.{ch,fs}
    sun.net.www.protocol.{http,https,ftp,file} jdk.internal.{misc,vm})
opens=("${opens[@]/#/--add-opens=java.base/}")
opens=("${opens[@]/%/=ALL-UNNAMED}")
workflow() {
    cd "$work/run"
    : >"$work/calls"
    java "${opens[@]}" -cp "$home/*" nextflow.cli.Launcher run "$recipe" -resume \
        --from @lab:/raw --to "$1" >"$work/out" 2>&1
}
copies() { grep -c '^copy' "$work/calls" || true; }
seq 3 >"$work/data/raw/one"
seq 5 >"$work/data/raw/two"
workflow @lab:/results || fail "it has failed"
[ "$(cat "$work/data/results/one.count" "$work/data/results/two.count")" = $'3\n5' ] || fail "the results are not there"
grep -q "Re-submitted process > fetch" "$work/out" || fail "the copy that was stopped was not tried again"
[ "$(copies)" = 3 ] || fail "$(copies) copies: one that was stopped, one again, and that of the results were to be"
workflow @lab:/results || fail "the second run has failed"
[ "$(copies)" = 0 ] || fail "the second run has copied: $(cat "$work/calls")"
# A run whose results cannot be sent, and the same again: nothing is fetched anew.
touch "$work/closed"
! workflow @lab:/others || fail "results were sent that could not be"
rm "$work/closed"
workflow @lab:/others || fail "the run that was resumed has failed"
[ "$(copies)" = 1 ] || fail "the run that was resumed has copied: $(cat "$work/calls")"
[ "$(cat "$work/data/others/one.count" "$work/data/others/two.count")" = $'3\n5' ] || fail "the results are not there"
echo "nextflow: a workflow whose first copy was stopped and tried again; resumed, it copies what is missing alone"
