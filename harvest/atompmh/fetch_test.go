package atompmh

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// changesOf yields records with the given addresses.
func changesOf(urls ...string) iter.Seq2[Change, error] {
	var all []Change
	for _, url := range urls {
		all = append(all, Change{ID: url, Chosen: &Representation{URL: url, Type: "text/plain"}})
	}
	return feedtest.Values(all...)
}

// 403, 404 and 410 mean that an entry is no longer active; 401, 5xx and a
// failing network mean nothing (atom-pmh consumer#6).
func TestFetchOutcomes(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); {
		case err != nil:
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "a part")
		default:
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, r.Header.Get("Accept"))
		}
	}))
	h := Harvester{HTTP: loopback()}
	defer h.HTTP.CloseIdle()
	for path, want := range map[string]struct{ gone, err bool }{
		"/200": {}, "/203": {},
		"/403": {true, true}, "/404": {true, true}, "/410": {true, true},
		"/401": {false, true}, "/500": {false, true}, "/400": {false, true}, "/cut": {false, true},
	} {
		n := 0
		for f, err := range h.Fetch(t.Context(), changesOf(server.URL+path), nil) {
			n++
			require.NoError(t, err)
			require.Equal(t, want.gone, f.Gone, path)
			if require.Equal(t, want.err, f.Err != nil, path); want.err {
				require.Nil(t, f.Body, path)
				continue
			}
			require.Equal(t, "text/plain", string(f.Body))
			require.Equal(t, "text/plain", f.Type)
		}
		require.Equal(t, 1, n)
	}
	private := Harvester{}
	for _, f := range feedtest.All(t, private.Fetch(t.Context(), changesOf(server.URL+"/200"), nil)) {
		feedtest.ErrorAs[*feedhistory.FetchError](t, f.Err)
		require.False(t, f.Gone)
	}
}

// However the answers come, the order is that of the changes, and no more
// requests are under way than allowed. Errors, deletions and records without a
// representation pass through in their places.
func TestFetchOrder(t *testing.T) {
	var now, most atomic.Int32
	var together sync.WaitGroup // the first three requests wait for each other
	together.Add(3)
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		switch r.URL.Path {
		case "/0", "/1", "/2":
			together.Done()
			together.Wait()
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	h := Harvester{HTTP: loopback(), Parallel: 3}
	defer h.HTTP.CloseIdle()
	failed := errors.New("a gap")
	var got []string
	for f, err := range h.Fetch(t.Context(), func(yield func(Change, error) bool) {
		for i := range 12 {
			c := Change{Chosen: &Representation{URL: fmt.Sprintf("%s/%d", server.URL, i)}}
			switch i {
			case 3:
				c = Change{Kind: Deleted, ID: "deleted"}
			case 4:
				c = Change{ID: "none"}
			case 8:
				_ = yield(Change{}, failed)
				continue
			}
			if !yield(c, nil) {
				return
			}
		}
	}, nil) {
		require.NoError(t, f.Err)
		if err != nil {
			require.Equal(t, failed, err)
			got = append(got, "error")
			continue
		}
		got = append(got, f.ID+string(f.Body))
	}
	require.Equal(t, []string{"/0", "/1", "/2", "deleted", "none", "/5", "/6", "/7", "error", "/9", "/10", "/11"}, got)
	require.Equal(t, int32(3), most.Load())
}

// Leaving the sequence ends the requests under way.
func TestFetchLeft(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/1" {
			<-r.Context().Done()
		}
	}))
	h := Harvester{HTTP: loopback()}
	defer h.HTTP.CloseIdle()
	for f, err := range h.Fetch(t.Context(), changesOf(server.URL+"/1", server.URL+"/2", server.URL+"/3"), nil) {
		require.NoError(t, err)
		require.NoError(t, f.Err)
		break
	}
}

// TestQueue checks that, whatever fails, however often the consumer leaves
// early, and whatever is modified or deleted meanwhile: once the server works
// again, one more round brings the present representation of each present
// record, and the queue is empty.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		present := map[string]int{} // by id, the state of the record
		has := map[string]string{}
		well, n := false, 0
		w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, state := "", 0
			_, _ = fmt.Sscanf(strings.TrimPrefix(r.URL.Path, "/"), "%1s/%d", &id, &state)
			switch n = n*31%1009 + 7; {
			case present["urn:"+id] != state:
				w.WriteHeader(http.StatusGone)
			case !well && n%3 == 0:
				w.WriteHeader(http.StatusInternalServerError)
			default:
				_, _ = io.WriteString(w, r.URL.Path)
			}
		})}
		h := Harvester{HTTP: w.client(), Parallel: rapid.IntRange(1, 3).Draw(t, "parallel")}
		queue, pending := Queue{}, []Change{}
		count := 0
		for round := range rapid.IntRange(1, 6).Draw(t, "rounds") + 1 {
			well = round > 0 && rapid.Bool().Draw(t, "well")
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				count++
				id := fmt.Sprintf("urn:%d", rapid.IntRange(0, 5).Draw(t, "id"))
				c := Change{ID: id, Time: noon.Add(time.Duration(count) * time.Second)}
				if delete(present, id); rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
					c.Kind = Deleted
				} else {
					present[id] = count
					c.Chosen = &Representation{URL: fmt.Sprintf("https://example.org/%s/%d", id[4:], count), Type: "text/plain"}
				}
				pending = append(slices.DeleteFunc(pending, func(o Change) bool { return o.ID == id }), c)
			}
			left := rapid.IntRange(0, 9).Draw(t, "until it leaves")
			n = rapid.IntRange(0, 1000).Draw(t, "seed")
			pending = take(t, &h, queue, pending, has, left)
			text, err := json.Marshal(queue)
			require.NoError(t, err)
			queue = Queue{}
			require.NoError(t, json.Unmarshal(text, &queue))
		}
		well = true
		take(t, &h, queue, pending, has, -1)
		require.Empty(t, queue)
		want := map[string]string{}
		for id, state := range present {
			want[id] = fmt.Sprintf("/%s/%d", id[4:], state)
		}
		require.Equal(t, want, has)
	})
}

// take fetches until it leaves, and returns the changes that were not taken.
func take(t *rapid.T, h *Harvester, queue Queue, pending []Change, has map[string]string, left int) []Change {
	taken := 0
	changes := feedtest.Watch(feedtest.Values(pending...), func(Change, error) { taken++ })
	known := maps.Clone(queue)
	for f, err := range h.Fetch(t.Context(), changes, queue) {
		require.NoError(t, err)
		switch {
		case f.Kind == Deleted || f.Gone:
			delete(has, f.ID)
		case f.Err == nil:
			has[f.ID] = string(f.Body)
			require.NotContains(t, queue, f.ID)
		default:
			require.Positive(t, queue[f.ID].Failed, "%v", known)
		}
		if left--; left == 0 {
			break
		}
	}
	for _, c := range pending[:taken] { // deleted records that were taken need not come again
		if c.Kind == Deleted {
			delete(has, c.ID)
		}
	}
	return pending[taken:]
}
