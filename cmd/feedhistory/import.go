package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// An importCommand is the verb import.
type importCommand struct {
	database.Location
	Files   []string `arg:"" optional:"" sep:"none" name:"FILE" help:"What export --raw or fetch --raw wrote (default: standard input)."`
	Replace bool     `help:"Replace feeds that are already mirrored."`
}

// Help returns the text of --help that precedes the flags.
func (c *importCommand) Help() string {
	return "import restores feeds as they were, with earlier versions of entries and everything that the mirror knew about them. " +
		"With it, you can move a mirror from one database to another, such as from SQLite to PostgreSQL and back.\n\n" +
		"Import skips a feed that the database already has in the same state. So after an error or an interrupt, " +
		"run the same import again: it continues with the feed that it had reached."
}

// Run imports the feeds.
func (c *importCommand) Run(w *command.World) (err error) {
	store, err := c.Create(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	in := &importing{ctx: w.Ctx, store: store, replace: c.Replace, db: &c.Location}
	files := c.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, file := range files {
		if err := in.file(w, file); err != nil {
			return err
		}
	}
	if err := store.Index(w.Ctx); err != nil {
		return c.Failure(err)
	}
	what := terminal.Count(in.feeds, "feed", "feeds") + " · " + terminal.Count(in.entries, "entry", "entries") + " imported"
	if in.same > 0 {
		what += fmt.Sprintf(" · %d already there", in.same)
	}
	p := terminal.NewPage(w.Asides())
	p.Para("", "", what)
	return p.Err
}

// An importing is an import in progress.
type importing struct {
	ctx     context.Context
	store   *database.Store
	replace bool
	db      *database.Location

	feeds, entries, same int // so far
	feed                 *importedFeed
}

// An importedFeed is the feed whose lines are being read.
type importedFeed struct {
	line    feedLine
	skipped bool            // the database already has the feed
	stored  *mirror.Feed    // the feed as it is stored until its last line has been read
	change  mirror.Change   // the change to commit next
	size    int             // the size of that change, in bytes
	lines   map[string]int  // the line number of each entry, by its id
	erased  map[string]bool // the entries that have been erased from the database

	entries, deleted, documents int64 // so far
}

const (
	importBatch = 500       // the maximum number of lines in a commit
	importBytes = 4 << 20   // the maximum size of a commit, in bytes
	importLine  = 256 << 20 // the maximum size of a line, in bytes
)

// A lineError says why a line cannot be imported.
type lineError struct {
	File string
	Line int
	Err  error
}

// Error returns the message, with the file and the line.
func (e *lineError) Error() string {
	file := e.File
	if file == "-" {
		file = "standard input"
	}
	return fmt.Sprintf("%s: line %d: %v", file, e.Line, e.Err)
}

// Unwrap returns Err.
func (e *lineError) Unwrap() error { return e.Err }

// file imports the lines of a file. The lines of a feed are in one file.
func (in *importing) file(w *command.World, name string) error {
	f, err := w.OpenFile(name)
	if err != nil {
		return explain.Failure(name, err)
	}
	defer f.Close()
	lines, n := bufio.NewScanner(f), 0
	lines.Buffer(make([]byte, 0, 64<<10), importLine)
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(line) == 0 {
			continue
		}
		if err := in.add(line, n); err != nil {
			return in.failure(&lineError{name, n, err})
		}
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("it is longer than %s", argument.SizeText(importLine))
	}
	if err != nil {
		return in.failure(&lineError{name, n + 1, err})
	}
	if err := in.end(); err != nil {
		return in.failure(&lineError{name, n, err})
	}
	return nil
}

// failure says what to do after an error of the database; it returns other errors
// unchanged.
func (in *importing) failure(err *lineError) error {
	if problem := in.db.Failure(err.Err); problem != err.Err { // the database's, and not the line's
		return fmt.Errorf("%w; run the same import again to continue", problem)
	}
	return err
}

// add imports a line.
func (in *importing) add(line []byte, n int) error {
	var what struct{ Type, Feed string }
	if err := json.Unmarshal(line, &what); err != nil {
		return fmt.Errorf("not a line of export --raw: %w", err)
	}
	if what.Type == "feed" {
		return in.begin(line)
	}
	if in.feed == nil || in.feed.line.Feed != what.Feed {
		return errors.New("no line about its feed precedes this line; export --raw and fetch --raw write one")
	}
	if in.feed.skipped {
		return nil
	}
	switch what.Type {
	case "gap":
		return in.feed.gap(line)
	case "document":
		return in.document(line)
	case "entry", "":
		return in.entry(line, n)
	}
	return nil // a later version of feedhistory wrote the line
}

// begin begins the import of a feed. Until its last line has been read, the stored feed
// says that the import is not complete.
func (in *importing) begin(line []byte) error {
	if err := in.end(); err != nil {
		return err
	}
	f := &importedFeed{lines: map[string]int{}, erased: map[string]bool{}}
	if err := json.Unmarshal(line, &f.line); err != nil {
		return fmt.Errorf("not a line about a feed: %w", err)
	}
	if f.line.State == nil || f.line.Feed == "" || f.line.State.URL != f.line.Feed {
		return errors.New("the line about the feed has no state")
	}
	if err := argument.CheckURL(f.line.Feed); err != nil {
		return errors.New(err.Error()) // not a usageError: the command line is right
	}
	in.feed = f
	old, err := in.store.Feed(in.ctx, f.line.Feed)
	switch {
	case errors.Is(err, mirror.ErrNotFound):
	case err != nil:
		return err
	case database.IsImporting(old), in.replace && !f.isSame(old):
		if err := in.clear(f); err != nil {
			return err
		}
	case f.isSame(old):
		in.same++
		f.skipped = true
		return in.markPrivate(f)
	default:
		return fmt.Errorf("%s is already in %s, and differs: --replace replaces it",
			argument.WithoutUser(old.URL), in.db.Place())
	}
	if err := in.markPrivate(f); err != nil {
		return err
	}
	f.stored = &mirror.Feed{
		URL: f.line.Feed, Title: f.line.State.Title, Verdict: feedhistory.Partial, Source: database.ImportSource, Next: database.Never,
		Error: "its import is not complete: run the same import again",
	}
	return in.commit()
}

// markPrivate records that a feed is private, so that the history server does not show it
// to others. Call it before anything of the feed is stored.
func (in *importing) markPrivate(f *importedFeed) error {
	if !f.line.Private {
		return nil
	}
	keys, err := in.db.Keyring()
	if err != nil {
		return err
	}
	return keys.Set(map[string]http.Header{f.line.Feed: {}})
}

// isSame reports whether the stored feed equals the feed to import.
func (f *importedFeed) isSame(old *mirror.Feed) bool {
	if old.Version != f.line.Version {
		return false
	}
	state := *old
	state.Gaps, state.Pending = nil, nil
	a, errA := json.Marshal(state)
	b, errB := json.Marshal(f.line.State)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func (f *importedFeed) gap(line []byte) error {
	var l gapLine
	if err := json.Unmarshal(line, &l); err != nil {
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

func (in *importing) document(line []byte) error {
	var l documentLine
	if err := json.Unmarshal(line, &l); err != nil {
		return fmt.Errorf("not a line about a document: %w", err)
	}
	if l.Document.URL == "" {
		return errors.New("the document has no url")
	}
	in.feed.documents++
	in.feed.change.Documents = append(in.feed.change.Documents, l.Document.document())
	return in.filled(len(line))
}

func (in *importing) entry(line []byte, n int) error {
	var l entryLine
	if err := json.Unmarshal(line, &l); err != nil {
		return fmt.Errorf("not a line about an entry: %w", err)
	}
	f := in.feed
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
	case r.State == mirror.Live:
		f.entries++
	case !bare:
		f.deleted++
	}
	for _, v := range l.Versions {
		f.change.Versions = append(f.change.Versions, &mirror.Version{ID: l.ID, Copy: v.Copy.copy(), Content: mirror.Content(v.Content)})
	}
	return in.filled(len(line))
}

// record returns the Record to store for the entry of a line: the one that a mirror had
// stored or, for an entry from elsewhere, the one that a mirror would have after one poll.
func (f *importedFeed) record(l *entryLine) (*mirror.Record, error) {
	if l.Mirror != nil {
		r := l.record()
		if l.Mirror.Content != nil && l.Raw == nil {
			return nil, errors.New("its line has no member raw, which is the entry as it was published")
		}
		if !slices.Contains([]mirror.State{mirror.Live, mirror.Deleted, mirror.Absent, mirror.Unseen, mirror.Erased}, r.State) {
			return nil, fmt.Errorf("%q is not a state of an entry", r.State)
		}
		return r, nil
	}
	state := f.line.State
	at := state.Polled
	rank := mirror.Rank{Time: at, Place: state.Polls << 32}
	r := &mirror.Record{Feed: l.Feed, ID: l.ID, State: mirror.Live, Copy: mirror.Copy{At: at, Rank: rank}, First: 1, Change: 1, Added: at, Changed: at}
	if l.Deleted.Deleted {
		r.State, r.Copy, r.First, r.Added = mirror.Unseen, mirror.Copy{}, 0, time.Time{}
		r.Tombstone = mirror.Tombstone{When: l.Deleted.When, Rank: rank}
		state.Usage.Tombstones++
		state.Usage.Refs += int64(len(l.ID))
		return r, nil
	}
	e, err := entryOf(&l.JSONEntry)
	if err != nil {
		return nil, err
	}
	r.Content = mirror.ContentOf(e)
	if r.Copy.Digest = e.Digest(); l.Raw != nil && l.Raw.Digest != "" {
		r.Copy.Digest = l.Raw.Digest
	}
	if !e.Updated.IsZero() {
		r.Copy.At = e.Updated
	}
	state.Usage.Contents += r.Content.Size
	return r, nil
}

// filled adds the size of a line to that of the change, and commits the change if it is
// large enough.
func (in *importing) filled(size int) error {
	f := in.feed
	if f.size += size; f.size < importBytes && len(f.change.Put)+len(f.change.Touch)+len(f.change.Documents) < importBatch {
		return nil
	}
	return in.commit()
}

func (in *importing) commit() error {
	f := in.feed
	f.change.Feed, f.change.Keep = f.stored, math.MaxInt32
	err := in.store.Commit(in.ctx, &f.change)
	f.change, f.size = mirror.Change{}, 0
	return err
}

// end ends the import of a feed, and stores the feed's state.
func (in *importing) end() error {
	f := in.feed
	in.feed = nil
	if f == nil || f.skipped {
		return nil
	}
	state := f.line.State
	for _, missing := range []struct {
		what      string
		got, want int64
	}{{"entries", f.entries, state.Entries}, {"deleted entries", f.deleted, state.Deleted}, {"documents", f.documents, state.Documents}} {
		if missing.got < missing.want {
			return fmt.Errorf("%s: lines are missing: of %d %s, only %d have been read", argument.WithoutUser(state.URL), missing.want, missing.what, missing.got)
		}
	}
	state.Version = f.stored.Version
	f.stored, f.change.Version = state, f.line.Version
	in.feed = f
	err := in.commit()
	in.feed = nil
	if err == nil {
		in.feeds++
		in.entries += len(f.lines)
	}
	return err
}
