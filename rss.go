package feedhistory

import (
	"cmp"

	"github.com/feedhistory/feedhistory/internal/feedxml"
)

// RSS 2.0, 0.9x and 1.0, with the extensions of RFC 5005 Appendix B: Atom links, under
// any prefix, and the flags in their namespace.

// rss reads the children of the root: a channel, and in RSS 1.0 the items.
func (r *documentReader) rss() {
	depth := r.Depth()
	r.doc.version, _ = r.Attr("", "version")
	r.doc.Language = r.Language()
	r.enter()
	r.tell(feedxml.Begins)
	for r.Child(depth) {
		if !r.IsRSS() {
			r.tell(feedxml.Child)
			continue
		}
		switch row, odd := r.Named(); row.Name {
		case "channel":
			r.doc.version = cmp.Or(r.doc.version, feedxml.RDFVersion(r.Space()))
			depth := r.Depth()
			r.head.ranks = headRanks{}
			r.children(depth, "item")
		case "item":
			r.entry(odd)
		case "items":
			r.wrapped("item")
		case "image": // of RSS 1.0
			r.keep(row, true)
		default:
			r.tell(feedxml.Child)
		}
	}
}
