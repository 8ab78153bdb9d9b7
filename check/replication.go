package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/replication"
)

const (
	mostPageBytes   = 1 << 40
	mostEntityBytes = 256 << 20
	mostKnownIDs    = 1 << 20 // the maximum number of ids to compare
)

// A pageWalker checks the pages of a data replication feed, newest first. It
// keeps one entity at a time in memory.
type pageWalker struct {
	*Chain
	ctx     context.Context
	fetcher *feedhistory.Client
	most    int // maximum number of pages, 10,000 by default

	feed    string // the URL of the newest page
	newer   *replication.Page
	oldest  time.Time // the first stamp of the newer page
	visited map[string]bool
	ids     map[uint64]bool
	seed    maphash.Seed

	found []Finding
	count map[string]int // by code, for the page
}

// walkPages is Walk for pages of entities.
func (c *Chain) walkPages(ctx context.Context, client *feedhistory.Client, url string) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		fetcher, done := replication.Fetcher(client, mostPageBytes)
		defer done()
		w := &pageWalker{
			Chain: c, ctx: ctx, fetcher: fetcher, most: cmp.Or(client.Budget.Documents, 10_000), feed: url,
			visited: map[string]bool{}, ids: map[uint64]bool{}, seed: maphash.MakeSeed(),
		}
		for url != "" {
			older, err := w.page(url)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Finding{}, err)
				return
			}
			for _, f := range w.findings() {
				if !yield(f, nil) {
					return
				}
			}
			url = older
		}
		w.forget()
	}
}

// page checks a page, and returns the URL of the older one. The error is the context's,
// or from the request for the newest page.
func (w *pageWalker) page(url string) (older string, err error) {
	w.found, w.count = nil, map[string]int{}
	if w.documents >= w.most {
		w.add("walk-cut-short", url, "there are more than %d pages", w.most)
		return "", nil
	}
	head, headErr := replication.Open(w.ctx, w.fetcher, http.MethodHead, url)
	if headErr == nil {
		headErr = head.Close()
	}
	page, err := replication.Open(w.ctx, w.fetcher, http.MethodGet, url)
	switch {
	case err != nil && w.newer == nil:
		return "", err
	case err != nil:
		w.add("dr-page-unavailable", url, "%s, to which prev of %s leads: %s", clip(url), clip(w.newer.Key()), reasonText(err))
		return "", nil
	}
	defer page.Close()
	if page.IsEmpty() && w.newer == nil {
		return "", nil
	}
	w.documents++
	if w.visited[page.Key()] {
		w.add("dr-loop", w.newer.URL, "prev leads to %s, which was read already", clip(page.Key()))
		return "", nil
	}
	w.visited[page.Key()] = true
	w.heads(page, head, headErr)
	w.links(page)
	w.entities(page)
	w.newer = page
	return page.Prev, nil
}

// add reports a finding.
func (w *pageWalker) add(code, url, format string, args ...any) {
	if w.count[code]++; w.count[code] <= mostOfACode {
		w.found = append(w.found, newFinding(code, url, fmt.Sprintf(format, args...)))
	}
}

// findings returns the findings on the page.
func (w *pageWalker) findings() []Finding {
	for i, f := range slices.Backward(w.found) {
		if n := w.count[f.Code]; n > mostOfACode {
			w.found[i].Message += fmt.Sprintf(" (and %d more of this kind)", n-mostOfACode)
			w.count[f.Code] = 0
		}
	}
	return w.found
}

// heads checks the header of a page, and compares it with the answer to HEAD.
func (w *pageWalker) heads(page, head *replication.Page, headErr error) {
	kind, modified := page.Header.Get(replication.FieldType), page.Header.Get(replication.FieldModified)
	if page.Status != http.StatusOK {
		w.add("dr-page-unavailable", page.URL, "the status is %d", page.Status)
	}
	if page.Modified.IsZero() {
		w.add("dr-modified-missing", page.URL, "Last-Modified is %q", clip(modified))
	} else {
		w.timeForm(page, "the page", modified)
	}
	if _, _, err := mime.ParseMediaType(kind); err != nil && kind != "" {
		w.add("dr-content-type-form", page.URL, "Content-Type is %q: %v", clip(kind), err)
	}
	if headErr != nil {
		w.add("dr-head", page.URL, "HEAD: %s", reasonText(headErr))
		return
	}
	for _, name := range []string{replication.FieldType, replication.FieldModified, replication.FieldLink} {
		if page.Header.Get(name) != "" && head.Header.Get(name) == "" {
			w.add("dr-head", page.URL, "the answer to HEAD has no %s", name)
		}
	}
}

// timeForm checks whether all consumers can read a readable stamp.
func (w *pageWalker) timeForm(page *replication.Page, what, stamp string) {
	if _, err := http.ParseTime(stamp); err != nil {
		w.add("dr-time-form", page.URL, "Last-Modified of %s is %q", what, clip(stamp))
	}
}

// links checks the links of a page, and those between it and the newer page.
func (w *pageWalker) links(page *replication.Page) {
	for _, line := range page.Header.Values(replication.FieldLink) {
		if !strings.HasPrefix(strings.TrimSpace(line), "<") || len(replication.Links(http.Header{replication.FieldLink: {line}})) > 1 {
			w.add("dr-link-form", page.URL, "Link is %q", clip(line))
		}
	}
	if page.Self == "" {
		w.add("dr-self-missing", page.URL, "no Link has rel=self")
	}
	newer := w.newer
	switch {
	case newer == nil && page.Next != "":
		w.add("dr-newest-not-last", page.URL, "next leads to %s", clip(page.Next))
	case newer == nil:
	case page.Self != "" && page.Self != newer.Prev:
		w.add("dr-self-differs", page.URL, "self is %s, but prev of %s is %s", clip(page.Self), clip(newer.Key()), clip(newer.Prev))
	case page.Next == "" && len(w.visited) == 2:
		// The link to the newest page is written last
		// (datareplication#producer-1).
	case newer.Self != "" && !newer.Is(page.Next):
		w.add("dr-links-disagree", page.URL, "next is %q, but prev of %s leads here", clip(page.Next), clip(newer.Key()))
	}
}

// entities checks the entities of a page.
func (w *pageWalker) entities(page *replication.Page) {
	boundary, err := replication.Boundary(page.Header.Get(replication.FieldType))
	if err != nil {
		w.add("dr-not-multipart", page.URL, "%v", err)
		return
	}
	parts := replication.NewParts(page.Body(), boundary, mostEntityBytes)
	e := w.newEntities(page)
	for {
		part, err := parts.Next()
		if err == io.EOF {
			e.end()
			return
		}
		if err != nil {
			w.unread(page, e.n, err)
			return
		}
		e.entity(part)
	}
}

// unread reports why a page could not be read to its end.
func (w *pageWalker) unread(page *replication.Page, whole int, err error) {
	_, cut := errors.AsType[*feedhistory.TruncatedError](err)
	switch {
	case w.ctx.Err() != nil:
	case cut || err == io.ErrUnexpectedEOF:
		w.add("dr-cut-short", page.URL, "the page ends after %d entities, in the middle of the next", whole)
	case errors.Is(err, replication.ErrTooLarge):
		w.add("limit-exceeded", page.URL, "entity %d has more than %d bytes", whole+1, mostEntityBytes)
	case errors.As(err, new(*feedhistory.LimitError)), errors.As(err, new(*feedhistory.TimeoutError)):
		w.add(failure(err, page.URL).Code, page.URL, "%v", err)
	default:
		w.add("dr-not-multipart", page.URL, "entity %d: %v", whole+1, err)
	}
}

// forget drops the digests of vanished pages, because pages may be cleaned up
// (datareplication#feed-6).
func (w *pageWalker) forget() {
	if w.Digests == nil {
		return
	}
	for url := range w.Digests.feeds[w.feed] {
		if !w.visited[url] {
			delete(w.Digests.feeds[w.feed], url)
		}
	}
}
