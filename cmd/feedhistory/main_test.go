package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/readers/readertest"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the command prints into the scripts")

// patience is how long a test waits for something that does not come, even on a busy
// machine.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		work()
		return
	}
	testscript.Main(checked{m}, map[string]func(){"feedhistory": main})
}

// checked are tests that leave no goroutines behind.
type checked struct{ *testing.M }

func (c checked) Run() int {
	return feedtest.Run(func() int {
		if cores := strconv.Itoa(runtime.GOMAXPROCS(0)); flag.Lookup("test.parallel").Value.String() == cores {
			_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // scripts wait for hosts that fail, most of all
		}
		status, err := c.M.Run(), endWorkers()
		if stopPostgres != nil {
			err = errors.Join(err, stopPostgres())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = max(status, 1)
		}
		return status
	})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, func() string { return "" })
}

// scripts are run with databases that newDB makes; "" is a file to be made.
func scripts(newDB func() string) testscript.Params {
	return testscript.Params{
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			action, err := filepath.Abs("../../publish/action")
			if err != nil {
				return err
			}
			env.Setenv("ACTION", action)
			env.Setenv("OPTIONS", "--size=2\n\n  --title=Ann & Bob write\n--author=Ann\n")
			env.Values["reader"] = new(readertest.Miniflux)
			env.Values["objects"] = new(gofakes3.Backend)
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "data")) // root can make HOME, /no-home, which all runs on a machine would share
			env.Setenv("GORACE", "atexit_sleep_ms=10")                      // a second, after each command, is too long
			for _, name := range []string{"DB", "DB2", "DB3"} {
				env.Setenv(name, cmp.Or(newDB(), filepath.Join("feeds", name+".db")))
			}
			state := &scriptState{}
			for _, variable := range env.Vars {
				name, _, _ := strings.Cut(variable, "=")
				state.variables = append(state.variables, name)
			}
			env.Values["state"] = state
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve":  serve,
			"status": status,
			"json":   compareJSON,
			"await":  await,
			"says":   says,
			"listen": listen,
			"reach":  reach,
			"fill":   fill,

			"call":     callScript,
			"input":    setInput,
			"variable": setVariables,

			"secure": secure,
			"guard":  guardSite,
			"proxy":  proxySite,
			"get":    get,

			"bookmarks": bookmarks, "damage": damageEntries,
			"reader": reader,

			"collection": serveCollection,
			"entities":   entities,
			"expand":     expand,
			"store":      store,
			"dump":       dump,
		},
	}
}

// serve DIR serves a directory on a loopback address, which it puts into the
// environment as URL. In the files, {{URL}} is replaced by that address. Next to
// a path there may be files that change the answer:
//
//	PATH.status    the status to answer with
//	PATH.wait      the Retry-After to answer with
//	PATH.redirect  where to redirect to
//	PATH.moved     where to redirect to for good
//	PATH.type      the Content-Type
//	PATH.hang      there is no answer; the request is noted in the file "asked"
//
// A link in the head of a feed may be followed before the feed has been read to its
// end; one that comes after the entries is not. What a script interrupts there has
// read all before.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve DIR")
	}
	server := httptest.NewServer(siteOf(ts, args[0]))
	ts.Defer(func() { end(server) })
	ts.Setenv("URL", server.URL)
	ts.Setenv("ADDRESS", strings.TrimPrefix(server.URL, "http://"))
}

// end ends a server, and with it the requests that it does not answer.
func end(server *httptest.Server) {
	server.CloseClientConnections()
	server.Close()
}

// siteOf serves a directory as serve says.
func siteOf(ts *testscript.TestScript, dir string) http.HandlerFunc {
	dir = ts.MkAbs(dir)
	asked := ts.MkAbs("asked")
	return func(w http.ResponseWriter, r *http.Request) {
		path := filepath.Join(dir, filepath.FromSlash(r.URL.Path))
		read := func(suffix string) (string, bool) {
			data, err := os.ReadFile(path + suffix)
			text := strings.ReplaceAll(string(data), "{{URL}}", "http://"+r.Host)
			return text, err == nil
		}
		if _, ok := read(".hang"); ok {
			_ = os.WriteFile(asked, []byte(r.UserAgent()+"\n"), 0o600)
			<-r.Context().Done()
			return
		}
		if to, ok := read(".redirect"); ok {
			http.Redirect(w, r, strings.TrimSpace(to), http.StatusFound)
			return
		}
		if to, ok := read(".moved"); ok {
			http.Redirect(w, r, strings.TrimSpace(to), http.StatusPermanentRedirect)
			return
		}
		if kind, ok := read(".type"); ok {
			w.Header().Set("Content-Type", strings.TrimSpace(kind))
		}
		if wait, ok := read(".wait"); ok {
			w.Header().Set("Retry-After", strings.TrimSpace(wait))
		}
		if text, ok := read(".status"); ok {
			code, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				panic(err)
			}
			w.WriteHeader(code)
			return
		}
		body, ok := read("")
		if !ok {
			http.NotFound(w, r)
			return
		}
		if strings.Contains(body, "{{AGENT}}") {
			body = strings.ReplaceAll(body, "{{AGENT}}", r.UserAgent())
		}
		fmt.Fprint(w, body)
	}
}

// status CODE PROGRAM [ARG...] runs a program, which must end with the code.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE PROGRAM [ARG...]")
	}
	want, got := args[0], "0"
	if args[1] == "feedhistory" && !*update && !feedtest.LongRun() {
		if got := callInWorker(ts, args[2:]); strconv.Itoa(got) != want {
			ts.Fatalf("exit status %d, want %s", got, want)
		}
		return
	}
	err := ts.Exec(args[1], args[2:]...)
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != want {
		ts.Fatalf("exit status %s, want %s", got, want)
	}
}

// json FILE WANT compares values in JSON, line by line if FILE has several.
// In WANT, $URL and the like are replaced by their values in the environment.
func compareJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json FILE WANT")
	}
	got := indented(ts, ts.ReadFile(args[0]))
	want := indented(ts, os.Expand(ts.ReadFile(args[1]), ts.Getenv))
	if got != want {
		ts.Fatalf("%s is\n%swant\n%s", args[0], got, want)
	}
}

func indented(ts *testscript.TestScript, text string) string {
	var out bytes.Buffer
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); {
		var value json.RawMessage
		ts.Check(dec.Decode(&value))
		ts.Check(json.Indent(&out, value, "", " "))
		out.WriteByte('\n')
	}
	return out.String()
}

// fill FILE puts into a file what $URL and the like are in the environment.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// bookmarks FILE makes a SQLite database as another program would.
func bookmarks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bookmarks FILE")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec("PRAGMA journal_mode = wal; CREATE TABLE bookmarks (url TEXT)")
	ts.Check(err)
	ts.Check(db.Close())
}

// damageEntries changes text in the entries of a mirror past the store: damage FILE FROM TO.
func damageEntries(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: damage FILE FROM TO")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	result, err := db.Exec("UPDATE feedhistory_entries SET data = replace(data, ?, ?) WHERE instr(data, ?)", args[1], args[2], args[1])
	ts.Check(err)
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		ts.Fatalf("%q is in no entry: %v", args[1], err)
	}
	ts.Check(db.Close())
}

// await FILE waits until the file exists.
func await(ts *testscript.TestScript, neg bool, args []string) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("there is no %s", args[0])
}

// says TEXT PROGRAM [ARG...] runs a program again and again until its standard
// output has a text.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: says TEXT PROGRAM [ARG...]")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("%s never says %s", args[1], args[0])
}

// said returns text without its line breaks.
func said(text string) string { return strings.Join(strings.Fields(text), " ") }

// After an interrupt, fetch prints the entries that it has, and says that some are missing.
func TestInterruptedStatus(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.atom" {
			cancel()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id></entry>`+
			`<link rel="prev-archive" href="slow.atom"/></feed>`) // a link that ends the document is not followed before its end
	}))
	status, stdout, stderr := call(ctx, "", "fetch", "--allow-private", server.URL+"/feed.atom")
	if status != terminal.ExitPartial || !strings.Contains(stdout, "urn:1") || !strings.Contains(stderr, "interrupted") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputFails(t *testing.T) {
	const feed = `<rss><channel><item><guid>1</guid></item></channel></rss>`
	for _, args := range [][]string{{"inspect", "-"}, {"inspect", "--json", "-"}} {
		var stderr bytes.Buffer
		status := run(t.Context(), args, strings.NewReader(feed), brokenWriter{}, &stderr)
		if status != terminal.ExitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%q: status %d, %s", args, status, &stderr)
		}
	}
}

// call runs the command.
func call(ctx context.Context, stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func TestFailure(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://x/", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}),
			"https://x/: the host x cannot be looked up: no such host; check the address"},
		{dial(&net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}),
			"https://x/: the host x cannot be looked up: server misbehaving; try again later"},
		{&feedhistory.FetchError{URL: "https://x/", Reason: feedhistory.ReasonNetwork, Err: fmt.Errorf("headers took longer than 1s: %w", os.ErrDeadlineExceeded)},
			"https://x/: there was no answer in time; try again later"},
		{&feedhistory.FetchError{URL: "https://x/", Reason: feedhistory.ReasonStatus, Status: 503, RetryAt: time.Unix(0, 0)},
			"https://x/: 503 Service Unavailable; the host asks to be left alone until 1970-01-01T00:00:00Z; try again later"},
		{&feedhistory.FetchError{URL: "https://x/", Reason: feedhistory.ReasonLimit, Err: errors.New("it decompresses to more than 200 times its size")},
			"https://x/: it decompresses to more than 200 times its size"},
		{&feedhistory.ParseError{Reason: feedhistory.ReasonLimit, Err: &http.MaxBytesError{Limit: 5}},
			"https://x/: limit: the document is larger than 5 bytes; " + show.TooLargeRemedy},
		{&feedhistory.ParseError{Reason: feedhistory.ReasonLimit, Err: errors.New("its id has more than 4096 bytes")},
			"https://x/: limit: its id has more than 4096 bytes"},
		{errors.New("odd"), "https://x/: odd"},
		{&fs.PathError{Op: "read", Path: "https://x/", Err: syscall.EIO}, "https://x/: input/output error"},
		{&harvest.Error{Code: harvest.ErrStamp, URL: "https://x/", Text: "1 does not say when it was last modified, or not as the others do", Clause: "c"},
			"https://x/: 1 does not say when it was last modified, or not as the others do (c)"},
		{&harvest.Error{Code: harvest.ErrCutShort, URL: "https://x/", Text: "the page is cut short after 2 entities", Err: &feedhistory.FetchError{URL: "https://x/", Reason: feedhistory.ReasonTruncated, Err: io.ErrUnexpectedEOF}, Clause: "c"},
			"https://x/: the page is cut short after 2 entities (c); try again later"},
	} {
		if got := show.Failure("https://x/", test.err).Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// Entries belong to the address that was asked for, or that the feed has permanently
// moved to, not to where a temporary redirect led this time.
func TestFetchRedirected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/temporary":
			http.Redirect(w, r, "/today?signature=abc", http.StatusFound)
		case "/permanent":
			http.Redirect(w, r, "/temporary", http.StatusMovedPermanently)
		default:
			_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><id>urn:1</id></entry></feed>`)
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{"/temporary": "/temporary", "/permanent": "/temporary", "/today": "/today"} {
		for _, args := range [][]string{nil, {"--raw"}, {"--limit=5"}, {"--format=json"}, {"--format=csv"}} {
			status, stdout, stderr := call(t.Context(), "", append([]string{"fetch", "--allow-private", server.URL + path}, args...)...)
			require.Equal(t, terminal.ExitOK, status, stderr)
			require.Regexp(t, server.URL+want+`["\n,]`, stdout, args)
			require.NotRegexp(t, `"(feed|url)":"[^"]*signature`, stdout, args) // with --raw, references resolve against it
		}
	}
}

// With --since, an entry counts if it was published or updated since.
func TestSinceTakesEitherTime(t *testing.T) {
	const feed = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>F</title>
<entry><id>urn:edited</id><published>2003-01-01T00:00:00Z</published><updated>2020-01-01T00:00:00Z</updated></entry>
<entry><id>urn:dated ahead</id><published>2020-01-01T00:00:00Z</published><updated>2003-01-01T00:00:00Z</updated></entry>
<entry><id>urn:undated</id></entry>
<entry><id>urn:old</id><published>2003-01-01T00:00:00Z</published><updated>2003-01-02T00:00:00Z</updated></entry></feed>`
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, feed) }))
	_, stdout, _ := call(t.Context(), "", "fetch", "--allow-private", "--since", "2019-01-01", server.URL)
	for id, want := range map[string]bool{"urn:edited": true, "urn:dated ahead": true, "urn:undated": true, "urn:old": false} {
		require.Equal(t, want, strings.Contains(stdout, `"id":"`+id+`"`), id)
	}
}

// store BUCKET starts an object store with a bucket, and puts its address into
// the environment as STORE. Its credentials are an-id and a-secret.
func store(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: store BUCKET")
	}
	objects := s3mem.New()
	ts.Check(objects.CreateBucket(context.Background(), args[0]))
	server := httptest.NewServer(gofakes3.New(objects, gofakes3.WithV4Auth(map[string]string{"an-id": "a-secret"})).Server())
	ts.Defer(server.Close)
	ts.Setenv("STORE", server.URL)
	*ts.Value("objects").(*gofakes3.Backend) = objects
}

// dump BUCKET PREFIX FILE writes the keys and the bytes of all objects below a prefix of a
// bucket into a file.
func dump(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: dump BUCKET PREFIX FILE")
	}
	objects, ctx := *ts.Value("objects").(*gofakes3.Backend), context.Background()
	list, err := objects.ListBucket(ctx, args[0], nil, gofakes3.ListBucketPage{})
	ts.Check(err)
	var text bytes.Buffer
	for _, o := range list.Contents {
		if !strings.HasPrefix(o.Key, args[1]) {
			continue
		}
		object, err := objects.GetObject(ctx, args[0], o.Key, nil)
		ts.Check(err)
		fmt.Fprintln(&text, o.Key)
		_, err = text.ReadFrom(object.Contents)
		ts.Check(err)
	}
	if text.Len() == 0 {
		ts.Fatalf("there is nothing below %s", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), text.Bytes(), 0o600))
}

// get URL FILE writes the answer of a URL to a file.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] get URL FILE")
	}
	resp, err := http.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if neg != (resp.StatusCode != http.StatusOK) {
		ts.Fatalf("%s: %s", args[0], resp.Status)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// secure DIR serves a directory over TLS, at TLS and, by a name that the certificate
// does not have, at TLSOTHER. ca.pem is its authority.
func secure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: secure DIR")
	}
	server := httptest.NewTLSServer(siteOf(ts, args[0]))
	ts.Defer(server.Close)
	ts.Setenv("TLS", server.URL)
	ts.Setenv("TLSOTHER", strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o600))
}

// guard DIR serves a directory at PRIVATE to those who log in as ann with the
// password s3cret, or have the token t0ken or the key k3y; others get 401.
func guardSite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: guard DIR")
	}
	files := siteOf(ts, args[0])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user == "ann" && password == "s3cret" || r.Header.Get("Authorization") == "Bearer t0ken" || r.Header.Get("X-Key") == "k3y" {
			files(w, r)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	ts.Defer(func() { end(server) })
	ts.Setenv("PRIVATE", server.URL)
}

// proxy starts a proxy at PROXY, which notes each URL in the file "proxied".
func proxySite(ts *testscript.TestScript, neg bool, args []string) {
	notes, err := os.Create(ts.MkAbs("proxied"))
	ts.Check(err)
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = notes.WriteString(r.URL.String() + "\n")
		forward.ServeHTTP(w, r)
	}))
	ts.Defer(func() { end(server); _ = notes.Close() })
	ts.Setenv("PROXY", server.URL)
}

// A proxy may have a private address; the server that it connects to may not.
func TestProxyGuard(t *testing.T) {
	var asked atomic.Int64
	proxy := feedtest.Server(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	for _, address := range []string{
		"http://127.0.0.1/", "http://[::1]/", "http://10.1.2.3:8080/", "http://localhost/", "http://x.localhost./", "http://169.254.169.254/",
	} {
		f := &command.NetworkFlags{Proxy: proxy.URL, MaxDocumentBytes: 1 << 20}
		require.NoError(t, f.Prepare())
		_, err := f.Client(nil).Get(t.Context(), address)
		require.True(t, show.IsPrivate(err), "%s: %v", address, err)
		require.Zero(t, asked.Load())
	}
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "127.0.0.2")
	f := &command.NetworkFlags{MaxDocumentBytes: 1 << 20}
	require.NoError(t, f.Prepare())
	_, err := f.Client(nil).Get(t.Context(), "http://127.0.0.2:1/")
	require.True(t, show.IsPrivate(err), "%v", err)
}

// The message about a proxy that requires a login names the proxy, whatever the request.
func TestProxyLogin(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer proxy.Close()
	for _, scheme := range []string{"http", "https"} {
		status, _, stderr := call(t.Context(), "", "fetch", "--proxy", proxy.URL, scheme+"://feed.invalid/")
		require.Equal(t, terminal.ExitFailed, status)
		require.Contains(t, stderr, ": the proxy "+proxy.Listener.Addr().String()+": it answers 407 Proxy Authentication Required; check its address and login in --proxy", scheme)
	}
}

// The status of a proxy's answer counts, because the proxy chooses the words.
func TestProxyRefuses(t *testing.T) {
	feedtest.Long(t)
	for status, want := range map[string]string{
		"407 Ask Us First": ": it answers 407 Proxy Authentication Required; check its address and login",
		"502 Sorry":        ": it answers 502 Bad Gateway; check its address and login",
	} {
		proxy, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer proxy.Close()
		go func() {
			for {
				conn, err := proxy.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n")
				_ = conn.Close()
			}
		}()
		code, _, stderr := call(t.Context(), "", "fetch", "--proxy", "http://"+proxy.Addr().String(), "https://feed.invalid/")
		require.Equal(t, terminal.ExitFailed, code)
		require.Contains(t, stderr, "https://feed.invalid/: the proxy "+proxy.Addr().String()+want)
	}
}
