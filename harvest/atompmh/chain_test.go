package atompmh

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/mirror"
)

// A dailyFeed is a producer such as miletus: it has a document for each day with changes,
// and each document has the time of the latest change of all. A changed record leaves its
// archive. One that lies leaves it there instead, with its new time.
type dailyFeed struct {
	now   time.Time
	items map[string]logged
	days  map[string]string // of the records, by ID
	lies  bool
}

func newDailyFeed(days int) *dailyFeed {
	f := &dailyFeed{now: noon, items: map[string]logged{}, days: map[string]string{}}
	for i := range 3 * days {
		f.put(fmt.Sprintf("urn:%d", i), false)
		f.now = f.now.Add(8 * time.Hour)
	}
	return f
}

func (f *dailyFeed) put(id string, deleted bool) {
	f.now = f.now.Add(time.Minute)
	f.items[id] = logged{id, f.now, deleted, len(f.items) + f.now.Minute()}
	if f.days[id] == "" || !f.lies {
		f.days[id] = f.now.Format(time.DateOnly)
	}
}

func (f *dailyFeed) present() map[string]copied {
	return (&foreign{log: slices.Collect(maps.Values(f.items))}).present()
}

// ServeHTTP implements http.Handler.
func (f *dailyFeed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	day := strings.TrimPrefix(r.URL.Path, "/")
	if day == "feed" {
		day = f.now.Format(time.DateOnly)
	}
	var entries []string
	older, latest := "", time.Time{}
	for _, id := range slices.Sorted(maps.Keys(f.items)) {
		it := f.items[id]
		if it.at.After(latest) {
			latest = it.at
		}
		if f.days[id] == day {
			entries = append(entries, it.entry())
		} else if f.days[id] < day {
			older = max(older, f.days[id])
		}
	}
	if older != "" {
		older = "/" + older
	}
	w.Header().Set("Date", f.now.Format(http.TimeFormat))
	_, _ = w.Write([]byte(feed(latest.Format(time.RFC3339), older, entries...)))
}

// A dailyConsumer keeps up with a dailyFeed, by changes or in a mirror.
type dailyConsumer struct {
	*dailyFeed
	wire  *wire
	known []string // the archives at which harvests ended
	h     *Harvester

	consumer *consumer
	mirror   *mirror.Mirror
}

func newDailyConsumer(f *dailyFeed, keeps bool) *dailyConsumer {
	c := &dailyConsumer{dailyFeed: f, wire: &wire{handler: f}}
	c.h = &Harvester{HTTP: c.wire.client(), URL: "https://example.org/feed", Shelf: newShelf(), Known: func(url string) { c.known = append(c.known, url) }}
	if keeps {
		c.mirror = &mirror.Mirror{Store: new(mirror.Memory)}
	} else {
		c.consumer = &consumer{Harvester: c.h, has: map[string]copied{}}
	}
	return c
}

// harvest harvests, and returns the number of requests, and whether the result is right.
func (c *dailyConsumer) harvest(t testingContext) (requests int, right bool) {
	before := len(c.wire.requests)
	var has map[string]copied
	if c.consumer != nil {
		h, _, err := c.consumer.harvest(t.Context())
		require.NoError(t, err)
		_, whole := h.Mark()
		require.True(t, whole)
		has = c.consumer.present()
	} else {
		_, err := c.h.Keep(t.Context(), c.mirror)
		require.NoError(t, err)
		has = kept(t, c.mirror, c.h.URL)
	}
	return len(c.wire.requests) - before, maps.Equal(has, c.present())
}

// If each document has the feed's time, the third harvest and those after it end at a
// known archive. The whole chain is read again at times.
//
// Duties: atom-pmh#7.
func TestFeedTimeInArchives(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		f := newDailyFeed(50)
		c := newDailyConsumer(f, keeps)
		var requests []int
		for i := range 60 {
			n, right := c.harvest(t)
			require.True(t, right, i)
			requests = append(requests, n)
			f.now = f.now.Add(time.Duration(i%3) * 9 * time.Hour)
			f.put(fmt.Sprintf("urn:new:%d", i), false)
			f.put(fmt.Sprintf("urn:%d", 2*i), i%5 == 0)
		}
		t.Log(requests)
		for i, n := range requests {
			if i == 0 || i == 1 || i == 22 || i == 43 {
				require.Greater(t, n, 30, i)
			} else {
				require.LessOrEqual(t, n, 5, i)
			}
		}
		require.Len(t, c.known, 56)

		c.h.WholeChain = true
		n, right := c.harvest(t)
		require.Greater(t, n, 30)
		require.True(t, right)
		require.Len(t, c.known, 56)
		if keeps {
			continue
		}

		// The mark remembers the records of archives that were left out.
		c.h.WholeChain = false
		f.put("urn:last", false)
		n, _ = c.harvest(t)
		require.LessOrEqual(t, n, 5)
		require.Len(t, c.known, 57)
		c.h.WholeChain = true
		_, changes, err := c.consumer.harvest(t.Context())
		require.NoError(t, err)
		require.Empty(t, changes)
	}
}

// A record that has changed in an old archive, against the order of time, is noticed
// at once if it is the latest change, and else at the next pass. Then the producer is no
// longer trusted.
func TestFeedTimeOutOfOrder(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		for _, later := range []bool{false, true} {
			f := newDailyFeed(30)
			c := newDailyConsumer(f, keeps)
			grow := func() { f.put(fmt.Sprintf("urn:new:%d", len(f.items)), false) }
			for range 4 {
				_, right := c.harvest(t)
				require.True(t, right)
				grow()
			}
			require.Len(t, c.known, 2)
			f.lies = true
			f.put("urn:3", false)
			if later {
				grow()
			}
			harvests := 1
			for _, right := c.harvest(t); !right; _, right = c.harvest(t) {
				harvests++
				grow()
			}
			want, known := 1, 2
			if later {
				want, known = 19, 20
			}
			require.Equal(t, want, harvests)
			for range 5 {
				grow()
				n, right := c.harvest(t)
				require.True(t, right)
				require.Greater(t, n, 28)
			}
			require.Len(t, c.known, known)
		}
	}
}

// TestFeedTime checks that consumers of a producer whose documents all have the feed's
// time have its records after each harvest, whichever responses are lost.
func TestFeedTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newDailyFeed(6)
		c := newDailyConsumer(f, rapid.Bool().Draw(t, "keeps"))
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				f.now = f.now.Add(rapid.SampledFrom([]time.Duration{0, time.Hour, 20 * time.Hour, 50 * time.Hour}).Draw(t, "later"))
				id := fmt.Sprintf("urn:%d", rapid.IntRange(0, 25).Draw(t, "id"))
				last, ok := f.items[id]
				f.put(id, ok && !last.deleted && rapid.Bool().Draw(t, "delete"))
			}
			if c.mirror != nil && rapid.Bool().Draw(t, "cut short") {
				left := rapid.IntRange(1, 4).Draw(t, "responses until one is lost")
				c.wire.lose = func() bool { left--; return left < 0 }
				_, err := c.h.Keep(t.Context(), c.mirror)
				c.wire.lose = nil
				require.NoError(t, err)
			}
			_, right := c.harvest(t)
			require.True(t, right)
		}
	})
}
