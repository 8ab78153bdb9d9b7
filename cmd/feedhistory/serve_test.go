package main

import (
	"net"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// listen puts an address that nobody listens on into the environment as ADDR.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: listen")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("ADDR", l.Addr().String())
	ts.Check(l.Close())
}

// reach ADDRESS waits until somebody listens there.
func reach(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reach ADDRESS")
	}
	for range 1000 {
		if conn, err := net.Dial("tcp", args[0]); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nobody listens on %s", args[0])
}
