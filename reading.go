package feedhistory

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A reading is the state of reading one document in any format: the document so far, its
// notes, and the error at its end.
type reading struct {
	doc    *Document
	head   *Document // the head entries point to; filled in at the end
	text   string    // the document, in UTF-8
	limits Limits
	err    *ParseError

	zone  feedtime.Zone   // the zone of the last date
	zones map[string]bool // the zones with a note
}

// addNotes adds the scanner's notes.
func (r *reading) addNotes(notes []xmlscan.Note) {
	for _, n := range notes {
		r.note(n.Code, n.Message, n.Offset)
	}
}

const maxNotes = 100

func (r *reading) note(code, message string, offset int) {
	if len(r.doc.Notes) == maxNotes {
		return
	}
	line, column := xmlscan.Line(r.text, offset)
	r.doc.Notes = append(r.doc.Notes, Note{code, message, offset, line, column})
}

// date reads a date of any feed format, and reports whether it is one.
func (r *reading) date(s string) (t time.Time, ok bool) {
	t, r.zone, ok = feedtime.Read(s)
	return t, ok
}

// noteZone notes an ambiguous zone of the last date, once for each zone, and an unknown
// one, once for all of them.
func (r *reading) noteZone(offset int) {
	z := r.zone
	if z.Doubt == feedtime.Sure {
		return
	}
	key, code, means := strings.ToLower(z.Name), "zone-ambiguous", time.Time{}.In(z.Location()).Format("-07:00")
	if z.Doubt == feedtime.Unknown {
		key, code, means = "", "zone-unknown", "UTC"
	}
	if r.zones[key] {
		return
	}
	if r.zones == nil {
		r.zones = map[string]bool{}
	}
	r.zones[key] = true
	r.note(code, fmt.Sprintf("the time zone %s is read as %s", clip(z.Name), means), offset)
}

// parseTime reads a date, and notes one it cannot read.
func (r *reading) parseTime(value string, offset int) time.Time {
	t, ok := r.date(value)
	if !ok && trim(value) != "" {
		r.note("date-unreadable", "this is not a date: "+clip(trim(value)), offset)
	}
	r.noteZone(offset)
	return t
}

// absolute resolves a reference; "" with a note if the result exceeds the limit.
func (r *reading) absolute(base, ref string, offset int) string {
	return feedxml.Absolute(base, ref, r.limits.URL, r.note, offset)
}

// failAt ends the reading.
func (r *reading) failAt(offset int, reason Reason, clause, what string) {
	r.err = r.failure(offset, reason, clause, what)
}

// failPage ends the reading, because the document is a web page.
func (r *reading) failPage(offset int) {
	r.failAt(offset, ReasonNotFeed, clauseFeed, "")
	r.err.Err = ErrWebPage
}

func (r *reading) failure(offset int, reason Reason, clause, what string) *ParseError {
	line, column := xmlscan.Line(r.text, offset)
	return &ParseError{
		URL: r.doc.URL, Reason: reason, Clause: clause,
		Offset: offset, Line: line, Column: column, Err: errors.New(what),
	}
}

// scanError returns the ParseError for an error of the scanner.
func (r *reading) scanError(err error) *ParseError {
	e := &ParseError{URL: r.doc.URL, Reason: ReasonMalformed, Clause: clauseXML, Err: err}
	var syntax *xmlscan.SyntaxError
	var limit *xmlscan.LimitError
	switch {
	case errors.As(err, &syntax):
		e.Offset, e.Err = syntax.Offset, errors.New(syntax.Msg)
		if syntax.Truncated {
			e.Reason = ReasonTruncated
		}
	case errors.As(err, &limit):
		e.Offset, e.Reason, e.Clause = limit.Offset, ReasonLimit, clauseLimits
		e.Err = errors.New(limit.Detail())
	}
	e.Line, e.Column = xmlscan.Line(r.text, e.Offset)
	return e
}

func limitError[N int | int64](url, what string, limit N) *ParseError {
	return &ParseError{
		URL: url, Reason: ReasonLimit, Clause: clauseLimits,
		Err: fmt.Errorf("more than %d %s", limit, what),
	}
}

// finish completes the document after its last element.
func (r *reading) finish(entries *entryList) (*Document, error) {
	entries.addGaps()
	r.doc.text = r.text
	*r.head = r.doc.headOnly()
	entries.noteShared()
	tellApart(r.doc.Entries)
	switch {
	case r.err == nil:
		return r.doc, nil
	case r.doc.Format == 0:
		return nil, r.err
	}
	return r.doc, r.err
}
