package mirror_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

var clocks = flag.Int("clocks", feedtest.Count(100), "the number of schedules TestWrongClocks draws")

// clockErrors is how wrong a clock is in random models.
var clockErrors = []time.Duration{0, time.Second, 30 * time.Minute, 36 * time.Hour, 400 * 24 * time.Hour}

// The clock of the machine is wrong by a second up to a year, and is set again before each
// poll. Nothing is lost: once it is right, polls when they are due make the mirror equal to
// the feed, and no wait lasts for a year.
func TestWrongClocks(t *testing.T) {
	for seed := range feedtest.Seeds(*clocks) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			s := &schedule{t, newRoads(feedtest.NewModel("/feed", seed), random), random, mirror.NewMemory(), []string{fmt.Sprint("seed ", seed)}, nil}
			model := s.roads.model
			for range 5 + random.IntN(30) {
				s.story = append(s.story, model.Step())
				model.Fail([]float64{0, 0, 0.3}[random.IntN(3)])
				time.Sleep([]time.Duration{time.Minute, time.Hour, 26 * time.Hour}[random.IntN(3)])
				wrong := clockErrors[random.IntN(len(clockErrors))] * time.Duration(1-2*random.IntN(2))
				m := newMirror(s.slowly(), s.roads)
				m.Now = func() time.Time { return time.Now().Add(wrong) }
				_, err := m.Update(t.Context(), modelURL)
				s.story = append(s.story, fmt.Sprintf("polled with a clock wrong by %v: %v", wrong, err))
			}
			model.Fail(0)
			s.roads.settle()
			model.Close()
			model.Become([]string{"archived", "complete"}[random.IntN(2)])
			for range 8 {
				time.Sleep(time.Minute)
				if f := feedOf(t, s.store, modelURL); !f.Gone && !f.Due(time.Now()) {
					require.Less(t, time.Until(f.Next), 25*time.Hour, s)
					time.Sleep(max(0, time.Until(f.Next)))
				}
				if changes, err := newMirror(s.slowly(), s.roads).Update(t.Context(), modelURL); err == nil && changes.Feed.Verdict == feedhistory.VerdictWhole {
					break
				}
			}
			require.Equal(t, model.Published(), held(t, s.store, modelURL), s)
			testUsage(t, s.store, modelURL, s.String())
			testCounts(t, s.store, s.String())
		})
	}
}

// A clock that was ahead by a year at one poll spoils nothing that later polls do.
func TestClockAheadOnce(t *testing.T) {
	undated := func(title, head string, ids ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><title>F</title>%s`, head)
			for _, id := range ids {
				fmt.Fprintf(w, `<item><guid isPermaLink="false">%s</guid><title>%s</title></item>`, id, title)
			}
			_, _ = io.WriteString(w, `</channel></rss>`)
		}
	}
	stranger := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:other</id><title>Other</title><entry><id>urn:other:1</id></entry></feed>`)
	}
	for _, test := range []struct {
		name  string
		polls []map[string]http.HandlerFunc // what changes before each, a day apart; the clock is ahead at the second
		want  string                        // the entries in the end
	}{
		{"an undated entry is edited", []map[string]http.HandlerFunc{
			{aURL: undated("old", "", "1")}, {aURL: undated("new", "", "1")}, {aURL: undated("newest", "", "1")},
		}, "window map[1:newest]"},
		{"a window is missed", []map[string]http.HandlerFunc{
			{aURL: document(prev("/1"), "5", "4"), "http://a.example/1": document("", "3")},
			{aURL: document(prev("/1"), "9", "8")},
			{aURL: document(prev("/2"), "10"), "http://a.example/2": document(prev("/1"), "9", "8")},
		}, "whole map[10: 3: 4: 5: 8: 9:]"},
		{"a stranger answers", []map[string]http.HandlerFunc{
			{aURL: document("", "1")}, {aURL: stranger}, {}, {}, {},
		}, "window map[1: urn:other:1:]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := &host{answer: map[string]http.HandlerFunc{}}, mirror.NewMemory()
				for i, changes := range test.polls {
					maps.Copy(h.answer, changes)
					m := newMirror(store, h)
					m.Now = func() time.Time {
						if i == 1 {
							return time.Now().Add(365 * 24 * time.Hour)
						}
						return time.Now()
					}
					_, err := m.Update(t.Context(), aURL)
					require.NoError(t, err)
					time.Sleep(24 * time.Hour)
				}
				require.Equal(t, test.want, fmt.Sprint(feedOf(t, store, aURL).Verdict, " ", held(t, store, aURL)))
			})
		})
	}
}

// Each archive that has changed is read again within thirty days, even if a clock was ahead when
// all were read; and those at the ends within a few.
func TestEditedArchives(t *testing.T) {
	for _, archives := range []int{1, 3, 40} {
		for _, ahead := range []time.Duration{0, 365 * 24 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				h, store := &host{answer: map[string]http.HandlerFunc{aURL: document(prev(fmt.Sprint("/", archives)), "now")}}, mirror.NewMemory()
				want := map[string]string{"now": ""}
				write := func(ids ...string) {
					for n := range archives {
						head := ""
						if n > 0 {
							head = prev(fmt.Sprint("/", n))
						}
						var names []string
						for _, id := range ids {
							names = append(names, fmt.Sprint(n+1, id))
							want[fmt.Sprint(n+1, id)] = ""
						}
						h.answer[fmt.Sprint("http://a.example/", n+1)] = document(head, names...)
					}
				}
				write("a")
				m := newMirror(store, h)
				m.Now = func() time.Time { return time.Now().Add(ahead) }
				require.Equal(t, feedhistory.VerdictWhole, polled(t, m, aURL).Feed.Verdict)
				write("a", "b")
				for day := range 31 {
					time.Sleep(24 * time.Hour)
					before := len(h.asked.All())
					polled(t, newMirror(store, h), aURL)
					require.LessOrEqual(t, len(h.asked.All())-before, 4)
					if day == 3 {
						require.Contains(t, held(t, store, aURL), "1b")
						require.Contains(t, held(t, store, aURL), fmt.Sprint(archives, "b"))
					}
				}
				require.Equal(t, want, held(t, store, aURL))
			})
		}
	}
}

// Of an undated document the moment it was received counts, by Fetch and by a mirror alike: an
// entry that an archive dates in the future is newer.
func TestUndatedDocuments(t *testing.T) {
	const old = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><entry><id>1</id><title>%s</title><updated>%s</updated></entry></feed>`
	for updated, want := range map[string]string{"2090-01-01T00:00:00Z": "archived", "1999-01-01T00:00:00Z": "shown"} {
		synctest.Test(t, func(t *testing.T) {
			h := &host{answer: map[string]http.HandlerFunc{
				aURL: func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id>`+prev("/1")+`<entry><id>1</id><title>shown</title></entry></feed>`)
				},
				"http://a.example/1": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, old, "archived", updated) },
			}}
			m := newMirror(mirror.NewMemory(), h)
			polled(t, m, aURL)
			require.Equal(t, map[string]string{"1": want}, held(t, m.Store, aURL))
			history, err := m.Client.Fetch(t.Context(), aURL)
			require.NoError(t, err)
			require.Len(t, history.Entries, 1)
			require.Equal(t, want, history.Entries[0].Title().Plain())
		})
	}
}
