package backfill

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

type m = map[string]any

// A fediverse is a model of Mastodon with one account, after outboxes_controller.rb and
// accounts_controller.rb: an empty collection, pages by max_id, no next on the last; and a
// feed without boosts and replies to others.
type fediverse struct {
	url    string
	posts  int
	status int                   // of answers about activities; 0 for 200
	change func(page m, at int)  // changes a page; nil for none
	asked  feedtest.List[string] // for activities
}

func (f *fediverse) actor() string { return f.url + "/users/ada" }

func (f *fediverse) page(n int) string { return f.url + "/@ada/" + strconv.Itoa(n) }

func (f *fediverse) time(n int) time.Time { return time.Date(2024, 1, 1, n, 0, 0, 0, time.UTC) }

// isOwn reports whether a post is neither a boost nor a reply to another account.
func isOwn(n int) bool { return n%10 != 3 && n%10 != 5 }

// own returns the addresses of the posts that belong into the feed, the newest first.
func (f *fediverse) own() (ids []string) {
	for n := f.posts; n > 0; n-- {
		if isOwn(n) {
			ids = append(ids, f.page(n))
		}
	}
	return ids
}

func (f *fediverse) activity(n int) m {
	id := f.actor() + "/statuses/" + strconv.Itoa(n)
	note := m{
		"id": id, "type": "Note", "summary": nil, "inReplyTo": nil, "published": f.time(n), "url": f.page(n), "attributedTo": f.actor(),
		"content":    fmt.Sprintf("<p>Light %d</p>", n),
		"attachment": []any{m{"type": "Document", "mediaType": "image/png", "url": f.url + "/a.png", "name": "a lighthouse"}},
		"tag":        []any{m{"type": "Hashtag", "name": "#lights"}, m{"type": "Mention", "name": "@bo"}},
	}
	switch n % 10 {
	case 3:
		return m{"id": id + "/activity", "type": "Announce", "actor": f.actor(), "published": f.time(n), "object": "https://other.example/notes/1"}
	case 5:
		note["inReplyTo"] = "https://other.example/notes/2"
	case 6:
		note["inReplyTo"] = f.actor() + "/statuses/1"
	case 7:
		note["updated"] = f.time(n + 1)
	}
	return m{"id": id + "/activity", "type": "Create", "actor": f.actor(), "published": f.time(n), "object": note}
}

func (f *fediverse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const size = 20
	if r.URL.Path == "/@ada.rss" {
		f.feed(w)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "application/activity+json") {
		http.NotFound(w, r)
		return
	}
	f.asked.Add(r.URL.RequestURI())
	write := func(v m) {
		w.Header().Set("Content-Type", "application/activity+json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(v)
	}
	outbox := f.url + "/users/ada/outbox"
	switch before := r.URL.Query().Get("max_id"); {
	case f.status != 0:
		w.WriteHeader(f.status)
	case r.URL.Path == "/@ada":
		write(m{"id": f.actor(), "type": "Person", "inbox": f.url + "/inbox", "outbox": outbox})
	case r.URL.RawQuery == "":
		write(m{"id": outbox, "type": "OrderedCollection", "totalItems": f.posts, "first": outbox + "?page=true"})
	default:
		at := f.posts
		if before != "" {
			at, _ = strconv.Atoi(before)
			at--
		}
		items := []any{}
		for n := at; n > max(0, at-size); n-- {
			items = append(items, f.activity(n))
		}
		page := m{"id": f.url + r.URL.RequestURI(), "type": "OrderedCollectionPage", "partOf": outbox, "orderedItems": items}
		if at > size {
			page["next"] = outbox + "?page=true&max_id=" + strconv.Itoa(at-size+1)
		}
		if f.change != nil {
			f.change(page, at)
		}
		write(page)
	}
}

// feed writes the feed, of the newest ten posts.
func (f *fediverse) feed(w http.ResponseWriter) {
	fmt.Fprintf(w, `<rss version="2.0"><channel><title>Ada</title><link>%s/@ada</link><description>Lights</description>`, f.url)
	for i, id := range f.own() {
		if i == 10 {
			break
		}
		n, _ := strconv.Atoi(id[strings.LastIndexByte(id, '/')+1:])
		fmt.Fprintf(w, `<item><guid isPermaLink="true">%s</guid><link>%[1]s</link><pubDate>%s</pubDate><description>&lt;p&gt;Light %d&lt;/p&gt;</description></item>`,
			id, f.time(n).Format(time.RFC1123Z), n)
	}
	fmt.Fprint(w, "</channel></rss>")
}

func serveFediverse(t *testing.T, posts int) *fediverse {
	f := &fediverse{posts: posts}
	f.url = feedtest.Server(t, f).URL
	return f
}

// recover reads the account's feed.
func (f *fediverse) recover(t *testing.T, from Probe, budget feedhistory.Budget) *Recovery {
	c := &feedhistory.Client{AllowPrivate: true, NoGuess: true, Budget: budget, Tries: 1}
	t.Cleanup(c.CloseIdle)
	r, err := (&Backfill{HTTP: c}).Fetch(t.Context(), f.url+"/@ada.rss", from)
	require.NoError(t, err)
	return r
}

func idsOf(entries []*feedhistory.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return slices.Sorted(slices.Values(ids))
}

// The outbox has the posts of the feed, under the feed's ids; the result is not proved.
func TestActivityPub(t *testing.T) {
	f := serveFediverse(t, 65)
	r := f.recover(t, Probe{}, feedhistory.Budget{})
	require.Empty(t, r.History.Gaps)
	require.Equal(t, slices.Sorted(slices.Values(f.own())), idsOf(r.History.Entries))
	require.Equal(t, "activitypub", r.RecoveredBy)
	require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
	require.Len(t, f.asked.All(), 6, "the account, the outbox and four pages")

	again := f.recover(t, r.Probe, feedhistory.Budget{})
	require.Equal(t, idsOf(r.History.Entries), idsOf(again.History.Entries))
}

// What a post says is in its entry.
func TestActivityPubEntries(t *testing.T) {
	f := serveFediverse(t, 40)
	entry := map[string]*feedhistory.Entry{}
	for _, e := range f.recover(t, Probe{}, feedhistory.Budget{}).History.Entries {
		entry[e.ID] = e
	}
	e := entry[f.page(7)]
	require.Equal(t, "<p>Light 7</p>", e.Content().Body)
	require.Equal(t, "html", e.Content().Type)
	require.Empty(t, e.Title().Body)
	require.Equal(t, feedhistory.Links{
		{Rel: "alternate", Href: f.page(7)}, {Rel: "enclosure", Href: f.url + "/a.png", Type: "image/png", Title: "a lighthouse"},
	}, e.Links)
	require.Equal(t, f.time(7), e.Published.UTC())
	require.Equal(t, f.time(8), e.Updated.UTC())
	require.Equal(t, "activitypub", e.KeptBy)
	require.Contains(t, string(e.XML()), `term="lights"`)
	require.Contains(t, entry, f.page(6), "a reply to oneself")
	require.Empty(t, entry[f.page(40)].KeptBy, "the feed's own copy counts")
}

// A server speaks for its own host only, and pages that repeat themselves end the walk.
func TestActivityPubHostile(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f *fediverse, page m, at int)
		reason feedhistory.Reason
	}{
		"a page at another host": {func(_ *fediverse, page m, _ int) { page["next"] = "https://other.example/outbox" }, feedhistory.ReasonForeign},
		"a loop":                 {func(f *fediverse, page m, _ int) { page["next"] = f.url + "/users/ada/outbox?page=true" }, feedhistory.ReasonLoop},
		"pages without end": {func(f *fediverse, page m, _ int) {
			page["id"], page["next"] = "x", f.url+"/users/ada/outbox?page=true&n="+strconv.Itoa(len(f.asked.All()))
		}, feedhistory.ReasonBarren},
		"no object": {func(_ *fediverse, page m, at int) {
			if at < 65 {
				page["orderedItems"], page["next"] = []any{nil, 7, "x", []any{[]any{}}, m{"type": "Create", "object": m{"id": []any{}, "url": 7, "tag": "x"}}}, m{"id": 7}
			}
		}, ""},
		"posts of another host": {func(_ *fediverse, page m, at int) {
			for _, item := range page["orderedItems"].([]any) {
				if post, ok := item.(m)["object"].(m); ok && at < 65 {
					post["id"] = "https://other.example/1"
				}
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := serveFediverse(t, 65)
			f.change = func(page m, at int) { tt.change(f, page, at) }
			h := f.recover(t, Probe{}, feedhistory.Budget{}).History
			for _, e := range h.Entries {
				require.Equal(t, feedhistory.HostOf(f.url), feedhistory.HostOf(e.ID))
			}
			require.LessOrEqual(t, len(f.asked.All()), 30)
			if tt.reason == "" {
				require.Empty(t, h.Gaps)
				return
			}
			require.Len(t, h.Gaps, 1)
			require.Equal(t, tt.reason, h.Gaps[0].Reason)
		})
	}
}

// A budget ends the walk with a gap.
func TestActivityPubBudget(t *testing.T) {
	f := serveFediverse(t, 65)
	r := f.recover(t, Probe{}, feedhistory.Budget{Documents: 3})
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
	require.Equal(t, feedhistory.ReasonBudget, r.History.Gaps[0].Reason)
}

// A server that wants signed requests is no puzzle, and one that fails is asked again.
func TestActivityPubRefused(t *testing.T) {
	for status, want := range map[int]Probe{
		http.StatusUnauthorized:        {Method: None, Reason: "the server shows an account's posts only to other servers of the fediverse, which sign their requests", Tried: []string{"activitypub"}},
		http.StatusNotFound:            {Method: None, Tried: []string{"activitypub"}},
		http.StatusInternalServerError: {},
	} {
		f := serveFediverse(t, 65)
		f.status = status
		r := f.recover(t, Probe{}, feedhistory.Budget{})
		require.Equal(t, want, r.Probe, status)
		require.Len(t, r.History.Entries, 10)
		require.Empty(t, r.History.Gaps)
	}
}

// Only the feed of an account's page is asked about, and an outbox elsewhere is none.
func TestActivityPubRecognise(t *testing.T) {
	for text, want := range map[string]Sign{
		`<rss version="2.0"><channel><link>https://a.example/@ada</link><item><guid>1</guid></item></channel></rss>`:    Any,
		`<rss version="2.0"><channel><link>https://b.example/@ada</link><item><guid>1</guid></item></channel></rss>`:    No,
		`<rss version="2.0"><channel><link>https://a.example/blog/@a</link><item><guid>1</guid></item></channel></rss>`: No,
		`<rss version="2.0"><channel><link>https://a.example/@ada</link></channel></rss>`:                               No,
	} {
		doc, err := feedhistory.Parse(strings.NewReader(text), "https://a.example/@ada.rss")
		require.NoError(t, err)
		require.Equal(t, want, ActivityPub{}.Recognise(doc), text)
	}
	require.Equal(t, No, ActivityPub{}.Recognise(nil))
}
