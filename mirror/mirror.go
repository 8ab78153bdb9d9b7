package mirror

import (
	"cmp"
	"errors"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// A Mirror keeps the feeds in a Store up to date. Only Store must be set.
// Several mirrors, even in different processes, may share a store: if two are
// at work on the same feed, one gives way with ErrConflict.
//
// Do not copy or change a Mirror after its first use. Many goroutines may use it
// at the same time.
type Mirror struct {
	Store  Store               // Store keeps the feeds.
	Client *feedhistory.Client // Client makes the requests; nil means a client with default settings.

	// ClientFor returns the client for a feed that needs its own, such as a Clone of
	// Client with Credentials. If ClientFor is nil or returns nil, Client is used. Several
	// goroutines may call it at the same time.
	ClientFor func(feed string) *feedhistory.Client

	// Every is the minimum time between two polls of a feed; a feed may ask for
	// more. Zero means an hour.
	Every time.Duration

	// Versions is the number of earlier versions to keep of each entry. Zero
	// means 10, a negative number none.
	Versions int

	// Revalidate makes Update request every archive document again,
	// conditionally, even those whose earlier failures give little hope. The
	// Budget bounds this, too; the next Update then begins again.
	Revalidate bool

	// Recheck is the time between two polls with a repeated, conditional request for a
	// known archive document of a feed, to see whether it has changed (5005#9): the oldest
	// one and the others in turn. Zero means a day. With a negative number, Update
	// requests none unless it needs to.
	Recheck time.Duration

	Quota Quota // Quota limits how much is stored of each feed.

	client feedhistory.Client // used if Client is nil
}

// A Report is the result of a poll.
type Report struct {
	URL     string              // the feed's URL, as you subscribed to it
	Kind    feedhistory.Kind    // the feed's kind, by its subscription document
	Verdict feedhistory.Verdict // the verdict on the mirror after the poll
	AsOf    time.Time           // when the feed was last Whole, if a server's count proves it; otherwise zero. See Feed.AsOf
	Checked time.Time           // the time since which each archive has been read; zero if there are none. See Feed.Checked

	Added, Changed, Deleted int // the numbers of entries added, changed and deleted

	Documents int // the number of documents read to their end
	Altered   int // the number of archive documents, among those, whose entries have changed (5005#9)

	// Failure is the reason why the poll got no subscription document, or only a damaged
	// one, whose entries count nevertheless; the verdict is then Partial until the
	// document is read. It is the error of Client.Get, or a *WaitError if the host has
	// asked to be left alone, in which case nothing was requested. Nil means the document
	// was read or has not changed. Feed.Failures counts failures other than a *WaitError.
	Failure error

	// Gaps are the missing parts of the mirror after the poll, as Feed.Missing returns
	// them. One this poll found has a Found not before the poll began; see Feed.Polled.
	Gaps []*feedhistory.Gap

	Next time.Time // when the next poll is welcome; zero means at any time, and for an Alias never
	More bool      // whether the Budget ended the poll; the next one continues there

	// Moved is the URL to request the feed from, if it has changed: the target of
	// permanent redirects, or URL again if the target has failed for good. "" means it has
	// not changed.
	Moved string
	Alias string // the mirrored feed this one has become, "" for none; see Feed.Alias
	Gone  bool   // whether the publisher has withdrawn the feed (410)
}

// check returns an error for settings a Mirror cannot work with.
func (m *Mirror) check() error {
	if m == nil || m.Store == nil {
		return errors.New("mirror: Mirror.Store must be set")
	}
	return plain.Check("mirror", plain.Number{Name: "Mirror.Every", Value: int64(m.Every)})
}

// clientFor returns the client for requesting a feed.
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

// keep returns how many versions the store keeps.
func (m *Mirror) keep() int { return max(cmp.Or(m.Versions, 10), 0) }
