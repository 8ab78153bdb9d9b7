package publish

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// NewJSONEntry returns an entry as a JSONEntry. JSONEntry.Entry turns it back into an
// equal entry. Times are in UTC, with the fraction of a second that the entry
// gives.
func NewJSONEntry(e *feedhistory.Entry) *JSONEntry {
	d := e.Draft()
	r := &JSONEntry{
		ID: d.ID, WeakID: e.WeakID, Updated: jsonTimeText(d.Updated), Published: jsonTimeText(d.Published),
		Title: jsonText(d.Title), Summary: jsonText(d.Summary), Content: jsonText(d.Content),
	}
	for _, l := range d.Links {
		r.Links = append(r.Links, JSONLink(l))
	}
	for _, a := range d.Authors {
		r.Authors = append(r.Authors, JSONAuthor(a))
	}
	for _, c := range d.Categories {
		r.Categories = append(r.Categories, JSONCategory(c))
	}
	for _, x := range d.Extensions {
		r.Extensions = append(r.Extensions, jsonExtension(x))
	}
	return r
}

// jsonTimeText returns a time as text; "" for one that RFC 3339 cannot
// express.
func jsonTimeText(t time.Time) string {
	if t = t.UTC(); t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func jsonText(t feedhistory.Text) JSONText {
	r := JSONText{Type: t.Type, Body: t.Body, Src: t.Src, Base: t.Base, Lang: t.Lang}
	if !utf8.ValidString(t.Body) {
		r.Body, r.Base64 = "", []byte(t.Body)
	}
	return r
}

// A JSONRaw is an entry as it was published. feedhistory.ReadEntry makes the
// same entry from it.
type JSONRaw struct {
	Format feedhistory.Format `json:"format"`
	Data   string             `json:"data"`             // an XML element with all its namespaces, or a JSON object
	Base   string             `json:"base,omitempty"`   // the base of references in JSON
	Digest string             `json:"digest,omitempty"` // the digest of the entry in its document: feedhistory.Entry.Digest
}

// NewJSONRaw returns an entry as it was published, with its feed's authors if it
// has none.
func NewJSONRaw(e *feedhistory.Entry) *JSONRaw {
	raw := &JSONRaw{Digest: e.Digest(), Format: feedhistory.Atom}
	if e.Source != nil {
		raw.Format, raw.Base = e.Source.Format, e.Source.URL
	}
	if raw.Data = string(e.Signed().XML()); raw.Format == feedhistory.JSONFeed {
		raw.Data = string(e.JSON())
	}
	return raw
}

// A JSONExtension is an element of another vocabulary, such as iTunes or
// Media RSS. An element with child elements, or with attributes in a namespace,
// is in XML only.
type JSONExtension struct {
	Name  string            `json:"name"`            // the name with the vocabulary's usual prefix: "itunes:duration"
	Space string            `json:"space,omitempty"` // the namespace of the vocabulary
	Value string            `json:"value,omitempty"`
	Attrs map[string]string `json:"attrs,omitempty"`
	XML   string            `json:"xml,omitempty"` // the element itself, which takes precedence
}

// usualPrefixes are the prefixes of extensions, whatever prefix a document
// uses.
var usualPrefixes = map[string]string{
	"http://www.itunes.com/dtds/podcast-1.0.dtd":           "itunes",
	"https://podcastindex.org/namespace/1.0":               "podcast",
	"http://search.yahoo.com/mrss/":                        "media",
	"http://podlove.org/simple-chapters":                   "psc",
	"http://purl.org/dc/elements/1.1/":                     "dc",
	"http://purl.org/dc/terms/":                            "dcterms",
	"http://purl.org/rss/1.0/modules/slash/":               "slash",
	"http://purl.org/rss/1.0/modules/threading/":           "thr",
	"http://purl.org/syndication/thread/1.0":               "thr",
	"http://wellformedweb.org/commentAPI/":                 "wfw",
	"http://www.georss.org/georss":                         "georss",
	"http://www.google.com/schemas/play-podcasts/1.0":      "googleplay",
	"http://rssnamespace.org/feedburner/ext/1.0":           "feedburner",
	"http://backend.userland.com/creativeCommonsRssModule": "creativeCommons",
}

// jsonExtension describes an element.
func jsonExtension(element string) JSONExtension {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) {
		return JSONExtension{XML: element}
	}
	x := JSONExtension{Name: s.Local(), Space: s.Space()}
	if prefix := cmp.Or(usualPrefixes[x.Space], s.Prefix()); prefix != "" {
		x.Name = prefix + ":" + s.Local()
	}
	whole := false
	for _, a := range s.Attrs() {
		if whole = whole || a.Space != ""; a.Space == "" {
			if x.Attrs == nil {
				x.Attrs = map[string]string{}
			}
			x.Attrs[a.Local] = a.Value()
		}
	}
	x.Value = s.ElementText()
	if whole || s.Nested() {
		x.Value, x.Attrs, x.XML = "", nil, element
	}
	return x
}

// element returns the element with its namespace declarations.
func (x JSONExtension) element() (string, error) {
	if x.XML != "" {
		return x.XML, nil
	}
	prefix, local, ok := strings.Cut(x.Name, ":")
	if !ok {
		prefix, local = "", x.Name
	}
	if x.Name == "" || strings.ContainsAny(x.Name, " \t\r\n<>&/\"'=") || x.Space == "" {
		return "", fmt.Errorf("the extension %q needs a name and a namespace", x.Name)
	}
	var b strings.Builder
	attr := func(name, value string) { b.WriteString(" " + name + `="` + escaped(value) + `"`) }
	b.WriteString("<" + x.Name)
	if prefix != "" {
		attr("xmlns:"+prefix, x.Space)
	} else {
		attr("xmlns", x.Space)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Attrs)) {
		if name == "" || name == "xmlns" || strings.ContainsAny(name, " \t\r\n<>&/\"'=:") {
			return "", errors.New("the extension " + local + " has an attribute that needs xml: " + name)
		}
		attr(name, x.Attrs[name])
	}
	b.WriteString(">" + escaped(x.Value) + "</" + x.Name + ">")
	return b.String(), nil
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder does not fail
	return b.String()
}
