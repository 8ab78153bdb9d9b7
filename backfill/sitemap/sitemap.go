// Package sitemap recovers entries from the pages of a feed's site.
//
// Many sites show ten entries in their feed, but list all their pages in a sitemap. A
// [Site] is a backfill.Method that reads this list, tells the posts from other pages, and
// makes an entry of each post the feed no longer has:
//
//	b := backfill.Backfill{Methods: append(backfill.Methods(), sitemap.Site{})}
//	r, err := b.Fetch(ctx, "https://example.org/index.xml", backfill.Probe{})
//
// It is a module of its own because it brings an extractor of texts from HTML.
package sitemap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/temoto/robotstxt"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
)

// A Site recovers entries from the pages of a feed's site. The zero value is ready to use.
//
// It looks for the site's posts in the sitemaps that robots.txt names, or in /sitemap.xml;
// if there is none, in an archive page and the pages that follow it; if there is none
// either, it goes from post to post by rel=prev. It does not read what robots.txt forbids
// feedhistory.
//
// An entry is made only of a page whose address has the form of the feed's own links, and
// which says of itself as much as the pages of the feed's entries do (JSON-LD, Open Graph,
// h-entry, time). It needs a time. A page from elsewhere in the site is one only if it says
// by JSON-LD or Open Graph that it is an article, and of when.
//
// The ID of an entry is the one the feed would give it, if that follows from the address,
// as with Hugo and Jekyll; otherwise it is the address. Its KeptBy is the method's name, so
// any copy of the feed's own takes precedence.
//
// Each walk reads as many pages as Client.Budget allows documents, in the time that it allows. Keep
// continues there.
type Site struct {
	Pace time.Duration // the minimum time between requests to the site; zero means one second, a negative one is an error

	// Announce, if not nil, is called before the posts are read.
	Announce func(Plan)
}

// A Plan is the work before a walk.
type Plan struct {
	Feed  string        // the URL of the feed
	Pages int           // the pages that may be posts and are still to be read; 0 if only each page leads to the next
	Most  int           // the most pages to be read in this walk
	Pace  time.Duration // the time between two requests
}

// The modes of a Probe: where the addresses of posts come from.
const (
	modeSitemap  = "sitemap"
	modeArchive  = "archive"
	modePrevious = "previous"
)

// name is the method's name, and that of its copies.
const name = "sitemap"

// Name returns "sitemap".
func (Site) Name() string { return name }

// Recognise returns Any for plain feeds, because any site may have a sitemap.
func (Site) Recognise(doc *feedhistory.Document) backfill.Sign {
	if doc == nil || doc.Kind() != feedhistory.KindPlain {
		return backfill.No
	}
	return backfill.Any
}

// Probe reads robots.txt and the list of the site's pages. It reports whether that has
// posts which have not come. The error may be the context's.
func (m Site) Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *backfill.Probe) (bool, error) {
	w, err := m.begin(ctx, c, doc, p)
	if err == nil {
		err = w.survey()
	}
	if reason, ok := errors.AsType[misfit](err); ok {
		p.Reason = string(reason)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.Mode, p.Read = w.mode, w
	return true, nil
}

// Documents yields a document for each post. The error may be the context's.
func (m Site) Documents(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *backfill.Probe) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		if doc == nil || p == nil {
			yield(nil, errors.New("sitemap: Documents needs a document and a Probe"))
			return
		}
		w, ok := p.Read.(*walk)
		p.Read = nil
		if !ok {
			var err error
			if w, err = m.begin(ctx, c, doc, p); err == nil {
				err = w.survey()
			}
			if _, none := errors.AsType[misfit](err); none {
				p.SetPlace("")
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
		defer w.http.CloseIdle()
		w.begun = time.Now()
		w.yield = func(doc *feedhistory.Document, err error) bool {
			left := time.Now()
			goesOn := yield(doc, err)
			w.begun = w.begun.Add(time.Since(left)) // the caller's time is not the walk's
			return goesOn
		}
		w.pages()
	}
}

// A misfit is the error of a site without posts to be recovered.
type misfit string

// Error implements error.
func (m misfit) Error() string { return string(m) }

// A walk is one use of a Site.
type walk struct {
	Site
	ctx   context.Context
	http  *feedhistory.Client // polite to the site
	doc   *feedhistory.Document
	probe *backfill.Probe
	yield func(*feedhistory.Document, error) bool

	scope                                   // what belongs to the feed
	rules  map[string]*robotstxt.RobotsData // by host
	mode   string                           // where the posts come from
	posts  []address                        // the pages to read
	known  map[string]backfill.KnownEntry   // by the keys of their links
	ids    map[string]bool                  // of the known entries
	titles map[string]bool                  // of the feed's entries, with their days
	dated  bool                             // the sitemap's times can be believed
	timed  bool                             // and are those at which posts were published
	listed map[string]bool                  // the keys of all pages in the list, and of those that have come
	model  model                            // what the pages of the feed's entries have in common

	begun  time.Time
	read   int   // the number of pages read
	bytes  int64 // and their length
	failed int   // pages in succession that could not be read
	resume *place
}

// An address is that of a page which may be a post.
type address struct {
	URL      string
	Modified time.Time // by the list; zero if it does not say
	alien    bool      // the form is not that of the feed's links
}

func (m Site) begin(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *backfill.Probe) (*walk, error) {
	if c == nil || doc == nil || p == nil {
		return nil, errors.New("sitemap: Site: the Client, the Document or the Probe is nil")
	}
	if m.Pace < 0 {
		return nil, errors.New("sitemap: Site.Pace is negative")
	}
	w := &walk{Site: m, ctx: ctx, http: c.Clone(), doc: doc, probe: p, rules: map[string]*robotstxt.RobotsData{},
		known: map[string]backfill.KnownEntry{}, ids: map[string]bool{}, titles: map[string]bool{}, listed: map[string]bool{}}
	w.http.Pace, w.http.PerHost = max(c.Pace, cmp.Or(m.Pace, time.Second)), 1
	var err error
	if w.scope, err = scopeOf(doc, c.OneOrigin); err != nil {
		return nil, err
	}
	for _, e := range doc.Entries {
		w.know(backfill.KnownEntry{ID: e.ID, Link: linkOf(e)})
		w.titles[titleKey(e.Title().Plain(), e.Time())] = true
	}
	for e, err := range p.Known(ctx) {
		if err != nil {
			return nil, err
		}
		w.know(e)
	}
	return w, nil
}

// know adds an entry to the known ones. The publisher's own copy counts.
func (w *walk) know(e backfill.KnownEntry) {
	w.ids[e.ID] = true
	for _, at := range []string{e.Link, e.ID} {
		k := key(at)
		if before, ok := w.known[k]; strings.HasPrefix(at, "http") && (!ok || before.KeptBy != "") {
			w.known[k] = e
		}
	}
}

func titleKey(title string, at time.Time) string {
	return strings.Join(strings.Fields(title), " ") + " " + at.UTC().Format(time.DateOnly)
}

// survey finds the addresses of the site's posts. The error is a misfit if there are none
// but known ones.
func (w *walk) survey() error {
	rules, err := w.robots(w.home.String())
	if err != nil {
		return err
	}
	if !w.mayRead(w.home.String()) {
		return misfit("the site's robots.txt forbids reading its pages")
	}
	w.mode = modeSitemap
	listed, err := w.sitemaps(rules)
	if err != nil {
		return err
	}
	if len(listed) == 0 {
		w.mode = modeArchive
		if listed, err = w.archives(); err != nil {
			return err
		}
	}
	w.dated = areTimes(listed, time.Now())
	for _, a := range listed {
		w.listed[key(a.URL)] = true
	}
	w.learnTimes(listed)
	w.posts = slices.DeleteFunc(listed, func(a address) bool { return !w.isNews(a) })
	slices.SortFunc(w.posts, w.compare)
	if len(listed) == 0 {
		w.mode = modePrevious
		return nil
	}
	if len(w.posts) == 0 {
		return misfit("the site lists no other posts than the feed shows")
	}
	return nil
}

// learnTimes learns whether the list's times are those at which posts were published, as with
// Hugo: they are for all entries of the feed. Posts at the root of a site could be any page,
// so pages there have to say more.
func (w *walk) learnTimes(listed []address) {
	times, same := map[string]time.Time{}, 0
	for _, a := range listed {
		times[key(a.URL)] = a.Modified
	}
	for _, e := range w.doc.Entries {
		link := linkOf(e)
		u, err := url.Parse(link)
		switch t := times[key(link)]; {
		case t.IsZero():
		case err != nil || path.Dir(strings.TrimSuffix(u.Path, "/")) == "/" || !t.Equal(e.Time()):
			return
		default:
			same++
		}
	}
	w.timed = w.dated && same > 1
}

// isNews reports whether a page has to be read: it is not known, or has changed since.
func (w *walk) isNews(a address) bool {
	e, known := w.known[key(a.URL)]
	return !known || e.KeptBy == name && w.dated && a.Modified.Sub(e.Updated) > 24*time.Hour
}

// areTimes reports whether the times of a list can be believed: they differ from page to page,
// and none is yet to come. Many generators give every page the time at which they ran.
func areTimes(list []address, now time.Time) bool {
	days, dated := map[string]int{}, 0
	for _, a := range list {
		if a.Modified.After(now.Add(48 * time.Hour)) {
			return false
		}
		if !a.Modified.IsZero() {
			dated++
			days[a.Modified.UTC().Format(time.DateOnly)]++
		}
	}
	most := 0
	for _, n := range days {
		most = max(most, n)
	}
	return dated > 0 && (most*2 <= dated || dated == 1)
}

// compare orders pages: latest first, as far as the site tells.
func (w *walk) compare(a, b address) int {
	if w.dated {
		if c := b.Modified.Compare(a.Modified); c != 0 {
			return c
		}
	}
	return strings.Compare(b.URL, a.URL)
}

// A place is where a walk continues: at the first page that comes after At in order.
// Pages changed since Begun are read as well.
type place struct {
	At    address   `json:"at"`
	Begun time.Time `json:"begun"`
}

// has reports whether a page has been read before the place.
func (w *walk) has(a address) bool {
	return w.resume != nil && w.resume.At.URL != "" && w.compare(a, w.resume.At) <= 0 && !(w.dated && a.Modified.After(w.resume.Begun))
}

// mostFailed is the number of failed pages in succession after which a site is left alone.
const mostFailed = 5

// pages reads the pages, and yields the posts among them.
func (w *walk) pages() {
	begun := time.Now()
	if own := w.probe.Place(); own != "" {
		w.resume = &place{}
		if json.Unmarshal([]byte(own), w.resume) != nil {
			w.resume = nil
		} else {
			begun = w.resume.Begun
		}
	}
	if err := w.learn(); err != nil {
		w.yield(nil, err)
		return
	}
	if w.mode == modePrevious {
		w.previous(begun)
		return
	}
	w.posts = slices.DeleteFunc(w.posts, w.has)
	w.announce(len(w.posts))
	at := place{Begun: begun}
	if w.resume != nil {
		at = *w.resume
	}
	w.setPlace(at)
	failed := false // whether a page is to be read again
	for _, a := range w.posts {
		page, goOn := w.page(a)
		if !goOn {
			return
		}
		if failed = failed || w.failed > 0; !failed {
			w.setPlace(place{At: a, Begun: begun})
		}
		if page != nil && !w.post(page, a) {
			return
		}
	}
	if !failed {
		w.probe.SetPlace("")
	}
}

func (w *walk) setPlace(p place) {
	own, _ := json.Marshal(p) // cannot fail for a string and times
	w.probe.SetPlace(string(own))
}

func (w *walk) announce(pages int) {
	if w.Announce != nil {
		w.Announce(Plan{Feed: w.doc.URL, Pages: pages, Most: w.most(), Pace: w.http.Pace})
	}
}

// most is the number of pages the budget allows.
func (w *walk) most() int {
	return cmp.Or(w.probe.Budget.Documents, w.http.Budget.Documents, 10_000)
}

// page reads a page, within the budget. It returns nil for one that is no page, or cannot be
// read, and reports whether to go on.
func (w *walk) page(a address) (*page, bool) {
	limit := cmp.Or(w.probe.Budget.Time, w.http.Budget.Time)
	if w.read >= w.most() || w.bytes >= cmp.Or(w.probe.Budget.Bytes, w.http.Budget.Bytes, 1<<30) || limit > 0 && time.Since(w.begun) >= limit {
		gap := feedhistory.NewGap(a.URL, fmt.Errorf("spent: %d of %d pages, %d bytes", w.read, w.most(), w.bytes))
		gap.From, gap.Reason = w.home.String(), feedhistory.ReasonBudget
		w.yield(nil, gap)
		return nil, false
	}
	p, err := w.get(a.URL)
	w.read++
	failed, _ := errors.AsType[*feedhistory.FetchError](err)
	switch {
	case err == nil:
		w.failed = 0
		return p, true
	case w.ctx.Err() != nil:
		w.yield(nil, w.ctx.Err())
		return nil, false
	case errors.Is(err, errNoPage), errors.Is(err, fs.ErrNotExist), failed != nil && failed.Status == http.StatusNotModified:
		w.failed = 0
		return nil, true
	}
	w.failed++
	if refused := failed != nil && failed.Status >= 400 && failed.Status < 500 && failed.Status != http.StatusTooManyRequests; refused && w.failed == mostFailed {
		w.probe.SetPlace("") // the next walk would end in the same way
	}
	gap := feedhistory.NewGap(a.URL, err)
	gap.From = w.home.String()
	return nil, w.yield(nil, gap) && w.failed < mostFailed
}

// post yields a page's entry, if it is a post still to come. It reports whether to go on.
func (w *walk) post(p *page, a address) bool {
	address := w.addressOf(p, a)
	if key(address) != key(a.URL) && w.listed[key(address)] {
		return true // a copy of another page
	}
	if p.published.IsZero() && w.timed {
		p.published, p.signs = a.Modified, p.signs|byList
	}
	known, isKnown := w.known[key(address)]
	if isKnown && known.KeptBy != name || !w.isPost(p, a, address) {
		return true
	}
	id := w.idOf(p, address, a.URL, p.url)
	if title := titleKey(w.titleOf(p), p.published); w.titles[title] || w.ids[id] && !isKnown {
		return true
	}
	doc, err := w.document(p, id, address)
	if err != nil {
		return w.yield(nil, feedhistory.NewGap(a.URL, err))
	}
	w.know(backfill.KnownEntry{ID: id, Link: address})
	w.listed[key(address)] = true
	return w.yield(doc, nil)
}
