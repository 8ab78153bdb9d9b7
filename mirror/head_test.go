package mirror_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
)

// The stored head section has the feed's language and picture, whatever the
// feed's format.
func TestHeadKeepsLanguageAndIcon(t *testing.T) {
	for format, text := range map[string]string{
		"Atom":      `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de-CH"><id>urn:feed</id><title>T</title><icon>/icon.png</icon></feed>`,
		"RSS":       `<rss version="2.0"><channel><title>T</title><language>de-CH</language><image><url>/icon.png</url></image></channel></rss>`,
		"iTunes":    `<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>T</title><language>de-CH</language><itunes:image href="/icon.png"/></channel></rss>`,
		"JSON Feed": `{"version":"https://jsonfeed.org/version/1.1","title":"T","language":"de-CH","icon":"/icon.png","items":[]}`,
	} {
		store := mirror.NewMemory()
		polled(t, newMirror(store, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })), "http://example.org/feed")
		feed := feedOf(t, store, "http://example.org/feed")
		head, err := feed.Document()
		require.NoError(t, err, format)
		require.Equal(t, "de-CH", head.Language, format)
		require.Equal(t, "http://example.org/icon.png", head.Icon, format)
		require.Equal(t, "T", head.Title, format)
		require.Equal(t, 1, strings.Count(feed.Head, "<icon")+strings.Count(feed.Head, "<logo"), format)
	}
}
