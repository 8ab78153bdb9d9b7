#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
# Debian's purge removes the feeds and the service's user, too. Other removals keep both.
if [ "${1:-}" = purge ]; then
	rm -rf /var/lib/feedhistory
	if getent passwd feedhistory >/dev/null; then
		userdel feedhistory || true
	fi
fi
