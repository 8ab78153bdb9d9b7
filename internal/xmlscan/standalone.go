package xmlscan

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Standalone returns an element, given as its part of a scanned document, as a separate,
// well-formed element.
//
// It inserts the text attrs, such as ` xmlns:dc="…" xml:base="…"`, after the name in the start
// tag. The text should declare the bindings of outer, which are those in scope outside the
// fragment, as far as the element needs them. Standalone omits those of its declarations the start
// tag also makes, and those of the start tag's other attributes attrs also has. If attrs does not
// have this form, it is not inserted.
//
// Standalone repairs each place where the scanner is lenient, so any XML parser reads the same
// as the scanner. It changes nothing else.
func Standalone(fragment string, outer []Binding, attrs string) string {
	unlimited := Unlimited()
	given := NewFragment("<a"+attrs+"/>", outer, unlimited)
	if given.Next() != Start || !given.empty {
		return Standalone(fragment, outer, "")
	}
	r := repairer{NewFragment(fragment, given.bindings, unlimited)}
	return string(r.standalone(given.doc))
}

// MendElement is Standalone, without further attributes, for an element read by a scanner from
// [Mend]. A scanner without a Mender reads the result in the same way.
func MendElement(fragment string, outer []Binding) string {
	r := repairer{mended(NewFragment(fragment, outer, Unlimited()), true)} // elements may lack their end tags
	return string(r.standalone("<a/>"))
}

// A repairer writes an element again, well-formed.
type repairer struct{ *Cursor }

// standalone writes the element the scanner is about to read, with the attributes of the
// given tag.
func (r repairer) standalone(given string) []byte {
	out := make([]byte, 0, len(r.doc)+len(given))
	done := 0 // how much of the fragment has been written
	for root := true; ; {
		before := r.lenient
		tok := r.step()
		r.tok = tok
		switch {
		case tok == Stop:
			if r.err != nil { // not a scanned element: the rest stays unchanged
				r.end = len(r.doc)
			}
			return append(out, r.doc[done:r.end]...)
		case tok == Start && root:
			root = false
			out = r.appendRoot(out[:0], given) // without anything before it
			done = r.end
		case r.lenient > before:
			out = append(out, r.doc[done:r.start]...)
			out = r.appendRepaired(out, tok)
			done = r.end
		}
	}
}

// appendRepaired appends the current token, at which the scanner was lenient.
func (r repairer) appendRepaired(out []byte, tok Token) []byte {
	switch tok {
	case Start:
		return r.appendTag(out, "", nil)
	case End:
		out = append(out, "</"...)
		out = append(out, r.written(r.name)...)
		return append(out, '>')
	case Text:
		return appendRepairedText(out, r.doc[r.start:r.end])
	case CData:
		text := appendDecoded(nil, r.raw(), decodeCData)
		// The omitted text may have separated the characters of an end mark.
		text = bytes.ReplaceAll(text, []byte("]]>"), []byte("]]]]><![CDATA[>"))
		out = append(out, "<![CDATA["...)
		out = append(out, text...)
		return append(out, "]]>"...)
	}
	// The scanner passes over a comment, a processing instruction or the like. Something must stay
	// there, because it may separate "]]" from ">".
	return append(out, "<!---->"...)
}

// appendRoot appends the current start tag with the attributes of the given tag.
func (r repairer) appendRoot(out []byte, given string) []byte {
	f := &r.open[len(r.open)-1]
	own := r.bindings[f.bindings:r.declared]
	var names []string // the names of the given attributes other than declarations
	insert := appendAttrs(nil, given, len("<a"), func(_ int, name string) bool {
		prefix, declares := declaredPrefix(name)
		if !declares {
			names = append(names, name)
			return false
		}
		return slices.ContainsFunc(own, func(b Binding) bool { return b.Prefix == prefix })
	})
	return r.appendTag(out, strings.TrimSuffix(string(insert), "/>"), names)
}

// appendTag appends the current start tag, with insert after its name. It omits the attributes
// with one of the names, and those the scanner dropped, and declares the undeclared prefixes.
func (r repairer) appendTag(out []byte, insert string, names []string) []byte {
	name := r.written(r.name)
	out = append(out, '<')
	out = append(out, name...)
	out = append(out, insert...)
	slices.Sort(r.dropped)
	drop := func(at int, name string) bool {
		_, dropped := slices.BinarySearch(r.dropped, at)
		return dropped || slices.Contains(names, name)
	}
	close := ">"
	if r.empty {
		close = "/>"
	}
	if r.Mender != nil && r.Mender.rewrite {
		out = r.Mender.appendPieces(out, drop)
	} else {
		out = appendAttrs(out, r.doc[:r.end], r.start+len("<")+len(name), drop)
		out = out[:len(out)-len(close)]
	}
	for _, b := range r.bindings[r.declared:] {
		out = append(out, ` xmlns:`+b.Prefix+`="`+b.URI+`"`...)
	}
	return append(out, close...)
}

// declaredPrefix returns the prefix declared by an attribute with the given name.
func declaredPrefix(name string) (prefix string, ok bool) {
	if name == "xmlns" {
		return "", true
	}
	prefix, ok = strings.CutPrefix(name, "xmlns:")
	return prefix, ok && prefix != ""
}

// appendAttrs appends the rest of the tag at the end of doc, from i on, without the attributes
// for which drop returns true.
func appendAttrs(out []byte, doc string, i int, drop func(at int, name string) bool) []byte {
	for {
		at := skipSpace(doc, i)
		if doc[at] == '>' || doc[at] == '/' {
			return append(out, doc[i:]...)
		}
		nameEnd := at
		for class[doc[nameEnd]]&nameByte != 0 {
			nameEnd++
		}
		begin := nameEnd + strings.IndexAny(doc[nameEnd:], `"'`) + 1
		end := begin + strings.IndexByte(doc[begin:], doc[begin-1])
		if !drop(at, doc[at:nameEnd]) {
			if at == i {
				out = append(out, ' ')
			}
			out = append(out, doc[i:begin]...)
			out = appendRepairedText(out, doc[begin:end])
			out = append(out, doc[end])
		}
		i = end + 1
	}
}

// appendRepairedText appends text or an attribute value. The omitted text may have
// separated characters with another meaning together.
func appendRepairedText(out []byte, raw string) []byte {
	for i, n := 0, 0; i < len(raw); i += n {
		n = 1
		switch c := raw[i]; {
		case c == '&':
			out, n = appendRepairedReference(out, raw[i:])
		case c == '<':
			out = append(out, "&lt;"...)
		case c == '>' && bytes.HasSuffix(out, []byte("]]")):
			out = append(out, "&gt;"...)
		case hasPrefixAt(raw, i, "\r\n"):
			out, n = append(out, "\r\n"...), 2
		case c == '\r':
			out = append(out, '\n')
		case c >= ' ' || class[c]&spaceByte != 0:
			out = append(out, c)
		}
	}
	return out
}

// appendRepairedReference appends the reference at the beginning of raw, and returns its length.
func appendRepairedReference(out []byte, raw string) ([]byte, int) {
	kind, n, r := reference(raw)
	switch ref := raw[:n]; kind {
	case refChar:
		out = append(out, ref...)
	case refBare, refUndefined:
		out = append(out, "&amp;"...)
		out = append(out, ref[1:]...)
	case refSurrogates:
		out = utf8.AppendRune(out, r)
	case refHTML:
		for _, char := range html.UnescapeString(ref) {
			if char < 0x80 {
				out = append(out, "&#"+strconv.Itoa(int(char))+";"...)
			} else {
				out = append(out, string(char)...)
			}
		}
	}
	return out, n
}

// WellFormed checks that an element is well-formed, without any leniency.
func WellFormed(element string) error {
	s := New(element, Limits{})
	for s.Next() != Stop {
	}
	if err := s.Err(); err != nil {
		return err
	}
	if notes, _ := s.Notes(); len(notes) > 0 {
		return fmt.Errorf("not well-formed: %s", notes[0].Message)
	}
	return nil
}
