package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
)

// listen puts an address on which nobody listens into the environment as ADDR.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: listen")
	}
	ts.Setenv("ADDR", freeAddress())
}

// freeAddress returns an address on which nobody listens.
func freeAddress() string {
	port, err := pgtest.FreePort()
	if err != nil {
		panic(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}

// reach ADDRESS waits until a server answers there.
func reach(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reach ADDRESS")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if answers(args[0]) {
			return
		}
	}
	ts.Fatalf("nobody answers on %s", args[0])
}

// answers reports whether a server answers at an address. A server that only listens does
// not serve yet: an interrupt would end it before it does.
func answers(address string) bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Head("http://" + address + "/")
	return err == nil && resp.Body.Close() == nil && resp.StatusCode != http.StatusServiceUnavailable
}
