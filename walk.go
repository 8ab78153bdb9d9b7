package feedhistory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Walk yields the documents of the feed at url, newest first: its subscription
// document, then those prev-archive links lead to in an archived feed, or next links in
// a paged one. If url is another document of the feed, Walk begins where the document
// says the feed begins, by current (5005#13) or first.
//
// Walk requests nothing before you range over the sequence. A break ends all requests. If
// the links in a chain differ by one step, such as archive-41 and archive-40, or if
// WalkOptions.Known knows where they lead, Walk requests up to Policy.PerHost documents at
// a time under the URLs it expects next: two if the pages name the last one. Only links
// decide which of them it yields, and a page is requested again if an entry may have moved
// from there meanwhile. At most four requests of a walk turn out to be wasted; none go to
// hosts that have asked for patience.
//
// If the first document fails, Walk yields the error with the readable part of the
// document, and ends, as it does when the context ends. For a missing later document,
// Walk yields a nil document and a *Gap, and continues if it can follow the chain
// beyond. For an unchanged document known to WalkOptions.Known, it yields a nil
// document and an *Unchanged. After a document with Damage comes a *Gap whose URL and
// From are both the document's.
func (c *Client) Walk(ctx context.Context, url string, opt *WalkOptions) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		w := &walk{
			c: c, ctx: ctx, yield: yield, budget: c.Budget.withDefaults(),
			loops: chain.NewLoopDetector(), claimed: chain.NewSet(), progress: new(progress),
		}
		if opt != nil {
			w.opt = *opt
		}
		w.pending = len(w.opt.Pending) + len(w.opt.PendingPages)
		w.ahead = chain.NewPrefetcher(ctx, c.Policy.PerHost, w.source())
		defer w.ahead.Stop()
		w.run(iri.WithoutFragment(url))
	}
}

// A walk is one range over Walk. It makes all decisions in the ranging goroutine;
// prefetch.go has the concurrent parts.
type walk struct {
	c     *Client
	ctx   context.Context
	opt   WalkOptions
	yield func(*Document, error) bool
	ahead *chain.Prefetcher[*fetchResult, *Document]
	loops *chain.LoopDetector
	ended bool // the caller has left, or an error has ended the walk

	budget, used Budget

	id       string         // the feed's id; "" if it is unknown
	start    string         // the subscription document's URL; "" until it is known
	origins  []string       // URLs at the origins SameOrigin allows
	kind     Kind           // of the current chain
	held     []*fetchResult // the documents read to find where the feed begins, until the chain reaches them
	shown    *chain.Set     // the IDs of the entries in the subscription document; nil if it is unchanged
	newest   time.Time      // when the newest of them changed
	leads    []lead         // the links beyond the chains, to explore at their end
	feed     Kind           // of the subscription document
	reported string         // the URL of the last document whose contradiction was reported
	idle     int            // the number of consecutive documents beyond the chains without anything new
	gaps     int            // yielded so far
	partly   bool           // a chain ended at a document the caller knows, so this walk cannot tell new entries
	claimed  *chain.Set     // the self links of documents not processed before
	reread   bool           // the subscription document has been read a second time
	missing  *Gap           // the reason why it was
	pending  int            // the number of documents at which earlier walks were cut short and this one is still to continue
	progress *progress
}

func (w *walk) run(url string) {
	w.begin(Plain)
	l := w.first(url)
	if l.err != nil && l.unchanged() == nil {
		w.end(l.doc, l.err)
		return
	}
	w.origins = []string{l.url, l.finalURL()}
	if l.unchanged() == nil {
		l = w.beginning(l)
	}
	if w.start, w.kind = l.url, l.kind(); l.doc != nil {
		w.id, w.shown = l.doc.ID, chain.NewSet()
		for _, e := range l.doc.Entries {
			w.shown.Add(e.ID)
			if at := e.Changed(); at.After(w.newest) {
				w.newest = at
			}
		}
	} else {
		w.id = l.unchanged().Known.ID
	}
	w.feed = w.kind
	w.follow(l)
	for len(w.held) > 0 && w.goesOn() {
		l, w.held = w.held[0], w.held[1:]
		w.unreached(l)
	}
	w.explore()
	w.resume(Archived, w.opt.Pending)
	w.resume(Paged, w.opt.PendingPages)
	w.explore()
	if !w.ended {
		w.progress.more.Store(false)
	}
}

// first returns the document at the walk's URL.
func (w *walk) first(url string) *fetchResult {
	if w.opt.First == nil {
		return w.load(url)
	}
	w.loops.See(url)
	doc := *w.opt.First
	doc.place = place{}
	return &fetchResult{url: url, doc: &doc, text: doc.Received()}
}

// resume continues where earlier walks were cut short.
func (w *walk) resume(kind Kind, pending []string) {
	for _, url := range pending {
		w.pending--
		url = iri.WithoutFragment(url)
		if w.ended || w.loops.HasSeen(url) || kind == Archived && w.processed(url) {
			continue
		}
		w.begin(kind)
		w.follow(w.next("", url))
	}
}

// begin begins a chain of the given kind.
func (w *walk) begin(kind Kind) {
	w.loops.Begin()
	w.ahead.Begin()
	w.kind, w.missing, w.used.Barren, w.used.Empty = kind, nil, 0, 0
}

// follow yields a document and the older ones. It asks whether a document was
// processed before it yields the document, because the caller may then process it.
func (w *walk) follow(l *fetchResult) {
	for l != nil && !w.ended {
		processed := w.wasProcessed(l)
		if !processed {
			w.noteLeads(l)
		}
		w.watchPages(l)
		w.yieldDocument(l)
		older, lost := l.older(w.kind)
		if processed && w.kind == Archived || w.isLast(l) {
			w.partly = true
			return
		}
		switch {
		case w.ended || len(older) == 0 && !lost:
			return
		case len(older) == 0:
			w.progress.more.Store(w.hasOthers())
			w.gap(&Gap{URL: l.finalURL(), From: l.finalURL(), Reason: ReasonMalformed,
				Err: fmt.Errorf("its link to an older document, %s, cannot be used", w.kind.Older())})
			return
		case w.kind == Archived && w.processed(older[0]):
			w.partly = true
			return
		}
		l = w.next(l.finalURL(), older...)
	}
}

// hasOthers reports whether there are documents beyond the current chain.
func (w *walk) hasOthers() bool {
	return len(w.held) > 0 || w.pending > 0 ||
		slices.ContainsFunc(w.leads, func(l lead) bool { return !w.loops.HasSeen(l.Href) && !w.processed(l.Href) })
}

func (w *walk) yieldDocument(l *fetchResult) {
	older, lost := l.older(w.kind)
	w.progress.more.Store(len(older) > 0 || lost || w.hasOthers())
	if u := l.unchanged(); u != nil {
		w.loops.See(u.Known.URL)
		if w.ended = !w.yield(nil, l.err); u.Known.Damaged {
			w.gap(&Gap{URL: u.Known.URL, From: u.Known.URL, Reason: ReasonMalformed, Err: errors.New("it has not changed, and is still damaged")})
		}
		return
	}
	w.count(l, w.loops.Record(l.read()))
	l.doc.place.feed, l.doc.place.walk = w.kind, w.progress
	if l.err != nil {
		w.fail(l, l.from)
		return
	}
	missing := l.doc.Missing(w.kind)
	if len(missing) > len(l.doc.Gaps) || l.doc.lostBeyond(w.kind) != "" { // the others come after the document
		w.progress.more.Store(true)
	}
	if w.ended = !w.yield(l.doc, nil); w.ended {
		return
	}
	for _, g := range missing {
		w.gap(g)
	}
	if rel := l.doc.lostBeyond(w.kind); rel != "" {
		w.gap(&Gap{URL: l.doc.URL, From: l.doc.URL, Reason: ReasonMalformed, Err: fmt.Errorf("its link %s cannot be used", rel)})
	}
}

// next requests the document another links to; it returns nil where the chain ends. If
// there are several links, it tries them in order until it gets a document. If it gets
// none, it yields a gap with the reason.
func (w *walk) next(from string, urls ...string) *fetchResult {
	var gap *Gap
	for i, url := range urls {
		if i > 0 && w.kind == Archived && w.processed(url) {
			w.partly = true
			return nil
		}
		l, failed := w.try(url, from)
		if failed == nil || w.ended {
			return l
		}
		if gap = cmp.Or(gap, failed); gap.Document != nil || failed.Reason == ReasonBudget {
			break
		}
	}
	if !w.goesOn() {
		return nil
	}
	if moved := w.moved(gap); moved != nil {
		w.begin(Archived)
		w.missing = gap
		return moved
	}
	w.progress.more.Store(w.hasOthers())
	w.gap(gap)
	return nil
}

// try requests a document. It returns a damaged one if the chain can be followed
// beyond it, and neither a document nor a gap where the chain joins another.
func (w *walk) try(url, from string) (*fetchResult, *Gap) {
	if !w.goesOn() { // even if documents have been loaded in advance
		return nil, nil
	}
	if held := w.takeHeld(func(l *fetchResult) bool { return l.url == url }); held != nil {
		return held, nil
	}
	if w.loops.Joins(url) {
		return nil, w.missing // which is still missing
	}
	if gap := w.forbids(url); gap != nil {
		gap.From = from
		return nil, gap
	}
	l := w.load(url)
	l.from = from
	held := w.takeHeld(func(held *fetchResult) bool {
		return l.doc != nil && (l.doc.URL == held.url || l.doc.URL == held.doc.URL)
	})
	if held == nil {
		if l.doc != nil {
			if why := w.loops.Repeats(l.read()); why != "" {
				return nil, &Gap{URL: url, From: from, Reason: ReasonLoop, Err: errors.New(why)}
			}
		}
	}
	if gap := cmp.Or(w.strayed(l, from), w.isForeign(l.doc, from)); gap != nil && held == nil {
		return nil, gap
	}
	if l.err == nil || l.unchanged() != nil {
		return l, nil
	}
	if older, _ := l.older(w.kind); len(older) > 0 {
		return l, nil
	}
	return nil, w.gapOf(l, from)
}

func (w *walk) load(url string) *fetchResult {
	w.loops.See(url)
	w.used.Documents++
	l := w.ahead.Load(url)
	if l == nil {
		l = &fetchResult{url: url, err: errUnended}
	}
	w.used.Bytes += int64(len(l.text))
	return l
}

// moved reads the subscription document again if an archive is not found, because the
// publisher may have rebuilt the chain. It returns nil if not.
func (w *walk) moved(missing *Gap) *fetchResult {
	if w.reread || w.kind != Archived || !IsStatus(missing.Err, http.StatusNotFound, http.StatusGone) {
		return nil
	}
	w.reread = true
	if w.spent(0) {
		return nil
	}
	w.log("reading the subscription document again", "url", w.start, "missing", missing.URL)
	head := w.load(w.start)
	if head.err != nil || head.doc.Kind() != Archived || w.strayed(head, "") != nil {
		return nil
	}
	older := head.doc.Links.targets(RelPrevArchive)
	if len(older) == 0 || w.loops.HasSeen(older[0]) || w.processed(older[0]) {
		return nil
	}
	head.doc.reread = true
	return head
}

// log logs a decision.
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

// isLast reports whether the caller wants no page beyond this one.
func (w *walk) isLast(l *fetchResult) bool {
	return w.kind == Paged && w.opt.Last != nil && l.doc != nil && w.opt.Last(l.doc)
}

// fail yields the error of a document not read completely.
func (w *walk) fail(l *fetchResult, from string) {
	if w.ctx.Err() != nil {
		w.end(nil, l.err)
		return
	}
	w.gap(w.gapOf(l, from))
}

func (w *walk) gapOf(l *fetchResult, from string) *Gap {
	return &Gap{URL: l.url, From: from, Reason: reasonOf(l.err), Err: l.err, Document: l.doc}
}

// goesOn reports whether the walk continues. It ends the walk if the context has
// ended.
func (w *walk) goesOn() bool {
	if w.ctx.Err() != nil {
		w.end(nil, nil)
	}
	return !w.ended
}

func (w *walk) gap(g *Gap) {
	if w.ended {
		return
	}
	w.gaps++
	g.Found = time.Now()
	w.log("gap", "url", iri.Redact(g.URL), "from", iri.Redact(g.From), "reason", g.Reason.String(), "error", g.Err)
	w.ended = !w.yield(nil, g)
}

// end yields the last error of the walk: the context's error, if the context has ended.
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
