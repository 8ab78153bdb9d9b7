package mirror_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

var update = flag.Bool("update", false, "write the results into the fixtures")

// Each file is a website that changes from poll to poll ("/feed.atom@2" is what
// "/feed.atom" has become at the second poll) or from request to request
// ("/feed.atom#2"). The file "polls" has a line for each poll, an hour apart,
// either empty or with instructions. The file "want" has the expected results.
// Sites that any reader can be tested with are in the conformance suite.
func TestFixtures(t *testing.T) {
	for _, file := range append(feedtest.Glob(t, "testdata/*.txtar"), feedtest.Glob(t, "../conformance/cases/polls/*.txtar")...) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := feedtest.ReadFile(t, file)
			site := feedtest.Serve(t, string(text)) // outside of the bubble, because no network request is made inside
			synctest.Test(t, func(t *testing.T) { testFixture(t, file, site, feedtest.Parse(string(text))) })
		})
	}
}

func testFixture(t *testing.T, file string, site *feedtest.Site, archive *feedtest.Archive) {
	want, _ := archive.File("want")
	polls, ok := archive.File("polls")
	require.True(t, ok, "no polls")
	store := mirror.NewMemory()
	var got strings.Builder
	for words := range strings.Lines(polls) {
		if time.Sleep(time.Hour); got.Len() > 0 {
			site.Next()
		}
		before := len(site.Requests())
		m := &mirror.Mirror{
			Store: store, Revalidate: strings.Contains(words, "revalidate"),
			Client: &feedhistory.Client{
				NoGuess:      true, // requests in an order that can be told
				AllowPrivate: true, Transport: feedtest.Direct{Handler: site}, Tries: 1,
			},
		}
		if strings.Contains(words, "budget") {
			_, _ = fmt.Sscanf(words[strings.Index(words, "budget"):], "budget %d", &m.Client.Budget.Documents)
		}
		c, err := m.Update(t.Context(), site.URL+"/feed.atom")
		got.WriteString(describe(site, c, cmp.Or(err, c.Failure)))
		for _, r := range site.Requests()[before:] {
			fmt.Fprintf(&got, "  %s %s\n", r.Method, site.Path(r.URL))
		}
		testUsage(t, store, site.URL+"/feed.atom", got.String())
		live := held(t, store, site.URL+"/feed.atom")
		for _, id := range slices.Sorted(maps.Keys(live)) {
			fmt.Fprintf(&got, "  %s %s\n", id, live[id])
		}
	}
	if *update {
		archive.Set("want", got.String())
		require.NoError(t, os.WriteFile(file, []byte(archive.String()), 0o666))
		want = got.String()
	}
	require.Equal(t, want, got.String())
}

// describe describes the result of a poll, with a "+" for each number that is
// not 0.
func describe(site *feedtest.Site, c *mirror.Report, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v", c.Feed.Kind, c.Feed.Verdict)
	for _, n := range []struct {
		name string
		n    int
	}{{"added", c.Added}, {"changed", c.Changed}, {"deleted", c.Deleted}, {"altered", c.Altered}} {
		if n.n != 0 {
			fmt.Fprintf(&b, ", %d %s", n.n, n.name)
		}
	}
	if c.Moved != "" {
		b.WriteString(", moved to " + site.Path(c.Moved))
	}
	if c.Feed.Alias != "" {
		b.WriteString(", alias of " + site.Path(c.Feed.Alias))
	}
	if c.Feed.Gone {
		b.WriteString(", gone")
	}
	if c.More {
		b.WriteString(", more to come")
	}
	fmt.Fprintf(&b, ", next in %v", time.Until(c.Feed.Next).Round(time.Second))
	if err != nil {
		b.WriteString(", failed")
	}
	b.WriteByte('\n')
	for _, g := range c.Feed.Ledger.Gaps() {
		fmt.Fprintf(&b, "  %v %s\n", g.Reason, site.Path(g.URL))
	}
	return b.String()
}
