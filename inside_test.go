package feedhistory

import (
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/stretchr/testify/require"
)

// The places of texts that Parse has found are correct, and none is missing: an entry whose texts
// are searched for says the same.
func TestTextPlaces(t *testing.T) {
	places := 0
	for _, pattern := range []string{"testdata/parse/*", "testdata/rfc5005/*", "testdata/decode/*"} {
		for _, file := range feedtest.Glob(t, pattern) {
			data := feedtest.ReadFile(t, file)
			doc, _ := Parse(strings.NewReader(string(data)), "http://example.net/dir/feed")
			if doc == nil {
				continue
			}
			for _, e := range doc.Entries {
				twin := *e
				twin.texts = feedxml.Places{}
				if e.texts != twin.texts {
					places++
				}
				require.Equal(t, []Text{twin.Title(), twin.Summary(), twin.Content()}, []Text{e.Title(), e.Summary(), e.Content()}, file)
			}
		}
	}
	require.Greater(t, places, 100)
}
