// Package mirror keeps local copies of feeds, complete and up to date, poll
// after poll:
//
//	m := &mirror.Mirror{Store: store}
//	report, err := m.Update(ctx, "https://example.org/feed.atom")
//
// The first Update walks the feed's whole history. Later ones read new documents, and
// those an earlier one could not read. A Mirror keeps everything in its Store: package
// sqlstore uses SQLite or PostgreSQL, NewMemory keeps it in memory.
//
// # Guarantees
//
// A poll commits documents as they come, entries and links together. So at any time,
// every archive document the mirror ever saw a link to is either processed or pending
// (5005#19). An error, a budget or a kill may cut a poll short anywhere; a later poll
// finishes it, even if newer archives have come in between.
//
// # When a poll is due
//
// A state committed in the middle of a walk is Unfinished. Whatever ends the walk
// there, the feed is Due at once, however fresh it is, unless its host has sent a
// Retry-After. A feed left unread by a Budget is Due as well; its Next is some minutes
// away, for programs polling continually.
//
// # The steps of a poll
//
// They depend on the kind of feed, which the subscription document declares:
//
//   - KindComplete: the document replaces everything in the mirror. Entries missing from it
//     are no longer part of the feed (5005#1).
//   - KindArchived: the walk reads up to the first processed archive, then the pending
//     ones. While something is owed, it requests known archives again, conditionally,
//     down to the first that has not changed, and those that name the missing (5005#9).
//   - KindPaged: the walk reads until a page has nothing new. The feed stays lossy
//     (5005#4).
//   - KindPlain: the document is a window. If nothing in it proves that it joins the reading
//     before, there is a gap.
//
// # The ledger
//
// A gap is a debt: it is entered when it is seen, and only the receipt named for its kind
// crosses it out. A poll that fails cancels nothing. A document that could not be read is
// owed until it is read, or until a complete reading of the chain shows that nothing names
// or needs it any more. A window is owed until archives join both sides. Entries that
// return, are pinned, or have changed prove nothing. Another feed that answers at the
// address is set aside, until it has answered three polls over a day.
//
// Whatever the order of the documents, and over however many polls they come, the
// mirror keeps the same one of several duplicates (5005#20, 5005#21). A tombstone (RFC
// 6721) counts even if it comes before the entry it deletes.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A Mirror keeps the feeds in a Store up to date. Only Store must be set; Poll uses none.
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

	// Recheck is the time between two polls with repeated, conditional requests for known
	// archive documents of a feed, to see whether they have changed (5005#9): the newest or
	// the oldest one, and others in turn, so that each is requested within thirty days. Of
	// more than 600 archives, polls request some more often. Zero means a day. With a
	// negative number, Update requests none unless it needs to.
	Recheck time.Duration

	Quota Quota // Quota limits how much is stored of each feed.

	// Now is the clock all stored times are of. Machines that share a Store need one that
	// agrees, such as its database's. Nil means time.Now.
	Now func() time.Time

	client feedhistory.Client // used if Client is nil
	shelf  *shelf             // the Store of a Poll; nil for others
}

// now returns the time by Now.
func (m *Mirror) now() time.Time {
	if m.Now == nil {
		return time.Now().Round(0) // what is stored has no monotonic clock
	}
	return m.Now()
}

// byNow converts a time of this machine's clock.
func (m *Mirror) byNow(t time.Time) time.Time {
	if m.Now == nil {
		return t
	}
	return m.Now().Add(time.Until(t))
}

// A Report is the result of a poll, or of a Recall.
type Report struct {
	// Feed is the feed's state afterwards. Its Ledger has the missing parts: one that this
	// poll found has a Found not before Feed.Polled.
	Feed *Feed

	Added, Changed, Deleted int // the numbers of entries added, changed and deleted

	Refused int // of a Recall: the number of entries for which the Quota has no room
	Closed  int // of a Recall: the number of missed windows it has closed

	// Response is the response with the subscription document, or the answer that it has not
	// changed. It is zero if there was none, or none but the Failure.
	Response feedhistory.Response

	Documents int // the number of documents read to their end
	Altered   int // the number of archive documents, among those, whose entries have changed (5005#9)

	// Failure is the reason why the poll got no subscription document, or only a damaged
	// one, whose entries count nevertheless; the verdict is then partial until the
	// document is read. It is the error of Client.Get, or matches ErrWaits if the host has
	// asked to be left alone, in which case nothing was requested. Nil means the document
	// was read or has not changed. Feed.Failures counts the failures other than ErrWaits.
	Failure error

	More bool // whether the Budget ended the poll; the next one continues there

	// Moved is the URL to request the feed from, if it has changed: the target of
	// permanent redirects, or URL again if the target has failed for good. "" means it has
	// not changed.
	Moved string
}

// check returns an error for settings a Mirror cannot work with.
func (m *Mirror) check() error {
	if m == nil || m.Store == nil {
		return errors.New("mirror: Mirror.Store must be set")
	}
	return settings.Check("mirror", settings.Number{Name: "Mirror.Every", Value: int64(m.Every)})
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

// Update polls a feed, and adds it to the Store if it is not there yet, even if it cannot
// be read: Remove it then, unless it should be polled again. Update requests the
// subscription document even if you have just read it, because it keeps the validators
// and the place in the chain itself.
//
// The error comes from the Store or from the context, or says that the URL of a new feed is
// not an absolute one. The Store keeps everything read before an error of the context, and
// the Report is of it. After an error of the Store, it may lack the last of what the Report
// counts; the Verdict is then unknown. The Report is nil only if the Store could not be read,
// or the feed not added. An unreadable subscription document is not an error of Update but
// Report.Failure. Other unreadable documents are in Gaps.
func (m *Mirror) Update(ctx context.Context, url string) (*Report, error) {
	p, err := m.begin(ctx, url)
	if err != nil {
		return nil, err
	}
	defer p.commits.await()
	if p.feed.Waits(p.now) {
		p.address.failure = p.feed.waitError(p.feed.Wait)
		return p.report(), nil
	}
	p.due.update, p.feed.Wait = true, time.Time{}
	p.ledger.convert()
	if err := p.feed.fillSides(ctx, m.Store); err != nil {
		return p.stop(err)
	}
	if err := p.rechecks.choose(); err != nil {
		return p.stop(err)
	}
	p.pages.choose()
	if err := p.address.requests(p.walk); err != nil {
		return p.stop(err)
	}
	return p.finish()
}

// checkURL returns an error if a URL is not absolute.
func checkURL(url string) error {
	if u, err := feedhistory.ParseURL(url); err != nil || u.Host == "" {
		return fmt.Errorf("mirror: %q is not an absolute URL", feedhistory.Redact(url))
	}
	return nil
}

// Erase deletes the contents of entries and of all their versions from a feed, as the
// law may demand. It keeps their IDs, so no poll stores them again, however long the
// publisher shows them. If the feed does not have one of the IDs, the error matches
// ErrNotFound and nothing is erased.
//
// A database may keep the bytes in its files until it is told to release free
// space: see sqlstore.Store.Scrub.
func (m *Mirror) Erase(ctx context.Context, url string, ids ...string) error {
	if err := m.check(); err != nil {
		return err
	}
	f, err := m.Store.Feed(ctx, iri.WithoutFragment(url))
	if err != nil {
		return err
	}
	records, err := m.Store.Records(ctx, f.URL, ids)
	if err != nil {
		return err
	}
	f.changed(m.now())
	change := &Commit{Feed: f}
	for _, id := range ids {
		r := records[id]
		if r == nil {
			return fmt.Errorf("entry %s: %w", id, ErrNotFound)
		}
		for v, err := range m.Store.Versions(ctx, f.URL, id) {
			if err != nil {
				return err
			}
			f.Ledger.l.Usage.Contents = max(0, f.Ledger.l.Usage.Contents-v.Content.Size)
		}
		f.Ledger.l.Usage.Contents = max(0, f.Ledger.l.Usage.Contents-r.Content.Size)
		switch {
		case r.State == Live:
			f.Entries--
		case r.Content.Format != "":
			f.Deleted--
		}
		f.Ledger.l.forget(id)
		change.Put = append(change.Put, &Record{
			Feed: f.URL, ID: id, State: Erased, FirstCommit: r.FirstCommit, LastCommit: f.Commits + 1, Added: r.Added, Changed: f.Changed,
		})
	}
	return m.Store.Commit(ctx, change)
}
