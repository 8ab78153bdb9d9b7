package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
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
		client: Client{Policy: Policy{AllowPrivate: true, NoGuess: true}, Retry: Retry{Tries: 1, Base: 1}},
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
		case "empty":
			v.client.Budget.Empty = number()
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

// tee collects the documents of a walk, including damaged ones.
func tee(walk iter.Seq2[*Document, error], docs *[]*Document) iter.Seq2[*Document, error] {
	return feedtest.Watch(walk, func(doc *Document, err error) {
		if doc != nil {
			*docs = append(*docs, doc)
		} else if gap, ok := errors.AsType[*Gap](err); ok && gap.Document != nil {
			*docs = append(*docs, gap.Document)
		}
	})
}

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

// reason returns the reason of a gap, or of the first document's error, with the status.
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
