#!/bin/sh
# Publishes a feed with its whole history, as a step of a site's build, and checks
# it. The site may be built from nothing: a branch or a permanent directory keeps
# what was published. See README.md.
#
#   FEED_BASE    where FEED_DIR is served, such as https://example.org/feeds/
#   FEED_FROM    what to publish: the feed that the site's generator has written, or
#                a file of JSON lines
#   FEED_DIR     the directory of the built site for the feed's documents
#   FEED_BRANCH  the branch of the repository's origin that keeps them
#   FEED_STATE   or the directory that keeps them; without either, FEED_DIR does
#   FEED_FORMAT  atom (the default) or rss
#   FEED_NAME    the subscription document (feed.atom or feed.rss)
#   FEED_OPTIONS further flags of feedhistory publish, one per line: --title=Ann writes
set -eu

: "${FEED_BASE:?where the feed is served}" "${FEED_FROM:?what to publish}" "${FEED_DIR:?where the feed goes in the site}"
FEED_FORMAT=${FEED_FORMAT:-atom}
FEED_NAME=${FEED_NAME:-feed.$FEED_FORMAT}

# publish publishes into a directory what is new since the last time.
publish() {
	set -- --out="$1" --base="$FEED_BASE" --from="$FEED_FROM" --format="$FEED_FORMAT" --name="$FEED_NAME"
	while read -r option; do
		[ -z "$option" ] || set -- "$@" "$option"
	done <<-END
		${FEED_OPTIONS-}
	END
	feedhistory publish "$@"
}

# copy puts the feed's documents into the site.
copy() {
	mkdir -p "$FEED_DIR"
	(cd "$1" && tar -cf - --exclude=./.git --exclude=./.lock .) | (cd "$FEED_DIR" && tar -xf -)
}

# checkout puts the branch's content into $work. A new feed begins only if there is
# no such branch, not if origin does not answer.
checkout() {
	status=0
	git ls-remote --exit-code --heads origin "refs/heads/$FEED_BRANCH" >/dev/null || status=$?
	case $status in
	0)
		git fetch --quiet --depth=1 origin "refs/heads/$FEED_BRANCH"
		commit=$(git rev-parse FETCH_HEAD)
		;;
	2) commit=$(git $author commit-tree -m 'the feed begins' "$(git hash-object -t tree -w /dev/null)") ;;
	*)
		echo "publish.sh: the branch $FEED_BRANCH cannot be read" >&2
		exit 1
		;;
	esac
	git worktree add --quiet --force --detach "$work" "$commit"
}

cleanup() {
	git worktree remove --force "$work" 2>/dev/null || true
	rm -rf "${work%/feed}"
}

# branch publishes into the branch. If another build was faster, this one publishes
# on top of its documents.
branch() {
	author='-c user.name=feedhistory -c user.email=feedhistory@localhost'
	work=$(mktemp -d)/feed
	trap cleanup EXIT
	for try in 1 2 3 4 5; do
		checkout
		publish "$work"
		git -C "$work" add --all -- . ':!.lock'
		if git -C "$work" diff --cached --quiet; then
			break
		fi
		git -C "$work" $author commit --quiet -m 'publish'
		if git -C "$work" push --quiet origin "HEAD:refs/heads/$FEED_BRANCH"; then
			break
		elif [ "$try" = 5 ]; then
			echo "publish.sh: the branch $FEED_BRANCH cannot be pushed to" >&2
			exit 1
		fi
		cleanup
	done
	copy "$work"
}

if [ -n "${FEED_BRANCH-}" ]; then
	branch
elif [ "${FEED_STATE:-$FEED_DIR}" = "$FEED_DIR" ]; then
	publish "$FEED_DIR"
else
	publish "$FEED_STATE"
	copy "$FEED_STATE"
fi
if [ -e "$FEED_DIR/$FEED_NAME" ]; then # there is none before the first entry
	feedhistory check --chain --base="$FEED_BASE" "$FEED_DIR/$FEED_NAME"
fi
