package feedhistory

import (
	"context"
	"errors"
	"sync"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// An ahead loads the documents of a chain one after the other, and requests
// those that follow before they are asked for: a head section names the next
// document long before the entries have come. What it loads too many is thrown
// away, so a walk's outcome is the same as if it were not there.
//
// It belongs to one goroutine, which learns of links while it waits in load.
// Only requesting and parsing run beside.
type ahead struct {
	ctx     context.Context
	cancel  context.CancelFunc
	c       *Client
	running sync.WaitGroup
	flights []*flight // in the order of the chain
	most    int       // flights at a time

	// next says which document to load after one whose head is known, if any.
	next func(head *Document) (url string, ok bool)

	// known says what is known of a document.
	known func(url string) Known
}

// errUnended is the outcome where a transport ends its goroutine, as a handler
// that runs in it and fails a test does.
var errUnended = errors.New("the request did not come to its end")

// A flight is a document on its way.
type flight struct {
	url    string
	cancel context.CancelFunc
	head   chan *Document // gets the head section, if it is there early
	done   chan struct{}  // closed when the outcome is there
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

// stop ends what is on its way, and waits until it has ended.
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

// extend starts the document after one whose head is known.
func (a *ahead) extend(head *Document) {
	if url, ok := a.next(head); ok {
		a.start(url)
	}
}

// drop ends the flights: the chain went on elsewhere.
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
	for _, f := range a.flights {
		if f.url == url {
			return true
		}
	}
	return false
}

// A loaded document is the outcome of a request.
type loaded struct {
	url  string    // that was requested
	from string    // the document that linked to it
	doc  *Document // nil if nothing could be read; with an error, what could be
	err  error
	text string // the document's bytes
}

// unchanged returns the news that the document is what it was, if that is so.
func (l *loaded) unchanged() *Unchanged {
	u, _ := errors.AsType[*Unchanged](l.err)
	return u
}

// older returns where the next document back in time may be, of a feed of the
// given kind, in the order in which to try, and whether there is a link to it that
// cannot be used.
func (l *loaded) older(feed Kind) (urls []string, lost bool) {
	rel := feed.older()
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

// kind is what the document says of its feed.
func (l *loaded) kind() Kind {
	if u := l.unchanged(); u != nil {
		return u.Known.Kind
	}
	return l.doc.Kind()
}

// finalURL is where the document was found, after redirects.
func (l *loaded) finalURL() string {
	if u := l.unchanged(); u != nil && u.Known.URL != "" {
		return u.Known.URL
	}
	if l.doc == nil {
		return l.url
	}
	return l.doc.URL
}
