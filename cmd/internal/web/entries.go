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
	"unicode"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

const entriesPerPage = 50

// An entriesView is a list of entries, with the request for it.
type entriesView struct {
	Items  []entryItem
	Search string
	Month  string    // the first month, as in "2003-11"; "" means all
	Span   int       // the number of months
	Day    int       // the day of the month; zero means all
	From   time.Time // the beginning of the period
	To     time.Time // the last day of the period
	Gone   bool      // only entries no longer part of the feed
	Oldest bool      // oldest entries first
	First  bool      // whether this is the first page
	Next   string    // the query of the next page; "" for none
	Newest string    // the query of the first page
	Wrong  string    // why the request has no answer
	River  bool      // entries of all feeds

	hits []mirror.Month // the number of entries in each month, unless the list has all entries
}

// Asked reports whether the list has only a selection of the entries.
func (v *entriesView) Asked() bool { return v.Search != "" || v.Month != "" || v.Gone }

// A filter is a condition of a list.
type filter struct {
	Says    string
	Without string // the query of the list without the condition
}

// Filters returns the conditions of the list.
func (v *entriesView) Filters() (all []filter) {
	without := func(drop func(*entriesView)) string {
		other := *v
		drop(&other)
		return other.page("")
	}
	if v.Search != "" {
		all = append(all, filter{"With “" + v.Search + "”", without(func(v *entriesView) { v.Search = "" })})
	}
	if v.Month != "" {
		says := "From " + v.From.Format("January 2006")
		switch {
		case v.Span == 12 && v.From.Month() == time.January:
			says = "From " + v.From.Format("2006")
		case v.Span > 1:
			says += " to " + v.To.Format("January 2006")
		case v.Day > 0:
			says = "From " + day(v.From)
		}
		all = append(all, filter{says, without(func(v *entriesView) { v.Month, v.Span, v.Day = "", 0, 0 })})
	}
	if v.Gone {
		all = append(all, filter{"No longer part of the feed", without(func(v *entriesView) { v.Gone = false })})
	}
	return all
}

// Hits returns how many entries of the feed meet the conditions, in all periods; -1 if
// uncounted.
func (v *entriesView) Hits() int64 {
	if v.hits == nil || v.Month != "" {
		return -1
	}
	all := int64(0)
	for _, m := range v.hits {
		all += m.Entries
	}
	return all
}

// period returns the query of the same list for some months only.
func (v *entriesView) period(from time.Time, months int) string {
	other := *v
	other.Month, other.Span, other.Day = from.Format("2006-01"), months, 0
	return other.page("")
}

// contains reports whether the list's period contains these months.
func (v *entriesView) contains(from time.Time, months int) bool {
	return v.Month != "" && !from.Before(v.From) && !from.AddDate(0, months, 0).After(v.To.AddDate(0, 0, 1))
}

// isPeriod reports whether the list's period is exactly these months.
func (v *entriesView) isPeriod(from time.Time, months int) bool {
	return v.Month != "" && v.From.Equal(from) && v.Span == months
}

// An entryItem is an entry in a list.
type entryItem struct {
	Feed    string // the short name of the feed
	Of      string // the title of the feed, in a list of several feeds
	ID      string
	Title   template.HTML // with the words of a search marked; snippets, too
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
	v, query := entriesQuery(r.URL.Query())
	titles, words := map[string]string{}, foldedWords(v.Search)
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
			v.Wrong = "There is no word to search for. Type one or more words; their order and case do not matter."
			break
		}
		if err != nil {
			return nil, err
		}
		if len(v.Items) == entriesPerPage {
			v.Next = v.page(token(query.Beyond))
			break
		}
		item := s.item(record, words)
		if feed == nil {
			item.Of, err = titled(r.Context(), s.store, titles, record.Feed)
			if err != nil {
				return nil, err
			}
		}
		v.Items = append(v.Items, item)
		query.Beyond = record.Place()
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
				q.Beyond = record.Place()
			}
			if n < q.Limit {
				return
			}
		}
	}
}

// countHits counts the entries of a feed's list by month.
func countHits(ctx context.Context, store mirror.Store, v *entriesView, q mirror.Query) (err error) {
	v.hits, err = mirror.Months(ctx, store, mirror.Query{Feed: q.Feed, Search: q.Search, Prefix: q.Prefix, Gone: q.Gone})
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

// entriesQuery reads the query of a URL. It ignores invalid values.
func entriesQuery(q url.Values) (*entriesView, mirror.Query) {
	v := &entriesView{Search: strings.TrimSpace(q.Get("q")), Gone: q.Get("deleted") != "", Oldest: q.Get("order") == "oldest"}
	query := mirror.Query{Search: v.Search, Prefix: isBeginning(v.Search), Gone: v.Gone, Oldest: v.Oldest, Limit: entriesPerPage + 1}
	if from, err := time.Parse("2006-01", q.Get("month")); err == nil {
		v.Month, v.From, v.Span = q.Get("month"), from, 1
		if span, err := strconv.Atoi(q.Get("span")); err == nil && 1 < span && span <= 1200 {
			v.Span = span
		}
		query.Since, query.Until = from, from.AddDate(0, v.Span, 0)
		if n, err := strconv.Atoi(q.Get("day")); err == nil && v.Span == 1 && n >= 1 && n <= query.Until.AddDate(0, 0, -1).Day() {
			v.Day, v.From = n, from.AddDate(0, 0, n-1)
			query.Since, query.Until = v.From, v.From.AddDate(0, 0, 1)
		}
		v.To = query.Until.AddDate(0, 0, -1)
	}
	query.Beyond = parseToken(q.Get("before"))
	v.First = query.Beyond == nil
	v.Newest = v.page("")
	return v, query
}

// page returns the query of the page from a place on.
func (v *entriesView) page(before string) string {
	q := url.Values{}
	if v.Search != "" {
		q.Set("q", v.Search)
	}
	if v.Month != "" {
		q.Set("month", v.Month)
	}
	if v.Span > 1 {
		q.Set("span", strconv.Itoa(v.Span))
	}
	if v.Day > 0 {
		q.Set("day", strconv.Itoa(v.Day))
	}
	if v.Gone {
		q.Set("deleted", "1")
	}
	if v.Oldest {
		q.Set("order", "oldest")
	}
	if before != "" {
		q.Set("before", before)
	}
	return "?" + q.Encode()
}

// Turned returns the query of the same list in the opposite order.
func (v *entriesView) Turned() string {
	other := *v
	other.Oldest = !v.Oldest
	return other.page("")
}

// All returns the query of all entries, in the same order.
func (v *entriesView) All() string { return (&entriesView{Oldest: v.Oldest}).page("") }

// isBeginning reports whether the last word of a search may be incomplete,
// because somebody is still typing. One or two letters do not count, because
// too many words begin with them.
func isBeginning(search string) bool {
	last := search[strings.LastIndexFunc(search, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })+1:]
	return utf8.RuneCountInString(last) > 2
}

// token encodes a place for a URL.
func token(c *mirror.Place) string {
	text := c.Time.UTC().Format(time.RFC3339Nano) + "\n" + c.Feed + "\n" + c.ID
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parseToken decodes a token; nil, which means the first page, if it is
// invalid.
func parseToken(token string) *mirror.Place {
	text, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.SplitN(string(text), "\n", 3)
	if err != nil || len(parts) < 3 || !utf8.Valid(text) {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, parts[0])
	if err != nil {
		return nil
	}
	return &mirror.Place{Time: at, Feed: parts[1], ID: parts[2]}
}

// The maximum sizes of the text a list reads of an entry, and shows.
const (
	mostSnippetData = 64 << 10
	snippetLength   = 220
)

// item returns an entry for a list. Results without a search are cached,
// because a list spends most of its time reading entries.
func (s *Server) item(r *mirror.Record, words []string) entryItem {
	if len(words) > 0 {
		return newItem(r, words)
	}
	key := itemKey{r.Feed, r.ID, r.Change, r.Changed.UnixNano()}
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

func newItem(r *mirror.Record, words []string) entryItem {
	item := entryItem{
		Feed: republish.Name(r.Feed), ID: r.ID, Title: marked(strings.TrimSpace(r.Content.Title), words), Time: r.Time(), State: r.State,
	}
	if len(r.Content.Data) > mostSnippetData {
		return item
	}
	e, err := r.Entry()
	if item.Damaged = err != nil; err == nil {
		item.Lang, item.Snippet = e.Title().Lang, marked(snippet(e, words), words)
	}
	return item
}

// apart puts a space at the end of a block of text.
var apart = strings.NewReplacer("</p>", " </p>", "</li>", " </li>", "</div>", " </div>", "</td>", " </td>", "</h", " </h", "<br", " <br")

func plain(t feedhistory.Text) string {
	if t.Type == feedhistory.TextHTML || t.Type == feedhistory.TextXHTML {
		t.Body = apart.Replace(t.Body)
	}
	return t.Plain()
}

// snippet returns the beginning of an entry's text, or the text around the
// first word of a search.
func snippet(e *feedhistory.Entry, words []string) string {
	text := plain(e.Summary())
	if text == "" {
		text = plain(e.Content())
	}
	text = around(strings.Join(strings.Fields(text), " "), words)
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
func around(text string, words []string) string {
	if len(words) == 0 {
		return text
	}
	fields := strings.Split(text, " ")
	at := slices.IndexFunc(fields, func(field string) bool {
		field = fold(strings.TrimLeftFunc(field, func(r rune) bool { return !isWordRune(r) }))
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(field, w) })
	})
	const before = 8 // words to show before it
	if at <= 2*before {
		return text
	}
	return "… " + strings.Join(fields[at-before:], " ")
}
