#!/bin/sh
# results.sh runs every reader in this directory on every case, and writes the
# results to ../results.html. It needs Go, node with npm, Newsboat, and Python with
# feedparser; PYTHON says which Python, if it is not python3.
set -eu
cd "$(dirname "$0")"
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd ../../cmd/feedhistory && go build -o "$work/feedhistory" .)
(cd ../.. && go build -o "$work/gofeed" ./conformance/runners/gofeed)
(cd feedsmith && npm install --silent --no-package-lock && npx tsc)
PATH=$work:$PATH

# run NUMBER NAME COMMAND... runs one reader.
run() {
	number=$1 name=$2
	shift 2
	echo "$name" >&2
	feedhistory conformance run --json --timeout 2m --name "$name" -- "$@" >"$work/$number.json" || test $? = 1
}

version=$(feedhistory --version)
run 1 "$version, mirrored" ./feedhistory.sh '{url}' '{state}'
run 2 "$version, fetched" feedhistory fetch --allow-private --format json '{url}'
parser="feedparser $($python -c 'import feedparser; print(feedparser.__version__)')"
run 3 "$parser" "$python" feedparser/reader.py '{url}'
run 4 "$parser with feedwalk" "$python" feedparser/feedwalk.py '{url}' '{state}/ledger'
run 5 "feedsmith $(node -p "require('./feedsmith/node_modules/feedsmith/package.json').version") with feedwalk" node feedsmith/dist/feedwalk.js '{url}' '{state}/ledger'
run 6 "gofeed $(cd ../.. && go list -m -f '{{.Version}}' github.com/mmcdole/gofeed) with a loop" gofeed '{url}'
run 7 "$(newsboat --version | sed -n '1s/ - .*//p')" "$python" newsboat.py '{url}' '{state}'
feedhistory conformance page "$work"/?.json >../results.html
