package web

import (
	"context"
	"errors"
	"html/template"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
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

	hits []mirror.Month // the number of entries in each month, unless the list has all entries
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
	asked, query := newSelection(r.URL.Query())
	v := &entriesView{selection: asked, First: query.Beyond == nil, Newest: asked.page("")}
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
