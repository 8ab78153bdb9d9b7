package republish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
	"github.com/feedhistory/feedhistory/mirror"
)

// Slices of a feed's history are for readers that refuse large documents. Each slice is
// a feed with the entries of a period.

// A Slice is a part of a feed: the entries from one time until before another.
type Slice struct {
	Since, Until time.Time // zero means from the beginning, or without an end
	Entries      int       // number of entries
	Bytes        int64     // approximate size of its document
}

// String returns the name of the slice.
func (s Slice) String() string { return sliceTitle(s.Since, s.Until) }

// Query returns the query of the slice's URL, without a question mark.
func (s Slice) Query() string { return sliceQuery(s.Since, s.Until) }

func sliceTitle(since, until time.Time) string {
	switch {
	case since.IsZero() && until.IsZero():
		return "from its beginning"
	case since.IsZero():
		return "until " + day(until.Add(-1))
	case until.IsZero():
		return "since " + day(since)
	}
	return day(since) + " – " + day(until.Add(-1))
}

func sliceQuery(since, until time.Time) string {
	q := url.Values{}
	if !since.IsZero() {
		q.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	if !until.IsZero() {
		q.Set("until", until.UTC().Format(time.RFC3339Nano))
	}
	return q.Encode()
}

// A Plan is a way to cut a feed into slices.
type Plan struct {
	Slices []Slice // oldest first
	Bytes  int64   // approximate size of one document with everything
}

// mostPlans is the minimum number of plans to keep.
const mostPlans = 32

// Slices cuts a feed into slices of at most a size in bytes, from its oldest entry on,
// so existing slices stay when the feed grows. Entries with the same time stay
// together, so a slice may be larger; with a size of zero, each time has its own. A
// negative size is an error. The error may be the context's.
func (h *Handler) Slices(ctx context.Context, feed *mirror.Feed, size int64) (Plan, error) {
	if err := cmp.Or(h.ready(), plain.Check("republish", plain.Number{Name: "Slices: the size", Value: size})); err != nil {
		return Plan{}, err
	}
	if feed == nil {
		return Plan{}, errors.New("republish: Handler.Slices: the Feed is nil")
	}
	return h.documents.slices(ctx, feed, size)
}

func (d *documents) slices(ctx context.Context, feed *mirror.Feed, size int64) (Plan, error) {
	key := tagOf(d.base, feed, "slices "+strconv.FormatInt(size, 10))
	if p, ok := d.plans.Get(key); ok {
		return p, nil
	}
	whole := &part{feed: feed, format: feedhistory.Atom, title: "x"}
	m, err := d.source(whole)
	if err != nil {
		return Plan{}, err
	}
	frame, err := d.document(ctx, whole, d.lost(feed))
	if err != nil {
		return Plan{}, err
	}
	empty := counter{w: io.Discard}
	if err := feedhistory.WriteAtom(&empty, frame); err != nil {
		return Plan{}, err
	}
	var groups []Slice // one group for each time, newest first
	for record, err := range d.store.Entries(ctx, mirror.Query{Feed: feed.URL}) {
		if err != nil {
			return Plan{}, err
		}
		e, err := m.entry(record)
		if err != nil {
			continue // no document has it; each says so
		}
		if n := len(groups); n == 0 || !groups[n-1].Since.Equal(record.Time()) {
			groups = append(groups, Slice{Since: record.Time()})
		}
		last := &groups[len(groups)-1]
		last.Entries++
		last.Bytes += int64(len(e.XML())) + 1
	}
	overhead := empty.n + 1000 // addresses and titles differ
	p := cut(groups, size, overhead)
	d.plans.Put(key, p)
	return p, nil
}

// cut joins groups of entries, newest first, into slices, oldest first.
func cut(groups []Slice, most, overhead int64) (p Plan) {
	for i := len(groups) - 1; i >= 0; i-- {
		g := groups[i]
		p.Bytes += g.Bytes
		n := len(p.Slices)
		if n == 0 || p.Slices[n-1].Bytes+g.Bytes > most {
			if n > 0 {
				p.Slices[n-1].Until = g.Since
			}
			next := Slice{Since: g.Since, Bytes: overhead}
			if n == 0 {
				next.Since = time.Time{}
			}
			p.Slices = append(p.Slices, next)
			n++
		}
		p.Slices[n-1].Entries += g.Entries
		p.Slices[n-1].Bytes += g.Bytes
	}
	p.Bytes += overhead
	return p
}

// serveSlice answers with a slice.
func (h *Handler) serveSlice(w http.ResponseWriter, r *http.Request, asked request) error {
	p := &part{feed: asked.feed, format: asked.format, query: mirror.Query{Feed: asked.feed.URL}}
	q := r.URL.Query()
	err := checkKeys(q, "since", "until")
	if err != nil {
		return wrongAddress(err.Error())
	}
	for _, bound := range []struct {
		name string
		time *time.Time
	}{{"since", &p.query.Since}, {"until", &p.query.Until}} {
		if !q.Has(bound.name) {
			continue
		}
		text := q.Get(bound.name)
		if *bound.time, err = parseMoment(text, time.UTC); err != nil {
			return wrongAddress(fmt.Sprintf("%s=%s: %v", bound.name, text, err))
		}
	}
	if !p.query.Until.IsZero() && !p.query.Since.Before(p.query.Until) {
		return wrongAddress("since= must be before until=")
	}
	p.title = sliceTitle(p.query.Since, p.query.Until)
	p.self = h.base() + "feeds/" + asked.name + "/slice." + p.format.String()
	if query := sliceQuery(p.query.Since, p.query.Until); query != "" {
		p.self += "?" + query
	}
	return h.documents.serve(w, r, p)
}

// parseMoment reads a time in RFC 3339, or a date, which means its beginning in
// a zone.
func parseMoment(text string, zone *time.Location) (time.Time, error) {
	t, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return t, fmt.Errorf("that is neither a date, such as 2026-12-01, nor a time, such as 2026-12-01T07:30:00Z")
	}
	if t.Year() < 1 || t.Year() > 9999 {
		return t, fmt.Errorf("that is out of range")
	}
	return t, nil
}

// wrongAddress returns the error of an address with invalid parameters.
func wrongAddress(why string) error {
	return &Error{http.StatusBadRequest, "this address is not valid: " + why, "The page of the feed makes valid addresses."}
}

func day(t time.Time) string { return t.UTC().Format("2 January 2006") }
