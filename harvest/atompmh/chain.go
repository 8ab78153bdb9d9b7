package atompmh

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Some producers date each document of the chain with the feed's last change, although
// none may be later than the entries of a newer document (atom-pmh#7). No document is ever
// older than the mark then, and each harvest would read the whole chain. This file finds
// the archive at which it may end: one the last harvest has read too, with the same entries
// and the same older archive.

// A KnownChain is a Mark's memory of such a chain. With the zero value, a harvest reads the
// chain to its end.
type KnownChain struct {
	Documents []string `json:"documents,omitempty"` // digests of the newest archives, newest first
	Passes    int      `json:"passes,omitempty"`    // how often in a row the whole chain was read, and in order
	Skips     int      `json:"skips,omitempty"`     // the number of harvests since that left out archives
}

// Such a chain is trusted after two passes, because the first cannot show how the producer
// publishes a change. It is read again after twenty harvests.
const (
	chainPasses    = 2
	chainSkips     = 20
	chainDocuments = 16
)

// A chainReader compares the chain of one harvest with a KnownChain.
type chainReader struct {
	from KnownChain
	mark time.Time

	begun          bool
	feed           time.Time // the time of the subscription document
	oldest, newest time.Time // the times of the entries read so far
	digests        []string
	unfit          bool   // a document has its own time, or the entries are not in order
	known          string // the archive where the harvest ends; "" if it reads on
}

// read takes the next document of the chain, and reports whether the harvest may end there
// without it. By the order of time (atom-pmh#5, atom-pmh#7), a change is in a document
// before those unchanged. A producer out of order is found out by three signs: an archive
// has an entry later than a newer document's; the feed's time is no entry's, so the latest
// change has not come yet; and, at the latest, the next pass.
func (c *chainReader) read(doc *feedhistory.Document, older string) bool {
	first, last := span(doc)
	if !c.begun {
		c.begun, c.feed, c.oldest, c.newest = true, doc.Updated, first, last
		return false
	}
	ordered := c.oldest.IsZero() || !last.After(c.oldest)
	if c.unfit = c.unfit || !ordered || !doc.Updated.Equal(c.feed); c.unfit {
		return false
	}
	d := digestOfDocument(doc, older)
	at := slices.Index(c.from.Documents, d)
	mayEnd := c.from.Passes >= chainPasses && c.from.Skips < chainSkips && c.newest.Equal(c.feed)
	if at >= 0 && mayEnd && !last.IsZero() && last.Before(c.mark) {
		c.digests, c.known = append(c.digests, c.from.Documents[at:]...), doc.URL
		return true
	}
	c.digests = append(c.digests, d)
	if c.oldest.IsZero() || !first.IsZero() && first.Before(c.oldest) {
		c.oldest = first
	}
	if last.After(c.newest) {
		c.newest = last
	}
	return false
}

// next returns the memory for the next harvest, after a whole one.
func (c *chainReader) next() KnownChain {
	next := KnownChain{Documents: slices.Clip(c.digests[:min(len(c.digests), chainDocuments)]), Passes: c.from.Passes, Skips: c.from.Skips + 1}
	switch {
	case c.unfit || len(c.digests) == 0 || !c.newest.Equal(c.feed):
		return KnownChain{}
	case c.known == "":
		next.Passes, next.Skips = min(next.Passes+1, chainPasses), 0
	}
	return next
}

// span returns the first and the last time of a document's entries; zero if there are none.
func span(doc *feedhistory.Document) (first, last time.Time) {
	for _, e := range doc.Entries {
		if !isTime(e.Updated) {
			continue
		}
		if first.IsZero() || e.Updated.Before(first) {
			first = e.Updated
		}
		if e.Updated.After(last) {
			last = e.Updated
		}
	}
	return first, last
}

// digestOfDocument returns a digest of the entries, and of the link to the older archive.
// The other parts of a head may change with each answer.
func digestOfDocument(doc *feedhistory.Document, older string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", older)
	for _, e := range doc.Entries {
		xml := e.XML()
		fmt.Fprintf(h, "%d\n%s\n", len(xml), xml)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
