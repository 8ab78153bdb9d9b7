package feedhistory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// A prefetcher loads a chain's documents in order and requests the next ones early:
// a head section names the next document long before its entries have
// arrived. Documents that turn out not to be needed are discarded, so a walk yields
// the same as without prefetching.
//
// It belongs to one goroutine, which learns of links while it waits in load. Only
// requests and parsing run in other goroutines.
type prefetcher struct {
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
	done   chan struct{}  // closed when result is final
	result *fetchResult
}

func newPrefetcher(ctx context.Context, c *Client) *prefetcher {
	p := &prefetcher{c: c, most: 4}
	if c.Policy.PerHost > 0 {
		p.most = c.Policy.PerHost
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// stop cancels all flights and waits for their ends.
func (p *prefetcher) stop() {
	p.cancel()
	p.running.Wait()
}

// load returns the document at url.
func (p *prefetcher) load(url string) *fetchResult {
	if len(p.flights) == 0 || p.flights[0].url != url {
		p.drop()
		p.start(url)
	}
	first := p.flights[0]
	for {
		last := p.flights[len(p.flights)-1]
		head := last.head
		if len(p.flights) >= p.most {
			head = nil
		}
		select {
		case h := <-head:
			p.extend(h)
			continue
		default:
		}
		select {
		case h := <-head:
			p.extend(h)
		case <-first.done:
			p.flights = p.flights[1:]
			return first.result
		}
	}
}

// extend starts the flight of the document after the one with the given head.
func (p *prefetcher) extend(head *Document) {
	if url, ok := p.next(head); ok {
		p.start(url)
	}
}

// drop cancels all flights, because the chain continues elsewhere.
func (p *prefetcher) drop() {
	for _, f := range p.flights {
		f.cancel()
	}
	p.flights = nil
}

func (p *prefetcher) start(url string) {
	known := p.known(url)
	ctx, cancel := context.WithCancel(p.ctx)
	f := &flight{
		url: url, cancel: cancel, head: make(chan *Document, 1), done: make(chan struct{}),
		result: &fetchResult{url: url, err: errUnended},
	}
	p.flights = append(p.flights, f)
	p.running.Go(func() {
		defer cancel()
		defer close(f.done)
		f.result = p.c.load(ctx, url, known, func(head *Document) { f.head <- head })
	})
}

// on reports whether a document is on its way.
func (p *prefetcher) on(url string) bool {
	return slices.ContainsFunc(p.flights, func(f *flight) bool { return f.url == url })
}

// A fetchResult is the outcome of one request.
type fetchResult struct {
	url  string    // the requested URL
	from string    // the document that linked to it
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
