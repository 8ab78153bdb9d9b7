package check

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A report collects the findings of one document.
type report struct {
	doc     *feedhistory.Document
	out     *outline
	at      []int // of doc.Links
	profile Profile

	found []placedFinding
	count map[string]int // by code
}

// A placedFinding is a finding with an offset instead of a line.
type placedFinding struct {
	Finding
	offset int
	absent bool // there is nothing to quote
}

func newReport(doc *feedhistory.Document, profile Profile) *report {
	r := &report{doc: doc, out: newOutline(doc), profile: profile, count: map[string]int{}}
	r.placeLinks()
	return r
}

// placeLinks finds the places of the document's links. Links from the HTTP
// header have none.
func (r *report) placeLinks() {
	spots := r.out.links
	for _, link := range r.doc.Links {
		i := slices.IndexFunc(spots, func(s spot) bool { return stands(s.text, link.Rel) })
		if i < 0 {
			r.at = append(r.at, nowhere)
			continue
		}
		r.at = append(r.at, spots[i].at)
		spots = spots[i+1:]
	}
}

// stands reports whether a written rel can mean a relation.
func stands(written, rel string) bool {
	written = strings.ToLower(strings.TrimPrefix(written, "http://www.iana.org/assignments/relation/"))
	if written == strings.ToLower(rel) {
		return true
	}
	archive := strings.HasSuffix(written, "archive")
	switch rel {
	case feedhistory.RelPrevious:
		return strings.HasPrefix(written, "prev") && !archive
	case feedhistory.RelNext:
		return strings.HasPrefix(written, "next") && !archive
	case feedhistory.RelPrevArchive:
		return strings.HasPrefix(written, "prev") && archive
	case feedhistory.RelNextArchive:
		return strings.HasPrefix(written, "next") && archive
	}
	return false
}

// mostOfACode is the maximum number of findings of one code in a document: a
// thousand entries without an id are one mistake.
const mostOfACode = 20

// add reports a finding at an offset of the text. The message is a printf
// format with arguments.
func (r *report) add(code string, at int, format string, args ...any) {
	if r.count[code]++; r.count[code] > mostOfACode {
		return
	}
	r.found = append(r.found, placedFinding{Finding: newFinding(code, r.doc.URL, fmt.Sprintf(format, args...)), offset: at})
}

// absent reports something about the whole document, or something missing. Its place is
// the beginning of the head section.
func (r *report) absent(code, format string, args ...any) {
	n := len(r.found)
	if r.add(code, r.out.top, format, args...); len(r.found) > n {
		r.found[n].absent = true
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
func (r *report) findings() []Finding {
	slices.SortStableFunc(r.found, func(a, b placedFinding) int { return a.offset - b.offset })
	var out []Finding
	last := map[string]int{}
	lines := lineCounter{text: r.doc.Text(), line: 1}
	for _, p := range r.found {
		if p.offset >= 0 && p.offset <= len(lines.text) && lines.text != "" {
			p.Line, p.Column, p.Quote = lines.place(p.offset)
			if p.absent {
				p.Quote = Quote{}
			}
		}
		last[p.Code] = len(out)
		out = append(out, p.Finding)
	}
	for code, n := range r.count {
		if n > mostOfACode {
			out[last[code]].Message += fmt.Sprintf(" (and %d more of this kind)", n-mostOfACode)
		}
	}
	return out
}

// place returns the line, column and quote of a single place.
func (r *report) place(offset int) (line, column int, quote Quote) {
	if offset < 0 || r.doc.Text() == "" {
		return 0, 0, Quote{}
	}
	lines := lineCounter{text: r.doc.Text(), line: 1}
	return lines.place(offset)
}

// A lineCounter finds the lines of increasing offsets in one pass.
type lineCounter struct {
	text  string
	line  int
	begin int // the beginning of the line
}

// The maximum sizes of the parts of a quoted line, in bytes.
const (
	quoteBefore = 60
	quoteAfter  = 120
)

func (l *lineCounter) place(offset int) (line, column int, quote Quote) {
	passed := l.text[l.begin:offset]
	if n := strings.Count(passed, "\n"); n > 0 {
		l.line += n
		l.begin += strings.LastIndexByte(passed, '\n') + 1
	}
	before := l.text[l.begin:offset]
	after, _, _ := strings.Cut(l.text[offset:min(len(l.text), offset+quoteAfter)], "\n")
	column = utf8.RuneCountInString(before) + 1
	if len(before) > quoteBefore {
		before = before[len(before)-quoteBefore:]
	}
	before, after = strings.ToValidUTF8(before, ""), strings.ToValidUTF8(strings.TrimRight(after, "\r"), "")
	return l.line, column, Quote{strings.Clone(before), strings.Clone(after)} // cloned, so as not to keep the document
}

// clip shortens a quotation in a message.
func clip(s string) string { return xmlscan.Clip(s, 200) }
