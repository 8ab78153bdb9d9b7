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
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// A web is a random set of documents. Each may link to any, and the walk may begin at any.
type web struct {
	feed  Kind
	given int
	docs  []webDoc
}

type webDoc struct {
	older   int  // index of the next document back in time; -1: none; past the end: a 404
	begins  int  // that of the document where it says the feed begins; likewise
	marked  bool // it has a mark of an archive, or of a later page
	damaged bool
	late    bool // the link stands after the entries
	entries []string
}

var webs = rapid.Custom(func(t *rapid.T) (w web) {
	w.feed = rapid.SampledFrom([]Kind{Archived, Paged}).Draw(t, "kind")
	n := rapid.IntRange(1, 7).Draw(t, "documents")
	for i := range n {
		d := webDoc{older: i + 1, begins: -1} // a chain, mostly
		if rapid.IntRange(0, 5).Draw(t, "elsewhere") == 0 {
			d.older = rapid.IntRange(-1, n).Draw(t, "older")
		}
		d.damaged = i > 0 && rapid.IntRange(0, 4).Draw(t, "damaged") == 0
		d.late = rapid.Bool().Draw(t, "late")
		d.entries = rapid.SliceOfN(id, 0, 5).Draw(t, "entries")
		if d.marked = rapid.IntRange(0, 2).Draw(t, "marked") == 0; rapid.Bool().Draw(t, "says where it begins") {
			d.begins = rapid.SampledFrom([]int{0, 0, 0, i, rapid.IntRange(0, n).Draw(t, "begins")}).Draw(t, "begins at")
		}
		w.docs = append(w.docs, d)
	}
	if rapid.Bool().Draw(t, "ends") {
		w.docs[n-1].older = -1
	}
	w.docs[0].older = max(w.docs[0].older, 0) // or it would be of no kind
	for i, d := range w.docs {
		if d.begins >= 0 && d.begins < n && w.docs[d.begins].damaged {
			w.docs[i].begins = n
		}
	}
	if w.given = rapid.IntRange(0, n-1).Draw(t, "given"); w.docs[w.given].damaged {
		w.given = 0
	}
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
	older, begins, mark := RelPrevArchive, RelCurrent, `<fh:archive xmlns:fh="`+vocab.History+`"/>`
	if w.feed == Paged {
		older, begins, mark = RelNext, RelFirst, `<link rel="previous" href="/elsewhere"/>`
	}
	head := ""
	if d.older >= 0 {
		head = fmt.Sprintf(`<link rel="%s" href="/%d"/>`, older, d.older)
	}
	if d.begins >= 0 {
		head += fmt.Sprintf(`<link rel="%s" href="/%d"/>`, begins, d.begins)
	}
	if d.marked {
		head += mark
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><title>%d</title>`, i)
	if !d.late {
		b.WriteString(head)
	}
	for _, id := range d.entries {
		fmt.Fprintf(&b, "<entry><id>%s</id><title>%d</title></entry>", id, i)
	}
	if d.late {
		b.WriteString(head)
	}
	if !d.damaged {
		b.WriteString("</feed>")
	}
	resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(b.String()))
	return resp, nil
}

// isMarked reports whether a document cannot be where the feed begins.
func (w web) isMarked(i int) bool { return w.docs[i].marked }

// path returns the way from the given document to the one where it says the feed begins, and why it
// does not get there.
func (w web) path() (path []int, failed []Reason) {
	for i := w.given; ; {
		path = append(path, i)
		begins := w.docs[i].begins
		switch {
		case begins < 0 && w.docs[i].marked, begins != i && slices.Contains(path, begins), begins >= 0 && begins != i && len(path) == 5:
			return path, []Reason{ReasonDetached}
		case begins < 0, begins == i:
			return path, nil
		case begins >= len(w.docs):
			return path, []Reason{ReasonStatus}
		}
		i = begins
	}
}

// A walkedWeb is the expected result of a walk: the number of complete documents, the entries with
// the document whose copy is kept, and the reasons of the gaps.
type walkedWeb struct {
	documents int
	entries   []string
	gaps      []Reason
}

// model walks the web.
func (w web) model() (m walkedWeb) {
	path, failed := w.path()
	start := len(path) - 1
	if failed != nil {
		if unmarked := slices.DeleteFunc(slices.Clone(path), w.isMarked); len(unmarked) > 0 {
			start = slices.Index(path, unmarked[len(unmarked)-1])
		} else {
			m.gaps = failed
		}
	}
	chains, kept := map[int]int{}, map[string]bool{} // in which chain a document came
	roots := append([]int{path[start]}, slices.Delete(slices.Clone(path), start, start+1)...)
	for chain, root := range roots {
		if chains[root] > 0 {
			continue
		}
		isNew := func(id string) bool { return !kept[id] }
		first := w.docs[roots[0]]
		doubtful := chain > 0 && w.feed == Archived && (first.older >= 0 || first.marked) && slices.ContainsFunc(w.docs[root].entries, isNew)
		proven := len(m.gaps) == 0
		if w.follow(root, chain+1, chains, kept, &m); doubtful && proven && len(m.gaps) == 0 {
			m.gaps = append(m.gaps, ReasonDetached) // the chains have not reached it
		}
	}
	return m
}

// follow walks one chain.
func (w web) follow(i, chain int, chains map[int]int, kept map[string]bool, m *walkedWeb) {
	for {
		d := w.docs[i]
		chains[i] = chain
		for _, id := range d.entries {
			if !kept[id] {
				kept[id] = true
				m.entries = append(m.entries, fmt.Sprintf("%s of %d", id, i))
			}
		}
		if m.documents++; d.damaged {
			m.documents--
			m.gaps = append(m.gaps, ReasonTruncated)
		}
		switch i = d.older; {
		case i < 0:
			return
		case i >= len(w.docs):
			if chains[i] == 0 { // else it is known to be missing
				m.gaps = append(m.gaps, ReasonStatus)
			} else if chains[i] == chain {
				m.gaps = append(m.gaps, ReasonLoop)
			}
			chains[i] = chain
			return
		case chains[i] == chain:
			m.gaps = append(m.gaps, ReasonLoop)
			return
		case chains[i] > 0:
			return
		}
	}
}

// However documents link to each other, and whichever is given, a walk ends, reads each once, and
// reports what is missing. Neither prefetching nor a caller that stores each document as it comes
// changes anything.
func TestWalkAnyWeb(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := webs.Draw(t, "web")
		want := w.model()
		for _, perHost := range []int{0, 1} {
			c := Client{Transport: w, Policy: Policy{PerHost: perHost}, Retry: Retry{Tries: 1}}
			stored := map[string]bool{}
			opt := &WalkOptions{}
			if perHost == 1 {
				opt.Processed = func(url string) bool { return stored[url] }
			}
			var docs []*Document
			walk := tee(c.Walk(context.Background(), fmt.Sprintf("http://web.example/%d", w.given), opt), &docs)
			h, err := Merge(feedtest.Watch(walk, func(doc *Document, _ error) {
				if doc != nil {
					stored[doc.URL] = true
				}
			}))
			require.NoError(t, err)
			got := walkedWeb{documents: h.Documents}
			for _, e := range h.Entries {
				got.entries = append(got.entries, e.ID+" of "+e.Title().Plain())
			}
			for _, g := range h.Gaps {
				got.gaps = append(got.gaps, g.Reason)
			}
			require.Equal(t, want, got)
			require.Equal(t, len(want.gaps) > 0, h.Verdict() == Partial)
		}
	})
}

// A second walk that knows every document of the first takes the same way, and finds the same gaps.
// If it is given a document other than the feed's first, it knows the way from there, so it finds no
// others.
func TestWalkKnown(t *testing.T) {
	for _, file := range walks(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		archive := feedtest.Parse(string(text))
		changes := slices.ContainsFunc(archive.Files, func(f feedtest.File) bool {
			return strings.Contains(f.Name, "#") || strings.Contains(f.Data, "{{count}}")
		})
		options := optionsOf(archive)
		for line := range strings.Lines(options) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			changes = changes || word != "url" // budgets are spent otherwise
		}
		if changes {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			site := feedtest.Serve(t, string(text))
			first := newVisit(t, site, options)
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
			declared := first.history.Head.Declared() // by documents that have not changed
			for _, d := range first.docs {
				declared = append(declared, d.Gaps...)
			}
			for _, g := range first.history.Gaps {
				if slices.ContainsFunc(declared, func(d *Gap) bool { return d.Error() == g.Error() }) {
					continue
				}
				if gaps[g.URL] = g.Reason; g.Document != nil {
					delete(known, g.URL) // damaged
				}
			}

			second := newVisit(t, site, options)
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
			if options == "" {
				require.Equal(t, known, unchanged)
				require.Equal(t, gaps, again)
			}
			require.Subset(t, known, unchanged)
			require.Subset(t, gaps, again)
		})
	}
}
