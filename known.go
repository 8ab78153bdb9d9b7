package feedhistory

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A Response describes the HTTP response with a document. It is the zero value for a
// document not fetched.
type Response struct {
	Requested string    // the URL requested
	Permanent string    // the URL to request from now on, after permanent redirects (301, 308); "" means it has not changed
	Received  time.Time // when the response arrived
	Fresh     time.Time // until when the document is fresh, by Cache-Control or Expires; zero if they do not say
	Date      time.Time // the server's clock; zero if the response does not say

	// ETag and LastModified are the validators, verbatim. Digest is a digest of the
	// body: it detects changes, but does not withstand forgery.
	ETag, LastModified, Digest string
}

// A Known is the memory of a document read before. It makes the next request for the
// document conditional, and lets a walk continue beyond it if it has not changed.
type Known struct {
	URL                        string // the document's URL, after redirects
	ETag, LastModified, Digest string // as in its Response
	Kind                       Kind   // the kind of feed the document declares
	Older                      string // the URL of the next document back in time; "" if there is none
	Instead                    string `json:",omitempty"` // the URL to try if Older leads to no document; "" if there is no second link
	Lost                       bool   `json:",omitempty"` // whether its link to an older document cannot be used
	Damaged                    bool   `json:",omitempty"` // whether a part of it may be missing; see Document.Damage
	ID                         string `json:",omitempty"` // the feed's id, of a subscription document
	Begins                     string `json:",omitempty"` // the URL of its link to the feed's beginning, if a walk found it not to lead elsewhere
}

// Known returns the memory of the document for the next poll. If a walk was given this
// document, and the feed begins elsewhere, or may do so, or if the document's marks
// contradict each other, the result has no validators, so the next walk looks again.
func (d *Document) Known() Known {
	feed := cmp.Or(d.place.feed, d.Kind())
	older, _ := d.Links.Rel(feed.Older())
	targets := d.Links.targets(feed.Older())
	k := Known{URL: d.URL, Kind: d.Kind(), Older: iri.WithoutFragment(older.Href), Lost: d.loses(feed.Older()), Damaged: d.Damage(feed) != nil, Begins: d.place.begins}
	if len(targets) > 1 {
		k.Instead = targets[1]
	}
	if d.isSubscription() {
		k.ID = d.ID
	}
	if !d.place.again && !d.contradicts(feed) {
		k.ETag, k.LastModified, k.Digest = d.Response.ETag, d.Response.LastModified, d.Response.Digest
	}
	return k
}

// Unchanged is the error for an unchanged document, compared with its Known: the server
// answered 304, or sent the same bytes again.
type Unchanged struct {
	Known    Known       // the memory of the document, for the next poll
	Response Response    // the response with this answer
	Header   http.Header // its fields, as received
}

// Error returns the document's URL.
func (u *Unchanged) Error() string { return fmt.Sprintf("unchanged: %s", u.Response.Requested) }

func newResponse(resp *fetch.Response) Response {
	now := time.Now()
	date, _ := http.ParseTime(resp.Header.Get("Date"))
	return Response{
		Requested: resp.Requested, Permanent: resp.Permanent, Received: now, Fresh: resp.Freshness.Until(now), Date: date.UTC(),
		ETag: resp.ETag, LastModified: resp.LastModified,
	}
}

// WalkOptions tell a walk about the documents you already have. This package remembers
// nothing between calls; package mirror does.
type WalkOptions struct {
	// Processed reports whether you processed (stored) the archive document at a URL
	// before this walk: the walk does not go beyond it (5005#19). Nil means you have
	// processed none. It is called by the goroutine ranging over the walk. It may look
	// into the store you are filling: documents of this walk do not end it.
	//
	// In the transaction that marks a document as processed, store the document it links
	// to (see Document.Older) as Pending for the next walk, unless already processed.
	// Otherwise, if this walk is interrupted, nothing ever reads the older documents.
	// Mark a document under the URL by which it was requested, Response.Requested: links
	// lead there. Mark doc.URL as well if a redirect led elsewhere. Package mirror does all
	// this; sqlstore.Store.Hook tells your own tables.
	Processed func(url string) bool

	// Last reports whether a page of a paged feed is the last one to read. Pages change, so
	// only their entries tell whether you know the older ones. Nil means to read all pages.
	// If Last is set, the walk requests no page in advance.
	//
	// The walk calls Last after the body of your loop has dealt with the page. If that
	// stores the entries, all of them are known by then, on the first page, too: note in
	// the body, before you store them, whether any was new, and let Last return the note.
	Last func(page *Document) bool

	// First is the document at the given URL, if you have just read it, for instance to
	// recognise it as a feed: the walk does not request it again. It yields a copy. Nil
	// means to request it.
	First *Document

	// Known returns the Known of a document from an earlier reading, or the zero value.
	// The walk requests such a document conditionally. If it has not changed, the walk
	// yields a nil document and an *Unchanged, and continues where Known.Older leads. It
	// is called in the same goroutine as Processed.
	Known func(url string) Known

	// Pending are the archive documents at which earlier walks were cut short, and
	// PendingPages such pages of a paged feed. At its end, the walk continues at
	// each Pending document in this order, and then at each of PendingPages.
	//
	// These are URLs as links have them. Processed is asked with such a URL, and with the
	// Document.URL, which may differ after redirects.
	//
	// When you store a page, store the page it links to for PendingPages, unless Last
	// returns true for it, and remove the page itself: what is left after an interruption
	// is where to continue. Beyond a page of PendingPages, let Last return false, because
	// older pages may be unread even if this one has nothing new.
	Pending, PendingPages []string
}
