package mirror

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// An Import restores feeds from the lines of an Export: their states, their
// documents, and their entries with earlier versions. Only Store must be set.
//
// An interrupted Import can be repeated: it leaves out the feeds the Store already has
// in the same state, and continues with the one it had reached. An Import belongs to
// one goroutine.
type Import struct {
	Store   Store // Store receives the feeds.
	Replace bool  // Replace replaces feeds in the Store that differ. They are otherwise an *ExistsError.

	// Check refuses a feed by its URL. Nil accepts all.
	Check func(feed string) error

	// Private is called for a private feed before anything of it is stored. Nil means
	// there is nothing to do.
	Private func(feed string) error

	Feeds   int // Feeds counts the feeds restored.
	Entries int // Entries counts their entries.
	Same    int // Same counts the feeds already in the Store.

	// Ended reports whether the last line that was read is the one Export.End
	// writes. If not, the lines may have been cut short between two feeds, or an
	// earlier version wrote them.
	Ended bool

	ctx  context.Context
	feed *importedFeed // the feed whose lines are being read
}

// An ExistsError reports a feed to import that is already in the Store, in another
// state.
type ExistsError struct{ URL string }

// Error says which feed it is.
func (e *ExistsError) Error() string {
	return iri.Redact(e.URL) + " is already in the store, and differs"
}

// importSource is the Source of a feed whose import has not ended.
const importSource = "import"

// Importing reports whether an Import of the feed has begun and not ended.
func (f *Feed) Importing() bool { return f.Source == importSource && f.Polls == 0 }

const (
	importBatch = 500       // the maximum number of lines in a commit
	importBytes = 4 << 20   // the maximum size of a commit, in bytes
	importLine  = 256 << 20 // the maximum size of a line, in bytes
)

// Read imports lines. All lines of a feed must come from one reader. Lines of
// unknown types are ignored. An error is a *LineError: its Err is the line's,
// the Store's, the reader's, or the context's.
func (in *Import) Read(ctx context.Context, r io.Reader) error {
	if in.Store == nil {
		return errors.New("mirror: Import.Store must be set")
	}
	if r == nil {
		return errors.New("mirror: Import.Read: the io.Reader is nil")
	}
	in.ctx, in.feed, in.Ended = ctx, nil, false
	lines, n := bufio.NewScanner(r), 0
	lines.Buffer(make([]byte, 0, 64<<10), importLine)
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		if err := in.line(text, n); err != nil {
			return &LineError{n, err}
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("it is longer than %d MiB", importLine>>20)
	}
	if err != nil {
		return &LineError{n + 1, err}
	}
	if err := in.end(); err != nil {
		return &LineError{n, err}
	}
	return nil
}

// line imports a line.
func (in *Import) line(text []byte, n int) error {
	var what line
	if err := json.Unmarshal(text, &what); err != nil {
		return fmt.Errorf("not a line of an Export: %w", err)
	}
	in.Ended = what.Type == lineEnd
	switch what.Type {
	case "feed":
		return in.begin(text)
	case "gap", "document", "entry", "":
	default:
		return nil // a later version wrote the line
	}
	f := in.feed
	switch {
	case f == nil || f.line.Feed != what.Feed:
		return errors.New("no line about its feed precedes this line")
	case f.skipped:
		return nil
	}
	var err error
	switch what.Type {
	case "gap":
		return f.gap(text)
	case "document":
		err = f.document(text)
	default:
		err = f.entry(text, n)
	}
	if err == nil && f.isFull() {
		err = in.commit()
	}
	return err
}

// begin begins the import of a feed. Until its last line has been read, the stored feed
// is marked as incompletely imported.
func (in *Import) begin(text []byte) error {
	if err := in.end(); err != nil {
		return err
	}
	f := &importedFeed{lines: map[string]int{}, erased: map[string]bool{}}
	if err := json.Unmarshal(text, &f.line); err != nil {
		return fmt.Errorf("not a line about a feed: %w", err)
	}
	url := f.line.Feed
	if f.line.State == nil || url == "" || f.line.State.URL != url {
		return errors.New("the line about the feed has no state")
	}
	if in.Check != nil {
		if err := in.Check(url); err != nil {
			return err
		}
	}
	in.feed = f
	old, err := in.Store.Feed(in.ctx, url)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	case old.Importing(), in.Replace && !f.isSame(old):
		if err := in.clear(f); err != nil {
			return err
		}
	case f.isSame(old):
		in.Same++
		f.skipped = true
		return in.markPrivate(f)
	default:
		return &ExistsError{url}
	}
	if err := in.markPrivate(f); err != nil {
		return err
	}
	f.stored = &Feed{
		URL: url, Title: f.line.State.Title, Verdict: feedhistory.Partial, Source: importSource, Next: notPolled,
		Error: "its import is not complete: run the same import again",
	}
	return in.commit()
}

// notPolled is the Next of a feed until its import has ended.
var notPolled = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func (in *Import) markPrivate(f *importedFeed) error {
	if !f.line.Private || in.Private == nil {
		return nil
	}
	return in.Private(f.line.Feed)
}

// clear removes a feed from the store. It records the IDs of erased entries, because an
// import must not bring them back.
func (in *Import) clear(f *importedFeed) error {
	for r, err := range in.Store.Entries(in.ctx, Query{Feed: f.line.Feed, Bare: true}) {
		if err != nil {
			return err
		}
		if r.State == Erased {
			f.erased[r.ID] = true
			f.change.Touch = append(f.change.Touch, r)
		}
	}
	return in.Store.Remove(in.ctx, f.line.Feed)
}

func (in *Import) commit() error {
	f := in.feed
	f.change.Feed, f.change.Keep = f.stored, math.MaxInt32
	err := in.Store.Commit(in.ctx, &f.change)
	f.change, f.size = Commit{}, 0
	return err
}

// end ends the import of a feed, and stores the feed's state.
func (in *Import) end() error {
	f := in.feed
	in.feed = nil
	if f == nil || f.skipped {
		return nil
	}
	if err := f.lacks(); err != nil {
		return err
	}
	state := f.line.State
	state.Commits = f.stored.Commits
	f.stored, f.change.Number = state, f.line.Version
	in.feed = f
	err := in.commit()
	in.feed = nil
	if err == nil {
		in.Feeds++
		in.Entries += len(f.lines)
	}
	return err
}
