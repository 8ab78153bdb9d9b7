package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A web is a random set of documents, of which each may link to any.
type web struct {
	feed Kind
	docs []webDoc
}

type webDoc struct {
	older   int // index of the next document back in time; -1: none; past the end: a 404
	damaged bool
	late    bool // the link stands after the entries
	entries []string
}

var webs = rapid.Custom(func(t *rapid.T) (w web) {
	w.feed = rapid.SampledFrom([]Kind{Archived, Paged}).Draw(t, "kind")
	n := rapid.IntRange(1, 7).Draw(t, "documents")
	for i := range n {
		older := i + 1 // a chain, mostly
		if rapid.IntRange(0, 5).Draw(t, "elsewhere") == 0 {
			older = rapid.IntRange(-1, n).Draw(t, "older")
		}
		w.docs = append(w.docs, webDoc{
			older:   older,
			damaged: i > 0 && rapid.IntRange(0, 4).Draw(t, "damaged") == 0,
			late:    rapid.Bool().Draw(t, "late"),
			entries: rapid.SliceOfN(id, 0, 5).Draw(t, "entries"),
		})
	}
	if rapid.Bool().Draw(t, "ends") {
		w.docs[n-1].older = -1
	}
	w.docs[0].older = max(w.docs[0].older, 0) // or it would be of no kind
	return w
})

// RoundTrip serves the documents at /0, /1 and so on.
func (w web) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, ContentLength: -1, Request: req}
	i, err := strconv.Atoi(req.URL.Path[1:])
	if err != nil || i >= len(w.docs) {
		return resp, nil
	}
	d := w.docs[i]
	link := ""
	if d.older >= 0 {
		rel := map[Kind]string{Archived: RelPrevArchive, Paged: RelNext}[w.feed]
		link = fmt.Sprintf(`<link rel="%s" href="/%d"/>`, rel, d.older)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><title>%d</title>`, i)
	if !d.late {
		b.WriteString(link)
	}
	for _, id := range d.entries {
		fmt.Fprintf(&b, "<entry><id>%s</id><title>%d</title></entry>", id, i)
	}
	if d.late {
		b.WriteString(link)
	}
	if !d.damaged {
		b.WriteString("</feed>")
	}
	resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(b.String()))
	return resp, nil
}

// model says what should come of a walk: the entries with the document whose
// copy is kept, and the reasons of the gaps.
func (w web) model() (documents int, entries []string, gaps []Reason) {
	seen, kept := map[int]bool{}, map[string]bool{}
	for i := 0; ; {
		seen[i] = true
		for _, id := range w.docs[i].entries {
			if !kept[id] {
				kept[id] = true
				entries = append(entries, fmt.Sprintf("%s of %d", id, i))
			}
		}
		if documents++; w.docs[i].damaged {
			documents--
			gaps = append(gaps, ReasonTruncated)
		}
		switch i = w.docs[i].older; {
		case i < 0:
			return documents, entries, gaps
		case i >= len(w.docs):
			return documents, entries, append(gaps, ReasonStatus)
		case seen[i]:
			return documents, entries, append(gaps, ReasonLoop)
		}
	}
}

// Whatever documents link to each other, a walk ends, reads each once, and says
// what is missing; requests ahead of need change nothing about that.
func TestWalkAnyWeb(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := webs.Draw(t, "web")
		documents, entries, gaps := w.model()
		for _, perHost := range []int{0, 1} {
			c := Client{HTTP: &http.Client{Transport: w}, Policy: Policy{PerHost: perHost}, Retry: Retry{Tries: 1}}
			h, err := c.Fetch(context.Background(), "http://web.example/0")
			require.NoError(t, err)
			var gotEntries []string
			for _, e := range h.Entries {
				gotEntries = append(gotEntries, e.ID+" of "+e.Title().Plain())
			}
			var gotGaps []Reason
			for _, g := range h.Gaps {
				gotGaps = append(gotGaps, g.Reason)
			}
			require.Equal(t, documents, h.Documents)
			require.Equal(t, entries, gotEntries)
			require.Equal(t, gaps, gotGaps)
			require.Equal(t, len(gaps) > 0, h.Verdict() == Partial)
		}
	})
}

// A second walk, to which every document of the first is known, takes the same
// way, and meets the same gaps.
func TestWalkKnown(t *testing.T) {
	for _, file := range glob(t, "testdata/walk/*.txtar") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		archive := feedtest.Parse(string(text))
		changes := slices.ContainsFunc(archive.Files, func(f feedtest.File) bool {
			return strings.Contains(f.Name, "#") || strings.Contains(f.Data, "{{count}}")
		})
		_, options := archive.File("options") // budgets are spent otherwise
		if changes || options {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			site := feedtest.Serve(t, string(text))
			first := newVisit(t, site, "")
			first.walk(t.Context())
			if first.err != nil {
				t.Skip("there is no document")
			}
			known, gaps := map[string]Known{}, map[string]Reason{}
			for _, d := range first.docs {
				if k := d.Known(); k.Digest != "" { // else it is to be looked at again
					known[d.Response.Requested] = k
				}
			}
			declared := len(first.history.Head.Gaps()) // by what has not changed
			for _, g := range first.history.Gaps[declared:] {
				if gaps[g.URL] = g.Reason; g.Document != nil {
					delete(known, g.URL) // damaged
				}
			}

			second := newVisit(t, site, "")
			unchanged, again := map[string]Known{}, map[string]Reason{}
			for _, err := range second.client.Walk(t.Context(), second.url, &WalkOptions{
				Known: func(url string) Known { return known[url] },
			}) {
				if u, ok := errors.AsType[*Unchanged](err); ok {
					unchanged[u.Response.Requested] = u.Known
				} else if g, ok := errors.AsType[*Gap](err); ok {
					again[g.URL] = g.Reason
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, known, unchanged)
			require.Equal(t, gaps, again)
		})
	}
}
