package backfill

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// WordPress recovers the feeds of WordPress, which has pages for all queries,
// feeds included, and answers 404 after the last page.
//
// If the server supports the order, WordPress requests pages in the order in which
// posts were modified, and reads them from the last to the first. Posts published or
// edited meanwhile then appear on pages the walk has read, and the posts moved by them,
// or by a deletion, move to pages still to read. Only a post added with an old
// modification time, as a scheduled one is, moves another post to a page the walk has
// read.
//
// So at the end it asks the REST API how many posts there are, and which, a hundred at
// a time. If a post is missing, it reads the page with the post, and asks the API
// again. If each counted post had come before the count, and is listed after it, they
// are all, even if posts came or went meanwhile; only a post withdrawn and put back within these
// seconds could falsify this. If new posts come faster, the walk is lossy.
//
// The API also says how many pages there are. Without it, the walk finds the
// last page by doubling and bisection, and proves nothing.
//
// If the server does not support the order, for example behind a cache that drops
// parameters, the walk reads the pages from the first to the last, as for other
// platforms.
type WordPress struct{}

// The modes of a WordPress Probe.
const (
	modeModified = "modified" // the server supports order and orderby
	modePaged    = "paged"    // the server supports only paged
)

// orderBy is the order of stable pages. The ID orders posts modified in the same
// second.
const orderBy = "modified ID"

// Name returns "wordpress".
func (WordPress) Name() string { return "wordpress" }

// Recognise looks at the generator. A feed without one may be WordPress's,
// because some sites remove it.
func (WordPress) Recognise(doc *feedhistory.Document) Sign {
	if doc == nil {
		return No
	}
	if doc.Kind() != feedhistory.Plain || doc.Format == feedhistory.JSONFeed {
		return No
	}
	switch g := strings.ToLower(readHead(doc).generator); {
	case strings.Contains(g, "wordpress"):
		return Yes
	case g == "":
		return Maybe
	}
	return No
}

// Probe requests the oldest page and, if the server ignores the order, the
// second page. If the feed does not name its software, the header of the answer
// must. The error may be the context's.
func (w WordPress) Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) (bool, error) {
	if err := given(c, doc, p); err != nil {
		return false, err
	}
	s := newSource(ctx, c, doc, p)
	oldest := s.keep(stablePage(s, 1))
	if w.Recognise(doc) == Maybe && !isWordPress(oldest.header) {
		return false, oldest.failure()
	}
	if (&stable{source: s}).works() {
		p.Mode = modeModified
		return true, nil
	}
	if err := oldest.failure(); err != nil {
		return false, err // the server may support the order
	}
	p.Mode = modePaged
	works, err := w.series(s).works()
	if !works && err == nil {
		p.Reason = "the feed is made by WordPress, but neither order nor paged brings other entries: there is only one page, or a cache drops these parameters"
	}
	return works, err
}

// Walk yields the pages. The error may be the context's.
func (w WordPress) Walk(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		if err := given(c, doc, p); err != nil {
			yield(nil, err)
			return
		}
		s := newSource(ctx, c, doc, p)
		oldest := stablePage(s, 1)
		if p.Mode == modeModified && s.keep(oldest).failure() != nil {
			s.task.state = restart
			yield(nil, s.keep(oldest).gap(oldest, doc.URL))
			return
		}
		if walk := (&stable{source: s}); p.Mode == modeModified && walk.works() {
			p.Proven = walk.walk(yield)
			return
		}
		if p.Mode != modePaged {
			p.Mode, s.task.place = modePaged, place{} // the place belongs to a different order
		}
		w.series(s).walk(yield)
	}
}

// count asks for the number of posts.
func (WordPress) count(ctx context.Context, c *feedhistory.Client, url string) (int, error) {
	_, total, err := (&source{ctx: ctx, c: c}).list(url)
	return total, err
}

// series returns the walk from the first page to the last. The first page is never
// requested by its number, because the server would redirect it.
func (WordPress) series(s *source) *series {
	return &series{source: s, n: 1, url: func(s *series) string {
		return with(s.doc.URL, "paged", strconv.Itoa(s.n))
	}}
}

// isWordPress recognises the header of WordPress's answers: the link to the
// REST API, or the address for pingbacks.
func isWordPress(h http.Header) bool {
	_, ok := apiRoot(h)
	return ok || h.Get("X-Pingback") != ""
}

// apiRoot returns the URL of the REST API.
func apiRoot(h http.Header) (string, bool) {
	for _, field := range h.Values("Link") {
		for field != "" {
			target, params, rest := iri.CutLink(field)
			if params["rel"] == "https://api.w.org/" {
				return target, true
			}
			field = rest
		}
	}
	return "", false
}

// reordered reports whether an ordered answer has other entries, or a different
// order, than the usual one. A new post may have been published between the
// two.
func reordered(usual, asked []string) bool {
	at := map[string]int{}
	for i, id := range usual {
		at[id] = i
	}
	shared, last := 0, -1
	for _, id := range asked {
		i, ok := at[id]
		if !ok {
			continue
		}
		if shared++; i < last {
			return true
		}
		last = i
	}
	return shared == 0 && len(asked) > 0 || shared == 1 && len(usual) > 1 && len(asked) > 1
}

// mainFeed reports whether a feed has all posts of the API's site.
func mainFeed(feed, api string) bool {
	site, _, _ := strings.Cut(api, "?")
	site = strings.TrimSuffix(strings.TrimSuffix(site, "index.php"), "wp-json/")
	path, ok := strings.CutPrefix(feed, site)
	if !ok || !strings.HasSuffix(site, "/") {
		return false
	}
	path, query, _ := strings.Cut(path, "?")
	switch strings.Trim(path, "/") {
	case "feed", "feed/rss2", "feed/atom", "feed/rdf":
		return query == ""
	case "", "index.php":
		return query == "feed=rss2" || query == "feed=atom" || query == "feed=rdf"
	}
	return false
}
