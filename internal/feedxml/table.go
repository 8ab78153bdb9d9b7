package feedxml

import (
	"cmp"
	"strings"
	"sync"
)

// A Meaning is the part of the model an element fills in.
type Meaning uint8

// The meanings. Kept elements have none, and travel as published.
const (
	MeansNothing Meaning = iota
	MeansKept
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
	MeansGroup // of media with texts and files
	MeansContributor
	MeansRights
	MeansGenerator
	MeansLogo // and icon
	MeansSource
	MeansComments
	MeansImage
	MeansFile // in no link
	MeansDuration
	Meanings // their number
)

// Travels reports whether elements with the meaning are written into another format as
// published, because each format has its own way to say it, or none.
func (m Meaning) Travels() bool {
	switch m {
	case MeansKept, MeansContributor, MeansRights, MeansGenerator, MeansSource, MeansComments:
		return true
	}
	return false
}

// A Form is the form of an element's content: by it the element is read and mended.
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
	CategoryForm
	GeneratorForm
	ContactForm
	LanguageForm
	HTMLForm
	Dropped // the format does not define the element

	// From here on, the content has references besides those of markup.
	PersonForm
	LinkForm
	URLForm
	HrefForm
	EnclosureForm
	SourceForm
	ImageForm
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

	Form  Form
	Flags Flags
	Attrs string // the attributes without a namespace it may have, between spaces

	// JSON names the members with its meaning, those of a JSON Feed before a slash and those of an item
	// after it. Elements do not express all of one with a plus sign, which other formats carry, too.
	JSON string
}

// Flags say how careless feeds are about an element, and writers may be.
type Flags uint8

// The flags.
const (
	AnyCase Flags = 1 << iota // feeds misspell it so
	Once                      // a head section, or an entry, has it once
	NotKept                   // an entry of another format does not keep it: each format has its own element for the meaning, or none
)

// FirstRank is the rank of the format's own element. A higher rank is for Atom's element in RSS
// where it is more detailed: atom:rights has markup, atom:generator an address.
const FirstRank = 9

// Rank returns the rank of the row in documents of a format.
func (row *Row) Rank(format Format) int {
	if format == FormatAtom {
		return int(row.AtomRank)
	}
	return int(row.RSSRank)
}

// The table of the elements: vocabulary and name; clause; meaning in a head section and in an
// entry; ranks in Atom and in RSS; form; flags; attributes; members of JSON Feed.
// docs/FORMATS.md has it for people.
var table = []Row{
	{Atom, "feed", "RFC 4287 §4.1.1", MeansNothing, MeansNothing, 9, 0, Part, AnyCase, "", "version items / "},
	{Atom, "entry", "RFC 4287 §4.1.2", MeansNothing, MeansNothing, 9, 0, Entries, AnyCase, "", ""},
	{Atom, "entries", "", MeansNothing, MeansNothing, 9, 0, Wrapper, 0, "", ""},
	{Atom, "id", "RFC 4287 §4.2.6", MeansID, MeansID, 9, 1, IDForm, AnyCase | Once, "", " / id"},
	{Atom, "title", "RFC 4287 §4.2.14", MeansTitle, MeansTitle, 9, 2, TextForm, AnyCase | Once, " type ", "title / title"},
	{Atom, "subtitle", "RFC 4287 §4.2.12", MeansSubtitle, MeansKept, 9, 0, TextForm, AnyCase | Once | NotKept, " type ", "description / "},
	{Atom, "updated", "RFC 4287 §4.2.15", MeansUpdated, MeansUpdated, 9, 4, DateForm, AnyCase | Once, "", " / date_modified"},
	{Atom, "published", "RFC 4287 §4.2.9", MeansPublished, MeansPublished, 9, 4, DateForm, AnyCase | Once, "", " / date_published"},
	{Atom, "summary", "RFC 4287 §4.2.13", MeansNothing, MeansSummary, 9, 2, TextForm, AnyCase | Once, " type ", " / summary"},
	{Atom, "content", "RFC 4287 §4.1.3", MeansNothing, MeansContent, 9, 2, TextForm, AnyCase | Once, " type src ", " / content_html content_text+"},
	{Atom, "author", "RFC 4287 §4.2.1", MeansAuthor, MeansAuthor, 9, 1, PersonForm, AnyCase, "", "authors+ author+ / authors+ author+"},
	{Atom, "contributor", "RFC 4287 §4.2.3", MeansContributor, MeansContributor, 9, 1, PersonForm, AnyCase, "", ""},
	{Atom, "category", "RFC 4287 §4.2.2", MeansCategory, MeansCategory, 9, 1, CategoryForm, AnyCase, " term scheme label ", " / tags"},
	{Atom, "link", "RFC 4287 §4.2.7", MeansLink, MeansLink, 9, 9, LinkForm, AnyCase, " rel href type title hreflang length ", "home_page_url feed_url next_url hubs / url external_url attachments+"},
	{Atom, "rights", "RFC 4287 §4.2.10", MeansRights, MeansRights, 9, 10, TextForm, Once, " type ", ""},
	{Atom, "source", "RFC 4287 §4.2.11", MeansNothing, MeansSource, 9, 1, SourceForm, AnyCase | Once, "", ""},
	{Atom, "generator", "RFC 4287 §4.2.4", MeansGenerator, MeansNothing, 9, 10, GeneratorForm, Once, " uri version ", ""},
	{Atom, "icon", "RFC 4287 §4.2.5", MeansIcon, MeansNothing, 2, 6, URLForm, Once, "", "icon favicon+ / "},
	{Atom, "logo", "RFC 4287 §4.2.8", MeansLogo, MeansNothing, 1, 0, URLForm, Once, "", ""},
	{Atom, "tagline", "Atom 0.3", MeansSubtitle, MeansNothing, 9, 0, Dropped, AnyCase, "", ""},
	{Atom, "modified", "Atom 0.3", MeansUpdated, MeansUpdated, 9, 0, Dropped, AnyCase, "", ""},
	{Atom, "issued", "Atom 0.3", MeansNothing, MeansPublished, 9, 0, Dropped, AnyCase, "", ""},
	{Atom, "created", "Atom 0.3", MeansNothing, MeansPublished, 1, 0, Dropped, AnyCase, "", ""},
	{Atom, "copyright", "Atom 0.3", MeansRights, MeansRights, 9, 0, TextForm, NotKept, "", ""},
	{Atom, "name", "RFC 4287 §3.2.1", MeansNothing, MeansNothing, 9, 1, Part, AnyCase, "", ""},
	{Atom, "uri", "RFC 4287 §3.2.2", MeansNothing, MeansNothing, 9, 1, Part, AnyCase, "", ""},
	{Atom, "url", "Atom 0.3", MeansNothing, MeansNothing, 9, 1, Part, AnyCase, "", ""},
	{Atom, "email", "RFC 4287 §3.2.3", MeansNothing, MeansNothing, 9, 1, Part, AnyCase, "", ""},

	{"", "channel", "RSS 2.0", MeansNothing, MeansNothing, 0, 9, Part, AnyCase, "", ""},
	{"", "item", "RSS 2.0, item", MeansNothing, MeansNothing, 0, 9, Entries, AnyCase, "", ""},
	{"", "items", "RSS 1.0 §5.3.5", MeansNothing, MeansNothing, 0, 9, Wrapper, 0, "", ""},
	{"", "title", "RSS 2.0, channel and item", MeansTitle, MeansTitle, 0, 9, TextForm, AnyCase | Once, "", ""},
	{"", "link", "RSS 2.0, channel and item", MeansLink, MeansLink, 0, 9, URLForm, AnyCase | Once, "", ""},
	{"", "description", "RSS 2.0, channel and item", MeansSubtitle, MeansSummary, 0, 9, TextForm, AnyCase | Once, "", ""},
	{"", "language", "RSS 2.0, channel", MeansLanguage, MeansNothing, 0, 9, LanguageForm, Once, "", "language+ / language+"},
	{RSS2, "language", "RSS 2.0, channel", MeansLanguage, MeansNothing, 1, 0, AsPublished, 0, "", ""},
	{RSS2, "copyright", "RSS 2.0, channel", MeansRights, MeansNothing, 1, 0, AsPublished, 0, "", ""},
	{RSS2, "category", "RSS 2.0, channel", MeansCategory, MeansNothing, 1, 0, AsPublished, 0, "", ""},
	{RSS2, "generator", "RSS 2.0, channel", MeansGenerator, MeansNothing, 1, 0, AsPublished, 0, "", ""},
	{RSS2, "ttl", "RSS 2.0, channel", MeansSchedule, MeansNothing, 1, 0, AsPublished, 0, "", ""},
	{RSS2, "skipHours", "RSS 2.0, channel", MeansSchedule, MeansNothing, 1, 0, AsPublished, 0, "", ""},
	{RSS2, "skipDays", "RSS 2.0, channel", MeansSchedule, MeansNothing, 1, 0, AsPublished, 0, "", ""},
	{RSS2, "image", "RSS 2.0, channel", MeansLogo, MeansNothing, 1, 0, ImageForm, 0, "", ""},
	{RSS2, "comments", "RSS 2.0, item", MeansNothing, MeansComments, 1, 0, URLForm, 0, "", ""},
	{RSS2, "source", "RSS 2.0, item", MeansNothing, MeansSource, 1, 0, AsPublished, 0, "", ""},
	{"", "copyright", "RSS 2.0, channel", MeansRights, MeansNothing, 0, 9, AsPublished, Once, "", ""},
	{"", "managingEditor", "RSS 2.0, channel", MeansAuthor, MeansNothing, 0, 9, ContactForm, Once, "", ""},
	{"", "webMaster", "RSS 2.0, channel", MeansKept, MeansNothing, 0, 9, ContactForm, Once, "", ""},
	{"", "pubDate", "RSS 2.0, channel and item", MeansPublished, MeansPublished, 0, 9, DateForm, AnyCase | Once, "", ""},
	{"", "lastBuildDate", "RSS 2.0, channel", MeansUpdated, MeansNothing, 0, 9, AsPublished, AnyCase | Once, "", ""},
	{"", "category", "RSS 2.0, channel and item", MeansCategory, MeansCategory, 0, 9, CategoryForm, AnyCase, " domain ", ""},
	{"", "generator", "RSS 2.0, channel", MeansGenerator, MeansNothing, 0, 9, AsPublished, Once, "", ""},
	{"", "docs", "RSS 2.0, channel", MeansKept, MeansNothing, 0, 9, URLForm, Once, "", ""},
	{"", "cloud", "RSS 2.0, channel", MeansKept, MeansNothing, 0, 9, AsPublished, Once, "", ""},
	{"", "ttl", "RSS 2.0, channel", MeansSchedule, MeansNothing, 0, 9, AsPublished, AnyCase | Once, "", ""},
	{"", "image", "RSS 2.0, channel", MeansLogo, MeansNothing, 0, 5, ImageForm, Once, "", ""},
	{"", "rating", "RSS 2.0, channel", MeansKept, MeansNothing, 0, 9, AsPublished, Once, "", ""},
	{"", "textInput", "RSS 2.0, channel", MeansKept, MeansNothing, 0, 9, ImageForm, Once, "", ""},
	{"", "skipHours", "RSS 2.0, channel", MeansSchedule, MeansNothing, 0, 9, AsPublished, AnyCase | Once, "", ""},
	{"", "skipDays", "RSS 2.0, channel", MeansSchedule, MeansNothing, 0, 9, AsPublished, AnyCase | Once, "", ""},
	{"", "author", "RSS 2.0, item", MeansKept, MeansAuthor, 0, 9, ContactForm, AnyCase | Once, "", ""},
	{"", "comments", "RSS 2.0, item", MeansNothing, MeansComments, 0, 9, URLForm, Once, "", ""},
	{"", "enclosure", "RSS 2.0, item", MeansNothing, MeansEnclosure, 0, 9, EnclosureForm, AnyCase, " url length type ", ""},
	{"", "guid", "RSS 2.0, item", MeansNothing, MeansID, 0, 9, IDForm, AnyCase | Once, " isPermaLink ", ""},
	{"", "source", "RSS 2.0, item", MeansNothing, MeansSource, 0, 9, SourceForm, AnyCase | Once, " url ", ""},
	{"", "id", "", MeansNothing, MeansID, 0, 1, Dropped, 0, "", ""},
	{"", "published", "", MeansNothing, MeansPublished, 0, 1, Dropped, 0, "", ""},
	{"", "updated", "", MeansNothing, MeansUpdated, 0, 1, Dropped, 0, "", ""},
	{"", "summary", "", MeansNothing, MeansSummary, 0, 2, Dropped, 0, "", ""},
	{"", "content", "", MeansNothing, MeansContent, 0, 2, HTMLForm, 0, "", ""},
	{"", "body", "", MeansNothing, MeansContent, 0, 1, HTMLForm, 0, "", ""},
	{"", "fullitem", "", MeansNothing, MeansContent, 0, 1, HTMLForm, 0, "", ""},
	{"", "url", "RSS 2.0, image", MeansNothing, MeansNothing, 0, 9, Part, 0, "", ""},
	{"", "hour", "RSS 2.0, skipHours", MeansNothing, MeansNothing, 0, 9, Part, AnyCase, "", ""},
	{"", "day", "RSS 2.0, skipDays", MeansNothing, MeansNothing, 0, 9, Part, AnyCase, "", ""},

	{Content, "encoded", "RSS 1.0 content module", MeansNothing, MeansContent, 0, 9, HTMLForm, NotKept, "", ""},
	{DC, "title", "Dublin Core 1.1", MeansTitle, MeansTitle, 4, 4, AsPublished, 0, "", ""},
	{DC, "description", "Dublin Core 1.1", MeansNothing, MeansSummary, 0, 4, AsPublished, 0, "", ""},
	{DC, "creator", "Dublin Core 1.1", MeansAuthor, MeansAuthor, 1, 1, AsPublished, NotKept, "", ""},
	{DC, "subject", "Dublin Core 1.1", MeansCategory, MeansCategory, 1, 1, AsPublished, NotKept, "", ""},
	{DC, "date", "Dublin Core 1.1", MeansUpdated, MeansUpdated, 0, 2, DateForm, NotKept, "", ""},
	{DC, "language", "Dublin Core 1.1", MeansLanguage, MeansLanguage, 1, 1, AsPublished, 0, "", ""},
	{DC, "rights", "Dublin Core 1.1", MeansRights, MeansRights, 1, 1, AsPublished, 0, "", ""},
	{DC, "contributor", "Dublin Core 1.1", MeansContributor, MeansContributor, 1, 1, AsPublished, 0, "", ""},
	{DCTerms, "modified", "DCMI Terms", MeansUpdated, MeansUpdated, 0, 3, AsPublished, NotKept, "", ""},
	{DCTerms, "issued", "DCMI Terms", MeansPublished, MeansPublished, 0, 3, AsPublished, NotKept, "", ""},
	{DCTerms, "created", "DCMI Terms", MeansPublished, MeansPublished, 0, 2, AsPublished, NotKept, "", ""},
	{ITunes, "summary", "Podcasts Connect", MeansNothing, MeansSummary, 0, 3, AsPublished, 0, "", ""},
	{ITunes, "image", "Podcasts Connect", MeansLogo, MeansImage, 0, 1, HrefForm, 0, "", ""},
	{ITunes, "author", "Podcasts Connect", MeansAuthor, MeansAuthor, 1, 1, AsPublished, 0, "", ""},
	{ITunes, "duration", "Podcasts Connect", MeansNothing, MeansDuration, 1, 1, AsPublished, 0, "", ""},
	{Media, "group", "Media RSS 1.5", MeansNothing, MeansGroup, 1, 1, AsPublished, 0, "", ""},
	{Media, "content", "Media RSS 1.5", MeansNothing, MeansGroup, 1, 1, AsPublished, 0, "", ""},
	{Media, "title", "Media RSS 1.5", MeansNothing, MeansTitle, 3, 3, AsPublished, 0, "", ""},
	{Media, "description", "Media RSS 1.5", MeansNothing, MeansSummary, 1, 1, AsPublished, 0, "", ""},
	{Media, "thumbnail", "Media RSS 1.5", MeansNothing, MeansImage, 1, 1, AsPublished, 0, "", ""},
	{Podcast, "alternateEnclosure", "Podcasting 2.0", MeansNothing, MeansFile, 1, 1, AsPublished, 0, "", ""},
	{XHTML, "body", "XHTML 1.0", MeansNothing, MeansContent, 0, 3, AsPublished, 0, "", ""},
	{Syndication, "updatePeriod", "RSS 1.0 syndication module", MeansSchedule, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{Syndication, "updateFrequency", "RSS 1.0 syndication module", MeansSchedule, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{History, "complete", "5005#2", MeansFlag, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{History, "archive", "5005#14", MeansFlag, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{History, "prev", "RFC 5005, draft", MeansFlag, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{History, "incremental", "RFC 5005, draft", MeansFlag, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{Tombstones, "deleted-entry", "RFC 6721 §3", MeansDeleted, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{Coverage, "mirror", "", MeansCoverage, MeansNothing, 1, 1, AsPublished, 0, "", ""},
	{Coverage, "kept", "", MeansNothing, MeansKeptBy, 1, 1, AsPublished, 0, "", ""},
}

// extension is the row of all elements without one.
var extension Row

// words are the rows of the elements of one vocabulary, by slots of their names.
type words [128][]*Row

// slot is where words have a name, in any case.
func slot(local string) int {
	if local == "" {
		return 0
	}
	return (len(local)*37 + int(local[0]&0x1f)*3 + int(local[len(local)-1]&0x1f)) & (len(words{}) - 1)
}

// vocabularies are the words by namespace. The first use fills them: a program pays for tables
// when it reads a feed, not when it starts.
var vocabularies = sync.OnceValue(func() map[string]*words {
	all := map[string]*words{Atom: atomWords, "": rssWords}
	for i := range table {
		row := &table[i]
		if all[row.Space] == nil {
			all[row.Space] = new(words)
		}
		n := slot(row.Name)
		all[row.Space][n] = append(all[row.Space][n], row)
	}
	return all
})

var noWords, atomWords, rssWords = new(words), new(words), new(words)

// IsExpressed reports whether elements express all of a member of a JSON Feed, or of an item, or
// whether a copy must not have it.
func IsExpressed(name string, ofItem bool) bool {
	for i := range table {
		members, ofItems, _ := strings.Cut(table[i].JSON, "/")
		if ofItem {
			members = ofItems
		}
		for member := range strings.FieldsSeq(members) {
			if member == name { // one with a plus sign is none
				return true
			}
		}
	}
	return false
}

// wordsOf returns the vocabulary of a namespace; an empty one of one without rows.
func wordsOf(space string) *words {
	if w := vocabularies()[space]; w != nil {
		return w
	}
	if IsAtom(space) {
		return atomWords
	}
	return noWords
}

// find returns the row of a name, perhaps in another case, and whether it is spelt so.
func (w *words) find(local string, anyCase bool) (row *Row, exact bool) {
	for _, row := range w[slot(local)] {
		if row.Name == local {
			return row, true
		}
		if anyCase && row.Flags&AnyCase != 0 && strings.EqualFold(row.Name, local) {
			return row, false
		}
	}
	return &extension, true
}

// RowOf returns the row of an element with exactly this name.
func RowOf(space, local string) *Row {
	row, _ := wordsOf(space).find(local, false)
	return row
}

// RSSName returns the name of an element of RSS as the specification spells it.
func RSSName(local string) string {
	vocabularies() // fills rssWords, which needs no look at the map
	row, _ := rssWords.find(local, true)
	return cmp.Or(row.Name, local)
}

// Row returns the row of the current element; that of an extension has no name.
func (r *Elements) Row() *Row { return r.known().row }

// NoteName is Row, but notes a misspelt name, and reports whether the name or its namespace is
// misspelt.
func (r *Elements) NoteName() (row *Row, odd bool) {
	k := r.known()
	if k.odd && k.row != &extension && k.row.Name != r.Local() {
		r.note("name-misspelt", "the element "+clip(r.Local())+" is read as "+k.row.Name, r.Offset())
	}
	return k.row, k.odd
}

// known returns the row of the current element. It remembers the names it has found: the entries of a feed
// repeat the same few.
func (r *Elements) known() (k knownRow) {
	memo := r.Memo()
	if memo != nil && *memo >= r.first {
		return r.rows[*memo-r.first]
	}
	k.space = r.findSpace()
	k.row, k.odd = r.findRow(&r.spaces[k.space])
	if memo != nil && len(r.rows) < mostRows && len(r.spaces) < mostSpaces { // beyond, a misspelt namespace may have a note each time
		r.rows = append(r.rows, k)
		*memo = r.first + len(r.rows) - 1
	}
	return k
}

// findRow returns the row of the current element, and whether its name, or its namespace, is spelt in another
// way, or is RSS's below an element that has none. Feeds are careless
// about the case of RSS's names; a name of Atom with a capital may be misspelt, too. RSS's own names
// have no namespace, or that of its root, and only in RSS.
func (r *Elements) findRow(space *namespace) (row *Row, odd bool) {
	local := r.Local()
	v, anyCase := space.words, false
	switch {
	case r.Format == FormatRSS && (space.isRSS || space.meant == r.native):
		v, anyCase = rssWords, true
	case r.Format == FormatAtom && (v == atomWords || space.meant == r.native):
		v, anyCase = atomWords, local != "" && 'A' <= local[0] && local[0] <= 'Z'
	case space.meant == "":
		v = noWords
	}
	row, exact := v.find(local, anyCase)
	elsewhere := v == rssWords && space.published != "" && space.published != r.native && row != &extension
	return row, !exact || space.odd || elsewhere
}
