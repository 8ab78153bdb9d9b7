package feedhistory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// An ahead loads the documents of a chain one after another, and requests later ones
// in advance: a head section names the next document long before its entries have
// arrived. Documents that turn out not to be needed are discarded, so a walk yields
// the same as without prefetching.
//
// It belongs to one goroutine, which learns of links while it waits in load. Only
// requests and parsing run in other goroutines.
type ahead struct {
	ctx     context.Context
	cancel  context.CancelFunc
	c       *Client
	running sync.WaitGroup
	flights []*flight // in the order of the chain
	most    int       // the maximum number of flights

	// next returns the document to load after the one with the given head, if any.
	next func(head *Document) (url string, ok bool)

	// known returns what is known of a document.
	known func(url string) Known
}

// errUnended is the error if a transport ends its goroutine, as a handler that runs
// in it and fails a test does.
var errUnended = errors.New("the request did not end")

// A flight is a document on its way.
type flight struct {
	url    string
	cancel context.CancelFunc
	head   chan *Document // receives the head section, if it arrives before the rest
	done   chan struct{}  // closed when loaded is final
	loaded *loaded
}

func newAhead(ctx context.Context, c *Client) *ahead {
	a := &ahead{c: c, most: 4}
	if c.Policy.PerHost > 0 {
		a.most = c.Policy.PerHost
	}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// stop cancels all flights and waits for their ends.
func (a *ahead) stop() {
	a.cancel()
	a.running.Wait()
}

// load returns the document at url.
func (a *ahead) load(url string) *loaded {
	if len(a.flights) == 0 || a.flights[0].url != url {
		a.drop()
		a.start(url)
	}
	first := a.flights[0]
	for {
		last := a.flights[len(a.flights)-1]
		head := last.head
		if len(a.flights) >= a.most {
			head = nil
		}
		select {
		case h := <-head:
			a.extend(h)
			continue
		default:
		}
		select {
		case h := <-head:
			a.extend(h)
		case <-first.done:
			a.flights = a.flights[1:]
			return first.loaded
		}
	}
}

// extend starts the flight of the document after the one with the given head.
func (a *ahead) extend(head *Document) {
	if url, ok := a.next(head); ok {
		a.start(url)
	}
}

// drop cancels all flights, because the chain continues elsewhere.
func (a *ahead) drop() {
	for _, f := range a.flights {
		f.cancel()
	}
	a.flights = nil
}

func (a *ahead) start(url string) {
	known := a.known(url)
	ctx, cancel := context.WithCancel(a.ctx)
	f := &flight{
		url: url, cancel: cancel, head: make(chan *Document, 1), done: make(chan struct{}),
		loaded: &loaded{url: url, err: errUnended},
	}
	a.flights = append(a.flights, f)
	a.running.Go(func() {
		defer cancel()
		defer close(f.done)
		f.loaded = a.c.load(ctx, url, known, func(head *Document) { f.head <- head })
	})
}

// on reports whether a document is on its way.
func (a *ahead) on(url string) bool {
	return slices.ContainsFunc(a.flights, func(f *flight) bool { return f.url == url })
}

// A loaded is the outcome of a request for a document.
type loaded struct {
	url  string    // the requested URL
	from string    // the document that linked to it
	doc  *Document // nil if nothing could be read; may be a part if there is an error
	err  error
	text string // the document's bytes
}

// unchanged returns the error if it is an *Unchanged; otherwise nil.
func (l *loaded) unchanged() *Unchanged {
	u, _ := errors.AsType[*Unchanged](l.err)
	return u
}

// older returns the URLs of the next document back in time, in a feed of the given
// kind and in the order in which to try them, and whether a link to it cannot be
// used.
func (l *loaded) older(feed Kind) (urls []string, lost bool) {
	rel := feed.Older()
	if u := l.unchanged(); u != nil && rel != "" {
		if u.Known.Older != "" {
			urls = []string{iri.WithoutFragment(u.Known.Older)}
		}
		return urls, u.Known.Lost
	}
	if l.doc == nil {
		return nil, false
	}
	return l.doc.Links.targets(rel), l.doc.loses(rel)
}

// kind returns the kind of feed that the document declares.
func (l *loaded) kind() Kind {
	if u := l.unchanged(); u != nil {
		return u.Known.Kind
	}
	return l.doc.Kind()
}

// finalURL returns the URL where the document was found, after redirects.
func (l *loaded) finalURL() string {
	if u := l.unchanged(); u != nil && u.Known.URL != "" {
		return u.Known.URL
	}
	if l.doc == nil {
		return l.url
	}
	return l.doc.URL
}
