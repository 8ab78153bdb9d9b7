#!/bin/sh
# No generator: a directory of Markdown, and whatever makes pages of it.
set -eu
cd "$(dirname "$0")"
PATH=$PATH:../../action:. # where publish.sh is, in the repository or beside this file
mkdir -p public
FEED_BASE=https://example.org/feeds/ FEED_FROM=posts FEED_DIR=public/feeds \
	FEED_OPTIONS='--size=2
--title=Ann writes
--author=Ann
--link=https://example.org/{path}/' publish.sh
