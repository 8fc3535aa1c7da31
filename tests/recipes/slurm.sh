#!/usr/bin/env bash
# Runs the recipes of Slurm on a cluster of one node, this host: a copy whose time is over in its midst is queued again
# and resumes, and a job works on the node's own disk. As root; slurmctld, slurmd, munge come from apt-get.
# Three minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${CARRACK_TEST_PROGRAM:-target/debug/carrack}") tree=$PWD
command -v slurmctld slurmd munged >/dev/null ||
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends slurmctld slurmd slurm-client munge

work=$(mktemp -d)
chmod 711 "$work"
mkdir "$work"/{bin,run,spool,state,config,data,ctl}
ln -s "$program" "$work/bin/carrack"
started=()
finish() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done; done
    rm -rf "$work"
}
trap finish EXIT
begin() { # begin NAME COMMAND...: starts a server in the foreground of its own
    local name=$1
    shift
    "$@" >"$work/$name.log" 2>&1 &
    started+=("$!")
}
fail() { echo "slurm: $1" >&2 && tail -n 30 "$work"/*.log "$work"/run/* >&2 && exit 1; }
until_() { # until_ SECONDS COMMAND...: waits until it succeeds
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do [ "$SECONDS" -lt "$end" ] || fail "it does not come: $*" && sleep 0.2; done
}
free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

dd if=/dev/urandom of="$work/key" bs=128 count=1 status=none && chmod 400 "$work/key"
begin munged munged --foreground --force --key-file="$work/key" --socket="$work/munge" --pid-file="$work/munge.pid" \
    --seed-file="$work/seed" --log-file="$work/munge.log"
export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$(free)
SlurmdPort=$(free)
SlurmUser=root
AuthInfo=socket=$work/munge,cred_expire=5
StateSaveLocation=$work/ctl
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
until_ 20 test -S "$work/munge"
begin slurmctld slurmctld -D
begin slurmd slurmd -D
until_ 60 sh -c 'sinfo -h -o %t | grep -q idle'

export XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config PATH=$work/bin:$PATH
begin service carrack serve --root "$work/data" --listen 127.0.0.1:0
until_ 20 test -S "$work/state/carrack/service/service.sock"
carrack endpoint add lab "$work/data" >/dev/null

state() { scontrol -o show job "$1" | sed 's/.*JobState=\([A-Z]*\).*/\1/'; }
has_ended() { [[ $(state "$1") =~ COMPLETED|FAILED|TIMEOUT|CANCELLED ]]; }

# A copy of 70 s in a job of a minute, which Slurm signals 20 to 50 s after it has begun.
head -c 140M /dev/urandom >"$work/large"
job=$(cd "$work/run" && sbatch --parsable --time=1 --signal=B:TERM@10 --output=copy.out --cpus-per-task=1 \
    "$tree/contrib/recipes/copy.sbatch" --bwlimit=2MB --stats=10s "$work/large" @lab:/copied)
until_ 300 has_ended "$job"
[ "$(state "$job")" = COMPLETED ] || fail "the copy has ended as $(state "$job")"
cmp "$work/large" "$work/data/copied" || fail "the copy differs"
grep -q "exit code 75, run 0: queued again" "$work/run/copy.out" || fail "the copy was never stopped"
grep -q "^resumed: .* were there from an earlier attempt" "$work/run/copy.out" || fail "the copy did not resume"

mkdir -p "$work/data/raw" && seq 9 | shuf >"$work/data/raw/numbers"
job=$(cd "$work/run" && sbatch --parsable --output=stage.out \
    "$tree/contrib/recipes/stage.sbatch" @lab:/raw @lab:/results)
until_ 60 has_ended "$job"
[ "$(state "$job")" = COMPLETED ] || fail "the job on the node's own disk has ended as $(state "$job")"
[ "$(cat "$work/data/results/numbers")" = "$(seq 9)" ] || fail "its result is not there"
echo "slurm: a copy was queued again in its midst and resumed; a job worked on the node's own disk"
