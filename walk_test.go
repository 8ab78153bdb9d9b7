package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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

// TestWalk walks the websites under testdata/walk, each in a file that package
// feedtest explains. The file's comment says what the case is. What comes out
// is in the file "want", a fact a line:
//
//	error     of the first document: its reason
//	kind      of the feed
//	combines  all kinds that the first document shows signs of, if several
//	verdict   of the history
//	documents that were read to their end
//	entry     id and title of the copy that was kept; "digest" is such an id
//	deleted   the id of a deleted entry
//	gap       reason, status and URL of what is missing; where its link was
//	note      code of a leniency in any document, each once (*)
//	request   path of a request (*)
//
// Those marked (*) are compared only where the file has some; "request none"
// stands for no request at all.
//
// A file "options" may say otherwise than the defaults, a setting a line:
//
//	url        where to start; /feed.atom
//	documents, bytes, barren   the budget
//	processed  a URL that was processed before
//	pending    a URL where an earlier walk was cut short
//	same-origin
//	tries      how often a failed request is made; 1
func TestWalk(t *testing.T) {
	for _, file := range glob(t, "testdata/walk/*.txtar") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { testWalk(t, file) })
	}
}

func testWalk(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	archive := feedtest.Parse(string(text))
	require.NotEmpty(t, archive.Comment, "the case is not explained")
	want, ok := archive.File("want")
	require.True(t, ok, "nothing is wanted")

	options, _ := archive.File("options")
	for _, perHost := range []int{0, 1} { // requests ahead change nothing
		v := newVisit(t, feedtest.Serve(t, string(text)), options)
		v.client.Policy.PerHost = perHost
		v.walk(t.Context())
		got := relevant(v.report(), want)
		if *update && got != want {
			archive.Set("want", got)
			require.NoError(t, os.WriteFile(file, []byte(archive.String()), 0o666))
		}
		require.Equal(t, want, got, "%swith %d requests at a time (0: the default)", archive.Comment, perHost)
	}
}

// relevant leaves out what is compared only where it is wanted.
func relevant(got, want string) string {
	var b strings.Builder
	for line := range strings.Lines(got) {
		key, _, _ := strings.Cut(line, " ")
		if optional := key == "note" || key == "request"; !optional || strings.Contains("\n"+want, "\n"+key+" ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// A visit is a walk over a site.
type visit struct {
	site    *feedtest.Site
	client  Client
	url     string
	options WalkOptions

	history *History
	err     error
	docs    []*Document
}

func newVisit(t *testing.T, site *feedtest.Site, options string) *visit {
	t.Helper()
	v := &visit{
		site:   site,
		client: Client{Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1, Base: 1}},
		url:    site.URL + "/feed.atom",
	}
	var processed []string
	v.options.Processed = func(url string) bool { return slices.Contains(processed, url) }
	for line := range strings.Lines(options) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		value = strings.TrimSpace(value)
		url := value
		if strings.HasPrefix(value, "/") {
			url = site.URL + value
		}
		url = site.Expand(url)
		number := func() int {
			n, err := strconv.Atoi(value)
			require.NoError(t, err, line)
			return n
		}
		switch key {
		case "url":
			v.url = url
		case "documents":
			v.client.Budget.Documents = number()
		case "bytes":
			v.client.Budget.Bytes = int64(number())
		case "barren":
			v.client.Budget.Barren = number()
		case "processed":
			processed = append(processed, url)
		case "pending":
			v.options.Pending = append(v.options.Pending, url)
		case "same-origin":
			v.client.Policy.SameOrigin = true
		case "tries":
			v.client.Retry.Tries = number()
		default:
			require.Fail(t, "no such option", line)
		}
	}
	return v
}

func (v *visit) walk(ctx context.Context) {
	v.history, v.err = Merge(tee(v.client.Walk(ctx, v.url, &v.options), &v.docs))
}

// tee keeps the documents that come by, damaged ones included.
func tee(walk iter.Seq2[*Document, error], docs *[]*Document) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		for doc, err := range walk {
			var gap *Gap
			if doc != nil {
				*docs = append(*docs, doc)
			} else if errors.As(err, &gap) && gap.Document != nil {
				*docs = append(*docs, gap.Document)
			}
			if !yield(doc, err) {
				return
			}
		}
	}
}

// report says what came of the walk.
func (v *visit) report() string {
	var b strings.Builder
	line := func(key string, values ...any) {
		fmt.Fprintf(&b, "%-9s %s", key, fmt.Sprintln(values...))
	}
	if v.err != nil {
		line("error", v.reason(v.err))
	}
	if h := v.history; h != nil {
		line("kind", h.Kind)
		if kinds := h.Head.Combines(); len(kinds) > 1 {
			line("combines", strings.Trim(fmt.Sprint(kinds), "[]"))
		}
		line("verdict", h.Verdict())
		line("documents", h.Documents)
		for _, e := range h.Entries {
			line("entry", v.entry(e))
		}
		for _, d := range h.Deleted {
			line("deleted", d.Ref)
		}
		for _, g := range h.Gaps {
			place := v.site.Path(g.URL)
			if g.From != "" {
				place += " from " + v.site.Path(g.From)
			}
			line("gap", v.reason(g), place)
		}
	}
	var notes []Note
	for _, d := range v.docs {
		notes = append(notes, d.Notes...)
	}
	for _, code := range codes(notes) {
		line("note", code)
	}
	for _, r := range v.site.Requests() {
		line("request", v.site.Path(r.URL))
	}
	if len(v.site.Requests()) == 0 {
		line("request", "none")
	}
	return b.String()
}

// reason is that of a gap or of the first document's error, with the status.
func (v *visit) reason(err error) string {
	reason := reasonOf(err)
	var gap *Gap
	if errors.As(err, &gap) {
		reason = gap.Reason
	}
	var status *StatusError
	if errors.As(err, &status) {
		return fmt.Sprint(reason, " ", status.Status)
	}
	return reason.String()
}

func (v *visit) entry(e *Entry) string {
	id := v.site.Path(e.ID)
	if e.WeakID && strings.HasPrefix(id, "urn:sha256:") {
		id = "digest"
	}
	return strings.TrimSpace(id + " " + e.Title().Plain())
}

// threeDocuments is an archived feed.
const threeDocuments = `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <link rel="prev-archive" href="/2.atom"/>
  <entry><id>urn:3</id></entry>
</feed>
-- /2.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <link rel="prev-archive" href="/1.atom"/>
  <entry><id>urn:2</id></entry>
</feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <entry><id>urn:1</id></entry>
</feed>
`

func TestWalkIsLazy(t *testing.T) {
	site := feedtest.Serve(t, threeDocuments)
	v := newVisit(t, site, "")
	walk := v.client.Walk(t.Context(), v.url, nil)
	require.Empty(t, site.Requests())
	for range 2 { // to range again starts afresh
		before := len(site.Requests())
		h, err := Merge(walk)
		require.NoError(t, err)
		require.Len(t, h.Entries, 3)
		require.Len(t, site.Requests(), before+3)
	}
}

// To leave a walk early ends it; that nothing leaks is seen by TestMain.
func TestWalkCanBeLeft(t *testing.T) {
	for leave := range 3 {
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "")
		seen := 0
		for doc, err := range v.client.Walk(t.Context(), v.url, nil) {
			require.NoError(t, err)
			require.NotNil(t, doc)
			if seen++; seen > leave {
				break
			}
		}
		require.Equal(t, leave+1, seen)
	}
}

func TestWalkLeftAtAGap(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/2.atom"/></feed>
`), "")
	for doc, err := range v.client.Walk(t.Context(), v.url, &WalkOptions{Pending: []string{v.site.URL + "/1.atom"}}) {
		if err == nil {
			continue
		}
		var gap *Gap
		require.ErrorAs(t, err, &gap)
		require.Nil(t, doc)
		require.False(t, gap.Found.IsZero())
		break
	}
}

// A cancelled context returns what there is, and the context's error.
func TestWalkCancelled(t *testing.T) {
	for after := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "")
		if after == 0 {
			cancel()
		}
		seen := 0
		history, err := Merge(func(yield func(*Document, error) bool) {
			for doc, err := range v.client.Walk(ctx, v.url, nil) {
				if seen++; seen == after {
					cancel()
				}
				if !yield(doc, err) {
					return
				}
			}
		})
		cancel()
		if after == 3 { // the walk was over
			require.NoError(t, err)
			require.Len(t, history.Entries, 3)
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		if after == 0 {
			require.Nil(t, history)
			continue
		}
		require.Len(t, history.Entries, after)
	}
}

// 5005#28: a hook may grant more than the budget.
func TestBudgetMore(t *testing.T) {
	for grant, want := range map[int]int{1: 1, 2: 2, 3: 3} {
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "documents 1")
		asked := 0
		v.client.Budget.More = func(used Budget) Budget {
			asked++
			require.Positive(t, used.Documents)
			require.Positive(t, used.Bytes)
			return Budget{Documents: min(used.Documents+1, grant)}
		}
		v.walk(t.Context())
		require.NoError(t, v.err)
		require.Equal(t, want, v.history.Documents)
		require.Positive(t, asked)
		if want < 3 {
			require.Len(t, v.history.Gaps, 1)
			require.Equal(t, ReasonBudget, v.history.Gaps[0].Reason)
			continue
		}
		require.Equal(t, Whole, v.history.Verdict())
	}
}

func TestGet(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, threeDocuments+`
-- /cut.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><entry><id>urn:1</id></entry>{{abort}}</feed>
`), "")
	doc, err := v.client.Get(t.Context(), v.url)
	require.NoError(t, err)
	require.Len(t, doc.Entries, 1)

	doc, err = v.client.Get(t.Context(), v.site.URL+"/cut.atom")
	require.Equal(t, ReasonTruncated, reasonOf(err))
	require.Equal(t, "urn:feed", doc.ID)
	require.Len(t, doc.Entries, 1)

	doc, err = v.client.Get(t.Context(), v.site.URL+"/nowhere")
	var status *StatusError
	require.ErrorAs(t, err, &status)
	require.Nil(t, doc)
}

// What a PseudoEntry says (5005#23).
func TestPseudoEntry(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/a&amp;b.atom"/></feed>
`), "")
	v.walk(t.Context())
	require.Len(t, v.history.Gaps, 1)
	gap := v.history.Gaps[0]
	e := gap.PseudoEntry()
	require.Contains(t, e.Summary().Plain(), v.site.URL+"/a&b.atom")
	require.Contains(t, e.Summary().Plain(), "404")
	require.NotEmpty(t, e.Title().Plain())
	require.NotEmpty(t, e.ID)
	require.True(t, gap.Found.Equal(e.Updated))
	require.Equal(t, e, gap.PseudoEntry(), "the same at every call")
}

// NewsBlur reads the first hundred entries of a document.
func TestWalkManyEntries(t *testing.T) {
	v := newVisit(t, feedtest.Serve(t, `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom">
  <link rel="prev-archive" href="/1.atom"/>
  {{repeat 150 <entry><id>urn:new:%d</id></entry>}}
</feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom">{{repeat 2000 <entry><id>urn:old:%d</id></entry>}}</feed>
`), "")
	v.walk(t.Context())
	require.NoError(t, v.err)
	require.Len(t, v.history.Entries, 2150)
}

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
				known[d.Response.Requested] = d.Known()
			}
			for _, g := range first.history.Gaps {
				gaps[g.URL] = g.Reason
				delete(known, g.URL) // damaged
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
