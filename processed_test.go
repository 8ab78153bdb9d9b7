package feedhistory

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A caller that stores what a walk yields, and answers Processed from its store,
// gets what it would get without one: of every site, also where the documents go
// by other names.
func TestProcessedMeanwhile(t *testing.T) {
	for _, file := range walks(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		archive := feedtest.Parse(string(text))
		options := optionsOf(archive)
		want, _ := archive.File("want")
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			v := newVisit(t, feedtest.Serve(t, string(text)), options)
			before, stored := v.options.Processed, map[string]bool{}
			v.options.Processed = func(url string) bool { return stored[url] || before(url) }
			v.history, v.err = Merge(func(yield func(*Document, error) bool) {
				for doc, err := range v.client.Walk(t.Context(), v.url, &v.options) {
					if doc != nil && err == nil {
						self, _ := doc.Links.Rel(RelSelf)
						for _, name := range []string{doc.Response.Requested, doc.URL, self.Href} {
							stored[name] = true
						}
						v.docs = append(v.docs, doc)
					}
					if !yield(doc, err) {
						return
					}
				}
			})
			facts := func(report string) (lines []string) {
				for line := range strings.Lines(report) {
					if key, _, _ := strings.Cut(line, " "); key != "note" && key != "request" {
						lines = append(lines, line)
					}
				}
				return lines
			}
			require.Equal(t, facts(want), facts(v.report()))
		})
	}
}

// A walk over a history that another walk has stored in part reads the rest, given
// what that one has left pending.
func TestProcessedInPart(t *testing.T) {
	for stored := range 4 {
		site := feedtest.Serve(t, threeDocuments)
		first := newVisit(t, site, "")
		var processed, pending []string
		n := 0
		for doc, err := range first.client.Walk(t.Context(), first.url, nil) {
			require.NoError(t, err)
			if n++; n > stored {
				break
			}
			if older, ok := doc.Older(); ok {
				pending = append(pending, older.Href)
			}
			if n > 1 {
				processed = append(processed, doc.URL)
			}
		}
		second := newVisit(t, site, "")
		second.options.Processed = func(url string) bool { return slices.Contains(processed, url) }
		second.options.Pending = pending
		second.walk(t.Context())
		require.NoError(t, second.err)
		require.Equal(t, Whole, second.history.Verdict())
		known := map[string]bool{}
		for _, url := range processed {
			known[url] = true
		}
		for _, d := range second.docs {
			known[d.URL] = true
		}
		require.Len(t, known, 3, "%d documents were stored", stored)
	}
}
