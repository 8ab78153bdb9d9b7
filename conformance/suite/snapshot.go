package suite

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Limits for reading a publisher.
const (
	mostArchives = 1000
	mostBytes    = 16 << 20 // of one document
)

// A page is a document as it was served.
type page struct {
	url            string
	status         int
	body           []byte
	etag, modified string
	date           string // the server's time
	doc            *feedhistory.Document
	err            error
}

// prev returns the address of the preceding archive, or "".
func (p *page) prev() string {
	link, _ := p.doc.Links.Rel(feedhistory.RelPrevArchive)
	return link.Href
}

// next returns the address of the next page of a paged feed, or "".
func (p *page) next() string {
	link, _ := p.doc.Links.Rel(feedhistory.RelNext)
	return link.Href
}

// A snapshot is everything a publisher has published at some time.
type snapshot struct {
	feed     *page
	archives []*page // newest first
	older    []*page // the other pages of a paged feed, which has no archives
}

// newest returns the address of the newest archive, or "".
func (s *snapshot) newest() string { return s.feed.prev() }

// pages returns all documents, newest first.
func (s *snapshot) pages() []*page {
	return slices.Concat([]*page{s.feed}, s.archives, s.older)
}

// entries returns the newest copy of each entry.
func (s *snapshot) entries() map[string]*feedhistory.Entry {
	entries := map[string]*feedhistory.Entry{}
	for _, p := range s.pages() {
		for _, e := range p.doc.Entries {
			if known := entries[e.ID]; known == nil || e.Updated.After(known.Updated) {
				entries[e.ID] = e
			}
		}
	}
	return entries
}

// get reads a document, unless it is the given one.
func (d *drive) get(ctx context.Context, url string, unless *page) (*page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if unless != nil && unless.etag != "" {
		req.Header.Set("If-None-Match", unless.etag)
	} else if unless != nil && unless.modified != "" {
		req.Header.Set("If-Modified-Since", unless.modified)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostBytes))
	if err != nil {
		return nil, err
	}
	p := &page{
		url: resp.Request.URL.String(), status: resp.StatusCode, body: body,
		etag: resp.Header.Get("ETag"), modified: resp.Header.Get("Last-Modified"),
		date: resp.Header.Get("Date"),
	}
	if p.status == http.StatusOK {
		p.doc, p.err = feedhistory.Parse(bytes.NewReader(body), p.url)
	}
	return p, nil
}

// snapshot reads everything. An error means there is no subscription document.
func (d *drive) snapshot(ctx context.Context) (*snapshot, error) {
	feed, err := d.get(ctx, d.URL, nil)
	if err == nil {
		err = readable(feed)
	}
	if err != nil {
		return nil, err
	}
	d.report.saw("well-formed", feed.err == nil, "%s: %v", feed.url, feed.err)
	s := &snapshot{feed: feed}
	if feed.prev() == "" && feed.next() != "" {
		s.older, err = d.follow(ctx, feed, "paged", (*page).next)
	} else {
		s.archives, err = d.follow(ctx, feed, "prev-archive", (*page).prev)
	}
	return s, err
}

// follow reads the documents of a chain of links. The duty is to keep the chain whole.
func (d *drive) follow(ctx context.Context, from *page, duty string, link func(*page) string) (chain []*page, err error) {
	seen := map[string]bool{from.url: true}
	for url := link(from); url != ""; {
		if len(chain) == mostArchives {
			return chain, fmt.Errorf("there are more than %d documents: try a feed that has fewer", mostArchives)
		}
		if seen[url] {
			d.report.saw(duty, false, "%s is linked to twice: the chain has no end", url)
			return chain, nil
		}
		seen[url] = true
		next, err := d.get(ctx, url, nil)
		if err == nil {
			err = readable(next)
		}
		if err != nil {
			d.report.saw(duty, false, "%v", err)
			return chain, nil
		}
		d.report.saw("well-formed", next.err == nil, "%s: %v", url, next.err)
		d.report.saw(duty, true, "")
		next.url = url // as in the link to it
		chain = append(chain, next)
		url = link(next)
	}
	return chain, nil
}

// compare judges the changes of a step.
func (d *drive) compare(ctx context.Context, was, now *snapshot, step string) {
	before, after := was.entries(), now.entries()
	tombstones := map[string]time.Time{}
	for _, p := range now.pages() {
		for _, t := range p.doc.Deleted {
			tombstones[t.Ref] = t.When
		}
	}
	var gone, added, changed []string
	for id, e := range before {
		switch new := after[id]; {
		case new == nil:
			gone = append(gone, id)
		case !e.Updated.Equal(new.Updated) || says(e) != says(new):
			changed = append(changed, id)
		}
	}
	for id := range after {
		if before[id] == nil {
			added = append(added, id)
		}
	}
	r := d.report
	r.saw("document-times", bytes.Equal(was.feed.body, now.feed.body) || now.feed.doc.Updated.After(was.feed.doc.Updated),
		"the step %s changed the document, but not to a later time: from %s to %s", step, at(was.feed.doc.Updated), at(now.feed.doc.Updated))
	switch step {
	case "add":
		r.saw("newest", len(added) > 0 && inFeed(now, added), "the added entry is not in the subscription document")
		r.saw("kept", len(gone) == 0, "after an addition, %q are in no document", gone)
	case "edit":
		r.saw("ids", len(added) == 0 || len(changed) > 0, "the step edit made the new entries %q", added)
		r.saw("newest", inFeed(now, append(changed, added...)) && len(changed)+len(added) > 0, "the edited entry is not in the subscription document")
		for _, id := range changed {
			r.saw("entry-times", after[id].Updated.After(before[id].Updated), "%s changed, but its time is still %s", id, at(before[id].Updated))
		}
		r.saw("kept", len(gone) == 0, "after an edit, %q are in no document", gone)
	case "delete":
		told := len(gone) > 0
		for ref := range tombstones {
			told = told || before[ref] != nil
		}
		r.saw("deletion", told, "every entry is where it was, and there is no tombstone")
		r.saw("kept", len(gone) <= 1, "after one deletion, %q are in no document", gone)
	}
	d.compareArchives(ctx, was, now, step)
}

// compareArchives judges the fate of the archives of the previous step.
func (d *drive) compareArchives(ctx context.Context, was, now *snapshot, step string) {
	for i, a := range was.archives {
		at := slices.IndexFunc(now.archives, func(p *page) bool { return p.url == a.url })
		if at < 0 {
			d.lost(ctx, a, step)
			continue
		}
		d.report.saw("addresses", true, "")
		b := now.archives[at]
		same := slices.Equal(ids(a), ids(b))
		d.report.saw("entries", same, "the step %s changed the entries of %s", step, a.url)
		if i == 0 && step == "add" {
			d.report.saw("closed", same, "an addition changed the entries of %s", a.url)
		}
		unchanged := bytes.Equal(a.body, b.body) || i == 0 && bytes.Equal(withoutNext(a.body), withoutNext(b.body))
		d.report.saw("bytes", unchanged, "the step %s changed %s", step, a.url)
	}
}

// lost judges an archive no link leads to any more: either it is gone, or only its
// chain is broken.
func (d *drive) lost(ctx context.Context, a *page, step string) {
	if p, err := d.get(ctx, a.url, nil); err == nil && p.status == http.StatusOK {
		d.report.saw("prev-archive", false, "after the step %s, no link leads to %s", step, a.url)
	} else {
		d.report.saw("addresses", false, "after the step %s, %s is no longer there", step, a.url)
	}
}

var nextLink = regexp.MustCompile(`<[\w:]*link\b[^>]*next-archive[^>]*>(\s*</[\w:]*link>)?\s*`)

// withoutNext removes the links to the next archive from a document.
func withoutNext(body []byte) []byte { return nextLink.ReplaceAll(body, nil) }

func ids(p *page) []string {
	var ids []string
	for _, e := range p.doc.Entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// says returns an entry's content, independent of its document's markup.
func says(e *feedhistory.Entry) string {
	return fmt.Sprintf("%q %q %q", e.Title().Body, e.Summary().Body, e.Content().Body)
}

// inFeed reports whether the subscription document has one of the entries.
func inFeed(s *snapshot, ids []string) bool {
	return slices.ContainsFunc(s.feed.doc.Entries, func(e *feedhistory.Entry) bool { return slices.Contains(ids, e.ID) })
}

func at(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.Format(time.RFC3339)
}
