package collection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/mirror"
)

// A pool is the items of a produced collection in a database, in the order of their times.
// Harvests look for later times only, so an update may add no earlier ones; only the first
// load, of which nothing is served before its end, may come in any order.
type pool struct {
	store      mirror.Store
	feed       *mirror.Feed
	now        time.Time
	historical bool // keep earlier states as items

	newest  time.Time // of the items before this load
	pending []poolItem
	size    int
	future  []string // the items whose time is still to come
	late    []error
	lates   int
}

// A poolItem is a state of an item.
type poolItem struct {
	id      string
	at      time.Time
	deleted bool
	entry   *feedhistory.Entry // of a deletion, a marker
}

// The changes of an update are sorted in portions of this many items or bytes, and stored in
// smaller commits.
const (
	poolSorted = 5000
	poolBytes  = 4 << 20
	poolCommit = 500
	mostLate   = 10 // the number of late items to name
)

// historicalMark separates the ID of an earlier state from its time.
const historicalMark = "\x00"

// openPool returns the pool of a protocol in a store.
func openPool(ctx context.Context, store mirror.Store, protocol string) (*pool, error) {
	url := "urn:feedhistory:produced:" + protocol
	f, err := store.Feed(ctx, url)
	if errors.Is(err, mirror.ErrNotFound) {
		f, err = mirror.NewFeed(url), nil
		f.Title, f.Next, f.Source = protocol, database.Never, protocol
	}
	if err != nil {
		return nil, err
	}
	p := &pool{store: store, feed: f, now: time.Now()}
	latest, err := p.records(ctx, time.Time{}, time.Time{}, 1)
	if err == nil && len(latest) > 0 {
		p.newest = latest[0].Time()
	}
	return p, err
}

// loaded reports whether the first load has ended.
func (p *pool) loaded() bool { return p.feed.Polls > 0 }

// records returns the records of a range, most recent first.
func (p *pool) records(ctx context.Context, start, end time.Time, limit int) (found []*mirror.Record, err error) {
	q := mirror.Query{Feed: p.feed.URL, Since: start, Until: end, Limit: limit, Deleted: true}
	for r, err := range p.store.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		r.ID, _, _ = strings.Cut(r.ID, historicalMark)
		found = append(found, r)
	}
	return found, nil
}

// clock returns the time of the latest item, for the next sync of a consumer to begin at:
// later items may still have a time before the present.
func (p *pool) clock(ctx context.Context) time.Time {
	latest, err := p.records(ctx, time.Time{}, time.Time{}, 1)
	if err != nil || len(latest) == 0 {
		return time.Unix(0, 0)
	}
	return latest[0].Time()
}

// add adds an item.
func (p *pool) add(ctx context.Context, item poolItem) error {
	if strings.Contains(item.id, historicalMark) {
		return fmt.Errorf("the id %q has a NUL character", item.id)
	}
	if item.at.After(p.now) {
		p.future = append(p.future, fmt.Sprintf("%q, modified %s", item.id, schema.Time(item.at)))
		return nil
	}
	p.pending = append(p.pending, item)
	most := poolCommit
	if p.loaded() {
		most = poolSorted
	}
	if p.size += len(item.entry.XML()); len(p.pending) < most && p.size < poolBytes {
		return nil
	}
	return p.flush(ctx)
}

// flush stores the pending items, oldest first. Those the pool has already are left out.
func (p *pool) flush(ctx context.Context) error {
	slices.SortStableFunc(p.pending, func(a, b poolItem) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.id, b.id)) })
	newest := p.newest
	for portion := range slices.Chunk(p.pending, poolCommit) {
		if err := p.commit(ctx, portion); err != nil {
			return err
		}
		newest = portion[len(portion)-1].at
	}
	clear(p.pending)
	if p.pending, p.size = p.pending[:0], 0; newest.After(p.newest) {
		p.newest = newest
	}
	return nil
}

// end stores the remaining items, and ends the first load.
func (p *pool) end(ctx context.Context) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	if !p.loaded() {
		p.feed.Polls = 1
		if err := p.store.Commit(ctx, &mirror.Commit{Feed: p.feed}); err != nil {
			return err
		}
	}
	if more := p.lates - len(p.late); more > 0 {
		p.late = append(p.late, fmt.Errorf("and %d more", more))
	}
	return errors.Join(p.late...)
}

// commit stores items, which are in the order of time.
func (p *pool) commit(ctx context.Context, items []poolItem) error {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.id
	}
	known, err := p.store.Records(ctx, p.feed.URL, ids)
	if err != nil {
		return err
	}
	change := &mirror.Commit{Feed: p.feed}
	at := map[string]int{} // the place of an ID in the change
	for _, item := range items {
		r := p.record(item)
		old := known[item.id]
		switch err := p.judge(old, r); {
		case errors.Is(err, errSame):
			continue
		case err != nil:
			if p.lates++; len(p.late) < mostLate {
				p.late = append(p.late, err)
			}
			continue
		}
		if p.historical && old != nil && old.State == mirror.Live {
			earlier, err := p.earlier(ctx, change, at, old)
			if err != nil {
				return err
			}
			change.Put = append(change.Put, earlier)
		}
		if i, again := at[item.id]; again {
			change.Put[i] = r
		} else {
			at[item.id] = len(change.Put)
			change.Put = append(change.Put, r)
		}
		known[item.id] = r
		p.count(old, r)
	}
	if len(change.Put) == 0 {
		return nil
	}
	p.feed.Changed = p.now
	return p.store.Commit(ctx, change)
}

var errSame = errors.New("the pool has it already")

// judge returns why a state cannot follow the known one of the item, nil if there is none.
func (p *pool) judge(old, r *mirror.Record) error {
	refused := func(clause string, why error) error {
		return &atompmh.RecordError{ID: r.ID, Modified: r.Copy.At, Clause: clause, Err: why}
	}
	switch {
	case old != nil && old.Copy.At.Equal(r.Copy.At) && old.Copy.Digest == r.Copy.Digest && old.State == r.State:
		return errSame
	case old != nil && old.Copy.At.Equal(r.Copy.At):
		return refused("atom-pmh#13, atom-pmh#24", atompmh.ErrSameTime)
	case old != nil && old.Copy.At.After(r.Copy.At):
		return refused("atom-pmh#12, atom-pmh#23", atompmh.ErrLate)
	case p.loaded() && r.Copy.At.Before(p.newest):
		return refused("atom-pmh#7", atompmh.ErrLate)
	}
	return nil
}

// record returns the record of an item.
func (p *pool) record(item poolItem) *mirror.Record {
	e, next := item.entry, p.feed.Commits+1
	r := &mirror.Record{
		Feed: p.feed.URL, ID: item.id, State: mirror.Live, Copy: mirror.Copy{At: item.at, Digest: e.Digest()},
		FirstCommit: next, LastCommit: next, Added: p.now, Changed: p.now,
		Content: mirror.Content{Format: feedhistory.Atom, Data: string(e.XML()), Title: e.Title().Plain(), Updated: item.at},
	}
	if item.deleted {
		r.State, r.Tombstone = mirror.Deleted, mirror.TombstoneRecord{When: item.at}
	}
	return r
}

// earlier returns a state that another follows as a record of its own. It is still in the
// change, or else in the store.
func (p *pool) earlier(ctx context.Context, change *mirror.Commit, at map[string]int, old *mirror.Record) (*mirror.Record, error) {
	var r mirror.Record
	if i, ok := at[old.ID]; ok {
		r = *change.Put[i]
	} else {
		stored, err := mirror.Lookup(ctx, p.store, p.feed.URL, old.ID)
		if err != nil {
			return nil, err
		}
		r = *stored
	}
	r.ID += historicalMark + r.Copy.At.Format(time.RFC3339Nano)
	return &r, nil
}

// count counts the entries of the feed.
func (p *pool) count(old, r *mirror.Record) {
	was, is := old != nil && old.State == mirror.Live, r.State == mirror.Live
	switch {
	case is && !was:
		p.feed.Entries++
		if old != nil {
			p.feed.Deleted--
		}
	case was && !is:
		p.feed.Entries--
		p.feed.Deleted++
	case !is && old == nil:
		p.feed.Deleted++
	}
}
