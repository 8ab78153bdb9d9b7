package feedhistory

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// linear is an archived feed of n documents without faults. The links come before the
// entries, which are long.
func linear(n int) *faultyChain {
	c := &faultyChain{replies: map[string]feedtest.Reply{}, start: "http://a.example/0"}
	for i := range n {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom">`)
		if i+1 < n {
			fmt.Fprintf(&b, `<link rel="prev-archive" href="/%d"/>`, i+1)
		}
		for j := range 20 {
			fmt.Fprintf(&b, "<entry><id>urn:%d:%d</id><title>%s</title></entry>\n", i, j, strings.Repeat("text ", 100))
		}
		b.WriteString("</feed>")
		c.replies["http://a.example/"+strconv.Itoa(i)] = feedtest.Reply{Body: b.String()}
	}
	return c
}

// A caller that leaves early has caused at most PerHost-1 requests in vain, however long it
// stays.
func TestAheadIsBounded(t *testing.T) {
	for _, perHost := range []int{0, 1, 2, 3, 8} {
		most := perHost
		if most == 0 {
			most = 4
		}
		for leave := 1; leave <= 12; leave += 3 {
			synctest.Test(t, func(t *testing.T) {
				l := linear(30).walk(t.Context(), perHost, 1, func(n int, doc *Document, err error) bool {
					require.NoError(t, err)
					require.Equal(t, "http://a.example/"+strconv.Itoa(n-1), doc.URL)
					time.Sleep(time.Hour)
					return n < leave
				})
				require.LessOrEqual(t, len(l.Requests()), leave+most-1)
				require.Equal(t, l.Requests(), slices.Compact(slices.Clone(l.Requests())))
				require.LessOrEqual(t, l.Most, most)
				require.Zero(t, l.Open)
			})
		}
		synctest.Test(t, func(t *testing.T) {
			yields, l := linear(30).all(perHost, 1)
			require.Len(t, yields, 30)
			require.Equal(t, 30, len(l.Requests()), "each document once")
			require.Equal(t, most, l.Most, "as many at a time as allowed")
		})
	}
}

// Requests that are open when the caller leaves a walk end at once, even if they would never
// have ended.
func TestAheadLeftEndsRequests(t *testing.T) {
	c := linear(10)
	for i := 1; i < 10; i++ {
		url := "http://a.example/" + strconv.Itoa(i)
		r := c.replies[url]
		r.Body, r.Stalls = r.Body[:len(r.Body)/2], true
		c.replies[url] = r
	}
	synctest.Test(t, func(t *testing.T) {
		var left time.Time
		l := c.walk(t.Context(), 0, 1, func(n int, _ *Document, err error) bool {
			require.NoError(t, err)
			time.Sleep(time.Second)
			left = time.Now()
			return false
		})
		require.Zero(t, time.Since(left))
		require.Zero(t, l.Open)
		require.Greater(t, len(l.Requests()), 1, "nothing was on its way")
	})
}

// Header fields that name other documents than the document itself mislead nobody: the
// document may overrule them until its end.
func TestAheadMisled(t *testing.T) {
	const count = 20
	c := &faultyChain{replies: map[string]feedtest.Reply{}, start: "http://a.example/0"}
	want := make([]string, count)
	for i := range count {
		url := "http://a.example/" + strconv.Itoa(i)
		body := fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:%d</id></entry>`, i)
		if i+1 < count {
			body += fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, i+1)
		}
		lie := fmt.Sprintf("/lie/%d", i)
		c.replies[url] = feedtest.Reply{Body: body + "</feed>", Header: []string{"Link: <" + lie + `>; rel="prev-archive"`}}
		c.replies["http://a.example"+lie] = feedtest.Reply{Body: linear(1).replies[c.start].Body, Stalls: true}
		want[i] = url
	}
	delete(c.replies, "http://a.example/lie/"+strconv.Itoa(count-1))
	last := c.replies[want[count-1]]
	last.Header = nil
	c.replies[want[count-1]] = last
	for _, perHost := range []int{1, 2, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			l := &feedtest.Line{Serve: c.server(), Seed: 7}
			client := &Client{Transport: l, Policy: Policy{NoGuess: true, PerHost: perHost}}
			started := time.Now()
			require.Equal(t, want, documentsOf(client.Walk(t.Context(), c.start, nil)))
			require.Less(t, time.Since(started), 5*time.Second, "it waited for what was not wanted")
			require.Zero(t, l.Open)
			require.Equal(t, count, len(l.Requests()), "a Link header that the document may overrule is not acted upon early")
		})
	}
}

// A chain that leads back to itself is not requested a second time, nor is a document that has
// been processed, or that the budget does not allow.
func TestAheadKnowsWhatWillNotBeWanted(t *testing.T) {
	const count = 9
	for _, turn := range []int{0, 1, count - 1} {
		synctest.Test(t, func(t *testing.T) {
			c := linear(count)
			url := "http://a.example/" + strconv.Itoa(count-1)
			link := fmt.Sprintf(`<link rel="prev-archive" href="/%d"/>`, turn)
			c.replies[url] = feedtest.Reply{Body: strings.Replace(c.replies[url].Body, "<entry>", link+"<entry>", 1)}
			yields, l := c.all(0, 1)
			require.Len(t, yields, count+1)
			require.Contains(t, yields[count], "gap loop: http://a.example/"+strconv.Itoa(turn))
			require.Equal(t, count, len(l.Requests()))

			c.processed = []string{"http://a.example/5"}
			yields, l = c.all(0, 1)
			require.Len(t, yields, 5)
			require.Equal(t, 5, len(l.Requests()))

			c.processed, c.budget.Documents = nil, 6
			yields, l = c.all(0, 1)
			require.Len(t, yields, 7)
			require.Contains(t, yields[6], "gap budget")
			require.Equal(t, 6, len(l.Requests()))
		})
	}
}

// If a request in vain made a host ask for a wait, the next request would be in vain as well.
// So the walk does not prefetch what a later link may overrule.
func TestAheadIsNotBarredByWhatNobodyWants(t *testing.T) {
	c := linear(2)
	c.replies[c.start] = feedtest.Reply{Body: `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/page"/>` +
		`<entry><id>urn:1</id></entry><link rel="prev-archive" href="/1"/></feed>`}
	c.replies["http://a.example/page"] = feedtest.Reply{Status: 503, Header: []string{"Retry-After: 3600"}}
	var outcomes [2][]string
	for i, perHost := range []int{1, 0} {
		synctest.Test(t, func(*testing.T) { outcomes[i], _ = c.all(perHost, 1) })
	}
	require.Equal(t, outcomes[0], outcomes[1])
}

// The same holds if the transport has not answered yet.
func TestAheadLeftBeforeAnAnswer(t *testing.T) {
	c := linear(3)
	synctest.Test(t, func(t *testing.T) {
		answer := c.server()
		l := &feedtest.Line{Serve: answer}
		client := &Client{Policy: Policy{NoGuess: true}, Transport: feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/0" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return l.RoundTrip(r)
		})}
		started := time.Now()
		for doc, err := range client.Walk(t.Context(), c.start, nil) {
			require.NoError(t, err)
			require.Len(t, doc.Entries, 20)
			break
		}
		require.Zero(t, time.Since(started))
		require.Zero(t, l.Open)
	})
}

// A walk requests nothing before the caller ranges over it. To range again, or twice at the
// same time, is to walk twice.
func TestAheadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := linear(8)
		l := &feedtest.Line{Serve: c.server(), Seed: 1}
		client := &Client{Policy: Policy{NoGuess: true}, Transport: l}
		walk := client.Walk(t.Context(), c.start, nil)
		synctest.Wait()
		require.Zero(t, len(l.Requests()))

		whole := documentsOf(walk)
		require.Len(t, whole, 8)
		require.Equal(t, 8, len(l.Requests()))
		for doc := range walk { // and leave
			require.Equal(t, c.start, doc.URL)
			break
		}
		before := len(l.Requests())
		require.Equal(t, whole, documentsOf(walk))
		require.Equal(t, before+8, len(l.Requests()))

		var both [2][]string
		var running sync.WaitGroup
		for i := range both {
			running.Go(func() { both[i] = documentsOf(walk) })
		}
		running.Wait()
		require.Equal(t, [2][]string{whole, whole}, both)
		require.LessOrEqual(t, l.Most, 4, "politeness is kept per client")
	})
}

func documentsOf(walk iter.Seq2[*Document, error]) (urls []string) {
	for doc, err := range walk {
		if err != nil {
			return append(urls, err.Error())
		}
		urls = append(urls, doc.URL)
	}
	return urls
}

// The time for a chain is that of its first bytes, not of its bodies.
func TestAheadOverlaps(t *testing.T) {
	const first, piece, count = 20 * time.Millisecond, 10 * time.Millisecond, 50
	took := func(perHost int) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			c := linear(count)
			client := &Client{Policy: Policy{NoGuess: true, PerHost: perHost}, Transport: feedtest.RoundTrip(
				func(r *http.Request) (*http.Response, error) {
					body := c.replies[r.URL.String()].Body
					time.Sleep(first)
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1,
						Body: io.NopCloser(&drip{left: body, piece: len(body)/5 + 1, wait: piece}),
					}, nil
				})}
			started := time.Now()
			require.Len(t, documentsOf(client.Walk(t.Context(), c.start, nil)), count)
			d = time.Since(started)
		})
		return d
	}
	require.Equal(t, count*(first+4*piece), took(1))
	require.Equal(t, count*first+4*piece, took(0)) // the figure aimed at is 1.15 times this
}

// A drip is a body whose pieces arrive at intervals, the first one at once.
type drip struct {
	left  string
	piece int
	wait  time.Duration
	begun bool
}

// Read implements io.Reader.
func (d *drip) Read(b []byte) (int, error) {
	if d.left == "" {
		return 0, io.EOF
	}
	if d.begun {
		time.Sleep(d.wait)
	}
	d.begun = true
	n := copy(b[:min(len(b), d.piece)], d.left)
	d.left = d.left[n:]
	return n, nil
}

// A transport that ends its goroutine, as a handler does that fails a test, ends the walk with
// an error.
func TestTransportEnds(t *testing.T) {
	c := &Client{Policy: Policy{NoGuess: true}, Transport: feedtest.RoundTrip(func(*http.Request) (*http.Response, error) {
		runtime.Goexit()
		return nil, nil
	})}
	_, err := c.Fetch(t.Context(), "http://a.example/feed")
	require.ErrorIs(t, err, errUnended)
}
