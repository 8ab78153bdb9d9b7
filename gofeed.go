package feedhistory

import (
	"cmp"
	"strings"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	gofeedjson "github.com/mmcdole/gofeed/json"
	"github.com/mmcdole/gofeed/rss"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Feeds in gofeed's form.

// Feed returns the history in gofeed's form: the head section of its newest document,
// and all entries. Verdict and Gaps describe the missing parts.
func (h *History) Feed() *gofeed.Feed {
	head := h.Head
	if head == nil {
		head = new(Document)
	}
	return head.feed(h.Entries)
}

// Feed returns the document in gofeed's form, with its whole head section: title,
// description, links, language, image, authors, copyright, generator, categories,
// iTunes, Dublin Core and other extensions. The items are those of Entry.Decode; an
// entry beyond its limits is incomplete.
func (d *Document) Feed() *gofeed.Feed { return d.feed(d.Entries) }

func (d *Document) feed(entries []*Entry) *gofeed.Feed {
	var feed *gofeed.Feed
	switch d.Format {
	case Atom:
		feed = d.atomFeed()
	case RSS:
		feed = d.rssFeed()
	default:
		feed = d.jsonFeed(entries)
	}
	feed.FeedVersion = d.version
	feed.Language = cmp.Or(d.Language, feed.Language)
	feed.Link, feed.FeedLink, feed.Links = "", "", nil
	for _, l := range d.Links {
		switch {
		case l.Rel == RelAlternate && feed.Link == "":
			feed.Link = l.Href
		case l.Rel == RelSelf && feed.FeedLink == "":
			feed.FeedLink = l.Href
		}
		if l.Rel == RelAlternate || l.Rel == RelSelf {
			feed.Links = append(feed.Links, l.Href)
		}
	}
	if d.Format != JSONFeed && feed.UpdatedParsed == nil {
		feed.UpdatedParsed = given(new(d.Updated.UTC()))
	}
	if len(feed.Authors) == 0 {
		for _, p := range d.Authors {
			feed.Authors = append(feed.Authors, p.gofeed())
		}
	}
	if len(feed.Authors) > 0 {
		feed.Author = feed.Authors[0]
	}
	if feed.Image == nil && d.Icon != "" {
		feed.Image = &gofeed.Image{URL: d.Icon}
	}
	feed.Items = make([]*gofeed.Item, 0, len(entries))
	for _, e := range entries {
		if item, _ := e.Decode(); item != nil {
			feed.Items = append(feed.Items, item)
		}
	}
	return feed
}

// head returns a decoder for the elements of the head section.
func (d *Document) head() (*decoder, int) {
	sc := d.scope
	if sc == nil {
		sc = &xmlscan.Scope{Base: d.URL}
	}
	elements := "<head>" + strings.Join(d.known, "") + strings.Join(d.extra, "") + "</head>"
	r := newFragment(elements, sc, d.Format)
	return &decoder{r: r}, r.s.Depth()
}

// markup returns the current text of the head section with its markup, if the
// document's field still has the same text; otherwise the field.
func (d *decoder) markup(says string) string {
	if t := d.r.textConstruct(); t.Plain() == says {
		return t.absolute()
	}
	return says
}

func (d *Document) atomFeed() *gofeed.Feed {
	feed := &gofeed.Feed{FeedType: "atom", Title: d.Title, Description: d.Subtitle}
	head, depth := d.head()
	r, icon, logo := head.r, "", ""
	for head.child(depth) {
		if space := r.space(); space != r.native && !vocab.IsAtom(space) {
			head.extension(&feed.Extensions)
			continue
		}
		base := r.currentBase()
		switch vocab.AtomName(r.s.Local()) {
		case "title":
			feed.Title = head.markup(d.Title)
		case "subtitle", "tagline":
			feed.Description = head.markup(d.Subtitle)
		case "updated", "modified":
			feed.Updated = r.plainText()
		case "rights", "copyright":
			feed.Copyright = head.text()
		case "category":
			feed.Categories = append(feed.Categories, head.category())
		case "generator":
			feed.Generator = head.generator()
		case "icon":
			icon = iri.Resolve(base, r.plainText())
		case "logo":
			logo = iri.Resolve(base, r.plainText())
		}
	}
	if image := cmp.Or(logo, icon); image != "" {
		feed.Image = &gofeed.Image{URL: image}
	}
	return feed
}

// generator reads the generator of an Atom feed: its name, version and URI.
func (d *decoder) generator() string {
	r := d.r
	version, _ := r.s.Attr("", "version")
	if version != "" {
		version = " v" + version
	}
	uri, _ := r.s.Attr("", "uri")
	url, _ := r.s.Attr("", "url") // in Atom 0.3
	base := r.currentBase()
	if uri = cmp.Or(uri, url); uri != "" {
		uri = " " + iri.Resolve(base, uri)
	}
	return strings.TrimSpace(r.plainText() + version + uri)
}

// rssFeed reads the channel's elements, and lets gofeed choose which of them take
// precedence.
func (d *Document) rssFeed() *gofeed.Feed {
	channel := &rss.Feed{Title: d.Title, Description: d.Subtitle}
	head, depth := d.head()
	for r := head.r; head.child(depth); {
		if !r.isRSS() && r.space() != vocab.RDF {
			head.extension(&channel.Extensions)
			continue
		}
		switch vocab.RSSName(strings.ToLower(r.s.Local())) {
		case "title":
			channel.Title = head.markup(d.Title)
		case "description":
			channel.Description = r.textOrMarkup(Text{Type: TextHTML, Base: r.currentBase()}).absolute()
		case "copyright":
			channel.Copyright = r.plainText()
		case "managingeditor":
			channel.ManagingEditor = r.plainText()
		case "webmaster":
			channel.WebMaster = r.plainText()
		case "pubDate":
			channel.PubDate = r.plainText()
			channel.PubDateParsed = given(new(head.date(channel.PubDate).UTC()))
		case "lastBuildDate":
			channel.LastBuildDate = r.plainText()
			channel.LastBuildDateParsed = given(new(head.date(channel.LastBuildDate).UTC()))
		case "generator":
			channel.Generator = r.plainText()
		case "category":
			channel.Categories = append(channel.Categories, &rss.Category{Value: r.plainText()})
		case "image":
			channel.Image = head.image(channel.Image)
		}
	}
	if m := channel.Extensions["itunes"]; m != nil {
		channel.ITunesExt = ext.NewITunesFeedExtension(m)
	}
	if m := channel.Extensions["dc"]; m != nil {
		channel.DublinCoreExt = ext.NewDublinCoreExtension(m)
	}
	feed, err := (&gofeed.DefaultRSSTranslator{DisableContentImageScan: true}).Translate(channel)
	if err != nil {
		return &gofeed.Feed{FeedType: "rss"}
	}
	if feed.Image == nil {
		feed.Image = imageIn(feed.Description)
	}
	return feed
}

// image reads a channel's image. In RSS 1.0, the channel's element only refers to an
// image elsewhere; then it returns the one from before.
func (d *decoder) image(before *rss.Image) *rss.Image {
	r := d.r
	image := new(rss.Image)
	for depth := r.s.Depth(); r.child(depth); {
		switch base := r.currentBase(); vocab.RSSName(r.s.Local()) {
		case "url":
			image.URL = iri.Resolve(base, r.plainText())
		case "title":
			image.Title = r.plainText()
		}
	}
	if *image == (rss.Image{}) {
		return before
	}
	return image
}

// jsonFeed takes the times from the first entry, as gofeed does, because a JSON Feed
// has none.
func (d *Document) jsonFeed(entries []*Entry) *gofeed.Feed {
	feed := &gofeed.Feed{Title: d.Title, Description: d.Subtitle}
	if d.Format == JSONFeed {
		feed.FeedType = "json"
	}
	if len(entries) > 0 {
		if first := entries[0]; first.format() == JSONFeed {
			item := jsonfeed.ReadItem(first.raw)
			feed.Updated, feed.UpdatedParsed = item.Modified, given(new(first.Updated))
			feed.Published, feed.PublishedParsed = item.Published, given(new(first.Published))
		}
	}
	return feed
}

// gofeed returns the person in gofeed's form.
func (p Person) gofeed() *gofeed.Person {
	return &gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
}

// personOf reads "jane@example.org (Jane Doe)" and its variants.
func personOf(text string) *gofeed.Person {
	if text = strings.TrimSpace(text); !strings.Contains(text, "@") { // gofeed would return the same
		return &gofeed.Person{Name: text}
	}
	feed, err := new(gofeed.DefaultJSONTranslator).Translate(&gofeedjson.Feed{Author: &gofeedjson.Author{Name: text}})
	if err != nil {
		return &gofeed.Person{Name: text}
	}
	return feed.Author
}

// extension reads the current element as an extension.
func (d *decoder) extension(all *ext.Extensions) {
	prefix, local := d.prefix(), d.r.s.Local()
	if *all == nil {
		*all = ext.Extensions{}
	}
	vocabulary := (*all)[prefix]
	if vocabulary == nil {
		vocabulary = map[string][]ext.Extension{}
		(*all)[prefix] = vocabulary
	}
	outer := ""
	if d.r.doc.Format == Atom {
		outer = vocab.Atom
	}
	vocabulary[local] = append(vocabulary[local], d.element(outer))
}

// element reads the current element and its content. Around it, the default namespace
// is outer.
func (d *decoder) element(outer string) ext.Extension {
	s := d.r.s
	e := ext.Extension{Name: s.Local(), Attrs: d.attributes(), Children: map[string][]ext.Extension{}}
	if space := d.r.space(); s.Prefix() == "" && space != outer {
		e.Attrs["xmlns"], outer = space, space
	}
	var only string // the text, while it is in one piece
	var all []byte
	for depth := s.Depth(); d.r.err == nil; {
		tok := s.Next()
		if tok == xmlscan.Stop || tok == xmlscan.End && s.Depth() < depth {
			break
		}
		switch text, plain := s.Plain(); {
		case tok == xmlscan.Start:
			if local := s.Local(); d.count() {
				e.Children[local] = append(e.Children[local], d.element(outer))
			}
		case plain && only == "" && all == nil:
			only = text
		default:
			all = s.AppendText(append(all, only...))
			only = ""
		}
	}
	if all != nil {
		only = string(all)
	}
	e.Value = strings.TrimSpace(only)
	return e
}

// attributes returns the current element's attributes by their local names, with
// absolute references.
func (d *decoder) attributes() map[string]string {
	attrs := d.r.s.Attrs()
	m := make(map[string]string, len(attrs))
	for _, a := range attrs {
		value := a.Value()
		switch a.Local {
		case "href", "src", "uri", "url":
			value = iri.Resolve(d.r.currentBase(), value)
		case "base", "space":
			if a.Space == vocab.XML {
				continue
			}
		}
		m[a.Local] = value
	}
	return m
}

// prefix returns the key of the current element's vocabulary: its usual prefix, or
// else the document's, made unique within the entry; if there is no prefix, the
// namespace.
func (d *decoder) prefix() string {
	space, prefix := d.r.space(), d.r.s.Prefix()
	if usual, ok := vocab.Prefix(space); ok {
		return usual
	}
	if prefix == "" {
		return space
	}
	for i := 0; i < len(d.prefixes); i++ {
		switch taken := d.prefixes[i]; {
		case taken.Prefix != prefix:
		case taken.URI == space:
			return prefix
		default:
			prefix += "-"
			i = -1
		}
	}
	if len(d.prefixes) == maxDecodedNamespaces {
		d.fail("namespaces", maxDecodedNamespaces)
		return prefix
	}
	d.prefixes = add(d.prefixes, d.few[:], xmlscan.Binding{Prefix: prefix, URI: space})
	return prefix
}

// rssImage returns the item's image: one it names, or the first one in its text.
func rssImage(item *gofeed.Item, itunes string) *gofeed.Image {
	if itunes != "" {
		return &gofeed.Image{URL: itunes}
	}
	for _, c := range item.Extensions["media"]["content"] {
		if strings.Contains(c.Attrs["type"], "image") || strings.Contains(c.Attrs["medium"], "image") {
			return &gofeed.Image{URL: c.Attrs["url"]}
		}
	}
	for _, enclosure := range item.Enclosures {
		if strings.HasPrefix(enclosure.Type, "image/") {
			return &gofeed.Image{URL: enclosure.URL}
		}
	}
	return imageIn(item.Content, item.Description)
}

// imageIn returns the first image in any of the texts; nil if there is none.
func imageIn(texts ...string) *gofeed.Image {
	src, ok := markup.FirstImage(texts...)
	if !ok {
		return nil
	}
	return &gofeed.Image{URL: src}
}

// first returns the first of several values; "" if there is none.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// value returns the value of the first of several elements; "" if there is none.
func value(elements []ext.Extension) string {
	if len(elements) == 0 {
		return ""
	}
	return elements[0].Value
}
