package feedhistory

import (
	"cmp"
	"slices"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
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
	read := feedxml.Entry{Raw: e.raw, Scope: e.scope, Format: feedxml.Format(e.format()), Updated: e.Updated, Published: e.Published}
	item, limit := read.Decode(e.linked)
	for which, field := range []*string{&item.Title, &item.Description, &item.Content} {
		if *field == "" { // another vocabulary may have it
			*field = e.text(which, false).absolute()
		}
	}
	e.finishItem(item)
	if limit != nil {
		line, column := xmlscan.Line(e.raw, limit.Offset)
		return item, &ParseError{
			URL: e.scope.Base, Reason: ReasonLimit, Clause: clauseLimits,
			Offset: limit.Offset, Line: line, Column: column, Err: limit,
		}
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
				links = feedxml.Add(links, room, l.Href)
			}
		case RelEnclosure:
			item.Enclosures = append(item.Enclosures, &gofeed.Enclosure{URL: l.Href, Length: l.Length, Type: l.Type})
		}
	}
	return links
}

// decodeJSON returns a JSON Feed's item in gofeed's form.
func (e *Entry) decodeJSON() *gofeed.Item {
	from, base := jsonfeed.ReadItem(e.raw), e.scope.Base
	item := &gofeed.Item{
		Title: e.Title().Body, Description: e.Summary().Body, Content: e.Content().absolute(),
		Published: from.Published, PublishedParsed: feedxml.Given(new(e.Published)),
		Updated: from.Modified, UpdatedParsed: feedxml.Given(new(e.Updated)),
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
	p := feedxml.PersonOf(a.Name)
	p.URL = a.URL
	return p
}
