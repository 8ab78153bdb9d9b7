package feedhistory

import "strings"

// The namespaces that carry meaning here. Elements are known by namespace,
// never by prefix.
const (
	nsAtom        = "http://www.w3.org/2005/Atom"
	nsAtom03      = "http://purl.org/atom/ns#"
	nsContent     = "http://purl.org/rss/1.0/modules/content/"
	nsDC          = "http://purl.org/dc/elements/1.1/"
	nsDCTerms     = "http://purl.org/dc/terms/"
	nsHistory     = "http://purl.org/syndication/history/1.0"
	nsITunes      = "http://www.itunes.com/dtds/podcast-1.0.dtd"
	nsMedia       = "http://search.yahoo.com/mrss/"
	nsRDF         = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	nsSyndication = "http://purl.org/rss/1.0/modules/syndication/"
	nsTombstones  = "http://purl.org/atompub/tombstones/1.0"
	nsXHTML       = "http://www.w3.org/1999/xhtml"
	nsXML         = "http://www.w3.org/XML/1998/namespace"
)

// space returns the namespace of the current element, as it is meant: feeds
// misspell those of others. That of RFC 5005 is exact, since a feed's verdict
// hangs on it.
func (r *reader) space() string {
	space := r.s.Space()
	if space == r.exact {
		return space
	}
	switch space {
	case "", nsAtom, nsContent, nsDC, nsITunes, nsMedia, nsXHTML:
		r.exact = space
		return space
	}
	if meant, ok := r.spaces[space]; ok {
		r.odd = r.odd || meant != space
		return meant
	}
	meant := meantSpace(space)
	if meant != space {
		r.odd = true
		r.note("namespace-misspelt", "the namespace "+clip(space)+" is read as "+meant, r.s.Offset())
	}
	if r.spaces == nil {
		r.spaces = map[string]string{}
	}
	if len(r.spaces) < maxExtra {
		r.spaces[space] = meant
	}
	return meant
}

// misspelt are the namespaces that are known when misspelt, without what is
// spelt in several ways.
var misspelt = func() map[string]string {
	m := map[string]string{}
	for _, space := range []string{nsAtom, nsContent, nsDC, nsDCTerms, nsITunes, nsMedia, nsSyndication, nsXHTML} {
		m[bareSpace(space)] = space
	}
	return m
}()

// bareSpace takes off a namespace's name what feeds misspell: the scheme, www,
// the end, and the case of letters.
func bareSpace(space string) string {
	space = strings.ToLower(strings.Trim(space, " \t\r\n"))
	space = strings.TrimPrefix(strings.TrimPrefix(space, "https://"), "http://")
	return strings.TrimRight(strings.TrimPrefix(space, "www."), "/#")
}

// meantSpace returns the namespace that a name stands for.
func meantSpace(space string) string {
	if len(space) > 100 {
		return space
	}
	if known, ok := misspelt[bareSpace(space)]; ok {
		return known
	}
	return space
}

// rssName returns the name of an element of RSS as the specification spells it:
// feeds are careless about its case.
func rssName(local string) string {
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

// atomName is the same for Atom, which has small letters only: names that begin
// with a capital may be meant for its own.
func atomName(local string) string {
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

// rssLocal is rssName of the current element, and notes a name that is misspelt.
func (r *reader) rssLocal() string { return r.spelt(rssName(r.s.Local())) }

// atomLocal is the same for Atom.
func (r *reader) atomLocal() string {
	local := r.s.Local()
	if isCapital(local) {
		return r.spelt(atomNameOf(local))
	}
	return local
}

// spelt returns the name that the current element's stands for, and notes it if
// it is another.
func (r *reader) spelt(name string) string {
	if local := r.s.Local(); name != local {
		r.odd = true
		r.note("name-misspelt", "the element "+clip(local)+" is read as "+name, r.s.Offset())
	}
	return name
}
