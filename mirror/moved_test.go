package mirror_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
)

// A podcast that says where it has moved stays where it is as long as it answers there. Once that
// address is gone, or redirects to the new one, it is followed; a stranger there is not.
func TestNewFeedURL(t *testing.T) {
	podcast := func(head string, newest int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>F</title>`+head)
			for n := newest; n > newest-3; n-- {
				fmt.Fprintf(w, `<item><title>%[1]d</title><guid isPermaLink="false">plot-%[1]d</guid><pubDate>Wed, 03 Dec 2003 00:00:%02[1]d GMT</pubDate></item>`, n)
			}
			_, _ = io.WriteString(w, `</channel></rss>`)
		}
	}
	gone := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }
	for _, test := range []struct {
		name     string
		old, new http.HandlerFunc // the answers after the first poll
		moved    bool
		entries  int
	}{
		{"it still answers", podcast(`<itunes:new-feed-url>`+bURL+`</itunes:new-feed-url>`, 4), podcast("", 5), false, 4},
		{"it is gone", gone, podcast("", 5), true, 5},
		{"it redirects", redirect(bURL), podcast("", 5), true, 5},
		{"a stranger is there", gone, podcast("<link>http://c.example/</link>", 90), false, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, h := mirror.NewMemory(), &host{answer: map[string]http.HandlerFunc{aURL: podcast(`<itunes:new-feed-url>`+bURL+`</itunes:new-feed-url>`, 3)}}
				require.Equal(t, bURL, polled(t, newMirror(store, h), aURL).Feed.NewAddress())
				h.answer[aURL], h.answer[bURL] = test.old, test.new
				for range 2 {
					time.Sleep(time.Hour)
					_, err := newMirror(store, h).Update(t.Context(), aURL)
					require.NoError(t, err)
				}
				f := feedOf(t, store, aURL)
				require.Equal(t, test.moved, f.Address == bURL)
				require.Equal(t, !test.moved && test.entries == 3, f.Gone)
				require.Len(t, held(t, store, aURL), test.entries)
			})
		})
	}
}
