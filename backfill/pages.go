package backfill

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Name returns the platform's label.
func (p platform) Name() string { return p.Label }

// Recognise looks for the signs of the platform in a plain feed.
func (p platform) Recognise(doc *feedhistory.Document) Sign {
	if doc == nil || doc.Kind() != feedhistory.KindPlain || p.Generator == "" && p.Namespace == "" && p.Entry == nil && p.URL == nil ||
		p.URL != nil && !p.URL.MatchString(doc.URL) {
		return No
	}
	h := readHead(doc)
	if p.Generator != "" && !hasPrefixFold(h.generator, p.Generator) ||
		p.Namespace != "" && !slices.Contains(h.namespaces, p.Namespace) {
		return No
	}
	strange := func(e *feedhistory.Entry) bool { return !p.Entry.MatchString(e.ID) }
	if p.Entry != nil && (len(doc.Entries) == 0 || slices.ContainsFunc(doc.Entries, strange)) {
		return No
	}
	return Yes
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// Probe requests one page.
func (p platform) Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, probe *Probe) (bool, error) {
	s, err := newSource(ctx, c, doc, probe)
	if err != nil {
		return false, err
	}
	works := false
	if p.Page != "" {
		works, err = p.series(s).works()
	}
	if !works && err == nil {
		probe.Reason = "it seems to be made by " + p.Label + ", but another page brings nothing else"
		if p.Only != "" {
			probe.Reason += "; only these have pages: " + p.Only
		}
	}
	return works, err
}

// Documents yields the pages after the first, and then the first again if it has
// changed.
func (p platform) Documents(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, probe *Probe) iter.Seq2[*feedhistory.Document, error] {
	return walked(ctx, c, doc, probe, func(s *source, yield func(*feedhistory.Document, error) bool) { p.series(s).walk(yield) })
}

func (p platform) series(s *source) *series {
	if p.List != nil {
		list := *p.List
		list.by, s.listing = p.Label, &list
	}
	return &series{
		progress: progress{source: s}, ending: p.End, n: p.First, apart: strings.Contains(p.Page, "{count}"), url: p.pageURL,
		cursor: strings.Contains(p.Page, "{last}") || strings.Contains(p.Page, "{before}"),
	}
}

// pageURL returns the URL of a page.
func (p platform) pageURL(s *series) string {
	last := ""
	if p.Entry != nil && s.last != nil {
		if m := p.Entry.FindStringSubmatch(s.last.ID); len(m) > 1 {
			last = m[1]
		}
	}
	before := ""
	if s.last != nil && !s.last.Published.IsZero() {
		at := s.last.Published
		if s.n == s.first {
			at = at.Add(time.Second) // the feed's times are in seconds, and the list should have its last entry
		}
		before = strconv.FormatInt(at.UnixMilli(), 10)
	}
	fill := strings.NewReplacer("{n}", strconv.Itoa(s.n), "{last}", last, "{before}", before, "{count}", strconv.Itoa(s.count)).Replace
	if strings.HasPrefix(p.Page, "/") {
		return iri.Resolve(s.doc.URL, fill(p.Page))
	}
	if query, ok := strings.CutPrefix(p.Page, "?"); ok {
		var params []string
		for param := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(param, "=")
			params = append(params, name, fill(value))
		}
		return with(s.doc.URL, params...)
	}
	return resolveWithQuery(s.doc.URL, fill(p.Page))
}

// errNothing means a server sends pages without end.
var errNothing = errors.New("the server repeats itself: its pages bring nothing new")

// repeating returns the gap for a server that sends the same page over and over.
func repeating(url string, reason feedhistory.Reason) *feedhistory.Gap {
	return newGap(url, "", reason, errNothing)
}

// A progress is how far a walk over a feed's pages has come.
type progress struct {
	*source
	seen     set
	barren   int   // pages in succession without new entries
	failed   place // the place of the first unreadable page
	lastFail int   // the number of the last such page
}

// add counts the entries of a page.
func (p *progress) add(entries []*feedhistory.Entry) {
	if p.barren++; p.seen.add(entries) > 0 {
		p.barren = 0
	}
}

// isBarren reports whether too many pages in succession brought nothing new.
func (p *progress) isBarren() bool { return p.barren >= chain.MostBarren }

// has returns the IDs whose entries have come, in this walk or before.
func (p *progress) has(ids []string) map[string]bool {
	found := map[string]bool{}
	if p.task.has != nil {
		found = p.task.has(ids)
	}
	for _, id := range ids {
		found[id] = found[id] || p.seen[id]
	}
	return found
}

// come records the place of the next page, unless an earlier page has failed.
func (p *progress) come(to place) {
	if !p.failed.begun() {
		p.task.place = to
	}
}

// fail records that page n, at a place, could not be read; the next walk continues there.
func (p *progress) fail(at place, n int) {
	if !p.failed.begun() {
		p.failed = at
	}
	p.lastFail = n
	p.task.place = p.failed
}

// end makes the next walk read the pages from the first that failed to the last, if any.
func (p *progress) end() {
	if p.failed.begun() {
		p.failed.Until = p.lastFail
		p.task.place = p.failed
	}
}

// A series is a walk over pages, newest first. A page is requested by a number,
// or by the last entry of the previous page.
//
// Entries published meanwhile move others to later pages, so some come twice. At the
// end the first page is read again for the new ones. A withdrawn entry moves others to
// pages already read, which goes unnoticed.
type series struct {
	progress
	ending pageEnd
	cursor bool                 // whether there is no way past an unreadable page
	url    func(*series) string // returns the URL of page n

	apart bool // whether the feed's own document is in a different order

	first  int                // the number of the page after the feed's own document
	n      int                // the number of the current page
	most   int                // the number of entries of the largest page so far
	count  int                // the number of all entries so far
	last   *feedhistory.Entry // the last of these entries
	before []string           // the IDs of the previous page
	again  bool               // whether the page was the same as the one before it
	until  int                // the walk may end after this page when it reaches known entries
}

func (s *series) begin() {
	s.seen = set{}
	s.note(s.doc)
	if s.apart {
		s.count, s.most, s.last, s.before = 0, 0, nil, nil
	}
	s.n++
	s.first = s.n
	s.until = s.task.place.Until
	if at := s.task.place; at.Page > 0 || at.Entries > 0 {
		s.n, s.count, s.before = max(at.Page, s.n), at.Entries, nil
		s.last = &feedhistory.Entry{ID: at.Last, Published: time.UnixMilli(at.At)}
	} else if s.task.refill {
		s.until = max(s.n-1, 1)
	}
	s.failed, s.lastFail = place{}, 0
}

// here returns the place of the current page.
func (s *series) here() place {
	at := place{Page: s.n, Until: s.until, Entries: s.count}
	if s.last != nil {
		if at.Last = s.last.ID; s.listing != nil {
			at.At = s.last.Published.UnixMilli()
		}
	}
	return at
}

// note processes a page.
func (s *series) note(doc *feedhistory.Document) {
	s.before = list(doc.Entries)
	s.count += len(doc.Entries)
	s.most = max(s.most, len(doc.Entries))
	if n := len(doc.Entries); n > 0 {
		s.last = doc.Entries[n-1]
	}
	s.add(doc.Entries)
}

// works reports whether the server supports the parameter. A feed with only one
// page looks the same as one whose server does not.
func (s *series) works() (bool, error) {
	s.begin()
	a := s.keep(s.url(s))
	named := a.err == nil && (s.listing == nil || s.seen.hasAny(a.doc.Entries)) // by the IDs of the feed
	return named && s.seen.add(a.doc.Entries) > 0, a.failure()
}

// walk reads the pages from where an earlier walk ended.
func (s *series) walk(yield func(*feedhistory.Document, error) bool) {
	s.begin()
	switch s.pages(yield) {
	case left:
		return
	case reached:
		s.task.place = place{}
		s.end()
	case broken:
		s.task.place = s.failed
	case hopeless:
		s.task.place = place{}
	}
	closing(s.ctx, s.c, s.doc)(func(doc *feedhistory.Document, err error) bool {
		gap, _ := errors.AsType[*feedhistory.Gap](err)
		if gap != nil && gap.Reason != feedhistory.ReasonMissedWindow && !s.task.place.begun() {
			s.task.place = place{Page: s.first, Until: s.first} // only this once more
		}
		return yield(doc, err)
	})
}

// An outcome is how a walk over pages ended.
type outcome uint8

const (
	left     outcome = iota // the caller has stopped
	reached                 // at the last page, or at known entries
	broken                  // at unreadable pages
	hopeless                // at a server that repeats itself
)

func (s *series) pages(yield func(*feedhistory.Document, error) bool) outcome {
	failed := false // whether the previous page failed
	for ; ; s.n++ {
		url := s.url(s)
		a := s.get(url)
		if a.missing() || a.err == nil && s.ending == atEmpty && len(a.doc.Entries) == 0 {
			return reached
		}
		if a.err != nil {
			if s.fail(s.here(), s.n); !yield(nil, a.gap(url, s.doc.URL)) {
				return left
			}
			if failed || s.cursor || s.ending == atOnce {
				return broken
			}
			failed = true
			continue
		}
		failed = false
		again, stuck := s.repeats(a.doc)
		if stuck && again && s.isLast(a.doc) {
			return reached
		}
		if stuck {
			reason := feedhistory.ReasonBarren
			if again {
				reason = feedhistory.ReasonLoop
			}
			if !yield(nil, repeating(url, reason)) {
				return left
			}
			return hopeless
		}
		if !s.take(a.doc, again, yield) {
			return left
		}
		switch meets := s.until > 0 && s.task.overlaps(a.doc.Entries); {
		case meets && s.n > s.until:
			return reached
		case s.ending == atOnce && s.task.refill && !meets:
			yield(nil, overrun(url))
			return hopeless
		case s.ending == atOnce:
			return reached
		}
	}
}

// take yields a page, unless it equals the previous one.
func (s *series) take(doc *feedhistory.Document, again bool, yield func(*feedhistory.Document, error) bool) bool {
	s.note(doc)
	next := s.here()
	next.Page++
	s.come(next)
	return again || yield(doc, nil)
}

// isLast reports whether a page is the end of a list by offset: it is shorter than another.
// Each new entry moves the list's end behind the offset after it, so the same page may come
// again and again. A server that ignores or bounds the offset repeats a page that is full.
func (s *series) isLast(page *feedhistory.Document) bool {
	return s.apart && len(page.Entries) < s.most
}

// repeats reports whether a page equals the previous one, and whether the server is stuck:
// this has happened twice, or too many pages have brought nothing new. It may happen once, to
// a page of one entry moved by a new one.
func (s *series) repeats(doc *feedhistory.Document) (again, stuck bool) {
	again = len(s.before) > 0 && slices.Equal(s.before, list(doc.Entries))
	stuck = again && s.again || s.isBarren()
	s.again = again
	return again, stuck
}
