#!/bin/sh
set -e
# An upgrade keeps the services: Debian calls with "upgrade", Fedora with 1.
case "${1:-}" in upgrade | 1) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now feedhistory.service feedhistory-sync.timer || true
fi
