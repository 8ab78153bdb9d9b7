package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"net/http"
	"time"
)

// A Budget bounds what one walk may cost (5005#28). Zero fields stand for the
// defaults.
type Budget struct {
	Documents int   // that are requested: 10,000
	Bytes     int64 // of all documents together, decompressed: 1 GiB
	Barren    int   // documents in a row that bring nothing new: 20

	// More, if not nil, is asked when one of the three is spent, with what the
	// walk has used so far, and may grant a larger budget. If that is not
	// larger, the chain ends in a gap.
	More func(used Budget) Budget
}

func (b Budget) withDefaults() Budget {
	if b.Documents == 0 {
		b.Documents = 10_000
	}
	if b.Bytes == 0 {
		b.Bytes = 1 << 30
	}
	if b.Barren == 0 {
		b.Barren = 20
	}
	return b
}

// WalkOptions adapt a walk to what is known already. The root of the library
// remembers nothing between calls; package mirror does.
type WalkOptions struct {
	// Processed reports whether the archive document at a URL has been
	// processed, that is stored, before: the walk does not go beyond it
	// (5005#19). Nil: none has been. It is called by the goroutine that ranges
	// over the walk.
	Processed func(url string) bool

	// Pending are archive documents where earlier walks were cut short. The
	// walk goes on there when it has come to its end.
	Pending []string
}

// Walk yields the documents of the feed at url, newest first: its subscription
// document, then those that prev-archive links lead to in an archived feed, or
// next links in a paged one. Given an archive, it begins at the subscription
// document that the archive names; given a page, at the first.
//
// Nothing is requested until the sequence is ranged over. To range again starts
// anew; to break ends what is in flight.
//
// An error on the first document is yielded as it is, and ends the walk, as
// does the context's error. For a document that is missing later Walk yields a
// nil document and a *Gap, and goes on where the chain can be followed beyond.
func (c *Client) Walk(ctx context.Context, url string, opt *WalkOptions) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		w := &walk{
			c: c, ctx: ctx, yield: yield, budget: c.Budget.withDefaults(), ahead: newAhead(ctx, c),
			seen: map[string]bool{}, selves: map[string]bool{},
			bodies: map[uint64]bool{}, known: map[uint64]struct{}{}, seed: maphash.MakeSeed(),
		}
		if opt != nil {
			w.opt = *opt
		}
		w.ahead.next = w.guess
		defer w.ahead.stop()
		w.run(withoutFragment(url))
	}
}

// A walk is one range over Walk. It makes all decisions in the goroutine that
// ranges; what runs beside is in ahead.
type walk struct {
	c     *Client
	ctx   context.Context
	opt   WalkOptions
	yield func(*Document, error) bool
	ahead *ahead
	ended bool // the caller has left, or an error has ended it

	budget, used Budget

	start  string  // the subscription document's URL; "" until it is known
	kind   Kind    // of the feed
	held   *loaded // what the caller gave instead, until the chain reaches it
	reread bool    // the subscription document has been read a second time

	seen   map[string]bool     // URLs requested, and those they redirected to
	selves map[string]bool     // what documents call themselves
	bodies map[uint64]bool     // digests of whole documents
	known  map[uint64]struct{} // digests of (ID, update time) of entries
	seed   maphash.Seed
}

func (w *walk) run(url string) {
	l := w.load(url)
	if l.err != nil {
		w.end(l)
		return
	}
	l = w.beginning(l)
	w.start, w.kind = l.url, l.doc.Kind()
	w.follow(l)
	if w.held != nil && !w.ended {
		w.follow(w.next(w.held.url, ""))
	}
	for _, url := range w.opt.Pending {
		if url = withoutFragment(url); !w.ended && !w.seen[url] && !w.processed(url) {
			w.kind, w.used.Barren = Archived, 0
			w.follow(w.next(url, ""))
		}
	}
}

// beginning goes from an archive to its subscription document (5005#13), and
// from a page to the first one.
func (w *walk) beginning(l *loaded) *loaded {
	link, ok := l.doc.beginning()
	if url := withoutFragment(link.Href); ok && !w.seen[url] {
		first := w.load(url)
		if first.err == nil {
			w.held = l
			return first
		}
		w.fail(first, l.doc.URL)
	}
	if !ok && l.doc.Kind() == Archived && !l.doc.isSubscription() {
		w.gap(&Gap{URL: l.url, Reason: ReasonDetached,
			Err: errors.New("an archive that does not link to the current document (5005#13)")})
	}
	return l
}

// follow yields a document, and those that are older.
func (w *walk) follow(l *loaded) {
	for l != nil && !w.ended {
		w.record(l)
		if l.err != nil {
			w.fail(l, l.from)
		} else if !w.yield(l.doc, nil) {
			w.ended = true
		}
		l.text = ""
		link, ok := l.doc.older(w.kind)
		if !ok || w.ended || w.kind == Archived && w.processed(link.Href) {
			return
		}
		l = w.next(withoutFragment(link.Href), l.doc.URL)
	}
}

// next requests the document that a link of another leads to; nil where the
// chain ends in a gap. A damaged document is returned if the chain can be
// followed beyond it.
func (w *walk) next(url, from string) *loaded {
	if held := w.held; held != nil && (url == held.url || url == held.doc.URL) {
		w.held = nil
		return held
	}
	if gap := w.forbids(url); gap != nil {
		gap.From = from
		w.gap(gap)
		return nil
	}
	l := w.load(url)
	l.from = from
	switch why := w.repeats(l); {
	case why != "":
		w.gap(&Gap{URL: url, From: from, Reason: ReasonLoop, Err: errors.New(why)})
		return nil
	case l.err == nil:
		return l
	}
	if moved := w.moved(l); moved != nil {
		return moved
	}
	if l.doc != nil {
		if _, ok := l.doc.older(w.kind); ok {
			return l
		}
	}
	w.fail(l, from)
	return nil
}

// forbids says why a document is not requested, if it is not.
func (w *walk) forbids(url string) *Gap {
	switch {
	case w.seen[url]:
		return &Gap{URL: url, Reason: ReasonLoop, Err: errors.New("this document has been read already")}
	case w.foreign(url):
		return &Gap{URL: url, Reason: ReasonRefused, Err: errors.New("another origin than the feed's")}
	case w.affordable():
		return nil
	case w.used.Barren >= w.budget.Barren:
		return &Gap{URL: url, Reason: ReasonBarren,
			Err: fmt.Errorf("%d documents in a row brought nothing new", w.used.Barren)}
	}
	return &Gap{URL: url, Reason: ReasonBudget,
		Err: fmt.Errorf("%d documents and %d bytes were read", w.used.Documents, w.used.Bytes)}
}

func (w *walk) foreign(url string) bool {
	return w.c.Policy.SameOrigin && w.start != "" && !sameOrigin(w.start, url)
}

// affordable reports whether the budget allows for one more document.
func (w *walk) affordable() bool {
	if w.spent(0) && w.budget.More != nil {
		more := w.budget.More
		w.budget = more(w.used).withDefaults()
		w.budget.More = more
	}
	return !w.spent(0)
}

// spent reports whether the budget is, once the given number of documents more
// will have been read.
func (w *walk) spent(documents int) bool {
	return w.used.Documents+documents >= w.budget.Documents ||
		w.used.Bytes >= w.budget.Bytes || w.used.Barren >= w.budget.Barren
}

// guess says which document will be wanted after one whose head is known.
func (w *walk) guess(head *Document) (string, bool) {
	kind := w.kind
	if w.start == "" {
		if kind = head.Kind(); !head.isSubscription() {
			return "", false
		}
	}
	link, ok := head.older(kind)
	url := withoutFragment(link.Href)
	if !ok || w.seen[url] || w.foreign(url) || w.ahead.on(url) || w.spent(len(w.ahead.flights)) ||
		kind == Archived && w.processed(link.Href) {
		return "", false
	}
	return url, true
}

func (w *walk) load(url string) *loaded {
	w.seen[url] = true
	w.used.Documents++
	l := w.ahead.load(url)
	w.used.Bytes += int64(len(l.text))
	return l
}

// repeats says why a document is one that has been read before, if it is.
func (w *walk) repeats(l *loaded) string {
	if l.doc == nil {
		return ""
	}
	if final := l.doc.URL; final != l.url && w.seen[final] {
		return "it redirects to " + final + ", which has been read already"
	}
	if w.bodies[maphash.String(w.seed, l.text)] {
		return "its content is that of a document read already"
	}
	self, ok := l.doc.Links.Rel(RelSelf)
	if ok && sameOrigin(self.Href, l.doc.URL) && (w.seen[self.Href] || w.selves[self.Href]) &&
		self.Href != l.url && self.Href != l.doc.URL && !w.brings(l.doc) {
		return "it calls itself " + self.Href + ", which has been read already, and brings nothing new"
	}
	return ""
}

// record remembers a document that is part of the walk.
func (w *walk) record(l *loaded) {
	w.seen[l.url], w.seen[l.doc.URL] = true, true
	w.bodies[maphash.String(w.seed, l.text)] = true
	if self, ok := l.doc.Links.Rel(RelSelf); ok {
		w.selves[self.Href] = true
	}
	if w.used.Barren++; w.brings(l.doc) {
		w.used.Barren = min(w.used.Barren-1, 0)
	}
	for _, e := range l.doc.Entries {
		w.known[w.key(e)] = struct{}{}
	}
}

// brings reports whether a document has an entry that is new, or newer.
func (w *walk) brings(doc *Document) bool {
	for _, e := range doc.Entries {
		if _, ok := w.known[w.key(e)]; !ok {
			return true
		}
	}
	return len(doc.Deleted) > 0
}

func (w *walk) key(e *Entry) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	maphash.WriteComparable(&h, e.Updated.UnixNano())
	_, _ = h.WriteString(e.ID)
	return h.Sum64()
}

// moved reads the subscription document again where an archive is not found,
// as the publisher may have built the chain anew; nil if that has not happened.
func (w *walk) moved(l *loaded) *loaded {
	var status *StatusError
	if w.reread || w.kind != Archived || !errors.As(l.err, &status) ||
		status.Status != http.StatusNotFound && status.Status != http.StatusGone {
		return nil
	}
	w.reread = true
	head := w.load(w.start)
	if head.err != nil || head.doc.Kind() != Archived {
		return nil
	}
	link, ok := head.doc.older(Archived)
	if !ok || w.seen[withoutFragment(link.Href)] {
		return nil
	}
	head.doc.reread = true
	w.used.Barren = -w.used.Documents // the new chain may bring all that again
	return head
}

func (w *walk) processed(url string) bool { return w.opt.Processed != nil && w.opt.Processed(url) }

// fail yields what happened to a document that could not be read whole.
func (w *walk) fail(l *loaded, from string) {
	if w.ctx.Err() != nil {
		w.end(l)
		return
	}
	w.gap(&Gap{URL: l.url, From: from, Reason: reasonOf(l.err), Err: l.err, Document: l.doc})
}

func (w *walk) gap(g *Gap) {
	if w.ended {
		return
	}
	g.Found = time.Now()
	w.ended = !w.yield(nil, g)
}

// end yields an error that ends the walk.
func (w *walk) end(l *loaded) {
	if w.ended {
		return
	}
	w.ended = true
	if err := w.ctx.Err(); err != nil {
		w.yield(nil, err)
		return
	}
	w.yield(nil, l.err)
}
