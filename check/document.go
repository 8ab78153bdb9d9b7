package check

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/jsonfeed"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Document returns the findings on one document, in the order of its text. The error is
// the one from reading the document, with the document or instead of it.
func Document(doc *feedhistory.Document, err error, profile Profile) []Finding {
	if doc == nil {
		return []Finding{failure(err, "")}
	}
	r := newReport(doc, profile)
	r.document(err)
	return r.findings()
}

// document checks everything one document shows.
func (r *report) document(err error) {
	r.notes()
	for _, f := range r.out.faults {
		if f.at == r.out.head.at { // something missing has no place
			r.absent(f.code, "%s", f.message)
		} else {
			r.add(f.code, f.at, "%s", f.message)
		}
	}
	if err != nil {
		r.unread(err)
	}
	r.flags()
	r.kinds()
	r.links()
	r.ids()
	r.times()
	if r.profile == AtomPMH {
		r.pmh()
	}
}

// notes reports the leniencies of the parser.
func (r *report) notes() {
	for _, n := range r.doc.Notes {
		at := n.Offset
		if n.Line == 0 {
			at = nowhere
		}
		if isStale(n) {
			rel := "current"
			if r.doc.Kind() == feedhistory.KindPaged {
				rel = "first"
			}
			_, at, _ = r.link(rel)
		}
		code := n.Code
		switch {
		case mended[code]:
			code = "not-well-formed"
		case r.out.isExternal && (code == "html-entity" || code == "undefined-entity"):
			code = "entity-of-a-dtd"
		case code == "namespace-misspelt" && r.doc.Format == feedhistory.FormatAtom && at == r.out.head.at:
			code = "namespace-unknown"
		case r.out.invalidDates[at] && (code == "date-unreadable" || strings.HasPrefix(code, "zone-")):
			continue // date-invalid says more
		case code == "id-shared" && r.profile == AtomPMH:
			continue // the entries of a record share its id
		}
		r.add(code, at, "%s", n.Message)
	}
}

// isStale recognises a walk's note of a current, or first, that does not lead to a
// document where the feed begins.
func isStale(n feedhistory.Note) bool { return n.Code == "beginning-not-there" }

// mended are the notes about errors at which other readers give up.
var mended = map[string]bool{
	"content-before-root": true, "json-syntax": true, "odd-attribute": true, "odd-end-tag": true, "odd-markup": true, "odd-tag": true,
	"second-doctype": true, "stray-end-tag": true, "unclosed-element": true,
}

func (r *report) flags() {
	for _, f := range r.out.flags {
		switch {
		case f.foreign && f.space == "":
			r.add("flag-namespace", f.at, "%s is in no namespace, and does not count", f.name)
		case f.foreign:
			r.add("flag-namespace", f.at, "%s is in the namespace %s, which is not RFC 5005's, and does not count", f.name, clip(f.space))
		case f.space != feedxml.History:
			r.add("flag-namespace", f.at, "%s is in the namespace %s, which is RFC 5005's misspelt: many readers do not count it", f.name, clip(f.space))
		case !f.head:
			r.add("flag-misplaced", f.at, "fh:%s is outside the head section, and does not count", f.name)
		case f.content:
			r.add("flag-not-empty", f.at, "fh:%s contains %q, which is ignored: the flag is set anyway", f.name, clip(f.text))
		}
	}
}

// flagAt returns the place of a flag in the head section.
func (r *report) flagAt(name string) int {
	for _, f := range r.out.flags {
		if f.name == name && f.head && !f.foreign {
			return f.at
		}
	}
	return nowhere
}

// link returns the first valid link with a relation, and its place.
func (r *report) link(rel string) (link feedhistory.Link, at int, ok bool) {
	if link, ok = r.doc.Links.Rel(rel); !ok {
		return link, nowhere, false
	}
	return link, r.at(slices.Index(r.doc.Links, link)), true
}

func (r *report) has(rels ...string) bool {
	return slices.ContainsFunc(r.doc.Links, func(l feedhistory.Link) bool { return slices.Contains(rels, l.Rel) })
}

// kinds checks the document's signs of its feed's kind.
func (r *report) kinds() {
	switch {
	case r.doc.Complete:
		r.complete()
	case len(r.doc.Combines()) > 1:
		r.add("combined-kinds", r.historyAt(), "the document is archived and paged at once, which has no defined meaning")
	}
	if r.doc.Archive && !r.doc.Complete {
		r.archive()
	}
	if r.isUnmarkedArchive() {
		r.add("archive-unmarked", r.historyAt(), "%s, so this is an archive, but there is no fh:archive", r.archiveSigns())
	}
	r.pages()
}

// complete checks a complete document, which has no others (RFC 5005 §2). By Atom-PMH an
// archive may be complete, if newer documents are empty: that is checked with the chain.
func (r *report) complete() {
	if r.profile == AtomPMH && r.doc.Archive {
		return
	}
	if r.doc.Archive {
		r.add("combined-kinds", r.flagAt("archive"), "the document is complete and an archive at once, which has no defined meaning")
	}
	for i, link := range r.doc.Links {
		if link.Rel != "current" && slices.Contains(historyRelations, link.Rel) {
			r.add("complete-with-history-link", r.at(i),
				"the document is complete, but has a link %s to %s", link.Rel, clip(link.Href))
		}
	}
	current, at, ok := r.link("current")
	if self := r.self(); ok && self != "" && !same(current.Href, self) {
		r.add("complete-current-not-self", at,
			"the document is complete, but its current, %s, is not itself, %s", clip(current.Href), clip(self))
	}
}

func (r *report) archive() {
	if !r.has("prev-archive", "next-archive") {
		r.add("archive-without-links", r.flagAt("archive"), "the archive has neither prev-archive nor next-archive: readers cannot go on from it")
	}
	if !r.has("current") {
		r.add("archive-without-current", r.flagAt("archive"), "the archive does not say which is its subscription document")
	}
}

// isUnmarkedArchive recognises an archive by something no subscription document has: a
// next-archive, or a current that is a different document.
func (r *report) isUnmarkedArchive() bool {
	return !r.doc.Archive && !r.doc.Complete && r.archiveSigns() != ""
}

func (r *report) archiveSigns() string {
	if r.has("next-archive") {
		return "there is a next-archive"
	}
	current, _, ok := r.link("current")
	self, found := r.doc.Links.Rel("self")
	stale := slices.ContainsFunc(r.doc.Notes, isStale)
	if ok && found && !stale && r.has("prev-archive") && !same(current.Href, self.Href) && !same(current.Href, r.doc.URL) {
		return "there is a prev-archive, and current is another document"
	}
	return ""
}

// historyAt returns the place of the first history link.
func (r *report) historyAt() int {
	for i, link := range r.doc.Links {
		if slices.Contains(historyRelations, link.Rel) && link.Rel != "current" {
			return r.at(i)
		}
	}
	return nowhere
}

// self returns the document's own URL: its self link, or else where it was
// found.
func (r *report) self() string {
	if self, ok := r.doc.Links.Rel("self"); ok {
		return self.Href
	}
	return r.doc.URL
}

// pages checks the links of a paged feed (RFC 5005 §3).
func (r *report) pages() {
	self := r.self()
	for _, end := range [][2]string{
		{"first", "previous"}, {"last", "next"},
	} {
		link, _, ok := r.link(end[0])
		beyond, at, more := r.link(end[1])
		if ok && more && self != "" && same(link.Href, self) && !r.doc.Complete {
			r.add("link-past-end", at, "this is the %s page, but it has a %s, %s", end[0], end[1], clip(beyond.Href))
		}
	}
	if r.doc.Complete || r.has("prev-archive", "next-archive") || r.doc.Archive ||
		r.has("previous", "next") {
		return
	}
	r.lonelyPage(self)
}

// lonelyPage reports a page without links to neighbours although there are
// other pages, according to first and last, or to OpenSearch's numbers.
func (r *report) lonelyPage(self string) {
	first, at, isFirst := r.link("first")
	last, lastAt, isLast := r.link("last")
	number := func(name string) int { n, _ := strconv.Atoi(r.out.search[name].text); return n }
	switch {
	case isFirst && isLast && same(first.Href, last.Href):
	case isLast && self != "" && !same(last.Href, self):
		r.add("paged-without-links", lastAt, "the last page is %s, but there is no next towards it", clip(last.Href))
	case isFirst && self != "" && !same(first.Href, self):
		r.add("paged-without-links", at, "the first page is %s, but there is no previous towards it", clip(first.Href))
	case number("totalResults") > len(r.doc.Entries):
		r.add("paged-without-links", r.out.search["totalResults"].at,
			"there are %d results, and %d here, but no link to the others", number("totalResults"), len(r.doc.Entries))
	case number("startIndex") > 1:
		r.add("paged-without-links", r.out.search["startIndex"].at,
			"this page begins at result %d, but has no link to those before", number("startIndex"))
	}
}

// links checks the targets of the links of the chain.
func (r *report) links() {
	targets := map[string]string{}
	for i, link := range r.doc.Links {
		if link.Rel != "self" && !slices.Contains(historyRelations, link.Rel) {
			continue
		}
		if !isAbsolute(link.Href) {
			r.add("link-relative-unresolvable", r.at(i), "%s is %q, which cannot be made an absolute URL", link.Rel, clip(link.Href))
		}
		if other, ok := targets[link.Rel]; ok && !same(other, link.Href) && link.Rel != "self" {
			r.add("relation-repeated", r.at(i), "%s is %s, but was %s before", link.Rel, clip(link.Href), clip(other))
		} else if !ok {
			targets[link.Rel] = link.Href
		}
	}
	r.loops()
	for _, s := range r.out.stray {
		r.add("history-link-in-entry", s.at, "%s is in an entry, where it says nothing about the feed", s.text)
	}
	head := door.Root.Head(r.doc)
	if url := head.NewAddress(); url != "" && !same(url, r.doc.URL) && !same(url, r.self()) {
		r.absent("moved-elsewhere", "the feed says that it has moved to %s", clip(url))
	}
	if !r.has("self") {
		r.absent("self-missing", "the document does not give its own URL")
	}
}

// loops checks whether the links to neighbours lead anywhere: to another document, by a scheme
// that readers request, and by a relation that they know.
func (r *report) loops() {
	itself := map[int]bool{} // the places of the links
	own := r.doc.URL
	if !isAbsolute(own) {
		own = r.self()
	}
	reported := func(at int) bool { was := itself[at]; itself[at] = at != nowhere; return was }
	for i, link := range r.doc.Links {
		at := r.at(i)
		switch scheme, _, _ := strings.Cut(link.Href, ":"); {
		case !slices.Contains(historyRelations, link.Rel):
			if name := lookAlike(link.Rel); name != "" {
				r.add("relation-look-alike", at, "the relation %s is not %s, and readers do not know it", clip(link.Rel), name)
			}
		case isAbsolute(link.Href) && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
			r.add("link-not-http", at, "%s is %s, and readers request http and https only", link.Rel, clip(link.Href))
		case isAbsolute(own) && slices.Contains(neighbourRelations, link.Rel) && same(link.Href, own) && !reported(at):
			r.add("link-to-itself", at, "%s leads to this document itself", link.Rel)
		case isAbsolute(link.Href): // another document, whatever is written
			itself[at] = at != nowhere
		}
	}
	for _, s := range r.out.fragments {
		if !itself[s.at] {
			r.add("link-to-itself", s.at, "%s is empty or a fragment, so it leads to this document itself", s.text)
		}
	}
}

// neighbourRelations lead to another document of the feed, never to the same one.
var neighbourRelations = []string{"previous", "next", "prev-archive", "next-archive"}

// lookAlike returns the registered relation a relation resembles: by another URI than the
// IANA's, or by another spelling of an archive's; "" if it resembles none.
func lookAlike(rel string) string {
	name := strings.ToLower(rel)
	isURI := strings.ContainsAny(name, ":/")
	if i := strings.LastIndexAny(strings.TrimRight(name, "/"), ":/#"); i >= 0 {
		name = strings.TrimRight(name, "/")[i+1:]
	}
	if isURI && slices.Contains(historyRelations, name) && (strings.Contains(name, "archive") || strings.Contains(strings.ToLower(rel), "iana")) {
		return name
	}
	letters := strings.Map(func(c rune) rune {
		if c < 'a' || c > 'z' {
			return -1
		}
		return c
	}, name)
	switch letters = strings.NewReplacer("previous", "prev", "archives", "archive", "archived", "archive").Replace(letters); letters {
	case "prevarchive", "archiveprev":
		return "prev-archive"
	case "nextarchive", "archivenext":
		return "next-archive"
	}
	return ""
}

// isAbsolute reports whether a URL can be requested: it has a scheme, and a
// host if the scheme needs one.
func isAbsolute(href string) bool {
	u, err := url.Parse(href)
	if err != nil || u.Scheme == "" {
		return false
	}
	return u.Host != "" || u.Scheme != "http" && u.Scheme != "https"
}

// same reports whether two URLs name the same document.
func same(a, b string) bool {
	a, _, _ = strings.Cut(a, "#")
	b, _, _ = strings.Cut(b, "#")
	return a == b
}

// times compares the document's own time with its entries'.
func (r *report) times() {
	d := r.doc
	if d.Format == feedhistory.FormatRSS && d.Updated.IsZero() {
		r.absent("rss-without-lastBuildDate", "the document does not say when it was updated")
	}
	if r.profile == AtomPMH { // which has rules of its own for times
		return
	}
	if d.Format == feedhistory.FormatAtom {
		r.updates()
	}
	if d.Updated.IsZero() {
		return
	}
	if e := newest(d.Entries); e != nil && e.Changed().After(d.Updated) {
		r.add("updated-older-than-entries", r.out.head.updated, "the document was updated %s, but entry %s %s",
			stamp(d.Updated), clip(e.ID), stamp(e.Changed()))
	}
}

// updates reports where updated is missing: an element of another name, which this reader
// takes instead, is none. An unreadable one is reported by its place.
func (r *report) updates() {
	strict := r.out.version != atom03
	if r.out.head.updated == nowhere && (r.doc.Updated.IsZero() || strict && r.out.isWhole) {
		r.absent("updated-missing", "the feed has no updated")
	}
	for i, e := range r.doc.Entries {
		if place := r.entry(i); place.updated == nowhere && (e.Updated.IsZero() || strict && place.at != nowhere) {
			r.add("updated-missing", place.at, "entry %s has no updated", clip(e.ID))
		}
	}
}

// newest returns the entry with the latest time; nil if none has a time.
func newest(entries []*feedhistory.Entry) (latest *feedhistory.Entry) {
	for _, e := range entries {
		if t := e.Changed(); !t.IsZero() && (latest == nil || t.After(latest.Changed())) {
			latest = e
		}
	}
	return latest
}

// stamp returns a time in RFC 3339.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "without a time"
	}
	return t.Format(time.RFC3339Nano)
}

// ids checks the ids of the feed and its entries (5005#22).
func (r *report) ids() {
	d := r.doc
	if d.Format == feedhistory.FormatAtom {
		switch {
		case r.count["id-too-long"] > 0, r.out.version == atom03 && r.out.head.id == nowhere: // there is one, or none is needed
		case d.ID == "", r.out.isWhole && r.out.head.id == nowhere: // a misspelt id is none
			r.absent("id-missing", "the feed has no id")
		case !isIRI(d.ID):
			r.add("not-absolute-iri", r.out.head.id, "the feed's id, %q, is not an absolute IRI", clip(d.ID))
		}
	}
	seen := make(map[string]int, len(d.Entries))
	shared := r.hasSharedIDs()
	for i, e := range d.Entries {
		place := r.entry(i)
		isShared := shared && (place.id != place.at || d.Format == feedhistory.FormatJSONFeed) // which the note says
		if e.WeakID && !isShared || d.Format == feedhistory.FormatAtom && place.at == place.id && place.at != nowhere {
			r.withoutID(e, place)
			continue
		}
		r.iri(e, place)
		if first, ok := seen[e.ID]; ok {
			r.duplicate(e, d.Entries[first], place)
		} else {
			seen[e.ID] = i
		}
	}
}

// withoutID reports an entry without an id, which RSS allows.
func (r *report) withoutID(e *feedhistory.Entry, place elementPlace) {
	_, linked := e.Links.Rel("alternate")
	switch {
	case r.doc.Format != feedhistory.FormatRSS:
		r.add("id-missing", place.at, "the entry has no id")
	case linked:
		r.add("guid-missing", place.at, "the item has no guid, so readers recognise it by its link")
	default:
		r.add("guid-missing", place.at, "the item has neither guid nor link, so readers cannot tell whether they know it")
	}
}

// entry returns the place of an entry.
func (r *report) entry(i int) elementPlace {
	if i < len(r.out.entries) && (!r.out.isWhole || len(r.out.entries) == len(r.doc.Entries)) {
		return r.out.entries[i]
	}
	return noPlace
}

func (r *report) iri(e *feedhistory.Entry, place elementPlace) {
	switch {
	case r.doc.Format == feedhistory.FormatAtom && !isIRI(e.ID):
		r.add("not-absolute-iri", place.id, "the id %q is not an absolute IRI", clip(e.ID))
	case r.doc.Format == feedhistory.FormatRSS && place.permalink && !isIRI(e.ID):
		r.add("not-absolute-iri", place.id, "the guid %q is not a URL, although isPermaLink is not false", clip(e.ID))
	}
}

// hasSharedIDs reports whether the document has entries sharing an id, and nothing else.
func (r *report) hasSharedIDs() bool {
	return slices.ContainsFunc(r.doc.Notes, func(n feedhistory.Note) bool { return n.Code == "id-shared" })
}

// duplicate compares two entries with the same id. Atom-PMH has different
// rules, because it keeps history in this way.
func (r *report) duplicate(e, first *feedhistory.Entry, place elementPlace) {
	switch {
	case r.profile == AtomPMH:
	case r.hasSharedIDs(): // whose note says more
	case e.Updated.Equal(first.Updated) && differ(e, first):
		r.add("id-shared", place.id, "entries with different titles and links share an id, so only one of them counts: %s", clip(e.ID))
	case e.Updated.Equal(first.Updated):
		when := "no update time"
		if !e.Updated.IsZero() {
			when = "the update time " + stamp(e.Updated)
		}
		r.add("duplicate-id-same-time", place.id, "the id %s is in the document twice, both with %s", clip(e.ID), when)
	default:
		r.add("duplicate-id", place.id, "the id %s is in the document twice, updated %s and %s",
			clip(e.ID), stamp(first.Updated), stamp(e.Updated))
	}
}

// differ reports whether two entries have titles and links, and share none. With different
// times, too, the parser has noted it.
func differ(a, b *feedhistory.Entry) bool {
	one, ok := a.Links.Rel("alternate")
	other, too := b.Links.Rel("alternate")
	title, second := a.Title().Plain(), b.Title().Plain()
	return ok && too && !same(one.Href, other.Href) && title != "" && second != "" && title != second
}

// isIRI recognises an absolute IRI: a scheme, followed by something, without the
// characters an IRI cannot have (RFC 3987 §2.2).
func isIRI(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	return ok && iri.IsScheme(scheme) && strings.Trim(rest, "/") != "" && !strings.ContainsFunc(rest, func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r <= 0x9f || strings.ContainsRune("<>\"{}|\\^`", r)
	})
}

const (
	nsSearch  = "http://a9.com/-/spec/opensearch/1.1/"
	nsSearch1 = "http://a9.com/-/spec/opensearchrss/1.0/"
)

// nowhere is the offset of something without a place in the document.
const nowhere = -1

// An outline supplements the model of a document: it has the places of things, and
// elements where they have no meaning. It is made from the text, read again.
type outline struct {
	version    string          // of the format
	head       elementPlace    // the feed or channel
	links      []int           // the places of the document's links; those of the HTTP header have none
	flags      []flagPlace     // in any place
	stray      []spot          // history links in entries
	fragments  []spot          // links to neighbours in the head section whose reference is empty or a fragment
	entries    []elementPlace  // in document order
	search     map[string]spot // OpenSearch's numbers in the head section
	isWhole    bool            // the text is XML, and undamaged
	isExternal bool            // it has a DTD elsewhere, which may define entities
	faults     []fault         // elements that are repeated, missing or ill-formed

	invalidDates map[int]bool // the places of Atom's dates reported as invalid
}

// A fault is a finding that needs nothing but the element at its place.
type fault struct {
	code    string
	at      int
	message string
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

// An elementPlace is the element of an entry, feed or channel.
type elementPlace struct {
	at, end     int
	id, updated int  // nowhere if there is no element; an entry without one has its own place as that of its id
	permalink   bool // an RSS guid claiming to be a URL
	content     contentKind
}

// noPlace is the place of an entry that is not known.
var noPlace = elementPlace{at: nowhere, end: nowhere, id: nowhere, updated: nowhere}

// A parent is a feed, channel, entry or item with the elements it must not repeat.
type parent struct {
	elementPlace
	name    string // "" for RSS's root
	isEntry bool
	scope   *xmlscan.Scope
	seen    map[string]bool
}

// once records the current element as a child, and reports it if it is repeated.
func (s *outliner) once(p *parent, row *feedxml.Row) {
	if row.Flags&feedxml.Once == 0 || s.isRSS != (row.Space == "") {
		return
	}
	if p.seen[row.Name] {
		code := "element-repeated"
		if s.isRSS {
			code = "rss-element-repeated"
		}
		s.fault(code, s.at, "this %s has more than one %s", p.name, row.Name)
	}
	p.seen[row.Name] = true
}

// value reads an Atom id or date, which white space is no part of. It reports a date that is
// not written as RFC 3339 says.
func (s *outliner) value(isDate bool) {
	if s.isRSS || s.version == atom03 {
		return
	}
	name, text := s.Local(), s.ElementText()
	switch trimmed := strings.TrimSpace(text); {
	case trimmed != text && trimmed != "":
		s.fault("white-space-around", s.at, "there is white space around the value of %s, %q", name, clip(trimmed))
	case isDate && !isRFC3339(text):
		s.invalidDates[s.at] = true
		s.fault("date-invalid", s.at, "%s is %q, which is not an RFC 3339 date", name, clip(text))
	}
}

// isRFC3339 reports whether a text is a date-time of RFC 3339 with capital letters, as RFC 4287
// §3.3 says. A leap second is one.
func isRFC3339(text string) bool {
	if len(text) > 19 && text[16:19] == ":60" {
		text = text[:16] + ":59" + text[19:]
	}
	return feedtime.IsRFC3339(text)
}

// missing reports the elements a parent lacks.
func (s *outliner) missing(p *parent) {
	switch {
	case p.name == "item":
		if !p.seen["title"] && !p.seen["description"] && !slices.Contains([]string{"0.92", "0.93", "0.94"}, s.version) {
			s.fault("rss-element-missing", p.at, "this item has neither title nor description")
		}
	case s.isRSS:
		for _, name := range []string{"title", "link", "description"} {
			if !p.seen[name] {
				s.fault("rss-element-missing", p.at, "the channel has no %s", name)
			}
		}
	case !p.seen["title"]:
		s.fault("title-missing", p.at, "this %s has no title", p.name)
	}
}

// mostFaults bounds the faults kept: a report shows a few of each kind.
const mostFaults = 10_000

func (o *outline) fault(code string, at int, format string, args ...any) {
	if len(o.faults) < mostFaults {
		o.faults = append(o.faults, fault{code, at, fmt.Sprintf(format, args...)})
	}
}

// A contentKind is the kind of an Atom entry's atom:content.
type contentKind uint8

const (
	noContent    contentKind = iota
	emptyContent             // and no src: this marks a deletion in Atom-PMH
	someContent
)

// atom03 is the version of Atom before 1.0.
const atom03 = "0.3"

// newOutline reads a document's text again, up to the first damage.
func newOutline(doc *feedhistory.Document) *outline {
	o := &outline{head: noPlace, invalidDates: map[int]bool{}, version: door.Root.Head(doc).Version}
	if doc.Format == feedhistory.FormatJSONFeed {
		o.jsonItems(doc)
		return o
	}
	s := outliner{outline: o, text: doc.Text(), isRSS: doc.Format == feedhistory.FormatRSS}
	s.isFlagged = historyNamespace.MatchString(s.text)
	o.isWhole = door.Root.Observe(doc, s.see) == nil
	s.readPending(len(s.text))
	if s.isRSS && o.isWhole && o.head.at == nowhere {
		o.fault("rss-element-missing", nowhere, "there is no channel")
	}
	return o
}

// historyNamespace recognises RFC 5005's namespace, even misspelt.
var historyNamespace = regexp.MustCompile("(?i)syndication/history")

// externalDTD recognises a document type whose definition, or a part of it, is elsewhere.
var externalDTD = regexp.MustCompile(`<!DOCTYPE\s+[^\s>[]+\s+(PUBLIC|SYSTEM)\s|<!DOCTYPE[^>]*\[[^]]*%`)

// jsonItems finds the items, whose text the model has unchanged, and checks the members of
// each and of the feed.
func (o *outline) jsonItems(doc *feedhistory.Document) {
	from := 0
	o.jsonMembers(doc.Text(), 0, "feed", "title")
	for _, e := range doc.Entries {
		raw := string(e.JSON())
		i := strings.Index(doc.Text()[from:], raw)
		if i < 0 { // it was mended
			o.entries = append(o.entries, noPlace)
			continue
		}
		at := from + i
		from = at + len(raw)
		o.entries = append(o.entries, elementPlace{at: at, end: from, id: at, updated: nowhere})
		o.jsonMembers(raw, at, "item", "content_text", "content_html")
	}
}

// jsonMembers reports members that the object at an offset has twice, or lacks: it needs one
// of those named last.
func (o *outline) jsonMembers(text string, at int, what string, oneOf ...string) {
	r, seen := jsonfeed.New(text, func(string, int) {}), map[string]bool{}
	for name := range r.Members() {
		if r.Raw(); seen[name] && r.Err() == nil {
			o.fault("json-member-repeated", at, "the %s has more than one %q", what, clip(name))
		}
		seen[name] = true
	}
	if r.Err() != nil {
		return // it is not well-formed
	}
	if !slices.ContainsFunc(oneOf, func(name string) bool { return seen[name] }) {
		o.fault("json-member-missing", at, "the %s has no %s", what, strings.Join(oneOf, " or "))
	}
}

// An outliner reads an outline.
type outliner struct {
	*feedxml.Elements // the current child, and what is in it
	*outline
	at        int // where the child begins
	text      string
	isRSS     bool
	isFlagged bool // the text has RFC 5005's namespace, so there may be flags anywhere
	parents   []parent
	pending   func(end int) // reads the last child; nil if there is none
}

// see follows the reading of the document.
func (s *outliner) see(links, entries int, event feedxml.Event, r *feedxml.Elements) {
	s.readPending(r.Offset())
	for len(s.links) < links {
		s.links = append(s.links, s.at)
	}
	if event == feedxml.Begins {
		s.begin(r)
		return
	}
	last := len(s.parents) - 1
	switch p := &s.parents[last]; {
	case event == feedxml.Child:
		row := r.Row()
		if row.Name != r.Local() || !r.IsOwn() && row.Feed != feedxml.MeansDeleted { // a misspelt name is not the format's
			row = &feedxml.Row{}
		}
		at, format, native := r.Offset(), r.Format, r.Native()
		s.at = at
		s.pending = func(end int) {
			s.Elements = feedxml.Again(s.text[at:max(at, end)], p.scope, format)
			s.SetNative(native)
			s.child(p, row)
			s.Release()
		}
		return
	case p.isEntry && len(s.entries) < entries:
		p.end = r.End()
		s.entries = append(s.entries, p.elementPlace)
	case !p.isEntry:
		s.head = p.elementPlace
	}
	if r.Err() == nil && !r.Stopped() {
		s.missing(&s.parents[last])
	}
	s.parents = s.parents[:last]
}

// readPending reads the last child, once the end of its text is known: reading an element
// without an end tag to the end of the document, and so each of many, would take quadratic time.
func (s *outliner) readPending(end int) {
	if read := s.pending; read != nil {
		s.pending = nil
		read(end)
	}
}

// begin begins a parent.
func (s *outliner) begin(r *feedxml.Elements) {
	row := r.Row()
	p := parent{noPlace, row.Name, row.Form == feedxml.Entries, r.NewScope(), map[string]bool{}}
	if p.at = r.Offset(); p.isEntry {
		p.id = p.at
	}
	if len(s.parents) == 0 {
		s.isExternal = externalDTD.MatchString(s.text[:p.at])
	}
	s.parents = append(s.parents, p)
}

// child reads a child.
func (s *outliner) child(p *parent, row *feedxml.Row) {
	inHead := p.name != "" && !p.isEntry
	if s.flag(inHead) {
		return
	}
	s.once(p, row)
	means := row.Feed
	if p.isEntry {
		means = row.Entry
	}
	switch {
	case means == feedxml.MeansID:
		value, ok := s.Permalink()
		p.id, p.permalink = s.at, row.Name == "guid" && (!ok || strings.EqualFold(strings.TrimSpace(value), "true"))
		s.value(false)
	case row.Form == feedxml.DateForm, means == feedxml.MeansUpdated && row.Form != feedxml.Dropped:
		if means == feedxml.MeansUpdated {
			p.updated = s.at
		}
		s.value(true)
	case means == feedxml.MeansLink:
		if p.isEntry {
			s.entryLink()
		} else if inHead {
			s.headLink()
		}
	case means == feedxml.MeansContent:
		p.content = s.content()
	case inHead && row.Feed == feedxml.MeansDeleted:
		s.tombstone()
	case inHead && (s.Space() == nsSearch || s.Space() == nsSearch1):
		s.searchNumber()
	case row.Form != feedxml.SourceForm && means != feedxml.MeansSummary: // another feed's head, and text for people
		s.elsewhere()
	}
}

// tombstone checks the time of a deletion, which decides whether an entry is gone.
func (s *outliner) tombstone() {
	if when, ok := s.Attr("", "when"); !ok {
		s.fault("deleted-entry-when", s.at, "at:deleted-entry has no when")
	} else if !isRFC3339(when) {
		s.invalidDates[s.at] = true
		s.fault("deleted-entry-when", s.at, "when is %q, which is not an RFC 3339 date", clip(when))
	}
}

// searchNumber records OpenSearch's numbers for the page.
func (s *outliner) searchNumber() {
	if s.search == nil {
		s.search = map[string]spot{}
	}
	if len(s.search) < 16 {
		s.search[s.Local()] = spot{s.at, s.PlainText()}
	}
}

// historyRelations connect a feed's documents; in an entry they mean nothing.
var historyRelations = []string{
	"first", "last", "previous", "next",
	"current", "prev-archive", "next-archive",
}

func (s *outliner) entryLink() {
	_, ok := s.Attr("", "href")
	rel, _ := s.Attr("", "rel")
	for _, rel := range strings.Fields(rel) {
		if ok && slices.Contains(historyRelations, rel) {
			s.stray = append(s.stray, spot{s.at, rel})
		}
	}
}

// headLink records a link to a neighbour that stays in the document.
func (s *outliner) headLink() {
	href, ok := s.Attr("", "href")
	rel, _ := s.Attr("", "rel")
	if href = strings.TrimSpace(href); !ok || href != "" && href[0] != '#' {
		return
	}
	for _, rel := range strings.Fields(rel) {
		if rel = strings.TrimPrefix(rel, "http://www.iana.org/assignments/relation/"); slices.Contains(neighbourRelations, rel) {
			s.fragments = append(s.fragments, spot{s.at, rel})
		}
	}
}

func (s *outliner) content() contentKind {
	_, elsewhere := s.Attr("", "src")
	if _, content := s.inner(); content || elsewhere {
		return someContent
	}
	return emptyContent
}

// inner moves to the end of the current element. It returns the text inside,
// and whether there is any text or element.
func (s *outliner) inner() (text string, content bool) {
	at := s.at + s.Offset()
	text = s.PlainText()
	tags := strings.Count(s.text[at:s.at+s.End()], "<")
	return text, text != "" || tags > 2 // the element's own tags
}

// elsewhere looks for flags in places where they do not count.
func (s *outliner) elsewhere() {
	if !s.isFlagged || s.Local() == "source" {
		return
	}
	for tok := s.Next(); tok != xmlscan.Stop && s.Depth() > 0; tok = s.Next() {
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
	plain := head && (space == s.Native() || space == "" || s.IsOwn())
	if !plain && !historyNamespace.MatchString(space) {
		return false
	}
	f := flagPlace{at: s.at + s.Offset(), name: name, head: head, foreign: space != feedxml.History, space: s.Cursor.Space()}
	f.text, f.content = s.inner()
	if len(s.flags) < 1000 {
		s.flags = append(s.flags, f)
	}
	return true
}
