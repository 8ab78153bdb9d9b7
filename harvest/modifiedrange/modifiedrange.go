// Package modifiedrange synchronises collections of entries by ranges of modification
// times: a client asks a server for the changes since it last asked, and remembers little
// more than one timestamp.
//
// The protocol is the Modified-Range proposal of the Atom working group (2004). A
// request names a range of times. The answer has all items of the collection last
// modified within it or, with a status other than 200, the most recent of them. The
// client then asks for items older than the oldest it got, until an answer is complete.
//
//	h := modifiedrange.Harvester{URL: "https://example.org/collection"}
//	harvest := h.Harvest(ctx, from) // the mark, zero at first
//	history, err := feedhistory.Merge(harvest.Readings())
//	…
//	mark, whole := harvest.Mark() // to be stored together with the history
//
// A Handler is the other side: an http.Handler with a query function.
//
// Both sides also support two equivalent ways to ask: the "Range: updated=" of
// draft-ietf-atompub-protocol-04 §5.2.4, and the query parameters updated-min
// and updated-max of GData. See Dialect.
//
// The proposal leaves many questions open. The README numbers the answers, and
// comments cite them as modified-range#5.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
package modifiedrange

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Range is a half-open interval of modification times (modified-range#2). It includes
// the start, so nothing is lost, but not the end, so nothing comes twice. With a zero
// time, the range is open on that side.
type Range struct{ Start, End time.Time }

// String returns the range in the form of a Modified-Range header: "start/end".
func (r Range) String() string { return formatTime(r.Start) + "/" + formatTime(r.End) }

// Contains reports whether the range contains a time.
func (r Range) Contains(t time.Time) bool {
	return !t.Before(r.Start) && (r.End.IsZero() || t.Before(r.End))
}

// isEmpty reports whether the range contains no time.
func (r Range) isEmpty() bool { return !r.End.IsZero() && !r.Start.Before(r.End) }

// narrower reports whether the range ends before another.
func (r Range) narrower(than Range) bool {
	return !r.End.IsZero() && (than.End.IsZero() || r.End.Before(than.End))
}

// beyond reports whether a time is outside of the range by more than a margin, because
// servers may store fractions of a second, but not write them.
func (r Range) beyond(t time.Time, margin time.Duration) bool {
	return !r.Start.IsZero() && t.Before(r.Start.Add(-margin)) || r.above(t, margin)
}

func (r Range) above(t time.Time, margin time.Duration) bool {
	return !r.End.IsZero() && !t.Before(r.End.Add(margin))
}

var errRange = errors.New("a range is two RFC 3339 times with a slash between them, either of which may be left out")

// parseRange parses "start/end"; either side may be missing (modified-range#1).
func parseRange(s string) (r Range, err error) {
	start, end, ok := strings.Cut(s, "/")
	if !ok {
		return Range{}, fmt.Errorf("%q: %w", clip(s), errRange)
	}
	if r.Start, err = parseTime(start); err != nil {
		return Range{}, err
	}
	if r.End, err = parseTime(end); err != nil {
		return Range{}, err
	}
	return r, nil
}

// parseTime parses one side of a range; the zero time if it is missing.
func parseTime(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil || len(s) > 64 {
		return time.Time{}, fmt.Errorf("%q: %w", clip(s), errRange)
	}
	return t.UTC(), nil
}

// formatTime returns a time with all its digits (modified-range#6).
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// clip shortens foreign text for a message.
func clip(s string) string { return xmlscan.Clip(s, 100) }

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

// requestedRange returns the range of a request, in any dialect; without one it is everything.
// An error names a malformed header, which is ignored: safe, because the answer is a
// superset (modified-range#1).
func requestedRange(r *http.Request) (Range, error) {
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
	var span Range
	var err error
	if span.Start, err = parseParam(q.Get(paramMin)); err != nil {
		return Range{}, err
	}
	if span.End, err = parseParam(q.Get(paramMax)); err != nil {
		return Range{}, err
	}
	return span, nil
}

// parseParam parses a parameter, in which the + of a zone has often become a
// space.
func parseParam(s string) (time.Time, error) {
	return parseTime(strings.ReplaceAll(strings.TrimSpace(s), " ", "+"))
}

// A stampKind says which element has the time when an item was last modified.
// It is the same throughout a harvest (modified-range#6): zero while no item has been seen,
// one of feedtime.Stamps, counted from 1, or else stampUpdated.
type stampKind int

const (
	stampUnknown stampKind = 0
	stampUpdated stampKind = -1
)

// of returns the stamp of this kind of an entry; the zero time if it has none, or one that
// cannot be read.
func (k stampKind) of(e *feedhistory.Entry) time.Time {
	if k <= 0 {
		return e.Updated
	}
	t, _ := feedtime.Stamps()[k-1].Of(e.XML())
	return t
}

// choose returns the kind of stamp common to all entries. One that cannot be read is there,
// so the harvest does not fall back to another.
func choose(entries []*feedhistory.Entry) stampKind {
	if len(entries) == 0 {
		return stampUnknown
	}
	for i, stamp := range feedtime.Stamps() {
		lacks := func(e *feedhistory.Entry) bool {
			_, has := stamp.Of(e.XML())
			return !has
		}
		if !slices.ContainsFunc(entries, lacks) {
			return stampKind(i + 1)
		}
	}
	return stampUpdated
}

// StampOf returns the stamp of an entry by itself; zero if it has none, or one that cannot
// be read (modified-range#6).
func StampOf(e *feedhistory.Entry) time.Time {
	if e == nil {
		return time.Time{}
	}
	if t, is := feedtime.StampOf(e.XML()); is {
		return t
	}
	return e.Updated
}

// unitOf returns the smallest unit in which a stamp seems to be written: a
// second, or a thousandth, a millionth … of one.
func unitOf(t time.Time) time.Duration {
	unit := time.Second
	for unit > tick && t.Nanosecond()%int(unit) != 0 {
		unit /= 1000
	}
	return unit
}

// An Item is an entry of a collection, or a deletion (modified-range#10).
type Item struct {
	// Modified is the stamp of the item: the app:edited of its entry, or else
	// the modified of Atom 0.3, or else atom:updated, to the last digit
	// (modified-range#6). For a deletion it is the time of the deletion.
	Modified time.Time

	Entry   *feedhistory.Entry // nil for a deletion
	Deleted string             // the ID of the deleted entry; "" otherwise
}

var errItem = errors.New("an item must be either an entry or a deletion")

// check returns an error for an item misleading to clients.
func (i Item) check(within Range) error {
	switch {
	case (i.Entry == nil) == (i.Deleted == ""):
		return errItem
	case !within.Contains(i.Modified):
		return fmt.Errorf("%s: modified at %s, which is outside of %s", i.id(), formatTime(i.Modified), within)
	case i.Entry != nil && !StampOf(i.Entry).Equal(i.Modified):
		return fmt.Errorf("%s: its XML says that it was modified at %s, the query says at %s (modified-range#6)",
			i.id(), formatTime(StampOf(i.Entry)), formatTime(i.Modified))
	}
	return nil
}

func (i Item) id() string {
	if i.Entry == nil {
		return i.Deleted
	}
	return i.Entry.ID
}

// The clauses cited by errors.
const (
	clauseTies    = "modified-range#5: a server never cuts through a group of equal stamps"
	clauseSubset  = "modified-range#4: a part has the most recent items of the range"
	clauseHeed    = "modified-range#3: an answer has items of the range"
	clauseStamp   = "modified-range#6: each item has a stamp, of one kind throughout"
	clauseBounded = "modified-range#12: every loop is bounded"
)

// possibleLoss reports a part that cannot be reduced further, because it cuts through the group
// of items with a stamp, or, if at is zero, because it has none.
func possibleLoss(url string, of Range, at time.Time) *harvest.Error {
	e := &harvest.Error{
		Code: harvest.ErrLoss, URL: url, At: at, Clause: clauseTies,
		Text: fmt.Sprintf("possible data loss: the server sent only some of the items modified at %s", formatTime(at)),
	}
	if at.IsZero() {
		e.Text, e.Clause = fmt.Sprintf("possible data loss: the server sent an empty part of %s", of), clauseSubset
	}
	return e
}
