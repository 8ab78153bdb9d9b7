package feedhistory

import (
	"cmp"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	jsonfeed "github.com/mmcdole/gofeed/json"
)

// What an RSS item says, in gofeed's form. Other vocabularies may have what the
// item itself has not; which goes before which is gofeed's choice.

// rssItem reads the children of the current item.
func (d *decoder) rssItem(e *Entry) {
	r, item := d.r, &d.item
	author := ""
	for depth := r.s.Depth(); d.child(depth); {
		if space := r.space(); !r.isRSS() && space != nsRDF {
			if space == nsContent && r.s.Local() == "encoded" {
				item.Content = d.text()
			} else {
				d.extension(&item.Extensions)
			}
			continue
		}
		switch local := r.s.Local(); rssName(local) {
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
				item.Link = resolve(base, href)
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

// rssExtensions fills in what the item's own elements do not say.
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

// date reads a date; zero if it is none.
func (d *decoder) date(text string) time.Time {
	t, _ := d.r.dates.read(text)
	return t
}

// rssAuthor returns the author whom a text names, or Atom elements; nil for none.
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

// personOf reads "jane@example.org (Jane Doe)" and its variants. Only what has an
// address needs gofeed's help.
func personOf(text string) *gofeed.Person {
	if text = strings.TrimSpace(text); !strings.Contains(text, "@") {
		return &gofeed.Person{Name: text}
	}
	feed, err := new(gofeed.DefaultJSONTranslator).Translate(&jsonfeed.Feed{Author: &jsonfeed.Author{Name: text}})
	if err != nil {
		return &gofeed.Person{Name: text}
	}
	return feed.Author
}

// rssImage returns the item's picture: one that it names, or the first in its text.
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
	return firstImage(item.Content, item.Description)
}

// first returns the first of several values, "" for none.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// value returns what the first of several elements says.
func value(elements []ext.Extension) string {
	if len(elements) == 0 {
		return ""
	}
	return elements[0].Value
}

// usualPrefixes are those under which gofeed has vocabularies, whatever prefix a
// document has for them.
var usualPrefixes = map[string]string{
	nsAtom:                   "atom",
	nsAtom03:                 "atom03",
	nsContent:                "content",
	nsDC:                     "dc",
	nsDCTerms:                "dcterms",
	nsITunes:                 "itunes",
	nsMedia:                  "media",
	nsRDF:                    "rdf",
	nsSyndication:            "sy",
	nsXHTML:                  "xhtml",
	nsXML:                    "xml",
	"http://webns.net/mvcb/": "admin",
	"http://purl.org/rss/1.0/modules/aggregation/":                   "ag",
	"http://purl.org/rss/1.0/modules/annotate/":                      "annotate",
	"http://media.tangent.org/rss/1.0/":                              "audio",
	"http://backend.userland.com/blogChannelModule":                  "blogChannel",
	"http://creativecommons.org/ns#license":                          "cc",
	"http://web.resource.org/cc/":                                    "cc",
	"http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html": "creativeCommons",
	"http://backend.userland.com/creativeCommonsRssModule":           "creativeCommons",
	"http://purl.org/rss/1.0/modules/company":                        "co",
	"http://my.theinfo.org/changed/1.0/rss/":                         "cp",
	"http://purl.org/rss/1.0/modules/email/":                         "email",
	"http://purl.org/rss/1.0/modules/event/":                         "ev",
	"http://rssnamespace.org/feedburner/ext/1.0":                     "feedburner",
	"http://freshmeat.net/rss/fm/":                                   "fm",
	"http://xmlns.com/foaf/0.1/":                                     "foaf",
	"http://www.w3.org/2003/01/geo/wgs84_pos#":                       "geo",
	"http://www.georss.org/georss":                                   "georss",
	"http://www.opengis.net/gml":                                     "gml",
	"http://postneo.com/icbm/":                                       "icbm",
	"http://purl.org/rss/1.0/modules/image/":                         "image",
	"http://purl.org/rss/1.0/modules/link/":                          "l",
	"http://madskills.com/public/xml/rss/module/pingback/":           "pingback",
	"http://prismstandard.org/namespaces/1.2/basic/":                 "prism",
	"http://www.w3.org/2000/01/rdf-schema#":                          "rdfs",
	"http://purl.org/rss/1.0/modules/reference/":                     "ref",
	"http://purl.org/rss/1.0/modules/richequiv/":                     "reqv",
	"http://purl.org/rss/1.0/modules/search/":                        "search",
	"http://purl.org/rss/1.0/modules/slash/":                         "slash",
	"http://schemas.xmlsoap.org/soap/envelope/":                      "soap",
	"http://purl.org/rss/1.0/modules/servicestatus/":                 "ss",
	"http://hacks.benhammersley.com/rss/streaming/":                  "str",
	"http://purl.org/rss/1.0/modules/subscription/":                  "sub",
	"http://schemas.pocketsoap.com/rss/myDescModule/":                "szf",
	"http://purl.org/rss/1.0/modules/taxonomy/":                      "taxo",
	"http://purl.org/rss/1.0/modules/threading/":                     "thr",
	"http://purl.org/rss/1.0/modules/textinput/":                     "ti",
	"http://madskills.com/public/xml/rss/module/trackback/":          "trackback",
	"http://wellformedweb.org/commentAPI/":                           "wfw",
	"http://purl.org/rss/1.0/modules/wiki/":                          "wiki",
	"http://www.w3.org/1999/xlink":                                   "xlink",
	"http://podlove.org/simple-chapters":                             "psc",
}
