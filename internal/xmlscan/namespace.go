package xmlscan

// XMLNamespace is the namespace of the prefix xml, as in xml:base and xml:lang.
const XMLNamespace = "http://www.w3.org/XML/1998/namespace"

// A Binding is a namespace bound to a prefix, the default namespace to "".
type Binding struct{ Prefix, URI string }

// usual holds the namespaces that feeds use, by their usual prefixes: a prefix
// that a feed forgot to declare is taken to mean its usual namespace.
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

// interned maps the URIs of the usual namespaces to the one string for each
// that the program has: comparing a string with itself looks at no bytes.
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

// declare binds a prefix on the element whose own bindings begin at own. It
// returns false when the scan has ended.
func (s *Scanner) declare(prefix, raw string, at, own int) bool {
	uri := intern(Attr{Raw: raw}.Value())
	switch {
	case prefix == "xml" && uri == XMLNamespace:
		return true
	case prefix == "xml", prefix == "xmlns", prefix != "" && uri == "":
		s.note("bad-namespace", at, "namespace declaration that is not allowed", prefix)
		s.dropped = append(s.dropped, at)
		return true
	}
	for i := own; i < len(s.bindings); i++ {
		if s.bindings[i].Prefix == prefix {
			s.duplicate(at, "xmlns:"+clip(prefix))
			return true
		}
	}
	return s.bind(Binding{prefix, uri}, at)
}

func (s *Scanner) bind(b Binding, at int) bool {
	if len(s.bindings) == s.lim.Namespaces {
		s.exceeded("namespaces", s.lim.Namespaces, at)
		return false
	}
	s.bindings = append(s.bindings, b)
	return true
}

// resolve returns the namespace of a prefix that is in use at at. An
// undeclared one is bound to its usual namespace, or to itself, for the element
// and all within it, so that it means the same throughout. ok is false when the
// scan has ended.
func (s *Scanner) resolve(prefix string, at int) (uri string, ok bool) {
	for i := len(s.bindings) - 1; i >= 0; i-- {
		if b := &s.bindings[i]; b.Prefix == prefix {
			return b.URI, true
		}
	}
	switch prefix {
	case "":
		return "", true
	case "xml":
		return XMLNamespace, true
	}
	uri, known := usual[prefix]
	if !known {
		uri = prefix
	}
	s.note("undeclared-prefix", at, "namespace prefix that is not declared", prefix)
	return uri, s.bind(Binding{prefix, uri}, at)
}
