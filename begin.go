package feedhistory

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"

	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Where a feed begins: a walk may be given any of its documents. An archive names
// its subscription document by current (5005#13), a page the first one by first.

// isSubscription reports whether nothing says that this is not the document
// where a feed begins: neither an archive, nor a page after others.
func (d *Document) isSubscription() bool {
	return d.Kind() == Archived && !d.Archive && !d.says(RelNextArchive) ||
		d.Kind() == Paged && !d.says(RelPrevious) ||
		d.Kind() == Complete || d.Kind() == Plain
}

// beginning returns the link to the document where a feed begins.
func (d *Document) beginning() (Link, bool) {
	switch d.Kind() {
	case Archived, Plain:
		return d.Links.Rel(RelCurrent)
	case Paged:
		return d.Links.Rel(RelFirst)
	}
	return Link{}, false
}

// beginsElsewhere reports whether it is said to be another document.
func (d *Document) beginsElsewhere() bool {
	link, ok := d.beginning()
	return ok && iri.WithoutFragment(link.Href) != d.URL
}

// A place is what a walk finds out about a document that it yields.
type place struct {
	feed   Kind   // of the chain that the document came in; Plain for none
	begins string // where its link to the beginning leads, if that is not elsewhere
	again  bool   // the next walk that is given it has to look for the beginning again
}

// mostSteps is how many documents a walk goes through to find where a feed begins.
const mostSteps = 5

// beginning finds the document where the feed begins that another is part of. The
// others on the way are held, until the chain reaches them.
//
// Links to the beginning may be stale. Where they lead nowhere, the feed begins
// at the last document that has no mark of an archive, or of a later page; only
// if there is none, what is newer is a gap.
func (w *walk) beginning(given *loaded) *loaded {
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

// path goes from document to document to the one where the feed begins. The gap
// says why there is none at the end.
func (w *walk) path(given *loaded) (path []*loaded, gap *Gap) {
	for l := given; ; {
		path = append(path, l)
		if l.unchanged() != nil { // it was the beginning before
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

// step requests the document where the last one of a path says that the feed
// begins; nil without a gap if it is that one under another name.
func (w *walk) step(path []*loaded, url string) (next *loaded, gap *Gap) {
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
		return nil, detached("it says that the feed begins at the document which led here (5005#13)")
	case len(path) == mostSteps:
		return nil, detached("one document after the other says that the feed begins elsewhere (5005#13)")
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
		w.forget(url)
		return nil, w.gapOf(next, last.doc.URL)
	case next.doc.URL == last.url, next.doc.URL == last.doc.URL, isTwin(last, next) && !isElsewhere(last.doc):
		last.doc.place.begins = url
		return nil, nil
	case passes(next.doc.URL):
		return nil, detached("it redirects to the document which led here (5005#13)")
	}
	if gap := w.strayed(next, last.doc.URL); gap != nil {
		return nil, gap
	}
	return next, nil
}

// elsewhere returns where a document says that its feed begins; "" if that is
// here, or an earlier walk has found that it is. The gap says that it is neither.
func (w *walk) elsewhere(l *loaded) (url string, gap *Gap) {
	link, ok := l.doc.beginning()
	url = iri.WithoutFragment(link.Href)
	switch {
	case !ok && l.doc.isSubscription():
		return "", nil
	case !ok:
		return "", &Gap{URL: l.url, Reason: ReasonDetached,
			Err: errors.New("not where the feed begins, and without a link to it (5005#13)")}
	case url == l.url, url == l.doc.URL:
		return "", nil
	case w.known(l.url).Begins == url:
		l.doc.place.begins = url
		return "", nil
	}
	return url, nil
}

// doubt says that the feed may not begin where the walk does. Without a mark of an
// archive or a later page that is a note: links to the beginning get stale.
func (w *walk) doubt(start *loaded, gap *Gap) {
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
		Message: fmt.Sprintf("the feed is said to begin at %s, where no beginning is found: %v", fetch.Redact(gap.URL), gap.Err)})
}

// isLasting reports whether a later walk would find the same.
func isLasting(gap *Gap) bool {
	switch gap.Reason {
	case ReasonDetached, ReasonRefused, ReasonNotFeed, ReasonLoop:
		return true
	case ReasonNetwork:
		var dns *net.DNSError
		return errors.As(gap.Err, &dns) && dns.IsNotFound
	case ReasonStatus:
		return IsStatus(gap.Err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone,
			http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnavailableForLegalReasons, http.StatusBadRequest)
	}
	return false
}

// isTwin reports whether a document is the same as the one that it calls the
// beginning: by its bytes, or by its entries and what it calls itself. One that
// has a mark of an archive is none.
func isTwin(l, beginning *loaded) bool {
	if beginning.doc == nil || !l.doc.isSubscription() {
		return false
	}
	self, ok := l.doc.Links.Rel(RelSelf)
	other, named := beginning.doc.Links.Rel(RelSelf)
	return l.text == beginning.text ||
		ok && named && self.Href == other.Href && maps.Equal(l.doc.facts(), beginning.doc.facts())
}

// isElsewhere reports whether a document says that what is current is not itself.
// Then it may be an archive that the subscription document is still a copy of.
func isElsewhere(d *Document) bool {
	self, ok := d.Links.Rel(RelSelf)
	link, _ := d.beginning()
	return ok && d.Kind() != Paged && iri.WithoutFragment(self.Href) != iri.WithoutFragment(link.Href)
}

// facts returns what a document says of entries.
func (d *Document) facts() map[fact]bool {
	facts := make(map[fact]bool, len(d.Entries)+len(d.Deleted))
	for _, e := range d.Entries {
		facts[fact{e.ID, e.Updated.UnixNano(), false}] = true
	}
	for _, t := range d.Deleted {
		facts[fact{t.Ref, t.When.UnixNano(), true}] = true
	}
	return facts
}
