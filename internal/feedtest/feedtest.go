// Package feedtest has the common parts of tests of feeds: the random cases of a run and a
// search for goroutines left behind (Main), websites from text files (Serve) and in memory
// (Line, MemorySites), a model publisher (Model), faults, documents expensive to read
// (Burden), and short forms of common checks.
package feedtest

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/feedhistory/feedhistory/internal/website"
)

// These are the types of package website.
type (
	Site    = website.Site
	Request = website.Request
	Archive = website.Archive
	File    = website.File
)

// Parse reads an archive. Every text is an archive.
func Parse(text string) *Archive { return website.Parse(text) }

// ServeFile is Serve for the archive in a file.
func ServeFile(t testing.TB, name string) *Site {
	t.Helper()
	return Serve(t, string(ReadFile(t, name)))
}

// Serve serves a website, given as the text of an archive, on the loopback interface
// until the test ends.
func Serve(t testing.TB, text string) *Site {
	t.Helper()
	s, err := website.New(text)
	if err == nil {
		err = s.Listen()
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// ErrorAs returns the error of a type in the tree of err, and fails the test if there is
// none.
func ErrorAs[E error](t require.TestingT, err error, message ...any) E {
	found, ok := errors.AsType[E](err)
	require.True(t, ok, "%v: no %T %v", err, found, message)
	return found
}

// All returns the values of a sequence, and fails the test if one has an error.
func All[T any](t require.TestingT, values iter.Seq2[T, error]) (all []T) {
	for value, err := range values {
		require.NoError(t, err)
		all = append(all, value)
	}
	return all
}

// Server serves a handler on the loopback interface until the test ends.
func Server(t testing.TB, h http.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// ReadFile returns the content of a file.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return data
}

// Glob returns the names of the files matching a pattern, and requires at least one.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, names, "no file matches %s", pattern)
	return names
}

// AtOnce calls a function n times at once, with the numbers from 0, and requires that no call
// fails.
func AtOnce(t require.TestingT, n int, do func(i int) error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// Values returns a sequence of values without errors.
func Values[T any](values ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, value := range values {
			if !yield(value, nil) {
				return
			}
		}
	}
}

// Watch returns a sequence with a function called for each value first.
func Watch[T any](values iter.Seq2[T, error], see func(T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for value, err := range values {
			if see(value, err); !yield(value, err) {
				return
			}
		}
	}
}

// Scaled returns the size of a test or benchmark: full or, with -short, short.
func Scaled(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// Long leaves a test out of the short form, `go test -short`.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: it runs without -short")
	}
}

// Required leaves out a test that starts other programs, such as a browser, and so takes
// long, unless a variable such as FEEDHISTORY_BROWSER is "required". .ci/run sets it once it
// has installed the programs. The test is Long, too.
func Required(t testing.TB, variable string) {
	t.Helper()
	Long(t)
	if os.Getenv(variable) != "required" {
		t.Skipf("it starts other programs: it runs with %s=required, as in .ci/run", variable)
	}
}

// Program is Required for a test of one program. It returns the path of the first of the
// names that is installed.
func Program(t testing.TB, variable string, names ...string) string {
	t.Helper()
	Required(t, variable)
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.Failf(t, "not installed", "%s is required by %s", strings.Join(names, " or "), variable)
	return ""
}

// leaks returns the exit code of a package's tests, or 1 if they have succeeded, but left
// goroutines behind. On a busy machine, goroutines take longer to end than goleak waits.
func leaks(code int) int {
	if code != 0 {
		return code
	}
	err := goleak.Find()
	for end := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(end); {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "left after the tests:", err)
		return 1
	}
	return 0
}

// A List collects values from several goroutines, such as a server's requests: a walk
// requests documents in advance, so handlers run at the same time. The zero value is empty.
type List[T any] struct {
	mu     sync.Mutex
	values []T
}

// Add appends a value, and returns how many there are now.
func (l *List[T]) Add(v T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values = append(l.values, v)
	return len(l.values)
}

// All returns the values in the order in which they came.
func (l *List[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.values)
}

// Took returns the values since the last call.
func (l *List[T]) Took() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	values := l.values
	l.values = nil
	return values
}

// Faults make operations of a store or an output fail.
type Faults struct {
	Fail func(op string) Failure // Fail returns the failure of an operation, if any; nil means all work.

	mu  sync.Mutex
	ops List[string]
}

// A Failure is the way one operation fails.
type Failure uint8

const (
	Works       Failure = iota
	FailsBefore         // it returns an error, and has no effect
	FailsAfter          // it returns an error, but has taken effect
	Crashes             // like FailsBefore, and so do all later operations
	Crashed             // like FailsAfter, and all later operations are FailsBefore
)

// ErrDisk is the error wrapped by Change.
var ErrDisk = errors.New("no space left on device")

// Change performs an operation, or makes it fail. Operations take turns.
func (f *Faults) Change(op string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops.Add(op)
	how := Works
	if f.Fail != nil {
		how = f.Fail(op)
	}
	if how == Crashes || how == Crashed {
		f.Fail = func(string) Failure { return FailsBefore }
	}
	if how == Works || how == FailsAfter || how == Crashed {
		if err := do(); err != nil {
			return err
		}
	}
	if how != Works {
		return fmt.Errorf("%s: %w", op, ErrDisk)
	}
	return nil
}

// Operations returns the operations since its last call, in order.
func (f *Faults) Operations() []string { return f.ops.Took() }

// Direct is an http.RoundTripper calling a handler, without a network. If the handler
// aborts, the body breaks off.
type Direct struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (d Direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w, end := httptest.NewRecorder(), error(nil)
	func() {
		defer func() {
			if fault := recover(); fault == http.ErrAbortHandler {
				end = io.ErrUnexpectedEOF
			} else if fault != nil {
				panic(fault)
			}
		}()
		d.Handler.ServeHTTP(w, r)
	}()
	resp := w.Result()
	resp.Request = r
	if end != nil {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(w.Body.Bytes()), broken{end}))
	}
	return resp, nil
}

// broken is the end of a truncated body.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// Pipe serves a handler over pipes until the test ends, and returns the transport to
// reach it. It may be used in a synctest bubble.
func Pipe(t testing.TB, handler http.Handler) *http.Transport {
	conns := make(pipes)
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(conns) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return transport
}

// pipes are a net.Listener: the server's ends of pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A StatusWriter keeps the status of an answer; it stays as it is without a call of WriteHeader.
type StatusWriter struct {
	http.ResponseWriter
	Status int
}

// WriteHeader implements http.ResponseWriter.
func (w *StatusWriter) WriteHeader(status int) {
	w.Status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap serves http.ResponseController.
func (w *StatusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Allocated returns the number of bytes that run allocates, including those freed again.
func Allocated(run func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// WellFormed reads XML with another parser than ours. That one accepts only the names of
// XML 1.0's second edition, so text with other names is read by own.
func WellFormed(t require.TestingT, text []byte, own func(string) error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil && strings.Contains(err.Error(), "invalid XML name") {
			err = own(string(text))
			require.NoError(t, err, "%.2000q", text)
			return
		}
		require.NoError(t, err, "%.2000q", text)
	}
}

// Seed adds all documents that fit a pattern to a fuzz target.
func Seed(f *testing.F, patterns ...string) {
	for _, pattern := range patterns {
		for _, file := range Glob(f, pattern) {
			f.Add(string(ReadFile(f, file)))
		}
	}
}

// Generated returns a feed of n entries with content of about size bytes. The entries have
// what real ones have: several authors and categories, relative links, images and
// extensions.
func Generated(format string, n, size int) string {
	const paragraph = `<p>All work and no play makes Jack a <a href="/dull?a=1&amp;b=2">dull</a> boy, <em>&amp;</em> so on &mdash; thus <a href="http://example.org/it">it</a> goes.<br/><img src="images/1.png" alt="Jack"></p>` + "\n"
	body := strings.Repeat(paragraph, max(1, size/len(paragraph)))
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(body)
	var b strings.Builder
	switch format {
	case "atom":
		b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:thr="http://purl.org/syndication/thread/1.0" xml:base="http://example.org/blog/" xml:lang="en">
<title>Example</title><id>urn:feed</id><updated>2003-12-13T18:30:02Z</updated><fh:archive/>
<link rel="prev-archive" href="/2003/10/index.atom"/><link rel="self" href="/2003/11/index.atom"/><author><name>Editors</name></author>
`)
		for i := range n {
			fmt.Fprintf(&b, `<entry>
<title>Entry number %d &amp; more</title><link href="/2003/12/13/atom%d"/><link rel="replies" type="application/atom+xml" href="/2003/12/13/atom%d/comments"/>
<id>urn:uuid:1225c695-cfb8-4ebb-aaaa-%012d</id><updated>2003-12-13T18:30:02Z</updated><published>2003-12-13T18:30:02Z</published>
<author><name>John Doe</name><uri>/john</uri></author><author><name>Jane Doe</name><email>jane@example.org</email></author>
<category term="news"/><category term="work" label="Work &amp; play"/><thr:total>%d</thr:total>
<summary>All work and no play</summary>
<content type="html">%s</content>
</entry>
`, i, i, i, i, i, escaped)
		}
		b.WriteString("</feed>\n")
	case "rss":
		b.WriteString(`<?xml version="1.0"?>
<rss version="2.0" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:wfw="http://wellformedweb.org/CommentAPI/"><channel>
<title>Example</title><link>http://example.org/</link><description>Example</description><lastBuildDate>Fri, 30 May 2003 11:06:42 GMT</lastBuildDate><fh:archive/>
<atom:link rel="prev-archive" href="http://example.org/2003/04/index.rss"/>
`)
		for i := range n {
			fmt.Fprintf(&b, `<item>
<title>Entry number %d &amp; more</title><link>http://example.org/2003/12/13/rss%d</link><guid isPermaLink="false">urn:uuid:1225c695-cfb8-4ebb-aaaa-%012d</guid>
<comments>http://example.org/2003/12/13/rss%d#comments</comments>
<pubDate>Tue, 03 Jun 2003 09:39:21 GMT</pubDate><dc:creator><![CDATA[John Doe]]></dc:creator><category><![CDATA[news]]></category><category><![CDATA[work]]></category>
<description>All work and no play</description><content:encoded><![CDATA[%s]]></content:encoded>
<wfw:commentRss>http://example.org/2003/12/13/rss%d/feed</wfw:commentRss><slash:comments>%d</slash:comments>
</item>
`, i, i, i, i, body, i, i)
		}
		b.WriteString("</channel></rss>\n")
	default:
		b.WriteString(`{"version":"https://jsonfeed.org/version/1.1","title":"Example","home_page_url":"http://example.org/","items":[`)
		for i := range n {
			item, _ := json.Marshal(map[string]any{
				"id": fmt.Sprint(i), "url": fmt.Sprintf("http://example.org/2003/12/13/%d", i), "title": fmt.Sprintf("Entry number %d & more", i),
				"content_html": body, "summary": "All work and no play", "date_published": "2003-12-13T18:30:02Z", "date_modified": "2003-12-13T18:30:02Z",
				"authors": []map[string]string{{"name": "John Doe", "url": "http://example.org/john"}, {"name": "Jane Doe"}}, "tags": []string{"news", "work"},
			})
			b.WriteString(strings.Repeat(",", min(i, 1)) + "\n" + string(item))
		}
		b.WriteString("]}\n")
	}
	return b.String()
}
