package feedhistory

import "github.com/feedhistory/feedhistory/internal/fetch"

// What the caller of a walk has stored, perhaps while the walk goes on.

// processed reports whether the caller had processed a document before this walk:
// of one that the walk has read, or that one it has read calls itself, the answer
// means nothing any more.
func (w *walk) processed(url string) bool {
	url = withoutFragment(url)
	return w.opt.Processed != nil && !w.seen(url) && !w.has(w.claimed, url) && w.opt.Processed(url)
}

// wasProcessed reports whether an archive that is to be yielded has been
// processed, perhaps under another name than that of the link to it.
func (w *walk) wasProcessed(l *loaded) bool {
	if w.opt.Processed == nil || l.doc == nil {
		return false
	}
	processed := w.opt.Processed(l.url) || w.knows(l.doc)
	if self, ok := l.doc.Links.Rel(RelSelf); ok && !w.opt.Processed(withoutFragment(self.Href)) {
		w.add(w.claimed, withoutFragment(self.Href))
	}
	return processed && l.url != w.start
}

// knows reports whether a document has been processed by one of its names: where
// it was found, or its self.
func (w *walk) knows(doc *Document) bool {
	self, ok := doc.Links.Rel(RelSelf)
	return w.processed(doc.URL) || ok && fetch.AreSameOrigin(self.Href, doc.URL) && w.processed(self.Href)
}
