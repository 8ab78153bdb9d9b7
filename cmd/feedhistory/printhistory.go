package main

import (
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/recovery"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
)

// printHistory writes a history in one of the formats of --format. Lines of a private
// feed say so.
func printHistory(w io.Writer, r *backfill.Recovery, format string, private bool) error {
	switch format {
	case "json":
		return terminal.WriteJSON(w, recovery.NewHistory(r))
	case "atom":
		doc := recovery.DocumentOf(r)
		if slices.ContainsFunc(doc.Entries, isUndated) || len(doc.Entries) == 0 && isUndated(&feedhistory.Entry{Source: doc}) {
			return errUndated
		}
		return feedhistory.WriteAtom(w, doc)
	case "rss":
		return feedhistory.WriteRSS(w, recovery.DocumentOf(r))
	case "csv":
		return schema.PrintTable(w, recordsOf(r))
	}
	for record := range recordsOf(r) {
		record.Private = private
		if err := terminal.WriteJSON(w, record); err != nil {
			return err
		}
	}
	return nil
}

// errUndated is the error for a feed that Atom cannot express without inventing times.
var errUndated = errors.New("the feed cannot be written as Atom, which requires a time of each entry: neither the feed nor the server's response has one; " +
	"use --format rss or json, or mirror the feed with feedhistory sync, which keeps the time at which it first saw an entry")

// isUndated reports whether neither an entry nor its document has a time.
func isUndated(e *feedhistory.Entry) bool {
	s := e.Source
	return e.Changed().IsZero() && (s == nil || s.Updated.IsZero() && s.Published.IsZero() && s.LastModified.IsZero())
}

// recordsOf yields a history's entries.
func recordsOf(r *backfill.Recovery) iter.Seq2[*publish.Line, error] {
	return func(yield func(*publish.Line, error) bool) {
		feed := schema.FeedOf(r.History)
		for _, e := range r.History.Entries {
			record := publish.NewLine(e)
			if record.Feed = feed; !yield(record, nil) {
				return
			}
		}
	}
}
