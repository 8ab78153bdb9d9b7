package main

import (
	"cmp"
	"encoding/csv"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/publish"
)

// printHistory writes a history in one of the formats of --format.
func printHistory(w io.Writer, r *backfill.Result, format string) error {
	switch format {
	case "json":
		return printLine(w, recoveredJSON(r))
	case "atom":
		return feedhistory.WriteAtom(w, documentOf(r))
	case "rss":
		return feedhistory.WriteRSS(w, documentOf(r))
	case "csv":
		return printTable(w, recordsOf(r))
	}
	for record := range recordsOf(r) {
		if err := printLine(w, record); err != nil {
			return err
		}
	}
	return nil
}

// recordsOf yields a history's entries.
func recordsOf(r *backfill.Result) iter.Seq2[*publish.JSONEntry, error] {
	return func(yield func(*publish.JSONEntry, error) bool) {
		feed := feedOf(r.History)
		for _, e := range r.History.Entries {
			record := publish.NewJSONEntry(e)
			if record.Feed = feed; !yield(record, nil) {
				return
			}
		}
	}
}

// feedOf returns the address of a history's feed; "" if it is unknown.
func feedOf(h *feedhistory.History) string {
	if h.Head == nil {
		return ""
	}
	return addressOf(h.Head)
}

// addressOf returns the address of the feed that a document belongs to: the requested
// address, or the address to which it redirects permanently. A temporary redirect may
// lead elsewhere the next time.
func addressOf(doc *feedhistory.Document) string {
	return withoutUser(cmp.Or(doc.Response.Permanent, doc.Response.Requested, doc.URL))
}

// tableColumns are the headings of a table of entries.
var tableColumns = []string{"feed", "id", "published", "updated", "title", "link", "authors", "categories", "enclosure", "deleted", "text"}

// printTable writes entries as CSV (RFC 4180), with a line of headings.
func printTable(w io.Writer, records iter.Seq2[*publish.JSONEntry, error]) error {
	table := csv.NewWriter(w)
	table.UseCRLF = true
	err := table.Write(tableColumns)
	for r, e := range records {
		if e != nil {
			return e
		}
		if err == nil {
			err = table.Write(tableRow(r))
		}
	}
	if table.Flush(); err == nil {
		err = table.Error()
	}
	return err
}

func tableRow(r *publish.JSONEntry) []string {
	var authors, categories []string
	for _, a := range r.Authors {
		authors = append(authors, a.Name)
	}
	for _, c := range r.Categories {
		categories = append(categories, c.Term)
	}
	text := r.Content.Plain()
	if text == "" {
		text = r.Summary.Plain()
	}
	row := []string{
		r.Feed, r.ID, r.Published, r.Updated, r.Title.Plain(), hrefOf(r, feedhistory.RelAlternate),
		strings.Join(authors, "; "), strings.Join(categories, "; "), hrefOf(r, feedhistory.RelEnclosure), deletedText(r.Deleted), text,
	}
	for i, cell := range row {
		row[i] = inert(cell)
	}
	return row
}

func deletedText(d publish.JSONDeletion) string {
	switch {
	case !d.Deleted:
		return ""
	case d.When.IsZero():
		return "true"
	}
	return d.When.UTC().Format(time.RFC3339Nano)
}

func hrefOf(r *publish.JSONEntry, rel string) string {
	for _, l := range r.Links {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

// inert returns a cell that no spreadsheet takes for a formula: an apostrophe, which marks
// text, precedes a character that could begin a formula.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
		return "'" + cell
	}
	return cell
}
