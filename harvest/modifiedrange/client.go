package modifiedrange

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

// A Client keeps up with one collection. Its fields must not change during a
// sync.
type Client struct {
	HTTP    *feedhistory.Client // makes the requests; nil: one with the default settings
	URL     string              // of the collection
	Dialect Dialect             // how to ask; zero: whichever the server heeds

	// Header returns further header fields of a request, such as Authorization
	// with a token. It is asked at each request, so that tokens can be renewed,
	// from several goroutines; only for what is of the origin of URL. An error
	// fails the request. Nil: there are none.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Overlap is by how much the range of the next sync reaches back before the
	// server's time at the beginning of this one (modified-range#8): as long as
	// a change may take to be seen after it was stamped. Zero: a minute;
	// negative: none.
	Overlap time.Duration

	Limits Limits // what one sync may cost
}

// Limits bound a sync (modified-range#12). Zero fields stand for the defaults.
type Limits struct {
	Requests int   // 10,000
	Items    int   // that are received, entries and deletions: 1,000,000
	Bytes    int64 // of all documents together, decompressed: 1 GiB
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Requests: cmp.Or(l.Requests, 10_000),
		Items:    cmp.Or(l.Items, 1_000_000),
		Bytes:    cmp.Or(l.Bytes, 1<<30),
	}
}

// A State is what a client remembers between two syncs. It is to be stored
// together with what the sync brought. The zero value stands for nothing: the
// first sync gets everything.
type State struct {
	Since time.Time `json:"since,omitzero"` // by the server's clock
}

// Sync returns the sync that brings what was modified since the given state.
// Nothing is requested until its documents are ranged over.
func (c *Client) Sync(ctx context.Context, from State) *Sync {
	return &Sync{c: c, ctx: ctx, from: from}
}

// A Sync brings what was modified in a collection since a State. It is for one
// goroutine.
type Sync struct {
	c    *Client
	ctx  context.Context
	from State

	next     State
	whole    bool
	dialect  Dialect
	requests int
}

// Documents yields the answers of the server, the most recently modified items
// first, and no item twice. The entries and deletions in them are changes: what
// is not there has not changed.
//
// An error on the first document is yielded as it is, as is the context's. What
// is missing later is a nil document and a *feedhistory.Gap: after one that wraps
// a *PossibleLossError the sync may go on with what is older; an *IgnoredError, a
// *StampError, a *BudgetError or the error of a request ends it. So
// feedhistory.Merge takes it as it takes a walk. To range again starts again.
func (s *Sync) Documents() iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		*s = Sync{c: s.c, ctx: s.ctx, from: s.from}
		client := s.c.HTTP
		if client == nil {
			client = new(feedhistory.Client)
			defer client.CloseIdle()
		}
		r := &run{
			Sync: s, ctx: fetch.WithFields(s.ctx, s.c.URL, s.c.Header), http: client, yield: yield, limits: s.c.Limits.withDefaults(),
			dialects: s.c.Dialect.candidates(),
			seen:     map[stamped]Dialect{}, ids: map[string]int{},
		}
		r.run()
	}
}

// State returns the state that the next sync is to start from. There is one
// only after a whole sync: after another, the next starts where this one did.
func (s *Sync) State() (next State, whole bool) {
	if !s.whole {
		return s.from, false
	}
	return s.next, true
}

// Dialect returns the one that the last request was made in.
func (s *Sync) Dialect() Dialect { return s.dialect }

// Requests returns how many requests were made.
func (s *Sync) Requests() int { return s.requests }
