package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/handover"
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

// numberedSettings are a value of each type with numbers, and a call that uses it. Each number that
// is not among those that may be negative is an error with its name if it is.
func numberedSettings(t *testing.T) map[string]struct {
	value  any // a pointer
	use    func() error
	signed string // the numbers whose negative values mean something
} {
	ctx := t.Context()
	type setting = struct {
		value  any
		use    func() error
		signed string
	}
	m := &mirror.Mirror{Store: &mirror.Memory{}}
	p := &mirror.Poller{Mirror: &mirror.Mirror{Store: &mirror.Memory{}}}
	pub := &publish.Publisher{Output: &publish.MemoryOutput{}, Base: "https://example.org/"}
	again := &republish.Handler{Store: &mirror.Memory{}}
	pmh := &atompmh.Harvester{URL: "x:"}
	drc := &datareplication.Client{URL: "x:"}
	drp := &datareplication.Producer{Output: &publish.MemoryOutput{}}
	mrc := &modifiedrange.Client{URL: "x:"}
	options := &suite.Options{}
	worker := &fleet.Worker{Database: &fleet.Database{}}
	parser := &feedhistory.Parser{}
	e, err := feedhistory.Draft{ID: "urn:1", Updated: time.Now()}.Entry()
	require.NoError(t, err)
	return map[string]setting{
		"Mirror":    {m, func() error { return errors.Join(m.ReadMark(ctx, "https://example.org/", "s", nil)) }, "Versions Recheck Quota.Bytes Quota.Entries"},
		"Poller":    {p, func() error { return p.Drain(ctx) }, ""},
		"Publisher": {pub, func() error { return pub.Append(ctx, e) }, "Recent"},
		"republish": {again, func() error { _, err := again.Name(ctx, "https://example.org/"); return err }, ""},
		"atompmh":   {pmh, func() error { return first(pmh.Harvest(ctx, atompmh.Mark{}).Changes()) }, ""},
		"drClient":  {drc, func() error { return first(drc.Harvest(ctx, datareplication.Cursor{}).Entities()) }, ""},
		"drServer":  {drp, func() error { return drp.Append(ctx) }, ""},
		"mrClient":  {mrc, func() error { return first(mrc.Sync(ctx, modifiedrange.State{}).Documents()) }, "Overlap"},
		"Options": {options, func() error {
			_, err := suite.Run(ctx, func(context.Context, string, string) (*suite.Result, error) { return nil, nil }, nil, options)
			return err
		}, ""},
		"Worker": {worker, func() error { return worker.Run(ctx) }, "Versions Recheck Pause"},
		"Parser": {parser, func() error { _, err := parser.Parse(strings.NewReader("<feed/>"), ""); return err }, ""},
	}
}

// Zero is the default of each number, a negative one is an error that names it unless its
// field says otherwise, and the largest one is no error.
func TestNumbersOfAllPackages(t *testing.T) {
	counted := 0
	for name, s := range numberedSettings(t) {
		var visit func(path string, v reflect.Value)
		visit = func(path string, v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					if f := v.Type().Field(i); f.IsExported() {
						visit(strings.TrimPrefix(path+"."+f.Name, "."), v.Field(i))
					}
				}
			case reflect.Int, reflect.Int64:
				counted++
				v.SetInt(-1)
				if err := s.use; !strings.Contains(" "+s.signed+" ", " "+path+" ") {
					short := path[strings.LastIndexByte(path, '.')+1:]
					require.ErrorContains(t, err(), short+" is negative", "%s.%s", name, path)
				} else if name != "Worker" { // it would begin to work
					require.NotContains(t, fmt.Sprint(err()), "negative", "%s.%s", name, path)
				}
				v.SetInt(math.MaxInt32)
				if name != "Worker" {
					if err := s.use(); err != nil {
						require.NotContains(t, err.Error(), "negative", "%s.%s", name, path)
					}
				}
				v.SetInt(0)
			}
		}
		visit("", reflect.ValueOf(s.value).Elem())
	}
	require.Greater(t, counted, 40)
}

// What is nil where it may not be is an error that names the field, and no panic.
func TestUnsetFieldsAreNamed(t *testing.T) {
	ctx := t.Context()
	for want, use := range map[string]func() error{
		"mirror: Mirror.Store must be set": func() error {
			m := &mirror.Mirror{}
			_, update := m.Update(ctx, "https://example.org/")
			_, merge := m.Merge(ctx, "https://example.org/", mirror.Source{})
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
		"mirror: Export.Store must be set":      func() error { return (&mirror.Export{}).Feeds(ctx, nil, nil) },
		"mirror: Import.Store must be set":      func() error { return (&mirror.Import{}).Read(ctx, nil) },
		"mirror: Lookup: the Store is nil":      func() error { _, err := mirror.Lookup(ctx, nil, "", ""); return err },
		"mirror: Months: the Store is nil":      func() error { _, err := mirror.Months(ctx, nil, mirror.Query{}); return err },
		"sqlstore: the database is nil":         func() error { _, err := sqlstore.Open(ctx, nil, sqlstore.SQLite); return err },
		"publish: Publisher.Output must be set": func() error { return (&publish.Publisher{}).Append(ctx) },
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
		"publish: Handler.FS must be set":                        func() error { return logged(func(l *slog.Logger) { _ = asked(&publish.Handler{Logger: l}) }) },
		"publish: Pages.Older must be set":                       func() error { return logged(func(l *slog.Logger) { _ = asked(&publish.Pages{Logger: l}) }) },
		"modifiedrange: Handler.Query must be set":               func() error { return logged(func(l *slog.Logger) { _ = asked(&modifiedrange.Handler{Logger: l}) }) },
		"datareplication: Handler.FS must be set":                func() error { return logged(func(l *slog.Logger) { _ = asked(&datareplication.Handler{Logger: l}) }) },
		"datareplication: Producer.Output must be set":           func() error { return (&datareplication.Producer{}).Append(ctx) },
		"atompmh: Producer.Output and Producer.Pool must be set": func() error { return (&atompmh.Producer{}).Update(ctx) },
		"conformance: Run: the Reader is nil":                    func() error { _, err := suite.Run(ctx, nil, nil, nil); return err },
		"fleet: Worker.Database must be set":                     func() error { return (&fleet.Worker{}).Run(ctx) },
		"s3: Output.Client and Output.Bucket must be set":        func() error { _, err := (&s3.Output{}).Lock(ctx); return err },
		"handover: Handover.Reader and Handover.Store must be set": func() error {
			_, err := (&handover.Handover{}).Run(ctx, "", handover.ReaderFeed{})
			return err
		},
	} {
		require.ErrorContains(t, use(), want)
	}
}
