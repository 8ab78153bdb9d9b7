package republish

import (
	"maps"
	"net/http"
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

// A hop is a mirror, the Handler of its feeds, and a mirror of what that serves.
type hop struct {
	t     *testing.T
	site  *feedtest.Site
	url   string // of the site's feed
	first mirror.Mirror
	h     *Handler
	next  mirror.Mirror
}

// liveIn returns the IDs of the entries that a store has of a feed.
func liveIn(t *testing.T, store mirror.Store, url string) map[string]bool {
	ids := map[string]bool{}
	for r, err := range store.Entries(t.Context(), mirror.Query{Feed: url}) {
		require.NoError(t, err)
		if !strings.HasPrefix(r.ID, "urn:sha256:") { // the entry that tells of a gap
			ids[r.ID] = true
		}
	}
	return ids
}

// poll polls the site, and then what is made of it. The second mirror has the entries of the
// first, is no surer of them, and names the same gaps.
func (h *hop) poll(budget int, revalidate bool) {
	t := h.t
	h.first.Client.Budget.Documents = budget
	h.first.Revalidate = revalidate
	first, err := h.first.Update(t.Context(), h.url)
	require.NoError(t, err)
	entries := liveIn(t, h.first.Store, h.url)
	if first.Failure != nil || len(entries) == 0 {
		return
	}
	base := "http://again.example/feeds/" + Name(h.url)
	second, err := h.next.Update(t.Context(), base+"/index.atom")
	require.NoError(t, err)
	require.NoError(t, second.Failure)
	require.Equal(t, entries, liveIn(t, h.next.Store, base+"/index.atom"))
	require.Equal(t, first.Verdict.String(), second.Verdict.String(), "%v and %v", first.Gaps, second.Gaps)
	require.Equal(t, reasonsOf(first.Gaps), reasonsOf(second.Gaps))
	complete, err := direct(h.h).Fetch(t.Context(), base+"/complete.atom")
	require.NoError(t, err)
	require.Equal(t, first.Verdict.String(), complete.Verdict().String())
	require.Equal(t, reasonsOf(first.Gaps), reasonsOf(complete.Gaps))
}

// reasonsOf returns the reasons of gaps, in order.
func reasonsOf(gaps []*feedhistory.Gap) []string {
	reasons := map[string]bool{}
	for _, g := range gaps {
		reasons[g.Reason.String()] = true
	}
	return slices.Sorted(maps.Keys(reasons))
}

// Whatever a site does, what a mirror has of it is no more whole one hop away, from poll to
// poll.
func TestSecondHop(t *testing.T) {
	files := append(feedtest.Glob(t, "../mirror/testdata/*.txtar"), feedtest.Glob(t, "../testdata/walk/*.txtar")...)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := string(feedtest.ReadFile(t, file))
			archive := feedtest.Parse(text)
			polls, ok := archive.File("polls")
			if !ok {
				polls = "first\nagain\n"
			}
			start := "/feed.atom"
			options, _ := archive.File("options")
			if _, given, ok := strings.Cut("\n"+options, "\nurl "); ok {
				start, _, _ = strings.Cut(given, "\n")
			}
			if strings.Contains(text, "{{count}}") {
				t.Skip("it has no end")
			}
			site := feedtest.Serve(t, text) // outside of the bubble, because no network request is made inside
			synctest.Test(t, func(t *testing.T) { testHops(t, site, start, polls) })
		})
	}
}

func testHops(t *testing.T, site *feedtest.Site, start, polls string) {
	time.Sleep(30 * 365 * 24 * time.Hour) // the entries are not of the future
	hop := newHop(t, site, site.URL+start)
	for words := range strings.Lines(polls) {
		budget := 0
		if _, n, ok := strings.Cut(words, "budget "); ok {
			budget = int(n[0] - '0')
		}
		hop.poll(budget, strings.Contains(words, "revalidate"))
		site.Poll()
		time.Sleep(time.Hour)
	}
}

func newHop(t *testing.T, site *feedtest.Site, url string) *hop {
	client := func(h http.Handler) *feedhistory.Client {
		c := direct(h)
		c.Policy.NoGuess = true
		return c
	}
	store := &mirror.Memory{}
	h := &Handler{Store: store, Base: "http://again.example/", Size: 2}
	return &hop{
		t: t, site: site, url: url, h: h,
		first: mirror.Mirror{Store: store, Client: client(site)},
		next:  mirror.Mirror{Store: &mirror.Memory{}, Client: client(h)},
	}
}
