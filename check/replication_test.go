package check

import (
	"net/http"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

// TestReplication walks, for every rule of pages of entities, feeds that break
// just this rule, and a similar one that breaks none: /raises…/feed and
// /clean…/feed. The findings are those of the last of as many runs as the
// archive says.
func TestReplication(t *testing.T) {
	files := 0
	for _, r := range Rules() {
		if r.Scope != PagesOfEntities {
			continue
		}
		files++
		t.Run(r.Code, func(t *testing.T) {
			a := archive(t, "testdata/replication/"+r.Code+".txtar")
			raised, clean := 0, 0
			for _, f := range a.Files {
				dir, name := path.Split(f.Name)
				switch {
				case name != "feed":
				case strings.HasPrefix(dir, "/clean"):
					clean++
					require.Empty(t, walkPages(t, a, f.Name), f.Name)
				default:
					raised++
					found := walkPages(t, a, f.Name)
					require.Equal(t, []string{r.Code}, codes(found), "%s: %v", f.Name, found)
					for _, f := range found {
						testFinding(t, f, r)
					}
				}
			}
			require.NotZero(t, raised)
			require.NotZero(t, clean)
		})
	}
	found := feedtest.Glob(t, "testdata/replication/*")
	require.Len(t, found, files, "a file without a rule")
	require.NotZero(t, files)
}

func walkPages(t *testing.T, a *feedtest.Archive, name string) (found []Finding) {
	site := feedtest.Serve(t, a.String())
	client := pagesClient(t)
	runs := 1
	if text, ok := a.File("runs"); ok {
		var err error
		runs, err = strconv.Atoi(strings.TrimSpace(text))
		require.NoError(t, err)
	}
	digests := new(Digests)
	for range runs {
		c := Chain{Profile: DataReplication, Digests: digests}
		found = walkAll(t.Context(), &c, client, site.URL+name)
	}
	return found
}

func pagesClient(t *testing.T) *feedhistory.Client {
	client := &feedhistory.Client{AllowPrivate: true}
	client.Tries = 1
	t.Cleanup(client.CloseIdle)
	return client
}

// TestReplicationFeeds checks the feeds of the consumer's own tests: a check
// always comes to its end, and finds an error if the consumer does.
func TestReplicationFeeds(t *testing.T) {
	files := feedtest.Glob(t, "../harvest/datareplication/testdata/feeds/*.txtar")
	faults := 0
	for _, file := range files {
		a := archive(t, file)
		if strings.Contains(a.String(), "#2 --") {
			continue // it has become a different feed when it is read
		}
		found := walkPages(t, a, "/feed")
		want, _ := a.File("want")
		for _, code := range []harvest.Code{harvest.ErrLink, harvest.ErrLoop, harvest.ErrStamp, harvest.ErrMalformed, harvest.ErrCutShort} {
			if _, snapshot := a.File("/snapshot"); strings.Contains("\n"+want, "\n"+string(code)+": ") && !snapshot {
				require.True(t, HasErrors(found), file)
				faults++
			}
		}
	}
	require.Greater(t, faults, 20)
}

// The feed and the snapshot of this project's own producer have no findings.
func TestReplicationProducer(t *testing.T) {
	out := &publish.MemoryOutput{}
	mux := http.NewServeMux()
	server := feedtest.Server(t, mux)
	p := &datareplication.Producer{Output: out}
	mux.Handle("/feed/", http.StripPrefix("/feed/", &datareplication.Handler{FS: out, Base: server.URL + "/feed/"}))
	resource := datareplication.Entity{ContentID: "1", Operation: datareplication.Put, Type: "text/plain", Body: []byte("a")}
	require.NoError(t, p.Append(t.Context(), resource))
	require.NoError(t, p.Snapshot(t.Context(), feedtest.Values(resource, resource)))
	for _, name := range []string{"/feed/", "/feed/snapshot"} {
		c := Chain{Profile: DataReplication}
		require.Empty(t, walkAll(t.Context(), &c, pagesClient(t), server.URL+name))
		require.NotZero(t, c.Documents())
	}
}

// A feed that cannot be retrieved is an error, a long one is cut short, and a
// mistake that is made a thousand times is reported once.
func TestReplicationWalk(t *testing.T) {
	site := feedtest.Serve(t, `
-- /feed --
Content-Type: multipart/mixed; boundary=b
Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT
Link: <{{site}}/feed>; rel=self
Link: <{{site}}/1>; rel=prev

{{repeat 1000 --b
Last-Modified: Sun, 01 Mar 2026 12:00:00 GMT
Content-Type: text/plain
Content-ID: %d
Operation-Type: PUT

text
}}--b--
`)
	for _, err := range (&Chain{Profile: DataReplication}).Check(t.Context(), pagesClient(t), site.URL+"/none") {
		require.ErrorContains(t, err, "404")
	}
	client := pagesClient(t)
	client.Budget.Documents = 1
	c := Chain{Profile: DataReplication}
	found := walkAll(t.Context(), &c, client, site.URL+"/feed")
	require.Len(t, found, mostOfACode+1)
	require.Contains(t, found[mostOfACode-1].Message, "and 980 more")
	require.Equal(t, "walk-cut-short", found[mostOfACode].Code)
	require.Equal(t, 1, c.Documents())
}
