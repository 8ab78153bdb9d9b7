package atompmh

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// TestKeep checks that after each harvest a store has the records of the pool,
// with their representations, whatever was created, modified and deleted
// meanwhile, and whichever responses are lost; and that deleted records are
// marked as such. A store that was there from the beginning and one that comes
// at the end agree.
func TestKeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool, out := newPool(), newMemory()
		p := Producer{
			Output: out, Base: base, Pool: pool.query, Historical: rapid.Bool().Draw(t, "historical"),
			ByAbsence: rapid.Bool().Draw(t, "deletions"),
			Split:     compose.Split{Size: rapid.IntRange(1, 6).Draw(t, "split")},
		}
		w := &wire{handler: http.StripPrefix("/records", &publish.Handler{FS: out})}
		h := Harvester{HTTP: w.client(), URL: p.URL()}
		m := &mirror.Mirror{Store: mirror.NewMemory()}
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			for range rapid.IntRange(0, 10).Draw(t, "changes") {
				at := pool.now.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "later")) * time.Hour)
				id := fmt.Sprintf("urn:%d", rapid.IntRange(0, 9).Draw(t, "id"))
				if last, known := pool.items[id]; known && !last.Deleted && rapid.Bool().Draw(t, "delete") {
					pool.remove(id, at)
				} else {
					pool.put(id, at)
				}
				pool.wait()
				pool.now = pool.now.Add(1) // so that nothing comes too late
			}
			require.NoError(t, p.Update(t.Context()))
			left := rapid.IntRange(0, 4).Draw(t, "responses until one is lost")
			w.lose = func() bool { left--; return left == -1 }
			changes, err := h.Keep(t.Context(), m)
			if w.lose = nil; err != nil {
				require.ErrorIs(t, err, errLost)
			}
			if err != nil || len(changes.Feed.Ledger.Gaps()) > 0 {
				changes, err = h.Keep(t.Context(), m)
			}
			require.NoError(t, err)
			require.Empty(t, changes.Feed.Ledger.Gaps())
			require.Equal(t, pool.present(), kept(t, m, h.URL))

			requests := len(w.requests)
			changes, err = h.Keep(t.Context(), m)
			require.NoError(t, err)
			require.Zero(t, changes.Added+changes.Changed+changes.Deleted)
			require.Equal(t, http.StatusNotModified, w.statuses[requests])
			require.Len(t, w.requests, requests+1)
		}
		late := &mirror.Mirror{Store: mirror.NewMemory()}
		_, err := h.Keep(t.Context(), late)
		require.NoError(t, err)
		require.Equal(t, pool.present(), kept(t, late, h.URL))
	})
}

// A testingContext is a *testing.T or a *rapid.T.
type testingContext interface {
	require.TestingT
	Context() context.Context
}

// kept returns the records in a store, and requires that no other record is
// deleted there.
func kept(t testingContext, m *mirror.Mirror, url string) map[string]copied {
	all := map[string]copied{}
	for r, err := range m.Store.Entries(t.Context(), mirror.Query{Feed: url, States: mirror.Current | mirror.Former}) {
		require.NoError(t, err)
		e, err := r.Entry()
		require.NoError(t, err)
		if r.State == mirror.Live {
			all[r.ID] = copied{at: r.Time().UTC(), url: e.Links[0].Href}
		} else {
			require.Contains(t, []mirror.State{mirror.Deleted, mirror.Absent}, r.State)
		}
	}
	return all
}

// A record's history is in the store: what the producer keeps, and what was
// seen.
//
// Duties: atom-pmh#27, atom-pmh#28, atom-pmh#29.
func TestKeepHistory(t *testing.T) {
	pool, out := newPool(), newMemory()
	p := Producer{Output: out, Base: base, Pool: pool.query, Historical: true, Split: compose.Split{Size: 2}}
	w := &wire{handler: http.StripPrefix("/records", &publish.Handler{FS: out})}
	h := Harvester{HTTP: w.client(), URL: p.URL()}
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	for i := range 5 {
		pool.put("urn:a", noon.Add(time.Duration(i)*time.Hour))
		require.NoError(t, p.Update(t.Context()))
		if i == 2 || i == 4 {
			_, err := h.Keep(t.Context(), m)
			require.NoError(t, err)
		}
	}
	versions := func() (times []string) {
		for _, v := range feedtest.All(t, m.Store.Versions(t.Context(), h.URL, "urn:a")) {
			times = append(times, v.Content.Updated.Format("15:04"))
		}
		return times
	}
	require.Equal(t, []string{"15:00", "14:00", "13:00", "12:00"}, versions())
	records, err := m.Store.Records(t.Context(), h.URL, []string{"urn:a"})
	require.NoError(t, err)
	require.Equal(t, mirror.Live, records["urn:a"].State)

	pool.remove("urn:a", noon.Add(9*time.Hour))
	require.NoError(t, p.Update(t.Context()))
	changes, err := h.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, 1, changes.Deleted)
	records, err = m.Store.Records(t.Context(), h.URL, []string{"urn:a"})
	require.NoError(t, err)
	require.Equal(t, mirror.Deleted, records["urn:a"].State)
	require.Equal(t, noon.Add(9*time.Hour), records["urn:a"].Tombstone.When.UTC())
	require.Len(t, versions(), 4)
}

// A mark that cannot be read is an error, and so is a feed that does not exist.
func TestKeepErrors(t *testing.T) {
	w := &wire{handler: http.NotFoundHandler()}
	h := Harvester{HTTP: w.client(), URL: base + "feed.atom"}
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	var status *feedhistory.FetchError
	_, err := h.Keep(t.Context(), m)
	require.ErrorAs(t, err, &status)
	require.NoError(t, m.Store.Commit(t.Context(), &mirror.Commit{
		Feed: &mirror.Feed{URL: base + "bad.atom", Source: "atom-pmh", Mark: []byte(`{"time":1}`)},
	}))
	h.URL = base + "bad.atom"
	_, err = h.Keep(t.Context(), m)
	require.ErrorContains(t, err, "the stored mark")
}

// TestKeepInterrupted checks that harvests that are cut short anywhere, while the
// pool goes on changing, end with the same store as an unbroken one.
func TestKeepInterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool, out := newPool(), newMemory()
		p := Producer{Output: out, Base: base, Pool: pool.query, Historical: rapid.Bool().Draw(t, "historical"), Split: compose.Split{Size: rapid.IntRange(1, 3).Draw(t, "split")}}
		w := &wire{handler: http.StripPrefix("/records", &publish.Handler{FS: out})}
		h := Harvester{HTTP: w.client(), URL: p.URL()}
		m := &mirror.Mirror{Store: mirror.NewMemory()}
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			for range rapid.IntRange(1, 10).Draw(t, "changes") {
				id := fmt.Sprintf("urn:%d", rapid.IntRange(0, 9).Draw(t, "id"))
				if last, known := pool.items[id]; known && !last.Deleted && rapid.Bool().Draw(t, "delete") {
					pool.remove(id, pool.now)
				} else {
					pool.put(id, pool.now)
				}
				pool.wait()
				pool.now = pool.now.Add(1)
			}
			require.NoError(t, p.Update(t.Context()))
			left := rapid.IntRange(0, 6).Draw(t, "responses until one is lost")
			w.lose = func() bool { left--; return left < 0 }
			if _, err := h.Keep(t.Context(), m); err != nil {
				require.ErrorIs(t, err, errLost)
			}
			w.lose = nil
		}
		changes, err := h.Keep(t.Context(), m)
		require.NoError(t, err)
		require.Empty(t, changes.Feed.Ledger.Gaps())
		f, _ := m.Store.Feed(t.Context(), h.URL)
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict, "%s %v", f.Mark, f.Ledger.Gaps())
		require.Equal(t, pool.present(), kept(t, m, h.URL))
	})
}

// A harvest that is cut short again and again requests no archive twice, except the
// one whose answer was lost.
func TestKeepContinues(t *testing.T) {
	pool, out := newPool(), newMemory()
	p := Producer{Output: out, Base: base, Pool: pool.query, Split: compose.Split{Size: 2}}
	for i := range 60 {
		pool.put(fmt.Sprintf("urn:%d", i), pool.now)
		pool.wait()
		pool.now = pool.now.Add(time.Minute)
	}
	require.NoError(t, p.Update(t.Context()))
	w := &wire{handler: http.StripPrefix("/records", &publish.Handler{FS: out})}
	h := Harvester{HTTP: w.client(), URL: p.URL()}
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	whole, cuts := false, 0
	for harvests := 0; !whole; harvests++ {
		require.Less(t, harvests, 20)
		left := 5
		w.lose = func() bool {
			if left--; left == -1 {
				cuts++
			}
			return left == -1
		}
		changes, err := h.Keep(t.Context(), m)
		require.NoError(t, err)
		whole = changes.Feed.Verdict == feedhistory.VerdictWhole
	}
	answers := map[string]int{}
	for _, r := range w.requests {
		answers[r.URL.Path]++
	}
	again := 0
	for path, n := range answers {
		if path != "/records/feed.atom" { // with which each harvest begins
			again += n - 1
		}
	}
	require.Len(t, answers, 30)
	require.Equal(t, cuts, again)
	records := 0
	for _, err := range m.Store.Entries(t.Context(), mirror.Query{Feed: h.URL}) {
		require.NoError(t, err)
		records++
	}
	require.Equal(t, 60, records)
}

// A server that writes the number of a session into its links names the same archives: a harvest that
// was cut short goes on at the one it has not read.
func TestKeepSessions(t *testing.T) {
	session := 0
	s := serveSite(t, map[string]string{
		"/f": feed(day(4), "/3;jsessionid=0", record("urn:4", day(4))),
		"/3": feed(day(3), "/2;jsessionid=0", record("urn:3", day(3))),
		"/2": feed(day(2), "/1;jsessionid=0", record("urn:2", day(2))),
		"/1": feed(day(1), "", record("urn:1", day(1))),
	})
	s.before = func(string) { // each answer has another number
		session++
		for other, doc := range s.docs {
			s.docs[other] = strings.Replace(doc, fmt.Sprint("jsessionid=", session-1), fmt.Sprint("jsessionid=", session), 1)
		}
	}
	s.URL = s.url + "/f"
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	second := s.docs["/2"]
	delete(s.docs, "/2") // it answers 500
	report, err := s.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
	s.docs["/2"] = strings.Replace(second, "jsessionid=0", fmt.Sprint("jsessionid=", session), 1)
	s.asked.Took()
	report, err = s.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWhole, report.Feed.Verdict, "%v", report.Feed.Ledger.Gaps())
	require.Equal(t, []string{"/f", "/3", "/2", "/1"}, s.asked.Took(), "the first older than the mark, and the rest")
	require.Len(t, live(t, m.Store, s.URL), 4)
}

// A producer may change the addresses of its archives. However a harvest before that ended, the
// next one reads the chain again, and not what is gone.
func TestKeepRenumbered(t *testing.T) {
	const records = 8
	for failing := 1; failing < records; failing++ {
		for name, fail := range map[string]func(*site, string){
			"status":  func(s *site, path string) { delete(s.docs, path) },
			"damaged": func(s *site, path string) { s.docs[path] = strings.TrimSuffix(s.docs[path], "</feed>") },
			"limit":   func(s *site, _ string) { s.Budget.Requests = records - failing },
		} {
			for _, before := range []int{0, 1} { // the harvests that were whole
				t.Run(fmt.Sprint(name, " at ", failing, " after ", before), func(t *testing.T) {
					s := serveSite(t, map[string]string{})
					m := &mirror.Mirror{Store: mirror.NewMemory()}
					s.URL = s.url + "/feed"
					chain := func(folder string, n int) {
						clear(s.docs)
						for i := 1; i <= n; i++ {
							older, path := fmt.Sprintf("/%s/%d", folder, i-1), fmt.Sprintf("/%s/%d", folder, i)
							if i == 1 {
								older = ""
							}
							if i == n {
								path = "/feed"
							}
							s.docs[path] = feed(day(i), older, record(fmt.Sprint("urn:", i), day(i)))
						}
						for _, old := range []string{"first", "old"} {
							for i := range records + 1 {
								if path := fmt.Sprintf("/%s/%d", old, i); old != folder {
									s.docs[path] = "" // gone
								}
							}
						}
					}
					if before == 1 {
						chain("first", 2)
						_, err := s.Keep(t.Context(), m)
						require.NoError(t, err)
					}
					chain("old", records)
					fail(s, fmt.Sprint("/old/", failing))
					_, err := s.Keep(t.Context(), m)
					require.NoError(t, err)
					s.Budget.Requests = 0
					chain("new", records+1)
					for range 2 {
						report, err := s.Keep(t.Context(), m)
						require.NoError(t, err)
						require.Empty(t, report.Feed.Ledger.Gaps())
						require.Equal(t, feedhistory.VerdictWhole, report.Feed.Verdict)
						require.Len(t, live(t, m.Store, s.URL), records+1)
					}
				})
			}
		}
	}
}

// An archive that is gone for good costs one more reading of the chain whenever that begins with
// another archive, and two requests at other times.
func TestKeepGone(t *testing.T) {
	s := serveSite(t, map[string]string{
		"/feed": feed(day(9), "/4", record("urn:e", day(9))), "/4": feed(day(4), "/3", record("urn:d", day(4))),
		"/3": feed(day(3), "/2", record("urn:c", day(3))), "/2": feed(day(2), "/1", record("urn:b", day(2))), "/1": "",
	})
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	s.URL = s.url + "/feed"
	keep := func() int {
		s.asked.Took()
		report, err := s.Keep(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, feedhistory.VerdictPartial, report.Feed.Verdict)
		return len(s.asked.All())
	}
	for range 3 {
		keep()
	}
	require.LessOrEqual(t, keep(), 3)
	var asked []int
	for i := range 4 { // changes that the newest archives do not have yet
		s.docs["/feed"] = feed(day(10+i), "/4", record("urn:f", day(10+i)))
		asked = append(asked, keep())
	}
	require.LessOrEqual(t, slices.Max(asked[1:]), 5, asked)
	s.docs["/1"] = feed(day(1), "", record("urn:a", day(1)))
	report, err := s.Keep(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWhole, report.Feed.Verdict)
	require.Len(t, live(t, m.Store, s.URL), 6)
}
