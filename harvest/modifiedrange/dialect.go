package modifiedrange

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Dialect is a way to ask for a range (modified-range#11).
type Dialect uint8

// The dialects.
const (
	Probe         Dialect = iota // whichever the server heeds: they are tried in this order
	ModifiedRange                // Modified-Range: start/end
	RangeUpdated                 // Range: updated=start/end, a closed interval (draft-ietf-atompub-protocol-04 §5.2.4)
	GData                        // the parameters updated-min (inclusive) and updated-max (exclusive)
)

// String returns "probe", "modified-range", "range" or "gdata".
func (d Dialect) String() string {
	switch d {
	case Probe:
		return "probe"
	case ModifiedRange:
		return "modified-range"
	case RangeUpdated:
		return "range"
	case GData:
		return "gdata"
	}
	return "unknown"
}

// candidates returns the dialects to try, in turn.
func (d Dialect) candidates() []Dialect {
	if d == Probe {
		return []Dialect{ModifiedRange, RangeUpdated, GData}
	}
	return []Dialect{d}
}

const (
	fieldModifiedRange = "Modified-Range"
	fieldRange         = "Range"
	unitUpdated        = "updated="
	paramMin           = "updated-min"
	paramMax           = "updated-max"
)

// tick is the smallest unit of a time here. A closed interval ends one before
// the half-open one: servers with coarser stamps cut that down to the unit
// before, as it should be.
const tick = time.Nanosecond

// request returns the URL and the header fields that ask for a range.
func (d Dialect) request(collection string, r Range) (string, http.Header, error) {
	switch d {
	case RangeUpdated:
		if !r.End.IsZero() {
			r.End = r.End.Add(-tick)
		}
		return collection, http.Header{fieldRange: {unitUpdated + r.String()}}, nil
	case GData:
		u, err := url.Parse(collection)
		if err != nil {
			return "", nil, err
		}
		u.RawQuery = gdataQuery(u.Query(), r)
		return u.String(), nil, nil
	}
	return collection, http.Header{fieldModifiedRange: {r.String()}}, nil
}

// gdataQuery adds the parameters. Blogger heeds them only where the order is by
// update as well.
func gdataQuery(q url.Values, r Range) string {
	q.Set("orderby", "updated")
	for name, t := range map[string]time.Time{paramMin: r.Start, paramMax: r.End} {
		q.Del(name)
		if !t.IsZero() {
			q.Set(name, formatTime(t))
		}
	}
	return q.Encode()
}

// asked reads which range a request asks for, in whichever dialect. An error is
// a note on what is malformed, and ignored: a superset is safe
// (modified-range#1). Without a range it is everything.
func asked(r *http.Request) (Range, error) {
	if values := r.Header.Values(fieldModifiedRange); len(values) > 0 {
		return ParseRange(strings.Join(values, ", "))
	}
	if value, ok := strings.CutPrefix(r.Header.Get(fieldRange), unitUpdated); ok {
		closed, err := ParseRange(value)
		if err == nil && !closed.End.IsZero() {
			closed.End = closed.End.Add(tick)
		}
		return closed, err
	}
	q := r.URL.Query()
	var asked Range
	var err error
	if asked.Start, err = parseParam(q.Get(paramMin)); err != nil {
		return Range{}, err
	}
	if asked.End, err = parseParam(q.Get(paramMax)); err != nil {
		return Range{}, err
	}
	return asked, nil
}

// parseParam reads a parameter, where the + of a zone has often become a space.
func parseParam(s string) (time.Time, error) {
	return parseTime(strings.ReplaceAll(strings.TrimSpace(s), " ", "+"))
}
