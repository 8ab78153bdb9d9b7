package datareplication

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/plain"
	"github.com/feedhistory/feedhistory/publish"
)

// A Producer publishes a growing log of entities as a feed. Only Output must be set. A
// Handler serves its files.
//
// Its methods may be called at the same time; they take turns, but entities can be
// appended while Snapshot runs. Each method holds the Output's lock while it works; if
// another process has the lock, the error matches publish.ErrLocked. When a method
// returns nil, its effect is durable. After an error nothing of the call is published,
// unless the error is the Output's: then all of it may be, and Last tells.
type Producer struct {
	Output publish.Output

	// PageSize is the approximate maximum size of a page in bytes, unless a
	// single entity is larger. Zero means 1,000,000.
	PageSize int64

	Now func() time.Time // the clock for stamps; nil means time.Now

	mu    sync.Mutex
	swept bool
}

// Append publishes entities in the given order, either all of them or none. They are
// stamped with the present time, or with the stamp of the entity before if the clock is
// behind it (datareplication#producer-2). An *EntityError names the refused entity.
//
// Entities without a ContentID get one. A ContentID must differ from those of earlier
// entities: Append checks only those of the call, and consumers stop at a repeated one.
// If the last entity has the ContentID of the feed's newest entity, the call repeats a
// successful one, and does nothing. So if you set the ContentIDs, it is always safe to
// repeat a failed call.
//
// Append makes two writes: of the entities, and of the feed's state, some 500
// bytes. If entities come one at a time, each is written again about ten times
// over the life of its page; if they come in large lots, it is not.
// The error may be the context's.
func (p *Producer) Append(ctx context.Context, entities ...Entity) error {
	return p.locked(ctx, func(s *state) error {
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
		w := p.writer(ctx, s)
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
		if err := store(ctx, p.Output, stateName, s); err != nil {
			return err
		}
		p.discard(ctx, w.merged)
		return nil
	})
}

// stamp returns the stamp for the next entities. The first entities of a feed get at
// least the time of the snapshots before them, because a feed beginning later looks to
// consumers as if it had lost its beginning.
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

// writer returns a writer for continuing the newest page.
func (p *Producer) writer(ctx context.Context, s *state) *writer {
	w := &writer{ctx: ctx, out: p.Output, stem: pageStem, most: p.pageSize(), turned: s.Turn}
	if s.Newest != nil {
		page := *s.Newest
		w.page = &page
	}
	return w
}

func (p *Producer) pageSize() int64 { return cmp.Or(max(p.PageSize, 0), 1_000_000) }

// Last returns the end of the feed: the newest entity, or the zero Mark if
// there is none.
func (p *Producer) Last() (Mark, error) {
	if p.Output == nil {
		return Mark{}, errors.New("datareplication: Producer.Output must be set")
	}
	s, err := loadState(p.Output)
	if err != nil || s.Newest == nil {
		return Mark{}, err
	}
	return Mark{Time: s.Newest.Modified, ContentID: s.Last}, nil
}

// CleanUp removes the old pages, those no consumer needs whose mark is at or after
// the given time. So of the pages ending before that time, it keeps the newest. It
// never removes the newest page of the feed. The error may be the context's.
func (p *Producer) CleanUp(ctx context.Context, before time.Time) error {
	return p.locked(ctx, func(s *state) error {
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
		if err := store(ctx, p.Output, stateName, s); err != nil {
			return err
		}
		p.discard(ctx, old)
		return nil
	})
}

// locked calls do as the only writer.
func (p *Producer) locked(ctx context.Context, do func(*state) error) (err error) {
	if p.Output == nil {
		return errors.New("datareplication: Producer.Output must be set")
	}
	if err := plain.Check("datareplication", plain.Number{Name: "Producer.PageSize", Value: p.PageSize}); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unlock, err := p.Output.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s, err := loadState(p.Output)
	if err != nil {
		return fmt.Errorf("datareplication: %w", err)
	}
	if !p.swept {
		p.sweep(ctx, s)
		p.swept = true
	}
	if err = do(s); err != nil {
		p.swept = false
	}
	return err
}

// discard removes files nothing refers to any more. If one cannot be removed, it does
// no harm, and a later sweep removes it.
func (p *Producer) discard(ctx context.Context, pieces []piece) {
	for _, piece := range pieces {
		if p.Output.Remove(ctx, piece.Name) != nil {
			p.swept = false
		}
	}
}

// sweep removes the remains of pages after crashes.
func (p *Producer) sweep(ctx context.Context, s *state) {
	files, err := fs.ReadDir(p.Output, pagesDir)
	if err != nil {
		return // there are no pages yet
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
	p.discard(ctx, left)
}
