package mirror_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A refusingHost serves an archived feed whose names, /N … /1, invite guesses. It refuses
// more than a number of requests at a time, or any for an address no link has named.
type refusingHost struct {
	Archives   int
	Most       int    // requests at a time; 0 means any number
	Unnamed    bool   // addresses no link has named are refused
	Status     int    // of a refusal; 0 closes the connection
	RetryAfter string // of a refusal; "" for none
	Redirects  bool   // an archive redirects, for a moment the guess costs two requests
	Hole       int    // an archive no link leads to; 0 for none
	Gone       int    // an archive that is not there; 0 for none
	Broken     int    // an archive that always fails; 0 for none
	Micros     int    // the time a request takes

	open     atomic.Int64
	requests feedtest.List[string]
	named    sync.Map
}

func (h *refusingHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := h.open.Add(1)
	defer h.open.Add(-1)
	h.requests.Add(r.URL.Path)
	_, isNamed := h.named.Load(strings.TrimPrefix(r.URL.Path, "/moved"))
	time.Sleep(time.Duration(h.Micros) * time.Microsecond)
	switch path := strings.TrimPrefix(r.URL.Path, "/moved"); {
	case path == "/feed":
		h.write(w, h.Archives+1)
	case h.Most > 0 && n > int64(h.Most), h.Unnamed && !isNamed:
		h.refuse(w)
	case h.Redirects && path == r.URL.Path:
		http.Redirect(w, r, "/moved"+path, http.StatusFound)
	default:
		i, err := strconv.Atoi(path[1:])
		switch {
		case err != nil, i < 1, i > h.Archives, i == h.Hole, i == h.Gone:
			http.NotFound(w, r)
		case i == h.Broken:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			h.write(w, i)
		}
	}
}

func (h *refusingHost) refuse(w http.ResponseWriter) {
	if h.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	if h.RetryAfter != "" {
		w.Header().Set("Retry-After", h.RetryAfter)
	}
	w.WriteHeader(h.Status)
}

// write writes the i-th document: the subscription document, if it is no archive.
func (h *refusingHost) write(w http.ResponseWriter, i int) {
	older, head := i-1, "<fh:archive/>"
	if i > h.Archives {
		head = ""
	}
	if older == h.Hole {
		older--
	}
	if older > 0 {
		h.named.Store(fmt.Sprint("/", older), true)
		head += fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, older)
	}
	_, _ = fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:feed</id>%s
<entry><id>urn:%d</id><title>%[2]d</title><updated>%s</updated></entry></feed>`, head, i, time.Date(2020, 1, 1, i, 0, 0, 0, time.UTC).Format(time.RFC3339))
}

const refusingURL = "http://refusing.example"

// read returns what a walk and some polls of a mirror find at the host, in a synctest bubble.
func (h *refusingHost) read(t testing.TB, noGuess bool) (found []string) {
	h.named.Clear()
	transport := feedtest.Pipe(t, h)
	newClient := func() *feedhistory.Client {
		return &feedhistory.Client{AllowPrivate: true, Transport: transport, NoGuess: noGuess, Tries: 2, MaxWait: 20 * time.Millisecond}
	}
	note := func(ids []string, gaps []*feedhistory.Gap, verdict feedhistory.Verdict, wait bool) {
		slices.Sort(ids)
		found = append(found, ids...)
		for _, g := range gaps {
			found = append(found, fmt.Sprint(g.Reason, " ", strings.TrimPrefix(g.URL, refusingURL)))
		}
		found = append(found, fmt.Sprint(verdict, " waits ", wait))
	}
	ctx := t.Context()
	client := newClient()
	history, err := client.Fetch(ctx, refusingURL+"/feed")
	require.NoError(t, err)
	ids := make([]string, len(history.Entries))
	for i, e := range history.Entries {
		ids[i] = e.ID
	}
	note(ids, history.Gaps, history.Verdict(), !client.Wait(refusingURL).IsZero())
	client.CloseIdle()
	h.named.Clear()
	store := mirror.NewMemory()
	for range 2 {
		m := &mirror.Mirror{Store: store, Client: newClient()}
		report, err := m.Update(ctx, refusingURL+"/feed")
		require.NoError(t, err)
		feed, err := store.Feed(ctx, refusingURL+"/feed")
		require.NoError(t, err)
		ids = nil
		for r, err := range store.Entries(ctx, mirror.Query{Feed: feed.URL}) {
			require.NoError(t, err)
			ids = append(ids, r.ID)
		}
		note(ids, report.Feed.Ledger.Gaps(), report.Feed.Verdict, feed.Waits(time.Now()))
		m.Client.CloseIdle()
	}
	return found
}

// A host that refuses guesses, or the requests beside them, gives what it gives to a walk
// that does not guess.
func TestRefusedGuesses(t *testing.T) {
	for name, h := range map[string]*refusingHost{
		"two at a time, 429":           {Archives: 16, Most: 2, Status: 429},
		"two at a time, 403":           {Archives: 16, Most: 2, Status: 403},
		"two at a time, 503":           {Archives: 16, Most: 2, Status: 503, RetryAfter: "600"},
		"one at a time":                {Archives: 16, Most: 1, Status: 429, RetryAfter: "600"},
		"one at a time, no answer":     {Archives: 16, Most: 1},
		"unnamed, 429":                 {Archives: 9, Unnamed: true, Status: 429, RetryAfter: "600"},
		"unnamed, 429, a hole":         {Archives: 12, Hole: 6, Unnamed: true, Status: 429, RetryAfter: "600"},
		"unnamed and a broken archive": {Archives: 12, Broken: 3, Unnamed: true, Status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h.Micros = 20_000
				without := h.read(t, true)
				h.requests.Took()
				require.Equal(t, without, h.read(t, false))
				require.Equal(t, h.Broken == 0, slices.Contains(without, "whole waits false"), "%v", without)
			})
		})
	}
}

// At most four requests of a walk turn out to be wasted, redirects and repetitions
// included.
func TestWastedGuesses(t *testing.T) {
	for name, h := range map[string]*refusingHost{
		"refused":    {Archives: 16, Most: 1, Status: 503},
		"unnamed":    {Archives: 16, Hole: 8, Unnamed: true, Status: 503},
		"redirected": {Archives: 16, Redirects: true},
		"a hole":     {Archives: 16, Hole: 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h.Micros = 5_000
				transport := feedtest.Pipe(t, h)
				read := func(noGuess bool) int {
					h.requests.Took()
					c := &feedhistory.Client{AllowPrivate: true, Transport: transport, NoGuess: noGuess, MaxWait: 5 * time.Millisecond}
					defer c.CloseIdle()
					h.named.Clear()
					_, err := c.Fetch(t.Context(), refusingURL+"/feed")
					require.NoError(t, err)
					return len(h.requests.Took())
				}
				without := read(true)
				require.LessOrEqual(t, read(false), without+4)
			})
		})
	}
}

// Whatever a host refuses, a walk and a mirror find the same with guesses as without.
func TestGuessesChangeNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := &refusingHost{
			Archives: rapid.IntRange(2, 14).Draw(r, "archives"), Most: rapid.IntRange(0, 3).Draw(r, "most"),
			Unnamed: rapid.Bool().Draw(r, "unnamed"), Status: rapid.SampledFrom([]int{0, 403, 429, 500, 503}).Draw(r, "status"),
			RetryAfter: rapid.SampledFrom([]string{"", "0", "600"}).Draw(r, "Retry-After"), Redirects: rapid.Bool().Draw(r, "redirects"),
			Hole: rapid.IntRange(0, 14).Draw(r, "hole"), Gone: rapid.IntRange(0, 40).Draw(r, "gone"),
			Broken: rapid.IntRange(0, 40).Draw(r, "broken"), Micros: rapid.IntRange(0, 2000).Draw(r, "µs"),
		}
		var without, with []string
		synctest.Test(t, func(t *testing.T) { without, with = h.read(t, true), h.read(t, false) })
		require.Equal(r, without, with)
	})
}
