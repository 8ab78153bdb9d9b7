package feedhistory

import (
	"errors"
	"slices"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// A fetchResult is the outcome of one request.
type fetchResult struct {
	url  string    // the requested URL
	from string    // the document linking to it
	doc  *Document // nil if nothing could be read; may be a part if there is an error
	err  error
	text string // the document's bytes
}

// unchanged returns the error if it is an *Unchanged; otherwise nil.
func (l *fetchResult) unchanged() *Unchanged {
	u, _ := errors.AsType[*Unchanged](l.err)
	return u
}

// older returns the URLs of the next document back in time, in a feed of the given
// kind and in the order in which to try them, and whether a link to it cannot be
// used.
func (l *fetchResult) older(feed Kind) (urls []string, lost bool) {
	rel := feed.Older()
	if u := l.unchanged(); u != nil && rel != "" {
		for _, url := range []string{u.Known.Older, u.Known.Instead} {
			if url != "" {
				urls = append(urls, iri.WithoutFragment(url))
			}
		}
		return urls, u.Known.Lost
	}
	if l.doc == nil {
		return nil, false
	}
	return l.doc.Links.targets(rel), l.doc.loses(rel)
}

// kind returns the kind of feed the document declares.
func (l *fetchResult) kind() Kind {
	if u := l.unchanged(); u != nil {
		return u.Known.Kind
	}
	return l.doc.Kind()
}

// finalURL returns the URL where the document was found, after redirects.
func (l *fetchResult) finalURL() string {
	if u := l.unchanged(); u != nil && u.Known.URL != "" {
		return u.Known.URL
	}
	if l.doc == nil {
		return l.url
	}
	return l.doc.URL
}

// read returns the document as a LoopDetector sees it.
func (l *fetchResult) read() chain.Document {
	self, _ := l.doc.Links.Rel(RelSelf)
	return chain.Document{Asked: l.url, URL: l.doc.URL, Self: self.Href, Text: l.text, Facts: l.doc.facts()}
}

// takeHeld removes a held document and returns it; nil if there is no such one.
func (w *walk) takeHeld(isIt func(*fetchResult) bool) *fetchResult {
	i := slices.IndexFunc(w.held, isIt)
	if i < 0 {
		return nil
	}
	held := w.held[i]
	w.held = slices.Delete(w.held, i, i+1)
	return held
}
