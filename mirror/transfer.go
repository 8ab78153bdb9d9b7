package mirror

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/publish"
)

// The lines of Export and Import. The type of a line is "feed", "gap", "document",
// "entry" or "end"; a line without a type is an entry. The lines of a feed follow each
// other, beginning with the one of type "feed". The last line of all has the type "end".
// Earlier versions also wrote lines of type "marks".
type (
	endLine struct {
		Type string `json:"type"`
	}
	line struct {
		Type string `json:"type"`
		Feed string `json:"feed"`
	}
	feedLine struct {
		line
		Version int64 `json:"version,omitempty"` // how many times the feed has changed in its store
		Private bool  `json:"private,omitempty"` // the feed was read with credentials, which no line has
		State   *Feed `json:"state"`             // without the gaps, which have their own lines
	}
	gapLine struct {
		line
		Gap     *debt `json:"gap,omitempty"`
		Pending *debt `json:"pending,omitempty"` // in lines of earlier versions
	}
	documentLine struct {
		line
		Document *DocumentRecord `json:"document"`
	}
	entryLine struct {
		publish.Line
		Mirror   *Record   `json:"mirror,omitempty"` // without the text, which is in raw; absent if the entry comes from elsewhere
		Versions []*Record `json:"versions,omitempty"`
	}
)

const lineEnd = "end"

// unescaped returns JSON in which markup is not escaped. The encoder of the
// whole value may still escape it.
func unescaped(value any) ([]byte, error) {
	var b bytes.Buffer
	err := writeLine(&b, value)
	return b.Bytes(), err
}

// writeLine writes a value as a line of JSON without escaped markup, by one call of Write.
func writeLine(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// Export writes everything a Store knows about feeds as lines of JSON for Import, and at
// last the line of ExportEnd. Lines contain no passwords. Each call of the writer gets one
// line. The error is the Store's, the writer's or the context's, or reports a feed that
// cannot be exported now: an import of it has not ended, or it has changed meanwhile.
func Export(ctx context.Context, w io.Writer, s Store, feeds iter.Seq2[*Feed, error]) error {
	if w == nil || s == nil || feeds == nil {
		return errors.New("mirror: Export: the io.Writer, the Store or the feeds are nil")
	}
	for f, err := range feeds {
		if err == nil {
			x := &exporter{ctx, withoutPasswords(w, f), s}
			err = x.feed(f)
		}
		if err != nil {
			return err
		}
	}
	return ExportEnd(w)
}

// An exporter writes the lines of a feed.
type exporter struct {
	ctx   context.Context
	w     io.Writer
	store Store
}

func (x *exporter) feed(f *Feed) error {
	if f.Importing() {
		return fmt.Errorf("%s: its import is not complete; run the same import again", f.URL)
	}
	if err := x.state(f); err != nil {
		return err
	}
	for _, q := range []Query{{Feed: f.URL, States: Current | Former, Reverse: true}, {Feed: f.URL, States: Traces, Reverse: true}} {
		for r, err := range x.store.Entries(x.ctx, q) {
			if err == nil {
				err = x.entry(r)
			}
			if err != nil {
				return err
			}
		}
	}
	if now, err := x.store.Feed(x.ctx, f.URL); err != nil || now.Commits != f.Commits {
		return fmt.Errorf("%s: the feed has changed meanwhile, so its lines may contradict each other; export it again", f.URL)
	}
	return nil
}

// state writes everything about a feed but its entries.
func (x *exporter) state(f *Feed) error {
	state := *f
	state.Ledger.l.Debts = nil
	err := writeLine(x.w, feedLine{line: line{"feed", f.URL}, Version: f.Commits, Private: f.Private, State: &state})
	for _, d := range f.Ledger.l.debts() {
		err = cmp.Or(err, writeLine(x.w, gapLine{line: line{"gap", f.URL}, Gap: &d}))
	}
	if err != nil {
		return err
	}
	for d, err := range x.store.Documents(x.ctx, f.URL) {
		if err == nil {
			d.Read, d.Oldest, d.Newest = utc(d.Read), utc(d.Oldest), utc(d.Newest)
			err = writeLine(x.w, documentLine{line{"document", f.URL}, d})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) entry(r *Record) error {
	l := entryLine{Line: publish.Line{EntryJSON: compose.EntryJSON{ID: r.ID}}}
	if r.Content.Format != "" {
		if e, err := r.Entry(); err == nil { // for a damaged entry, the line has only the stored bytes
			l.Line = *publish.NewLine(e)
		}
		l.Raw = &publish.RawEntry{Format: r.Content.Format, Data: r.Content.Data, Base: r.Content.Base, Digest: r.Copy.Digest}
	} else {
		r.Content = Content{}
	}
	l.Type, l.Feed = "entry", r.Feed
	if t, ok := r.Deletion(); ok {
		if l.Deleted = (publish.LineDeletion{Deleted: true, When: t.When}); r.State == Unseen {
			l.Deleted.When = utc(r.Changed) // the Record has the publisher's time
		}
	}
	for v, err := range x.store.Versions(x.ctx, r.Feed, r.ID) {
		if err != nil {
			return err
		}
		l.Versions = append(l.Versions, v)
	}
	r.Added, r.Changed = utc(r.Added), utc(r.Changed)
	r.Content.Data, r.Content.Base = "", ""
	l.Mirror = r
	return writeLine(x.w, l)
}

// ExportHistory writes a fetched history of a feed, as lines for Import, as if one poll had
// mirrored it, with the given verdict. Private says whether Import makes the feed private.
// Several histories may follow each other; call ExportEnd after the last one.
func ExportHistory(w io.Writer, feed string, h *feedhistory.History, v feedhistory.Verdict, private bool) error {
	if w == nil || h == nil {
		return errors.New("mirror: ExportHistory: the io.Writer or the History is nil")
	}
	now := time.Now().UTC()
	state := &Feed{URL: feed, Kind: cmp.Or(h.Kind, feedhistory.KindUnknown), Verdict: v, Entries: int64(len(h.Entries)), Polls: 1, Polled: now, Changed: now}
	if h.Head != nil {
		state.Title, state.Head = h.Head.Title, headOf(h.Head)
	}
	err := writeLine(w, feedLine{line: line{"feed", feed}, Version: 1, Private: private, State: state})
	for _, g := range h.Gaps {
		d := newDebt(g)
		d.Kind, d.Found, d.Poll = d.kind(), utc(g.Found), 1
		err = cmp.Or(err, writeLine(w, gapLine{line: line{"gap", feed}, Gap: &d}))
	}
	for _, e := range h.Entries {
		entry := publish.NewLine(e)
		entry.Type, entry.Feed, entry.Raw = "entry", feed, publish.NewRawEntry(e)
		err = cmp.Or(err, writeLine(w, entry))
	}
	for _, t := range h.Deleted {
		deleted := publish.LineDeletion{Deleted: true, When: utc(t.When)}
		err = cmp.Or(err, writeLine(w, &publish.Line{Type: "entry", Feed: feed, EntryJSON: compose.EntryJSON{ID: t.Ref}, Deleted: deleted}))
	}
	return err
}

// ExportEnd writes the line that ends those of ExportHistory, so that a reader of a pipe
// knows that it was not cut. Call it last, and only if nothing was left out.
func ExportEnd(w io.Writer) error { return writeLine(w, endLine{lineEnd}) }

// withoutPasswords returns a writer of lines without the users and passwords in a
// feed's addresses.
func withoutPasswords(w io.Writer, f *Feed) io.Writer {
	var pairs []string
	for _, address := range []string{f.URL, f.Address, f.Lost, f.Ledger.URL()} {
		start, n := strings.Index(address, "//"), len(address)-len(iri.Redact(address))
		if start < 0 || n == 0 {
			continue
		}
		secret := address[start : start+2+n]
		pairs = append(pairs, secret, "//")
		if quoted, err := unescaped(secret); err == nil {
			pairs = append(pairs, strings.Trim(string(quoted), "\"\n"), "//")
		}
	}
	if pairs == nil {
		return w
	}
	return &replacer{w, strings.NewReplacer(pairs...)}
}

// A replacer replaces text in lines. Each call of Write writes one line.
type replacer struct {
	w  io.Writer
	by *strings.Replacer
}

// Write implements io.Writer.
func (r *replacer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.by.Replace(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// An ImportReport counts the feeds of an Import.
type ImportReport struct {
	Feeds   int // the feeds restored
	Entries int // their entries
	Same    int // the feeds already in the Store
	Marks   int // the lines left out because they say what somebody has read or starred; earlier versions wrote them

	// Ended reports whether the last line is the one ExportEnd writes. If not, the lines
	// may have been cut short between two feeds, or an earlier version wrote them.
	Ended bool
}

// importSource is the Source of a feed whose import has not ended.
const importSource = "import"

// Importing reports whether an Import of the feed has begun and not ended.
func (f *Feed) Importing() bool { return f.Source == importSource && f.Polls == 0 }

const (
	importBatch = 500     // the maximum number of lines in a commit
	importBytes = 4 << 20 // the maximum size of a commit, in bytes
)

// Import restores feeds from the lines of an Export: their states, their documents, and
// their entries with earlier versions. Replace replaces feeds in the Store that differ;
// otherwise the error of such a feed matches fs.ErrExist. Lines of unknown types are
// ignored.
//
// An interrupted Import can be repeated: it leaves out the feeds the Store already has
// in the same state, and continues with the one it had reached.
//
// The error is the line's, the Store's, the reader's or the context's, and begins with the
// number of the line. The report is then of the feeds before it.
func Import(ctx context.Context, s Store, r io.Reader, replace bool) (ImportReport, error) {
	if s == nil || r == nil {
		return ImportReport{}, errors.New("mirror: Import: the Store or the io.Reader is nil")
	}
	in := &importer{ctx: ctx, store: s, replace: replace}
	n, err := in.read(r)
	if err != nil {
		err = fmt.Errorf("line %d: %w", n, err)
	}
	return in.ImportReport, err
}

// An importer is an Import under way.
type importer struct {
	ImportReport
	ctx     context.Context
	store   Store
	replace bool
	feed    *importedFeed // the feed whose lines are being read
}

// read imports lines. It returns the number of the last one, which an error is of.
func (in *importer) read(r io.Reader) (n int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, settings.MaxLine)
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		if err := in.line(text, n); err != nil {
			return n, err
		}
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("it is longer than %d MiB", settings.MaxLine>>20)
	}
	if err != nil {
		return n + 1, err
	}
	return n, in.end()
}

// line imports a line.
func (in *importer) line(text []byte, n int) error {
	var what line
	if err := json.Unmarshal(text, &what); err != nil {
		return fmt.Errorf("not a line of an Export: %w", err)
	}
	in.Ended = what.Type == lineEnd
	switch what.Type {
	case "feed":
		return in.begin(text)
	case "marks":
		in.Marks++
		return nil
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
func (in *importer) begin(text []byte) error {
	if err := in.end(); err != nil {
		return err
	}
	f := &importedFeed{lines: map[string]int{}, erased: map[string]bool{}}
	if err := json.Unmarshal(text, &f.line); err != nil {
		return fmt.Errorf("not a line about a feed: %w", err)
	}
	url, state := f.line.Feed, f.line.State
	if state == nil || url == "" || state.URL != url {
		return errors.New("the line about the feed has no state")
	}
	state.Private = state.Private || f.line.Private
	in.feed = f
	old, err := in.store.Feed(in.ctx, url)
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	case old.Importing(), in.replace && !f.isSame(old):
		if err := in.clear(f); err != nil {
			return err
		}
	case f.isSame(old):
		in.Same++
		f.skipped = true
		return in.hide(old, state)
	default:
		return existsError(url)
	}
	f.stored = &Feed{
		URL: url, Title: state.Title, Private: state.Private, Kind: feedhistory.KindUnknown, Verdict: feedhistory.VerdictPartial, Source: importSource, Next: notPolled,
		Error: "its import is not complete: run the same import again",
	}
	return in.commit()
}

// notPolled is the Next of a feed until its import has ended.
var notPolled = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// hide makes a feed private that is here in the same state, but is private in the lines.
func (in *importer) hide(old, state *Feed) error {
	if old.Private == state.Private {
		return nil
	}
	old.Private = true
	return in.store.Commit(in.ctx, &Commit{Feed: old, Number: old.Commits})
}

// An existsError is the URL of a feed to import that is in the Store, in another state.
type existsError string

// Error implements error.
func (e existsError) Error() string {
	return iri.Redact(string(e)) + " is already in the store, and differs"
}

// Is implements errors.Is.
func (existsError) Is(target error) bool { return target == fs.ErrExist }

// clear removes a feed from the store. It records the IDs of erased entries, because an
// import must not bring them back.
func (in *importer) clear(f *importedFeed) error {
	for r, err := range in.store.Entries(in.ctx, Query{Feed: f.line.Feed, States: Traces}) {
		if err != nil {
			return err
		}
		if r.State == Erased {
			f.erased[r.ID] = true
			f.change.Touch = append(f.change.Touch, r)
		}
	}
	return in.store.Remove(in.ctx, f.line.Feed)
}

func (in *importer) commit() error {
	f := in.feed
	f.change.Feed, f.change.Keep = f.stored, math.MaxInt32
	err := in.store.Commit(in.ctx, &f.change)
	f.change, f.size = Commit{}, 0
	return err
}

// end ends the import of a feed, and stores the feed's state.
func (in *importer) end() error {
	f := in.feed
	if f == nil {
		return nil
	}
	if in.feed = nil; f.skipped {
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

// isSame reports whether the stored feed equals the feed to import, which alone may be
// private.
func (f *importedFeed) isSame(old *Feed) bool {
	if old.Commits != f.line.Version {
		return false
	}
	state := *old
	state.Ledger.l.Debts, state.Private = nil, old.Private || f.line.State.Private
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
	case l.Pending != nil:
		l.Pending.Kind = debtDocument
		f.line.State.Ledger.l.add(*l.Pending)
	case l.Gap != nil:
		f.line.State.Ledger.l.add(*l.Gap)
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
		return f.leaveOut(r, l.Versions)
	}
	bare := r.Content.Format == ""
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
		state.Ledger.l.Usage.Tombstones++
		state.Ledger.l.Usage.Refs += int64(len(l.ID))
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
	state.Ledger.l.Usage.Contents += r.Content.Size
	return r, nil
}

// leaveOut removes an erased entry from the state of its feed.
func (f *importedFeed) leaveOut(r *Record, versions []*Record) error {
	state := f.line.State
	switch {
	case r.State == Live:
		state.Entries--
	case r.Content.Format != "":
		state.Deleted--
	}
	for _, v := range versions {
		state.Ledger.l.Usage.Contents -= v.Content.Size
	}
	state.Ledger.l.Usage.Contents = max(0, state.Ledger.l.Usage.Contents-r.Content.Size)
	state.Ledger.l.forget(r.ID)
	return nil
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
