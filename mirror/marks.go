package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// Marks are the memory of one person who reads an entry. They are apart from the entry:
// they may come before it, and stay when it changes or leaves its feed. They go with the
// feed, and when the entry is erased.
type Marks struct {
	Feed string `json:"-"`            // the URL of the feed
	ID   string `json:"id,omitempty"` // the ID of the entry

	Read    time.Time `json:"read,omitzero"`    // when the entry was read; zero if it was not
	Starred time.Time `json:"starred,omitzero"` // when it was starred; zero if it is not

	// Forward and Backward say when somebody was last here who reads the feed from its
	// beginning, or from its end; zero means never. The latest of a feed is the place to go
	// on from.
	Forward  time.Time `json:"forward,omitzero"`
	Backward time.Time `json:"backward,omitzero"`

	Position time.Duration `json:"position,omitempty"` // how far its enclosure was played
	Labels   []string      `json:"labels,omitempty"`
}

// isZero reports whether there is nothing to remember.
func (m *Marks) isZero() bool {
	return m.Read.IsZero() && m.Starred.IsZero() && m.Forward.IsZero() && m.Backward.IsZero() && m.Position == 0 && len(m.Labels) == 0
}

// join adds the marks of an import: of each time the latest counts, and what only one of
// them has.
func (m *Marks) join(o *Marks) {
	for _, pair := range [][2]*time.Time{{&m.Read, &o.Read}, {&m.Starred, &o.Starred}, {&m.Forward, &o.Forward}, {&m.Backward, &o.Backward}} {
		*pair[0] = feedtime.Later(*pair[0], *pair[1])
	}
	m.Position = cmp.Or(m.Position, o.Position)
	for _, label := range o.Labels {
		if !slices.Contains(m.Labels, label) {
			m.Labels = append(m.Labels, label)
		}
	}
}

// Time returns a time by its name: "read", "starred", "forward" or "backward". It is zero if
// the entry does not have it, or the name is another one.
func (m *Marks) Time(name string) time.Time {
	if at := m.time(name); at != nil {
		return *at
	}
	return time.Time{}
}

// time returns the place of a time; nil if there is none with this name.
func (m *Marks) time(name string) *time.Time {
	switch name {
	case "read":
		return &m.Read
	case "starred":
		return &m.Starred
	case "forward":
		return &m.Forward
	case "backward":
		return &m.Backward
	}
	return nil
}

// A MarksQuery selects marks by all of its fields that are set. Feed or With must be: IDs
// alone are an error. Without With, the marks are in the order of their IDs.
type MarksQuery struct {
	Feed  string   // Feed is the URL of one feed; "" means all feeds.
	IDs   []string // IDs, if not nil, selects the entries with these IDs.
	With  string   // With, if not "", selects the entries with this time, by the name that Marks.Time takes: the latest first, then by Feed and ID.
	Limit int      // Limit is the maximum number of entries; zero means all, a negative one is an error.
}

// Check returns an error for a query that no Marker can answer.
func (q *MarksQuery) Check() error {
	if q.Feed == "" && q.With == "" {
		return errors.New("mirror: a MarksQuery needs a Feed or With")
	}
	if q.With != "" && new(Marks).time(q.With) == nil {
		return fmt.Errorf("mirror: MarksQuery.With: there is no mark %q", q.With)
	}
	return settings.Check("mirror", settings.Number{Name: "MarksQuery.Limit", Value: int64(q.Limit)})
}

// A Marker is a Store that also keeps marks.
type Marker interface {
	Store

	// Marks yields the marks a query selects. A Store that only passes calls on to one that
	// keeps none returns an error matching errors.ErrUnsupported; Mark does, too.
	Marks(ctx context.Context, q MarksQuery) iter.Seq2[*Marks, error]

	// Mark changes marks of entries of a feed, all of them or none: it calls change with
	// the marks of each ID, which are zero if there are none, and stores what they are
	// then. Two calls for one entry happen one after the other. The error matches
	// ErrNotFound if the Store does not have the feed. change must not be nil; if it
	// panics, nothing is stored, and the panic passes on.
	Mark(ctx context.Context, feed string, ids []string, change func(*Marks)) error
}

// Marks implements Marker.
func (m *memory) Marks(ctx context.Context, q MarksQuery) iter.Seq2[*Marks, error] {
	return sequence(ctx, m, (*Marks).clone, func() (found []*Marks, err error) {
		if err := q.Check(); err != nil {
			return nil, err
		}
		for url, f := range m.feeds {
			for marks := range maps.Values(f.marks) {
				if (q.Feed == "" || q.Feed == url) && (q.IDs == nil || slices.Contains(q.IDs, marks.ID)) && (q.With == "" || !marks.Time(q.With).IsZero()) {
					found = append(found, marks)
				}
			}
		}
		slices.SortFunc(found, func(a, b *Marks) int {
			return cmp.Or(b.Time(q.With).Compare(a.Time(q.With)), cmp.Compare(a.Feed, b.Feed), cmp.Compare(a.ID, b.ID))
		})
		return limited(found, q.Limit), nil
	})
}

// Mark implements Marker.
func (m *memory) Mark(ctx context.Context, feed string, ids []string, change func(*Marks)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.feed(ctx, feed)
	if err != nil {
		return err
	}
	if f.marks == nil {
		f.marks = map[string]*Marks{}
	}
	changed := map[string]*Marks{}
	for _, id := range ids {
		marks := cmp.Or(changed[id], f.marks[id], &Marks{}).clone()
		changed[id] = marks
		marks.Feed, marks.ID = feed, id
		change(marks)
	}
	for id, marks := range changed {
		if f.marks[id] = marks.clone(); marks.isZero() {
			delete(f.marks, id)
		}
	}
	return nil
}

func (m *Marks) clone() *Marks {
	twin := clone(m)
	twin.Labels = slices.Clone(m.Labels)
	return twin
}

// joinMarks stores the marks of entries that a reader has kept.
func joinMarks(ctx context.Context, s Store, feed string, kept []KeptEntry) error {
	marks := map[string]*Marks{}
	for i := range kept {
		if k := &kept[i]; k.ID != "" && !k.Marks.isZero() {
			marks[k.ID] = &k.Marks
		}
	}
	marker, ok := s.(Marker)
	if !ok || len(marks) == 0 {
		return nil
	}
	err := marker.Mark(ctx, feed, slices.Sorted(maps.Keys(marks)), func(m *Marks) { m.join(marks[m.ID]) })
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// forgetMarks removes the marks of erased entries.
func forgetMarks(ctx context.Context, s Store, feed string, ids []string) error {
	marker, ok := s.(Marker)
	if !ok {
		return nil
	}
	err := marker.Mark(ctx, feed, ids, func(m *Marks) { *m = Marks{} })
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Marks implements Marker.
func (s publicStore) Marks(ctx context.Context, q MarksQuery) iter.Seq2[*Marks, error] {
	marker, ok := s.Store.(Marker)
	if !ok {
		return func(yield func(*Marks, error) bool) { yield(nil, errors.ErrUnsupported) }
	}
	limit := q.Limit
	q.Limit = min(limit, 0) // the number of hidden marks is not known
	return visible(marker.Marks(ctx, q), limit, func(m *Marks) (bool, error) { return s.shows(ctx, m.Feed) })
}

// Mark implements Marker.
func (s publicStore) Mark(ctx context.Context, feed string, ids []string, change func(*Marks)) error {
	marker, ok := s.Store.(Marker)
	if !ok {
		return errors.ErrUnsupported
	}
	if _, err := s.Feed(ctx, feed); err != nil {
		return err
	}
	return marker.Mark(ctx, feed, ids, change)
}
