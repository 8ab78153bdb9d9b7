package check

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/internal/iri"
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
	newer   *harvest.Page
	oldest  time.Time // the first stamp of the newer page
	visited map[string]bool
	ids     map[uint64]bool
	seed    maphash.Seed

	findingList // on the page
}

// walkPages is Check for pages of entities.
func (c *Chain) walkPages(ctx context.Context, client *feedhistory.Client, url string, yield func(Finding, error) bool) {
	fetcher, done := harvest.Fetcher(client, mostPageBytes)
	defer done()
	w := &pageWalker{
		Chain: c, ctx: ctx, fetcher: fetcher, most: cmp.Or(client.Budget.Documents, 10_000), feed: url,
		visited: map[string]bool{}, ids: map[uint64]bool{}, seed: maphash.MakeSeed(),
	}
	if w.steps(yield, func() (more bool, err error) {
		url, err = w.page(url)
		return url != "", cmp.Or(ctx.Err(), err)
	}) && w.Digests != nil { // pages may be cleaned up (datareplication#feed-6)
		maps.DeleteFunc(w.Digests.feeds[w.feed], func(url string, _ digest) bool { return !w.visited[url] })
	}
}

// page checks a page, and returns the URL of the older one. The error is the context's,
// or from the request for the newest page.
func (w *pageWalker) page(url string) (older string, err error) {
	if w.documents >= w.most {
		w.raise("walk-cut-short", url, "there are more than %d pages", w.most)
		return "", nil
	}
	head, headErr := harvest.Open(w.ctx, w.fetcher, http.MethodHead, url)
	if headErr == nil {
		headErr = head.Close()
	}
	page, err := harvest.Open(w.ctx, w.fetcher, http.MethodGet, url)
	switch {
	case err != nil && w.newer == nil:
		return "", err
	case err != nil:
		w.raise("dr-page-unavailable", url, "%s, to which prev of %s leads: %s", clip(url), clip(w.newer.Key()), reasonText(err))
		return "", nil
	}
	defer page.Close()
	if page.IsEmpty() && w.newer == nil {
		return "", nil
	}
	w.documents++
	if kind, _, _ := mime.ParseMediaType(page.Header.Get(harvest.FieldType)); w.newer == nil && kind == "application/json" {
		w.snapshot(page)
		return "", nil
	}
	if w.visited[page.Key()] {
		w.raise("dr-loop", w.newer.URL, "prev leads to %s, which was read already", clip(page.Key()))
		return "", nil
	}
	w.visited[page.Key()] = true
	w.heads(page, head, headErr)
	w.links(page)
	w.parts(page, w.newEntities(page))
	w.newer = page
	return page.Prev, nil
}

// heads checks the header of a page, and compares it with the answer to HEAD.
func (w *pageWalker) heads(page, head *harvest.Page, headErr error) {
	kind, modified := page.Header.Get(harvest.FieldType), page.Header.Get(harvest.FieldModified)
	if page.Status != http.StatusOK {
		w.raise("dr-page-unavailable", page.URL, "the status is %d", page.Status)
	}
	if page.Modified.IsZero() {
		w.raise("dr-modified-missing", page.URL, "Last-Modified is %q", clip(modified))
	} else {
		w.timeForm(page, "the page", modified)
	}
	if _, _, err := mime.ParseMediaType(kind); err != nil && kind != "" {
		w.raise("dr-content-type-form", page.URL, "Content-Type is %q: %v", clip(kind), err)
	}
	if headErr != nil {
		w.raise("dr-head", page.URL, "HEAD: %s", reasonText(headErr))
		return
	}
	for _, name := range []string{harvest.FieldType, harvest.FieldModified, harvest.FieldLink} {
		if page.Header.Get(name) != "" && head.Header.Get(name) == "" {
			w.raise("dr-head", page.URL, "the answer to HEAD has no %s", name)
		}
	}
}

// timeForm checks whether all consumers can read a readable stamp.
func (w *pageWalker) timeForm(page *harvest.Page, what, stamp string) {
	if _, err := http.ParseTime(stamp); err != nil {
		w.raise("dr-time-form", page.URL, "Last-Modified of %s is %q", what, clip(stamp))
	}
}

// links checks the links of a page, and those between it and the newer page.
func (w *pageWalker) links(page *harvest.Page) {
	for _, line := range page.Header.Values(harvest.FieldLink) {
		_, params, rest := iri.CutLink(line)
		if !strings.HasPrefix(strings.TrimSpace(line), "<") || len(strings.Fields(params["rel"])) > 1 || strings.Contains(rest, "<") {
			w.raise("dr-link-form", page.URL, "Link is %q", clip(line))
		}
	}
	if page.Self == "" {
		w.raise("dr-self-missing", page.URL, "no Link has rel=self")
	}
	newer := w.newer
	switch {
	case newer == nil && page.Next != "":
		w.raise("dr-newest-not-last", page.URL, "next leads to %s", clip(page.Next))
	case newer == nil:
	case page.Self != "" && page.Self != newer.Prev:
		w.raise("dr-self-differs", page.URL, "self is %s, but prev of %s is %s", clip(page.Self), clip(newer.Key()), clip(newer.Prev))
	case page.Next == "" && len(w.visited) == 2:
		// The link to the newest page is written last
		// (datareplication#producer-1).
	case newer.Self != "" && !newer.Is(page.Next):
		w.raise("dr-links-disagree", page.URL, "next is %q, but prev of %s leads here", clip(page.Next), clip(newer.Key()))
	}
}

// parts checks the entities of a page.
func (w *pageWalker) parts(page *harvest.Page, e *entities) {
	boundary, err := harvest.Boundary(page.Header.Get(harvest.FieldType))
	if err != nil {
		w.raise("dr-not-multipart", page.URL, "%v", err)
		return
	}
	parts := harvest.NewParts(page.Body(), boundary, mostEntityBytes)
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

// snapshot checks the index of a snapshot, and each of its pages.
func (w *pageWalker) snapshot(page *harvest.Page) {
	index, err := page.Index()
	if err != nil {
		w.raise("dr-snapshot-index", page.URL, "the index cannot be read: %v", err)
		return
	}
	if index.ID == "" || index.Pages == nil {
		w.raise("dr-snapshot-index", page.URL, "the index has no id, or no pages")
	}
	created, err := harvest.ParseTime(index.CreatedAt)
	date, _ := http.ParseTime(page.Header.Get("Date"))
	switch {
	case err != nil:
		w.raise("dr-snapshot-index", page.URL, "createdAt is %q, which is not a time", clip(index.CreatedAt))
	case !date.IsZero() && created.After(date.Add(time.Second)):
		w.raise("dr-snapshot-created", page.URL, "createdAt is %s, but the server's clock says %s", stamp(created), stamp(date))
	}
	for _, url := range index.Pages {
		if w.ctx.Err() != nil {
			return
		}
		if w.documents++; w.documents > w.most {
			w.raise("walk-cut-short", page.URL, "there are more than %d pages", w.most)
			return
		}
		w.snapshotPage(page, url)
	}
}

// snapshotPage checks a page of a snapshot. Its entities come in any order, and have neither
// a Content-ID nor an operation.
func (w *pageWalker) snapshotPage(index *harvest.Page, url string) {
	if !isAbsolute(url) {
		w.raise("dr-snapshot-index", index.URL, "the page %q has no absolute URL", clip(url))
		return
	}
	page, err := harvest.Open(w.ctx, w.fetcher, http.MethodGet, url)
	if err != nil {
		w.raise("dr-page-unavailable", url, "%s, which the index %s names: %s", clip(url), clip(index.URL), reasonText(err))
		return
	}
	defer page.Close()
	w.parts(page, &entities{pageWalker: w, page: page, sum: sha256.New(), ofSnapshot: true})
}

// unread reports why a page could not be read to its end.
func (w *pageWalker) unread(page *harvest.Page, whole int, err error) {
	failed, isOfRequest := errors.AsType[*feedhistory.FetchError](err)
	switch {
	case w.ctx.Err() != nil:
	case isOfRequest && failed.Reason == feedhistory.ReasonTruncated || err == io.ErrUnexpectedEOF:
		w.raise("dr-cut-short", page.URL, "the page ends after %d entities, in the middle of the next", whole)
	case errors.Is(err, harvest.ErrTooLarge):
		w.raise("limit-exceeded", page.URL, "entity %d has more than %d bytes", whole+1, mostEntityBytes)
	case isOfRequest && (failed.Reason == feedhistory.ReasonLimit || errors.Is(err, os.ErrDeadlineExceeded)):
		w.raise(failure(err, page.URL).Code, page.URL, "%v", err)
	default:
		w.raise("dr-not-multipart", page.URL, "entity %d: %v", whole+1, err)
	}
}

// entities checks the entities of one page as they come.
type entities struct {
	*pageWalker
	page       *harvest.Page
	n          int
	ofSnapshot bool

	first, last time.Time // first and last stamp
	sum         hash.Hash // of all entities so far

	known   digest // of an earlier run
	isKnown bool
	then    string // the digest of as many entities as there were then
}

func (w *pageWalker) newEntities(page *harvest.Page) *entities {
	e := &entities{pageWalker: w, page: page, sum: sha256.New()}
	if w.Digests != nil {
		e.known, e.isKnown = w.Digests.feeds[w.feed][page.Key()]
	}
	return e
}

// entity checks an entity.
func (e *entities) entity(part harvest.Part) {
	e.n++
	id := strings.TrimSpace(part.Header.Get(harvest.FieldID))
	what := fmt.Sprintf("entity %d, %q", e.n, clip(id))
	fields := []string{harvest.FieldType, harvest.FieldModified, harvest.FieldID, harvest.FieldOperation}
	if e.ofSnapshot {
		fields = fields[:2]
	}
	for _, name := range fields {
		if strings.TrimSpace(part.Header.Get(name)) == "" {
			e.raise("dr-header-missing", e.page.URL, "%s has no %s", what, strings.ReplaceAll(name, "Id", "ID"))
		}
	}
	e.operation(what, part.Header.Get(harvest.FieldOperation), harvest.Operation(part.Header))
	if err := part.Check(); err != nil {
		e.raise("dr-length", e.page.URL, "%s: %v", what, err)
	}
	e.stamp(what, part.Header.Get(harvest.FieldModified))
	if key := maphash.String(e.seed, id); id != "" && e.ids[key] {
		e.raise("dr-id-repeated", e.page.URL, "%s has the Content-ID of another", what)
	} else if len(e.ids) < mostKnownIDs {
		e.ids[key] = true
	}
	e.digest(id, part)
}

// operation checks the operation of an entity, as written and as read.
func (e *entities) operation(what, written, read string) {
	known := []string{"PUT", "DELETE", "PATCH"}
	switch {
	case strings.TrimSpace(written) == "":
	case !slices.Contains(known, read):
		e.raise("dr-operation-unknown", e.page.URL, "%s has the Operation-Type %q", what, clip(written))
	case written != "http-equiv="+read:
		e.raise("dr-operation", e.page.URL, "%s has the Operation-Type %q", what, clip(written))
	}
}

// stamp checks when an entity was modified.
func (e *entities) stamp(what, written string) {
	at, err := harvest.ParseTime(written)
	switch {
	case written == "":
		return
	case err != nil:
		e.raise("dr-header-missing", e.page.URL, "%s: Last-Modified %v", what, err)
		return
	case at.Before(e.last) && !e.ofSnapshot:
		e.raise("dr-stamps-decrease", e.page.URL, "%s is stamped %s, after one of %s", what, stamp(at), stamp(e.last))
	}
	e.timeForm(e.page, what, written)
	e.last = at
	if e.first.IsZero() {
		e.first = at
	}
}

// digest adds an entity to the digest of its page.
func (e *entities) digest(id string, part harvest.Part) {
	for _, s := range []string{id, part.Header.Get(harvest.FieldType), part.Header.Get(harvest.FieldModified), harvest.Operation(part.Header)} {
		_, _ = io.WriteString(e.sum, s+"\n") // writing to a hash does not fail
	}
	body := sha256.Sum256(part.Body)
	e.sum.Write(body[:])
	if e.n == e.known.Entries {
		e.then = e.digestSoFar()
	}
}

func (e *entities) digestSoFar() string { return hex.EncodeToString(e.sum.Sum(nil)) }

// end checks a page after all of it has been read.
func (e *entities) end() {
	if e.ofSnapshot {
		return
	}
	if e.n == 0 {
		e.raise("dr-page-empty", e.page.URL, "the page has no entities")
		return
	}
	if !e.page.Modified.IsZero() && !e.last.IsZero() && !e.page.Modified.Equal(e.last) {
		e.raise("dr-page-stamp", e.page.URL, "Last-Modified of the page is %s, of its last entity %s", stamp(e.page.Modified), stamp(e.last))
	}
	if !e.oldest.IsZero() && e.last.After(e.oldest) {
		e.raise("dr-stamps-decrease", e.newer.URL, "the first entity is stamped %s, after one of %s on the page before, %s",
			stamp(e.oldest), stamp(e.last), clip(e.page.Key()))
	}
	e.oldest = e.first
	if e.Digests != nil {
		e.compare()
	}
}

// compare compares the page with the earlier run, and remembers it
// (datareplication#feed-6).
func (e *entities) compare() {
	now := digest{Entries: e.n, Digest: e.digestSoFar(), Prev: e.page.Prev, Next: e.page.Next}
	old := e.known
	switch {
	case !e.isKnown:
	case e.then != old.Digest:
		e.raise("dr-page-changed", e.page.URL, "its first %d entities have changed since an earlier run", old.Entries)
	case old.Next != "" && e.n > old.Entries:
		e.raise("dr-page-changed", e.page.URL, "at an earlier run it had %d entities and a next page already; now it has %d", old.Entries, e.n)
	case old.Next != "" && old.Next != now.Next:
		e.raise("dr-page-changed", e.page.URL, "at an earlier run next was %s; now it is %q", clip(old.Next), clip(now.Next))
	case now.Prev != "" && old.Prev != now.Prev:
		e.raise("dr-page-changed", e.page.URL, "at an earlier run prev was %q; now it is %s", clip(old.Prev), clip(now.Prev))
	}
	set(&e.Digests.feeds, e.feed, e.page.Key(), now)
}
