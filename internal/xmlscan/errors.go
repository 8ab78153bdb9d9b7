package xmlscan

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A SyntaxError reports a place where the document is not well-formed, and leniency does
// not help.
type SyntaxError struct {
	Offset       int
	Line, Column int // counted from 1
	Msg          string
	Truncated    bool // the document ended before its root element did
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("xml: line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// A LimitError reports a document beyond [Limits].
type LimitError struct {
	Limit  string // "depth", "attributes", "namespaces" or "elements"
	Max    int
	Offset int
	Line   int // counted from 1
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("xml: line %d: %s over the limit of %d", e.Line, e.Limit, e.Max)
}

// Detail says in words which limit the document exceeds.
func (e *LimitError) Detail() string {
	switch e.Limit {
	case "depth":
		return fmt.Sprintf("elements are nested more than %d deep", e.Max)
	case "attributes":
		return fmt.Sprintf("an element has more than %d attributes", e.Max)
	case "namespaces":
		return fmt.Sprintf("more than %d namespace declarations are in scope", e.Max)
	}
	return fmt.Sprintf("the document has more than %d %s", e.Max, e.Limit)
}

// Err returns nil before the end of the document and at a proper one; otherwise a
// [*SyntaxError] or a [*LimitError].
func (s *Scanner) Err() error { return s.err }

// Lenient returns the number of leniencies so far. At a Start, those of the start tag do not
// count yet: an element is well-formed if Lenient is the same at its Start and its End.
func (s *Scanner) Lenient() int {
	if s.tok == Start {
		return s.before
	}
	return s.lenient
}

// syntax ends the scan with a syntax error. After the root element errors are harmless, so
// it only makes a note.
func (s *Scanner) syntax(at int, msg string) Token {
	return s.fail(&SyntaxError{Offset: at, Msg: msg})
}

// truncated ends the scan of a truncated document.
func (s *Scanner) truncated() Token {
	msg := "the document ends before its root element"
	if n := len(s.open); n > 0 {
		msg = "the document ends within <" + clip(s.written(s.open[n-1].name)) + ">"
	}
	return s.fail(&SyntaxError{Offset: len(s.doc), Msg: msg, Truncated: true})
}

func (s *Scanner) fail(err *SyntaxError) Token {
	if s.part != inProlog && len(s.open) == 0 {
		s.afterRoot(s.start)
		return Stop
	}
	err.Line, err.Column = Line(s.doc, err.Offset)
	s.err, s.part = err, ended
	return Stop
}

// exceeded ends the scan with a limit error.
func (s *Scanner) exceeded(limit string, max, at int) Token {
	line, _ := Line(s.doc, at)
	s.err, s.part = &LimitError{Limit: limit, Max: max, Offset: at, Line: line}, ended
	return Stop
}

// clip shortens text of the document for a message.
func clip(s string) string { return Clip(s, 60) }

// Clip returns the first most bytes of a text, without a broken character at the end,
// and an ellipsis; or the whole text if it is no longer. Messages quote documents so.
func Clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Line returns the 1-based line and column, counted in characters, of an offset in doc.
func Line(doc string, offset int) (line, column int) {
	before := doc[:min(max(offset, 0), len(doc))]
	begin := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[begin:]) + 1
}
