package modifiedrange

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const editedFeed = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:app="http://www.w3.org/2007/app">
<entry><id>urn:1</id><updated>2001-01-01T00:00:00Z</updated><app:edited>2026-02-02T00:00:00.5Z</app:edited></entry>
<entry><id>urn:2</id><updated>2020-01-01T00:00:00Z</updated>%s</entry></feed>`

// answers serves documents one after another.
func answers(status int, bodies ...string) (http.Handler, *feedtest.List[string]) {
	var asked feedtest.List[string]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(r.Header.Get(fieldModifiedRange))
		body := bodies[min(n, len(bodies))-1]
		w.Header().Set("Date", "Sun, 01 Mar 2026 12:00:00 GMT")
		if n < len(bodies) {
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, body)
	}), &asked
}

// app:edited takes precedence over atom:updated (modified-range#6).
func TestStampEdited(t *testing.T) {
	first := fmt.Sprintf(editedFeed, `<edited xmlns="http://purl.org/atom/app#"> 2026-02-01T00:00:00Z </edited>`)
	handler, asked := answers(299, first, `<feed xmlns="http://www.w3.org/2005/Atom"/>`)
	c := (&wire{handler: handler}).client()
	c.Dialect = ModifiedRange
	h, err := feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Readings())
	require.NoError(t, err)
	assert.Empty(t, h.Gaps)
	assert.Len(t, h.Entries, 2)
	// The smallest unit of the stamps is a millisecond (modified-range#5).
	assert.Equal(t, []string{"/", "/2026-02-01T00:00:00.001Z"}, asked.All())
}

// A stamp that cannot be read is an error, and no reason to take another one.
func TestStampUnreadable(t *testing.T) {
	first := fmt.Sprintf(editedFeed, `<app:edited>in August</app:edited>`)
	handler, _ := answers(200, first, "")
	sync := (&wire{handler: handler}).client().Harvest(t.Context(), Mark{})
	h, err := feedhistory.Merge(sync.Readings())
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	require.Equal(t, h.Gaps, sync.Gaps())
	require.ErrorIs(t, h.Gaps[0], harvest.ErrStamp)
	_, whole := sync.Mark()
	require.False(t, whole)
}

// The stamp is of the same kind throughout a harvest.
func TestStampChanges(t *testing.T) {
	first := fmt.Sprintf(editedFeed, `<app:edited>2026-02-01T00:00:00Z</app:edited>`)
	handler, _ := answers(206, first, strings.ReplaceAll(fmt.Sprintf(editedFeed, ""), "urn:", "urn:x"))
	c := (&wire{handler: handler}).client()
	sync := c.Harvest(t.Context(), Mark{})
	h, err := feedhistory.Merge(sync.Readings())
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	stamp := feedtest.ErrorAs[*harvest.Error](t, h.Gaps[0])
	assert.Equal(t, "urn:x2", stamp.Item)
	assert.Contains(t, stamp.Error(), "modified-range#6")
	_, whole := sync.Mark()
	assert.False(t, whole)
}

// A part without items says nothing about the rest.
func TestEmptyPart(t *testing.T) {
	handler, _ := answers(206, `<feed xmlns="http://www.w3.org/2005/Atom"/>`, "")
	h, err := feedhistory.Merge((&wire{handler: handler}).client().Harvest(t.Context(), Mark{}).Readings())
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	loss := feedtest.ErrorAs[*harvest.Error](t, h.Gaps[0])
	assert.Contains(t, loss.Error(), "modified-range#4")
}

// Duties: modified-range#12.
func TestLimits(t *testing.T) {
	for limit, limits := range map[string]harvest.Budget{
		"requests": {Requests: 2}, "items": {Items: 3}, "bytes": {Bytes: 500},
	} {
		c := (&wire{handler: groups(1, 1, 1, 1, 1, 1).handler(2)}).client()
		c.Budget = limits
		h, err := feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Readings())
		require.NoError(t, err)
		require.Len(t, h.Gaps, 1)
		assert.Equal(t, feedhistory.ReasonBudget, h.Gaps[0].Reason)
		exceeded := feedtest.ErrorAs[*harvest.Error](t, h.Gaps[0])
		assert.Equal(t, limit, exceeded.Limit)
	}
}

// If the first request fails, that is an error; if a later one fails, a gap.
// The state stays.
func TestLostResponses(t *testing.T) {
	w := &wire{handler: groups(1, 1, 1, 1, 1).handler(2)}
	requests, lost := 0, 1
	w.lose = func() bool { requests++; return requests == lost }
	from := Mark{Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	sync := w.client().Harvest(t.Context(), from)
	h, err := feedhistory.Merge(sync.Readings())
	require.ErrorIs(t, err, errLost)
	assert.Nil(t, h)

	requests, lost = 0, 2
	h, err = feedhistory.Merge(sync.Readings()) // starts again
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	require.ErrorIs(t, h.Gaps[0], errLost)
	assert.Equal(t, []string{"urn:0:0", "urn:1:0"}, ids(h))
	next, whole := sync.Mark()
	assert.False(t, whole)
	assert.Equal(t, from.Since, next.Since)
	assert.NotZero(t, next.Rest)

	continued := w.client().Harvest(t.Context(), next)
	h, err = feedhistory.Merge(continued.Readings())
	require.NoError(t, err)
	assert.Equal(t, []string{"urn:1:0", "urn:2:0", "urn:3:0", "urn:4:0"}, ids(h)) // the first of them again, to find what was cut
	after, whole := continued.Mark()
	assert.True(t, whole)
	assert.Zero(t, after.Rest)
	assert.True(t, after.Since.After(from.Since))

	lost = 0
	h, err = feedhistory.Merge(sync.Readings())
	require.NoError(t, err)
	assert.Len(t, h.Entries, 5)
	next, whole = sync.Mark()
	assert.True(t, whole)
	assert.Equal(t, time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC), next.Since)
}

// The next harvest never begins after the newest stamp of the first answer, whatever the clock
// says that dates the answers; and what has come does not come again.
//
// Duties: modified-range#8.
func TestMarks(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		items map[string]time.Duration // their stamps, before noon
		from  time.Duration            // the mark, before noon; zero for none
		ahead time.Duration            // how far the dates of the answers are ahead
		dead  bool                     // there are only deletions
		dated bool
		want  time.Duration // the next mark, before noon; zero for none
	}{
		{name: "in time", items: map[string]time.Duration{"a": 10 * time.Second, "b": 30 * time.Second}, dated: true, want: time.Minute},
		{name: "ahead", items: map[string]time.Duration{"a": 10 * time.Second, "b": time.Hour}, ahead: 2 * time.Minute, dated: true, want: 10 * time.Second},
		{name: "far ahead", items: map[string]time.Duration{"a": time.Hour}, ahead: 48 * time.Hour, dated: true, want: time.Hour},
		{name: "behind", items: map[string]time.Duration{"a": time.Second}, ahead: -time.Hour, dated: true},
		{name: "behind, with older items", items: map[string]time.Duration{"a": time.Second, "b": 2 * time.Hour}, ahead: -time.Hour, dated: true, want: 2 * time.Hour},
		{name: "long ago", items: map[string]time.Duration{"a": time.Hour}, dated: true, want: time.Hour},
		{name: "from the future", items: map[string]time.Duration{"a": -time.Hour, "b": time.Hour}, ahead: 2 * time.Minute, dated: true, want: time.Hour},
		{name: "deletions", items: map[string]time.Duration{"a": 10 * time.Second, "b": time.Hour}, ahead: time.Hour, dead: true, dated: true, want: 10 * time.Second},
		{name: "empty", ahead: 2 * time.Minute, dated: true},
		{name: "nothing new", from: time.Hour, ahead: 2 * time.Minute, dated: true, want: time.Hour},
		{name: "without a date", items: map[string]time.Duration{"a": time.Hour}, want: time.Hour + time.Minute},
		{name: "nothing new, without a date", from: time.Hour, want: time.Hour},
	} {
		for name, upward := range map[string]bool{"newest first": false, "oldest first": true} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				s := &store{now: noon.Add(test.ahead)}
				for id, before := range test.items {
					if s.put("urn:"+id, "text", noon.Add(-before)); test.dead {
						s.remove("urn:"+id, noon.Add(-before))
					}
				}
				mark := func(before time.Duration) time.Time {
					if before == 0 {
						return time.Time{}
					}
					return noon.Add(-before)
				}
				w := &wire{handler: &foreign{store: s, dialect: ModifiedRange, limit: 9, upward: upward, undated: !test.dated}}
				c := w.client()
				c.Dialect = ModifiedRange
				first := c.Harvest(t.Context(), Mark{Since: mark(test.from)})
				h, err := feedhistory.Merge(first.Readings())
				require.NoError(t, err)
				require.Empty(t, h.Gaps)
				require.Len(t, slices.Concat(ids(h), deleted(h)), len(test.items))
				next, whole := first.Mark()
				require.True(t, whole)
				require.Equal(t, mark(test.want), next.Since)

				s.put("urn:late", "text", noon) // by the clock that is right
				if _, is := test.items["a"]; is {
					s.put("urn:a", "other text", s.items["urn:a"].at) // within the unit of its stamp
				}
				h, err = feedhistory.Merge(c.Harvest(t.Context(), next).Readings())
				require.NoError(t, err)
				for id := range s.items {
					require.Equal(t, id == "urn:late" || id == "urn:a" && !s.items[id].at.Before(next.Since), slices.Contains(ids(h), id), id)
				}
			})
		}
	}
}

// A mark remembers no more than a thousand items; the others come again.
func TestManySeen(t *testing.T) {
	w := &wire{handler: groups(mostSeen + 5).handler(0)}
	first := w.client().Harvest(t.Context(), Mark{})
	h, err := feedhistory.Merge(first.Readings())
	require.NoError(t, err)
	require.Len(t, h.Entries, mostSeen+5)
	next, _ := first.Mark()
	require.Len(t, strings.Fields(next.Seen), mostSeen)
	h, err = feedhistory.Merge(w.client().Harvest(t.Context(), next).Readings())
	require.NoError(t, err)
	require.Len(t, h.Entries, 5)
}

// deleted returns the IDs of a history's deletions.
func deleted(h *feedhistory.History) (ids []string) {
	for _, t := range h.Deleted {
		ids = append(ids, t.Ref)
	}
	return ids
}

// The readable part of a document that breaks off is kept.
func TestDamagedLater(t *testing.T) {
	handler, _ := answers(206, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><updated>2026-01-02T00:00:00Z</updated></entry></feed>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:2</id><updated>2026-01-01T00:00:00Z</updated></entry>`)
	h, err := feedhistory.Merge((&wire{handler: handler}).client().Harvest(t.Context(), Mark{}).Readings())
	require.NoError(t, err)
	require.Len(t, h.Gaps, 1)
	assert.Equal(t, feedhistory.ReasonTruncated, h.Gaps[0].Reason)
	assert.Equal(t, []string{"urn:1", "urn:2"}, ids(h))
}

// The caller may stop early, and the context ends the sequence.
func TestLeaving(t *testing.T) {
	w := &wire{handler: groups(1, 1, 1, 1, 1).handler(1)}
	sync := w.client().Harvest(t.Context(), Mark{})
	for range sync.Readings() {
		break
	}
	assert.Equal(t, 1, sync.Requests())
	_, whole := sync.Mark()
	assert.False(t, whole)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	documents := 0
	for doc, err := range w.client().Harvest(ctx, Mark{}).Readings() {
		if last = err; doc != nil {
			documents++
		}
		cancel()
	}
	assert.Equal(t, 1, documents)
	assert.True(t, errors.Is(last, context.Canceled), "%v", last)
}

var update = flag.Bool("update", false, "write the transcripts again")

// TestCalvin is the proposal's own example, request by request: a server
// returns at most three items at a time, Calvin harvests with it, and Hobbes
// modifies "Go-carts" meanwhile, which comes with the next harvest. Only the ends of the ranges
// differ: each includes the oldest item known, so a server that cuts too much is noticed.
//
// Duties: modified-range#8.
func TestCalvin(t *testing.T) {
	s := &store{now: at(t, "2004-10-31T19:29:00Z")}
	for title, when := range map[string]string{
		"Planes":      "2004-10-30T08:00:00Z",
		"Trains":      "2004-10-22T17:30:00Z",
		"Automobiles": "2004-10-15T23:45:00Z",
		"Triremes":    "2004-10-14T10:00:00Z",
		"Canoes":      "2004-10-12T09:15:00Z",
		"Motorboats":  "2004-10-10T13:00:00Z",
		"Bicycles":    "2004-10-01T12:00:00Z",
		"Tricycles":   "2004-09-01T16:15:00Z", // the range includes its start
		"Go-carts":    "2004-08-20T11:00:00Z",
	} {
		s.put("/collections/categories/"+title, title, at(t, when))
	}
	requests := 0
	w := &wire{handler: s.handler(3)}
	w.before = func(*http.Request) {
		switch requests++; requests {
		case 2:
			s.put("/collections/categories/Go-carts", "Go-carts, faster", at(t, "2004-10-31T19:29:15Z"))
			s.now = at(t, "2004-10-31T19:29:30Z")
		case 3:
			s.now = at(t, "2004-10-31T19:30:00Z")
		}
	}
	sync := w.client().Harvest(t.Context(), Mark{Since: at(t, "2004-09-01T16:15:00Z")})
	h, err := feedhistory.Merge(sync.Readings())
	require.NoError(t, err)
	assert.Len(t, h.Entries, 8)
	assert.Empty(t, h.Gaps)
	assert.Equal(t, 4, sync.Requests())
	next, whole := sync.Mark()
	require.True(t, whole)
	assert.Equal(t, at(t, "2004-10-30T08:00:00Z"), next.Since) // Planes, the newest item of the first answer

	s.now = s.now.Add(24 * time.Hour)
	sync = w.client().Harvest(t.Context(), next)
	h, err = feedhistory.Merge(sync.Readings())
	require.NoError(t, err)
	require.Len(t, h.Entries, 1)
	assert.Equal(t, "Go-carts, faster", h.Entries[0].Title().Body)
	compare(t, "testdata/calvin.txt", w.log.String())
}

// The proposal's three exchanges, to the letter: our server answers each of the requests with the
// items of the proposal's answer, and a status that is 200 only where it is there; and the
// proposal's own algorithm makes these requests of it.
//
// Duties: modified-range#2, modified-range#3, modified-range#4.
func TestSeedExchanges(t *testing.T) {
	s := &store{now: at(t, "2004-10-31T19:29:00Z")}
	for title, when := range map[string]string{
		"Planes": "2004-10-30T08:00:00Z", "Trains": "2004-10-22T17:30:00Z", "Automobiles": "2004-10-15T23:45:00Z",
		"Triremes": "2004-10-14T10:00:00Z", "Canoes": "2004-10-12T09:15:00Z", "Motorboats": "2004-10-10T13:00:00Z",
		"Bicycles": "2004-10-01T12:00:00Z", "Tricycles": "2004-09-02T11:00:00Z", "Go-carts": "2004-08-20T11:00:00Z",
	} {
		s.put("/collections/categories/"+title, title, at(t, when))
	}
	text := string(feedtest.ReadFile(t, "testdata/seed-exchanges.txt"))
	exchanges := regexp.MustCompile(`(?s)GET (\S+) HTTP/1.1\n  Modified-Range: (\S+)\n  HTTP/1.1 (\S+) (.*?)(?:\n\w+ request:|$)`).FindAllStringSubmatch(text, -1)
	require.Len(t, exchanges, 3)
	end := "2004-10-31T19:29:00Z" // of the range that the algorithm asks for next
	for _, exchange := range exchanges {
		require.Equal(t, "2004-09-01T16:15:00Z/"+end, exchange[2])
		req := httptest.NewRequest(http.MethodGet, exchange[1], nil)
		req.Header.Set("Modified-Range", exchange[2])
		rec := httptest.NewRecorder()
		s.handler(3).ServeHTTP(rec, req)
		require.Equal(t, exchange[3] == "200", rec.Code == http.StatusOK)
		require.Equal(t, 2, rec.Code/100)
		doc, err := feedhistory.Parse(rec.Body, "")
		require.NoError(t, err)
		var want, got []string
		for _, title := range regexp.MustCompile("<title>(.*?)</title>").FindAllStringSubmatch(exchange[4], -1) {
			want = append(want, title[1])
		}
		for _, e := range doc.Entries {
			got = append(got, e.Title().Body)
			end = formatTime(e.Updated)
		}
		require.Equal(t, want, got)
	}
}

// compare compares a transcript with a file.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := feedtest.ReadFile(t, file)
	assert.Equal(t, string(want), got)
}

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
	_ = compose.WriteAtom(w, new(Handler).document(items))
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
	within, err := requestedRange(own)
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
			h, err := feedhistory.Merge(sync.Readings())
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
					assert.Equal(t, test.want == loss, errors.Is(gap, harvest.ErrLoss) || errors.Is(gap, harvest.ErrStuck), gap)
					assert.Equal(t, test.want == ignored, errors.Is(gap, harvest.ErrIgnored), gap)
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

// Each dialect has its own form of a range, which is half-open in all but one.
//
// Duties: modified-range#11.
func TestDialectRequests(t *testing.T) {
	start, end := at(t, "2026-03-01T00:00:00Z"), at(t, "2026-03-02T00:00:00.5Z")
	url, fields, err := ModifiedRange.request(collection, Range{start, end})
	require.NoError(t, err)
	require.Equal(t, collection, url)
	require.Equal(t, http.Header{"Modified-Range": {"2026-03-01T00:00:00Z/2026-03-02T00:00:00.5Z"}}, fields)
	url, fields, err = RangeUpdated.request(collection, Range{start, end})
	require.NoError(t, err)
	require.Equal(t, collection, url)
	require.Equal(t, http.Header{"Range": {"updated=2026-03-01T00:00:00Z/2026-03-02T00:00:00.499999999Z"}}, fields)
	url, fields, err = GData.request(collection+"?alt=atom&updated-min=x", Range{End: end})
	require.NoError(t, err)
	require.Equal(t, collection+"?alt=atom&orderby=updated&updated-max=2026-03-02T00%3A00%3A00.5Z", url)
	require.Empty(t, fields)
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
	h, err := feedhistory.Merge(sync.Readings())
	require.NoError(t, err)
	require.Less(t, sync.Requests(), 10)
	require.Len(t, h.Entries, 4)
	require.Len(t, h.Gaps, 1)
	loss := feedtest.ErrorAs[*harvest.Error](t, h.Gaps[0])
	require.Equal(t, harvest.ErrStuck, loss.Code)
	require.ErrorContains(t, loss, "items older than 2026-03-01T11:58:00Z cannot be retrieved")
	_, whole := sync.Mark()
	require.False(t, whole)
}

// A cutter is a server that names the range it was asked for, although it leaves out all but
// a number of items: those its order puts first.
type cutter struct {
	*store
	limit int
	order func(a, b version) int
	names func(asked Range, items []version) Range
}

// ServeHTTP implements http.Handler.
func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	within, _ := requestedRange(r)
	found := c.within(within)
	slices.SortFunc(found, func(a, b version) int { return cmp.Or(c.order(a, b), strings.Compare(a.id, b.id)) })
	found = found[:min(len(found), c.limit)]
	var items []Item
	for _, v := range found {
		items = append(items, v.item())
	}
	w.Header().Set("Date", c.now.UTC().Format(http.TimeFormat))
	named, status := within, http.StatusOK
	if c.names != nil && len(found) > 0 {
		named, status = c.names(within, found), http.StatusPartialContent
	}
	w.Header().Set(fieldModifiedRange, named.String())
	w.WriteHeader(status)
	_ = compose.WriteAtom(w, new(Handler).document(items))
}

// A server that names ranges it has cut is noticed, and asked in smaller pieces: all items
// come, or a loss is reported; never is one missing in silence.
//
// Duties: modified-range#3, modified-range#4, modified-range#12.
func TestCutters(t *testing.T) {
	latest := func(a, b version) int { return b.at.Compare(a.at) }
	orders := map[string]func(a, b version) int{
		"latest": latest, "oldest": func(a, b version) int { return a.at.Compare(b.at) },
		"any": func(a, b version) int { return strings.Compare(scrambled(a.id), scrambled(b.id)) },
	}
	for name, order := range orders {
		for seed := range feedtest.Seeds(feedtest.Count(30)) {
			random := rand.New(rand.NewPCG(seed, 0))
			var sizes []int
			for range 1 + random.IntN(25) {
				sizes = append(sizes, 1+random.IntN(1+int(seed%3)*2))
			}
			c := &cutter{store: groups(sizes...), limit: 2 + random.IntN(8), order: order}
			testCutter(t, fmt.Sprint(name, seed), c, sizes)
			// The range ends at the oldest item, of which there may be more. A group that fills an
			// answer looks the same from an honest server.
			if name == "latest" && slices.Max(sizes) < c.limit {
				c.names = func(asked Range, items []version) Range {
					if len(items) < c.limit {
						return asked
					}
					return Range{items[len(items)-1].at, asked.End}
				}
				testCutter(t, fmt.Sprint(name, seed, " named"), c, sizes)
			}
		}
	}
}

func scrambled(id string) string { return id[len(id)-1:] + id }

func testCutter(t *testing.T, name string, c *cutter, sizes []int) {
	w := &wire{handler: c}
	client := w.client()
	client.Dialect = ModifiedRange
	sync := client.Harvest(t.Context(), Mark{})
	h, err := feedhistory.Merge(sync.Readings())
	require.NoError(t, err, name)
	require.Less(t, sync.Requests(), 20+20*len(c.items), name)
	_, whole := sync.Mark()
	if missing := len(c.items) - len(h.Entries); missing > 0 || slices.Max(sizes) > c.limit {
		require.NotEmpty(t, h.Gaps, "%s: %d of %d items are missing, limit %d, sizes %v\n%s", name, missing, len(c.items), c.limit, sizes, w.log.String())
		require.False(t, whole, name)
		require.Greater(t, slices.Max(sizes), c.limit-1, "%s: only a group that cannot be divided may lack items", name)
	}
	require.Equal(t, whole, len(h.Gaps) == 0, name)
}

// An honest server is asked twice more if everything comes in one answer, and no more if the
// last answer is smaller than others.
func TestHonest(t *testing.T) {
	for size, want := range map[int]int{1: 1, 2: 3, 50: 3, 99: 3, 101: 2, 250: 3} {
		s := groupsApart(time.Minute, slices.Repeat([]int{1}, size)...)
		w := &wire{handler: s.handler(100)}
		sync := w.client().Harvest(t.Context(), Mark{})
		h, err := feedhistory.Merge(sync.Readings())
		require.NoError(t, err)
		require.Len(t, h.Entries, size)
		require.Empty(t, h.Gaps)
		require.Equal(t, want, sync.Requests(), size)
	}
}

// Header is called for each request to the origin of the collection, and its
// fields go nowhere else.
func TestHeader(t *testing.T) {
	collection := groups(1, 1, 1, 1).handler(2)
	hosts := map[string]int{}
	w := &wire{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts[r.URL.Host]++
		if r.URL.Host == "example.org" {
			require.Equal(t, fmt.Sprint("Bearer ", hosts[r.URL.Host]), r.Header.Get("Authorization"))
			http.Redirect(w, r, "http://other.example/", http.StatusFound)
			return
		}
		require.Empty(t, r.Header.Get("Authorization"))
		r.Header.Set(fieldModifiedRange, "/")
		collection.ServeHTTP(w, r)
	})}
	c := w.client()
	asked := 0
	c.Header = func(context.Context, string) (http.Header, error) {
		asked++
		return http.Header{"Authorization": {fmt.Sprint("Bearer ", asked)}}, nil
	}
	_, _ = feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Readings())
	require.Greater(t, asked, 1)
	require.Equal(t, asked, hosts["example.org"])
	require.Equal(t, asked, hosts["other.example"])

	c.Header = func(context.Context, string) (http.Header, error) { return http.Header{"Host": {"other"}}, nil }
	_, err := feedhistory.Merge(c.Harvest(t.Context(), Mark{}).Readings())
	require.ErrorAs(t, err, new(*feedhistory.FetchError))
}

// A killed harvest is one whose process ends during a request. Each answer it has yielded is
// stored, together with the mark after it.
type killed struct {
	t      *testing.T
	store  *store
	wire   *wire
	ask    Dialect
	mark   Mark
	came   map[string]bool
	lossy  bool
	asked  map[string]int
	killed int // the requests asked again; some are without a kill
}

// rangeOf returns the range a request asks for.
func rangeOf(r *http.Request) string {
	return r.URL.RawQuery + " " + r.Header.Get(fieldModifiedRange) + " " + r.Header.Get(fieldRange)
}

// run harvests until the given request, which is the last of the process. It returns whether
// there was such a request.
func (k *killed) run(until int) (ended bool) {
	n, again := 0, 0
	next := k.mark.Rest.Next // from there on, the harvest after the rest asks for the newest items again
	k.wire.before = func(r *http.Request) {
		q := rangeOf(r)
		if asked, err := requestedRange(r); err == nil && !next.IsZero() && !asked.Start.Before(next) {
			n++
			return
		}
		if n++; n <= until && n > 1 && k.asked[q] > 0 {
			again++
		}
		if n <= until {
			k.asked[q]++
		}
	}
	k.wire.lose = func() bool { return n >= until }
	c := k.wire.client()
	c.Dialect, c.Overlap = k.ask, -1
	k.store.now = k.store.now.Add(time.Hour)
	h := c.Harvest(k.t.Context(), k.mark)
	for r, err := range h.Readings() {
		if n >= until {
			break
		}
		if err == nil && r.Document != nil {
			k.take(r.Document, h)
		} else {
			k.lossy = true
		}
	}
	if n < until {
		var whole bool
		k.mark, whole = h.Mark()
		require.Equal(k.t, !k.lossy, whole)
	}
	k.killed += again
	return n < until
}

// take stores a document with the mark, as JSON.
func (k *killed) take(doc *feedhistory.Document, h *Harvest) {
	for _, e := range doc.Entries {
		k.came[e.ID] = true
	}
	mark, _ := h.Mark()
	text, err := json.Marshal(mark)
	require.NoError(k.t, err)
	k.mark = Mark{}
	require.NoError(k.t, json.Unmarshal(text, &k.mark))
}

// A harvest killed during any of its requests, and those that continue it, bring the same items
// as an unbroken one, and report a loss if it does. A kill costs the request under way: a
// harvest repeats none but its first. Only a server that does not name the ranges of its answers
// costs up to three more, until it has shown how it answers.
//
// Duties: modified-range#9.
func TestKilled(t *testing.T) {
	latest := func(a, b version) int { return b.at.Compare(a.at) }
	oldest := func(a, b version) int { return a.at.Compare(b.at) }
	for seed := range feedtest.Seeds(feedtest.Count(15)) {
		random := rand.New(rand.NewPCG(seed, 0))
		var sizes []int
		for range 1 + random.IntN(20) {
			sizes = append(sizes, 1+random.IntN(1+int(seed%3)*2))
		}
		limit := 2 + random.IntN(6)
		s := groups(sizes...)
		for name, handler := range map[string]http.Handler{
			"ours": s.handler(limit), "latest": &cutter{store: s, limit: limit, order: latest}, "oldest": &cutter{store: s, limit: limit, order: oldest},
		} {
			testKilled(t, fmt.Sprint(name, seed), s, handler, ModifiedRange, 0)
		}
		for _, f := range []foreign{
			{dialect: ModifiedRange}, {dialect: ModifiedRange, cuts: true}, {dialect: RangeUpdated, closed: true}, {dialect: GData, claims: true},
		} {
			f.store, f.limit = s, limit
			testKilled(t, fmt.Sprintf("%d %+v", seed, f), s, &f, f.dialect, 3)
		}
	}
}

// The unit of the stamps is known from earlier answers, and kept.
//
// Duties: modified-range#5.
func TestKilledUnits(t *testing.T) {
	s := groupsApart(time.Millisecond, 1, 3, 3, 1)
	s.put("urn:new", "text", s.now.Add(-2*time.Millisecond+2*time.Nanosecond))
	testKilled(t, "units", s, &foreign{store: s, dialect: ModifiedRange, limit: 1}, ModifiedRange, 3)
}

func testKilled(t *testing.T, name string, s *store, handler http.Handler, ask Dialect, more int) {
	begin := func() *killed {
		return &killed{t: t, store: s, wire: &wire{handler: handler}, ask: ask, came: map[string]bool{}, asked: map[string]int{}}
	}
	const unbroken = 10_000
	want := begin()
	require.True(t, want.run(unbroken), name)
	for first := 1; ; first++ {
		k := begin()
		if k.run(first) {
			return
		}
		once := *k
		once.came, once.asked, once.wire = maps.Clone(k.came), maps.Clone(k.asked), &wire{handler: handler}
		require.True(t, once.run(unbroken))
		once.requireEqual(want, 1, more*min(1, 6/first), "%s killed at %d", name, first)
		kills := 1
		for second := first%3 + 1; kills < 9 && !k.run(second); kills++ {
			second = cmp.Or((first+kills)%4, 1)
		}
		if kills == 9 {
			require.True(t, k.run(unbroken), name)
		}
		k.requireEqual(want, kills, more, "%s killed %d times, first at %d", name, kills, first)
	}
}

// requireEqual requires the result of another harvest. Each kill may cost one request, and until
// it is known how the server answers, a few more.
func (k *killed) requireEqual(want *killed, kills, more int, format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n" + k.wire.log.String()
	require.Equal(k.t, want.came, k.came, text)
	require.Equal(k.t, want.lossy, k.lossy, text)
	require.LessOrEqual(k.t, k.killed, want.killed+kills+more, text)
}

// A stage that cannot be read costs requests, and loses nothing.
func TestMalformedStage(t *testing.T) {
	for _, confirm := range []string{"", "x", "/=", "/=x", "2026-03-01T11:00:00Z/2026-03-01T11:50:00Z", strings.Repeat("=", 9)} {
		s := groups(slices.Repeat([]int{1}, 30)...)
		mark := Mark{Rest: Rest{End: s.now.Add(-10 * time.Minute), Next: s.now, Dialect: ModifiedRange, Stage: stage{Confirm: confirm}}}
		h, err := feedhistory.Merge((&wire{handler: s.handler(4)}).client().Harvest(t.Context(), mark).Readings())
		require.NoError(t, err)
		require.Empty(t, h.Gaps)
		require.Len(t, h.Entries, 20, confirm)
	}
}

// Eight requests bring a harvest forward with any server; one is enough if the server names the
// ranges of its answers.
//
// Duties: modified-range#12.
func TestLeastRequests(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 30} {
		s := groups(slices.Repeat([]int{1, 2}, n)...)
		testLeast(t, s.handler(3), 1)
		for _, f := range []foreign{
			{dialect: ModifiedRange}, {dialect: ModifiedRange, closed: true}, {dialect: RangeUpdated}, {dialect: RangeUpdated, strict: true},
			{dialect: GData}, {dialect: GData, claims: true}, {dialect: GData, claims: true, closed: true},
		} {
			for _, f.limit = range []int{3, 100} {
				f.store = s
				testLeast(t, &f, 8)
			}
		}
	}
}

func testLeast(t *testing.T, handler http.Handler, requests int) {
	var mark Mark
	for runs, whole := 0, false; !whole; runs++ {
		require.Less(t, runs, 100, "%+v", handler)
		c := (&wire{handler: handler}).client()
		c.Budget.Requests = requests
		h := c.Harvest(t.Context(), mark)
		_, err := feedhistory.Merge(h.Readings())
		require.NoError(t, err)
		mark, whole = h.Mark()
	}
}
