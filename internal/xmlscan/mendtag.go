package xmlscan

import "strings"

// mendedStart reads a start tag; i is after its "<".
func (s *Scanner) mendedStart(i int) Token {
	m := s.mend
	s.before, m.before = s.lenient, m.count
	before := *m
	notes, ahead := len(s.notes), s.ahead
	j := nameEnd(s.doc, i)
	_, local, _ := splitName(s.doc[i:j])
	if s.elements++; s.elements > s.lim.Elements {
		return s.exceeded("elements", s.lim.Elements, i)
	}
	s.rooted = true
	s.dropped = s.dropped[:0]
	s.push(name{start: i, local: j - len(local), end: j, space: noSpace})
	if !s.mendedAttributes(j) || !s.resolveNames() {
		return Stop
	}
	m.frames = append(m.frames, mendFrame{at: s.start, unclosed: m.odd.has(s.start)})
	s.assignRole()
	s.findEnds()
	if open := len(s.open) - 1; s.implied() < open { // other elements end first, and then the tag is read again
		before.due = open - s.implied() - 1
		before.pieces, before.frames = m.pieces, m.frames[:open]
		*m = before
		s.notes, s.lenient, s.elements, s.empty = s.notes[:notes], s.before, s.elements-1, false
		s.attrs, s.ahead = s.attrs[:0], ahead
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

// mendedAttributes reads the rest of a start tag from i on. It returns false if the scan has
// ended.
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

// mendedAttribute takes an attribute. It returns false if the scan has ended.
func (s *Scanner) mendedAttribute(p piece) bool {
	m := s.mend
	m.pieces = append(m.pieces, p)
	written := s.doc[p.at:p.nameEnd]
	switch p.flaw {
	case noValue:
		s.recovered("odd-attribute", p.at, "attribute without a value", written)
	case noQuotes:
		s.recovered("odd-attribute", p.at, "attribute value without quotes", written)
	case noClosingQuote:
		if p.to == len(s.doc) && !m.fragment {
			s.truncated()
			return false
		}
		s.damaged("odd-attribute", p.at, "attribute value without a closing quote", written)
	}
	m.rewrite = m.rewrite || p.flaw != noFlaw
	if m.swallowed < 0 && m.entry != "" && strings.Contains(s.doc[p.from:p.to], "<"+m.entry) {
		m.swallowed = p.at
	}
	_, local, ok := splitName(written)
	if !ok {
		s.damaged("odd-attribute", p.at, "attribute with a name that XML does not allow", written)
		s.dropped = append(s.dropped, p.at)
		m.rewrite = true
		return true
	}
	s.noteValue(p.from, p.to)
	return s.addAttribute(name{start: p.at, local: p.nameEnd - len(local), end: p.nameEnd, space: noSpace}, p.from, p.to)
}

// appendPieces appends the attributes of the current start tag, rewritten.
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
