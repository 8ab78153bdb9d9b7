package atompmh

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// A Harvester is a consumer: it keeps up with the records of one producer. Do
// not change its fields during a harvest.
type Harvester struct {
	HTTP *feedhistory.Client // HTTP makes the requests; nil means a client with the default settings.
	URL  string              // URL is the URL of the subscription document.

	// Header returns additional header fields for a request, such as Authorization with a
	// token. It is called for each request to the origin of URL, by several goroutines, so
	// tokens can be renewed. If it returns an error, the request fails. Nil means no
	// additional fields.
	Header func(ctx context.Context, url string) (http.Header, error)

	// Accept are the media types to fetch records in, best first: media ranges
	// such as "application/atom+xml;type=entry" or "text/*", without weights.
	// Nil means any type, in the producer's order. If you change it, harvest
	// from the start, because a Mark depends on it.
	Accept []string

	// Unacceptable is the way to report records without a representation of an accepted
	// type.
	Unacceptable Unacceptable

	// Historical adds entries of earlier states of records to their Changes, as
	// far as the producer keeps them.
	Historical bool

	// Shelf holds the entries until all documents have been read. Nil means memory: about
	// 200 bytes for each changed record, and its compressed text.
	Shelf Shelf

	// Overlap is how far a harvest reaches back before the latest change the last one has
	// seen. Set it for a producer that publishes changes some time after stamping them,
	// where no harvest looks any more. Zero means not at all, because the specification
	// requires order.
	Overlap time.Duration

	// WholeChain reads the whole chain, however little has changed, and finds changes
	// published late in old archives. Changes then yields all the Mark does not remember.
	WholeChain bool

	// Known is called with the URL of an archive at which a harvest ends because the last
	// one has read it, with the same entries: its time says nothing, as each document of
	// the chain has the feed's. Older archives are read at every twentieth such harvest, or
	// with WholeChain. Nil means no call.
	Known func(url string)

	// Parallel is the maximum number of representations Fetch requests at the same time.
	// Zero means 4.
	Parallel int
}

// Unacceptable is the way to report a record without a representation of an accepted
// type. The specification leaves this to the consumer (atom-pmh consumer#5).
type Unacceptable uint8

const (
	// AsDeleted reports it as Deleted, because nothing of it can be used.
	AsDeleted Unacceptable = iota
	// AsRecord reports it as a Record without a chosen representation.
	AsRecord
)

// check returns an error for settings a Harvester cannot work with.
func (h *Harvester) check() error {
	return plain.Check("atompmh", plain.Number{Name: "Harvester.Overlap", Value: int64(h.Overlap)},
		plain.Number{Name: "Harvester.Parallel", Value: int64(h.Parallel)})
}

// Harvest returns the harvest of the changes since the mark. It makes no request until
// you range over its changes.
func (h *Harvester) Harvest(ctx context.Context, from Mark) *Harvest {
	return &Harvest{h: h, ctx: ctx, from: from}
}

// A Harvest gets the changes of a pool since a Mark. Use it in one goroutine only.
type Harvest struct {
	h    *Harvester
	ctx  context.Context
	from Mark

	outcome
}

// An outcome is the result of a harvest at its end.
type outcome struct {
	head      *feedhistory.Document // the subscription document; nil if it has not changed
	next      Mark
	whole     bool
	all       bool
	documents int
}

// Changes yields the changes, oldest first, and each record once, in its present state.
// Changes come after all documents have been read, because only then is it known which
// entry of a record is the latest. Until then, the entries are on the Harvester's Shelf.
// Besides these, memory holds the few documents under way, and a SeenRecord for each record
// of a feed that is or was complete.
//
// If a document is missing or damaged, Changes yields the changes from the others, and
// then the *feedhistory.Gap with a zero Change. Some of these records may have been
// deleted since; the next harvest, which begins where this one did, corrects them. An
// error on the first document is yielded as it is, as is the context's, without any
// change: the errors of feedhistory.Client.Get, a *FormatError, or an *AcceptError if
// Accept is invalid. An error of the Shelf is yielded as it is, and ends the changes.
// Ranging again starts the harvest again.
//
// It does no harm to apply a change twice. Ignore a change older than the stored state
// of its record.
func (h *Harvest) Changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		h.outcome = outcome{}
		if err := h.h.check(); err != nil {
			yield(Change{}, err)
			return
		}
		ranges, err := readRanges(h.h.Accept)
		if err != nil {
			yield(Change{}, err)
			return
		}
		client, done := plain.Or(h.h.HTTP)
		defer done()
		r, err := h.h.newReading(h.from, h.h.Historical)
		if err == nil {
			err = r.read(h.h.with(h.ctx), client, h.h.URL)
		}
		if err != nil {
			yield(Change{}, err)
			return
		}
		h.h.tellKnown(r)
		for c, err := range r.changes() {
			if !yield(h.h.choose(c, ranges), err) || err != nil {
				return
			}
		}
		for _, gap := range r.gaps {
			if !yield(Change{}, gap) {
				return
			}
		}
		h.outcome = r.outcome()
	}
}

func (h *Harvester) tellKnown(r *reading) {
	if h.Known != nil && r.chain.known != "" {
		h.Known(r.chain.known)
	}
}

// choose sets the chosen representation, or applies Unacceptable.
func (h *Harvester) choose(c Change, ranges []mediaRange) Change {
	if c.Kind != Record {
		return c
	}
	if c.Chosen = choose(c.Representations, ranges); c.Chosen == nil && h.Unacceptable == AsDeleted {
		c.Kind = Deleted
	}
	return c
}

// with returns the context for requests.
func (h *Harvester) with(ctx context.Context) context.Context {
	return fetch.WithFields(ctx, h.URL, h.Header)
}

// Mark returns the mark from which the next harvest must start. If the harvest
// was not whole, or not all of its changes were taken, whole is false and the
// mark is the one from which this harvest started (atom-pmh consumer#7).
func (h *Harvest) Mark() (next Mark, whole bool) {
	if !h.whole {
		return h.from, false
	}
	return h.next, true
}

// All reports whether a whole harvest brought the whole pool: delete whatever else you
// have. So it does if it is the first, or if the mark cannot be used because the feed
// was set back to an earlier state, or has become a complete one.
func (h *Harvest) All() bool { return h.all }

// Documents returns the number of documents read; zero if the subscription document has
// not changed.
func (h *Harvest) Documents() int { return h.documents }
