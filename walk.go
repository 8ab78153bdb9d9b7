package feedhistory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
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
// the links in a chain differ by one step, such as archive-41 and archive-40, Walk
// requests up to four documents at a time, or Client.PerHost, under the URLs it expects
// next: two if the pages name the last one.
// Only links decide which of them it yields, and a page is requested again if an entry may
// have moved from there meanwhile. At most four requests of a walk turn out to be wasted;
// none go to hosts that have asked for patience or refused such a request. A request that
// fails after a guess is made again alone, when a link leads there, and Walk guesses no
// more: what a guess provokes, a Retry-After too, does not count.
//
// The error ends the walk: the first document's, with the readable part of it in the Reading,
// or the context's. A document missing later is a Gap in a Reading without a Document, and
// the walk continues if it can follow the chain beyond. If an archive does not exist, Walk
// first requests the subscription document again, at most once, because the publisher may
// have rebuilt the chain. The gaps of a damaged document are in its Reading. The last
// Reading of a walk that ends by itself says that it is the End.
//
// Walk remembers nothing between calls. The Walk of package mirror reads only new documents,
// and those earlier walks have missed.
func (c *Client) Walk(ctx context.Context, url string) iter.Seq2[*Reading, error] {
	return c.walk(ctx, url, nil)
}

// walk is Walk for a caller who remembers earlier walks.
func (c *Client) walk(ctx context.Context, url string, past *chain.Memory[Known, *Document]) iter.Seq2[*Reading, error] {
	return func(yield func(*Reading, error) bool) {
		if c == nil {
			yield(nil, errNoClient)
			return
		}
		w := &walk{
			c: c, ctx: ctx, yield: yield, budget: c.Budget.withDefaults(), begun: time.Now(),
			loops: chain.NewLoopDetector(), past: cmp.Or(past, new(chain.Memory[Known, *Document])),
		}
		w.ahead = chain.NewPrefetcher(ctx, c.PerHost, w.source())
		defer w.ahead.Stop()
		w.run(iri.WithoutFragment(url))
	}
}

// A Reading is a step of a walk: a document, the reason why there is none, or the end of the
// walk.
type Reading struct {
	URL       string    // the URL of the document, as requested, or of a gap
	Document  *Document // a document read to its end; nil if it has not changed or could not be read
	Unchanged bool      // the document is as it was when Known was kept: the server answered 304, or sent the same bytes again
	Known     Known     // what to remember of the document for the next request, without validators for the readable part of one
	Response  Response  // the response with this answer; zero if none was received, or it is a gap
	Gaps      []*Gap    // what is missing of the document, or in its place
	End       bool      // the walk has ended by itself: there is nothing else in this Reading, and none follows

	origin origin
}

// Readable returns the document, or the part of one that could be read; nil if there is neither.
func (r *Reading) Readable() *Document {
	switch {
	case r == nil:
		return nil
	case r.Document != nil:
		return r.Document
	}
	for _, gap := range r.Gaps {
		if gap.Document != nil {
			return gap.Document
		}
	}
	return nil
}

// An origin says whether a Reading is of a walk.
type origin uint8

const (
	ofDocument origin = iota // it is of a document read otherwise
	ofWalk
	ofWalkAgain // the document is a second, newer copy of the subscription document
)

// A walk is one range over Walk. It makes all decisions in the ranging goroutine;
// package chain has the concurrent parts.
type walk struct {
	c     *Client
	ctx   context.Context
	past  *chain.Memory[Known, *Document]
	yield func(*Reading, error) bool
	ahead *chain.Prefetcher[*fetchResult, *Document]
	loops *chain.LoopDetector
	ended bool // the caller has left, or an error has ended the walk

	budget, used Budget
	begun        time.Time

	signs    *signs         // of the feed; nil until they are needed
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
	reread   bool           // the subscription document has been read a second time
	missing  *Gap           // the reason why it was
}

func (w *walk) run(url string) {
	w.begin("")
	l := w.load(url)
	if l.err != nil {
		w.end(l, l.err)
		return
	}
	w.origins = []string{l.url, l.finalURL()}
	if !l.unchanged {
		l = w.beginning(l)
	}
	if w.start, w.kind = l.url, l.kind(); l.doc != nil {
		w.id, w.shown, w.signs = l.doc.ID, chain.NewSet(), newSigns(l.doc, l.doc.entryIDs())
		for _, e := range l.doc.Entries {
			w.shown.Add(e.ID)
			if at := e.Changed(); at.After(w.newest) {
				w.newest = at
			}
		}
	} else {
		w.id = l.known.ID
	}
	w.feed = w.kind
	w.follow(l)
	for len(w.held) > 0 && w.goesOn() {
		l, w.held = w.held[0], w.held[1:]
		w.unreached(l)
	}
	w.explore()
	w.resume(Archived, w.past.Pending)
	w.resume(Paged, w.past.PendingPages)
	w.explore()
	w.hand(&Reading{End: true})
}

// resume continues where earlier walks were cut short.
func (w *walk) resume(kind Kind, pending []string) {
	for _, url := range pending {
		url = iri.Address(url)
		if w.ended || w.loops.HasSeen(url) || kind == Archived && w.processed(url) || w.past.Wanted != nil && !w.past.Wanted(url) {
			continue
		}
		w.begin(kind)
		w.follow(w.next("", nil, url))
	}
}

// begin begins a chain of the given kind.
func (w *walk) begin(kind Kind) {
	w.loops.Begin()
	w.ahead.Begin()
	w.kind, w.missing, w.used.barren, w.used.empty = kind, nil, 0, 0
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
			w.gap(&Gap{URL: l.finalURL(), From: l.finalURL(), Reason: ReasonMalformed,
				Err: fmt.Errorf("its link to an older document, %s, cannot be used", w.kind.Older())})
			return
		case w.kind == Archived && w.hasProcessed(l, older):
			w.partly = true
			return
		}
		l = w.next(l.finalURL(), l.areFormats, older...)
	}
}

// yieldDocument yields a document, with the gaps within it.
func (w *walk) yieldDocument(l *fetchResult) {
	r := &Reading{URL: l.url, Document: l.doc, Unchanged: l.unchanged, Response: l.response, Known: l.known}
	if l.reread {
		r.origin = ofWalkAgain
	}
	if l.unchanged {
		w.loops.See(l.known.URL)
		if l.known.Damaged {
			r.Gaps = w.found(&Gap{URL: l.known.URL, From: l.known.URL, Reason: ReasonMalformed, Err: errors.New("it has not changed, and is still damaged")})
		}
		w.hand(r)
		return
	}
	w.count(l, w.loops.Record(l.read()))
	if l.err != nil {
		w.fail(l, l.from)
		return
	}
	r.Known, r.Gaps = l.remember(w.kind), w.found(l.doc.Missing(w.kind)...)
	if rel := l.doc.lostBeyond(w.kind); rel != "" {
		r.Gaps = append(r.Gaps, w.found(&Gap{URL: l.doc.URL, From: l.doc.URL, Reason: ReasonMalformed, Err: fmt.Errorf("its link %s cannot be used", rel)})...)
	}
	w.hand(r)
}

// hand yields a Reading.
func (w *walk) hand(r *Reading) {
	if !w.ended {
		r.origin = max(r.origin, ofWalk)
		left := time.Now()
		w.ended = !w.yield(r, nil)
		w.begun = w.begun.Add(time.Since(left)) // the caller's time is not the walk's
	}
}

// next requests the document another links to; it returns nil where the chain ends. If
// there are several links, it tries them in order until it gets a document. If it gets
// none, it yields a gap with the reason. A document excuses a failure before it only as
// another format of the same document: formats reports which links are.
func (w *walk) next(from string, formats func(a, b string) bool, urls ...string) *fetchResult {
	var gap *Gap
	var failures []*Gap
	for i, url := range urls {
		if i > 0 && w.kind == Archived && w.processed(url) {
			w.partly = true
			w.alternatives(failures, url, formats)
			return nil
		}
		l, failed := w.try(url, from)
		if failed == nil || w.ended {
			w.alternatives(failures, url, formats)
			return l
		}
		failures = append(failures, failed)
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
	w.gap(gap)
	return nil
}

// alternatives yields the gaps of links that failed before another of the same relation
// led to a document: nothing shows that both lead to the same entries.
func (w *walk) alternatives(failures []*Gap, read string, formats func(a, b string) bool) {
	for _, gap := range failures {
		if formats == nil || !formats(gap.URL, read) {
			w.gap(gap)
		}
	}
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
	if gap := cmp.Or(w.strayed(l, from), w.isForeign(l, from)); gap != nil && held == nil {
		return nil, gap
	}
	if l.err == nil {
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

// log logs a decision.
func (w *walk) log(msg string, args ...any) {
	if w.c.Logger != nil {
		w.c.Logger.InfoContext(w.ctx, msg, args...)
	}
}

func (w *walk) known(url string) Known {
	if w.past.Known == nil {
		return Known{}
	}
	return w.past.Known(url)
}

// fail yields the error of a document not read completely.
func (w *walk) fail(l *fetchResult, from string) {
	if w.ctx.Err() != nil {
		w.end(nil, l.err)
		return
	}
	gap := w.gapOf(l, from)
	r := &Reading{URL: gap.URL, Gaps: w.found(gap)}
	if l.doc != nil {
		r.Known = l.doc.memory(w.kind)
		r.Known.ETag, r.Known.LastModified, r.Known.Digest = "", "", ""
	}
	w.hand(r)
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

// gap yields a gap.
func (w *walk) gap(g *Gap) {
	if !w.ended {
		w.hand(&Reading{URL: g.URL, Gaps: w.found(g)})
	}
}

// found notes gaps about to be yielded.
func (w *walk) found(gaps ...*Gap) []*Gap {
	for _, g := range gaps {
		w.gaps++
		g.Found = time.Now()
		w.log("gap", "url", iri.Shown(g.URL), "from", iri.Shown(g.From), "reason", g.Reason.word(), "error", g.Err)
	}
	return gaps
}

// end yields the last error of the walk, with the readable part of the document: the
// context's error, if the context has ended.
func (w *walk) end(l *fetchResult, err error) {
	if w.ended {
		return
	}
	w.ended = true
	var r *Reading
	if l != nil && l.doc != nil {
		r = &Reading{URL: l.url, Document: l.doc, Response: l.response, origin: ofWalk}
	}
	if w.ctx.Err() != nil {
		r, err = nil, w.ctx.Err()
	}
	w.yield(r, err)
}

// entryIDs yields the IDs of a document's entries.
func (d *Document) entryIDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, e := range d.Entries {
			if !yield(e.ID) {
				return
			}
		}
	}
}

// facts yields the IDs and times of a document's entries and tombstones.
func (d *Document) facts() iter.Seq[chain.Fact] {
	return func(yield func(chain.Fact) bool) {
		for _, e := range d.Entries {
			if !yield(chain.Fact{ID: e.ID, Time: e.Updated.UnixNano()}) {
				return
			}
		}
		for _, t := range d.Deleted {
			if !yield(chain.Fact{ID: t.Ref, Time: t.When.UnixNano(), Deleted: true}) {
				return
			}
		}
	}
}

// The end of a chain. A history is whole only if its last document names nothing older by
// any relation. Documents with contradictory marks, which RFC 5005 leaves undefined
// (5005#26), name more: a page behind fh:complete, an archive that goes on by next, a
// second prev-archive. A walk reads these too, and reports the contradiction.

// noteLeads queues the links by which a document of the current chain goes beyond it.
func (w *walk) noteLeads(l *fetchResult) {
	if l.doc == nil {
		w.partly = true
		return
	}
	further := l.doc.Further(w.kind)
	if next, ok := l.doc.Links.Rel(relNextArchive); ok && w.kind == Archived && l.doc.says(relPrevArchive) { // a fork
		next.Href = iri.Address(next.Href)
		further = append(further, next)
	}
	if current, ok := w.otherBeginning(l); ok {
		further = append(further, current)
	}
	for _, link := range further {
		if w.loops.HasSeen(link.Href) {
			continue
		}
		at := lead{link, l.doc.URL, l.doc.URL, w.kind.mark()}
		if (at.Rel == relLast || at.Rel == relNextArchive && l.url == w.start) && (w.gaps > 0 || w.partly) {
			continue // the documents on the way there may not have been read
		}
		w.leads = append(w.leads, at)
		l.again = true
	}
}

// explore reads the documents beyond the chains, as far as they bring anything new.
func (w *walk) explore() {
	for len(w.leads) > 0 && w.goesOn() {
		next := w.leads[0]
		w.leads = w.leads[1:]
		if w.loops.HasSeen(next.Href) || w.processed(next.Href) {
			continue
		}
		w.begin(Paged)
		if next.Rel == relPrevArchive || next.Rel == relNextArchive || next.Rel == relCurrent {
			w.kind = Archived
		}
		w.examine(next)
	}
}

// examine reads a document beyond the chain.
func (w *walk) examine(at lead) {
	from := at.from
	if gap := w.forbids(at.Href); gap != nil {
		if gap.From = from; gap.Reason == ReasonBudget || gap.Reason == ReasonBarren {
			w.leads = nil // one gap covers all
		}
		w.gap(gap)
		return
	}
	l := w.load(at.Href)
	l.from = from
	if gap := cmp.Or(w.strayed(l, from), w.isForeign(l, from)); gap != nil {
		w.gap(gap)
		return
	}
	switch {
	case l.unchanged:
		if w.yieldDocument(l); !w.succeeds(at, l) {
			w.contradiction(at)
		}
		if older := l.known.Older; older != "" {
			w.leads = append(w.leads, lead{Link{Rel: w.kind.Older(), Href: iri.Address(older)}, at.from, at.root, at.mark})
		}
		return
	case l.doc == nil:
		if !w.isNeedless(at, l, from) {
			w.fail(l, from)
		}
		return
	case l.doc.URL != l.url && w.loops.HasSeen(l.doc.URL), w.loops.HasRead(l.text):
		return // it is a document of a chain
	}
	newer := w.succeeds(at, l)
	if newer && w.isAhead(l.doc) {
		return
	}
	fresh := w.loops.IsNew(l.doc.facts()) && !newer
	for _, link := range l.doc.Links {
		if isHistory(link.Rel) && link.Rel != relCurrent && link.Rel != relFirst && link.distance() == 0 {
			link.Href = iri.Address(link.Href)
			w.leads = append(w.leads, lead{link, l.doc.URL, at.root, at.mark})
		}
	}
	if !fresh {
		w.yieldDocument(l)
		if w.idle++; w.idle >= w.budget.barren && len(w.leads) > 0 {
			w.leads = nil
			w.gap(&Gap{URL: l.url, From: from, Reason: ReasonBarren, Err: fmt.Errorf("%d documents in a row brought nothing new", w.idle)})
		}
		return
	}
	w.idle = 0
	w.yieldDocument(l)
	w.contradiction(at)
}

// A Budget bounds the cost of one walk (5005#28). A walk also ends after 20 consecutive
// documents without anything new, or 1,000 archives in a row without any entry.
type Budget struct {
	Documents int   // Documents is the maximum number of documents to request, not counting those repeated (see Client.Tries), redirects, and requests in advance that turn out to be wasted; zero means 10,000.
	Bytes     int64 // Bytes is the maximum size of all documents together, decompressed; zero means 1 GiB.

	// Time is the time of the walk, without that of its caller, after which it requests no further
	// document, so that a feed that is slow and without end does not keep others waiting; zero
	// means ten minutes. A mirror's next poll goes on there.
	Time time.Duration

	barren, empty int // documents in a row without anything new, and archives without entries
}

func (b Budget) withDefaults() Budget {
	b.Documents, b.Bytes, b.Time = cmp.Or(b.Documents, 10_000), cmp.Or(b.Bytes, 1<<30), cmp.Or(b.Time, 10*time.Minute)
	b.barren, b.empty = cmp.Or(b.barren, chain.MostBarren), cmp.Or(b.empty, 1000)
	return b
}

// spent reports whether the budget is spent after the given number of further
// documents.
func (w *walk) spent(documents int) bool {
	return w.used.Documents+documents >= w.budget.Documents || w.used.Bytes >= w.budget.Bytes || w.isLate() || w.barren()
}

// isLate reports whether the time of the walk is spent.
func (w *walk) isLate() bool { return time.Since(w.begun) >= w.budget.Time }

// barren reports whether too many documents in a row have brought nothing new.
func (w *walk) barren() bool {
	return w.used.barren >= w.budget.barren || w.used.empty >= w.budget.empty
}

// count counts a document of the walk against the budget. An archive without any entry
// may cover a day on which nothing happened; one whose entries are all known comes from
// a server that ignores the query.
func (w *walk) count(l *fetchResult, fresh bool) {
	if w.kind == Archived && w.loops.RepeatsFirst(l.doc.facts()) {
		fresh = true
	}
	switch {
	case fresh:
		w.used.barren, w.used.empty = 0, 0
	case w.kind == Archived && l.err == nil && len(l.doc.Entries)+len(l.doc.Deleted) == 0:
		w.used.empty++
	default:
		w.used.barren++
	}
}

// forbids returns a gap if a document must not be requested.
func (w *walk) forbids(url string) *Gap {
	switch {
	case w.loops.HasSeen(url):
		return &Gap{URL: url, Reason: ReasonLoop, Err: errors.New("this document has already been read")}
	case w.foreign(url):
		return &Gap{URL: url, Reason: ReasonRefused, Err: &FetchError{URL: url, Reason: ReasonRefused, Err: errOrigin}}
	case !w.spent(0):
		return nil
	case w.barren():
		return &Gap{URL: url, Reason: ReasonBarren,
			Err: fmt.Errorf("%d documents in a row brought nothing new; %d of them had no entry", w.used.barren+w.used.empty, w.used.empty)}
	}
	if w.isLate() {
		return &Gap{URL: url, Reason: ReasonBudget, Err: fmt.Errorf("spent: the time of the walk, %v; it has read %d documents", w.budget.Time, w.used.Documents)}
	}
	return &Gap{URL: url, Reason: ReasonBudget,
		Err: fmt.Errorf("spent: %d of %d documents, %d of %d bytes",
			w.used.Documents, w.budget.Documents, w.used.Bytes, w.budget.Bytes)}
}

func (w *walk) foreign(url string) bool {
	return w.c.SameOrigin &&
		!slices.ContainsFunc(w.origins, func(own string) bool { return iri.AreSameOrigin(own, url) })
}

// strayed returns a gap if a document was redirected to a forbidden origin.
func (w *walk) strayed(l *fetchResult, from string) *Gap {
	if !w.foreign(l.finalURL()) {
		return nil
	}
	return &Gap{URL: l.url, From: from, Reason: ReasonRefused, Err: &FetchError{URL: l.finalURL(), Reason: ReasonRefused, Err: errOrigin}}
}

// The walk's part in prefetching: which documents may be requested early.

// errUnended is the error if a transport ends its goroutine, as a failed test's handler
// in it does.
var errUnended = errors.New("the request did not end")

// source returns the documents of the walk.
func (w *walk) source() chain.Source[*fetchResult, *Document] {
	return chain.Source[*fetchResult, *Document]{
		Request: func(r chain.Request) func(context.Context, func(*Document)) *fetchResult {
			known := w.known(r.URL)
			return func(ctx context.Context, arrived func(*Document)) *fetchResult {
				return w.c.load(ctx, r, known, arrived)
			}
		},
		Named:    w.named,
		Expected: func(url string) string { return iri.Address(w.known(url).Older) },
		May:      w.mayGuess,
		Confirms: func(url string, l *fetchResult) bool {
			return l != nil && l.err == nil && (l.doc == nil || l.doc.URL == url)
		},
		Fails: func(l *fetchResult, guess bool) bool {
			return l != nil && l.err != nil && (guess || !errors.Is(l.err, fs.ErrNotExist))
		},
	}
}

// named returns the next document named by the given head, and whether to load it
// early. It is not if a later link could still lead elsewhere, because a wasted request
// counts against the host's rate limit; nor if the document is known, because earlier
// documents may decide whether the walk needs it.
func (w *walk) named(head *Document) (url string, early bool) {
	kind := w.kind
	if w.start == "" {
		if kind = Archived; head.Kind() != Archived || !head.isSubscription() || head.beginsElsewhere() {
			return "", false
		}
	}
	if w.start != "" && head.ID != "" && w.id != "" && head.ID != w.id { // it may be of another feed
		return "", false
	}
	link, ok := head.Links.Rel(kind.Older())
	url = iri.Address(link.Href)
	return url, ok && link.distance() == 0 && !(kind == Archived && w.start != "" && w.processed(head.URL)) && w.known(url) == (Known{}) && w.may(url)
}

// may reports whether a document may be requested before the walk needs it.
func (w *walk) may(url string) bool {
	return !w.loops.HasSeen(url) && !w.foreign(url) && !w.ahead.Has(url) && !w.spent(w.ahead.Len()-1) && !w.processed(url) &&
		(w.kind != Paged || w.past.Last == nil)
}

// mayGuess reports whether a document not named by a link yet may be requested. Pages need
// times, see watchPages. Where documents may be Processed, what an earlier one brings
// decides whether the walk needs a known one.
func (w *walk) mayGuess(url string) bool {
	switch {
	case w.start == "", w.c.NoGuess, w.c.Pace > 0, w.kind != Archived && w.kind != Paged, w.kind == Paged && w.newest.IsZero(),
		(w.kind == Paged || w.past.Processed != nil) && w.known(url) != (Known{}):
		return false
	}
	return iri.AreSameOrigin(w.start, url) && w.c.requester().IsPatient(url) && w.may(url)
}

// A fetchResult is the outcome of one request.
type fetchResult struct {
	url       string    // the requested URL
	from      string    // the document linking to it
	doc       *Document // nil if nothing could be read, or it is unchanged; may be a part if there is an error
	unchanged bool      // the document is as it is Known
	known     Known     // the memory of an unchanged document, with its new validators
	response  Response
	err       error
	text      string // the document's bytes

	// The walk's findings.
	begins string // the target of its link to the feed's beginning, unless it leads elsewhere
	again  bool   // the next walk from here must look for the beginning again
	reread bool   // it is a second copy of the subscription document
}

// remember returns the memory of a document for the next walk. If the feed begins elsewhere, or
// may do so, or if the document's marks contradict each other, it has no validators, so the
// next walk looks again.
func (l *fetchResult) remember(feed Kind) Known {
	k := l.doc.memory(feed)
	k.Begins = l.begins
	if l.again {
		k.ETag, k.LastModified, k.Digest = "", "", ""
	}
	return k
}

// older returns the URLs of the next document back in time, in a feed of the given
// kind and in the order in which to try them, and whether a link to it cannot be
// used.
func (l *fetchResult) older(feed Kind) (urls []string, lost bool) {
	rel := feed.Older()
	if l.unchanged && rel != "" {
		for _, url := range []string{l.known.Older, l.known.Instead} {
			if url != "" {
				urls = append(urls, iri.Address(url))
			}
		}
		return urls, l.known.Lost
	}
	if l.doc == nil {
		return nil, false
	}
	return l.doc.Links.targets(rel), l.doc.loses(rel)
}

// areFormats reports whether two links of the document to an older one differ in their
// declared types, so both may lead to the same document.
func (l *fetchResult) areFormats(a, b string) bool {
	if l.unchanged {
		return l.known.Formats
	}
	return l.doc != nil && l.doc.Links.areFormats(a, b)
}

// kind returns the kind of feed the document declares.
func (l *fetchResult) kind() Kind {
	if l.unchanged {
		return l.known.Kind
	}
	return l.doc.Kind()
}

// finalURL returns the URL where the document was found, after redirects.
func (l *fetchResult) finalURL() string {
	if l.unchanged && l.known.URL != "" {
		return l.known.URL
	}
	if l.doc == nil {
		return l.url
	}
	return l.doc.URL
}

// read returns the document as a LoopDetector sees it.
func (l *fetchResult) read() chain.Document {
	self, _ := l.doc.Links.Rel(relSelf)
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
