package feedhistory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A form is how a server of the fediverse writes an account and its outbox. The models were
// written from the documentation and sources of each.
type form struct {
	actor, outbox string // paths; the outbox's has no query
	strict        bool   // the server has activities only for those who ask for them
	size          int
	root          func(f *fediverse) any           // the outbox itself
	page          func(f *fediverse, at int) any   // the page after at posts
	at            func(q string, f *fediverse) int // where a page begins
	post          func(f *fediverse, n int) any    // an item
}

type m = map[string]any

// forms are the models, by software.
var forms = map[string]*form{
	// app/controllers/activitypub/outboxes_controller.rb: an empty collection, pages of 20 by
	// max_id, a prev on each, no next on the last.
	"mastodon": {
		actor: "/users/ada", outbox: "/users/ada/outbox", size: 20, root: emptyRoot, at: byMaxID,
		page: func(f *fediverse, at int) any {
			p := f.keyset(at, "?page=true&max_id=")
			if at > 0 {
				p["prev"] = f.url + f.outbox + "?min_id=999&page=true"
			} else {
				p["prev"] = f.url + f.outbox + "?min_id=" + strconv.Itoa(f.posts) + "&page=true"
			}
			return p
		},
		post: func(f *fediverse, n int) any {
			id := f.url + f.actor + "/statuses/" + strconv.Itoa(n)
			note := m{
				"id": id, "type": "Note", "summary": nil, "inReplyTo": nil, "published": f.time(n), "url": f.url + "/@ada/" + strconv.Itoa(n),
				"attributedTo": f.url + f.actor, "sensitive": false, "content": fmt.Sprintf("<p>Light %d</p>", n),
				"contentMap": m{"en": fmt.Sprintf("<p>Light %d</p>", n)}, "likes": m{"totalItems": f.asked.Load()},
				"attachment": []any{m{"type": "Document", "mediaType": "image/png", "url": f.url + "/a.png", "name": "a lighthouse"}},
				"tag":        []any{m{"type": "Hashtag", "href": f.url + "/tags/lights", "name": "#lights"}, m{"type": "Mention", "name": "@bo"}},
			}
			switch n % 10 {
			case 3: // a boost
				return m{"id": id + "/activity", "type": "Announce", "actor": f.url + f.actor, "published": f.time(n), "object": "https://other.example/notes/1"}
			case 4:
				note["summary"], note["sensitive"] = "Storm", true
			case 5:
				note["inReplyTo"] = "https://other.example/notes/2"
			}
			return m{"id": id + "/activity", "type": "Create", "actor": f.url + f.actor, "published": f.time(n), "object": note}
		},
	},
	// Older Pleroma, user_view.ex: ten a page; after the last, an empty page that names itself;
	// likes are in the outbox.
	"pleroma": {
		actor: "/users/ada", outbox: "/users/ada/outbox", size: 10, root: emptyRoot, at: byMaxID,
		page: func(f *fediverse, at int) any {
			p := f.keyset(at, "?page=true&max_id=")
			if items := p["orderedItems"].([]any); len(items) == 0 {
				p["id"] = f.url + f.outbox + "?max_id=0&page=true"
				p["next"] = p["id"]
			} else if p["next"] == nil {
				p["next"] = f.url + f.outbox + "?page=true&max_id=" + strconv.Itoa(f.posts-at-len(items)+1)
			}
			return p
		},
		post: func(f *fediverse, n int) any {
			id := f.url + "/objects/" + strconv.Itoa(n)
			if n%7 == 2 {
				return m{"id": f.url + "/activities/" + strconv.Itoa(n), "type": "Like", "actor": f.url + f.actor, "object": "https://other.example/notes/9"}
			}
			return m{"id": f.url + "/activities/" + strconv.Itoa(n), "type": "Create", "actor": f.url + f.actor, "object": m{
				"id": id, "type": "Note", "actor": f.url + f.actor, "published": f.time(n), "content": "Light " + strconv.Itoa(n), "summary": "",
				"attachment": []any{m{"type": "Document", "mediaType": "image/jpeg", "url": []any{m{"type": "Link", "mediaType": "image/jpeg", "href": f.url + "/b.jpg"}}}},
			}}
		},
	},
	// docs/federation/federating_with_gotosocial/outbox.md: the objects are linked, not embedded.
	"gotosocial": {
		actor: "/users/ada", outbox: "/users/ada/outbox", size: 30, strict: true, root: emptyRoot, at: byMaxID,
		page: func(f *fediverse, at int) any { return f.keyset(at, "?page=true&max_id=") },
		post: func(f *fediverse, n int) any {
			id := f.url + f.actor + "/statuses/" + strconv.Itoa(n)
			return m{"id": id + "/activity", "type": "Create", "actor": f.url + f.actor, "published": f.time(n), "object": id}
		},
	},
	// lib/activitypub/collection.ts: the collection is called a page; pages are numbered; videos
	// have many files, and text in Markdown.
	"peertube": {
		actor: "/video-channels/ada", outbox: "/video-channels/ada/outbox", size: 10, strict: true,
		root: func(f *fediverse) any {
			return m{"id": f.url + f.outbox, "type": "OrderedCollectionPage", "totalItems": f.posts, "first": f.url + f.outbox + "?page=1"}
		},
		at: func(q string, f *fediverse) int { return (number(q, "page=") - 1) * f.size },
		page: func(f *fediverse, at int) any {
			p := m{"id": f.url + f.outbox + "?page=" + strconv.Itoa(at/f.size+1), "type": "OrderedCollectionPage", "partOf": f.url + f.outbox, "totalItems": f.posts, "orderedItems": f.items(at)}
			if at+f.size < f.posts {
				p["next"] = f.url + f.outbox + "?page=" + strconv.Itoa(at/f.size+2)
			}
			return p
		},
		post: func(f *fediverse, n int) any {
			id := f.url + "/videos/watch/" + strconv.Itoa(n)
			return m{"id": id + "/activity", "type": "Create", "actor": f.url + f.actor, "object": m{
				"id": id, "type": "Video", "name": "Light " + strconv.Itoa(n), "published": f.time(n), "updated": f.time(n + 1),
				"mediaType": "text/markdown", "content": "A **video**", "tag": []any{m{"type": "Hashtag", "name": "lights"}},
				"url": []any{
					m{"type": "Link", "mediaType": "text/html", "href": f.url + "/w/" + strconv.Itoa(n)},
					m{"type": "Link", "mediaType": "video/mp4", "href": f.url + "/v.mp4", "height": 720, "size": 1234},
					m{"type": "Link", "mediaType": "application/x-mpegURL", "href": f.url + "/v.m3u8"},
				},
			}}
		},
	},
	// WordPress's plugin, includes/rest/class-outbox-controller.php: the collection embeds
	// nothing; activities have fragments in their ids; articles have a name and an excerpt.
	"wordpress": {
		actor: "/author/ada/", outbox: "/wp-json/activitypub/1.0/actors/1/outbox", size: 10,
		root: func(f *fediverse) any {
			return m{"id": f.url + f.outbox, "type": "OrderedCollection", "totalItems": f.posts, "first": f.url + f.outbox + "?page=1", "last": f.url + f.outbox + "?page=9"}
		},
		at: func(q string, f *fediverse) int { return (number(q, "page=") - 1) * f.size },
		page: func(f *fediverse, at int) any {
			p := m{"id": f.url + f.outbox + "?page=" + strconv.Itoa(at/f.size+1), "type": "OrderedCollectionPage", "partOf": f.url + f.outbox, "totalItems": f.posts, "orderedItems": f.items(at)}
			if at+f.size < f.posts {
				p["next"] = f.url + f.outbox + "?page=" + strconv.Itoa(at/f.size+2)
			}
			return p
		},
		post: func(f *fediverse, n int) any {
			id := f.url + "/?p=" + strconv.Itoa(n)
			return m{"id": id + "#activity-create", "type": "Create", "actor": f.url + f.actor, "published": f.time(n), "object": m{
				"id": id, "type": "Article", "name": "Light " + strconv.Itoa(n), "summary": "On lights", "content": "<p>Light</p>", "url": f.url + "/light-" + strconv.Itoa(n), "published": f.time(n),
			}}
		},
	},
}

func emptyRoot(f *fediverse) any {
	return m{"id": f.url + f.outbox, "type": "OrderedCollection", "totalItems": f.posts + 40, "first": f.url + f.outbox + "?page=true"}
}

func byMaxID(q string, f *fediverse) int {
	if max := number(q, "max_id="); max > 0 {
		return f.posts + 1 - max
	}
	return 0
}

// number returns the number after a name in a query; 0 if there is none.
func number(q, name string) int {
	_, rest, _ := strings.Cut(q, name)
	digits, _, _ := strings.Cut(rest, "&")
	n, _ := strconv.Atoi(digits)
	return n
}

// A fediverse is a server with one account.
type fediverse struct {
	*form
	url    string
	posts  int
	status int // of all answers; 0 for 200
	asked  atomic.Int64
	uris   feedtest.List[string]
}

func (f *fediverse) time(n int) string {
	return time.Date(2020, 1, 1, n, 0, 0, 0, time.UTC).Format(time.RFC3339)
}

func (f *fediverse) items(at int) []any {
	items := []any{}
	for n := f.posts - at; n > max(0, f.posts-at-f.size); n-- {
		items = append(items, f.post(f, n))
	}
	return items
}

// keyset returns a page whose next names the last post shown.
func (f *fediverse) keyset(at int, query string) m {
	p := m{"id": f.url + f.outbox + "?page=true&at=" + strconv.Itoa(at), "type": "OrderedCollectionPage", "partOf": f.url + f.outbox, "orderedItems": f.items(at)}
	if at+f.size < f.posts {
		p["next"] = f.url + f.outbox + query + strconv.Itoa(f.posts-at-f.size+1)
	}
	return p
}

func (f *fediverse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	f.uris.Add(r.URL.RequestURI())
	write := func(kind string, v any) {
		w.Header().Set("Content-Type", kind)
		_ = json.NewEncoder(w).Encode(v)
	}
	asks := strings.Contains(r.Header.Get("Accept"), "application/activity+json")
	switch {
	case r.URL.Path == "/.well-known/webfinger" && r.URL.Query().Get("resource") == "acct:ada@"+strings.TrimPrefix(f.url, "http://"):
		write("application/jrd+json", m{"subject": r.URL.Query().Get("resource"), "links": []any{
			m{"rel": "http://webfinger.net/rel/profile-page", "type": "text/html", "href": f.url + "/@ada"},
			m{"rel": "self", "type": "application/activity+json", "href": f.url + f.actor},
		}})
	case r.URL.Path == f.actor && !asks, r.URL.Path == "/@ada", r.URL.Path == f.outbox && f.strict && !asks:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<html><head><link rel="alternate" type="application/activity+json" href="%s"></head></html>`, f.actor)
	case f.status != 0:
		w.WriteHeader(f.status)
	case r.URL.Path == f.actor:
		write("application/activity+json; charset=utf-8", m{"id": f.url + f.actor, "type": "Person", "preferredUsername": "ada", "name": "Ada", "inbox": f.url + "/inbox", "outbox": f.url + f.outbox})
	case r.URL.Path == f.outbox && r.URL.RawQuery == "":
		write("application/activity+json; charset=utf-8", f.root(f))
	case r.URL.Path == f.outbox:
		write("application/activity+json; charset=utf-8", f.page(f, f.at(r.URL.RawQuery, f)))
	default:
		http.NotFound(w, r)
	}
}

func serveForm(t *testing.T, name string, posts int) *fediverse {
	f := &fediverse{form: forms[name], posts: posts}
	f.url = feedtest.Server(t, f).URL
	return f
}

// entries are the numbers of posts, of 1 to n, which are entries, by software.
func (f *fediverse) entries() int {
	if f.form == forms["pleroma"] {
		return f.posts - (f.posts+5)/7
	}
	return f.posts
}

// webFinger returns the URL at which WebFinger tells about an account.
func (f *fediverse) webFinger() string {
	return f.url + "/.well-known/webfinger?resource=acct:ada@" + strings.TrimPrefix(f.url, "http://")
}

// Each software's outbox is read to its end; found by WebFinger, by the actor, or by its page;
// mirrored, with new posts between two polls; and written as valid Atom.
func TestActivityPub(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		t.Run(name, func(t *testing.T) {
			f := serveForm(t, name, 65)
			ctx, c := context.Background(), &feedhistory.Client{AllowPrivate: true}
			t.Cleanup(c.CloseIdle)
			for _, address := range []string{f.webFinger(), f.url + f.actor, f.url + "/@ada"} {
				feeds, err := c.Discover(ctx, address)
				require.NoError(t, err, address)
				require.Equal(t, feedhistory.Links{{Rel: "alternate", Href: f.url + f.outbox, Type: "application/activity+json", Title: "Ada"}}, feeds, address)
			}
			h, err := c.Fetch(ctx, f.url+f.outbox)
			require.NoError(t, err)
			require.Empty(t, h.Gaps)
			require.Equal(t, feedhistory.Paged, h.Kind)
			require.Equal(t, feedhistory.Lossy, h.Verdict(), "a count proves nothing")
			require.Len(t, h.Entries, f.entries())

			var text bytes.Buffer
			require.NoError(t, compose.WriteAtom(&text, compose.History(h)))
			again, err := feedhistory.Parse(&text, f.url)
			require.NoError(t, err)
			require.Equal(t, idsOf(h.Entries), idsOf(again.Entries))

			exact := &feedhistory.Client{AllowPrivate: true, NoGuess: true} // whose requests can be counted
			t.Cleanup(exact.CloseIdle)
			mir := &mirror.Mirror{Store: mirror.NewMemory(), Client: exact}
			report, err := mir.Update(ctx, f.url+f.outbox)
			require.NoError(t, err)
			require.Equal(t, f.entries(), report.Added)
			before := f.entries()
			f.posts += 3
			asked := f.asked.Load()
			report, err = mir.Update(ctx, f.url+f.outbox)
			require.NoError(t, err)
			require.Equal(t, f.entries()-before, report.Added)
			require.Zero(t, report.Changed, "likes and counts are no change")
			require.LessOrEqual(t, f.asked.Load()-asked, int64(3), "the newest pages only: %v", f.uris.All()[asked:])
		})
	}
}

func idsOf(entries []*feedhistory.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return slices.Sorted(slices.Values(ids))
}

// What a post says is in its entry.
func TestActivityPubEntries(t *testing.T) {
	c := &feedhistory.Client{AllowPrivate: true}
	t.Cleanup(c.CloseIdle)
	f := serveForm(t, "mastodon", 9)
	doc, err := c.Get(context.Background(), f.url+f.outbox+"?page=true")
	require.NoError(t, err)
	host := strings.TrimPrefix(f.url, "http://")
	require.Equal(t, "@ada@"+host, doc.Title)
	require.Equal(t, []feedhistory.Person{{Name: "ada", URI: f.url + f.actor}}, doc.Authors)
	require.Equal(t, f.url+f.outbox, doc.ID)
	entry := map[string]*feedhistory.Entry{}
	for _, e := range doc.Entries {
		entry[strings.TrimPrefix(e.ID, f.url+"/users/ada/statuses/")] = e
	}
	e := entry["1"]
	require.Equal(t, feedhistory.Text{Type: "html", Body: "<p>Light 1</p>", Base: e.Content().Base, Lang: "en"}, e.Content())
	require.Empty(t, e.Title().Body)
	require.Equal(t, feedhistory.Links{
		{Rel: "alternate", Href: f.url + "/@ada/1"},
		{Rel: "enclosure", Href: f.url + "/a.png", Type: "image/png", Title: "a lighthouse"},
	}, e.Links)
	require.Equal(t, []compose.Category{{Term: "lights"}}, compose.DraftOf(e).Categories)
	require.Equal(t, "2020-01-01T01:00:00Z", e.Updated.Format(time.RFC3339))
	require.Equal(t, "Storm", entry["4"].Summary().Body)
	require.Contains(t, compose.DraftOf(entry["4"]).Categories, compose.Category{Scheme: "https://www.w3.org/ns/activitystreams#", Term: "sensitive"})
	require.Contains(t, string(entry["5"].XML()), `ref="https://other.example/notes/2"`)
	boost := entry["3/activity"]
	require.Equal(t, feedhistory.Links{{Rel: "alternate", Href: "https://other.example/notes/1"}}, boost.Links)

	f = serveForm(t, "peertube", 1)
	doc, err = c.Get(context.Background(), f.url+f.outbox+"?page=1")
	require.NoError(t, err)
	e = doc.Entries[0]
	require.Equal(t, "Light 1", e.Title().Body)
	require.Equal(t, "text", e.Content().Type, "Markdown is no HTML")
	require.Equal(t, feedhistory.Links{
		{Rel: "alternate", Href: f.url + "/w/1"},
		{Rel: "enclosure", Href: f.url + "/v.mp4", Type: "video/mp4", Length: "1234"},
	}, e.Links)
	require.True(t, e.Published.Before(e.Updated))
	require.Equal(t, feedhistory.Paged, doc.Kind(), "a single page is one, too")
	require.Contains(t, doc.Notes[0].Message, "1 items")
}

// Deletions and edits have the id of the post.
func TestActivityPubChanges(t *testing.T) {
	doc := parseOutbox(t, `{"type": "OrderedCollection", "id": "https://a.example/outbox", "orderedItems": [
		{"type": "Update", "actor": "https://a.example/ada", "published": "2024-02-01T00:00:00Z", "object": {"id": "https://a.example/1", "type": "Note", "content": "new", "published": "2024-01-01T00:00:00Z"}},
		{"type": "Create", "actor": "https://a.example/ada", "object": {"id": "https://a.example/1", "type": "Note", "content": "old", "published": "2024-01-01T00:00:00Z"}},
		{"type": "Delete", "published": "2024-03-01T00:00:00Z", "object": "https://a.example/2"},
		{"type": "Create", "object": {"id": "https://a.example/3", "type": "Tombstone", "deleted": "2024-03-02T00:00:00Z"}},
		{"type": "Undo", "object": {"type": "Announce", "id": "https://a.example/4"}},
		{"type": "Delete", "object": "https://b.example/5"}
	]}`)
	h, err := feedhistory.Merge(feedtest.Values(doc))
	require.NoError(t, err)
	require.Len(t, h.Entries, 1)
	require.Equal(t, "new", h.Entries[0].Content().Body)
	var deleted []string
	for _, d := range doc.Deleted {
		deleted = append(deleted, d.Ref+" "+d.When.Format(time.DateOnly))
	}
	require.Equal(t, []string{"https://a.example/2 2024-03-01", "https://a.example/3 2024-03-02", "https://a.example/4 0001-01-01"}, deleted)
}

func parseOutbox(t *testing.T, text string) *feedhistory.Document {
	doc, err := feedhistory.Parse(strings.NewReader(text), "https://a.example/outbox")
	require.NoError(t, err)
	return doc
}

// A server speaks for its own host only: ids and pages of others do not count.
func TestActivityPubForeign(t *testing.T) {
	text := `{"type": "OrderedCollectionPage", "next": "https://b.example/outbox", "orderedItems": [
		{"type": "Create", "actor": "https://a.example/ada", "object": {"id": "https://b.example/1", "type": "Note", "content": "forged"}},
		{"type": "Announce", "id": "https://b.example/2", "object": "https://b.example/1"},
		{"type": "Note", "id": "javascript:alert(1)"}, {"type": "Note"}, 7, null, "https://b.example/3", [["https://a.example/9"]],
		"https://a.example/4"
	]}`
	doc := parseOutbox(t, text)
	require.Len(t, doc.Entries, 1)
	require.Equal(t, "https://a.example/4", doc.Entries[0].ID)
	require.Equal(t, feedhistory.Links{{Rel: "alternate", Href: "https://a.example/4"}}, doc.Entries[0].Links)
	_, ok := doc.Links.Rel(doc.Kind().Older())
	require.False(t, ok)
	h, err := feedhistory.Merge((&feedhistory.Client{Transport: feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(text))
	})}}).Walk(context.Background(), "https://a.example/outbox", nil))
	require.NoError(t, err)
	require.Equal(t, feedhistory.Partial, h.Verdict(), "the link to another host is a gap")
	require.Contains(t, doc.Notes[len(doc.Notes)-1].Message+doc.Notes[1].Message, "another host")
}

// Whatever an outbox says, the work stays in proportion, and a loop ends.
func TestActivityPubHostile(t *testing.T) {
	deep := strings.Repeat(`{"type":"Create","object":`, 5000) + `"x"` + strings.Repeat("}", 5000)
	for _, text := range []string{
		`{"type":"OrderedCollection","orderedItems":[` + deep + `]}`,
		`{"type":"OrderedCollection","orderedItems":[` + strings.Repeat(`[[[`, 3000) + strings.Repeat(`]]]`, 3000) + `]}`,
		`{"type":"OrderedCollection","orderedItems":[` + strings.Repeat(`"https://a.example/1",`, 60_000) + `1]}`,
		`{"type":"OrderedCollection","orderedItems":[{"type":"Note","id":"https://a.example/` + strings.Repeat("x", 5000) + `"}]}`,
		`{"type":"OrderedCollection","orderedItems":{"type":"Note","id":"https://a.example/1","content":7,"tag":[7,{}],"url":[[]],"attachment":{"url":{}},"contentMap":[],"published":"soon"}}`,
	} {
		doc, _ := feedhistory.Parse(strings.NewReader(text), "https://a.example/outbox")
		if doc != nil {
			require.LessOrEqual(t, len(doc.Text()), 80*len(text)+4096*(len(doc.Entries)+1))
		}
	}
	doc, err := feedhistory.Parse(strings.NewReader(`{"type":"OrderedCollection","orderedItems":[{"id":"https://a.exa`), "https://a.example/outbox")
	require.Nil(t, doc)
	require.Equal(t, feedhistory.ReasonTruncated, feedtest.ErrorAs[*feedhistory.ParseError](t, err).Reason)

	f := serveForm(t, "mastodon", 30)
	loop := *f.form
	loop.page = func(f *fediverse, at int) any {
		return m{"type": "OrderedCollectionPage", "id": "x", "orderedItems": f.items(0), "next": f.url + f.outbox + "?page=true&n=" + strconv.Itoa(int(f.asked.Load()))}
	}
	f.form = &loop
	c := &feedhistory.Client{AllowPrivate: true}
	t.Cleanup(c.CloseIdle)
	h, err := c.Fetch(context.Background(), f.url+f.outbox)
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	require.LessOrEqual(t, f.asked.Load(), int64(60))
}

// A server that wants signed requests is no puzzle.
func TestActivityPubSigned(t *testing.T) {
	c := &feedhistory.Client{AllowPrivate: true}
	t.Cleanup(c.CloseIdle)
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		f := serveForm(t, "gotosocial", 5)
		f.status = status
		for _, address := range []string{f.webFinger(), f.url + "/@ada", f.url + f.outbox} {
			_, err := c.Get(context.Background(), address)
			require.ErrorIs(t, err, feedhistory.ErrSigned, address)
			require.ErrorIs(t, err, &feedhistory.FetchError{Status: status})
			require.Contains(t, feedhistory.Describe(err), "sign")
		}
	}
}

// A request for anything but an outbox is the same as ever.
func TestActivityPubAccept(t *testing.T) {
	var accepts feedtest.List[string]
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { accepts.Add(r.Header.Get("Accept")) }))
	c := &feedhistory.Client{AllowPrivate: true}
	t.Cleanup(c.CloseIdle)
	for _, path := range []string{"/feed", "/users/ada", "/outboxes/feed", "/feed?of=/outbox", "/users/ada/outbox?page=true"} {
		_, _ = c.Get(context.Background(), server.URL+path)
	}
	all := accepts.All()
	for _, accept := range all[:4] {
		require.NotContains(t, accept, "activity")
	}
	require.Contains(t, all[4], "application/activity+json")
}

// An actor whose outbox is elsewhere, or that has none, has no feed.
func TestActivityPubActors(t *testing.T) {
	for about, feeds := range map[string]int{
		`{"inbox": "/i", "outbox": "https://a.example/o"}`:         1,
		`{"inbox": "/i", "outbox": {"id": "https://a.example/o"}}`: 1,
		`{"inbox": "/i", "outbox": "https://b.example/o"}`:         0,
		`{"inbox": "/i"}`:                   0,
		`{"outbox": "https://a.example/o"}`: 0,
		`{"subject": "acct:x@a.example", "links": [{"rel": "self", "href": "x"}]}`: 0,
		`{"subject": "acct:x@a.example", "links": 7}`:                              0,
	} {
		c := &feedhistory.Client{Transport: feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(about)) })}}
		_, err := c.Get(context.Background(), "https://a.example/x")
		require.Len(t, feedtest.ErrorAs[*feedhistory.ParseError](t, err).Feeds, feeds, about)
	}
}

// An outbox of any form takes space in proportion, and speaks for its own host only.
func FuzzOutbox(f *testing.F) {
	for _, form := range forms {
		server := &fediverse{form: form, posts: 12, url: "https://a.example"}
		for _, at := range []int{0, 9} {
			text, err := json.Marshal(form.page(server, at))
			require.NoError(f, err)
			f.Add(string(text))
		}
	}
	f.Add(`{"type":"OrderedCollection","first":{"type":"CollectionPage","items":{"type":"Delete","object":["https://a.example/1"]}},"next":"//a.example"}`)
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := feedhistory.Parse(strings.NewReader(text), "https://a.example/outbox")
		if doc == nil || doc.Format != feedhistory.Atom || !strings.HasPrefix(text, "{") {
			return
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(doc.Text()), 80*len(text)+4096*(len(doc.Entries)+1))
		for _, e := range doc.Entries {
			require.Equal(t, "a.example", feedhistory.HostOf(e.ID))
		}
		if next, ok := doc.Links.Rel(doc.Kind().Older()); ok {
			require.Equal(t, "a.example", feedhistory.HostOf(next.Href))
		}
	})
}
