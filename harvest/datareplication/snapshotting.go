package datareplication

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"
)

// ErrSuperseded means another snapshot was begun while this one was being made; this
// one is abandoned.
var ErrSuperseded = errors.New("another snapshot was begun meanwhile")

// keptSnapshots is the number of snapshots to keep: the newest, and one somebody may
// still be reading.
const keptSnapshots = 2

// Snapshot publishes all present resources, as a place for new consumers to
// begin. It ranges over resources after it has begun. Entities may be appended
// meanwhile: changes during that time come with the feed as well
// (datareplication#snapshot-2). So each resource must be in its state of when
// the snapshot began, or in a later one.
//
// Of a resource, only Type, Body, Header and Modified are published. If the
// sequence yields an error, there is no snapshot, and Snapshot returns the
// error. The error may be the context's.
func (p *Producer) Snapshot(ctx context.Context, resources iter.Seq2[Entity, error]) error {
	snap := &snapshot{ID: rand.Text()}
	err := p.locked(ctx, func(s *state) error {
		p.turn(s)
		snap.Created, s.Making = s.Time, snap.ID
		return store(ctx, p.Output, stateName, s)
	})
	if err != nil {
		return err
	}
	if err := p.resources(ctx, snap, resources); err != nil {
		return err
	}
	return p.locked(ctx, func(s *state) error {
		if s.Making != snap.ID {
			return ErrSuperseded
		}
		s.Making = ""
		s.Snapshots = append(s.Snapshots, snap)
		s.Snapshots = s.Snapshots[max(0, len(s.Snapshots)-keptSnapshots):]
		if err := store(ctx, p.Output, stateName, s); err != nil {
			return err
		}
		p.sweepSnapshots(ctx, s)
		return nil
	})
}

// turn begins a snapshot in the feed: everything so far is stamped before it, and is on
// separate pages. So there is a page strictly older than the snapshot, which some
// consumers look for. In a feed without entities there can be none.
func (p *Producer) turn(s *state) {
	s.Time = p.stamp(s)
	if s.Newest == nil {
		return
	}
	if s.Turn = true; !s.Time.After(s.Newest.Modified) {
		s.Time = s.Newest.Modified.Add(time.Second)
	}
}

// resources writes the pages of a snapshot.
func (p *Producer) resources(ctx context.Context, snap *snapshot, resources iter.Seq2[Entity, error]) error {
	w := &writer{
		ctx: ctx, out: p.Output, most: p.pageSize(),
		stem: func(number int) string { return snapshotStem(snap.ID, number) },
	}
	n := 0
	for e, err := range resources {
		if err != nil {
			return err
		}
		if err := e.check(); err != nil {
			return &EntityError{n, e.ContentID, err}
		}
		n++
		if e.Modified.IsZero() {
			e.Modified = snap.Created
		}
		e.Modified = seconds(e.Modified)
		e.ContentID, e.Operation = "", ""
		if err := w.add(&e); err != nil {
			return err
		}
	}
	if w.page == nil {
		return nil
	}
	snap.Pages = w.page.Number
	return w.close()
}

// LastSnapshot returns when the last snapshot began; the zero time if there is
// none.
func (p *Producer) LastSnapshot() (time.Time, error) {
	if p.Output == nil {
		return time.Time{}, errors.New("datareplication: Producer.Output must be set")
	}
	s, err := loadState(p.Output)
	if err != nil || len(s.Snapshots) == 0 {
		return time.Time{}, err
	}
	return s.Snapshots[len(s.Snapshots)-1].Created, nil
}

// sweepSnapshots removes pages whose snapshot no longer exists, or never did.
func (p *Producer) sweepSnapshots(ctx context.Context, s *state) {
	files, err := fs.ReadDir(p.Output, snapshotsDir)
	if err != nil {
		return // there are none yet
	}
	var left []piece
	for _, f := range files {
		id, _, _ := strings.Cut(f.Name(), ".")
		kept := slices.ContainsFunc(s.Snapshots, func(snap *snapshot) bool { return snap.ID == id })
		if !kept && id != "" {
			left = append(left, piece{Name: path.Join(snapshotsDir, f.Name())})
		}
	}
	p.discard(ctx, left)
}
