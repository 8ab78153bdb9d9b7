package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish/serve"
	"github.com/feedhistory/feedhistory/republish"
)

// A feedView is a feed as a page shows it.
type feedView struct {
	*mirror.Feed
	Waits, Runs bool // whether it waits for a poll, or is being polled
	Newest      time.Time
	Oldest      time.Time // the month of the oldest entry
	Gaps        []gapView
	Missing     []gapView // the gaps except those still to be read
	Years       string    // in a list, the path of its strip, on the scale of all feeds
}

// Name returns the short name of the feed, for addresses.
func (v *feedView) Name() string { return republish.Name(v.URL) }

// Title returns the title of the feed.
func (v *feedView) Title() string { return titleOf(v.Feed) }

// titleOf returns the title of a feed for its reader: the reader's own one, or else the
// publisher's.
func titleOf(feed *mirror.Feed) string { return cmp.Or(feed.Named, republish.Title(feed)) }

// InFolders returns the folders of the feed, each with the query of its feeds.
func (v *feedView) InFolders() (all []address) {
	for _, path := range v.Folders {
		all = append(all, address{Says: strings.Join(path, " › "), URL: listing{Folder: folderKey(path)}.page("")})
	}
	return all
}

// Busy reports whether the feed is about to change.
func (v *feedView) Busy() bool { return v.Waits || v.Runs }

// Fresh reports whether the feed has never been read.
func (v *feedView) Fresh() bool { return isFresh(v.Feed) }

func isFresh(f *mirror.Feed) bool { return f.Ledger.URL() == "" && f.Entries == 0 }

// isUnread reports whether nothing of the feed can be published yet.
func isUnread(f *mirror.Feed) bool { return f.Head == "" && f.Entries == 0 }

// Due reports whether the feed will be polled as soon as its turn comes.
func (v *feedView) Due() bool { return !v.Gone && v.Alias == "" && !v.Next.After(time.Now()) }

// view returns a feed as a page shows it.
func (s *Server) view(ctx context.Context, feed *mirror.Feed) (*feedView, figures, error) {
	v := &feedView{Feed: feed}
	v.Waits, v.Runs = s.polls.Status(feed.URL)
	f, err := s.feeds.figuresOf(ctx, feed)
	v.Newest, v.Oldest = f.newest, f.oldest()
	v.Gaps = gapsOf(feed)
	v.Missing = slices.DeleteFunc(slices.Clone(v.Gaps), func(g gapView) bool { return g.Todo })
	return v, f, err
}

const feedsPerPage = 100

type feedsView struct {
	listing
	Feeds   []*feedView
	After   string // where the page begins; "" for the first page
	Next    string // where the next page begins; "" for none
	Found   int    // the number of selected feeds
	Said    string
	Address string    // the typed address
	Wrong   string    // why it was refused
	Known   *feedView // the feed it probably leads to; nil for none
	Insist  string    // the address to add although it is wrong; "" for none
	Logins  bool      // whether a feed may be added with a login
	User    string    // the typed name; "" for none
	Asks    bool      // whether the address needs a login

	Welcome      []*shelf // nil in a selection of feeds
	Since, Until int      // the years of the strips
}

// Many reports whether there are enough feeds for a search.
func (v *feedsView) Many() bool { return v.Asked() || v.After != "" || len(v.Feeds) > 5 }

// First and More return the queries of the first and of the next page.
func (v *feedsView) First() string { return v.page("") }
func (v *feedsView) More() string  { return v.page(v.Next) }

// refresh reports whether the page must be loaded again, because a feed is
// being read for the first time.
func (v *feedsView) refresh() bool {
	return slices.ContainsFunc(v.Feeds, func(f *feedView) bool { return f.Busy() && f.Fresh() })
}

// said are the messages after an action.
var said = map[string]string{
	"removed": "The feed has been removed, with everything that belonged to it.",
	"leads":   "The address that you added leads to this feed.",
}

// showFeeds shows the list of feeds.
func (s *Server) showFeeds(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := &feedsView{listing: listingOf(q), After: q.Get("after"), Said: said[q.Get("said")]}
	if message, ok := s.adder.outcomes.Get(q.Get("outcome")); ok {
		v.Said = message
	}
	return s.listFeeds(w, r, http.StatusOK, v)
}

func (s *Server) listFeeds(w http.ResponseWriter, r *http.Request, status int, v *feedsView) error {
	list := s.usualFeeds
	if v.Asked() {
		list = s.askedFeeds
	}
	feeds, err := list(r.Context(), v)
	if err != nil {
		return err
	}
	v.Logins = s.adder.keys != nil
	v.Until = s.now().UTC().Year()
	v.Since = v.Until
	var months [][]month // of each feed
	for _, feed := range feeds {
		view, figures, err := s.view(r.Context(), feed)
		if err != nil {
			return err
		}
		v.Feeds, months = append(v.Feeds, view), append(months, figures.months)
		if oldest := figures.oldest(); !oldest.Before(earliest) {
			v.Since = min(v.Since, oldest.Year())
		}
	}
	for i, view := range v.Feeds {
		view.Years = stripPath(v.byYear(months[i]))
	}
	if len(feeds) > 0 && status == http.StatusOK && !v.Asked() && v.After == "" {
		select {
		case s.building <- struct{}{}: // it reads entries
			v.Welcome, err = s.welcome(r.Context(), feeds)
			<-s.building
		default: // the feeds are always there
		}
		if err != nil {
			return err
		}
	}
	return s.render(w, r, status, "feeds", "Feeds", v)
}

// byYear counts the entries of months in each year of the strips.
func (v *feedsView) byYear(months []month) []int64 {
	bins := make([]int64, v.Until-v.Since+1)
	for _, m := range months {
		bins[min(max(m.Start.Year()-v.Since, 0), len(bins)-1)] += m.Entries
	}
	return bins
}

// usualFeeds returns all feeds. If they do not fit on one page, it orders them by URL, so
// it need not read all of them.
func (s *Server) usualFeeds(ctx context.Context, v *feedsView) (feeds []*mirror.Feed, err error) {
	n, last := 0, ""
	for feed, err := range s.store.Feeds(ctx, mirror.FeedQuery{After: v.After, Limit: feedsPerPage + 1}) {
		if err != nil {
			return nil, err
		}
		if n++; n > feedsPerPage {
			v.Next = last
			break
		}
		if last = feed.URL; feed.Alias == "" { // else it is the other feed
			feeds = append(feeds, feed)
		}
	}
	if v.After == "" && v.Next == "" {
		slices.SortStableFunc(feeds, func(a, b *mirror.Feed) int {
			return cmp.Compare(strings.ToLower(titleOf(a)), strings.ToLower(titleOf(b)))
		})
	}
	return feeds, nil
}

// askedFeeds returns the selected feeds.
func (s *Server) askedFeeds(ctx context.Context, v *feedsView) (feeds []*mirror.Feed, err error) {
	rows, err := s.rows(ctx, v.listing)
	if err != nil {
		return nil, err
	}
	v.Found = len(rows)
	rows, v.Next = pageOf(rows, v.After)
	for _, row := range rows {
		feed, err := s.store.Feed(ctx, row.url)
		if errors.Is(err, mirror.ErrNotFound) {
			continue // it has just been removed
		}
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, feed)
	}
	return feeds, nil
}

// A listing is a selection of feeds in an order.
type listing struct {
	Search string
	Show   string // a key of parts; "" means all
	Sort   string // a key of orders; "" means the usual order
	Folder string // a folder's path, with slashes; "" means all
}

// folderKey returns a folder's path as it is in addresses. A folder also has the feeds of
// the folders in it.
func folderKey(path []string) string { return strings.Join(path, "/") }

// isIn reports whether the listing's folder has a feed.
func (l listing) isIn(feed *mirror.Feed) bool {
	return l.Folder == "" || slices.ContainsFunc(feed.Folders, func(path []string) bool {
		return strings.HasPrefix(folderKey(path)+"/", l.Folder+"/")
	})
}

// A choice is a choice in a form.
type choice struct {
	Key, Says string
	Chosen    bool
}

var (
	parts = []choice{
		{Says: "All feeds"}, {Key: "partial", Says: "Something is missing"}, {Key: "lossy", Says: "Paged, may have lost some"},
		{Key: "window", Says: "Latest entries only"}, {Key: "whole", Says: "Whole"},
		{Key: "silent", Says: "Silent for a year"}, {Key: "failing", Says: "Last poll failed"},
	}
	orders = []choice{
		{Says: "By title"}, {Key: "partial", Says: "Partial first"}, {Key: "entries", Says: "Most entries first"},
		{Key: "newest", Says: "Newest entry first"}, {Key: "silent", Says: "Longest silent first"},
	}
)

// Parts and Orders are the choices of the form.
func (l listing) Parts() []choice  { return parts }
func (l listing) Orders() []choice { return orders }

// Asked reports whether the listing differs from the usual list.
func (l listing) Asked() bool { return l != listing{} }

// listingOf reads the query of a URL. It ignores unknown values.
func listingOf(q url.Values) listing {
	one := func(key string, of []choice) string {
		if slices.ContainsFunc(of, func(c choice) bool { return c.Key == q.Get(key) }) {
			return q.Get(key)
		}
		return ""
	}
	return listing{Search: strings.TrimSpace(q.Get("q")), Show: one("show", parts), Sort: one("sort", orders), Folder: strings.Trim(q.Get("folder"), "/")}
}

// page returns the query of the page from a place on.
func (l listing) page(at string) string {
	return queryOf("q", l.Search, "show", l.Show, "sort", l.Sort, "folder", l.Folder, "after", at)
}

// silence is the time without new entries after which a feed counts as silent.
const silence = 365 * 24 * time.Hour

// has reports whether the listing selects a feed. Newest is the time of its
// newest entry.
func (l listing) has(feed *mirror.Feed, newest, now time.Time) bool {
	switch l.Show {
	case "":
		return true
	case "silent":
		return !newest.IsZero() && now.Sub(newest) > silence
	case "failing":
		return feed.Error != ""
	}
	return !isFresh(feed) && feed.Verdict.String() == l.Show
}

// A row is a feed in the list, with its sort keys.
type row struct {
	url, title string
	missing    int // how much may be missing: the worse the verdict, the more
	entries    int64
	newest     time.Time
}

// compare orders rows; equal ones by title.
func (l listing) compare(a, b row) int {
	order := 0
	switch l.Sort {
	case "partial":
		order = cmp.Compare(b.missing, a.missing)
	case "entries":
		order = cmp.Compare(b.entries, a.entries)
	case "newest":
		order = b.newest.Compare(a.newest)
	case "silent":
		if order = a.newest.Compare(b.newest); a.newest.IsZero() != b.newest.IsZero() {
			order = -order // feeds without entries come last
		}
	}
	return cmp.Or(order, cmp.Compare(a.title, b.title), cmp.Compare(a.url, b.url))
}

// rows returns the feeds of a listing in its order.
func (s *Server) rows(ctx context.Context, l listing) ([]row, error) {
	words := strings.Fields(strings.ToLower(l.Search))
	dated := l.Show == "silent" || l.Sort == "silent" || l.Sort == "newest"
	if dated {
		s.feeds.summing.Lock()
		defer s.feeds.summing.Unlock()
	}
	var rows []row
	for feed, err := range s.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		title := strings.ToLower(titleOf(feed))
		text := title + " " + strings.ToLower(feed.URL)
		for _, path := range feed.Folders {
			text += " " + strings.ToLower(folderKey(path))
		}
		if feed.Alias != "" || !l.isIn(feed) || slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		r := row{url: feed.URL, title: title, missing: int(feedhistory.VerdictWhole - feed.Verdict), entries: feed.Entries}
		if isFresh(feed) {
			r.missing = -1 // unknown
		}
		if dated {
			if r.newest, err = s.feeds.newestOf(ctx, feed); err != nil {
				return nil, err
			}
		}
		if l.has(feed, r.newest, s.now()) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, l.compare)
	return rows, nil
}

// pageOf returns the rows on the page after a feed, and the feed after which the next
// page begins; "" if there is none.
func pageOf(rows []row, after string) (page []row, next string) {
	at := slices.IndexFunc(rows, func(r row) bool { return r.url == after }) + 1
	page = rows[at:min(len(rows), at+feedsPerPage)]
	if at+len(page) < len(rows) {
		next = page[len(page)-1].url
	}
	return page, next
}

// exportOPML answers with all feeds as OPML: the feeds themselves; with ?mirrored, the
// feeds this server publishes; or with ?feed=complete, their documents for readers that
// follow no archives.
func (s *Server) exportOPML(w http.ResponseWriter, r *http.Request) error {
	document, q := "", r.URL.Query()
	switch {
	case q.Get("feed") == "complete":
		document = "/complete.atom"
	case q.Has("feed"):
		return &problem{http.StatusBadRequest, "This address is not valid: feed=" + q.Get("feed"), "There is feed=complete."}
	case q.Has("mirrored"):
		document = "/index.atom"
	}
	var outlines []readers.Outline
	changed := time.Unix(0, 0)
	for feed, err := range s.store.Feeds(r.Context(), mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
		if feed.Alias != "" || document != "" && isUnread(feed) { // which has no documents yet
			continue
		}
		o := readers.OutlineOf(feed, republish.Title(feed), republish.Site(feed))
		if document != "" {
			name, err := s.published.Name(r.Context(), feed.URL)
			if err != nil {
				return err
			}
			o.URL = s.base() + "feeds/" + name + document
		}
		if feed.Changed.After(changed) {
			changed = feed.Changed
		}
		outlines = append(outlines, o)
	}
	var b bytes.Buffer
	if err := readers.WriteOPML(&b, changed, outlines); err != nil { // the time changes only with the feeds
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/x-opml; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="feeds.opml"`)
	h.Set("Cache-Control", "no-cache")
	serve.NewBody(b.Bytes()).Serve(w, r, http.StatusOK)
	return nil
}
