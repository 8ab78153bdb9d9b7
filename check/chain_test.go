package check

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// TestChains walks, for every rule of chains, a feed that breaks just this
// rule, and a similar one that breaks none. In the archives:
//
//	/raises…/feed.*  breaks the rule
//	/clean…/feed.*   breaks none
//	profile         the profile, if it is not RFC 5005
//	also            another rule that is inevitably broken, too; also.rss, in RSS
//	budget          maximum number of documents to request
//	runs            number of walks; the findings are those of the last
//	https           the site is https://example.org
//
// Duties: atom-pmh#33, 5005#27.
func TestChains(t *testing.T) {
	files := 0
	for _, r := range Rules() {
		if r.Scope != WholeChain {
			continue
		}
		files++
		t.Run(r.Code, func(t *testing.T) {
			a := archive(t, "testdata/chains/"+r.Code+".txtar")
			raised := 0
			for _, f := range a.Files {
				if dir, name := path.Split(f.Name); name != "feed"+path.Ext(name) || strings.Contains(name, "#") {
					continue
				} else if strings.HasPrefix(dir, "/clean") {
					require.Empty(t, walkFixture(t, a, f.Name), f.Name)
					continue
				}
				raised++
				want := []string{r.Code}
				for _, name := range []string{"also", "also" + path.Ext(f.Name)} {
					also, _ := a.File(name)
					want = append(want, strings.Fields(also)...)
				}
				slices.Sort(want)
				found := walkFixture(t, a, f.Name)
				require.Equal(t, want, codes(found), "%s: %v", f.Name, found)
				for _, f := range found {
					if f.Code == r.Code {
						testFinding(t, f, r)
					}
				}
			}
			if slices.Contains(r.Formats, feedhistory.FormatRSS) && r.Code != "barren" { // if the server, not the format, is at fault
				require.GreaterOrEqual(t, raised, 2)
			}
			require.NotZero(t, raised)
		})
	}
	found := feedtest.Glob(t, "testdata/chains/*")
	require.Len(t, found, files, "a file without a rule")
}

func walkFixture(t *testing.T, a *feedtest.Archive, name string) (found []Finding) {
	t.Helper()
	site := feedtest.Serve(t, a.String())
	client := &feedhistory.Client{AllowPrivate: true}
	client.Tries = 1
	if text, ok := a.File("budget"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		require.NoError(t, err)
		client.Budget.Documents = n
	}
	start := site.URL
	if _, ok := a.File("https"); ok {
		client.Transport, start = toSite{site.URL}, "https://example.org"
	}
	t.Cleanup(client.CloseIdle)
	runs := 1
	chain := Chain{Profile: profile(a)}
	if text, ok := a.File("runs"); ok {
		runs, _ = strconv.Atoi(strings.TrimSpace(text))
		chain.Digests = new(Digests)
	}
	for range runs {
		run := Chain{Profile: chain.Profile, Digests: chain.Digests}
		found = walkAll(t.Context(), &run, client, start+name)
	}
	return found
}

func walkAll(ctx context.Context, c *Chain, client *feedhistory.Client, url string) (found []Finding) {
	for f, err := range c.Check(ctx, client, url) {
		if err != nil {
			return append(found, Document(nil, err, c.Profile)...)
		}
		found = append(found, f)
	}
	return found
}

// toSite sends every request to one site.
type toSite struct{ url string }

func (s toSite) RoundTrip(req *http.Request) (*http.Response, error) {
	site, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = site.Scheme, site.Host
	return http.DefaultTransport.RoundTrip(req)
}

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
	client := &feedhistory.Client{AllowPrivate: true}
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
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title/>`)
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
		fmt.Fprintf(&b, "<entry><id>urn:%d:%d</id><title/><updated>%s</updated><content>%s</content></entry>\n", n, i, day(n), content)
	}
	b.WriteString("</feed>")
	return b.String()
}
