package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/feedhistory/feedhistory/republish"
)

// relayed FEED waits until the server at ADDR answers, and puts the address where it serves
// a feed by a protocol into the environment as URL.
func relayed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: relayed FEED")
	}
	reach(ts, false, []string{ts.Getenv("ADDR")})
	ts.Setenv("URL", "http://"+ts.Getenv("ADDR")+"/"+republish.Name(args[0])+"/")
}
