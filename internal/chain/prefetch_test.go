package chain_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/chain"
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
			p := chain.NewPrefetcher(t.Context(), 0, chain.Source[string, string]{
				Request: func(r chain.Request) func(context.Context, func(string)) string {
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
	var asked []string
	p := chain.NewPrefetcher(t.Context(), 0, chain.Source[*int, *int]{
		Request: func(r chain.Request) func(context.Context, func(*int)) *int {
			asked = append(asked, r.URL)
			return func(context.Context, func(*int)) *int {
				runtime.Goexit()
				return new(int)
			}
		},
		Expected: func(url string) string { return map[string]string{"2": "3"}[url] },
		May:      func(string) bool { return true },
		Confirms: func(_ string, n *int) bool { return n != nil },
		Fails:    func(*int, bool) bool { return false },
	})
	defer p.Stop()
	require.Nil(t, p.Load("1"))
	require.Nil(t, p.Load("2"))
	require.Equal(t, []string{"1", "2"}, asked)
}
