package chain

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A document arrives in two seconds, its head in one. Heads name the next document.
func TestPrefetcher(t *testing.T) {
	for name, test := range map[string]struct {
		early    bool          // links count as soon as the head has arrived
		expected bool          // an earlier walk has found the same chain
		most     time.Duration // the longest time for ten documents
		requests int
	}{
		"in order":       {most: 20 * time.Second, requests: 10},
		"early by links": {early: true, most: 11 * time.Second, requests: 10},
		"known before":   {expected: true, most: 8 * time.Second, requests: 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, requests := time.Now(), 0
			next := func(url string) string { return fmt.Sprint(url, "-") }
			p := NewPrefetcher(t.Context(), 0, Source[string, string]{
				Request: func(r Request) func(context.Context, func(string)) string {
					url := r.URL
					requests++
					return func(ctx context.Context, arrived func(string)) string {
						time.Sleep(time.Second)
						if test.early {
							arrived(url)
						}
						time.Sleep(time.Second)
						return "document " + url
					}
				},
				Named: func(head string) (string, bool) { return next(head), len(head) < 10 },
				Expected: func(url string) string {
					if test.expected && len(url) < 10 {
						return next(url)
					}
					return ""
				},
				May:      func(string) bool { return true },
				Confirms: func(string, string) bool { return true },
				Fails:    func(string, bool) bool { return false },
			})
			defer p.Stop()
			p.Begin()
			url := "1"
			for range 10 {
				require.Equal(t, "document "+url, p.Load(url), name)
				url = next(url)
			}
			require.LessOrEqual(t, time.Since(began), test.most, name)
			require.Equal(t, test.requests, requests, name)
		})
	}
}

// A request whose goroutine ends gives the zero value, and no more guesses.
func TestUnended(t *testing.T) {
	p := NewPrefetcher(t.Context(), 1, Source[*int, *int]{
		Request: func(Request) func(context.Context, func(*int)) *int {
			return func(context.Context, func(*int)) *int {
				runtime.Goexit()
				return new(int)
			}
		},
		Expected: func(string) string { return "" },
		Confirms: func(_ string, n *int) bool { return n != nil },
		Fails:    func(*int, bool) bool { return false },
	})
	defer p.Stop()
	require.Nil(t, p.Load("1"))
	require.True(t, p.guesser.over)
}
