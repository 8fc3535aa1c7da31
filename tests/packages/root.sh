# shellcheck shell=bash disable=SC2154
# Clean systems for tests of packages: Debian in a directory, booted with its own systemd. Needs root, debootstrap and
# systemd-nspawn. What is sourced here expects $home (kept from run to run) and $work (of this run).

# A small Debian, once. rpm is there to install packages of its kind beside those of dpkg: nothing of Debian is an rpm.
base() {
    [ -e "$home/base.done" ] && return
    rm -rf "$home/base"
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,rpm,procps,bash-completion,man-db \
        bookworm "$home/base" >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2 && return 1; }
    touch "$home/base.done"
}

# boot NAME: a fresh copy of it, started. It has a loopback interface of its own and no other.
boot() {
    root=$work/$1
    cp -a "$home/base" "$root"
    systemd-nspawn --quiet --register=no --keep-unit --private-network --resolv-conf=off --link-journal=no \
        --boot --directory "$root" </dev/null >"$work/$1.console" 2>&1 &
    container=$!
    until leader=$(pgrep --parent "$container" --exact systemd) && inside systemctl is-system-running --quiet 2>/dev/null; do
        kill -0 "$container" || { cat "$work/$1.console" >&2 && return 1; }
        sleep 0.2
    done
}

# inside COMMAND...: in the system that was booted last, as its root, with nothing of this one's environment.
inside() {
    nsenter --all --target "$leader" -- env -i HOME=/root LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# as USER COMMAND...: the same, as another account.
as() {
    local user=$1
    shift
    inside runuser --user "$user" -- "$@"
}

# Nothing of it is wanted any more: its first process takes all others with it.
halt() {
    [ -n "${container:-}" ] || return 0
    kill -KILL "${leader:-$container}" 2>/dev/null || true
    wait "$container" 2>/dev/null || true
    container='' leader=''
}
