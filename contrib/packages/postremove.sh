#!/bin/sh
# After the files are gone. dpkg says "remove", then "purge" if that was asked for, or "upgrade"; rpm says how many
# versions are left.
set -e

case "$1" in
remove | purge | 0) ;;
*) exit 0 ;;
esac

[ ! -d /run/systemd/system ] || systemctl daemon-reload
if [ "$1" = purge ]; then
    rmdir /etc/carrack 2>/dev/null || true
fi

# Nobody but the administrator knows whether the files that the node serves are wanted.
left=
for directory in /var/lib/carrack /etc/carrack; do
    [ ! -e "$directory" ] || left="$left $directory"
done
if [ -n "$left" ]; then
    echo "carrack: kept, with all that is in it:$left"
    echo "carrack: to remove it, and the account: rm -r$left; userdel carrack"
elif getent passwd carrack >/dev/null; then
    echo "carrack: kept: the account carrack (userdel carrack)"
fi
