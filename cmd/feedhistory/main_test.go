package main

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/feedhistory/feedhistory/cmd/internal/readertest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var update = flag.Bool("update", false, "write what the command prints into the scripts")

// patience is how long a test waits for something that does not come, even on a busy
// machine.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	testscript.Main(checked{m}, map[string]func(){"feedhistory": main})
}

// checked are tests that leave no goroutines behind.
type checked struct{ *testing.M }

func (c checked) Run() int { return feedtest.Leaks(c.M.Run()) }

func TestScripts(t *testing.T) {
	params := scripts(func() string { return "" })
	params.Dir = "testdata/script"
	testscript.Run(t, params)
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
			env.Setenv("OPTIONS", "--size=2\n\n  --title=Ann & Bob write\n--link=https://example.org/{path}/\n")
			env.Values["reader"] = new(readertest.Miniflux)
			env.Values["objects"] = new(gofakes3.Backend)
			env.Setenv("GORACE", "atexit_sleep_ms=10") // a second, after each command, is too long
			for _, name := range []string{"DB", "DB2", "DB3"} {
				env.Setenv(name, cmp.Or(newDB(), filepath.Join("feeds", name+".db")))
			}
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

			"relayed": relayed,

			"secure": secure,
			"guard":  guardSite,
			"proxy":  proxySite,
			"get":    get,

			"bookmarks": bookmarks, "damage": damageEntries,
			"reader": reader,

			"collection": serveCollection,
			"entities":   entities,
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
	want := args[0]
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
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
