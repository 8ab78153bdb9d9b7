package atompmh

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// These are the specification's examples: what harvests bring, one after the
// other, and the resulting pool.
func TestExamples(t *testing.T) {
	for _, file := range feedtest.Glob(t, "testdata/examples/*.txtar") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
			archive, site := feedtest.Parse(string(text)), feedtest.ServeFile(t, file)
			path, ok := archive.File("url")
			require.True(t, ok)
			client := loopback()
			defer client.CloseIdle()
			h := Harvester{HTTP: client, URL: site.URL + strings.TrimSpace(path), Shelf: newShelf()}
			var mark Mark
			pool := map[string]string{}
			for n := 1; ; n++ {
				want, ok := archive.File(fmt.Sprintf("changes %d", n))
				if !ok {
					require.Greater(t, n, 1)
					break
				}
				harvest := h.Harvest(t.Context(), mark)
				var got strings.Builder
				for c, err := range harvest.Changes() {
					require.NoError(t, err)
					line := describe(c)
					if got.WriteString(line); c.Kind == Record {
						pool[c.ID] = line
					} else {
						delete(pool, c.ID)
					}
				}
				require.Equal(t, site.Expand(want), got.String())
				mark, ok = harvest.Mark()
				require.True(t, ok)
				want, _ = archive.File(fmt.Sprintf("pool %d", n))
				var lines []string
				for _, line := range pool {
					lines = append(lines, line)
				}
				require.ElementsMatch(t, strings.SplitAfter(strings.TrimSuffix(site.Expand(want), "\n")+"\n", "\n")[:len(lines)], lines)
			}
		})
	}
}

// describe returns a change as one line.
func describe(c Change) string {
	s := fmt.Sprintf("%s %s %s", c.Kind, c.Time.UTC().Format(time.RFC3339), c.ID)
	for _, r := range c.Representations {
		s += " " + r.URL
	}
	return s + "\n"
}

func loopback() *feedhistory.Client {
	return &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}, Retry: feedhistory.Retry{Tries: 1}}
}

// broken has the outcome for each broken example: the number of records, and the
// error if it is the feed itself, and if it is an archive; "" for none.
var broken = map[string]struct {
	records       int
	feed, archive string
}{
	"example1-2011-12-31": {1, "malformed: ", "malformed: "},
	"example1-2012-06-30": {1, "refused: http://example.org/archived ", "refused: http://example.org/archived/2011/12/31 "},
	"example1-2012-10-31": {1, "refused: http://example.org/archived ", "refused: http://example.org/archived/2012/06/30 "},
	"example1-entry":      {0, "not-feed: ", "not-feed: "},
	"example3":            {4, "", ""}, // one quote is missing, and nothing else is in its value
	"example4":            {3, "", ""},
}

// The examples in the text of the specification are broken. Most give an error with its
// place, both as the feed itself and as an archive, and whatever can be read of them: the
// harvest concludes nothing from them, and the next one begins where this one did. A
// single entry is not a feed. Examples 3 and 4 lack a quote, which loses nothing. Example 5
// is well-formed: its second entry is reported, although it is later than its feed.
func TestBrokenExamples(t *testing.T) {
	for _, file := range feedtest.Glob(t, "testdata/broken/*.xml") {
		name := strings.TrimSuffix(filepath.Base(file), ".xml")
		t.Run(name, func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
			_, id, _ := strings.Cut(string(text), "<id>")
			id, _, _ = strings.Cut(id, "<")
			before := feed("2012-11-03T00:00:00Z", "/feed", record("urn:new", "2012-11-03T00:00:00Z"))
			s := serve(t, map[string]string{
				"/feed":   string(text),
				"/before": strings.Replace(before, "urn:feed", id, 1), // a complete document of another id would be another feed's
			})
			s.HTTP.Policy.SameOrigin = true // the links in the text lead to a host that must not get requests
			h, changes, err := s.harvest("/feed", Mark{})
			next, whole := h.Mark()
			if name == "example5" {
				require.NoError(t, err)
				require.Equal(t, []string{"record 2012-11-02T07:30:00Z urn:uuid:e7aca47e-76c5-4648-948b-583ffdaafa0d http://example.org/entry/0002\n"}, changes)
				require.Equal(t, "2012-11-02T07:30:00Z", next.Time.Format(time.RFC3339))
				return
			}
			want := broken[name]
			require.Len(t, changes, want.records)
			require.Equal(t, want.feed == "", whole)
			require.Equal(t, want.feed == "", !next.IsZero())
			if whole {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want.feed)
			}

			h, changes, err = s.harvest("/before", Mark{})
			_, whole = h.Mark()
			require.Len(t, changes, 1+want.records)
			if require.Equal(t, want.archive == "", whole); whole {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want.archive)
			}
		})
	}
}
