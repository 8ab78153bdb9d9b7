package feedxml

import (
	"cmp"
	"mime"
	"strings"
	"sync"
)

// The namespaces with a meaning in feeds. Elements are recognised by namespace, never
// by prefix.
const (
	Atom        = "http://www.w3.org/2005/Atom"
	Atom03      = "http://purl.org/atom/ns#"
	Content     = "http://purl.org/rss/1.0/modules/content/"
	Coverage    = "https://github.com/feedhistory/feedhistory/ns/mirror/1.0" // of mirror, gap and kept: see feedhistory.Coverage
	DC          = "http://purl.org/dc/elements/1.1/"
	DCTerms     = "http://purl.org/dc/terms/"
	History     = "http://purl.org/syndication/history/1.0"
	ITunes      = "http://www.itunes.com/dtds/podcast-1.0.dtd"
	JSONMembers = "https://github.com/feedhistory/feedhistory/ns/json/1.0" // of json: members of a JSON Feed
	Media       = "http://search.yahoo.com/mrss/"
	RSS1        = "http://purl.org/rss/1.0/"
	Podcast     = "https://podcastindex.org/namespace/1.0"
	RDF         = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	Syndication = "http://purl.org/rss/1.0/modules/syndication/"
	Tombstones  = "http://purl.org/atompub/tombstones/1.0"
	XHTML       = "http://www.w3.org/1999/xhtml"
	XML         = "http://www.w3.org/XML/1998/namespace"
)

// RSS2 is the namespace some programs give the elements of RSS, which has none itself. They
// have it in other formats.
const RSS2 = "http://backend.userland.com/rss2"

// IsAtom reports whether a namespace is Atom's, of any version or draft.
func IsAtom(space string) bool { return space == Atom || space == Atom03 || IsDraftAtom(space) }

// IsDraftAtom recognises the namespaces of the drafts before Atom 0.3, when it was called
// Echo, Necho and Pie, and those of the drafts of Atom 1.0.
func IsDraftAtom(space string) bool {
	switch space {
	case "http://example.com/newformat#", "http://example.com/necho", "http://purl.org/echo/",
		"uri/of/echo/namespace#", "http://purl.org/pie/":
		return true
	}
	return strings.HasPrefix(space, Atom03+"draft-")
}

// IsRSS reports whether a namespace is one of RSS, of any version; none is RSS's, too.
func IsRSS(space string) bool {
	return space == "" || RDFVersion(space) != "" || strings.HasPrefix(space, "http://backend.userland.com/rss")
}

// RDFVersion returns the version of RSS whose namespace it is, such as "1.0"; "" for
// any other namespace.
func RDFVersion(space string) string {
	switch space {
	case RSS1:
		return "1.0"
	case "http://channel.netscape.com/rdf/simple/0.9/", "http://my.netscape.com/rdf/simple/0.9/":
		return "0.9"
	}
	return ""
}

// MeantSpace returns the namespace a possibly misspelt name means.
func MeantSpace(space string) string {
	if len(space) > 100 {
		return space
	}
	if known, ok := misspelt()[bareSpace(space)]; ok {
		return known
	}
	return space
}

// misspelt are the namespaces recognised if misspelt, by their bare names.
var misspelt = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, space := range []string{Atom, Content, DC, DCTerms, History, ITunes, Media, RDF, RSS1, Syndication, Tombstones, XHTML} {
		m[bareSpace(space)] = space
	}
	return m
})

// bareSpace removes the parts of a namespace's name often misspelt in feeds: the
// scheme, www, the end, and the case of letters.
func bareSpace(space string) string {
	space = strings.ToLower(strings.Trim(space, " \t\r\n"))
	space = strings.TrimPrefix(strings.TrimPrefix(space, "https://"), "http://")
	return strings.TrimRight(strings.TrimPrefix(space, "www."), "/#")
}

// UsualPrefix returns the usual prefix of a namespace, also of those gofeed does not know;
// "" if there is none.
func UsualPrefix(space string) string {
	return cmp.Or(usualPrefixes()[space], laterPrefixes[space])
}

// laterPrefixes are those of vocabularies unknown to gofeed.
var laterPrefixes = map[string]string{
	Podcast:                                  "podcast",
	"http://purl.org/syndication/thread/1.0": "thr",
	"http://www.google.com/schemas/play-podcasts/1.0": "googleplay",
}

// usualPrefixes are the prefixes by which gofeed names vocabularies, whatever the
// prefix in the document.
var usualPrefixes = sync.OnceValue(func() map[string]string {
	return map[string]string{
		Atom:                     "atom",
		Atom03:                   "atom03",
		Content:                  "content",
		DC:                       "dc",
		DCTerms:                  "dcterms",
		ITunes:                   "itunes",
		Media:                    "media",
		RDF:                      "rdf",
		Syndication:              "sy",
		XHTML:                    "xhtml",
		XML:                      "xml",
		"http://webns.net/mvcb/": "admin",
		"http://purl.org/rss/1.0/modules/aggregation/":                   "ag",
		"http://purl.org/rss/1.0/modules/annotate/":                      "annotate",
		"http://media.tangent.org/rss/1.0/":                              "audio",
		"http://backend.userland.com/blogChannelModule":                  "blogChannel",
		"http://creativecommons.org/ns#license":                          "cc",
		"http://web.resource.org/cc/":                                    "cc",
		"http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html": "creativeCommons",
		"http://backend.userland.com/creativeCommonsRssModule":           "creativeCommons",
		"http://purl.org/rss/1.0/modules/company":                        "co",
		"http://my.theinfo.org/changed/1.0/rss/":                         "cp",
		"http://purl.org/rss/1.0/modules/email/":                         "email",
		"http://purl.org/rss/1.0/modules/event/":                         "ev",
		"http://rssnamespace.org/feedburner/ext/1.0":                     "feedburner",
		"http://freshmeat.net/rss/fm/":                                   "fm",
		"http://xmlns.com/foaf/0.1/":                                     "foaf",
		"http://www.w3.org/2003/01/geo/wgs84_pos#":                       "geo",
		"http://www.georss.org/georss":                                   "georss",
		"http://www.opengis.net/gml":                                     "gml",
		"http://postneo.com/icbm/":                                       "icbm",
		"http://purl.org/rss/1.0/modules/image/":                         "image",
		"http://purl.org/rss/1.0/modules/link/":                          "l",
		"http://madskills.com/public/xml/rss/module/pingback/":           "pingback",
		"http://prismstandard.org/namespaces/1.2/basic/":                 "prism",
		"http://www.w3.org/2000/01/rdf-schema#":                          "rdfs",
		"http://purl.org/rss/1.0/modules/reference/":                     "ref",
		"http://purl.org/rss/1.0/modules/richequiv/":                     "reqv",
		"http://purl.org/rss/1.0/modules/search/":                        "search",
		"http://purl.org/rss/1.0/modules/slash/":                         "slash",
		"http://schemas.xmlsoap.org/soap/envelope/":                      "soap",
		"http://purl.org/rss/1.0/modules/servicestatus/":                 "ss",
		"http://hacks.benhammersley.com/rss/streaming/":                  "str",
		"http://purl.org/rss/1.0/modules/subscription/":                  "sub",
		"http://schemas.pocketsoap.com/rss/myDescModule/":                "szf",
		"http://purl.org/rss/1.0/modules/taxonomy/":                      "taxo",
		"http://purl.org/rss/1.0/modules/threading/":                     "thr",
		"http://purl.org/rss/1.0/modules/textinput/":                     "ti",
		"http://madskills.com/public/xml/rss/module/trackback/":          "trackback",
		"http://wellformedweb.org/commentAPI/":                           "wfw",
		"http://purl.org/rss/1.0/modules/wiki/":                          "wiki",
		"http://www.w3.org/1999/xlink":                                   "xlink",
		"http://podlove.org/simple-chapters":                             "psc",
	}
})

// The values that the formats themselves allow.

// IsMediaType reports whether text is a media type (RFC 4287 §4.1.3.1).
func IsMediaType(text string) bool {
	kind, _, err := mime.ParseMediaType(text)
	return err == nil && strings.Contains(kind, "/") && text == strings.Trim(text, " \t\r\n")
}

// IsMedia reports whether the type of a text is a media type, which only content may have.
func IsMedia(kind string) bool {
	return kind != "" && kind != "text" && kind != "html" && kind != "xhtml"
}

// IsXMLType reports whether a media type is XML (RFC 4287 §4.1.3.3, RFC 7303).
func IsXMLType(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	return strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "/xml")
}

// TextType returns the type of a text by the attributes of Atom 1.0 (type) or 0.3 (type
// and mode).
func TextType(kind, mode string) string {
	kind = strings.ToLower(strings.Trim(kind, " \t\r\n"))
	switch kind {
	case "", "text", "plain", "text/plain":
		return "text"
	case "html", "xhtml":
		return kind
	case "text/xhtml":
		return "xhtml"
	case "text/html":
		if mode == "xml" {
			return "xhtml"
		}
		return "html"
	case "application/xhtml+xml":
		if mode == "escaped" {
			return "html"
		}
		return "xhtml"
	}
	return kind
}

// IsLanguage reports whether text has the form of a language tag that begins with a
// language's code (RFC 5646 §2.1).
func IsLanguage(text string) bool {
	code, rest, more := strings.Cut(text, "-")
	if len(code) < 2 || len(code) > 3 || strings.ContainsFunc(code, func(c rune) bool { return c <= '9' || !isAlphanumeric(c) }) {
		return false
	}
	for more {
		code, rest, more = strings.Cut(rest, "-")
		if code == "" || len(code) > 8 || !isAlphanumerics(code) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func isAlphanumerics(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return !isAlphanumeric(c) })
}

// IsEmail reports whether text is an email address as Atom requires it (RFC 4287 §3.2.3).
func IsEmail(text string) bool {
	user, host, ok := strings.Cut(text, "@")
	if !ok || user == "" || !strings.Contains(host, ".") ||
		strings.ContainsFunc(user, func(c rune) bool { return !isAlphanumeric(c) && !strings.ContainsRune("_+.'!#$%&*/=?^`{|}~-", c) }) {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || label[0] == '-' || !isAlphanumerics(strings.ReplaceAll(label, "-", "")) {
			return false
		}
	}
	return true
}

// IsContact reports whether text is the author of an RSS item: an email address, perhaps
// followed by a name in parentheses.
func IsContact(text string) bool {
	address, name, named := strings.Cut(text, " ")
	return IsEmail(address) && (!named || strings.HasPrefix(name, "(") && strings.HasSuffix(name, ")"))
}
