package feedxml

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The limits on decoding one entry, because elements take more memory than their text.
const (
	maxDecodedElements   = 5000
	maxDecodedNamespaces = 32
)

// A DecodeError says an entry exceeds a limit on decoding.
type DecodeError struct {
	Offset int // in the entry
	Msg    string
}

// Error returns the message.
func (e *DecodeError) Error() string { return e.Msg }

// An Entry is an entry to decode.
type Entry struct {
	Raw                string
	Scope              *xmlscan.Scope
	Format             Format
	Updated, Published time.Time
}

// Decode returns the entry in gofeed's form, without texts of other vocabularies. In Atom,
// links sets those of the item, and returns its Links, which begin in room. Together with
// an error, the item has the elements before the limit.
func (e *Entry) Decode(links func(item *gofeed.Item, room []string) []string) (*gofeed.Item, *DecodeError) {
	d := decoder{r: Again(e.Raw, e.Scope, e.Format), itemRoom: new(itemRoom)}
	defer d.r.Release()
	if e.Format == Atom {
		d.atomEntry(e, links)
	} else {
		d.rssItem(e)
	}
	return &d.item, d.err
}

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

// Add appends a value to a list whose first elements are stored in room.
func Add[T any](list, room []T, value T) []T {
	if list == nil {
		list = room[:0]
	}
	return append(list, value)
}

// author adds an author.
func (d *itemRoom) author(p xmlscan.Person) {
	var author *gofeed.Person
	if n := len(d.item.Authors); n < len(d.persons) {
		author = &d.persons[n]
	} else {
		author = new(gofeed.Person)
	}
	*author = gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
	d.item.Authors = Add(d.item.Authors, d.authors[:], author)
}

// A decoder reads an entry, or the elements of a head section, into gofeed's form.
type decoder struct {
	*itemRoom
	r        *Elements
	err      *DecodeError
	elements int
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
	d.err = &DecodeError{d.r.Offset(), fmt.Sprintf("more than %d %s in one entry", limit, what)}
	d.r.Stop()
}

// text reads the current element, with absolute references.
func (d *decoder) text() string { return d.r.Construct().Absolute() }

// Given returns a pointer to a time; nil if the time is zero.
func Given(t *time.Time) *time.Time {
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
func (d *decoder) atomEntry(e *Entry, links func(item *gofeed.Item, room []string) []string) {
	r, item := d.r, &d.item
	for depth := r.Depth(); d.child(depth); {
		if space := r.Space(); space != r.Native && !vocab.IsAtom(space) {
			d.extension(&item.Extensions)
			continue
		}
		switch vocab.AtomName(r.Local()) {
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
			item.Categories = Add(item.Categories, d.categories[:], d.category())
		}
	}
	item.Links = links(item, d.links[:])
	d.times = [...]time.Time{e.Updated.UTC(), e.Published.UTC()}
	item.UpdatedParsed, item.PublishedParsed = Given(&d.times[0]), Given(&d.times[1])
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
func (d *decoder) rssItem(e *Entry) {
	r, item := d.r, &d.item
	author := ""
	for depth := r.Depth(); d.child(depth); {
		if space := r.Space(); !r.IsRSS() && space != vocab.RDF {
			if space == vocab.Content && r.Local() == "encoded" {
				item.Content = d.text()
			} else {
				d.extension(&item.Extensions)
			}
			continue
		}
		switch local := r.Local(); vocab.RSSName(local) {
		case "title":
			item.Title = d.text()
		case "description":
			item.Description = d.text()
		case "pubDate":
			item.Published = r.PlainText()
		case "link":
			href, _ := r.Attr("", "href")
			base := r.Base()
			if href = cmp.Or(r.PlainText(), href); href != "" {
				item.Link = iri.Resolve(base, href)
				item.Links = Add(item.Links, d.links[:], item.Link)
			}
		case "author":
			author = r.PlainText()
		case "category":
			item.Categories = Add(item.Categories, d.categories[:], r.PlainText())
		case "enclosure":
			if l := r.Enclosure(); l.Href != "" {
				item.Enclosures = append(item.Enclosures, &gofeed.Enclosure{URL: l.Href, Length: l.Length, Type: l.Type})
			}
		case "guid", "source", "comments":
		default:
			if item.Custom == nil {
				item.Custom = map[string]string{}
			}
			item.Custom[local] = r.TextOrMarkup(xmlscan.Construct{Base: r.Base()}).Absolute()
		}
	}
	if item.Published != "" {
		d.times[1] = e.Published.UTC()
		item.PublishedParsed = Given(&d.times[1])
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
		d.times[1] = timeOf(item.Published)
		item.PublishedParsed = Given(&d.times[1])
	}
	item.Updated = cmp.Or(date, value(atom["updated"]))
	d.times[0] = timeOf(item.Updated)
	item.UpdatedParsed = Given(&d.times[0])
	item.Author = rssAuthor(cmp.Or(author, first(dc.Author), first(dc.Creator), itunes.Author), atom["author"])
	if item.Author != nil {
		item.Authors = Add(nil, d.authors[:], item.Author)
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
