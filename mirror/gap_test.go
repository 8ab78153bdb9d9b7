package mirror_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// pagesMirror returns a mirror of a site, by path. Other documents fail.
func pagesMirror(pages map[string]string) *mirror.Mirror {
	return newMirror(mirror.NewMemory(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pages[r.URL.Path] == "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, pages[r.URL.Path])
	}))
}

// A gap is said to come from the latest document to name the missing one. If its link goes, from
// another with one.
func TestGapFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := map[string]string{}
		m := pagesMirror(pages)
		poll := func(want string) {
			t.Helper()
			gaps := polled(t, m, modelURL).Feed.Ledger.Gaps()
			require.Len(t, gaps, 1)
			require.Equal(t, "http://model.example/x", gaps[0].URL)
			require.Equal(t, "http://model.example"+want, gaps[0].From)
			time.Sleep(time.Hour)
		}
		for _, newest := range []string{"/a", "/b", "/c"} {
			pages[newest] = feedText("<fh:archive/>"+prev("/x"), newest)
			pages["/feed"] = feedText(prev(newest), "9")
			poll(newest)
		}
		pages["/b"] = feedText("<fh:archive/>", "/b")
		poll("/c")
		pages["/c"] = feedText("<fh:archive/>", "/c")
		poll("/a")
	})
}

// A poll without a subscription document finds no gap again, though everything it needs is stored:
// it has not seen the feed.
func TestFailedPollFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loops := feedText(prev("/3"), "4")
		pages := map[string]string{
			"/feed": loops, "/3": feedText("<fh:archive/>"+prev("/2"), "3"), "/2": feedText("<fh:archive/>"+prev("/1"), "2"), "/1": feedText("<fh:archive/>"+prev("/3"), "1"),
		}
		m := pagesMirror(pages)
		m.Client.Budget.Documents = 3
		polled(t, m, modelURL)
		m.Client.Budget.Documents = 0
		time.Sleep(time.Hour)
		polled(t, m, modelURL)
		found := time.Now()
		poll := func() {
			t.Helper()
			time.Sleep(time.Hour)
			report, err := m.Update(t.Context(), modelURL)
			require.NoError(t, err)
			require.Equal(t, pages["/feed"] == "", report.Failure != nil)
			gaps := report.Feed.Ledger.Gaps()
			require.Len(t, gaps, 1)
			require.Equal(t, feedhistory.ReasonLoop, gaps[0].Reason)
			require.True(t, gaps[0].Found.Equal(found), "%v, not %v", gaps[0].Found, found)
		}
		pages["/feed"] = ""
		poll()
		pages["/feed"] = loops
		found = time.Now().Add(time.Hour)
		poll()
	})
}
