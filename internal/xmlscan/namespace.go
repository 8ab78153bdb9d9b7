package xmlscan

// XMLNamespace is the namespace of the prefix xml, as in xml:base and xml:lang.
const XMLNamespace = "http://www.w3.org/XML/1998/namespace"

// A Binding binds a namespace to a prefix; the prefix of the default namespace is "".
type Binding struct{ Prefix, URI string }

// usual are the namespaces used in feeds, by their usual prefixes: an undeclared prefix means
// its usual namespace.
var usual = map[string]string{
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

// interned maps the URI of each usual namespace to one string: comparing a string with itself
// examines no bytes.
var interned = func() map[string]string {
	m := make(map[string]string, len(usual))
	for _, uri := range usual {
		m[uri] = uri
	}
	return m
}()

func intern(uri string) string {
	if s, ok := interned[uri]; ok {
		return s
	}
	return uri
}

// namespaces are the bindings in scope, by which the names in an input get their meaning.
type namespaces struct {
	notebook
	bindings []Binding
	standard int // the index of the default namespace in bindings; noSpace if there is none
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

func (ns *namespaces) attr(a *attr) Attr {
	return Attr{Space: ns.uri(a.name.space), Prefix: ns.prefix(a.name), Local: ns.local(a), Raw: ns.doc[a.value:a.end]}
}

func (ns *namespaces) local(a *attr) string { return ns.doc[a.name.local:a.name.end] }

// written returns a name as it is written.
func (ns *namespaces) written(n name) string { return ns.doc[n.start:n.end] }

// declare binds a prefix on the current element. It returns false if the scan has ended.
func (s *Scanner) declare(prefix, raw string, at int) bool {
	uri := intern(Attr{Raw: raw}.Value())
	switch {
	case prefix == "xml" && uri == XMLNamespace:
		return true
	case prefix == "xml", prefix == "xmlns", prefix != "" && uri == "":
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
	return true
}

// resolve returns the binding of a prefix used at the offset at. It binds an undeclared prefix
// to its usual namespace, or to itself, for the element and everything inside it, so its
// meaning stays the same there. ok is false if the scan has ended.
func (s *Scanner) resolve(prefix string, at int) (space int, ok bool) {
	if prefix == "" {
		return s.standard, true
	}
	if space = s.binding(prefix); space != noSpace {
		return space, true
	}
	if prefix == "xml" {
		return xmlSpace, true
	}
	uri, known := usual[prefix]
	if !known {
		uri = prefix
	}
	s.note("undeclared-prefix", at, "namespace prefix that is not declared", prefix)
	return len(s.bindings), s.bind(Binding{prefix, uri}, at)
}
