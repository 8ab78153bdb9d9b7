package schema

import (
	"encoding/csv"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// tableColumns are the headings of a table of entries.
var tableColumns = []string{"feed", "id", "published", "updated", "title", "link", "authors", "categories", "enclosure", "deleted", "text"}

// PrintTable writes entries as CSV (RFC 4180), with a line of headings.
func PrintTable(w io.Writer, records iter.Seq2[*publish.Line, error]) error {
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

func tableRow(r *publish.Line) []string {
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
		row[i] = Inert(cell)
	}
	return row
}

func deletedText(d publish.LineDeletion) string {
	switch {
	case !d.Deleted:
		return ""
	case d.When.IsZero():
		return "true"
	}
	return d.When.UTC().Format(time.RFC3339Nano)
}

func hrefOf(r *publish.Line, rel string) string {
	for _, l := range r.Links {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

// Inert returns a cell no spreadsheet takes for a formula: an apostrophe, which marks
// text, precedes a character that could begin a formula.
func Inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
		return "'" + cell
	}
	return cell
}
