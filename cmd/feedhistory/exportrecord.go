package main

import (
	"io"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// recordOf returns a mirrored entry as all verbs print it. If the entry is no longer part
// of its feed, the result also has the deletion.
func recordOf(r *mirror.Record) (*publish.JSONEntry, error) {
	e, err := r.Entry()
	if err != nil {
		return nil, err
	}
	return lineOfRecord(r, e), nil
}

// lineOfRecord returns the line for a mirrored entry and its parsed content.
func lineOfRecord(r *mirror.Record, e *feedhistory.Entry) *publish.JSONEntry {
	record := publish.NewJSONEntry(e)
	record.Feed, record.Deleted = r.Feed, deletionOf(r)
	return record
}

// printRecord prints a mirrored entry.
func printRecord(w io.Writer, r *mirror.Record) error {
	record, err := recordOf(r)
	if err != nil {
		return err
	}
	return printLine(w, record)
}

// deletionRecord returns the line for the deletion of an entry.
func deletionRecord(feed string, t feedhistory.Tombstone) *publish.JSONEntry {
	return &publish.JSONEntry{Feed: feed, EntryJSON: feedhistory.EntryJSON{ID: t.Ref}, Deleted: publish.JSONDeletion{Deleted: true, When: utc(t.When)}}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
