package feedhistory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Decode reads everything that the entry says into gofeed's form: authors,
// categories, enclosures, iTunes, Dublin Core and other extensions, as gofeed's
// parser does. References are resolved as RFC 3986 says. Title, description and
// content are what Title, Summary and Content give, with relative references
// made absolute.
//
// The error is a *ParseError with ReasonLimit where the entry has more than 5,000
// elements, or 32 namespaces, in its authors and extensions; the item then has
// what came before.
func (e *Entry) Decode() (*gofeed.Item, error) {
	switch {
	case e.raw == "":
		return e.finishItem(&gofeed.Item{}), nil
	case e.format() == JSONFeed:
		return e.decodeJSON(), nil
	}
	d := decoder{r: e.reader(), decoded: new(decoded)}
	defer d.r.release()
	if e.format() == Atom {
		d.atomEntry(e)
	} else {
		d.rssItem(e)
	}
	item := &d.item
	for which, field := range []*string{&item.Title, &item.Description, &item.Content} {
		if *field == "" { // in other vocabularies there may be one
			*field = e.text(which).absolute()
		}
	}
	e.finishItem(item)
	if d.r.err != nil {
		return item, d.r.err
	}
	return item, nil
}

// finishItem sets what is not found in the entry's element alone.
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

// gofeed returns the person in gofeed's form.
func (p Person) gofeed() *gofeed.Person {
	return &gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
}

// The most that is decoded of one entry: each element takes more memory than text
// does.
const (
	maxDecodedElements   = 5000
	maxDecodedNamespaces = 32
)

// A decoded is an item, with room for what most items point to: all of it is
// allocated together.
type decoded struct {
	item       gofeed.Item
	times      [2]time.Time
	persons    [2]gofeed.Person
	authors    [2]*gofeed.Person
	categories [3]string
	links      [2]string
}

// add appends a value to a list that begins in room.
func add[T any](list, room []T, value T) []T {
	if list == nil {
		list = room[:0]
	}
	return append(list, value)
}

// author adds an author.
func (d *decoded) author(p Person) {
	var author *gofeed.Person
	if n := len(d.item.Authors); n < len(d.persons) {
		author = &d.persons[n]
		*author = gofeed.Person{Name: p.Name, Email: p.Email, URL: p.URI}
	} else {
		author = p.gofeed()
	}
	d.item.Authors = add(d.item.Authors, d.authors[:], author)
}

// A decoder reads an entry, or what a head section has in addition, into gofeed's
// form.
type decoder struct {
	*decoded
	r        *reader
	elements int
	prefixes []xmlscan.Binding // that extensions are found under
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
		if space := r.space(); space != r.native && !isAtom(space) {
			d.extension(&item.Extensions)
			continue
		}
		switch atomName(r.s.Local()) {
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
			item.Categories = add(item.Categories, d.categories[:], r.category())
		}
	}
	item.Links = e.linked(item, d.links[:])
	d.times = [...]time.Time{e.Updated.UTC(), e.Published.UTC()}
	item.UpdatedParsed, item.PublishedParsed = given(&d.times[0]), given(&d.times[1])
	if item.Published == "" {
		item.Published = item.Updated
	}
	if item.PublishedParsed == nil {
		item.PublishedParsed = item.UpdatedParsed
	}
}

// category reads an Atom category: its label, or what it is a label of.
func (r *reader) category() string {
	if label, _ := r.s.Attr("", "label"); label != "" {
		return label
	}
	term, _ := r.s.Attr("", "term")
	return term
}

// linked sets the item's link and enclosures, and returns its links, for which there
// is room.
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

// given returns where a time is; nil if it is none.
func given(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
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
		outer = nsAtom
	}
	vocabulary[local] = append(vocabulary[local], d.element(outer))
}

// element reads the current element and all that is in it. The default namespace
// around it is outer.
func (d *decoder) element(outer string) ext.Extension {
	s := d.r.s
	e := ext.Extension{Name: s.Local(), Attrs: d.attributes(), Children: map[string][]ext.Extension{}}
	if space := d.r.space(); s.Prefix() == "" && space != outer {
		e.Attrs["xmlns"], outer = space, space
	}
	var only string // the text, as long as it is of one piece
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
			value = resolve(d.r.currentBase(), value)
		case "base", "space":
			if a.Space == nsXML {
				continue
			}
		}
		m[a.Local] = value
	}
	return m
}

// prefix returns what the vocabulary of the current element is found under: its
// usual prefix, or the document's own, unless another namespace in the same entry
// has that; without a prefix, the namespace.
func (d *decoder) prefix() string {
	space, prefix := d.r.space(), d.r.s.Prefix()
	if usual, ok := usualPrefixes[space]; ok {
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

// decodeJSON returns what the item says, in gofeed's form.
func (e *Entry) decodeJSON() *gofeed.Item {
	from, base := e.jsonItem(), e.scope.base
	item := &gofeed.Item{
		Title: from.Title, Description: from.Summary, Content: e.Content().absolute(),
		Published: from.Published, PublishedParsed: given(new(e.Published)),
		Updated: from.Modified, UpdatedParsed: given(new(e.Updated)),
	}
	if image := cmp.Or(from.Image, from.BannerImage); image != "" {
		item.Image = &gofeed.Image{URL: resolve(base, image)}
	}
	if from.Author != (jsonAuthor{}) {
		item.Author = from.Author.gofeed()
		item.Authors = []*gofeed.Person{item.Author}
	}
	if from.Authors != nil {
		item.Authors = nil
		for _, a := range from.Authors {
			item.Authors = append(item.Authors, a.gofeed())
		}
	}
	item.Categories = slices.Clone(from.Tags)
	item.Links = e.linked(item, nil)
	return e.finishItem(item)
}

// gofeed returns the author in gofeed's form.
func (a jsonAuthor) gofeed() *gofeed.Person {
	p := personOf(a.Name)
	p.URL = a.URL
	return p
}
