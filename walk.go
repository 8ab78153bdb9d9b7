package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// WalkOptions adapt a walk to what is known already. The root of the library
// remembers nothing between calls; package mirror does.
type WalkOptions struct {
	// Processed reports whether the archive document at a URL has been
	// processed, that is stored, before: the walk does not go beyond it
	// (5005#19). Nil: none has been. It is called by the goroutine that ranges
	// over the walk.
	Processed func(url string) bool

	// Last reports whether to end the pages of a paged feed with one that was
	// just yielded: pages do not stay what they are, so that only their entries
	// tell whether what is older is known. Nil: they are all read. If it is set,
	// no page is requested ahead.
	Last func(page *Document) bool

	// Known returns what is known of a document from an earlier reading; its
	// zero value for nothing. Such a document is requested conditionally. If it
	// is unchanged the walk yields a nil document and an *Unchanged, and goes on
	// where Known.Older leads. It is called as Processed is.
	Known func(url string) Known

	// Pending are archive documents where earlier walks were cut short. The
	// walk goes on there when it has come to its end, in this order; then, with
	// the PendingPages of a paged feed.
	Pending, PendingPages []string
}

// Walk yields the documents of the feed at url, newest first: its subscription
// document, then those that prev-archive links lead to in an archived feed, or
// next links in a paged one. Given an archive, it begins at the subscription
// document that the archive names; given a page, at the first.
//
// Nothing is requested until the sequence is ranged over. To range again starts
// anew; to break ends what is in flight.
//
// An error on the first document is yielded as it is, with what could be read of
// it, and ends the walk, as does the context's error. For a document that is
// missing later Walk yields a nil document and a *Gap, and goes on where the
// chain can be followed beyond; likewise an *Unchanged for one that
// WalkOptions.Known knows. After a document that has Damage comes a *Gap whose
// URL and From are both the document's.
func (c *Client) Walk(ctx context.Context, url string, opt *WalkOptions) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		w := &walk{
			c: c, ctx: ctx, yield: yield, budget: c.Budget.withDefaults(), ahead: newAhead(ctx, c),
			visited: newVisited(),
		}
		if opt != nil {
			w.opt = *opt
		}
		w.ahead.next, w.ahead.known = w.guess, w.known
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

	start   string   // the subscription document's URL; "" until it is known
	origins []string // URLs of the origins that SameOrigin means
	kind    Kind     // of the feed
	held    *loaded  // what the caller gave instead, until the chain reaches it
	reread  bool     // the subscription document has been read a second time
	missing *Gap     // for which it was

	visited
}

func (w *walk) run(url string) {
	w.begin(Plain)
	l := w.load(url)
	if u := l.unchanged(); u != nil {
		w.origins = []string{l.url, u.Known.URL}
		w.start, w.kind = l.url, u.Known.Kind
	} else if l.err != nil {
		w.end(l.doc, l.err)
		return
	} else {
		w.origins = []string{l.url, l.doc.URL}
		l = w.beginning(l)
		w.start, w.kind = l.url, l.doc.Kind()
	}
	w.follow(l)
	if w.held != nil && !w.ended {
		w.begin(w.held.doc.Kind())
		w.follow(w.next(w.held.url, ""))
	}
	w.resume(Archived, w.opt.Pending)
	w.resume(Paged, w.opt.PendingPages)
}

// resume goes on where earlier walks were cut short.
func (w *walk) resume(kind Kind, pending []string) {
	for _, url := range pending {
		url = withoutFragment(url)
		if w.ended || w.seen(url) || kind == Archived && w.processed(url) {
			continue
		}
		w.begin(kind)
		w.follow(w.next(url, ""))
	}
}

// begin begins another chain, of the given kind.
func (w *walk) begin(kind Kind) {
	w.visited.begin()
	w.kind, w.missing, w.used.Barren = kind, nil, 0
}

// beginning goes from an archive to its subscription document (5005#13), and
// from a page to the first one.
func (w *walk) beginning(l *loaded) *loaded {
	link, ok := l.doc.beginning()
	url := withoutFragment(link.Href)
	switch {
	case l.doc.isSubscription():
		return l
	case !ok:
		w.gap(&Gap{URL: l.url, Reason: ReasonDetached,
			Err: errors.New("not where the feed begins, and without a link to it (5005#13)")})
		return l
	case url == l.url, url == l.doc.URL:
		return l
	}
	if gap := w.forbids(url); gap != nil {
		gap.From = l.doc.URL
		w.gap(gap)
		return l
	}
	first := w.load(url)
	if first.err != nil {
		w.fail(first, l.doc.URL)
		return l
	}
	if gap := w.strayed(first, l.doc.URL); gap != nil {
		w.gap(gap)
		return l
	}
	if first.doc.URL == l.url || first.doc.URL == l.doc.URL {
		return l // it redirects back
	}
	w.held = l
	w.log("beginning where the feed does", "given", l.url, "url", url)
	return first
}

// follow yields a document, and those that are older.
func (w *walk) follow(l *loaded) {
	for l != nil && !w.ended {
		w.yieldDocument(l)
		older, ok := l.older(w.kind)
		if !ok || w.ended || w.kind == Archived && (w.processed(older) || w.wasProcessed(l)) || w.isLast(l) {
			return
		}
		l = w.next(withoutFragment(older), l.finalURL())
	}
}

func (w *walk) yieldDocument(l *loaded) {
	if u := l.unchanged(); u != nil {
		w.see(u.Known.URL)
		w.ended = !w.yield(nil, l.err)
		return
	}
	fresh := w.record(l)
	if w.used.Barren++; fresh {
		w.used.Barren = 0
	}
	if l.err != nil {
		w.fail(l, l.from)
		return
	}
	if w.ended = !w.yield(l.doc, nil); !w.ended {
		w.damaged(l.doc)
	}
}

// damaged yields a gap where a document that was read may lack something.
func (w *walk) damaged(doc *Document) {
	if err := doc.Damage(w.kind); err != nil {
		w.gap(&Gap{URL: doc.URL, From: doc.URL, Reason: ReasonMalformed, Err: err})
	}
}

// next requests the document that a link of another leads to; nil where the
// chain ends in a gap. A damaged document is returned if the chain can be
// followed beyond it.
func (w *walk) next(url, from string) *loaded {
	if w.ctx.Err() != nil { // whatever has been loaded ahead
		w.end(nil, nil)
		return nil
	}
	if held := w.held; held != nil && (url == held.url || url == held.doc.URL) {
		w.held = nil
		return held
	}
	if w.joins(url) {
		if w.missing != nil { // and so it is still
			w.gap(w.missing)
		}
		return nil
	}
	if gap := w.forbids(url); gap != nil {
		gap.From = from
		w.gap(gap)
		return nil
	}
	l := w.load(url)
	l.from = from
	if why := w.repeats(l); why != "" {
		w.gap(&Gap{URL: url, From: from, Reason: ReasonLoop, Err: errors.New(why)})
		return nil
	}
	if gap := w.strayed(l, from); gap != nil {
		w.gap(gap)
		return nil
	}
	if l.err == nil {
		return l
	}
	if moved := w.moved(l); moved != nil {
		w.begin(Archived)
		w.missing = w.gapOf(l, from)
		return moved
	}
	if _, ok := l.older(w.kind); ok || l.unchanged() != nil {
		return l
	}
	w.fail(l, from)
	return nil
}

// forbids says why a document is not requested, if it is not.
func (w *walk) forbids(url string) *Gap {
	switch {
	case w.seen(url):
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
		Err: fmt.Errorf("spent: documents %d of %d, bytes %d of %d",
			w.used.Documents, w.budget.Documents, w.used.Bytes, w.budget.Bytes)}
}

func (w *walk) foreign(url string) bool {
	return w.c.Policy.SameOrigin &&
		!slices.ContainsFunc(w.origins, func(own string) bool { return fetch.AreSameOrigin(own, url) })
}

// strayed says that a document was redirected to an origin which is not allowed.
func (w *walk) strayed(l *loaded, from string) *Gap {
	if !w.foreign(l.finalURL()) {
		return nil
	}
	return &Gap{URL: l.url, From: from, Reason: ReasonRefused,
		Err: errors.New("it redirects to another origin than the feed's")}
}

// guess says which document will be wanted after one whose head is known. It
// does not where a link that comes later could still make another one wanted: a
// request that turns out to be in vain could have the host bar the others. Nor
// does it where a document is known: whether that is wanted may depend on what
// comes before it.
func (w *walk) guess(head *Document) (string, bool) {
	if w.start == "" && (head.Kind() != Archived || !head.isSubscription()) {
		return "", false
	}
	kind := w.kind
	if w.start == "" {
		kind = Archived
	}
	link, ok := head.older(kind)
	url := withoutFragment(link.Href)
	if !ok || w.seen(url) || w.foreign(url) || w.ahead.on(url) || w.spent(len(w.ahead.flights)-1) ||
		kind == Archived && (w.processed(url) || w.start != "" && w.knows(head)) || kind == Paged && w.opt.Last != nil || w.known(url) != (Known{}) {
		return "", false
	}
	return url, true
}

func (w *walk) load(url string) *loaded {
	w.see(url)
	w.used.Documents++
	l := w.ahead.load(url)
	w.used.Bytes += int64(len(l.text))
	return l
}

// moved reads the subscription document again where an archive is not found,
// as the publisher may have built the chain anew; nil if that has not happened.
func (w *walk) moved(l *loaded) *loaded {
	if w.reread || w.kind != Archived || !fetch.IsStatus(l.err, http.StatusNotFound, http.StatusGone) {
		return nil
	}
	w.reread = true
	if w.spent(0) {
		return nil
	}
	w.log("reading the subscription document again", "url", w.start, "missing", l.url)
	head := w.load(w.start)
	if head.err != nil || head.doc.Kind() != Archived || w.strayed(head, "") != nil {
		return nil
	}
	link, ok := head.doc.older(Archived)
	if !ok || w.seen(withoutFragment(link.Href)) || w.processed(link.Href) {
		return nil
	}
	head.doc.reread = true
	return head
}

// log tells of a decision.
func (w *walk) log(msg string, args ...any) {
	if w.c.Logger != nil {
		w.c.Logger.InfoContext(w.ctx, msg, args...)
	}
}

func (w *walk) known(url string) Known {
	if w.opt.Known == nil {
		return Known{}
	}
	return w.opt.Known(url)
}

func (w *walk) processed(url string) bool {
	return w.opt.Processed != nil && w.opt.Processed(withoutFragment(url))
}

// wasProcessed reports whether an archive has been processed under another name
// than that of the link to it.
func (w *walk) wasProcessed(l *loaded) bool {
	return l.doc != nil && l.url != w.start && w.knows(l.doc)
}

// knows reports whether a document has been processed by one of its names: where
// it was found, or its self.
func (w *walk) knows(doc *Document) bool {
	self, ok := doc.Links.Rel(RelSelf)
	return w.processed(doc.URL) || ok && fetch.AreSameOrigin(self.Href, doc.URL) && w.processed(self.Href)
}

// isLast reports whether the caller wants no page beyond one.
func (w *walk) isLast(l *loaded) bool {
	return w.kind == Paged && w.opt.Last != nil && l.doc != nil && w.opt.Last(l.doc)
}

// fail yields what happened to a document that could not be read whole.
func (w *walk) fail(l *loaded, from string) {
	if w.ctx.Err() != nil {
		w.end(nil, l.err)
		return
	}
	w.gap(w.gapOf(l, from))
}

func (w *walk) gapOf(l *loaded, from string) *Gap {
	return &Gap{URL: l.url, From: from, Reason: reasonOf(l.err), Err: l.err, Document: l.doc}
}

func (w *walk) gap(g *Gap) {
	if w.ended {
		return
	}
	g.Found = time.Now()
	w.log("gap", "url", fetch.Redact(g.URL), "from", fetch.Redact(g.From), "reason", g.Reason.String(), "error", g.Err)
	w.ended = !w.yield(nil, g)
}

// end yields the error that ends the walk: the context's, if that has ended.
func (w *walk) end(doc *Document, err error) {
	if w.ended {
		return
	}
	w.ended = true
	if w.ctx.Err() != nil {
		doc, err = nil, w.ctx.Err()
	}
	w.yield(doc, err)
}
