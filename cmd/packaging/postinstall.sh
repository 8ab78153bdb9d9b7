#!/bin/sh
set -e
if ! getent passwd feedhistory >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers feedhistory.conf
	else
		useradd --system --home-dir /var/lib/feedhistory --no-create-home --shell /usr/sbin/nologin feedhistory
	fi
fi
install -d -m 0750 -o feedhistory -g feedhistory /var/lib/feedhistory
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	systemctl try-restart feedhistory.service || true # after an upgrade, if it runs
fi
