package fetch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A diary records when requests come in, and answers each with the next text; after the last text,
// with that again.
type diary struct {
	mu    sync.Mutex
	times []time.Time
	texts []string
}

func (d *diary) answer(conn net.Conn, _ *http.Request) {
	d.mu.Lock()
	d.times = append(d.times, time.Now())
	text := d.texts[min(len(d.times), len(d.texts))-1]
	d.mu.Unlock()
	io.WriteString(conn, text)
}

// gaps returns the times between requests.
func (d *diary) gaps() []time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(d.times); i++ {
		gaps = append(gaps, d.times[i].Sub(d.times[i-1]))
	}
	return gaps
}

// all fetches the URLs at the same time and returns the outcomes.
func all(c *Client, urls ...string) []string {
	got := make([]string, len(urls))
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() { got[i], _ = outcome(c, Request{URL: u}) })
	}
	wg.Wait()
	return got
}

func TestRetry(t *testing.T) {
	tests := []struct {
		name  string
		texts []string
		want  string
		tries int
	}{
		{"500", []string{status(500)}, "do: status 500", 3},
		{"502 once", []string{status(502), ok("x")}, "ok 200", 2},
		{"503", []string{status(503)}, "do: status 503", 3},
		{"network error", []string{"nonsense\r\n", ok("x")}, "ok 200", 2},
		{"after a redirect", []string{to(302, "/b"), status(500), to(302, "/b"), ok("x")}, "ok 200", 4},
		{"404", []string{status(404)}, "do: status 404", 1},
		{"410", []string{status(410)}, "do: status 410", 1},
		{"429 without a time", []string{status(429)}, "do: status 429", 1},
		{"429 with a time", []string{status(429, "Retry-After: 0"), ok("x")}, "ok 200", 2},
		{"501", []string{status(501)}, "do: status 501", 1},
		{"refused", []string{to(302, "ftp://a/")}, "do: refused scheme", 1},
		{"limit", []string{ok("x", "X: "+block)}, "do: limit headers", 1},
		{"body cut", []string{head + "Content-Length: 5\r\n\r\nab"}, "read: truncated", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &diary{texts: test.texts}
				w.serve("a", func(conn net.Conn) { // one request a connection, so that a cut is a cut
					answers(func(conn net.Conn, r *http.Request) { d.answer(conn, r); conn.Close() })(conn)
				})
				c := w.client()
				c.Tries = 0
				got, _ := outcome(c, Request{URL: "http://a/"})
				assert.Equal(t, test.want, got)
				assert.Len(t, d.times, test.tries)
			})
		})
	}
}

// TestBackoff checks that waits double, with jitter, up to their limit.
func TestBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &diary{texts: []string{status(500)}}
		w.serve("a", answers(d.answer))
		c := w.client()
		c.Tries, c.Base, c.MaxWait = 7, time.Second, 10*time.Second
		outcome(c, Request{URL: "http://a/"})
		require.Len(t, d.times, 7)
		for i, limit := range []time.Duration{1, 2, 4, 8, 10, 10} {
			assert.LessOrEqual(t, d.gaps()[i], limit*time.Second)
			assert.GreaterOrEqual(t, d.gaps()[i], limit*time.Second/2)
		}
	})
}

// TestRetryAfter checks both forms of Retry-After.
func TestRetryAfter(t *testing.T) {
	for _, form := range []string{"20", "Sat, 1 Jan 2000 00:00:20 GMT"} { // a bubble begins with the year
		bubble(t, func(t *testing.T, w *world) {
			d := &diary{texts: []string{status(429, "Retry-After: "+form), ok("x")}}
			w.serve("a", answers(d.answer))
			w.serve("b", says(ok("x")))
			c := w.client()
			start := time.Now()
			_, err := c.Do(t.Context(), Request{URL: "http://a/"})
			refusal, isStatus := err.(*Failure)
			require.True(t, isStatus, "%v", err)
			assert.Equal(t, 20*time.Second, refusal.RetryAfter)
			assert.True(t, refusal.At.Equal(start.Add(20*time.Second)))

			got := all(c, "http://a/x", "http://b/", "http://a/y")
			assert.Equal(t, []string{"ok 200", "ok 200", "ok 200"}, got)
			assert.Equal(t, 20*time.Second, d.gaps()[0])
			assert.Equal(t, 20*time.Second, time.Since(start))
		})
	}
}

// TestRetryAfterTooLong checks that requests fail at once, without being sent, until the time is over.
func TestRetryAfterTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &diary{texts: []string{status(503, "Retry-After: 3600"), ok("x")}}
		w.serve("a", answers(d.answer))
		c := w.client()
		c.Tries = 0
		start := time.Now()
		assert.Equal(t, []string{"do: status 503"}, all(c, "http://a/"))
		_, err := c.Do(t.Context(), Request{URL: "http://A./other"})
		refusal, isStatus := err.(*Failure)
		require.True(t, isStatus, "%v", err)
		assert.True(t, refusal.Remembered)
		assert.Equal(t, 503, refusal.Status)
		assert.True(t, refusal.At.Equal(start.Add(time.Hour)))
		assert.Len(t, d.times, 1)
		assert.Zero(t, time.Since(start))

		time.Sleep(time.Hour - 30*time.Second)
		assert.Equal(t, []string{"ok 200"}, all(c, "http://a/"))
		assert.Equal(t, []time.Duration{time.Hour}, d.gaps())
	})
}

// TestTold refuses one request while others wait for their turn.
func TestTold(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &diary{texts: []string{status(429, "Retry-After: 7200")}}
		w.serve("a", answers(d.answer))
		c := w.client()
		c.Pace = time.Minute
		c.Tries = 1
		got := all(c, "http://a/1", "http://a/2", "http://a/3", "http://a/4", "http://a/5", "http://a/6")
		assert.Len(t, d.times, 1)
		assert.ElementsMatch(t, []string{
			"do: status 429", "do: remembered 429", "do: remembered 429",
			"do: remembered 429", "do: remembered 429", "do: remembered 429",
		}, got)
	})
}

// TestToldWhilePaced checks that only the wait for the host counts, not that for the pace.
func TestToldWhilePaced(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &diary{texts: []string{ok("x"), status(503, "Retry-After: 70"), ok("x")}}
		w.serve("a", answers(d.answer))
		c := w.client()
		c.Pace = time.Minute
		got := all(c, "http://a/1", "http://a/2", "http://a/3")
		assert.ElementsMatch(t, []string{"ok 200", "do: status 503", "ok 200"}, got)
		assert.GreaterOrEqual(t, d.gaps()[1], 70*time.Second)
	})
}

func TestPace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, other := &diary{texts: []string{ok("x")}}, &diary{texts: []string{ok("x")}}
		w.serve("a", answers(d.answer))
		w.serve("b", answers(other.answer))
		c := w.client()
		c.Pace = time.Second
		start := time.Now()
		all(c, "http://a/", "http://a/", "http://a/", "http://a/", "http://a/", "http://a/", "http://b/")
		assert.Equal(t, []time.Duration{time.Second, time.Second, time.Second, time.Second, time.Second}, d.gaps())
		assert.Equal(t, start, other.times[0])
		time.Sleep(time.Hour) // does not save up for a burst
		all(c, "http://a/", "http://a/")
		assert.Equal(t, time.Second, d.gaps()[6])
	})
}

// TestPerHost checks that open bodies count: until one is closed or read to its end, no further
// request is made.
func TestPerHost(t *testing.T) {
	for name, finish := range map[string]func(io.ReadCloser){
		"closed":          func(b io.ReadCloser) { b.Close() },
		"closed twice":    func(b io.ReadCloser) { b.Close(); b.Close() },
		"read":            func(b io.ReadCloser) { io.Copy(io.Discard, b) },
		"read and closed": func(b io.ReadCloser) { io.Copy(io.Discard, b); b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &diary{texts: []string{ok("x")}}
				w.serve("a", answers(d.answer))
				c := w.client()
				c.PerHost = 2
				open := make(chan io.ReadCloser, 5)
				for range 5 {
					go func() {
						resp, err := c.Do(t.Context(), Request{URL: "http://a/"})
						if assert.NoError(t, err) {
							open <- resp.Body
						}
					}()
				}
				for i := range 5 {
					synctest.Wait()
					assert.Len(t, d.times, min(i+2, 5))
					finish(<-open)
				}
			})
		})
	}
}

// TestCancel cancels a fetch wherever it waits.
func TestCancel(t *testing.T) {
	waits := map[string]func(w *world, c *Client){
		"headers":   func(w *world, _ *Client) { w.serve("a", stall("")) },
		"body":      func(w *world, _ *Client) { w.serve("a", stall(head+"\r\nx")) },
		"gzip body": func(w *world, _ *Client) { w.serve("a", stall(gzipped)) },
		"backoff": func(w *world, c *Client) {
			w.serve("a", says(status(500)))
			c.Tries, c.Base, c.MaxWait = 9, time.Hour, time.Hour
		},
		"retry after": func(w *world, c *Client) { w.serve("a", says(status(429, "Retry-After: 29"))); c.Tries = 0 },
		"pace": func(w *world, c *Client) {
			w.serve("a", says(ok("")))
			c.Pace = time.Hour
			outcome(c, Request{URL: "http://a/"})
		},
		"slot": func(w *world, c *Client) {
			w.serve("a", says(ok("x")))
			c.PerHost = 1
			resp, err := c.Do(context.Background(), Request{URL: "http://a/"})
			if err == nil {
				go func() { time.Sleep(time.Minute); resp.Body.Close() }()
			}
		},
	}
	for name, prepare := range waits {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				c := w.client()
				prepare(w, c)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				resp, err := c.Do(ctx, Request{URL: "http://a/"})
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
				}
				assert.Equal(t, "deadline", describe(err))
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, 3*time.Second, time.Since(start))
				time.Sleep(time.Hour)
			})
		})
	}
}

// TestCloseWhileReading checks that Close ends a Read.
func TestCloseWhileReading(t *testing.T) {
	for _, text := range []string{head + "\r\nx", gzipped, zstded} {
		bubble(t, func(t *testing.T, w *world) {
			w.serve("a", stall(text))
			resp, err := w.client().Do(t.Context(), Request{URL: "http://a/"})
			require.NoError(t, err)
			time.AfterFunc(time.Second, func() { resp.Body.Close() })
			start := time.Now()
			_, err = io.Copy(io.Discard, resp.Body)
			assert.ErrorIs(t, err, http.ErrBodyReadAfterClose)
			assert.Equal(t, time.Second, time.Since(start))
			_, err = resp.Body.Read(make([]byte, 1))
			assert.ErrorIs(t, err, http.ErrBodyReadAfterClose)
		})
	}
}

// TestSlowReader checks that a slow caller causes no timeout: the timer stands still between reads.
func TestSlowReader(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.serve("a", says(ok("0123456789")))
		resp, err := w.client().Do(t.Context(), Request{URL: "http://a/"})
		require.NoError(t, err)
		n, buf := 0, make([]byte, 1)
		for err == nil {
			time.Sleep(time.Hour)
			var m int
			m, err = resp.Body.Read(buf)
			n += m
		}
		assert.Equal(t, io.EOF, err)
		assert.Equal(t, 10, n)
	})
}

// TestKeptConnection checks that a connection is reused after answers of all kinds.
func TestKeptConnection(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &diary{texts: []string{
			ok("x"), status(404), "HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nsorry", to(302, "/b"), ok(gzipOf(nil), "Content-Encoding: gzip"),
			chunked + "1\r\nx\r\n0\r\n\r\n", status(204), ok(zstdOf([]byte("x")), "Content-Encoding: zstd"),
		}}
		w.serve("a", answers(d.answer))
		c := w.client()
		for range len(d.texts) {
			outcome(c, Request{URL: "http://a/"})
		}
		assert.Len(t, w.dialled, 1)
	})
}

// TestManyHosts checks that the memory of hosts stays small, but keeps those that asked for a wait.
func TestManyHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hs hosts
		busy := hs.use("busy", 4, 0)
		angry := hs.use("angry", 4, 0)
		hs.leaveAlone(angry, time.Now().Add(time.Hour), 429)
		hs.leave(angry)
		for i := range 100_000 {
			h := hs.use(fmt.Sprint(i), 4, time.Second)
			h.pace.Load().Reserve()
			hs.leave(h)
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
			require.LessOrEqual(t, len(hs.byName), 2*fewHosts)
		}
		assert.Same(t, busy, hs.byName["busy"])
		assert.Same(t, angry, hs.byName["angry"])

		// All of them ask to be left alone: then some are forgotten.
		for i := range 100_000 {
			h := hs.use(fmt.Sprint(i), 4, 0)
			hs.leaveAlone(h, time.Now().Add(time.Hour), 503)
			hs.leave(h)
			require.LessOrEqual(t, len(hs.byName), manyHosts)
		}
		assert.Same(t, busy, hs.byName["busy"])
	})
}

// TestManyGoroutines is for the race detector.
func TestManyGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.client()
		c.Tries = 0
		var urls []string
		for i := range 40 {
			host := fmt.Sprint("host", i%8)
			d := &diary{texts: []string{status(500), to(302, "/x"), ok(gzipOf(noise(9000)), "Content-Encoding: gzip")}}
			w.serve(host, answers(d.answer))
			urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
		}
		for _, got := range all(c, urls...) {
			assert.Equal(t, "ok 200", got)
		}
	})
}
