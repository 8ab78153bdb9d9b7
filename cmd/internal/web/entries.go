package web

import (
	"context"
	"encoding/base64"
	"errors"
	"html/template"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/words"
	"github.com/feedhistory/feedhistory/republish"
)

const entriesPerPage = 50

// An entriesView is a list of entries.
type entriesView struct {
	selection
	Items  []entryItem
	First  bool   // whether this is the first page
	Next   string // the query of the next page; "" for none
	Newest string // the query of the first page
	Wrong  string // why the request has no answer
	River  bool   // entries of all feeds

	hits []month // the number of entries in each month, unless the list has all entries
}

// Hits returns how many entries of the feed meet the conditions, in all periods; -1 if
// uncounted.
func (v *entriesView) Hits() int64 {
	if v.hits == nil || v.Month != "" {
		return -1
	}
	return totalOf(v.hits)
}

// totalOf returns the number of entries in months.
func totalOf(months []month) (all int64) {
	for _, m := range months {
		all += m.Entries
	}
	return all
}

// An entryItem is an entry in a list.
type entryItem struct {
	Feed    string // the short name of the feed
	Of      string // the title of the feed, in a list of several feeds
	ID      string
	Title   template.HTML // with the words of a search marked; snippets, too
	Link    string        // the original; "" if unknown
	Lang    string        // the language of the title; "" if unknown
	Snippet template.HTML
	Time    time.Time
	State   mirror.State
	Damaged bool // whether the stored text cannot be read
}

// showRiver shows the newest entries of all feeds.
func (s *Server) showRiver(w http.ResponseWriter, r *http.Request) error {
	v, err := s.entries(r, nil)
	if err != nil {
		return err
	}
	return s.render(w, r, http.StatusOK, "entries", "Entries", v)
}

// entries returns the entries a request selects: of a feed or, if feed is
// nil, of all feeds.
func (s *Server) entries(r *http.Request, feed *mirror.Feed) (*entriesView, error) {
	asked, query := newSelection(r.URL.Query())
	v := &entriesView{selection: asked, First: query.Beyond == nil, Newest: asked.page("")}
	titles, search := map[string]string{}, searchOf(v.Search)
	if v.River = feed == nil; !v.River {
		query.Feed = feed.URL
	}
	if !v.River && (v.Search != "" || v.Gone) && v.Wrong == "" {
		if err := countHits(r.Context(), s.store, v, query); err != nil {
			return nil, err
		}
	}
	for record, err := range portions(r.Context(), s.store, query) {
		if errors.Is(err, errors.ErrUnsupported) {
			v.Wrong = "There is no word to search for, or there are too many. Type some words; their order and case do not matter. “Quotes” keep words together, a minus leaves a word out, and OR finds either."
			break
		}
		if err != nil {
			return nil, err
		}
		if len(v.Items) == entriesPerPage {
			v.Next = v.page(token(query.Beyond))
			break
		}
		item := s.item(record, search)
		if feed == nil {
			item.Of, err = titled(r.Context(), s.store, titles, record.Feed)
			if err != nil {
				return nil, err
			}
		}
		v.Items = append(v.Items, item)
		query.Beyond = record
	}
	return v, nil
}

// portion is the number of entries to read at once: each may be large, and of
// most a list shows only the beginning.
const portion = 10

// portions yields the entries of a query with a Limit, some at a time. A search
// costs more than its entries, so it is made only once.
func portions(ctx context.Context, store mirror.Store, q mirror.Query) iter.Seq2[*mirror.Record, error] {
	if q.Search != "" {
		return store.Entries(ctx, q)
	}
	return func(yield func(*mirror.Record, error) bool) {
		for left := q.Limit; left > 0; left -= portion {
			q.Limit = min(left, portion)
			n := 0
			for record, err := range store.Entries(ctx, q) {
				if !yield(record, err) || err != nil {
					return
				}
				n++
				q.Beyond = record
			}
			if n < q.Limit {
				return
			}
		}
	}
}

// countHits counts the entries of a feed's list by month.
func countHits(ctx context.Context, store mirror.Store, v *entriesView, q mirror.Query) error {
	counts, err := mirror.Months(ctx, store, mirror.Query{Feed: q.Feed, Search: q.Search, Prefix: q.Prefix, States: q.States})
	v.hits = sortedMonths(counts)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // the list reports it
	}
	return err
}

// titled returns the title of a feed, from titles if it was read before.
func titled(ctx context.Context, store mirror.Store, titles map[string]string, url string) (string, error) {
	if title, ok := titles[url]; ok {
		return title, nil
	}
	feed, err := store.Feed(ctx, url)
	if errors.Is(err, mirror.ErrNotFound) { // the feed has just been removed
		feed, err = &mirror.Feed{URL: url}, nil
	}
	if err != nil {
		return "", err
	}
	titles[url] = titleOf(feed)
	return titles[url], nil
}

// The maximum sizes of the text a list reads of an entry, and shows.
const (
	mostSnippetData = 64 << 10
	snippetLength   = 220
)

// item returns an entry for a list. Results without a search are cached,
// because a list spends most of its time reading entries.
func (s *Server) item(r *mirror.Record, search words.Query) entryItem {
	if search != nil {
		return newItem(r, search)
	}
	key := itemKey{r.Feed, r.ID, r.LastCommit, r.Changed.UnixNano()}
	item, ok := s.items.Get(key)
	if !ok {
		item = newItem(r, nil)
		s.items.Put(key, item)
	}
	return item
}

// An itemKey is an entry since its last change. If a feed is removed and added
// again, changes have the same numbers, but different times.
type itemKey struct {
	feed, id        string
	change, changed int64
}

func newItem(r *mirror.Record, search words.Query) entryItem {
	item := entryItem{
		Feed: republish.Name(r.Feed), ID: r.ID, Link: webLink(r.Content.Link), Title: marked(shownTitle(r.Content), search), Time: r.Time(), State: r.State,
	}
	if len(r.Content.Data) > mostSnippetData {
		return item
	}
	e, err := r.Entry()
	if item.Damaged = err != nil; err == nil {
		item.Lang, item.Snippet = e.Title().Lang, marked(snippet(e, search), search)
	}
	return item
}

// apart puts a space at the end of a block of text.
var apart = strings.NewReplacer("</p>", " </p>", "</li>", " </li>", "</div>", " </div>", "</td>", " </td>", "</h", " </h", "<br", " <br")

func plain(t feedhistory.Text) string {
	if t.Type == "html" || t.Type == "xhtml" {
		t.Body = apart.Replace(t.Body)
	}
	return t.Plain()
}

// snippet returns the beginning of an entry's text, or the text around the
// first word of a search.
func snippet(e *feedhistory.Entry, search words.Query) string {
	text := plain(e.Summary())
	if text == "" {
		text = plain(e.Content())
	}
	text = around(strings.Join(strings.Fields(text), " "), search)
	if utf8.RuneCountInString(text) <= snippetLength {
		return text
	}
	cut := string([]rune(text)[:snippetLength])
	if space := strings.LastIndexByte(cut, ' '); space > snippetLength/2 {
		cut = cut[:space]
	}
	return strings.TrimRight(cut, " .,;:") + " …"
}

// around cuts off the text long before the first word of a search.
func around(text string, search words.Query) string {
	if search == nil {
		return text
	}
	fields := strings.Split(text, " ")
	at := slices.IndexFunc(fields, search.Marks)
	const before = 8 // words to show before it
	if at <= 2*before {
		return text
	}
	return "… " + strings.Join(fields[at-before:], " ")
}

// A selection is a request for entries.
type selection struct {
	Search string
	Month  string    // the first month, as in "2003-11"; "" means all
	Span   int       // the number of months
	Day    int       // the day of the month; zero means all
	From   time.Time // the beginning of the period
	To     time.Time // the last day of the period
	Gone   bool      // only entries no longer part of the feed
	Oldest bool      // oldest entries first
}

// states returns the kinds of entries on the page.
func (s selection) states() mirror.States {
	if s.Gone {
		return mirror.Former
	}
	return mirror.Current
}

// newSelection reads the query of a URL, and returns the query for the entries of its page.
// It ignores invalid values.
func newSelection(q url.Values) (selection, mirror.Query) {
	s := selection{Search: strings.TrimSpace(q.Get("q")), Gone: q.Get("deleted") != "", Oldest: q.Get("order") == "oldest"}
	query := mirror.Query{Search: s.Search, Prefix: words.IsBeginning(s.Search), States: s.states(), Reverse: s.Oldest, Limit: entriesPerPage + 1}
	if from, err := time.Parse("2006-01", q.Get("month")); err == nil {
		s.Month, s.From, s.Span = q.Get("month"), from, 1
		if span, err := strconv.Atoi(q.Get("span")); err == nil && 1 < span && span <= 1200 {
			s.Span = span
		}
		query.Since, query.Until = from, from.AddDate(0, s.Span, 0)
		if n, err := strconv.Atoi(q.Get("day")); err == nil && s.Span == 1 && n >= 1 && n <= query.Until.AddDate(0, 0, -1).Day() {
			s.Day, s.From = n, from.AddDate(0, 0, n-1)
			query.Since, query.Until = s.From, s.From.AddDate(0, 0, 1)
		}
		s.To = query.Until.AddDate(0, 0, -1)
	}
	query.Beyond = parseToken(q.Get("before"))
	return s, query
}

// Asked reports whether the list has only a selection of the entries.
func (s *selection) Asked() bool { return s.Search != "" || s.Month != "" || s.Gone }

// Filters returns the conditions of the list, each with the query of the list without it.
func (s *selection) Filters() (all []address) {
	without := func(drop func(*selection)) string {
		other := *s
		drop(&other)
		return other.page("")
	}
	if s.Search != "" {
		all = append(all, address{Says: "With “" + s.Search + "”", URL: without(func(s *selection) { s.Search = "" })})
	}
	if s.Month != "" {
		says := "From " + s.From.Format("January 2006")
		switch {
		case s.Span == 12 && s.From.Month() == time.January:
			says = "From " + s.From.Format("2006")
		case s.Span > 1:
			says += " to " + s.To.Format("January 2006")
		case s.Day > 0:
			says = "From " + day(s.From)
		}
		all = append(all, address{Says: says, URL: without(func(s *selection) { s.Month, s.Span, s.Day = "", 0, 0 })})
	}
	if s.Gone {
		all = append(all, address{Says: "No longer part of the feed", URL: without(func(s *selection) { s.Gone = false })})
	}
	return all
}

// period returns the query of the same list for some months only.
func (s *selection) period(from time.Time, months int) string {
	other := *s
	other.Month, other.Span, other.Day = from.Format("2006-01"), months, 0
	return other.page("")
}

// contains reports whether the list's period contains these months.
func (s *selection) contains(from time.Time, months int) bool {
	return s.Month != "" && !from.Before(s.From) && !from.AddDate(0, months, 0).After(s.To.AddDate(0, 0, 1))
}

// isPeriod reports whether the list's period is exactly these months.
func (s *selection) isPeriod(from time.Time, months int) bool {
	return s.Month != "" && s.From.Equal(from) && s.Span == months
}

// page returns the query of the page from a place on.
func (s *selection) page(before string) string {
	return queryOf("q", s.Search, "month", s.Month, "span", when(s.Span > 1, strconv.Itoa(s.Span)), "day", when(s.Day > 0, strconv.Itoa(s.Day)),
		"deleted", when(s.Gone, "1"), "order", when(s.Oldest, "oldest"), "before", before)
}

// queryOf returns a query of names and values, without empty values.
func queryOf(pairs ...string) string { return "?" + valuesOf(pairs...).Encode() }

// valuesOf returns names and values, without empty values.
func valuesOf(pairs ...string) url.Values {
	q := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			q.Set(pair[0], pair[1])
		}
	}
	return q
}

// when returns a text under a condition, else "".
func when(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// Turned returns the query of the same list in the opposite order.
func (s *selection) Turned() string {
	other := *s
	other.Oldest = !s.Oldest
	return other.page("")
}

// All returns the query of all entries, in the same order.
func (s *selection) All() string { return (&selection{Oldest: s.Oldest}).page("") }

// searchOf returns a search as the store reads it; nil if there is nothing to look for.
func searchOf(text string) words.Query {
	search, err := words.Parse(text, words.IsBeginning(text))
	if err != nil {
		return nil // the store reports it
	}
	return search
}

// token encodes the place of an entry in the order for a URL.
func token(c *mirror.Record) string {
	text := c.Time().UTC().Format(time.RFC3339Nano) + "\n" + c.Feed + "\n" + c.ID
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseToken decodes a token; nil, which means the first page, if it is
// invalid.
func parseToken(token string) *mirror.Record {
	text, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.SplitN(string(text), "\n", 3)
	if err != nil || len(parts) < 3 || !utf8.Valid(text) {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, parts[0])
	if err != nil {
		return nil
	}
	return &mirror.Record{Added: at, Feed: parts[1], ID: parts[2]}
}
