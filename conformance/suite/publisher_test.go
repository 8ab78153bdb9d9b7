package suite_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/conformance/suite"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

// outcomes returns the outcomes in a report by the names of the duties.
func outcomes(r *suite.PublisherReport) map[string]suite.Outcome {
	outcomes := map[string]suite.Outcome{}
	for _, d := range r.Duties {
		outcomes[d.Name] = d.Outcome
	}
	return outcomes
}

// The library's publisher fulfils all duties.
//
// Duties: 5005#8, 5005#9, 5005#10, 5005#11, 5005#12, 5005#13, 5005#14, 5005#15, 5005#16, 5005#17.
func TestOurPublisher(t *testing.T) {
	dir := publish.Dir{Path: t.TempDir()}
	server := feedtest.Server(t, &publish.Handler{FS: dir})
	p := &publish.Publisher{
		Output: dir, Base: server.URL + "/", Head: &feedhistory.Document{Title: "A"},
		Split: compose.Split{Size: 4},
	}
	n, clock := 0, time.Date(2003, 12, 1, 0, 0, 0, 0, time.UTC)
	write := func(id int, title string) error {
		clock = clock.Add(time.Hour)
		e, err := compose.Draft{ID: fmt.Sprintf("urn:%d", id), Title: feedhistory.Text{Body: title}, Updated: clock}.Entry()
		require.NoError(t, err)
		return p.Append(t.Context(), e)
	}
	add := func(context.Context) error { n++; return write(n, "New") }
	require.NoError(t, add(t.Context()))
	driven := &suite.PublisherTest{
		URL: p.URL(), Add: add,
		Edit:   func(context.Context) error { return write(2, "Edited") },
		Delete: func(context.Context) error { return p.Delete(t.Context(), "urn:3", clock.Add(time.Hour)) },
	}
	report, err := driven.Run(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, report.Archives, 2)
	for _, d := range report.Duties {
		want := suite.Passed
		if d.Name == "paged" {
			want = suite.Silent
		}
		require.Equal(t, want, d.Outcome, "%s: %q", d.Name, d.Messages)
	}
}

// A correct paged feed fulfils every duty that concerns it.
func TestPagedPublisher(t *testing.T) {
	t.Parallel()
	n := 12
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		page = max(page, 1)
		body := fmt.Sprintf(`<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><updated>%s</updated><link rel="first" href="/feed"/>`,
			time.Date(2003, 12, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339))
		last := n - page*5
		if last > 0 {
			body += fmt.Sprintf(`<link rel="next" href="/feed?page=%d"/>`, page+1)
		}
		for i := n - (page-1)*5; i > max(last, 0); i-- {
			body += fmt.Sprintf(`<entry><id>urn:%d</id><title>T</title><updated>2003-12-01T00:00:%02dZ</updated></entry>`, i, i)
		}
		body += "</feed>"
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body))))
		http.ServeContent(w, r, "feed.xml", time.Time{}, strings.NewReader(body))
	}))
	driven := &suite.PublisherTest{URL: server.URL + "/feed", Add: func(context.Context) error { n++; return nil }}
	report, err := driven.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, "paged", report.Kind)
	require.False(t, report.Failed())
	got := outcomes(report)
	for _, name := range []string{"well-formed", "newest", "kept", "paged", "document-times", "not-modified", "modified"} {
		require.Equal(t, suite.Passed, got[name], name)
	}
	for _, name := range []string{"prev-archive", "current", "archive", "bytes"} {
		require.Equal(t, suite.Silent, got[name], name)
	}
}

// A page without links, and one that is missing, are found.
func TestWrongPages(t *testing.T) {
	for name, second := range map[string]string{"unlinked": "<feed xmlns='http://www.w3.org/2005/Atom'/>", "missing": ""} {
		t.Run(name, func(t *testing.T) {
			server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.RawQuery == "":
					_, _ = w.Write([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="?page=2"/></feed>`))
				case second == "":
					http.NotFound(w, r)
				default:
					_, _ = w.Write([]byte(second))
				}
			}))
			report, err := (&suite.PublisherTest{URL: server.URL + "/feed"}).Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, suite.Failed, outcomes(report)["paged"])
		})
	}
}

// A server that has only Last-Modified, such as Python's, passes: the test lets the
// second of a version go by before the next.
func TestPublisherOfLastModified(t *testing.T) {
	t.Parallel()
	python := feedtest.Program(t, "FEEDHISTORY_RUNNERS", "python3")
	dir := publish.Dir{Path: t.TempDir()}
	server := exec.CommandContext(t.Context(), python, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", dir.Path)
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	line, err := bufio.NewReader(out).ReadString(')')
	require.NoError(t, err)
	base := regexp.MustCompile(`http://[0-9.:]+/`).FindString(line)
	require.NotEmpty(t, base, line)
	p := &publish.Publisher{Output: dir, Base: base, Head: &feedhistory.Document{Title: "A"}, Split: compose.Split{Size: 2}}
	n, clock := 0, time.Date(2003, 12, 1, 0, 0, 0, 0, time.UTC)
	add := func(context.Context) error {
		n++
		clock = clock.Add(time.Hour)
		e, err := compose.Draft{ID: fmt.Sprintf("urn:%d", n), Title: feedhistory.Text{Body: "New"}, Updated: clock}.Entry()
		require.NoError(t, err)
		return p.Append(t.Context(), e)
	}
	require.NoError(t, add(t.Context()))
	driven := &suite.PublisherTest{URL: p.URL(), Add: add}
	report, err := driven.Run(t.Context())
	require.NoError(t, err)
	require.False(t, report.Failed(), "%+v", outcomes(report))
	require.Equal(t, suite.Passed, outcomes(report)["modified"])
	require.Equal(t, suite.Passed, outcomes(report)["not-modified"])
}

// A blog is a small publisher whose faults can be switched on.
type blog struct {
	fault   string
	log     []post
	size    int
	version int
	asked   int
}

type post struct {
	id, title string
	at        int
	deleted   bool
}

func (b *blog) add(context.Context) error {
	b.version++
	b.log = append(b.log, post{id: fmt.Sprintf("urn:%d", b.version), title: "New", at: b.version})
	return nil
}

func (b *blog) edit(context.Context) error {
	b.version++
	edited := post{id: b.log[0].id, title: "Edited", at: b.version}
	switch b.fault {
	case "newest":
		b.log[0].title, b.log[0].at = edited.title, edited.at
		return nil
	case "ids":
		edited.id += "-edited"
	case "entry-times":
		edited.at = b.log[0].at
	}
	b.log = append(b.log, edited)
	return nil
}

func (b *blog) delete(context.Context) error {
	b.version++
	switch b.fault {
	case "deletion":
	case "entries", "bytes":
		b.log = append(b.log[:1], b.log[2:]...)
	case "tombstone":
		b.log = append(b.log, post{id: "urn:2", at: 1, deleted: true})
	default:
		b.log = append(b.log, post{id: "urn:2", at: b.version, deleted: true})
	}
	return nil
}

// ServeHTTP serves the feed, and its archives at /1, /2 and so on.
func (b *blog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if moved := strings.HasPrefix(r.URL.Path, "/r"); b.fault == "addresses" && b.version > 6 && !moved && r.URL.Path != "/feed" {
		http.NotFound(w, r)
		return
	}
	full := len(b.log) / b.size // number of closed archives
	from, to, name := full*b.size, len(b.log), strings.Trim(r.URL.Path, "/r")
	n, head := full+1, ""
	if name != "feed" {
		_, err := fmt.Sscanf(name, "%d", &n)
		if err != nil || n > full+1 || b.fault == "kept" && n == 1 && b.version > 8 {
			http.NotFound(w, r)
			return
		}
		from, to = (n-1)*b.size, min(n*b.size, len(b.log))
		if b.fault != "current" {
			head += link("current", map[string]string{"current to nothing": "/none", "current to itself": "/" + name}[b.fault], "/feed")
		}
		if b.fault != "archive" {
			head += `<fh:archive/>`
		}
	}
	prefix := "/"
	if b.fault == "addresses" && b.version > 6 {
		prefix = "/r"
	}
	if b.fault == "closed" && name == "feed" {
		n++ // links to the archive that is being filled
	}
	if n > 1 && (b.fault != "prev-archive" || name == "feed") {
		head += b.prevArchive(name == "feed", fmt.Sprint(prefix, n-1), fmt.Sprint(prefix, n-2))
	}
	if name != "feed" && n < full && b.fault != "next-archive" {
		head += link("next-archive", fmt.Sprint(prefix, n+1))
	}
	if name == "feed" {
		from = max(0, from-2) // an entry, even if the last is a deletion
	}
	head += b.mark(name == "feed", n, full)
	if b.fault == "archives without entries" && name != "feed" {
		to = from
	}
	body := b.render(head, b.log[from:max(from, to)])
	if b.fault == "archives dated now" && name != "feed" {
		b.asked++
		body = strings.Replace(body, "<updated>2003", fmt.Sprintf("<updated>2%03d", 100+b.asked), 1)
	}
	if b.fault == "well-formed" && name == "feed" {
		body = strings.TrimSuffix(body, "</feed>")
	}
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body)))
	if b.fault == "modified" {
		etag = `"same"`
	}
	if b.fault != "not-modified" {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = w.Write([]byte(body))
}

// mark returns the links and marks that contradict the others, if that is the fault.
func (b *blog) mark(feed bool, n, full int) string {
	newest := !feed && n == full
	switch b.fault {
	case "subscription":
		if feed && full > 0 {
			return "<fh:archive/>"
		}
	case "chain", "complete with archives":
		if feed && full > 0 {
			return "<fh:complete/>"
		}
	case "complete archive with links":
		if newest && n > 1 {
			return "<fh:complete/>"
		}
	case "next-archive to the one being filled":
		if newest {
			return link("next-archive", fmt.Sprint("/", n+1))
		}
	case "next-archive to the feed":
		if newest {
			return link("next-archive", "/feed")
		}
	case "next-archive to the older one":
		if !feed && n > 1 && n < full {
			return link("next-archive", fmt.Sprint("/", n-1))
		}
	case "two prev-archives":
		if feed && full > 1 {
			return link("prev-archive", "/1")
		}
	case "pages of archives":
		if feed && full > 0 {
			return link("next", "/1")
		}
	case "the oldest leads on", "the oldest leads to the feed":
		if n == 1 && !feed {
			return link("prev-archive", map[string]string{"the oldest leads on": "/1"}[b.fault], "/feed")
		}
	}
	return ""
}

// prevArchive returns the link to the next older archive.
func (b *blog) prevArchive(feed bool, older, oldest string) string {
	switch {
	case b.fault == "prev-archive to nothing" && feed:
		older = "/none"
	case b.fault == "skips an archive" && feed && oldest != "/0":
		older = oldest
	case b.fault == "empty prev-archive" && feed:
		older = ""
	}
	return fmt.Sprintf(`<link rel="prev-archive" href="%s"/>`, older)
}

// link returns a link to the first address that is given.
func link(rel string, hrefs ...string) string {
	return fmt.Sprintf(`<link rel="%s" href="%s"/>`, rel, cmp.Or(hrefs...))
}

func (b *blog) render(head string, posts []post) string {
	at := func(n int) string { return time.Date(2003, 12, 1, n, 0, 0, 0, time.UTC).Format(time.RFC3339) }
	latest := 0
	entries := ""
	for _, p := range posts {
		latest = max(latest, p.at)
		if p.deleted {
			entries += fmt.Sprintf(`<at:deleted-entry ref="%s" when="%s"/>`, p.id, at(p.at))
			continue
		}
		entries += fmt.Sprintf(`<entry><id>%s</id><title>%s</title><updated>%s</updated></entry>`, p.id, p.title, at(p.at))
	}
	if b.fault == "document-times" {
		latest = 0
	}
	return `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:at="http://purl.org/atompub/tombstones/1.0">` +
		`<id>urn:feed</id><updated>` + at(latest) + `</updated>` + head + entries + `</feed>`
}

// Each fault of a publisher is found, under the name of the duty that it
// breaks. A publisher without faults breaks none.
func TestWrongPublishers(t *testing.T) {
	names := []string{""}
	report, err := (&suite.PublisherTest{URL: "http://127.0.0.1:1/"}).Run(t.Context())
	require.Error(t, err)
	for _, d := range report.Duties {
		if d.Name != "paged" { // TestPagedPublisher has it
			names = append(names, d.Name)
		}
	}
	duty := map[string]string{ // the others break the duty of the chain
		"the oldest leads on": "prev-archive", "the oldest leads to the feed": "prev-archive", "prev-archive to nothing": "prev-archive",
		"empty prev-archive": "prev-archive", "skips an archive": "kept", "archives without entries": "kept",
		"current to nothing": "current", "current to itself": "current", "archives dated now": "bytes",
	}
	for _, fault := range []string{
		"complete with archives", "complete archive with links", "next-archive to the one being filled", "next-archive to the feed",
		"next-archive to the older one", "two prev-archives", "pages of archives", "the oldest leads on",
		"the oldest leads to the feed", "prev-archive to nothing", "skips an archive", "empty prev-archive",
		"current to nothing", "current to itself", "archives without entries", "archives dated now",
	} {
		duty[fault] = cmp.Or(duty[fault], "chain")
		names = append(names, fault)
	}
	for _, fault := range names {
		t.Run("fault "+fault, func(t *testing.T) {
			t.Parallel()
			b := &blog{fault: fault, size: 3}
			require.NoError(t, b.add(t.Context()))
			server := feedtest.Server(t, b)
			driven := &suite.PublisherTest{
				URL: server.URL + "/feed", Add: b.add, Edit: b.edit, Delete: b.delete, Adds: 12, Settle: 100 * time.Millisecond,
			}
			report, err := driven.Run(t.Context())
			require.NoError(t, err)
			for name, outcome := range outcomes(report) {
				if name == cmp.Or(duty[fault], fault) {
					require.Contains(t, []suite.Outcome{suite.Warned, suite.Failed}, outcome, "%s", name)
					require.True(t, report.Failed() || duty[fault] == "" || name == "current" || name == "bytes") // of which RFC 5005 says SHOULD
				} else if fault == "" && name != "paged" {
					require.Equal(t, suite.Passed, outcome, "%s: %v", name, report.Duties)
				}
			}
		})
	}
}
