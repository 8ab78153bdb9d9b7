#!/bin/sh
# Eleventy writes all.xml, a feed of everything; what readers get is feeds/feed.atom.
set -eu
cd "$(dirname "$0")"
PATH=$PATH:../../action:. # where publish.sh is, in the repository or beside this file
npx --no-install eleventy --quiet
FEED_BASE=https://example.org/feeds/ FEED_FROM=_site/all.xml FEED_DIR=_site/feeds FEED_OPTIONS=--size=2 publish.sh
