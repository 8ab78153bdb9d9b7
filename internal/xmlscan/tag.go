package xmlscan

import "strings"

// An Attr is an attribute other than a namespace declaration.
type Attr struct {
	Space  string // namespace, "" without a prefix
	Prefix string
	Local  string
	Raw    string // the value as written

	at int // where it begins in the document
}

// Value returns the attribute's value: references are decoded, white space
// is made spaces (XML 1.0, 3.3.3).
func (a Attr) Value() string {
	if until(a.Raw, 0, decodeValue) == len(a.Raw) {
		return a.Raw
	}
	return string(appendDecoded(nil, a.Raw, decodeValue))
}

type attrName struct{ space, local string }

// Attrs returns the attributes of the current Start in document order, without
// namespace declarations. The slice is valid until the next Next.
func (s *Scanner) Attrs() []Attr { return s.attrs }

// Attr returns the value of an attribute of the current Start.
func (s *Scanner) Attr(space, local string) (value string, ok bool) {
	for i := range s.attrs {
		if a := &s.attrs[i]; a.Local == local && a.Space == space {
			return a.Value(), true
		}
	}
	return "", false
}

// startTag reads a start tag, i being after its "<".
func (s *Scanner) startTag(i int) Token {
	s.before = s.lenient
	prefix, local, j := s.qname(i)
	if j < 0 {
		return Stop
	}
	s.elements++
	switch {
	case s.elements > s.lim.Elements:
		return s.exceeded("elements", s.lim.Elements, i)
	case len(s.open) == s.lim.Depth:
		return s.exceeded("depth", s.lim.Depth, i)
	}
	f := frame{raw: s.doc[i:j], bindings: len(s.bindings), bases: len(s.bases)}
	f.lang, f.hasLang = s.Lang()
	s.rooted = true
	s.dropped = s.dropped[:0]
	s.open = append(s.open, f)
	if !s.attributes(j) || !s.resolveNames(prefix, local, i) {
		return Stop
	}
	return Start
}

// attributes reads the rest of a start tag from i on. It returns false when the
// scan has ended.
func (s *Scanner) attributes(i int) bool {
	first := i
	for n := 0; ; n++ {
		j := skipSpace(s.doc, i)
		switch {
		case hasPrefixAt(s.doc, j, ">"):
			s.end = j + 1
			return true
		case hasPrefixAt(s.doc, j, "/>"):
			s.end = j + 2
			s.empty = true
			return true
		case j == len(s.doc), j == len(s.doc)-1 && s.doc[j] == '/':
			s.truncated()
			return false
		case n == s.lim.Attributes:
			s.exceeded("attributes", n, j)
			return false
		case j == i && i > first:
			s.note("missing-space", j, "no space between attributes", "")
		}
		if i = s.attribute(j); i < 0 {
			return false
		}
	}
}

// attribute reads the attribute at i and returns where it ends, or -1 when the
// scan has ended.
func (s *Scanner) attribute(i int) int {
	prefix, local, j := s.qname(i)
	if j < 0 {
		return -1
	}
	begin, end := s.value(j)
	if end < 0 {
		return -1
	}
	raw := s.doc[begin:end]
	own := s.open[len(s.open)-1].bindings
	ok := true
	switch {
	case prefix == "xmlns":
		ok = s.declare(local, raw, i, own)
	case prefix == "" && local == "xmlns":
		ok = s.declare("", raw, i, own)
	default:
		s.attrs = append(s.attrs, Attr{Prefix: prefix, Local: local, Raw: raw, at: i})
	}
	if !ok {
		return -1
	}
	return end + 1
}

// value reads the equals sign from i on and the quoted value behind it, whose
// range within the quotes it returns; end is -1 when the scan has ended.
func (s *Scanner) value(i int) (begin, end int) {
	doc := s.doc
	i = skipSpace(doc, i)
	if i < len(doc) && doc[i] != '=' {
		s.syntax(i, "attribute without a value")
		return 0, -1
	}
	i = skipSpace(doc, i+1)
	if i >= len(doc) {
		s.truncated()
		return 0, -1
	}
	quote := doc[i]
	if quote != '"' && quote != '\'' {
		s.syntax(i, "attribute value without quotes")
		return 0, -1
	}
	begin = i + 1
	for i = begin; ; {
		i = until(doc, i, valueStop)
		if i == len(doc) {
			s.truncated()
			return 0, -1
		}
		switch c := doc[i]; c {
		case quote:
			return begin, i
		case '"', '\'':
			i++
		case '&':
			i += s.reference(i)
		case '<':
			s.note("lt-in-attribute", i, "< in an attribute value", "")
			i++
		default:
			s.control(i)
			i++
		}
	}
}

// qname reads the qualified name at i and returns where it ends, or -1 when
// the scan has ended. A colon at either end of a name separates nothing.
func (s *Scanner) qname(i int) (prefix, local string, end int) {
	doc := s.doc
	colon, bits := -1, byte(0)
	j := i
	for ; j < len(doc); j++ {
		c := doc[j]
		if class[c]&nameByte == 0 {
			break
		}
		bits |= c
		if c == ':' {
			if colon >= 0 {
				s.syntax(i, "name with two colons")
				return "", "", -1
			}
			colon = j
		}
	}
	switch name := doc[i:j]; {
	case j == len(doc):
		s.truncated()
		return "", "", -1
	case j == i || class[doc[i]]&nameStart == 0 || bits >= 0x80 && !validName(name):
		s.syntax(i, "expected a name")
		return "", "", -1
	case colon <= i || colon == j-1:
		return "", name, j
	}
	return doc[i:colon], doc[colon+1 : j], j
}

// resolveNames gives the tag at i and its attributes their namespaces, once all
// of the tag's own declarations are known.
func (s *Scanner) resolveNames(prefix, local string, i int) (ok bool) {
	f := &s.open[len(s.open)-1]
	s.declared = len(s.bindings)
	if prefix == "xmlns" {
		s.syntax(i, "element with the prefix xmlns")
		return false
	}
	f.name = name{prefix: prefix, local: local}
	if f.name.space, ok = s.resolve(prefix, i); !ok {
		return false
	}
	s.name = f.name
	for k := range s.attrs {
		a := &s.attrs[k]
		if a.Prefix == "" {
			continue
		}
		if a.Space, ok = s.resolve(a.Prefix, a.at); !ok {
			return false
		}
	}
	s.dropDuplicates()
	for k := range s.attrs {
		if a := &s.attrs[k]; a.Space == XMLNamespace {
			s.inherit(f, a)
		}
	}
	return true
}

// maxLang is longer than any language tag (RFC 5646 §4.4.1).
const maxLang = 64

// inherit lets xml:base and xml:lang reach the elements within f.
func (s *Scanner) inherit(f *frame, a *Attr) {
	switch a.Local {
	case "base":
		b := Base{Ref: a.Value(), At: a.at}
		switch b.Reach = ReachOf(b.Ref); {
		case strings.Contains(b.Ref, "://"):
		case len(s.bases) > 0:
			b.Reach = b.Reach.within(s.bases[len(s.bases)-1].Reach)
		default:
			b.Reach = b.Reach.within(s.around)
		}
		s.bases = append(s.bases, b)
		s.reach = s.reach.Max(b.Reach)
	case "lang":
		if len(a.Raw) > maxLang {
			s.note("language-too-long", a.at, "xml:lang that is longer than any language tag", a.Raw)
			s.dropped = append(s.dropped, a.at)
			return
		}
		f.lang, f.hasLang = a.Value(), true
	}
}

// dropDuplicates keeps the first of the attributes that have the same expanded
// name. Comparing them in pairs is quickest for the few that elements have.
func (s *Scanner) dropDuplicates() {
	kept := s.attrs[:0]
	for _, a := range s.attrs {
		if s.isDuplicate(kept, a) {
			s.duplicate(a.at, a.Local)
		} else {
			kept = append(kept, a)
		}
	}
	s.attrs = kept
}

func (s *Scanner) isDuplicate(kept []Attr, a Attr) bool {
	const few = 16
	if len(s.attrs) <= few {
		for i := range kept {
			if b := &kept[i]; b.Local == a.Local && b.Space == a.Space {
				return true
			}
		}
		return false
	}
	if len(kept) == 0 {
		clear(s.seen)
	}
	if s.seen == nil {
		s.seen = make(map[attrName]struct{})
	}
	n := len(s.seen)
	s.seen[attrName{a.Space, a.Local}] = struct{}{}
	return len(s.seen) == n
}

func (s *Scanner) duplicate(at int, name string) {
	s.note("duplicate-attribute", at, "attribute that the element already has", name)
	s.dropped = append(s.dropped, at)
}

// endTag reads an end tag, i being after its "</".
func (s *Scanner) endTag(i int) Token {
	if len(s.open) == 0 {
		return s.syntax(s.start, "end tag without a start tag")
	}
	raw := s.open[len(s.open)-1].raw
	if !hasPrefixAt(s.doc, i, raw) {
		if strings.HasPrefix(raw, s.doc[i:]) {
			return s.truncated()
		}
		return s.mismatch(i, raw)
	}
	i = skipSpace(s.doc, i+len(raw))
	switch {
	case i == len(s.doc):
		return s.truncated()
	case s.doc[i] != '>':
		return s.mismatch(i, raw)
	}
	return s.pop(i + 1)
}

func (s *Scanner) mismatch(i int, raw string) Token {
	return s.syntax(i, "expected the end tag of <"+clip(raw)+">")
}

// pop closes the innermost element, whose End ends at end.
func (s *Scanner) pop(end int) Token {
	n := len(s.open) - 1
	f := &s.open[n]
	s.name = f.name
	s.bindings = s.bindings[:f.bindings]
	s.bases = s.bases[:f.bases]
	s.open = s.open[:n]
	s.end = end
	return End
}
