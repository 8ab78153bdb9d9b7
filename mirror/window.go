package mirror

import (
	"context"
	"slices"

	"github.com/feedhistory/feedhistory"
)

// A window is a missed one, with the entries that a memory must have to close it.
type window struct {
	gap           GapRecord
	before, after map[string]bool // the newest from before the gap, and the oldest from after
	met           [2]bool         // the memory has one of them
}

// windowsOf returns the missed windows of a feed. It reads the feed once.
func (r *Recall) windowsOf(ctx context.Context, f *Feed) ([]*window, error) {
	if found, ok := r.windows[f.URL]; ok {
		return found, nil
	}
	var found []*window
	for _, g := range f.Gaps {
		if isMissedWindow(g) {
			found = append(found, &window{gap: g, before: map[string]bool{}, after: map[string]bool{}})
		}
	}
	if r.windows == nil {
		r.windows = map[string][]*window{}
	}
	r.windows[f.URL] = found
	if len(found) == 0 {
		return nil, nil
	}
	newest, oldest := make([]*Record, len(found)), make([]*Record, len(found))
	for rec, err := range r.Mirror.Store.Entries(ctx, Query{Feed: f.URL, Deleted: true}) {
		if err != nil {
			delete(r.windows, f.URL)
			return nil, err
		}
		if rec.Copy.Source != "" || rec.FirstCommit == 0 {
			continue // the feed has not shown it
		}
		for i, w := range found {
			switch {
			case rec.Added.Before(w.gap.Found):
				if newest[i] == nil || rec.Time().After(newest[i].Time()) {
					newest[i] = rec
					clear(w.before)
				}
				if rec.Time().Equal(newest[i].Time()) {
					w.before[rec.ID] = true
				}
			case rec.Added.Equal(w.gap.Found):
				if oldest[i] == nil || rec.Time().Before(oldest[i].Time()) {
					oldest[i] = rec
					clear(w.after)
				}
				if rec.Time().Equal(oldest[i].Time()) {
					w.after[rec.ID] = true
				}
			}
		}
	}
	return found, nil
}

// meet notes the entries of a memory.
func (w *window) meet(entries []*feedhistory.Entry) {
	for _, e := range entries {
		w.met[0] = w.met[0] || w.before[e.ID]
		w.met[1] = w.met[1] || w.after[e.ID]
	}
}

// close removes the missed windows with both sides met, and returns their number.
func (f *Feed) close(windows []*window) (closed int) {
	n := len(f.Gaps)
	f.Gaps = slices.DeleteFunc(f.Gaps, func(g GapRecord) bool {
		return isMissedWindow(g) && slices.ContainsFunc(windows, func(w *window) bool {
			return w.gap.Found.Equal(g.Found) && w.gap.URL == g.URL && w.met == [2]bool{true, true}
		})
	})
	if closed = n - len(f.Gaps); closed > 0 {
		p := poll{feed: f, chain: chain{changed: f.Kind == feedhistory.Archived && f.Verdict != feedhistory.Whole}}
		f.Verdict = feedhistory.Worse(p.verdict(), f.bound())
	}
	return closed
}
