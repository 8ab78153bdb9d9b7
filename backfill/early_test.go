package backfill

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// A slowBlog takes a second for each answer.
type slowBlog struct {
	*blog
	flying, most atomic.Int32
}

func (b *slowBlog) RoundTrip(r *http.Request) (*http.Response, error) {
	b.most.Store(max(b.most.Load(), b.flying.Add(1)))
	defer b.flying.Add(-1)
	time.Sleep(time.Second)
	return b.blog.RoundTrip(r)
}

// Of a blog that counts its posts, two pages are in flight, with as many requests as one by one.
// Without a count, with a pace or without guessing it is one.
func TestOverlapped(t *testing.T) {
	read := func(t *testing.T, edit func(*slowBlog, *feedhistory.Client)) (took time.Duration, requests int, most int32) {
		synctest.Test(t, func(t *testing.T) {
			b := &slowBlog{blog: &blog{site: newSite(300), size: 10}}
			b.handler, b.url = b.answer, "http://example.org"
			c := &feedhistory.Client{AllowPrivate: true, Transport: b, Tries: 1}
			edit(b, c)
			started := time.Now()
			r, err := (&Backfill{HTTP: c}).Fetch(t.Context(), "http://example.org/feed/", Probe{})
			require.NoError(t, err)
			b.has(t, r.History, b.guid)
			took, requests, most = time.Since(started), len(b.requests), b.most.Load()
		})
		return took, requests, most
	}
	took, requests, most := read(t, func(*slowBlog, *feedhistory.Client) {})
	require.EqualValues(t, 2, most)
	for name, edit := range map[string]func(*slowBlog, *feedhistory.Client){
		"no guessing": func(_ *slowBlog, c *feedhistory.Client) { c.NoGuess = true },
		"one a host":  func(_ *slowBlog, c *feedhistory.Client) { c.PerHost = 1 },
	} {
		slow, same, one := read(t, edit)
		require.EqualValues(t, 1, one, name)
		require.Equal(t, same, requests, name)
		require.LessOrEqual(t, float64(took), 0.67*float64(slow), name)
	}
	_, _, most = read(t, func(b *slowBlog, _ *feedhistory.Client) { b.withoutAPI = true })
	require.EqualValues(t, 1, most)
}
