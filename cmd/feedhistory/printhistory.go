package main

import (
	"io"
	"iter"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/recovery"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
)

// printHistory writes a history in one of the formats of --format. Lines of a private
// feed say so.
func printHistory(w io.Writer, r *backfill.Result, format string, private bool) error {
	switch format {
	case "json":
		return terminal.WriteJSON(w, recovery.NewHistory(r))
	case "atom":
		return feedhistory.WriteAtom(w, recovery.DocumentOf(r))
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

// recordsOf yields a history's entries.
func recordsOf(r *backfill.Result) iter.Seq2[*publish.JSONEntry, error] {
	return func(yield func(*publish.JSONEntry, error) bool) {
		feed := schema.FeedOf(r.History)
		for _, e := range r.History.Entries {
			record := publish.NewJSONEntry(e)
			if record.Feed = feed; !yield(record, nil) {
				return
			}
		}
	}
}
