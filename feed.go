package feedhistory

import (
	"cmp"
	"strings"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/mmcdole/gofeed/rss"
)

// What a document says, for programs that hold gofeed's feeds.

// Feed returns the history in gofeed's form: the head section of its newest
// document, and all entries. Verdict and Gaps say what is missing of it.
func (h *History) Feed() *gofeed.Feed {
	head := h.Head
	if head == nil {
		head = new(Document)
	}
	return head.feed(h.Entries)
}

// Feed returns the document in gofeed's form, with all that its head section says:
// title, description, links, language, image, authors, copyright, generator,
// categories, iTunes, Dublin Core and other extensions. Items are what
// Entry.Decode returns; of an entry that is beyond its limits they have the
// beginning.
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

// head returns a decoder of the head section's elements.
func (d *Document) head() (*decoder, int) {
	sc := d.scope
	if sc == nil {
		sc = &scope{base: d.URL}
	}
	elements := "<head>" + strings.Join(d.known, "") + strings.Join(d.extra, "") + "</head>"
	r := newFragment(elements, sc, d.Format)
	return &decoder{r: r}, r.s.Depth()
}

// markup returns a text of the head section as it stands there, if the document
// still says it.
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
		if space := r.space(); space != r.native && !isAtom(space) {
			head.extension(&feed.Extensions)
			continue
		}
		base := r.currentBase()
		switch atomName(r.s.Local()) {
		case "title":
			feed.Title = head.markup(d.Title)
		case "subtitle", "tagline":
			feed.Description = head.markup(d.Subtitle)
		case "updated", "modified":
			feed.Updated = r.plainText()
		case "rights", "copyright":
			feed.Copyright = head.text()
		case "category":
			feed.Categories = append(feed.Categories, r.category())
		case "generator":
			feed.Generator = r.generator()
		case "icon":
			icon = resolve(base, r.plainText())
		case "logo":
			logo = resolve(base, r.plainText())
		}
	}
	if image := cmp.Or(logo, icon); image != "" {
		feed.Image = &gofeed.Image{URL: image}
	}
	return feed
}

// generator reads what has made an Atom feed: its name, version and address.
func (r *reader) generator() string {
	version, _ := r.s.Attr("", "version")
	if version != "" {
		version = " v" + version
	}
	uri, _ := r.s.Attr("", "uri")
	url, _ := r.s.Attr("", "url") // in Atom 0.3
	base := r.currentBase()
	if uri = cmp.Or(uri, url); uri != "" {
		uri = " " + resolve(base, uri)
	}
	return strings.TrimSpace(r.plainText() + version + uri)
}

// rssFeed reads the channel's elements, and has gofeed choose which go before
// which.
func (d *Document) rssFeed() *gofeed.Feed {
	channel := &rss.Feed{Title: d.Title, Description: d.Subtitle}
	head, depth := d.head()
	for r := head.r; head.child(depth); {
		if !r.isRSS() && r.space() != nsRDF {
			head.extension(&channel.Extensions)
			continue
		}
		switch rssName(strings.ToLower(r.s.Local())) {
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
			channel.Image = r.image(channel.Image)
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
		feed.Image = firstImage(feed.Description)
	}
	return feed
}

// image reads a channel's picture. What only refers to another, as RSS 1.0 does,
// is none.
func (r *reader) image(before *rss.Image) *rss.Image {
	image := new(rss.Image)
	for depth := r.s.Depth(); r.child(depth); {
		switch base := r.currentBase(); rssName(r.s.Local()) {
		case "url":
			image.URL = resolve(base, r.plainText())
		case "title":
			image.Title = r.plainText()
		}
	}
	if *image == (rss.Image{}) {
		return before
	}
	return image
}

// jsonFeed takes the times from the first entry, as gofeed does: a JSON Feed has
// none.
func (d *Document) jsonFeed(entries []*Entry) *gofeed.Feed {
	feed := &gofeed.Feed{Title: d.Title, Description: d.Subtitle}
	if d.Format == JSONFeed {
		feed.FeedType = "json"
	}
	if len(entries) > 0 {
		if first := entries[0]; first.format() == JSONFeed {
			item := first.jsonItem()
			feed.Updated, feed.UpdatedParsed = item.Modified, given(new(first.Updated))
			feed.Published, feed.PublishedParsed = item.Published, given(new(first.Published))
		}
	}
	return feed
}
