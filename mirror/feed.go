package mirror

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
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
	Verdict feedhistory.Verdict `json:"verdict"` // the verdict on the mirror; partial until a document was read

	// Head is the head section of the subscription document, as an Atom
	// document without entries; "" if none was read. See Feed.Document.
	Head string `json:"head,omitempty"`

	Entries   int64 `json:"entries"`   // the number of live entries
	Deleted   int64 `json:"deleted"`   // the number of entries once live, but no longer
	Documents int64 `json:"documents"` // the number of archive documents processed

	Polls    int64     `json:"polls"`              // the number of polls begun, a Keep included
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

	// Ledger is what polls have learned of the feed: what is missing, and by what they tell
	// what they have missed.
	Ledger Ledger `json:"ledger,omitzero"`

	// Source is a word for the origin of the history, such as "wordpress"; "" means the
	// feed's own documents. Mark is the source's memory from one poll to the next.
	Source string          `json:"source,omitempty"`
	Mark   json.RawMessage `json:"mark,omitempty"`
}

// changed records a change at a time. Changed never goes back when the clock does, so the
// order of Record.Changed is the order of Record.LastCommit.
func (f *Feed) changed(now time.Time) { f.Changed = feedtime.Later(f.Changed, now) }

// judge sets the kind and the verdict by the Ledger, which alone decides.
func (f *Feed) judge() {
	f.Kind, f.Verdict = cmp.Or(f.Ledger.l.Kind, feedhistory.KindUnknown), f.Ledger.l.verdict()
}

// NewFeed returns the state of a feed never polled, for Subscribe: the feed is then due. It
// is Private, unless you set that to false, if its URL seems to have a secret: a parameter
// of the query with a value of four bytes or more, and a word such as token, key, auth, sig
// or password in its name. Nothing else in the URL counts. With userinfo, such as
// user:password@, a feed is never read: see feedhistory.ErrUserinfo.
func NewFeed(url string) *Feed {
	return &Feed{URL: url, Kind: feedhistory.KindUnknown, Verdict: feedhistory.VerdictPartial, Private: iri.HasSecret(url)}
}

// Document returns the head section of the feed's subscription document,
// without entries. The error matches ErrNotFound if none was ever read.
func (f *Feed) Document() (*feedhistory.Document, error) {
	if f.Head == "" {
		return nil, ErrNotFound
	}
	return feedhistory.Parse(strings.NewReader(f.Head), f.Ledger.l.Known.URL)
}

// NewAddress returns the URL to which the feed says that it has moved (itunes:new-feed-url); ""
// if it does not, or is there. Update goes there when a permanent redirect leads there, or the
// feed is gone from where it was.
func (f *Feed) NewAddress() string {
	if !strings.Contains(f.Head, "new-feed-url") {
		return ""
	}
	head, err := f.Document()
	if err != nil {
		return ""
	}
	section := door.Root.Head(head)
	url := iri.WithoutFragment(section.NewAddress())
	if !iri.IsHTTP(url) || url == f.URL || url == f.Address {
		return ""
	}
	return url
}

// Size returns the bytes of the feed's entries, with their earlier versions, and of the
// records of its documents, as a Quota counts them.
func (f *Feed) Size() int64 { return f.Ledger.l.Usage.bytes() }

// WholeAsOf returns when the feed was last whole, if polls do not repeat the proof: a
// server's count, or the word of a feed republishing this one. It is otherwise the zero
// time.
func (f *Feed) WholeAsOf() time.Time {
	if f.Verdict != feedhistory.VerdictWhole {
		return time.Time{}
	}
	if f.Kind == feedhistory.KindPlain {
		return f.Ledger.l.AsOf
	}
	if head := f.declared(); head != nil {
		return head.Coverage.AsOf
	}
	return time.Time{}
}

// host returns the name of the host the feed is requested from, with the port if it is
// neither 80 nor 443. Poll the feeds of one host one at a time.
func (f *Feed) host() string { return fetch.HostOf(f.address()) }

// next returns the number of the next commit.
func (f *Feed) next() int64 { return f.Commits + 1 }

// address returns the URL to request the feed from.
func (f *Feed) address() string { return cmp.Or(f.Address, f.URL) }

// declared returns the head of the subscription document if it declares how much it has
// of a feed it republishes; else nil.
func (f *Feed) declared() *feedhistory.Document {
	if !strings.Contains(f.Head, feedxml.Coverage) {
		return nil
	}
	head, err := f.Document()
	if err != nil || head.Coverage == nil {
		return nil
	}
	return head
}

// Coverage returns how much of the feed the mirror has, for documents republishing it.
// The URLs have no userinfo.
func (f *Feed) Coverage() *feedhistory.Coverage {
	return &feedhistory.Coverage{
		Of: iri.Redact(f.URL), Kind: f.Kind, Verdict: f.Verdict, Gaps: f.Ledger.Gaps(), AsOf: f.WholeAsOf(),
	}
}

// bound returns the best verdict the feed's own declaration allows; nil if it has none.
func (f *Feed) bound() *feedhistory.Verdict {
	if head := f.declared(); head != nil {
		return &head.Coverage.Verdict
	}
	return nil
}
