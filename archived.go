package feedhistory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Archived feeds, RFC 5005 §4: a subscription document with the latest
// entries, and archive documents that do not change, each linked from the
// next newer one by prev-archive.

// isArchived reports whether the document is a subscription document or an archive,
// by its links (5005#11) or by fh:archive (5005#14).
func (d *Document) isArchived() bool {
	return d.Archive || d.says(relPrevArchive, relNextArchive)
}

// Where a feed begins: a walk may be given any document of a feed. An archive links
// to the subscription document with current (5005#13), a page to the first page with
// first.

// isSubscription reports whether a feed may begin at the document: it shows no sign
// of being an archive or a later page.
func (d *Document) isSubscription() bool {
	return d.Kind() == KindArchived && !d.Archive && !d.says(relNextArchive) ||
		d.Kind() == KindPaged && (!d.says(relPrevious) || d.isCurrent()) ||
		d.Kind() == KindComplete || d.Kind() == KindPlain
}

// isCurrent reports whether the document calls itself the current one: its previous page is then
// for entries to come.
func (d *Document) isCurrent() bool {
	link, ok := d.Links.Rel(relCurrent)
	url := iri.Address(link.Href)
	return ok && (url == d.URL || url == d.Response.Requested)
}

// beginning returns the link to the document where the feed begins.
func (d *Document) beginning() (Link, bool) {
	switch d.Kind() {
	case KindArchived, KindPlain:
		return d.Links.Rel(relCurrent)
	case KindPaged:
		return d.Links.Rel(relFirst)
	}
	return Link{}, false
}

// beginsElsewhere reports whether the document links to another one as the beginning.
func (d *Document) beginsElsewhere() bool {
	link, ok := d.beginning()
	return ok && iri.Address(link.Href) != d.URL
}

// mostSteps is the maximum number of documents to read to find where a feed begins.
const mostSteps = 5

// A finder is the phase of a walk finding where the feed of a given document begins.
type finder struct {
	*session
	held []*fetchResult // the documents read on the way, until the chain reaches them
}

// find finds the document where the feed of a given document begins.
//
// Links to the beginning may be stale. If they are dead, the feed begins at the last
// document without a mark of an archive or a later page; only if there is none, the
// newer part is a gap.
func (f *finder) find(given *fetchResult) *fetchResult {
	path, gap := f.path(given)
	if !f.goesOn() {
		return given
	}
	start, at := path[len(path)-1], len(path)-1
	if gap != nil {
		for i, l := range path {
			if l.doc.isSubscription() {
				start, at = l, i
			}
		}
		f.doubt(start, gap)
	}
	for i, l := range path {
		if i != at {
			f.held = append(f.held, l)
		}
	}
	if start != given {
		given.again = true
		f.log("beginning where the feed does", "given", iri.Shown(given.url), "url", iri.Shown(start.url))
	}
	return start
}

// path follows the links from the given document to the one where the feed begins. The
// gap says why the path does not end there.
func (f *finder) path(given *fetchResult) (path []*fetchResult, gap *Gap) {
	for l := given; ; {
		path = append(path, l)
		if l.unchanged { // it was the beginning in an earlier walk
			return path, nil
		}
		url, gap := f.elsewhere(l)
		if url == "" {
			return path, gap
		}
		next, gap := f.step(path, url)
		if next == nil {
			return path, gap
		}
		if isTwin(l, next) {
			path = path[:len(path)-1]
		}
		l = next
	}
}

// step requests the document named as the beginning by the last one of a path. It
// returns nil without a gap if both are the same under different names.
func (f *finder) step(path []*fetchResult, url string) (next *fetchResult, gap *Gap) {
	last := path[len(path)-1]
	detached := func(why string) *Gap {
		return &Gap{URL: url, From: last.doc.URL, Reason: ReasonDetached, Err: errors.New(why)}
	}
	passes := func(url string) bool {
		for _, l := range path {
			if url == l.url || url == l.doc.URL {
				return true
			}
		}
		return false
	}
	switch {
	case passes(url):
		return nil, detached("it says that the feed begins at the document that led here (5005#13)")
	case len(path) == mostSteps:
		return nil, detached("one document after another says that the feed begins elsewhere (5005#13)")
	}
	if gap := f.forbids(url); gap != nil {
		gap.From = last.doc.URL
		return nil, gap
	}
	next = f.load(url)
	switch {
	case next.unchanged:
		return next, nil
	case next.err != nil:
		f.loops.Forget(url)
		return nil, next.gap(last.doc.URL)
	case next.doc.URL == last.url, next.doc.URL == last.doc.URL, isTwin(last, next) && !isElsewhere(last.doc):
		last.begins = url
		return nil, nil
	case passes(next.doc.URL):
		return nil, detached("it redirects to the document that led here (5005#13)")
	}
	if gap := f.strayed(next, last.doc.URL); gap != nil {
		return nil, gap
	}
	return next, nil
}

// elsewhere returns the URL where a document says its feed begins; "" if it begins
// here, or did so in an earlier walk. The gap is for a document that is not the
// beginning, and names none.
func (f *finder) elsewhere(l *fetchResult) (url string, gap *Gap) {
	link, ok := l.doc.beginning()
	url = iri.Address(link.Href)
	switch {
	case !ok && (l.doc.isSubscription() || f.isNamedBack(l)):
		return "", nil
	case !ok:
		return "", &Gap{URL: l.url, Reason: ReasonDetached,
			Err: errors.New("the feed does not begin here, and no link says where it does (5005#13)")}
	case url == l.url, url == l.doc.URL:
		return "", nil
	case f.known(l.url).Begins == url:
		l.begins = url
		return "", nil
	}
	return url, nil
}

// isNamedBack reports whether the archive that a document leads to names the document as the
// feed's beginning: the mark of an archive it has is a mistake. The archive is held until the
// chain reaches it.
func (f *finder) isNamedBack(l *fetchResult) bool {
	if f.known(l.url).Begins == l.doc.URL {
		l.begins = l.doc.URL
		return true
	}
	older := l.doc.Links.targets(relPrevArchive)
	if len(older) == 0 || f.processed(older[0]) || f.forbids(older[0]) != nil {
		return false
	}
	archive := f.load(older[0])
	if archive.doc == nil || archive.err != nil || f.strayed(archive, "") != nil {
		f.loops.Forget(older[0])
		return false
	}
	archive.from = l.doc.URL
	f.held = append(f.held, archive)
	current, _ := archive.doc.Links.Rel(relCurrent)
	if url := iri.Address(current.Href); url != l.url && url != l.doc.URL {
		return false
	}
	l.begins = l.doc.URL
	return true
}

// doubt reports that the walk may not begin where the feed does: by a gap, or by a note
// if the document has no mark of an archive or a later page, because links to the
// beginning become stale.
func (f *finder) doubt(start *fetchResult, gap *Gap) {
	d := start.doc
	start.again = true
	if !d.isSubscription() || gap.Reason == ReasonBudget {
		f.gap(gap)
		return
	}
	if isLasting(gap) {
		link, _ := d.beginning()
		start.begins, start.again = iri.Address(link.Href), false
	}
	f.log("the feed may begin elsewhere", "url", iri.Shown(start.url), "named", iri.Shown(gap.URL), "error", gap.Err)
	d.Notes = append(d.Notes, Note{Code: "beginning-not-there",
		Message: fmt.Sprintf("a link says that the feed begins at %s, but it does not: %v", iri.Shown(gap.URL), gap.Err)})
}

// isLasting reports whether a later walk would find the same.
func isLasting(gap *Gap) bool {
	switch gap.Reason {
	case ReasonDetached, ReasonRefused, ReasonNotFeed, ReasonLoop:
		return true
	case ReasonNetwork:
		dns, ok := errors.AsType[*net.DNSError](gap.Err)
		return ok && dns.IsNotFound
	case ReasonStatus:
		return isStatus(gap.Err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone,
			http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnavailableForLegalReasons, http.StatusBadRequest)
	}
	return false
}

// isTwin reports whether a document is the same as the one it names as the beginning:
// the bytes are equal, or the entries and self links are. A document with a mark of an
// archive has no twin.
func isTwin(l, beginning *fetchResult) bool {
	if beginning.doc == nil || !l.doc.isSubscription() {
		return false
	}
	self, ok := l.doc.Links.Rel(relSelf)
	other, named := beginning.doc.Links.Rel(relSelf)
	return l.text == beginning.text ||
		ok && named && self.Href == other.Href && chain.EqualFacts(l.doc.facts(), beginning.doc.facts())
}

// isElsewhere reports whether a document names another one as the current one. It may
// then be an archive of which the subscription document is still a copy.
func isElsewhere(d *Document) bool {
	self, ok := d.Links.Rel(relSelf)
	link, _ := d.beginning()
	return ok && d.Kind() != KindPaged && iri.Address(self.Href) != iri.Address(link.Href)
}

// The documents of an archived feed: rebuilt chains, and what belongs to another feed.

// moved reads the subscription document again if an archive is not found, because the
// publisher may have rebuilt the chain. It returns nil if not.
func (a *along) moved(missing *Gap) *fetchResult {
	if a.reread || a.kind != KindArchived || !errors.Is(missing.Err, fs.ErrNotExist) {
		return nil
	}
	a.reread = true
	if a.meter.spent(0) {
		return nil
	}
	a.log("reading the subscription document again", "url", iri.Shown(a.feed.start), "missing", iri.Shown(missing.URL))
	head := a.load(a.feed.start)
	if head.doc == nil || head.err != nil || head.doc.Kind() != KindArchived || a.strayed(head, "") != nil {
		return nil
	}
	older := head.doc.Links.targets(relPrevArchive)
	if len(older) == 0 || a.loops.HasSeen(older[0]) || a.processed(older[0]) {
		return nil
	}
	head.reread = true
	return head
}

// isForeign returns a gap if a document to which links of the feed lead is one of another feed.
// One that leads back is of this feed: archives may have ids and titles of their own.
func (s *session) isForeign(l *fetchResult, from string) *Gap {
	why := ""
	switch d := l.doc; {
	case d == nil || s.isOwnID(d.ID) || s.leadsBack(d) || s.shows(d):
	case l.err == nil && s.feedSigns().differ(d):
		why = "neither its title, its link nor its entries are this feed's"
	case s.kind != KindArchived || d.Archive || d.says(relNextArchive):
	case d.ID != "" && s.feed.id != "":
		why = s.otherID(d)
	case l.err == nil && len(d.Entries)+len(d.Deleted) == 0 && d.ID == "" && d.Kind() == KindPlain && d.Title != s.feedSigns().head.Title:
		why = fmt.Sprintf("its title is %s, and it has neither entries nor links nor a mark of an archive", clip(d.Title))
	}
	if why == "" || s.past.Has != nil && s.past.Has(l.doc) {
		return nil
	}
	return s.foreigner(l.doc, from, why)
}

// foreigner returns the gap for a document of another feed.
func (s *session) foreigner(d *Document, from, why string) *Gap {
	return &Gap{URL: d.Response.Requested, From: from, Reason: ReasonForeign, Err: errors.New("it is a document of another feed: " + why)}
}

// isOwnID reports whether an id is one of the feed's.
func (s *session) isOwnID(id string) bool {
	return id != "" && (id == s.feed.id || slices.Contains(s.past.IDs, id))
}

// otherID says that a document has another id.
func (s *session) otherID(d *Document) string {
	return fmt.Sprintf("its id is %s, not %s", clip(d.ID), clip(s.feed.id))
}

// shows reports whether the subscription document has an entry of a document.
func (s *session) shows(d *Document) bool {
	return s.feed.shown != nil && slices.ContainsFunc(d.Entries, func(e *Entry) bool { return s.feed.shown.Has(e.ID) })
}

// leadsBack reports whether a document names another one of the walk as the feed's beginning, or
// as its newer neighbour.
func (s *session) leadsBack(d *Document) bool {
	return slices.ContainsFunc(d.Links, func(l Link) bool {
		url := iri.Address(l.Href)
		switch l.Rel {
		case relCurrent, relNextArchive, relFirst, relPrevious:
			return url != d.URL && url != d.Response.Requested && s.loops.HasSeen(url)
		}
		return false
	})
}

// feedSigns returns the signs of the feed, from its subscription document.
func (s *session) feedSigns() *signs {
	if s.feed.signs == nil {
		var head *Document
		var entries []string
		if s.past.Shown != nil {
			head, entries = s.past.Shown()
		}
		s.feed.signs = newSigns(cmp.Or(head, new(Document)), slices.Values(entries))
	}
	return s.feed.signs
}

// The signs of a feed tell its documents from those of another one.
type signs struct {
	head  Document        // the head section of the subscription document
	forms map[string]bool // the forms of the ids of its entries
}

// newSigns returns the signs of a feed from its subscription document and the IDs of its entries.
func newSigns(d *Document, entries iter.Seq[string]) *signs {
	s := &signs{d.headOnly(), map[string]bool{}}
	for id := range entries {
		if form := formOf(id); !s.forms[form] {
			s.forms[strings.Clone(form)] = true
		}
	}
	return s
}

// differ reports whether a document has no sign of the feed: neither title, link, generator nor the
// form of the ids of its entries. These may be alike by chance: they do not count if both have an
// atom:id, and a link to a site of their own.
func (s *signs) differ(d *Document) bool {
	if s.head.Title == "" && s.head.ID == "" || s.head.Title == d.Title {
		return false
	}
	own, isOwn := s.head.Links.Rel(relAlternate)
	other, isOther := d.Links.Rel(relAlternate)
	switch {
	case isOwn && isOther && iri.AreSameOrigin(own.Href, other.Href), !isOther && len(d.Entries) == 0:
		return false
	case d.Generator.Name != "" && d.Generator.Name == s.head.Generator.Name:
		return false
	case isOwn && isOther && d.ID != "" && s.head.ID != "" && d.Format == s.head.Format:
		return true
	}
	return !slices.ContainsFunc(d.Entries, func(e *Entry) bool { return s.forms[formOf(e.ID)] })
}

// isStranger reports whether a document is of another feed than the one with a subscription
// document, these ids and these entries: with an atom:id, by it.
func isStranger(d, subscription *Document, ids, entries []string) bool {
	if d.ID != "" && (subscription.ID != "" || len(ids) > 0) {
		return d.ID != subscription.ID && !slices.Contains(ids, d.ID)
	}
	return newSigns(subscription, slices.Values(entries)).differ(d)
}

// formOf returns the form of an id: scheme and host of a URL, the authority of a tag, the
// namespace of a URN, else the letters it begins with.
func formOf(id string) string {
	if u := iri.Split(id); u.Scheme != "" && u.Authority != "" {
		return id[:len(u.Scheme)+len("://")+len(u.Authority)]
	}
	if authority, _, ok := strings.Cut(id, ","); ok && strings.HasPrefix(id, "tag:") {
		return authority
	}
	if space, _, ok := strings.Cut(strings.TrimPrefix(id, "urn:"), ":"); ok && strings.HasPrefix(id, "urn:") {
		return id[:len("urn:")+len(space)]
	}
	i := strings.IndexFunc(id, func(r rune) bool { return r < 'A' || 'Z' < r && r < 'a' || r > 'z' })
	if i < 0 {
		return ""
	}
	return id[:i+1]
}

// The documents the caller of a walk has stored, perhaps during the walk.

// processed reports whether the caller had processed a document before this walk. The
// caller's answer no longer counts for a URL the walk has read.
func (s *session) processed(url string) bool {
	url = iri.Address(url)
	return s.past.Processed != nil && !s.loops.HasSeen(url) && s.past.Processed(url)
}

// hasProcessed reports whether the caller had processed the older document of another one, in
// one of its formats.
func (a *along) hasProcessed(l *fetchResult, older []string) bool {
	return a.processed(older[0]) || len(older) > 1 && l.areFormats(older[0], older[1]) && a.processed(older[1])
}

// wasProcessed reports whether an archive about to be yielded had been processed,
// perhaps under the URL where it was found. Its self link proves nothing: moved archives may
// still name the old address, and link to others than before.
func (a *along) wasProcessed(l *fetchResult) bool {
	return l.doc != nil && l.url != a.feed.start && a.past.Processed != nil && (a.past.Processed(l.url) || a.processed(l.doc.URL))
}
