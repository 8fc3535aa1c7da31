#!/usr/bin/env bash
# The main job on real input: two nodes on loopback, a tree of thousands of files and one large file, copied there, from node to
# node, and back; then compared by programs that know nothing of Carrack.
set -euo pipefail
cd "$(dirname "$0")/.."
carrack=$PWD/target/release/carrack
tree=${CARRACK_DEMO_TREE:-/usr/share}
large_bytes=${CARRACK_DEMO_LARGE:-2G}
# They are the demo's own: carrack notes variables of this form that it does not know.
unset CARRACK_DEMO_TREE CARRACK_DEMO_LARGE

work=$(mktemp -d "${TMPDIR:-/tmp}/carrack-demo.XXXXXX")
nodes=()
finish() {
    # Transfers outlive the service: what the demo has not waited for ends with it.
    [ -z "${service:-}" ] || "$carrack" task cancel --all >/dev/null 2>&1 || true
    for pid in "${nodes[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state

say() { printf '\n== %s\n' "$*"; }

head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/token"
chmod 600 "$work/token"

# A node prints where it listens and its key's fingerprint; both are taken from there.
start_node() {
    mkdir "$work/$1"
    mkfifo "$work/$1.said"
    "$carrack" serve --node-only --root "$work/$1" --listen 127.0.0.1:0 --token-file "$work/token" --key-file "$work/$1.key" >"$work/$1.said" &
    nodes+=($!)
    exec {said}<"$work/$1.said"
    local line address='' fingerprint=''
    while [ -z "$fingerprint" ] && read -r -u "$said" line; do
        case $line in
            'listening on '*) address=${line#listening on } ;;
            'fingerprint '*) fingerprint=${line#fingerprint } ;;
        esac
    done
    # Kept for this node, and shown to no other.
    "$carrack" token add "$address" "$work/token"
    eval "$1_at() { printf 'carrack://%s/%s%s' '$address' \"\$1\" '$fingerprint'; }"
}

say "two nodes on loopback, each with a key of its own and one token"
start_node one
start_node two

say "the tree $tree to the first node, encrypted and verified"
mkdir "$work/back"
status=0
"$carrack" "$tree" "$(one_at '')" || status=$?
# 23: some entries (sockets, or files that this user may not read) were left out, and named above.
[ "$status" = 0 ] || [ "$status" = 23 ] || exit "$status"

say "from the first node straight to the second, the bytes not passing through this command"
"$carrack" "$(one_at "$(basename "$tree")")" "$(two_at '')"

say "and back from the second"
"$carrack" "$(two_at "$(basename "$tree")")" "$work/back"

say "one file of $large_bytes, made where it is read, to the first node and back"
"$carrack" "random:$large_bytes" "$(one_at large)" --manifest "$work/large.b3"
"$carrack" "$(one_at large)" "$work/back/large"

say "compared by diff, sha256sum and b3sum"
if [ "$status" = 0 ]; then
    diff -r --no-dereference "$tree" "$work/back/$(basename "$tree")"
    echo "diff -r: the tree that came back is the tree that left"
fi
diff -r --no-dereference "$work/one/$(basename "$tree")" "$work/back/$(basename "$tree")"
echo "diff -r: both nodes and the copy that came back agree"
here=$(sha256sum <"$work/one/large")
there=$(sha256sum <"$work/back/large")
[ "$here" = "$there" ]
echo "sha256sum: the large file is the same at both places: ${here%% *}"
if command -v b3sum >/dev/null; then
    (cd "$work/one" && b3sum --check "$work/large.b3")
else
    echo "b3sum is not installed: the manifest $(cut -c1-16 "$work/large.b3")... was not checked by it"
fi
say "the same by a service: a task between the two nodes, which goes on whatever happens to this terminal"
mkfifo "$work/service.said"
"$carrack" serve --listen 127.0.0.1:0 >"$work/service.said" 2>"$work/service.log" &
service=$!
nodes+=($service)
exec {said}<"$work/service.said"
while read -r -u "$said" line; do
    case $line in
        'service '*) echo "$line" ;;
        'to submit a task: '*) break ;;
    esac
done
for node in one two; do
    "$carrack" endpoint add "$node" "$("${node}_at" '')" --token-file "$work/token"
done
task=$("$carrack" task submit "@one:/$(basename "$tree")" "@two:/by-a-task/" --label demo)
code=0
"$carrack" task wait "$task" --timeout 10m || code=$?
# 23: PARTIAL, as above.
[ "$code" = 0 ] || [ "$code" = 23 ] || { cat "$work/service.log" >&2; exit "$code"; }
diff -r --no-dereference "$work/one/$(basename "$tree")" "$work/two/by-a-task/$(basename "$tree")"
echo "diff -r: what the task brought is what the first node has"
say "where to look at a task"
for verb in show events; do
    echo "\$ carrack task $verb $task"
    "$carrack" task "$verb" "$task"
done
echo "\$ carrack task items $task | head -3"
"$carrack" task items "$task" | head -3 || true
say "done"
