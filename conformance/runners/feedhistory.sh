#!/bin/sh
# feedhistory itself: feedhistory.sh URL STATE
# It polls the feed into a database, and prints all that the database has of it.
# CONFORMANCE_DUE=0 means that the feed is polled only if it is due.
if [ "${CONFORMANCE_DUE:-1}" = 0 ] && [ -e "$2/feeds.db" ]; then
	feedhistory sync --allow-private --db "$2/feeds.db" --json
else
	feedhistory sync --allow-private --db "$2/feeds.db" --json "$1"
fi
feedhistory entries --db "$2/feeds.db" --json
