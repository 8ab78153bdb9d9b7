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
	n, ok := s.qname(i)
	if !ok {
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
	s.dropped = s.dropped[:0]
	if s.doc[n.end] == '>' {
		if n.space = s.spaceOf(n); n.space != noSpace || n.local == n.start { // nearly always
			s.push(n)
			s.end, s.declared = n.end+1, len(s.bindings)
			return Start
		}
	}
	s.push(n)
	if !s.attributes(n.end) || !s.resolveNames() {
		return Stop
	}
	return Start
}

// push opens an element.
func (s *Scanner) push(n name) {
	s.name = n
	f := extend(&s.open)
	f.name, f.bindings, f.standard, f.scope, f.langs, f.bases = n, len(s.bindings), s.standard, s.scope, len(s.langs), len(s.bases)
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

// spaceOf returns the binding of the name of an element without attributes; noSpace if there is none.
func (s *Scanner) spaceOf(n name) int {
	if n.local == n.start {
		return s.standard
	}
	return s.binding(s.prefix(n))
}

// attributes reads the rest of a start tag from i on. It returns false if the scan has ended.
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
// in pairs is fastest for few attributes.
func (s *Scanner) dropDuplicates() {
	all, kept := s.attrs, 0
	for k := range all {
		if a := &all[k]; s.isDuplicate(all[:kept], a) {
			s.duplicate(a.name.start, s.local(a))
			continue
		}
		if kept < k {
			all[kept] = all[k]
		}
		kept++
	}
	s.attrs = all[:kept]
}

func (s *Scanner) isDuplicate(kept []attr, a *attr) bool {
	const few = 16
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
	if f.bindings < len(s.bindings) {
		s.bindings, s.standard, s.scope = s.bindings[:f.bindings], f.standard, f.scope
	}
	if f.langs < len(s.langs) {
		s.langs = s.langs[:f.langs]
	}
	if f.bases < len(s.bases) {
		s.bases = s.bases[:f.bases]
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
	if own := s.open[len(s.open)-1].bindings; s.binding(prefix) >= own {
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
