package xmlscan

import "strings"

// startTag reads a start tag; i is after its "<".
func (m *Mender) startTag(i int) Token {
	m.before, m.countBefore = m.lenient, m.count
	before := *m
	notes, ahead := len(m.notes), m.ahead
	j := nameEnd(m.doc, i)
	_, local, _ := splitName(m.doc[i:j])
	if m.elements++; m.elements > m.lim.Elements {
		return m.exceeded("elements", m.lim.Elements, i)
	}
	m.part = inBody
	m.dropped = m.dropped[:0]
	m.push(name{start: i, local: j - len(local), end: j, space: noSpace})
	if !m.attributes(j) || !m.resolveNames() {
		return Stop
	}
	m.frames = append(m.frames, mendFrame{at: m.start, unclosed: m.odd.has(m.start)})
	m.assignRole()
	m.findEnds()
	if open := len(m.open) - 1; m.implied() < open { // other elements end first, and then the tag is read again
		before.due = open - m.implied() - 1
		before.pieces, before.frames = m.pieces, m.frames[:open]
		*m = before
		m.notes, m.lenient, m.elements, m.empty = m.notes[:notes], m.before, m.elements-1, false
		m.attrs, m.ahead = m.attrs[:0], ahead
		m.pop(m.start)
		return m.popUnclosed()
	}
	if len(m.open) > m.lim.Depth {
		return m.exceeded("depth", m.lim.Depth, i)
	}
	m.findSwallowed()
	if m.frames[len(m.open)-1].role == roleEntry {
		m.entryAt = len(m.open)
	}
	if m.odd.has(m.start) && isVoid(local) {
		m.damaged("unclosed-element", m.start, "element without an end tag", m.doc[i:j])
		m.empty, m.rewrite = true, true
	}
	return Start
}

// attributes reads the rest of a start tag from i on. It returns false if the scan has
// ended.
func (m *Mender) attributes(i int) bool {
	m.pieces, m.rewrite = m.pieces[:0], false
	for first := i; ; {
		p := pieceAt(m.doc, i)
		switch p.kind {
		case pieceClose, pieceEmpty:
			m.end, m.empty = p.next, p.kind == pieceEmpty
			return true
		case pieceCut:
			return m.cutTag(p)
		case pieceJunk:
			m.damaged("odd-attribute", p.at, "character that has no place in a tag", "")
			m.rewrite = true
		case pieceAttr:
			if len(m.pieces) == m.lim.Attributes {
				m.exceeded("attributes", m.lim.Attributes, p.at)
				return false
			}
			if p.at == i && i > first {
				m.note("missing-space", p.at, "no space between attributes", "")
			}
			if !m.attribute(p) {
				return false
			}
		}
		i = p.next
	}
}

// cutTag ends a start tag without an end.
func (m *Mender) cutTag(p piece) bool {
	if p.at == len(m.doc) && !m.fragment {
		m.truncated()
		return false
	}
	m.damaged("odd-tag", m.start, "tag without an end", "")
	m.garbled++
	m.end, m.rewrite = p.next, true
	return true
}

// attribute takes an attribute. It returns false if the scan has ended.
func (m *Mender) attribute(p piece) bool {
	m.pieces = append(m.pieces, p)
	written := m.doc[p.at:p.nameEnd]
	switch p.flaw {
	case noValue:
		m.recovered("odd-attribute", p.at, "attribute without a value", written)
	case noQuotes:
		m.recovered("odd-attribute", p.at, "attribute value without quotes", written)
	case noClosingQuote:
		if p.to == len(m.doc) && !m.fragment {
			m.truncated()
			return false
		}
		if strings.ContainsAny(strings.TrimSpace(m.doc[p.from:p.to]), " \t\r\n=") {
			m.damaged("odd-attribute", p.at, "attribute value without a closing quote", written)
		} else { // nothing else is in it
			m.recovered("odd-attribute", p.at, "attribute value without a closing quote", written)
		}
	}
	m.rewrite = m.rewrite || p.flaw != noFlaw
	if m.swallowedAt < 0 && m.entry != "" && strings.Contains(m.doc[p.from:p.to], "<"+m.entry) {
		m.swallowedAt = p.at
	}
	_, local, ok := splitName(written)
	if !ok {
		m.damaged("odd-attribute", p.at, "attribute with a name that XML does not allow", written)
		m.dropped = append(m.dropped, p.at)
		m.rewrite = true
		return true
	}
	m.noteValue(p.from, p.to)
	return m.addAttribute(name{start: p.at, local: p.nameEnd - len(local), end: p.nameEnd, space: noSpace}, p.from, p.to)
}

// appendPieces appends the attributes of the current start tag, rewritten.
func (m *Mender) appendPieces(out []byte, drop func(at int, name string) bool) []byte {
	for _, p := range m.pieces {
		name := m.doc[p.at:p.nameEnd]
		if drop(p.at, name) {
			continue
		}
		raw, quote := m.doc[p.from:p.to], p.quote
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
