package xmlscan

import "strings"

// A Note records a leniency.
type Note struct {
	Code    string
	Message string
	Offset  int
}

// maxNotes is the maximum number of notes. Documents with more leniencies repeat the same
// ones.
const maxNotes = 100

// A notebook records the leniencies used in reading an input.
type notebook struct {
	input
	again   bool // the input is read again: no more notes are made
	notes   []Note
	lenient int // the number of leniencies
}

// Notes returns the first hundred leniencies, and the number of further ones.
func (n *notebook) Notes() (notes []Note, more int) {
	return n.notes, n.lenient - len(n.notes)
}

// note counts a leniency. It formats the message only if it keeps it, and uses only the
// beginning of detail, which comes from the document.
func (n *notebook) note(code string, at int, message, detail string) {
	n.lenient++
	if len(n.notes) == maxNotes {
		return
	}
	if detail != "" {
		message += ": " + clip(detail)
	}
	n.notes = append(n.notes, Note{Code: code, Message: message, Offset: at})
}

// noteText notes the faults of the text doc[i:end].
func (n *notebook) noteText(i, end int) {
	for ; ; i++ {
		next := min(n.control(i), n.bracket(i), end)
		for amp := n.ampersand(i); amp < next; amp = n.ampersand(i) {
			i = amp + n.reference(amp)
		}
		switch i = next; {
		case i == end:
			return
		case hasPrefixAt(n.doc, i, "]]>"):
			n.note("cdata-end-in-text", i, "]]> in text", "")
		case n.doc[i] != ']' && n.doc[i] != '\r':
			n.noteControl(i)
		}
	}
}

// reference checks the reference at the ampersand at i, and returns its length.
func (n *notebook) reference(i int) int {
	kind, length, _ := reference(n.doc[i:])
	if kind != refChar {
		n.noteReference(kind, i, n.doc[i:i+length])
	}
	return length
}

func (n *notebook) noteReference(kind refKind, at int, ref string) {
	switch kind {
	case refBare:
		n.note("bare-ampersand", at, "ampersand that begins no reference", "")
	case refForbidden:
		n.note("control-character", at, "reference to a character that XML does not allow", ref)
	case refSurrogates:
		n.note("surrogate-reference", at, "references to the halves of a character", ref)
	case refHTML:
		n.note("html-entity", at, "entity of HTML that is not declared", ref)
	case refUndefined:
		n.note("undefined-entity", at, "undefined entity", ref)
	}
}

// noteValue notes the faults of the value doc[i:end].
func (n *notebook) noteValue(i, end int) {
	if n.again || n.ampersand(i) >= end && n.control(i) >= end && strings.IndexByte(n.doc[i:end], '<') < 0 {
		return
	}
	for part := n.doc[:end]; ; {
		if i = until(part, i, valueStop); i == end {
			return
		}
		switch part[i] {
		case '&':
			kind, length, _ := reference(part[i:])
			if kind != refChar {
				n.noteReference(kind, i, part[i:i+length])
			}
			i += length
		case '<':
			n.note("lt-in-attribute", i, "< in an attribute value", "")
			i++
		default:
			n.noteControl(i)
			i++
		}
	}
}

// controls notes the control characters in doc[i:end], where nothing else needs attention.
func (n *notebook) controls(i, end int) {
	for i = n.control(i); i < end && !n.again; i = n.control(i + 1) {
		if n.doc[i] != '\r' {
			n.noteControl(i)
		}
	}
}

func (n *notebook) noteControl(at int) {
	n.note("control-character", at, "character that XML does not allow", "")
}
