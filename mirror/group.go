package mirror

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// The walk goes on while a commit is under way. What it brings meanwhile
// becomes one group, which is the next commit, together with the feed's state
// at that time: so what a state says about entries and documents is always
// stored together with them. A document that has entries of an uncommitted
// group waits for its commit, because the store is asked what is known about
// each entry.

// The size that a group may reach, in documents and in bytes of their entries,
// before the walk waits for the commit under way.
const (
	groupDocuments = 16
	groupBytes     = 4 << 20
)

// landing is how long a commit may still take after the poll's context has
// ended.
const landing = 10 * time.Second

// A group is the combined change of several documents.
type group struct {
	change    Change
	ids       map[string]bool // the IDs of the entries that it changes
	documents int
	bytes     int64
}

// add adds the change of a document. None of the document's entries may be in
// the group.
func (g *group) add(c *Change) {
	if g.ids == nil {
		g.ids = map[string]bool{}
	}
	to := &g.change
	for _, r := range slices.Concat(c.Put, c.Touch) {
		g.ids[r.ID] = true
		g.bytes += r.Content.Size
	}
	for _, v := range c.Versions {
		g.ids[v.ID] = true
		g.bytes += v.Content.Size
	}
	to.Put, to.Touch = append(to.Put, c.Put...), append(to.Touch, c.Touch...)
	to.Versions, to.Documents = append(to.Versions, c.Versions...), append(to.Documents, c.Documents...)
	to.Keep, to.Forget = max(to.Keep, c.Keep), to.Forget || c.Forget
	g.documents++
}

// touches reports whether a document has an entry or a tombstone in the group.
func (g *group) touches(doc *feedhistory.Document) bool {
	if g == nil {
		return false
	}
	return slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return g.ids[e.ID] }) ||
		slices.ContainsFunc(doc.Deleted, func(t feedhistory.Tombstone) bool { return g.ids[t.Ref] })
}

// document returns the group's document with the given name, or nil.
func (g *group) document(name string) *Document {
	if g == nil {
		return nil
	}
	for _, d := range slices.Backward(g.change.Documents) {
		if slices.Contains(d.Names, name) {
			return d
		}
	}
	return nil
}

// A flight is a commit under way. Its err and panic are set once done is
// closed.
type flight struct {
	*group
	done  chan struct{}
	err   error
	panic any
}

// flush commits the held change in the middle of a poll, or makes it wait for
// the commit under way. Afterwards the next document, if not nil, may be
// processed.
func (p *poll) flush(next *feedhistory.Document) error {
	p.begun()
	p.gather()
	g := p.waiting
	switch {
	case next != nil && (p.isDecisive(next) || g.touches(next) || p.flight != nil && p.flight.touches(next)),
		g != nil && g.change.Forget:
		return p.drain()
	case g == nil:
		return nil
	case p.flight != nil && !p.flight.hasLanded() && g.documents < groupDocuments && g.bytes < groupBytes:
		return nil
	}
	if err := p.land(); err != nil {
		return err
	}
	p.depart()
	return nil
}

// isDecisive reports whether processing a document asks the store for more than
// its own entries. That is so for the subscription document, and wherever the
// feed may turn out to be complete.
func (p *poll) isDecisive(doc *feedhistory.Document) bool {
	return p.polls && (!p.read || doc.Response.Requested == p.start) || doc.Complete
}

// gather adds the held change to the waiting group.
func (p *poll) gather() {
	if p.held == nil {
		return
	}
	if p.waiting == nil {
		p.waiting = &group{}
	}
	p.waiting.add(p.held)
	p.held = nil
}

// drain commits everything that waits, and waits for the commit to end.
func (p *poll) drain() error {
	if err := p.land(); err != nil || p.waiting == nil {
		return err
	}
	p.depart()
	return p.land()
}

// depart starts to commit the waiting group, with the feed's state.
func (p *poll) depart() {
	p.prepare(&p.waiting.change)
	c := &p.waiting.change
	c.Feed = p.feed.clone()
	f := &flight{group: p.waiting, done: make(chan struct{}), err: errors.New("the commit did not finish")}
	p.waiting, p.flight = nil, f
	p.feed.Version++
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.ctx))
	ended := context.AfterFunc(p.ctx, func() {
		select {
		case <-f.done:
		case <-time.After(landing):
			cancel()
		}
	})
	go func() {
		defer func() {
			f.panic = recover()
			close(f.done)
			ended()
			cancel()
		}()
		f.err = p.store.Commit(ctx, c)
	}()
}

// prepare updates what the feed's state says about a change that is to be
// committed.
func (p *poll) prepare(c *Change) {
	p.feed.Verdict = feedhistory.Worse(p.verdict(), p.feed.bound())
	p.feed.Sought = slices.Sorted(maps.Keys(p.sought))
	for _, d := range c.Documents {
		for _, name := range d.Names {
			delete(p.looked, name)
		}
	}
}

func (f *flight) hasLanded() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// land waits for the commit under way. After its error nothing more may be
// committed, because the waiting group builds on what was not stored.
func (p *poll) land() error {
	f := p.flight
	if f == nil {
		return nil
	}
	<-f.done
	p.flight = nil
	if f.panic != nil {
		p.broken = true
		panic(f.panic)
	}
	p.broken = f.err != nil
	return f.err
}

// await waits for a commit that is still under way after a panic.
func (p *poll) await() {
	if p.flight != nil {
		<-p.flight.done
	}
}

// commit commits what is held and what waits, with the feed's state.
func (p *poll) commit(ctx context.Context) error {
	p.gather()
	if p.waiting == nil {
		return nil
	}
	c := &p.waiting.change
	p.prepare(c)
	c.Feed = p.feed
	err := p.store.Commit(ctx, c)
	if err == nil {
		p.waiting = nil
	}
	p.broken = err != nil && p.ctx.Err() == nil
	return err
}

// underWay returns a document that is on its way into the store, or nil.
func (p *poll) underWay(name string) *Document {
	if d := p.waiting.document(name); d != nil || p.flight == nil {
		return d
	}
	return p.flight.document(name)
}
