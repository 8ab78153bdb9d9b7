package xmlscan

import "strings"

// mendedStart reads a start tag, i being after its "<".
func (s *Scanner) mendedStart(i int) Token {
	m := s.mend
	s.before, m.before = s.lenient, m.count
	before := *m
	notes := len(s.notes)
	j := nameEnd(s.doc, i)
	prefix, local, _ := splitName(s.doc[i:j])
	if s.elements++; s.elements > s.lim.Elements {
		return s.exceeded("elements", s.lim.Elements, i)
	}
	s.rooted = true
	s.dropped = s.dropped[:0]
	f := frame{raw: s.doc[i:j], bindings: len(s.bindings), bases: len(s.bases)}
	f.lang, f.hasLang = s.Lang()
	s.open = append(s.open, f)
	if !s.mendedAttributes(j) || !s.resolveNames(prefix, local, i) {
		return Stop
	}
	m.frames = append(m.frames, mendFrame{at: s.start, unclosed: m.odd.has(s.start)})
	s.assignRole()
	s.findEnds()
	if open := len(s.open) - 1; s.implied() < open { // others end first, and then it is read again
		before.due = open - s.implied() - 1
		before.pieces, before.frames = m.pieces, m.frames[:open]
		*m = before
		s.notes, s.lenient, s.elements, s.empty = s.notes[:notes], s.before, s.elements-1, false
		s.attrs = s.attrs[:0]
		s.pop(s.start)
		return s.popUnclosed()
	}
	if len(s.open) > s.lim.Depth {
		return s.exceeded("depth", s.lim.Depth, i)
	}
	s.findSwallowed()
	if m.frames[len(s.open)-1].role == roleEntry {
		m.entryAt = len(s.open)
	}
	if m.odd.has(s.start) && isVoid(local) {
		s.damaged("unclosed-element", s.start, "element without an end tag", s.doc[i:j])
		s.empty, m.rewrite = true, true
	}
	return Start
}

// mendedAttributes reads the rest of a start tag from i on. It returns false
// when the scan has ended.
func (s *Scanner) mendedAttributes(i int) bool {
	m := s.mend
	m.pieces, m.rewrite = m.pieces[:0], false
	for first := i; ; {
		p := pieceAt(s.doc, i)
		switch p.kind {
		case pieceClose, pieceEmpty:
			s.end, s.empty = p.next, p.kind == pieceEmpty
			return true
		case pieceCut:
			return s.cutTag(p)
		case pieceJunk:
			s.damaged("odd-attribute", p.at, "character that has no place in a tag", "")
			m.rewrite = true
		case pieceAttr:
			if len(m.pieces) == s.lim.Attributes {
				s.exceeded("attributes", s.lim.Attributes, p.at)
				return false
			}
			if p.at == i && i > first {
				s.note("missing-space", p.at, "no space between attributes", "")
			}
			if !s.mendedAttribute(p) {
				return false
			}
		}
		i = p.next
	}
}

// cutTag ends a start tag that has no end.
func (s *Scanner) cutTag(p piece) bool {
	if p.at == len(s.doc) && !s.mend.fragment {
		s.truncated()
		return false
	}
	s.damaged("odd-tag", s.start, "tag without an end", "")
	s.mend.garbled++
	s.end, s.mend.rewrite = p.next, true
	return true
}

// mendedAttribute takes an attribute. It returns false when the scan has ended.
func (s *Scanner) mendedAttribute(p piece) bool {
	m := s.mend
	m.pieces = append(m.pieces, p)
	name := s.doc[p.at:p.nameEnd]
	switch p.flaw {
	case noValue:
		s.recovered("odd-attribute", p.at, "attribute without a value", name)
	case noQuotes:
		s.recovered("odd-attribute", p.at, "attribute value without quotes", name)
	case noClosingQuote:
		if p.to == len(s.doc) && !m.fragment {
			s.truncated()
			return false
		}
		s.damaged("odd-attribute", p.at, "attribute value without a closing quote", name)
	}
	m.rewrite = m.rewrite || p.flaw != noFlaw
	if m.swallowed < 0 && m.entry != "" && strings.Contains(s.doc[p.from:p.to], "<"+m.entry) {
		m.swallowed = p.at
	}
	prefix, local, ok := splitName(name)
	if !ok {
		s.damaged("odd-attribute", p.at, "attribute with a name that XML does not allow", name)
		s.dropped = append(s.dropped, p.at)
		m.rewrite = true
		return true
	}
	s.noteValue(p.from, p.to)
	raw := s.doc[p.from:p.to]
	own := s.open[len(s.open)-1].bindings
	switch {
	case prefix == "xmlns":
		return s.declare(local, raw, p.at, own)
	case prefix == "" && local == "xmlns":
		return s.declare("", raw, p.at, own)
	}
	s.attrs = append(s.attrs, Attr{Prefix: prefix, Local: local, Raw: raw, at: p.at})
	return true
}

// noteValue notes what a value has that it should not.
func (s *Scanner) noteValue(i, end int) {
	for part := s.doc[:end]; ; {
		if i = until(part, i, valueStop); i == end {
			return
		}
		switch part[i] {
		case '"', '\'':
			i++
		case '&':
			kind, n, _ := reference(part[i:])
			if kind != refChar {
				s.noteReference(kind, i, part[i:i+n])
			}
			i += n
		case '<':
			s.note("lt-in-attribute", i, "< in an attribute value", "")
			i++
		default:
			s.control(i)
			i++
		}
	}
}

// appendPieces appends the attributes of the current start tag, written anew.
func (s *Scanner) appendPieces(out []byte, drop func(at int, name string) bool) []byte {
	for _, p := range s.mend.pieces {
		name := s.doc[p.at:p.nameEnd]
		if drop(p.at, name) {
			continue
		}
		raw, quote := s.doc[p.from:p.to], p.quote
		if quote == 0 {
			raw, quote = strings.ReplaceAll(raw, `"`, "&quot;"), '"'
		}
		out = append(append(out, ' '), name...)
		out = append(out, '=', quote)
		out = appendRepairedText(out, raw)
		out = append(out, quote)
	}
	return out
}
