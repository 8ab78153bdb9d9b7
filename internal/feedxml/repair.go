package feedxml

import (
	"cmp"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Facts are those about an entry its repair needs.
type Facts struct {
	ID                 string
	Title              func() string // without markup
	Published, Changed time.Time
	Author             string // the name of the author if the entry has none; "" if it needs none
}

// Write writes an entry or item into a document of its format, with everything its scope
// contributes, and with its authors. With facts it is valid by the rules of Atom or RSS: Write
// copies each element the format allows, rewrites those read leniently as they were read, and leaves
// out elements of the format's own vocabulary that it does not define. Elements of other
// vocabularies stay as published. A repaired element needs no repair.
//
// Valid elements are parts of e: put is called with them.
func (e *Element) Write(rss bool, facts *Facts, put func(text string)) {
	start, rest := e.Scope.Standalone(e.Raw, e.Lenient)
	var w Markup
	for _, p := range e.Authors {
		w.Person(AtomAuthor, p)
	}
	authors := w.String()
	if put(start); facts == nil {
		end := max(0, strings.LastIndex(rest, "</"))
		put(rest[:end])
		if end > 0 { // it has an end tag
			put(authors)
		}
		put(rest[end:])
		return
	}
	element, sc := e.Raw, e.Scope
	if start == "" {
		element, sc = rest, new(xmlscan.Scope)
	}
	r := newReviser(element, sc, rss)
	defer r.read.Release()
	r.entry, r.put, r.done, r.added = facts, put, len(element)-len(rest), authors
	r.has.author = r.added != ""
	if rss {
		r.revise(r.addRSS)
	} else {
		r.revise(r.addAtom)
	}
}

// RepairHead does the same for elements of a head section, each with its own declarations.
func RepairHead(elements string, rss bool) string {
	root := "feed"
	if rss {
		root = "channel"
	}
	r := newReviser("<"+root+">"+elements+"</"+root+">", new(xmlscan.Scope), rss)
	text := r.revised()
	text = text[strings.IndexByte(text, '>')+1:]
	return text[:strings.LastIndex(text, "</")]
}

// A reviser writes an entry, a head section or a source again, valid.
type reviser struct {
	*xmlscan.Cursor
	read     *Elements // the same elements, as a reader means them
	element  string    // the element as published
	scope    *xmlscan.Scope
	entry    *Facts            // nil for a head section and a source
	around   []xmlscan.Binding // the bindings in scope of the children
	prefix   string            // the start tag's prefix
	rootBase string
	rootLang string

	put   func(text string) // writes element[:done], repaired
	done  int
	added string // the children to add at the end

	seen       map[string]bool   // the elements written, by name
	alternates map[string]string // the alternate links, by type and language
	has        inventory
	surveyed   bool
	odd        bool   // see isOdd
	enclosed   string // the URL of the first enclosure of RSS
	wordless   bool   // the content is elsewhere, or no text
}

// An inventory lists the elements on which the repair of others depends.
type inventory struct {
	content   bool // content, or an alternate link
	summary   bool
	author    bool
	enclosure string // the URL of the first one
	permalink string // the guid, if it is a URL
}

// newReviser returns a reviser, at the start tag of an element with a scope, in a document. It is to
// be released.
func newReviser(element string, sc *xmlscan.Scope, rss bool) *reviser {
	around, format := xmlscan.Binding{URI: Atom}, FormatAtom
	if rss {
		around.Prefix, format = "atom", FormatRSS
	}
	within := *sc
	within.Bindings = append([]xmlscan.Binding{around}, sc.Bindings...)
	read := Again(element, &within, format)
	read.MaxURL = math.MaxInt
	return &reviser{
		Cursor: read.Cursor, read: read, element: element, scope: sc, around: slices.Clone(read.Bindings()), prefix: read.Prefix(),
		rootBase: read.Base(), rootLang: read.Language(), seen: map[string]bool{}, alternates: map[string]string{},
	}
}

func (r *reviser) isRSS() bool { return r.read.Format == FormatRSS }

// revised returns the element, and releases the reviser.
func (r *reviser) revised() string {
	var b strings.Builder
	r.put = func(text string) { b.WriteString(text) }
	r.revise(func() {})
	r.read.Release()
	return b.String()
}

// revise writes the element; add adds the children that are missing.
func (r *reviser) revise(add func()) {
	end := len(r.element)
	switch depth := r.Depth(); {
	case depth == 0: // there is no start tag
	case r.Empty(): // children need an end tag
		name := r.element[1:strings.IndexAny(r.element, " \t\r\n/")]
		r.element = strings.TrimSuffix(r.element[:r.End()], "/>") + "></" + name + ">"
		end = strings.LastIndex(r.element, "</")
		add()
	default:
		repaired := r.atomElement
		if r.isRSS() {
			repaired = r.rssElement
		}
		for r.Child(depth) {
			start := r.Offset()
			replacement, valid := repaired()
			if r.Skip(); !valid {
				r.replace(start, r.End(), replacement)
			}
		}
		if r.Err() == nil {
			end = r.Offset()
			add()
		}
	}
	if r.put(r.element[r.done:end]); end < len(r.element) {
		r.put(r.added)
		r.put(r.element[end:])
	}
}

// replace writes the text up to an element, and another one in its place. Without one, the
// white space before it goes, too.
func (r *reviser) replace(start, end int, replacement string) {
	before := r.element[r.done:start]
	if replacement == "" {
		before = strings.TrimRight(before, " \t\r\n")
	}
	r.put(before)
	r.put(replacement)
	r.done = end
}

// add writes a child at the end.
func (r *reviser) add(element string) {
	if element != "" {
		r.added += element + "\n"
	}
}

// unless returns the element that write writes, unless the current one is valid and not odd.
func (r *reviser) unless(valid bool, write func(w *Markup)) (string, bool) {
	if valid && !r.odd {
		return "", true
	}
	return r.written(write), false
}

// written returns the element that write writes, with the declaration a child needs where
// Atom's namespace has a prefix.
func (r *reviser) written(write func(w *Markup)) string {
	var w Markup
	write(&w)
	element := strings.TrimSuffix(w.String(), "\n")
	if !r.isRSS() && r.prefix != "" && element != "" {
		name := strings.IndexAny(element, " />")
		element = element[:name] + ` xmlns="` + Atom + `"` + element[name:]
	}
	return element
}

// once reports whether the current element is the first of its name.
func (r *reviser) once(name string) bool {
	first := !r.seen[name]
	r.seen[name] = true
	return first
}

// isOdd reports whether the current element is of an earlier Atom, or has an attribute it must
// not have. Dates and persons may.
func (r *reviser) isOdd(row *Row) bool {
	odd := r.Space() != row.Space
	for _, a := range r.Attrs() {
		odd = odd || a.Space == "" && !strings.Contains(row.Attrs, " "+a.Local+" ")
	}
	return odd && row.Form != DateForm && row.Form != PersonForm
}

// within returns a cursor at the start tag of the child that began at start and has ended.
func (r *reviser) within(start int) *xmlscan.Cursor { return r.again(start).Cursor }

// again returns the elements of that child, read again.
func (r *reviser) again(start int) *Elements {
	sc := &xmlscan.Scope{Bindings: r.around, Base: r.rootBase, Lang: r.rootLang}
	again := Fragment(r.element[start:r.End()], sc, r.read.Format)
	again.MaxURL = math.MaxInt
	return again
}

// date reads the current element's text as a date.
func (r *reviser) date() (text string, t time.Time) {
	text = r.read.PlainText()
	t, _, _ = feedtime.Read(text)
	return text, t
}

// survey finds the elements on which the repair of others depends, once.
func (r *reviser) survey() *inventory {
	if r.surveyed {
		return &r.has
	}
	r.surveyed = true
	s := newReviser(r.element, r.scope, r.isRSS())
	defer s.read.Release()
	for depth := s.Depth(); s.Child(depth); {
		if s.Space() != Atom {
			continue
		}
		switch s.Local() {
		case "content":
			r.has.content = true
		case "summary":
			r.has.summary = true
		case "author":
			p := personOf(s.Cursor, s.read.Base)
			r.has.author = r.has.author || p.Name+p.Email+p.URI != ""
		case "link":
			for _, l := range s.links() {
				r.has.content = r.has.content || l.Rel == "alternate"
				if l.Rel == "enclosure" && r.has.enclosure == "" {
					r.has.enclosure = l.Href
				}
			}
		}
	}
	return &r.has
}

// decodeBase64 decodes a text, or returns it unchanged if it is not base64.
func decodeBase64(text string) string {
	if data, err := base64Of(text); err == nil {
		return string(data)
	}
	return text
}

// base64Of decodes base64, in which there may be white space.
func base64Of(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
}

// linkAttrs returns the attributes of the current element, a link of Atom, as published, and
// whether there is a href.
func linkAttrs(c *xmlscan.Cursor) (link Link, hasHref bool) {
	for name, value := range c.OwnAttrs() {
		switch name {
		case "rel":
			link.Rel = xmlscan.Trim(value)
		case "href":
			link.Href, hasHref = value, true
		case "type":
			link.Type = value
		case "title":
			link.Title = value
		case "hreflang":
			link.HrefLang = value
		case "length":
			link.Length = value
		}
	}
	return link, hasHref
}

// links reads the current element as a link of Atom, once for each of its relations.
func (r *reviser) links() (links []Link) {
	base := r.read.Base()
	l, hasHref := linkAttrs(r.Cursor)
	if !hasHref {
		l.Href = r.read.PlainText()
	}
	if l.Href = iri.Resolve(base, l.Href); l.Href == "" {
		return nil
	}
	for name := range strings.FieldsSeq(cmp.Or(l.Rel, "alternate")) {
		if strings.EqualFold(name, "alternate") {
			name = "alternate"
		}
		l.Rel = name
		links = append(links, l)
	}
	return links
}

// personOf reads the current element as a person construct (RFC 4287 §3.2); base returns the
// base at the current element. The uri is called url in Atom 0.3, and homepage elsewhere.
func personOf(c *xmlscan.Cursor, base func() string) (p Person) {
	for depth := c.Depth(); c.Child(depth); {
		switch at := base(); strings.ToLower(c.Local()) {
		case "name":
			p.Name = xmlscan.Trim(c.ElementText())
		case "email":
			p.Email = xmlscan.Trim(c.ElementText())
		case "uri", "url", "homepage":
			p.URI = iri.Resolve(at, xmlscan.Trim(c.ElementText()))
		}
	}
	return p
}

// row returns the row of the current element, and whether it belongs here.
func (r *reviser) row() (row *Row, placed bool) {
	row = RowOf(r.Space(), r.Local())
	r.odd = r.isOdd(row)
	if r.entry == nil {
		return row, row.Feed != MeansNothing
	}
	return row, row.Entry != MeansNothing
}

// atomElement returns an Atom document's current element repaired, or that it is valid.
func (r *reviser) atomElement() (repaired string, valid bool) {
	if !IsAtom(r.Space()) {
		return "", !strings.ContainsAny(r.Space(), " \t\r\n")
	}
	row, placed := r.row()
	if !placed {
		return "", false
	}
	switch row.Form {
	case LinkForm:
		return r.atomLink()
	case CategoryForm:
		return r.atomCategory()
	case PersonForm:
		return r.atomPerson(row.Name)
	case TextForm:
		if row.Name == "copyright" {
			r.odd = true
			return r.atomText("rights")
		}
		return r.atomText(row.Name)
	case GeneratorForm:
		return r.generator()
	case URLForm:
		return "", r.Space() == Atom && r.once(row.Name)
	case DateForm:
		return r.atomDate(row)
	case IDForm:
		return r.atomID()
	case SourceForm:
		if r.once(row.Name) {
			return r.atomSource(), false
		}
	}
	return "", false
}

// atomID repairs an id. The feed's is as published.
func (r *reviser) atomID() (repaired string, valid bool) {
	switch {
	case !r.once("id"):
		return "", false
	case r.entry == nil:
		return "", r.Space() == Atom
	}
	id := r.entry.ID
	return r.unless(r.read.PlainText() == id && !r.Nested(), func(w *Markup) { w.Element("id", id) })
}

// atomDate repairs a date. Only an entry has a time of publication.
func (r *reviser) atomDate(row *Row) (repaired string, valid bool) {
	switch {
	case r.entry != nil && row.Entry == MeansPublished:
		return r.atomTime(row.Name, r.entry.Published)
	case r.entry != nil:
		return r.atomTime(row.Name, r.entry.Changed)
	case row.Feed == MeansUpdated:
		if _, t := r.date(); !t.IsZero() && r.once(row.Name) {
			return r.written(func(w *Markup) { w.Element(row.Name, t.Format(time.RFC3339Nano)) }), false
		}
	}
	return "", false
}

// atomSource repairs the elements of atom:source.
func (r *reviser) atomSource() string {
	start := r.Offset()
	r.Skip()
	return newReviser(r.element[start:r.End()], &xmlscan.Scope{Bindings: r.around}, false).revised()
}

// atomTime repairs a date: it is t unless it is as Atom requires.
func (r *reviser) atomTime(name string, t time.Time) (repaired string, valid bool) {
	text, read := r.date()
	if t.IsZero() || !r.once(name) {
		return "", false
	}
	return r.unless(read.Equal(t) && feedtime.IsRFC3339(text) && !r.Nested(), func(w *Markup) { w.Element(name, t.Format(time.RFC3339Nano)) })
}

// atomText repairs a text construct or content. The summary of an entry with neither
// content nor link is its content (RFC 4287 §4.1.2).
func (r *reviser) atomText(name string) (repaired string, valid bool) {
	start := r.Offset()
	kind, typed := r.Attr("", "type")
	t, _ := r.read.kind()
	r.has.content = r.has.content || name == "content" && r.Space() == Atom
	r.Skip()
	switch {
	case t.Src != "":
		valid = !typed || IsMediaType(kind)
	case IsMedia(kind):
		valid = kind == t.Type && IsMediaType(kind)
	default:
		valid = kind == t.Type || !typed && t.Type == "text"
	}
	valid = valid && r.isWritten(t, start)
	if name == "summary" && r.isContentMissing() {
		name, valid = "content", false
	}
	if !r.once(name) {
		return "", false
	}
	r.wordless = r.wordless || t.Src != "" || t.isBytes()
	return r.unless(valid, func(w *Markup) { r.writeText(w, name, r.again(start).Construct()) })
}

// isContentMissing reports whether an entry has neither content nor a link to it.
func (r *reviser) isContentMissing() bool {
	return r.entry != nil && !r.has.content && !r.survey().content
}

// writeText writes a construct, without a base and a language that it takes from the entry.
func (r *reviser) writeText(w *Markup, name string, t Construct) {
	if t.Base == r.rootBase || t.Type == "text" || t.Src != "" || !markup.MayBeRelative(t.Body) {
		t.Base = ""
	}
	if t.Lang == r.rootLang {
		t.Lang = ""
	}
	switch {
	case t.Src != "":
		t.Type, t.Body = MediaType(t.Type), ""
	case t.Body == "":
		w.Empty(name)
		return
	case IsMedia(t.Type) && (name != "content" || !IsMediaType(t.Type)):
		t.Type = "text"
	}
	if w.Text(name, t) == nil {
		return
	}
	if t.Type != "xhtml" {
		t.Type = "text"
	} else {
		t.Type = "html" // readers show it in the same way
	}
	_ = w.Text(name, t)
}

// isWritten reports whether the element that began at start has its text in the form its
// type requires.
func (r *reviser) isWritten(t Construct, start int) bool {
	switch {
	case t.Src != "":
		c := r.within(start)
		return c.Empty() || xmlscan.Trim(c.ElementText()) == "" && !c.Nested()
	case t.Type == "xhtml":
		return isDiv(r.within(start))
	case IsXMLType(t.Type):
		return true
	case !t.isBytes():
		return !r.Nested()
	}
	_, err := base64Of(r.within(start).ElementText())
	return err == nil
}

// isDiv reports whether an xhtml construct has only a div of XHTML (RFC 4287 §3.1.1.3).
func isDiv(c *xmlscan.Cursor) bool {
	divs := 0
	for tok := c.Next(); tok != xmlscan.Stop && c.Depth() > 0; tok = c.Next() {
		switch {
		case tok == xmlscan.Start:
			if divs++; divs > 1 || !c.Is(XHTML, "div") {
				return false
			}
			c.Skip()
		case xmlscan.Trim(string(c.AppendText(nil))) != "":
			return false
		}
	}
	return divs == 1
}

// atomLink repairs a link: it becomes one for each of its relations. A second alternate of
// the same type and language is a related document instead (RFC 4287 §4.1.1).
func (r *reviser) atomLink() (repaired string, valid bool) {
	_, valid = r.Attr("", "href")
	valid = valid && !r.odd
	for _, a := range r.Attrs() {
		valid = valid && (a.Space != "" || isLinkAttr(a.Local, a.Value()))
	}
	links := r.links()
	if r.Skip(); len(links) != 1 {
		valid = false
	}
	own := r.Space() == Atom
	repaired = r.written(func(w *Markup) {
		for _, l := range links {
			r.has.content = r.has.content || own && l.Rel == "alternate"
			switch other, again := r.alternates[l.Type+" "+l.HrefLang]; {
			case l.Rel != "alternate":
			case again && other == l.Href:
				valid = false
				continue
			case again:
				l.Rel, valid = "related", false
			default:
				r.alternates[l.Type+" "+l.HrefLang] = l.Href
			}
			w.Link("link", l)
		}
	})
	return repaired, valid
}

// isLinkAttr reports whether an attribute of a link has a valid value.
func isLinkAttr(name, value string) bool {
	switch name {
	case "href":
		return iri.Writable(value) == value
	case "type":
		return IsMediaType(value)
	case "hreflang":
		return IsLanguage(value)
	case "length":
		return isNumber(value)
	case "rel":
		return value != "" && !strings.ContainsAny(value, " \t\r\n")
	}
	return xmlscan.Trim(value) != ""
}

// atomCategory repairs a category, which needs a term.
func (r *reviser) atomCategory() (repaired string, valid bool) {
	term, _ := r.Attr("", "term")
	scheme, schemed := r.Attr("", "scheme")
	label, _ := r.Attr("", "label")
	absolute := iri.Writable(scheme) == scheme && iri.Split(scheme).Scheme != ""
	valid = xmlscan.Trim(term) != "" && (absolute || !schemed)
	if term = cmp.Or(xmlscan.Trim(term), xmlscan.Trim(label), r.read.PlainText()); term == "" {
		return "", false
	}
	if scheme = iri.Writable(scheme); iri.Split(scheme).Scheme == "" {
		scheme = ""
	}
	return r.unless(valid, func(w *Markup) { w.Category("category", Category{Term: term, Scheme: scheme, Label: label}) })
}

// atomPerson repairs a person, who must have a name.
func (r *reviser) atomPerson(name string) (repaired string, valid bool) {
	start, older := r.Offset(), r.Space() != Atom
	r.Skip()
	return r.unless(!older && isPerson(r.within(start)), func(w *Markup) { w.Person(name, r.again(start).Person()) })
}

// isPerson reports whether an element is a valid person construct (RFC 4287 §3.2).
func isPerson(c *xmlscan.Cursor) bool {
	times := map[string]int{}
	for depth := c.Depth(); c.Child(depth); {
		if c.Space() != Atom {
			continue
		}
		name := c.Local()
		times[name]++
		text := xmlscan.Trim(c.ElementText())
		valid := text != "" && !c.Nested() && times[name] == 1
		switch name {
		case "name":
		case "email":
			valid = valid && IsEmail(text)
		case "uri":
			valid = valid && iri.Writable(text) == text
		default:
			valid = false
		}
		if !valid {
			return false
		}
	}
	return times["name"] == 1
}

// generator repairs the feed's generator.
func (r *reviser) generator() (repaired string, valid bool) {
	if r.entry != nil || !r.once("generator") {
		return "", false
	}
	version, _ := r.Attr("", "version")
	uri, _ := r.Attr("", "uri")
	url, _ := r.Attr("", "url") // in Atom 0.3
	valid = iri.Writable(uri) == uri
	name := r.read.PlainText()
	if name == "" {
		return "", false
	}
	return r.unless(valid, func(w *Markup) {
		w.Element("generator", name, "uri", iri.Writable(cmp.Or(uri, url)), "version", version)
	})
}

// addAtom adds the elements an entry must have.
func (r *reviser) addAtom() {
	e := r.entry
	element := func(name string, text func() string) {
		if r.once(name) {
			r.add(r.written(func(w *Markup) { w.Element(name, text()) }))
		}
	}
	element("id", func() string { return e.ID })
	element("title", e.Title)
	element("updated", func() string { return e.Changed.Format(time.RFC3339Nano) })
	if !e.Published.IsZero() {
		element("published", func() string { return e.Published.Format(time.RFC3339Nano) })
	}
	if e.Author != "" && !r.survey().author {
		r.add(r.written(func(w *Markup) { w.Person("author", Person{Name: e.Author}) }))
	}
	switch {
	case !r.isContentMissing() || r.has.summary: // which survey has found
	case r.has.enclosure != "":
		r.add(r.written(func(w *Markup) { w.Link("link", Link{Rel: "alternate", Href: r.has.enclosure}) }))
	default:
		r.add(r.written(func(w *Markup) { w.Empty("content") }))
	}
	if r.wordless { // RFC 4287 §4.1.2: a reader needs words, too
		element("summary", e.Title)
	}
}

// rssElement returns an RSS document's current element repaired, or that it is valid.
func (r *reviser) rssElement() (repaired string, valid bool) {
	if space := r.Space(); space != "" {
		return r.rssExtension(space)
	}
	row, placed := r.row()
	switch row.Form {
	case TextForm:
		return r.rssText(row.Name)
	case URLForm:
		repaired, valid = r.rssURL(row.Name)
	case DateForm:
		return r.pubDate()
	case CategoryForm:
		repaired, valid = r.rssCategory()
	case ContactForm:
		return r.contact(row.Name)
	case IDForm:
		repaired, valid = r.guid()
	case EnclosureForm:
		repaired, valid = r.rssEnclosure()
	case SourceForm:
		repaired, valid = r.rssSource()
	case LanguageForm:
		return "", IsLanguage(r.read.PlainText()) && r.once(row.Name)
	case ImageForm:
		repaired, valid = r.rssImageElement(row.Name)
	case HTMLForm:
		if placed && r.once("content:encoded") {
			return r.encoded(true)
		}
	case AsPublished:
		return "", placed && r.once(row.Name)
	}
	return repaired, valid && !r.odd
}

// encoded repairs the current element, which is or becomes content:encoded.
func (r *reviser) encoded(becomes bool) (repaired string, valid bool) {
	start := r.Offset()
	if r.Skip(); !becomes && !r.Nested() {
		return "", true
	}
	return r.rssWritten(`content:encoded xmlns:content="`+Content+`"`, r.html(start).Absolute()), false
}

// html returns the HTML of the child that began at start and has ended.
func (r *reviser) html(start int) Construct {
	again := r.again(start)
	return again.TextOrMarkup(Construct{Type: "html", Base: again.Base()})
}

// rssWritten returns an element with text; "" without any.
func (r *reviser) rssWritten(name, text string) string {
	if text == "" {
		return ""
	}
	return r.written(func(w *Markup) { w.Element(name, text) })
}

// rssExtension repairs an element of another vocabulary: the texts and dates that are read
// as the item's own, and elements of RSS 1.0.
func (r *reviser) rssExtension(space string) (repaired string, valid bool) {
	row, _ := r.row()
	switch local := r.Local(); {
	case row.Form == HTMLForm:
		return r.encoded(false)
	case row.Form == DateForm:
		text, t := r.date()
		if t.IsZero() {
			return "", false
		}
		name := `atom:` + local + ` xmlns:atom="` + space + `"`
		if space == DC {
			name = `dc:` + local + ` xmlns:dc="` + space + `"`
		}
		dated := space == DC && len(text) == len(time.DateOnly) && text == t.Format(time.DateOnly)
		return r.rssWritten(name, t.Format(time.RFC3339Nano)), dated || feedtime.IsRFC3339(text)
	case RDFVersion(space) != "":
		return "", false
	}
	return "", !strings.ContainsAny(space, " \t\r\n")
}

// rssText repairs a title or description, which has text without elements.
func (r *reviser) rssText(name string) (repaired string, valid bool) {
	if r.entry == nil || !r.once(name) {
		return "", false
	}
	kind, _ := r.Attr("", "type")
	start := r.Offset()
	if r.Skip(); !r.odd && !r.Nested() {
		return "", true
	}
	t, body := r.html(start), ""
	switch {
	case name == "description":
		body = t.Absolute()
	case r.Nested() || strings.EqualFold(kind, "html"):
		body = markup.Plain(t.Body)
	default:
		body = xmlscan.Unescape(t.Body)
	}
	if body == "" {
		return "<" + name + "></" + name + ">", false
	}
	return r.rssWritten(name, body), false
}

// rssCategory repairs a category, which needs a name.
func (r *reviser) rssCategory() (repaired string, valid bool) {
	domain, _ := r.Attr("", "domain")
	text := r.read.PlainText()
	if text == "" {
		return "", false
	}
	return r.unless(!r.Nested(), func(w *Markup) { w.Element("category", text, "domain", domain) })
}

// rssURL repairs an element that has a URL: it becomes an absolute URI.
func (r *reviser) rssURL(name string) (repaired string, valid bool) {
	if _, ok := r.Attr("", "href"); ok && name == "link" {
		links := r.links()
		return r.written(func(w *Markup) {
			for _, l := range links {
				r.rssLink(w, l)
			}
		}), false
	}
	base := r.read.Base()
	ref := r.read.PlainText()
	if ref == "" {
		return "", false
	}
	abs := iri.Resolve(base, ref)
	if name == "link" && r.entry != nil {
		valid = !r.seen[name] && iri.URI(ref) == ref
		return r.written(func(w *Markup) { r.rssLink(w, Link{Rel: "alternate", Href: abs}) }), valid
	}
	uri := iri.URI(abs)
	if !r.once(name) {
		return "", false
	}
	return r.rssWritten(name, uri), uri == ref
}

// rssLink writes a link: the first alternate has an element of RSS.
func (r *reviser) rssLink(w *Markup, l Link) {
	uri := iri.URI(l.Href)
	switch {
	case l.Rel == "alternate" && uri != "" && r.alternates["link"] == uri:
	case l.Rel == "alternate" && uri != "" && r.once("link"):
		r.alternates["link"] = uri
		w.Element("link", uri)
	default:
		w.Link(`atom:link xmlns:atom="`+Atom+`"`, l)
	}
}

// pubDate repairs a date. One that cannot be read is left out.
func (r *reviser) pubDate() (repaired string, valid bool) {
	text, t := r.date()
	valid = feedtime.IsRFC822(text)
	if r.entry != nil {
		valid, t = valid && t.Equal(r.entry.Published), r.entry.Published
	}
	if t.IsZero() || !r.once("pubDate") {
		return "", false
	}
	return r.unless(valid, func(w *Markup) { w.Element("pubDate", t.Format(time.RFC1123Z)) })
}

// contact repairs an email address; a name alone gets an element of Dublin Core instead.
func (r *reviser) contact(name string) (repaired string, valid bool) {
	other := "dc:creator"
	if name == "webMaster" {
		other = "dc:publisher"
	}
	text := r.read.PlainText()
	if IsContact(text) && !r.Nested() && !r.odd && r.once(name) {
		return "", true
	}
	return r.rssWritten(other+` xmlns:dc="`+DC+`"`, text), false
}

// guid repairs the item's id: a guid that is not a URL is no permanent link.
func (r *reviser) guid() (repaired string, valid bool) {
	e := r.entry
	value, given := permalink(r.Cursor)
	exact := !given || value == "true" || value == "false"
	text := r.read.PlainText()
	if e == nil || text == "" || !r.once("guid") {
		return "", false
	}
	permanent := (!given || strings.EqualFold(xmlscan.Trim(value), "true")) && iri.URI(text) == text && iri.IsHTTP(text)
	name := "guid"
	if permanent {
		r.has.permalink = text
	} else {
		name = `guid isPermaLink="false"`
	}
	return r.unless(exact && text == e.ID && (permanent || value == "false"), func(w *Markup) { w.Element(name, e.ID) })
}

// rssEnclosure repairs an enclosure, which has three attributes.
func (r *reviser) rssEnclosure() (repaired string, valid bool) {
	url, _ := r.Attr("", "url")
	length, _ := r.Attr("", "length")
	kind, _ := r.Attr("", "type")
	valid = iri.URI(url) == url && isNumber(length) && IsMediaType(kind)
	l := enclosureAttrs(r.Cursor)
	if l.Href = iri.Resolve(r.read.Base(), l.Href); iri.URI(l.Href) == "" {
		return "", false
	}
	r.enclosed = cmp.Or(r.enclosed, l.Href)
	return r.unless(valid, func(w *Markup) { w.Enclosure(l) })
}

// rssSource repairs the source of an item, which needs a URL.
func (r *reviser) rssSource() (repaired string, valid bool) {
	url, _ := r.Attr("", "url")
	base := r.read.Base()
	text := r.read.PlainText()
	switch uri := iri.URI(iri.Resolve(base, xmlscan.Trim(url))); {
	case r.entry == nil, !r.once("source"):
		return "", false
	case url == "" || uri == "":
		return r.rssWritten(`dc:source xmlns:dc="`+DC+`"`, text), false
	default:
		return r.unless(uri == url && !r.Nested(), func(w *Markup) { w.Element("source", text, "url", uri) })
	}
}

// rssImageElement repairs an image or a text input: its parts are in a fixed form.
func (r *reviser) rssImageElement(name string) (repaired string, valid bool) {
	parts, base := map[string]string{}, r.read.Base()
	valid = true
	for depth := r.Depth(); r.Child(depth); {
		local := r.Local()
		if r.Space() != "" {
			continue
		}
		text := r.read.PlainText()
		switch _, again := parts[local]; local {
		case "url", "link":
			uri := iri.URI(iri.Resolve(base, text))
			parts[local], valid = uri, valid && !again && uri == text
		case "title", "description":
			parts[local], valid = text, valid && !again && !r.Nested()
		case "name":
			parts[local], valid = text, valid && !again && name == "textInput"
		case "width", "height":
			n, _ := strconv.Atoi(text)
			most := map[string]int{"width": 144, "height": 400}[local]
			valid = valid && !again && n > 0 && n <= most && isNumber(text)
		default:
			valid = false
		}
	}
	first, order := "url", []string{"url", "title", "link", "description"}
	if name == "textInput" {
		first, order = "link", []string{"title", "description", "name", "link"}
	}
	if r.entry != nil || !r.once(name) || parts[first] == "" {
		return "", false
	}
	parts["title"] = cmp.Or(parts["title"], name)
	parts["link"] = cmp.Or(parts["link"], parts["url"])
	return r.written(func(w *Markup) {
		w.WriteString("<" + name + ">")
		for _, part := range order {
			if parts[part] != "" || name == "textInput" {
				w.Element(part, parts[part])
			}
		}
		w.WriteString("</" + name + ">")
	}), valid && len(parts) >= 3
}

// addRSS adds the title or description that an item must have.
func (r *reviser) addRSS() {
	if !r.seen["title"] {
		if title := r.entry.Title(); title != "" || !r.seen["description"] {
			r.add(r.written(func(w *Markup) { w.Title(title) }))
		}
	}
	if !r.seen["link"] && !r.seen["description"] {
		if media := cmp.Or(r.survey().enclosure, r.enclosed); media != "" {
			r.add(r.rssWritten("link", iri.URI(cmp.Or(r.has.permalink, media))))
		}
	}
}
