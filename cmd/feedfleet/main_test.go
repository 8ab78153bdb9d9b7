package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
)

func TestMain(m *testing.M) {
	testscript.Main(checked{m}, map[string]func(){"feedfleet": main})
}

// checked are tests that leave no goroutines behind.
type checked struct{ *testing.M }

func (c checked) Run() int { return feedtest.Run(c.M.Run) }

// The scripts, each with a database of its own.
func TestScripts(t *testing.T) {
	server, err := pgtest.Start()
	if !errors.Is(err, pgtest.ErrMissing) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
	}
	server.Database(t) // skips without a server
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=10") // a second, after each command, is too long
			env.Setenv("DB", server.Database(t))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve": serve, "fill": fill, "status": status, "becomes": becomes, "stored": stored,
		},
	})
}

// serve DIR serves a directory on a loopback address, which it puts into the
// environment as URL, and without its scheme as HOST.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	server := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL)
	ts.Setenv("HOST", strings.TrimPrefix(server.URL, "http://"))
}

// fill FILE puts into a file what $URL and the like are in the environment.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// status CODE PROGRAM [ARG...] runs a program, which must end with the code.
func status(ts *testscript.TestScript, _ bool, args []string) {
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// becomes REGEXP PROGRAM [ARG...] runs a program until its output has the
// expression.
func becomes(ts *testscript.TestScript, _ bool, args []string) {
	wanted, err := regexp.Compile(args[0])
	ts.Check(err)
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if wanted.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("it does not become %q, but is\n%s", args[0], ts.ReadFile("stdout"))
}

// stored N URL compares how many entries of a feed the database has.
func stored(ts *testscript.TestScript, _ bool, args []string) {
	db, err := fleet.Open(context.Background(), ts.Getenv("DB"))
	ts.Check(err)
	defer db.Close()
	n := 0
	for _, err := range db.Store.Entries(context.Background(), mirror.Query{Feed: os.Expand(args[1], ts.Getenv)}) {
		ts.Check(err)
		n++
	}
	if want, err := strconv.Atoi(args[0]); err != nil || n != want {
		ts.Fatalf("%d entries are stored, want %s", n, args[0])
	}
}
