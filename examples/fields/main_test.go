package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// The three formats say the same; only RSS has no authors of the feed that its items inherit, and
// JSON Feed no rights.
func TestFields(t *testing.T) {
	for _, name := range feedtest.Glob(t, "testdata/podcast.*") {
		var b strings.Builder
		require.NoError(t, show(&b, name))
		rights, ida := "© Ida", "Ida, by the feed"
		switch {
		case strings.HasSuffix(name, ".rss"):
			ida = "Ida"
		case strings.HasSuffix(name, ".json"):
			rights = ""
		}
		require.Equal(t, fmt.Sprintf(`Garden radio (en), %s
Chard <https://podcast.example/chard>
  authors: Nils
  categories: leaves, podcasts
  image: https://podcast.example/chard.jpg
  file: https://podcast.example/chard.mp3, audio/mpeg, 1000 bytes, 1m30s
Peas <https://podcast.example/peas>
  authors: %s
  categories: 
  image: 
`, rights, ida), b.String(), name)
	}
}
