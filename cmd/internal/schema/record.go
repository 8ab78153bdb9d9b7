package schema

import (
	"cmp"
	"io"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// DeletionOf returns the deletion of an entry no longer part of its feed, with the time of
// its tombstone, else the time when the mirror noticed; the zero value for a live entry.
func DeletionOf(r *mirror.Record) publish.LineDeletion {
	t, ok := r.Deletion()
	if !ok {
		return publish.LineDeletion{}
	}
	return publish.LineDeletion{Deleted: true, When: t.When}
}

// RecordOf returns a mirrored entry as all verbs print it. If the entry is no longer part
// of its feed, the result also has the deletion.
func RecordOf(r *mirror.Record) (*publish.Line, error) {
	e, err := r.Entry()
	if err != nil {
		return nil, err
	}
	return LineOfRecord(r, e), nil
}

// LineOfRecord returns the line for a mirrored entry and its parsed content.
func LineOfRecord(r *mirror.Record, e *feedhistory.Entry) *publish.Line {
	record := publish.NewLine(e)
	record.Feed, record.Deleted, record.Source = r.Feed, DeletionOf(r), r.Copy.Source
	return record
}

// PrintRecord prints a mirrored entry.
func PrintRecord(w io.Writer, r *mirror.Record) error {
	record, err := RecordOf(r)
	if err != nil {
		return err
	}
	return terminal.WriteJSON(w, record)
}

// DeletionRecord returns the line for the deletion of an entry.
func DeletionRecord(feed string, t feedhistory.Tombstone) *publish.Line {
	return &publish.Line{Feed: feed, EntryJSON: feedhistory.EntryJSON{ID: t.Ref}, Deleted: publish.LineDeletion{Deleted: true, When: Utc(t.When)}}
}

// Utc returns a time in UTC; the zero time stays zero.
func Utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// FeedOf returns the address of a history's feed; "" if it is unknown.
func FeedOf(h *feedhistory.History) string {
	if h.Head == nil {
		return ""
	}
	return AddressOf(h.Head)
}

// AddressOf returns the address of a document's feed: the requested address, or the
// address to which it redirects permanently. A temporary redirect may lead elsewhere
// the next time.
func AddressOf(doc *feedhistory.Document) string {
	return argument.WithoutUser(cmp.Or(doc.Response.Permanent, doc.Response.Requested, doc.URL))
}
