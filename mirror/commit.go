package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// The walk goes on while a commit is under way. The documents arriving meanwhile become
// one group, the next commit, together with the feed's state at that time: a state and
// the entries and documents it speaks of are always stored together. A document with
// entries of an uncommitted group waits for the group's commit, because the store is
// asked about each entry.

// A group is limited to this many documents and bytes of entries; beyond them the walk
// waits for the commit under way.
const (
	groupDocuments = 16
	groupBytes     = 4 << 20
)

// landing is how long a commit may take after the poll's context has ended.
const landing = 10 * time.Second

// commits bring the changes of a poll into the store. The change of the latest document
// is held, to be committed together with the end of the poll if it is the last; those
// of earlier documents wait as one group while another is in flight.
type commits struct {
	ctx     context.Context
	commit  func(context.Context, *Commit) error
	inline  bool          // commits are made in the goroutine of the walk: they yield to a loop that ranges over it
	feed    *Feed         // the state for the next commit
	prepare func(*Commit) // updates the state for a change

	held    *Commit
	waiting *group
	flight  *flight
	broken  bool // a commit has failed, so there will be no more
}

// makeRoom commits the held change in the middle of a poll, or lets it wait for
// the commit under way. Afterwards the next document, if not nil, may be
// processed. A decisive one needs everything before it in the store.
func (cs *commits) makeRoom(next *feedhistory.Document, decisive bool) error {
	cs.gather()
	g := cs.waiting
	switch {
	case cs.inline:
		return cs.drain()
	case next != nil && (decisive || g.touches(next) || cs.flight != nil && cs.flight.touches(next)),
		g != nil && g.change.Forget:
		return cs.drain()
	case g == nil:
		return nil
	case cs.flight != nil && !cs.flight.hasLanded() && g.documents < groupDocuments && g.bytes < groupBytes:
		return nil
	}
	if err := cs.land(); err != nil {
		return err
	}
	cs.depart()
	return nil
}

// hold makes sure the feed's state is stored, even without a document's change.
func (cs *commits) hold() {
	if cs.held == nil {
		cs.held = &Commit{}
	}
}

// gather adds the held change to the waiting group.
func (cs *commits) gather() {
	if cs.held == nil {
		return
	}
	if cs.waiting == nil {
		cs.waiting = &group{}
	}
	cs.waiting.add(cs.held)
	if !cs.inline { // which commits it before the next document is processed
		cs.waiting.note(cs.held)
	}
	cs.held = nil
}

// drain commits everything waiting, and waits for the commit to end.
func (cs *commits) drain() error {
	if err := cs.land(); err != nil || cs.waiting == nil {
		return err
	}
	cs.depart()
	return cs.land()
}

// depart starts to commit the waiting group, with the feed's state.
func (cs *commits) depart() {
	c := &cs.waiting.change
	cs.prepare(c)
	c.Feed = cs.feed.clone()
	f := &flight{group: cs.waiting, done: make(chan struct{}), err: errors.New("the commit did not finish")}
	cs.waiting, cs.flight = nil, f
	cs.feed.Commits++
	ctx, cancel := context.WithCancel(context.WithoutCancel(cs.ctx))
	ended := context.AfterFunc(cs.ctx, func() {
		select {
		case <-f.done:
		case <-time.After(landing):
			cancel()
		}
	})
	commit := func() {
		defer func() {
			f.panic = recover()
			close(f.done)
			ended()
			cancel()
		}()
		f.err = cs.commit(ctx, c)
	}
	if cs.inline {
		commit()
	} else {
		go commit()
	}
}

// land waits for the commit under way. After its error nothing more may be committed,
// because the waiting group builds on an unstored change.
func (cs *commits) land() error {
	f := cs.flight
	if f == nil {
		return nil
	}
	<-f.done
	cs.flight = nil
	if f.panic != nil {
		cs.broken = true
		panic(f.panic)
	}
	cs.broken = f.err != nil
	return f.err
}

// await waits for a commit still under way after a panic.
func (cs *commits) await() {
	if cs.flight != nil {
		<-cs.flight.done
	}
}

// last commits everything held or waiting, with the feed's state, even if there is only
// the state.
func (cs *commits) last(ctx context.Context) error {
	cs.gather()
	if cs.waiting == nil {
		cs.waiting = &group{}
	}
	c := &cs.waiting.change
	cs.prepare(c)
	c.Feed = cs.feed
	err := cs.commit(ctx, c)
	if err == nil {
		cs.waiting = nil
	}
	cs.broken = err != nil && cs.ctx.Err() == nil
	return err
}

// document returns a document on its way into the store, or nil.
func (cs *commits) document(name string) *DocumentRecord {
	if d := cs.waiting.document(name); d != nil || cs.flight == nil {
		return d
	}
	return cs.flight.document(name)
}

// A group is the combined change of several documents.
type group struct {
	change    Commit
	ids       map[string]bool // the IDs of the changed entries, by placeOf
	documents int
	bytes     int64
}

// add adds the change of a document. None of the document's entries may be in
// the group.
func (g *group) add(c *Commit) {
	to := &g.change
	to.Put, to.Touch = append(to.Put, c.Put...), append(to.Touch, c.Touch...)
	to.Versions, to.Documents = append(to.Versions, c.Versions...), append(to.Documents, c.Documents...)
	to.changes = append(to.changes, c.changes...)
	to.Keep, to.Forget = max(to.Keep, c.Keep), to.Forget || c.Forget
	g.documents++
}

// note notes the entries of an added change.
func (g *group) note(c *Commit) {
	if g.ids == nil {
		g.ids = map[string]bool{}
	}
	for _, r := range slices.Concat(c.Put, c.Touch, c.Versions) {
		g.ids[placeOf(r.ID)] = true
		g.bytes += r.Content.Size
	}
}

// placeOf returns an ID, without the part in which the IDs of one post may differ.
func placeOf(id string) string { return cmp.Or(iri.Post(id), id) }

// touches reports whether a document has an entry or a tombstone in the group.
func (g *group) touches(doc *feedhistory.Document) bool {
	if g == nil {
		return false
	}
	return slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return g.ids[placeOf(e.ID)] }) ||
		slices.ContainsFunc(doc.Deleted, func(t feedhistory.Tombstone) bool { return g.ids[placeOf(t.Ref)] })
}

// document returns the group's document with the given name, or nil.
func (g *group) document(name string) *DocumentRecord {
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

func (f *flight) hasLanded() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}
