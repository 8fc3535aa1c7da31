#!/usr/bin/env bash
# `make bench`: builds the release if it is missing, says what this host lacks, and measures. Arguments go to bench.py.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

missing=0
need() { # program, what cannot be done without it, package
    command -v "$1" >/dev/null && return
    echo "missing: $1 (package $3): $2" >&2
    missing=1
}
need ssh "no peer over ssh can be measured" openssh-client
need sshd "no peer over ssh can be measured" openssh-server
need ssh-keygen "no peer over ssh can be measured" openssh-client
need scp "scp is left out" openssh-client
need rsync "rsync is left out" rsync
need tar "tar over ssh is left out" tar
need iperf3 "iperf3 is left out" iperf3
need globus-gridftp-server "GridFTP is left out" globus-gridftp-server-progs
need globus-url-copy "GridFTP is left out" globus-gass-copy-progs
need xrootd "XRootD is left out" xrootd-server
need xrdcp "XRootD is left out" xrootd-client
need rclone "rclone is left out" rclone
need fio "the rate of a disk is measured by dd alone" fio
need ip "nothing is measured over a link" iproute2
if [ "$missing" != 0 ]; then
    echo "the others are measured; to have all: apt-get install openssh-client openssh-server rsync tar iperf3" \
        "globus-gridftp-server-progs globus-gass-copy-progs xrootd-server xrootd-client rclone fio iproute2" >&2
fi

fatal=0
for program in python3 cmp diff; do
    command -v "$program" >/dev/null || { echo "missing: $program, nothing can be measured without it" >&2; fatal=1; }
done
[ "$fatal" = 0 ] || exit 2

[ "$(id -u)" = 0 ] || echo "not root: all servers run as this user, and nothing is measured over a link" >&2
writable=0
for base in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpuacct; do
    [ -f "$base/cgroup.procs" ] && [ -w "$base/cgroup.procs" ] && writable=1
done
[ "$writable" = 1 ] || echo "no cgroup can be made here: CPU seconds come from resource usage, in steps of 10 ms, and may miss some" >&2

case " $* " in
    *" --carrack"* | *" --list "* | *" --help "* | *" -h "*) ;;
    *) [ -x target/release/carrack ] || make program ;;
esac
case " $* " in
    *" --link"* | *" --list "* | *" --help "* | *" -h "*) ;;
    *) [ -x target/release/carrack-link ] || cargo build --release --locked -p carrack-faults --bin carrack-link ;;
esac
exec python3 bench/bench.py "$@"
