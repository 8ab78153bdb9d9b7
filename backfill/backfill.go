package backfill

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
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
	// Probe could not find out, so the next walk tries again.
	Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) (bool, error)

	// Walk yields the documents beyond doc, newest first as far as the method can tell. It
	// yields an error for a missing document. It adds its findings to p.
	Walk(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error]
}

// A Sign is how sure a method is of suiting a feed.
type Sign uint8

// The signs.
const (
	No    Sign = iota // the method does not suit the feed
	Maybe             // nothing contradicts the method
	Yes               // the document names the software
)

// String returns "no", "maybe" or "yes".
func (s Sign) String() string { return [...]string{"no", "maybe", "yes"}[min(s, Yes)] }

// A Probe has a walk's findings from trying the methods on a feed. Store it, for
// example as JSON, and pass it to the next walk of the same feed. The zero value means
// no method has been tried.
type Probe struct {
	Method string `json:"method,omitempty"` // the name of the method; None if none works
	Mode   string `json:"mode,omitempty"`   // how the method works, in a word of its own
	Reason string `json:"reason,omitempty"` // why the method of the software named by the feed does not work, with None

	// Proven means the server counted, at one moment of the walk, as many entries as have
	// come, and each of them existed before and after this moment. A method's Walk sets
	// it; it is not stored.
	Proven bool `json:"-"`

	kept map[string]answer // answers to earlier requests, by URL
	task *task             // the walk under way
}

// None is the Method of a Probe without success.
const None = "none"

// A Backfill walks feeds beyond the documents they declare. Its zero value is ready to
// use. Do not change its fields while you use it.
type Backfill struct {
	// HTTP makes the requests; nil means a client with the default settings.
	HTTP *feedhistory.Client

	// Recount is how long Keep relies on a server's count, and does not retry gaps it
	// could not close, before it asks the server again. Zero means a week, a negative
	// value for ever.
	Recount time.Duration

	// Methods are the methods to try, in order; nil means the result of the
	// function Methods. Memento is used only if you include it.
	Methods []Method
}

// Methods returns the methods tried by default: WordPress, Blogger and all known
// platforms.
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

// Candidates returns the methods to try on the feed beginning with doc: first those
// that recognise it, then those that may suit it. It makes no request. For complete and
// archived feeds it returns none.
func (b *Backfill) Candidates(doc *feedhistory.Document) (sure, maybe []Method) {
	if doc == nil {
		return nil, nil
	}
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

// A Recovery is a history and how it was recovered.
type Recovery struct {
	// History has the documents of the feed's own links and of the method. Its own Verdict,
	// and so its Coverage and Document, do not know the method, and may differ from
	// Recovery.Verdict, which counts.
	History *feedhistory.History

	Probe       Probe  // the findings to store for the next walk
	RecoveredBy string // the name of the method; "" if only the feed's own links brought documents
	Proven      bool   // whether the method has proved the history whole
}

// Verdict returns how much of the feed this is. A recovered history is Lossy at
// best, unless it is Proven to be Whole.
func (r *Recovery) Verdict() feedhistory.Verdict {
	switch v := r.History.Verdict(); {
	case r.RecoveredBy == "" || v == feedhistory.Partial || v == feedhistory.Unknown:
		return v
	case r.Proven:
		return feedhistory.Whole
	}
	return feedhistory.Lossy
}

// Fetch walks a feed and merges its documents. The errors are those of
// feedhistory.Client.Fetch; a result may come with an error.
// The error may be the context's.
func (b *Backfill) Fetch(ctx context.Context, url string, from Probe) (*Recovery, error) {
	w := b.Walk(ctx, url, from, nil)
	h, err := feedhistory.Merge(w.Documents())
	if h == nil {
		return nil, err
	}
	return w.Recovery(h), err
}

// Walk returns the walk of the feed at url. The walk follows the feed's own
// links as feedhistory.Client.Walk does, with opt, which may be nil. It makes
// no request until you range over its documents.
func (b *Backfill) Walk(ctx context.Context, url string, from Probe, opt *feedhistory.WalkOptions) *Walk {
	return &Walk{b: b, ctx: ctx, url: url, opt: opt, from: from, probe: from}
}

// A Walk yields a feed's documents. Use it in one goroutine only.
type Walk struct {
	b    *Backfill
	ctx  context.Context
	url  string
	opt  *feedhistory.WalkOptions
	from Probe
	task *task // the known entries, and how far an earlier walk came; nil for a walk over everything

	probe     Probe
	by        string // the name of the method in use; "" if there is none
	recovered string // the same, if the method has brought anything
	left      bool   // the caller has left after a document, so there may be more
}

// Documents yields the documents for feedhistory.Merge, newest first as far as the walk
// can tell: first the feed's own as feedhistory.Client.Walk does, then those a method
// recovers. Documents changed meanwhile may come again at the end. The errors are those
// of Client.Walk. Ranging again starts a new walk.
func (w *Walk) Documents() iter.Seq2[*feedhistory.Document, error] {
	return func(take func(*feedhistory.Document, error) bool) {
		yield := func(doc *feedhistory.Document, err error) bool {
			more := take(doc, err)
			w.left = !more && err == nil
			return more
		}
		w.left = false
		t := cmp.Or(w.task, &task{})
		w.probe, w.by, w.recovered = Probe{Method: w.from.Method, Mode: w.from.Mode, Reason: w.from.Reason, task: t}, "", ""
		http, done := plain.Or(w.b.HTTP)
		defer done()
		r := &run{Walk: w, http: http, yield: yield, budget: withDefaults(http.Budget), task: t, reached: t.place}
		r.run()
		w.probe.kept, w.probe.task = nil, nil
	}
}

// Probe returns the findings to store for the next walk. Call it after ranging over the
// documents.
func (w *Walk) Probe() Probe { return w.probe }

// Recovery returns the outcome of the walk, given the merged history of its documents. If
// you have left the walk before its end, the history gets a gap matching
// feedhistory.ErrUnread.
func (w *Walk) Recovery(h *feedhistory.History) *Recovery {
	if w.left && !slices.ContainsFunc(h.Gaps, func(g *feedhistory.Gap) bool { return errors.Is(g, feedhistory.ErrUnread) }) {
		h.Gaps = append(h.Gaps, &feedhistory.Gap{URL: w.url, Reason: feedhistory.ReasonInterrupted, Err: feedhistory.ErrUnread, Found: time.Now()})
	}
	return &Recovery{
		History: h, Probe: w.probe, RecoveredBy: w.recovered,
		Proven: w.probe.Proven && w.recovered != "" && len(h.Gaps) == 0,
	}
}
