package datareplication

import (
	"cmp"
	"context"
	"hash/maphash"
	"iter"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/replication"
)

// A Client keeps up with one feed. Its fields must not change during a harvest.
type Client struct {
	// HTTP has the settings by which requests are made, but for the limits on
	// documents, as pages may be larger: see Limits. A page may take an hour
	// unless its Timeouts say otherwise. Nil: the default ones.
	HTTP *feedhistory.Client

	URL string // of the feed, which leads to its newest page

	// Header returns further header fields of a request, such as Authorization
	// with a token. It is asked at each request, so that tokens can be renewed,
	// from several goroutines; only for what is of the origin of URL. An error
	// fails the request. Nil: there are none.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Snapshot is the URL of a snapshot's index. A harvest without a cursor begins
	// with that, and goes on in the feed. "": it begins with the oldest page.
	Snapshot string

	// Lenient hands entities on that have no Content-ID, or that of another, or no
	// operation that the protocol knows. Otherwise they end the harvest. After one
	// without a Content-ID to go on is to go on by time, so some come again.
	Lenient bool

	Parallel int    // how many pages of a snapshot are read at the same time; zero: 4
	Limits   Limits // what one harvest may cost
}

// Limits bound a harvest. Zero fields stand for the defaults.
type Limits struct {
	Requests int   // a HEAD and a GET for most pages of the feed, a GET for those of a snapshot: 200,000
	Page     int64 // bytes of a page, decompressed, of which one entity is in memory: 1 TiB
	Entity   int64 // bytes of an entity's body: 64 MiB
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Requests: cmp.Or(l.Requests, 200_000),
		Page:     cmp.Or(l.Page, 1<<40),
		Entity:   cmp.Or(l.Entity, 64<<20),
	}
}

// Harvest returns the harvest of what came after the given place. Nothing is
// requested until its entities are ranged over.
func (c *Client) Harvest(ctx context.Context, from Cursor) *Harvest {
	return &Harvest{c: c, ctx: ctx, from: from, cursor: from}
}

// A Harvest brings the entities of a feed that came after a Cursor, up to the
// newest that there is. It is for one goroutine.
type Harvest struct {
	c    *Client
	ctx  context.Context
	from Cursor

	cursor   Cursor
	requests int
}

// Entities yields entities in the feed's order, each once it is whole. Those of
// a snapshot come before: each page's in its order, but those of several pages
// intermingled.
//
// An error ends the harvest: a *NotFoundError, *ReachError, *PageError,
// *LinkError, *LoopError, *StampError, *CutShortError, *MalformedError or
// *BudgetError; that of the request for the feed's URL, as feedhistory.Client.Get
// has it; or the context's. What was yielded before it is whole and in order, and
// the next harvest goes on from Cursor. To range again starts again.
func (h *Harvest) Entities() iter.Seq2[*Entity, error] {
	return func(yield func(*Entity, error) bool) {
		*h = Harvest{c: h.c, ctx: h.ctx, from: h.from, cursor: h.from}
		limits := h.c.Limits.withDefaults()
		fetcher, done := replication.Fetcher(h.c.HTTP, limits.Page)
		defer done()
		r := &run{
			Harvest: h, ctx: fetch.WithFields(h.ctx, h.c.URL, h.c.Header), fetcher: fetcher, limits: limits, yield: yield, seed: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		}
		err := r.run()
		if r.left || err == nil {
			return
		}
		if cut := h.ctx.Err(); cut != nil {
			err = cut
		}
		yield(nil, err)
	}
}

// Cursor returns the place after the entity that was last yielded; after a
// snapshot, the time when that was begun; before, where the harvest began. It is
// to be stored with what was done with that entity, and once more at the end.
//
// In the midst of a snapshot there is no such place: an interrupted one is read
// again.
func (h *Harvest) Cursor() Cursor { return h.cursor }

// Requests returns how many requests were made, each once however often it was
// tried.
func (h *Harvest) Requests() int { return h.requests }

// seconds floors a time to what a stamp can say (datareplication#snapshot-2).
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
