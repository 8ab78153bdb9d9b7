package feedhistory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The identity of entries without an id (5005#22).

// identify sets the ID of an entry without one: its link, or else the address of its
// enclosure without the query, which may count downloads or be signed; or else a digest of its
// content.
func (e *Entry) identify(format Format) {
	e.WeakID = true
	if e.Links.has(relAlternate) {
		e.ID = e.Links.alternate()
		return
	}
	if file, ok := e.Links.Rel("enclosure"); ok && iri.IsHTTP(file.Href) {
		e.ID, _, _ = strings.Cut(iri.WithoutFragment(file.Href), "?")
		return
	}
	h := sha256.New()
	e.say(h, format)
	e.ID = madePrefix + hex.EncodeToString(h.Sum(nil))
}

// madePrefix begins the IDs made of digests.
const madePrefix = "urn:sha256:"

// say writes an entry's content, so the digest stays the same when the entry is written
// elsewhere and read again.
func (e *Entry) say(w io.Writer, format Format) {
	if format == FormatJSONFeed {
		_, _ = io.WriteString(w, e.raw)
		return
	}
	r := feedxml.Again(e.raw, e.scope, feedxml.Format(e.format()))
	defer r.Release()
	r.Say(w)
}

// tellApart sets different IDs for entries of one document without an id, but with the
// same link or enclosure. The oldest keeps the link, so known IDs do not change; the IDs of the
// others, and of all with one enclosure, are made of it, title and time.
func tellApart(entries []*Entry) {
	byLink := map[string][]*Entry{}
	for _, e := range entries {
		if e.WeakID && iri.IsHTTP(e.ID) {
			byLink[e.ID] = append(byLink[e.ID], e)
		}
	}
	for _, same := range byLink {
		if len(same) == 1 {
			continue
		}
		isFile := !same[0].Links.has(relAlternate)
		oldest := same[len(same)-1] // usually the newest come first
		for _, e := range slices.Backward(same) {
			if t := e.Time(); !t.IsZero() && t.Before(oldest.Time()) {
				oldest = e
			}
		}
		for _, e := range same {
			isCopy := e.literalTitle() == oldest.literalTitle() && e.Time().Equal(oldest.Time())
			if !isCopy || isFile {
				e.ID = e.madeID()
			}
		}
	}
}

// madeID returns an ID made of an entry's link, title and time.
func (e *Entry) madeID() string {
	return madePrefix + keyOf(e.ID, e.literalTitle(), e.Time().UTC().Format(time.RFC3339Nano))
}

// keyOf returns the SHA-256 of texts in hexadecimal digits. Each counts with its length, so no two
// lists have the same.
func keyOf(texts ...string) string {
	all := make([]string, 0, 2*len(texts))
	for _, text := range texts {
		all = append(all, strconv.Itoa(len(text))+":", text)
	}
	sum := sumOf(all...)
	return hex.EncodeToString(sum[:])
}

// sumOf returns the SHA-256 of texts one after another. It copies none as a whole.
func sumOf(texts ...string) (sum [sha256.Size]byte) {
	h := sha256.New()
	var part [1024]byte
	for _, text := range texts {
		for len(text) > 0 {
			n := copy(part[:], text)
			h.Write(part[:n])
			text = text[n:]
		}
	}
	h.Sum(sum[:0])
	return sum
}

// Post returns a key that two entries of a feed share if they are one post under two IDs;
// "" if only the ID tells. It is for permalink guids, and for entries without an id, of
// publishers whose links differ by page in the scheme (http, https) or in a campaign's
// parameters (utm_source): the rest of the ID, the link, the title, the time and the
// texts are equal then. An atom:id, or a guid with isPermaLink="false", is an ID whatever
// it looks like. Neither ID is changed: a History, and a mirror, keep the first that came.
func (e *Entry) Post() string {
	post := e.postID()
	if post == "" {
		return ""
	}
	return keyOf(post, iri.Post(e.Links.alternate()), e.Time().UTC().Format(time.RFC3339Nano),
		e.Title().Body, e.Summary().Body, e.Content().Body)
}

// postID returns the part of the ID in common with other entries of the same post; "" if the entry
// has no Post.
func (e *Entry) postID() string {
	if !e.WeakID && !(e.permalink && e.ID == e.id) || e.Time().IsZero() {
		return ""
	}
	return iri.Post(e.ID)
}

// onePost leaves out the entries whose post is there under an earlier one's ID.
func onePost(entries []*Entry) []*Entry {
	names := map[string]int{}
	several := false
	for _, e := range entries {
		if post := e.postID(); post != "" {
			names[post]++
			several = several || names[post] > 1
		}
	}
	if !several {
		return entries
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(entries), func(e *Entry) bool {
		if names[e.postID()] < 2 {
			return false
		}
		post := e.Post()
		was := seen[post]
		seen[post] = post != ""
		return was
	})
}

// Storing an entry, and reading it again.

// ReadEntry reads a single entry, as Entry.XML and Entry.JSON return it; "" means Atom.
// References in JSON resolve against base; XML has its own base.
//
// The ID of an entry without an id is its link, or a digest of its content. In its
// document the ID may have been another one, if several entries had the same link: store
// ID and WeakID with the data, and set both. The digest may differ, too; see
// Entry.Digest. The error is a *ParseError.
func ReadEntry(format Format, data, base string) (*Entry, error) {
	switch format {
	case FormatJSONFeed:
		data = `{"version":"https://jsonfeed.org/version/1.1","items":[` + data + "]}"
	case FormatRSS:
		data = "<rss" + namespaceOf(data) + "><channel>" + data + "</channel></rss>"
	case FormatAtom, "":
		data = "<feed" + namespaceOf(data) + ">" + data + "</feed>"
	default:
		return nil, &ParseError{URL: base, Reason: ReasonMalformed, Clause: clauseFeed, Err: fmt.Errorf("its format is unknown: %s", clip(string(format)))}
	}
	doc, err := Parser{Trusted: true, Strict: true}.decode(data, base)
	if err != nil {
		return nil, err
	}
	if len(doc.Entries) != 1 {
		return nil, &ParseError{
			URL: base, Reason: ReasonMalformed, Clause: clauseFeed,
			Err: fmt.Errorf("%d entries instead of one", len(doc.Entries)),
		}
	}
	return doc.Entries[0], nil
}

// namespaceOf returns the declaration of an element's namespace; "" if it has none.
func namespaceOf(element string) string {
	const ofAtom = ` xmlns="` + feedxml.Atom + `"`
	if strings.HasPrefix(element, "<entry"+ofAtom) { // nearly always
		return ofAtom
	}
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) || s.Space() == "" {
		return ""
	}
	var b strings.Builder
	xmlscan.WriteAttr(&b, "xmlns", s.Space())
	return b.String()
}

// surroundings returns the scope of the entry. RSS has no base of its own: where its publisher
// declares none, an item's references resolve against the item's page, because the HTML was
// written for that page, and not for the feed. FreshRSS and Miniflux do so, too; feedparser uses
// the feed's address, as Atom requires.
func (e *Entry) surroundings() xmlscan.Scope {
	if e.page == "" {
		return *e.scope
	}
	return e.scope.At(e.page)
}

// element returns the entry's element, with its inheritance apart.
func (e *Entry) element() feedxml.Element {
	element := feedxml.Element{Raw: e.raw, Scope: e.scope, Format: feedxml.Format(e.format()), Lenient: e.lenient, Odd: e.odd, Signed: e.signed}
	if e.page != "" {
		scope := e.surroundings()
		element.Scope = &scope
	}
	for _, p := range e.authors() {
		element.Authors = append(element.Authors, feedxml.Person{Name: p.Name, URI: p.URI, Email: p.Email})
	}
	return element
}

// XML returns the entry as published, as a separate element: with the namespaces, base
// and language in scope, and well-formed even if it was not. It changes nothing else.
// For a JSON Feed it returns nil; see JSON.
//
// If the entry's fields were set since it was read, or it never was, XML returns an Atom
// entry with the same content; nil if the ID is not valid.
func (e *Entry) XML() []byte {
	if text := e.standalone(); text != "" {
		return []byte(text)
	}
	return nil
}

// standalone returns the text of XML, without a copy of an element that stands alone as it is.
func (e *Entry) standalone() string {
	e, err := e.current()
	if err != nil || e.format() == FormatJSONFeed {
		return ""
	}
	scope := e.surroundings()
	start, rest := scope.Standalone(e.raw, e.lenient)
	return start + rest
}

// Signed returns the entry with the authors of its feed, if it is an entry of Atom or of a
// JSON Feed without authors (RFC 4287 §4.2.1). An entry needs them outside its document. If
// its fields were set since it was read, it is the Atom entry XML returns.
func (e *Entry) Signed() *Entry {
	if made, err := e.current(); err == nil && made != e {
		return made
	}
	authors := e.authors()
	if len(authors) == 0 {
		return e
	}
	if e.format() == FormatJSONFeed {
		return e.signedJSON(authors)
	}
	var b strings.Builder
	element, signed := e.element(), *e
	element.Write(false, nil, func(text string) { b.WriteString(text) })
	signed.raw = b.String()
	signed.scope, signed.lenient, signed.signed = &xmlscan.Scope{Base: e.scope.Base}, false, true
	signed.texts = feedxml.Places{}
	return &signed
}

// authors returns the authors an entry has from its feed. Their number is limited,
// because every entry repeats them.
func (e *Entry) authors() []Person {
	if e.raw == "" || e.signed || e.format() == FormatRSS {
		return nil // a channel's managing editor is not the author of its items
	}
	size := 0
	for i, p := range e.Head.Authors {
		size += len(p.Name) + len(p.Email) + len(p.URI)
		if size > xmlscan.MaxInheritedExtra || !xmlscan.Affords(len(e.raw), size+100*(i+1)) { // with their markup
			return e.Head.Authors[:i]
		}
	}
	return e.Head.Authors
}

// current returns the entry as its fields say: itself, or an Atom entry if they were set since
// it was read.
func (e *Entry) current() (*Entry, error) {
	if !e.isAltered() {
		return e, nil
	}
	item := feedxml.Item{
		ID: e.ID, Updated: e.Updated, Published: e.Published,
		Title:   feedxml.Draftable(feedxml.Construct(e.Title())),
		Summary: feedxml.Draftable(feedxml.Construct(e.Summary())),
		Content: feedxml.Draftable(feedxml.Construct(e.Content())),
	}
	for _, l := range e.Links {
		item.Links = append(item.Links, feedxml.Link(l))
	}
	item.ReadLists(e.element())
	item.ReadExtensions()
	text, err := item.Atom()
	if err != nil {
		return nil, err
	}
	made, err := ReadEntry(FormatAtom, text, "")
	if err != nil {
		return nil, err
	}
	made.WeakID = e.WeakID
	made.Head.Updated = feedtime.First(e.Changed(), e.Head.datedTime())
	return made, nil
}

// An entryReader reads the entries of an XML document.
type entryReader struct {
	*xmlReading
	list *entryList
	host string // of the document

	start   int           // where the current entry begins
	reach   xmlscan.Reach // the reach of its own base
	odd     bool          // the entry, or a child of it, has a misspelt name
	repairs entryRepairs
	qualify bool // the current entry has children of Atom in no namespace, and itself has one

	// The places of damage; -1 means none.
	leftOut  int // the first entry left out because its id is damaged
	twoInOne int // the first entry damage has merged from two
	linkAt   int // the first entry without an end tag whose link may be the feed's
}

// entryRepairs records the damage within one entry.
type entryRepairs struct {
	before      int  // the number of repairs before the entry
	idGarbled   bool // its id is damaged
	linkGarbled bool // its link is damaged
	ids         int  // the number of its id elements
	joined      bool // one of them differs from the first
}

// begin begins the current element as an entry; odd if its name or namespace is misspelt.
func (r *entryReader) begin(sc *xmlscan.Scope, odd bool) *Entry {
	r.repairs = entryRepairs{before: r.xml.Mender.Mended()}
	r.start, r.reach = r.xml.Offset(), xmlscan.Reach{}
	r.xml.TakeReach() // discard the part before the entry
	if own := r.xml.Bases()[sc.Bases:]; len(own) > 0 {
		r.reach = own[len(own)-1].Reach
	}
	r.odd, r.xml.Relative = odd, false
	return r.list.add(sc)
}

// addLinks reads further links of the current entry.
func (r *entryReader) addLinks(read func(Links) Links) {
	if r.list.takesLinks() {
		from := len(r.list.own)
		links := read(r.list.own)
		r.list.setLinks(links, from, r.xml.End()-r.start)
	}
}

// read reads the current entry or item. Only its own children count: elements in a source
// or in the content describe something else.
func (r *entryReader) read(e *Entry) {
	depth, lenient, outer := r.xml.Depth(), r.xml.Lenient(), r.xml.Native()
	var s entryState
	about, space := "", r.xml.Space()
	isAtom := r.xml.Format == feedxml.FormatAtom
	undecided := isAtom && outer == "" && space != ""
	if !undecided {
		r.xml.SetNative(space)
	}
	if !isAtom {
		about = r.xml.About()
	}
	texts := feedxml.TextFinder{Simple: len(r.xml.Bases()) == e.scope.Bases && r.xml.Language() == e.scope.Lang}
	r.tell(feedxml.Begins)
	for r.xml.Child(depth) {
		if undecided {
			undecided = r.settle(space)
		}
		row, odd := r.xml.NoteName()
		r.tell(feedxml.Child)
		r.odd = r.odd || odd
		texts.Look(r.xml, row, r.start)
		r.child(e, row, &s)
	}
	r.qualify = space != r.xml.Native()
	r.xml.SetNative(outer)
	e.Links = r.list.links()
	if e.ID == "" {
		e.ID = cmp.Or(trim(about), s.otherID)
	} else if e.permalink && iri.IsHTTP(e.ID) && !e.Links.has(relAlternate) {
		e.Links = append(e.Links, Link{Rel: relAlternate, Href: e.ID})
	}
	r.end(e, lenient, &texts)
	r.tell(feedxml.Ends)
}

// An entryState is the state of reading one entry.
type entryState struct {
	updated, published int    // the ranks of its times
	otherID            string // an id that is not the format's own
}

// child reads a child of an entry.
func (r *entryReader) child(e *Entry, row *feedxml.Row, s *entryState) {
	n, offset := row.Rank(r.xml.Format), r.xml.Offset()
	native := n == feedxml.FirstRank
	if n == 0 {
		return
	}
	switch row.Entry {
	case feedxml.MeansID:
		if !native {
			if s.otherID == "" {
				s.otherID = r.xml.PlainText()
				r.noteAtom(row, offset)
			}
			return
		}
		value, ok := "", true
		if r.xml.Format == feedxml.FormatRSS {
			value, ok = r.xml.Permalink()
		}
		if id := r.idText(e); e.ID == "" {
			e.ID, e.permalink = id, !ok || strings.EqualFold(trim(value), "true")
		}
	case feedxml.MeansUpdated:
		if n > s.updated || native {
			e.Updated, s.updated = r.timeText(), n
			r.noteAtom(row, offset)
		}
	case feedxml.MeansPublished: // not an update time: an updated item keeps it
		if n <= s.published && !native {
			return
		}
		if t := r.timeText(); !t.IsZero() {
			e.Published, s.published = t, n
		}
		r.noteAtom(row, offset)
	case feedxml.MeansLink:
		isAtom := row.Form == feedxml.LinkForm
		if !isAtom {
			_, isAtom = r.xml.Attr("", "href")
		}
		if isAtom {
			r.addLinks(r.atomLink)
			return
		}
		garbled := r.xml.Mender.Garbled()
		r.addLinks(r.textLink)
		r.repairs.linkGarbled = r.repairs.linkGarbled || r.xml.Mender.Garbled() > garbled
	case feedxml.MeansEnclosure:
		r.addLinks(r.enclosure)
	case feedxml.MeansAuthor:
		e.signed = e.signed || native && r.xml.Format == feedxml.FormatAtom
	case feedxml.MeansKeptBy:
		r.keptBy(e)
	case feedxml.MeansSource: // which has its own authors (RFC 4287 §4.2.1)
		e.signed = e.signed || row.Form == feedxml.SourceForm && r.xml.Format == feedxml.FormatAtom
	}
}

// end keeps an entry just ended.
func (r *entryReader) end(e *Entry, lenient int, texts *feedxml.TextFinder) {
	if r.xml.Err() != nil || r.err != nil {
		return // the entry is incomplete
	}
	if r.repairs.idGarbled || r.repairs.linkGarbled && e.ID == "" || r.isIDLost(e) {
		r.leaveOut()
		return
	}
	if r.isCut(e) {
		r.list.drop()
		return
	}
	e.raw, e.odd = r.text[r.start:r.xml.End()], r.odd
	e.texts = texts.Found(len(e.raw))
	if e.lenient = r.xml.Lenient() > lenient; r.xml.Mender.Mended() > r.repairs.before {
		r.mended(e)
	}
	if r.qualify {
		if raw := feedxml.Qualified(e.raw, e.scope); raw != e.raw {
			e.raw, e.texts = raw, feedxml.Places{}
		}
	}
	if r.xml.Format == feedxml.FormatRSS && !r.xml.Relative && e.scope.Bases == 0 && r.reach == (xmlscan.Reach{}) {
		if page := r.ownPage(e); page != "" && e.scope.LendsAt(page, e.raw) {
			e.page = page
		}
	}
	r.list.keep(e, r.start, xmlscan.Loan{Markup: e.raw, Reach: r.reach.Max(r.xml.TakeReach())})
}

// isCut reports whether an entry has lost its end, and with it the time that the one before
// has, or else the feed: as a copy without a time, it would be the latest.
func (r *entryReader) isCut(e *Entry) bool {
	if !r.xml.Mender.IsCut(r.start) || !e.Time().IsZero() {
		return false
	}
	if n := len(r.doc.Entries); n > 0 {
		return !r.doc.Entries[n-1].Time().IsZero()
	}
	return !r.doc.Updated.IsZero()
}

// idText reads the current element as an entry's id, and notices if it is damaged, or
// differs from the entry's first.
func (r *entryReader) idText(e *Entry) string {
	garbled := r.xml.Mender.Garbled()
	id := r.xml.PlainText()
	switch r.repairs.ids++; {
	case e.ID == "":
		r.repairs.idGarbled = r.repairs.idGarbled || r.xml.Mender.Garbled() > garbled
	case id != "" && id != e.ID:
		r.repairs.joined = true
	}
	return id
}

// isIDLost reports whether the entry ending here has only a part of an id.
func (r *entryReader) isIDLost(e *Entry) bool {
	if e.ID != "" || r.repairs.ids > 0 || r.xml.Mender.Mended() == r.repairs.before {
		return false
	}
	name := "guid"
	if r.doc.Format == FormatAtom {
		name = "id"
	}
	return xmlscan.HasEndTag(r.text[r.start:r.xml.End()], name)
}

// leaveOut leaves out an entry whose id is damaged: it would be another entry.
func (r *entryReader) leaveOut() {
	r.list.drop()
	if r.leftOut < 0 {
		r.leftOut = r.start
	}
}

// mended makes an entry just ended well-formed.
func (r *entryReader) mended(e *Entry) {
	if r.xml.Mender.Unclosed() && e.Links.has(relPrevArchive, relNext) && r.linkAt < 0 {
		r.linkAt = r.start
	}
	if (r.repairs.joined || r.repairs.ids == 0 && r.hasTwoLinks(e)) && r.twoInOne < 0 {
		r.twoInOne = r.start
	}
	e.raw, e.texts = r.xml.Mended(e.raw, e.scope), feedxml.Places{}
	e.lenient = false
}

// hasTwoLinks reports whether an item of RSS, which should have one link, has two.
func (r *entryReader) hasTwoLinks(e *Entry) bool {
	link, _ := e.Links.Rel(relAlternate)
	return r.doc.Format == FormatRSS && slices.ContainsFunc(e.Links, func(l Link) bool { return l.Rel == relAlternate && l.Href != link.Href })
}

// keptBy reads the current element, which names the reader whose copy the entry is.
func (r *entryReader) keptBy(e *Entry) {
	by, _ := r.xml.Attr("", "by")
	if by = clip(trim(by)); by == "" {
		by = unknown
	}
	e.KeptBy = by
}

// An entryList collects the entries of a document, in memory they share.
type entryList struct {
	in   *reading
	room []Entry // memory for entries
	pool Links   // memory for their links

	end  int   // of the last entry kept
	own  Links // the current entry's links
	lent int   // the bytes they take; negative if there are too many

	skipped      int // the number of entries left out
	firstSkipped *ParseError
}

// full reports whether the document has as many entries as allowed.
func (l *entryList) full() bool { return len(l.in.doc.Entries)+l.skipped >= l.in.limits.entries }

// add begins an entry.
func (l *entryList) add(sc *xmlscan.Scope) *Entry {
	if len(l.room) == cap(l.room) {
		l.room = make([]Entry, 0, max(4, min(4*cap(l.room), l.expected(), 1024)))
	}
	l.own, l.lent, l.in.dated = l.own[:0], 0, dateResult{}
	l.room = l.room[:len(l.room)+1] // an entry built elsewhere would be copied
	e := &l.room[len(l.room)-1]
	e.Head, e.scope = l.in.head, sc
	return e
}

// expected returns how many entries the rest of the document has if all are as long as the last one.
func (l *entryList) expected() int {
	n := len(l.in.doc.Entries)
	if n == 0 {
		return 1
	}
	return 1 + max(0, len(l.in.text)-l.end)/max(1, len(l.in.doc.Entries[n-1].raw)) // a mended one may be longer than the text
}

// drop forgets the entry begun last.
func (l *entryList) drop() {
	l.room[len(l.room)-1] = Entry{}
	l.room = l.room[:len(l.room)-1]
}

// keep adds an entry to the document, unless it exceeds a limit.
func (l *entryList) keep(e *Entry, offset int, need xmlscan.Loan) {
	need.Raw, need.Links = e.raw, l.lent
	switch {
	case len(e.ID) > l.in.limits.id:
		l.skip(offset, fmt.Sprintf("its id has more than %d bytes", l.in.limits.id))
		return
	case len(l.own) > maxLinks:
		l.skip(offset, fmt.Sprintf("it has more than %d links", maxLinks))
		return
	case l.lent < 0, !e.scope.Lends(need):
		l.skip(offset, fmt.Sprintf("it inherits more than %d times its length", xmlscan.MaxInherited))
		return
	}
	l.end = offset + len(e.raw)
	if e.asRead(); e.ID == "" {
		e.identify(l.in.doc.Format)
	}
	doc := l.in.doc
	if n := len(doc.Entries); n == cap(doc.Entries) && n > 0 {
		doc.Entries = slices.Grow(doc.Entries, min(2*n+8, l.expected()))
	}
	doc.Entries = append(doc.Entries, e)
}

// noteShared notes an id which several entries share although they have neither title nor link
// in common. Items of RSS and JSON Feed are told apart by their links; an atom:id is an
// entry's, in two versions (5005#20), so readers keep only one of them.
func (l *entryList) noteShared() {
	for _, at := range l.shared() {
		id := l.in.doc.Entries[at].ID
		why := "entries with nothing else in common share an id, so only one of them counts: "
		if l.in.doc.Format != FormatAtom {
			why = "entries with different titles and links share an id, so each goes by its link: "
			for _, e := range l.in.doc.Entries {
				if e.ID == id && e.Links.has(relAlternate) {
					e.ID, e.WeakID = e.Links.alternate(), true
				}
			}
		}
		l.in.note("id-shared", why+clip(id), max(0, strings.Index(l.in.text, l.in.doc.Entries[at].raw)))
	}
}

// shared returns, of each id shared by entries with neither title nor link in common, the
// place of the second entry.
func (l *entryList) shared() (places []int) {
	entries := l.in.doc.Entries
	const few = 64 // a map of so many costs more than a table of the ends of their IDs
	var ends [few]uint64
	var slots [2 * few]uint8 // the numbers, from 1 on, of the entries by these
	var first map[string]*Entry
	if len(entries) > few {
		first = make(map[string]*Entry, len(entries))
	}
	for i, e := range entries {
		other := first[e.ID]
		if first != nil && other == nil {
			first[e.ID] = e
		} else if first == nil {
			ends[i] = endOf(e.ID)
			slot := ends[i] * 0x9e3779b97f4a7c15 >> 57
			for ; slots[slot] > 0 && other == nil; slot = (slot + 1) % (2 * few) {
				if k := slots[slot] - 1; ends[k] == ends[i] && entries[k].ID == e.ID {
					other = entries[k]
				}
			}
			if other == nil {
				slots[slot] = uint8(i + 1)
			}
		}
		isNoted := func(k int) bool { return entries[k].ID == e.ID }
		if other != nil && !e.WeakID && e.differs(other) && !slices.ContainsFunc(places, isNoted) {
			places = append(places, i)
		}
	}
	return places
}

// endOf returns the last eight bytes of an ID, which differ in most feeds.
func endOf(id string) (end uint64) {
	for i := max(0, len(id)-8); i < len(id); i++ {
		end = end<<8 | uint64(id[i])
	}
	return end
}

// differs reports whether two entries have titles and links, and share none. Two versions of an
// entry of Atom may differ so; only two of one time do not.
func (e *Entry) differs(other *Entry) bool {
	a, _ := e.Links.Rel(relAlternate)
	b, _ := other.Links.Rel(relAlternate)
	page := func(l Link) string { return cmp.Or(iri.Post(l.Href), l.Href) }
	if page(a) == "" || page(b) == "" || page(a) == page(b) {
		return false
	}
	if e.format() == FormatAtom && e.Time().Equal(other.Time()) {
		return false
	}
	title := e.Title().Body
	return title != "" && title != other.Title().Body
}

// skip leaves out an entry beyond a limit.
func (l *entryList) skip(offset int, why string) {
	l.drop()
	l.in.note("entry-skipped", "an entry is left out: "+why, offset)
	if l.skipped++; l.skipped == 1 {
		l.firstSkipped = l.in.failure(offset, ReasonLimit, clauseLimits, why)
	}
}

// addGaps adds a gap for the entries left out.
func (l *entryList) addGaps() {
	if l.skipped == 0 {
		return
	}
	err := l.firstSkipped
	if l.skipped == 1 {
		err.Err = fmt.Errorf("an entry is left out: %w", err.Err)
	} else {
		err.Err = fmt.Errorf("%d entries are left out, the first here: %w", l.skipped, err.Err)
	}
	doc := l.in.doc
	doc.gaps = append(doc.gaps, &Gap{URL: doc.URL, From: doc.URL, Reason: ReasonLimit, Err: err, Found: time.Now()})
}

// maxLinks is the maximum number of links of an entry.
const maxLinks = 4096

// takesLinks reports whether the current entry has room for further links.
func (l *entryList) takesLinks() bool { return l.lent >= 0 && len(l.own) <= maxLinks }

// setLinks replaces the current entry's links, of which those from the index from on are
// new. So far, the entry has n bytes.
func (l *entryList) setLinks(links Links, from, n int) {
	l.own = links
	for _, link := range links[from:] {
		l.lent += xmlscan.RoomOfLink + len(link.Href)
	}
	if !xmlscan.Affords(n, l.lent) {
		l.lent = -1
	}
}

// links returns the current entry's links, in memory the entries share.
func (l *entryList) links() Links {
	n := len(l.own)
	if n == 0 || n > maxLinks {
		return nil
	}
	if n > cap(l.pool)-len(l.pool) {
		l.pool = make(Links, 0, max(n, 4, min(4*cap(l.pool), n*l.expected(), 4096)))
	}
	from := len(l.pool)
	l.pool = append(l.pool, l.own...)
	return l.pool[from:len(l.pool):len(l.pool)]
}

// An xmlReading is the state of reading an XML document into a Document.
type xmlReading struct {
	reading
	xml     *feedxml.Elements
	inHead  bool // the current link is in the head section
	unnamed bool // elements in no namespace are Atom's, in entries of any

	see observer
}

// tell tells the observer, if there is one.
func (r *xmlReading) tell(event feedxml.Event) {
	if r.see != nil {
		r.see(len(r.doc.Links), len(r.doc.Entries), event, r.xml)
	}
}

// fail ends reading at the current token.
func (r *xmlReading) fail(reason Reason, clause, what string) {
	r.failAt(r.xml.Offset(), reason, clause, what)
	r.xml.Stop()
}

// timeText reads the current element's text as a date.
func (r *xmlReading) timeText() time.Time {
	offset := r.xml.Offset()
	return r.parseTime(r.xml.ElementText(), offset)
}
