package jsonfeed

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Mend makes JSON with common mistakes well-formed: raw control characters, unknown escapes
// and bare quotes in strings, misplaced or missing commas, comments, the literals and
// numbers of other languages, and text after the end.
func Mend(text string) *Mended {
	m := &mender{text: text, comma: -1}
	m.document()
	return m.result()
}

// A Note records one mistake and its place in the original text.
type Note struct {
	Message string
	Offset  int
}

// A Mended is a text whose mistakes are mended up to the first one beyond repair. The
// zero value is an empty text.
type Mended struct {
	Text  string
	Whole bool   // Text is well-formed to its end
	Notes []Note // the first hundred
	moves []move // where Text and the original run apart, in order
}

// A move is the distance of Text from the original, from a place of Text on.
type move struct{ at, by int }

// Original returns the place in the original text of an offset of Text.
func (m *Mended) Original(offset int) int {
	i, _ := slices.BinarySearchFunc(m.moves, offset, func(mv move, offset int) int { return mv.at - offset - 1 })
	if i > 0 {
		offset += m.moves[i-1].by
	}
	if i < len(m.moves) { // within a replacement
		offset = min(offset, m.moves[i].at+m.moves[i].by)
	}
	return offset
}

const (
	maxNotes = 100
	maxEdits = 1 << 20 // more than that is no feed
	maxDepth = 10_000
)

// An edit replaces n bytes of the original.
type edit struct {
	at, n int
	with  string
}

// A expectation is the token JSON expects next.
type expectation uint8

const (
	wantValue expectation = iota
	wantName
	wantComma
	wantEnd
)

// A mender reads a text once, and collects edits.
type mender struct {
	text     string
	at       int
	open     []byte // the closing brackets of the open arrays and objects
	want     expectation
	comma    int // the index of the edit for the comma before the current token; -1 if there is none
	edits    []edit
	notes    []Note
	hopeless bool // the rest is beyond repair
}

// replace replaces the next n bytes, and moves past them.
func (m *mender) replace(n int, with, why string) {
	if len(m.edits) == maxEdits {
		m.hopeless = true
		return
	}
	m.edits = append(m.edits, edit{m.at, n, with})
	m.note(m.at, why)
	m.at += n
}

func (m *mender) note(at int, why string) {
	if len(m.notes) < maxNotes {
		m.notes = append(m.notes, Note{why, at})
	}
}

// document reads the tokens.
func (m *mender) document() {
	for !m.hopeless {
		if m.space(); m.hopeless || m.at == len(m.text) {
			return
		}
		switch c := m.text[m.at]; {
		case m.want == wantEnd:
			m.replace(len(m.text)-m.at, "", "there is something after the end of the JSON")
		case c == ',':
			m.separator()
		case c == '}' || c == ']':
			m.end(c)
		case m.want == wantComma:
			if !isStart(c) {
				m.hopeless = true
				return
			}
			m.replace(0, ",", "a comma is missing between two values")
			m.next()
		default:
			m.settle()
			m.token(c)
		}
	}
}

// isStart reports whether a value may begin with c.
func isStart(c byte) bool {
	return c == '"' || c == '{' || c == '[' || c == '-' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// token reads a name with its colon, a simple value, or an opening bracket.
func (m *mender) token(c byte) {
	switch {
	case m.want == wantName && c != '"':
		m.hopeless = true
	case m.want == wantName:
		m.quoted(true)
		if m.space(); m.at == len(m.text) || m.text[m.at] != ':' {
			m.hopeless = true
			return
		}
		m.at++
		m.want = wantValue
	case c == '"':
		m.quoted(false)
		m.ended()
	case c == '{' || c == '[':
		if len(m.open) == maxDepth {
			m.hopeless = true
			return
		}
		m.open = append(m.open, c+2) // ']' and '}' come two after '[' and '{'
		m.at++
		m.next()
	default:
		m.word()
		m.ended()
	}
}

// next expects another element of the innermost array or object.
func (m *mender) next() {
	if m.want = wantValue; m.open[len(m.open)-1] == '}' {
		m.want = wantName
	}
}

// ended expects the tokens after a value.
func (m *mender) ended() {
	if m.want = wantComma; len(m.open) == 0 {
		m.want = wantEnd
	}
}

// separator reads a comma.
func (m *mender) separator() {
	switch {
	case len(m.open) == 0, m.want == wantValue && m.open[len(m.open)-1] == '}':
		m.hopeless = true
	case m.want != wantComma:
		m.replace(1, "", "a comma has no value before it")
	case len(m.edits) == maxEdits:
		m.hopeless = true
	default:
		m.comma = len(m.edits)
		m.edits = append(m.edits, edit{m.at, 1, ","})
		m.at++
		m.next()
	}
}

// settle keeps the comma before the current token, which is no closing bracket.
func (m *mender) settle() {
	if m.comma >= 0 && m.comma == len(m.edits)-1 {
		m.edits = m.edits[:m.comma]
	}
	m.comma = -1
}

// end reads a closing bracket, and removes the comma before it.
func (m *mender) end(c byte) {
	inside := len(m.open) > 0
	if !inside || m.open[len(m.open)-1] != c || m.want == wantValue && c == '}' {
		m.hopeless = true
		return
	}
	if m.comma >= 0 {
		m.edits[m.comma].with = ""
		m.note(m.edits[m.comma].at, "there is a comma before a closing bracket")
		m.comma = -1
	}
	m.open = m.open[:len(m.open)-1]
	m.at++
	m.ended()
}

// space moves past white space and comments.
func (m *mender) space() {
	for m.at < len(m.text) && !m.hopeless {
		rest := m.text[m.at:]
		switch n := 0; {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			m.at++
		case strings.HasPrefix(rest, "//"):
			if n = strings.IndexByte(rest, '\n'); n < 0 {
				n = len(rest)
			}
			m.replace(n, " ", "JSON has no comments")
		case strings.HasPrefix(rest, "/*"):
			if n = strings.Index(rest, "*/"); n < 2 {
				m.hopeless = true
				return
			}
			m.replace(n+2, " ", "JSON has no comments")
		default:
			return
		}
	}
}

// result applies the edits.
func (m *mender) result() *Mended {
	var b strings.Builder
	done := &Mended{Whole: !m.hopeless && m.want == wantEnd, Notes: m.notes}
	if len(m.notes) == 0 {
		done.Text = m.text
		return done
	}
	from := 0
	for _, e := range m.edits {
		if m.text[e.at:e.at+e.n] == e.with {
			continue // a comma that stays
		}
		b.WriteString(m.text[from:e.at])
		b.WriteString(e.with)
		from = e.at + e.n
		done.moves = append(done.moves, move{b.Len(), from - b.Len()})
	}
	b.WriteString(m.text[from:])
	done.Text = b.String()
	return done
}

// quoted reads a string: the name of a member, or a value.
func (m *mender) quoted(name bool) {
	m.at++
	for !m.hopeless {
		i := strings.IndexFunc(m.text[m.at:], isSpecial)
		if i < 0 {
			m.at, m.hopeless = len(m.text), true
			return
		}
		m.at += i
		switch c := m.text[m.at]; {
		case c == '\\':
			m.escape()
		case c < ' ':
			m.replace(1, control(c), "a string has a raw control character")
		case m.closes(name):
			m.at++
			return
		default:
			m.replace(1, `\"`, "a string has a quotation mark without a backslash")
		}
	}
}

func isSpecial(c rune) bool { return c < ' ' || c == '"' || c == '\\' }

// control returns the escape of a control character.
func control(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// closes reports whether the quotation mark here ends the string: the text after it can
// follow a string. Between two strings without a comma there must be a new line.
func (m *mender) closes(name bool) bool {
	rest := m.text[m.at+1:]
	after := strings.TrimLeft(rest, " \t\r\n")
	if after == "" || isComment(after) {
		return true
	}
	switch c := after[0]; {
	case c == ':', c == '}' && !name, c == ']' && !name:
		return true
	case c == '"':
		return !name && strings.Contains(rest[:len(rest)-len(after)], "\n")
	case c != ',' || name:
		return false
	}
	after = strings.TrimLeft(after[1:], " \t\r\n")
	inside := len(m.open) > 0
	switch {
	case after == "", isComment(after), strings.IndexByte(`",]}`, after[0]) >= 0:
		return true
	case inside && m.open[len(m.open)-1] == ']':
		return strings.IndexByte("{[-0123456789", after[0]) >= 0 || literal.MatchString(after)
	}
	return false
}

func isComment(text string) bool {
	return strings.HasPrefix(text, "//") || strings.HasPrefix(text, "/*")
}

// literal is a literal at the beginning of a text.
var literal = regexp.MustCompile(`^(true|false|null)\b`)

// escape reads a backslash and the character after it. An unknown escape is a backslash,
// except those of JavaScript.
func (m *mender) escape() {
	rest := m.text[m.at:]
	const why = "JSON does not have the escape "
	switch {
	case len(rest) < 2:
		m.hopeless = true
	case strings.IndexByte(`"\/bfnrt`, rest[1]) >= 0:
		m.at += 2
	case rest[1] == 'u' && isHex(rest, 2, 4):
		m.at += 6
	case rest[1] == 'x' && isHex(rest, 2, 2):
		m.replace(4, `\u00`+rest[2:4], why+rest[:4])
	case rest[1] == '\'':
		m.replace(2, "'", why+rest[:2])
	case rest[1] < ' ' || rest[1] >= 0x7f:
		m.replace(1, `\\`, "a string has a single backslash")
	default:
		m.replace(1, `\\`, why+rest[:2])
	}
}

// isHex reports whether text has n hexadecimal digits at the given place.
func isHex(text string, at, n int) bool {
	return len(text) >= at+n && strings.Trim(text[at:at+n], "0123456789abcdefABCDEF") == ""
}

var (
	// number is a number as JSON writes it (RFC 8259 §6).
	number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	// anyNumber is a number of another language.
	anyNumber = regexp.MustCompile(`^[-+.]?[0-9][-+.0-9A-Fa-fxXoO_]*$`)
)

// word reads a number or literal. A number JSON does not have becomes a string, so an ID
// stays as published.
func (m *mender) word() {
	rest := m.text[m.at:]
	n := strings.IndexFunc(rest, func(c rune) bool {
		return !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.' || c == '_')
	})
	if n < 0 {
		n = len(rest)
	}
	word := rest[:n]
	switch with := meaning(word); {
	case with == word && word != "", number.MatchString(word):
		m.at += n
	case with != "":
		m.replace(n, with, "JSON does not have the value "+word)
	case n < 100 && anyNumber.MatchString(word):
		m.replace(n, `"`+word+`"`, "JSON does not have the number "+word)
	default:
		m.hopeless = true
	}
}

// meaning returns a literal as JSON writes it; "" if the word is none.
func meaning(word string) string {
	switch word {
	case "true", "false", "null":
		return word
	case "True", "TRUE":
		return "true"
	case "False", "FALSE":
		return "false"
	case "None", "NULL", "Null", "nil", "undefined", "NaN", "Infinity", "-Infinity":
		return "null"
	}
	return ""
}
