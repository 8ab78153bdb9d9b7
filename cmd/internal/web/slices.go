package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Slices of a feed's history are for readers that refuse large documents. Each
// slice is a feed with the entries of a period.

// The limits for the size of slices, in MB (a million bytes).
const (
	leastSlice = 1
	mostSlice  = 50
)

// A slice is a part of a feed: the entries from one time until before another.
type slice struct {
	Since, Until time.Time // zero means from the beginning, or without an end
	Entries      int
	Bytes        int64
	Query        string // the query of its URL
}

// Large reports whether a slice is larger than it should be, which happens
// because entries with the same time stay together.
func (s slice) Large(size int) bool { return s.Bytes > int64(size)*1e6 }

// MB returns its size, rounded up.
func (s slice) MB() string {
	return strconv.FormatFloat(float64((s.Bytes+99_999)/100_000)/10, 'f', 1, 64)
}

// Says returns the name of the slice.
func (s slice) Says() string { return sliceTitle(s.Since, s.Until) }

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

// A plan is a way to cut a feed into slices.
type plan struct {
	slices []slice
	all    int64 // size of everything in bytes
}

// slicesOf cuts a feed into slices of at most size MB each, from its oldest
// entry on, so that existing slices stay when the feed grows. Entries with the
// same time stay together.
func (s *Server) slicesOf(ctx context.Context, feed *mirror.Feed, size int) (plan, error) {
	key := s.tagOf(feed, "slices "+strconv.Itoa(size))
	if p, ok := s.plans.get(key); ok {
		return p, nil
	}
	head, err := heading(feed, feedhistory.Atom, false)
	if err != nil {
		return plan{}, err
	}
	before, after, err := s.partHead(ctx, &part{feed: feed, format: feedhistory.Atom, title: "x"})
	if err != nil {
		return plan{}, err
	}
	overhead := int64(len(before)+len(after)) + 1000 // addresses and titles differ
	m := newSource(feed, head, feedhistory.Atom)
	var groups []slice // one group for each time, newest first
	for record, err := range s.store.Entries(ctx, mirror.Query{Feed: feed.URL}) {
		if err != nil {
			return plan{}, err
		}
		e, err := m.entry(record)
		if err != nil {
			continue // it is not published either
		}
		if n := len(groups); n == 0 || !groups[n-1].Since.Equal(record.Time()) {
			groups = append(groups, slice{Since: record.Time()})
		}
		last := &groups[len(groups)-1]
		last.Entries++
		last.Bytes += int64(len(e.XML())) + 1
	}
	p := cut(groups, int64(size)*1e6, overhead)
	s.plans.put(key, p)
	return p, nil
}

// cut joins groups of entries, newest first, into slices, oldest first.
func cut(groups []slice, most, overhead int64) (p plan) {
	for i := len(groups) - 1; i >= 0; i-- {
		g := groups[i]
		p.all += g.Bytes
		n := len(p.slices)
		if n == 0 || p.slices[n-1].Bytes+g.Bytes > most {
			if n > 0 {
				p.slices[n-1].Until = g.Since
			}
			next := slice{Since: g.Since, Bytes: overhead}
			if n == 0 {
				next.Since = time.Time{}
			}
			p.slices = append(p.slices, next)
			n++
		}
		p.slices[n-1].Entries += g.Entries
		p.slices[n-1].Bytes += g.Bytes
	}
	p.all += overhead
	for i := range p.slices {
		p.slices[i].Query = sliceQuery(p.slices[i].Since, p.slices[i].Until)
	}
	return p
}

// serveSlice answers with a slice.
func (s *Server) serveSlice(w http.ResponseWriter, r *http.Request) error {
	feed, name, err := s.toPublish(r)
	if err != nil {
		return err
	}
	p := &part{feed: feed, format: formatOf(r), query: mirror.Query{Feed: feed.URL}}
	q := r.URL.Query()
	for _, bound := range []struct {
		name string
		time *time.Time
	}{{"since", &p.query.Since}, {"until", &p.query.Until}} {
		text := q.Get(bound.name)
		if text == "" {
			continue
		}
		if *bound.time, err = parseMoment(text, time.UTC); err != nil {
			return wrongAddress(fmt.Sprintf("%s=%s: %v", bound.name, text, err))
		}
	}
	if !p.query.Until.IsZero() && !p.query.Since.Before(p.query.Until) {
		return wrongAddress("since= must be before until=")
	}
	p.title = sliceTitle(p.query.Since, p.query.Until)
	p.self = s.base() + "feeds/" + name + "/slice." + p.format.String()
	if query := sliceQuery(p.query.Since, p.query.Until); query != "" {
		p.self += "?" + query
	}
	return s.servePart(w, r, p)
}

// formatOf returns the format that the path of a request names.
func formatOf(r *http.Request) feedhistory.Format {
	if strings.HasSuffix(r.URL.Path, ".rss") {
		return feedhistory.RSS
	}
	return feedhistory.Atom
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

// wrongAddress returns the problem that an address has invalid parameters.
func wrongAddress(why string) error {
	return &problem{http.StatusBadRequest, "This address is not valid: " + why, "The page of the feed makes valid addresses."}
}
