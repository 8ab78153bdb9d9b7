package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A poisoned store fails for some feeds.
type poisoned struct{ mirror.Store }

func (p poisoned) Commit(ctx context.Context, c *mirror.Commit) error {
	switch {
	case strings.HasSuffix(c.Feed.URL, "/panics"):
		panic("poison")
	case strings.HasSuffix(c.Feed.URL, "/refused"):
		return errors.New("such data is not taken\x00\xff")
	}
	return p.Store.Commit(ctx, c)
}

// A feed whose polls do not end properly becomes a dead letter, with the
// reason, and does not affect the others of its host. Subscribing to it again
// has it polled again.
func TestPoison(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	s.mux.HandleFunc("/late", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	var good []string
	urls := []string{s.URL + "/late"}
	for _, name := range []string{"/panics", "/refused", "/kills"} {
		_, url := s.model(name, 1)
		urls = append(urls, url)
	}
	for i := range 5 {
		_, url := s.model(fmt.Sprintf("/good-%d", i), uint64(i))
		good = append(good, url)
	}
	subscribe(t, db, append(urls, good...)...)
	sql(t, db, `UPDATE fleet_feeds SET tries = 2 WHERE url LIKE '%/kills'`)
	store := db.Store
	db.Store = poisoned{store}
	w := newWorker(t, db)
	w.Slice = 2 * time.Second // of the good feeds, on a busy machine too
	w.Tries = 2
	start(t, w)
	st := eventually(t, db, func(s *fleet.Status) bool { return s.Dead == 4 })
	reasons := map[string]string{}
	for _, l := range st.Letters {
		reasons[strings.TrimPrefix(l.URL, s.URL)] = l.Reason
		require.NotZero(t, l.Died)
	}
	require.Equal(t, map[string]string{
		"/panics":  "panic: poison",
		"/refused": "such data is not taken\uFFFD",
		"/late":    "it has brought nothing in 2s",
		"/kills":   "2 polls in a row have begun and not ended",
	}, reasons)
	require.EqualValues(t, len(good), st.Verdicts["partial"]+st.Verdicts["whole"])
	require.EqualValues(t, 4, st.ByHost[0].Dead)
	for _, url := range good {
		f, err := store.Feed(t.Context(), url)
		require.NoError(t, err)
		require.EqualValues(t, 1, f.Polls, url)
	}

	added, err := db.Subscribe(t.Context(), []string{s.URL + "/kills"})
	require.NoError(t, err)
	require.Zero(t, added)
	eventually(t, db, func(st *fleet.Status) bool { return st.Dead == 3 && st.New == 0 && st.Due == 0 })
}

// A feed with archives without end also becomes a dead letter.
func TestEndless(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	db := open(t, newDatabase(t))
	s := newSite(t)
	var pages atomic.Int64
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		page := pages.Add(1)
		fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x</id><title>Endless</title><updated>2024-01-01T00:00:00Z</updated>
			<link rel="prev-archive" href="/%d"/><entry><id>urn:x:%d</id><title>x</title><updated>2024-01-01T00:00:00Z</updated></entry></feed>`, page, page)
	})
	subscribe(t, db, s.URL+"/feed")
	w := newWorker(t, db)
	w.Documents = 30
	start(t, w)
	st := eventually(t, db, func(s *fleet.Status) bool { return s.Dead == 1 })
	require.Equal(t, "more than 30 archive documents", st.Letters[0].Reason)
}
