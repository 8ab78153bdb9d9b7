// Package chain reads the documents of a chain in order. A Prefetcher requests the next
// ones early, by their links, or under the names it expects. A LoopDetector notices when
// the chain leads back into itself. Neither knows the format of a document.
package chain

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A Prefetcher loads a chain's documents in order and requests the next ones early: a
// head section names the next document long before its entries have arrived. Documents
// that turn out to be unneeded are discarded, so the caller gets the same as without
// prefetching.
//
// It belongs to one goroutine, which learns of links while it waits in Load. Only
// requests run in other goroutines.
type Prefetcher[T, H any] struct {
	source  Source[T, H]
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	flights []*flight[T] // in the order of the chain
	heads   chan arrival[T, H]
	most    int // the maximum number of flights
	guesser guesser
	end     string      // the last document of the chain, if a link names it; none after it is guessed
	loud    atomic.Bool // a guess was made, so the host may refuse any request because of it
}

// A Source has the documents of a Prefetcher: T is a document, H its head section. Except
// for the functions Request returns, all run in the Prefetcher's own goroutine.
type Source[T, H any] struct {
	// Request prepares a request, and returns a function to make it. The latter passes the
	// head section on as soon as it has arrived.
	Request func(r Request) func(ctx context.Context, arrived func(head H)) T

	// Named returns the next document named by a link in the given head, and whether to
	// load it early.
	Named func(head H) (url string, early bool)

	// Expected returns the document known to have come after another one; "" if none is.
	Expected func(url string) string

	// May reports whether a document may be requested before a link names it.
	May func(url string) bool

	// Confirms reports whether the answer to a request encourages further guesses: it is
	// neither an error nor a redirect.
	Confirms func(url string, document T) bool

	// Fails reports whether the answer is an error, which a guess may have provoked.
	Fails func(document T, guess bool) bool
}

// A Request is a request for a document.
type Request struct {
	URL   string
	Guess bool // no link has named it
	Again bool // it is made for the second time, alone

	// IsDoubtful reports whether a guess may be the reason if it is refused.
	IsDoubtful func() bool
}

// A flight is a document on its way.
type flight[T any] struct {
	url      string
	cancel   context.CancelFunc
	done     chan struct{} // closed when result and doubtful are final
	result   T
	doubtful bool // a guess may be the reason for an error
	guess    bool // no link had named it when it was requested
	guessed  bool // none has named it yet
}

// hasArrived reports whether the result is final.
func (f *flight[T]) hasArrived() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// An arrival is the head section of a document still arriving.
type arrival[T, H any] struct {
	flight *flight[T]
	head   H
}

// NewPrefetcher returns a Prefetcher with at most the given number of requests at a time;
// zero means 4. Stop it after use.
func NewPrefetcher[T, H any](ctx context.Context, most int, source Source[T, H]) *Prefetcher[T, H] {
	p := &Prefetcher[T, H]{source: source, most: 4, heads: make(chan arrival[T, H], 16)}
	if most > 0 {
		p.most = most
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// Begin begins another chain. The wasted requests of all chains count together.
func (p *Prefetcher[T, H]) Begin() {
	p.end = ""
	p.guesser = guesser{wasted: p.guesser.wasted, over: p.guesser.over}
}

// EndAt names the last document of the chain; "" if it is unknown.
func (p *Prefetcher[T, H]) EndAt(url string) { p.end = url }

// Stop cancels all requests and waits for their ends.
func (p *Prefetcher[T, H]) Stop() {
	p.cancel()
	p.running.Wait()
}

// Load returns the document at url, which a link has named. It returns the zero value if
// a transport has ended the goroutine of the request, as a failed test's handler in it
// does.
func (p *Prefetcher[T, H]) Load(url string) T {
	p.guesser.learn(url)
	if p.keep(0, url); len(p.flights) == 0 {
		p.flights = append(p.flights, p.start(Request{URL: url}))
	}
	for {
		first := p.flights[0]
		first.guessed = false
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
			if first.doubtful && p.source.Fails(first.result, first.guess) && p.ctx.Err() == nil {
				p.repeat()
				continue
			}
			p.flights = p.flights[1:]
			p.guesser.over = p.guesser.over || !p.source.Confirms(url, first.result)
			return first.result
		}
	}
}

// repeat ends all guesses, and makes the first request again when no other is on its way.
func (p *Prefetcher[T, H]) repeat() {
	p.guesser.over = true
	for _, f := range p.flights {
		<-f.done
	}
	p.loud.Store(false)
	p.flights[0] = p.start(Request{URL: p.flights[0].url, Again: true})
}

// arrive starts the flight of the document a head names, unless it is on its way.
func (p *Prefetcher[T, H]) arrive(a arrival[T, H]) {
	i := slices.Index(p.flights, a.flight)
	if i < 0 {
		return
	}
	url, early := p.source.Named(a.head)
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
	if early && len(p.flights) < p.most && (!guessed || p.mayGuess()) {
		p.flights = append(p.flights, p.start(Request{URL: url, Guess: guessed}))
	}
}

// guess requests the documents expected next.
func (p *Prefetcher[T, H]) guess() {
	most := p.most
	if p.end != "" { // where the number of pages is known, they are costly to make
		most = min(most, 2)
	}
	for len(p.flights) < most && p.flights[len(p.flights)-1].url != p.end {
		last := p.flights[len(p.flights)-1].url
		url, ok := p.guesser.after(last)
		if expected := p.source.Expected(last); expected != "" {
			url, ok = expected, !p.guesser.over
		}
		if !ok || !p.mayGuess() || p.Has(url) || !p.source.May(url) {
			return
		}
		p.flights = append(p.flights, p.start(Request{URL: url, Guess: true}))
	}
}

// Distrust discards the documents requested before the latest one was answered.
func (p *Prefetcher[T, H]) Distrust() {
	i := slices.IndexFunc(p.flights, func(f *flight[T]) bool { return f.guess })
	if i < 0 {
		return
	}
	for _, f := range p.flights[i:] {
		f.cancel()
	}
	p.guesser.miss(len(p.flights) - i)
	p.flights = p.flights[:i]
}

// mayGuess reports whether a guess may be made: no other has failed, and not too many
// requests turn out to be wasted if the host refuses all that are on their way.
func (p *Prefetcher[T, H]) mayGuess() bool {
	doubtful := 1
	for _, f := range p.flights {
		switch {
		case !f.hasArrived():
			doubtful++
		case !p.source.Confirms(f.url, f.result):
			return false
		case f.guessed:
			doubtful++
		}
	}
	return doubtful <= MostWasted-p.guesser.wasted
}

// keep cancels the flights from the i-th on up to the one to url: all, if there is none.
func (p *Prefetcher[T, H]) keep(i int, url string) {
	wasted := 0
	for i < len(p.flights) && p.flights[i].url != url {
		if p.flights[i].cancel(); p.flights[i].guessed {
			wasted++
		}
		p.flights = slices.Delete(p.flights, i, i+1)
	}
	p.guesser.miss(wasted)
}

// start makes a request.
func (p *Prefetcher[T, H]) start(r Request) *flight[T] {
	ctx, cancel := context.WithCancel(p.ctx)
	f := &flight[T]{url: r.URL, cancel: cancel, done: make(chan struct{}), guess: r.Guess, guessed: r.Guess}
	if r.Guess {
		p.loud.Store(true)
	}
	r.IsDoubtful = func() bool {
		f.doubtful = f.doubtful || f.guess || p.loud.Load()
		return f.doubtful
	}
	request := p.source.Request(r)
	p.running.Go(func() {
		defer cancel()
		defer close(f.done)
		f.result = request(ctx, func(head H) {
			select {
			case p.heads <- arrival[T, H]{f, head}:
			default: // too many documents were dropped meanwhile; the link is found at the end
			}
		})
		r.IsDoubtful()
	})
	return f
}

// Has reports whether a document is on its way.
func (p *Prefetcher[T, H]) Has(url string) bool {
	return slices.ContainsFunc(p.flights, func(f *flight[T]) bool { return f.url == url })
}

// Len returns the number of documents on their way.
func (p *Prefetcher[T, H]) Len() int { return len(p.flights) }
