package xmlscan

import (
	"bytes"
	"html"
	"slices"
	"strconv"
	"strings"
)

// Standalone returns an element, whose range in a scanned document fragment
// is, as a well-formed element that can stand by itself.
//
// The text attrs, such as ` xmlns:dc="…" xml:base="…"`, is inserted after the
// start tag's name. It should declare the bindings of outer, those in scope
// outside the fragment, as far as they are needed. Of its declarations those
// are left out that the start tag makes itself; of the start tag's other
// attributes those are left out that attrs gives. If attrs is not of that form,
// it is not inserted.
//
// Each place where the scanner is lenient is repaired, so that any XML parser
// reads there what the scanner reads. Nothing else is changed.
func Standalone(fragment string, outer []Binding, attrs string) string {
	unlimited := Unlimited()
	given := NewFragment("<a"+attrs+"/>", outer, unlimited)
	if given.Next() != Start || !given.empty {
		return Standalone(fragment, outer, "")
	}
	return string(NewFragment(fragment, given.bindings, unlimited).standalone(given.doc))
}

// MendElement is Standalone for an element that a scanner has read which [Mend]
// returned: a well-formed one, without further attributes, of which a scanner
// that mends nothing reads the same.
func MendElement(fragment string, outer []Binding) string {
	return string(mendFragment(fragment, outer, Unlimited()).standalone("<a/>"))
}

// standalone writes the element that the scanner is to read, with the attributes
// of the tag given.
func (s *Scanner) standalone(given string) []byte {
	out := make([]byte, 0, len(s.doc)+len(given))
	done := 0 // how much of the fragment out has
	for root := true; ; {
		before := s.lenient
		tok := s.step()
		switch {
		case tok == Stop:
			if s.err != nil { // Not a scanned element: the rest stays as it is.
				s.end = len(s.doc)
			}
			return append(out, s.doc[done:s.end]...)
		case tok == Start && root:
			root = false
			out = s.appendRoot(out[:0], given) // without what stands before it
			done = s.end
		case s.lenient > before:
			out = append(out, s.doc[done:s.start]...)
			out = s.appendRepaired(out, tok)
			done = s.end
		}
	}
}

// appendRepaired appends the current token, at which the scanner was lenient.
func (s *Scanner) appendRepaired(out []byte, tok Token) []byte {
	switch tok {
	case Start:
		return s.appendTag(out, "", nil)
	case End:
		out = append(out, "</"...)
		out = append(out, s.written()...)
		return append(out, '>')
	case Text:
		return appendRepairedText(out, s.doc[s.start:s.end])
	case CData:
		text := appendDecoded(nil, s.doc[s.start+len("<![CDATA["):s.end-len("]]>")], decodeCData)
		// What is left out may have kept an end mark apart.
		text = bytes.ReplaceAll(text, []byte("]]>"), []byte("]]]]><![CDATA[>"))
		out = append(out, "<![CDATA["...)
		out = append(out, text...)
		return append(out, "]]>"...)
	}
	// A comment, processing instruction or whatever else is passed over. Something
	// must stay, which may keep "]]" and ">" apart.
	return append(out, "<!---->"...)
}

// appendRoot appends the current start tag with the attributes of the tag given.
func (s *Scanner) appendRoot(out []byte, given string) []byte {
	f := &s.open[len(s.open)-1]
	own := s.bindings[f.bindings:s.declared]
	var names []string // of the attributes other than declarations that are given
	insert := appendAttrs(nil, given, len("<a"), func(_ int, name string) bool {
		prefix, declares := declaredPrefix(name)
		if !declares {
			names = append(names, name)
			return false
		}
		return slices.ContainsFunc(own, func(b Binding) bool { return b.Prefix == prefix })
	})
	return s.appendTag(out, strings.TrimSuffix(string(insert), "/>"), names)
}

// appendTag appends the current start tag, with insert after its name, without
// the attributes called like one of names and those that the scanner dropped,
// and with declarations of the prefixes that lack one.
func (s *Scanner) appendTag(out []byte, insert string, names []string) []byte {
	name := s.written()
	out = append(out, '<')
	out = append(out, name...)
	out = append(out, insert...)
	slices.Sort(s.dropped)
	drop := func(at int, name string) bool {
		_, dropped := slices.BinarySearch(s.dropped, at)
		return dropped || slices.Contains(names, name)
	}
	close := ">"
	if s.empty {
		close = "/>"
	}
	if s.mend != nil && s.mend.rewrite {
		out = s.appendPieces(out, drop)
	} else {
		out = appendAttrs(out, s.doc[:s.end], s.start+len("<")+len(name), drop)
		out = out[:len(out)-len(close)]
	}
	for _, b := range s.bindings[s.declared:] {
		out = append(out, ` xmlns:`+b.Prefix+`="`+b.URI+`"`...)
	}
	return append(out, close...)
}

// declaredPrefix returns the prefix that an attribute called name declares.
func declaredPrefix(name string) (prefix string, ok bool) {
	if name == "xmlns" {
		return "", true
	}
	prefix, ok = strings.CutPrefix(name, "xmlns:")
	return prefix, ok && prefix != ""
}

// appendAttrs appends the rest of the tag with which doc ends from i on,
// without the attributes for which drop reports true.
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

// appendRepairedText appends text or an attribute value. What is left out may
// have kept apart what means something else together.
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

// appendRepairedReference appends what the ampersand at the start of raw begins,
// and returns the length of that.
func appendRepairedReference(out []byte, raw string) ([]byte, int) {
	kind, n, _ := reference(raw)
	switch ref := raw[:n]; kind {
	case refChar:
		out = append(out, ref...)
	case refBare, refUndefined:
		out = append(out, "&amp;"...)
		out = append(out, ref[1:]...)
	case refHTML:
		for _, r := range html.UnescapeString(ref) {
			if r < 0x80 {
				out = append(out, "&#"+strconv.Itoa(int(r))+";"...)
			} else {
				out = append(out, string(r)...)
			}
		}
	}
	return out, n
}
