package feedhistory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Decode returns the whole entry in gofeed's form: authors, categories, enclosures,
// iTunes, Dublin Core and other extensions, as gofeed's parser does. It resolves
// references by RFC 3986. Title, description and content are those of Title, Summary
// and Content, with absolute references.
//
// The error is a *ParseError with ReasonLimit if the authors and extensions have more
// than 5,000 elements, or 32 namespaces; the item then has those before.
func (e *Entry) Decode() (*gofeed.Item, error) {
	switch {
	case e.raw == "":
		return e.finishItem(&gofeed.Item{}), nil
	case e.format() == JSONFeed:
		return e.decodeJSON(), nil
	}
	d := decoder{r: e.reader(), gofeedItem: new(gofeedItem)}
	defer d.r.release()
	if e.format() == Atom {
		d.atomEntry(e)
	} else {
		d.rssItem(e)
	}
	item := &d.item
	for which, field := range []*string{&item.Title, &item.Description, &item.Content} {
		if *field == "" { // another vocabulary may have it
			*field = e.text(which).absolute()
		}
	}
	e.finishItem(item)
	if d.r.err != nil {
		return item, d.r.err
	}
	return item, nil
}

// finishItem sets the fields that do not depend on the entry's element alone.
func (e *Entry) finishItem(item *gofeed.Item) *gofeed.Item {
	if !e.WeakID {
		item.GUID = e.ID
	}
	if len(item.Authors) == 0 {
		for _, p := range e.authors() {
			item.Authors = append(item.Authors, p.gofeed())
		}
	}
	if e.format() == Atom && len(item.Authors) > 0 {
		item.Author = item.Authors[0]
	}
	return item
}

// The limits on decoding one entry, because elements take more memory than their text.
const (
	maxDecodedElements   = 5000
	maxDecodedNamespaces = 32
)

// A gofeedItem is an item, with room for the things most items point to, so all of it
// is one allocation.
type gofeedItem struct {
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
func (d *gofeedItem) author(p Person) {
	var author *gofeed.Person
	if n := len(d.item.Authors); n < len(d.persons) {
		author = &d.persons[n]
		*author = gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
	} else {
		author = p.gofeed()
	}
	d.item.Authors = add(d.item.Authors, d.authors[:], author)
}

// A decoder reads an entry, or the elements of a head section, into gofeed's form.
type decoder struct {
	*gofeedItem
	r        *elements
	elements int
	prefixes []xmlscan.Binding // the keys of extensions
	few      [2]xmlscan.Binding
}

// child moves to the next child element, unless there have been too many.
func (d *decoder) child(depth int) bool { return d.r.child(depth) && d.count() }

func (d *decoder) count() bool {
	if d.elements++; d.elements > maxDecodedElements {
		d.fail("elements", maxDecodedElements)
	}
	return d.r.err == nil
}

func (d *decoder) fail(what string, limit int) {
	d.r.fail(ReasonLimit, clauseLimits, fmt.Sprintf("more than %d %s in one entry", limit, what))
}

// text reads the current element, with absolute references.
func (d *decoder) text() string { return d.r.textConstruct().absolute() }

// atomEntry reads the children of the current entry.
func (d *decoder) atomEntry(e *Entry) {
	r, item := d.r, &d.item
	for depth := r.s.Depth(); d.child(depth); {
		if space := r.space(); space != r.native && !vocab.IsAtom(space) {
			d.extension(&item.Extensions)
			continue
		}
		switch vocab.AtomName(r.s.Local()) {
		case "title":
			item.Title = d.text()
		case "summary":
			item.Description = d.text()
		case "content":
			item.Content = d.text()
		case "updated", "modified":
			item.Updated = r.plainText()
		case "published", "issued":
			item.Published = r.plainText()
		case "author":
			d.author(r.person())
		case "category":
			item.Categories = add(item.Categories, d.categories[:], d.category())
		}
	}
	item.Links = e.linked(item, d.links[:])
	d.times = [...]time.Time{e.Updated.UTC(), e.Published.UTC()}
	item.UpdatedParsed, item.PublishedParsed = given(&d.times[0]), given(&d.times[1])
	item.Published = cmp.Or(item.Published, item.Updated)
	item.PublishedParsed = cmp.Or(item.PublishedParsed, item.UpdatedParsed)
}

// category reads an Atom category: its label, or else its term.
func (d *decoder) category() string {
	if label, _ := d.r.s.Attr("", "label"); label != "" {
		return label
	}
	term, _ := d.r.s.Attr("", "term")
	return term
}

// linked sets the item's link and enclosures, and returns its links, which begin in
// room.
func (e *Entry) linked(item *gofeed.Item, room []string) (links []string) {
	for _, l := range e.Links {
		switch l.Rel {
		case RelAlternate, RelSelf, "related":
			if l.Rel == RelAlternate && item.Link == "" {
				item.Link = l.Href
			}
			if l.Rel != "related" || e.format() == JSONFeed {
				links = add(links, room, l.Href)
			}
		case RelEnclosure:
			item.Enclosures = append(item.Enclosures, l.enclosure())
		}
	}
	return links
}

func (l Link) enclosure() *gofeed.Enclosure {
	return &gofeed.Enclosure{URL: l.Href, Length: l.Length, Type: l.Type}
}

// given returns a pointer to a time; nil if the time is zero.
func given(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
}

// rssItem reads the children of the current item. Other vocabularies may supply what
// the item itself lacks; which of them takes precedence is gofeed's choice.
func (d *decoder) rssItem(e *Entry) {
	r, item := d.r, &d.item
	author := ""
	for depth := r.s.Depth(); d.child(depth); {
		if space := r.space(); !r.isRSS() && space != vocab.RDF {
			if space == vocab.Content && r.s.Local() == "encoded" {
				item.Content = d.text()
			} else {
				d.extension(&item.Extensions)
			}
			continue
		}
		switch local := r.s.Local(); vocab.RSSName(local) {
		case "title":
			item.Title = d.text()
		case "description":
			item.Description = d.text()
		case "pubDate":
			item.Published = r.plainText()
		case "link":
			href, _ := r.s.Attr("", "href")
			base := r.currentBase()
			if href = cmp.Or(r.plainText(), href); href != "" {
				item.Link = iri.Resolve(base, href)
				item.Links = add(item.Links, d.links[:], item.Link)
			}
		case "author":
			author = r.plainText()
		case "category":
			item.Categories = add(item.Categories, d.categories[:], r.plainText())
		case "enclosure":
			for _, l := range r.enclosure(nil) {
				item.Enclosures = append(item.Enclosures, l.enclosure())
			}
		case "guid", "source", "comments":
		default:
			if item.Custom == nil {
				item.Custom = map[string]string{}
			}
			item.Custom[local] = r.textOrMarkup(Text{Base: r.currentBase()}).absolute()
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
	dc, itunes := &ext.DublinCoreExtension{}, &ext.ITunesItemExtension{}
	if m := item.Extensions["dc"]; m != nil {
		item.DublinCoreExt = ext.NewDublinCoreExtension(m)
		dc = item.DublinCoreExt
	}
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
		d.times[1] = d.date(item.Published)
		item.PublishedParsed = given(&d.times[1])
	}
	item.Updated = cmp.Or(date, value(atom["updated"]))
	d.times[0] = d.date(item.Updated)
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
	item.Image = rssImage(item, itunes.Image)
}

// date reads a date; zero if it cannot be read.
func (d *decoder) date(text string) time.Time {
	t, _ := d.r.date(text)
	return t
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

// decodeJSON returns a JSON Feed's item in gofeed's form.
func (e *Entry) decodeJSON() *gofeed.Item {
	from, base := jsonfeed.ReadItem(e.raw), e.scope.Base
	item := &gofeed.Item{
		Title: e.Title().Body, Description: e.Summary().Body, Content: e.Content().absolute(),
		Published: from.Published, PublishedParsed: given(new(e.Published)),
		Updated: from.Modified, UpdatedParsed: given(new(e.Updated)),
	}
	if image := cmp.Or(from.Image, from.BannerImage); image != "" {
		item.Image = &gofeed.Image{URL: iri.Resolve(base, image)}
	}
	if from.Author != (jsonfeed.Author{}) {
		item.Author = jsonAuthor(from.Author)
		item.Authors = []*gofeed.Person{item.Author}
	}
	if from.Authors != nil {
		item.Authors = nil
		for _, a := range from.Authors {
			item.Authors = append(item.Authors, jsonAuthor(a))
		}
	}
	item.Categories = slices.Clone(from.Tags)
	item.Links = e.linked(item, nil)
	return e.finishItem(item)
}

// jsonAuthor returns an author in gofeed's form.
func jsonAuthor(a jsonfeed.Author) *gofeed.Person {
	p := personOf(a.Name)
	p.URL = a.URL
	return p
}
