package jsonfeed

import (
	"fmt"
	"regexp"
	"strings"
)

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
