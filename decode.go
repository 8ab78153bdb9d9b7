package feedhistory

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	jsonfeed "github.com/mmcdole/gofeed/json"
	"github.com/mmcdole/gofeed/rss"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Decode has gofeed read everything else that the entry says: authors,
// categories, enclosures, iTunes, Dublin Core and other extensions.
//
// gofeed never sees the entry itself. It gets a skeleton, written anew from
// the scanner's tokens: well-formed, without comments, links resolved as RFC
// 3986 says, and without title, summary and content. Those it would rebuild as
// HTML, at a cost that hostile markup can drive to gigabytes; here they are
// what Title, Summary and Content give, with relative references made absolute.
//
// The error is a *ParseError with ReasonLimit where the entry has more
// elements or namespaces than gofeed can be trusted with; the item then has
// what came before.
func (e *Entry) Decode() (*gofeed.Item, error) {
	if e.raw == "" {
		return e.finishItem(&gofeed.Item{}), nil
	}
	if e.format() == JSONFeed {
		return e.decodeJSON()
	}
	k := &skeleton{r: e.reader()}
	k.entry()
	item, err := k.decode(e.format())
	if err != nil {
		return nil, &ParseError{URL: k.r.doc.URL, Reason: ReasonMalformed, Clause: clauseXML, Err: err}
	}
	k.restore(item, e)
	e.finishItem(item)
	if k.r.err != nil {
		return item, k.r.err
	}
	return item, nil
}

// finishItem sets what this package knows better than gofeed.
func (e *Entry) finishItem(item *gofeed.Item) *gofeed.Item {
	if !e.WeakID {
		item.GUID = e.ID
	}
	if len(item.Authors) == 0 {
		for _, p := range e.authors() {
			item.Authors = append(item.Authors, &gofeed.Person{Name: p.Name, Email: p.Email})
			item.Author = item.Authors[0]
		}
	}
	return item
}

func (e *Entry) decodeJSON() (*gofeed.Item, error) {
	raw, _ := json.Marshal(e.jsonItem()) // null, or a member of the wrong type, gofeed does not survive
	item, err := readJSONItem(string(raw))
	if err != nil {
		return nil, &ParseError{URL: e.scope.base, Reason: ReasonMalformed, Clause: clauseJSON, Err: err}
	}
	if item.Link != "" {
		item.Link = resolve(e.scope.base, item.Link)
	}
	for i, link := range item.Links {
		item.Links[i] = resolve(e.scope.base, link)
	}
	for _, enclosure := range item.Enclosures {
		enclosure.URL = resolve(e.scope.base, enclosure.URL)
	}
	return e.finishItem(item), nil
}

func readJSONItem(raw string) (*gofeed.Item, error) {
	feed, err := new(jsonfeed.Parser).Parse(strings.NewReader(
		`{"version":"https://jsonfeed.org/version/1.1","items":[` + raw + `]}`))
	if err != nil {
		return nil, err
	}
	return onlyItem(new(gofeed.DefaultJSONTranslator).Translate(feed))
}

// onlyItem returns the one item of a feed that gofeed has read.
func onlyItem(feed *gofeed.Feed, err error) (*gofeed.Item, error) {
	if err != nil {
		return nil, err
	}
	if len(feed.Items) != 1 {
		return nil, fmt.Errorf("gofeed found %d items in one entry", len(feed.Items))
	}
	return feed.Items[0], nil
}

// The most that gofeed is given of one entry; it copies all bindings for every
// element.
const (
	maxSkeletonElements   = 5000
	maxSkeletonNamespaces = 32
)

// A skeleton is an entry as gofeed gets to see it.
type skeleton struct {
	r                  *reader
	b                  strings.Builder
	namespaces         []xmlscan.Binding
	elements           int
	published, updated string

	title, summary, content Text // what gofeed does not see
}

// decode gives the skeleton to gofeed.
func (k *skeleton) decode(format Format) (*gofeed.Item, error) {
	root, entry, end := "rss version=\"2.0\"", "<channel><item>", "</item></channel></rss>"
	if format == Atom {
		root, entry, end = "feed xmlns=\""+nsAtom+"\"", "<entry>", "</entry></feed>"
	}
	var b strings.Builder
	b.Grow(k.b.Len() + 512)
	b.WriteString("<" + root)
	for _, ns := range k.namespaces {
		writeAttr(&b, "xmlns:"+ns.Prefix, ns.URI)
	}
	b.WriteString(">" + entry)
	b.WriteString(k.b.String())
	b.WriteString(end)
	return readItem(b.String(), format)
}

func readItem(text string, format Format) (*gofeed.Item, error) {
	if format == Atom {
		feed, err := new(atom.Parser).Parse(strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		return onlyItem(new(gofeed.DefaultAtomTranslator).Translate(feed))
	}
	feed, err := new(rss.Parser).Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return onlyItem((&gofeed.DefaultRSSTranslator{DisableContentImageScan: true}).Translate(feed))
}

// restore adds the texts and dates that gofeed did not see.
func (k *skeleton) restore(item *gofeed.Item, e *Entry) {
	set := func(field *string, text Text) {
		if text.Body != "" { // else gofeed may have found one elsewhere
			*field = text.absolute()
		}
	}
	set(&item.Title, k.title)
	set(&item.Description, k.summary)
	set(&item.Content, k.content)
	if e.format() == RSS {
		if item.Image == nil {
			item.Image = firstImage(item.Content, item.Description)
		}
		if k.published != "" {
			item.Published, item.PublishedParsed = k.published, utc(e.Published)
		}
		return
	}
	item.Updated, item.UpdatedParsed = k.updated, utc(e.Updated)
	item.Published, item.PublishedParsed = k.published, utc(e.Published)
	if item.Published == "" {
		item.Published = item.Updated
	}
	if item.PublishedParsed == nil {
		item.PublishedParsed = item.UpdatedParsed
	}
}

func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// entry writes the children of the entry.
func (k *skeleton) entry() {
	for depth := k.r.s.Depth(); k.r.child(depth); {
		switch {
		case k.r.doc.Format == Atom && (k.r.space() == k.r.native || isAtom(k.r.space())):
			k.atomChild()
		case k.r.doc.Format == RSS && k.r.isRSS():
			k.rssChild()
		case k.r.doc.Format == RSS && k.r.space() == nsContent && k.r.s.Local() == "encoded":
			k.content = k.r.textConstruct()
		default:
			k.element("", true)
		}
	}
}

func (k *skeleton) atomChild() {
	switch atomName(k.r.s.Local()) {
	case "title":
		k.title = k.r.textConstruct()
	case "summary":
		k.summary = k.r.textConstruct()
	case "content":
		k.content = k.r.textConstruct()
	case "updated", "modified":
		k.updated = k.r.plainText()
	case "published", "issued":
		k.published = k.r.plainText()
	case "author", "category", "link":
		k.element(nsAtom, false)
	}
}

func (k *skeleton) rssChild() {
	switch rssName(k.r.s.Local()) {
	case "title":
		k.title = k.r.textConstruct()
	case "description":
		k.summary = k.r.textConstruct()
	case "pubDate":
		k.published = k.r.plainText()
	case "link":
		href, _ := k.r.s.Attr("", "href")
		base := k.r.currentBase()
		if href = cmp.Or(k.r.plainText(), href); href != "" {
			k.b.WriteString("<link>")
			escapeText(&k.b, resolve(base, href))
			k.b.WriteString("</link>")
		}
	case "guid", "source":
	case "enclosure":
		if url, _ := k.r.s.Attr("", "url"); trim(url) != "" {
			k.element("", false)
		}
	default:
		k.element("", false)
	}
}

// element writes the current element and what is in it. All of its text comes
// last and in one piece, since gofeed's work on text in pieces is quadratic.
// In the surrounding skeleton, outer is the default namespace.
func (k *skeleton) element(outer string, extension bool) {
	if k.elements++; k.elements > maxSkeletonElements {
		k.fail("elements", maxSkeletonElements)
		return
	}
	name, space := k.name(extension)
	if !readable(name) {
		k.r.s.Skip()
		return
	}
	k.b.WriteString("<" + name)
	if !strings.Contains(name, ":") && space != outer {
		writeAttr(&k.b, "xmlns", space)
		outer = space
	}
	k.attributes(extension)
	k.b.WriteByte('>')
	var text []byte
	for depth := k.r.s.Depth(); k.r.proceed(); {
		tok := k.r.s.Next()
		if tok == xmlscan.Stop || tok == xmlscan.End && k.r.s.Depth() < depth {
			break
		}
		switch tok {
		case xmlscan.Start:
			k.element(outer, extension)
		case xmlscan.Text, xmlscan.CData:
			text = k.r.s.AppendText(text)
		}
	}
	escapeText(&k.b, string(text))
	k.b.WriteString("</" + name + ">")
}

// readable reports whether encoding/xml, under gofeed, knows all characters of
// a name: it has the second edition of XML 1.0, the scanner has the fifth. What
// follows a prefix may begin with what no name begins with.
func readable(name string) bool {
	if strings.IndexByte("-.0123456789", name[0]) >= 0 {
		return false
	}
	for i := range len(name) {
		if name[i] >= 0x80 {
			_, err := xml.NewDecoder(strings.NewReader("<" + name + "/>")).Token()
			return err == nil
		}
	}
	return true
}

// name returns the current element's name in the skeleton, and its namespace
// if the name has no prefix.
func (k *skeleton) name(extension bool) (name, space string) {
	prefix, local, space := k.r.s.Prefix(), k.r.s.Local(), k.r.space()
	switch {
	case !extension && k.r.doc.Format == Atom:
		return atomName(local), nsAtom
	case !extension:
		return local, ""
	case prefix == "" || prefix == "xml":
		return local, space
	}
	return k.prefix(usualPrefix(prefix, space), space) + ":" + local, space
}

// usualPrefix returns the prefix by which gofeed knows a vocabulary, if it does.
func usualPrefix(prefix, uri string) string {
	switch uri {
	case nsDC:
		return "dc"
	case nsITunes:
		return "itunes"
	case nsMedia:
		return "media"
	}
	return prefix
}

// prefix returns the prefix that stands for a namespace all over the skeleton:
// the document's own, unless it has bound that to another namespace too.
func (k *skeleton) prefix(prefix, uri string) string {
	taken := false
	for _, ns := range k.namespaces {
		if ns.Prefix == prefix && ns.URI == uri {
			return prefix
		}
		taken = taken || ns.Prefix == prefix
	}
	if len(k.namespaces) == maxSkeletonNamespaces {
		k.fail("namespaces", maxSkeletonNamespaces)
		return prefix
	}
	if taken {
		return k.prefix(prefix+"-", uri)
	}
	k.namespaces = append(k.namespaces, xmlscan.Binding{Prefix: prefix, URI: uri})
	return prefix
}

func (k *skeleton) fail(what string, limit int) {
	k.r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d %s in one entry", limit, what))
}

// attributes writes the current element's attributes, with URLs made absolute.
// gofeed knows them by local name only.
func (k *skeleton) attributes(extension bool) {
	link := k.r.s.Local() == "link" || k.r.s.Local() == "enclosure"
	for _, a := range k.r.s.Attrs() {
		value := a.Value()
		switch a.Local {
		case "href", "src", "uri", "url":
			value = resolve(k.r.currentBase(), value)
		case "type", "mode":
			if !extension && !link {
				continue // the text below is plain by now
			}
		case "base", "space", "xmlns":
			if a.Space == nsXML || a.Local == "xmlns" {
				continue
			}
		}
		if readable(a.Local) {
			writeAttr(&k.b, a.Local, value)
		}
	}
}
