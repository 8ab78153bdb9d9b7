package feedhistory

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"

	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Where a feed begins: a walk may be given any document of a feed. An archive links
// to the subscription document with current (5005#13), a page to the first page with
// first.

// isSubscription reports whether a feed may begin at the document: it shows no sign
// of being an archive or a later page.
func (d *Document) isSubscription() bool {
	return d.Kind() == Archived && !d.Archive && !d.says(RelNextArchive) ||
		d.Kind() == Paged && !d.says(RelPrevious) ||
		d.Kind() == Complete || d.Kind() == Plain
}

// beginning returns the link to the document where the feed begins.
func (d *Document) beginning() (Link, bool) {
	switch d.Kind() {
	case Archived, Plain:
		return d.Links.Rel(RelCurrent)
	case Paged:
		return d.Links.Rel(RelFirst)
	}
	return Link{}, false
}

// beginsElsewhere reports whether the document links to another one as the beginning.
func (d *Document) beginsElsewhere() bool {
	link, ok := d.beginning()
	return ok && iri.WithoutFragment(link.Href) != d.URL
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
		given.doc.place.again = true
		w.log("beginning where the feed does", "given", given.url, "url", start.url)
	}
	return start
}

// path follows the links from the given document to the one where the feed begins. The
// gap says why the path does not end there.
func (w *walk) path(given *fetchResult) (path []*fetchResult, gap *Gap) {
	for l := given; ; {
		path = append(path, l)
		if l.unchanged() != nil { // it was the beginning in an earlier walk
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
	case next.unchanged() != nil:
		return next, nil
	case next.err != nil:
		w.loops.Forget(url)
		return nil, w.gapOf(next, last.doc.URL)
	case next.doc.URL == last.url, next.doc.URL == last.doc.URL, isTwin(last, next) && !isElsewhere(last.doc):
		last.doc.place.begins = url
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
	url = iri.WithoutFragment(link.Href)
	switch {
	case !ok && l.doc.isSubscription():
		return "", nil
	case !ok:
		return "", &Gap{URL: l.url, Reason: ReasonDetached,
			Err: errors.New("the feed does not begin here, and no link says where it does (5005#13)")}
	case url == l.url, url == l.doc.URL:
		return "", nil
	case w.known(l.url).Begins == url:
		l.doc.place.begins = url
		return "", nil
	}
	return url, nil
}

// doubt reports that the walk may not begin where the feed does: by a gap, or by a note
// if the document has no mark of an archive or a later page, because links to the
// beginning become stale.
func (w *walk) doubt(start *fetchResult, gap *Gap) {
	d := start.doc
	d.place.again = true
	if !d.isSubscription() || gap.Reason == ReasonBudget {
		w.gap(gap)
		return
	}
	if isLasting(gap) {
		link, _ := d.beginning()
		d.place.begins, d.place.again = iri.WithoutFragment(link.Href), false
	}
	w.log("the feed may begin elsewhere", "url", start.url, "named", gap.URL, "error", gap.Err)
	d.Notes = append(d.Notes, Note{Code: "beginning-not-there",
		Message: fmt.Sprintf("a link says that the feed begins at %s, but it does not: %v", iri.Redact(gap.URL), gap.Err)})
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
		return IsStatus(gap.Err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone,
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
	self, ok := l.doc.Links.Rel(RelSelf)
	other, named := beginning.doc.Links.Rel(RelSelf)
	return l.text == beginning.text ||
		ok && named && self.Href == other.Href && chain.EqualFacts(l.doc.facts(), beginning.doc.facts())
}

// isElsewhere reports whether a document names another one as the current one. It may
// then be an archive of which the subscription document is still a copy.
func isElsewhere(d *Document) bool {
	self, ok := d.Links.Rel(RelSelf)
	link, _ := d.beginning()
	return ok && d.Kind() != Paged && iri.WithoutFragment(self.Href) != iri.WithoutFragment(link.Href)
}

// facts yields the IDs and times of a document's entries and tombstones.
func (d *Document) facts() iter.Seq[chain.Fact] {
	return func(yield func(chain.Fact) bool) {
		for _, e := range d.Entries {
			if !yield(chain.Fact{ID: e.ID, Time: e.Updated.UnixNano()}) {
				return
			}
		}
		for _, t := range d.Deleted {
			if !yield(chain.Fact{ID: t.Ref, Time: t.When.UnixNano(), Deleted: true}) {
				return
			}
		}
	}
}
