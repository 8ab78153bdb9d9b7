package feedhistory_test

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
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// walks are the websites for the walk's tests: those of the conformance suite, and those with
// options that only this library has.
func walks(t *testing.T) []string {
	return append(feedtest.Glob(t, "conformance/cases/walk/*.txtar"), feedtest.Glob(t, "testdata/walk/*.txtar")...)
}

// optionsOf returns the options in a website's file.
func optionsOf(archive *feedtest.Archive) string {
	options, _ := archive.File("options")
	judge, _ := archive.File("judge")
	for line := range strings.Lines(judge) {
		if start, ok := strings.CutPrefix(line, "start "); ok {
			options += "url " + start
		}
	}
	return options
}

// TestWalk walks over websites, each in a file whose format package website explains. The
// file's comment describes the case. The file "want" has the expected result, one fact per
// line:
//
//	error     the reason of the first document's error
//	kind      the feed's kind
//	combines  all kinds that the first document declares, if several
//	verdict   the verdict on the history
//	documents the number of documents that were read to their end
//	entry     the id and title of the copy that was kept; "digest" for such an id
//	deleted   the id of a deleted entry
//	gap       the reason, status and URL of what is missing, and the document that links to it
//	note      the code of a leniency in any document, each once (*)
//	request   the path of a request (*)
//
// Facts marked (*) are compared only if the file has some; "request none" means that there is
// no request at all.
//
// A file "options" may change the defaults, one setting per line:
//
//	url        where to start; /feed.atom
//	documents, bytes, barren, empty   the budget
//	processed  a URL that was processed before
//	pending    a URL where an earlier walk was cut short
//	same-origin
//	tries      the maximum number of requests; 1
func TestWalk(t *testing.T) {
	for _, file := range walks(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { testWalk(t, file) })
	}
}

func testWalk(t *testing.T, file string) {
	text := feedtest.ReadFile(t, file)
	archive := feedtest.Parse(string(text))
	require.NotEmpty(t, archive.Comment, "the case is not explained")
	want, ok := archive.File("want")
	require.True(t, ok, "nothing is wanted")

	options := optionsOf(archive)
	for _, perHost := range []int{0, 1} { // requests ahead change nothing
		v := newVisit(t, feedtest.Serve(t, string(text)), options)
		v.client.PerHost = perHost
		v.walk(t.Context())
		got := relevant(v.report(), want)
		if *update && got != want {
			archive.Set("want", got)
			require.NoError(t, os.WriteFile(file, []byte(archive.String()), 0o666))
		}
		require.Equal(t, want, got, "%swith %d requests at a time (0: the default)", archive.Comment, perHost)
	}
}

// relevant removes what is compared only if the file has it.
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
	site   *feedtest.Site
	client feedhistory.Client
	url    string
	past   memory

	history *feedhistory.History
	err     error
	docs    []*feedhistory.Document
}

func newVisit(t *testing.T, site *feedtest.Site, options string) *visit {
	t.Helper()
	v := &visit{
		site:   site,
		client: feedhistory.Client{AllowPrivate: true, NoGuess: true, Tries: 1, MaxWait: 1},
		url:    site.URL + "/feed.atom",
	}
	var processed []string
	v.past.Processed = func(url string) bool { return slices.Contains(processed, url) }
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
			v.client.Budget.BoundBarren(number(), 0)
		case "empty":
			v.client.Budget.BoundBarren(0, number())
		case "processed":
			processed = append(processed, url)
		case "pending":
			v.past.Pending = append(v.past.Pending, url)
		case "same-origin":
			v.client.OneOrigin = true
		case "tries":
			v.client.Tries = number()
		default:
			require.Fail(t, "no such option", line)
		}
	}
	return v
}

func (v *visit) walk(ctx context.Context) {
	v.history, v.err = feedhistory.Merge(tee(walkFrom(ctx, &v.client, v.url, &v.past), &v.docs))
}

// tee collects the documents of a walk, including damaged ones.
func tee(walk iter.Seq2[*feedhistory.Reading, error], docs *[]*feedhistory.Document) iter.Seq2[*feedhistory.Reading, error] {
	return feedtest.Watch(walk, func(r *feedhistory.Reading, err error) {
		if doc := r.Readable(); doc != nil {
			*docs = append(*docs, doc)
		}
	})
}

// A memory is a walk's memory of earlier ones.
type memory = chain.Memory[feedhistory.Known, *feedhistory.Document]

// walkFrom returns a walk that remembers earlier ones.
func walkFrom(ctx context.Context, c *feedhistory.Client, url string, past *memory) iter.Seq2[*feedhistory.Reading, error] {
	return c.Walk(door.WithPast(ctx, past), url)
}

// items yields what a walk says, one at a time: its documents, and as errors its gaps and the
// documents that have not changed.
func items(walk iter.Seq2[*feedhistory.Reading, error]) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		for r, err := range walk {
			if err != nil {
				yield(r.Readable(), err)
				return
			}
			if r.Unchanged && !yield(nil, &same{r}) || r.Document != nil && !yield(r.Document, nil) {
				return
			}
			for _, gap := range r.Gaps {
				if !yield(nil, gap) {
					return
				}
			}
		}
	}
}

// A same is a document that has not changed, as an error.
type same struct{ *feedhistory.Reading }

func (s *same) Error() string { return "unchanged: " + s.URL }

// report describes the result of the walk.
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
	var notes []feedhistory.Note
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

// reason returns the reason of a gap, or of the first document's error, with the status.
func (v *visit) reason(err error) string {
	reason := feedhistory.NewGap("", err).Reason
	var gap *feedhistory.Gap
	if errors.As(err, &gap) {
		reason = gap.Reason
	}
	var status *feedhistory.FetchError
	if errors.As(err, &status) && status.Reason == feedhistory.ReasonStatus {
		return fmt.Sprint(reason, " ", status.Status)
	}
	return string(reason)
}

func (v *visit) entry(e *feedhistory.Entry) string {
	id := v.site.Path(e.ID)
	if e.WeakID && strings.HasPrefix(id, "urn:sha256:") {
		id = "digest"
	}
	return strings.TrimSpace(id + " " + e.Title().Plain())
}

// A web is a random set of documents. Each may link to any, and the walk may begin at any.
type web struct {
	feed  feedhistory.Kind
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
	w.feed = rapid.SampledFrom([]feedhistory.Kind{feedhistory.KindArchived, feedhistory.KindPaged}).Draw(t, "kind")
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
	path, _ := w.path()
	for i := range w.docs {
		if !slices.Contains(path, i) {
			w.docs[i].begins = -1 // an archive that names another beginning is in a fixture of package mirror
		}
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
	older, begins, mark := "prev-archive", "current", `<fh:archive xmlns:fh="`+feedxml.History+`"/>`
	if w.feed == feedhistory.KindPaged {
		older, begins, mark = "next", "first", `<link rel="previous" href="/elsewhere"/>`
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
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>`)
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
func (w web) path() (path []int, failed []feedhistory.Reason) {
	for i := w.given; ; {
		path = append(path, i)
		begins := w.docs[i].begins
		switch {
		case begins < 0 && w.docs[i].marked, begins != i && slices.Contains(path, begins), begins >= 0 && begins != i && len(path) == 5:
			return path, []feedhistory.Reason{feedhistory.ReasonDetached}
		case begins < 0, begins == i:
			return path, nil
		case begins >= len(w.docs):
			return path, []feedhistory.Reason{feedhistory.ReasonStatus}
		}
		i = begins
	}
}

// A walkedWeb is the expected result of a walk: the number of complete documents, the entries with
// the document whose copy is kept, and the reasons of the gaps.
type walkedWeb struct {
	documents int
	entries   []string
	gaps      []feedhistory.Reason
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
		doubtful := chain > 0 && w.feed == feedhistory.KindArchived && (first.older >= 0 || first.marked) && slices.ContainsFunc(w.docs[root].entries, isNew)
		proven := len(m.gaps) == 0
		if w.follow(root, chain+1, chains, kept, &m); doubtful && proven && len(m.gaps) == 0 {
			m.gaps = append(m.gaps, feedhistory.ReasonDetached) // the chains have not reached it
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
			m.gaps = append(m.gaps, feedhistory.ReasonTruncated)
		}
		switch i = d.older; {
		case i < 0:
			return
		case i >= len(w.docs):
			if chains[i] == 0 { // else it is known to be missing
				m.gaps = append(m.gaps, feedhistory.ReasonStatus)
			} else if chains[i] == chain {
				m.gaps = append(m.gaps, feedhistory.ReasonLoop)
			}
			chains[i] = chain
			return
		case chains[i] == chain:
			m.gaps = append(m.gaps, feedhistory.ReasonLoop)
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
			c := feedhistory.Client{AllowPrivate: true, Transport: w, PerHost: perHost, Tries: 1}
			stored := map[string]bool{}
			past := &memory{}
			if perHost == 1 {
				past.Processed = func(url string) bool { return stored[url] }
			}
			var docs []*feedhistory.Document
			walk := tee(walkFrom(context.Background(), &c, fmt.Sprintf("http://web.example/%d", w.given), past), &docs)
			h, err := feedhistory.Merge(feedtest.Watch(walk, func(r *feedhistory.Reading, _ error) {
				if r != nil && r.Document != nil {
					stored[r.Document.URL] = true
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
			require.Equal(t, len(want.gaps) > 0, h.Verdict() == feedhistory.VerdictPartial)
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
			known, gaps := map[string]feedhistory.Known{}, map[string]feedhistory.Reason{}
			walk := feedtest.Watch(first.client.Walk(t.Context(), first.url), func(r *feedhistory.Reading, err error) {
				if err == nil && r.Known.Digest != "" { // else it is to be looked at again
					known[r.URL] = r.Known
				}
			})
			if first.history, first.err = feedhistory.Merge(tee(walk, &first.docs)); first.err != nil {
				t.Skip("there is no document")
			}
			declared := first.history.Head.Declared() // by documents that have not changed
			for _, d := range first.docs {
				declared = append(declared, d.OwnGaps()...)
			}
			for _, g := range first.history.Gaps {
				if slices.ContainsFunc(declared, func(d *feedhistory.Gap) bool { return d.Error() == g.Error() }) {
					continue
				}
				if gaps[g.URL] = g.Reason; g.Document != nil {
					delete(known, g.URL) // damaged
				}
			}

			second := newVisit(t, site, options)
			unchanged, again := map[string]feedhistory.Known{}, map[string]feedhistory.Reason{}
			for _, err := range items(walkFrom(t.Context(), &second.client, second.url, &memory{
				Known: func(url string) feedhistory.Known { return known[url] },
				Shown: func() (*feedhistory.Document, []string) { return first.history.Head, ids(first.history.Entries) },
			})) {
				if u, ok := errors.AsType[*same](err); ok {
					unchanged[u.Response.Requested] = u.Known
				} else if g, ok := errors.AsType[*feedhistory.Gap](err); ok {
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

// archivedSites is an archived feed; each document has an ETag.
func archivedSites() *feedtest.MemorySites {
	return &feedtest.MemorySites{Replies: map[string]feedtest.Reply{
		feedURL:              {Header: []string{`Etag: "3"`}, Body: feed("urn:3", `<link rel="prev-archive" href="/2"/>`)},
		"http://a.example/2": {Header: []string{`Etag: "2"`}, Body: feed("urn:2", `<fh:archive/><link rel="prev-archive" href="/1"/>`)},
		"http://a.example/1": {Header: []string{`Etag: "1"`}, Body: feed("urn:1", `<fh:archive/>`)},
	}}
}

// walked returns what a walk yields, a word for each yield.
func walked(t *testing.T, c *feedhistory.Client, past *memory) (yields []string) {
	t.Helper()
	for doc, err := range items(walkFrom(t.Context(), c, feedURL, past)) {
		_, rest, _ := strings.Cut(yielded(doc, err), " ")
		switch {
		case err == nil:
			yields = append(yields, doc.URL)
		case is[*same](err):
			url, _, _ := strings.Cut(rest, " ")
			yields = append(yields, "unchanged "+url)
		case is[*feedhistory.Gap](err):
			yields = append(yields, "gap "+rest)
		default:
			yields = append(yields, "error "+err.Error())
		}
	}
	return yields
}

// learn walks over the sites, and returns what is known afterwards. From then on the server
// answers with 304.
func learn(t *testing.T, s *feedtest.MemorySites) map[string]feedhistory.Known {
	t.Helper()
	known := map[string]feedhistory.Known{}
	for r, err := range clientOf(s).Walk(t.Context(), feedURL) {
		require.NoError(t, err)
		require.Empty(t, r.Gaps)
		if !r.End {
			known[r.URL] = r.Known
			s.Replies[r.URL] = feedtest.Reply{Status: 304}
		}
	}
	s.Took()
	return known
}

func knownOf(known map[string]feedhistory.Known) func(string) feedhistory.Known {
	return func(url string) feedhistory.Known { return known[url] }
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
		client.PerHost = perHost

		require.Equal(t, []string{"unchanged " + feedURL, "http://a.example/2", "http://a.example/1"},
			walked(t, client, &memory{Known: knownOf(known)}))
		require.Equal(t, []string{feedURL + ` If-None-Match: "3"`, "http://a.example/2", "http://a.example/1"}, s.Took())

		// What has been processed ends it; what is pending is gone on to.
		processed := func(url string) bool { return url == "http://a.example/2" }
		require.Equal(t, []string{"unchanged " + feedURL, "http://a.example/1"}, walked(t, client, &memory{
			Known: knownOf(known), Processed: processed, Pending: []string{"http://a.example/2", "http://a.example/1"},
		}))
		require.Equal(t, []string{feedURL + ` If-None-Match: "3"`, "http://a.example/1"}, s.Took())

		// A feed that had nothing older still has not.
		last := known[feedURL]
		last.Older = ""
		require.Equal(t, []string{"unchanged " + feedURL}, walked(t, client, &memory{
			Known: func(string) feedhistory.Known { return last },
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
					known[url] = feedhistory.Known{URL: k.URL, Digest: k.Digest, Kind: k.Kind, Older: k.Older}
				}
				s.Replies = archivedSites().Replies
				s.Replies[feedURL] = feedtest.Reply{Body: grown}
			}
			client := clientOf(s)
			client.PerHost = perHost
			require.Equal(t, []string{feedURL, "unchanged http://a.example/2", "unchanged http://a.example/1"},
				walked(t, client, &memory{Known: knownOf(known)}))
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
	yields := walked(t, clientOf(s), &memory{Known: knownOf(known)})
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
	yields := walked(t, clientOf(s), &memory{Known: knownOf(known)})
	require.Len(t, yields, 2)
	require.Equal(t, "unchanged "+feedURL, yields[0])
	require.Contains(t, yields[1], "status: http://a.example/2")
	require.Equal(t, []string{
		feedURL + ` If-None-Match: "3"`, `http://a.example/2 If-None-Match: "2"`, feedURL + ` If-None-Match: "3"`,
	}, s.Took())
}

// Merge counts the documents that have not changed, and returns everything else: it does not
// know how much of the feed that is.
func TestMergeUnchanged(t *testing.T) {
	s := archivedSites()
	known := learn(t, s)
	client := clientOf(s)
	h, err := feedhistory.Merge(walkFrom(t.Context(), client, feedURL, &memory{Known: knownOf(known)}))
	require.NoError(t, err)
	require.Equal(t, 3, h.Unchanged)
	require.Equal(t, feedhistory.KindArchived, h.Kind)
	require.Equal(t, feedhistory.VerdictUnknown, h.Verdict())
	require.Nil(t, h.Head, "nothing was read")

	s.Replies["http://a.example/2"] = archivedSites().Replies["http://a.example/2"]
	delete(known, "http://a.example/2")
	h, err = feedhistory.Merge(walkFrom(t.Context(), client, feedURL, &memory{Known: knownOf(known)}))
	require.NoError(t, err)
	require.Equal(t, []string{"urn:2"}, ids(h.Entries))
	require.Equal(t, 1, h.Documents)
	require.Equal(t, 2, h.Unchanged)
	require.Empty(t, h.Gaps)
	require.Equal(t, feedhistory.VerdictUnknown, h.Verdict())

	h, err = feedhistory.Merge(walkFrom(t.Context(), client, feedURL, &memory{Known: knownOf(known), Pending: []string{"http://a.example/nowhere"}}))
	require.NoError(t, err)
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
			before, stored := v.past.Processed, map[string]bool{}
			v.past.Processed = func(url string) bool { return stored[url] || before(url) }
			v.history, v.err = feedhistory.Merge(feedtest.Watch(walkFrom(t.Context(), &v.client, v.url, &v.past), func(r *feedhistory.Reading, err error) {
				if err == nil && r.Document != nil {
					doc := r.Document
					self, _ := doc.Links.Rel("self")
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
		for doc, err := range items(first.client.Walk(t.Context(), first.url)) {
			require.NoError(t, err)
			if n++; n > stored {
				break
			}
			if older, ok := doc.Links.Rel(doc.Kind().Older()); ok {
				pending = append(pending, older.Href)
			}
			if n > 1 {
				processed = append(processed, doc.URL)
			}
		}
		second := newVisit(t, site, "")
		second.past.Processed = func(url string) bool { return slices.Contains(processed, url) }
		second.past.Pending = pending
		second.walk(t.Context())
		require.NoError(t, second.err)
		require.Equal(t, feedhistory.VerdictWhole, second.history.Verdict())
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
	walk := v.client.Walk(t.Context(), v.url)
	require.Empty(t, site.Requests())
	for range 2 { // to range again starts afresh
		before := len(site.Requests())
		h, err := feedhistory.Merge(walk)
		require.NoError(t, err)
		require.Len(t, h.Entries, 3)
		require.Len(t, site.Requests(), before+3)
	}
}

// Where a copy of an archive is the current document, the feed is known by the current URL.
func TestWalkBeginsAtTheCopy(t *testing.T) {
	site := feedtest.Serve(t, string(feedtest.ReadFile(t, "testdata/walk/current-is-still-a-copy-of-an-archive.txtar")))
	client := &feedhistory.Client{AllowPrivate: true, NoGuess: true}
	t.Cleanup(client.CloseIdle)
	h, err := client.Fetch(t.Context(), site.URL+"/feed.atom")
	require.NoError(t, err)
	require.Equal(t, site.URL+"/latest.atom", h.Head.URL)
}

// Leaving a walk early ends it; TestMain would notice a leak.
func TestWalkCanBeLeft(t *testing.T) {
	for leave := range 3 {
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "")
		seen := 0
		for doc, err := range items(v.client.Walk(t.Context(), v.url)) {
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
	for doc, err := range items(walkFrom(t.Context(), &v.client, v.url, &memory{Pending: []string{v.site.URL + "/1.atom"}})) {
		if err == nil {
			continue
		}
		gap := feedtest.ErrorAs[*feedhistory.Gap](t, err)
		require.Nil(t, doc)
		require.False(t, gap.Found.IsZero())
		break
	}
}

// With a cancelled context, Fetch returns what there is, and the context's error.
func TestWalkCancelled(t *testing.T) {
	for after := range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		v := newVisit(t, feedtest.Serve(t, threeDocuments), "")
		if after == 0 {
			cancel()
		}
		seen := 0
		history, err := feedhistory.Merge(feedtest.Watch(v.client.Walk(ctx, v.url), func(r *feedhistory.Reading, err error) {
			if err != nil || r.Document == nil {
				return
			}
			if seen++; seen == after {
				cancel()
			}
		}))
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

func TestBudgetDefaults(t *testing.T) {
	want := feedhistory.Budget{Documents: 10_000, Bytes: 1 << 30, Time: 10 * time.Minute}
	want.BoundBarren(20, 1000)
	require.Equal(t, want, feedhistory.Budget{}.WithDefaults())
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
	require.Equal(t, feedhistory.ReasonTruncated, feedhistory.NewGap("", err).Reason)
	require.Equal(t, "urn:feed", doc.ID)
	require.Len(t, doc.Entries, 1)

	doc, err = v.client.Get(t.Context(), v.site.URL+"/nowhere")
	feedtest.ErrorAs[*feedhistory.FetchError](t, err)
	require.Nil(t, doc)
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

// threePages are a paged feed.
const threePages = `
-- /feed.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/2.atom"/><entry><id>urn:3</id></entry></feed>
-- /2.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/1.atom"/><entry><id>urn:2</id></entry></feed>
-- /1.atom --
<feed xmlns="http://www.w3.org/2005/Atom"><link rel="previous" href="/2.atom"/><entry><id>urn:1</id></entry></feed>
`

// Last ends the pages, and nothing beyond is requested.
func TestLastEndsThePages(t *testing.T) {
	for last := 1; last <= 3; last++ {
		site := feedtest.Serve(t, threePages)
		v := newVisit(t, site, "")
		yielded := 0
		for page, err := range items(walkFrom(t.Context(), &v.client, v.url, &memory{
			Last: func(page *feedhistory.Document) bool { return page.Entries[0].ID == "urn:"+strconv.Itoa(4-last) },
		})) {
			require.NoError(t, err)
			require.NotNil(t, page)
			yielded++
		}
		require.Equal(t, last, yielded)
		require.Len(t, site.Requests(), last)
	}
}

// Even then, a walk can continue at pages that were left out once.
func TestPendingPages(t *testing.T) {
	site := feedtest.Serve(t, threePages)
	v := newVisit(t, site, "")
	h, err := feedhistory.Merge(walkFrom(t.Context(), &v.client, v.url, &memory{
		Last:         func(page *feedhistory.Document) bool { return page.URL == v.url },
		PendingPages: []string{site.URL + "/2.atom"},
	}))
	require.NoError(t, err)
	require.Len(t, h.Entries, 3)
	require.Len(t, site.Requests(), 3)
}

// Fetch ends after the time of its budget, which no deadline sets, and says so.
func TestFetchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(15 * time.Second)
			n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
			fmt.Fprintf(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><link rel="prev-archive" href="/%d"/><entry><id>%d</id></entry></feed>`, n+1, n)
		})
		for limit, want := range map[time.Duration]int{0: 40, time.Minute: 4} {
			c := &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: h}, Budget: feedhistory.Budget{Time: limit}}
			history, err := c.Fetch(t.Context(), "http://a.example/0")
			require.NoError(t, err)
			require.Len(t, history.Gaps, 1)
			require.Equal(t, feedhistory.ReasonBudget, history.Gaps[0].Reason)
			require.Len(t, history.Entries, want)
		}
	})
}

// A walk that ends because nothing new comes says how many documents had no entry.
func TestBarrenCountsVacantPages(t *testing.T) {
	for file, want := range map[string]string{
		"conformance/cases/walk/empty-pages-without-end.txtar": "20 documents in a row brought nothing new; 20 of them had no entry",
		"testdata/walk/barren.txtar":                           "1 documents in a row brought nothing new; 0 of them had no entry",
	} {
		text := string(feedtest.ReadFile(t, file))
		v := newVisit(t, feedtest.Serve(t, text), optionsOf(feedtest.Parse(text)))
		v.walk(t.Context())
		require.Len(t, v.history.Gaps, 1)
		require.EqualError(t, v.history.Gaps[0].Err, want)
	}
}
