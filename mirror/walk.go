package mirror

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Reading is a step of a Poll: one document of the feed or several, or the end of the poll.
type Reading struct {
	// Changes is what to do with the entries in a table of the program's own. A later Reading
	// may have one of them again.
	Changes []Change

	// Response is the response with the subscription document, once it has come in this
	// walk: its status, Retry-After and other fields. Ledger has its validators.
	Response feedhistory.Response

	// Ledger is what to remember of the feed after the Reading. Store it in the transaction
	// with the Changes of this Reading, or of several: what belongs together is the Ledger of
	// the last with the Changes of all of them. To have one is cheap; to marshal it takes
	// time for all it remembers, so commit some fifty Readings at a time, or each second.
	Ledger Ledger
}

// Document returns the entries in Changes, with the head section of the feed, for a
// program with a model of its own: togofeed.Document returns it as a gofeed.Feed, and
// compose.Write writes it for another parser, in RSS if an entry was published in RSS, else in
// Atom.
func (r *Reading) Document() (*feedhistory.Document, error) {
	doc, err := r.Ledger.Feed().Document()
	if errors.Is(err, ErrNotFound) {
		doc, err = &feedhistory.Document{URL: r.Ledger.URL()}, nil
	}
	if err != nil {
		return nil, err
	}
	doc.Format = feedhistory.FormatAtom
	for _, c := range r.Changes {
		if c.Entry == nil {
			continue
		}
		doc.Entries = append(doc.Entries, c.Entry)
		if c.Entry.Head != nil && c.Entry.Head.Format == feedhistory.FormatRSS {
			doc.Format = feedhistory.FormatRSS
		}
	}
	return doc, nil
}

// Poll polls a feed for a program that keeps entries in a table of its own, where Update
// keeps them in a Store. It comes to the same verdict as Update by the same requests, but for what
// follows, and remembers what it has to in a Ledger; the zero Ledger is that of a feed never read:
//
//	for r, err := range m.Poll(ctx, url, ledger) {
//		if err != nil {
//			return err
//		}
//		// in one transaction: execute r.Changes, store r.Ledger
//	}
//
// Interrupted or killed anywhere, the next Poll with the stored Ledger reads the
// missing documents, and little else. Leave the loop if you cannot store a Reading: the next Poll,
// with the Ledger before, brings it again. Of two programs at work on one feed, one would
// spoil the other's work: store a Ledger only if it Follows the stored one.
//
// The Mirror needs no Store, has no Quota, keeps no Versions, and erases nothing: its Client's
// Budget limits a poll, and how much the table may hold is for the program to decide. The Ledger
// remembers the entries in the subscription document, the archives, and digests of the ids of at
// most 128 other entries, the newest; of a paged feed 512, or twice as many as its subscription
// document has, if these are more. So an older entry that comes again may be New, one in an archive
// that is read again never is, and one under another id, after a change from http to https, say, is
// two. Two gaps stay that Update closes: a document that never answers, and that only archives name
// to which the feed no longer leads; and entries missed before a feed was rebuilt under other ids.
// An entry with signatures in its addresses is put whenever they change.
//
// The error ends the walk. If there is no subscription document, or it is damaged, it is the
// one of Report.Failure, and the last Reading before it has a Ledger that says when to try
// again, unless it is ErrWaits. If the context has ended, the next Poll reads the
// documents in no Reading before it. If the Ledger is another feed's, or the URL is not
// absolute, there is no Reading. Any other gap is in Ledger.Gaps.
func (m *Mirror) Poll(ctx context.Context, url string, from Ledger) iter.Seq2[*Reading, error] {
	return func(yield func(*Reading, error) bool) {
		if from.memo != nil && from.memo.state.URL != iri.WithoutFragment(url) {
			yield(nil, fmt.Errorf("mirror: the Ledger is of another feed, %s", iri.Shown(from.memo.state.URL)))
			return
		}
		s := newShelf(from.memo, from.l, yield)
		walker := &Mirror{
			Store: s, shelf: s, Client: m.http(), ClientFor: m.ClientFor, Every: m.Every, Versions: -1,
			Revalidate: m.Revalidate, Recheck: m.Recheck, Quota: Quota{Entries: math.MaxInt64, Bytes: math.MaxInt64}, Now: m.Now,
		}
		report, err := walker.Update(ctx, url)
		if err == nil {
			err = report.Failure
		}
		if err != nil && !s.left {
			yield(nil, err)
		}
	}
}

// NewLedger returns the Ledger of a feed that the program has read by other means: the ETag
// and LastModified of known make the first request conditional. Until the feed changes, the
// Verdict is unknown; then a Poll reads all of it.
func NewLedger(url string, known feedhistory.Known) Ledger {
	f := NewFeed(iri.WithoutFragment(url))
	f.Ledger.l.Known = feedhistory.Known{ETag: known.ETag, LastModified: known.LastModified}
	return (&memo{state: f}).ledger()
}

// Follows reports whether a Ledger of a Poll may replace the stored one, old: the walk began
// with old, or old is of an earlier Reading of the same walk. Otherwise another program has
// stored it meanwhile.
func (l Ledger) Follows(old Ledger) bool {
	if l.memo == nil {
		return false
	}
	if old.memo == nil {
		return l.memo.id.Began == walkStep{}
	}
	to, was := l.memo.id, old.memo.id
	return l.memo.state.URL == old.memo.state.URL &&
		(to.Began == was.step() || to.Walk == was.Walk && to.Number > was.Number)
}

// A walkID names a Ledger: the walk it is of, by a random number, and how many Readings the walk
// had then. Began is the Ledger with which the walk began.
type walkID struct {
	Walk   uint64   `json:"walk,omitempty"`
	Number int      `json:"number,omitempty"`
	Began  walkStep `json:"began,omitzero"`
}

// A walkStep is a Ledger in the life of another one.
type walkStep struct {
	Walk   uint64 `json:"walk,omitempty"`
	Number int    `json:"number,omitempty"`
}

// newWalk returns the name of a walk that begins with a Ledger; nil is that of a feed never read.
func newWalk(from *memo) walkID {
	id := walkID{Walk: rand.Uint64()}
	if from != nil {
		id.Began = from.id.step()
	}
	return id
}

func (id walkID) step() walkStep { return walkStep{id.Walk, id.Number} }

// Feed returns the state of the feed, when the Ledger is of a Poll: Verdict, Kind, Title and
// the time of the next poll, for instance. Its Entries and Deleted are zero, since the program's
// table has the numbers. Of the zero Ledger, and of a Store's, it is that
// of a feed never read, without a URL.
func (l Ledger) Feed() *Feed {
	if l.memo == nil {
		return NewFeed("")
	}
	f := l.memo.state.clone()
	f.Entries, f.Deleted = 0, 0
	return f
}

// Value implements driver.Valuer: a Ledger is stored as text, its JSON.
func (l Ledger) Value() (driver.Value, error) {
	text, err := l.MarshalJSON()
	return string(text), err
}

// Scan implements sql.Scanner. NULL and an empty text are the zero Ledger.
func (l *Ledger) Scan(value any) error {
	var text []byte
	switch value := value.(type) {
	case nil:
	case string:
		text = []byte(value)
	case []byte:
		text = value
	default:
		return fmt.Errorf("mirror: a %T is no Ledger", value)
	}
	if len(text) == 0 {
		*l = Ledger{}
		return nil
	}
	return l.UnmarshalJSON(text)
}
