// Command nilcalls calls each exported function and method with nil where it takes a
// pointer, an interface, a func, a map or a slice, and prints the panics without a message.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/republish"
)

// A call is an exported function, or a method with its receiver as the first argument.
type call struct {
	name     string
	function any
	method   bool
	mayBeNil bool // whether the receiver may be nil
}

func main() {
	bad := 0
	for _, c := range calls {
		if c.method && made[reflect.TypeOf(c.function).In(0).Elem().String()] {
			continue
		}
		for _, nils := range variants(reflect.TypeOf(c.function), c.method && !c.mayBeNil) {
			if fault := try(c, nils); fault != "" {
				bad++
				fmt.Println(fault)
			}
		}
	}
	fmt.Println(len(calls), "functions,", bad, "panics")
	if bad > 0 {
		os.Exit(1)
	}
}

// standard are types of the standard library, whose own functions panic for a nil.
var standard = map[reflect.Type]bool{
	reflect.TypeFor[context.Context](): true, reflect.TypeFor[io.Writer](): true, reflect.TypeFor[http.ResponseWriter](): true,
	reflect.TypeFor[*http.Request](): true, reflect.TypeFor[*http.Response](): true, reflect.TypeFor[*http.ServeMux](): true,
}

// made are types whose zero value is of no use: their comments name the function to call.
var made = map[string]bool{
	"compose.Writer": true, "backfill.Attempt": true, "backfill.Recovery": true, "atompmh.Harvest": true,
	"datareplication.Harvest": true, "modifiedrange.Harvest": true, "fleet.Database": true, "sqlstore.Store": true, "suite.Server": true,
}

// variants returns the sets of parameters to be nil: none, each alone, and all, but for a
// receiver.
func variants(t reflect.Type, receiver bool) (sets []map[int]bool) {
	all := map[int]bool{}
	sets = append(sets, map[int]bool{})
	for i := range t.NumIn() {
		if receiver && i == 0 {
			continue
		}
		switch t.In(i).Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Map, reflect.Slice:
			if !standard[t.In(i)] {
				sets = append(sets, map[int]bool{i: true})
				all[i] = true
			}
		}
	}
	return append(sets, all)
}

// try makes a call, and returns a description of a panic without a message.
func try(c call, nils map[int]bool) (fault string) {
	f := reflect.ValueOf(c.function)
	for _, ready := range []bool{false, true} {
		func() {
			defer func() {
				r := recover()
				if _, ok := r.(runtime.Error); ok {
					fault = fmt.Sprintf("%s, nil %v, ready %v: %v\n%s", c.name, nils, ready, r, where())
				}
			}()
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			args := make([]reflect.Value, f.Type().NumIn())
			for i := range args {
				t := f.Type().In(i)
				args[i] = reflect.Zero(t)
				if nils[i] && t.Kind() == reflect.Slice { // and a nil in it
					args[i] = reflect.MakeSlice(t, 1, 1)
				}
				if !nils[i] {
					args[i] = value(t, ctx, ready)
				}
			}
			var out []reflect.Value
			if f.Type().IsVariadic() {
				out = f.CallSlice(args)
			} else {
				out = f.Call(args)
			}
			for _, o := range out {
				consume(o)
			}
		}()
		if fault != "" {
			return fault
		}
	}
	return ""
}

// where returns the lines of this project's code in which the panic began.
func where() string {
	var lines []string
	for line := range strings.Lines(string(debug.Stack())) {
		if strings.Contains(line, "feedhistory/feedhistory") && strings.HasPrefix(line, "\t") || strings.Contains(line, ".go:") && strings.Contains(line, "/api/") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[:min(4, len(lines))], "")
}

// consume ranges over a sequence.
func consume(v reflect.Value) {
	if v.Kind() == reflect.Func && !v.IsNil() && v.Type().CanSeq2() {
		n := 0
		for range v.Seq2() {
			if n++; n > 3 {
				return
			}
		}
	}
}

// values are the arguments of types that need more than their zero value.
func values(ctx context.Context, ready bool) []any {
	store := mirror.NewMemory()
	_ = store.Commit(context.Background(), &mirror.Commit{Feed: mirror.NewFeed("https://example.org/")})
	m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{Tries: 1}}
	list := []any{errors.New("an error"), &http.Response{Header: http.Header{}, Body: http.NoBody, Request: httptest.NewRequest("GET", "http://example.org/", nil)},
		httptest.NewRequest("GET", "http://example.org/", nil), http.NewServeMux()}
	if ready {
		out := &publish.MemoryOutput{}
		list = append(list, m, &mirror.Poller{Mirror: m}, &mirror.Recall{Mirror: m, Name: "x"},
			mirror.NewFeed("https://example.org/"), &publish.Publisher{Output: out, Base: "https://example.org/"}, &publish.Handler{FS: out},
			&republish.Handler{Store: store, Output: out}, &atompmh.Harvester{URL: "x:"}, &modifiedrange.Harvester{URL: "x:"}, &feedhistory.Document{Format: feedhistory.FormatAtom})
	}
	return list
}

// value returns an argument of a type.
func value(t reflect.Type, ctx context.Context, ready bool) reflect.Value {
	interfaces := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): ctx, reflect.TypeFor[io.Writer](): io.Discard, reflect.TypeFor[io.Reader](): strings.NewReader(""),
		reflect.TypeFor[mirror.Store](): mirror.NewMemory(), reflect.TypeFor[publish.Output](): &publish.MemoryOutput{},
		reflect.TypeFor[http.ResponseWriter](): httptest.NewRecorder(),
	}
	if v, ok := interfaces[t]; ok {
		return reflect.ValueOf(v)
	}
	for _, v := range values(ctx, ready) {
		if reflect.TypeOf(v) == t || t.Kind() == reflect.Interface && t.NumMethod() > 0 && reflect.TypeOf(v).Implements(t) {
			return reflect.ValueOf(v)
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return reflect.New(t.Elem())
	case reflect.Func:
		if t == reflect.TypeFor[iter.Seq2[*feedhistory.Document, error]]() {
			return reflect.ValueOf(iter.Seq2[*feedhistory.Document, error](func(func(*feedhistory.Document, error) bool) {}))
		}
		return reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
			out := make([]reflect.Value, t.NumOut())
			for i := range out {
				out[i] = reflect.Zero(t.Out(i))
			}
			return out
		})
	case reflect.Map:
		return reflect.MakeMap(t)
	}
	return reflect.Zero(t)
}
