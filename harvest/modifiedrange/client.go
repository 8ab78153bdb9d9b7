package modifiedrange

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// A Harvester keeps up with a collection. Do not change its fields during a harvest.
type Harvester struct {
	HTTP    *feedhistory.Client // HTTP makes the requests; nil means a client with the default settings.
	URL     string              // URL is the URL of the collection.
	Dialect Dialect             // Dialect is how to ask for ranges; zero means to try them in order.

	// Header returns additional header fields for a request, such as Authorization with a
	// token. It is called for each request to the origin of URL, by several goroutines, so
	// tokens can be renewed. If it returns an error, the request fails. Nil means no
	// additional fields.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Overlap is how far the next harvest reaches back before the server's time at the
	// beginning of this one (modified-range#8). It should be the longest time a change may
	// take to appear after it was stamped. Zero means a minute, a negative value none.
	Overlap time.Duration

	Budget Budget // Budget bounds the cost of one harvest.
}

// overlap returns the Overlap with its default.
func (c *Harvester) overlap() time.Duration { return max(cmp.Or(c.Overlap, time.Minute), 0) }

// A Budget bounds the cost of a harvest (modified-range#12). A harvest reaching a limit
// ends with a *BudgetError, and the next one continues there.
type Budget struct {
	Requests int   // Requests is the maximum number of requests; zero means 10,000.
	Items    int   // Items is the maximum number of entries and deletions to receive; zero means 1,000,000.
	Bytes    int64 // Bytes is the maximum size of all documents together, decompressed; zero means 1 GiB.
}

func (l Budget) withDefaults() Budget {
	return Budget{
		Requests: cmp.Or(l.Requests, 10_000),
		Items:    cmp.Or(l.Items, 1_000_000),
		Bytes:    cmp.Or(l.Bytes, 1<<30),
	}
}

// check returns an error for settings a Harvester cannot work with.
func (c *Harvester) check() error {
	l := c.Budget
	return plain.Check("modifiedrange",
		plain.Number{Name: "Budget.Requests", Value: int64(l.Requests)}, plain.Number{Name: "Budget.Items", Value: int64(l.Items)},
		plain.Number{Name: "Budget.Bytes", Value: l.Bytes})
}

// A Mark is a client's memory between two harvests. Store it together with the harvest's
// documents. With the zero value, a harvest gets everything.
type Mark struct {
	Since time.Time `json:"since,omitzero"` // a time by the server's clock
	Rest  Rest      `json:"rest,omitzero"`  // zero unless a harvest was cut short: the next one continues there
}

// A Rest is the part of a range a harvest has not asked for yet.
type Rest struct {
	End     time.Time `json:"end,omitzero"`      // everything modified at this time or later has come
	Next    time.Time `json:"next,omitzero"`     // the Since after the Rest has come
	Dialect Dialect   `json:"dialect,omitempty"` // the dialect the server understands
	Closed  bool      `json:"closed,omitempty"`  // the server takes the end to be part of a range
	Stage   stage     `json:"stage,omitzero"`    // the questions under way, and the server's habits
}

// Harvest returns the harvest of modifications since the given mark. It makes no request
// until you range over its documents.
func (c *Harvester) Harvest(ctx context.Context, from Mark) *Harvest {
	return &Harvest{c: c, ctx: ctx, from: from}
}

// A Harvest gets the modifications of a collection since a Mark. Use it in one goroutine
// only.
type Harvest struct {
	c    *Harvester
	ctx  context.Context
	from Mark

	next     Mark
	at       Mark // where to continue, if the harvest is cut short
	whole    bool
	dialect  Dialect
	stamp    stampKind
	requests int
}

// Documents yields the server's answers, most recently modified items first, and no item
// twice. From a Mark with a Rest, it yields the Rest first, and then the items modified
// since, some of which may come a second time. Their entries and deletions are changes:
// anything else has not changed. A document without any means only that Mark has moved.
//
// An error on the first document is yielded as it is, as is the context's. Later, a
// missing part is yielded as a nil document and a *feedhistory.Gap. After a Gap
// wrapping a *PossibleLossError, the harvest may continue with older items; an
// *IgnoredError, a *StampError, a *BudgetError or the error of a request ends it. So
// you can pass the sequence to feedhistory.Merge, as you would a walk's. Ranging again
// starts the harvest again.
func (s *Harvest) Documents() iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		*s = Harvest{c: s.c, ctx: s.ctx, from: s.from, at: s.from}
		if err := s.c.check(); err != nil {
			yield(nil, err)
			return
		}
		client, done := plain.Or(s.c.HTTP)
		defer done()
		r := &run{
			Harvest: s, ctx: fetch.WithFields(s.ctx, s.c.URL, s.c.Header), http: client, yield: yield, limits: s.c.Budget.withDefaults(),
			dialects: s.c.Dialect.candidates(),
			seen:     map[itemState]Dialect{}, ids: map[string]int{}, from: s.from, told: s.from,
		}
		if i := slices.Index(r.dialects, s.from.Rest.Dialect); i >= 0 {
			r.dialects = r.dialects[i:]
		}
		r.run()
	}
}

// Mark returns the mark from which the next harvest must start. If whole is
// false, something is missing; the next harvest then continues at the Rest, or starts
// where this one did.
func (s *Harvest) Mark() (next Mark, whole bool) {
	if s.whole {
		return s.next, true
	}
	return s.at, false
}

// Dialect returns the dialect of the last request.
func (s *Harvest) Dialect() Dialect { return s.dialect }

// Requests returns the number of requests.
func (s *Harvest) Requests() int { return s.requests }
