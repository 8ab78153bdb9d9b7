package main

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// listen puts an address that nobody listens on into the environment as ADDR.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: listen")
	}
	ts.Setenv("ADDR", freeAddress())
}

// freeAddress returns an address that nobody listens on. Its port is below those that
// systems give to whoever asks for any: another test cannot be given it meanwhile.
func freeAddress() string {
	for range 1000 {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(10_000+rand.IntN(20_000)))
		if err == nil && l.Close() == nil {
			return l.Addr().String()
		}
	}
	panic("no port is free")
}

// reach ADDRESS waits until somebody listens there.
func reach(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reach ADDRESS")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", args[0]); err == nil {
			_ = conn.Close()
			return
		}
	}
	ts.Fatalf("nobody listens on %s", args[0])
}
