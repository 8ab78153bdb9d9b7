// Package check finds the faults of a feed's history, from a single document to the
// whole chain of a feed's archives, in Atom, RSS and JSON Feed.
//
//	doc, err := feedhistory.Parse(file, "https://example.org/feed.atom")
//	for _, f := range check.Document(doc, err, check.RFC5005) {
//		fmt.Println(f)
//	}
//
// A Chain checks the documents of a walk, one by one. Each Finding has a code, the
// clause it is based on, its place, and its remedy. Rules returns all rules.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Level says how serious a finding is.
type Level string

// The levels, least serious first.
const (
	Note    Level = "note"    // worth knowing
	Warning Level = "warning" // breaks a SHOULD, or loses entries with known readers
	Error   Level = "error"   // breaks a MUST that changes what readers show, leaves the meaning undefined, or keeps a document from being read
)

// A Profile is a set of rules.
type Profile uint8

// The profiles.
const (
	RFC5005 Profile = iota // RFC 5005, Feed Paging and Archiving
	AtomPMH                // the same, and Atom-PMH 1.0, for feeds of metadata records

	DataReplication // the data replication protocol; its feeds are not documents, so use it only with Chain.Check
	ModifiedRange   // a collection served by ranges of modification times; use it only with Chain.Check
)

// String returns "rfc5005", "atom-pmh", "datareplication" or "modified-range".
func (p Profile) String() string {
	return [...]string{"rfc5005", "atom-pmh", "datareplication", "modified-range"}[min(p, ModifiedRange)]
}

// A Finding is a fault, or something worth knowing.
//
// Its Clause is a section, such as "RFC 5005 §3", or a numbered duty: "5005#14" is duty 14
// in the list [RFC5005.md], "atom-pmh#5" one of Atom-PMH 1.0, "datareplication#feed-5" and
// "modified-range#4" are in the READMEs of the packages that harvest these protocols. The
// numbers are this project's. A warning that no specification supports cites the practice.
// For readers who do not know them, show the Message and the Hint.
//
// [RFC5005.md]: https://github.com/feedhistory/feedhistory/blob/main/docs/RFC5005.md
type Finding struct {
	Code    string // the code of its Rule
	Clause  string // the clause of the specification, such as "5005#14"
	Level   Level
	Message string // the fault, with the values
	Hint    string // the remedy: what to write instead
	URL     string // the URL of the document; "" if unknown
	Line    int    // the line in the document as decoded to UTF-8, from 1; zero if there is no place
	Column  int    // from 1, in characters
	Quote   Quote  // the text at the place
}

// Where returns the place of the finding as URL:line:column, as far as it is
// known.
func (f Finding) Where() string {
	if f.Line == 0 {
		return f.URL
	}
	return strings.TrimPrefix(fmt.Sprintf("%s:%d:%d", f.URL, f.Line, f.Column), ":")
}

// String returns the finding in one line, without its hint.
func (f Finding) String() string {
	return strings.TrimPrefix(f.Where()+": ", ": ") +
		fmt.Sprintf("%v: %s [%s, %s]", f.Level, f.Message, f.Code, f.Clause)
}

// A Quote is the part of a line of the document around a place. It is not
// cleaned, so do not print it to a terminal as it is.
type Quote struct {
	Before string // the text before the place
	After  string // the text from the place on
}

// HasErrors reports whether any of the findings is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Error })
}

// A findingList collects findings, of each code no more than mostOfACode.
type findingList struct {
	found []placedFinding
	count map[string]int // by code
}

// A placedFinding is a finding with an offset instead of a line.
type placedFinding struct {
	Finding
	offset int  // nowhere if the finding has its line already, or none
	absent bool // there is nothing to quote
}

// mostOfACode is the maximum number of findings of one code in a document: a
// thousand entries without an id are one mistake.
const mostOfACode = 20

// put adds a finding at an offset of a document's text. The message is a printf format
// with arguments. It reports whether there was room.
func (l *findingList) put(code, url string, at int, format string, args ...any) bool {
	if l.count == nil {
		l.count = map[string]int{}
	}
	if l.count[code]++; l.count[code] > mostOfACode {
		return false
	}
	l.found = append(l.found, placedFinding{Finding: newFinding(code, url, fmt.Sprintf(format, args...)), offset: at})
	return true
}

// raise adds a finding without a place.
func (l *findingList) raise(code, url, format string, args ...any) {
	l.put(code, url, nowhere, format, args...)
}

// keep adds a finding whose place is known, or in another document.
func (l *findingList) keep(f Finding) {
	l.found = append(l.found, placedFinding{Finding: f, offset: nowhere})
}

// in returns the findings in the order of a document's text.
func (l *findingList) in(text string) []Finding {
	slices.SortStableFunc(l.found, func(a, b placedFinding) int { return a.offset - b.offset })
	var out []Finding
	last := map[string]int{}
	for _, p := range l.found {
		if p.Line == 0 {
			p.Line, p.Column, p.Quote = place(text, p.offset)
		}
		if p.absent {
			p.Quote = Quote{}
		}
		last[p.Code] = len(out)
		out = append(out, p.Finding)
	}
	for code, n := range l.count {
		if n > mostOfACode {
			out[last[code]].Message += fmt.Sprintf(" (and %d more of this kind)", n-mostOfACode)
		}
	}
	return out
}

// steps takes step after step, while there are more, and yields the findings of each. It
// reports whether all were taken.
func (l *findingList) steps(yield func(Finding, error) bool, step func() (more bool, err error)) bool {
	for more := true; more; {
		*l = findingList{}
		var err error
		if more, err = step(); err != nil {
			yield(Finding{}, err)
			return false
		}
		for _, f := range l.in("") {
			if !yield(f, nil) {
				return false
			}
		}
	}
	return true
}

// A tally counts the documents with a mistake.
type tally struct {
	url string // the first of them
	n   int
}

func (t *tally) add(url string) {
	if t.n++; t.n == 1 {
		t.url = url
	}
}

// tally raises a finding for the counted documents, with a text for the property they share.
func (l *findingList) tally(code string, t tally, all int, what string) {
	switch {
	case t.n == 0:
	case t.n == 1:
		l.raise(code, t.url, "the document has %s", what)
	case t.n == all:
		l.raise(code, t.url, "all %d documents have %s", all, what)
	default:
		l.raise(code, t.url, "%d of %d documents (this is the first) have %s", t.n, all, what)
	}
}

// A report has the findings of one document.
type report struct {
	findingList
	doc     *feedhistory.Document
	out     *outline
	profile Profile
}

func newReport(doc *feedhistory.Document, profile Profile) *report {
	return &report{doc: doc, out: newOutline(doc), profile: profile}
}

// at returns the place of a link of the document.
func (r *report) at(i int) int {
	if i < len(r.out.links) {
		return r.out.links[i]
	}
	return nowhere
}

// add reports a finding at an offset of the text.
func (r *report) add(code string, at int, format string, args ...any) {
	r.put(code, r.doc.URL, at, format, args...)
}

// absent reports something about the whole document, or something missing. Its place is
// the beginning of the head section.
func (r *report) absent(code, format string, args ...any) {
	if r.put(code, r.doc.URL, r.out.head.at, format, args...) {
		r.found[len(r.found)-1].absent = true
	}
}

// drop removes the findings of a code.
func (r *report) drop(code string) {
	r.found = slices.DeleteFunc(r.found, func(p placedFinding) bool { return p.Code == code })
	delete(r.count, code)
}

func newFinding(code, url, message string) Finding {
	rule := rule(code)
	return Finding{
		Code: code, Clause: rule.Clause, Level: rule.Level, Message: message, Hint: rule.Hint, URL: strings.Clone(url),
	}
}

// findings returns the findings in the order of the text.
func (r *report) findings() []Finding { return r.in(r.doc.Text()) }

// The maximum sizes of the parts of a quoted line, in bytes.
const (
	quoteBefore = 60
	quoteAfter  = 120
)

// place returns the line, column and quote of an offset of a text.
func place(text string, offset int) (line, column int, quote Quote) {
	if offset < 0 || offset > len(text) || text == "" {
		return 0, 0, Quote{}
	}
	line, column = xmlscan.Line(text, offset)
	before := text[max(0, offset-quoteBefore):offset]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after, _, _ := strings.Cut(text[offset:min(len(text), offset+quoteAfter)], "\n")
	before, after = strings.ToValidUTF8(before, ""), strings.ToValidUTF8(strings.TrimRight(after, "\r"), "")
	return line, column, Quote{strings.Clone(before), strings.Clone(after)} // cloned, so as not to keep the document
}

// clip shortens a quotation in a message.
func clip(s string) string { return xmlscan.Clip(s, 200) }

// unread reports why the document could not be read to its end.
func (r *report) unread(err error) {
	f := failure(err, r.doc.URL)
	at := nowhere
	if parse, ok := errors.AsType[*feedhistory.ParseError](err); ok && parse.Line > 0 {
		at = parse.Offset
	}
	r.add(f.Code, at, "%s", f.Message)
}

// failure returns the finding for a document not retrieved or not readable.
func failure(err error, url string) Finding {
	if parse, ok := errors.AsType[*feedhistory.ParseError](err); ok {
		f := newFinding(parseCode(parse.Reason), parse.URL, parse.Err.Error())
		f.Line, f.Column = parse.Line, parse.Column
		return f
	}
	if e, ok := errors.AsType[*feedhistory.FetchError](err); ok && (e.Reason == feedhistory.ReasonTruncated || e.Reason == feedhistory.ReasonLimit) {
		text := e.Error()
		if e.Reason == feedhistory.ReasonLimit {
			text = feedhistory.Describe(e)
		}
		return newFinding(parseCode(e.Reason), url, text)
	}
	if err == nil {
		err = errors.New("there is no document")
	}
	return newFinding(codeUnavailable, url, reasonText(err))
}

// codeUnavailable is the code for failures that are not the document's fault.
const codeUnavailable = "document-unavailable"

func parseCode(reason feedhistory.Reason) string {
	return cmp.Or(map[feedhistory.Reason]string{
		feedhistory.ReasonTruncated: "truncated", feedhistory.ReasonLimit: "limit-exceeded", feedhistory.ReasonNotFeed: "not-a-feed",
	}[reason], "not-well-formed")
}

// reasonText says briefly why a document could not be retrieved.
func reasonText(err error) string {
	if e, ok := errors.AsType[*feedhistory.FetchError](err); ok && e.Reason == feedhistory.ReasonStatus {
		return fmt.Sprintf("the server answers %d %s", e.Status, http.StatusText(e.Status))
	}
	return feedhistory.Describe(err)
}
