package backfill

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/feedhistory/feedhistory"
)

// A run is one range over a walk's documents. It sets limits to methods.
type run struct {
	*Walk
	http   *feedhistory.Client
	yield  func(*feedhistory.Document, error) bool
	budget feedhistory.Budget
	used   feedhistory.Budget
	first  *feedhistory.Document

	task    *task
	reached place // the place of the last document yielded
}

// withDefaults replaces zero fields by the defaults of feedhistory.Budget.
func withDefaults(b feedhistory.Budget) feedhistory.Budget {
	b.Documents, b.Bytes, b.Barren = cmp.Or(b.Documents, 10_000), cmp.Or(b.Bytes, 1<<30), cmp.Or(b.Barren, 20)
	return b
}

// run follows the feed's own links, and then uses a method if there are none.
func (r *run) run() {
	var method Method
	gap := false
	for doc, err := range r.http.Walk(r.ctx, r.url, r.opt) {
		r.count(doc)
		if !r.yield(doc, err) {
			return
		}
		if err != nil {
			gap = true
		} else if r.first == nil {
			r.first = doc
			if method, err = r.method(doc); err != nil {
				r.yield(nil, err)
				return
			}
			if method != nil {
				r.by = method.Name()
				break
			}
		}
	}
	switch {
	case r.first == nil:
	case method != nil:
		r.pass(method)
	case r.first.Kind() == feedhistory.Paged && !gap:
		for doc, err := range closing(r.ctx, r.http, r.first) {
			if !r.hand(doc, err) {
				return
			}
		}
	}
}

// method returns the method to use; nil if there is none. It probes the methods
// unless the result is stored.
func (r *run) method(doc *feedhistory.Document) (Method, error) {
	sure, maybe := r.b.Candidates(doc)
	candidates := append(sure, maybe...)
	for _, m := range candidates {
		_, archive := m.(Memento) // None does not cover archives
		if m.Name() == r.probe.Method || archive && r.probe.Method == None {
			return m, nil
		}
	}
	if r.probe.Method == None {
		return nil, nil
	}
	t := &task{has: r.task.has}
	r.probe, *r.task, r.reached = Probe{}, *t, place{}
	unknown, reason := doc.Kind() != feedhistory.Plain, ""
	for _, m := range candidates {
		p := Probe{Method: m.Name(), task: r.task}
		works, err := m.Probe(r.ctx, r.http, doc, &p)
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		r.log("probed", "method", m.Name(), "works", works, "error", err)
		if works {
			r.probe = p
			return m, nil
		}
		unknown, reason = unknown || err != nil, cmp.Or(reason, p.Reason)
	}
	if !unknown {
		r.probe.Method, r.probe.Reason = None, reason
	}
	return nil, nil
}

func (r *run) pass(m Method) {
	if r.task.state == ended {
		r.task.state = unended
	}
	if !r.read(r.first) {
		return
	}
	for doc, err := range m.Walk(r.ctx, r.http, r.first, &r.probe) {
		if doc != nil && err == nil {
			r.recovered = m.Name()
		}
		if !r.hand(doc, err) {
			return
		}
	}
	if !r.task.place.begun() && r.task.state == unended {
		r.task.state = ended
	}
}

// hand yields a method's document or error, within the budget, and reports whether the
// method may continue. If it may not, its place is the place of the last document
// yielded.
func (r *run) hand(doc *feedhistory.Document, err error) bool {
	if r.ctx.Err() != nil {
		r.task.place = r.reached
		r.yield(nil, r.ctx.Err())
		return false
	}
	if err != nil {
		gap, ok := errors.AsType[*feedhistory.Gap](err)
		if !ok {
			gap = feedhistory.NewGap(r.first.URL, err)
		}
		r.reached = r.task.place
		return r.yield(nil, gap)
	}
	if !r.affordable() {
		r.task.place = r.reached
		r.yield(nil, &feedhistory.Gap{
			URL: doc.Response.Requested, From: r.first.URL, Reason: feedhistory.ReasonBudget,
			Err: fmt.Errorf("spent: %d of %d documents, %d of %d bytes",
				r.used.Documents, r.budget.Documents, r.used.Bytes, r.budget.Bytes),
			Found: doc.Response.Received,
		})
		return false
	}
	r.count(doc)
	r.reached = r.task.place
	return r.yield(doc, nil) && r.read(doc)
}

// read yields the gaps within a yielded document.
func (r *run) read(doc *feedhistory.Document) bool {
	for _, gap := range doc.Missing(feedhistory.Complete) {
		if !r.yield(nil, gap) {
			return false
		}
	}
	return true
}

func (r *run) count(doc *feedhistory.Document) {
	if doc != nil {
		r.used.Documents++
		r.used.Bytes += int64(len(doc.Text()))
	}
}

func (r *run) affordable() bool {
	spent := func() bool {
		return r.used.Documents >= r.budget.Documents || r.used.Bytes >= r.budget.Bytes
	}
	if spent() && r.budget.More != nil {
		if larger, ok := r.budget.More(r.used); ok {
			larger.More = r.budget.More
			r.budget = withDefaults(larger)
		}
	}
	return !spent()
}

func (r *run) log(msg string, args ...any) {
	if r.http.Logger != nil {
		r.http.Logger.InfoContext(r.ctx, msg, args...)
	}
}
