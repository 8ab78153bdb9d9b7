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
	return d.Kind() == Archived && !d.Archive && !d.says(relNextArchive) ||
		d.Kind() == Paged && (!d.says(relPrevious) || d.isCurrent()) ||
		d.Kind() == Complete || d.Kind() == Plain
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
	case Archived, Plain:
		return d.Links.Rel(relCurrent)
	case Paged:
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

// beginning finds the document where the feed of a given document begins. It holds
// the other documents on the way until the chain reaches them.
//
// Links to the beginning may be stale. If they are dead, the feed begins at the last
// document without a mark of an archive or a later page; only if there is none, the
// newer part is a gap.
func (w *walk) beginning(given *fetchResult) *fetchResult {
	path, gap := w.path(given)
	if !w.goesOn() {
		return given
	}
	start, at := path[len(path)-1], len(path)-1
	if gap != nil {
		for i, l := range path {
			if l.doc.isSubscription() {
				start, at = l, i
			}
		}
		w.doubt(start, gap)
	}
	for i, l := range path {
		if i != at {
			w.held = append(w.held, l)
		}
	}
	if start != given {
		given.again = true
		w.log("beginning where the feed does", "given", iri.Shown(given.url), "url", iri.Shown(start.url))
	}
	return start
}

// path follows the links from the given document to the one where the feed begins. The
// gap says why the path does not end there.
func (w *walk) path(given *fetchResult) (path []*fetchResult, gap *Gap) {
	for l := given; ; {
		path = append(path, l)
		if l.unchanged { // it was the beginning in an earlier walk
			return path, nil
		}
		url, gap := w.elsewhere(l)
		if url == "" {
			return path, gap
		}
		next, gap := w.step(path, url)
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
func (w *walk) step(path []*fetchResult, url string) (next *fetchResult, gap *Gap) {
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
	if gap := w.forbids(url); gap != nil {
		gap.From = last.doc.URL
		return nil, gap
	}
	next = w.load(url)
	switch {
	case next.unchanged:
		return next, nil
	case next.err != nil:
		w.loops.Forget(url)
		return nil, w.gapOf(next, last.doc.URL)
	case next.doc.URL == last.url, next.doc.URL == last.doc.URL, isTwin(last, next) && !isElsewhere(last.doc):
		last.begins = url
		return nil, nil
	case passes(next.doc.URL):
		return nil, detached("it redirects to the document that led here (5005#13)")
	}
	if gap := w.strayed(next, last.doc.URL); gap != nil {
		return nil, gap
	}
	return next, nil
}

// elsewhere returns the URL where a document says its feed begins; "" if it begins
// here, or did so in an earlier walk. The gap is for a document that is not the
// beginning, and names none.
func (w *walk) elsewhere(l *fetchResult) (url string, gap *Gap) {
	link, ok := l.doc.beginning()
	url = iri.Address(link.Href)
	switch {
	case !ok && (l.doc.isSubscription() || w.isNamedBack(l)):
		return "", nil
	case !ok:
		return "", &Gap{URL: l.url, Reason: ReasonDetached,
			Err: errors.New("the feed does not begin here, and no link says where it does (5005#13)")}
	case url == l.url, url == l.doc.URL:
		return "", nil
	case w.known(l.url).Begins == url:
		l.begins = url
		return "", nil
	}
	return url, nil
}

// isNamedBack reports whether the archive that a document leads to names the document as the
// feed's beginning: the mark of an archive it has is a mistake. The archive is held until the
// chain reaches it.
func (w *walk) isNamedBack(l *fetchResult) bool {
	if w.known(l.url).Begins == l.doc.URL {
		l.begins = l.doc.URL
		return true
	}
	older := l.doc.Links.targets(relPrevArchive)
	if len(older) == 0 || w.processed(older[0]) || w.forbids(older[0]) != nil {
		return false
	}
	archive := w.load(older[0])
	if archive.doc == nil || archive.err != nil || w.strayed(archive, "") != nil {
		w.loops.Forget(older[0])
		return false
	}
	archive.from = l.doc.URL
	w.held = append(w.held, archive)
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
func (w *walk) doubt(start *fetchResult, gap *Gap) {
	d := start.doc
	start.again = true
	if !d.isSubscription() || gap.Reason == ReasonBudget {
		w.gap(gap)
		return
	}
	if isLasting(gap) {
		link, _ := d.beginning()
		start.begins, start.again = iri.Address(link.Href), false
	}
	w.log("the feed may begin elsewhere", "url", iri.Shown(start.url), "named", iri.Shown(gap.URL), "error", gap.Err)
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
	return ok && d.Kind() != Paged && iri.Address(self.Href) != iri.Address(link.Href)
}

// unreached continues with a document read to find the beginning, but not reached by
// the chain from there. It may belong to another feed, because links to the beginning
// become stale.
func (w *walk) unreached(l *fetchResult) {
	proven := (w.feed == Complete || w.feed == Archived) && w.gaps == 0 && !w.partly
	if proven && l.doc.ID != "" && w.id != "" && l.doc.ID != w.id {
		w.gap(w.foreigner(l.doc, "", w.otherID(l.doc)))
		return
	}
	proven = proven && w.loops.IsNew(l.doc.facts())
	w.begin(l.kind())
	w.follow(l)
	if proven && w.gaps == 0 {
		w.gap(&Gap{URL: l.url, From: l.url, Reason: ReasonDetached, Err: fmt.Errorf("the feed that it names as its own, at %s, does not lead to it", iri.Shown(w.start))})
	}
}

// The documents of an archived feed: rebuilt chains, and what belongs to another feed.

// moved reads the subscription document again if an archive is not found, because the
// publisher may have rebuilt the chain. It returns nil if not.
func (w *walk) moved(missing *Gap) *fetchResult {
	if w.reread || w.kind != Archived || !errors.Is(missing.Err, fs.ErrNotExist) {
		return nil
	}
	w.reread = true
	if w.spent(0) {
		return nil
	}
	w.log("reading the subscription document again", "url", iri.Shown(w.start), "missing", iri.Shown(missing.URL))
	head := w.load(w.start)
	if head.doc == nil || head.err != nil || head.doc.Kind() != Archived || w.strayed(head, "") != nil {
		return nil
	}
	older := head.doc.Links.targets(relPrevArchive)
	if len(older) == 0 || w.loops.HasSeen(older[0]) || w.processed(older[0]) {
		return nil
	}
	head.reread = true
	return head
}

// isForeign returns a gap if a document to which links of the feed lead is one of another feed.
// One that leads back is of this feed: archives may have ids and titles of their own.
func (w *walk) isForeign(l *fetchResult, from string) *Gap {
	why := ""
	switch d := l.doc; {
	case d == nil || w.isOwnID(d.ID) || w.leadsBack(d) || w.shows(d):
	case l.err == nil && w.feedSigns().differ(d):
		why = "neither its title, its link nor its entries are this feed's"
	case w.kind != Archived || d.Archive || d.says(relNextArchive):
	case d.ID != "" && w.id != "":
		why = w.otherID(d)
	case l.err == nil && len(d.Entries)+len(d.Deleted) == 0 && d.ID == "" && d.Kind() == Plain && d.Title != w.feedSigns().head.Title:
		why = fmt.Sprintf("its title is %s, and it has neither entries nor links nor a mark of an archive", clip(d.Title))
	}
	if why == "" || w.past.Has != nil && w.past.Has(l.doc) {
		return nil
	}
	return w.foreigner(l.doc, from, why)
}

// foreigner returns the gap for a document of another feed.
func (w *walk) foreigner(d *Document, from, why string) *Gap {
	return &Gap{URL: d.Response.Requested, From: from, Reason: ReasonForeign, Err: errors.New("it is a document of another feed: " + why)}
}

// isOwnID reports whether an id is one of the feed's.
func (w *walk) isOwnID(id string) bool {
	return id != "" && (id == w.id || slices.Contains(w.past.IDs, id))
}

// otherID says that a document has another id.
func (w *walk) otherID(d *Document) string {
	return fmt.Sprintf("its id is %s, not %s", clip(d.ID), clip(w.id))
}

// shows reports whether the subscription document has an entry of a document.
func (w *walk) shows(d *Document) bool {
	return w.shown != nil && slices.ContainsFunc(d.Entries, func(e *Entry) bool { return w.shown.Has(e.ID) })
}

// leadsBack reports whether a document names another one of the walk as the feed's beginning, or
// as its newer neighbour.
func (w *walk) leadsBack(d *Document) bool {
	return slices.ContainsFunc(d.Links, func(l Link) bool {
		url := iri.Address(l.Href)
		switch l.Rel {
		case relCurrent, relNextArchive, relFirst, relPrevious:
			return url != d.URL && url != d.Response.Requested && w.loops.HasSeen(url)
		}
		return false
	})
}

// feedSigns returns the signs of the feed, from its subscription document.
func (w *walk) feedSigns() *signs {
	if w.signs == nil {
		var head *Document
		var entries []string
		if w.past.Shown != nil {
			head, entries = w.past.Shown()
		}
		w.signs = newSigns(cmp.Or(head, new(Document)), slices.Values(entries))
	}
	return w.signs
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

// succeeds reports whether an archive named by next-archive follows those of the chain,
// by its own prev-archive. The publisher has closed it, but not changed the subscription
// document yet, or only after this walk had read the latter. Nothing is missing before
// it.
func (w *walk) succeeds(at lead, l *fetchResult) bool {
	if at.Rel != relNextArchive {
		return false
	}
	older, _ := l.older(Archived)
	return len(older) > 0 && w.loops.HasSeen(older[0])
}

// isAhead reports whether all entries of an archive are in the subscription document, or
// newer than it: they are published only once it has changed.
func (w *walk) isAhead(d *Document) bool {
	return w.shown != nil && !slices.ContainsFunc(d.Entries, func(e *Entry) bool {
		return !w.shown.Has(e.ID) && !e.Changed().After(w.newest)
	})
}

// otherBeginning returns the link by which an archive names a beginning of the feed
// which the walk has not read (5005#13): it was moved, and the old subscription document is still
// there.
func (w *walk) otherBeginning(l *fetchResult) (Link, bool) {
	current, ok := l.doc.Links.Rel(relCurrent)
	current.Href = iri.Address(current.Href)
	is := ok && w.kind == Archived && l.url != w.start && current.Href != l.url && current.Href != l.doc.URL &&
		iri.Post(current.Href) != iri.Post(w.start) && !w.foreign(current.Href) && !w.begins(current.Href)
	return current, is
}

// begins reports whether the subscription document itself names a URL as the feed's beginning: the
// walk has tried it.
func (w *walk) begins(url string) bool {
	link, ok := w.feedSigns().head.beginning()
	return ok && iri.Address(link.Href) == url
}

// isNeedless reports whether the absence of a lead's document hides nothing.
func (w *walk) isNeedless(at lead, l *fetchResult, from string) bool {
	if at.from != at.root {
		return false
	}
	return w.isPassed(at) && isAbsent(l.err) || at.Rel == relCurrent && isLasting(w.gapOf(l, from))
}

// isPassed reports whether the chain has passed the place of the lead's document, a newer
// archive: its absence then hides nothing.
func (w *walk) isPassed(l lead) bool { return l.Rel == relNextArchive && l.root != w.start }

// isAbsent reports whether an error means there is no such document.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || reasonOf(err) == ReasonNotFeed
}

// The documents the caller of a walk has stored, perhaps during the walk.

// processed reports whether the caller had processed a document before this walk. The
// caller's answer no longer counts for a URL the walk has read.
func (w *walk) processed(url string) bool {
	url = iri.Address(url)
	return w.past.Processed != nil && !w.loops.HasSeen(url) && w.past.Processed(url)
}

// hasProcessed reports whether the caller had processed the older document of another one, in
// one of its formats.
func (w *walk) hasProcessed(l *fetchResult, older []string) bool {
	return w.processed(older[0]) || len(older) > 1 && l.areFormats(older[0], older[1]) && w.processed(older[1])
}

// wasProcessed reports whether an archive about to be yielded had been processed,
// perhaps under the URL where it was found. Its self link proves nothing: moved archives may
// still name the old address, and link to others than before.
func (w *walk) wasProcessed(l *fetchResult) bool {
	return l.doc != nil && l.url != w.start && w.past.Processed != nil && (w.past.Processed(l.url) || w.processed(l.doc.URL))
}
