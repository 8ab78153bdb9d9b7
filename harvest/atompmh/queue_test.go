package atompmh

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

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
	for f, err := range h.FetchQueued(t.Context(), changes, queue) {
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
