package atompmh

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// FuzzHarvest checks that, whatever the documents are, a harvest ends; that a
// record changes once; that a mark survives JSON; and that what has been
// harvested is not reported again, nor anything concluded from unchanged
// documents.
func FuzzHarvest(f *testing.F) {
	f.Add(feed(day(2), "/1", record("urn:a", day(2)), deletion("urn:b", day(2))), feed(day(1), "", record("urn:b", day(1))))
	f.Add(feed(day(2), "complete", record("urn:a", day(2))), "")
	f.Add(feed(day(2), "/1"), feed(day(3), "/0", record("urn:a", "9999-12-31T23:59:59-14:00"), record("urn:a", "0000-01-01T00:00:00+14:00")))
	f.Add(feed("never", "/1", entry("", day(1), ""), entry("urn:a", "", "<content/>")), "<rss/>")
	for _, name := range []string{"example3", "example5"} {
		text := feedtest.ReadFile(f, "testdata/broken/"+name+".xml")
		f.Add(string(text), "")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/feed" {
				_, _ = w.Write([]byte(first))
			} else {
				_, _ = w.Write([]byte(second))
			}
		})}
		h := Harvester{HTTP: w.client(), URL: "https://example.org/feed"}
		var mark Mark
		for range 2 {
			changes := 0
			seen := map[string]bool{}
			harvest := h.Harvest(t.Context(), mark)
			for c, err := range harvest.Changes() {
				if err != nil || c.Kind == Other {
					continue
				}
				require.False(t, seen[c.ID])
				seen[c.ID] = true
				changes++
			}
			next, whole := harvest.Mark()
			if !whole {
				return
			}
			if !mark.IsZero() {
				require.Zero(t, changes)
			}
			text, err := json.Marshal(next)
			require.NoError(t, err)
			mark = Mark{}
			require.NoError(t, json.Unmarshal(text, &mark))
			mark.Subscription.Digest = strings.Repeat("0", len(mark.Subscription.Digest)) // so that it is read again
		}
	})
}
