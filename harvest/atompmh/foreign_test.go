package atompmh

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A foreign producer is not ours. It uses the freedoms of the specification:
// where it cuts archives, and whether it cuts them again; the order of entries;
// whether history stays, also that of deleted records. Its records may be
// stamped in the future, its server's clock differs from that of the stamps,
// and its answers may be cut short.
type foreign struct {
	now    time.Time
	skew   time.Duration // of the server's clock
	log    []logged      // in the order of publication
	sorted bool          // entries are in the order of time, else in that of publication
	sparse bool          // only the latest entry of each record stays
	sizes  []int         // of the documents, oldest first, repeatedly
	cut    func(length int) int
}

// A logged is an entry that was published.
type logged struct {
	id      string
	at      time.Time
	deleted bool
	n       int // distinguishes its representation from others
}

// ServeHTTP implements http.Handler.
func (f *foreign) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	docs := f.documents()
	n := len(docs) - 1
	if r.URL.Path != "/feed" {
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n >= len(docs) {
			http.NotFound(w, r)
			return
		}
	}
	w.Header().Set("Date", f.now.Add(f.skew).Format(http.TimeFormat))
	text := docs[n]
	if f.cut != nil {
		text = text[:f.cut(len(text))]
	}
	_, _ = w.Write([]byte(text))
}

// documents returns the documents of the feed, oldest first.
func (f *foreign) documents() (docs []string) {
	log := slices.Clone(f.log)
	if f.sparse {
		log = slices.DeleteFunc(log, func(l logged) bool { return f.latest()[l.id] != l })
	}
	if f.sorted {
		slices.SortStableFunc(log, func(a, b logged) int { return a.at.Compare(b.at) })
	}
	updated := time.Unix(0, 0)
	for n := 0; ; n++ {
		size := min(f.sizes[n%len(f.sizes)], len(log))
		var entries []string
		for _, l := range log[:size] {
			entries = append(entries, l.entry())
			if l.at.After(updated) && (!l.at.After(f.now) || f.sorted) {
				updated = l.at // future entries do not count
			}
		}
		older := ""
		if n > 0 {
			older = fmt.Sprintf("/%d", n-1)
		}
		docs = append(docs, feed(updated.Format(time.RFC3339Nano), older, entries...))
		if log = log[size:]; len(log) == 0 {
			return docs
		}
	}
}

func (l logged) entry() string {
	at := l.at.Format(time.RFC3339Nano)
	if l.deleted {
		return deletion(l.id, at)
	}
	return strings.Replace(record(l.id, at), "org/", fmt.Sprintf("org/%d/", l.n), 1)
}

// latest returns the entries that count (atom-pmh consumer#4).
func (f *foreign) latest() map[string]logged {
	all := map[string]logged{}
	for _, l := range f.log {
		if old, ok := all[l.id]; !ok || l.at.After(old.at) || l.at.Equal(old.at) && l.deleted {
			all[l.id] = l
		}
	}
	return all
}

// present returns what a consumer should have.
func (f *foreign) present() map[string]copied {
	all := map[string]copied{}
	for id, l := range f.latest() {
		if !l.deleted {
			all[id] = copied{at: l.at.UTC(), url: fmt.Sprintf("https://example.org/%d/%s", l.n, id[4:])}
		}
	}
	return all
}

// write publishes changes, each stamped with the present or with a future time.
func (f *foreign) write(t *rapid.T) {
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		f.now = f.now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute, 5 * time.Hour}).Draw(t, "later"))
		l := logged{id: fmt.Sprintf("urn:%d", rapid.IntRange(0, 6).Draw(t, "id")), at: f.now, n: len(f.log)}
		if rapid.IntRange(0, 7).Draw(t, "future") == 0 {
			l.at = l.at.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 80 * 365 * 24 * time.Hour}).Draw(t, "ahead"))
		}
		last, known := f.latest()[l.id]
		if known && !l.at.After(last.at) {
			continue // every change has a later time than the one before
		}
		l.deleted = known && rapid.IntRange(0, 2).Draw(t, "delete") == 0
		f.log = append(f.log, l)
	}
}

func (f *foreign) recut(t *rapid.T) {
	f.sizes = rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "sizes")
}

// TestForeignProducers checks that, whatever a producer does within its
// freedoms, and whenever answers are cut short, after a whole harvest a
// consumer has the present records, without reading everything each time.
func TestForeignProducers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &foreign{
			now:    time.Date(2012, 11, 1, 7, 0, 0, 0, time.UTC),
			skew:   -time.Duration(rapid.IntRange(0, 90).Draw(t, "skew")) * time.Second,
			sorted: rapid.Bool().Draw(t, "sorted"), sparse: rapid.Bool().Draw(t, "sparse"),
		}
		f.recut(t)
		w := &wire{handler: f}
		c := &consumer{Harvester: &Harvester{HTTP: w.client(), URL: "https://example.org/feed", Shelf: newShelf()}, has: map[string]copied{}}
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			f.write(t)
			if rapid.IntRange(0, 3).Draw(t, "recut") == 0 {
				f.recut(t)
			}
			if rapid.Bool().Draw(t, "torn") {
				seed := rapid.IntRange(1, 1000).Draw(t, "cut")
				f.cut = func(length int) int {
					seed = seed*7919%10007 + 1
					return min(length, seed%(2*length))
				}
				_, _, _ = c.harvest(t.Context())
				f.cut = nil
			}
			h, _, err := c.harvest(t.Context())
			require.NoError(t, err)
			_, whole := h.Mark()
			require.True(t, whole)
			require.Equal(t, f.present(), c.present())
			require.False(t, c.mark.Time.After(f.now), "the mark is in the future: %v", c.mark.Time)
		}
	})
}
