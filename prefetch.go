package feedhistory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// A prefetcher loads a chain's documents in order and requests the next ones early: a
// head section names the next document long before its entries have arrived. Documents
// that turn out to be unneeded are discarded, so a walk yields the same as without
// prefetching.
//
// It belongs to one goroutine, which learns of links while it waits in load. Only
// requests and parsing run in other goroutines.
type prefetcher struct {
	ctx     context.Context
	cancel  context.CancelFunc
	c       *Client
	running sync.WaitGroup
	flights []*flight // in the order of the chain
	heads   chan arrival
	most    int // the maximum number of flights
	guesser guesser
	end     string // the last page of the chain, if a link names it; no page after it is guessed

	// named returns the next document named by a link in the given head, and whether to
	// load it early.
	named func(head *Document) (url string, early bool)

	// may reports whether a document may be requested before a link names it.
	may func(url string) bool

	// known returns the Known of a document.
	known func(url string) Known
}

// errUnended is the error if a transport ends its goroutine, as a failed test's handler
// in it does.
var errUnended = errors.New("the request did not end")

// A flight is a document on its way.
type flight struct {
	url     string
	cancel  context.CancelFunc
	done    chan struct{} // closed when result is final
	result  *fetchResult
	guessed bool // no link has named it yet
	ahead   bool // it was requested before the document with the link was answered
}

// An arrival is the head section of a document still arriving.
type arrival struct {
	flight *flight
	head   *Document
}

func newPrefetcher(ctx context.Context, c *Client) *prefetcher {
	p := &prefetcher{c: c, most: 4, heads: make(chan arrival, 16)}
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

// load returns the document at url, which a link has named.
func (p *prefetcher) load(url string) *fetchResult {
	p.guesser.learn(url)
	if p.keep(0, url); len(p.flights) == 0 {
		p.start(url, false)
	}
	first := p.flights[0]
	for first.guessed = false; ; {
		p.guess()
		select {
		case a := <-p.heads:
			p.arrive(a)
			continue
		default:
		}
		select {
		case a := <-p.heads:
			p.arrive(a)
		case <-first.done:
			p.flights = p.flights[1:]
			if r := first.result; r.err != nil && r.unchanged() == nil || r.doc != nil && r.doc.URL != url {
				p.guesser.over = true // an error, or a redirect
			}
			return first.result
		}
	}
}

// arrive starts the flight of the document a head names, unless it is on its way.
func (p *prefetcher) arrive(a arrival) {
	i := slices.Index(p.flights, a.flight)
	if i < 0 {
		return
	}
	url, early := p.named(a.head)
	if i+1 < len(p.flights) {
		if !p.flights[i+1].guessed {
			return
		}
		if p.keep(i+1, url); i+1 < len(p.flights) {
			p.flights[i+1].guessed = false
			return
		}
	}
	guessed := p.flights[i].guessed
	if early && len(p.flights) < p.most && (!guessed || p.doubtful() < mostWasted-p.guesser.wasted) {
		p.start(url, guessed)
	}
}

// guess requests the documents expected next.
func (p *prefetcher) guess() {
	most := p.most
	if p.end != "" { // where the number of pages is known, they are costly to make
		most = min(most, 2)
	}
	for len(p.flights) < most && p.flights[len(p.flights)-1].url != p.end {
		last := p.flights[len(p.flights)-1].url
		url, ok := p.guesser.after(last)
		if older := p.known(last).Older; older != "" {
			url, ok = iri.WithoutFragment(older), !p.guesser.over
		}
		if !ok || p.doubtful() >= mostWasted-p.guesser.wasted || p.on(url) || !p.may(url) {
			return
		}
		p.start(url, true)
		p.flights[len(p.flights)-1].ahead = true
	}
}

// distrust discards the documents requested before the latest one was answered.
func (p *prefetcher) distrust() {
	i := slices.IndexFunc(p.flights, func(f *flight) bool { return f.ahead })
	if i < 0 {
		return
	}
	for _, f := range p.flights[i:] {
		f.cancel()
	}
	p.guesser.miss(len(p.flights) - i)
	p.flights = p.flights[:i]
}

// doubtful returns the number of flights not yet named by a link.
func (p *prefetcher) doubtful() (n int) {
	for _, f := range p.flights {
		if f.guessed {
			n++
		}
	}
	return n
}

// keep cancels the flights from the i-th on up to the one to url: all, if there is none.
func (p *prefetcher) keep(i int, url string) {
	wasted := 0
	for i < len(p.flights) && p.flights[i].url != url {
		if p.flights[i].cancel(); p.flights[i].guessed {
			wasted++
		}
		p.flights = slices.Delete(p.flights, i, i+1)
	}
	p.guesser.miss(wasted)
}

func (p *prefetcher) start(url string, guessed bool) {
	known := p.known(url)
	ctx, cancel := context.WithCancel(p.ctx)
	f := &flight{
		url: url, cancel: cancel, done: make(chan struct{}), guessed: guessed,
		result: &fetchResult{url: url, err: errUnended},
	}
	p.flights = append(p.flights, f)
	p.running.Go(func() {
		defer cancel()
		defer close(f.done)
		f.result = p.c.load(ctx, url, known, func(head *Document) {
			select {
			case p.heads <- arrival{f, head}:
			default: // too many documents were dropped meanwhile; the link is found at the end
			}
		})
	})
}

// on reports whether a document is on its way.
func (p *prefetcher) on(url string) bool {
	return slices.ContainsFunc(p.flights, func(f *flight) bool { return f.url == url })
}

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
