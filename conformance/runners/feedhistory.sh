#!/bin/sh
# feedhistory itself: feedhistory.sh URL STATE
# It polls the feed into a database, and prints all that the database has of it.
feedhistory sync --allow-private --db "$2/feeds.db" --json "$1"
feedhistory entries --db "$2/feeds.db" --json
