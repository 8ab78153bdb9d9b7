package modifiedrange

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A foreign server is not ours: it does not name the range that it covers,
// supports at most one dialect, and may break the rules.
type foreign struct {
	*store
	dialect Dialect // the dialect that it supports; AnyDialect: none
	limit   int
	cuts    bool // cuts through groups of equal stamps (modified-range#5)
	claims  bool // answers 200 for parts, too (modified-range#3)
	strict  bool // refuses unsupported dialects
	undated bool // sends no Date
	closed  bool // takes the end to be part of the range
	coarse  bool // rounds the times of the range down to whole seconds
	up      bool // rounds them up instead
	upward  bool // sends the oldest item of an answer first
}

// ServeHTTP implements http.Handler.
func (f *foreign) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	within, ok := f.asked(r)
	if !ok && f.strict {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	found := f.within(within)
	n := min(f.limit, len(found))
	for !f.cuts && n > 0 && n < len(found) && found[n].at.Equal(found[n-1].at) {
		n++
	}
	var items []Item
	for _, v := range found[:n] {
		items = append(items, v.item())
	}
	if f.upward {
		slices.Reverse(items)
	}
	w.Header()["Date"] = nil
	if !f.undated {
		w.Header().Set("Date", f.now.UTC().Format(http.TimeFormat))
	}
	if n < len(found) && !f.claims {
		w.WriteHeader(http.StatusPartialContent)
	}
	_ = feedhistory.WriteAtom(w, new(Handler).document(items))
}

// asked parses the range in the server's dialect.
func (f *foreign) asked(r *http.Request) (Range, bool) {
	own := r.Clone(r.Context())
	if f.dialect != ModifiedRange {
		own.Header.Del(fieldModifiedRange)
	}
	if f.dialect != RangeUpdated {
		own.Header.Del(fieldRange)
	}
	if f.dialect != GData {
		own.URL.RawQuery = ""
	}
	within, err := asked(own)
	if f.coarse {
		within.Start, within.End = within.Start.Truncate(time.Second), within.End.Truncate(time.Second)
	}
	if up := within.End.Truncate(time.Second); f.up && !up.Equal(within.End) {
		within.End = up.Add(time.Second)
	}
	if f.closed && !within.End.IsZero() {
		within.End = within.End.Add(tick)
	}
	heard := len(own.Header[fieldModifiedRange])+len(own.Header[fieldRange])+len(own.URL.RawQuery) > 0
	return within, err == nil && heard
}

// groups returns a store with a group of items for each size, a minute apart.
func groups(sizes ...int) *store { return groupsApart(time.Minute, sizes...) }

func groupsApart(step time.Duration, sizes ...int) *store {
	s := &store{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	for i, size := range sizes {
		when := s.now.Add(-time.Duration(i+1) * step)
		for j := range size {
			s.put(fmt.Sprintf("urn:%d:%d", i, j), "text", when)
		}
	}
	return s
}

// Whatever a foreign server does, the harvest ends: with everything, or with an
// error that says why not.
//
// Duties: modified-range#3, modified-range#5, modified-range#7, modified-range#11.
func TestForeignServers(t *testing.T) {
	const whole, loss, ignored = "", "loss", "ignored"
	for _, test := range []struct {
		name     string
		server   foreign
		ask      Dialect
		sizes    []int
		want     string
		requests int
	}{
		{"honest", foreign{dialect: ModifiedRange, limit: 3}, AnyDialect, []int{1, 1, 1, 1, 1, 1, 1, 1}, whole, 4},
		{"oldest first", foreign{dialect: ModifiedRange, limit: 3, upward: true}, AnyDialect, []int{1, 1, 1, 1, 1, 1, 1, 1}, whole, 4},
		{"one request", foreign{dialect: ModifiedRange, limit: 9}, AnyDialect, []int{1, 1, 1}, whole, 2},
		{"empty", foreign{dialect: ModifiedRange, limit: 9}, AnyDialect, nil, whole, 1},
		{"limit of one", foreign{dialect: ModifiedRange, limit: 1}, AnyDialect, []int{1, 1, 1, 1}, whole, 10},
		{"groups kept", foreign{dialect: ModifiedRange, limit: 2}, AnyDialect, []int{5, 4, 1, 3}, whole, 7},
		{"groups cut, of less than the limit", foreign{dialect: ModifiedRange, limit: 5, cuts: true}, AnyDialect, []int{2, 4, 3, 4, 1, 2}, whole, 5},
		{"groups cut", foreign{dialect: ModifiedRange, limit: 3, cuts: true}, AnyDialect, []int{1, 5, 2}, loss, 4},
		{"groups cut, at the start", foreign{dialect: ModifiedRange, limit: 3, cuts: true}, AnyDialect, []int{5}, loss, 4},
		{"groups cut, twice", foreign{dialect: ModifiedRange, limit: 2, cuts: true}, AnyDialect, []int{3, 1, 4, 1}, loss, 7},
		{"end included", foreign{dialect: ModifiedRange, limit: 3, closed: true}, AnyDialect, []int{1, 1, 1, 1, 1, 1, 1, 1}, whole, 4},
		{"end included, a second apart", foreign{dialect: ModifiedRange, limit: 3, closed: true}, AnyDialect, []int{-1, 1, 1, 1, 1, 1, 1, 1, 1}, whole, 5},
		{"end included, cut down to seconds", foreign{dialect: ModifiedRange, limit: 3, closed: true, coarse: true}, AnyDialect, []int{-1, 1, 1, 1, 1, 1, 1, 1, 1}, whole, 5},
		{"end included, groups", foreign{dialect: ModifiedRange, limit: 3, closed: true}, AnyDialect, []int{3, 3, 3, 2}, whole, 12},
		{"end included, groups a second apart", foreign{dialect: ModifiedRange, limit: 3, closed: true}, AnyDialect, []int{-1, 3, 3, 3, 2}, whole, 10},
		{"end included, groups kept", foreign{dialect: ModifiedRange, limit: 2, closed: true}, AnyDialect, []int{5, 4, 1, 3}, whole, 9},
		{"end included, groups cut", foreign{dialect: ModifiedRange, limit: 3, closed: true, cuts: true}, AnyDialect, []int{1, 5, 2}, loss, 5},
		{"end included, one group", foreign{dialect: ModifiedRange, limit: 9, closed: true}, AnyDialect, []int{3}, whole, 4},
		{"end included, one item", foreign{dialect: ModifiedRange, limit: 9, closed: true}, ModifiedRange, []int{1}, whole, 4},
		{"end included, part as 200", foreign{dialect: ModifiedRange, limit: 3, closed: true, claims: true}, ModifiedRange, []int{1, 1, 1, 1, 1, 1, 1}, whole, 6},
		{"end included, parameters, probed", foreign{dialect: GData, limit: 3, claims: true, closed: true}, AnyDialect, []int{3, 1, 1, 1, 1}, loss, 14},
		{"one group first, parameters", foreign{dialect: GData, limit: 3}, AnyDialect, []int{3, 1, 1}, whole, 14},
		{"one group first, parameters, parts as 200", foreign{dialect: GData, limit: 3, claims: true, cuts: true}, AnyDialect, []int{3, 1, 1}, loss, 12},
		{"one group, cut, parameters", foreign{dialect: GData, limit: 3, cuts: true}, AnyDialect, []int{5, 1, 1}, loss, 14},
		{"ignored, one group", foreign{limit: 3}, AnyDialect, []int{5}, ignored, 9},
		{"closed interval", foreign{dialect: RangeUpdated, limit: 3}, RangeUpdated, []int{1, 1, 1, 1, 2, 1}, whole, 3},
		{"closed interval, probed", foreign{dialect: RangeUpdated, limit: 3}, AnyDialect, []int{1, 1, 1, 1, 2, 1}, whole, 5},
		{"closed interval, others refused", foreign{dialect: RangeUpdated, limit: 9, strict: true}, AnyDialect, []int{1, 1}, whole, 3},
		{"parameters", foreign{dialect: GData, limit: 3, claims: true}, GData, []int{1, 1, 1, 1, 1, 1, 1}, whole, 5},
		{"parameters, probed", foreign{dialect: GData, limit: 3, claims: true}, AnyDialect, []int{1, 1, 1, 1, 1, 1, 1}, whole, 9},
		{"parameters, groups cut", foreign{dialect: GData, limit: 3, claims: true, cuts: true}, GData, []int{1, 2, 2, 1, 2, 1}, whole, 7},
		{"ignored", foreign{limit: 3, claims: true}, ModifiedRange, []int{1, 1, 1, 1, 1}, ignored, 2},
		{"ignored, and all is there", foreign{limit: 9, claims: true}, ModifiedRange, []int{1, 1}, ignored, 2},
		{"ignored, one item", foreign{limit: 9, claims: true}, ModifiedRange, []int{1}, ignored, 3},
		{"all ignored", foreign{limit: 3, claims: true}, AnyDialect, []int{1, 1, 1, 1, 1}, ignored, 6},
		{"ignored, and a part", foreign{limit: 3}, ModifiedRange, []int{1, 1, 1, 1, 1}, ignored, 2},
		{"without a date", foreign{dialect: ModifiedRange, limit: 3, undated: true}, AnyDialect, []int{1, 1}, whole, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := test.server
			if server.store = groups(test.sizes...); len(test.sizes) > 0 && test.sizes[0] < 0 {
				server.store = groupsApart(time.Second, test.sizes[1:]...)
			}
			w := &wire{handler: &server}
			c := w.client()
			c.Dialect = test.ask
			sync := c.Harvest(t.Context(), Mark{})
			h, err := feedhistory.Merge(sync.Documents())
			require.NoError(t, err)
			next, ended := sync.Mark()
			if !assert.Equal(t, test.requests, sync.Requests()) {
				t.Log(w.log.String())
			}
			switch {
			case test.want != whole:
				assert.False(t, ended)
				assert.Zero(t, next)
				require.NotEmpty(t, h.Gaps)
				for _, gap := range h.Gaps {
					assert.NotEmpty(t, gap.Error())
					var lost *PossibleLossError
					var deaf *IgnoredError
					assert.Equal(t, test.want == loss, errors.As(gap, &lost), gap)
					assert.Equal(t, test.want == ignored, errors.As(gap, &deaf), gap)
				}
				if test.want == loss {
					assert.Equal(t, had(test.sizes, server.limit), len(h.Entries), "what is older than a group that was cut")
				}
			default:
				assert.True(t, ended)
				assert.Empty(t, h.Gaps)
				assert.Len(t, h.Entries, len(server.items), w.log.String())
				if server.dialect != AnyDialect && len(test.sizes) > 0 {
					assert.Equal(t, server.dialect, sync.Dialect())
				}
				if test.sizes != nil {
					assert.False(t, next.Since.IsZero())
				}
			}
		})
	}
}

// had returns how many items can be retrieved of groups that are cut at a
// limit.
func had(sizes []int, limit int) (n int) {
	for _, size := range sizes {
		n += min(size, limit)
	}
	return n
}

// If a server gives the same answer for everything before a group, the harvest
// ends, and says what cannot be retrieved.
//
// Duties: modified-range#12.
func TestStuck(t *testing.T) {
	server := &foreign{store: groups(1, 3, 1), dialect: ModifiedRange, limit: 3, cuts: true, closed: true, up: true}
	w := &wire{handler: server}
	sync := w.client().Harvest(t.Context(), Mark{})
	h, err := feedhistory.Merge(sync.Documents())
	require.NoError(t, err)
	require.Less(t, sync.Requests(), 10)
	require.Len(t, h.Entries, 4)
	require.Len(t, h.Gaps, 1)
	loss := feedtest.ErrorAs[*PossibleLossError](t, h.Gaps[0])
	require.True(t, loss.Stuck)
	require.ErrorContains(t, loss, "items older than 2026-03-01T11:58:00Z cannot be retrieved")
	_, whole := sync.Mark()
	require.False(t, whole)
}
