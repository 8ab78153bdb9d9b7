package check

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/settings"
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
	if c.kind == feedhistory.KindPaged && c.lastNamed.href == "" {
		c.lastNamed = r.linkTo("last")
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
	if self, ok := doc.Links.Rel("self"); ok {
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
	to.line, to.column, to.quote = place(r.doc.Text(), at)
	return to
}

// older returns the link by which a walk continues.
func (r *report) older(kind feedhistory.Kind) link {
	if kind == feedhistory.KindPaged {
		return r.linkTo("next")
	}
	return r.linkTo("prev-archive")
}

// finding makes a finding at a link.
func (l link) finding(code, format string, args ...any) Finding {
	f := newFinding(code, l.from, fmt.Sprintf(format, args...))
	f.Line, f.Column, f.Quote = l.line, l.column, l.quote
	return f
}

// follower checks a document another one links to.
func (c *Chain) follower(r *report, n *neighbour) {
	from := c.newer
	if requested := r.doc.Response.Requested; requested != "" && !same(requested, n.url) {
		r.keep(from.older.at(n, "redirect-in-chain", "the link to %s is redirected to %s", clip(requested), clip(n.url)))
	}
	if n.id != "" && c.first.id != "" && n.id != c.first.id {
		r.add("feed-id-differs", r.out.head.id, "the feed's id is %s here, but %s in %s", clip(n.id), clip(c.first.id), c.first.url)
	}
	if c.kind == feedhistory.KindArchived {
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
	next, at, ok := r.link("next-archive")
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
	current, at, ok := r.link("current")
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
		if r.doc.Response.Header.Get("ETag")+r.doc.Response.Header.Get("Last-Modified") == "" {
			c.unvalidated.add(n.url)
		}
		if response.Fresh.IsZero() {
			c.unfresh.add(n.url)
		}
	}
	if isSecure(n.url) != isSecure(c.first.url) && !c.mixed { // whose meaning is undefined (5005#27)
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
	return []Finding{link.gap(g, c.Profile)}
}

// gap returns the finding for a link that does not lead to its document.
func (l link) gap(g *feedhistory.Gap, profile Profile) Finding {
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
		return l.finding(profile.statusCode(g.Err), "%s leads nowhere: %s", to, reasonText(g.Err))
	}
	f := failure(g.Err, g.URL)
	f.Message = strings.TrimSuffix(f.Message+"; linked from "+l.from, "; linked from ")
	return f
}

// statusCode distinguishes a refused document from a missing one. RFC 5005 permits to refuse
// an archive (5005#18), Atom-PMH does not (atom-pmh#6).
func (p Profile) statusCode(err error) string {
	e, ok := errors.AsType[*feedhistory.FetchError](err)
	switch {
	case !ok || !slices.Contains([]int{401, 403, 410, 451}, e.Status):
		return "dead-link"
	case p == AtomPMH:
		return "pmh-archive-refused"
	}
	return "archive-refused"
}

// Finish returns the findings about the whole chain.
func (c *Chain) Finish() []Finding {
	if c.first == nil {
		return nil
	}
	var l findingList
	if last := c.lastNamed; last.href != "" && !c.gaps && c.newer.older.href == "" && !c.newer.is(last.href) {
		l.keep(last.finding("last-not-last", "last is %s, but the series ends at %s", clip(last.href), clip(c.newer.url)))
	}
	switch t := c.forwardless; t.n {
	case 0:
	case 1:
		l.raise("next-archive-missing", t.url, "there is no next-archive, although %s follows", c.followed)
	default:
		l.raise("next-archive-missing", t.url, "%d archives (this is the newest) have no next-archive, although others follow", t.n)
	}
	l.tally("validators-missing", c.unvalidated, c.documents, "neither ETag nor Last-Modified")
	l.tally("cache-headers-missing", c.unfresh, c.documents, "neither Cache-Control nor Expires")
	if c.kind == feedhistory.KindArchived && c.documents > 1 && c.undated.n == c.documents {
		l.raise("edits-unnoticed", c.first.url, "none of the %d documents says when it or an entry was updated", c.documents)
	}
	if c.Profile == AtomPMH {
		c.pmh.finish(c, &l)
	}
	if c.Digests != nil && !c.gaps {
		c.Digests.missing(c.first.url, c.archives, &l)
	}
	return l.in("")
}

// Check checks every document of the feed at url, and yields the findings as the
// documents come. The error is the context's, or the reason the first document could
// not be retrieved; it ends the sequence. Every other failure is a finding. With the
// profile DataReplication, Check checks pages of entities, and requests each by HEAD and
// GET, or a snapshot, if url is that of its index; with ModifiedRange, it asks for ranges
// of the collection at url. A nil client means one with default settings.
func (c *Chain) Check(ctx context.Context, client *feedhistory.Client, url string) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		client, done := settings.Shared(client)
		defer done()
		switch c.Profile {
		case DataReplication:
			c.walkPages(ctx, client, url, yield)
			return
		case ModifiedRange:
			c.walkRanges(ctx, client, url, yield)
			return
		}
		w := walker{Chain: c, ctx: ctx, client: client}
		w.yield = func(found []Finding) bool {
			return !slices.ContainsFunc(found, func(f Finding) bool { return !yield(f, nil) })
		}
		if err := w.run(url); err != nil {
			yield(Finding{}, err)
		}
	}
}

// A walker checks one chain.
type walker struct {
	*Chain
	ctx    context.Context
	client *feedhistory.Client
	yield  func([]Finding) bool
	given  *feedhistory.Gap      // the feed does not begin with the first document
	head   *feedhistory.Document // the only document so far
}

func (w *walker) run(url string) error {
	if goOn, err := w.follow(url); !goOn || err != nil {
		return err
	}
	// A walk does not look for archives of a complete feed, because RFC 5005
	// has none; but Atom-PMH mentions them (atom-pmh#33).
	if older := w.completeOlder(); older != "" {
		if goOn, err := w.follow(older); !goOn || err != nil {
			return err
		}
	}
	if w.given != nil && !w.yield(w.begun()) {
		return nil
	}
	w.yield(w.Finish())
	return nil
}

// follow walks from a document on. It reports whether findings are still
// wanted.
func (w *walker) follow(url string) (goOn bool, err error) {
	for r, err := range w.client.Walk(w.ctx, url) {
		var found []Finding
		switch {
		case w.ctx.Err() != nil:
			return false, w.ctx.Err()
		case err == nil:
			found = w.read(r)
		default:
			f := failure(err, url)
			if f.Code == codeUnavailable {
				return false, err
			}
			found = []Finding{f}
		}
		if !w.yield(found) {
			return false, nil
		}
	}
	return true, nil
}

// read checks a Reading.
func (w *walker) read(r *feedhistory.Reading) (found []Finding) {
	if doc := r.Document; doc != nil {
		if w.head = nil; w.documents == 0 {
			w.head = doc
		}
		found = w.Add(doc)
	}
	for _, gap := range r.Gaps {
		if gap.Reason == feedhistory.ReasonDetached {
			w.given, w.detached = gap, true
			continue
		}
		found = append(found, w.gap(gap)...)
	}
	return found
}

func (w *walker) completeOlder() string {
	if w.Profile != AtomPMH || w.head == nil || !w.head.Complete {
		return ""
	}
	older, _ := w.head.Links.Rel("prev-archive")
	return older.Href
}

// begun reports the nature of the first document, if the feed does not begin with it.
// If it has only a next-archive, it may be a subscription document whose publisher
// mistook the direction.
func (w *walker) begun() []Finding {
	gap := []Finding{link{}.gap(w.given, w.Profile)}
	if w.head == nil || w.head.Archive {
		return gap
	}
	r := newReport(w.head, w.Profile)
	next := r.linkTo("next-archive")
	if next.href == "" || r.has("prev-archive") {
		return gap
	}
	doc, err := w.client.Get(w.ctx, next.href)
	if err != nil {
		return gap
	}
	n, here := newNeighbour(doc), w.first
	if n.newest.IsZero() || here.oldest.IsZero() || !n.newest.Before(here.oldest) {
		return gap
	}
	return []Finding{next.finding("next-archive-older",
		"next-archive leads to %s, whose entries end at %s, but those here are from %s on",
		clip(n.url), stamp(n.newest), stamp(here.oldest))}
}

// An entryCopy remembers an entry, to recognise its copies.
type entryCopy struct {
	updated  int64 // in nanoseconds; noTime if it has none
	document int64 // when its document was updated, in the same form
	content  uint64
	links    uint64 // a digest of the targets of its alternate links
	number   int32  // the number of the document
	deletion bool   // for Atom-PMH
	first    bool   // the entry, or a copy of it, is in the first document
}

const noTime = -1 << 63

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixNano()
}

// entries compares the document's entries with those of earlier documents.
func (c *Chain) entries(r *report) {
	if c.kind == feedhistory.KindPlain && c.Profile != AtomPMH {
		return // the only document has been checked already
	}
	at := r.doc.Updated
	if at.IsZero() {
		at = r.doc.LastModified
	}
	for i, e := range r.doc.Entries {
		if e.WeakID {
			continue
		}
		now := entryCopy{
			updated: nanoseconds(e.Updated), document: nanoseconds(at), number: int32(c.documents),
			content: c.content(r.entryText(i)), links: c.alternates(e),
		}
		now.deletion = r.entry(i).content == emptyContent
		key := maphash.String(c.seed, e.ID)
		old, known := c.copies[key]
		if known && (old.number != now.number || c.Profile == AtomPMH) {
			c.compare(r, i, old, now)
		}
		now.first = c.documents == 1 || old.first
		if !known || c.Profile != AtomPMH && old.number != now.number || now.updated > old.updated {
			c.copies[key] = now
		}
	}
}

// inFirst reports whether the first document has a record's entry.
func (c *Chain) inFirst(e *feedhistory.Entry) bool {
	old, ok := c.copies[maphash.String(c.seed, e.ID)]
	return ok && old.first
}

// entryText returns the text of an entry in the document.
func (r *report) entryText(i int) string {
	place, text := r.entry(i), r.doc.Text()
	if place.at < 0 || place.end > len(text) || place.at > place.end {
		return ""
	}
	return text[place.at:place.end]
}

// content returns a digest of an entry. Indentation does not count.
func (c *Chain) content(text string) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for word := range strings.FieldsSeq(text) {
		_, _ = h.WriteString(word)
		_ = h.WriteByte(' ')
	}
	return h.Sum64()
}

// alternates returns a digest of the targets of an entry's alternate links, in
// any order.
func (c *Chain) alternates(e *feedhistory.Entry) (sum uint64) {
	for _, link := range e.Links {
		if link.Rel == "alternate" {
			sum += maphash.String(c.seed, link.Href)
		}
	}
	return sum
}

// compare compares two copies of an entry; the second one is in the older
// document.
func (c *Chain) compare(r *report, i int, old, now entryCopy) {
	e, at := r.doc.Entries[i], r.entry(i).id
	switch {
	case c.Profile == AtomPMH:
		c.pmh.compare(r, i, old, now)
	case c.kind == feedhistory.KindPaged && old.updated == now.updated:
		r.add("page-overlap", at, "entry %s was on an earlier page too", clip(e.ID))
	case c.kind == feedhistory.KindArchived && old.updated == now.updated && old.document == now.document && old.content != now.content:
		r.add("ambiguous-duplicate", at,
			"entry %s differs from a newer document's, but it and the documents have the same times, %s and %s",
			clip(e.ID), stamp(e.Updated), stamp(r.doc.Updated))
	}
}

// Digests remember the archives of feeds from one run to the next: the set of entries,
// which should not change (5005#9), with the ids, update times and content of each
// entry. They ignore the archive's own links, which may change. The zero value is
// empty.
type Digests struct {
	feeds   map[string]map[string]digest  // by the URLs of the feed and of the archive
	entries map[string]map[string]entries // by the URLs of the feed and of the archive
}

// The entries of an archive by id: the update time, and a digest of the words.
type entries map[string]string

// A digest remembers an archive.
type digest struct {
	Entries int    `json:"entries"`
	Digest  string `json:"digest"`

	// the links, only for a page of entities
	Prev string `json:"prev,omitempty"`
	Next string `json:"next,omitempty"`
}

// ReadDigests reads a file written by Write. If the file does not exist, the digests
// are empty.
func ReadDigests(file string) (*Digests, error) {
	d := new(Digests)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("%s: not a file of digests: %w", file, err)
	}
	return d, nil
}

// Write writes the digests to a file, either completely or not at all. The temporary file of a
// killed process is replaced by the next one's.
func (d *Digests) Write(file string) (err error) {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".tmp")
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temp, file)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// A digestFile is the content of the file: an object, which can be extended.
type digestFile struct {
	Feeds   map[string]map[string]digest  `json:"feeds"`
	Entries map[string]map[string]entries `json:"entries,omitempty"`
}

// MarshalJSON writes the digests.
func (d *Digests) MarshalJSON() ([]byte, error) { return json.Marshal(digestFile{d.feeds, d.entries}) }

// UnmarshalJSON reads them.
func (d *Digests) UnmarshalJSON(data []byte) error {
	var f digestFile
	err := json.Unmarshal(data, &f)
	d.feeds, d.entries = f.Feeds, f.Entries
	return err
}

func digestOf(doc *feedhistory.Document) digest {
	var lines []string
	for _, e := range doc.Entries {
		lines = append(lines, e.ID+"\n"+e.Updated.UTC().Format(time.RFC3339Nano)+"\n")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return digest{Entries: len(doc.Entries), Digest: hex.EncodeToString(sum[:])}
}

// set makes the maps that an element of theirs needs.
func set[V any](m *map[string]map[string]V, feed, url string, value V) {
	if *m == nil {
		*m = map[string]map[string]V{}
	}
	if (*m)[feed] == nil {
		(*m)[feed] = map[string]V{}
	}
	(*m)[feed][url] = value
}

// missing reports the archives no longer in a feed's chain, and forgets them.
func (d *Digests) missing(feed string, seen map[string]bool, l *findingList) {
	var out []Finding
	archives, at := d.feeds[feed], map[digest]string{}
	for url := range seen {
		at[archives[url]] = url
	}
	for url, old := range archives {
		if seen[url] {
			continue
		}
		if now, ok := at[old]; ok {
			out = append(out, newFinding("archive-moved", now, "at an earlier run this archive was "+clip(url)))
		} else {
			out = append(out, newFinding("archive-gone", url, "the chain no longer has this archive of an earlier run"))
		}
		delete(archives, url)
		delete(d.entries[feed], url)
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Message+a.URL, b.Message+b.URL) })
	for _, f := range out {
		l.keep(f)
	}
}

// entriesOf returns the digests of an archive's entries. It must not refer to the
// document's text, which it outlives. Indentation does not count.
func (r *report) entriesOf() entries {
	all := make(entries, len(r.doc.Entries))
	for i, e := range r.doc.Entries {
		if e.WeakID {
			continue // its content may be made from the document's text
		}
		h := sha256.New()
		for word := range strings.FieldsSeq(r.entryText(i)) {
			_, _ = h.Write(append([]byte(word), ' '))
		}
		said := e.Updated.UTC().Format(time.RFC3339Nano) + " " + hex.EncodeToString(h.Sum(nil)[:8])
		all[strings.Clone(e.ID)] = said
	}
	return all
}

// remember compares an archive with the earlier run, and remembers it.
func (c *Chain) remember(r *report) {
	d, feed, url := c.Digests, c.first.url, strings.Clone(r.doc.URL)
	now, has := digestOf(r.doc), r.entriesOf()
	old, known := d.feeds[feed][url]
	had, detailed := d.entries[feed][url]
	if known && old != now {
		what := "they were different, or had different update times"
		if old.Entries != now.Entries {
			what = fmt.Sprintf("there were %d", old.Entries)
		}
		if detailed {
			what += differences(had, has)
		}
		r.absent("archive-changed", "the number of entries is %d; at an earlier run, %s", now.Entries, what)
	}
	if detailed {
		c.edited(r, had, has)
	}
	set(&d.feeds, feed, url, now)
	set(&d.entries, feed, url, has)
}

// differences names the entries added, removed, or with a different time.
func differences(had, has entries) string {
	var came, gone, changed []string
	for id, said := range has {
		switch before, ok := had[id]; {
		case !ok:
			came = append(came, id)
		case timeIn(before) != timeIn(said):
			changed = append(changed, id)
		}
	}
	for id := range had {
		if _, ok := has[id]; !ok {
			gone = append(gone, id)
		}
	}
	text := ""
	for _, part := range []struct {
		ids  []string
		what string
	}{{came, "new"}, {gone, "gone"}, {changed, "with a different time"}} {
		if len(part.ids) > 0 {
			text += "; " + part.what + ": " + some(part.ids)
		}
	}
	return text
}

func timeIn(said string) string {
	t, _, _ := strings.Cut(said, " ")
	return t
}

// some names the first few of many ids.
func some(ids []string) string {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	const most = 3
	text := make([]string, 0, most)
	for _, id := range ids[:min(most, len(ids))] {
		text = append(text, clip(id))
	}
	if len(ids) > most {
		return strings.Join(text, ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
	}
	return strings.Join(text, ", ")
}

// edited reports entries changed since an earlier run without a new time. Readers do
// not read a processed archive again, so they learn of the change only if a newer
// document has the entry with a newer time (5005#17).
func (c *Chain) edited(r *report, had, has entries) {
	var ids []string
	for _, e := range r.doc.Entries {
		before, ok := had[e.ID]
		if now := has[e.ID]; !ok || before == now || timeIn(before) != timeIn(now) {
			continue
		}
		if newer, ok := c.copies[maphash.String(c.seed, e.ID)]; ok && newer.updated > nanoseconds(e.Updated) {
			continue
		}
		ids = append(ids, e.ID)
	}
	if len(ids) > 0 {
		r.absent("archive-edited", "changed since an earlier run without a new update time: %s", some(ids))
	}
}

// isTimed reports whether a document says when anything in it was updated.
func (r *report) isTimed() bool {
	if !r.doc.Updated.IsZero() {
		return true
	}
	return slices.ContainsFunc(r.doc.Entries, func(e *feedhistory.Entry) bool { return !e.Updated.IsZero() })
}
