package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// The marks of a server are its owner's: who may change anything, and the readers to whom
// the owner has given a login, set and see them.

// A run is a direction in which somebody reads on, by the name of its time in mirror.Marks.
// Its place in a feed is the last entry read so, which a search, a day or a random entry
// does not move.
type run string

var runs = []run{"forward", "backward"}

// mayMark reports whether a request may set and see marks.
func (s *Server) mayMark(r *http.Request) bool {
	return s.marker != nil && (s.gate.mayChange(r) || s.gate.isReader(r))
}

// isMarking reports whether a request sets marks, which a reader's login may.
func isMarking(r *http.Request) bool {
	ok, _ := path.Match("/feeds/*/marks", r.URL.Path)
	return ok && r.Method == http.MethodPost
}

// marks returns the marks a query selects; none for visitors who may not see them.
func (s *Server) marks(r *http.Request, q mirror.MarksQuery) (all []*mirror.Marks, err error) {
	if !s.mayMark(r) {
		return nil, nil
	}
	for m, err := range s.marker.Marks(r.Context(), q) {
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// takeMarks sets marks of an entry. A script gets an answer without content, a form goes on
// to its next page.
func (s *Server) takeMarks(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	id := r.FormValue("id")
	if _, err := mirror.Lookup(r.Context(), s.store, feed.URL, id); err != nil {
		return err
	}
	now := s.now().UTC()
	err := s.mark(r.Context(), feed.URL, []string{id}, func(m *mirror.Marks) { setMarks(m, r.PostForm, now) })
	if next := r.FormValue("next"); err == nil && next != "" {
		return seeOther(s.ownPath(next))
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// mark changes marks of entries.
func (s *Server) mark(ctx context.Context, feed string, ids []string, change func(*mirror.Marks)) error {
	defer s.feeds.readings.Drop(feed)
	return s.marker.Mark(ctx, feed, ids, change)
}

// setMarks sets the marks that a form names. The time of a mark that is set already stays.
func setMarks(m *mirror.Marks, form url.Values, now time.Time) {
	set := func(at *time.Time, value string) {
		switch {
		case value == "off":
			*at = time.Time{}
		case value == "on" && at.IsZero():
			*at = now
		}
	}
	set(&m.Read, form.Get("read"))
	set(&m.Starred, form.Get("star"))
	switch run(form.Get("run")) {
	case "forward":
		m.Forward = now
	case "backward":
		m.Backward = now
	}
	if seconds, err := strconv.ParseFloat(form.Get("position"), 64); err == nil && seconds >= 0 && seconds < 1e6 {
		m.Position = time.Duration(seconds) * time.Second
	}
}

// An entryMarks has the marks of an entry, for a page showing it.
type entryMarks struct {
	Feed, ID      string // the short name of the feed
	Next          string // the page to go on with after the form
	Read, Starred bool
	Run           run   // in which the visitor came; "" if in none
	Position      int64 // of the enclosure, in seconds
}

// marksOf returns the marks of entries by ID; nil for visitors who may not set them.
func (s *Server) marksOf(r *http.Request, feed string, ids ...string) (map[string]*entryMarks, error) {
	if !s.mayMark(r) {
		return nil, nil
	}
	found := make(map[string]*entryMarks, len(ids))
	for _, id := range ids {
		found[id] = &entryMarks{Feed: republish.Name(feed), ID: id}
	}
	all, err := s.marks(r, mirror.MarksQuery{Feed: feed, IDs: ids})
	for _, m := range all {
		p := found[m.ID]
		p.Read, p.Starred, p.Position = !m.Read.IsZero(), !m.Starred.IsZero(), int64(m.Position/time.Second)
	}
	return found, err
}

// markItems notes the marks of the entries in a list.
func (s *Server) markItems(r *http.Request, feed string, items []entryItem) error {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	all, err := s.marks(r, mirror.MarksQuery{Feed: feed, IDs: ids})
	for _, m := range all {
		i := slices.Index(ids, m.ID)
		items[i].Read, items[i].Starred = !m.Read.IsZero(), !m.Starred.IsZero()
	}
	return err
}

// A readingPlace is where somebody was in a feed.
type readingPlace struct {
	Run       run
	ID, Title string
	Time      time.Time
	Number    int64 // among the entries of the feed, the oldest being 1; zero if it is not known
	All       int64
	Before    *readingPlace // the place before, if the last step was a large one

	record *mirror.Record
}

// Forward reports whether the run is from the beginning.
func (p *readingPlace) Forward() bool { return p.Run == "forward" }

// largeStep is the number of entries between two places from which on the pages offer the
// way back.
const largeStep = 10

// places returns where somebody was in a feed, of each run that there was.
func (s *Server) places(r *http.Request, feed *mirror.Feed, f figures) (all []*readingPlace, err error) {
	for _, in := range runs {
		marks, err := s.marks(r, mirror.MarksQuery{Feed: feed.URL, With: string(in), Limit: 2})
		if err != nil {
			return nil, err
		}
		var last []*readingPlace
		for _, m := range marks {
			p, err := s.feeds.readingPlace(r.Context(), feed.URL, m.ID, f)
			if err != nil {
				return nil, err
			}
			if p != nil {
				p.Run = in
				last = append(last, p)
			}
		}
		if len(last) == 2 {
			if step := last[0].Number - last[1].Number; step > largeStep || step < -largeStep {
				last[0].Before = last[1]
			}
		}
		if len(last) > 0 {
			all = append(all, last[0])
		}
	}
	return all, nil
}

// readingPlace returns the place of an entry; nil if the entry is no longer here.
func (d *directory) readingPlace(ctx context.Context, feed, id string, f figures) (*readingPlace, error) {
	record, err := mirror.Lookup(ctx, d.store, feed, id)
	if errors.Is(err, mirror.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &readingPlace{ID: id, Title: shownTitle(record.Content), Time: record.Time(), record: record}
	p.Number, p.All, err = d.placeOf(ctx, record, f)
	return p, err
}

// A reading is how much of a feed has been read and starred, by month.
type reading struct {
	read, starred []month
	made          time.Time // zero for visitors who may not see marks
}

// readingTime is how long a reading is kept: another program may have set marks.
const readingTime = time.Minute

// readingOf returns how much of a feed the visitor has read.
func (s *Server) readingOf(r *http.Request, feed string) (p reading, err error) {
	if !s.mayMark(r) {
		return p, nil
	}
	if known, ok := s.feeds.readings.Get(feed); ok && time.Since(known.made) < readingTime {
		return known, nil
	}
	p.made = time.Now()
	if p.read, err = s.markedMonths(r, feed, "read"); err != nil {
		return p, err
	}
	if p.starred, err = s.markedMonths(r, feed, "starred"); err != nil {
		return p, err
	}
	s.feeds.readings.Put(feed, p)
	return p, nil
}

// markedMonths counts the entries of a feed with a mark by month.
func (s *Server) markedMonths(r *http.Request, feed string, name string) ([]month, error) {
	all, err := s.marks(r, mirror.MarksQuery{Feed: feed, With: name})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = m.ID
	}
	records, err := s.store.Records(r.Context(), feed, ids)
	counts := map[time.Time]int64{}
	for _, record := range records {
		if record.State == mirror.Live {
			counts[monthOf(record.Time())]++
		}
	}
	return sortedMonths(counts), err
}

// latestFeeds returns the feeds in which the visitor was last, the latest first.
func (s *Server) latestFeeds(r *http.Request, most int) (feeds []string, err error) {
	if !s.mayMark(r) {
		return nil, nil
	}
	latest := map[string]time.Time{}
	for _, in := range runs {
		seen := 0
		for m, err := range s.marker.Marks(r.Context(), mirror.MarksQuery{With: string(in), Limit: mostSteps}) {
			if err != nil {
				return nil, err
			}
			if at := m.Time(string(in)); at.After(latest[m.Feed]) {
				if latest[m.Feed].IsZero() {
					seen++
				}
				latest[m.Feed] = at
			}
			if seen == most {
				break
			}
		}
	}
	feeds = slices.SortedFunc(maps.Keys(latest), func(a, b string) int { return latest[b].Compare(latest[a]) })
	return feeds[:min(len(feeds), most)], nil
}

// mostSteps is the number of steps of reading on among which the latest feeds are looked for.
const mostSteps = 1000
