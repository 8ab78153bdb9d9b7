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
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Feed is the state of a mirrored feed. Its entries and documents are in the
// Store.
type Feed struct {
	URL     string `json:"url"` // the subscribed URL, which names the feed in the store
	Commits int64  `json:"-"`   // the number of commits to it; zero means the feed is not stored

	// Address is the URL to request the feed from: the target of permanent
	// redirects, or an archive's subscription document (5005#13). "" means URL.
	Address string `json:"address,omitempty"`

	// Lost is the Address withdrawn by the publisher (410) while URL did not answer; ""
	// means none. The next answer of URL counts if it is the same feed.
	Lost string `json:"lost,omitempty"`

	// Alias is the URL of the mirrored feed this one has become, "" for none. An alias
	// permanently redirects there, is no longer due, and keeps its entries.
	Alias string `json:"alias,omitempty"`

	// Private says whether only those who have its credentials, or know its secret URL, may
	// read the feed. A Mirror does not change it; set it in the Store when you subscribe.
	Private bool `json:"private,omitempty"`

	// Named is the subscriber's own title of the feed; "" means Title. Folders are the
	// folders in which the subscriber keeps the feed, each as a path from the outermost
	// one. A Mirror does not change them.
	Named   string     `json:"named,omitempty"`
	Folders [][]string `json:"folders,omitempty"`

	Title   string              `json:"title,omitempty"`
	Kind    feedhistory.Kind    `json:"kind"`
	Verdict feedhistory.Verdict `json:"verdict"` // the verdict on the mirror; Partial until a document was read

	// Head is the head section of the subscription document, as an Atom
	// document without entries; "" if none was read. See Feed.Document.
	Head string `json:"head,omitempty"`

	// Known is the subscription document as it was last read whole.
	Known feedhistory.Known `json:"known,omitzero"`

	Entries   int64 `json:"entries"`   // the number of live entries
	Deleted   int64 `json:"deleted"`   // the number of entries once live, but no longer
	Documents int64 `json:"documents"` // the number of archive documents processed

	Usage Usage `json:"usage,omitzero"` // how much of the Quota is used
	Full  Quota `json:"full,omitzero"`  // the exhausted Quota, which left something unstored; zero means everything was stored

	Schedule feedhistory.Schedule `json:"schedule,omitzero"` // how often the feed wants to be polled

	Polls    int64     `json:"polls"`              // the number of polls begun, a Merge included
	Polled   time.Time `json:"polled,omitzero"`    // when the last one began
	Next     time.Time `json:"next,omitzero"`      // when the next one is welcome; zero means at any time. See Due
	Changed  time.Time `json:"changed,omitzero"`   // when an entry last was added, changed or deleted
	Failures int       `json:"failures,omitempty"` // the number of consecutive polls without a subscription document
	Error    string    `json:"error,omitempty"`    // why the last poll brought none; "" if it did
	Gone     bool      `json:"gone,omitempty"`     // whether the publisher has withdrawn the feed (410); it is then no longer due

	// Unfinished means a poll has begun and not ended: it is under way, was interrupted,
	// or its process or the store has failed. Next is then the time of the poll's last
	// commit, or zero if the poll was interrupted.
	Unfinished bool `json:"unfinished,omitempty"`

	// More means the Budget ended the last poll before the history's end.
	More bool `json:"more,omitempty"`

	// Wait is the time until which the feed's host has asked to be left alone
	// (Retry-After). Update makes no request before then. Zero means the host has not
	// asked.
	Wait time.Time `json:"wait,omitzero"`

	Pending []PendingDocument `json:"pending,omitempty"` // the documents still to be read

	// Gaps are the other missing parts, at most 1,000. Of more than 100 missed windows of
	// one document, they have the first, since which entries may be missing, and the latest.
	Gaps []GapRecord `json:"gaps,omitempty"`

	// Shown are the IDs of the entries in the subscription document of an archived feed,
	// as it was last read. Sought are the IDs of entries that have left the subscription
	// document and have not yet been found in an archive (5005#9).
	Shown  []string `json:"shown,omitempty"`
	Sought []string `json:"sought,omitempty"`

	// Search is the archive document where the search for the Sought entries was cut short
	// and will continue; "" means it begins at the newest.
	Search string `json:"search,omitempty"`

	// Joining means the walk still looks for an archive to join the subscription document
	// with the documents of earlier polls. Until then, a missed window is among the Gaps.
	Joining bool `json:"joining,omitempty"`

	// Further are the URLs at which the subscription document of an archived feed
	// goes on beyond its chain. See Document.Further.
	Further []string `json:"further,omitempty"`

	// Looked is when an archive document was last requested only to see whether
	// it has changed, or when the first archives were read. Checked is the
	// time since which each archive that links lead to has been read at least
	// once: the Verdict speaks of the archives as of then. Both are zero if there
	// are no archives.
	Looked  time.Time `json:"looked,omitzero"`
	Checked time.Time `json:"checked,omitzero"`

	// Source is a word for the origin of the history, such as "wordpress"; "" means the
	// feed's own documents. Mark is the source's memory from one poll to the next.
	Source string          `json:"source,omitempty"`
	Proven bool            `json:"proven,omitempty"` // whether the source has proved that it has brought everything
	Mark   json.RawMessage `json:"mark,omitempty"`

	// Unnamed is the number of entries that Recalls have added without the
	// publisher's ids. Such an entry is Absent once it has come under its own.
	Unnamed int64 `json:"unnamed,omitempty"`

	// AsOf is when the source had brought everything, if Proven by a server's count, which
	// polls do not repeat. Counted is the number of live entries at that time. Zero means
	// only the Verdict is known.
	AsOf    time.Time `json:"as_of,omitzero"`
	Counted int64     `json:"counted,omitempty"`
}

// changed records a change at a time. Changed never goes back when the clock does, so the
// order of Record.Changed is the order of Record.LastCommit.
func (f *Feed) changed(now time.Time) { f.Changed = feedtime.Later(f.Changed, now) }

// NewFeed returns the state of a feed never polled. To subscribe to it, commit the
// state: the feed is then due. If the Store has the feed already, the error of Commit
// matches ErrConflict. A feed whose URL seems to have a secret, such as ?token=…, is
// Private unless you set that to false.
func NewFeed(url string) *Feed {
	return &Feed{URL: url, Verdict: feedhistory.Partial, Private: iri.HasSecret(url)}
}

// Document returns the head section of the feed's subscription document,
// without entries. The error matches ErrNotFound if none was ever read.
func (f *Feed) Document() (*feedhistory.Document, error) {
	if f.Head == "" {
		return nil, ErrNotFound
	}
	return feedhistory.Parse(strings.NewReader(f.Head), f.Known.URL)
}

// WholeAsOf returns when the feed was last Whole, if polls do not repeat the proof: a
// server's count, or the word of a feed republishing this one. It is otherwise the zero
// time.
func (f *Feed) WholeAsOf() time.Time {
	if f.Verdict != feedhistory.Whole {
		return time.Time{}
	}
	if f.Kind == feedhistory.Plain {
		return f.AsOf
	}
	if head := f.declared(); head != nil {
		return head.Coverage.AsOf
	}
	return time.Time{}
}

// Missing returns the gaps of the mirror: the pending documents that could not be
// retrieved, and everything else missing. An exhausted Quota is one gap.
func (f *Feed) Missing() (gaps []*feedhistory.Gap) {
	full := false
	add := func(g GapRecord) {
		if !full || !g.Quota {
			gaps = append(gaps, g.gap())
		}
		full = full || g.Quota
	}
	for _, p := range f.Pending {
		add(p.GapRecord)
	}
	for _, g := range f.Gaps {
		add(g)
	}
	return gaps
}

// A PendingDocument is one the mirror has seen a link to, but has not processed yet
// (5005#19).
type PendingDocument struct {
	GapRecord
	Page    bool      `json:"page,omitempty"`    // whether it is a page, not an archive document
	Rank    Rank      `json:"rank"`              // the rank of its newer neighbour; the document's own Seq is one less
	Tries   int       `json:"tries"`             // the number of failed tries
	Missing bool      `json:"missing,omitempty"` // whether the last try found the document refused for good: 403, 404 or 410 (5005#18)
	Retry   time.Time `json:"retry,omitzero"`    // when to try again; zero means at the next poll
	Wait    time.Time `json:"wait,omitzero"`     // until when the host has asked to be left alone (Retry-After); zero means it has not
}

// MarshalJSON implements json.Marshaler. In a PendingDocument, unlike
// elsewhere, the members of Rank begin with capitals and are never absent;
// json.Unmarshal accepts both.
func (p PendingDocument) MarshalJSON() ([]byte, error) {
	type rank struct {
		Time time.Time
		Seq  int64 `json:"Place"`
	}
	return unescaped(struct {
		GapRecord
		Page    bool      `json:"page,omitempty"`
		Rank    rank      `json:"rank"`
		Tries   int       `json:"tries"`
		Missing bool      `json:"missing,omitempty"`
		Retry   time.Time `json:"retry,omitzero"`
		Wait    time.Time `json:"wait,omitzero"`
	}{p.GapRecord, p.Page, rank(p.Rank), p.Tries, p.Missing, p.Retry, p.Wait})
}

// A GapRecord is a feedhistory.Gap in a form that can be stored. The fields without a
// comment are the ones of feedhistory.Gap; Message is the text of its Err.
type GapRecord struct {
	URL     string             `json:"url"`
	From    string             `json:"from,omitempty"`
	Reason  feedhistory.Reason `json:"reason"`
	Message string             `json:"message"`
	Found   time.Time          `json:"found"`
	Poll    int64              `json:"poll,omitempty"`  // the number of the poll that found the gap
	Quota   bool               `json:"quota,omitempty"` // whether the Quota is the reason
	Deep    bool               `json:"deep,omitempty"`  // whether all archives are to be read again before a missed window closes
	Anew    bool               `json:"anew,omitempty"`  // whether the feed had shown no entry before that an archive should have, so that unchanged archives lack none
}

func (g GapRecord) gap() *feedhistory.Gap {
	err := errors.New(g.Message)
	if g.Quota {
		err = fmt.Errorf("%w: %s", ErrQuota, g.Message)
	}
	return &feedhistory.Gap{URL: g.URL, From: g.From, Reason: g.Reason, Err: err, Found: g.Found}
}

// A DocumentRecord describes a processed archive document.
type DocumentRecord struct {
	URL   string            `json:"url"`             // the URL by which it was requested
	Names []string          `json:"names,omitempty"` // the URLs it is known by: URL, the target of a redirect, its self link
	Known feedhistory.Known `json:"known,omitzero"`  // the document as it was last read
	Rank  Rank              `json:"rank,omitzero"`   // how recent it is

	First   int64     `json:"first,omitempty"`   // the number of the first poll to read it
	Last    int64     `json:"last,omitempty"`    // the number of the last poll to read it
	Read    time.Time `json:"read,omitzero"`     // when it was last read
	Entries int       `json:"entries,omitempty"` // the number of its entries
	Digest  string    `json:"digest,omitempty"`  // a digest of the set of its entries (5005#9)
	Further []string  `json:"further,omitempty"` // the URLs at which it goes on beyond the chain, against its own marks

	Oldest time.Time `json:"oldest,omitzero"` // the earliest time of an entry; zero if none has a time
	Newest time.Time `json:"newest,omitzero"` // the latest time of an entry; zero if none has a time
}

// isCut reports whether the document may exist, but has not been requested.
func (g GapRecord) isCut() bool {
	return g.Reason == feedhistory.ReasonInterrupted || g.Reason == feedhistory.ReasonBudget
}

func newGap(g *feedhistory.Gap) GapRecord {
	return GapRecord{URL: g.URL, From: g.From, Reason: g.Reason, Message: feedhistory.Describe(g.Err), Found: g.Found}
}

// pending returns the index of a pending document; -1 if the document is not
// pending.
func (f *Feed) pending(url string) int {
	return slices.IndexFunc(f.Pending, func(p PendingDocument) bool { return p.URL == url })
}

// takePending removes a document from the pending ones.
func (f *Feed) takePending(url string) {
	f.Pending = slices.DeleteFunc(f.Pending, func(p PendingDocument) bool { return p.URL == url })
}

// The maximum numbers to remember of missed windows of a document, of gaps in all, and of
// pending documents.
const (
	windowLimit  = 100
	gapLimit     = 1000
	pendingLimit = 1000
)

// host returns the name of the host the feed is requested from, with the port if it is
// neither 80 nor 443. Poll the feeds of one host one at a time.
func (f *Feed) host() string { return fetch.HostOf(f.address()) }

// next returns the number of the next commit.
func (f *Feed) next() int64 { return f.Commits + 1 }

// address returns the URL to request the feed from.
func (f *Feed) address() string { return cmp.Or(f.Address, f.URL) }

// addGap adds a gap, which replaces an earlier one at the same place. Each
// missed window is a separate gap.
func (f *Feed) addGap(g GapRecord) {
	g.Poll = f.Polls
	same := func(old GapRecord) bool { return old.URL == g.URL && old.From == g.From && old.Reason == g.Reason }
	i := slices.IndexFunc(f.Gaps, same)
	switch {
	case i >= 0 && g.Reason == feedhistory.ReasonMissedWindow:
		f.addWindow(g, i, same)
	case i >= 0:
		f.Gaps[i] = g
	case len(f.Gaps) < gapLimit:
		f.Gaps = append(f.Gaps, g)
	}
}

// addWindow adds a missed window of a document whose first one has index i. At the limit
// it forgets the second: an archive that joins the first, the widest, covers it, too. The
// latest is the one the next archives join.
func (f *Feed) addWindow(g GapRecord, i int, same func(GapRecord) bool) {
	n := 0
	for _, old := range f.Gaps {
		if same(old) {
			n++
		}
	}
	second := slices.IndexFunc(f.Gaps[i+1:], same)
	switch {
	case n < windowLimit && len(f.Gaps) < gapLimit:
	case second < 0:
		return
	default:
		f.Gaps = slices.Delete(f.Gaps, i+1+second, i+2+second)
	}
	f.Gaps = append(f.Gaps, g)
}

// clearGaps removes the gaps earlier polls found at the links of a document read by
// this poll, given its names. A contradiction stays as long as the document names more
// than one chain, because its links are not followed again.
func (f *Feed) clearGaps(contradicts bool, names ...string) {
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g GapRecord) bool {
		stays := contradicts && (g.Reason == feedhistory.ReasonContradiction || g.Reason == feedhistory.ReasonForeign)
		return g.Poll < f.Polls && !stays && slices.Contains(names, g.From)
	})
}

// furtherOf reports whether a document of the feed names more than one chain,
// and is not read again at each poll.
func (f *Feed) furtherOf(doc *feedhistory.Document) bool {
	return f.Kind != feedhistory.Complete && len(doc.Further(f.Kind)) > 0
}
