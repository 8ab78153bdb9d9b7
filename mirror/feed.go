package mirror

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

// A Feed is the state of a mirrored feed. Its entries and documents are in the
// Store.
type Feed struct {
	URL     string `json:"url"` // the URL that you subscribed to, which names the feed in the store
	Version int64  `json:"-"`   // the number of changes that were committed; zero means that the feed is not stored

	// Address is the URL to request the feed from: the target of permanent
	// redirects, or an archive's subscription document (5005#13). "" means URL.
	Address string `json:"address,omitempty"`

	// Lost is the Address that the publisher has withdrawn (410) while URL did
	// not answer; "" means none. The next answer of URL counts if it is the same
	// feed.
	Lost string `json:"lost,omitempty"`

	// Alias is the URL of the mirrored feed that this one has become, "" for none.
	// An alias permanently redirects there, is no longer due, and keeps its entries.
	Alias string `json:"alias,omitempty"`

	Title   string              `json:"title,omitempty"`
	Kind    feedhistory.Kind    `json:"kind"`
	Verdict feedhistory.Verdict `json:"verdict"` // the verdict on the mirror as it stands; Partial until a document was read

	// Head is the head section of the subscription document, as an Atom
	// document without entries; "" if none was read. See Feed.Document.
	Head string `json:"head,omitempty"`

	// Known is the subscription document as it was last read whole.
	Known feedhistory.Known `json:"known,omitzero"`

	Entries   int64 `json:"entries"`   // the number of live entries
	Deleted   int64 `json:"deleted"`   // the number of entries that were live, and are not
	Documents int64 `json:"documents"` // the number of archive documents that have been processed

	Usage Usage `json:"usage,omitzero"` // how much of the Quota is used
	Full  Quota `json:"full,omitzero"`  // the Quota that was used up, so that something was not stored; zero means that everything was

	Schedule feedhistory.Schedule `json:"schedule,omitzero"` // how often the feed wants to be polled

	Polls    int64     `json:"polls"`              // the number of polls that have begun
	Polled   time.Time `json:"polled,omitzero"`    // when the last one began
	Next     time.Time `json:"next,omitzero"`      // when the next one is welcome; zero means at any time. See Due
	Changed  time.Time `json:"changed,omitzero"`   // when an entry last was added, changed or deleted
	Failures int       `json:"failures,omitempty"` // the number of polls in a row that brought no subscription document
	Error    string    `json:"error,omitempty"`    // why the last poll brought none; "" if it did
	Gone     bool      `json:"gone,omitempty"`     // whether the publisher has withdrawn the feed (410), so that it is no longer due

	// Unfinished says that a poll has begun and not ended: it is under way, was
	// interrupted, or its process or the store has failed. Next is then the time of
	// the poll's last commit, or zero if it was interrupted.
	Unfinished bool `json:"unfinished,omitempty"`

	// More says that the Budget ended the last poll before the history's end.
	More bool `json:"more,omitempty"`

	// Wait is the time until which the feed's host has asked to be left alone
	// (Retry-After): Update makes no request before. Zero means that it has not.
	Wait time.Time `json:"wait,omitzero"`

	Pending []Pending `json:"pending,omitempty"` // the documents that are still to be read
	Gaps    []Gap     `json:"gaps,omitempty"`    // what else is missing

	// Shown are the entries of the subscription document of an archived feed,
	// as it was last read. Sought are those that were shown there once, and have
	// been found in no document since (5005#9).
	Shown  []string `json:"shown,omitempty"`
	Sought []string `json:"sought,omitempty"`

	// Search is the archive document at which the search for them was cut short,
	// and continues; "" means that it begins with the newest.
	Search string `json:"search,omitempty"`

	// Source names where the history comes from, if not from the feed's own
	// documents, with a word such as "wordpress". Mark is what that source
	// remembers from one poll to the next.
	Source string          `json:"source,omitempty"`
	Proven bool            `json:"proven,omitempty"` // whether the source has brought all there is
	Mark   json.RawMessage `json:"mark,omitempty"`

	// AsOf is when the source had brought everything, if that is Proven, and not by
	// the feed's own documents, nor renewed by each poll. Counted is the number of
	// entries that were live then. Zero means that nothing is known but the Verdict.
	AsOf    time.Time `json:"as_of,omitzero"`
	Counted int64     `json:"counted,omitempty"`
}

// Document returns the head section of the feed's subscription document,
// without entries. The error matches ErrNotFound if none was ever read.
func (f *Feed) Document() (*feedhistory.Document, error) {
	if f.Head == "" {
		return nil, ErrNotFound
	}
	return feedhistory.Parse(strings.NewReader(f.Head), f.Known.URL)
}

// WholeAsOf returns when the feed was Whole, if it is so by a server's count, which
// polls do not repeat; else the zero time.
func (f *Feed) WholeAsOf() time.Time {
	if f.Verdict != feedhistory.Whole || f.Kind != feedhistory.Plain {
		return time.Time{}
	}
	return f.AsOf
}

// Missing returns the gaps of the mirror: those of the pending documents that could
// not be retrieved, and of what else is missing. That the Quota is used up is one gap.
func (f *Feed) Missing() (gaps []*feedhistory.Gap) {
	full := false
	add := func(g Gap) {
		if !full || !g.Quota {
			gaps = append(gaps, g.gap())
		}
		full = full || g.Quota
	}
	for _, p := range f.Pending {
		add(p.Gap)
	}
	for _, g := range f.Gaps {
		add(g)
	}
	return gaps
}

// A Pending document is one that a link was seen to, and that has not been
// processed (5005#19).
type Pending struct {
	Gap
	Page    bool      `json:"page,omitempty"`    // it is a page, not an archive document
	Rank    Rank      `json:"rank"`              // of its newer neighbour; the document's own Place is one less
	Tries   int       `json:"tries"`             // that failed
	Missing bool      `json:"missing,omitempty"` // the last one with 404 or 410 (5005#18)
	Retry   time.Time `json:"retry,omitzero"`    // not before; zero: at the next poll
	Wait    time.Time `json:"wait,omitzero"`     // until when its host has asked to be left alone (Retry-After); zero: it has not
}

// A Gap is a feedhistory.Gap that can be stored.
type Gap struct {
	URL     string             `json:"url"`
	From    string             `json:"from,omitempty"`
	Reason  feedhistory.Reason `json:"reason"`
	Message string             `json:"message"`
	Found   time.Time          `json:"found"`
	Poll    int64              `json:"poll,omitempty"`  // the number of the poll that found it
	Quota   bool               `json:"quota,omitempty"` // the Quota has made it
}

func (g Gap) gap() *feedhistory.Gap {
	err := errors.New(g.Message)
	if g.Quota {
		err = fmt.Errorf("%w: %s", ErrQuota, g.Message)
	}
	return &feedhistory.Gap{URL: g.URL, From: g.From, Reason: g.Reason, Err: err, Found: g.Found}
}

// A Document is a processed archive document.
type Document struct {
	URL   string   // by which it was requested
	Names []string // URLs that it is known by: this one, where it redirected to, its self
	Known feedhistory.Known
	Rank  Rank

	First, Last int64     // the polls that read it first, and last
	Read        time.Time // when that was
	Entries     int       // in it
	Digest      string    // of the set of its entries (5005#9)

	Oldest, Newest time.Time // of its entries, by Record.Time; zero if it has none
}

// isCut reports whether the document may well be there, and nobody has asked.
func (g Gap) isCut() bool {
	return g.Reason == feedhistory.ReasonInterrupted || g.Reason == feedhistory.ReasonBudget
}

func newGap(g *feedhistory.Gap) Gap {
	return Gap{URL: g.URL, From: g.From, Reason: g.Reason, Message: feedhistory.Describe(g.Err), Found: g.Found}
}

// pending finds a pending document; -1 if it is none.
func (f *Feed) pending(url string) int {
	return slices.IndexFunc(f.Pending, func(p Pending) bool { return p.URL == url })
}

// takePending removes a document that is pending no more.
func (f *Feed) takePending(url string) {
	f.Pending = slices.DeleteFunc(f.Pending, func(p Pending) bool { return p.URL == url })
}

// How many windows that were missed are remembered, gaps in all, and pending
// documents.
const (
	windowLimit  = 100
	gapLimit     = 1000
	pendingLimit = 1000
)

// Host returns the name of the host that the feed is requested from, with the
// port if it is neither 80 nor 443. Feeds of one host are to be polled one at a
// time.
func (f *Feed) Host() string { return fetch.HostOf(cmp.Or(f.Address, f.URL)) }

// addGap adds a gap, in place of an earlier one at the same place. Each window
// that was missed is one of its own.
func (f *Feed) addGap(g Gap) {
	g.Poll = f.Polls
	same := func(old Gap) bool { return old.URL == g.URL && old.From == g.From && old.Reason == g.Reason }
	i := slices.IndexFunc(f.Gaps, same)
	switch {
	case i < 0 && len(f.Gaps) < gapLimit || g.Reason == feedhistory.ReasonMissedWindow && len(f.Gaps) < windowLimit:
		f.Gaps = append(f.Gaps, g)
	case i < 0: // there are enough
	case g.Reason != feedhistory.ReasonMissedWindow:
		f.Gaps[i] = g
	}
}

// clearGaps removes the gaps that earlier polls found at links of a document
// which this one has read, by any of its names.
func (f *Feed) clearGaps(names ...string) {
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g Gap) bool {
		return g.Poll < f.Polls && slices.Contains(names, g.From)
	})
}
