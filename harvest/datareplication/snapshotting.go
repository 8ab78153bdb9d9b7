package datareplication

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"
)

// ErrSuperseded says that another snapshot was begun while one was made, which
// is given up.
var ErrSuperseded = errors.New("another snapshot was begun meanwhile")

// keptSnapshots is how many snapshots there are: the newest, and one that
// somebody may still be reading.
const keptSnapshots = 2

// Snapshot publishes all resources that there are, as a place for new consumers
// to begin at. It ranges over them once it has begun, and entities may be appended
// meanwhile: what changes during that comes with the feed as well
// (datareplication#snapshot-2). So each resource must be as it was when the
// snapshot was begun, or later.
//
// Of a resource, only Type, Body, Header and Modified are published. An error
// that comes with one ends the snapshot; there is none then.
func (p *Producer) Snapshot(resources iter.Seq2[Entity, error]) error {
	snap := &snapshot{ID: rand.Text()}
	err := p.locked(func(s *state) error {
		p.turn(s)
		snap.Created, s.Making = s.Time, snap.ID
		return store(p.Output, stateName, s)
	})
	if err != nil {
		return err
	}
	if err := p.resources(snap, resources); err != nil {
		return err
	}
	return p.locked(func(s *state) error {
		if s.Making != snap.ID {
			return ErrSuperseded
		}
		s.Making = ""
		s.Snapshots = append(s.Snapshots, snap)
		s.Snapshots = s.Snapshots[max(0, len(s.Snapshots)-keptSnapshots):]
		if err := store(p.Output, stateName, s); err != nil {
			return err
		}
		p.sweepSnapshots(s)
		return nil
	})
}

// turn begins a snapshot in the feed: all that is there is stamped before it,
// and is on pages of its own. So there is a page that is strictly older than
// the snapshot, which is what some consumers go back to. Where there is no
// entity yet there can be none.
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
func (p *Producer) resources(snap *snapshot, resources iter.Seq2[Entity, error]) error {
	w := &writer{
		out: p.Output, most: p.pageSize(),
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

// LastSnapshot returns when the last snapshot was begun; the zero time if there is
// none.
func (p *Producer) LastSnapshot() (time.Time, error) {
	s, err := loadState(p.Output)
	if err != nil || len(s.Snapshots) == 0 {
		return time.Time{}, err
	}
	return s.Snapshots[len(s.Snapshots)-1].Created, nil
}

// sweepSnapshots removes the pages of snapshots that are no longer there, or
// never were.
func (p *Producer) sweepSnapshots(s *state) {
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
	p.discard(left)
}
