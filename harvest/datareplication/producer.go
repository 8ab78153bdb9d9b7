package datareplication

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/publish"
)

// A Producer publishes a growing log of entities as a feed. Only Output must be
// set. A Handler serves what it writes.
//
// Its methods may be called at the same time, and take turns, but for Snapshot:
// entities are appended while one is made. Each takes the Output's lock while
// it works; where another process has it, the error matches publish.ErrLocked.
// What they did is durable when they return nil. After an error nothing of the
// call is published; if it is one of the Output's, all of it may be: Last tells.
type Producer struct {
	Output publish.Output

	// PageSize is about how many bytes a page has at most, unless a single entity
	// has more. Zero: 1,000,000.
	PageSize int64

	Now func() time.Time // the clock that the stamps are of; nil: time.Now

	mu    sync.Mutex
	swept bool
}

// Append publishes entities in the given order, all or nothing. They are
// stamped with the present, or the time of the entity before if the clock is
// behind that (datareplication#producer-2). An *EntityError says which one is
// refused.
//
// Those without a ContentID are given one. If the last of them has the ContentID
// of the feed's newest entity, the call repeats one that has been carried out,
// and does nothing: so where the caller gives them, to repeat a call that failed
// is always safe.
//
// It costs two writes, of the entities and of the feed's state, of some 500
// bytes; and, over the life of a page, each entity is written again some ten
// times if they come one at a time, but not if they come in large lots.
func (p *Producer) Append(entities ...Entity) error {
	return p.locked(func(s *state) error {
		if len(entities) == 0 {
			return nil
		}
		if last := entities[len(entities)-1].ContentID; last != "" && last == s.Last {
			return nil
		}
		all, err := ready(entities, p.stamp(s))
		if err != nil {
			return err
		}
		w := p.writer(s)
		for i := range all {
			if err := w.add(&all[i]); err != nil {
				return err
			}
		}
		if err := w.keep(); err != nil {
			return err
		}
		last := all[len(all)-1]
		s.Newest, s.Time, s.Last, s.Turn = w.page, last.Modified, last.ContentID, false
		if err := store(p.Output, stateName, s); err != nil {
			return err
		}
		p.discard(w.merged)
		return nil
	})
}

// stamp is what the next entities are stamped with. That of a feed's first is
// the time of the snapshots before it: to consumers, a feed that begins later
// looks like one that has lost its beginning.
func (p *Producer) stamp(s *state) time.Time {
	now := seconds(p.now())
	if s.Newest == nil && !s.Time.IsZero() || now.Before(s.Time) {
		return s.Time
	}
	return now
}

func (p *Producer) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}

// writer goes on with the newest page.
func (p *Producer) writer(s *state) *writer {
	w := &writer{out: p.Output, stem: pageStem, most: p.pageSize(), turned: s.Turn}
	if s.Newest != nil {
		page := *s.Newest
		w.page = &page
	}
	return w
}

func (p *Producer) pageSize() int64 { return cmp.Or(max(p.PageSize, 0), 1_000_000) }

// Last returns where the feed ends: the newest entity, or the zero Cursor if
// there is none.
func (p *Producer) Last() (Cursor, error) {
	s, err := loadState(p.Output)
	if err != nil || s.Newest == nil {
		return Cursor{}, err
	}
	return Cursor{s.Newest.Modified, s.Last}, nil
}

// CleanUp removes old pages: those that no consumer needs whose cursor is not
// before the given time. So of the pages that end before that time, the newest
// stays. The newest page of all always does.
func (p *Producer) CleanUp(before time.Time) error {
	return p.locked(func(s *state) error {
		var old []piece
		for s.Newest != nil && s.Oldest < s.Newest.Number {
			page, err := s.page(p.Output, s.Oldest)
			if err != nil {
				return err
			}
			next, err := s.page(p.Output, s.Oldest+1)
			if err != nil {
				return err
			}
			if !next.Modified.Before(seconds(before)) {
				break
			}
			old = append(append(old, page.Parts...), piece{Name: sheetName(pageStem(s.Oldest))})
			s.Oldest++
		}
		if len(old) == 0 {
			return nil
		}
		if err := store(p.Output, stateName, s); err != nil {
			return err
		}
		p.discard(old)
		return nil
	})
}

// locked does something as the only writer.
func (p *Producer) locked(do func(*state) error) (err error) {
	if p.Output == nil {
		return errors.New("datareplication: an Output is needed")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unlock, err := p.Output.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s, err := loadState(p.Output)
	if err != nil {
		return fmt.Errorf("datareplication: %w", err)
	}
	if !p.swept {
		p.sweep(s)
		p.swept = true
	}
	if err = do(s); err != nil {
		p.swept = false
	}
	return err
}

// discard removes files that nothing refers to any more. What cannot be removed
// harms nobody, and is swept away another time.
func (p *Producer) discard(pieces []piece) {
	for _, piece := range pieces {
		if p.Output.Remove(piece.Name) != nil {
			p.swept = false
		}
	}
}

// sweep removes what crashes have left of pages.
func (p *Producer) sweep(s *state) {
	files, err := fs.ReadDir(p.Output, pagesDir)
	if err != nil {
		return // there are none yet
	}
	named := map[string]bool{}
	newest := 0
	if s.Newest != nil {
		newest = s.Newest.Number
		for _, piece := range s.Newest.Parts {
			named[piece.Name] = true
		}
	}
	var left []piece
	for _, f := range files {
		name := path.Join(pagesDir, f.Name())
		number, rest, _ := strings.Cut(f.Name(), ".")
		n, err := strconv.Atoi(number)
		inner := n >= s.Oldest && n < newest && !strings.Contains(rest, "-")
		if err == nil && !inner && !named[name] {
			left = append(left, piece{Name: name})
		}
	}
	p.discard(left)
}
