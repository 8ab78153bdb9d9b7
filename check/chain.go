package check

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A Chain checks the documents of a feed, one after the other as
// feedhistory.Client.Walk yields them. It keeps only a few numbers for each
// entry of a checked document. The zero value is ready to use, for one walk.
type Chain struct {
	Profile Profile  // Profile is the set of rules; zero means RFC5005.
	Digests *Digests // Digests are those of an earlier run, which this run updates; nil means none.

	// Sample takes representations of the feed's records, to be checked after the walk; nil
	// means none.
	Sample *Sample

	first, newer *neighbour
	detached     bool // the first document is not a subscription document
	kind         feedhistory.Kind
	documents    int
	gaps         bool
	current      string // the URL archives name as current
	lastNamed    link   // the link pages name as last
	mixed        bool
	archives     map[string]bool // used if there are Digests

	seed   maphash.Seed
	copies map[uint64]entryCopy

	unvalidated, unfresh tally
	undated              tally  // documents silent about when they and their entries were updated
	forwardless          tally  // archives without a next-archive although one follows
	followed             string // the document after the first of those
	pmh                  pmhChain
}

// A neighbour is a checked document, as far as later ones need it.
type neighbour struct {
	url            string
	names          []string // all URLs it is known by
	newest, oldest time.Time
	entries        int
	updated        time.Time
	id             string
	older          link
	entry          string // the oldest entry by update time
}

// A link is a history link of a document, with its place.
type link struct {
	href, rel    string
	from         string // the URL of the document
	line, column int
	quote        Quote
}

// A tally counts the documents with a mistake.
type tally struct {
	url string // the first of them
	n   int
}

func (t *tally) add(url string) {
	if t.n++; t.n == 1 {
		t.url = url
	}
}

// text names the documents with the property that follows, or without it.
func (t tally) text(all int) string {
	switch t.n {
	case 1:
		return "the document has"
	case all:
		return fmt.Sprintf("all %d documents have", all)
	}
	return fmt.Sprintf("%d of %d documents (this is the first) have", t.n, all)
}

// Documents returns the number of documents checked.
func (c *Chain) Documents() int { return c.documents }

// Add checks the next document, by itself and as part of the chain.
func (c *Chain) Add(doc *feedhistory.Document) []Finding {
	if doc == nil {
		return nil
	}
	return c.add(doc, nil)
}

func (c *Chain) add(doc *feedhistory.Document, err error) []Finding {
	n := newNeighbour(doc)
	if c.first != nil && same(c.first.url, n.url) {
		n.older = newReport(doc, c.Profile).older(c.kind)
		c.newer = n // read again, because its chain has moved
		return nil
	}
	r := newReport(doc, c.Profile)
	r.document(err)
	n.older = r.older(c.kind)
	if c.documents++; c.documents == 1 {
		c.kind, c.first = doc.Kind(), n
		c.archives, c.copies, c.seed = map[string]bool{}, map[uint64]entryCopy{}, maphash.MakeSeed()
		n.older = r.older(c.kind)
	} else {
		c.follower(r, n)
	}
	c.transport(r, n)
	c.entries(r)
	if !r.isTimed() {
		c.undated.add(n.url)
	}
	if c.kind == feedhistory.Paged && c.lastNamed.href == "" {
		c.lastNamed = r.linkTo(feedhistory.RelLast)
	}
	if c.Profile == AtomPMH {
		c.pmh.document(c, r, n)
	}
	if c.Sample != nil {
		c.Sample.Add(doc)
	}
	c.newer = n
	return r.findings()
}

func newNeighbour(doc *feedhistory.Document) *neighbour {
	n := &neighbour{url: doc.URL, updated: doc.Updated, id: doc.ID, entries: len(doc.Entries)}
	n.names = []string{doc.URL, doc.Response.Requested}
	if self, ok := doc.Links.Rel(feedhistory.RelSelf); ok {
		n.names = append(n.names, self.Href)
	}
	now := time.Now()
	for _, e := range doc.Entries {
		t := e.Changed()
		if t.IsZero() {
			continue
		}
		if t.After(n.newest) && !t.After(now) { // a date in the future does not tell the newest
			n.newest = t
		}
		if n.oldest.IsZero() || t.Before(n.oldest) {
			n.oldest, n.entry = t, e.ID
		}
	}
	return n
}

// is reports whether a URL is one of the document's.
func (n *neighbour) is(url string) bool {
	return slices.ContainsFunc(n.names, func(name string) bool { return name != "" && same(name, url) })
}

// linkTo returns the document's first link with a relation.
func (r *report) linkTo(rel string) link {
	l, at, ok := r.link(rel)
	if !ok {
		return link{}
	}
	to := link{href: l.Href, rel: rel, from: r.doc.URL}
	to.line, to.column, to.quote = r.place(at)
	return to
}

// older returns the link by which a walk continues.
func (r *report) older(kind feedhistory.Kind) link {
	if kind == feedhistory.Paged {
		return r.linkTo(feedhistory.RelNext)
	}
	return r.linkTo(feedhistory.RelPrevArchive)
}

// finding makes a finding at a link.
func (l link) finding(code, format string, args ...any) Finding {
	f := newFinding(code, l.from, fmt.Sprintf(format, args...))
	f.Line, f.Column, f.Quote = l.line, l.column, l.quote
	return f
}

// keep adds a finding whose place is in another document.
func (r *report) keep(f Finding) {
	r.found = append(r.found, placedFinding{Finding: f, offset: nowhere})
}

// follower checks a document another one links to.
func (c *Chain) follower(r *report, n *neighbour) {
	from := c.newer
	if requested := r.doc.Response.Requested; requested != "" && !same(requested, n.url) {
		r.keep(from.older.at(n, "redirect-in-chain", "the link to %s is redirected to %s", clip(requested), clip(n.url)))
	}
	if n.id != "" && c.first.id != "" && n.id != c.first.id {
		r.add("feed-id-differs", r.out.id, "the feed's id is %s here, but %s in %s", clip(n.id), clip(c.first.id), c.first.url)
	}
	if c.kind == feedhistory.Archived {
		c.archive(r, n)
	}
}

// at makes a finding at the link, if it led to the document.
func (l link) at(n *neighbour, code, format string, args ...any) Finding {
	if !n.is(l.href) {
		return newFinding(code, n.url, fmt.Sprintf(format, args...))
	}
	return l.finding(code, format, args...)
}

// archive checks an archive document (RFC 5005 §4).
func (c *Chain) archive(r *report, n *neighbour) {
	if from := c.newer; from.older.href != "" && n.is(from.older.href) {
		r.drop("archive-without-links") // here it is known whether there is anything to link to
		c.direction(r, n, from)
		c.nextArchive(r, n, from)
	}
	if !r.doc.Archive && !r.isUnmarkedArchive() && !r.doc.Complete {
		r.absent("archive-unmarked", "prev-archive leads here, so this is an archive, but there is no fh:archive")
	}
	if !c.detached {
		c.currentOf(r)
	}
	if c.Digests != nil {
		c.remember(r)
		c.archives[strings.Clone(n.url)] = true
	}
}

// direction checks whether the chain goes back in time.
func (c *Chain) direction(r *report, n, from *neighbour) {
	switch {
	case n.newest.IsZero():
	case !from.newest.IsZero() && n.oldest.After(from.newest):
		r.keep(from.older.finding("prev-archive-newer",
			"prev-archive leads to %s, whose entries are from %s on, but those here end at %s",
			clip(n.url), stamp(n.oldest), stamp(from.newest)))
	case c.detached, c.Profile == AtomPMH && c.first.entries == 0 && from == c.first: // the text allows an empty one
	case c.first.entries == 0 && from == c.first:
		r.keep(newFinding("subscription-lacks-newest", c.first.url, "the subscription document has no entries, but there are archives"))
	case !c.first.newest.IsZero() && n.newest.After(c.first.newest):
		r.absent("subscription-lacks-newest", "an entry here was updated %s, but the latest in the subscription document %s",
			stamp(n.newest), stamp(c.first.newest))
	}
}

// nextArchive checks the links forward in time.
func (c *Chain) nextArchive(r *report, n, from *neighbour) {
	next, at, ok := r.link(feedhistory.RelNextArchive)
	newest := from == c.first && !c.detached
	switch {
	case !ok && (newest || r.doc.Complete):
	case !ok:
		if c.forwardless.add(n.url); c.forwardless.n == 1 {
			c.followed = strings.Clone(clip(from.url))
		}
	case n.older.href != "" && same(next.Href, n.older.href):
		r.add("next-archive-older", at, "next-archive and prev-archive are both %s", clip(next.Href))
	case newest && from.is(next.Href):
		r.add("next-archive-open", at, "next-archive is the subscription document, which is still being filled")
	case newest:
		r.add("next-archive-open", at, "next-archive is %s, but the subscription document does not link there yet: this is its newest archive",
			clip(next.Href))
	case !from.is(next.Href):
		r.add("next-archive-not-back", at, "next-archive is %s, but the archive whose prev-archive led here is %s",
			clip(next.Href), clip(from.url))
	}
}

// currentOf checks the archive's current document.
func (c *Chain) currentOf(r *report) {
	current, at, ok := r.link(feedhistory.RelCurrent)
	if !ok || c.first.is(current.Href) {
		return
	}
	if c.current != "" && !same(c.current, current.Href) {
		r.add("current-differs", at, "current is %s, but %s in a newer archive", clip(current.Href), clip(c.current))
		return
	}
	c.current = current.Href
	r.add("current-not-subscription", at, "current is %s, but the subscription document is %s", clip(current.Href), clip(c.first.url))
}

// transport checks how the document was served.
func (c *Chain) transport(r *report, n *neighbour) {
	if response := r.doc.Response; !response.Received.IsZero() {
		if response.ETag == "" && response.LastModified == "" {
			c.unvalidated.add(n.url)
		}
		if response.Fresh.IsZero() {
			c.unfresh.add(n.url)
		}
	}
	if isSecure(n.url) != isSecure(c.first.url) && !c.mixed {
		c.mixed = true
		r.absent("mixed-security", "this document is at %s, but the feed is at %s", clip(n.url), clip(c.first.url))
	}
}

func isSecure(url string) bool { return strings.HasPrefix(strings.ToLower(url), "https:") }

// gap reports a document the walk could not retrieve.
func (c *Chain) gap(g *feedhistory.Gap) []Finding {
	c.gaps = true
	if _, within := errors.AsType[*feedhistory.ParseError](g.Err); within && g.From == g.URL {
		return nil // the document has been read, and has its own findings
	}
	c.detached = c.detached || g.Reason == feedhistory.ReasonDetached
	link := link{from: g.From, href: g.URL}
	if c.newer != nil && (g.From == c.newer.url || c.newer.older.href != "" && same(g.URL, c.newer.older.href)) {
		link = c.newer.older
	}
	link.from = cmp.Or(link.from, g.URL)
	if g.Document != nil {
		return c.add(g.Document, g.Err)
	}
	return []Finding{link.gap(g)}
}

// gap returns the finding for a link that does not lead to its document.
func (l link) gap(g *feedhistory.Gap) Finding {
	to := "the link " + strings.TrimPrefix(l.rel+" to ", " ") + clip(g.URL)
	switch g.Reason {
	case feedhistory.ReasonMalformed:
		if g.From == g.URL {
			return newFinding("older-link-unusable", g.URL, g.Err.Error())
		}
	case feedhistory.ReasonLoop:
		return l.finding("cycle", "%s leads back: %v", to, g.Err)
	case feedhistory.ReasonBarren:
		return l.finding("barren", "%s is not followed: %v", to, g.Err)
	case feedhistory.ReasonBudget, feedhistory.ReasonInterrupted:
		return l.finding("walk-cut-short", "%s was not followed: %v", to, g.Err)
	case feedhistory.ReasonDetached:
		return newFinding("not-the-beginning", g.URL, g.Err.Error())
	case feedhistory.ReasonContradiction:
		return newFinding("chain-forks", g.URL, g.Err.Error())
	case feedhistory.ReasonForeign:
		return l.finding("another-feed", "%s leads to another feed: %v", to, g.Err)
	case feedhistory.ReasonRefused:
		return l.finding("link-unsafe", "%s is not followed: %v", to, g.Err)
	case feedhistory.ReasonStatus, feedhistory.ReasonNetwork:
		return l.finding(statusCode(g.Err), "%s leads nowhere: %s", to, reasonText(g.Err))
	}
	f := failure(g.Err, g.URL)
	f.Message = strings.TrimSuffix(f.Message+"; linked from "+l.from, "; linked from ")
	return f
}

// statusCode distinguishes a refused document (5005#18) from a missing one.
func statusCode(err error) string {
	if e, ok := errors.AsType[*feedhistory.StatusError](err); ok {
		switch e.Status {
		case 401, 403, 410, 451:
			return "archive-refused"
		}
	}
	return "dead-link"
}

// Finish returns the findings about the whole chain.
func (c *Chain) Finish() []Finding {
	if c.first == nil {
		return nil
	}
	var out []Finding
	if last := c.lastNamed; last.href != "" && !c.gaps && c.newer.older.href == "" && !c.newer.is(last.href) {
		out = append(out, last.finding("last-not-last", "last is %s, but the series ends at %s", clip(last.href), clip(c.newer.url)))
	}
	if t := c.forwardless; t.n > 0 {
		message := "there is no next-archive, although " + c.followed + " follows"
		if t.n > 1 {
			message = fmt.Sprintf("%d archives (this is the newest) have no next-archive, although others follow", t.n)
		}
		out = append(out, newFinding("next-archive-missing", t.url, message))
	}
	if t := c.unvalidated; t.n > 0 {
		out = append(out, newFinding("validators-missing", t.url, t.text(c.documents)+" neither ETag nor Last-Modified"))
	}
	if t := c.unfresh; t.n > 0 {
		out = append(out, newFinding("cache-headers-missing", t.url, t.text(c.documents)+" neither Cache-Control nor Expires"))
	}
	if c.kind == feedhistory.Archived && c.documents > 1 && c.undated.n == c.documents {
		out = append(out, newFinding("edits-unnoticed", c.first.url,
			fmt.Sprintf("none of the %d documents says when it or an entry was updated", c.documents)))
	}
	if c.Profile == AtomPMH {
		out = append(out, c.pmh.finish(c)...)
	}
	if c.Digests != nil && !c.gaps {
		out = append(out, c.Digests.missing(c.first.url, c.archives)...)
	}
	return out
}
