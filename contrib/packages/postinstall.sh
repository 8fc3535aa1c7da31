#!/bin/sh
# After the files are there. dpkg says "configure", and the version that was there before; rpm says how many versions
# there are now: 1, or 2 during an upgrade.
set -e

case "$1" in
configure) if [ -n "$2" ]; then was_there=yes; else was_there=no; fi ;;
1) was_there=no ;;
2) was_there=yes ;;
*) exit 0 ;; # dpkg has given something up
esac

if ! getent passwd carrack >/dev/null && command -v systemd-sysusers >/dev/null; then
    systemd-sysusers carrack.conf || true
fi
# Where systemd is not there, or too old.
getent passwd carrack >/dev/null ||
    useradd --system --user-group --home-dir /var/lib/carrack --no-create-home --shell /usr/sbin/nologin carrack

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # Tasks go on in processes of their own meanwhile; the socket keeps connections waiting. One that does not start
    # is no reason to leave the package half installed.
    systemctl try-restart carrack.service ||
        echo "carrack: the service did not start again: journalctl -u carrack says why" >&2
fi

if [ "$was_there" = no ]; then
    echo "carrack: the service is not started by itself: systemctl enable --now carrack.socket carrack.service"
fi
