package feedhistory

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tally counts what the chains of a property result in, to show whether they are varied enough.
type tally map[string]int

func (n tally) add(yields []string) {
	for _, y := range yields {
		word, rest, _ := strings.Cut(y, " ")
		if word == "gap" {
			word, _, _ = strings.Cut(rest, ":")
		}
		n[word]++
	}
}

// Prefetching does not change what a walk yields.
func TestAheadIsAsInSequence(t *testing.T) {
	seen := tally{}
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		var sequence, overlapped []string
		var one, four *feedtest.Line
		synctest.Test(t, func(*testing.T) { sequence, one = c.all(1, seed) })
		require.NotEmpty(rt, sequence)
		require.LessOrEqual(rt, one.Most, 1)
		require.Zero(rt, one.Open, "bodies left open")
		seen.add(sequence)
		seen["requests"] += len(one.Requests())
		if c.again != nil && slices.Contains(one.Requests()[1:], c.start) {
			seen["read again"]++
		}
		for i := range uint64(3) { // as the answers come at other times
			synctest.Test(t, func(*testing.T) { overlapped, four = c.all(0, seed+i) })
			seen["requests not wanted"] += len(four.Requests()) - len(one.Requests())
			seen["most at a time"] = max(seen["most at a time"], four.Most)
			require.Equal(rt, sequence, overlapped)
			require.LessOrEqual(rt, four.Most, 4)
			require.Zero(rt, four.Open, "bodies left open")
			require.GreaterOrEqual(rt, len(four.Requests()), len(one.Requests()))
		}
	})
	t.Logf("%v", seen)
}

// A long chain is requested ahead, unless a host gets one request at a time.
func TestAhead(t *testing.T) {
	for perHost, most := range map[int]int{1: 1, 2: 2, 0: 4} {
		synctest.Test(t, func(t *testing.T) {
			_, l := linear(10).all(perHost, 1)
			require.Equal(t, most, l.Most, "PerHost %d", perHost)
			require.Len(t, l.Requests(), 10)
		})
	}
}

// Leaving at any point gives the beginning of the whole walk, and leaves nothing behind: a bubble
// does not end before its goroutines have.
func TestAheadLeft(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		leave := rapid.IntRange(1, 12).Draw(rt, "leave")
		later := rapid.Bool().Draw(rt, "leave later")
		var all, some []string
		var l *feedtest.Line
		synctest.Test(t, func(*testing.T) { all, _ = c.all(1, seed) })
		synctest.Test(t, func(*testing.T) {
			l = c.walk(context.Background(), 0, seed, func(n int, doc *Document, err error) bool {
				some = append(some, yielded(doc, err))
				if n == leave && later {
					time.Sleep(30 * time.Millisecond) // what is on its way goes on meanwhile
				}
				return n < leave
			})
			require.Zero(rt, l.Open, "bodies left open")
		})
		require.Equal(rt, all[:min(leave, len(all))], some)
	})
}

// A walk whose context is cancelled ends with the context's error wherever it would have requested
// another document in sequence.
func TestAheadCancelled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.Custom(drawChain).Draw(rt, "chain")
		seed := rapid.Uint64Range(1, 1<<32).Draw(rt, "seed")
		after := rapid.IntRange(0, 12).Draw(rt, "after")
		later := rapid.Bool().Draw(rt, "cancel later")
		cancelled := func(perHost int) (yields []string) {
			synctest.Test(t, func(*testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if after == 0 {
					cancel()
				}
				l := c.walk(ctx, perHost, seed, func(n int, doc *Document, err error) bool {
					yields = append(yields, yielded(doc, err))
					if n == after {
						if later {
							time.Sleep(time.Hour) // what is on its way has arrived
						}
						cancel()
					}
					return true
				})
				require.Zero(rt, l.Open, "bodies left open")
			})
			return yields
		}
		require.Equal(rt, cancelled(1), cancelled(0))
	})
}

// Documents that arrived in advance are not yielded once the context is cancelled: the shortest
// case of the property above.
func TestAheadCancelledWithDocumentsThere(t *testing.T) {
	for _, perHost := range []int{1, 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var urls []string
			var last error
			l := linear(10).walk(ctx, perHost, 1, func(n int, doc *Document, err error) bool {
				if last = err; err == nil {
					urls = append(urls, doc.URL)
				}
				if n == 2 {
					time.Sleep(time.Hour) // the next ones have arrived
					cancel()
				}
				return true
			})
			require.Equal(t, []string{"http://a.example/0", "http://a.example/1"}, urls, "PerHost %d", perHost)
			require.ErrorIs(t, last, context.Canceled)
			require.Zero(t, l.Open)
		})
	}
}
