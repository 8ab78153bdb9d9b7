package backfill

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// An answer is the result of a request.
type answer struct {
	doc    *feedhistory.Document
	header http.Header
	err    error
}

// missing reports whether the server denies the existence of the document.
func (a answer) missing() bool {
	return feedhistory.IsStatus(a.err, http.StatusNotFound, http.StatusGone)
}

// failure returns the error of an answer, if the next answer may be different.
func (a answer) failure() error {
	status, refused := errors.AsType[*feedhistory.StatusError](a.err)
	_, noFeed := errors.AsType[*feedhistory.ParseError](a.err)
	_, strayed := errors.AsType[*feedhistory.Gap](a.err)
	if noFeed || strayed || refused && status.Status < http.StatusInternalServerError && status.Status != http.StatusTooManyRequests {
		return nil
	}
	return a.err
}

// gap returns the gap for an answer without a document.
func (a answer) gap(url, from string) *feedhistory.Gap {
	g := feedhistory.NewGap(url, a.err)
	g.From, g.Document = from, a.doc
	return g
}

// A source makes the requests of a method, each only once.
type source struct {
	ctx  context.Context
	c    *feedhistory.Client
	doc  *feedhistory.Document // the first document of the feed
	kept map[string]answer
	task *task
}

// given returns an error if an argument of a method's Walk or Probe is nil.
func given(c *feedhistory.Client, doc *feedhistory.Document, p *Probe) error {
	if c == nil || doc == nil || p == nil {
		return errors.New("backfill: Method: the Client, the Document or the Probe is nil")
	}
	return nil
}

func newSource(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) *source {
	if p.kept == nil {
		p.kept = map[string]answer{}
	}
	if p.task == nil {
		p.task = &task{}
	}
	return &source{ctx, c, doc, p.kept, p.task}
}

// keep returns the answer to a request, and keeps it for get.
func (s *source) keep(url string) answer {
	a, ok := s.kept[url]
	if !ok {
		a = s.request(url)
		s.kept[url] = a
	}
	return a
}

// get returns the answer to a request, a kept one if there is one.
func (s *source) get(url string) answer {
	if a, ok := s.kept[url]; ok {
		delete(s.kept, url)
		return a
	}
	return s.request(url)
}

func (s *source) request(url string) answer {
	doc, err := s.c.Get(s.ctx, url)
	a := answer{doc: doc, err: err}
	if doc != nil {
		a.header = doc.Header
	}
	if err == nil && s.c.Policy.SameOrigin && !iri.AreSameOrigin(doc.URL, s.doc.URL) {
		a.doc, a.err = nil, &feedhistory.Gap{
			URL: url, From: s.doc.URL, Reason: feedhistory.ReasonRefused,
			Err: &feedhistory.RefusedError{URL: doc.URL, Rule: feedhistory.RuleOrigin}, Found: doc.Response.Received,
		}
	}
	return a
}

// closing reads the first document again, and yields it if it has changed, because it
// contains the entries published during the walk.
func closing(ctx context.Context, c *feedhistory.Client, first *feedhistory.Document) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		doc, err := c.Poll(ctx, first.Response.Requested, first.Known())
		_, unchanged := errors.AsType[*feedhistory.Unchanged](err)
		switch {
		case unchanged:
		case err != nil:
			yield(nil, answer{doc: doc, err: err}.gap(first.URL, ""))
		case !yield(doc, nil):
		case len(first.Entries) > 0 && !ids(first.Entries).hasAny(doc.Entries):
			yield(nil, overrun(first.URL))
		}
	}
}

// overrun returns the gap of a feed in which more was published than fits into
// a document.
func overrun(url string) *feedhistory.Gap {
	g := feedhistory.NewGap(url, errors.New("more was published during the walk than one document shows"))
	g.Reason = feedhistory.ReasonMissedWindow
	return g
}

// A set is a set of IDs of entries.
type set map[string]bool

func ids(entries []*feedhistory.Entry) set {
	s := set{}
	s.add(entries)
	return s
}

// add adds entries, and returns how many of them are new.
func (s set) add(entries []*feedhistory.Entry) (fresh int) {
	for _, e := range entries {
		if !s[e.ID] {
			s[e.ID] = true
			fresh++
		}
	}
	return fresh
}

// and returns the IDs in the set, or known before.
func (s set) and(t *task, ids []string) map[string]bool {
	found := map[string]bool{}
	if t.has != nil {
		found = t.has(ids)
	}
	for _, id := range ids {
		found[id] = found[id] || s[id]
	}
	return found
}

func (s set) hasAny(entries []*feedhistory.Entry) bool {
	return slices.ContainsFunc(entries, func(e *feedhistory.Entry) bool { return s[e.ID] })
}

// list returns the IDs of entries in order.
func list(entries []*feedhistory.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.ID
	}
	return out
}

// with returns a URL with changed query parameters, given as name, value, …; an
// empty value removes the parameter. The rest of the URL stays.
func with(base string, params ...string) string {
	base, _, _ = strings.Cut(base, "#")
	path, query, _ := strings.Cut(base, "?")
	var kept []string
	for field := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(field, "="); field != "" && !slices.Contains(names(params), name) {
			kept = append(kept, field)
		}
	}
	for i := 0; i < len(params); i += 2 {
		if params[i+1] != "" {
			kept = append(kept, params[i]+"="+url.QueryEscape(params[i+1]))
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

// resolveWithQuery resolves a reference, and gives it the query of its base.
func resolveWithQuery(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return base
	}
	u, err := b.Parse(ref)
	if err != nil {
		return base
	}
	u.RawQuery = b.RawQuery
	return u.String()
}

func names(params []string) (out []string) {
	for i := 0; i < len(params); i += 2 {
		out = append(out, params[i])
	}
	return out
}
