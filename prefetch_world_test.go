package feedhistory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A faultyChain is a feed with faults, and a walk over it.
type faultyChain struct {
	replies map[string]feedtest.Reply
	again   map[string]feedtest.Reply // what a URL answers from the second request on, where that differs
	etags   map[string]string

	start     string
	budget    Budget
	more      int // how many documents Budget.More grants; 0: there is no such hook
	processed []string
	pending   []string
	known     map[string]Known
	own       bool // SameOrigin
}

// GoString shows a chain for which a property fails.
func (c *faultyChain) GoString() string {
	var b strings.Builder
	show := func(title string, replies map[string]feedtest.Reply) {
		for url, r := range replies {
			fmt.Fprintf(&b, "-- %s%s --\nstatus %d, %v, end %v, stalls %v, error %v\n%s\n", url, title, r.Status, r.Header, r.End, r.Stalls, r.Err, r.Body)
		}
	}
	show("", c.replies)
	show(" (again)", c.again)
	fmt.Fprintf(&b, "etags %v\nstart %s\nbudget %d %d %d, more %d\nprocessed %v\npending %v\nknown %v\nsame origin %v\n", c.etags, c.start,
		c.budget.Documents, c.budget.Bytes, c.budget.Barren, c.more, c.processed, c.pending, c.known, c.own)
	return b.String()
}

// String returns what GoString returns.
func (c *faultyChain) String() string { return c.GoString() }

// server returns a function that answers as the chain does, from its beginning.
func (c *faultyChain) server() func(*http.Request) feedtest.Reply {
	counts := map[string]int{}
	return func(r *http.Request) feedtest.Reply {
		url := r.URL.String()
		counts[url]++
		says, ok := c.replies[url]
		if changed, changes := c.again[url]; changes && counts[url] > 1 {
			says = changed
		}
		etag := c.etags[url]
		switch {
		case !ok:
			return feedtest.Reply{Status: http.StatusNotFound}
		case etag == "" || says.Status != 0:
			return says
		case etag == r.Header.Get("If-None-Match"):
			return feedtest.Reply{Status: http.StatusNotModified}
		}
		says.Header = append(slices.Clone(says.Header), "Etag: "+etag)
		return says
	}
}

// walk walks over the chain on its own line, and calls visit for each yield until that returns
// false. PerHost is as in Policy.
func (c *faultyChain) walk(ctx context.Context, perHost int, seed uint64, visit func(n int, doc *Document, err error) bool) *feedtest.Line {
	l := &feedtest.Line{Serve: c.server(), Seed: seed}
	client := &Client{
		Transport: l, Budget: c.budget,
		Policy: Policy{NoGuess: true, PerHost: perHost, SameOrigin: c.own},
	}
	if c.more > 0 {
		client.Budget.More = func(used Budget) (Budget, bool) {
			return Budget{Documents: c.more, Bytes: used.Bytes + 1, Barren: used.Barren + 1}, true
		}
	}
	n := 0
	for doc, err := range client.Walk(ctx, c.start, c.options()) {
		if n++; !visit(n, doc, err) {
			break
		}
	}
	return l
}

func (c *faultyChain) options() *WalkOptions {
	return &WalkOptions{
		Processed: func(url string) bool { return slices.Contains(c.processed, url) },
		Known:     func(url string) Known { return c.known[url] },
		Pending:   c.pending,
	}
}

// all returns everything that a walk yields.
func (c *faultyChain) all(perHost int, seed uint64) (yields []string, l *feedtest.Line) {
	l = c.walk(context.Background(), perHost, seed, func(_ int, doc *Document, err error) bool {
		yields = append(yields, yielded(doc, err))
		return true
	})
	return yields, l
}

// yielded describes a yield of a walk completely, except for times.
func yielded(doc *Document, err error) string {
	gap, _ := errors.AsType[*Gap](err)
	unchanged, _ := errors.AsType[*Unchanged](err)
	switch {
	case err == nil:
		return "document " + contents(doc)
	case gap != nil && gap.Document != nil:
		return fmt.Sprintf("gap %v\nwith %s", gap, contents(gap.Document))
	case gap != nil:
		return fmt.Sprintf("gap %v", gap)
	case unchanged != nil:
		return fmt.Sprintf("unchanged %s %+v", unchanged.Response.Requested, unchanged.Known)
	}
	return "error " + err.Error()
}

func contents(d *Document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s as %s, %v, permanent %q, %v\n", d.URL, d.Response.Requested, d.Kind(), d.Response.Permanent, d.Links)
	for _, e := range d.Entries {
		fmt.Fprintf(&b, "%s %v %v\n", e.ID, e.Updated, e.Links)
	}
	for _, t := range d.Deleted {
		fmt.Fprintf(&b, "deleted %s %v\n", t.Ref, t.When)
	}
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "note %v\n", n)
	}
	return b.String()
}
