package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/mirror"
)

// readableEntries is a store without the entries whose content is damaged. It records
// them, so a command can show the rest and name them.
type readableEntries struct {
	mirror.Store
	damaged map[string]error // why an entry cannot be read, by feed and id
	names   []string         // the keys of damaged, in the order in which they were found
}

// Entries implements mirror.Store.
func (s *readableEntries) Entries(ctx context.Context, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	return func(yield func(*mirror.Record, error) bool) {
		for r, err := range s.Store.Entries(ctx, q) {
			if err == nil && s.isDamaged(r) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (s *readableEntries) isDamaged(r *mirror.Record) bool {
	if r.Content.Format == 0 {
		return false
	}
	_, err := r.Entry()
	if err != nil {
		s.note(r, err)
	}
	return err != nil
}

// note records a damaged entry.
func (s *readableEntries) note(r *mirror.Record, err error) {
	name := r.Feed + ": the entry " + r.ID
	if s.damaged == nil {
		s.damaged = map[string]error{}
	}
	if s.damaged[name] == nil {
		s.names = append(s.names, name)
	}
	s.damaged[name] = err
}

// declare reads the entries of a feed, and returns its state with a gap for each damaged
// one: without them, the feed is not whole.
func (s *readableEntries) declare(ctx context.Context, f *mirror.Feed) (*mirror.Feed, error) {
	before := len(s.names)
	for _, err := range s.Entries(ctx, mirror.Query{Feed: f.URL}) {
		if err != nil {
			return nil, err
		}
	}
	if len(s.names) == before {
		return f, nil
	}
	state := *f
	state.Verdict, state.Gaps = feedhistory.Partial, append([]mirror.GapRecord(nil), f.Gaps...)
	for _, name := range s.names[before:] {
		state.Gaps = append(state.Gaps, mirror.GapRecord{
			URL: f.URL, From: f.URL, Reason: feedhistory.ReasonMalformed, Found: f.Changed,
			Message: fmt.Sprintf("%s cannot be read in the database: %v", name, s.damaged[name]),
		})
	}
	return &state, nil
}

// mostNamed is the maximum number of damaged entries to name.
const mostNamed = 20

// say names the damaged entries, and returns the exit status for them; nil if there are
// none.
func (s *readableEntries) say(w *command.World) error {
	for i, name := range s.names {
		if i == mostNamed {
			w.Say(fmt.Sprintf("and %d more", len(s.names)-i))
			break
		}
		w.Say(fmt.Sprintf("%s cannot be read, and is left out: %v", name, s.damaged[name]))
	}
	if len(s.names) > 0 {
		return exit.StatusError(exit.Partial)
	}
	return nil
}
