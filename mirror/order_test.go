package mirror_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A chain is a feed of documents 0 (its subscription document), 1, 2 …, with so
// few ids and times that all kinds of ties occur.
type chain []string

func (c chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || n >= len(c) {
		http.NotFound(w, r)
		return
	}
	link := ""
	if n+1 < len(c) {
		link = fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, n+1)
	}
	_, _ = fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0">%s%s</feed>`, link, c[n])
}

var chains = rapid.Custom(func(t *rapid.T) (c chain) {
	moment := func(name, label string) string {
		n := rapid.IntRange(0, 3).Draw(t, label)
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("<%s>2005-01-0%dT00:00:00Z</%s>", name, n, name)
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "documents") {
		var b strings.Builder
		b.WriteString(moment("updated", "document's time"))
		for j := range rapid.IntRange(0, 4).Draw(t, "entries") {
			fmt.Fprintf(&b, "<entry><id>%s</id><title>%d in %d</title>%s</entry>",
				rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id"), j, i, moment("updated", "entry's time"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "tombstones") {
			fmt.Fprintf(&b, `<at:deleted-entry ref="%s" when="2005-01-0%dT00:00:00Z"/>`,
				rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "ref"), rapid.IntRange(1, 3).Draw(t, "when"))
		}
		c = append(c, b.String())
	}
	return c
})

// The duplicate rule gives the same result over many polls as in a single walk,
// whatever times are equal or missing.
func TestDuplicatesOverManyPolls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := chains.Draw(t, "chain")
		client := func() *feedhistory.Client {
			return &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: c}}
		}
		const url = "http://chain.example/0"
		want, err := client().Fetch(context.Background(), url)
		require.NoError(t, err)
		store := mirror.NewMemory()
		for polls := 0; ; polls++ {
			m := &mirror.Mirror{Store: store, Client: client()}
			m.Client.Budget.Documents = rapid.IntRange(1, 4).Draw(t, "budget")
			m.Revalidate = rapid.Bool().Draw(t, "revalidate")
			changes, err := m.Update(context.Background(), url)
			require.NoError(t, err)
			require.NoError(t, changes.Failure)
			if m.Client.Budget.Documents > 1 && !changes.More || polls > 30 {
				require.LessOrEqual(t, polls, 30)
				require.Equal(t, want.Verdict(), changes.Feed.Verdict)
				break
			}
		}
		got := map[string]string{}
		for _, r := range feedtest.All(t, store.Entries(context.Background(), mirror.Query{Feed: url})) {
			got[r.ID] = r.Content.Title
		}
		require.Equal(t, titles(want), got)
	})
}

// A later poll's document outranks earlier ones as it would in a walk at that
// time, not by the order in which they came.
func TestLaterPollsOutrank(t *testing.T) {
	entry := func(title string) string { return "<entry><id>a</id><title>" + title + "</title></entry>" }
	for name, polls := range map[string][]chain{
		"a new copy without times":   {{entry("old")}, {entry("new")}},
		"a new archive is newer":     {{entry("old")}, {"", entry("new")}},
		"a known archive is older":   {{"", entry("old")}, {entry("new"), entry("old")}},
		"edited in the known places": {{entry("old"), entry("older")}, {entry("new"), entry("older")}},
	} {
		store := mirror.NewMemory()
		for _, c := range polls {
			m := newMirror(store, c)
			_, err := m.Update(t.Context(), "http://chain.example/0")
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, map[string]string{"a": "new"}, held(t, store, "http://chain.example/0"), name)
	}
}
