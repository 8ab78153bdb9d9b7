package main

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/rogpeppe/go-internal/testscript"
)

// expand FILE replaces {{URL}} in a file by the environment's URL.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "{{URL}}", ts.Getenv("URL"))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

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

// entities DIR [FILE] appends the entities of a file to the feed in a
// directory, and serves it on a loopback address, which it puts into the
// environment as URL. Each line of the file is one: "OPERATION ID BODY". In
// place of a file, "snapshot" makes one, "cleanup" removes old pages, and "edit"
// changes what is published. While there is a file DIR.tear, pages break off
// before their last entity; while there is DIR.missing, what it names is not
// there, and with DIR.header a request must have the header fields in it.
func entities(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: entities DIR [FILE|snapshot|cleanup|edit]")
	}
	dir := publish.Dir{Path: ts.MkAbs(args[0])}
	if ts.Getenv("URL") == "" {
		ts.Setenv("URL", serveEntities(ts, dir))
	}
	p := &datareplication.Producer{Output: dir, PageSize: 500, Now: func() time.Time {
		// The clock does not remember the last time that it gave.
		return time.Date(2026, 3, 1, 12, 0, len(pages(dir)), 0, time.UTC)
	}}
	switch {
	case len(args) == 1:
	case args[1] == "snapshot":
		ts.Check(p.Snapshot(context.Background(), func(yield func(datareplication.Entity, error) bool) {
			yield(datareplication.Entity{Type: "text/plain", Body: []byte("all there is")}, nil)
		}))
	case args[1] == "cleanup":
		ts.Check(p.CleanUp(context.Background(), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)))
	case args[1] == "edit":
		for _, file := range pages(dir) {
			text := ts.ReadFile(file)
			ts.Check(os.WriteFile(file, []byte(strings.ReplaceAll(text, "text/plain", "text/other")), 0o644))
		}
	default:
		ts.Check(p.Append(context.Background(), entitiesOf(ts.ReadFile(args[1]))...))
	}
}

func serveEntities(ts *testscript.TestScript, dir publish.Dir) (url string) {
	handler := &datareplication.Handler{FS: dir}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(dir.Path + ".tear"); err == nil {
			w = &tearing{w}
		}
		if name, err := os.ReadFile(dir.Path + ".missing"); err == nil && strings.Contains(r.URL.Path, strings.TrimSpace(string(name))) {
			http.NotFound(w, r)
			return
		}
		if field, err := os.ReadFile(dir.Path + ".header"); err == nil {
			name, value, _ := strings.Cut(strings.TrimSpace(string(field)), ": ")
			if r.Header.Get(name) != value {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		}
		handler.ServeHTTP(w, r)
	}))
	handler.Base = server.URL
	ts.Defer(server.Close)
	return server.URL
}

// pages returns the files with the pages.
func pages(dir publish.Dir) []string {
	files, _ := filepath.Glob(filepath.Join(dir.Path, "pages", "*"))
	return files
}

func entitiesOf(text string) (all []datareplication.Entity) {
	for line := range strings.Lines(text) {
		operation, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, body, _ := strings.Cut(rest, " ")
		if unquoted, err := strconv.Unquote(body); err == nil {
			body = unquoted
		}
		all = append(all, datareplication.Entity{
			ContentID: id, Operation: datareplication.Operation(operation), Type: "text/plain", Body: []byte(body),
		})
	}
	return all
}

// A tearing response breaks off before the last entity of a page.
type tearing struct{ http.ResponseWriter }

func (t *tearing) WriteHeader(status int) {
	t.Header().Del("Content-Length")
	t.ResponseWriter.WriteHeader(status)
}

func (t *tearing) Write(b []byte) (int, error) {
	if i := strings.LastIndex(string(b), "Content-ID"); i > 0 {
		_, err := t.ResponseWriter.Write(b[:i])
		return len(b), err
	}
	return len(b), nil
}
