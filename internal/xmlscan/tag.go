package xmlscan

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// An Attr is an attribute other than a namespace declaration.
type Attr struct {
	Space  string // the namespace; "" without a prefix
	Prefix string
	Local  string
	Raw    string // the value as written
}

// Value returns the attribute's value, with references decoded and white space turned into spaces
// (XML 1.0 §3.3.3).
func (a Attr) Value() string {
	if isPlainValue(a.Raw) {
		return a.Raw
	}
	var room [64]byte
	return string(appendDecoded(room[:0], a.Raw, decodeValue))
}

// An attr is an attribute; value:end is the range of its value.
type attr struct {
	name       name
	value, end int
	plain      bool // the value means its characters; false if unknown
}

type attrName struct{ space, local string }

// Attrs returns the attributes of the current Start in document order, without namespace
// declarations. The slice is valid until the next call of Next.
func (s *Scanner) Attrs() []Attr {
	s.list = s.list[:0]
	for i := range s.attrs {
		a, to := &s.attrs[i], extend(&s.list)
		to.Space, to.Prefix, to.Local, to.Raw = s.uri(a.name.space), s.prefix(a.name), s.local(a), s.doc[a.value:a.end]
	}
	return s.list
}

// OwnAttrs yields the local names and the values of the attributes without a namespace.
func (s *Scanner) OwnAttrs() iter.Seq2[string, string] {
	return func(yield func(local, value string) bool) {
		for i := range s.attrs {
			if a := &s.attrs[i]; s.uri(a.name.space) == "" && !yield(s.local(a), s.valueOf(a)) {
				return
			}
		}
	}
}

// Attr returns the value of an attribute of the current Start.
func (s *Scanner) Attr(space, local string) (value string, ok bool) {
	for i := range s.attrs {
		if a := &s.attrs[i]; s.local(a) == local && s.uri(a.name.space) == space {
			return s.valueOf(a), true
		}
	}
	return "", false
}

// startTag reads a start tag; i is after its "<".
func (s *Scanner) startTag(i int) Token {
	s.before = s.lenient
	s.dropped = s.dropped[:0]
	s.known = s.recall(i)
	var n name
	k := s.knownName()
	if k != nil {
		n = name{start: i, local: i + int(k.local), end: i + int(k.size), space: int(k.space)}
		if k.bare && s.elements < s.lim.Elements && len(s.open) < s.lim.Depth { // nearly always
			s.elements++
			s.part = inBody
			s.push(n)
			s.end, s.declared = n.end+1, len(s.bindings)
			return Start
		}
	} else if read, ok := s.qname(i); ok {
		n = read
	} else {
		return Stop
	}
	s.elements++
	switch {
	case s.elements > s.lim.Elements:
		return s.exceeded("elements", s.lim.Elements, i)
	case len(s.open) == s.lim.Depth:
		return s.exceeded("depth", s.lim.Depth, i)
	}
	s.part = inBody
	s.push(n)
	scope := s.scope
	if !s.attributes(n.end) || !s.resolveNames() {
		return Stop
	}
	if s.scope != scope { // the name may have another meaning
		s.known = 0
	} else if k == nil {
		s.remember()
	}
	return Start
}

// Most documents repeat the same few names of elements, in the same order. A scanner may remember them, so
// it need not find their ends, their prefixes and their namespaces again.

// Names are the names a scanner has read last, also in earlier documents.
type Names struct {
	all    [places]knownName // the first two are none
	last   uint8             // the place of the one read last
	missed knownName         // the one not found last, as far as it is known; its size is 0 or 16 if it cannot be remembered
	place  int               // where it may be remembered
}

// places is more than the number of names remembered.
const places = 128

// knownName returns the remembered name of the current Start; nil if there is none.
func (s *Scanner) knownName() *knownName {
	if s.known == 0 {
		return nil
	}
	return &s.Names.all[s.known%places]
}

// A knownName is the name of an element, and its meaning in a scope.
type knownName struct {
	key, mask   nameKey
	scope, memo int // see Memo
	space       int32
	local, size uint8
	next        uint8 // the place of the one that came after it
	bare        bool  // a ">" follows it
}

// A nameKey has the bytes of a name and of the space or ">" after it, and zeros.
type nameKey struct{ first, second uint64 }

// begins reports whether a text begins with the name.
func (k *knownName) begins(text nameKey) bool {
	return (text.first^k.key.first)&k.mask.first|(text.second^k.key.second)&k.mask.second == 0
}

// recall returns the place of the name of the start tag at i; 0 if it is not known.
func (s *Scanner) recall(i int) (known uint8) {
	names := s.Names
	if names == nil || i+16 > len(s.doc) {
		return 0
	}
	text, last := nameKey{eight(s.doc, i), eight(s.doc, i+8)}, &names.all[names.last%places]
	if k := &names.all[last.next%places]; k.begins(text) && k.scope == s.scope {
		names.last = last.next
	} else if !last.begins(text) || last.scope != s.scope {
		return names.find(text, s.scope)
	}
	return names.last
}

// find is recall without a guess.
func (names *Names) find(text nameKey, scope int) (known uint8) {
	size, masks := 0, [2]uint64{}
	for w, word := range [2]uint64{text.first, text.second} {
		if size == 8*w { // no white space or ">" before
			n := first((less(word, '!') | less(word^'>'*ones, 1)) & high)
			size, masks[w] = size+n, full>>(56-8*min(n, 7))
		}
	}
	key := nameKey{text.first & masks[0], text.second & masks[1]}
	names.place = max(2, int((key.first^key.second*3)*0x9e3779b97f4a7c15>>58*2)) // and the next
	for i := range 2 {
		place := uint8(names.place + i)
		if k := &names.all[place%places]; k.key == key && k.scope == scope {
			names.all[names.last%places].next, names.last = place, place
			return place
		}
	}
	names.missed = knownName{key: key, mask: nameKey{masks[0], masks[1]}, scope: scope, size: uint8(size)}
	return 0
}

// Memo returns the place for a number to be remembered with the name of the current Start; nil if it is
// not remembered. A name with another meaning has another one.
func (s *Scanner) Memo() *int {
	if s.tok != Start || s.known == 0 {
		return nil
	}
	return &s.knownName().memo
}

// remember makes the name of the current Start known, if it can be.
func (s *Scanner) remember() {
	n, names := &s.name, s.Names
	if names == nil || n.start+16 > len(s.doc) || names.missed.size%16 == 0 || int(names.missed.size) != n.end-n.start {
		return
	}
	k := &names.missed
	k.space, k.local, k.bare = int32(n.space), uint8(n.local-n.start), s.doc[n.end] == '>'
	names.all[names.place+1], names.all[names.place] = names.all[names.place], *k
	s.known = uint8(names.place)
	names.all[names.last%places].next, names.last = s.known, s.known
}

// push opens an element.
func (s *Scanner) push(n name) {
	s.name = n
	f := extend(&s.open)
	f.name, f.outer = n, len(s.states)
}

// save returns the state outside the innermost element, to be restored at its end. It must be called before
// the element changes anything.
func (s *Scanner) save() *outerState {
	if s.open[len(s.open)-1].outer == len(s.states) {
		s.states = append(s.states, outerState{len(s.bindings), s.standard, s.scope, len(s.langs), len(s.bases)})
	}
	return &s.states[len(s.states)-1]
}

// extend appends an element to fill in: one built elsewhere is copied.
func extend[T any](all *[]T) *T {
	n := len(*all)
	if n == cap(*all) {
		*all = slices.Grow(*all, 1)
	}
	*all = (*all)[:n+1]
	return &(*all)[n]
}

// attributes reads the rest of a start tag from i on. It returns false if the scan has ended.
func (s *Scanner) attributes(i int) bool {
	first := i
	for n := 0; ; n++ {
		j := skipSpace(s.doc, i)
		switch {
		case j == len(s.doc), s.doc[j] == '/' && j == len(s.doc)-1:
			s.truncated()
			return false
		case s.doc[j] == '>':
			s.end = j + 1
			return true
		case s.doc[j] == '/' && s.doc[j+1] == '>':
			s.end = j + 2
			s.empty = true
			return true
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

// attribute reads the attribute at i, and returns where it ends; -1 if the scan has ended.
func (s *Scanner) attribute(i int) int {
	n, ok := s.qname(i)
	if !ok {
		return -1
	}
	begin, end, plain := s.value(n.end)
	if end < 0 || !s.addAttribute(n, begin, end, plain) {
		return -1
	}
	return end + 1
}

// addAttribute takes an attribute whose value is doc[begin:end]. It returns false if the scan has
// ended.
func (s *Scanner) addAttribute(n name, begin, end int, plain bool) bool {
	a := extend(&s.attrs)
	a.name, a.value, a.end, a.plain = n, begin, end, plain
	if s.doc[n.start] != 'x' {
		return true
	}
	prefix, declares := declaredPrefix(s.written(n))
	if declares {
		s.attrs = s.attrs[:len(s.attrs)-1]
		return s.declare(prefix, s.valueOf(a), n.start)
	}
	return true
}

// value reads the equals sign from i on and the quoted value after it. It returns the range within
// the quotes, and whether it is plain; end is -1 if the scan has ended.
func (s *Scanner) value(i int) (begin, end int, plain bool) {
	doc := s.doc
	if !hasPrefixAt(doc, i, `="`) {
		if i = s.quote(i); i < 0 {
			return 0, -1, false
		}
	} else {
		i++
	}
	begin = i + 1
	if end = valueEnd(doc, begin, doc[i]); end < len(doc) && doc[end] == doc[i] {
		return begin, end, true
	}
	n := strings.IndexByte(doc[begin:], doc[i])
	if n < 0 {
		s.noteValue(begin, len(doc))
		s.truncated()
		return 0, -1, false
	}
	s.noteValue(begin, begin+n)
	return begin, begin + n, false
}

// quote reads the equals sign from i on, and returns where the quote after it is; -1 if the scan has
// ended.
func (s *Scanner) quote(i int) int {
	doc := s.doc
	i = skipSpace(doc, i)
	if i < len(doc) && doc[i] != '=' {
		s.syntax(i, "attribute without a value")
		return nowhere
	}
	i = skipSpace(doc, i+1)
	switch {
	case i >= len(doc):
		s.truncated()
		return nowhere
	case doc[i] != '"' && doc[i] != '\'':
		s.syntax(i, "attribute value without quotes")
		return nowhere
	}
	return i
}

// qname reads the qualified name at i; ok is false if the scan has ended.
func (s *Scanner) qname(i int) (n name, ok bool) {
	doc, local, end := s.doc, i, nameStopAt(s.doc, i)
	if end > i && hasPrefixAt(doc, end, ":") {
		if after := nameStopAt(doc, end+1); after > end+1 {
			local, end = end+1, after
		}
	}
	if end == i || end == len(doc) || class[doc[i]]&nameStart == 0 || class[doc[end]]&nameByte != 0 {
		return s.oddName(i)
	}
	return name{start: i, local: local, end: end, space: noSpace}, true
}

// oddName is qname for names with characters beyond ASCII, or with more or other colons than one
// between a prefix and a local part.
func (s *Scanner) oddName(i int) (n name, ok bool) {
	end := nameEnd(s.doc, i)
	written := s.doc[i:end]
	if end == len(s.doc) {
		s.truncated()
		return n, false
	}
	if strings.Count(written, ":") > 1 || strings.HasPrefix(written, ":") || strings.HasSuffix(written, ":") {
		s.syntax(i, "name with a misplaced colon")
		return n, false
	}
	_, local, ok := splitName(written)
	if !ok {
		s.syntax(i, "expected a name")
	}
	return name{start: i, local: end - len(local), end: end, space: noSpace}, ok
}

// resolveNames sets the namespaces of the current tag and its attributes, after all of the tag's
// declarations have been read.
func (s *Scanner) resolveNames() (ok bool) {
	s.declared = len(s.bindings)
	n := &s.name
	if n.local == n.start {
		n.space = s.standard
	} else if prefix := s.prefix(*n); prefix == "xmlns" {
		s.syntax(n.start, "element with the prefix xmlns")
		return false
	} else if n.space, ok = s.resolve(prefix, n.start); !ok {
		return false
	}
	s.open[len(s.open)-1].name.space = n.space
	prefixed := false
	for k := range s.attrs {
		a := &s.attrs[k].name
		if a.local == a.start {
			continue
		}
		prefixed = true
		if a.space, ok = s.resolve(s.prefix(*a), a.start); !ok {
			return false
		}
	}
	if len(s.attrs) > 1 {
		s.dropDuplicates()
	}
	if prefixed {
		for k := range s.attrs {
			if a := &s.attrs[k]; s.uri(a.name.space) == XMLNamespace {
				s.inherit(a)
			}
		}
	}
	return true
}

// maxLang is longer than any language tag (RFC 5646 §4.4.1).
const maxLang = 64

// inherit makes xml:base and xml:lang apply to the elements inside the current one.
func (s *Scanner) inherit(a *attr) {
	s.save()
	at := a.name.start
	switch s.local(a) {
	case "base":
		b := Base{Ref: s.valueOf(a), At: at}
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
		if a.end-a.value > maxLang {
			s.note("language-too-long", at, "xml:lang that is longer than any language tag", s.doc[a.value:a.end])
			s.dropped = append(s.dropped, at)
			return
		}
		s.langs = append(s.langs, s.valueOf(a))
	}
}

// dropDuplicates keeps the first of several attributes with the same expanded name. Comparing them
// in pairs is fastest for few attributes; most differ by their length and first letter.
func (s *Scanner) dropDuplicates() {
	all, kept := s.attrs, 0
	var seen uint64
	for k := range all {
		a := &all[k]
		kind := uint64(1) << ((a.name.end - a.name.local + int(s.doc[a.name.local])) & 63)
		if (seen&kind != 0 || len(all) > few) && s.isDuplicate(all[:kept], a) {
			s.duplicate(a.name.start, s.local(a))
			continue
		}
		seen |= kind
		if kept < k {
			all[kept] = all[k]
		}
		kept++
	}
	s.attrs = all[:kept]
}

// few is the largest number of attributes that are compared in pairs.
const few = 16

func (s *Scanner) isDuplicate(kept []attr, a *attr) bool {
	local := s.local(a)
	if len(s.attrs) <= few {
		for i := range kept {
			if b := &kept[i]; s.local(b) == local && s.uri(b.name.space) == s.uri(a.name.space) {
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
	s.seen[attrName{s.uri(a.name.space), local}] = struct{}{}
	return len(s.seen) == n
}

func (s *Scanner) duplicate(at int, name string) {
	s.note("duplicate-attribute", at, "attribute that the element already has", name)
	s.dropped = append(s.dropped, at)
}

// endTag reads an end tag; i is after its "</".
func (s *Scanner) endTag(i int) Token {
	if len(s.open) == 0 {
		return s.syntax(s.start, "end tag without a start tag")
	}
	name := s.written(s.open[len(s.open)-1].name)
	end := i + len(name)
	switch {
	case end < len(s.doc) && s.doc[end] == '>' && s.doc[i:end] == name: // nearly always
		return s.pop(end + 1)
	case !hasPrefixAt(s.doc, i, name) && strings.HasPrefix(name, s.doc[i:]):
		return s.truncated()
	case !hasPrefixAt(s.doc, i, name):
		return s.mismatch(i, name)
	}
	end = skipSpace(s.doc, end)
	switch {
	case end == len(s.doc):
		return s.truncated()
	case s.doc[end] != '>':
		return s.mismatch(end, name)
	}
	return s.pop(end + 1)
}

func (s *Scanner) mismatch(i int, name string) Token {
	return s.syntax(i, "expected the end tag of <"+clip(name)+">")
}

// pop closes the innermost element; its End ends at end.
func (s *Scanner) pop(end int) Token {
	n := len(s.open) - 1
	f := &s.open[n]
	s.name = f.name
	if f.outer < len(s.states) {
		o := &s.states[f.outer]
		s.bindings, s.standard, s.scope = s.bindings[:o.bindings], o.standard, o.scope
		s.langs, s.bases, s.states = s.langs[:o.langs], s.bases[:o.bases], s.states[:f.outer]
	}
	s.open = s.open[:n]
	s.end = end
	return End
}

// The namespaces the scanner itself knows.
const (
	xmlnsNamespace = "http://www.w3.org/2000/xmlns/"        // of declarations; no prefix may have it
	XMLNamespace   = "http://www.w3.org/XML/1998/namespace" // of the prefix xml, as in xml:base and xml:lang
	XHTMLNamespace = "http://www.w3.org/1999/xhtml"
	atomNamespace  = "http://www.w3.org/2005/Atom"
)

// A Binding binds a namespace to a prefix; the prefix of the default namespace is "".
type Binding struct{ Prefix, URI string }

// usual are the namespaces used in feeds, by their usual prefixes: an undeclared prefix means
// its usual namespace.
var usual = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"admin":      "http://webns.net/mvcb/",
		"app":        "http://www.w3.org/2007/app",
		"at":         "http://purl.org/atompub/tombstones/1.0",
		"atom":       "http://www.w3.org/2005/Atom",
		"cc":         "http://web.resource.org/cc/",
		"content":    "http://purl.org/rss/1.0/modules/content/",
		"dc":         "http://purl.org/dc/elements/1.1/",
		"dcterms":    "http://purl.org/dc/terms/",
		"feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
		"fh":         "http://purl.org/syndication/history/1.0",
		"geo":        "http://www.w3.org/2003/01/geo/wgs84_pos#",
		"georss":     "http://www.georss.org/georss",
		"googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
		"itunes":     "http://www.itunes.com/dtds/podcast-1.0.dtd",
		"media":      "http://search.yahoo.com/mrss/",
		"opensearch": "http://a9.com/-/spec/opensearch/1.1/",
		"openSearch": "http://a9.com/-/spec/opensearch/1.1/",
		"podcast":    "https://podcastindex.org/namespace/1.0",
		"psc":        "http://podlove.org/simple-chapters",
		"rdf":        "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
		"slash":      "http://purl.org/rss/1.0/modules/slash/",
		"sy":         "http://purl.org/rss/1.0/modules/syndication/",
		"thr":        "http://purl.org/syndication/thread/1.0",
		"wfw":        "http://wellformedweb.org/CommentAPI/",
		"xhtml":      "http://www.w3.org/1999/xhtml",
	}
})

// interned maps the URI of each usual namespace to one string: comparing a string with itself
// examines no bytes.
var interned = sync.OnceValue(func() map[string]string {
	m := make(map[string]string, len(usual()))
	for _, uri := range usual() {
		m[uri] = uri
	}
	return m
})

func intern(uri string) string {
	if s, ok := interned()[uri]; ok {
		return s
	}
	return uri
}

// namespaces are the bindings in scope, by which the names in an input get their meaning.
type namespaces struct {
	notebook
	bindings []Binding
	standard int // the index of the default namespace in bindings; noSpace if there is none
	scope    int // a number for the bindings in scope
	scopes   int // the largest so far

	outer      []Binding // those around a fragment
	outerScope int       // their scope
}

// inside returns the namespaces for a fragment inside the bindings, in the same memory. Bindings given
// again are the same scope.
func (ns *namespaces) inside(outer []Binding) namespaces {
	scope, scopes := ns.outerScope, ns.scopes
	if scope == 0 || len(outer) != len(ns.outer) || len(outer) > 0 && &outer[0] != &ns.outer[0] {
		scopes++
		scope = scopes
	}
	return namespaces{bindings: append(ns.bindings[:0], outer...), scope: scope, scopes: scopes, outer: outer, outerScope: scope}
}

// Bindings returns the namespace bindings in scope, the innermost of a prefix last, without the
// predeclared xml. An undeclared prefix counts as declared on the element where it first occurs.
// They are valid until the next call of Next.
func (ns *namespaces) Bindings() []Binding { return ns.bindings }

// binding returns the innermost binding of a prefix; noSpace if there is none.
func (ns *namespaces) binding(prefix string) int {
	for i := len(ns.bindings) - 1; i >= 0; i-- {
		if ns.bindings[i].Prefix == prefix {
			return i
		}
	}
	return noSpace
}

// uri returns the namespace of a name. At an End it may be out of scope.
func (ns *namespaces) uri(space int) string {
	switch space {
	case noSpace:
		return ""
	case xmlSpace:
		return XMLNamespace
	}
	return ns.bindings[:cap(ns.bindings)][space].URI
}

// prefix returns the prefix of a name; "" if there is none.
func (ns *namespaces) prefix(n name) string { return ns.doc[n.start:max(n.start, n.local-1)] }

// valueOf returns the value of an attribute.
func (ns *namespaces) valueOf(a *attr) string {
	raw := ns.doc[a.value:a.end]
	if a.plain {
		return raw
	}
	return Attr{Raw: raw}.Value()
}

func (ns *namespaces) local(a *attr) string { return ns.doc[a.name.local:a.name.end] }

// written returns a name as it is written.
func (ns *namespaces) written(n name) string { return ns.doc[n.start:n.end] }

// declare binds a prefix on the current element. It returns false if the scan has ended.
func (s *Scanner) declare(prefix, uri string, at int) bool {
	uri = intern(uri)
	switch {
	case prefix == "xml" && uri == XMLNamespace:
		return true
	case prefix == "xml", prefix == "xmlns", prefix != "" && uri == "", uri == XMLNamespace, uri == xmlnsNamespace:
		s.note("bad-namespace", at, "namespace declaration that is not allowed", prefix)
		s.dropped = append(s.dropped, at)
		return true
	}
	if s.binding(prefix) >= s.save().bindings {
		s.duplicate(at, "xmlns:"+clip(prefix))
		return true
	}
	return s.bind(Binding{prefix, uri}, at)
}

func (s *Scanner) bind(b Binding, at int) bool {
	if len(s.bindings) == s.lim.Namespaces {
		s.exceeded("namespaces", s.lim.Namespaces, at)
		return false
	}
	s.save()
	if b.Prefix == "" {
		s.standard = len(s.bindings)
	}
	s.bindings = append(s.bindings, b)
	s.scopes++
	s.scope = s.scopes
	return true
}

// resolve returns the binding of a prefix used at the offset at. It binds an undeclared prefix
// to its usual namespace, or to itself, for the element and everything inside it, so its
// meaning stays the same there. ok is false if the scan has ended.
func (s *Scanner) resolve(prefix string, at int) (space int, ok bool) {
	if space = s.binding(prefix); space != noSpace {
		return space, true
	}
	if prefix == "xml" {
		return xmlSpace, true
	}
	uri, known := usual()[prefix]
	if !known {
		uri = prefix
	}
	s.note("undeclared-prefix", at, "namespace prefix that is not declared", prefix)
	return len(s.bindings), s.bind(Binding{prefix, uri}, at)
}

// An inheritance has the attributes elements pass on to their content: xml:base and
// xml:lang.
type inheritance struct {
	langs  []string
	bases  []Base
	reach  Reach // the largest reach of bases since it was last requested
	around Reach // the reach of the base around all of them
}

// A Base is the value of an xml:base attribute.
type Base struct {
	Ref   string // with its character references decoded, but not resolved
	At    int    // the offset of the attribute in the document
	Reach Reach  // its reach when resolved against the bases around it
}

// A BaseChain resolves the xml:base attributes in scope, each once while it is in scope.
// The zero value is ready to use.
type BaseChain struct{ resolved []resolvedBase }

// A resolvedBase is an xml:base attribute, identified by its place, and the URL it resolves
// to.
type resolvedBase struct {
	at  int
	url string
}

// Resolve returns the base inside attributes, outermost first, around which the base is
// root. A base longer than most bytes has no effect.
func (c *BaseChain) Resolve(root string, attributes []Base, most int) string {
	n := min(len(attributes), len(c.resolved))
	for n > 0 && c.resolved[n-1].at != attributes[n-1].At {
		n--
	}
	base := root
	if c.resolved = c.resolved[:n]; n > 0 {
		base = c.resolved[n-1].url
	}
	for _, b := range attributes[n:] {
		if inner := iri.Resolve(base, b.Ref); len(inner) <= most {
			base = inner
		}
		c.resolved = append(c.resolved, resolvedBase{b.At, base})
	}
	return base
}

// Reset forgets the attributes, and keeps the memory.
func (c *BaseChain) Reset() { c.resolved = c.resolved[:0] }

// A Reach is the maximum length of a base.
type Reach struct {
	Path  int // the length up to the last slash, which a relative path keeps
	Whole int
}

// ReachOf returns the reach of a base alone.
func ReachOf(base string) Reach {
	path, _, _ := strings.Cut(base, "#")
	path, _, _ = strings.Cut(path, "?")
	return Reach{strings.LastIndexByte(path, '/') + 1, len(base)}
}

// Max returns the larger of two reaches in both fields.
func (r Reach) Max(other Reach) Reach {
	return Reach{max(r.Path, other.Path), max(r.Whole, other.Whole)}
}

// within returns the reach of a base resolved against another.
func (r Reach) within(outer Reach) Reach {
	return Reach{outer.Path + r.Path, max(outer.Path+r.Whole, outer.Whole)}
}

// Bases returns the values of xml:base in scope, outermost first. They are valid until the next
// call of Next.
func (h *inheritance) Bases() []Base { return h.bases }

// Around sets the base surrounding all others.
func (h *inheritance) Around(base string) { h.around = ReachOf(base) }

// TakeReach returns the largest reach of the bases new in scope since its last call; zero if there
// were none.
func (h *inheritance) TakeReach() (r Reach) {
	r, h.reach = h.reach, r
	return r
}

// Lang returns the value of xml:lang in scope, and whether there is one. An empty value ends the
// scope of another.
func (h *inheritance) Lang() (lang string, ok bool) {
	if len(h.langs) == 0 {
		return "", false
	}
	return h.langs[len(h.langs)-1], true
}
