package feedhistory

import (
	"cmp"
	"strings"

	"github.com/mmcdole/gofeed"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
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
		feed = d.headElements().AtomFeed(d.Title, d.Subtitle)
	case RSS:
		feed = d.headElements().RSSFeed(d.Title, d.Subtitle)
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
		feed.UpdatedParsed = feedxml.Given(new(d.Updated.UTC()))
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

// headElements returns the elements of the head section.
func (d *Document) headElements() *feedxml.Elements {
	sc := d.scope
	if sc == nil {
		sc = &xmlscan.Scope{Base: d.URL}
	}
	elements := "<head>" + strings.Join(d.known, "") + strings.Join(d.extra, "") + "</head>"
	return feedxml.Fragment(elements, sc, feedxml.Format(d.Format))
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
			feed.Updated, feed.UpdatedParsed = item.Modified, feedxml.Given(new(first.Updated))
			feed.Published, feed.PublishedParsed = item.Published, feedxml.Given(new(first.Published))
		}
	}
	return feed
}

// gofeed returns the person in gofeed's form.
func (p Person) gofeed() *gofeed.Person {
	return &gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
}
