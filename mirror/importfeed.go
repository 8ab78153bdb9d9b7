package mirror

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// An importedFeed is a feed whose lines are being read.
type importedFeed struct {
	line    feedLine
	skipped bool            // the store already has the feed
	stored  *Feed           // the feed as it is stored until its last line has been read
	change  Commit          // the change to commit next
	size    int             // the size of the change, in bytes
	lines   map[string]int  // the line number of each entry, by its id
	erased  map[string]bool // the entries erased from the store

	entries, deleted, documents int64 // so far
}

// isSame reports whether the stored feed equals the feed to import.
func (f *importedFeed) isSame(old *Feed) bool {
	if old.Commits != f.line.Version {
		return false
	}
	state := *old
	state.Gaps, state.Pending = nil, nil
	a, errA := json.Marshal(state)
	b, errB := json.Marshal(f.line.State)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// isFull reports whether the change is large enough to be committed.
func (f *importedFeed) isFull() bool {
	return f.size >= importBytes || len(f.change.Put)+len(f.change.Touch)+len(f.change.Documents) >= importBatch
}

func (f *importedFeed) gap(text []byte) error {
	var l gapLine
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not a line about a gap: %w", err)
	}
	switch {
	case l.Gap != nil:
		f.line.State.Gaps = append(f.line.State.Gaps, *l.Gap)
	case l.Pending != nil:
		f.line.State.Pending = append(f.line.State.Pending, *l.Pending)
	}
	return nil
}

func (f *importedFeed) document(text []byte) error {
	var l documentLine
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not a line about a document: %w", err)
	}
	if l.Document == nil || l.Document.URL == "" {
		return errors.New("the document has no url")
	}
	f.documents++
	f.change.Documents = append(f.change.Documents, l.Document)
	f.size += len(text)
	return nil
}

func (f *importedFeed) entry(text []byte, n int) error {
	var l entryLine
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("not a line about an entry: %w", err)
	}
	switch {
	case l.ID == "":
		return errors.New("the entry has no id")
	case f.lines[l.ID] > 0:
		return fmt.Errorf("line %d already has the id %s", f.lines[l.ID], l.ID)
	}
	f.lines[l.ID] = n
	r, err := f.record(&l)
	if err != nil {
		return fmt.Errorf("the entry %s: %w", l.ID, err)
	}
	if slices.Contains(l.Versions, nil) {
		return fmt.Errorf("the entry %s: a version is null", l.ID)
	}
	if f.erased[l.ID] {
		f.leaveOut(r, l.Versions)
		return nil
	}
	bare := r.Content.Format == 0
	if bare {
		f.change.Touch = append(f.change.Touch, r)
	} else {
		f.change.Put = append(f.change.Put, r)
	}
	switch {
	case r.State == Live:
		f.entries++
	case !bare:
		f.deleted++
	}
	for _, v := range l.Versions {
		v.ID = l.ID
		f.change.Versions = append(f.change.Versions, v)
	}
	f.size += len(text)
	return nil
}

// record returns the Record to store for the entry of a line: the one a mirror had
// stored or, for an entry from elsewhere, the one a mirror would have after one poll.
func (f *importedFeed) record(l *entryLine) (*Record, error) {
	if l.Mirror == nil {
		return f.newRecord(l)
	}
	r := l.Mirror
	r.Feed, r.ID = l.Feed, l.ID
	switch {
	case r.Content != Content{} && l.Raw == nil:
		return nil, errors.New("its line lacks the member raw, the entry as published")
	case !slices.Contains([]State{Live, Deleted, Absent, Unseen, Erased}, r.State):
		return nil, fmt.Errorf("%q is not a state of an entry", r.State)
	case r.Content != Content{}:
		r.Content.Data, r.Content.Base = l.Raw.Data, l.Raw.Base
	}
	return r, nil
}

func (f *importedFeed) newRecord(l *entryLine) (*Record, error) {
	state := f.line.State
	at := state.Polled
	rank := Rank{Time: at, Seq: state.Polls << 32}
	r := &Record{Feed: l.Feed, ID: l.ID, State: Live, Copy: Copy{At: at, Rank: rank}, FirstCommit: 1, LastCommit: 1, Added: at, Changed: at}
	if l.Deleted.Deleted {
		r.State, r.Copy, r.FirstCommit, r.Added = Unseen, Copy{}, 0, time.Time{}
		r.Tombstone = TombstoneRecord{When: l.Deleted.When, Rank: rank}
		state.Usage.Tombstones++
		state.Usage.Refs += int64(len(l.ID))
		return r, nil
	}
	e, err := l.Original()
	if err != nil {
		return nil, err
	}
	r.Content = contentOf(e)
	if r.Copy.Digest = e.Digest(); l.Raw != nil && l.Raw.Digest != "" {
		r.Copy.Digest = l.Raw.Digest
	}
	if !e.Updated.IsZero() {
		r.Copy.At = e.Updated
	}
	state.Usage.Contents += r.Content.Size
	return r, nil
}

// leaveOut removes an erased entry from the state of its feed.
func (f *importedFeed) leaveOut(r *Record, versions []*Version) {
	state := f.line.State
	switch {
	case r.State == Live:
		state.Entries--
	case r.Content.Format != 0:
		state.Deleted--
	}
	for _, v := range versions {
		state.Usage.Contents -= v.Content.Size
	}
	state.Usage.Contents = max(0, state.Usage.Contents-r.Content.Size)
	isErased := func(id string) bool { return id == r.ID }
	state.Shown, state.Sought = slices.DeleteFunc(state.Shown, isErased), slices.DeleteFunc(state.Sought, isErased)
}

// lacks returns an error if lines of the feed are missing.
func (f *importedFeed) lacks() error {
	state := f.line.State
	for _, part := range []struct {
		name      string
		got, want int64
	}{{"entries", f.entries, state.Entries}, {"deleted entries", f.deleted, state.Deleted}, {"documents", f.documents, state.Documents}} {
		if part.got < part.want {
			return fmt.Errorf("%s: lines are missing: of %d %s, only %d have been read", iri.Redact(state.URL), part.want, part.name, part.got)
		}
	}
	return nil
}
