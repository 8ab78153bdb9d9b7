package atompmh

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

// A Harvester is a consumer: it keeps up with the records of one producer. Its
// fields must not change during a harvest.
type Harvester struct {
	HTTP *feedhistory.Client // HTTP makes the requests; nil means a client with the default settings.
	URL  string              // URL is the subscription document's.

	// Header returns more header fields for a request, such as Authorization with a
	// token. It is called for each request to the origin of URL, from several
	// goroutines, so tokens can be renewed. If it returns an error, the request
	// fails. Nil means no more fields.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Accept are the media types to fetch records in, the best first: media ranges
	// such as "application/atom+xml;type=entry" or "text/*", without weights. Nil
	// means any, in the producer's order. If you change it, harvest from the start:
	// a Mark is for the types of its time.
	Accept []string

	// Unacceptable says what becomes of records that have no representation of
	// an accepted type.
	Unacceptable Unacceptable

	// Historical adds the entries of earlier states of records, as far as the
	// producer keeps them, to the records' Changes. They are in memory until then.
	Historical bool

	// Overlap is how far a harvest reaches back before the latest change that the
	// last one has seen: as long as a change may take to be published after it was
	// stamped, by a producer that then puts it where nobody looks any more. Zero
	// means not at all, because the specification wants a feed in order.
	Overlap time.Duration

	// Parallel is how many representations Fetch requests at a time. Zero means 4.
	Parallel int
}

// Unacceptable says what becomes of a record in none of the accepted types. The
// specification leaves that to the consumer (atom-pmh consumer#5).
type Unacceptable uint8

const (
	// AsDeleted reports it as Deleted: there is nothing left of it to use.
	AsDeleted Unacceptable = iota
	// AsRecord reports it as a Record of which no representation is chosen.
	AsRecord
)

// Harvest returns the harvest that brings what changed since the mark. Nothing
// is requested until its changes are ranged over.
func (h *Harvester) Harvest(ctx context.Context, from Mark) *Harvest {
	return &Harvest{h: h, ctx: ctx, from: from}
}

// A Harvest brings what changed in a pool since a Mark. It is for one goroutine.
type Harvest struct {
	h    *Harvester
	ctx  context.Context
	from Mark

	outcome
}

// An outcome is what is known of a harvest at its end.
type outcome struct {
	head      *feedhistory.Document // the subscription document; nil if it is unchanged
	next      Mark
	whole     bool
	all       bool
	documents int
}

// Changes yields what changed, the oldest first, and each record once: as it is
// now. They come when all documents have been read, as only then it is known
// which entry of a record is the latest; until then the latest entry of each
// record that changed is in memory, and with it the document it stands in.
//
// Where a document is missing or damaged, what the others say is yielded, then
// the *feedhistory.Gap with a zero Change. What has been deleted since may be
// among it, and the next harvest, which begins where this one did, corrects
// that. An error on the first document is yielded as it is, as is the context's,
// and nothing else. To range again starts again.
//
// To apply a change twice does no harm, and one that is older than what is
// stored of its record is to be left out.
func (h *Harvest) Changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		h.outcome = outcome{}
		ranges, err := readRanges(h.h.Accept)
		if err != nil {
			yield(Change{}, err)
			return
		}
		client, done := h.h.client()
		defer done()
		r := newReading(h.from, h.h.Historical)
		if err := r.read(h.h.with(h.ctx), client, h.h.URL); err != nil {
			yield(Change{}, err)
			return
		}
		for _, c := range r.changes() {
			if !yield(h.h.choose(c, ranges), nil) {
				return
			}
		}
		for _, gap := range r.gaps {
			if !yield(Change{}, gap) {
				return
			}
		}
		h.outcome = r.outcome(h.h.Overlap)
	}
}

// choose says which representation is wanted, and what becomes of a record that
// has none.
func (h *Harvester) choose(c Change, ranges []mediaRange) Change {
	if c.Kind != Record {
		return c
	}
	if c.Chosen = choose(c.Representations, ranges); c.Chosen == nil && h.Unacceptable == AsDeleted {
		c.Kind = Deleted
	}
	return c
}

// with returns the context in which requests are made.
func (h *Harvester) with(ctx context.Context) context.Context {
	return fetch.WithFields(ctx, h.URL, h.Header)
}

// client returns the client to use, and what to call in the end.
func (h *Harvester) client() (c *feedhistory.Client, done func()) {
	if h.HTTP != nil {
		return h.HTTP, func() {}
	}
	c = new(feedhistory.Client)
	return c, c.CloseIdle
}

// Mark returns the mark that the next harvest is to start from. There is one
// only after a whole harvest, of which all changes have been taken: after
// another, the next starts where this one did (atom-pmh consumer#7).
func (h *Harvest) Mark() (next Mark, whole bool) {
	if !h.whole {
		return h.from, false
	}
	return h.next, true
}

// All reports whether a whole harvest brought the whole pool, so that whatever
// else the caller has is deleted. That is so of the first, and of one whose mark
// cannot be gone by: the feed was set back to an earlier state, or has become a
// complete one.
func (h *Harvest) All() bool { return h.all }

// Documents returns how many documents were read; none, if the subscription
// document is what it was.
func (h *Harvest) Documents() int { return h.documents }
