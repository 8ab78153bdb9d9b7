// Package feedxml reads the elements of Atom and RSS as their publishers meant them, and
// writes them valid. It knows the namespaces, misspelt names, bases and languages, and the
// constructs both formats share: texts, persons and links.
package feedxml

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Format is the format of a document; "" means it is unknown yet.
type Format string

// The formats.
const (
	FormatAtom Format = "atom"
	FormatRSS  Format = "rss"
	FormatJSON Format = "jsonfeed"
)

// An Element is an entry as published: its element, or its object in a JSON Feed.
type Element struct {
	Raw     string
	Scope   *xmlscan.Scope // its inheritance from its surroundings
	Format  Format
	Lenient bool     // Raw is not well-formed
	Odd     bool     // it has misspelt names, which other programs do not read
	Signed  bool     // it names its own authors
	Authors []Person // the feed's, if it does not
}

// Read returns the elements in it, to be used until Release.
func (e *Element) Read() *Elements { return Again(e.Raw, e.Scope, e.Format) }

// An Event is something to see while a document is read.
type Event uint8

// The events.
const (
	Begins Event = iota // a head section, an entry, or RSS's root
	Child               // a child of these, before it is read
	Ends                // a head section or an entry
)

// A Head is the head section of a document as published.
type Head struct {
	Known   []string // the elements expressed by a Document's fields
	Others  []string
	Scope   *xmlscan.Scope // of all of them; nil if there are none
	Base    string
	Format  Format
	Version string // of the format
}

// Read returns the elements in it.
func (h *Head) Read() *Elements {
	sc := h.Scope
	if sc == nil {
		sc = &xmlscan.Scope{Base: h.Base}
	}
	return Fragment(h.Text(), sc, h.Format)
}

// NewAddress returns the address to which a podcast says that it has moved
// (itunes:new-feed-url); "" if it does not say.
func (h *Head) NewAddress() string {
	const name = "new-feed-url"
	if !slices.ContainsFunc(h.Others, func(raw string) bool { return strings.Contains(raw, name) }) {
		return ""
	}
	r := h.Read()
	defer r.Release()
	for depth := r.Depth(); r.Child(depth); {
		if r.Local() == name && strings.EqualFold(r.Cursor.Space(), ITunes) {
			return strings.TrimSpace(r.PlainText())
		}
	}
	return ""
}

// Text returns the elements in one.
func (h *Head) Text() string {
	return "<head>" + strings.Join(h.Known, "") + strings.Join(h.Others, "") + "</head>"
}

// IsBare reports whether the head section's own elements are in no namespace.
func (h *Head) IsBare() bool {
	return slices.ContainsFunc(h.Known, func(raw string) bool {
		r := Again(raw, h.Scope, h.Format)
		defer r.Release()
		return r.Cursor.Space() == ""
	})
}

// Extensions returns the other elements, each with the declarations it needs.
func (h *Head) Extensions() (all []string) {
	for _, raw := range h.Others {
		if h.Format == FormatRSS {
			r := Again(raw, h.Scope, h.Format)
			bare := r.Cursor.Space() == ""
			if r.Release(); bare {
				raw = Into(RSS2, raw)
			}
		}
		all = append(all, h.Scope.Alone(raw, h.Format == FormatRSS))
	}
	return all
}

// MaxURL is the default of Elements.MaxURL.
const MaxURL = 8 << 10

// MaxDeclared is the maximum number of gaps a feed declares in a Coverage, and of those read.
const MaxDeclared = 100

// Elements are the elements of an XML document, or of one entry read again. The methods
// of the Cursor return names as they are, those of Elements as they are meant.
type Elements struct {
	*xmlscan.Cursor
	Format Format
	MaxURL int // the length of the longest URL

	Relative bool // a reference has needed the base

	// Note is called with leniencies, each with its place; nil means to ignore them.
	Note func(code, message string, offset int)

	native  string // see Native
	url     string // the document's
	lang    string // xml:lang around an entry read again
	literal bool   // titles stay as published
	stopped bool   // the rest is not read

	around *xmlscan.Scope // of the entry whose texts have been read
	page   string         // its own
	next   int            // where a later text of the entry may begin; 0 if anything but its texts has been read
	spaces []namespace    // of the document, or of entries read again
	bases  xmlscan.BaseChain
	rows   []knownRow // in Format and native, by the Memos of their names, from first on
	first  int
}

// A knownRow is the row of a name, and its place in spaces.
type knownRow struct {
	row   *Row
	odd   bool
	space int
}

// mostRows is the maximum number of rows remembered.
const mostRows = 1024

// A namespace of a document. Feeds misspell them.
type namespace struct {
	published, meant string
	odd              bool // it is misspelt
	words            *words
	isRSS            bool
	prefix           string // the usual one, once requested
}

// mostSpaces is the maximum number of namespaces kept.
const mostSpaces = 32

// New returns the elements of a document from the given URL, whose Cursor is still at none, in memory
// used before. Release it after use.
func New(url string) *Elements {
	r := readers.Get().(*Elements)
	r.bases.Reset()
	*r = Elements{Cursor: r.Cursor, MaxURL: MaxURL, url: url, spaces: r.spaces[:0], bases: r.bases, rows: r.rows, first: r.first}
	r.forget()
	return r
}

// Fragment returns the children of an element read again: it is at the element's start
// tag.
func Fragment(raw string, sc *xmlscan.Scope, format Format) *Elements {
	r := &Elements{Cursor: new(xmlscan.Cursor)}
	r.readAgain(raw, sc, format)
	return r
}

// readers are for documents, and for entries read again. Their memory is far larger than an entry.
var readers = sync.Pool{New: func() any {
	return &Elements{Cursor: &xmlscan.Cursor{Scanner: xmlscan.Scanner{Names: new(xmlscan.Names)}}, rows: make([]knownRow, 0, 32), first: 1}
}}

// Again is Fragment in memory used before. Release it after use.
func Again(raw string, sc *xmlscan.Scope, format Format) *Elements {
	r := readers.Get().(*Elements)
	r.readAgain(raw, sc, format)
	return r
}

// Release ends the use of the result of New or Again. The pool forgets it, and the text it has
// read, at a garbage collection. It takes no Mender, which is larger still.
func (r *Elements) Release() {
	if r.Note = nil; r.Mender == nil && r.rows != nil {
		readers.Put(r)
	}
}

// readAgain moves to the start tag of an element.
func (r *Elements) readAgain(raw string, sc *xmlscan.Scope, format Format) {
	r.reset(raw, sc, format)
	r.Next()
	r.SetNative(r.Space())
}

// reset makes new elements in the same memory.
func (r *Elements) reset(raw string, sc *xmlscan.Scope, format Format) {
	r.ReadAgain(raw, sc.Bindings, sc.Clean)
	r.bases.Reset()
	if r.Format != format || len(r.rows) == mostRows {
		r.forget()
	}
	r.Format, r.MaxURL, r.url, r.lang = format, MaxURL, sc.Base, sc.Lang
	r.next = 0
	r.Relative, r.literal, r.stopped, r.Note = false, false, false, nil
	if len(r.spaces) == mostSpaces {
		r.spaces = nil
		r.forget()
	}
}

// Native returns the namespace of the root, or of the entry read again.
func (r *Elements) Native() string { return r.native }

// SetNative sets it, for the elements that follow.
func (r *Elements) SetNative(space string) {
	if r.native != space {
		r.native = space
		r.forget()
	}
}

// forget forgets the rows: the Memos of their names are too small from now on.
func (r *Elements) forget() { r.first, r.rows = r.first+len(r.rows), r.rows[:0] }

// Stop ends reading: there is no further Child.
func (r *Elements) Stop() { r.stopped = true }

// Stopped reports whether Stop has been called.
func (r *Elements) Stopped() bool { return r.stopped }

// Child moves to the next child of the element at a depth, unless reading has ended.
func (r *Elements) Child(depth int) bool { return !r.stopped && r.Cursor.Child(depth) }

func (r *Elements) note(code, message string, offset int) {
	if r.Note != nil {
		r.Note(code, message, offset)
	}
}

// Language returns xml:lang at the current element.
func (r *Elements) Language() string {
	if lang, ok := r.Lang(); ok {
		return lang
	}
	return r.lang
}

// Base returns the base at the current element, by its xml:base, its ancestors' and the
// document's URL (5005#25).
func (r *Elements) Base() string { return r.bases.Resolve(r.url, r.Bases(), r.MaxURL) }

// NewScope returns the scope of the current element's content.
func (r *Elements) NewScope() *xmlscan.Scope { return r.Scope(r.Base(), r.Language()) }

// PlainText reads the current element's text, without the white space around it.
func (r *Elements) PlainText() string { return xmlscan.Trim(r.ElementText()) }

// LanguageText reads a language tag; "" if it is too long to be one (RFC 5646 §4.4.1).
func (r *Elements) LanguageText() string {
	if lang := r.PlainText(); len(lang) <= 64 {
		return lang
	}
	return ""
}

// Mended returns the element just ended, well-formed. White space between an element
// without an end tag and the next element is not part of it.
func (r *Elements) Mended(raw string, sc *xmlscan.Scope) string {
	if r.Mender.Unclosed() {
		raw = strings.TrimRight(raw, " \t\r\n")
	}
	return xmlscan.MendElement(raw, sc.Bindings)
}

// Person reads a person construct.
func (r *Elements) Person() Person { return personOf(r.Cursor, r.Base) }

// PersonOf reads "jane@example.org (Jane Doe)", "Jane Doe <jane@example.org>" and their
// variants.
func PersonOf(text string) Person {
	text = strings.TrimSpace(text)
	switch {
	case strings.IndexByte(text, '@') < 0:
		return Person{Name: text}
	case isAddress(text):
		return Person{Email: text}
	}
	for _, form := range []struct {
		open, end string
		cut       func(text, open string) int
		first     bool // the address comes first
	}{{"<", ">", strings.LastIndex, false}, {"(", ")", strings.Index, true}, {"(", ")", strings.LastIndex, false}} {
		i := form.cut(text, form.open)
		if i < 0 || !strings.HasSuffix(text, form.end) {
			continue
		}
		name, email := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:len(text)-1])
		if form.first {
			name, email = email, name
		}
		if isAddress(email) {
			if len(name) >= 2 && form.open == "<" && name[0] == '"' && name[len(name)-1] == '"' { // RFC 5322 §3.4
				name = strings.TrimSpace(name[1 : len(name)-1])
			}
			return Person{Name: name, Email: email}
		}
	}
	return Person{Name: text}
}

// isAddress reports whether a text looks like one email address.
func isAddress(text string) bool {
	user, host, ok := strings.Cut(text, "@")
	return ok && user != "" && host != "" && !strings.ContainsAny(user, " \t\r\n<>()\",") && !strings.ContainsAny(host, "@ \t\r\n<>()\",")
}

// clip shortens a quotation in a message.
func clip(s string) string { return xmlscan.Clip(s, 40) }

// Space returns the intended namespace of the current element, because feeds misspell
// namespaces; each misspelt one gets one note.
func (r *Elements) Space() string { return r.namespace().meant }

// UsualPrefix returns the usual prefix of the current element's namespace, under which gofeed has it; ""
// if there is none.
func (r *Elements) UsualPrefix() string {
	n := r.namespace()
	if n.prefix == "" {
		n.prefix = usualPrefixes()[n.meant]
	}
	return n.prefix
}

func (r *Elements) namespace() *namespace { return &r.spaces[r.known().space] }

// findSpace returns the place of the current element's namespace in spaces.
func (r *Elements) findSpace() int {
	published := r.Cursor.Space()
	for i := range r.spaces {
		if r.spaces[i].published == published {
			return i
		}
	}
	n := namespace{published, published, false, vocabularies()[published], IsRSS(published), ""}
	if n.words == nil {
		n.meant = MeantSpace(published)
		n.odd, n.words, n.isRSS = n.meant != published, wordsOf(n.meant), IsRSS(n.meant)
	}
	if n.odd {
		r.note("namespace-misspelt", "the namespace "+clip(published)+" is read as "+n.meant, r.Offset())
	}
	if len(r.spaces) == mostSpaces { // the last place is for all further ones
		r.spaces = r.spaces[:mostSpaces-1]
	}
	r.spaces = append(r.spaces, n)
	return len(r.spaces) - 1
}

// IsRSS reports whether the current element belongs to RSS itself.
func (r *Elements) IsRSS() bool {
	n := r.namespace()
	return n.isRSS || n.meant == r.native
}

// IsAtom reports whether the current element belongs to Atom itself, in an Atom document
// under whatever namespace the root has.
func (r *Elements) IsAtom() bool {
	space := r.Space()
	return IsAtom(space) || r.Format == FormatAtom && space == r.native
}

// IsOwn reports whether the current element belongs to Atom, or to RSS in an RSS
// document.
func (r *Elements) IsOwn() bool { return r.IsAtom() || r.Format == FormatRSS && r.IsRSS() }

// IsStranger reports whether the current element is in no namespace, in an Atom document whose own
// elements have one. Even with one of their names, it is neither Atom's nor RSS's.
func (r *Elements) IsStranger() bool {
	return r.Format == FormatAtom && r.Cursor.Space() == "" && r.native != ""
}

// About returns rdf:about of the current element.
func (r *Elements) About() string {
	for _, a := range r.Attrs() {
		if a.Local == "about" && MeantSpace(a.Space) == RDF {
			return a.Value()
		}
	}
	return ""
}

// Permalink returns the attribute of guid for whether it is a URL.
func (r *Elements) Permalink() (value string, ok bool) { return permalink(r.Cursor) }

func permalink(c *xmlscan.Cursor) (value string, ok bool) {
	for name, value := range c.OwnAttrs() {
		if name == "isPermaLink" || strings.EqualFold(name, "isPermaLink") {
			return value, true
		}
	}
	return "", false
}

// Absolute resolves a reference; "" with a note if the result is longer than most.
func Absolute(base, ref string, most int, note func(code, message string, offset int), offset int) string {
	abs := ref
	if len(ref) <= most {
		abs = iri.Resolve(base, ref)
	}
	if len(abs) > most {
		note("url-too-long", "a link longer than the limit is left out", offset)
		return ""
	}
	return abs
}

// Reference makes a reference of the current element absolute; "" if it is longer than
// the limit.
func (r *Elements) Reference(ref string, offset int) string {
	return r.resolve(r.Base(), ref, offset)
}

func (r *Elements) resolve(base, ref string, offset int) string {
	abs := Absolute(base, ref, r.MaxURL, r.note, offset)
	r.Relative = r.Relative || abs != ref
	return abs
}

// TextReference makes the current element's text absolute as a reference; "" if there is
// none, or if it is longer than the limit.
func (r *Elements) TextReference() string {
	offset, base := r.Offset(), r.Base()
	if ref := r.PlainText(); ref != "" {
		return r.resolve(base, ref, offset)
	}
	return ""
}

// AtomLink reads atom:link, in either format. Rel is as published. Href is "" if it cannot
// be used.
func (r *Elements) AtomLink() Link {
	offset := r.Offset()
	link, hasHref := linkAttrs(r.Cursor)
	if hasHref {
		link.Href = r.Reference(link.Href, offset)
		return link
	}
	r.note("link-without-href", "a link without href: its text is used instead, if there is any", offset)
	link.Href = r.TextReference()
	return link
}

// Enclosure reads an enclosure, without its relation. Href is "" if it cannot be used.
func (r *Elements) Enclosure() Link {
	offset, link := r.Offset(), enclosureAttrs(r.Cursor)
	if xmlscan.Trim(link.Href) == "" {
		return Link{}
	}
	link.Href = r.Reference(link.Href, offset)
	return link
}

// enclosureAttrs returns the attributes of an enclosure of RSS as published.
func enclosureAttrs(c *xmlscan.Cursor) (link Link) {
	for name, value := range c.OwnAttrs() {
		switch {
		case strings.EqualFold(name, "url"):
			link.Href = value
		case strings.EqualFold(name, "type"):
			link.Type = value
		case strings.EqualFold(name, "length"):
			link.Length = value
		}
	}
	return link
}

// The types of a text.
const (
	textType = "text"
	htmlType = "html"
)

// rank returns how suitable the current child of an entry is as its title, summary
// or content: 0 means not at all, and the highest rank wins. Elements of other
// vocabularies are used if the format's own is missing; the order is gofeed's.
func (r *Elements) rank(text Meaning) int {
	if row := r.Row(); row.Entry == text {
		return row.Rank(r.Format)
	}
	return 0
}

// Construct reads the current element as a text construct or content, by its type (RFC 4287
// §3.1.1, §4.1.3.3).
func (r *Elements) Construct() Construct {
	if row := r.Row(); row.Entry == MeansTitle || row.Entry == MeansSummary || row.Entry == MeansContent {
		if form := r.formOf(row); form != anyForm {
			t := Construct{Type: textType, Base: r.Base(), Lang: r.Language()}
			if body, ok := r.LeafText(); ok {
				return t.simple(form, body, r.literal)
			}
		}
	}
	t, mode := r.kind()
	if t.Type == "" {
		// A title has text rather than HTML, but with HTML's references.
		kind, _ := r.Attr("", "type")
		if t.Type = htmlType; !strings.EqualFold(r.Local(), "title") && r.Space() != Media || strings.EqualFold(xmlscan.Trim(kind), htmlType) {
			return r.TextOrMarkup(t)
		}
		t.Type = textType
		if t = r.TextOrMarkup(t); t.Type == textType && !r.literal && kind == "" {
			t = unescapedTitle(t)
		}
		return t
	}
	switch {
	case mode == "base64": // of Atom 0.3
		t.Body = decodeBase64(r.PlainText())
	case t.Type == "xhtml":
		t.Body, t.Base = r.HTML(true, r.Base)
	case !IsMedia(t.Type):
		return r.TextOrMarkup(t)
	case IsXMLType(t.Type):
		t.Body = xmlscan.Trim(r.Inner())
	case t.isBytes():
		t.Body = decodeBase64(r.PlainText())
	default:
		t.Body = r.PlainText()
	}
	return t
}

// unescapedTitle returns a title, published as text, as it is meant: with HTML's references, or with words
// in HTML's elements.
func unescapedTitle(t Construct) Construct {
	if markup.IsInline(t.Body) {
		t.Type = htmlType
	} else {
		t.Body = xmlscan.Unescape(t.Body)
	}
	return t
}

// kind reads the start tag of a construct, with the mode of Atom 0.3. The type is "" in another
// vocabulary.
func (r *Elements) kind() (t Construct, mode string) {
	t = Construct{Base: r.Base(), Lang: r.Language()}
	space := r.Space()
	if src, ok := r.Attr("", "src"); ok && strings.EqualFold(r.Local(), "content") {
		t.Src = iri.Resolve(t.Base, src)
	}
	if !IsAtom(space) && (r.Format != FormatAtom || space != r.native) {
		return t, ""
	}
	kind, _ := r.Attr("", "type")
	mode, _ = r.Attr("", "mode")
	t.Type = TextType(kind, mode)
	if IsMedia(t.Type) && (!strings.Contains(t.Type, "/") || !strings.EqualFold(r.Local(), "content")) {
		r.note("type-unknown", "the type of a text construct is text, html or xhtml, not "+clip(t.Type)+": it is read as text", r.Offset())
		t.Type = textType
	}
	return t, mode
}

// TextOrMarkup reads the current element's characters. If there are elements among
// them, the publisher did not escape the markup; then it reads the markup.
func (r *Elements) TextOrMarkup(t Construct) Construct {
	start := r.Offset()
	if t.Body = r.PlainText(); !r.Nested() || r.Err() != nil {
		return t
	}
	within := Fragment(r.Document()[start:r.End()], r.NewScope(), r.Format)
	within.MaxURL = max(within.MaxURL, r.MaxURL)
	t.Type = htmlType
	t.Body, t.Base = within.HTML(false, within.Base)
	return t
}

// A textChoice is the best element so far for an entry's title, summary or content.
type textChoice struct {
	means Meaning
	text  Construct
	rank  int

	medium      int       // the offset of the media:content the title comes from; 0 if it comes from elsewhere
	description Construct // of the same medium
}

// offer takes the current element, if it is better.
func (c *textChoice) offer(r *Elements) (taken bool) {
	if n := r.rank(c.means); n > c.rank {
		c.text, c.rank, taken = r.Construct(), n, true
	}
	return taken
}

// offerAll takes the best of the children of the current element, which is a group. A
// description of one of the media describes the entry only if the title comes from the same medium.
func (c *textChoice) offerAll(r *Elements) {
	at, isMedium := r.Offset(), r.Local() == "content"
	if isMedium && c.means != MeansTitle && c.medium != at {
		return
	}
	for depth := r.Depth(); r.Child(depth); {
		switch {
		case r.Row().Entry == MeansGroup:
			c.offerAll(r)
		case r.Space() != Media:
		case isMedium && c.means != MeansTitle:
			if r.rank(MeansSummary) > 0 {
				c.description = r.Construct()
			}
		case c.offer(r) && isMedium:
			c.medium = at
		}
	}
}

// chosen returns the best of the current element's children for a text.
func (r *Elements) chosen(c textChoice) textChoice {
	for depth := r.Depth(); c.rank < FirstRank && r.Child(depth); {
		if r.Row().Entry == MeansGroup {
			c.offerAll(r)
		} else if c.offer(r) {
			c.medium = 0
		}
	}
	return c
}

// A TextOf is one of the three texts of an entry.
type TextOf int

// The texts.
const (
	TitleOf TextOf = iota
	SummaryOf
	ContentOf
)

// Texts are the texts of an entry as published.
type Texts struct {
	Raw     string
	Scope   *xmlscan.Scope
	Page    string // unless "", the base of references; see Scope.At
	Format  Format
	Places  Places
	Literal bool // a title of RSS has its references to characters as published
}

// Text reads one of the texts.
func (t *Texts) Text(which TextOf) Construct {
	raw, sc, page, format, place := t.Raw, t.Scope, t.Page, t.Format, t.Places.At[which]
	if raw == "" || place < 0 {
		return Construct{}
	}
	r := readers.Get().(*Elements)
	defer r.Release()
	goesOn := r.next > 0 && r.next <= int(place) && r.Err() == nil && // it has just read an earlier text of the entry
		r.around == sc && r.page == page && r.Document() == raw && r.Format == format
	if form := t.Places.forms[which]; form != anyForm && !goesOn {
		if body, ok := r.LeafAt(raw, int(place), sc.Clean); ok {
			text := Construct{Type: textType, Base: sc.Base, Lang: sc.Lang}
			if page != "" {
				text.Base = page
			}
			return text.simple(form, body, t.Literal)
		}
	}
	in := sc
	if !goesOn {
		if r.around, r.page = sc, page; page != "" {
			at := sc.At(page)
			in = &at
		}
		r.readAgain(raw, in, format)
	}
	r.literal = t.Literal
	if place > 0 {
		r.Seek(int(place))
		r.Next()
		text := r.Construct()
		r.next = r.End()
		return text
	}
	choose := func(text TextOf, medium int) textChoice {
		defer r.readAgain(raw, in, format)
		return r.chosen(textChoice{means: texts[text], medium: medium})
	}
	if which == TitleOf {
		return choose(TitleOf, 0).text
	}
	medium := 0
	if t.Places.At[TitleOf] == 0 { // otherwise the title is the entry's own
		medium = choose(TitleOf, 0).medium
	}
	choice := choose(which, medium)
	if choice.rank == 0 && (which == SummaryOf || t.Places.At[SummaryOf] > 0 || choose(SummaryOf, 0).rank > 0) { // content, and a summary elsewhere
		return choice.description
	}
	return choice.text
}

// simple returns a text of one of the usual forms.
func (t Construct) simple(form textForm, body string, literal bool) Construct {
	t.Body = xmlscan.Trim(body)
	if form == htmlForm {
		t.Type = htmlType
	} else if form == titleForm && !literal {
		return unescapedTitle(t)
	}
	return t
}

// Places are where an entry's title, summary and content begin.
type Places struct {
	At    [len(texts)]int32 // 0 if unknown, -1 if there is no such text
	forms [len(texts)]textForm
}

// A textForm says how to read the text of an element that has nothing else, in an entry without a base or
// language of its own.
type textForm uint8

const (
	anyForm   textForm = iota // by its start tag
	plainForm                 // text
	htmlForm                  // HTML
	titleForm                 // text with HTML's references, or with words in HTML's elements
)

// formOf returns the form of the current text, which has the given row, if it is one of the usual ones.
func (r *Elements) formOf(row *Row) textForm {
	space := r.Cursor.Space()
	if space == Atom {
		switch r.TagEnd() {
		case ">", ` type="text">`:
			return plainForm
		case ` type="html">`:
			return htmlForm
		}
		return anyForm
	}
	switch {
	case r.Format != FormatRSS || r.TagEnd() != ">":
	case space == "" && row.Entry == MeansTitle:
		return titleForm
	case space == "", space == Content:
		return htmlForm
	}
	return anyForm
}

// texts are the meanings of an entry's texts.
var texts = [...]Meaning{MeansTitle, MeansSummary, MeansContent}

// A TextFinder finds the texts of an entry while it is read.
type TextFinder struct {
	Simple bool // the entry has no base or language of its own

	places Places
	ranks  [len(texts)]int
	group  bool // there is a media:group, or a media:content with elements
}

// Look looks at the current child of the entry that begins at start, which has the given
// row.
func (f *TextFinder) Look(r *Elements, row *Row, start int) {
	if row.Entry == MeansGroup {
		f.group = f.group || row.Name == "group" || !r.Empty()
		return
	}
	which := TitleOf
	switch row.Entry {
	default:
		return
	case MeansTitle:
	case MeansSummary:
		which = SummaryOf
	case MeansContent:
		which = ContentOf
	}
	if n := row.Rank(r.Format); n > f.ranks[which] {
		f.places.At[which], f.ranks[which] = int32(r.Offset()-start), n
		if f.places.forms[which] = anyForm; f.Simple {
			f.places.forms[which] = r.formOf(row)
		}
	}
}

// Found returns the places of the texts in an entry of n bytes.
func (f *TextFinder) Found(n int) Places {
	if n > math.MaxInt32 {
		return Places{}
	}
	for which, rank := range f.ranks {
		switch {
		case f.group && rank < FirstRank:
			f.places.At[which], f.places.forms[which] = 0, anyForm
		case rank == 0:
			f.places.At[which] = -1
		}
	}
	return f.places
}

// Say writes the content of an entry, which is the current element: its elements,
// attributes and text, whatever its prefixes, escapes or surroundings. It leaves out the
// entry's own authors.
func (r *Elements) Say(w io.Writer) {
	const enough = 1 << 10
	buf := make([]byte, 0, 2*enough)
	write := func(parts ...string) {
		for _, part := range parts {
			buf = append(append(strconv.AppendInt(buf, int64(len(part)), 10), ':'), part...)
		}
		if len(buf) > enough {
			_, _ = w.Write(buf)
			buf = buf[:0]
		}
	}
	defer func() { _, _ = w.Write(buf) }()
	var text []byte
	flush := func() {
		if len(text) > 0 {
			write("text", string(text))
			text = text[:0]
		}
	}
	s := r.Cursor
	for root := true; ; root = false {
		tok := xmlscan.Start
		if !root {
			tok = s.Next()
		}
		switch tok {
		case xmlscan.Stop:
			flush()
			return
		case xmlscan.Start:
			flush()
			if s.Is(Atom, "author") {
				s.Skip() // see Signed
				continue
			}
			write("start", s.Space(), s.Local())
			for _, a := range s.Attrs() {
				if !root || a.Space != XML {
					write(a.Space, a.Local, a.Value())
				}
			}
		case xmlscan.End:
			flush()
			write("end")
		default:
			text = s.AppendText(text)
		}
	}
}
