package atompmh

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
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
		for f, err := range h.Fetch(t.Context(), changesOf(server.URL+path)) {
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
	for _, f := range feedtest.All(t, private.Fetch(t.Context(), changesOf(server.URL+"/200"))) {
		feedtest.ErrorAs[*feedhistory.RefusedError](t, f.Err)
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
	}) {
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
	for f, err := range h.Fetch(t.Context(), changesOf(server.URL+"/1", server.URL+"/2", server.URL+"/3")) {
		require.NoError(t, err)
		require.NoError(t, f.Err)
		break
	}
}
