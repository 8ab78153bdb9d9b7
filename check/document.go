package check

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
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
			rel := feedhistory.RelCurrent
			if r.doc.Kind() == feedhistory.Paged {
				rel = feedhistory.RelFirst
			}
			_, at, _ = r.link(rel)
		}
		code := n.Code
		if mended[code] {
			code = "not-well-formed"
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
	return link, r.at[slices.Index(r.doc.Links, link)], true
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
		if link.Rel != feedhistory.RelCurrent && slices.Contains(historyRelations, link.Rel) {
			r.add("complete-with-history-link", r.at[i],
				"the document is complete, but has a link %s to %s", link.Rel, clip(link.Href))
		}
	}
	current, at, ok := r.link(feedhistory.RelCurrent)
	if self := r.self(); ok && self != "" && !same(current.Href, self) {
		r.add("complete-current-not-self", at,
			"the document is complete, but its current, %s, is not itself, %s", clip(current.Href), clip(self))
	}
}

func (r *report) archive() {
	if !r.has(feedhistory.RelPrevArchive, feedhistory.RelNextArchive) {
		r.add("archive-without-links", r.flagAt("archive"), "the archive has neither prev-archive nor next-archive: readers cannot go on from it")
	}
	if !r.has(feedhistory.RelCurrent) {
		r.add("archive-without-current", r.flagAt("archive"), "the archive does not say which is its subscription document")
	}
}

// isUnmarkedArchive recognises an archive by something no subscription document has: a
// next-archive, or a current that is a different document.
func (r *report) isUnmarkedArchive() bool {
	return !r.doc.Archive && !r.doc.Complete && r.archiveSigns() != ""
}

func (r *report) archiveSigns() string {
	if r.has(feedhistory.RelNextArchive) {
		return "there is a next-archive"
	}
	current, _, ok := r.link(feedhistory.RelCurrent)
	self, found := r.doc.Links.Rel(feedhistory.RelSelf)
	stale := slices.ContainsFunc(r.doc.Notes, isStale)
	if ok && found && !stale && r.has(feedhistory.RelPrevArchive) && !same(current.Href, self.Href) && !same(current.Href, r.doc.URL) {
		return "there is a prev-archive, and current is another document"
	}
	return ""
}

// historyAt returns the place of the first history link.
func (r *report) historyAt() int {
	for i, link := range r.doc.Links {
		if slices.Contains(historyRelations, link.Rel) && link.Rel != feedhistory.RelCurrent {
			return r.at[i]
		}
	}
	return nowhere
}

// self returns the document's own URL: its self link, or else where it was
// found.
func (r *report) self() string {
	if self, ok := r.doc.Links.Rel(feedhistory.RelSelf); ok {
		return self.Href
	}
	return r.doc.URL
}

// pages checks the links of a paged feed (RFC 5005 §3).
func (r *report) pages() {
	self := r.self()
	for _, end := range [][2]string{
		{feedhistory.RelFirst, feedhistory.RelPrevious}, {feedhistory.RelLast, feedhistory.RelNext},
	} {
		link, _, ok := r.link(end[0])
		beyond, at, more := r.link(end[1])
		if ok && more && self != "" && same(link.Href, self) && !r.doc.Complete {
			r.add("link-past-end", at, "this is the %s page, but it has a %s, %s", end[0], end[1], clip(beyond.Href))
		}
	}
	if r.doc.Complete || r.has(feedhistory.RelPrevArchive, feedhistory.RelNextArchive) || r.doc.Archive ||
		r.has(feedhistory.RelPrevious, feedhistory.RelNext) {
		return
	}
	r.lonelyPage(self)
}

// lonelyPage reports a page without links to neighbours although there are
// other pages, according to first and last, or to OpenSearch's numbers.
func (r *report) lonelyPage(self string) {
	first, at, isFirst := r.link(feedhistory.RelFirst)
	last, lastAt, isLast := r.link(feedhistory.RelLast)
	switch {
	case isFirst && isLast && same(first.Href, last.Href):
		return
	case isLast && self != "" && !same(last.Href, self):
		r.add("paged-without-links", lastAt, "the last page is %s, but there is no next towards it", clip(last.Href))
		return
	case isFirst && self != "" && !same(first.Href, self):
		r.add("paged-without-links", at, "the first page is %s, but there is no previous towards it", clip(first.Href))
		return
	}
	number := func(name string) int { n, _ := strconv.Atoi(r.out.search[name].text); return n }
	if total, entries := number("totalResults"), len(r.doc.Entries); total > entries {
		r.add("paged-without-links", r.out.search["totalResults"].at,
			"there are %d results, and %d here, but no link to the others", total, entries)
	} else if start := number("startIndex"); start > 1 {
		r.add("paged-without-links", r.out.search["startIndex"].at,
			"this page begins at result %d, but has no link to those before", start)
	}
}

// links checks the targets of the links of the chain.
func (r *report) links() {
	targets := map[string]string{}
	for i, link := range r.doc.Links {
		if link.Rel != feedhistory.RelSelf && !slices.Contains(historyRelations, link.Rel) {
			continue
		}
		if !isAbsolute(link.Href) {
			r.add("link-relative-unresolvable", r.at[i], "%s is %q, which cannot be made an absolute URL", link.Rel, clip(link.Href))
		}
		if other, ok := targets[link.Rel]; ok && !same(other, link.Href) && link.Rel != feedhistory.RelSelf {
			r.add("relation-repeated", r.at[i], "%s is %s, but was %s before", link.Rel, clip(link.Href), clip(other))
		} else if !ok {
			targets[link.Rel] = link.Href
		}
	}
	for _, s := range r.out.stray {
		r.add("history-link-in-entry", s.at, "%s is in an entry, where it says nothing about the feed", s.text)
	}
	if !r.has(feedhistory.RelSelf) {
		r.absent("self-missing", "the document does not give its own URL")
	}
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
	if d.Format == feedhistory.RSS && d.Updated.IsZero() {
		r.absent("rss-without-lastBuildDate", "the document does not say when it was updated")
	}
	if r.profile == AtomPMH { // which has rules of its own for times
		return
	}
	if d.Format == feedhistory.Atom {
		r.updates()
	}
	if d.Updated.IsZero() {
		return
	}
	if e := newest(d.Entries); e != nil && e.Changed().After(d.Updated) {
		r.add("updated-older-than-entries", r.out.updated, "the document was updated %s, but entry %s %s",
			stamp(d.Updated), clip(e.ID), stamp(e.Changed()))
	}
}

// updates reports where updated is missing. An unreadable one is a note of the parser's.
func (r *report) updates() {
	if r.doc.Updated.IsZero() && r.out.updated == nowhere {
		r.absent("updated-missing", "the feed has no updated")
	}
	for i, e := range r.doc.Entries {
		if place := r.entry(i); e.Updated.IsZero() && !place.updated {
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
