package atompmh

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/settings"
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

	// KeepUnacceptable reports records without a representation of an accepted type as Records
	// without a chosen one. Otherwise they are Deleted, because nothing of them can be used. The
	// specification leaves this to the consumer (atom-pmh consumer#5).
	KeepUnacceptable bool

	// Historical adds entries of earlier states of records to their Changes, as
	// far as the producer keeps them.
	Historical bool

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

	// Budget bounds the cost of one harvest: its Requests and Bytes, if they are not zero,
	// take the place of the limits of HTTP on documents and bytes.
	Budget harvest.Budget

	// Parallel is the maximum number of representations Fetch requests at the same time.
	// Zero means 4.
	Parallel int

	memory     int // for tests: maximum bytes of entries in memory; zero means the default
	createTemp func() (*os.File, error)
}

// check returns an error for settings a Harvester cannot work with.
func (h *Harvester) check() error {
	return cmp.Or(h.Budget.Check("atompmh"), settings.Check("atompmh", settings.Number{Name: "Harvester.Overlap", Value: int64(h.Overlap)},
		settings.Number{Name: "Harvester.Parallel", Value: int64(h.Parallel)}))
}

// client returns a client with the Budget.
func (h *Harvester) client() (client *feedhistory.Client, done func()) {
	client, done = settings.Cloned(h.HTTP)
	client.Budget.Documents = cmp.Or(h.Budget.Requests, client.Budget.Documents)
	client.Budget.Bytes = cmp.Or(h.Budget.Bytes, client.Budget.Bytes)
	return client, done
}

// Harvest returns the harvest of the changes since the mark. It makes no request until
// you range over its changes.
func (h *Harvester) Harvest(ctx context.Context, from Mark) *Harvest {
	return &Harvest{h: h, ctx: ctx, from: from, outcome: outcome{next: from.m}}
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
	next      mark
	whole     bool
	all       bool
	documents int
	requests  int
	gaps      []*feedhistory.Gap
}

// Changes yields the changes, oldest first, and each record once, in its present state.
// Changes come after all documents have been read, because only then is it known which
// entry of a record is the latest. Until then, memory holds some 30 MB of the entries, and
// a temporary file the others. Besides these, memory holds the few documents under way, and
// the time and a digest of each record of a feed that is or was complete.
//
// If a document is missing or damaged, Changes yields the changes from the others, and
// then the *feedhistory.Gap with a zero Change. Some of these records may have been
// deleted since; the next harvest, which begins where this one did, corrects them, if you
// store the Mark. An
// error on the first document is yielded as it is, as is the context's, without any
// change: the errors of feedhistory.Client.Get, or a *harvest.Error, which is ErrAccept if
// Accept is invalid. An error of the temporary file is yielded as it is, and ends the changes.
// Ranging again starts the harvest again.
//
// It does no harm to apply a change twice. Ignore a change older than the stored state
// of its record.
func (h *Harvest) Changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		h.outcome = outcome{next: h.from.m}
		if err := h.h.check(); err != nil {
			yield(Change{}, err)
			return
		}
		ranges, err := readRanges(h.h.Accept)
		if err != nil {
			yield(Change{}, err)
			return
		}
		client, done := h.h.client()
		defer done()
		r := h.h.newReading(h.ctx, h.from.m, h.h.Historical)
		defer r.close()
		err = r.walk(h.ctx, client, walker{document: r.add, miss: r.miss})
		if h.documents, h.requests = r.documents, r.requests; err != nil {
			yield(Change{}, err)
			return
		}
		h.h.reportKnown(r)
		for c, err := range r.changes() {
			if !yield(h.h.choose(c, ranges), err) || err != nil {
				return
			}
		}
		h.gaps = r.gaps
		for _, gap := range r.gaps {
			if !yield(Change{}, gap) {
				return
			}
		}
		h.outcome = r.outcome()
	}
}

func (h *Harvester) reportKnown(r *reading) {
	if h.Known != nil && r.chain.known != "" {
		h.Known(r.chain.known)
	}
}

// choose sets the chosen representation, or applies KeepUnacceptable.
func (h *Harvester) choose(c Change, ranges []mediaRange) Change {
	if c.Kind != Record {
		return c
	}
	if c.Chosen = choose(c.Representations, ranges); c.Chosen == nil && !h.KeepUnacceptable {
		c.Kind = Deleted
	}
	return c
}

// with returns the context for requests.
func (h *Harvester) with(ctx context.Context) context.Context {
	return fetch.WithFields(ctx, h.URL, h.Header)
}

// Mark returns the mark from which the next harvest must start; store it in either case. If
// the harvest was not whole, or not all of its changes were taken, whole is false and the next
// harvest starts where this one did (atom-pmh consumer#7). The mark then has the records
// reported of a complete feed, because only a comparison shows that they are deleted.
func (h *Harvest) Mark() (next Mark, whole bool) { return Mark{h.next}, h.whole }

// All reports whether a whole harvest brought the whole pool: delete whatever else you
// have. So it does if it is the first, or if the mark cannot be used because the feed
// was set back to an earlier state, or has become a complete one. Of the records deleted
// then, Changes has those that the Mark remembers.
func (h *Harvest) All() bool { return h.all }

// Requests returns the number of documents requested. Repetitions of a request do not count.
func (h *Harvest) Requests() int { return h.requests }

// DocumentsRead returns the number of documents read; zero if the subscription document has
// not changed.
func (h *Harvest) DocumentsRead() int { return h.documents }

// Gaps returns what is missing: the gaps that Changes has yielded.
func (h *Harvest) Gaps() []*feedhistory.Gap { return slices.Clone(h.gaps) }

// A Mark is the progress of a harvest, for the next one. Store it, as JSON, together with
// the harvest's changes. With the zero value, a harvest gets everything. For an archived
// feed a Mark is small; for a complete one it has the time and a digest of each record,
// because only the difference shows which are absent from the next document.
type Mark struct{ m mark }

// IsZero reports whether nothing has been harvested yet.
func (m Mark) IsZero() bool { return m.m.isZero() }

// MarshalJSON implements json.Marshaler.
func (m Mark) MarshalJSON() ([]byte, error) { return json.Marshal(m.m) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Mark) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &m.m) }

// A mark is a Mark's memory.
//
// Time is the latest update time of any entry, not of the subscription document:
// producers may set the latter to when they wrote the document, and a change stamped
// earlier may still come. If a producer commits in the order of its stamps, later
// changes are not earlier than the latest entry. Those that are, are found in any
// document no older than the mark.
//
// An entry stamped in the future, by the clock of the producer's server, does not count
// for Time: nothing else would be found until then.
//
// The next harvest reads such documents again, so none of several changes with equal
// times is lost. So as not to report them again, Seen has their content.
type mark struct {
	Time         time.Time             `json:"time,omitzero"`
	Subscription feedhistory.Known     `json:"subscription,omitzero"` // the subscription document, to ask whether there is anything new
	Chain        knownChain            `json:"chain,omitzero"`        // the archives, if all documents have the feed's time
	Complete     bool                  `json:"complete,omitempty"`    // whether the feed was complete; then Seen is the pool
	Seen         map[string]seenRecord `json:"seen,omitempty"`        // by record identifier
}

// A seenRecord is the memory of one record.
type seenRecord struct {
	Time    time.Time `json:"time"`              // its last modified time
	Deleted bool      `json:"deleted,omitempty"` // whether it was deleted
	Digest  string    `json:"digest,omitempty"`  // a digest of its representations
}

func (s seenRecord) is(other seenRecord) bool {
	return s.Time.Equal(other.Time) && s.Deleted == other.Deleted && s.Digest == other.Digest
}

func (m mark) isZero() bool { return m.Time.IsZero() && m.Subscription == feedhistory.Known{} }

// A digest is a digest of a record's representations.
type digest [8]byte

func digestOf(e *feedhistory.Entry) digest {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", representations(e)))
	return digest(sum[:])
}

// A Queue has the records still to be fetched, by identifier. Store it as JSON,
// together with the Mark. The zero value is empty; make the map before you use it.
type Queue map[string]QueuedRecord

// A QueuedRecord is one still to be fetched.
type QueuedRecord struct {
	Time   time.Time `json:"time"`             // its last modified time
	URL    string    `json:"url"`              // the URL of the chosen representation
	Type   string    `json:"type,omitempty"`   // its media type in the link; "" if it has none
	Failed int       `json:"failed,omitempty"` // the number of failed tries
}

// Fetch yields changes in their order, and fetches the chosen representations of
// Records. It makes a few requests at a time (Parallel), and keeps only their results
// in memory. It yields the errors of changes as they are; the error of a single
// representation is in its Err.
//
// The Mark records the changes harvested, not the bodies fetched. These the queue
// remembers: a record is in it from when its change is taken until the record has come, or
// turns out to be gone. After the changes come the queue's other records, oldest first,
// without their Entry. The queue changes until the sequence has ended, or you leave it. With
// a nil queue, nothing is remembered; if you leave the sequence early, some changes were
// taken but not yielded, so do not store the Mark then.
func (h *Harvester) Fetch(ctx context.Context, changes iter.Seq2[Change, error], queue Queue) iter.Seq2[Change, error] {
	type result struct {
		Change
		err error
	}
	return func(yield func(Change, error) bool) {
		if changes == nil {
			yield(Change{}, errors.New("atompmh: Fetch: the changes are nil"))
			return
		}
		ctx, cancel := context.WithCancel(h.with(ctx))
		client, done := settings.Cloned(h.HTTP)
		var pending []chan result // the requests under way, in order
		defer func() {
			cancel()
			for _, c := range pending {
				<-c
			}
			done()
		}()
		next := func() bool {
			r := <-pending[0]
			pending = pending[1:]
			queue.done(r.Change, r.err)
			return yield(r.Change, r.err)
		}
		for change, err := range queue.all(changes) {
			if len(pending) == cmp.Or(max(h.Parallel, 0), 4) && !next() {
				return
			}
			c := make(chan result, 1)
			pending = append(pending, c)
			if err != nil || !change.isToFetch() {
				c <- result{change, err}
				continue
			}
			go func() { c <- result{get(ctx, client, change), nil} }()
		}
		for len(pending) > 0 && next() {
		}
	}
}

// isToFetch reports whether a change has a representation to fetch.
func (c *Change) isToFetch() bool { return c.Kind == Record && c.Chosen != nil }

// get requests the chosen representation.
func get(ctx context.Context, client *feedhistory.Client, c Change) Change {
	body, resp, err := settings.Read(ctx, client, c.Chosen.URL, http.Header{"Accept": {cmp.Or(c.Chosen.Type, "*/*")}})
	if c.Err = err; err == nil { // a part is not the record
		c.Body, c.Type = body, cmp.Or(resp.Header.Get("Content-Type"), c.Chosen.Type)
	}
	c.Gone = errors.Is(err, &feedhistory.FetchError{Status: http.StatusForbidden}) || errors.Is(err, fs.ErrNotExist)
	return c
}

// all yields changes, which it adds to the queue, and then the rest of the
// queue.
func (q Queue) all(changes iter.Seq2[Change, error]) iter.Seq2[Change, error] {
	before := maps.Clone(q)
	return func(yield func(Change, error) bool) {
		for c, err := range changes {
			if err == nil && c.Kind != Other {
				delete(before, c.ID)
				delete(q, c.ID)
			}
			if q != nil && err == nil && c.isToFetch() {
				q[c.ID] = QueuedRecord{Time: c.Time, URL: c.Chosen.URL, Type: c.Chosen.Type}
			}
			if !yield(c, err) {
				return
			}
		}
		ids := slices.SortedFunc(maps.Keys(before), func(a, b string) int {
			return cmp.Or(before[a].Time.Compare(before[b].Time), strings.Compare(a, b))
		})
		for _, id := range ids {
			p := before[id]
			r := Representation{URL: p.URL, Type: p.Type}
			c := Change{Kind: Record, ID: id, Time: p.Time, Representations: []Representation{r}, Chosen: &r}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// done records the outcome of fetching a record.
func (q Queue) done(c Change, err error) {
	p, ok := q[c.ID]
	switch {
	case err != nil || !c.isToFetch():
	case c.Err == nil || c.Gone:
		delete(q, c.ID)
	case ok:
		p.Failed++
		q[c.ID] = p
	}
}
