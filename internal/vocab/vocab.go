// Package vocab knows the namespaces and element names of feeds, and how feeds
// misspell them.
package vocab

import (
	"cmp"
	"strings"
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
	Media       = "http://search.yahoo.com/mrss/"
	RDF         = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	Syndication = "http://purl.org/rss/1.0/modules/syndication/"
	Tombstones  = "http://purl.org/atompub/tombstones/1.0"
	XHTML       = "http://www.w3.org/1999/xhtml"
	XML         = "http://www.w3.org/XML/1998/namespace"
)

// IsAtom reports whether a namespace is Atom's, of any version or draft.
func IsAtom(space string) bool { return space == Atom || space == Atom03 || IsDraftAtom(space) }

// IsDraftAtom recognises the namespaces of the drafts before Atom 0.3, when it was called
// Echo, Necho and Pie.
func IsDraftAtom(space string) bool {
	switch space {
	case "http://example.com/newformat#", "http://example.com/necho", "http://purl.org/echo/",
		"uri/of/echo/namespace#", "http://purl.org/pie/":
		return true
	}
	return false
}

// RDFVersion returns the version of RSS whose namespace it is, such as "1.0"; "" for
// any other namespace.
func RDFVersion(space string) string {
	switch space {
	case "http://purl.org/rss/1.0/":
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
	if known, ok := misspelt[bareSpace(space)]; ok {
		return known
	}
	return space
}

// misspelt are the namespaces recognised if misspelt, by their bare names.
var misspelt = func() map[string]string {
	m := map[string]string{}
	for _, space := range []string{Atom, Content, DC, DCTerms, ITunes, Media, Syndication, XHTML} {
		m[bareSpace(space)] = space
	}
	return m
}()

// bareSpace removes the parts of a namespace's name often misspelt in feeds: the
// scheme, www, the end, and the case of letters.
func bareSpace(space string) string {
	space = strings.ToLower(strings.Trim(space, " \t\r\n"))
	space = strings.TrimPrefix(strings.TrimPrefix(space, "https://"), "http://")
	return strings.TrimRight(strings.TrimPrefix(space, "www."), "/#")
}

// RSSName returns the name of an element of RSS as the specification spells it; feeds
// are careless about its case.
func RSSName(local string) string {
	switch local {
	case "title", "link", "description", "guid", "pubDate", "category", "comments", "author", "item", // nearly always
		"lastBuildDate", "skipDays", "skipHours", "managingEditor", "webMaster", "textInput":
		return local
	}
	for i := range len(local) {
		if c := local[i]; c < 'a' || c > 'z' {
			return rssNameOf(local)
		}
	}
	switch local {
	case "lastbuilddate", "pubdate", "skipdays", "skiphours":
		return rssNameOf(local)
	}
	return local
}

func rssNameOf(local string) string {
	for _, name := range [...]string{
		"author", "category", "channel", "day", "description", "enclosure", "guid", "hour", "item",
		"lastBuildDate", "link", "pubDate", "skipDays", "skipHours", "source", "title", "ttl",
	} {
		if strings.EqualFold(local, name) {
			return name
		}
	}
	return local
}

// AtomName does the same for Atom, whose names have only small letters: a name with a
// capital may be one of them.
func AtomName(local string) string {
	if isCapital(local) {
		return atomNameOf(local)
	}
	return local
}

func isCapital(local string) bool { return local != "" && 'A' <= local[0] && local[0] <= 'Z' }

func atomNameOf(local string) string {
	switch name := strings.ToLower(local); name {
	case "author", "category", "content", "contributor", "created", "email", "entry", "feed", "id", "issued", "link",
		"modified", "name", "published", "source", "subtitle", "summary", "tagline", "title", "updated", "uri", "url":
		return name
	}
	return local
}

// Prefix returns the usual prefix of a namespace, under which gofeed has it.
func Prefix(space string) (prefix string, ok bool) {
	prefix, ok = usualPrefixes[space]
	return prefix, ok
}

// UsualPrefix returns the usual prefix of a namespace, also of those gofeed does not know;
// "" if there is none.
func UsualPrefix(space string) string {
	return cmp.Or(usualPrefixes[space], laterPrefixes[space])
}

// laterPrefixes are those of vocabularies unknown to gofeed.
var laterPrefixes = map[string]string{
	"https://podcastindex.org/namespace/1.0":          "podcast",
	"http://purl.org/syndication/thread/1.0":          "thr",
	"http://www.google.com/schemas/play-podcasts/1.0": "googleplay",
}

// usualPrefixes are the prefixes by which gofeed names vocabularies, whatever the
// prefix in the document.
var usualPrefixes = map[string]string{
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
