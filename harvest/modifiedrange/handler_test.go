package modifiedrange

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// get sends a request to a handler, and returns the answer and the IDs in it.
func get(t *testing.T, h http.Handler, target string, fields ...string) (*http.Response, []string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	doc, err := feedhistory.Parse(rec.Body, "")
	require.NoError(t, err)
	var got []string
	for _, e := range doc.Entries {
		got = append(got, e.ID)
	}
	for _, d := range doc.Deleted {
		got = append(got, "-"+d.Ref)
	}
	return rec.Result(), got
}

func abc(t *testing.T) *store {
	s := &store{now: at(t, "2026-03-01T12:00:00Z")}
	s.put("a", "A", at(t, "2026-01-01T00:00:00.123456789Z"))
	s.put("b", "B", at(t, "2026-01-02T00:00:00Z"))
	s.put("c", "C", at(t, "2026-01-03T00:00:00Z"))
	s.remove("d", at(t, "2026-01-04T00:00:00Z"))
	return s
}

// Every way to ask for a range, with its result.
//
// Duties: modified-range#1, modified-range#2, modified-range#3.
func TestHandlerRanges(t *testing.T) {
	const day2, day3 = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
	for _, test := range []struct {
		name, field, value, query string
		want, covered             string
		note                      bool
	}{
		{name: "nothing asked", want: "c b a -d", covered: "/"},
		{name: "everything", field: "Modified-Range", value: "/", want: "c b a -d", covered: "/"},
		{name: "half-open", field: "Modified-Range", value: day2 + "/" + day3, want: "b", covered: day2 + "/" + day3},
		{name: "start", field: "Modified-Range", value: day3 + "/", want: "c -d", covered: day3 + "/"},
		{name: "end", field: "Modified-Range", value: "/" + day3, want: "b a", covered: "/" + day3},
		{name: "zone", field: "Modified-Range", value: "2026-01-03T01:00:00+01:00/", want: "c -d", covered: day3 + "/"},
		{name: "all digits", field: "Modified-Range", value: "/2026-01-01T00:00:00.12345679Z", want: "a", covered: "/2026-01-01T00:00:00.12345679Z"},
		{name: "empty", field: "Modified-Range", value: day3 + "/" + day3, covered: day3 + "/" + day3},
		{name: "backwards", field: "Modified-Range", value: day3 + "/" + day2, covered: day3 + "/" + day2},
		{name: "malformed", field: "Modified-Range", value: "yesterday/", want: "c b a -d", covered: "/", note: true},
		{name: "no slash", field: "Modified-Range", value: day2, want: "c b a -d", covered: "/", note: true},
		{name: "closed", field: "Range", value: "updated=" + day2 + "/" + day3, want: "c b", covered: day2 + "/2026-01-03T00:00:00.000000001Z"},
		{name: "closed, malformed", field: "Range", value: "updated=x/y", want: "c b a -d", covered: "/", note: true},
		{name: "bytes", field: "Range", value: "bytes=0-10", want: "c b a -d", covered: "/"},
		{name: "parameters", query: "?updated-min=" + day2 + "&updated-max=" + day3, want: "b", covered: day2 + "/" + day3},
		{name: "parameter, zone", query: "?updated-min=2026-01-03T01:00:00+01:00", want: "c -d", covered: day3 + "/"},
		{name: "parameter, malformed", query: "?updated-max=now", want: "c b a -d", covered: "/", note: true},
		{name: "header before parameters", field: "Modified-Range", value: day3 + "/", query: "?updated-max=" + day2, want: "c -d", covered: day3 + "/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log strings.Builder
			h := abc(t).handler(0)
			h.Logger = slog.New(slog.NewTextHandler(&log, nil))
			var fields []string
			if test.field != "" {
				fields = []string{test.field, test.value}
			}
			resp, got := get(t, h, "/"+test.query, fields...)
			assert.Equal(t, http.StatusOK, resp.StatusCode)
			assert.Equal(t, test.want, strings.Join(got, " "))
			assert.Equal(t, test.covered, resp.Header.Get("Modified-Range"))
			assert.Equal(t, []string{"Modified-Range", "Range"}, resp.Header.Values("Vary"))
			assert.Equal(t, "Sun, 01 Mar 2026 12:00:00 GMT", resp.Header.Get("Date"))
			assert.Equal(t, test.note, strings.Contains(log.String(), "malformed"))
		})
	}
}

// A group of equal stamps is never cut: the answer exceeds the limit instead.
//
// Duties: modified-range#5.
func TestHandlerKeepsGroups(t *testing.T) {
	for _, test := range []struct {
		sizes         []int
		limit, status int
		want          int
	}{
		{[]int{1, 1, 1}, 3, 200, 3},
		{[]int{1, 1, 1}, 2, 206, 2},
		{[]int{1, 4, 1}, 2, 206, 5},
		{[]int{1, 4}, 2, 200, 5}, // with the group it is everything
		{[]int{7}, 1, 200, 7},
		{[]int{2, 2, 2}, 2, 206, 2},
	} {
		h := groups(test.sizes...).handler(test.limit)
		resp, got := get(t, h, "/")
		assert.Equal(t, test.status, resp.StatusCode, "%v", test)
		assert.Len(t, got, test.want, "%v", test)
	}
}

// Duties: modified-range#3.
func TestHandlerSettings(t *testing.T) {
	h := abc(t).handler(1)
	h.Partial, h.Format = 226, feedhistory.FormatRSS
	h.Head = &feedhistory.Document{Title: "Letters"}
	resp, got := get(t, h, "/", "Modified-Range", "/2026-01-02T00:00:00Z")
	assert.Equal(t, 200, resp.StatusCode)
	assert.Equal(t, []string{"a"}, got)
	assert.Equal(t, "application/rss+xml; charset=utf-8", resp.Header.Get("Content-Type"))
	resp, got = get(t, h, "/", "Modified-Range", "/2026-01-03T00:00:00Z")
	assert.Equal(t, 226, resp.StatusCode)
	assert.Equal(t, []string{"b"}, got)

	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodHead, "/", nil))
	assert.Equal(t, 226, rec.Code)
	assert.Empty(t, rec.Body.String())
	rec = httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/", nil))
	assert.Equal(t, http.StatusMethodNotAllowed, rec.Code)
}

// A query that breaks its contract would mislead clients, so there is no
// answer.
func TestHandlerRefusesWrongItems(t *testing.T) {
	s := abc(t)
	b, c := s.items["b"].item(), s.items["c"].item()
	shifted := b
	shifted.Modified = shifted.Modified.Add(time.Second)
	for name, query := range map[string]harvest.Query[Item]{
		"error":   func(context.Context, time.Time, time.Time, int) ([]Item, error) { return nil, errors.New("no disk") },
		"order":   func(context.Context, time.Time, time.Time, int) ([]Item, error) { return []Item{b, c}, nil },
		"stamp":   func(context.Context, time.Time, time.Time, int) ([]Item, error) { return []Item{shifted}, nil },
		"outside": func(context.Context, time.Time, time.Time, int) ([]Item, error) { return []Item{c}, nil },
		"nothing": func(context.Context, time.Time, time.Time, int) ([]Item, error) {
			return []Item{{Modified: s.now}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			h := &Handler{Items: query, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if name == "outside" {
				r.Header.Set("Modified-Range", "/2026-01-02T00:00:00Z")
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			assert.Equal(t, http.StatusInternalServerError, rec.Code)
			assert.Contains(t, log.String(), "cannot be answered")
		})
	}
}
