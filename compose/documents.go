package compose

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// History returns a history as one document, which is complete if the verdict is whole. Its
// Coverage declares the gaps. People who read the feed do not see that: see PseudoEntries.
// Links that a copy must not carry (those to other documents, the hub, edit, related,
// replies, via) are left out.
//
// A nil history is an empty one.
func History(h *feedhistory.History) *feedhistory.Document {
	h = cmp.Or(h, new(feedhistory.History))
	head := cmp.Or(h.Head, &feedhistory.Document{Format: feedhistory.FormatAtom})
	d := head.Head()
	d.Response = head.Response
	v := h.Verdict()
	d.Complete, d.Coverage = v == feedhistory.VerdictWhole, nil
	if h.Head != nil && (h.Head.Coverage != nil || v == feedhistory.VerdictPartial || v == feedhistory.VerdictUnknown) {
		d.Coverage = &feedhistory.Coverage{Of: h.Head.URL, Kind: h.Kind, Verdict: v, Gaps: slices.Clone(h.Gaps[:min(len(h.Gaps), feedxml.MaxDeclared)])}
	}
	d.Links = slices.DeleteFunc(slices.Clone(d.Links), func(l feedhistory.Link) bool {
		switch l.Rel {
		case "enclosure", "hub", "edit", "related", "replies", "via":
			return true
		}
		return false
	})
	d.Entries, d.Deleted = slices.Clone(h.Entries), h.Deleted
	return d
}

// PseudoEntries returns the PseudoEntry of each gap, to put before the entries of a
// document for people to read (5005#23).
func PseudoEntries(h *feedhistory.History) (entries []*feedhistory.Entry) {
	for _, gap := range cmp.Or(h, new(feedhistory.History)).Gaps {
		entries = append(entries, PseudoEntry(gap))
	}
	return entries
}

// PseudoEntry returns an entry to tell readers of the feed about a gap (5005#23). Each call
// for the same gap returns the same entry, which is as old as its Found.
func PseudoEntry(g *feedhistory.Gap) *feedhistory.Entry {
	g = cmp.Or(g, feedhistory.NewGap("", nil))
	sum := sha256.Sum256([]byte(g.URL + "\n" + string(cmp.Or(g.Reason, feedhistory.ReasonUnknown))))
	summary := fmt.Sprintf("A document of this feed could not be retrieved, or not completely read, so some of its entries may be missing. %v. What to do: %s.",
		g, g.Reason.Advice())
	e, err := Draft{
		ID: "urn:sha256:" + hex.EncodeToString(sum[:]), Updated: g.Found,
		Title: feedhistory.Text{Body: "Entries may be missing"}, Summary: feedhistory.Text{Body: summary},
	}.Undated()
	if err != nil {
		panic(err) // the entry is always well-formed
	}
	return e
}

// Complete returns a complete feed of the given entries, newest first, at the URL
// self. It takes the description of the feed from head, which may be nil.
func Complete(head *feedhistory.Document, entries []*feedhistory.Entry, self string) *feedhistory.Document {
	d := newDocument(head, entries, self)
	d.Complete = true
	return d
}

// newDocument returns a document with the description of the feed in head, and with its
// links not about the history.
func newDocument(head *feedhistory.Document, entries []*feedhistory.Entry, self string) *feedhistory.Document {
	d := cmp.Or(head, new(feedhistory.Document)).Head()
	links := slices.DeleteFunc(d.Links, func(l feedhistory.Link) bool { return l.Rel == "self" })
	d.URL, d.Entries = self, entries
	d.Links = append(feedhistory.Links{{Rel: "self", Href: self}}, links...)
	return d
}

// link adds a link to a document, unless href is empty.
func link(d *feedhistory.Document, rel, href string) {
	if href != "" {
		d.Links = append(d.Links, feedhistory.Link{Rel: rel, Href: href})
	}
}

// URLs are those of an archive document or a page, and of its neighbours; ""
// means there is none, or it is unknown.
type URLs struct {
	Self    string
	Current string // the subscription document, of an archive

	// Prev and Next are the neighbours. An archive's Prev is the older one, and its Next
	// is "" until there is a closed one (5005#15). A page's Next is the older one.
	Prev, Next string

	First, Last string // the newest and the oldest page
}

// Page returns a page of a paged feed with its entries, newest first. It has all
// known links (5005#6); if there are none, its link "first" leads to the page itself,
// because a page must have a link (5005#5).
func Page(head *feedhistory.Document, entries []*feedhistory.Entry, at URLs) *feedhistory.Document {
	d := newDocument(head, entries, at.Self)
	if at.First+at.Prev+at.Next+at.Last == "" {
		at.First = at.Self
	}
	link(d, "first", at.First)
	link(d, "previous", at.Prev)
	link(d, "next", at.Next)
	link(d, "last", at.Last)
	return d
}

// Pages splits entries, newest first, into pages of the given size; a size below
// 1 means 1. The URL of page n, counted from 1, is url(n); a nil url panics. Without entries
// it returns one empty page.
func Pages(head *feedhistory.Document, entries []*feedhistory.Entry, size int, url func(n int) string) (pages []*feedhistory.Document) {
	if url == nil {
		panic("compose: Pages: url is nil")
	}
	chunks := slices.Collect(slices.Chunk(entries, max(size, 1)))
	if len(chunks) == 0 {
		chunks = [][]*feedhistory.Entry{nil}
	}
	for i, chunk := range chunks {
		at := URLs{Self: url(i + 1), First: url(1), Last: url(len(chunks))}
		if i > 0 {
			at.Prev = url(i)
		}
		if i+1 < len(chunks) {
			at.Next = url(i + 2)
		}
		pages = append(pages, Page(head, chunk, at))
	}
	return pages
}

// Subscription returns the subscription document of an archived feed, with its
// latest entries, newest first, and the link to the newest archive (5005#11). An empty
// prevArchive means there is no archive yet.
func Subscription(head *feedhistory.Document, entries []*feedhistory.Entry, self, prevArchive string) *feedhistory.Document {
	d := newDocument(head, entries, self)
	link(d, "prev-archive", prevArchive)
	return d
}

// Archive returns an archive document (5005#11–14) with its entries, newest first.
// Its update time is that of its latest entry, so it does not change.
func Archive(head *feedhistory.Document, entries []*feedhistory.Entry, at URLs) *feedhistory.Document {
	d := newDocument(head, entries, at.Self)
	d.Archive, d.Coverage = true, nil // a Coverage changes
	link(d, "current", at.Current)
	link(d, "prev-archive", at.Prev)
	link(d, "next-archive", at.Next)
	d.Updated, d.LastModified = time.Time{}, time.Time{}
	d.Updated = documentTime(d, d.Entries)
	return d
}

// A Split says where to cut a log of entries into archives: after a number of
// entries, or at the end of a period. The zero value means every 100 entries.
type Split struct {
	Size   int    // Size is the number of entries of an archive, if Period is zero. Zero means 100; a negative number is an error.
	Period Period // Period is the period of an archive, by update times in UTC; zero means to use Size.
}

// A Period is a unit of the calendar.
type Period uint8

// The periods of a Split.
const (
	Year Period = iota + 1
	Month
	Day
)

// String returns "year", "month" or "day".
func (p Period) String() string {
	return [...]string{Year: "year", Month: "month", Day: "day", Day + 1: "unknown"}[min(p, Day+1)]
}
