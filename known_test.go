package feedhistory

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// archivedSites is an archived feed; each document has an ETag.
func archivedSites() *feedtest.Sites {
	return &feedtest.Sites{Replies: map[string]feedtest.Reply{
		feedURL:              {Header: []string{`Etag: "3"`}, Body: feed("urn:3", `<link rel="prev-archive" href="/2"/>`)},
		"http://a.example/2": {Header: []string{`Etag: "2"`}, Body: feed("urn:2", `<fh:archive/><link rel="prev-archive" href="/1"/>`)},
		"http://a.example/1": {Header: []string{`Etag: "1"`}, Body: feed("urn:1", `<fh:archive/>`)},
	}}
}

// walked returns what a walk yields, a word for each yield.
func walked(t *testing.T, c *Client, opt *WalkOptions) (yields []string) {
	t.Helper()
	for doc, err := range c.Walk(t.Context(), feedURL, opt) {
		_, rest, _ := strings.Cut(yielded(doc, err), " ")
		switch {
		case err == nil:
			yields = append(yields, doc.URL)
		case is[*Unchanged](err):
			url, _, _ := strings.Cut(rest, " ")
			yields = append(yields, "unchanged "+url)
		case is[*Gap](err):
			yields = append(yields, "gap "+rest)
		default:
			yields = append(yields, "error "+err.Error())
		}
	}
	return yields
}

// learn walks over the sites, and returns what is known afterwards. From then on the server
// answers with 304.
func learn(t *testing.T, s *feedtest.Sites) map[string]Known {
	t.Helper()
	known := map[string]Known{}
	for doc, err := range clientOf(s).Walk(t.Context(), feedURL, nil) {
		require.NoError(t, err)
		known[doc.URL] = doc.Known()
		s.Replies[doc.URL] = feedtest.Reply{Status: 304}
	}
	s.Took()
	return known
}

func knownOf(known map[string]Known) func(string) Known {
	return func(url string) Known { return known[url] }
}

// After a feed that has not changed, the walk continues at an archive that is pending.
func TestWalkUnchangedHead(t *testing.T) {
	for _, perHost := range []int{0, 1} {
		s := archivedSites()
		known := learn(t, s)
		delete(known, "http://a.example/2")
		delete(known, "http://a.example/1")
		fresh := archivedSites()
		s.Replies["http://a.example/2"], s.Replies["http://a.example/1"] =
			fresh.Replies["http://a.example/2"], fresh.Replies["http://a.example/1"]
		client := clientOf(s)
		client.Policy.PerHost = perHost

		require.Equal(t, []string{"unchanged " + feedURL, "http://a.example/2", "http://a.example/1"},
			walked(t, client, &WalkOptions{Known: knownOf(known)}))
		require.Equal(t, []string{feedURL + ` If-None-Match: "3"`, "http://a.example/2", "http://a.example/1"}, s.Took())

		// What has been processed ends it; what is pending is gone on to.
		processed := func(url string) bool { return url == "http://a.example/2" }
		require.Equal(t, []string{"unchanged " + feedURL, "http://a.example/1"}, walked(t, client, &WalkOptions{
			Known: knownOf(known), Processed: processed, Pending: []string{"http://a.example/2", "http://a.example/1"},
		}))
		require.Equal(t, []string{feedURL + ` If-None-Match: "3"`, "http://a.example/1"}, s.Took())

		// A feed that had nothing older still has not.
		last := known[feedURL]
		last.Older = ""
		require.Equal(t, []string{"unchanged " + feedURL}, walked(t, client, &WalkOptions{
			Known: func(string) Known { return last },
		}))
	}
}

// A walk passes known archives conditionally, by 304 or by digest.
func TestWalkKnownArchives(t *testing.T) {
	for _, perHost := range []int{0, 1} {
		for _, byDigest := range []bool{false, true} {
			s := archivedSites()
			known := learn(t, s)
			grown := feed("urn:4", `<link rel="prev-archive" href="/2"/>`)
			s.Replies[feedURL] = feedtest.Reply{Header: []string{`Etag: "4"`}, Body: grown}
			conditions := []string{feedURL + ` If-None-Match: "3"`, `http://a.example/2 If-None-Match: "2"`, `http://a.example/1 If-None-Match: "1"`}
			if byDigest {
				conditions = []string{feedURL, "http://a.example/2", "http://a.example/1"}
				for url, k := range known {
					known[url] = Known{URL: k.URL, Digest: k.Digest, Kind: k.Kind, Older: k.Older}
				}
				s.Replies = archivedSites().Replies
				s.Replies[feedURL] = feedtest.Reply{Body: grown}
			}
			client := clientOf(s)
			client.Policy.PerHost = perHost
			require.Equal(t, []string{feedURL, "unchanged http://a.example/2", "unchanged http://a.example/1"},
				walked(t, client, &WalkOptions{Known: knownOf(known)}))
			require.ElementsMatch(t, conditions, s.Took())
		}
	}
}

// A loop through documents that have not changed is noticed too.
func TestWalkKnownLoop(t *testing.T) {
	s := archivedSites()
	known := learn(t, s)
	k := known["http://a.example/1"]
	k.Older = feedURL
	known["http://a.example/1"] = k
	yields := walked(t, clientOf(s), &WalkOptions{Known: knownOf(known)})
	require.Len(t, yields, 4)
	require.Contains(t, yields[3], "loop: "+feedURL)
	require.Len(t, s.Took(), 3)
}

// If an archive is not found, the walk asks for the feed again, conditionally: if that has
// not changed, the archive is missing.
func TestWalkUnchangedHeadAndMissingArchive(t *testing.T) {
	s := archivedSites()
	known := learn(t, s)
	s.Replies["http://a.example/2"] = feedtest.Reply{Status: 404}
	yields := walked(t, clientOf(s), &WalkOptions{Known: knownOf(known)})
	require.Len(t, yields, 2)
	require.Equal(t, "unchanged "+feedURL, yields[0])
	require.Contains(t, yields[1], "status: http://a.example/2")
	require.Equal(t, []string{
		feedURL + ` If-None-Match: "3"`, `http://a.example/2 If-None-Match: "2"`, feedURL + ` If-None-Match: "3"`,
	}, s.Took())
}

// Merge reports that a document has not changed, and returns everything else.
func TestMergeUnchanged(t *testing.T) {
	s := archivedSites()
	known := learn(t, s)
	client := clientOf(s)
	h, err := Merge(client.Walk(t.Context(), feedURL, &WalkOptions{Known: knownOf(known)}))
	unchanged := feedtest.ErrorAs[*Unchanged](t, err)
	require.Equal(t, feedURL, unchanged.Response.Requested, "the first one")
	require.Nil(t, h, "nothing was read")

	s.Replies["http://a.example/2"] = archivedSites().Replies["http://a.example/2"]
	delete(known, "http://a.example/2")
	h, err = Merge(client.Walk(t.Context(), feedURL, &WalkOptions{Known: knownOf(known)}))
	require.ErrorAs(t, err, &unchanged)
	require.Equal(t, []string{"urn:2"}, ids(h.Entries))
	require.Equal(t, 1, h.Documents)
	require.Empty(t, h.Gaps)

	h, err = Merge(client.Walk(t.Context(), feedURL, &WalkOptions{Known: knownOf(known), Pending: []string{"http://a.example/nowhere"}}))
	require.ErrorAs(t, err, &unchanged)
	require.Len(t, h.Gaps, 1, "what is missing is told all the same")
}

// A caller that stores what a walk yields, and answers Processed from its store, gets what
// it would get without a store: for every site, also where documents have several URLs.
func TestProcessedMeanwhile(t *testing.T) {
	for _, file := range walks(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		archive := feedtest.Parse(string(text))
		options := optionsOf(archive)
		want, _ := archive.File("want")
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			v := newVisit(t, feedtest.Serve(t, string(text)), options)
			before, stored := v.options.Processed, map[string]bool{}
			v.options.Processed = func(url string) bool { return stored[url] || before(url) }
			v.history, v.err = Merge(feedtest.Watch(v.client.Walk(t.Context(), v.url, &v.options), func(doc *Document, err error) {
				if doc != nil && err == nil {
					self, _ := doc.Links.Rel(RelSelf)
					for _, name := range []string{doc.Response.Requested, doc.URL, self.Href} {
						stored[name] = true
					}
					v.docs = append(v.docs, doc)
				}
			}))
			facts := func(report string) (lines []string) {
				for line := range strings.Lines(report) {
					if key, _, _ := strings.Cut(line, " "); key != "note" && key != "request" {
						lines = append(lines, line)
					}
				}
				return lines
			}
			require.Equal(t, facts(want), facts(v.report()))
		})
	}
}

// A walk over a history that another walk has stored in part reads the rest, if given what
// that one left pending.
func TestProcessedInPart(t *testing.T) {
	for stored := range 4 {
		site := feedtest.Serve(t, threeDocuments)
		first := newVisit(t, site, "")
		var processed, pending []string
		n := 0
		for doc, err := range first.client.Walk(t.Context(), first.url, nil) {
			require.NoError(t, err)
			if n++; n > stored {
				break
			}
			if older, ok := doc.Older(); ok {
				pending = append(pending, older.Href)
			}
			if n > 1 {
				processed = append(processed, doc.URL)
			}
		}
		second := newVisit(t, site, "")
		second.options.Processed = func(url string) bool { return slices.Contains(processed, url) }
		second.options.Pending = pending
		second.walk(t.Context())
		require.NoError(t, second.err)
		require.Equal(t, Whole, second.history.Verdict())
		known := map[string]bool{}
		for _, url := range processed {
			known[url] = true
		}
		for _, d := range second.docs {
			known[d.URL] = true
		}
		require.Len(t, known, 3, "%d documents were stored", stored)
	}
}
