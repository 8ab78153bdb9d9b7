package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// These are the lines that import reads. The type of a line is "feed", "gap", "document"
// or "entry"; a line without a type is an entry. The lines of a feed follow each other,
// beginning with the one of type "feed".
type (
	lineOf struct {
		Type string `json:"type"`
		Feed string `json:"feed"`
	}
	feedLine struct {
		lineOf
		Version int64        `json:"version,omitempty"` // how many times the feed has changed in the mirror
		Private bool         `json:"private,omitempty"` // the feed was read with credentials, which no line has
		State   *mirror.Feed `json:"state"`             // without the gaps, which have their own lines
	}
	gapLine struct {
		lineOf
		Gap     *mirror.Gap     `json:"gap,omitempty"`
		Pending *mirror.Pending `json:"pending,omitempty"` // a document that has not been read yet
	}
	documentLine struct {
		lineOf
		Document rawDocument `json:"document"`
	}
	entryLine struct {
		publish.JSONEntry
		Mirror   *rawRecord   `json:"mirror,omitempty"` // the entry's state in the mirror; absent if the entry comes from elsewhere
		Versions []rawVersion `json:"versions,omitempty"`
	}
)

// These are the types of a mirror, with the names that their members have in lines.
type (
	rawDocument struct {
		URL     string            `json:"url"`
		Names   []string          `json:"names,omitempty"`
		Known   feedhistory.Known `json:"known,omitzero"`
		Rank    rawRank           `json:"rank,omitzero"`
		First   int64             `json:"first,omitempty"`
		Last    int64             `json:"last,omitempty"`
		Read    time.Time         `json:"read,omitzero"`
		Entries int               `json:"entries,omitempty"`
		Digest  string            `json:"digest,omitempty"`
		Oldest  time.Time         `json:"oldest,omitzero"`
		Newest  time.Time         `json:"newest,omitzero"`
	}
	rawRank struct {
		Time  time.Time `json:"time,omitzero"`
		Place int64     `json:"place,omitempty"`
	}
	rawCopy struct {
		At     time.Time `json:"at,omitzero"`
		Rank   rawRank   `json:"rank,omitzero"`
		Digest string    `json:"digest,omitempty"`
	}
	rawTombstone struct {
		When time.Time `json:"when,omitzero"`
		Rank rawRank   `json:"rank,omitzero"`
	}
	rawRecord struct {
		State     mirror.State `json:"state"`
		Copy      rawCopy      `json:"copy,omitzero"`
		Archived  bool         `json:"archived,omitempty"`
		Tombstone rawTombstone `json:"tombstone,omitzero"`
		Absence   int64        `json:"absence,omitempty"`
		First     int64        `json:"first,omitempty"`
		Change    int64        `json:"change,omitempty"`
		Added     time.Time    `json:"added,omitzero"`
		Changed   time.Time    `json:"changed,omitzero"`
		Content   *rawContent  `json:"content,omitempty"` // absent if the mirror does not have the entry's content
	}
	rawVersion struct {
		Copy    rawCopy    `json:"copy"`
		Content rawContent `json:"content"`
	}
	rawContent struct {
		Format    feedhistory.Format `json:"format"`
		Data      string             `json:"data,omitempty"` // for earlier versions only; the current version is in raw
		Base      string             `json:"base,omitempty"`
		WeakID    bool               `json:"weak_id,omitempty"`
		Title     string             `json:"title,omitempty"`
		Link      string             `json:"link,omitempty"`
		Updated   time.Time          `json:"updated,omitzero"`
		Published time.Time          `json:"published,omitzero"`
		Size      int64              `json:"size,omitempty"`
	}
)

// printRaw writes a fetched history as if one poll had mirrored it.
func printRaw(w io.Writer, r *backfill.Result, private bool) error {
	h := r.History
	feed, now := schema.FeedOf(h), time.Now().UTC()
	state := &mirror.Feed{
		URL: feed, Kind: h.Kind, Verdict: r.Verdict(), Entries: int64(len(h.Entries)), Polls: 1, Polled: now, Changed: now,
	}
	if h.Head != nil {
		state.Title, state.Head = h.Head.Title, mirror.HeadOf(h.Head)
	}
	err := terminal.WriteJSON(w, feedLine{lineOf: lineOf{"feed", feed}, Version: 1, Private: private, State: state})
	for _, g := range h.Gaps {
		gap := mirror.Gap{URL: g.URL, From: g.From, Reason: g.Reason, Message: explain.Detail(g.Err), Found: schema.Utc(g.Found), Poll: 1}
		err = cmp.Or(err, terminal.WriteJSON(w, gapLine{lineOf: lineOf{"gap", feed}, Gap: &gap}))
	}
	for _, e := range h.Entries {
		record := publish.NewJSONEntry(e)
		record.Type, record.Feed, record.Raw = "entry", feed, publish.NewJSONRaw(e)
		err = cmp.Or(err, terminal.WriteJSON(w, record))
	}
	for _, t := range h.Deleted {
		record := schema.DeletionRecord(feed, t)
		record.Type = "entry"
		err = cmp.Or(err, terminal.WriteJSON(w, record))
	}
	return err
}

// exportRaw writes everything that a mirror knows about feeds, one after the other.
func exportRaw(ctx context.Context, w io.Writer, store mirror.Store, feeds iter.Seq2[*mirror.Feed, error], private map[string]http.Header) error {
	for f, err := range feeds {
		if err == nil {
			err = exportRawFeed(ctx, w, store, f, f.Private || private[f.URL] != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func exportRawFeed(ctx context.Context, w io.Writer, store mirror.Store, f *mirror.Feed, private bool) error {
	if database.IsImporting(f) {
		return fmt.Errorf("%s: its import is not complete; run the same import again", f.URL)
	}
	w = withoutPasswords(w, f)
	state := *f
	state.Gaps, state.Pending = nil, nil
	err := terminal.WriteJSON(w, feedLine{lineOf: lineOf{"feed", f.URL}, Version: f.Version, Private: private, State: &state})
	for _, p := range f.Pending {
		err = cmp.Or(err, terminal.WriteJSON(w, gapLine{lineOf: lineOf{"gap", f.URL}, Pending: &p}))
	}
	for _, g := range f.Gaps {
		err = cmp.Or(err, terminal.WriteJSON(w, gapLine{lineOf: lineOf{"gap", f.URL}, Gap: &g}))
	}
	for d, e := range store.Documents(ctx, f.URL) {
		if err = cmp.Or(err, e); err != nil {
			return err
		}
		err = terminal.WriteJSON(w, documentLine{lineOf: lineOf{"document", f.URL}, Document: newRawDocument(d)})
	}
	for _, q := range []mirror.Query{{Feed: f.URL, Deleted: true, Oldest: true}, {Feed: f.URL, Bare: true, Oldest: true}} {
		for r, e := range store.Entries(ctx, q) {
			if err = cmp.Or(err, e); err != nil {
				return err
			}
			err = exportRawEntry(ctx, w, store, r)
		}
	}
	if now, e := store.Feed(ctx, f.URL); err == nil && (e != nil || now.Version != f.Version) {
		return fmt.Errorf("%s: the feed has changed meanwhile, so its lines may contradict each other; export it again", f.URL)
	}
	return err
}

// withoutPasswords returns a writer of lines that removes the users and passwords in a
// feed's addresses.
func withoutPasswords(w io.Writer, f *mirror.Feed) io.Writer {
	var pairs []string
	for _, address := range []string{f.URL, f.Address, f.Lost, f.Known.URL} {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			if end := strings.IndexByte(address, '@'); end > 0 {
				start := strings.Index(address, "//")
				pairs = append(pairs, address[start:end+1], "//")
			}
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
func (r *replacer) Write(line []byte) (int, error) {
	if _, err := r.by.WriteString(r.w, string(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

func exportRawEntry(ctx context.Context, w io.Writer, store mirror.Store, r *mirror.Record) error {
	line := entryLine{JSONEntry: publish.JSONEntry{ID: r.ID}, Mirror: newRawRecord(r)}
	if r.Content.Format != 0 {
		if e, err := r.Entry(); err == nil { // for a damaged entry, the line has only what is stored
			line.JSONEntry = *publish.NewJSONEntry(e)
		}
		line.Raw = &publish.JSONRaw{Format: r.Content.Format, Data: r.Content.Data, Base: r.Content.Base, Digest: r.Copy.Digest}
	}
	line.Type, line.Feed, line.Deleted = "entry", r.Feed, schema.DeletionOf(r)
	for v, err := range store.Versions(ctx, r.Feed, r.ID) {
		if err != nil {
			return err
		}
		line.Versions = append(line.Versions, rawVersion{newRawCopy(v.Copy), rawContent(v.Content)})
	}
	return terminal.WriteJSON(w, line)
}

func newRawDocument(d *mirror.Document) rawDocument {
	return rawDocument{
		URL: d.URL, Names: d.Names, Known: d.Known, Rank: rawRank(d.Rank), First: d.First, Last: d.Last, Read: schema.Utc(d.Read),
		Entries: d.Entries, Digest: d.Digest, Oldest: schema.Utc(d.Oldest), Newest: schema.Utc(d.Newest),
	}
}

func (d *rawDocument) document() *mirror.Document {
	return &mirror.Document{
		URL: d.URL, Names: d.Names, Known: d.Known, Rank: mirror.Rank(d.Rank), First: d.First, Last: d.Last, Read: d.Read,
		Entries: d.Entries, Digest: d.Digest, Oldest: d.Oldest, Newest: d.Newest,
	}
}

func newRawCopy(c mirror.Copy) rawCopy { return rawCopy{c.At, rawRank(c.Rank), c.Digest} }

func (c rawCopy) copy() mirror.Copy {
	return mirror.Copy{At: c.At, Rank: mirror.Rank(c.Rank), Digest: c.Digest}
}

// newRawRecord returns a Record without its text, which the line has in raw.
func newRawRecord(r *mirror.Record) *rawRecord {
	raw := &rawRecord{
		State: r.State, Copy: newRawCopy(r.Copy), Archived: r.Archived, Absence: r.Absence, First: r.First, Change: r.Change,
		Tombstone: rawTombstone{r.Tombstone.When, rawRank(r.Tombstone.Rank)}, Added: schema.Utc(r.Added), Changed: schema.Utc(r.Changed),
	}
	if r.Content.Format != 0 {
		content := rawContent(r.Content)
		content.Data, content.Base = "", ""
		raw.Content = &content
	}
	return raw
}

// record returns the Record of a line; it is the inverse of newRawRecord.
func (l *entryLine) record() *mirror.Record {
	m := l.Mirror
	r := &mirror.Record{
		Feed: l.Feed, ID: l.ID, State: m.State, Copy: m.Copy.copy(), Archived: m.Archived, Absence: m.Absence, First: m.First,
		Change: m.Change, Tombstone: mirror.Tombstone{When: m.Tombstone.When, Rank: mirror.Rank(m.Tombstone.Rank)},
		Added: m.Added, Changed: m.Changed,
	}
	if m.Content != nil && l.Raw != nil {
		r.Content = mirror.Content(*m.Content)
		r.Content.Data, r.Content.Base = l.Raw.Data, l.Raw.Base
	}
	return r
}

// entryOf returns the entry that a record describes. If the record has the entry as it was
// published, entryOf reads that.
func entryOf(r *publish.JSONEntry) (*feedhistory.Entry, error) {
	if r.Raw == nil {
		return r.Entry()
	}
	e, err := feedhistory.ReadEntry(r.Raw.Format, r.Raw.Data, r.Raw.Base)
	if err != nil {
		return nil, err
	}
	e.ID, e.WeakID = r.ID, r.WeakID
	return e, nil
}
