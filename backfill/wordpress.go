package backfill

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
// So at the end it asks the feed's last page and then the REST API how many posts there
// are, and which, a hundred at a time. If a post is missing, it reads the page with the
// post, and asks again. If the two numbers are equal, each counted post had come before
// the count, and each is listed after it, they are all, even if posts came or went
// meanwhile; only a post withdrawn and put back within these seconds could falsify this.
// If new posts come faster, the walk is lossy. So it is if the feed shows more than the
// API counts, such as podcasts: nobody can say whether one of those is missing.
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
	if doc == nil || doc.Kind() != feedhistory.KindPlain || doc.Format == feedhistory.FormatJSONFeed {
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
// must.
func (w WordPress) Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) (bool, error) {
	s, err := newSource(ctx, c, doc, p)
	if err != nil {
		return false, err
	}
	oldest := s.keep(stablePage(s, 1))
	if w.Recognise(doc) == Maybe && !isWordPress(oldest.header) {
		return false, oldest.failure()
	}
	if newStable(s).works() {
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

// Documents yields the pages.
func (w WordPress) Documents(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return walked(ctx, c, doc, p, func(s *source, yield func(*feedhistory.Document, error) bool) {
		yield = s.oneScheme(yield)
		oldest := stablePage(s, 1)
		if p.Mode == modeModified && s.keep(oldest).failure() != nil {
			s.task.state = restart
			yield(nil, s.keep(oldest).gap(oldest, doc.URL))
			return
		}
		if walk := newStable(s); p.Mode == modeModified && walk.works() {
			p.Proven = walk.walk(yield)
			return
		}
		if p.Mode != modePaged {
			p.Mode, s.task.place = modePaged, place{} // the place belongs to a different order
		}
		w.series(s).walk(yield)
	})
}

// oneScheme gives a post the ID by which it came first, if the two differ in their scheme
// alone: caches of sites that have moved to https have some pages from before.
func (s *source) oneScheme(yield func(*feedhistory.Document, error) bool) func(*feedhistory.Document, error) bool {
	came := ids(s.doc.Entries)
	return func(doc *feedhistory.Document, err error) bool {
		if doc != nil {
			var others []string
			for _, e := range doc.Entries {
				others = append(others, otherScheme(e.ID))
			}
			known := map[string]bool{}
			if s.task.has != nil {
				known = s.task.has(others)
			}
			for i, e := range doc.Entries {
				if !came[e.ID] && others[i] != "" && (came[others[i]] || known[others[i]]) {
					e.ID = others[i]
				}
				came[e.ID] = true
			}
		}
		return yield(doc, err)
	}
}

// otherScheme returns WordPress's guid of a post with the other scheme; "" for another ID.
func otherScheme(id string) string {
	if !strings.Contains(id, "?p=") && !strings.Contains(id, "&p=") {
		return ""
	}
	return iri.OtherScheme(id)
}

// count asks for the number of posts.
func (WordPress) count(ctx context.Context, c *feedhistory.Client, url string) (int, error) {
	_, total, err := (&source{ctx: ctx, c: c}).list(url)
	return total, err
}

// series returns the walk from the first page to the last. The first page is never
// requested by its number, because the server would redirect it.
func (WordPress) series(s *source) *series {
	return &series{progress: progress{source: s}, n: 1, url: func(s *series) string {
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

// A stable walk reads the pages of a WordPress feed in the order in which posts were
// modified, last page first. Then it reads the posts it has missed.
type stable struct {
	progress
	yield func(*feedhistory.Document, error) bool

	tail  []*feedhistory.Entry // the latest entries as they were read, latest first; nil if unknown
	size  int                  // entries per page
	total int                  // the number of posts by the server's latest count; 0 if unknown
	read  int                  // number of pages read
	inRow int                  // failed pages in succession
	lost  answer               // why the last page could not be determined

	early earlyPage // the page after the current one
}

func newStable(s *source) *stable { return &stable{progress: progress{source: s}} }

// stablePage returns the URL of page n in the order of modification. The first page is
// not requested by its number, because the server would redirect it.
func stablePage(s *source, n int) string {
	return with(s.doc.URL, "order", "ASC", "orderby", orderBy, "paged", pageNumber(n))
}

func pageNumber(n int) string {
	if n == 1 {
		return ""
	}
	return strconv.Itoa(n)
}

// works reports whether the server supports the order.
func (s *stable) works() bool {
	oldest := s.keep(stablePage(s.source, 1))
	return oldest.err == nil && reordered(list(s.doc.Entries), list(oldest.doc.Entries))
}

// walk reads the pages, or the rest of them, and the missed posts. It reports whether
// the history is proved whole.
func (s *stable) walk(yield func(*feedhistory.Document, error) bool) (proven bool) {
	s.yield, s.seen = yield, ids(s.doc.Entries)
	oldest := s.keep(stablePage(s.source, 1))
	s.size = len(oldest.doc.Entries)
	posts := s.postsURL(oldest.header)
	s.task.counter = counterURL(posts)
	from := s.task.place
	switch {
	case from.Page > 0:
		delete(s.kept, stablePage(s.source, 1))
		if !s.exists(from.Page) {
			from.Page = min(from.Page, s.lastPage(s.count(s.task.counter)))
		}
	case !from.begun() && !s.task.refill:
		s.total = s.count(s.task.counter)
		from.Page = s.lastPage(s.total)
		s.tail = []*feedhistory.Entry{}
	}
	if s.lost.err != nil {
		s.task.state = restart
		s.yield(nil, s.lost.gap(stablePage(s.source, 1), s.doc.URL))
		return false
	}
	ctx, cancel := context.WithCancel(s.ctx)
	pages := *s.source
	pages.ctx, s.early.source = ctx, &pages
	goOn := s.pages(from)
	cancel()
	s.early.running.Wait()
	return goOn && s.settle(posts, max(from.Latest, 1))
}

// pages reads the pages from a place back to the first one; below the place's
// Until only as far as known entries. It reports whether to continue.
func (s *stable) pages(from place) bool {
	for n := from.Page; n >= 1; n-- {
		goOn, meets := s.page(n, from.Until)
		if !goOn {
			return false
		}
		if meets && n < from.Until {
			break
		}
	}
	s.end()
	return true
}

// page yields a page if it exists. It reports whether to continue, and whether
// everything on the page is known already.
func (s *stable) page(n, until int) (goOn, meets bool) {
	url := stablePage(s.source, n)
	a := s.overlapped(n, until)
	if a.err != nil {
		s.inRow++
		if a.missing() && s.read == 0 && s.inRow == 1 {
			return true, false // there are fewer pages now
		}
		s.fail(place{Page: n, Until: until}, n)
		return s.yield(nil, a.gap(url, s.doc.URL)) && s.inRow == 1, false
	}
	s.inRow = 0
	s.read++
	s.size = max(s.size, len(a.doc.Entries))
	slices.Reverse(a.doc.Entries)
	if s.add(a.doc.Entries); s.isBarren() {
		s.task.place = place{}
		s.yield(nil, repeating(url, feedhistory.ReasonBarren))
		return false, false
	}
	if s.tail != nil && len(s.tail) < s.size {
		s.tail = append(s.tail, a.doc.Entries...)
	}
	next := place{Page: n - 1, Until: until}
	if n == 1 {
		next = place{Latest: 1}
	}
	s.come(next)
	return s.yield(a.doc, nil), until > 0 && s.task.overlaps(a.doc.Entries)
}

// lastPage returns the number of the last page. The total may count different
// posts than the feed has: then there is no such page, or settle finds more.
func (s *stable) lastPage(total int) int {
	n := (total + s.size - 1) / s.size
	switch {
	case n == 1:
		return 1
	case n < 1 || n > mostPages:
		return s.search(0)
	case s.exists(n):
		delete(s.kept, stablePage(s.source, 1)) // it is read in its turn, because it may have changed by then
		return n
	}
	defer clear(s.kept) // for the same reason
	return s.search(n)
}

// mostPages is a number of pages that no site reaches.
const mostPages = 1 << 20

// search finds the last page by doubling and bisection. If high is not zero,
// there is no page high. Pages that it reads are kept, and so cost no further
// request. But after a page is read so early, another post may move to it,
// because a post was edited or deleted before the walk reads the next page;
// that post is then lost. Two pages in succession that cannot be read end the
// search.
func (s *stable) search(high int) int {
	low, failed := 1, false
	for high == 0 || high-low > 1 {
		n := low + (high-low)/2
		if high == 0 {
			n = 2 * low
		}
		if n > mostPages {
			return low
		}
		if !s.exists(n) {
			high = n
			continue
		}
		low = n
		a := s.keep(stablePage(s.source, n))
		if a.err != nil && failed {
			s.lost = a
			return low
		}
		failed = a.err != nil
	}
	return low
}

// exists reports whether there is a page n. A page that cannot be read counts
// as existing.
func (s *stable) exists(n int) bool {
	a := s.keep(stablePage(s.source, n))
	return !a.missing() && s.ctx.Err() == nil && (a.err != nil || len(a.doc.Entries) > 0)
}

// shown returns how many posts the feed's pages have now, of any kind; 0 if it cannot be
// told from the last page and those beside it.
func (s *stable) shown() int {
	if s.total == 0 {
		s.total = s.count(s.task.counter)
	}
	if s.total == 0 {
		return 0
	}
	length := func(n int) int {
		a := s.request(stablePage(s.source, n))
		if a.err != nil && !a.missing() {
			return -1
		} else if a.err != nil {
			return 0
		}
		s.size = max(s.size, len(a.doc.Entries)) // the first page may not have been full
		return len(a.doc.Entries)
	}
	n := (s.total + s.size - 1) / s.size
	if n > 1 && length(n-1) < s.size {
		return 0
	}
	last := length(n) // the latest, so a post that came between the two is on it
	if last == s.size {
		if next := length(n + 1); 0 <= next && next < s.size {
			return n*s.size + next
		}
		return 0
	}
	return (n-1)*s.size + max(last, 0)
}

// rounds is the maximum number of times a walk reads the entries that came while it was
// reading; after that, the verdict is lossy.
const rounds = 4

// settle reads the posts modified during the walk, from page latest on, until there is
// nothing new. Then it asks the site for its list of posts. It reads the pages of
// missing posts, if any, and begins again. It reports whether the history is proved
// whole.
func (s *stable) settle(posts string, latest int) (proven bool) {
	s.come(place{Latest: latest})
	var last *census // with a gap: a post may go while the server lists them
	was := [2]int{-1, -1}
	for range rounds {
		unchanged, ok := s.close(latest)
		if !ok {
			return false
		}
		latest = 1
		if posts == "" {
			break
		}
		if !unchanged {
			continue
		}
		at, shown := time.Now(), s.shown()
		c, err := s.census(posts)
		if err != nil {
			s.task.soon = answer{err: err}.failure() != nil
			break
		}
		s.total = c.total
		missing, all := c.compare(s.has)
		counted := [2]int{shown, c.total}
		if len(missing) == 0 && shown != c.total && counted != was {
			was = counted // a post may have come or gone between the two
			continue
		}
		if all && shown == c.total {
			s.task.total, s.task.proven = c.total, at
			proven = true
			break
		}
		gap := c.gap(s.task.counter, missing, len(s.seen))
		if gap == nil {
			s.task.listed = len(missing) == 0 && c.total <= len(c.posts)
			break // there are others, which the server does not count, or the feed has different names
		}
		if c.equal(last) {
			s.come(place{})
			s.yield(nil, gap)
			return false
		}
		if last = c; len(missing) > 0 && !s.fill(c, missing) {
			return false
		}
	}
	s.come(place{})
	return proven
}

// mostClosing is the number of pages, beyond as many as the walk has read, possibly
// modified during it.
const mostClosing = 20

// close reads the posts modified during the walk, latest first, from page n on. It
// reports whether there was nothing, and whether to continue. It ends where the server
// repeats a page.
func (s *stable) close(n int) (unchanged, ok bool) {
	tail := s.tail
	var before []*feedhistory.Entry
	for end := n + s.read + mostClosing; n < end; n++ {
		url := with(s.doc.URL, "orderby", orderBy, "paged", pageNumber(n))
		a := s.get(url)
		if a.missing() && n > 1 {
			return false, true
		}
		if a.err != nil {
			return false, s.yield(nil, a.gap(url, s.doc.URL)) && false
		}
		latest := a.doc.Entries
		if before != nil && slices.EqualFunc(latest, before, same) {
			break
		}
		before = latest
		meets := s.task.overlaps(latest)
		if n == 1 {
			s.tail = latest
			if len(tail) == 0 && meets || len(tail) > 0 && slices.EqualFunc(latest, tail[:min(len(latest), len(tail))], same) {
				return true, true
			}
		}
		s.seen.add(latest)
		s.come(place{Latest: n + 1})
		if !s.yield(a.doc, nil) {
			return false, false
		}
		if meets || len(latest) == 0 || has(tail, latest[len(latest)-1]) {
			s.come(place{Latest: 1})
			return false, true
		}
	}
	return false, true
}

// has reports whether an entry equals one of the previous latest entries.
func has(tail []*feedhistory.Entry, e *feedhistory.Entry) bool {
	return slices.ContainsFunc(tail, func(known *feedhistory.Entry) bool { return same(known, e) })
}

// same reports whether two copies of an entry say the same. Their XML may
// differ, because it contains the base of the page.
func same(a, b *feedhistory.Entry) bool {
	return a.ID == b.ID && a.Updated.Equal(b.Updated) && a.Title().Body == b.Title().Body &&
		a.Summary().Body == b.Summary().Body && a.Content().Body == b.Content().Body
}

// fill reads the pages of the missing posts, and reports whether to continue.
func (s *stable) fill(c *census, missing []string) bool {
	for _, n := range c.pagesOf(missing, s.size) {
		url := stablePage(s.source, n)
		a := s.get(url)
		if a.missing() {
			continue // there are fewer pages now
		}
		if a.err != nil {
			return s.yield(nil, a.gap(url, s.doc.URL)) && false
		}
		slices.Reverse(a.doc.Entries)
		s.seen.add(a.doc.Entries)
		if !s.yield(a.doc, nil) {
			return false
		}
	}
	return true
}

// An earlyPage is a page requested before the one before it has been answered.
type earlyPage struct {
	source  *source
	url     string // "" for none
	answers chan answer
	running sync.WaitGroup
}

// ask requests a page.
func (p *earlyPage) ask(url string) {
	answers := make(chan answer, 1)
	p.url, p.answers = url, answers
	p.running.Go(func() { answers <- p.source.request(url) })
}

// overlapped returns page n, and requests the next one at the same time if the server
// counts its posts: settle then finds a post that moves from one page to the other between
// the two. Pages are costly to make, so no more than two are in flight.
func (s *stable) overlapped(n, until int) answer {
	url := stablePage(s.source, n)
	_, isKept := s.kept[url]
	if s.early.url != url && !isKept {
		s.early.ask(url)
	}
	now := s.early.answers
	hurries := s.task.counter != "" && s.inRow == 0 && !s.c.NoGuess && s.c.PerHost != 1 && s.c.Pace <= 0
	if next := stablePage(s.source, n-1); hurries && n > 1 && n-1 >= until {
		if _, isKept := s.kept[next]; !isKept {
			s.early.ask(next)
		}
	}
	if isKept {
		return s.get(url)
	}
	return <-now
}
