package feedxml

import (
	"slices"
	"strings"
)

// A Meaning is the part of the model an element fills in.
type Meaning uint8

// The meanings. Kept elements have none, and travel as published.
const (
	MeansNothing Meaning = iota
	IsKept
	MeansID
	MeansTitle
	MeansSubtitle
	MeansSummary
	MeansContent
	MeansUpdated
	MeansPublished
	MeansAuthor
	MeansCategory
	MeansLink
	MeansEnclosure
	MeansIcon
	MeansLanguage
	MeansSchedule
	MeansFlag
	MeansDeleted
	MeansCoverage
	MeansKeptBy
	MeansGroup // of media with texts
	Meanings   // their number
)

// A Form is the form of an element's content: by it the element is mended and found at fault.
type Form uint8

// The forms.
const (
	AsPublished Form = iota
	Entries          // an entry
	Wrapper          // entries, in an element the format does not have
	Part             // of another element
	TextForm
	IDForm
	DateForm
	PersonForm
	CategoryForm
	LinkForm
	GeneratorForm
	URLForm
	HrefForm
	ContactForm
	EnclosureForm
	SourceForm
	LanguageForm
	ImageForm
	HTMLForm
	Dropped // the format does not define the element
)

// A Row is an element of the formats and their modules. Elements without a row are
// extensions: all formats keep them as published.
type Row struct {
	Space, Name string // Space is "" for RSS
	Clause      string

	// Feed and Entry are its meanings in a head section and in an entry; MeansNothing if it does not
	// belong there.
	Feed, Entry Meaning

	// AtomRank and RSSRank rank it in documents of Atom and RSS, where the highest of several
	// elements with one meaning counts. Zero means it is an extension there.
	AtomRank, RSSRank uint8

	Form Form

	// Atom and RSS are the elements its entry's meaning is written as; "" means it is
	// written as itself, an extension.
	Atom, RSS string

	Number Number
}

// A Number says how often a head section and an entry have an element.
type Number uint8

// The numbers, to be combined.
const (
	OneInFeed Number = 1 << iota
	OneInEntry
	Required        // where it belongs
	Any      Number = 0
	One             = OneInFeed | OneInEntry
)

// FirstRank is the rank of the format's own element.
const FirstRank = 9

// Rows returns the table of the elements.
func Rows() []Row { return table }

// The table of the elements: vocabulary and name; clause; meaning in a head section and in an
// entry; ranks in Atom and in RSS; form; names as written in Atom and in RSS; number.
var table = []Row{
	{Atom, "feed", "RFC 4287 §4.1.1", MeansNothing, MeansNothing, 9, 0, Part, "feed", "channel", Any},
	{Atom, "entry", "RFC 4287 §4.1.2", MeansNothing, MeansNothing, 9, 0, Entries, "entry", "item", Any},
	{Atom, "entries", "", MeansNothing, MeansNothing, 9, 0, Wrapper, "", "", Any},
	{Atom, "id", "RFC 4287 §4.2.6", MeansID, MeansID, 9, 1, IDForm, "id", "guid", One},
	{Atom, "title", "RFC 4287 §4.2.14", MeansTitle, MeansTitle, 9, 2, TextForm, "title", "title", One},
	{Atom, "subtitle", "RFC 4287 §4.2.12", MeansSubtitle, MeansNothing, 9, 0, TextForm, "subtitle", "description", OneInFeed},
	{Atom, "updated", "RFC 4287 §4.2.15", MeansUpdated, MeansUpdated, 9, 4, DateForm, "updated", "atom:updated", One},
	{Atom, "published", "RFC 4287 §4.2.9", MeansPublished, MeansPublished, 9, 4, DateForm, "published", "pubDate", OneInEntry},
	{Atom, "summary", "RFC 4287 §4.2.13", MeansNothing, MeansSummary, 9, 2, TextForm, "summary", "description", OneInEntry},
	{Atom, "content", "RFC 4287 §4.1.3", MeansNothing, MeansContent, 9, 2, TextForm, "content", "content:encoded", OneInEntry},
	{Atom, "author", "RFC 4287 §4.2.1", MeansAuthor, MeansAuthor, 9, 1, PersonForm, "author", "dc:creator", Any},
	{Atom, "contributor", "RFC 4287 §4.2.3", IsKept, IsKept, 9, 1, PersonForm, "contributor", "", Any},
	{Atom, "category", "RFC 4287 §4.2.2", IsKept, MeansCategory, 9, 1, CategoryForm, "category", "category", Any},
	{Atom, "link", "RFC 4287 §4.2.7", MeansLink, MeansLink, 9, 9, LinkForm, "link", "link", Any},
	{Atom, "rights", "RFC 4287 §4.2.10", IsKept, IsKept, 9, 1, TextForm, "rights", "", One},
	{Atom, "source", "RFC 4287 §4.2.11", MeansNothing, IsKept, 9, 1, SourceForm, "source", "", OneInEntry},
	{Atom, "generator", "RFC 4287 §4.2.4", IsKept, MeansNothing, 9, 1, GeneratorForm, "generator", "", OneInFeed},
	{Atom, "icon", "RFC 4287 §4.2.5", MeansIcon, MeansNothing, 2, 4, URLForm, "icon", "", OneInFeed},
	{Atom, "logo", "RFC 4287 §4.2.8", MeansIcon, MeansNothing, 1, 3, URLForm, "logo", "", OneInFeed},
	{Atom, "tagline", "Atom 0.3", MeansSubtitle, MeansNothing, 9, 0, Dropped, "subtitle", "description", Any},
	{Atom, "modified", "Atom 0.3", MeansUpdated, MeansUpdated, 9, 0, Dropped, "updated", "atom:updated", Any},
	{Atom, "issued", "Atom 0.3", MeansNothing, MeansPublished, 9, 0, Dropped, "published", "pubDate", Any},
	{Atom, "created", "Atom 0.3", MeansNothing, MeansPublished, 1, 0, Dropped, "published", "pubDate", Any},
	{Atom, "copyright", "Atom 0.3", IsKept, IsKept, 9, 0, TextForm, "rights", "", Any},
	{Atom, "name", "RFC 4287 §3.2.1", MeansNothing, MeansNothing, 9, 1, Part, "name", "", Any},
	{Atom, "uri", "RFC 4287 §3.2.2", MeansNothing, MeansNothing, 9, 1, Part, "uri", "", Any},
	{Atom, "url", "Atom 0.3", MeansNothing, MeansNothing, 9, 1, Part, "uri", "", Any},
	{Atom, "email", "RFC 4287 §3.2.3", MeansNothing, MeansNothing, 9, 1, Part, "email", "", Any},

	{"", "channel", "RSS 2.0", MeansNothing, MeansNothing, 0, 9, Part, "feed", "channel", Any},
	{"", "item", "RSS 2.0, item", MeansNothing, MeansNothing, 0, 9, Entries, "entry", "item", Any},
	{"", "items", "RSS 1.0 §5.3.5", MeansNothing, MeansNothing, 0, 9, Wrapper, "", "", Any},
	{"", "title", "RSS 2.0, channel and item", MeansTitle, MeansTitle, 0, 9, TextForm, "title", "title", One},
	{"", "link", "RSS 2.0, channel and item", MeansLink, MeansLink, 0, 9, URLForm, "link", "link", One},
	{"", "description", "RSS 2.0, channel and item", MeansSubtitle, MeansSummary, 0, 9, TextForm, "summary", "description", One},
	{"", "language", "RSS 2.0, channel", MeansLanguage, MeansNothing, 0, 9, LanguageForm, "", "language", Any},
	{"", "copyright", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, AsPublished, "", "copyright", Any},
	{"", "managingEditor", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, ContactForm, "", "managingEditor", Any},
	{"", "webMaster", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, ContactForm, "", "webMaster", Any},
	{"", "pubDate", "RSS 2.0, channel and item", MeansPublished, MeansPublished, 0, 9, DateForm, "published", "pubDate", One},
	{"", "lastBuildDate", "RSS 2.0, channel", MeansUpdated, MeansNothing, 0, 9, AsPublished, "updated", "lastBuildDate", OneInFeed},
	{"", "category", "RSS 2.0, channel and item", IsKept, MeansCategory, 0, 9, CategoryForm, "category", "category", Any},
	{"", "generator", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, AsPublished, "", "generator", Any},
	{"", "docs", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, URLForm, "", "docs", Any},
	{"", "cloud", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, AsPublished, "", "cloud", Any},
	{"", "ttl", "RSS 2.0, channel", MeansSchedule, MeansNothing, 0, 9, AsPublished, "", "ttl", Any},
	{"", "image", "RSS 2.0, channel", MeansIcon, MeansNothing, 0, 5, ImageForm, "", "image", Any},
	{"", "rating", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, AsPublished, "", "rating", Any},
	{"", "textInput", "RSS 2.0, channel", IsKept, MeansNothing, 0, 9, ImageForm, "", "textInput", Any},
	{"", "skipHours", "RSS 2.0, channel", MeansSchedule, MeansNothing, 0, 9, AsPublished, "", "skipHours", Any},
	{"", "skipDays", "RSS 2.0, channel", MeansSchedule, MeansNothing, 0, 9, AsPublished, "", "skipDays", Any},
	{"", "author", "RSS 2.0, item", IsKept, MeansAuthor, 0, 9, ContactForm, "author", "author", Any},
	{"", "comments", "RSS 2.0, item", MeansNothing, IsKept, 0, 9, URLForm, "", "comments", Any},
	{"", "enclosure", "RSS 2.0, item", MeansNothing, MeansEnclosure, 0, 9, EnclosureForm, "link", "enclosure", Any},
	{"", "guid", "RSS 2.0, item", MeansNothing, MeansID, 0, 9, IDForm, "id", "guid", OneInEntry},
	{"", "source", "RSS 2.0, item", MeansNothing, IsKept, 0, 9, SourceForm, "", "source", Any},
	{"", "id", "", MeansNothing, MeansID, 0, 1, Dropped, "id", "guid", Any},
	{"", "published", "", MeansNothing, MeansPublished, 0, 1, Dropped, "published", "pubDate", Any},
	{"", "updated", "", MeansNothing, MeansUpdated, 0, 1, Dropped, "updated", "atom:updated", Any},
	{"", "summary", "", MeansNothing, MeansSummary, 0, 2, Dropped, "summary", "description", Any},
	{"", "content", "", MeansNothing, MeansContent, 0, 2, HTMLForm, "content", "content:encoded", Any},
	{"", "body", "", MeansNothing, MeansContent, 0, 1, HTMLForm, "content", "content:encoded", Any},
	{"", "fullitem", "", MeansNothing, MeansContent, 0, 1, HTMLForm, "content", "content:encoded", Any},
	{"", "url", "RSS 2.0, image", MeansNothing, MeansNothing, 0, 9, Part, "", "url", Any},
	{"", "hour", "RSS 2.0, skipHours", MeansNothing, MeansNothing, 0, 9, Part, "", "hour", Any},
	{"", "day", "RSS 2.0, skipDays", MeansNothing, MeansNothing, 0, 9, Part, "", "day", Any},

	{Content, "encoded", "RSS 1.0 content module", MeansNothing, MeansContent, 0, 9, HTMLForm, "content", "content:encoded", Any},
	{DC, "title", "Dublin Core 1.1", MeansTitle, MeansTitle, 4, 4, AsPublished, "", "", Any},
	{DC, "description", "Dublin Core 1.1", MeansNothing, MeansSummary, 0, 4, AsPublished, "", "", Any},
	{DC, "creator", "Dublin Core 1.1", IsKept, MeansAuthor, 1, 1, AsPublished, "author", "dc:creator", Any},
	{DC, "subject", "Dublin Core 1.1", IsKept, MeansCategory, 1, 1, AsPublished, "category", "category", Any},
	{DC, "date", "Dublin Core 1.1", MeansUpdated, MeansUpdated, 0, 2, DateForm, "updated", "atom:updated", Any},
	{DC, "language", "Dublin Core 1.1", MeansLanguage, MeansNothing, 1, 1, AsPublished, "dc:language", "language", Any},
	{DCTerms, "modified", "DCMI Terms", MeansUpdated, MeansUpdated, 0, 3, AsPublished, "updated", "atom:updated", Any},
	{DCTerms, "issued", "DCMI Terms", MeansPublished, MeansPublished, 0, 3, AsPublished, "published", "pubDate", Any},
	{DCTerms, "created", "DCMI Terms", MeansPublished, MeansPublished, 0, 2, AsPublished, "published", "pubDate", Any},
	{ITunes, "summary", "Podcasts Connect", MeansNothing, MeansSummary, 0, 3, AsPublished, "", "", Any},
	{ITunes, "image", "Podcasts Connect", MeansIcon, MeansNothing, 0, 1, HrefForm, "", "", Any},
	{Media, "group", "Media RSS 1.5", MeansNothing, MeansGroup, 1, 1, AsPublished, "", "", Any},
	{Media, "content", "Media RSS 1.5", MeansNothing, MeansGroup, 1, 1, AsPublished, "", "", Any},
	{Media, "title", "Media RSS 1.5", MeansNothing, MeansTitle, 3, 3, AsPublished, "", "", Any},
	{Media, "description", "Media RSS 1.5", MeansNothing, MeansSummary, 1, 1, AsPublished, "", "", Any},
	{XHTML, "body", "XHTML 1.0", MeansNothing, MeansContent, 0, 3, AsPublished, "", "", Any},
	{Syndication, "updatePeriod", "RSS 1.0 syndication module", MeansSchedule, MeansNothing, 1, 1, AsPublished, "", "", Any},
	{Syndication, "updateFrequency", "RSS 1.0 syndication module", MeansSchedule, MeansNothing, 1, 1, AsPublished, "", "", Any},
	{History, "complete", "5005#2", MeansFlag, MeansNothing, 1, 1, AsPublished, "fh:complete", "fh:complete", Any},
	{History, "archive", "5005#14", MeansFlag, MeansNothing, 1, 1, AsPublished, "fh:archive", "fh:archive", Any},
	{History, "prev", "RFC 5005, draft", MeansFlag, MeansNothing, 1, 1, AsPublished, "link", "atom:link", Any},
	{History, "incremental", "RFC 5005, draft", MeansFlag, MeansNothing, 1, 1, AsPublished, "fh:complete", "fh:complete", Any},
	{Tombstones, "deleted-entry", "RFC 6721 §3", MeansDeleted, MeansNothing, 1, 1, AsPublished, "at:deleted-entry", "at:deleted-entry", Any},
	{Coverage, "mirror", "", MeansCoverage, MeansNothing, 1, 1, AsPublished, "m:mirror", "m:mirror", Any},
	{Coverage, "kept", "", MeansNothing, MeansKeptBy, 1, 1, AsPublished, "", "", Any},
}

// extension is the row of all elements without one.
var extension Row

// words are the rows of the elements of one vocabulary. A map would take most of the time of
// reading a small entry, so each name has a slot of its own.
type words struct {
	space  string
	slots  [256]*Row
	factor uint
	folded map[string]*Row // by names in small letters, where feeds are careless about case
}

func (w *words) slot(name string) uint {
	return (uint(name[0])*w.factor + uint(name[len(name)-1])*7 + uint(len(name))) % uint(len(w.slots))
}

// add adds a row, and reports whether its slot was free.
func (w *words) add(row *Row) bool {
	slot := &w.slots[w.slot(row.Name)]
	if *slot != nil {
		return false
	}
	*slot = row
	return true
}

// vocabularies are the words by the lengths of their namespaces, all of which differ.
var vocabularies = func() (all [64]*words) {
	for i := range table {
		space := table[i].Space
		if all[len(space)] == nil {
			all[len(space)] = newWords(space)
		}
	}
	return all
}()

// newWords returns the words of a vocabulary, by the first factor that gives each a slot.
func newWords(space string) *words {
	var rows []*Row
	for i := range table {
		if table[i].Space == space {
			rows = append(rows, &table[i])
		}
	}
	w := &words{space: space}
	for w.factor = 1; slices.ContainsFunc(rows, func(row *Row) bool { return !w.add(row) }); w.factor++ {
		w.slots = [256]*Row{}
	}
	if space == "" || space == Atom {
		w.folded = map[string]*Row{}
		for _, row := range rows {
			w.folded[strings.ToLower(row.Name)] = row
		}
	}
	return w
}

// wordsOf returns the vocabulary of a namespace; an empty one of one without rows.
func wordsOf(space string) *words {
	if len(space) < len(vocabularies) {
		if w := vocabularies[len(space)]; w != nil && w.space == space {
			return w
		}
	}
	if IsAtom(space) {
		return atomWords
	}
	return noWords
}

var noWords, atomWords, rssWords = &words{}, vocabularies[len(Atom)], vocabularies[0]

// longestName is at least the length of each name in the table.
const longestName = 20

// find returns the row of exactly this name in documents of a format.
func (w *words) find(format Format, local string) *Row {
	if local != "" {
		if row := w.slots[w.slot(local)]; row != nil && row.Name == local && row.Rank(format) > 0 {
			return row
		}
	}
	return &extension
}

// RowOf returns the row of an element with exactly this name in a document of a format.
func RowOf(format Format, space, local string) *Row { return wordsOf(space).find(format, local) }

// IsExpressed reports whether the fields and lists of an entry express the element, in every
// format.
func (row *Row) IsExpressed() bool { return row.Entry > IsKept && row.Atom != "" && row.RSS != "" }

// Rank returns the rank of the row in documents of a format.
func (row *Row) Rank(format Format) int {
	if format == FormatAtom {
		return int(row.AtomRank)
	}
	return int(row.RSSRank)
}

// Row returns the row of the current element; that of an extension has no name.
func (r *Elements) Row() *Row { return r.rowIn(r.Space()) }

func (r *Elements) rowIn(space string) *Row {
	w := noWords
	switch {
	case r.Format == FormatAtom && (space == r.Native || IsAtom(space)):
		w = atomWords
	case r.Format == FormatRSS && r.IsOfRSS(space):
		w = rssWords
	case space != "":
		w = wordsOf(space)
	}
	local := r.Local()
	row := w.find(r.Format, local)
	if row != &extension || w.folded == nil || len(local) > longestName || w == atomWords && !isCapital(local) {
		return row
	}
	if row = w.folded[strings.ToLower(local)]; row != nil && row.Rank(r.Format) > 0 {
		return row
	}
	return &extension
}

// Named is Row, but notes a misspelt name, and reports whether the name or its namespace is
// misspelt.
func (r *Elements) Named() (row *Row, odd bool) {
	space := r.Space()
	row = r.rowIn(space)
	local := r.Local()
	if row != &extension && row.Name != local {
		r.note("name-misspelt", "the element "+clip(local)+" is read as "+row.Name, r.Offset())
		return row, true
	}
	return row, space != r.Cursor.Space()
}

func isCapital(local string) bool { return local != "" && 'A' <= local[0] && local[0] <= 'Z' }
