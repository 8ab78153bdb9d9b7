package feedhistory

import (
	"fmt"
	"slices"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// Complete feeds, RFC 5005 §2: one document has all entries; an entry missing from it
// is no longer part of the feed (5005#1).

// isComplete reports whether the head section has fh:complete (5005#2). The content of
// the element has no meaning.
func (d *Document) isComplete() bool { return d.Complete }

// contradicts reports whether the document's marks contradict each other.
func (d *Document) contradicts(feed Kind) bool {
	return slices.ContainsFunc(d.Further(feed), func(l Link) bool { return l.Rel != relNextArchive })
}

// mark returns the mark of a document of this kind.
func (k Kind) mark() string {
	if k == KindComplete {
		return "fh:complete"
	}
	return k.Older()
}

// contradiction reports a link contradicting the marks of its document.
func (b *beyond) contradiction(at lead) {
	if b.reported == at.root {
		return
	}
	b.reported = at.root
	err := &contradiction{at.mark, at.Link}
	b.gap(&Gap{URL: at.root, From: at.root, Reason: ReasonContradiction, Err: err})
}

// A contradiction is a link against a mark of its document.
type contradiction struct {
	mark string
	link Link
}

func (e *contradiction) Error() string {
	if e.mark == e.link.Rel {
		return fmt.Sprintf("it has two links %s; the second leads elsewhere, to %s", e.link.Rel, iri.Shown(e.link.Href))
	}
	return fmt.Sprintf("it has %s, and a link %s that leads elsewhere, to %s (5005#26)", e.mark, e.link.Rel, iri.Shown(e.link.Href))
}
