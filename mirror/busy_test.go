package mirror_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// The window of a healthy feed is replaced between any two polls. The polls of months request
// the subscription document, each archive that is new, and two or three of the others a day; in
// addition at most one archive a poll, if it may have grown, or a missed window may be in it.
func TestBusyFeed(t *testing.T) {
	const window, days = 6, 20
	for _, test := range []struct {
		name  string
		size  int // of an archive
		polls int // that read an archive again
		links func(n, size int) (archives, shown int)
		whole bool // at each poll
	}{
		{"closed when their last entry leaves the window", 5, 0, func(n, size int) (int, int) { k := (n - window) / size; return k, n - k*size }, true},
		{"growing", 5, 2 * days, func(n, size int) (int, int) { return (n + size - 1) / size, window }, true},
		{"closed late", 100, 2 * days, func(n, size int) (int, int) { return n / size, window }, false},
	} {
		for _, posts := range []int{6, 10, 17} { // between two polls
			t.Run(fmt.Sprint(test.name, ", ", posts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, store, requests := 330, mirror.NewMemory(), 0
					h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						requests++
						archives, shown := test.links(n, test.size)
						head, from, to, k := "", n-shown, n, 0
						if _, err := fmt.Sscanf(r.URL.Path, "/%d", &k); err == nil {
							from, to = (k-1)*test.size, min(k*test.size, n)
							k--
						} else {
							k = archives
						}
						if k > 0 {
							head = prev(fmt.Sprint("/", k))
						}
						var ids []string
						for i := to; i > from; i-- {
							ids = append(ids, fmt.Sprint(i))
						}
						document(head, ids...)(w, r)
					})
					for poll := range 2 * days {
						n += posts
						report := polled(t, newMirror(store, h), aURL)
						if test.whole {
							require.Equal(t, feedhistory.VerdictWhole, report.Feed.Verdict, "poll %d: %v", poll, report.Feed.Ledger.Gaps())
							require.Len(t, held(t, store, aURL), n)
						}
						time.Sleep(12 * time.Hour)
					}
					archives, _ := test.links(n, test.size)
					perDay := 2 + archives/30
					require.LessOrEqual(t, requests, 2*days+archives+test.polls+days*perDay)
				})
			})
		}
	}
}
