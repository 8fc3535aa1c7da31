#!/usr/bin/env bash
# What of the packages can be tested in seconds: `make install` and uninstall, what nfpm makes of it, units, account,
# example of a configuration, metadata of the wheel, targets of the Makefile. The program is a stand-in that calls the
# built one. tests/packages/run.sh installs real packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${CARRACK_TEST_PROGRAM:-target/debug/carrack}") tools=$PWD/target/packages-tools
unset CARRACK_TEST_PROGRAM # the program names variables of this form that it does not know
bash xtask/install-tools.sh "$tools" packages.txt
work=$(mktemp -d "${TMPDIR:-/tmp}/carrack-packages.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "packages: $*" >&2 && exit 1; }

printf '#!/bin/sh\nexec "%s" "$@"\n' "$program" >"$work/carrack"
chmod 700 "$work/carrack"
(umask 077 && make --silent install PROGRAM="$work/carrack" DESTDIR="$work/tree" PREFIX=/usr)
unreadable=$(find "$work/tree/usr" ! -perm -o=r)
[ -z "$unreadable" ] || fail "make install under umask 077 leaves what others cannot read: $unreadable"
make --silent install PROGRAM="$work/none" DESTDIR="$work/none" 2>"$work/said" && fail "nothing was there to install"
grep -q "make program" "$work/said" || fail "make install does not say what to do first: $(cat "$work/said")"

# Every file that nfpm.yaml names is there, or it says so. Manual and documents are many, and come and go.
mkdir "$work/out"
for packager in deb rpm; do
    TREE=$work/tree VERSION=0.0.1~test ARCH=amd64 "$tools/bin/nfpm" package --packager "$packager" \
        --config contrib/packages/nfpm.yaml --target "$work/out" >"$work/said" || fail "$(cat "$work/said")"
done
listed() { sed -n 's,^\./,/,p' | grep -v '/$' | grep -v -e /man1/ -e /doc/carrack/docs/ | LC_ALL=C sort; }
dpkg-deb --fsys-tarfile "$work"/out/*.deb | tar -t | listed >"$work/files"
diff tests/packages/files.txt "$work/files" || fail "tests/packages/files.txt has other files than the deb"
[ "$(dpkg-deb --field "$work"/out/*.deb Version)" = 0.0.1~test-1 ] || fail "the deb has another version"
[ "$(dpkg-deb --info "$work"/out/*.deb conffiles)" = /etc/carrack/carrack.toml ] || fail "conffiles"
for script in contrib/packages/*.sh; do
    sh -n "$script"
    # What neither dpkg nor rpm says at this place has no effect, and is no error.
    PATH=/nowhere /bin/sh "$script" abort-upgrade || fail "$script abort-upgrade"
done

# make install to another place changes the unit's program, and nothing else; uninstall takes back all of it.
make --silent install PROGRAM="$work/carrack" DESTDIR="$work/local"
diff <(sed 's,/usr/bin,/usr/local/bin,' contrib/systemd/carrack.service) \
    "$work/local/usr/local/lib/systemd/system/carrack.service" || fail "the unit of /usr/local"
make --silent uninstall DESTDIR="$work/local"
left=$(find "$work/local" ! -type d)
[ -z "$left" ] || fail "make uninstall leaves $left"

if command -v systemd-analyze >/dev/null && command -v systemd-sysusers >/dev/null; then
    sed "s,/usr/bin/carrack,$work/carrack," contrib/systemd/carrack.service >"$work/carrack.service"
    cp contrib/systemd/carrack.socket "$work"
    # A man page of a program that is not installed is no fault of the unit.
    systemd-analyze verify --man=no "$work/carrack.service" "$work/carrack.socket" >"$work/said" 2>&1 || true
    ! grep -F -e carrack "$work/said" || fail "systemd-analyze verify"
    mkdir "$work/tree/etc"
    systemd-sysusers --root="$work/tree" 2>"$work/said" || fail "$(cat "$work/said")"
    grep -q '^carrack:.*:/var/lib/carrack:/usr/sbin/nologin$' "$work/tree/etc/passwd" || fail "the account"
else
    echo "packages: not verified: units and account (systemd is not there)" >&2
fi

# The example as it is, and with each of its lines in force, is taken; it has every key.
example=contrib/packages/carrack.toml
sed 's/^# \([a-z_]* = \)/\1/' "$example" >"$work/carrack.toml"
sed -i "s,/etc/carrack/,$work/," "$work/carrack.toml"
for name in tls.crt tls.key node.token; do echo none >"$work/$name"; done
for file in "$example" "$work/carrack.toml"; do
    "$program" service config check --config "$file" >"$work/said" 2>&1 || fail "$file: $(cat "$work/said")"
done
diff <(sed -n 's/^# \([a-z_]*\) = .*/\1/p' "$example" | sort) \
    <(sed -n '/^## Keys/,/^## An example/s/^| `\([a-z_]*\)` .*/\1/p' docs/configuration.md | sort) ||
    fail "$example and docs/configuration.md have not the same keys"

python3 - <<'END'
import pathlib, re, tomllib

# Both wheels are one package: with the program, and without.
names = ("pyproject.toml", "python/pyproject.toml")
whole, pure = (tomllib.loads(pathlib.Path(name).read_text())["project"] for name in names)
for key in sorted(whole.keys() | pure.keys()):
    if key not in ("description", "readme", "license-files"):
        assert whole.get(key) == pure.get(key), f"pyproject.toml and python/pyproject.toml: {key}"

# Targets: each is declared, explained by `make help`, and there where a document names it.
makefile = pathlib.Path("Makefile").read_text()
targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.M))
declared = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
assert targets == declared, targets ^ declared
pages = [*pathlib.Path(".").glob("*.md"), *pathlib.Path("docs").glob("*.md")]
for page in pages:
    for target in re.findall(r"(?:`|^    |sudo )make ([a-z]+)\b(?! [a-z])", page.read_text(), re.M):
        assert target in targets, f"{page}: make {target}"
END
echo "packages: make install, nfpm, units, configuration, metadata and targets are as they should be"
