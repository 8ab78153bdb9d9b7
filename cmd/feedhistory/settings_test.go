package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/backfill/sitemap"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/conformance/suite"
	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
	"github.com/feedhistory/feedhistory/republish"
)

// asked returns a handler's answer as an error, or nil for a success.
func asked(h http.Handler) error {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/feed.atom", nil))
	if w.Code == http.StatusInternalServerError {
		return errors.New(w.Body.String())
	}
	return nil
}

// logged returns what a handler logs, as an error.
func logged(serve func(l *slog.Logger)) error {
	var b strings.Builder
	serve(slog.New(slog.NewTextHandler(&b, nil)))
	return errors.New(b.String())
}

// first returns the first error that a sequence yields.
func first[T any](seq func(func(T, error) bool)) (err error) {
	seq(func(_ T, e error) bool { err = e; return e == nil })
	return err
}

// A setting is a value of a type with numbers, and a call that uses it.
type setting struct {
	value  any // a pointer
	use    func() error
	signed string // the numbers whose negative values mean something
}

// numberedSettings are all types with numbers that programs set.
func numberedSettings(t *testing.T) map[string]setting {
	ctx := t.Context()
	store := mirror.NewMemory()
	require.NoError(t, store.Commit(ctx, &mirror.Commit{Feed: mirror.NewFeed("https://example.org/")}))
	client := &feedhistory.Client{}
	m := &mirror.Mirror{Store: store}
	p := &mirror.Poller{Mirror: &mirror.Mirror{Store: mirror.NewMemory()}}
	feeds, entries := &mirror.FeedQuery{}, &mirror.Query{Feed: "https://example.org/"}
	pub := &publish.Publisher{Output: &publish.MemoryOutput{}, Base: "https://example.org/"}
	served, pages := &publish.Handler{FS: &publish.MemoryOutput{}}, &publish.Pages{Older: noPage}
	batch, objects := &publish.Batch{}, bucket(t)
	again := &republish.Handler{Store: mirror.NewMemory()}
	memento := &backfill.Memento{TimeMap: "x:"}
	site := &sitemap.Site{}
	pmh, pmp := &atompmh.Harvester{URL: "x:"}, &atompmh.Producer{Output: &publish.MemoryOutput{}, Pool: noItems, Base: "https://example.org/"}
	live, sample := &atompmh.Handler{URL: "https://example.org/feed.atom", Items: noRecords}, &check.Sample{}
	drc, of := &datareplication.Harvester{URL: "x:"}, &datareplication.Resources{}
	drp := &datareplication.Producer{Output: &publish.MemoryOutput{}}
	mrc, mrh := &modifiedrange.Harvester{URL: "x:"}, &modifiedrange.Handler{Items: noItem}
	options, driven := &suite.Options{}, &suite.PublisherTest{URL: "x:"}
	worker, status := &fleet.Worker{Database: &fleet.Database{}}, &fleet.StatusQuery{}
	parser := &feedhistory.Parser{}
	e, err := compose.Draft{ID: "urn:1", Updated: time.Now()}.Entry()
	require.NoError(t, err)
	return map[string]setting{
		"Client": {client, func() error { _, err := client.Clone().Get(ctx, "x:"); return err }, "MaxWait"},
		"Parser": {parser, func() error { _, err := parser.Parse(strings.NewReader("<feed/>"), ""); return err }, ""},
		"Mirror": {m, func() error { return errors.Join(m.ReadMark(ctx, "https://example.org/", "s", nil)) }, "Versions Recheck Quota.Bytes Quota.Entries"},
		"Poller": {p, func() error { return p.Drain(ctx) }, ""},
		"FeedQuery": {feeds, func() error {
			return errors.Join(first(store.Feeds(ctx, *feeds)), first(mirror.Public(store).Feeds(ctx, *feeds)), first(stored(t).Feeds(ctx, *feeds)))
		}, ""},
		"Query": {entries, func() error {
			return errors.Join(first(store.Entries(ctx, *entries)), first(mirror.Public(store).Entries(ctx, *entries)), first(stored(t).Entries(ctx, *entries)))
		}, ""},
		"Publisher": {pub, func() error { return pub.Append(ctx, e) }, "Recent"},
		"Batch":     {batch, func() error { _, err := pub.Publish(ctx, *batch); return err }, "MaxDeletions"},
		"Handler":   {served, func() error { return logged(func(l *slog.Logger) { served.Logger = l; _ = asked(served) }) }, "Memory"},
		"Pages":     {pages, func() error { return logged(func(l *slog.Logger) { pages.Logger = l; _ = asked(pages) }) }, "MaxAge"},
		"s3":        {objects, func() error { _, err := objects.Lock(ended(ctx)); return err }, ""},
		"republish": {again, func() error { _, err := again.Name(ctx, "https://example.org/"); return err }, ""},
		"Backfill":  {&backfill.Backfill{}, func() error { return nil }, "Recount"},
		"Site": {site, func() error {
			return first(site.Documents(ended(ctx), client, &feedhistory.Document{}, &backfill.Probe{}))
		}, ""},
		"Memento": {memento, func() error {
			return first(memento.Documents(ended(ctx), client, &feedhistory.Document{}, &backfill.Probe{}))
		}, ""},
		"atompmh":     {pmh, func() error { return first(pmh.Harvest(ctx, atompmh.Mark{}).Changes()) }, ""},
		"pmHandler":   {live, func() error { return logged(func(l *slog.Logger) { live.Logger = l; _ = asked(live) }) }, ""},
		"Sample":      {sample, func() error { return first(sample.Check(ctx, client)) }, ""},
		"pmServer":    {pmp, func() error { return pmp.Update(ended(ctx)) }, "Compare"},
		"drHarvester": {drc, func() error { return first(drc.Harvest(ctx, datareplication.Mark{}).Entities()) }, ""},
		"Resources":   {of, func() error { _, err := drc.Keep(ctx, m, *of); return err }, ""},
		"drServer":    {drp, func() error { return drp.Append(ctx) }, ""},
		"mrHarvester": {mrc, func() error { return first(mrc.Harvest(ctx, modifiedrange.Mark{}).Readings()) }, "Overlap"},
		"mrServer":    {mrh, func() error { return logged(func(l *slog.Logger) { mrh.Logger = l; _ = asked(mrh) }) }, ""},
		"Options": {options, func() error {
			_, err := suite.Run(ctx, func(context.Context, string, string) (*suite.Result, error) { return nil, nil }, nil, options)
			return err
		}, ""},
		"Driven":      {driven, func() error { _, err := driven.Run(ctx); return err }, ""},
		"Worker":      {worker, func() error { return worker.Run(ctx) }, "Versions Recheck Pause"},
		"StatusQuery": {status, func() error { _, err := (&fleet.Database{}).Status(ctx, *status); return err }, ""},
	}
}

// runs are the settings not tried with a large number: they would begin to work.
var runs = map[string]bool{"Worker": true, "StatusQuery": true}

func noPage(context.Context, publish.Position, int) ([]*feedhistory.Entry, bool, error) {
	return nil, false, nil
}

func noRecords(context.Context, time.Time, time.Time, int) ([]atompmh.Item, error) { return nil, nil }

func noItems(context.Context, time.Time) iter.Seq2[atompmh.Item, error] {
	return func(func(atompmh.Item, error) bool) {}
}

func noItem(context.Context, time.Time, time.Time, int) ([]modifiedrange.Item, error) {
	return nil, nil
}

// bucket returns an object store. Nothing is requested from it.
func bucket(t *testing.T) *s3.Output {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	o, err := s3.FromEnvironment("s3://bucket/x", "http://127.0.0.1:1")
	require.NoError(t, err)
	return o
}

// ended returns a context that has ended.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// stored returns an SQLite database.
func stored(t *testing.T) *sqlstore.Store {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(filepath.Join(t.TempDir(), "mirror.db")))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	return store
}

// unset are the exported numbers that no program sets, or that have no meaning to test: the
// reason, by type or field.
var unset = map[string]string{
	"backfill/sitemap.Plan": "a result", "check.Finding": "a result", "check.Rule": "a result",
	"conformance.Options":               "suite.Options is in the table",
	"conformance/suite.PublisherReport": "a result", "conformance/suite.Report": "a result", "conformance/suite.Requirement": "a result",
	"conformance/suite.Score": "a result", "conformance/suite.Trial": "a result",
	"feedhistory.Enclosure": "read from a document", "feedhistory.FetchError": "a result", "feedhistory.History": "a result", "feedhistory.Note": "a result", "feedhistory.Response": "a result", "feedhistory.Schedule": "read from a document",
	"fleet.FailingFeed": "a result", "fleet.HostStatus": "a result", "fleet.Status": "a result",
	"harvest/atompmh.QueuedRecord": "written by Fetch",
	"mirror.Commit":                "written by a Mirror, for a Store", "mirror.Content": "written by a Mirror", "mirror.DocumentRecord": "written by a Mirror",
	"mirror.Feed":         "written by a Mirror",
	"mirror.ImportReport": "counts of what was read", "mirror.Query.AfterCommit": "any number is a commit",
	"mirror.Rank": "written by a Mirror", "mirror.Record": "written by a Mirror", "mirror.Report": "a result",
	"mirror/sqlstore.Info": "a result", "mirror/sqlstore.Inspection": "a result",
	"publish/serve.Cache": "makes no error: a negative one keeps nothing", "publish.FileInfo": "a result", "publish.Report": "a result",
	"republish.Plan": "a result", "republish.Preview": "a result", "republish.Slice": "a result",
}

// Zero is the default of each number, a negative one is an error that names it unless its
// field says otherwise, and the largest one is no error. No exported number is left out.
func TestNumbersOfAllPackages(t *testing.T) {
	tested := map[string]bool{}
	for name, s := range numberedSettings(t) {
		var visit func(path string, v reflect.Value)
		visit = func(path string, v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					if f := v.Type().Field(i); f.IsExported() {
						if k := f.Type.Kind(); k == reflect.Int || k == reflect.Int64 {
							pkg := strings.TrimPrefix(strings.TrimPrefix(v.Type().PkgPath(), "github.com/feedhistory/"), "feedhistory/")
							tested[pkg+"."+v.Type().Name()+"."+f.Name] = true
						}
						visit(strings.TrimPrefix(path+"."+f.Name, "."), v.Field(i))
					}
				}
			case reflect.Int, reflect.Int64:
				tryNumber(t, s, name, path, v)
			}
		}
		visit("", reflect.ValueOf(s.value).Elem())
	}
	numbers := numberFields(t)
	require.Greater(t, len(numbers), 100)
	for _, field := range numbers {
		of := field[:strings.LastIndexByte(field, '.')]
		if strings.HasSuffix(of, "Error") { // a result
			continue
		}
		assert.NotEmpty(t, cmp.Or(unset[of], unset[field], map[bool]string{true: "tested"}[tested[field]]),
			"%s is a number: test its meaning in numberedSettings, or say in unset why it has none", field)
	}
}

// numberFields returns the exported numbers of all structs that programs can import, as
// package.Type.Field.
func numberFields(t *testing.T) (fields []string) {
	const root = "../.."
	number := regexp.MustCompile(`^\*?(u?int(8|16|32|64)?|float64|time\.Duration)$`)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		private := slices.Contains([]string{"internal", "testdata", "examples", "cmd", "node_modules"}, d.Name()) || strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && private:
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if pkg == "." {
			pkg = "feedhistory"
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						if name.IsExported() && number.MatchString(types.ExprString(f.Type)) {
							fields = append(fields, filepath.ToSlash(pkg)+"."+spec.Name.Name+"."+name.Name)
						}
					}
				}
			}
			return true
		})
		return err
	}))
	return fields
}

// tryNumber tries a negative number, and a large one.
func tryNumber(t *testing.T, s setting, name, path string, v reflect.Value) {
	defer v.SetInt(0)
	short := path[strings.LastIndexByte(path, '.')+1:]
	signed := strings.Contains(" "+s.signed+" ", " "+path+" ")
	v.SetInt(-1)
	switch {
	case !signed && name == "StatusQuery":
		require.ErrorContains(t, s.use(), "is negative", "%s.%s", name, path)
	case !signed:
		assert.ErrorContains(t, s.use(), short+" is negative", "%s.%s", name, path)
	case !runs[name]:
		assert.NotContains(t, fmt.Sprint(s.use()), "negative", "%s.%s", name, path)
	}
	if v.SetInt(math.MaxInt64); !runs[name] && path != "Partial" { // which is a status
		assert.NotContains(t, fmt.Sprint(s.use()), "negative", "%s.%s", name, path)
	}
}

// What is nil where it may not be is an error that names the field, and no panic.
func TestUnsetFieldsAreNamed(t *testing.T) {
	ctx := t.Context()
	for want, use := range map[string]func() error{
		"mirror: Mirror.Store must be set": func() error {
			m := &mirror.Mirror{}
			_, update := m.Update(ctx, "https://example.org/")
			_, merge := m.Keep(ctx, "https://example.org/", mirror.Source{Readings: feedhistory.Readings()})
			for _, err := range []error{update, merge, m.ReadMark(ctx, "", "", nil), (&mirror.Poller{Mirror: m}).Run(ctx)} {
				require.ErrorContains(t, err, "mirror: Mirror.Store must be set")
			}
			return m.Erase(ctx, "https://example.org/", "1")
		},
		"mirror: Poller.Mirror must be set": func() error {
			p := &mirror.Poller{}
			_, err := p.AddAll(ctx, nil)
			require.Equal(t, err, p.Drain(ctx))
			require.Equal(t, err, p.Run(ctx))
			p.Forget("https://example.org/")
			return err
		},
		"mirror: Export: the io.Writer, the Store or the feeds are nil": func() error { return mirror.Export(ctx, nil, nil, nil) },
		"mirror: Import: the Store or the io.Reader is nil":             func() error { _, err := mirror.Import(ctx, nil, nil, false); return err },
		"mirror: Lookup: the Store is nil":                              func() error { _, err := mirror.Lookup(ctx, nil, "", ""); return err },
		"mirror: Months: the Store is nil":                              func() error { _, err := mirror.Months(ctx, nil, mirror.Query{}); return err },
		"sqlstore: the database is nil":                                 func() error { _, err := sqlstore.Open(ctx, nil, sqlstore.SQLite); return err },
		"publish: Publisher.Output must be set":                         func() error { return (&publish.Publisher{}).Append(ctx) },
		"republish: Handler.Store must be set": func() error {
			h := &republish.Handler{}
			_, feed := h.Feed(ctx, "x")
			_, name := h.Name(ctx, "x")
			_, preview := h.Preview(ctx, &mirror.Feed{}, &republish.Replay{}, 1)
			_, slices := h.Slices(ctx, &mirror.Feed{}, 1)
			for _, err := range []error{feed, name, preview, slices, h.Remove(ctx, "x"), h.Reserve(ctx, "x")} {
				require.ErrorContains(t, err, "republish: Handler.Store must be set")
			}
			return asked(h)
		},
		"publish: Publisher.Base is not an absolute URL": func() error {
			return (&publish.Publisher{Output: &publish.MemoryOutput{}, Base: "https://example.org/?"}).Append(ctx)
		},
		"republish: Handler.Base is not an absolute URL": func() error {
			var err error
			for _, base := range []string{"::", "/h/", "ftp://example.org/", "https://", "https://example.org/?a=b", "https://example.org/h#", "https://ada:secret@example.org/?"} {
				h := &republish.Handler{Store: mirror.NewMemory(), Base: base}
				_, err = h.Feed(ctx, "x")
				require.ErrorContains(t, err, "republish: Handler.Base is not an absolute URL")
				require.ErrorContains(t, asked(h), err.Error())
			}
			require.NotContains(t, err.Error(), "secret")
			return err
		},
		"republish: Handler.Preview: the Replay is not from ParseReplay": func() error {
			_, err := (&republish.Handler{Store: mirror.NewMemory()}).Preview(ctx, mirror.NewFeed("https://example.org/"), &republish.Replay{}, 1)
			return err
		},
		"publish: Handler.FS must be set":                        func() error { return logged(func(l *slog.Logger) { _ = asked(&publish.Handler{Logger: l}) }) },
		"publish: Pages.Older must be set":                       func() error { return logged(func(l *slog.Logger) { _ = asked(&publish.Pages{Logger: l}) }) },
		"modifiedrange: Handler.Items must be set":               func() error { return logged(func(l *slog.Logger) { _ = asked(&modifiedrange.Handler{Logger: l}) }) },
		"datareplication: Handler.FS must be set":                func() error { return logged(func(l *slog.Logger) { _ = asked(&datareplication.Handler{Logger: l}) }) },
		"datareplication: Producer.Output must be set":           func() error { return (&datareplication.Producer{}).Append(ctx) },
		"atompmh: Producer.Output and Producer.Pool must be set": func() error { return (&atompmh.Producer{}).Update(ctx) },
		"conformance: Run: the Reader is nil, or a Case is":      func() error { _, err := suite.Run(ctx, nil, nil, nil); return err },
		"fleet: Worker.Database must be set":                     func() error { return (&fleet.Worker{}).Run(ctx) },
		"s3: Output.Client and Output.Bucket must be set":        func() error { _, err := (&s3.Output{}).Lock(ctx); return err },
		"handover: Handover.Reader and Handover.Store must be set": func() error {
			_, err := (&readers.Handover{}).Run(ctx, "", readers.ReaderFeed{})
			return err
		},
	} {
		require.ErrorContains(t, use(), want)
	}
}
