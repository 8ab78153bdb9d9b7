package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/readers/readertest"
	"github.com/rogpeppe/go-internal/testscript"
)

// reader runs a model of Miniflux, which each script has one of:
//
//	reader serve [VERSION]     starts it, and puts its address into READER
//	reader subscribe URL       subscribes its user to a feed
//	reader poll ID URL TITLE   adds an entry to the first feed, as a poll would
//	reader delete URL          deletes an entry
//	reader fail N STATUS [METHOD]  makes requests fail, from the N-th from now on: imports, or those with a method
//	reader heal                makes them succeed again
//	reader shows               writes its entries into the file "shown", with a * if they are starred, and their tags
func reader(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: reader VERB [ARG...]")
	}
	m := ts.Value("reader").(*readertest.Miniflux)
	switch args[0] {
	case "serve":
		if len(args) > 1 {
			m.Version = args[1]
		}
		m.Start()
		ts.Defer(m.Close)
		ts.Setenv("READER", m.URL)
	case "subscribe":
		m.Subscribe(args[1])
	case "poll":
		m.Poll(1, args[1], readertest.Entry{URL: args[2], Title: args[3]})
	case "delete":
		m.Delete(args[1])
	case "fail":
		first, err := strconv.Atoi(args[1])
		ts.Check(err)
		status, err := strconv.Atoi(args[2])
		ts.Check(err)
		n, method := 0, http.MethodPost
		if len(args) > 3 {
			method = args[3]
		}
		m.Break(func(_ int, r *http.Request) *readertest.Fault {
			if r.Method == method {
				n++
			}
			if r.Method != method || n < first {
				return nil
			}
			return &readertest.Fault{Status: status, Message: "as the script wants it"}
		})
	case "heal":
		m.Break(nil)
	case "shows":
		var b strings.Builder
		for _, e := range m.Entries() {
			line := fmt.Sprint(e.Status, " ", e.PublishedAt.Format("2006-01-02"), " ", e.Title, " ", e.URL)
			if e.Starred {
				line += " *"
			}
			fmt.Fprintln(&b, strings.Join(append([]string{line}, e.Tags...), " "))
		}
		ts.Check(os.WriteFile(ts.MkAbs("shown"), []byte(b.String()), 0o600))
	default:
		ts.Fatalf("reader: no %s", args[0])
	}
}
