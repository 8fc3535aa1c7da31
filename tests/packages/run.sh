#!/usr/bin/env bash
# Every package as its users meet it: installed on a clean system with its own systemd, used for a copy, a service and
# tasks, upgraded under a running task from the package of the commit before, removed under another, and purged.
#
#   bash tests/packages/run.sh              builds the packages of this commit and of the one before: minutes
#   bash tests/packages/run.sh NEW OLD      takes them from these directories, as `make release` has written them
#
# Needs root. It installs debootstrap, systemd-container and binutils where they are missing. Downloads go into
# target/packages-test; PyPI gives what the wheel depends on.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD home=$PWD/target/packages-test
mkdir -p "$home"
work=$(mktemp -d "${TMPDIR:-/tmp}/carrack-packages.XXXXXX")
# shellcheck source=tests/packages/root.sh
. tests/packages/root.sh
finish() {
    local code=$?
    set +e
    halt
    [ -z "${service:-}" ] || kill "$service" 2>/dev/null
    if [ "$code" = 0 ]; then rm -rf "$work"; else echo "packages: failed; $work has what was left" >&2; fi
}
trap finish EXIT

say() { printf '%s: %s\n' "$kind" "$*"; }
fail() { say "$*" >&2 && exit 1; }
expect() { grep -- "$1" >"$work/found" || fail "no \"$1\" in $2"; }

needs() {
    local missing=()
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    command -v systemd-nspawn >/dev/null || missing+=(systemd-container)
    command -v objdump >/dev/null || missing+=(binutils)
    [ "${#missing[@]}" = 0 ] || { apt-get update -qq && apt-get install -qq -y "${missing[@]}"; } >/dev/null
}

# packages OF TREE: those of a commit, out of a work tree, built in one target directory for both.
packages() {
    (cd "$2" && CARGO_TARGET_DIR="$here/target" make --silent release) >"$work/build.log" 2>&1 ||
        { tail -n 40 "$work/build.log" >&2 && fail "make release in $2"; }
    rm -rf "${home:?}/$1" && cp -a "$2/target/packages" "$home/$1"
}

# slow: submits a task of twenty seconds, and waits until its worker writes.
slow() {
    task=$(inside carrack task submit "@from:/large" "@to:/$1/" --bwlimit 5MB)
    # Its first bytes are there.
    until inside carrack task show "$task" | grep -q 'bytes: [1-9]'; do
        inside carrack task show "$task" | grep -qE 'state: (QUEUED|ACTIVE)' || fail "the task ended: $task"
        sleep 0.2
    done
    worker=$(inside pgrep --uid carrack --full 'carrack worker') || fail "there is no worker of $task"
}

succeeded() {
    inside carrack task wait "$task" --timeout 3m 2>&1 | expect SUCCEEDED "what carrack task wait says"
    inside cmp /srv/data/from/large "/srv/data/to/$1/large" || fail "the copy differs"
}

# What a package is for, on a system that never had it. $install, $remove and $kind say which one.
installed() {
    inside "$@" >"$work/said" 2>&1 || { cat "$work/said" && fail "$*"; }
    expect "systemctl enable --now carrack.socket carrack.service" "what the installation says" <"$work/said"
    inside carrack --version >"$work/version"
    expect "($old_commit) protocol" "carrack --version" <"$work/version"
    expect "agents inside: .*x86_64" "carrack --version" <"$work/version"
    inside getent passwd carrack | expect ":/var/lib/carrack:/usr/sbin/nologin" "the account"
    inside systemctl is-active --quiet carrack.service carrack.socket && fail "it was started without being asked"
    inside systemd-analyze verify carrack.service carrack.socket >"$work/verify" 2>&1 || fail "$(cat "$work/verify")"
    [ ! -s "$work/verify" ] || fail "systemd-analyze verify: $(cat "$work/verify")"
    for file in /usr/share/man/man1/carrack.1.gz /usr/share/man/man1/carrack-copy.1.gz \
        /usr/share/bash-completion/completions/carrack /usr/share/doc/carrack/LICENSE-MIT \
        /usr/share/doc/carrack/LICENSES-OF-OTHERS.txt /usr/share/doc/carrack/docs/usage.md /etc/carrack/carrack.toml; do
        inside test -s "$file" || fail "$file is missing"
    done
    inside bash -c '. /usr/share/bash-completion/bash_completion
        COMP_WORDS=(carrack tas) COMP_CWORD=1 COMP_LINE="carrack tas"
        _completion_loader carrack; $(complete -p carrack | sed "s/.*-F \([^ ]*\).*/\1/") carrack tas carrack
        echo "${COMPREPLY[@]}"' | expect task "what bash completes"
    inside man -P cat carrack-copy | expect "Copy" "man carrack-copy"
    say "installed, and the units verify"
}

copies() {
    inside mkdir -m 1777 /srv/copies
    as nobody carrack copy /usr/share/ /srv/copies/share >"$work/said" 2>&1 || { cat "$work/said" && fail "a copy"; }
    expect "verified: BLAKE3" "the report of a copy" <"$work/said"
    inside diff --no-dereference -r /usr/share /srv/copies/share || fail "the copy differs"
    say "an ordinary user has copied $(inside find /srv/copies/share -type f | wc -l) files"
}

serves() {
    inside sh -c 'install -d -o carrack -g carrack /srv/data /srv/data/from /srv/data/to
        head -c 100M /dev/urandom >/srv/data/from/large && chown carrack: /srv/data/from/large
        mkdir /etc/systemd/system/carrack.service.d
        printf "[Service]\nReadWritePaths=/srv/data\n" >/etc/systemd/system/carrack.service.d/data.conf
        sed -i "s,^# root = .*,root = \"/srv/data\"," /etc/carrack/carrack.toml'
    inside systemctl enable --quiet --now carrack.socket carrack.service || fail "$(inside journalctl -u carrack)"
    inside systemctl show --property=MainPID --value carrack >"$work/main"
    inside stat --format='%U %a %n' /var/lib/carrack /var/lib/carrack/service /run/carrack >"$work/directories"
    expect "^carrack 700 /var/lib/carrack$" "the directories" <"$work/directories"
    expect "^carrack 755 /run/carrack$" "the directories" <"$work/directories"
    inside ps -o user= -p "$(cat "$work/main")" | expect '^carrack$' "ps: whose the service is"
    inside journalctl --unit carrack --output cat | expect "root /srv/data" "the journal"
    inside carrack endpoint add from /srv/data/from >/dev/null
    inside carrack endpoint add to /srv/data/to >/dev/null
    task=$(inside carrack task submit @from:/large @to:/first/)
    succeeded first
    say "the service runs as carrack, writes to the journal, and has done a task"
}

# Under a running task, with connections at its port all the time.
upgraded() {
    slow upgrade
    inside bash -c 'while ! [ -e /run/enough ]; do exec 3<>/dev/tcp/127.0.0.1/7420 || exit 1; exec 3>&-; done' &
    local knocking=$!
    inside "$@" >"$work/said" 2>&1 || { cat "$work/said" && fail "$*"; }
    inside carrack --version | expect "($new_commit) protocol" "carrack --version after the upgrade"
    inside sha256sum /usr/bin/carrack | expect "^$(cat "$work/program.sha256") " "the program: not that of the others"
    inside test -d "/proc/$worker" || fail "the worker did not outlive the upgrade"
    [ "$(inside systemctl show --property=MainPID --value carrack)" != "$(cat "$work/main")" ] ||
        fail "the service is that of before the upgrade"
    inside carrack task show "$task" | expect "state: ACTIVE" "the task after the upgrade"
    inside touch /run/enough
    wait "$knocking" || fail "a connection was refused during the upgrade"
    succeeded upgrade
    inside carrack task show "$task" | expect "attempts: 1," "the task: its worker was not ended"
    inside grep -q '^root = "/srv/data"' /etc/carrack/carrack.toml || fail "the configuration was replaced"
    inside systemctl is-enabled carrack.service carrack.socket >/dev/null || fail "it is not enabled any more"
    say "upgraded under a running task: same worker, one attempt, no connection refused, the configuration is kept"
}

# A configuration that serve does not take: the package is there all the same, and says what to look at.
broken() {
    inside sed -i 's/^\[log\]/[lgo]/' /etc/carrack/carrack.toml
    inside "$@" >"$work/said" 2>&1 || { cat "$work/said" && fail "$*"; }
    expect "did not start again: journalctl" "what an upgrade says whose service does not start" <"$work/said"
    inside sed -i 's/^\[lgo\]/[log]/' /etc/carrack/carrack.toml
    inside systemctl restart carrack.service || fail "$(inside journalctl -u carrack)"
    say "an upgrade whose service does not start says so, and is done"
}

removed() {
    slow removal
    inside "$@" >"$work/said" 2>&1 || { cat "$work/said" && fail "$*"; }
    expect "kept, with all that is in it: /var/lib/carrack" "what the removal says" <"$work/said"
    inside test ! -e /usr/bin/carrack -a ! -e /usr/lib/systemd/system/carrack.service || fail "files were left"
    inside timeout 60 sh -c 'while pgrep --uid carrack >/dev/null; do sleep 0.2; done' || fail "a process was left"
    inside test ! -e /srv/data/to/removal/large || fail "the task was not stopped: it is done"
    inside test -s /var/lib/carrack/service/ledger.db || fail "the ledger is gone"
    say "removed under a running task: nothing runs, the data is kept"
}

# The same package again: the task that was cut off goes on.
back() {
    inside "$@" >"$work/said" 2>&1 || { cat "$work/said" && fail "$*"; }
    inside systemctl enable --quiet --now carrack.socket carrack.service || fail "$(inside journalctl -u carrack)"
    succeeded removal
    inside carrack task show "$task" >"$work/said"
    expect ' 0 bytes sent again' "the task that went on" <"$work/said"
    expect 'attempts: 2,' "the task that went on" <"$work/said"
    [ "$(inside carrack task list --state SUCCEEDED --json | grep -c '"id"')" = 3 ] || fail "a task is missing"
    say "installed again: the task went on where it stood"
}

deb() {
    kind=deb
    boot deb
    cp "$old"/*.deb "$root/root/old.deb" && cp "$new"/*.deb "$root/root/new.deb"
    installed dpkg -i /root/old.deb
    copies
    serves
    upgraded dpkg -i /root/new.deb
    broken dpkg -i /root/new.deb
    removed dpkg -r carrack
    back dpkg -i /root/new.deb
    inside dpkg -P carrack >"$work/said" 2>&1 || fail "$(cat "$work/said")"
    expect "rm -r /var/lib/carrack; userdel carrack" "what the purge says" <"$work/said"
    inside test -s /var/lib/carrack/service/ledger.db -a ! -e /etc/carrack || fail "not what a purge is to leave"
    say "purged: the configuration is gone, and it says what is left"
    inside sh -c 'rm -r /var/lib/carrack && userdel carrack' || fail "what it says to type does not do"
    halt
}

rpm() {
    kind=rpm
    boot rpm
    cp "$old"/*.rpm "$root/root/old.rpm" && cp "$new"/*.rpm "$root/root/new.rpm"
    # Debian has no database of rpms: its glibc is there, and not known.
    installed rpm -i --nodeps /root/old.rpm
    copies
    serves
    upgraded rpm -U --nodeps /root/new.rpm
    broken rpm -U --nodeps --force /root/new.rpm
    removed rpm -e carrack
    inside test -s /etc/carrack/carrack.toml.rpmsave || fail "the changed configuration is not kept"
    inside mv /etc/carrack/carrack.toml.rpmsave /etc/carrack/carrack.toml
    back rpm -i --nodeps /root/new.rpm
    inside rpm -V --nodeps carrack >"$work/said" || ! grep -v ' c /etc/carrack/carrack.toml' "$work/said" ||
        fail "rpm -V: $(cat "$work/said")"
    halt
}

# Without root, in a home directory; and what make install puts where.
tarball() {
    kind=tarball
    boot tarball
    cp "$new"/*.tar.gz "$root/root/new.tar.gz"
    inside useradd --create-home --shell /bin/bash ada
    inside sh -c 'mkdir /home/ada/.local && tar -C /home/ada/.local --strip-components=1 -xf /root/new.tar.gz &&
        chown -R ada: /home/ada'
    as ada env HOME=/home/ada PATH=/home/ada/.local/bin:/usr/bin:/bin bash -euc '
        cd; carrack --version; mkdir data; head -c 5M /dev/urandom >data/one; cp -r .local/share data/
        carrack copy data/ copied >/dev/null; diff -r data copied
        carrack serve --root data --listen 127.0.0.1:0 >said 2>log & service=$!
        until grep -q "to submit a task" said; do kill -0 $service; done
        carrack endpoint add home ~/data >/dev/null
        carrack task submit @home:/one @home:/two/ --wait; cmp data/one data/two/one
        kill $service; wait $service' >"$work/said" 2>&1 || { cat "$work/said" && fail "as a user without root"; }
    expect "($new_commit) protocol" "carrack --version" <"$work/said"
    expect SUCCEEDED "the task of a user without root" <"$work/said"
    say "unpacked into a home: a copy, a service, a task"
    inside tar -tf /root/new.tar.gz | sed -n 's,^carrack-[^/]*/,,p' | grep -v '/$' | sort >"$work/in-tarball"
    dpkg-deb --fsys-tarfile "$new"/*.deb | tar -t | sed -n 's,^\./usr/,,p' | sed 's,\.gz$,,' |
        sed 's,zsh/vendor-completions,zsh/site-functions,' | grep -v '/$' | grep -v '/copyright$' | sort >"$work/in-deb"
    diff "$work/in-tarball" "$work/in-deb" || fail "tarball and deb have not the same files"
    halt
}

# As in an account without Rust. The service of the test is the program of the wheel.
wheel() {
    kind=wheel
    mkdir "$work/wheel"
    (
        cd "$work/wheel"
        clean() { env -i HOME="$work/wheel" PATH="$work/wheel/venv/bin:/usr/bin:/bin" "$@"; }
        clean /usr/bin/python3 -m venv venv
        clean pip install --quiet --disable-pip-version-check "$(echo "$old"/*.whl)[fsspec]"
        clean sh -c '! command -v cargo && ! command -v rustc' || fail "there is Rust"
        clean carrack --version | expect "($old_commit) protocol" "carrack --version"
        clean python "$here/tests/packages/wheel.py" "$(echo "$new"/*.whl)"
        clean carrack --version | expect "($new_commit) protocol" "carrack --version after the upgrade"
        clean pip uninstall --quiet --yes carrack
        [ ! -e venv/bin/carrack ] || fail "the program is still there"
        [ -s .local/state/carrack/service/ledger.db ] || fail "the ledger is gone"
    ) || fail "it failed"
    say "in an environment without Rust: copy, service, task, files by fsspec, upgraded under a task, removed"
}

# What holds of all of them.
alike() {
    kind=all
    (cd "$new" && sha256sum --quiet --check SHA256SUMS) || fail "SHA256SUMS"
    mkdir "$work/alike"
    (
        cd "$work/alike"
        mkdir deb tarball wheel
        dpkg-deb --extract "$new"/*.deb deb
        tar -C tarball --strip-components=1 -xf "$new"/*.tar.gz
        python3 -m zipfile -e "$new"/*.whl wheel
        # That of the rpm is compared where it is installed.
        sha256sum deb/usr/bin/carrack tarball/bin/carrack wheel/carrack-*.data/scripts/carrack
    ) | cut -d' ' -f1 | sort | uniq -c | grep -q ' 3 ' || fail "they have not all the same program"
    sha256sum "$work/alike/deb/usr/bin/carrack" | cut -d' ' -f1 >"$work/program.sha256"
    objdump -T "$work/alike/deb/usr/bin/carrack" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1 >"$work/glibc"
    [ "$(printf 'GLIBC_2.17\n%s\n' "$(cat "$work/glibc")" | sort -V | tail -n 1)" = GLIBC_2.17 ] ||
        fail "the program needs $(cat "$work/glibc")"
    target/packages-tools/bin/auditwheel show "$new"/*.whl | expect 'manylinux_2_17_x86_64\|manylinux2014' auditwheel
    python3 - "$new"/*.cdx.json <<'END' || fail "the bill of materials"
import json, sys
bill = json.load(open(sys.argv[1]))
names = {part["name"] for part in bill["components"]}
assert bill["bomFormat"] == "CycloneDX" and {"rustls", "libsqlite3-sys", "preact"} <= names, names
END
    say "one program in all, which needs $(cat "$work/glibc"); checksums, bill of materials, manylinux2014"
}

[ "$(id -u)" = 0 ] || { echo "packages: this needs root" >&2 && exit 2; }
needs
kind=build
if [ $# = 2 ]; then
    new=$(realpath "$1") old=$(realpath "$2")
else
    git worktree add --quiet --detach "$work/before" HEAD~1
    packages old "$work/before"
    git worktree remove --force "$work/before"
    packages new "$here"
    new=$home/new old=$home/old
fi
# The commit in the brackets of `carrack -V`.
commit() {
    dpkg-deb --fsys-tarfile "$1"/*.deb | tar -xO ./usr/bin/carrack >"$work/program"
    chmod +x "$work/program"
    "$work/program" -V | sed 's/^[^(]*(\(.*\)) protocol.*/\1/'
}
old_commit=$(commit "$old") new_commit=$(commit "$new")
[ "$old_commit" != "$new_commit" ] || fail "both packages are of $new_commit"
say "from $old_commit to $new_commit"
alike
wheel
base
deb
rpm
tarball
