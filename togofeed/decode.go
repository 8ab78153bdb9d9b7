package togofeed

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/mmcdole/gofeed/rss"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The limits on decoding one entry, because elements take more memory than their text.
const (
	maxDecodedElements   = 5000
	maxDecodedNamespaces = 32
)

// An itemRoom is an item, with room for the things most items point to, so all of it
// is one allocation.
type itemRoom struct {
	item       gofeed.Item
	times      [2]time.Time
	persons    [2]gofeed.Person
	authors    [2]*gofeed.Person
	categories [3]string
	links      [2]string
}

// add appends a value to a list whose first elements are stored in room.
func add[T any](list, room []T, value T) []T {
	if list == nil {
		list = room[:0]
	}
	return append(list, value)
}

// author adds an author.
func (d *itemRoom) author(p feedxml.Person) {
	var author *gofeed.Person
	if n := len(d.item.Authors); n < len(d.persons) {
		author = &d.persons[n]
	} else {
		author = new(gofeed.Person)
	}
	*author = gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
	d.item.Authors = add(d.item.Authors, d.authors[:], author)
}

// A decoder reads an entry, or the elements of a head section, into gofeed's form.
type decoder struct {
	*itemRoom
	r        *feedxml.Elements
	raw      string // the text r reads
	base     string
	err      error
	elements int
	texts    [2]imageText      // an item's content and description
	lists    []ext.Extension   // room for lists of extensions
	prefixes []xmlscan.Binding // the keys of extensions
	few      [2]xmlscan.Binding
}

// child moves to the next child element, unless there have been too many.
func (d *decoder) child(depth int) bool { return d.r.Child(depth) && d.count() }

func (d *decoder) count() bool {
	if d.elements++; d.elements > maxDecodedElements {
		d.fail("elements", maxDecodedElements)
	}
	return d.err == nil
}

func (d *decoder) fail(what string, limit int) {
	line, column := xmlscan.Line(d.raw, d.r.Offset())
	d.err = &feedhistory.ParseError{
		URL: d.base, Reason: feedhistory.ReasonLimit, Clause: "RFC 5005 §6: clients should be mindful of resource limits",
		Offset: d.r.Offset(), Line: line, Column: column, Err: fmt.Errorf("more than %d %s in one entry", limit, what),
	}
	d.r.Stop()
}

// An imageText is a text, and the source of the first image in it.
type imageText struct {
	text, image string
	hasImage    bool
}

// imageText reads the current element as text does.
func (d *decoder) imageText(to *imageText) string {
	to.text, to.image, to.hasImage = d.r.Construct().AbsoluteAndImage()
	return to.text
}

// text reads the current element, with absolute references.
func (d *decoder) text() string { return d.r.Construct().Absolute() }

// given returns a pointer to a time; nil if the time is zero.
func given(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
}

// timeOf reads a date; zero if it cannot be read.
func timeOf(text string) time.Time {
	t, _, _ := feedtime.Read(text)
	return t
}

// atomEntry reads the children of the current entry.
func (d *decoder) atomEntry(e *feedhistory.Entry) {
	r, item := d.r, &d.item
	for depth := r.Depth(); d.child(depth); {
		row := r.Row()
		if row.Space != feedxml.Atom && !r.IsAtom() {
			d.extension(&item.Extensions)
			continue
		}
		switch row.Name {
		case "title":
			item.Title = d.text()
		case "summary":
			item.Description = d.text()
		case "content":
			item.Content = d.text()
		case "updated", "modified":
			item.Updated = r.PlainText()
		case "published", "issued":
			item.Published = r.PlainText()
		case "author":
			d.author(r.Person())
		case "category":
			item.Categories = add(item.Categories, d.categories[:], d.category())
		}
	}
	item.Links = linked(item, e, false, d.links[:])
	d.times = [...]time.Time{e.Updated.UTC(), e.Published.UTC()}
	item.UpdatedParsed, item.PublishedParsed = given(&d.times[0]), given(&d.times[1])
	item.Published = cmp.Or(item.Published, item.Updated)
	item.PublishedParsed = cmp.Or(item.PublishedParsed, item.UpdatedParsed)
}

// category reads an Atom category: its label, or else its term.
func (d *decoder) category() string {
	if label, _ := d.r.Attr("", "label"); label != "" {
		return label
	}
	term, _ := d.r.Attr("", "term")
	return term
}

// rssItem reads the children of the current item. Other vocabularies may supply what
// the item itself lacks; which of them takes precedence is gofeed's choice.
func (d *decoder) rssItem(e *feedhistory.Entry) {
	r, item := d.r, &d.item
	author := ""
	for depth := r.Depth(); d.child(depth); {
		row := r.Row()
		name := row.Name
		if row.Space == feedxml.Content {
			item.Content = d.imageText(&d.texts[0])
			continue
		} else if row.Space != "" || name == "" { // it is none of RSS's elements
			if !r.IsRSS() && r.Space() != feedxml.RDF {
				d.extension(&item.Extensions)
				continue
			}
			name = feedxml.RSSName(r.Local())
		}
		switch name {
		case "title":
			item.Title = d.text()
		case "description":
			item.Description = d.imageText(&d.texts[1])
		case "pubDate":
			item.Published = r.PlainText()
		case "link":
			href, _ := r.Attr("", "href")
			base := r.Base()
			if href = cmp.Or(r.PlainText(), href); href != "" {
				item.Link = iri.Resolve(base, href)
				item.Links = add(item.Links, d.links[:], item.Link)
			}
		case "author":
			author = r.PlainText()
		case "category":
			item.Categories = add(item.Categories, d.categories[:], r.PlainText())
		case "enclosure":
			if l := r.Enclosure(); l.Href != "" {
				item.Enclosures = append(item.Enclosures, &gofeed.Enclosure{URL: l.Href, Length: l.Length, Type: l.Type})
			}
		case "guid", "source", "comments":
		default:
			if item.Custom == nil {
				item.Custom = map[string]string{}
			}
			item.Custom[r.Local()] = r.TextOrMarkup(feedxml.Construct{Base: r.Base()}).Absolute()
		}
	}
	if item.Published != "" {
		d.times[1] = e.Published.UTC()
		item.PublishedParsed = given(&d.times[1])
	}
	d.rssExtensions(author)
}

// rssExtensions fills in the fields not set by the item's own elements.
func (d *decoder) rssExtensions(author string) {
	item := &d.item
	dc, itunes := cmp.Or(item.DublinCoreExt, &ext.DublinCoreExtension{}), &ext.ITunesItemExtension{}
	if m := item.Extensions["itunes"]; m != nil {
		item.ITunesExt = ext.NewITunesItemExtension(m)
		itunes = item.ITunesExt
	}
	atom := item.Extensions["atom"]
	if atom == nil {
		atom = item.Extensions["atom03"]
	}
	date := first(dc.Date)
	item.Title = cmp.Or(item.Title, first(dc.Title))
	item.Description = cmp.Or(item.Description, first(dc.Description), itunes.Summary, value(atom["summary"]))
	item.Content = cmp.Or(item.Content, value(atom["content"]))
	if item.Published == "" {
		item.Published = cmp.Or(date, value(atom["published"]))
		d.times[1] = timeOf(item.Published)
		item.PublishedParsed = given(&d.times[1])
	}
	item.Updated = cmp.Or(date, value(atom["updated"]))
	d.times[0] = timeOf(item.Updated)
	item.UpdatedParsed = given(&d.times[0])
	item.Author = rssAuthor(cmp.Or(author, first(dc.Author), first(dc.Creator), itunes.Author), atom["author"])
	if item.Author != nil {
		item.Authors = add(nil, d.authors[:], item.Author)
	}
	if itunes.Keywords != "" {
		item.Categories = append(item.Categories, strings.Split(itunes.Keywords, ",")...)
	}
	item.Categories = append(item.Categories, dc.Subject...)
	for _, c := range atom["category"] {
		if term := c.Attrs["term"]; term != "" {
			item.Categories = append(item.Categories, term)
		}
	}
	item.Image = d.rssImage(itunes.Image)
}

// markup returns the current text of the head section with its markup, if the
// document's field still has the same text; otherwise the field.
func (d *decoder) markup(says string) string {
	if t := d.r.Construct(); t.Plain() == says {
		return t.Absolute()
	}
	return says
}

// atomFeed returns the head section of an Atom feed in gofeed's form. The current element has the
// children that the document's fields do not say in the same way: titles with markup, the time as
// text, and extensions.
func atomFeed(r *feedxml.Elements, d *feedhistory.Document) *gofeed.Feed {
	feed := &gofeed.Feed{FeedType: "atom", Title: d.Title, Description: d.Subtitle, Copyright: absolute(d.Rights), Generator: generator(d.Generator)}
	head, depth := decoder{r: r}, r.Depth()
	for head.child(depth) {
		row := r.Row()
		if row.Space != feedxml.Atom && !r.IsAtom() {
			head.extension(&feed.Extensions)
			continue
		}
		switch row.Name {
		case "title":
			feed.Title = head.markup(d.Title)
		case "subtitle", "tagline":
			feed.Description = head.markup(d.Subtitle)
		case "updated", "modified":
			feed.Updated = r.PlainText()
		case "category":
			feed.Categories = append(feed.Categories, head.category())
		}
	}
	if image := cmp.Or(d.Logo, d.Icon); image != "" {
		feed.Image = &gofeed.Image{URL: image}
	}
	return feed
}

// generator returns the generator of an Atom feed as gofeed does: its name, version and URI.
func generator(g feedhistory.Generator) string {
	if g.Version != "" {
		g.Version = " v" + g.Version
	}
	if g.URI != "" {
		g.URI = " " + g.URI
	}
	return strings.TrimSpace(g.Name + g.Version + g.URI)
}

// rssFeed returns the head section of an RSS feed likewise. Gofeed chooses which of its
// elements take precedence.
func rssFeed(r *feedxml.Elements, title, subtitle string) *gofeed.Feed {
	channel := &rss.Feed{Title: title, Description: subtitle}
	head, depth := decoder{r: r}, r.Depth()
	for head.child(depth) {
		if !r.IsRSS() && r.Space() != feedxml.RDF {
			head.extension(&channel.Extensions)
			continue
		}
		switch strings.ToLower(r.Local()) {
		case "title":
			channel.Title = head.markup(title)
		case "description":
			channel.Description = r.TextOrMarkup(feedxml.Construct{Type: "html", Base: r.Base()}).Absolute()
		case "copyright":
			channel.Copyright = r.PlainText()
		case "managingeditor":
			channel.ManagingEditor = r.PlainText()
		case "webmaster":
			channel.WebMaster = r.PlainText()
		case "pubdate":
			channel.PubDate = r.PlainText()
			channel.PubDateParsed = given(new(timeOf(channel.PubDate).UTC()))
		case "lastbuilddate":
			channel.LastBuildDate = r.PlainText()
			channel.LastBuildDateParsed = given(new(timeOf(channel.LastBuildDate).UTC()))
		case "generator":
			channel.Generator = r.PlainText()
		case "category":
			channel.Categories = append(channel.Categories, &rss.Category{Value: r.PlainText()})
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
	for depth := r.Depth(); r.Child(depth); {
		switch base := r.Base(); feedxml.RSSName(r.Local()) {
		case "url":
			image.URL = iri.Resolve(base, r.PlainText())
		case "title":
			image.Title = r.PlainText()
		}
	}
	if *image == (rss.Image{}) {
		return before
	}
	return image
}

// extension reads the current element as an extension.
func (d *decoder) extension(all *ext.Extensions) {
	prefix, local := d.prefix(), d.r.Local()
	vocabulary := (*all)[prefix]
	if vocabulary == nil {
		if *all == nil {
			*all = ext.Extensions{}
		}
		vocabulary = map[string][]ext.Extension{}
		(*all)[prefix] = vocabulary
	}
	outer := ""
	if d.r.Format == feedxml.FormatAtom {
		outer = feedxml.Atom
	}
	same := vocabulary[local]
	if same == nil { // most elements are alone in their list
		if len(d.lists) == 0 {
			d.lists = make([]ext.Extension, 4)
		}
		same, d.lists = d.lists[:0:1], d.lists[1:]
	}
	e := d.element(outer)
	vocabulary[local] = append(same, e)
	if prefix == "dc" && d.r.Format == feedxml.FormatRSS && d.itemRoom != nil { // an item
		d.dublinCore(local, e.Value)
	}
}

// element reads the current element and its content. Around it, the default namespace
// is outer.
func (d *decoder) element(outer string) ext.Extension {
	s := d.r.Cursor
	e := ext.Extension{Name: s.Local(), Attrs: d.attributes(), Children: map[string][]ext.Extension{}}
	if space := d.r.Space(); s.Prefix() == "" && space != outer {
		e.Attrs["xmlns"], outer = space, space
	}
	if text, ok := s.LeafText(); ok {
		e.Value = strings.TrimSpace(text)
		return e
	}
	var only string // the text, while it is in one piece
	var all []byte
	for depth := s.Depth(); d.err == nil; {
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
	attrs := d.r.Attrs()
	m := make(map[string]string, len(attrs))
	for _, a := range attrs {
		value := a.Value()
		switch a.Local {
		case "href", "src", "uri", "url":
			value = iri.Resolve(d.r.Base(), value)
		case "base", "space":
			if a.Space == feedxml.XML {
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
	space, prefix := d.r.Space(), d.r.Prefix()
	if usual := d.r.UsualPrefix(); usual != "" {
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

// rssAuthor returns the author named by a text, or else by Atom elements; nil if there
// is none.
func rssAuthor(text string, atom []ext.Extension) *gofeed.Person {
	switch {
	case text != "":
		return personOf(text)
	case len(atom) > 0:
		p := gofeed.Person{Name: value(atom[0].Children["name"]), Email: value(atom[0].Children["email"])}
		if p != (gofeed.Person{}) {
			return &p
		}
	}
	return nil
}

// rssImage returns the item's image: one it names, or the first one in its text.
func (d *decoder) rssImage(itunes string) *gofeed.Image {
	item := &d.item
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
	for i, text := range [...]string{item.Content, item.Description} {
		if known := &d.texts[i]; known.text != text {
			if image := imageIn(text); image != nil {
				return image
			}
		} else if known.hasImage {
			return &gofeed.Image{URL: known.image}
		}
	}
	return nil
}

// dublinCore adds an element to those of gofeed's NewDublinCoreExtension, which looks for each there may be.
func (d *decoder) dublinCore(name, value string) {
	if d.item.DublinCoreExt == nil {
		d.item.DublinCoreExt = new(ext.DublinCoreExtension)
	}
	dc := d.item.DublinCoreExt
	for _, field := range [...]struct {
		name string
		list *[]string
	}{
		{"creator", &dc.Creator}, {"date", &dc.Date}, {"subject", &dc.Subject}, {"title", &dc.Title}, {"author", &dc.Author}, {"description", &dc.Description},
		{"publisher", &dc.Publisher}, {"contributor", &dc.Contributor}, {"type", &dc.Type}, {"format", &dc.Format}, {"identifier", &dc.Identifier},
		{"source", &dc.Source}, {"language", &dc.Language}, {"relation", &dc.Relation}, {"coverage", &dc.Coverage}, {"rights", &dc.Rights},
	} {
		if field.name == name {
			*field.list = append(*field.list, value)
		}
	}
}

// imageIn returns the first image in a text; nil if there is none.
func imageIn(text string) *gofeed.Image {
	src, ok := markup.FirstImage(text)
	if !ok {
		return nil
	}
	return &gofeed.Image{URL: src}
}
