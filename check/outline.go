package check

import (
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

const (
	nsSearch  = "http://a9.com/-/spec/opensearch/1.1/"
	nsSearch1 = "http://a9.com/-/spec/opensearchrss/1.0/"
)

// nowhere is the offset of something without a place in the document.
const nowhere = -1

// An outline supplements the model of a document: it has the places of things, and
// elements where they have no meaning. It is made from the text.
type outline struct {
	native      string          // the namespace of the root element
	top         int             // the feed or channel
	id, updated int             // those of the feed
	links       []spot          // in the head section, one for each relation
	flags       []flagPlace     // in any place
	stray       []spot          // history links in entries
	entries     []entryPlace    // in document order
	search      map[string]spot // OpenSearch's numbers in the head section
}

// A spot is a place with its text.
type spot struct {
	at   int
	text string
}

// A flagPlace is an fh:complete or fh:archive.
type flagPlace struct {
	at      int
	name    string
	head    bool   // in the head section
	content bool   // not empty
	text    string // the things in it
	foreign bool   // not in RFC 5005's namespace
	space   string // in this one
}

// An entryPlace is the element of an entry.
type entryPlace struct {
	at, end   int
	id        int
	permalink bool // an RSS guid claiming to be a URL
	updated   bool // whether there is updated, even an unreadable one
	content   contentKind
}

// A contentKind is the kind of an Atom entry's atom:content.
type contentKind uint8

const (
	noContent    contentKind = iota
	emptyContent             // and no src: this marks a deletion in Atom-PMH
	someContent
)

// newOutline reads a document's text, up to the first damage.
func newOutline(doc *feedhistory.Document) *outline {
	o := &outline{top: nowhere, id: nowhere, updated: nowhere}
	if doc.Format == feedhistory.JSONFeed {
		o.jsonItems(doc)
		return o
	}
	s := outliner{outline: o, Cursor: xmlscan.Open(doc.Text(), xmlscan.Limits{}), text: doc.Text()}
	if !s.Child(0) {
		return o
	}
	switch s.native = s.Space(); {
	case doc.Format == feedhistory.Atom:
		s.head("entry")
	case doc.Format == feedhistory.RSS:
		s.rss()
	}
	return o
}

// jsonItems finds the items, whose text the model has unchanged.
func (o *outline) jsonItems(doc *feedhistory.Document) {
	from := 0
	for _, e := range doc.Entries {
		raw := string(e.JSON())
		i := strings.Index(doc.Text()[from:], raw)
		if i < 0 { // it was mended
			o.entries = append(o.entries, entryPlace{at: nowhere, end: nowhere, id: nowhere})
			continue
		}
		at := from + i
		from = at + len(raw)
		o.entries = append(o.entries, entryPlace{at: at, end: from, id: at})
	}
}

// An outliner reads an outline.
type outliner struct {
	*xmlscan.Cursor
	*outline
	text string
}

func (s *outliner) rss() {
	for depth := s.Depth(); s.Child(depth); {
		switch {
		case s.Local() == "channel" && s.isNative():
			s.head("item")
		case s.Local() == "item" && s.isNative():
			s.entry()
		case !s.flag(false):
			s.elsewhere()
		}
	}
}

// isNative reports whether the current element belongs to the format, and not
// to an extension.
func (s *outliner) isNative() bool {
	switch space := s.Space(); space {
	case "", s.native, vocab.Atom, vocab.Atom03, "http://purl.org/rss/1.0/",
		"http://channel.netscape.com/rdf/simple/0.9/", "http://my.netscape.com/rdf/simple/0.9/":
		return true
	default:
		return strings.HasPrefix(space, "http://backend.userland.com/rss")
	}
}

// head reads the children of feed or channel.
func (s *outliner) head(entry string) {
	s.top = s.Offset()
	for depth := s.Depth(); s.Child(depth); {
		if s.flag(true) {
			continue
		}
		switch local, at := s.Local(), s.Offset(); {
		case local == entry && s.isNative():
			s.entry()
		case local == "link" && s.isNative():
			s.headLink()
		case local == "prev" && s.Space() == vocab.History: // an old draft's equivalent of a link
			s.links = append(s.links, spot{at, feedhistory.RelPrevArchive})
		case local == "id" && s.isNative():
			s.id = at
		case (local == "updated" || local == "lastBuildDate") && s.isNative():
			s.updated = at
		case s.Space() == nsSearch || s.Space() == nsSearch1:
			s.searchNumber()
		default:
			s.elsewhere()
		}
	}
}

// headLink records the place of a link for each of its relations.
func (s *outliner) headLink() {
	at := s.Offset()
	if _, ok := s.Attr("", "href"); !ok {
		if s.Space() != vocab.Atom && s.Space() != vocab.Atom03 { // RSS's own link
			s.links = append(s.links, spot{at, feedhistory.RelAlternate})
		}
		return
	}
	for _, rel := range s.relations() {
		s.links = append(s.links, spot{at, rel})
	}
}

// relations returns the relations in the current link's rel.
func (s *outliner) relations() []string {
	rel, _ := s.Attr("", "rel")
	if fields := strings.Fields(rel); len(fields) > 0 {
		return fields
	}
	return []string{feedhistory.RelAlternate}
}

// searchNumber records OpenSearch's numbers for the page.
func (s *outliner) searchNumber() {
	at, name := s.Offset(), s.Local()
	if s.search == nil {
		s.search = map[string]spot{}
	}
	if len(s.search) < 16 {
		s.search[name] = spot{at, strings.TrimSpace(s.ElementText())}
	}
}

// entry reads the current entry or item.
func (s *outliner) entry() {
	e := entryPlace{at: s.Offset(), id: s.Offset()}
	for depth := s.Depth(); s.Child(depth); {
		if s.flag(false) {
			continue
		}
		if !s.isNative() {
			s.elsewhere()
			continue
		}
		switch at := s.Offset(); s.Local() {
		case "id":
			e.id = at
		case "guid":
			value, ok := s.Attr("", "isPermaLink")
			e.id, e.permalink = at, !ok || strings.EqualFold(strings.TrimSpace(value), "true")
		case "updated":
			e.updated = true
			s.elsewhere()
		case "link":
			s.entryLink()
		case "content":
			e.content = s.content()
		case "source", "summary", "description": // another feed's head, and text for people
			s.Skip()
		default:
			s.elsewhere()
		}
	}
	if e.end = s.End(); s.Err() == nil {
		s.entries = append(s.entries, e)
	}
}

// historyRelations connect a feed's documents; in an entry they mean nothing.
var historyRelations = []string{
	feedhistory.RelFirst, feedhistory.RelLast, feedhistory.RelPrevious, feedhistory.RelNext,
	feedhistory.RelCurrent, feedhistory.RelPrevArchive, feedhistory.RelNextArchive,
}

func (s *outliner) entryLink() {
	if _, ok := s.Attr("", "href"); !ok {
		return
	}
	for _, rel := range s.relations() {
		if slices.Contains(historyRelations, rel) {
			s.stray = append(s.stray, spot{s.Offset(), rel})
		}
	}
}

func (s *outliner) content() contentKind {
	if _, ok := s.Attr("", "src"); ok {
		s.Skip()
		return someContent
	}
	if _, content := s.inner(); content {
		return someContent
	}
	return emptyContent
}

// inner moves to the end of the current element. It returns the text inside,
// and whether there is any text or element.
func (s *outliner) inner() (text string, content bool) {
	at := s.Offset()
	text = strings.TrimSpace(s.ElementText())
	tags := strings.Count(s.text[at:s.End()], "<")
	return text, text != "" || tags > 2 // the element's own tags
}

// elsewhere looks for flags in places where they do not count.
func (s *outliner) elsewhere() {
	if s.Local() == "source" {
		s.Skip()
		return
	}
	depth := s.Depth()
	for tok := s.Next(); tok != xmlscan.Stop && s.Depth() >= depth; tok = s.Next() {
		if tok == xmlscan.Start {
			s.flag(false)
		}
	}
}

// flag reads the current element if it is one of RFC 5005's flags, or is meant
// to be: its namespace may be misspelt or missing.
func (s *outliner) flag(head bool) bool {
	name, space := s.Local(), s.Space()
	if name != "complete" && name != "archive" {
		return false
	}
	plain := head && (space == s.native || space == "")
	if !plain && !strings.Contains(strings.ToLower(space), "syndication/history") {
		return false
	}
	f := flagPlace{at: s.Offset(), name: name, head: head, foreign: space != vocab.History, space: space}
	f.text, f.content = s.inner()
	if len(s.flags) < 1000 {
		s.flags = append(s.flags, f)
	}
	return true
}
