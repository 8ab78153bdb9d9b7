package backfill

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Method recovers the history of feeds that are made by one kind of
// software, or kept by one kind of archive.
type Method interface {
	// Name names the method: a word in lower case, such as "wordpress".
	Name() string

	// Recognise says, from a feed's first document alone, whether the method is
	// for such a feed. A paged feed is left to its own links by saying No.
	Recognise(doc *feedhistory.Document) Sign

	// Probe finds out whether the method works for the feed that begins with
	// doc, with as few requests as that takes: two at most where the document
	// does not name the software. What is to be remembered of it, it adds to p.
	// Where it does not, that says why, as Reason. An error says that it could not
	// be found out: the next walk tries again.
	Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) (bool, error)

	// Walk yields the documents beyond doc: newest first, as far as the method
	// can tell. Where one is missing it yields the error. What it learns, it
	// adds to p.
	Walk(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error]
}

// A Sign is how sure it is that a method is for a feed.
type Sign uint8

// The signs.
const (
	No    Sign = iota // it is not for this feed
	Maybe             // nothing speaks against it
	Yes               // the document names the software
)

// String returns "no", "maybe" or "yes".
func (s Sign) String() string { return [...]string{"no", "maybe", "yes"}[min(s, Yes)] }

// A Probe is what is remembered of trying the methods on a feed. The zero value
// stands for nothing: they are yet to be tried. It is to be stored, as JSON for
// example, and handed to the next walk of the same feed.
type Probe struct {
	Method string `json:"method,omitempty"` // by name; None if none works
	Mode   string `json:"mode,omitempty"`   // a word of the method's own, on how it works
	Reason string `json:"reason,omitempty"` // with None, why not, if the feed names its software

	// Proven says that at one moment of the walk the server counted as many
	// entries as have come, and that each of them was there before that moment and
	// after it. It is set by a method's Walk, and no part of what is stored.
	Proven bool `json:"-"`

	kept map[string]answer // what was requested already, by URL
	task *task             // of the walk under way
}

// None is the Method of a Probe that found none.
const None = "none"

// A Backfill walks feeds, beyond what they declare. Its zero value is ready to
// use. Its fields must not change while it is used.
type Backfill struct {
	HTTP *feedhistory.Client // makes the requests; nil: one with the default settings

	// Recount is how long Keep relies on a server's count, and on gaps that it
	// could not close, before it asks again. Zero: a week; negative: for ever.
	Recount time.Duration

	// Methods are tried in this order; nil: those of the function Methods. A
	// Memento is used only if it is among them.
	Methods []Method
}

// Methods returns those that are tried by default: WordPress, Blogger and
// each platform that is known.
func Methods() []Method {
	methods := []Method{WordPress{}, Blogger{}}
	for _, p := range platforms {
		methods = append(methods, p)
	}
	return methods
}

func (b *Backfill) methods() []Method {
	if b.Methods == nil {
		return Methods()
	}
	return b.Methods
}

// client returns the client to be used, and what is to be done after that.
func (b *Backfill) client() (c *feedhistory.Client, done func()) {
	if b.HTTP != nil {
		return b.HTTP, func() {}
	}
	c = new(feedhistory.Client)
	return c, c.CloseIdle
}

// Candidates returns the methods to try on the feed that begins with doc: the
// first that recognises it, and then those that may be for it. Nothing is
// requested. There are none for feeds that are complete or archived.
func (b *Backfill) Candidates(doc *feedhistory.Document) (sure, maybe []Method) {
	if kind := doc.Kind(); kind == feedhistory.Complete || kind == feedhistory.Archived {
		return nil, nil
	}
	for _, m := range b.methods() {
		switch sign := m.Recognise(doc); {
		case sign == Yes && sure == nil:
			sure = append(sure, m)
		case sign == Maybe:
			maybe = append(maybe, m)
		}
	}
	return sure, maybe
}

// A Result is a history, with a word on how it was recovered.
type Result struct {
	History     *feedhistory.History
	Probe       Probe  // to be remembered
	RecoveredBy string // the method's name; "" if the feed's own links did it, or nothing
	Proven      bool   // the method has proved that this is everything
}

// Verdict returns how much of the feed this is: of what a method recovered,
// Lossy at best, unless it is Proven to be Whole.
func (r *Result) Verdict() feedhistory.Verdict {
	switch v := r.History.Verdict(); {
	case r.RecoveredBy == "" || v == feedhistory.Partial:
		return v
	case r.Proven:
		return feedhistory.Whole
	}
	return feedhistory.Lossy
}

// Fetch walks a feed and merges what comes. Errors are those of
// feedhistory.Client.Fetch; a result may come with one.
func (b *Backfill) Fetch(ctx context.Context, url string, from Probe) (*Result, error) {
	w := b.Walk(ctx, url, from, nil)
	h, err := feedhistory.Merge(w.Documents())
	if h == nil {
		return nil, err
	}
	return w.Result(h), err
}

// Walk returns the walk of the feed at url. Of its own links it follows those
// that feedhistory.Client.Walk follows, with opt, which may be nil. Nothing is
// requested until its documents are ranged over.
func (b *Backfill) Walk(ctx context.Context, url string, from Probe, opt *feedhistory.WalkOptions) *Walk {
	return &Walk{b: b, ctx: ctx, url: url, opt: opt, from: from, probe: from}
}

// A Walk yields a feed's documents. It is for one goroutine.
type Walk struct {
	b    *Backfill
	ctx  context.Context
	url  string
	opt  *feedhistory.WalkOptions
	from Probe
	task *task // what is there already, and how far an earlier walk came; nil: nothing, and nowhere

	probe     Probe
	by        string // the method's name; "" if there is none
	recovered string // and where it has brought something
}

// Documents yields the documents, newest first as far as can be told, so that
// feedhistory.Merge takes them: the feed's own as feedhistory.Client.Walk does,
// then those that a method recovers. Last may come once more what has changed
// meanwhile. Errors are those of Client.Walk. To range again starts again.
func (w *Walk) Documents() iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		t := cmp.Or(w.task, &task{})
		w.probe, w.by, w.recovered = Probe{Method: w.from.Method, Mode: w.from.Mode, Reason: w.from.Reason, task: t}, "", ""
		http, done := w.b.client()
		defer done()
		r := &run{Walk: w, http: http, yield: yield, budget: withDefaults(http.Budget), task: t, reached: t.place}
		r.run()
		w.probe.kept, w.probe.task = nil, nil
	}
}

// Probe returns what is to be remembered, once the documents have been ranged
// over.
func (w *Walk) Probe() Probe { return w.probe }

// Result returns the result of the walk, whose documents were merged to h.
func (w *Walk) Result(h *feedhistory.History) *Result {
	return &Result{
		History: h, Probe: w.probe, RecoveredBy: w.recovered,
		Proven: w.probe.Proven && w.recovered != "" && len(h.Gaps) == 0,
	}
}
