// Package togofeed returns feeds and entries in the form of gofeed's parser, for programs
// that have used it. The tests compare the two field by field, and examples/fromgofeed
// lists the differences. Each has a reason: ids stay as published, references are absolute,
// an entry has its feed's authors, and broken documents are repaired.
package togofeed

import (
	"cmp"
	"slices"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
)

// Feed returns a history: the head section of its newest document, and all entries. The
// history's Verdict and Gaps describe the missing parts.
func Feed(h *feedhistory.History) *gofeed.Feed {
	h = cmp.Or(h, new(feedhistory.History))
	return feed(cmp.Or(h.Head, new(feedhistory.Document)), h.Entries)
}

// Document returns a document, with its whole head section: title, description, links,
// language, image, authors, copyright, generator, categories, iTunes, Dublin Core and other
// extensions. Its items are those of Item; an entry beyond its limits is incomplete.
func Document(d *feedhistory.Document) *gofeed.Feed {
	d = cmp.Or(d, new(feedhistory.Document))
	return feed(d, d.Entries)
}

func feed(d *feedhistory.Document, entries []*feedhistory.Entry) *gofeed.Feed {
	var feed *gofeed.Feed
	head := door.Root.Head(d)
	switch d.Format {
	case feedhistory.FormatAtom:
		feed = atomFeed(head.Read(), d)
	case feedhistory.FormatRSS:
		feed = rssFeed(head.Read(), d.Title, d.Subtitle)
	default:
		feed = jsonFeed(d, entries)
	}
	feed.FeedVersion = head.Version
	feed.Language = cmp.Or(d.Language, feed.Language)
	feed.Link, feed.FeedLink, feed.Links = "", "", nil
	for _, l := range d.Links {
		switch {
		case l.Rel == "alternate" && feed.Link == "":
			feed.Link = l.Href
		case l.Rel == "self" && feed.FeedLink == "":
			feed.FeedLink = l.Href
		}
		if l.Rel == "alternate" || l.Rel == "self" {
			feed.Links = append(feed.Links, l.Href)
		}
	}
	if d.Format != feedhistory.FormatJSONFeed && feed.UpdatedParsed == nil {
		feed.UpdatedParsed = given(new(d.Updated.UTC()))
	}
	if len(feed.Authors) == 0 {
		for _, p := range d.Authors {
			feed.Authors = append(feed.Authors, person(p))
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
		if item, _ := Item(e); item != nil {
			feed.Items = append(feed.Items, item)
		}
	}
	return feed
}

// jsonFeed takes the times from the first entry, as gofeed does, because a JSON Feed
// has none.
func jsonFeed(d *feedhistory.Document, entries []*feedhistory.Entry) *gofeed.Feed {
	feed := &gofeed.Feed{Title: d.Title, Description: d.Subtitle}
	if d.Format == feedhistory.FormatJSONFeed {
		feed.FeedType = "json"
	}
	if len(entries) > 0 {
		first := entries[0]
		if raw := string(first.JSON()); raw != "" {
			item := jsonfeed.ReadItem(raw)
			feed.Updated, feed.UpdatedParsed = item.Modified, given(new(first.Updated))
			feed.Published, feed.PublishedParsed = item.Published, given(new(first.Published))
		}
	}
	return feed
}

func person(p feedhistory.Person) *gofeed.Person {
	return &gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
}

// Item returns an entry: its authors, categories, enclosures, iTunes, Dublin Core and other
// extensions, as gofeed's parser does. References resolve by RFC 3986. Title, description
// and content are those of Title, Summary and Content, with absolute references.
//
// The error is a *feedhistory.ParseError with ReasonLimit if the authors and extensions have
// more than 5,000 elements, or 32 namespaces; the item then has those before.
func Item(e *feedhistory.Entry) (*gofeed.Item, error) {
	if e == nil {
		e = new(feedhistory.Entry)
	}
	element, err := door.Root.Element(e)
	switch {
	case err != nil:
		return finish(&gofeed.Item{}, e, element), nil // it has nothing else
	case element.Format == feedxml.FormatJSON:
		return jsonItem(e, element), nil
	}
	d := decoder{r: element.Read(), raw: element.Raw, base: element.Scope.Base, itemRoom: new(itemRoom)}
	defer d.r.Release()
	if element.Format == feedxml.FormatAtom {
		d.atomEntry(e)
	} else {
		d.rssItem(e)
	}
	for _, text := range [...]struct {
		field *string
		read  func(*feedhistory.Entry) feedhistory.Text
	}{
		{&d.item.Title, (*feedhistory.Entry).Title}, {&d.item.Description, (*feedhistory.Entry).Summary}, {&d.item.Content, (*feedhistory.Entry).Content},
	} {
		if *text.field == "" { // another vocabulary may have it
			*text.field = absolute(text.read(e))
		}
	}
	finish(&d.item, e, element)
	return &d.item, d.err
}

// absolute returns a text with absolute references.
func absolute(t feedhistory.Text) string { return feedxml.Construct(t).Absolute() }

// finish sets the fields that do not depend on the entry's element alone.
func finish(item *gofeed.Item, e *feedhistory.Entry, element feedxml.Element) *gofeed.Item {
	if !e.WeakID {
		item.GUID = e.ID
	}
	if len(item.Authors) == 0 {
		for _, p := range element.Authors {
			item.Authors = append(item.Authors, &gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI})
		}
	}
	if element.Format == feedxml.FormatAtom && len(item.Authors) > 0 {
		item.Author = item.Authors[0]
	}
	return item
}

// linked sets the item's link and enclosures, and returns its links, which begin in
// room.
func linked(item *gofeed.Item, e *feedhistory.Entry, isJSON bool, room []string) (links []string) {
	for _, l := range e.Links {
		switch l.Rel {
		case "alternate", "self", "related":
			if l.Rel == "alternate" && item.Link == "" {
				item.Link = l.Href
			}
			if l.Rel != "related" || isJSON {
				links = add(links, room, l.Href)
			}
		case "enclosure":
			item.Enclosures = append(item.Enclosures, &gofeed.Enclosure{URL: l.Href, Length: l.Length, Type: l.Type})
		}
	}
	return links
}

// jsonItem returns a JSON Feed's item.
func jsonItem(e *feedhistory.Entry, element feedxml.Element) *gofeed.Item {
	from := jsonfeed.ReadItem(element.Raw)
	item := &gofeed.Item{
		Title: e.Title().Body, Description: e.Summary().Body, Content: absolute(e.Content()),
		Published: from.Published, PublishedParsed: given(new(e.Published)),
		Updated: from.Modified, UpdatedParsed: given(new(e.Updated)),
	}
	if image := cmp.Or(from.Image, from.BannerImage); image != "" { // not an attachment
		item.Image = &gofeed.Image{URL: iri.Resolve(element.Scope.Base, image)}
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
	item.Links = linked(item, e, true, nil)
	return finish(item, e, element)
}

// jsonAuthor returns a JSON Feed's author.
func jsonAuthor(a jsonfeed.Author) *gofeed.Person {
	p := personOf(a.Name)
	p.URL = a.URL
	return p
}

// personOf reads "jane@example.org (Jane Doe)" and its variants.
func personOf(text string) *gofeed.Person {
	p := feedxml.PersonOf(text)
	return &gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
}
