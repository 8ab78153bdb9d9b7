package check

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
)

// A collection is a server of items by ranges, whose faults a test chooses. Item n was
// modified at minute n, unless group puts several into one.
type collection struct {
	items, limit, group int

	oldestFirst, full, inclusive, silent, ignores, refuses, unstamped, empty bool
	skips                                                                    int // the item that parts leave out
}

func (c collection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, end, _ := strings.Cut(r.Header.Get("Modified-Range"), "/")
	from, _ := time.Parse(time.RFC3339Nano, start)
	to, err := time.Parse(time.RFC3339Nano, end)
	open := err != nil
	if c.refuses && !open {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var items []int
	for n := c.items; n > 0; n-- {
		at := c.at(n)
		if c.ignores || !at.Before(from) && (open || at.Before(to) || c.inclusive && at.Equal(to)) {
			items = append(items, n)
		}
	}
	if c.oldestFirst {
		slices.Reverse(items)
	}
	status := http.StatusOK
	if c.limit > 0 && len(items) > c.limit {
		if !c.full {
			status = http.StatusPartialContent
		}
		items = slices.DeleteFunc(items, func(n int) bool { return n == c.skips })
		if items = items[:c.limit]; c.empty {
			items = nil
		}
	}
	if !c.silent {
		w.Header().Set("Vary", "Accept-Encoding, modified-range")
		w.Header().Set("Modified-Range", r.Header.Get("Modified-Range"))
	}
	w.Header().Set("Content-Type", "application/atom+xml")
	w.WriteHeader(status)
	fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:c</id><title/><updated>2026-01-02T00:00:00Z</updated>`)
	for _, n := range items {
		updated := "<updated>" + c.at(n).Format(time.RFC3339) + "</updated>"
		if c.unstamped && n == 1 {
			updated = ""
		}
		fmt.Fprintf(w, "<entry><id>urn:%d</id><title>%[1]d</title>%s</entry>", n, updated)
	}
	fmt.Fprint(w, "</feed>")
}

func (c collection) at(n int) time.Time {
	return time.Date(2026, 1, 1, 0, (n-1)/max(1, c.group), 0, 0, time.UTC)
}

// Each rule of ranges is broken by a server, and by it alone; sound servers break none.
// The clauses are modified-range#1, modified-range#3 to modified-range#6.
func TestRanges(t *testing.T) {
	raised := map[string]bool{}
	for _, test := range []struct {
		name   string
		server collection
		want   string
	}{
		{"everything at once", collection{items: 7}, ""},
		{"nothing", collection{}, ""},
		{"in parts", collection{items: 7, limit: 3}, ""},
		{"one by one", collection{items: 4, limit: 1}, ""},
		{"the end is part of the range", collection{items: 7, limit: 3, inclusive: true}, ""},
		{"the end, one by one", collection{items: 4, limit: 1, inclusive: true}, ""},
		{"groups as large as parts", collection{items: 9, limit: 3, group: 3}, ""},
		{"oldest first", collection{items: 9, limit: 3, oldestFirst: true}, "mr-part-not-newest"},
		{"one left out", collection{items: 9, limit: 3, skips: 8}, "mr-part-not-newest"},
		{"an empty part", collection{items: 9, limit: 3, empty: true}, "mr-part-not-newest"},
		{"200 for a part", collection{items: 9, limit: 3, full: true}, "mr-200-partial"},
		{"groups larger than parts", collection{items: 9, limit: 2, group: 3}, "mr-group-cut"},
		{"groups cut in two", collection{items: 9, limit: 4, group: 3}, "mr-group-cut"},
		{"no ranges", collection{items: 9, ignores: true}, "mr-outside-range"},
		{"no ranges, in parts", collection{items: 9, limit: 3, ignores: true}, "mr-outside-range"},
		{"refused", collection{items: 9, limit: 3, refuses: true}, "mr-range-refused"},
		{"no stamp", collection{items: 9, unstamped: true}, "mr-stamp-missing updated-missing"},
		{"no headers", collection{items: 9, silent: true}, "mr-range-unnamed mr-vary-missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := walkRanges(t, test.server, 0)
			require.Equal(t, test.want, strings.Join(codes(found), " "), "%v", found)
			for _, f := range found {
				testFinding(t, f, rule(f.Code))
				raised[f.Code] = true
			}
		})
	}
	for _, r := range Rules() {
		require.True(t, r.Scope != RangesOfItems || raised[r.Code], r.Code)
	}
	require.Equal(t, []string{"walk-cut-short"}, codes(walkRanges(t, collection{items: 90, limit: 3}, 10)))
}

// What changes during a walk is left for the next harvest, and is no fault.
func TestRangesOfChanges(t *testing.T) {
	items := 0
	stamps := map[string]time.Time{}
	h := &modifiedrange.Handler{Limit: 3, Head: &feedhistory.Document{ID: "urn:c", Title: "C"}}
	h.Items = func(_ context.Context, start, end time.Time, limit int) (found []modifiedrange.Item, err error) {
		items++ // one of the oldest changes before each answer, and a new one comes
		stamps[fmt.Sprint("urn:", items)] = time.Now().UTC()
		stamps[fmt.Sprint("urn:new-", items)] = time.Now().UTC()
		for id, at := range stamps {
			if (modifiedrange.Range{Start: start, End: end}).Contains(at) {
				text := fmt.Sprintf(`<entry xmlns="http://www.w3.org/2005/Atom"><id>%s</id><title/><updated>%s</updated></entry>`, id, at.Format(time.RFC3339Nano))
				e, err := feedhistory.ReadEntry(feedhistory.FormatAtom, text, "")
				require.NoError(t, err)
				found = append(found, modifiedrange.Item{Modified: at, Entry: e})
			}
		}
		slices.SortFunc(found, func(a, b modifiedrange.Item) int {
			return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Entry.ID, b.Entry.ID))
		})
		return found[:min(len(found), cmp.Or(limit, len(found)))], nil
	}
	for n := range 40 {
		stamps[fmt.Sprint("urn:", n)] = time.Now().UTC().Add(-time.Hour + time.Duration(n)*time.Second)
	}
	require.Empty(t, walkRanges(t, h, 0))
	require.Greater(t, items, 20)
}

func walkRanges(t *testing.T, h http.Handler, most int) []Finding {
	server := httptest.NewServer(h)
	defer server.Close()
	client := pagesClient(t)
	client.Budget.Documents = most
	return walkAll(t.Context(), &Chain{Profile: ModifiedRange}, client, server.URL)
}
