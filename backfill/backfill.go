// Package backfill recovers undeclared histories of feeds.
//
// Few feeds say by RFC 5005 where their older entries are. But many can still be
// recovered, in a way that depends on the publishing software: WordPress answers
// ?paged=2, Blogger answers ranges of times, others number pages in their own ways, and
// a web archive may have entries no longer on the publisher's server.
//
//	b := backfill.Backfill{}
//	r, err := b.Fetch(ctx, "https://example.org/feed/", backfill.Probe{})
//	…
//	fmt.Println(len(r.History.Entries), r.Verdict(), r.RecoveredBy)
//
// The feed's own links come first. If there are none, an Attempt tries the [Method] of the
// feed's software, and then the methods for feeds of any software, each for what the one
// before has left missing. Their result is at best lossy, unless the software's method
// proves it has everything.
//
// A [Probe] has the findings of a walk. Store it with the feed, so the next walk tries
// nothing again.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package backfill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A Method recovers the history of feeds made by a certain kind of software, or kept by
// a certain kind of archive.
type Method interface {
	// Name returns the method's name: a word in lower case, such as "wordpress".
	Name() string

	// Recognise reports, from a feed's first document alone, whether the method
	// suits the feed. It returns No for a paged feed whose own links the walk
	// should follow.
	Recognise(doc *feedhistory.Document) Sign

	// Probe finds out whether the method works for the feed beginning with doc, with as
	// few requests as possible: at most two if the document does not name the software. It
	// adds its findings to p and, if the method does not work, the Reason. With an error,
	// Probe could not find out, so the next walk tries again. What Probe has read already
	// may stay in p.Read for Documents.
	Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) (bool, error)

	// Documents yields the documents beyond doc, newest first as far as the method can tell. It
	// yields an error for a missing document. It adds its findings to p. With SetPlace, it
	// can say where to continue.
	Documents(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error]
}

// A Sign is how sure a method is of suiting a feed.
type Sign uint8

// The signs.
const (
	No    Sign = iota // the method does not suit the feed
	Any               // the software does not matter: the method is for what the software's own has left missing
	Maybe             // nothing contradicts the method
	Yes               // the document names the software
)

// String returns "no", "any", "maybe" or "yes".
func (s Sign) String() string { return [...]string{"no", "any", "maybe", "yes"}[min(s, Yes)] }

// A Probe has a walk's findings from trying the methods on a feed. Store it, for
// example as JSON, and pass it to the next walk of the same feed. The zero value means
// no method has been tried.
type Probe struct {
	Method string `json:"method,omitempty"` // the name of the method; None if none works
	Mode   string `json:"mode,omitempty"`   // how the method works, in a word of its own
	Reason string `json:"reason,omitempty"` // why the method of the software named by the feed does not work, with None

	Next  *Probe   `json:"next,omitempty"`  // the next method that works, for what this one leaves missing; nil if there is none
	Tried []string `json:"tried,omitempty"` // the names of the methods for Any software that do not work

	// Proven means the server counted, at one moment of the walk, as many entries as have
	// come, and each of them existed before and after this moment. A method's Documents sets
	// it; it is not stored.
	Proven bool `json:"-"`

	// Read belongs to the method: the result of its Probe, for its Documents. Nil means nothing. It is
	// not stored.
	Read any `json:"-"`

	// Budget is the rest of the walk's budget when a method's Documents begins; zero means
	// that of the Client. It is not stored.
	Budget feedhistory.Budget `json:"-"`

	kept map[string]answer // answers to earlier requests, by URL
	task *task             // the walk under way
}

// None is the Method of a Probe without success.
const None = "none"

// Names returns the names of the working methods, in order.
func (p *Probe) Names() (names []string) {
	for ; p != nil; p = p.Next {
		if p.Method != "" && p.Method != None {
			names = append(names, p.Method)
		}
	}
	return names
}

// Place returns where a method's Documents continues an earlier one, by its last SetPlace; ""
// means at the beginning.
func (p *Probe) Place() string {
	if p.task == nil {
		return ""
	}
	return p.task.place.Own
}

// SetPlace sets where the next walk continues if this one ends early, in a form of the
// method's own. Documents calls it before it yields a document, with the place after that;
// and at its end with "", or else with where it should have gone on.
func (p *Probe) SetPlace(own string) {
	if p.task != nil {
		p.task.place = place{Own: own}
	}
}

// A KnownEntry is an entry of the feed, which need not be recovered.
type KnownEntry struct {
	ID      string
	Link    string    // the URL of its alternate link; "" if there is none
	KeptBy  string    // the method to which the copy is due; "" if it is the publisher's own
	Updated time.Time // zero if it does not say
}

func knownEntry(e *feedhistory.Entry) KnownEntry {
	link, _ := e.Links.Rel("alternate")
	return KnownEntry{ID: e.ID, Link: link.Href, KeptBy: e.KeptBy, Updated: e.Updated}
}

// Known yields the entries that have come already, in this walk or, if it is one of Keep,
// before. The error is the store's, or the context's.
func (p *Probe) Known(ctx context.Context) iter.Seq2[KnownEntry, error] {
	return func(yield func(KnownEntry, error) bool) {
		if p.task == nil {
			return
		}
		for _, e := range p.task.came {
			if !yield(e, nil) {
				return
			}
		}
		if p.task.known != nil {
			p.task.known(ctx)(yield)
		}
	}
}

// A Backfill walks feeds beyond the documents they declare. Its zero value is ready to
// use. Do not change its fields while you use it.
type Backfill struct {
	// HTTP makes the requests; nil means a client with the default settings.
	HTTP *feedhistory.Client

	// Recount is how long Keep relies on a server's count, and does not retry gaps it
	// could not close, before it asks the server again. Zero means a week, a negative
	// value for ever.
	Recount time.Duration

	// Methods are the methods to try, in order; nil means the result of the function
	// Methods. Memento, and the method of module backfill/sitemap, are used only if you
	// include them.
	Methods []Method
}

// Methods returns the methods tried by default: WordPress, Blogger, all known platforms,
// and ActivityPub.
func Methods() []Method {
	methods := []Method{WordPress{}, Blogger{}}
	for _, p := range platforms {
		methods = append(methods, p)
	}
	return append(methods, ActivityPub{})
}

func (b *Backfill) methods() []Method {
	if b.Methods == nil {
		return Methods()
	}
	return b.Methods
}

// Candidates returns the methods to try on the feed beginning with doc: first those
// that recognise it, then those that may suit it. It makes no request. For complete and
// archived feeds it returns none.
func (b *Backfill) Candidates(doc *feedhistory.Document) (sure, maybe []Method) {
	if doc == nil {
		return nil, nil
	}
	if kind := doc.Kind(); kind == feedhistory.KindComplete || kind == feedhistory.KindArchived {
		return nil, nil
	}
	for _, m := range b.methods() {
		switch sign := m.Recognise(doc); {
		case sign == Yes && sure == nil:
			sure = append(sure, m)
		case sign == Maybe || sign == Any:
			maybe = append(maybe, m)
		}
	}
	return sure, maybe
}

// A Recovery is a history and how it was recovered.
type Recovery struct {
	// History has the documents of the feed's own links and of the method. Its own Verdict,
	// and so its Coverage and Document, do not know the method, and may differ from
	// Recovery.Verdict, which counts.
	History *feedhistory.History

	Probe       Probe  // the findings to store for the next walk
	RecoveredBy string // the names of the methods, with ", " between them; "" if only the feed's own links brought documents
	Proven      bool   // whether the method has proved the history whole
}

// Verdict returns how much of the feed this is. A recovered history is lossy at
// best, unless it is Proven to be whole.
func (r *Recovery) Verdict() feedhistory.Verdict {
	switch v := r.History.Verdict(); {
	case r.RecoveredBy == "" || v == feedhistory.VerdictPartial || v == feedhistory.VerdictUnknown:
		return v
	case r.Proven:
		return feedhistory.VerdictWhole
	}
	return feedhistory.VerdictLossy
}

// Fetch walks a feed and merges its documents. The errors are those of
// feedhistory.Client.Fetch; a result may come with an error.
func (b *Backfill) Fetch(ctx context.Context, url string, from Probe) (*Recovery, error) {
	w := b.Attempt(ctx, url, from)
	h, err := feedhistory.Merge(w.Readings())
	if h == nil {
		return nil, err
	}
	return w.Recovery(h), err
}

// Attempt returns the walk of the feed at url. The walk follows the feed's own
// links as feedhistory.Client.Walk does. It makes no request until you range
// over its documents.
func (b *Backfill) Attempt(ctx context.Context, url string, from Probe) *Attempt {
	return &Attempt{b: b, ctx: ctx, url: url, from: from, findings: findingsOf(from)}
}

// An Attempt yields a feed's documents. Use it in one goroutine only.
type Attempt struct {
	b    *Backfill
	ctx  context.Context
	url  string
	from Probe
	task *task // the known entries, and how far an earlier walk came; nil for a walk over everything

	findings
	recovered []string // the names of the methods that have brought anything
}

// The findings of a walk become its Probe.
type findings struct {
	working []*Probe // the methods that work, in order
	none    bool     // no other one does
	reason  string   // why the software's does not
	tried   []string // the methods for any software that do not
}

func findingsOf(p Probe) findings {
	f := findings{reason: p.Reason, tried: slices.Clone(p.Tried), none: p.Method == None}
	for at := &p; at != nil; at = at.Next {
		if at.Method != "" && at.Method != None {
			f.working = append(f.working, &Probe{Method: at.Method, Mode: at.Mode})
		}
	}
	return f
}

// probe returns the findings as a Probe.
func (f *findings) probe() Probe {
	p := Probe{Reason: f.reason}
	if f.none {
		p.Method = None
	}
	for i, m := range slices.Backward(f.working) {
		here := Probe{Method: m.Method, Mode: m.Mode, Proven: m.Proven}
		if i < len(f.working)-1 {
			next := p
			here.Next = &next
		}
		p = here
	}
	p.Tried = slices.Clone(f.tried)
	return p
}

// of returns the Probe of a method; nil if it is not known to work.
func (f *findings) of(m Method) *Probe {
	i := slices.IndexFunc(f.working, func(p *Probe) bool { return p.Method == m.Name() })
	if i < 0 {
		return nil
	}
	return f.working[i]
}

// Readings yields the documents for feedhistory.Merge, newest first as far as the walk
// can tell: first the feed's own as feedhistory.Client.Walk does, then those a method
// recovers. Documents changed meanwhile may come again at the end. The errors are those
// of Client.Walk. Ranging again starts a new walk.
func (w *Attempt) Readings() iter.Seq2[*feedhistory.Reading, error] {
	return func(yield func(*feedhistory.Reading, error) bool) {
		t := cmp.Or(w.task, &task{})
		w.findings, w.recovered = findingsOf(w.from), nil
		http, done := settings.Shared(w.b.HTTP)
		defer done()
		r := &run{Attempt: w, http: http, yield: yield, budget: withDefaults(http.Budget), begun: time.Now(), task: t, reached: t.place}
		if r.run(); !r.over {
			yield(&feedhistory.Reading{End: true}, nil)
		}
		for _, p := range w.working {
			p.kept, p.task, p.Read = nil, nil, nil
		}
	}
}

// Probe returns the findings to store for the next walk. Call it after ranging over the
// documents.
func (w *Attempt) Probe() Probe { return w.probe() }

// Recovery returns the outcome of the walk, given the merged history of its documents.
func (w *Attempt) Recovery(h *feedhistory.History) *Recovery {
	p := w.probe()
	return &Recovery{
		History: h, Probe: p, RecoveredBy: strings.Join(w.recovered, ", "),
		Proven: p.Proven && w.recovered != nil && len(h.Gaps) == 0,
	}
}

// A run is one range over a walk's documents. It sets limits to methods.
type run struct {
	*Attempt
	http   *feedhistory.Client
	yield  func(*feedhistory.Reading, error) bool
	over   bool // the caller has left, or an error has ended the walk
	budget feedhistory.Budget
	used   feedhistory.Budget
	begun  time.Time
	first  *feedhistory.Document

	task    *task
	reached place // the place of the last document yielded
	passed  bool  // a method has been used

	remembers bool // a method for any software may need the entries that have come
}

// withDefaults replaces zero fields by the defaults of feedhistory.Budget. To its time comes that
// of a pace: methods read pages of a site one each second.
func withDefaults(b feedhistory.Budget) feedhistory.Budget {
	const most = 1_000_000
	b.Documents, b.Bytes = cmp.Or(b.Documents, 10_000), cmp.Or(b.Bytes, 1<<30)
	b.Time = cmp.Or(b.Time, 10*time.Minute+time.Duration(min(b.Documents, most))*time.Second)
	return b
}

// run follows the feed's own links, and then uses methods if there are none.
func (r *run) run() {
	method, gaps, goOn := r.follow()
	switch {
	case r.first == nil || !goOn:
		return
	case method != nil:
		if !r.miss(r.first.Missing(feedhistory.KindComplete)...) || !r.pass(method) {
			return
		}
	case r.first.Kind() == feedhistory.KindPaged && !gaps:
		for doc, err := range closing(r.ctx, r.http, r.first) {
			if !r.hand(doc, err) {
				return
			}
		}
	}
	r.passAny()
}

// follow follows the feed's own links, unless there is a method for its software: with one, no
// link of the first document counts. It reports whether there were gaps, and whether to go on.
func (r *run) follow() (method Method, gaps, goOn bool) {
	for reading, err := range r.http.Walk(r.ctx, r.url) {
		if err != nil {
			r.deliver(reading, err)
			return nil, true, false
		}
		if reading.End {
			break
		}
		r.count(reading.Document)
		own := reading.Gaps
		isFirst := r.first == nil && reading.Document != nil
		if isFirst {
			reading.Gaps = nil
		}
		if !r.deliver(reading, nil) {
			return nil, gaps, false
		}
		if isFirst {
			doc := reading.Document
			r.first, r.remembers = doc, len(r.b.anyMethods(doc)) > 0
			r.remember(doc)
			if method, err = r.method(doc); err != nil {
				r.deliver(nil, err)
				return nil, gaps, false
			}
			if method != nil {
				break
			}
			if !r.miss(own...) {
				return nil, gaps, false
			}
		}
		gaps = gaps || len(own) > 0
	}
	return method, gaps, true
}

// deliver yields a Reading, or the last error, and reports whether to go on.
func (r *run) deliver(reading *feedhistory.Reading, err error) bool {
	left := time.Now()
	r.over = !r.yield(reading, err) || err != nil
	r.begun = r.begun.Add(time.Since(left)) // the caller's time is not the walk's
	return !r.over
}

// miss yields gaps.
func (r *run) miss(gaps ...*feedhistory.Gap) bool {
	return len(gaps) == 0 || r.deliver(&feedhistory.Reading{URL: gaps[0].URL, Gaps: gaps}, nil)
}

// method returns the method for the feed's software; nil if there is none. It probes the
// methods unless the result is stored.
func (r *run) method(doc *feedhistory.Document) (Method, error) {
	sure, maybe := r.b.Candidates(doc)
	candidates := slices.DeleteFunc(append(sure, maybe...), func(m Method) bool { return m.Recognise(doc) == Any })
	for _, m := range candidates {
		if r.of(m) != nil {
			return m, nil
		}
	}
	if r.none || slices.ContainsFunc(r.b.anyMethods(doc), func(m Method) bool { return r.of(m) != nil }) {
		return nil, nil
	}
	*r.task = task{has: r.task.has, known: r.task.known, came: r.task.came}
	r.findings, r.reached = findings{}, place{}
	r.none = doc.Kind() == feedhistory.KindPlain
	for _, m := range candidates {
		p, works, err := r.try(m)
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		if works {
			r.findings = findings{working: []*Probe{p}}
			return m, nil
		}
		r.none, r.reason = r.none && err == nil, cmp.Or(r.reason, p.Reason)
	}
	if !r.none {
		r.reason = ""
	}
	return nil, nil
}

// try probes a method.
func (r *run) try(m Method) (p *Probe, works bool, err error) {
	p = &Probe{Method: m.Name(), task: r.task}
	works, err = m.Probe(r.ctx, r.http, r.first, p)
	r.log("probed", "method", m.Name(), "works", works, "error", err)
	return p, works, err
}

// anyMethods returns the methods for feeds of any software.
func (b *Backfill) anyMethods(doc *feedhistory.Document) (all []Method) {
	_, maybe := b.Candidates(doc)
	return slices.DeleteFunc(maybe, func(m Method) bool { return m.Recognise(doc) != Any })
}

// passAny uses the methods for any software, each for what those before it have left
// missing. It begins with the one in which an earlier walk ended.
func (r *run) passAny() {
	methods := r.b.anyMethods(r.first)
	if n := len(r.working); n > 0 && r.task.place.begun() {
		if i := slices.IndexFunc(methods, func(m Method) bool { return m.Name() == r.working[n-1].Method }); i > 0 {
			methods = slices.Concat(methods[i:i+1], methods[:i], methods[i+1:])
		}
	}
	for _, m := range methods {
		isCut := r.passed && r.Attempt.task != nil && r.task.state != ended // the next Keep continues there
		if isCut || len(r.working) > 0 && r.working[0].Proven {
			return
		}
		if r.of(m) == nil && !slices.Contains(r.tried, m.Name()) {
			p, works, err := r.try(m)
			switch {
			case r.ctx.Err() != nil:
				r.deliver(nil, r.ctx.Err())
				return
			case works:
				r.working = append(r.working, p)
			case err == nil:
				r.tried, r.reason = append(r.tried, m.Name()), cmp.Or(r.reason, p.Reason)
			default:
				r.none = false
			}
		}
		if r.of(m) != nil && !r.pass(m) {
			return
		}
	}
}

// pass uses a working method, unless an earlier walk has come to its end. It reports
// whether another method may follow.
func (r *run) pass(m Method) bool {
	if slices.Contains(r.task.skip, m.Name()) {
		return true
	}
	if r.passed {
		r.task.state, r.task.place, r.reached = unended, place{}, place{}
	}
	r.passed = true
	p := r.of(m)
	p.task = r.task
	p.Budget = feedhistory.Budget{Documents: max(r.budget.Documents-r.used.Documents, 1), Bytes: max(r.budget.Bytes-r.used.Bytes, 1), Time: max(r.budget.Time-time.Since(r.begun), 1)}
	for doc, err := range m.Documents(r.ctx, r.http, r.first, p) {
		if doc != nil && err == nil && !slices.Contains(r.recovered, m.Name()) {
			r.recovered = append(r.recovered, m.Name())
		}
		if !r.hand(doc, err) {
			return false
		}
	}
	if !r.task.place.begun() && r.task.state == unended {
		r.task.state = ended
	}
	return r.ctx.Err() == nil
}

// hand yields a method's document or error, within the budget, and reports whether the
// method may continue. If it may not, its place is the place of the last document
// yielded.
func (r *run) hand(doc *feedhistory.Document, err error) bool {
	if r.ctx.Err() != nil {
		r.task.place = r.reached
		r.deliver(nil, r.ctx.Err())
		return false
	}
	if err != nil {
		gap, ok := errors.AsType[*feedhistory.Gap](err)
		if !ok {
			gap = feedhistory.NewGap(r.first.URL, err)
		}
		r.reached = r.task.place
		if !r.miss(gap) {
			return false
		}
		late := r.isLate()
		if late {
			r.spend(gap.URL, gap.Found)
		}
		return !late
	}
	if !r.affordable() || r.isLate() {
		r.task.place = r.reached
		r.spend(doc.Response.Requested, doc.Response.Received)
		return false
	}
	r.count(doc)
	r.remember(doc)
	r.reached = r.task.place
	return r.deliver(&feedhistory.Reading{
		URL: doc.Response.Requested, Document: doc, Response: doc.Response, Gaps: doc.Missing(feedhistory.KindComplete),
	}, nil)
}

// remember adds a document's entries to the known ones, if a method may need them.
func (r *run) remember(doc *feedhistory.Document) {
	if !r.remembers {
		return
	}
	for _, e := range doc.Entries {
		k := knownEntry(e)
		k.ID, k.Link = strings.Clone(k.ID), strings.Clone(k.Link) // or they would keep the document in memory
		r.task.came = append(r.task.came, k)
	}
}

func (r *run) count(doc *feedhistory.Document) {
	if doc != nil {
		r.used.Documents++
		r.used.Bytes += int64(len(doc.Text()))
	}
}

func (r *run) affordable() bool {
	return r.used.Documents < r.budget.Documents && r.used.Bytes < r.budget.Bytes
}

// isLate reports whether the time of the walk is spent.
func (r *run) isLate() bool { return time.Since(r.begun) >= r.budget.Time }

// spend yields the gap for the documents that the budget leaves unread.
func (r *run) spend(url string, at time.Time) {
	err := fmt.Errorf("spent: %d of %d documents, %d of %d bytes", r.used.Documents, r.budget.Documents, r.used.Bytes, r.budget.Bytes)
	if r.affordable() {
		err = fmt.Errorf("spent: the time of the walk, %v; it has read %d documents", r.budget.Time, r.used.Documents)
	}
	r.miss(&feedhistory.Gap{URL: url, From: r.first.URL, Reason: feedhistory.ReasonBudget, Err: err, Found: at})
}

func (r *run) log(msg string, args ...any) {
	if r.http.Logger != nil {
		r.http.Logger.InfoContext(r.ctx, msg, args...)
	}
}

// A task is the work of a walk if some entries are known already: its aim, its progress
// and its findings. The zero value is a walk over everything, from the beginning.
type task struct {
	place place
	state taskState
	soon  bool // nothing could be proved because an answer was missing

	// refill makes a walk read only the entries newer than the known ones.
	refill bool

	// holds reports whether all of these versions of entries are known from before the
	// time of the entries to recover. Nil means nothing is known.
	holds func([]*feedhistory.Entry) bool

	// has returns the IDs whose entries are known. Nil means none.
	has func(ids []string) map[string]bool

	known func(context.Context) iter.Seq2[KnownEntry, error] // yields the entries from before the walk; nil means there are none
	came  []KnownEntry                                       // the entries of the walk
	skip  []string                                           // the names of the methods whose walks have come to their end

	counter string    // the URL at which the server says how many entries it has; "" if it does not
	listed  bool      // everything the server lists has come
	total   int       // the number it gave, if all of them are proved to have come
	proven  time.Time // when it counted; zero without the proof
}

// A taskState is how a walk has ended.
type taskState uint8

const (
	unended taskState = iota // the walk may continue at its place
	restart                  // the walk must begin again
	ended                    // the walk has reached its end, perhaps with gaps
)

// A place is how far a walk has come. Before a document is yielded, the place is set to
// the next one.
type place struct {
	Page    int    `json:"page,omitempty"`    // the next page to read; zero for none
	Until   int    `json:"until,omitempty"`   // the last page to read; zero means all
	Entries int    `json:"entries,omitempty"` // the number of entries so far
	Last    string `json:"last,omitempty"`    // the ID of the last of them
	At      int64  `json:"at,omitempty"`      // when that was published, in milliseconds, in a list
	Latest  int    `json:"latest,omitempty"`  // the next page to read of the posts modified meanwhile

	// Before is the time of the last snapshot.
	Before time.Time `json:"before,omitzero"`

	Own string `json:"own,omitempty"` // set by Probe.SetPlace
}

// begun reports whether the walk continues an interrupted one.
func (p place) begun() bool { return p != place{} }

// overlaps reports whether a page leads to known entries.
func (t *task) overlaps(entries []*feedhistory.Entry) bool {
	return t.holds != nil && len(entries) > 0 && t.holds(entries)
}

// An answer is the result of a request.
type answer struct {
	doc    *feedhistory.Document
	header http.Header
	err    error
}

// missing reports whether the server denies the existence of the document.
func (a answer) missing() bool {
	return errors.Is(a.err, fs.ErrNotExist)
}

// failure returns the error of an answer, if the next answer may be different.
func (a answer) failure() error {
	answer, refused := errors.AsType[*feedhistory.FetchError](a.err)
	refused = refused && answer.Reason == feedhistory.ReasonStatus
	_, noFeed := errors.AsType[*feedhistory.ParseError](a.err)
	_, strayed := errors.AsType[*feedhistory.Gap](a.err)
	if noFeed || strayed || refused && answer.Status < http.StatusInternalServerError && answer.Status != http.StatusTooManyRequests {
		return nil
	}
	return a.err
}

// gap returns the gap for an answer without a document.
func (a answer) gap(url, from string) *feedhistory.Gap {
	g := feedhistory.NewGap(url, a.err)
	g.From, g.Document = from, a.doc
	return g
}

// A source makes the requests of a method, each only once.
type source struct {
	ctx  context.Context
	c    *feedhistory.Client
	doc  *feedhistory.Document // the first document of the feed
	kept map[string]answer
	task *task

	*listing // the form of the pages; nil if they are feed documents
}

// newSource returns the source of a method's Documents or Probe. The error says that an argument
// is nil.
func newSource(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) (*source, error) {
	if c == nil || doc == nil || p == nil {
		return nil, errors.New("backfill: Method: the Client, the Document or the Probe is nil")
	}
	if p.kept == nil {
		p.kept = map[string]answer{}
	}
	p.task = cmp.Or(p.task, &task{})
	return &source{ctx: ctx, c: c, doc: doc, kept: p.kept, task: p.task}, nil
}

// walked returns a method's Documents: walk from a new source, or the error of newSource.
func walked(
	ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe, walk func(*source, func(*feedhistory.Document, error) bool),
) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		s, err := newSource(ctx, c, doc, p)
		if err != nil {
			yield(nil, err)
			return
		}
		walk(s, yield)
	}
}

// keep returns the answer to a request, and keeps it for get.
func (s *source) keep(url string) answer {
	a, ok := s.kept[url]
	if !ok {
		a = s.request(url)
		s.kept[url] = a
	}
	return a
}

// get returns the answer to a request, a kept one if there is one.
func (s *source) get(url string) answer {
	if a, ok := s.kept[url]; ok {
		delete(s.kept, url)
		return a
	}
	return s.request(url)
}

func (s *source) request(url string) answer {
	get := s.c.Get
	if s.listing != nil {
		get = s.listed
	}
	doc, err := get(s.ctx, url)
	a := answer{doc: doc, err: err}
	if doc != nil {
		a.header = doc.Response.Header
	}
	if err == nil && s.c.OneOrigin && !iri.AreSameOrigin(doc.URL, s.doc.URL) {
		a.doc, a.err = nil, &feedhistory.Gap{
			URL: url, From: s.doc.URL, Reason: feedhistory.ReasonRefused,
			Err: &feedhistory.FetchError{URL: doc.URL, Reason: feedhistory.ReasonRefused, Err: errors.New("its origin is not the feed's")}, Found: doc.Response.Received,
		}
	}
	return a
}

// closing reads the first document again, and yields it if it has changed, because it
// contains the entries published during the walk.
func closing(ctx context.Context, c *feedhistory.Client, first *feedhistory.Document) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		r, err := c.Poll(ctx, first.Response.Requested, first.Known())
		a := answer{doc: r.Readable(), err: err}
		switch {
		case err != nil:
			yield(nil, a.gap(first.URL, ""))
		case r.Unchanged || !yield(a.doc, nil):
		case len(first.Entries) > 0 && !ids(first.Entries).hasAny(a.doc.Entries):
			yield(nil, overrun(first.URL))
		}
	}
}

// newGap returns a gap with a reason of its own.
func newGap(url, from string, reason feedhistory.Reason, err error) *feedhistory.Gap {
	return &feedhistory.Gap{URL: url, From: from, Reason: reason, Err: err, Found: time.Now()}
}

// overrun returns the gap of a feed in which more was published than fits into
// a document.
func overrun(url string) *feedhistory.Gap {
	return newGap(url, "", feedhistory.ReasonMissedWindow, errors.New("more was published during the walk than one document shows"))
}

// A set is a set of IDs of entries.
type set map[string]bool

func ids(entries []*feedhistory.Entry) set {
	s := set{}
	s.add(entries)
	return s
}

// add adds entries, and returns how many of them are new.
func (s set) add(entries []*feedhistory.Entry) (fresh int) {
	for _, e := range entries {
		if !s[e.ID] {
			s[e.ID] = true
			fresh++
		}
	}
	return fresh
}

func (s set) hasAny(entries []*feedhistory.Entry) bool {
	return slices.ContainsFunc(entries, func(e *feedhistory.Entry) bool { return s[e.ID] })
}

// list returns the IDs of entries in order.
func list(entries []*feedhistory.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.ID
	}
	return out
}

// with returns a URL with changed query parameters, given as name, value, …; an
// empty value removes the parameter. The rest of the URL stays.
func with(base string, params ...string) string {
	base, _, _ = strings.Cut(base, "#")
	path, query, _ := strings.Cut(base, "?")
	var kept []string
	for field := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(field, "=")
		isSet := false
		for param := range slices.Chunk(params, 2) {
			isSet = isSet || param[0] == name
		}
		if field != "" && !isSet {
			kept = append(kept, field)
		}
	}
	for param := range slices.Chunk(params, 2) {
		if param[1] != "" {
			kept = append(kept, param[0]+"="+url.QueryEscape(param[1]))
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

// resolveWithQuery resolves a reference, and gives it the query of its base.
func resolveWithQuery(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return base
	}
	u, err := b.Parse(ref)
	if err != nil {
		return base
	}
	u.RawQuery = b.RawQuery
	return u.String()
}

// A head has the statements of an XML feed's head section that have no field in a
// Document.
type head struct {
	generator  string   // the text of the element and its uri attribute; "" if there is none
	total      int      // openSearch:totalResults; zero if there is none
	namespaces []string // declared by the root element
}

// The namespaces of OpenSearch, of which Blogger uses the older one.
var openSearch = []string{"http://a9.com/-/spec/opensearch/1.1/", "http://a9.com/-/spec/opensearchrss/1.0/"}

// readHead reads the head section of a document.
func readHead(doc *feedhistory.Document) (h head) {
	h.generator = strings.TrimSpace(doc.Generator.Name + " " + doc.Generator.URI)
	elements := door.Root.Head(doc)
	if elements.Scope == nil {
		return h
	}
	for _, b := range elements.Scope.Bindings {
		h.namespaces = append(h.namespaces, b.URI)
	}
	r := elements.Read()
	for depth := r.Depth(); r.Child(depth); {
		if r.Local() == "totalResults" && slices.Contains(openSearch, r.Cursor.Space()) {
			h.total, _ = strconv.Atoi(r.PlainText())
		}
	}
	return h
}
