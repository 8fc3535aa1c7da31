#!/bin/sh
# Before the files go. dpkg says "remove" or "upgrade"; rpm says how many versions will be left: 0, or 1 during an
# upgrade. An upgrade ends nothing.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac

if [ -d /run/systemd/system ]; then
    # A connection would start the service again.
    systemctl stop carrack.socket || true
    # The workers, too: each ends at a point from which its task goes on, if the package comes back.
    systemctl kill --kill-who=all --signal=SIGTERM carrack.service 2>/dev/null || true
    systemctl disable --now carrack.socket carrack.service || true
fi
