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
	AnyDialect    Dialect = iota // whichever the server supports: they are tried in the following order
	ModifiedRange                // Modified-Range: start/end
	RangeUpdated                 // Range: updated=start/end, a closed interval (draft-ietf-atompub-protocol-04 §5.2.4)
	GData                        // the parameters updated-min (inclusive) and updated-max (exclusive)
)

// String returns "probe", "modified-range", "range" or "gdata".
func (d Dialect) String() string {
	return [...]string{"probe", "modified-range", "range", "gdata", "unknown"}[min(d, GData+1)]
}

// candidates returns the dialects to try, in order.
func (d Dialect) candidates() []Dialect {
	if d == AnyDialect {
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

// tick is the smallest unit of time used here. A closed interval ends one tick before
// the half-open one; servers with coarser stamps round the end down to the unit before,
// as they should.
const tick = time.Nanosecond

// request returns the URL and the header fields of a request for a range.
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

// gdataQuery adds the parameters. Blogger supports them only if entries are
// also ordered by update.
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

// asked returns the range of a request, in any dialect; without one it is everything.
// An error names a malformed header, which is ignored: safe, because the answer is a
// superset (modified-range#1).
func asked(r *http.Request) (Range, error) {
	if values := r.Header.Values(fieldModifiedRange); len(values) > 0 {
		return parseRange(strings.Join(values, ", "))
	}
	if value, ok := strings.CutPrefix(r.Header.Get(fieldRange), unitUpdated); ok {
		closed, err := parseRange(value)
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

// parseParam parses a parameter, in which the + of a zone has often become a
// space.
func parseParam(s string) (time.Time, error) {
	return parseTime(strings.ReplaceAll(strings.TrimSpace(s), " ", "+"))
}
