package readers

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/readers/readertest"
	"github.com/feedhistory/feedhistory/mirror"
)

func exported(t *testing.T, w *world, x Export, write func(*Export, *bytes.Buffer) error) any {
	x.Store = w.Store
	var out bytes.Buffer
	require.NoError(t, write(&x, &out))
	var value any
	require.NoError(t, json.Unmarshal(bytes.ReplaceAll(out.Bytes(), []byte(w.site.URL), []byte("http://site")), &value), out.String())
	return value
}

// feeds yields the feeds of the world's store.
func feeds(t *testing.T, w *world) func(func(*mirror.Feed, error) bool) {
	return w.Store.Feeds(t.Context(), mirror.FeedQuery{})
}

func want(t *testing.T, text string) (value any) {
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	return value
}

func TestGoogleReader(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	greader := func(x *Export, out *bytes.Buffer) error { return x.Write(t.Context(), out, "greader", feeds(t, w)) }
	items := exported(t, w, Export{}, greader).(map[string]any)["items"].([]any)
	require.Len(t, items, 6)
	require.Equal(t, want(t, `{
		"id": "urn:4", "title": "Four", "published": 1049155200, "author": "Ann",
		"categories": ["user/-/state/com.google/unread", "news"],
		"alternate": [{"href": "http://site/four.html", "type": "text/html"}],
		"enclosure": [{"href": "http://site/four.mp3", "type": "audio/mpeg"}],
		"content": {"content": "<p>See <a href=\"http://site/x.html\">x</a><p><a href=\"http://site/four.mp3\">audio/mpeg</a></p>"},
		"origin": {"streamId": "feed/http://site/feed.atom", "feedUrl": "http://site/feed.atom", "title": "Feed", "htmlUrl": "http://site/"}
	}`), items[3])
	require.Equal(t, float64(0), items[0].(map[string]any)["published"]) // 1965
	require.Equal(t, "<p>1 &lt; 2</p>", items[2].(map[string]any)["content"].(map[string]any)["content"])
	items = exported(t, w, Export{Status: Unread, Starred: true}, greader).(map[string]any)["items"].([]any)
	require.Equal(t, []any{"user/-/state/com.google/unread", "user/-/state/com.google/starred"}, items[0].(map[string]any)["categories"])
}

func TestNextcloudNews(t *testing.T) {
	w := newWorld(t, &readertest.Miniflux{}, site)
	news := func(x *Export, out *bytes.Buffer) error { return x.Write(t.Context(), out, "nextcloud", feeds(t, w)) }
	items := exported(t, w, Export{}, news).([]any)
	require.Len(t, items, 6)
	require.Equal(t, want(t, `{
		"guid": "urn:4", "url": "http://site/four.html", "title": "Four", "author": "Ann", "pubDate": 1049155200,
		"body": "<p>See <a href=\"http://site/x.html\">x</a>",
		"enclosureMime": "audio/mpeg", "enclosureLink": "http://site/four.mp3",
		"unread": true, "starred": false, "feedLink": "http://site/", "rtl": false
	}`), items[3])
	require.Nil(t, items[1].(map[string]any)["enclosureLink"])
	require.Len(t, items[1], 12) // the importer reads each field
	require.Equal(t, false, exported(t, w, Export{Status: Read}, news).([]any)[0].(map[string]any)["unread"])
}

// An export of nothing is valid, and one that fails returns the error.
func TestExportOfNothing(t *testing.T) {
	x := &Export{Store: mirror.NewMemory()}
	var out bytes.Buffer
	require.NoError(t, x.Write(t.Context(), &out, "greader", x.Store.Feeds(t.Context(), mirror.FeedQuery{})))
	require.True(t, json.Valid(out.Bytes()))
	out.Reset()
	require.NoError(t, x.Write(t.Context(), &out, "nextcloud", x.Store.Feeds(t.Context(), mirror.FeedQuery{})))
	require.JSONEq(t, "[]", out.String())
	broken := errors.New("broken")
	require.ErrorIs(t, x.Write(t.Context(), &out, "nextcloud", func(yield func(*mirror.Feed, error) bool) { yield(nil, broken) }), broken)
}
