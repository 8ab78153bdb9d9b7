package feedhistory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/door"
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
// Walk remembers nothing between calls. The Poll of package mirror reads only new documents,
// and those earlier walks have missed.
func (c *Client) Walk(ctx context.Context, url string) iter.Seq2[*Reading, error] {
	return func(yield func(*Reading, error) bool) {
		if c == nil {
			yield(nil, errNoClient)
			return
		}
		ctx, past := door.TakePast(ctx)
		memory, _ := past.(*chain.Memory[Known, *Document])
		s := &session{
			c: c, ctx: ctx, yield: yield, meter: meter{most: c.Budget.withDefaults(), begun: time.Now()},
			loops: chain.NewLoopDetector(), past: cmp.Or(memory, new(chain.Memory[Known, *Document])),
		}
		s.ahead = chain.NewPrefetcher(ctx, c.PerHost, (&early{s}).source())
		defer s.ahead.Stop()
		s.run(iri.WithoutFragment(url))
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

// A session is what the phases of a walk share. It makes all decisions in the ranging
// goroutine; package chain has the concurrent parts.
type session struct {
	c     *Client
	ctx   context.Context
	past  *chain.Memory[Known, *Document]
	yield func(*Reading, error) bool
	ended bool // the caller has left, or an error has ended the walk

	ahead *chain.Prefetcher[*fetchResult, *Document]
	loops *chain.LoopDetector
	meter meter

	feed   subject
	kind   Kind // of the current chain
	gaps   int  // yielded so far
	partly bool // a chain ended at a document the caller knows, so this walk cannot tell new entries
}

// A subject is the feed of a walk, as its subscription document shows it.
type subject struct {
	start   string     // the subscription document's URL; "" until it is known
	kind    Kind       // of the subscription document
	id      string     // "" if it is unknown
	origins []string   // URLs at the origins OneOrigin allows
	shown   *chain.Set // the IDs of the entries in the subscription document; nil if it is unchanged
	newest  time.Time  // when the newest of them changed
	signs   *signs     // nil until they are needed
}

// run runs the phases of a walk: where the feed begins, along its chain, beyond it, and what
// earlier walks owe.
func (s *session) run(url string) {
	s.begin("")
	l := s.load(url)
	if l.err != nil {
		s.end(l, l.err)
		return
	}
	s.feed.origins = []string{l.url, l.finalURL()}
	first := &finder{session: s}
	if !l.unchanged {
		l = first.find(l)
	}
	s.kind = l.kind()
	s.feed.see(l)
	beyond := &beyond{session: s}
	along := &along{session: s, held: first.held, beyond: beyond}
	along.follow(l)
	along.followHeld()
	beyond.explore()
	along.resume(KindArchived, s.past.Pending)
	along.resume(KindPaged, s.past.PendingPages)
	beyond.explore()
	s.hand(&Reading{End: true})
}

// see notes the subscription document.
func (f *subject) see(l *fetchResult) {
	f.start, f.kind = l.url, l.kind()
	if l.doc == nil {
		f.id = l.known.ID
		return
	}
	f.id, f.shown, f.signs = l.doc.ID, chain.NewSet(len(l.doc.Entries)), newSigns(l.doc, l.doc.entryIDs())
	for _, e := range l.doc.Entries {
		f.shown.Add(e.ID)
		if at := e.Changed(); at.After(f.newest) {
			f.newest = at
		}
	}
}

// begin begins a chain of the given kind.
func (s *session) begin(kind Kind) {
	s.loops.Begin()
	s.ahead.Begin()
	s.kind, s.meter.used.barren, s.meter.used.empty, s.meter.vacant = kind, 0, 0, 0
}

// yieldDocument yields a document, with the gaps within it.
func (s *session) yieldDocument(l *fetchResult) {
	r := &Reading{URL: l.url, Document: l.doc, Unchanged: l.unchanged, Response: l.response, Known: l.known}
	if l.reread {
		r.origin = ofWalkAgain
	}
	if l.unchanged {
		s.loops.See(l.known.URL)
		if l.known.Damaged {
			r.Gaps = s.found(&Gap{URL: l.known.URL, From: l.known.URL, Reason: ReasonMalformed, Err: errors.New("it has not changed, and is still damaged")})
		}
		s.hand(r)
		return
	}
	s.count(l, s.loops.Record(l.read()))
	if l.err != nil {
		s.fail(l, l.from)
		return
	}
	r.Known, r.Gaps = l.remember(s.kind), s.found(l.doc.Missing(s.kind)...)
	if rel := l.doc.lostBeyond(s.kind); rel != "" {
		r.Gaps = append(r.Gaps, s.found(&Gap{URL: l.doc.URL, From: l.doc.URL, Reason: ReasonMalformed, Err: fmt.Errorf("its link %s cannot be used", rel)})...)
	}
	s.hand(r)
}

// hand yields a Reading.
func (s *session) hand(r *Reading) {
	if !s.ended {
		r.origin = max(r.origin, ofWalk)
		left := time.Now()
		s.ended = !s.yield(r, nil)
		s.meter.begun = s.meter.begun.Add(time.Since(left)) // the caller's time is not the walk's
	}
}

func (s *session) load(url string) *fetchResult {
	s.loops.See(url)
	s.meter.used.Documents++
	l := s.ahead.Load(url)
	if l == nil {
		l = &fetchResult{url: url, err: errUnended}
	}
	s.meter.used.Bytes += int64(len(l.text))
	return l
}

// log logs a decision.
func (s *session) log(msg string, args ...any) {
	if s.c.Logger != nil {
		s.c.Logger.InfoContext(s.ctx, msg, args...)
	}
}

func (s *session) known(url string) Known {
	if s.past.Known == nil {
		return Known{}
	}
	return s.past.Known(url)
}

// fail yields the error of a document not read completely.
func (s *session) fail(l *fetchResult, from string) {
	if s.ctx.Err() != nil {
		s.end(nil, l.err)
		return
	}
	gap := l.gap(from)
	r := &Reading{URL: gap.URL, Gaps: s.found(gap)}
	if l.doc != nil {
		r.Known = l.doc.memory(s.kind)
		r.Known.ETag, r.Known.LastModified, r.Known.Digest = "", "", ""
	}
	s.hand(r)
}

func (l *fetchResult) gap(from string) *Gap {
	return &Gap{URL: l.url, From: from, Reason: reasonOf(l.err), Err: l.err, Document: l.doc}
}

// goesOn reports whether the walk continues. It ends the walk if the context has
// ended.
func (s *session) goesOn() bool {
	if s.ctx.Err() != nil {
		s.end(nil, nil)
	}
	return !s.ended
}

// gap yields a gap.
func (s *session) gap(g *Gap) {
	if !s.ended {
		s.hand(&Reading{URL: g.URL, Gaps: s.found(g)})
	}
}

// found notes gaps about to be yielded.
func (s *session) found(gaps ...*Gap) []*Gap {
	for _, g := range gaps {
		s.gaps++
		g.Found = time.Now()
		s.log("gap", "url", iri.Shown(g.URL), "from", iri.Shown(g.From), "reason", g.Reason.word(), "error", g.Err)
	}
	return gaps
}

// end yields the last error of the walk, with the readable part of the document: the
// context's error, if the context has ended.
func (s *session) end(l *fetchResult, err error) {
	if s.ended {
		return
	}
	s.ended = true
	var r *Reading
	if l != nil && l.doc != nil {
		r = &Reading{URL: l.url, Document: l.doc, Response: l.response, origin: ofWalk}
	}
	if s.ctx.Err() != nil {
		r, err = nil, s.ctx.Err()
	}
	s.yield(r, err)
}

// An along is the phase of a walk following a chain to its end.
type along struct {
	*session
	beyond  *beyond
	held    []*fetchResult // the documents read to find where the feed begins, until the chain reaches them
	reread  bool           // the subscription document has been read a second time
	missing *Gap           // the reason why it was
}

// enter begins a chain of the given kind.
func (a *along) enter(kind Kind) {
	a.begin(kind)
	a.missing = nil
}

// follow yields a document and the older ones. It asks whether a document was
// processed before it yields the document, because the caller may then process it.
func (a *along) follow(l *fetchResult) {
	for l != nil && !a.ended {
		processed := a.wasProcessed(l)
		a.beyond.note(l)
		a.watchPages(l)
		a.yieldDocument(l)
		older, lost := l.older(a.kind)
		if processed && a.kind == KindArchived || a.isLast(l) {
			a.partly = true
			return
		}
		switch {
		case a.ended || len(older) == 0 && !lost:
			return
		case len(older) == 0:
			a.gap(&Gap{URL: l.finalURL(), From: l.finalURL(), Reason: ReasonMalformed,
				Err: fmt.Errorf("its link to an older document, %s, cannot be used", a.kind.Older())})
			return
		case a.kind == KindArchived && a.hasProcessed(l, older):
			a.partly = true
			return
		}
		l = a.next(l.finalURL(), l.areFormats, older...)
	}
}

// next requests the document another links to; it returns nil where the chain ends. If
// there are several links, it tries them in order until it gets a document. If it gets
// none, it yields a gap with the reason. A document excuses a failure before it only as
// another format of the same document: formats reports which links are.
func (a *along) next(from string, formats func(a, b string) bool, urls ...string) *fetchResult {
	var gap *Gap
	var failures []*Gap
	for i, url := range urls {
		if i > 0 && a.kind == KindArchived && a.processed(url) {
			a.partly = true
			a.alternatives(failures, url, formats)
			return nil
		}
		l, failed := a.try(url, from)
		if failed == nil || a.ended {
			a.alternatives(failures, url, formats)
			return l
		}
		failures = append(failures, failed)
		if gap = cmp.Or(gap, failed); gap.Document != nil || failed.Reason == ReasonBudget {
			break
		}
	}
	if !a.goesOn() {
		return nil
	}
	if moved := a.moved(gap); moved != nil {
		a.enter(KindArchived)
		a.missing = gap
		return moved
	}
	a.gap(gap)
	return nil
}

// alternatives yields the gaps of links that failed before another of the same relation
// led to a document: nothing shows that both lead to the same entries.
func (a *along) alternatives(failures []*Gap, read string, formats func(a, b string) bool) {
	for _, gap := range failures {
		if formats == nil || !formats(gap.URL, read) {
			a.gap(gap)
		}
	}
}

// try requests a document. It returns a damaged one if the chain can be followed
// beyond it, and neither a document nor a gap where the chain joins another.
func (a *along) try(url, from string) (*fetchResult, *Gap) {
	if !a.goesOn() { // even if documents have been loaded in advance
		return nil, nil
	}
	if held := a.takeHeld(func(l *fetchResult) bool { return l.url == url }); held != nil {
		return held, nil
	}
	if a.loops.Joins(url) {
		return nil, a.missing // which is still missing
	}
	if gap := a.forbids(url); gap != nil {
		gap.From = from
		return nil, gap
	}
	l := a.load(url)
	l.from = from
	held := a.takeHeld(func(held *fetchResult) bool {
		return l.doc != nil && (l.doc.URL == held.url || l.doc.URL == held.doc.URL)
	})
	if held == nil {
		if l.doc != nil {
			if why := a.loops.Repeats(l.read()); why != "" {
				return nil, &Gap{URL: url, From: from, Reason: ReasonLoop, Err: errors.New(why)}
			}
		}
	}
	if gap := cmp.Or(a.strayed(l, from), a.isForeign(l, from)); gap != nil && held == nil {
		return nil, gap
	}
	if l.err == nil {
		return l, nil
	}
	if older, _ := l.older(a.kind); len(older) > 0 {
		return l, nil
	}
	return nil, l.gap(from)
}

// takeHeld removes a held document and returns it; nil if there is no such one.
func (a *along) takeHeld(isIt func(*fetchResult) bool) *fetchResult {
	i := slices.IndexFunc(a.held, isIt)
	if i < 0 {
		return nil
	}
	held := a.held[i]
	a.held = slices.Delete(a.held, i, i+1)
	return held
}

// followHeld continues with the documents that were read to find the beginning, but are not
// reached by the chain from there.
func (a *along) followHeld() {
	for len(a.held) > 0 && a.goesOn() {
		l := a.held[0]
		a.held = a.held[1:]
		a.unreached(l)
	}
}

// unreached continues with a document read to find the beginning, but not reached by
// the chain from there. It may belong to another feed, because links to the beginning
// become stale.
func (a *along) unreached(l *fetchResult) {
	proven := (a.feed.kind == KindComplete || a.feed.kind == KindArchived) && a.gaps == 0 && !a.partly
	if proven && l.doc.ID != "" && a.feed.id != "" && l.doc.ID != a.feed.id {
		a.gap(a.foreigner(l.doc, "", a.otherID(l.doc)))
		return
	}
	proven = proven && a.loops.IsNew(l.doc.facts())
	a.enter(l.kind())
	a.follow(l)
	if proven && a.gaps == 0 {
		a.gap(&Gap{URL: l.url, From: l.url, Reason: ReasonDetached, Err: fmt.Errorf("the feed that it names as its own, at %s, does not lead to it", iri.Shown(a.feed.start))})
	}
}

// resume continues where earlier walks were cut short.
func (a *along) resume(kind Kind, pending []string) {
	for _, url := range pending {
		url = iri.Address(url)
		if a.ended || a.loops.HasSeen(url) || kind == KindArchived && a.processed(url) || a.past.Wanted != nil && !a.past.Wanted(url) {
			continue
		}
		a.enter(kind)
		a.follow(a.next("", nil, url))
	}
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

// count counts a document of the walk against the budget. An archive without any entry
// may cover a day on which nothing happened; one whose entries are all known comes from
// a server that ignores the query.
func (s *session) count(l *fetchResult, fresh bool) {
	if s.kind == KindArchived && s.loops.RepeatsFirst(l.doc.facts()) {
		fresh = true
	}
	facts := len(l.doc.Entries) + len(l.doc.Deleted)
	switch {
	case fresh:
		s.meter.used.barren, s.meter.used.empty, s.meter.vacant = 0, 0, 0
	case s.kind == KindArchived && l.err == nil && facts == 0:
		s.meter.used.empty++
	default:
		s.meter.used.barren, s.meter.vacant = s.meter.used.barren+1, s.meter.vacant+1-min(facts, 1)
	}
}

// forbids returns a gap if a document must not be requested.
func (s *session) forbids(url string) *Gap {
	switch {
	case s.loops.HasSeen(url):
		return &Gap{URL: url, Reason: ReasonLoop, Err: errors.New("this document has already been read")}
	case s.foreign(url):
		return &Gap{URL: url, Reason: ReasonRefused, Err: &FetchError{URL: url, Reason: ReasonRefused, Err: errOrigin}}
	case !s.meter.spent(0):
		return nil
	case s.meter.barren():
		return &Gap{URL: url, Reason: ReasonBarren,
			Err: fmt.Errorf("%d documents in a row brought nothing new; %d of them had no entry", s.meter.used.barren+s.meter.used.empty, s.meter.vacant+s.meter.used.empty)}
	}
	if s.meter.isLate() {
		return &Gap{URL: url, Reason: ReasonBudget, Err: fmt.Errorf("spent: the time of the walk, %v; it has read %d documents", s.meter.most.Time, s.meter.used.Documents)}
	}
	return &Gap{URL: url, Reason: ReasonBudget,
		Err: fmt.Errorf("spent: %d of %d documents, %d of %d bytes",
			s.meter.used.Documents, s.meter.most.Documents, s.meter.used.Bytes, s.meter.most.Bytes)}
}

func (s *session) foreign(url string) bool {
	return s.c.OneOrigin &&
		!slices.ContainsFunc(s.feed.origins, func(own string) bool { return iri.AreSameOrigin(own, url) })
}

// strayed returns a gap if a document was redirected to a forbidden origin.
func (s *session) strayed(l *fetchResult, from string) *Gap {
	if !s.foreign(l.finalURL()) {
		return nil
	}
	return &Gap{URL: l.url, From: from, Reason: ReasonRefused, Err: &FetchError{URL: l.finalURL(), Reason: ReasonRefused, Err: errOrigin}}
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
