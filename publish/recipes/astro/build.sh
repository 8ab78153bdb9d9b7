#!/bin/sh
# Astro writes all.xml, a feed of everything; what readers get is feeds/feed.atom.
set -eu
cd "$(dirname "$0")"
PATH=$PATH:../../action:. # where publish.sh is, in the repository or beside this file
ASTRO_TELEMETRY_DISABLED=1 npx --no-install astro build --silent
FEED_BASE=https://example.org/feeds/ FEED_FROM=dist/all.xml FEED_DIR=dist/feeds FEED_OPTIONS=--size=2 publish.sh
