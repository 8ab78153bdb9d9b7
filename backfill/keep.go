package backfill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/mirror"
)

// Keep recovers the undeclared history of a feed into a mirror's store: the whole
// history of a plain feed, once; and, whenever polls have missed entries, these. The
// store keeps the walk's Findings, so nothing is tried twice; the feed's Source is then
// the name of the first method. If there is nothing to do, which is the usual case, Keep
// makes no request and returns a nil Report. A walk requests the feed's first document
// again, even directly after Mirror.Update.
//
// An interrupted walk leaves a gap, and the next Keep continues there, also at pages it
// could not read. If another try is unlikely to close a gap, Keep tries again only
// after Recount.
//
// A mirror whole by a server's count was so at the time of the count, because polls do
// not show a post added with an old date. So after Recount, Keep asks for the count
// again, with one request. If the count has changed by more or less than polls have
// brought, Keep compares the server's list with the store, and reads the missing
// entries.
//
// The error is the store's, mirror.ErrNotFound if the store does not have the
// feed, or the context's.
func (b *Backfill) Keep(ctx context.Context, m *mirror.Mirror, url string) (*mirror.Report, error) {
	if m == nil || m.Store == nil {
		return nil, errors.New("backfill: Keep: the Mirror, or its Store, is nil")
	}
	feed, err := m.Store.Feed(ctx, url)
	if err != nil {
		return nil, err
	}
	k := &keepRun{b: b, ctx: ctx, m: m, feed: feed, now: time.Now()}
	if len(feed.Mark) > 0 {
		if err := json.Unmarshal(feed.Mark, &k.mark); err != nil || feed.Source != "" && feed.Source != k.mark.Method {
			return nil, nil // the mark belongs to another source
		}
	}
	if feed.Kind != feedhistory.KindPlain || feed.Ledger.URL() == "" || !b.knows(k.mark.Method) ||
		!k.mark.Done && !b.knows(k.mark.last()) {
		return nil, nil
	}
	switch k.plan() {
	case nothing:
		return nil, nil
	case recount:
		if same, err := k.recount(); same || err != nil {
			return nil, err
		}
	}
	return k.walk()
}

// knows reports whether a method is None, or one of those in use.
func (b *Backfill) knows(method string) bool {
	return method == "" || method == None ||
		slices.ContainsFunc(b.methods(), func(m Method) bool { return m.Name() == method })
}

// last returns the name of the last working method; "" if there is none.
func (p *Probe) last() (name string) {
	for _, name = range p.Names() {
	}
	return name
}

// Findings returns the Probe Keep has stored with a feed; the zero Probe if there is
// none.
func Findings(feed *mirror.Feed) Probe {
	var mark keepMark
	if feed == nil || json.Unmarshal(feed.Mark, &mark) != nil || feed.Source != "" && feed.Source != mark.Method {
		return Probe{}
	}
	return mark.Probe
}

// A keepMark is stored with a feed.
type keepMark struct {
	Probe
	At      time.Time `json:"at,omitzero"`       // when the mark was made
	Done    bool      `json:"done,omitempty"`    // whether the walk reached its end
	Place   place     `json:"place,omitzero"`    // where the walk continues if it did not
	Counter string    `json:"counter,omitempty"` // the URL at which the server says how many entries it has
	Total   int       `json:"total,omitempty"`   // the number it gave when the mirror was whole
	Soon    bool      `json:"soon,omitempty"`    // whether to ask again at the next opportunity
}

// A keepRun is a Keep under way.
type keepRun struct {
	b    *Backfill
	ctx  context.Context
	m    *mirror.Mirror
	feed *mirror.Feed
	mark keepMark
	now  time.Time

	refill bool      // whether to read the entries polls have missed
	skip   []string  // the methods whose walks have come to their end
	adds   bool      // whether the walk continues an earlier one
	since  time.Time // the time before which entries need not be read again
	err    error     // an error of the store

	w    *Attempt
	task *task
}

// A plan is the next step of a Keep.
type plan uint8

const (
	nothing plan = iota
	walk         // from the beginning, or from where the task says
	recount      // count, to see whether a walk is needed
)

// plan decides the next step.
func (k *keepRun) plan() plan {
	missed, found, own := k.gaps()
	old := k.b.Recount >= 0 && k.now.Sub(k.mark.At) >= cmp.Or(k.b.Recount, 7*24*time.Hour)
	fresh := missed && !found.Before(k.mark.At)
	k.since = k.mark.At
	if missed {
		k.since = found
	}
	_, _, proven := k.feed.Ledger.Proof()
	switch {
	case k.mark.Method == "":
		return walk
	case k.mark.Method == None && !k.untried():
		if fresh && k.b.asksAnArchive() {
			return walk
		}
		return nothing
	case !k.mark.Done && k.mark.Method != None:
		k.resume(missed)
		return walk
	case fresh || missed && old:
		k.refill, k.adds = true, true
		k.begin()
		return walk
	case !proven && k.untried():
		k.skip, k.adds = k.mark.Names(), true
		return walk
	case (old || k.mark.Soon) && k.mark.Counter != "":
		k.adds = true
		k.begin()
		return recount
	case old && own:
		k.begin()
		return walk
	}
	return nothing
}

// begin makes the walk use the first method again, and then look which others work now.
func (k *keepRun) begin() { k.mark.Next, k.mark.Tried = nil, nil }

// untried reports whether there is a method for any software no walk has tried.
func (k *keepRun) untried() bool {
	head, err := k.feed.Document()
	return err == nil && slices.ContainsFunc(k.b.anyMethods(head), func(m Method) bool {
		return !slices.Contains(k.mark.Names(), m.Name()) && !slices.Contains(k.mark.Tried, m.Name())
	})
}

// isOwn reports whether an earlier walk has left a gap.
func (k *keepRun) isOwn(g *feedhistory.Gap) bool { return g.From == "source:"+k.feed.Source }

// gaps reports whether polls have missed windows, when the first one was found,
// and whether an earlier walk has left gaps.
func (k *keepRun) gaps() (missed bool, found time.Time, own bool) {
	for _, g := range k.feed.Ledger.Gaps() {
		switch {
		case k.isOwn(g):
			own = true
		case g.Reason == feedhistory.ReasonMissedWindow:
			if !missed || g.Found.Before(found) {
				found = g.Found
			}
			missed = true
		}
	}
	return missed, found, own
}

// resume makes the walk continue where an earlier one ended. If polls have
// missed something since then, only pages in the order of modification lead to
// both.
func (k *keepRun) resume(missed bool) {
	at, names := k.mark.Place, k.mark.Names()
	if missed && at.Until == 0 && at.Latest == 0 && at.Own == "" && k.mark.Mode != modeModified {
		k.mark.Place = place{}
	}
	k.skip = names[:len(names)-1]
	k.adds = !k.mark.Place.Before.IsZero() || missed && k.mark.Place.Until > 0 || at.Own != "" || len(k.skip) > 0
}

// A counter is a Method that can ask a server for the number of its entries.
type counter interface {
	count(ctx context.Context, c *feedhistory.Client, url string) (int, error)
}

// recount asks for the number of entries, and reports whether it is the expected one,
// which includes the entries polls have brought since.
func (k *keepRun) recount() (same bool, err error) {
	i := slices.IndexFunc(k.b.methods(), func(m Method) bool { return m.Name() == k.mark.Method })
	asks, ok := k.b.methods()[i].(counter)
	if !ok {
		return true, nil
	}
	client, done := settings.Shared(k.b.HTTP)
	defer done()
	n, err := asks.count(k.ctx, client, k.mark.Counter)
	if k.ctx.Err() != nil {
		return false, k.ctx.Err()
	}
	asOf, counted, proven := k.feed.Ledger.Proof()
	brought := int(k.feed.Entries - counted)
	if err == nil && (asOf.IsZero() || n != k.mark.Total+brought) {
		k.mark.Place = place{Latest: 1}
		return false, nil
	}
	k.mark.Soon, k.mark.At, k.mark.Total = false, k.now, k.mark.Total+brought
	_, err = k.m.Keep(k.ctx, k.feed.URL, mirror.Source{
		Name: k.mark.Method, Adds: true,
		Readings: func(func(*feedhistory.Reading, error) bool) {},
		End:      func() (json.RawMessage, bool, time.Time) { return k.mark.json(), proven, asOf },
	})
	return true, err
}

func (m keepMark) json() json.RawMessage {
	data, _ := json.Marshal(m) // cannot fail for words, numbers and times
	return data
}

// walk walks the feed into the mirror.
func (k *keepRun) walk() (*mirror.Report, error) {
	k.task = &task{place: k.mark.Place, refill: k.refill, has: k.has, known: k.known, skip: k.skip, counter: k.mark.Counter}
	if k.refill || k.mark.Place.begun() {
		k.task.holds = k.holds
	}
	address := cmp.Or(k.feed.Address, k.feed.URL)
	k.w = k.b.Attempt(k.ctx, address, k.mark.Probe)
	k.w.task = k.task
	next, stop := iter.Pull2(k.w.Readings())
	defer stop()
	first, firstErr, _ := next() // the feed's own document
	r, err, more := next()       // now it is known whether there is a method, and which
	failed := firstErr != nil
	if failed && k.ctx.Err() == nil {
		first, firstErr = &feedhistory.Reading{Gaps: []*feedhistory.Gap{feedhistory.NewGap(address, firstErr)}}, nil
	}
	before := k.mark
	if k.learn(); k.mark.last() == before.last() && k.mark.Mode == before.Mode {
		k.mark.Place = before.Place // only the first document has been stored
	} else {
		k.mark.Place = place{}
	}
	name := k.mark.Method
	if name == None || (!more || r != nil && r.End) && k.feed.Source == "" { // it has brought nothing
		name = ""
	}
	return k.m.Keep(k.ctx, k.feed.URL, mirror.Source{
		Name: name, Adds: k.adds, Mark: k.note,
		Readings: func(yield func(*feedhistory.Reading, error) bool) {
			if !yield(first, firstErr) {
				return
			}
			for ; more && k.err == nil; r, err, more = next() {
				if k.learn(); !yield(r, err) {
					return
				}
			}
			owed := func(g *feedhistory.Gap) bool { return g.URL == k.mark.Counter && k.isOwn(g) }
			if k.err != nil {
				yield(nil, k.err)
			} else if k.task.listed && slices.ContainsFunc(k.feed.Ledger.Gaps(), owed) { // the list is the receipt
				doc := &feedhistory.Document{URL: k.mark.Counter, Response: feedhistory.Response{Requested: k.mark.Counter}}
				yield(&feedhistory.Reading{Document: doc}, nil)
			}
		},
		End: func() (json.RawMessage, bool, time.Time) {
			if failed {
				return nil, false, time.Time{}
			}
			k.learn()
			k.mark.Total, k.mark.Done = k.task.total, k.mark.Method == None || k.task.state == ended
			k.mark.Soon = k.task.soon && !k.mark.Soon // only once
			return k.note(), k.mark.Proven, cmp.Or(k.task.proven, time.Now())
		},
	})
}

// learn records how far the walk has come.
func (k *keepRun) learn() {
	k.mark.Probe, k.mark.Place, k.mark.Counter, k.mark.Done = k.w.Probe(), k.task.place, k.task.counter, false
}

// note returns the present mark; nil if nothing was learned.
func (k *keepRun) note() json.RawMessage {
	if k.mark.Method == "" {
		return nil
	}
	k.mark.At = time.Now()
	return k.mark.json()
}

// has returns the IDs whose entries are in the mirror.
func (k *keepRun) has(ids []string) map[string]bool {
	found := map[string]bool{}
	for id, r := range k.records(ids) {
		found[id] = r.State == mirror.Live
	}
	return found
}

// known yields the entries of the mirror, with those deleted or erased, which need not come back.
func (k *keepRun) known(ctx context.Context) iter.Seq2[KnownEntry, error] {
	return func(yield func(KnownEntry, error) bool) {
		for r, err := range k.m.Store.Entries(ctx, mirror.Query{Feed: k.feed.URL, States: mirror.AllStates}) {
			if err != nil {
				yield(KnownEntry{}, err)
				return
			}
			if !yield(KnownEntry{ID: r.ID, Link: r.Content.Link, KeptBy: r.Copy.Source, Updated: r.Content.Updated}, nil) {
				return
			}
		}
	}
}

// holds reports whether the mirror has all of these versions of entries, from
// before the time when the entries to recover were missed.
func (k *keepRun) holds(entries []*feedhistory.Entry) bool {
	records := k.records(list(entries))
	return !slices.ContainsFunc(entries, func(e *feedhistory.Entry) bool {
		r := records[e.ID]
		return r == nil || r.State != mirror.Live || r.Copy.Digest != e.Digest() || !r.Changed.Before(k.since)
	})
}

// records returns the mirror's records of entries. An error of the store ends the walk.
func (k *keepRun) records(ids []string) map[string]*mirror.Record {
	if k.err != nil {
		return nil
	}
	records, err := k.m.Store.Records(k.ctx, k.feed.URL, ids)
	k.err = err
	return records
}

// asksAnArchive reports whether one of the methods is not covered by None.
func (b *Backfill) asksAnArchive() bool {
	return slices.ContainsFunc(b.methods(), func(m Method) bool {
		_, ok := m.(Memento)
		return ok
	})
}
