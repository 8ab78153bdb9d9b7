package check

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
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
// Duties: atom-pmh#33.
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
			if slices.Contains(r.Formats, feedhistory.RSS) && r.Code != "barren" { // if the server, not the format, is at fault
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
	client := &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
	client.Retry.Tries = 1
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
	for f, err := range c.Walk(ctx, client, url) {
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
