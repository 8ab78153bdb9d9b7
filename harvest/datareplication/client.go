package datareplication

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/plain"
	"github.com/feedhistory/feedhistory/internal/replication"
)

// A Harvester reads one feed. Do not change its fields during a harvest.
type Harvester struct {
	// HTTP makes the requests, with its settings except for the limits on
	// documents, because pages may be larger: see Budget. A page may take an
	// hour unless its Timeouts say otherwise. Nil means a client with default
	// settings.
	HTTP *feedhistory.Client

	URL string // URL is the URL of the feed, which leads to its newest page.

	// Header returns additional header fields for a request, such as Authorization with a
	// token. It is called for each request to the origin of URL, by several goroutines, so
	// tokens can be renewed. If it returns an error, the request fails. Nil means no
	// additional fields.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Snapshot is the URL of a snapshot's index. A harvest without a mark
	// begins with the snapshot, and continues with the feed. If it is "", such
	// a harvest begins with the oldest page.
	Snapshot string

	// Lenient yields entities without a Content-ID, with the Content-ID of
	// another entity, or with an unknown operation. Otherwise such an entity
	// ends the harvest. After an entity without a Content-ID, a harvest can
	// only continue by time, so some entities come again.
	Lenient bool

	// PageDone is called when a page that has a successor has been read to its end, and at
	// the end of a snapshot, before the next request. The mark is the one to store then: a
	// harvest from there reads no page again, so one that is killed later costs only the
	// request under way. If PageDone returns an error, the harvest ends with it. Keep does
	// not call it.
	PageDone func(Mark) error

	Parallel int    // Parallel is the number of pages of a snapshot to read at the same time; zero means 4.
	Budget   Budget // Budget bounds the cost of one harvest.
}

// A Budget bounds the cost of a harvest. A zero field means its default.
type Budget struct {
	Requests int   // Requests is the maximum number of requests: a HEAD and a GET for most pages of the feed, a GET for each page of a snapshot. Zero means 200,000.
	Page     int64 // Page is the maximum size of a page in bytes, decompressed; only one entity of it is in memory. Zero means 1 TiB.
	Entity   int64 // Entity is the maximum size of an entity's body in bytes. Zero means 64 MiB.
}

func (l Budget) withDefaults() Budget {
	return Budget{
		Requests: cmp.Or(l.Requests, 200_000),
		Page:     cmp.Or(l.Page, 1<<40),
		Entity:   cmp.Or(l.Entity, 64<<20),
	}
}

// check returns an error for settings a Harvester cannot work with.
func (c *Harvester) check() error {
	l := c.Budget
	return plain.Check("datareplication", plain.Number{Name: "Harvester.Parallel", Value: int64(c.Parallel)},
		plain.Number{Name: "Budget.Requests", Value: int64(l.Requests)}, plain.Number{Name: "Budget.Page", Value: l.Page},
		plain.Number{Name: "Budget.Entity", Value: l.Entity})
}

// Harvest returns the harvest of the entities after the given mark. It makes no
// request until you range over its entities.
func (c *Harvester) Harvest(ctx context.Context, from Mark) *Harvest {
	return &Harvest{c: c, ctx: ctx, from: from, cursor: from}
}

// A Harvest yields the entities of a feed after a Mark, up to the newest. Use
// it in one goroutine.
type Harvest struct {
	c    *Harvester
	ctx  context.Context
	from Mark

	cursor   Mark
	requests int
}

// Entities yields the entities in the feed's order, each once it is whole. The
// entities of a snapshot come first: those of a page in its order, but those of
// several pages interleaved.
//
// An error ends the harvest: a *NotFoundError, *ReachError, *PageError, *LinkError,
// *LoopError, *StampError, *CutShortError, *MalformedError or *BudgetError; the error
// of the request for the feed's URL, as feedhistory.Client.Get returns it; or the
// context's error. The entities yielded before are whole and in order, and the next
// harvest can continue from Mark. Ranging again starts the harvest again.
func (h *Harvest) Entities() iter.Seq2[*Entity, error] {
	return func(yield func(*Entity, error) bool) {
		*h = Harvest{c: h.c, ctx: h.ctx, from: h.from, cursor: h.from}
		if err := h.c.check(); err != nil {
			yield(nil, err)
			return
		}
		limits := h.c.Budget.withDefaults()
		fetcher, done := replication.Fetcher(h.c.HTTP, limits.Page)
		defer done()
		r := &run{
			Harvest: h, ctx: fetch.WithFields(h.ctx, h.c.URL, h.c.Header), fetcher: fetcher, limits: limits, yield: yield,
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

// Mark returns the place after the last entity yielded. After a snapshot it is the
// time when the snapshot began; before the first entity, where the harvest began. Store
// it together with your work on the entity, and once more at the end.
//
// In the middle of a snapshot there is no such place: an interrupted snapshot
// is read again.
func (h *Harvest) Mark() Mark { return h.cursor }

// Requests returns the number of requests. Repetitions of a request do not
// count.
func (h *Harvest) Requests() int { return h.requests }

// seconds rounds a time down to the resolution of a stamp
// (datareplication#snapshot-2).
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
