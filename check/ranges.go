package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A rangeWalker checks a collection served by ranges of modification times. It asks for
// part after part, as a harvester does, and again for both halves of each: they may bring
// nothing new, because a harvester does not ask for them.
type rangeWalker struct {
	*Chain
	findingList
	ctx    context.Context
	client *feedhistory.Client
	url    string
	most   int // maximum number of requests

	seen     map[rangeItem]bool
	began    time.Time // items modified from then on are the next harvest's
	unvaried tally
	unnamed  tally
}

// A rangeItem is an item in one state.
type rangeItem struct {
	id      string
	deleted bool
	at      time.Time
}

// A timeRange is a half-open interval; a side with a zero time is open.
type timeRange struct{ start, end time.Time }

// String returns the range in the form of a Modified-Range field.
func (r timeRange) String() string {
	side := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return stamp(t)
	}
	return side(r.start) + "/" + side(r.end)
}

func (r timeRange) contains(t time.Time) bool {
	return !t.Before(r.start) && (r.end.IsZero() || t.Before(r.end))
}

// A rangeAnswer is the answer to a request for a range.
type rangeAnswer struct {
	span  timeRange
	whole bool        // the status says that all of the range is there
	items []rangeItem // the most recently modified first
	doc   *feedhistory.Document
}

// walkRanges is Check for a collection served by ranges.
func (c *Chain) walkRanges(ctx context.Context, client *feedhistory.Client, url string, yield func(Finding, error) bool) {
	w := &rangeWalker{
		Chain: c, ctx: ctx, client: client, url: url, most: cmp.Or(client.Budget.Documents, 10_000), seen: map[rangeItem]bool{},
	}
	span := timeRange{}
	w.steps(yield, func() (more bool, err error) {
		if span, more, err = w.part(span); !more {
			w.tally("mr-vary-missing", w.unvaried, w.documents, "no Vary: Modified-Range")
			w.tally("mr-range-unnamed", w.unnamed, w.documents, "no Modified-Range")
		}
		return more, err
	})
}

// part checks the part of a range the server sends, and returns the rest of the range, if
// there is more to ask for. The error is the context's, or from the first request.
func (w *rangeWalker) part(span timeRange) (rest timeRange, more bool, err error) {
	a, err := w.ask(span)
	if a == nil || err != nil {
		return span, false, err
	}
	for _, f := range Document(a.doc, nil, RFC5005) {
		if f.Level == Error {
			w.keep(f)
		}
	}
	if len(a.items) == 0 {
		if !a.whole {
			w.raise("mr-part-not-newest", w.url, "of the range %s the server sends a part without items", span)
		}
		return span, false, nil
	}
	for _, item := range a.items {
		w.seen[item] = true
	}
	oldest, middle := a.items[len(a.items)-1].at, a.items[len(a.items)/2].at
	halves := []timeRange{{start: middle, end: span.end}, {start: oldest, end: middle}}
	rest = timeRange{end: oldest}
	if a.whole {
		halves = append(halves, rest)
	} else if !span.end.IsZero() && !oldest.Before(span.end) { // the server takes the end to be part of the range
		rest.end = span.end.Add(-time.Nanosecond)
	}
	for _, half := range halves {
		if ok, err := w.again(a, oldest, half); !ok || err != nil {
			return rest, false, err
		}
	}
	return rest, !a.whole, nil
}

// again asks for a range whose items an answer should have had, and reports whether the walk
// can continue.
func (w *rangeWalker) again(a *rangeAnswer, oldest time.Time, span timeRange) (ok bool, err error) {
	if !span.end.IsZero() && !span.start.Before(span.end) {
		return true, nil
	}
	b, err := w.ask(span)
	if b == nil || err != nil {
		return false, err
	}
	for _, item := range b.items {
		code := "mr-group-cut"
		switch {
		case w.seen[item] || !item.at.Before(w.began) || !span.contains(item.at):
			continue
		case a.whole:
			code = "mr-200-partial"
		case item.at.After(oldest):
			code = "mr-part-not-newest"
		}
		w.seen[item] = true
		w.raise(code, w.url, "the answer to %s has items down to %s, but not %s of %s, which comes with %s",
			a.span, stamp(oldest), clip(item.id), stamp(item.at), span)
	}
	// A server that sends the newest items leaves out none but those of that time.
	if n := len(b.items); n > 0 && !b.whole && b.items[n-1].at.Equal(span.start) && w.count["mr-part-not-newest"] == 0 {
		w.raise("mr-group-cut", w.url, "of the range %s the server sends a part, which cuts through the items of %s", span, stamp(span.start))
	}
	return true, nil
}

// ask requests a range. The answer is nil if the walk cannot continue.
func (w *rangeWalker) ask(span timeRange) (*rangeAnswer, error) {
	if w.documents >= w.most {
		w.raise("walk-cut-short", w.url, "the collection needs more than %d requests", w.most)
		return nil, nil
	}
	w.documents++
	text, resp, err := settings.Read(w.ctx, w.client, w.url, http.Header{
		"Accept": {"application/atom+xml, application/rss+xml, application/feed+json, */*;q=0.5"}, "Modified-Range": {span.String()},
	})
	if resp == nil {
		return nil, w.refused(span, err)
	}
	if !slices.ContainsFunc(resp.Header.Values("Vary"), func(v string) bool { return v == "*" || strings.Contains(strings.ToLower(v), "modified-range") }) {
		w.unvaried.add(w.url)
	}
	if resp.Header.Get("Modified-Range") == "" {
		w.unnamed.add(w.url)
	}
	a := &rangeAnswer{span: span, whole: resp.StatusCode == http.StatusOK}
	date, _ := http.ParseTime(resp.Header.Get("Date"))
	if err == nil {
		a.doc, err = feedhistory.Parser{MaxBytes: w.client.MaxBytes, Header: resp.Header}.Parse(bytes.NewReader(text), resp.Request.URL.String())
	}
	if err != nil {
		return nil, w.refused(span, err)
	}
	w.items(a)
	if w.documents == 1 {
		if w.began = date; date.IsZero() && len(a.items) > 0 {
			w.began = a.items[0].at
		}
	}
	if n := w.outside(a); n > 0 {
		w.raise("mr-outside-range", w.url, "asked for %s, the server sends %d of %d items from outside, such as %s of %s",
			span, n, len(a.items), clip(a.items[0].id), stamp(a.items[0].at))
		return nil, nil
	}
	return a, nil
}

// refused reports a range the server does not answer. The error is the context's, or that of
// the first request.
func (w *rangeWalker) refused(span timeRange, err error) error {
	answer, ok := errors.AsType[*feedhistory.FetchError](err)
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case w.documents == 1:
		return err
	case ok && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestedRangeNotSatisfiable, http.StatusNotImplemented}, answer.Status):
		w.raise("mr-range-refused", w.url, "asked for %s, %s", span, reasonText(err))
	default:
		w.keep(failure(err, w.url))
	}
	return nil
}

// items reads the items of an answer's document.
func (w *rangeWalker) items(a *rangeAnswer) {
	read := func(id string, deleted bool, at time.Time) {
		if at.IsZero() {
			w.raise("mr-stamp-missing", w.url, "item %s does not say when it was modified", clip(id))
			return
		}
		a.items = append(a.items, rangeItem{id, deleted, at.UTC()})
	}
	for _, e := range a.doc.Entries {
		at, is := feedtime.StampOf(e.XML())
		if !is {
			at = e.Updated
		}
		read(e.ID, false, at)
	}
	for _, t := range a.doc.Deleted {
		read(t.Ref, true, t.When)
	}
	slices.SortStableFunc(a.items, func(a, b rangeItem) int { return b.at.Compare(a.at) })
}

// outside returns the number of items outside of the range. Servers may store fractions of a
// second and not write them, or take the end to be part of the range; but not of all items.
func (w *rangeWalker) outside(a *rangeAnswer) (n int) {
	past := 0
	for _, item := range a.items {
		after := !a.span.end.IsZero() && item.at.After(a.span.end)
		if after {
			past++
		}
		if item.at.Before(a.span.start.Add(-time.Second)) || after && item.at.After(a.span.end.Add(time.Second)) {
			n++
		}
	}
	if past == len(a.items) {
		return past
	}
	return n
}
