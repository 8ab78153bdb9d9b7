package main

import (
	"cmp"
	"context"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

// collection FILE LIMIT serves the entries of a feed document by ranges of
// modification times, LIMIT at a time, on a loopback address, which it puts into
// the environment as URL. The file is read again for each query.
func serveCollection(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: collection FILE LIMIT")
	}
	file := ts.MkAbs(args[0])
	limit, err := strconv.Atoi(args[1])
	ts.Check(err)
	server := httptest.NewServer(&modifiedrange.Handler{
		Limit: limit,
		Now:   func() time.Time { return time.Date(2004, 10, 31, 19, 29, 0, 0, time.UTC) },
		Items: func(_ context.Context, start, end time.Time, limit int) ([]modifiedrange.Item, error) {
			return itemsOf(file, modifiedrange.Range{Start: start, End: end}, limit)
		},
	})
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL)
}

func itemsOf(file string, within modifiedrange.Range, limit int) (items []modifiedrange.Item, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := feedhistory.Parse(f, "")
	if err != nil {
		return nil, err
	}
	for _, e := range doc.Entries {
		items = append(items, modifiedrange.Item{Modified: e.Updated, Entry: e})
	}
	for _, t := range doc.Deleted {
		items = append(items, modifiedrange.Item{Modified: t.When, Deleted: t.Ref})
	}
	items = slices.DeleteFunc(items, func(i modifiedrange.Item) bool { return !within.Contains(i.Modified) })
	slices.SortStableFunc(items, func(a, b modifiedrange.Item) int { return b.Modified.Compare(a.Modified) })
	return items[:min(cmp.Or(limit, len(items)), len(items))], nil
}
