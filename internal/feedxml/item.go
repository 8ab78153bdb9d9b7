package feedxml

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/jsonfeed"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Category is a category of an entry (RFC 4287 §4.2.2).
type Category struct{ Term, Scheme, Label string }

// An Item has everything an entry of any format says.
type Item struct {
	ID                      string
	Updated, Published      time.Time
	Title, Summary, Content Construct
	Links                   []Link
	Parts                            // the authors and categories; the others travel in the Extensions
	Lang                    string   // Atom's xml:lang
	Extensions              []string // elements of other vocabularies, each with its declarations

	kept    []string       // the elements that travel as published
	foreign []keptElement  // those of them that no format has
	own     []keptElement  // the others, which only the entry's format has
	scope   *xmlscan.Scope // of all
	rss     bool
	length  int // of the entry
}

// A keptElement is an element that travels as published, unless a writer has one of its own with the
// meaning.
type keptElement struct {
	raw   string
	means Meaning
	rank  int
}

// without returns elements without those that have one of the meanings.
func without(elements []keptElement, meanings []Meaning) (raw []string) {
	for _, element := range elements {
		if !slices.Contains(meanings, element.means) {
			raw = append(raw, element.raw)
		}
	}
	return raw
}

// Draftable returns a text with the same meaning that Item.Atom accepts: ill-formed XHTML
// becomes HTML, and other ill-formed markup becomes text.
func Draftable(t Construct) Construct {
	if t.Body+t.Src == "" {
		return Construct{}
	}
	if t.Type == "text" || t.Src != "" || !markup.MayBeRelative(t.Body) {
		t.Base = "" // nothing needs resolving
	}
	if t.Src != "" {
		t.Body = "" // RFC 4287 §4.1.3.2: the element is empty then
	}
	if _, err := t.Written(); err == nil {
		return t
	}
	if t.Type == "xhtml" {
		t.Type = "html" // readers show it in the same way
	} else {
		t.Type = "text/plain"
	}
	return t
}

// ReadLists reads the elements of which an entry may have several, except links: its
// authors, or else its feed's, and its categories. See ReadExtensions and Foreign for the others.
func (i *Item) ReadLists(e Element) { i.read(e, false) }

// ReadParts is ReadLists, but reads all Parts.
func (i *Item) ReadParts(e Element) { i.read(e, true) }

func (i *Item) read(e Element, all bool) {
	switch {
	case e.Raw == "":
	case e.Format == FormatJSON:
		i.readJSON(e, all)
	default:
		i.readXML(e, all)
	}
	if len(i.Authors) == 0 {
		i.Authors = slices.Clone(e.Authors)
	}
}

func (i *Item) readJSON(e Element, all bool) {
	item := jsonfeed.ReadItem(e.Raw)
	lists := partReader{Parts: &i.Parts}
	if lists.jsonLists(item); all {
		i.Language = item.Language
	}
	if others := jsonfeed.Others(e.Raw, func(name string) bool {
		return IsExpressed(name, true) || name == "content_text" && !item.Places.IsHTML
	}); others != "" {
		i.own = []keptElement{{raw: JSONElement(others), means: MeansKept}}
		i.kept, i.scope, i.length = []string{i.own[0].raw}, new(xmlscan.Scope), len(e.Raw)
	}
}

// JSONElement returns the element by which other formats carry members of a JSON Feed.
func JSONElement(object string) string {
	var w Markup
	w.Element("json", object, "xmlns", JSONMembers)
	return strings.TrimSuffix(w.String(), "\n")
}

func (i *Item) readXML(e Element, all bool) {
	raw := e.Raw
	if e.Lenient {
		raw = xmlscan.Standalone(raw, e.Scope.Bindings, "")
	}
	r := Fragment(raw, e.Scope, e.Format)
	i.scope, i.rss, i.length = r.NewScope(), e.Format == FormatRSS, len(raw)
	lists := partReader{Parts: &i.Parts, all: all, scope: i.scope}
	i.Language = r.Language()
	for depth := r.Depth(); r.Child(depth); {
		start, row, own := r.Offset(), r.Row(), r.IsOwn()
		if r.IsStranger() { // RSS would take it for its own
			r.Skip()
			i.kept = append(i.kept, xmlscan.Standalone(raw[start:r.End()], i.scope.Bindings, ` xmlns=""`))
			continue
		}
		if lists.element(r, row); row.Flags&NotKept != 0 || own && !row.Entry.Travels() {
			continue
		}
		bare := own && r.Cursor.Space() == ""
		r.Skip()
		element := raw[start:r.End()]
		switch {
		case bare && i.rss:
			element = Into(RSS2, element)
		case bare:
			element = Into(Atom, element)
		}
		kept := keptElement{element, row.Entry, row.Rank(e.Format)}
		if i.kept = append(i.kept, element); own {
			i.own = append(i.own, kept)
		} else {
			i.foreign = append(i.foreign, kept)
		}
	}
	lists.end()
	for _, elements := range [][]keptElement{i.own, i.foreign} {
		for k := range elements {
			if elements[k].means == MeansRights && elements[k].rank < lists.rights { // others count
				elements[k].means = MeansKept
			}
		}
	}
}

// ReadExtensions sets the Extensions after ReadLists.
func (i *Item) ReadExtensions() { i.Extensions = i.alone(i.kept) }

// alone returns elements with the declarations that they need from the entry.
func (i *Item) alone(elements []string) (all []string) {
	left := xmlscan.MaxInherited*i.length + xmlscan.MaxInheritedExtra
	for _, element := range elements {
		element = i.scope.Alone(element, i.rss)
		if left -= len(element); left < 0 {
			break // too many declarations for the elements' length
		}
		if xmlscan.WellFormed(element) == nil {
			all = append(all, element)
		}
	}
	return all
}

// Own returns the elements that only the entry's format has, to be carried by another one, each
// on a line, after ReadLists. It leaves out those with the meanings, which the other format has.
func (i *Item) Own(meanings ...Meaning) string {
	return strings.Join(append(i.alone(without(i.own, meanings)), ""), "\n")
}

// Into returns an element without a namespace in one, such as RSS2, for other formats. One that
// declares itself to have none stays as it is.
func Into(space, element string) string {
	if strings.Contains(element, "xmlns") && isDeclaring(element) {
		return element
	}
	name := strings.IndexAny(element, " \t\r\n/>")
	return element[:name] + ` xmlns="` + space + `"` + element[name:]
}

// Qualified returns an entry of Atom in whose namespace its children are that have one of Atom's names, and
// no namespace.
func Qualified(raw string, sc *xmlscan.Scope) string {
	r := Again(raw, sc, FormatAtom)
	defer r.Release()
	space := r.Cursor.Space()
	r.SetNative("")
	var b strings.Builder
	done := 0
	var visit func()
	visit = func() {
		for depth := r.Depth(); r.Child(depth); {
			row := r.Row()
			switch {
			case row.AtomRank == 0 || !r.IsAtom():
			case r.Cursor.Space() != "":
				if row.Form == PersonForm || row.Form == SourceForm {
					visit()
				}
			default:
				start := r.Offset()
				r.Skip()
				b.WriteString(raw[done:start] + Into(space, raw[start:r.End()]))
				done = r.End()
			}
		}
	}
	visit()
	return b.String() + raw[done:]
}

// isDeclaring reports whether an element has a default namespace of its own.
func isDeclaring(element string) bool {
	const space = " \t\r\n\f"
	i := strings.IndexAny(element, space+"/>")
	for i > 1 && element[0] == '<' {
		rest := strings.TrimLeft(element[i:], space)
		name, value, ok := strings.Cut(rest, "=")
		name = strings.TrimRight(name, space)
		if !ok || len(rest) == len(element[i:]) || name == "" || strings.ContainsAny(name, space) {
			return false
		}
		if name == "xmlns" {
			return true
		}
		value = strings.TrimLeft(value, space)
		if value == "" || value[0] != '"' && value[0] != '\'' {
			return false
		}
		end := strings.IndexByte(value[1:], value[0])
		if end < 0 {
			return false
		}
		i = len(element) - len(value) + 1 + end + 1
	}
	return false
}

// OutOfRSS2 returns elements for RSS, each on a line: those having travelled through another
// format are its own again.
func OutOfRSS2(elements string) string {
	if !strings.Contains(elements, RSS2) {
		return elements // nearly always, and far faster
	}
	var b strings.Builder
	for elements != "" {
		if i := travelled(elements); i >= 0 {
			b.WriteString(elements[:i])
			elements = elements[i+len(inRSS2):]
		}
		line, rest, more := strings.Cut(elements, "\n")
		b.WriteString(line)
		if more {
			b.WriteByte('\n')
		}
		elements = rest
	}
	return b.String()
}

const inRSS2 = ` xmlns="` + RSS2 + `"`

// travelled returns where an element of RSS has its declaration in another format; -1 if it has
// none. One taken out of its surroundings has its base and language before that.
func travelled(element string) int {
	i := strings.IndexAny(element, " \t\r\n/>")
	for i > 1 && element[0] == '<' {
		rest := element[i:]
		if strings.HasPrefix(rest, inRSS2) {
			return i
		}
		end := -1
		if strings.HasPrefix(rest, ` xml:base="`) || strings.HasPrefix(rest, ` xml:lang="`) {
			end = strings.IndexByte(rest[len(` xml:base="`):], '"')
		}
		if end < 0 {
			return -1
		}
		i += len(` xml:base="`) + end + 1
	}
	return -1
}

// Foreign returns the elements that no format has, such as those of iTunes, Podcasting 2.0 and
// Media RSS, to be written in another format, after ReadLists. It leaves out those with the meanings.
// The element around them needs the attributes.
func (i *Item) Foreign(meanings ...Meaning) (attrs, elements string) {
	foreign := without(i.foreign, meanings)
	if len(foreign) == 0 {
		return "", ""
	}
	all := strings.Join(foreign, "\n")
	shared, others := i.scope.Shareable(all)
	var b strings.Builder
	left := xmlscan.MaxInherited*len(all) + xmlscan.MaxInheritedExtra
	for _, element := range foreign {
		attrs := xmlscan.Declarations(element, others, i.rss)
		if left -= len(attrs); left < 0 {
			return "", "" // too many declarations for the elements' length
		}
		if attrs != "" {
			element = xmlscan.Standalone(element, i.scope.Bindings, attrs)
		}
		b.WriteString(element + "\n")
	}
	return i.scope.Attrs(shared, markup.MayBeRelative(all)), b.String()
}

// Atom returns the item as an Atom entry, perhaps without an update time. The same item
// always gives the same XML.
func (i *Item) Atom() (string, error) {
	if xmlscan.Trim(i.ID) != i.ID || i.ID == "" {
		return "", fmt.Errorf("draft %q: the id must not be empty, nor begin or end with white space (RFC 4287 §4.2.6)", clip(i.ID))
	}
	var w Markup
	most := len(i.Title.Body) + len(i.Summary.Body) + len(i.Content.Body)
	w.Grow(most + most/8 + 1024) // of most entries
	w.Open("entry", "xmlns", Atom, "xml:lang", i.Lang)
	w.WriteString(">\n")
	w.Element("id", i.ID)
	if !i.Updated.IsZero() {
		w.Element("updated", i.Updated.Format(time.RFC3339Nano))
	}
	if !i.Published.IsZero() {
		w.Element("published", i.Published.Format(time.RFC3339Nano))
	}
	err := errors.Join(writeText(&w, "title", i.Title), writeText(&w, "summary", i.Summary), writeText(&w, "content", i.Content))
	if err != nil {
		return "", fmt.Errorf("draft %s: %w", i.ID, err)
	}
	for _, p := range i.Authors {
		w.Person("author", p)
	}
	for _, c := range i.Categories {
		w.Category("category", c)
	}
	for _, l := range i.Links {
		w.Link("link", l)
	}
	for _, x := range i.Extensions {
		if err := xmlscan.WellFormed(x); err != nil {
			return "", fmt.Errorf("draft %s: extension %q: %w", i.ID, clip(x), err)
		}
		w.WriteString(x + "\n")
	}
	w.WriteString("</entry>")
	return w.String(), nil
}

// writeText writes a text construct or content. It writes a title even if it is empty.
func writeText(w *Markup, name string, t Construct) error {
	if t == (Construct{}) && name != "title" {
		return nil
	}
	if IsMedia(t.Type) && name != "content" {
		return fmt.Errorf("%s: type %q: the type of a text construct is text, html or xhtml (RFC 4287 §3.1.1)", name, clip(t.Type))
	}
	if err := w.Text(name, t); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
