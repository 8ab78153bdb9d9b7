package main

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
)

// The scripts that have to do with the fleet, each with a database of its own.
func TestFleetScripts(t *testing.T) {
	server, err := pgtest.Start()
	if !errors.Is(err, pgtest.ErrMissing) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
	}
	server.Database(t) // skips without a server
	params := scripts(func() string { return server.Database(t) })
	params.Dir = "testdata/fleet"
	params.Cmds["becomes"] = becomes
	testscript.Run(t, params)
}

// becomes REGEXP PROGRAM [ARG...] runs a program until its output has the
// expression.
func becomes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: becomes REGEXP PROGRAM [ARG...]")
	}
	wanted, err := regexp.Compile(args[0])
	ts.Check(err)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if wanted.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("it does not become %q, but is\n%s", args[0], ts.ReadFile("stdout"))
}
