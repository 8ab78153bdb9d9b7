package feedxml

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Parts are the parts of an entry besides its id, times, links and texts.
type Parts struct {
	Authors, Contributors []Person // of the entry itself
	Categories            []Category
	Rights                Construct
	Comments              string // the URL of a page
	Source                Source
	Files                 []File // that no link of the entry has, and what is known of those of its links
	Duration              time.Duration
	Image                 string // a URL
	Language              string
}

// A Source is the feed an entry comes from: atom:source, or RSS's source.
type Source struct {
	Atom       string // the element, with all its declarations
	Title, URL string // of RSS
}

// A Generator is the program behind a feed.
type Generator struct{ Name, URI, Version string }

// A File is a file of an entry.
type File struct {
	URL, Type, Title string
	Length           int64
	Duration         time.Duration
	Versions         []string // the URLs of all versions of it, if there are several
	Alternate        bool     // it is a version of a file that may be there
}

// PartsOf reads the parts of an entry.
func PartsOf(e Element) (parts Parts) {
	p := partReader{Parts: &parts, all: true}
	switch {
	case e.Raw == "":
	case e.Format == FormatJSON:
		p.json(jsonfeed.ReadItem(e.Raw), e.Scope.Base)
	default:
		p.xml(e)
	}
	return parts
}

// A partReader reads the parts of an entry.
type partReader struct {
	*Parts
	all bool // not only authors and categories, and as form 2 of package publish has them

	others   []Person // the authors in other vocabularies
	fuller   []Person // those that may be there with less, by elements of RSS
	podcast  []Person // those of iTunes, who count if there are no others
	rights   int      // the rank of the rights
	pictures [3]string
	versions []File         // of the main file
	scope    *xmlscan.Scope // of all elements; nil if there is no source
}

// The pictures of an entry, the best first.
const (
	ownPicture = iota
	mediaPicture
	thumbnail
)

// json reads the parts of an item of a JSON Feed.
func (p *partReader) json(item *jsonfeed.Item, base string) {
	p.jsonLists(item)
	p.Language = item.Language
	if image := cmp.Or(item.Image, item.BannerImage); image != "" {
		p.Image = iri.Resolve(base, image)
	}
	p.attachments(item, base)
}

func (p *partReader) jsonLists(item *jsonfeed.Item) {
	authors := item.Authors
	if authors == nil && item.Author != (jsonfeed.Author{}) {
		authors = []jsonfeed.Author{item.Author}
	}
	for _, a := range authors {
		person := PersonOf(a.Name)
		person.URI = a.URL
		p.Authors = append(p.Authors, person)
	}
	for _, tag := range item.Tags {
		p.Categories = WithCategory(p.Categories, Category{Term: tag})
	}
}

// members reads the members of a JSON Feed's item, carried by an entry of another format.
func (p *partReader) members(r *Elements) {
	base := r.Base()
	item := jsonfeed.ReadItem(r.PlainText())
	if image := cmp.Or(item.Image, item.BannerImage); image != "" {
		p.picture(ownPicture, iri.Resolve(base, image))
	}
	p.attachments(item, base)
}

func (p *partReader) attachments(item *jsonfeed.Item, base string) {
	for _, a := range item.Attachments {
		p.Files = append(p.Files, File{
			URL: iri.Resolve(base, a.URL), Type: a.MimeType, Title: a.Title, Length: int64(max(0, a.Size)), Duration: seconds(a.Duration),
		})
	}
}

// xml reads the parts of an entry of Atom or RSS.
func (p *partReader) xml(e Element) {
	raw := e.Raw
	if e.Lenient {
		raw = xmlscan.Standalone(raw, e.Scope.Bindings, "")
	}
	r := Again(raw, e.Scope, e.Format)
	defer r.Release()
	if p.Language = r.Language(); strings.Contains(raw, "source") {
		p.scope = r.NewScope()
	}
	for depth := r.Depth(); r.Child(depth); {
		p.element(r, r.Row())
	}
	p.end()
}

// end completes the parts after the last element.
func (p *partReader) end() {
	p.others = slices.Concat(p.fuller, p.others)
	for _, person := range p.fuller {
		for i, a := range p.Authors {
			if cmp.Or(a.Name, a.Email) == cmp.Or(person.Name, person.Email) {
				p.Authors[i] = person
			}
		}
	}
	for _, person := range p.others {
		p.Authors = WithPerson(p.Authors, person)
	}
	if p.all && len(p.Authors) == 0 {
		p.Authors = p.podcast
	}
	if n := len(p.Files); n == 0 && len(p.versions) > 0 {
		p.addVersion(p.versions, "")
		p.Files[n].Alternate = true
	}
	p.Image = cmp.Or(p.pictures[:]...)
}

// element reads the current element of an entry.
func (p *partReader) element(r *Elements, row *Row) {
	if r.IsStranger() {
		return
	}
	switch row.Entry {
	case MeansAuthor:
		p.author(r, row)
		return
	case MeansCategory:
		p.Categories = WithCategory(p.Categories, r.Category(row))
		return
	}
	if !p.all {
		return
	}
	switch row.Entry {
	case MeansContributor:
		p.Contributors = WithPerson(p.Contributors, r.AnyPerson(row))
	case MeansRights:
		if n := row.Rank(r.Format); n > p.rights {
			p.Rights, p.rights = r.Rights(row), n
		}
	case MeansComments:
		p.Comments = cmp.Or(p.Comments, r.TextReference())
	case MeansSource:
		p.source(r, row)
	case MeansLanguage:
		if lang := r.LanguageText(); lang != "" && (p.Language == "" || r.Format == FormatRSS) {
			p.Language = lang
		}
	case MeansDuration:
		p.Duration = cmp.Or(p.Duration, clockTime(r.PlainText()))
	case MeansImage, MeansGroup:
		p.medium(r, &p.Files)
	case MeansFile:
		p.alternate(r)
	case MeansNothing:
		if r.Cursor.Space() == JSONMembers {
			p.members(r)
		}
	}
}

// author reads an author. Those of the format itself come first.
func (p *partReader) author(r *Elements, row *Row) {
	switch person := r.AnyPerson(row); {
	case row.Space == ITunes:
		if person.Name+person.Email != "" {
			p.podcast = append(p.podcast[:0], person)
		}
	case row.Form == PersonForm && r.Format == FormatAtom:
		p.Authors = append(p.Authors, person)
	case row.Form == ContactForm:
		p.Authors = WithPerson(p.Authors, person)
	case p.all && row.Form == PersonForm: // RSS also names the person in a shorter form
		p.fuller = append(p.fuller, person)
	default:
		p.others = append(p.others, person)
	}
}

// AnyPerson reads the current element as a person: a construct of Atom, or a text.
func (r *Elements) AnyPerson(row *Row) Person {
	if row.Form == PersonForm {
		return r.Person()
	}
	return PersonOf(r.PlainText())
}

// Category reads the current element as a category.
func (r *Elements) Category(row *Row) Category {
	attr := func(name string) string { value, _ := r.Attr("", name); return value }
	switch row.Space {
	case Atom:
		return Category{Term: cmp.Or(attr("term"), attr("label")), Scheme: attr("scheme"), Label: attr("label")}
	case DC:
		return Category{Term: r.PlainText()}
	}
	return Category{Scheme: attr("domain"), Term: r.PlainText()}
}

// Generator reads the current element as the generator of a feed.
func (r *Elements) Generator(row *Row) (g Generator) {
	if row.Space == Atom {
		g.Version, _ = r.Attr("", "version")
		uri, _ := r.Attr("", "uri")
		url, _ := r.Attr("", "url") // in Atom 0.3
		if uri = cmp.Or(xmlscan.Trim(uri), xmlscan.Trim(url)); uri != "" {
			g.URI = r.Reference(uri, r.Offset())
		}
	}
	g.Name = r.PlainText()
	return g
}

// Rights reads the current element as a statement of rights.
func (r *Elements) Rights(row *Row) Construct {
	if row.Space == Atom {
		return r.Construct()
	}
	t := Construct{Type: textType, Lang: r.Language()}
	t.Body = r.PlainText()
	return t
}

// source reads the current element as the source of an entry.
func (p *partReader) source(r *Elements, row *Row) {
	if row.Space != Atom {
		ref, _ := r.Attr("", "url")
		if ref = xmlscan.Trim(ref); ref != "" {
			ref = r.Reference(ref, r.Offset())
		}
		if p.Source.URL == "" {
			p.Source.URL, p.Source.Title = ref, r.PlainText()
		}
		return
	}
	if p.Source.Atom == "" && p.scope != nil {
		start := r.Offset()
		r.Skip()
		before, rest := p.scope.Standalone(r.Document()[start:r.End()], false)
		p.Source.Atom = before + rest
	}
}

// medium reads an element of Media RSS, or a picture of iTunes: a file, a picture, or several of
// them in a group, which are versions of one.
func (p *partReader) medium(r *Elements, files *[]File) {
	attr := func(name string) string { value, _ := r.Attr("", name); return xmlscan.Trim(value) }
	offset, space, local := r.Offset(), r.Space(), r.Local()
	if space == ITunes {
		p.picture(ownPicture, r.Reference(attr("href"), offset))
		return
	}
	switch local {
	case "thumbnail":
		p.picture(thumbnail, r.Reference(attr("url"), offset))
		return
	case "group":
		var versions []File
		preferred := ""
		for depth := r.Depth(); r.Child(depth); {
			if row := r.Row(); row.Space == Media && (row.Entry == MeansImage || row.Entry == MeansGroup) {
				isDefault, _ := r.Attr("", "isDefault")
				n := len(versions)
				p.medium(r, &versions)
				if len(versions) > n && strings.EqualFold(xmlscan.Trim(isDefault), "true") && preferred == "" {
					preferred = versions[n].URL
				}
			}
		}
		p.addVersion(versions, preferred)
		return
	}
	f := File{Type: attr("type"), Length: number(attr("fileSize")), Duration: clockTime(attr("duration"))}
	if f.URL = attr("url"); f.URL != "" {
		f.URL = r.Reference(f.URL, offset)
	}
	kind := mediaKind(f, attr("medium"))
	for depth := r.Depth(); r.Child(depth); {
		switch r.Row().Entry {
		case MeansTitle:
			f.Title = cmp.Or(f.Title, r.Construct().Plain())
		case MeansImage:
			p.medium(r, nil)
		}
	}
	switch {
	case f.URL == "":
	case kind == "image":
		p.picture(mediaPicture, f.URL)
	case files != nil && !slices.ContainsFunc(*files, func(other File) bool { return other.URL == f.URL }):
		*files = append(*files, f)
	}
}

// mediaKind returns "image" if a file of Media RSS is a picture.
func mediaKind(f File, medium string) string {
	kind, _, _ := strings.Cut(strings.ToLower(f.Type), "/")
	if kind == "" {
		kind = strings.ToLower(medium)
	}
	if kind == "" {
		switch strings.ToLower(path.Ext(iri.Split(f.URL).Path)) {
		case ".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg":
			kind = "image"
		}
	}
	return kind
}

// alternate reads podcast:alternateEnclosure, a version of the entry's file.
func (p *partReader) alternate(r *Elements) {
	attr := func(name string) string { value, _ := r.Attr("", name); return xmlscan.Trim(value) }
	f := File{Type: attr("type"), Title: attr("title"), Length: number(attr("length"))}
	isDefault := strings.EqualFold(attr("default"), "true")
	for depth := r.Depth(); r.Child(depth); {
		if uri, ok := r.Attr("", "uri"); ok && r.Local() == "source" && f.URL == "" && iri.IsHTTP(xmlscan.Trim(uri)) {
			f.URL = xmlscan.Trim(uri)
		}
	}
	switch {
	case f.URL == "":
	case isDefault:
		p.versions = slices.Insert(p.versions, 0, f)
	default:
		p.versions = append(p.versions, f)
	}
}

// addVersion adds one of several versions of a file: the preferred one, or else the first.
func (p *partReader) addVersion(versions []File, preferred string) {
	i := max(0, slices.IndexFunc(versions, func(f File) bool { return f.URL == preferred }))
	if i < len(versions) {
		f := versions[i]
		for _, other := range versions {
			f.Versions = append(f.Versions, other.URL)
		}
		p.Files = append(p.Files, f)
	}
}

func (p *partReader) picture(kind int, url string) {
	if p.pictures[kind] == "" {
		p.pictures[kind] = url
	}
}

// WithPerson returns persons with another one, unless there is one with this name.
func WithPerson(all []Person, p Person) []Person {
	name := cmp.Or(p.Name, p.Email, p.URI)
	if name == "" || slices.ContainsFunc(all, func(other Person) bool { return cmp.Or(other.Name, other.Email, other.URI) == name }) {
		return all
	}
	return append(all, p)
}

// WithCategory returns categories with another one, unless it is empty, or already there, perhaps
// with a label.
func WithCategory(all []Category, c Category) []Category {
	if c.Term == "" || slices.ContainsFunc(all, func(k Category) bool { return k == c || c.Label == "" && k.Term == c.Term && k.Scheme == c.Scheme }) {
		return all
	}
	return append(all, c)
}

// number reads a length in bytes; zero if it is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// Bytes returns the length of a link's file, in bytes; zero if the link says none.
func (l Link) Bytes() int64 { return number(xmlscan.Trim(l.Length)) }

// clockTime reads a duration: seconds, or hours, minutes and seconds with colons; zero if it is
// neither.
func clockTime(text string) time.Duration {
	total := 0.0
	for part := range strings.SplitSeq(text, ":") {
		n, err := strconv.ParseFloat(xmlscan.Trim(part), 64)
		if err != nil || !(n >= 0) || total > maxSeconds {
			return 0
		}
		total = 60*total + n
	}
	return seconds(total)
}

// maxSeconds is the longest duration of a file, a year.
const maxSeconds = 366 * 24 * 60 * 60

// seconds returns a duration; zero if it is not a possible one.
func seconds(n float64) time.Duration {
	if !(n > 0 && n <= maxSeconds) {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}
