package xmlscan

import (
	"bytes"
	"fmt"
	"html"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
)

// Entries inherit namespaces, xml:base and xml:lang. A document has them once, but each
// entry needs a copy. This file bounds the cost of these copies.

// A Scope has the namespaces, the base and the language an element inherits.
type Scope struct {
	Bindings []Binding // one for each prefix
	Base     string
	Bases    int // the number of xml:base attributes Base comes from
	Lang     string
	Clean    bool           // see Scanner.Clean; false is always safe
	index    map[string]int // the bindings by prefix, if there are many

	written int   // the length of base and lang, which XML writes on each entry
	bound   int   // the length of all bindings
	reach   Reach // the reach of base
}

// BaseScope returns the scope of something inheriting only a base.
func BaseScope(base string) *Scope { return &Scope{Base: base, reach: ReachOf(base)} }

// Scope returns the scope of the current element's content, given its base and language.
func (c *Cursor) Scope(base, lang string) *Scope {
	sc := &Scope{Base: base, Bases: len(c.bases), Lang: lang}
	sc.written, sc.reach = len(base)+len(lang), ReachOf(base)
	all := c.bindings
	for i, b := range all {
		same := func(inner Binding) bool { return inner.Prefix == b.Prefix }
		if (b.Prefix != "" || b.URI != "") && !slices.ContainsFunc(all[i+1:], same) {
			if sc.Bindings == nil {
				sc.Bindings = make([]Binding, 0, len(all)-i)
			}
			sc.Bindings = append(sc.Bindings, b)
			sc.bound += len(b.Prefix) + len(b.URI)
		}
	}
	if few := 16; len(sc.Bindings) > few {
		sc.index = make(map[string]int, len(sc.Bindings))
		for i, b := range sc.Bindings {
			sc.index[b.Prefix] = i
		}
	}
	return sc
}

// At returns the scope with another base.
func (sc *Scope) At(base string) Scope {
	at := *sc
	at.Base, at.reach = base, Reach{Whole: len(base)}
	if len(base) > ShortBase {
		at.reach = ReachOf(base)
	}
	at.written += len(base) - len(sc.Base)
	return at
}

// LendsAt reports whether an element may inherit another base.
func (sc *Scope) LendsAt(base, element string) bool {
	at := sc.At(base)
	return at.Lends(Loan{Raw: element, Markup: element})
}

// binding returns the index of a prefix's binding; -1 if there is none.
func (sc *Scope) binding(prefix string) int {
	if sc.index != nil {
		if i, ok := sc.index[prefix]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(sc.Bindings, func(b Binding) bool { return b.Prefix == prefix })
}

// needed returns the bindings an element needs outside its document: the default namespace
// of elements without a prefix, and those whose prefix occurs before a colon, in a name or
// in text (xsi:type="x:T").
func (sc *Scope) needed(raw string) (needed []Binding) {
	found, left := make([]bool, len(sc.Bindings)), len(sc.Bindings)
	find := func(prefix string) {
		if i := sc.binding(prefix); i >= 0 && !found[i] {
			found[i] = true
			left--
		}
	}
	if sc.binding("") >= 0 && hasUnprefixed(raw) {
		find("")
	}
	for rest := raw; left > 0; {
		colon := strings.IndexByte(rest, ':')
		if colon < 0 {
			break
		}
		find(rest[nameBefore(rest, colon):colon])
		rest = rest[colon+1:]
	}
	for i, b := range sc.Bindings {
		if found[i] {
			needed = append(needed, b)
		}
	}
	return needed
}

// nameBefore returns the beginning of the name before end.
func nameBefore(s string, end int) int {
	for end > 0 {
		switch c := s[end-1]; {
		case c >= 0x80, 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
			end--
		default:
			return end
		}
	}
	return 0
}

// The limits on an entry's inheritance. Links count with the memory they take.
const (
	MaxInherited      = 16      // times the entry's length
	MaxInheritedExtra = 1 << 10 // plus this many bytes
	RoomOfLink        = 96      // the memory of a link without its target
)

// Affords reports whether an element of n bytes may take the given number of bytes from
// its surroundings. It depends only on the element, because its place in the document
// must not affect its identity.
func Affords(n, borrowed int) bool { return borrowed <= MaxInherited*n+MaxInheritedExtra }

// A Loan is the need of an element for its scope.
type Loan struct {
	Raw    string // the element
	Markup string // the markup with its references
	Links  int    // the bytes its links take
	Reach  Reach  // the reach of the bases within it
}

// Lends reports whether an element may inherit its needs from the scope: the bindings,
// the base, the language, and the base for each of its references.
func (sc *Scope) Lends(l Loan) bool {
	reach := l.Reach.Max(sc.reach)
	own := l.Links + sc.written
	most := own + sc.bound
	if reach.Whole > ShortBase {
		most += reach.Whole * (strings.Count(l.Markup, "=") + strings.Count(l.Markup, "&") + strings.Count(l.Markup, "<"))
	}
	if Affords(len(l.Raw), most) {
		return true // nearly always
	}
	for _, b := range sc.needed(l.Raw) {
		own += len(b.Prefix) + len(b.URI)
	}
	if reach.Whole > ShortBase {
		paths, others := markup.CountRelative(l.Markup)
		own += paths*reach.Path + others*reach.Whole
	}
	return Affords(len(l.Raw), own)
}

// ShortBase is the length up to which a base costs no more than a few times as much as
// a reference to it.
const ShortBase = 64

// Attrs returns the attributes by which an element gives its content the bindings, the
// language and, if told to, the base.
func (sc *Scope) Attrs(bindings []Binding, base bool) string {
	var attrs strings.Builder
	for _, ns := range bindings {
		WriteAttr(&attrs, "xmlns:"+ns.Prefix, ns.URI)
	}
	if base && sc.Base != "" {
		WriteAttr(&attrs, "xml:base", sc.Base)
	}
	if sc.Lang != "" {
		WriteAttr(&attrs, "xml:lang", sc.Lang)
	}
	return attrs.String()
}

// Shareable returns the bindings elements need, in two parts: those an element written
// around them can have, and the others, which are the default namespace and a prefix we
// use ourselves.
func (sc *Scope) Shareable(elements string) (shared, others []Binding) {
	for _, b := range sc.needed(elements) {
		if b.Prefix == "" || b.Prefix == "atom" && b.URI != atomNamespace {
			others = append(others, b)
		} else {
			shared = append(shared, b)
		}
	}
	return shared, others
}

// Declarations returns the attributes for those bindings an element may need. In RSS, elements
// without a prefix may have no namespace, which other formats must say.
func Declarations(element string, bindings []Binding, rss bool) string {
	var attrs strings.Builder
	for _, b := range bindings {
		switch {
		case b.Prefix == "" && hasUnprefixed(element):
			WriteAttr(&attrs, "xmlns", b.URI)
		case b.Prefix != "" && strings.Contains(element, b.Prefix+":"):
			WriteAttr(&attrs, "xmlns:"+b.Prefix, b.URI)
		}
	}
	if rss && !slices.ContainsFunc(bindings, func(b Binding) bool { return b.Prefix == "" }) && hasUnprefixed(element) {
		attrs.WriteString(` xmlns=""`)
	}
	return attrs.String()
}

// hasUnprefixed reports whether there is, or may be, an element without a prefix.
func hasUnprefixed(element string) bool {
	for tag := range strings.SplitSeq(element, "<") {
		tag = tag[:min(len(tag), 100)]
		end := strings.IndexAny(tag, " \t\r\n/>:")
		if tag != "" && (end < 0 || end > 0 && tag[end] != ':') {
			return true
		}
	}
	return false
}

// Alone returns an element with its needs from the scope, ready to be written into any
// document.
func (sc *Scope) Alone(element string, rss bool) string {
	attrs := Declarations(element, sc.needed(element), rss)
	if sc.Base != "" && markup.MayBeRelative(element) {
		s := NewFragment(element, sc.Bindings, Unlimited())
		s.Next()
		own, _ := s.Attr(XMLNamespace, "base")
		if base := iri.Resolve(sc.Base, own); base != own {
			var b strings.Builder
			WriteAttr(&b, "xml:base", base)
			attrs += b.String()
		}
	}
	if attrs == "" {
		return element
	}
	return Standalone(element, sc.Bindings, attrs)
}

// Standalone returns an element with everything its scope contributes, in two parts. The second one is
// the end of raw, unless the first one is empty: then it is the whole element.
func (sc *Scope) Standalone(raw string, lenient bool) (start, rest string) {
	if !lenient && sc.isStandalone(raw) { // as each entry that was written alone
		return "", raw
	}
	s := NewFragment(raw, sc.Bindings, Unlimited())
	s.Next()
	var attrs strings.Builder
	declared := s.Bindings()[len(sc.Bindings):]
	for _, b := range sc.needed(raw) {
		if slices.ContainsFunc(declared, func(own Binding) bool { return own.Prefix == b.Prefix }) {
			continue
		}
		name := "xmlns"
		if b.Prefix != "" {
			name += ":" + b.Prefix
		}
		WriteAttr(&attrs, name, b.URI)
	}
	own, ok := s.Attr(XMLNamespace, "base")
	if base := iri.Resolve(sc.Base, own); base != own {
		WriteAttr(&attrs, "xml:base", base)
		lenient = lenient || ok // its own base must be replaced
	}
	if _, ok := s.Attr(XMLNamespace, "lang"); !ok && sc.Lang != "" {
		WriteAttr(&attrs, "xml:lang", sc.Lang)
	}
	if !lenient && attrs.Len() == 0 {
		return "", raw
	} else if lenient {
		return "", Standalone(raw, nil, attrs.String())
	}
	name := len("<") + len(s.Local())
	if s.Prefix() != "" {
		name += len(s.Prefix()) + len(":")
	}
	return raw[:name] + attrs.String(), raw[name:]
}

// isStandalone reports, without a scan, that a scope contributes nothing to an element. It may be
// wrong in the other direction.
func (sc *Scope) isStandalone(raw string) bool {
	tag, _, _ := strings.Cut(raw, ">")
	if sc.Base != "" || sc.Lang != "" || strings.Contains(tag, "xml:base") || strings.Contains(tag, "'") { // in which there may be anything
		return false
	}
	return !slices.ContainsFunc(sc.needed(raw), func(b Binding) bool {
		if b.Prefix == "" {
			return !strings.Contains(tag, ` xmlns="`)
		}
		return !strings.Contains(tag, " xmlns:"+b.Prefix+`="`)
	})
}

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
		raw := r.doc[r.start:r.end]
		if !IsDense(len(raw), len(raw)+4*strings.Count(raw, "&")) {
			return appendRepairedText(out, raw)
		}
		var b strings.Builder
		WriteText(&b, string(r.AppendText(nil)))
		return append(out, b.String()...)
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
	own := r.bindings[r.save().bindings:r.declared]
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
	case refSurrogates, refWindows:
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

// A ChildElement is a child of an element, by the places where it starts, where its content
// starts, and where its end tag starts and ends.
type ChildElement struct {
	Start, Content, Close, End int
	Text                       string
	Bare                       bool // it has no attributes
	Nested                     bool // it has elements
}

// Children yields the children of an element with a name.
func Children(element, space, local string) iter.Seq[ChildElement] {
	return func(yield func(ChildElement) bool) {
		s := NewFragment(element, nil, Unlimited())
		s.Next()
		for depth := s.Depth(); s.Child(depth); {
			if !s.Is(space, local) {
				continue
			}
			c := ChildElement{Start: s.Offset(), Content: s.End(), Bare: len(s.Attrs()) == 0}
			c.Text = s.ElementText()
			c.Nested, c.Close, c.End = s.Nested(), s.Offset(), s.End()
			if !yield(c) {
				return
			}
		}
	}
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

// Inner returns the markup inside the current element, and moves past it.
func (c *Cursor) Inner() string {
	start, depth := c.End(), c.Depth()
	for c.Next() != Stop && c.Depth() >= depth {
	}
	return c.doc[start:max(start, c.Offset())]
}

// HTML returns the markup inside the div that is the only child of an xhtml construct
// (RFC 4287 §3.1.1.3), or all markup, as HTML: XHTML elements lose their prefix, and
// empty elements get an end tag where HTML requires one. It makes references absolute
// where an inner element has an xml:base, because the result has no such base, and
// returns the base at the div. baseOf returns the base at the current element.
func (c *Cursor) HTML(div bool, baseOf func() string) (body, base string) {
	var b strings.Builder
	depth, bases := c.Depth(), len(c.Bases())
	b.Grow(min(len(c.doc)-c.end, 1<<10))
	base = baseOf()
	const within, after = 1, 2
	state := after // of the div
	if div {
		state = 0
	}
	mixed := !div && strings.HasPrefix(strings.TrimLeft(c.doc[c.end:], " \t\r\n"), "&lt;")
	for tok := c.Next(); tok != Stop && c.Depth() >= depth; tok = c.Next() {
		switch tok {
		case Start:
			if state == 0 && c.Depth() == depth+1 && c.Local() == "div" {
				state, bases, base = within, len(c.Bases()), baseOf()
				continue
			}
			c.writeStart(&b, len(c.bases) > bases, baseOf)
		case End:
			if state == within && c.Depth() == depth {
				state = after
				continue
			}
			if !markup.IsVoid(c.Local()) {
				b.WriteString("</")
				b.WriteString(c.htmlName())
				b.WriteByte('>')
			}
		case Text:
			if mixed { // the publisher escaped some of the markup
				b.Write(c.AppendText(nil))
			} else {
				b.WriteString(c.doc[c.start:c.end])
			}
		case CData:
			textEscaper.write(&b, validUTF8(string(c.AppendText(nil))))
		}
	}
	return strings.Trim(b.String(), " \t\r\n"), base
}

// htmlName returns the current element's name as HTML has it.
func (c *Cursor) htmlName() string {
	if prefix := c.Prefix(); prefix != "" && c.Space() != XHTMLNamespace {
		return prefix + ":" + c.Local()
	}
	return c.Local()
}

func (c *Cursor) writeStart(b *strings.Builder, absolute bool, baseOf func() string) {
	b.WriteByte('<')
	b.WriteString(c.htmlName())
	for _, a := range c.Attrs() {
		name, value := a.Local, a.Value()
		if a.Space == XMLNamespace && name == "base" {
			continue
		}
		if a.Prefix != "" {
			name = a.Prefix + ":" + name
		}
		if absolute {
			value = markup.Resolve(name, baseOf(), value)
		}
		WriteAttr(b, name, value)
	}
	b.WriteByte('>')
}
