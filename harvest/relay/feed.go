// Package relay serves a mirror's feed again, by the sibling protocols of RFC 5005:
//
//	feed := relay.Upstream{Store: store, URL: "https://example.org/feed.atom"}
//	http.Handle("/pmh/", http.StripPrefix("/pmh", feed.AtomPMH("https://mirror.example/pmh/")))
//	http.Handle("/range", feed.ModifiedRange())
//
// The mirror may go on changing: each answer shows the store as it is. An entry is given
// out with the time of its last change in the mirror, not with its own: consumers look for
// later times only, and a mirror also receives entries with old ones.
package relay

import (
	"context"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// An Upstream is the mirrored feed to serve. Both fields must be set.
type Upstream struct {
	Store mirror.Store
	URL   string
}

// stampOf returns the time of a record's last change, to the second, with the number of the
// change as nanoseconds. So changes have times in their order, and those of one commit have
// the same time. It relies on Record.Changed never decreasing.
func stampOf(r *mirror.Record) time.Time {
	return r.Changed.UTC().Truncate(time.Second).Add(time.Duration(r.LastCommit) % time.Second)
}

// recent returns the records changed within a range of stamps, most recently changed first.
func (f Upstream) recent(ctx context.Context, start, end time.Time, limit int) (found []*mirror.Record, err error) {
	if f.Store == nil {
		return nil, errors.New("relay: Feed.Store must be set")
	}
	state, err := f.Store.Feed(ctx, f.URL)
	if err != nil {
		return nil, err
	}
	after, upTo := int64(0), state.Commits
	if !start.IsZero() {
		if after, err = f.versionBefore(ctx, start, upTo); err != nil {
			return nil, err
		}
	}
	if !end.IsZero() {
		if upTo, err = f.versionBefore(ctx, end, upTo); err != nil {
			return nil, err
		}
	}
	q := mirror.Query{
		Feed: f.URL, AfterCommit: &after, Latest: true, Every: true, Limit: limit, Beyond: &mirror.Place{Commit: upTo + 1},
	}
	for r, err := range f.Store.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// versionBefore returns a version of the feed: the changes up to it have stamps before a
// time, and the others have not.
func (f Upstream) versionBefore(ctx context.Context, at time.Time, last int64) (int64, error) {
	low, high := int64(0), last
	for low < high {
		middle := low + (high-low)/2
		next, err := f.after(ctx, middle)
		switch {
		case err != nil:
			return 0, err
		case next == nil || !stampOf(next).Before(at):
			high = middle
		default:
			low = min(next.LastCommit, high)
		}
	}
	return low, nil
}

// after returns the first record changed after a version; nil if there is none.
func (f Upstream) after(ctx context.Context, version int64) (*mirror.Record, error) {
	q := mirror.Query{Feed: f.URL, AfterCommit: &version, Every: true, Limit: 1}
	for r, err := range f.Store.Entries(ctx, q) {
		return r, err
	}
	return nil, nil
}

// now returns the time by the clock of the stamps: that of the latest change, because later
// ones may still get times before the present. It is the epoch while there is none.
func (f Upstream) now(ctx context.Context) time.Time {
	latest, err := f.recent(ctx, time.Time{}, time.Time{}, 1)
	if err != nil || len(latest) == 0 {
		return time.Unix(0, 0)
	}
	return stampOf(latest[0])
}
