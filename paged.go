package feedhistory

import "slices"

// Paged feeds, RFC 5005 §3: a series of pages whose contents may change while they
// are read. A history of pages is never presented as whole (5005#4).

// isPaged reports whether the document is a page, by the links a page must have
// (5005#5).
func (d *Document) isPaged() bool {
	return d.Links.has(RelFirst, RelLast) || d.says(RelPrevious, RelNext)
}

// DocumentLinks are the URLs of an archive document or a page, and of its neighbours; ""
// means there is none, or it is unknown.
type DocumentLinks struct {
	Self    string
	Current string // the subscription document, of an archive

	// Prev and Next are the neighbours. An archive's Prev is the older one, and its Next
	// is "" until there is a closed one (5005#15). A page's Next is the older one.
	Prev, Next string

	First, Last string // the newest and the oldest page
}

// NewPage returns a page of a paged feed with its entries, newest first. It has all
// known links (5005#6); if there are none, its link "first" leads to the page itself,
// because a page must have a link (5005#5).
func NewPage(head *Document, entries []*Entry, at DocumentLinks) *Document {
	d := newDocument(head, entries, at.Self)
	if at.First+at.Prev+at.Next+at.Last == "" {
		at.First = at.Self
	}
	d.link(RelFirst, at.First)
	d.link(RelPrevious, at.Prev)
	d.link(RelNext, at.Next)
	d.link(RelLast, at.Last)
	return d
}

// NewPages splits entries, newest first, into pages of the given size; a size below
// 1 means 1. The URL of page n, counted from 1, is url(n); a nil url panics. Without entries
// it returns one empty page.
func NewPages(head *Document, entries []*Entry, size int, url func(n int) string) (pages []*Document) {
	if url == nil {
		panic("feedhistory: NewPages: url is nil")
	}
	chunks := slices.Collect(slices.Chunk(entries, max(size, 1)))
	if len(chunks) == 0 {
		chunks = [][]*Entry{nil}
	}
	for i, chunk := range chunks {
		at := DocumentLinks{Self: url(i + 1), First: url(1), Last: url(len(chunks))}
		if i > 0 {
			at.Prev = url(i)
		}
		if i+1 < len(chunks) {
			at.Next = url(i + 2)
		}
		pages = append(pages, NewPage(head, chunk, at))
	}
	return pages
}
