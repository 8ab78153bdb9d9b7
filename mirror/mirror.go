package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Mirror keeps the feeds in a Store current. Only Store must be set. Several
// mirrors, also in different processes, may share one: where two are at work on
// the same feed, one gives way with ErrConflict.
//
// A Mirror must not be copied or changed after its first use. Many goroutines
// may use it at the same time.
type Mirror struct {
	Store  Store
	Client *feedhistory.Client // makes the requests; nil: one with the default settings

	// ClientFor returns the client for a feed that needs one of its own, such as a
	// Clone of Client with Credentials. Nil, or if it returns nil: Client. It may be
	// called by several goroutines.
	ClientFor func(feed string) *feedhistory.Client

	// Every is the time between two polls of a feed, if it does not ask for
	// more. Zero: an hour.
	Every time.Duration

	// Versions is how many earlier versions of an entry are kept. Zero: 10;
	// negative: none.
	Versions int

	// Revalidate has an Update ask for every archive document anew, by
	// conditional requests, also where an earlier try gave little hope. A Budget
	// bounds that, too, and the next Update begins again.
	Revalidate bool

	Quota Quota // of each feed

	client feedhistory.Client // if Client is nil
}

// Changes are what a poll of a feed came to.
type Changes struct {
	URL     string              // of the feed, as it was subscribed to
	Kind    feedhistory.Kind    // as its subscription document says
	Verdict feedhistory.Verdict // on the mirror as it now stands
	AsOf    time.Time           // of when that is, where it is Whole by a server's count: see Feed; else zero

	Added, Changed, Deleted int // entries

	Documents int // that were read to their end
	Altered   int // archive documents of those whose entries are no longer what they were (5005#9)

	// Failure says why there is no subscription document, or only a damaged one
	// whose entries count all the same: the error of Client.Get, or a *WaitError if
	// the host has asked to be left alone, so that nothing was requested. Nil:
	// there is one. Feed.Failures counts them, but for a *WaitError.
	Failure error

	Gaps []*feedhistory.Gap // what is missing, as it now stands
	Next time.Time          // when the next poll is welcome; zero: at any time, but none of an Alias
	More bool               // the Budget ended the poll: the next one goes on where it did

	// Moved is where the feed is asked for from now on, where permanent redirects
	// lead, or, where that has failed for good, the URL once more. "": as before.
	Moved string
	Alias string // the mirrored feed that this one has become; "" if it is none. See Feed.Alias
	Gone  bool   // the publisher has withdrawn the feed (410)
}

// Update polls a feed, which becomes one of the Store's if it is not yet.
//
// The error is the Store's or the context's. What was read until then is in the
// Store, and in the changes, which are nil only if the Store could not be read.
// A subscription document that could not be read is no error of the mirror: it is
// Changes.Failure. Whatever else could not be read is among the Gaps.
func (m *Mirror) Update(ctx context.Context, url string) (*Changes, error) {
	p, err := m.begin(ctx, url)
	if err != nil {
		return nil, err
	}
	defer p.await()
	if p.feed.Waits(p.now) {
		p.failure = &WaitError{URL: p.feed.URL, Until: p.feed.Wait}
		return p.report(), nil
	}
	p.polls, p.feed.Wait = true, time.Time{}
	if err := p.walks(); err != nil {
		return p.stop(err)
	}
	return p.finish()
}

// clientFor is the client that requests a feed.
func (m *Mirror) clientFor(feed string) *feedhistory.Client {
	if m.ClientFor != nil {
		if own := m.ClientFor(feed); own != nil {
			return own
		}
	}
	return m.http()
}

func (m *Mirror) http() *feedhistory.Client {
	if m.Client != nil {
		return m.Client
	}
	return &m.client
}

func (m *Mirror) every() time.Duration { return cmp.Or(m.Every, time.Hour) }

// keep is how many versions the store is to keep.
func (m *Mirror) keep() int { return max(cmp.Or(m.Versions, 10), 0) }

// begin begins a poll.
func (m *Mirror) begin(ctx context.Context, url string) (*poll, error) {
	url = withoutFragment(strings.TrimSpace(url))
	feed, err := m.Store.Feed(ctx, url)
	if errors.Is(err, ErrNotFound) {
		feed, err = &Feed{URL: url, Verdict: feedhistory.Partial}, nil
	}
	if err != nil {
		return nil, err
	}
	p := &poll{
		ctx: ctx, m: m, store: m.Store, keep: m.keep(), feed: feed, from: feed.Version, now: time.Now(),
		changes: &Changes{URL: url}, looked: map[string]*Document{},
		asking: asking{waits: map[string]time.Time{}},
		following: following{
			changed: feed.Kind == feedhistory.Archived && feed.Verdict != feedhistory.Whole,
			whole:   feed.Kind != feedhistory.Paged || feed.Known.URL == "",
		},
		resuming: resuming{resumes: map[string]bool{}},
		seeking:  seeking{sought: map[string]bool{}},
		ending:   ending{ready: feed.Next, unfinished: feed.Unfinished},
	}
	p.fillsUp()
	feed.Polls++
	feed.Polled = p.now
	p.rank = Rank{Time: p.now, Place: feed.Polls << 32}
	for _, id := range feed.Sought {
		p.sought[id] = true
	}
	slices.SortStableFunc(feed.Pending, func(a, b Pending) int { return cmp.Compare(a.Tries, b.Tries) })
	for _, pending := range feed.Pending {
		rests := pending.Retry.After(p.now) && !pending.Retry.After(p.now.Add(longestRetry+clockError))
		if (m.Revalidate || !rests) && !p.leavesAlone(&pending) {
			p.resumes[pending.URL] = true
			p.unread = p.unread || pending.Tries == 0
		}
	}
	return p, nil
}

func withoutFragment(url string) string {
	url, _, _ = strings.Cut(url, "#")
	return url
}
