package check

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A chain of a thousand documents is checked in one walk, which keeps a few
// numbers for each entry but no document: of the 20 MB of the last 900
// documents, only a small part stays in memory.
func TestLongChain(t *testing.T) {
	const documents, entries = 1000, 10
	content := strings.Repeat("Something that was written, once. ", 60)
	var mu sync.Mutex
	requests, passed := map[string]int{}, 0
	heap := map[int]uint64{}
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.URL.Path]++
		if n := len(requests); n == 100 || n == documents {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap[n] = m.HeapAlloc
		}
		text := longDocument("http://"+r.Host, r.URL.Path, documents, entries, content)
		passed += len(text)
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = w.Write([]byte(text))
	}))
	client := &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
	defer client.CloseIdle()
	c := Chain{Digests: new(Digests)}
	require.Empty(t, walkAll(t.Context(), &c, client, fmt.Sprintf("%s/%d", server.URL, documents)))
	require.Equal(t, documents, c.Documents())
	require.Len(t, requests, documents)
	for path, n := range requests {
		require.Equal(t, 1, n, path)
	}
	grown := int64(heap[documents]) - int64(heap[100])
	t.Logf("%d MB passed; the heap grew by %d kB, %d bytes an entry", passed>>20, grown>>10, grown/(900*entries))
	require.Less(t, grown, int64(passed)/5)
	require.Less(t, grown/(900*entries), int64(400))
}

// longDocument returns one of the documents: "/1000" is the subscription
// document, and "/1" the oldest archive.
func longDocument(site, path string, documents, entries int, content string) string {
	var n int
	_, _ = fmt.Sscanf(path, "/%d", &n)
	var b strings.Builder
	day := func(n int) string { return time.Unix(int64(n)*86400, 0).UTC().Format(time.RFC3339) }
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">`)
	fmt.Fprintf(&b, `<id>urn:feed</id><updated>%s</updated><link rel="self" href="%s"/>`, day(n), path)
	if n < documents {
		fmt.Fprintf(&b, `<fh:archive/><link rel="current" href="%s/%d"/>`, site, documents)
	}
	if n < documents-1 {
		fmt.Fprintf(&b, `<link rel="next-archive" href="%s/%d"/>`, site, n+1)
	}
	if n > 1 {
		fmt.Fprintf(&b, `<link rel="prev-archive" href="%s/%d"/>`, site, n-1)
	}
	for i := range entries {
		fmt.Fprintf(&b, "<entry><id>urn:%d:%d</id><updated>%s</updated><content>%s</content></entry>\n", n, i, day(n), content)
	}
	b.WriteString("</feed>")
	return b.String()
}
