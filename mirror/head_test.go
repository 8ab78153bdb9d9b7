package mirror

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
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
		doc, err := feedhistory.Parse(strings.NewReader(text), "http://example.org/feed")
		require.NoError(t, err, format)
		feed := &Feed{Head: headOf(doc)}
		head, err := feed.Document()
		require.NoError(t, err, format)
		require.Equal(t, "de-CH", head.Language, format)
		require.Equal(t, "http://example.org/icon.png", head.Icon, format)
		require.Equal(t, "T", head.Title, format)
		require.Equal(t, 1, strings.Count(feed.Head, "<icon"), format)
	}
}
