package feedhistory

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/vocab"
)

// A carelessFeed is a chain whose publisher may break each SHOULD of RFC 5005: its relations and
// marks are mixed, documents repeat entries, name others too, or have an id and a self of their own.
type carelessFeed []string

func (f carelessFeed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}
	if i, err := strconv.Atoi(r.URL.Path[1:]); err == nil && i < len(f) {
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(f[i]))
	}
	return resp, nil
}

var carelessFeeds = rapid.Custom(func(t *rapid.T) (f carelessFeed) {
	n := rapid.IntRange(1, 7).Draw(t, "documents")
	rels := []string{RelPrevArchive, RelPrevArchive, RelPrevArchive, RelPrevArchive, RelNext, RelPrevious, RelLast, RelNextArchive}
	rarely := func(what string) bool { return rapid.IntRange(0, 5).Draw(t, what) == 0 }
	for i := range n {
		var b strings.Builder
		fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="%s"><title>T</title>`, vocab.History)
		link := func(rel string, to int) { fmt.Fprintf(&b, `<link rel="%s" href="/%d"/>`, rel, to) }
		marked := i > 0 && rapid.Bool().Draw(t, "marked")
		if marked {
			b.WriteString("<fh:archive/>")
		}
		if id := "urn:feed"; rarely("no id") || marked && rarely("own id") {
			fmt.Fprintf(&b, "<id>%s:%d</id>", id, i)
		} else {
			fmt.Fprintf(&b, "<id>%s</id>", id)
		}
		if rarely("complete") {
			b.WriteString("<fh:complete/>")
		}
		if i+1 < n {
			link(rapid.SampledFrom(rels).Draw(t, "older"), i+1)
		}
		if i > 0 && rapid.Bool().Draw(t, "newer") {
			link(RelNextArchive, rapid.SampledFrom([]int{i - 1, i - 1, 0, n - 1}).Draw(t, "newer is"))
		}
		if rarely("another") {
			link(rapid.SampledFrom(rels).Draw(t, "another by"), rapid.IntRange(0, n-1).Draw(t, "another is"))
		}
		if rarely("stale self") {
			link(RelSelf, rapid.IntRange(0, n-1).Draw(t, "self"))
		}
		fmt.Fprintf(&b, "<entry><id>urn:%d</id></entry>", i)
		if rarely("repeats") {
			b.Reset()
			fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><title>%d</title><id>urn:feed</id>`, i)
			if i+1 < n {
				link(rapid.SampledFrom(rels).Draw(t, "older again"), i+1)
			}
			fmt.Fprintf(&b, "<entry><id>urn:%d</id></entry>", max(i-1, 0))
		}
		b.WriteString("</feed>")
		f = append(f, b.String())
	}
	return f
})

// Whatever a publisher mixes up: what is called whole has every entry, and a walk reads no document
// twice.
func TestCarelessPublisher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := carelessFeeds.Draw(t, "feed")
		var requests atomic.Int64
		c := &Client{Retry: Retry{Tries: 1}, Policy: Policy{NoGuess: true, PerHost: 1}, Wrap: func(next http.RoundTripper) http.RoundTripper {
			return counting{next, &requests}
		}, Transport: f}
		h, err := c.Fetch(t.Context(), "http://example.org/0")
		require.NoError(t, err)
		require.LessOrEqual(t, int(requests.Load()), len(f)+1)
		if h.Verdict() != Whole {
			return
		}
		there := map[string]bool{}
		for _, e := range h.Entries {
			there[e.ID] = true
		}
		for _, text := range f {
			_, id, _ := strings.Cut(text, "<entry><id>")
			id, _, _ = strings.Cut(id, "<")
			require.True(t, there[id], "%s is missing", id)
		}
	})
}

type counting struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(r)
}
