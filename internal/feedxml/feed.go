package feedxml

import (
	"cmp"
	"strings"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/mmcdole/gofeed/rss"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// markup returns the current text of the head section with its markup, if the
// document's field still has the same text; otherwise the field.
func (d *decoder) markup(says string) string {
	if t := d.r.Construct(); t.Plain() == says {
		return t.Absolute()
	}
	return says
}

// AtomFeed returns the head section of an Atom feed in gofeed's form: the children of the
// current element. Title and subtitle are the document's.
func (r *Elements) AtomFeed(title, subtitle string) *gofeed.Feed {
	feed := &gofeed.Feed{FeedType: "atom", Title: title, Description: subtitle}
	head, depth := decoder{r: r}, r.Depth()
	icon, logo := "", ""
	for head.child(depth) {
		if space := r.Space(); space != r.Native && !vocab.IsAtom(space) {
			head.extension(&feed.Extensions)
			continue
		}
		base := r.Base()
		switch vocab.AtomName(r.Local()) {
		case "title":
			feed.Title = head.markup(title)
		case "subtitle", "tagline":
			feed.Description = head.markup(subtitle)
		case "updated", "modified":
			feed.Updated = r.PlainText()
		case "rights", "copyright":
			feed.Copyright = head.text()
		case "category":
			feed.Categories = append(feed.Categories, head.category())
		case "generator":
			feed.Generator = head.generator()
		case "icon":
			icon = iri.Resolve(base, r.PlainText())
		case "logo":
			logo = iri.Resolve(base, r.PlainText())
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
	version, _ := r.Attr("", "version")
	if version != "" {
		version = " v" + version
	}
	uri, _ := r.Attr("", "uri")
	url, _ := r.Attr("", "url") // in Atom 0.3
	base := r.Base()
	if uri = cmp.Or(uri, url); uri != "" {
		uri = " " + iri.Resolve(base, uri)
	}
	return strings.TrimSpace(r.PlainText() + version + uri)
}

// RSSFeed returns the head section of an RSS feed likewise. Gofeed chooses which of its
// elements take precedence.
func (r *Elements) RSSFeed(title, subtitle string) *gofeed.Feed {
	channel := &rss.Feed{Title: title, Description: subtitle}
	head, depth := decoder{r: r}, r.Depth()
	for head.child(depth) {
		if !r.IsRSS() && r.Space() != vocab.RDF {
			head.extension(&channel.Extensions)
			continue
		}
		switch vocab.RSSName(strings.ToLower(r.Local())) {
		case "title":
			channel.Title = head.markup(title)
		case "description":
			channel.Description = r.TextOrMarkup(xmlscan.Construct{Type: html, Base: r.Base()}).Absolute()
		case "copyright":
			channel.Copyright = r.PlainText()
		case "managingeditor":
			channel.ManagingEditor = r.PlainText()
		case "webmaster":
			channel.WebMaster = r.PlainText()
		case "pubDate":
			channel.PubDate = r.PlainText()
			channel.PubDateParsed = Given(new(timeOf(channel.PubDate).UTC()))
		case "lastBuildDate":
			channel.LastBuildDate = r.PlainText()
			channel.LastBuildDateParsed = Given(new(timeOf(channel.LastBuildDate).UTC()))
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
		switch base := r.Base(); vocab.RSSName(r.Local()) {
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
