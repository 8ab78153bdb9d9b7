package mirror_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A rankedSite publishes copies of five entries, in a subscription document and in archives that
// it changes later. It notes what is read of it.
type rankedSite struct {
	random *rand.Rand
	habits rankedHabits
	now    int
	serial int
	coarse bool // few times, so many are equal

	present map[int]rankedEntry
	gone    map[int]int // when each was deleted
	names   []string    // of the archives, the oldest first
	docs    map[string]*rankedDoc
	timed   map[string]bool

	read []rankedDoc
}

// rankedHabits are shares: of entries and documents with a time, of deletions without one, of
// times in the future, of complete documents, and of deletions.
type rankedHabits struct {
	back                                           bool // times go back, and documents have any entries
	dated, times, hidden, future, whole, deletions float64
}

var rankedKinds = map[string]rankedHabits{
	"wild":     {true, 0.6, 0.6, 0, 0.05, 0.08, 0.25},
	"mixed":    {false, 0.6, 0.6, 0, 0, 0.06, 0.15},
	"atom":     {false, 1, 1, 0, 0, 0.06, 0.15},
	"undated":  {false, 0, 0.8, 0, 0, 0.06, 0},
	"no times": {false, 0, 0, 0, 0, 0.06, 0},
}

// A rankedEntry has a time in seconds, as all of a rankedSite; 0 for none.
type rankedEntry struct {
	updated int
	text    string
}

type rankedDoc struct {
	url, prev string
	time      int
	entries   map[int]rankedEntry
	tombs     map[int]int
	complete  bool
	now       int // when it was read
}

func (d *rankedDoc) equals(other *rankedDoc) bool {
	return d.time == other.time && d.prev == other.prev && d.complete == other.complete &&
		maps.Equal(d.entries, other.entries) && maps.Equal(d.tombs, other.tombs)
}

const rankedFeed = "/feed"

func newRankedSite(random *rand.Rand, habits rankedHabits) *rankedSite {
	s := &rankedSite{
		random: random, habits: habits, now: 100, coarse: random.IntN(3) == 0,
		present: map[int]rankedEntry{}, gone: map[int]int{}, docs: map[string]*rankedDoc{}, timed: map[string]bool{},
	}
	s.timed[rankedFeed] = s.likely(habits.times)
	s.publish(rankedFeed)
	return s
}

func (s *rankedSite) likely(share float64) bool { return s.random.Float64() < share }

func (s *rankedSite) text() string {
	s.serial++
	if s.habits.back {
		return fmt.Sprint("t", 1+s.random.IntN(4))
	}
	return fmt.Sprint("t", s.serial)
}

func (s *rankedSite) moment(share float64) int {
	switch {
	case !s.likely(share):
		return 0
	case s.likely(s.habits.future):
		return s.now + 1 + s.random.IntN(30)
	case !s.habits.back:
		return s.now
	}
	at := s.now - s.random.IntN(21)
	if s.coarse {
		at -= at % 16
	}
	return at
}

// publish replaces a document with a new version.
func (s *rankedSite) publish(url string) {
	d := &rankedDoc{url: url, entries: map[int]rankedEntry{}, tombs: map[int]int{}}
	if old := s.docs[url]; old != nil {
		d.prev = old.prev
	}
	for id := range 5 {
		switch at, isGone := s.gone[id]; {
		case s.habits.back:
			if s.likely(0.5) {
				updated := s.moment(s.habits.dated)
				d.entries[id] = rankedEntry{updated, fmt.Sprint(s.text(), " of ", updated)}
			}
			if s.likely(s.habits.deletions) {
				d.tombs[id] = s.moment(1 - s.habits.hidden)
			}
		case isGone && url == rankedFeed && s.likely(0.8):
			d.tombs[id] = at
		default:
			if e, ok := s.present[id]; ok && s.likely(0.6) {
				d.entries[id] = e
			}
		}
	}
	if s.timed[url] {
		d.time = s.moment(1)
	}
	s.docs[url] = d
}

// act does one thing, as a publisher would.
func (s *rankedSite) act() {
	s.now += 1 + s.random.IntN(3)
	if !s.habits.back {
		s.edit(s.random.IntN(5))
		s.now++
	}
	feed := s.docs[rankedFeed]
	whole := feed.complete
	b := s.random.Float64()
	if b < s.habits.whole {
		whole = !whole
	}
	switch {
	case b < 0.55, len(s.names) == 0 && b < 0.8 && s.likely(0.3):
		s.publish(rankedFeed)
	case b < 0.8:
		name := fmt.Sprint("/archive/", len(s.names))
		s.timed[name] = s.likely(s.habits.times)
		s.publish(name)
		if len(s.names) > 0 {
			s.docs[name].prev = s.names[len(s.names)-1]
		}
		s.names = append(s.names, name)
		s.publish(rankedFeed)
	case len(s.names) > 0:
		name := s.names[s.random.IntN(len(s.names))]
		if s.likely(0.7) {
			s.publish(name)
		} else if d := s.docs[name]; d.time != 0 {
			later := *d
			later.time, s.docs[name] = s.now, &later
		}
	}
	d := *s.docs[rankedFeed]
	if d.complete, d.prev = whole, ""; !whole && len(s.names) > 0 {
		d.prev = s.names[len(s.names)-1]
	}
	if whole && !s.habits.back {
		d.entries, d.tombs = maps.Clone(s.present), maps.Clone(d.tombs)
		maps.DeleteFunc(d.tombs, func(id, _ int) bool { _, ok := d.entries[id]; return ok })
	}
	s.docs[rankedFeed] = &d
}

// edit writes an entry, new or again, or deletes it.
func (s *rankedSite) edit(id int) {
	e, is := s.present[id]
	switch {
	case !is || s.likely(0.5):
		if !is || s.likely(0.7) || e.updated == 0 {
			e.updated = s.moment(s.habits.dated)
		}
		e.text = s.text()
		s.present[id] = e
		delete(s.gone, id)
	case s.likely(s.habits.deletions):
		delete(s.present, id)
		s.gone[id] = s.now
	}
}

func rankedTime(at int) time.Time {
	return time.Date(2000, 1, 1, 0, 0, at, 0, time.UTC) // that of a synctest bubble
}

func (s *rankedSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := s.docs[r.URL.Path]
	if d == nil {
		http.NotFound(w, r)
		return
	}
	read := *d
	read.now = s.now
	s.read = append(s.read, read)
	element := func(name string, at int) {
		if at != 0 {
			fmt.Fprintf(w, "<%s>%s</%[1]s>", name, rankedTime(at).Format(time.RFC3339))
		}
	}
	fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:at="http://purl.org/atompub/tombstones/1.0"><id>urn:ranked</id><title>Ranked</title>`)
	element("updated", d.time)
	if d.prev != "" {
		fmt.Fprintf(w, `<link rel="prev-archive" href="%s"/>`, d.prev)
	}
	if d.url != rankedFeed {
		fmt.Fprint(w, "<fh:archive/>")
	}
	if d.complete {
		fmt.Fprint(w, "<fh:complete/>")
	}
	for _, id := range slices.Sorted(maps.Keys(d.entries)) {
		fmt.Fprintf(w, "<entry><id>urn:%d</id><title>%s</title>", id, d.entries[id].text)
		element("updated", d.entries[id].updated)
		fmt.Fprint(w, "</entry>")
	}
	for _, id := range slices.Sorted(maps.Keys(d.tombs)) {
		when := ""
		if at := d.tombs[id]; at != 0 {
			when = fmt.Sprintf(` when="%s"`, rankedTime(at).Format(time.RFC3339))
		}
		fmt.Fprintf(w, `<at:deleted-entry ref="urn:%d"%s/>`, id, when)
	}
	fmt.Fprint(w, "</feed>")
}

// A rankedPlace says how recent a document is: its time, then the reading of the subscription
// document that first led to it, then the links from there, then the number of the reading.
type rankedPlace struct{ time, reading, down, version int }

func (p rankedPlace) compare(other rankedPlace) int {
	return cmp.Or(cmp.Compare(p.time, other.time), cmp.Compare(p.reading, other.reading), cmp.Compare(other.down, p.down), cmp.Compare(p.version, other.version))
}

// rankedCopies are what was read of an entry: the copy that counts, and all its deletions.
type rankedCopies struct {
	entry         rankedEntry
	at, when      int
	of, deletedBy rankedPlace
	undated       int // the latest time of a document with a deletion without a time
}

// isDeleted reports whether the deletion counts: by documents, or by their times alone, as in the
// ranks of a program's table.
func (c *rankedCopies) isDeleted(byTime bool) bool {
	if byTime {
		return max(c.when, c.undated) >= c.at
	}
	if c.entry.updated == 0 || c.when == 0 { // the documents decide, whatever version of each
		of, by := c.of, c.deletedBy
		of.version, by.version = 0, 0
		return of.compare(by) <= 0
	}
	return c.when >= c.entry.updated
}

// counts returns the text of each entry that counts, of everything that was read: the copy updated
// last, else that of the document updated last, else that of the newer place, else the later version
// (5005#20, 5005#21). An entry without a time has that of its document, and an archive without one that of
// the document that first led to it, as it was then. A deletion counts if it is not older, or, if either has no
// time, its document is not (RFC 6721 §2). A complete document voids what was read before it (5005#1). An archive with the
// same entries is as recent as it was.
func (s *rankedSite) counts(byTime bool) map[string]string {
	all, led, last := map[int]*rankedCopies{}, map[string]rankedPlace{}, map[string]*rankedDoc{}
	for n, d := range s.read {
		place, isArchive := rankedPlace{d.now, n, 0, n}, d.url != rankedFeed
		if isArchive {
			place = led[d.url]
			place.version = n
		}
		old := last[d.url]
		if old != nil && d.equals(old) {
			continue
		}
		if place.time = cmp.Or(d.time, place.time); d.complete {
			clear(all)
			clear(led)
			clear(last)
		}
		if _, is := led[d.prev]; !is {
			led[d.prev] = rankedPlace{place.time, place.reading, place.down + 1, 0}
		}
		last[d.url] = &d
		if isArchive && old != nil && maps.Equal(d.entries, old.entries) && maps.Equal(d.tombs, old.tombs) {
			continue
		}
		of := func(id int) *rankedCopies {
			if all[id] == nil {
				all[id] = &rankedCopies{}
			}
			return all[id]
		}
		for id, e := range d.entries {
			at, c := cmp.Or(e.updated, place.time), of(id)
			if cmp.Or(cmp.Compare(at, c.at), place.compare(c.of)) >= 0 {
				c.entry, c.at, c.of = e, at, place
			}
		}
		for id, when := range d.tombs {
			c := of(id)
			if when == 0 {
				c.undated = max(c.undated, place.time)
			}
			if c.when = max(c.when, when); place.compare(c.deletedBy) >= 0 {
				c.deletedBy = place
			}
		}
	}
	live := map[string]string{}
	for id, c := range all {
		if c.at != 0 && (c.deletedBy == rankedPlace{} || !c.isDeleted(byTime)) {
			live[fmt.Sprint("urn:", id)] = c.entry.text
		}
	}
	return live
}

// A rankedReader polls a feed, and returns the titles of its entries by their IDs.
type rankedReader func(m *mirror.Mirror, url string) map[string]string

// The mirror has the copies of a merge of everything ever read, whatever the order of the readings,
// though it keeps the ranks of most in the ledger.
func TestModelOfRanks(t *testing.T) {
	testRanked(t, 9, false, func(t *testing.T) rankedReader {
		store := mirror.NewMemory()
		return func(m *mirror.Mirror, url string) map[string]string {
			m.Store = store
			_, err := m.Update(t.Context(), url)
			require.NoError(t, err)
			has := map[string]string{}
			for r, err := range store.Entries(t.Context(), mirror.Query{}) {
				require.NoError(t, err)
				has[r.ID] = r.Content.Title
			}
			return has
		}
	})
}

// So has the table of a program that executes the changes of each poll.
func TestModelOfProgram(t *testing.T) {
	testRanked(t, 11, true, func(t *testing.T) rankedReader {
		own := newRows()
		return func(m *mirror.Mirror, url string) map[string]string {
			require.NoError(t, own.walk(t.Context(), t, m, url, 1000))
			return own.titles()
		}
	})
}

// testRanked compares a reader of each site with everything read. The stream is that of its random
// numbers; byTime says how a deletion is compared with an undated copy.
func testRanked(t *testing.T, stream uint64, byTime bool, begin func(*testing.T) rankedReader) {
	for _, kind := range slices.Sorted(maps.Keys(rankedKinds)) {
		t.Run(kind, func(t *testing.T) {
			for seed := range feedtest.Seeds(feedtest.Count(2000)) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, stream))
					site, read := newRankedSite(random, rankedKinds[kind]), begin(t)
					client := &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: site}}
					for range 3 + random.IntN(12) {
						for range []int{0, 1, 1, 2, 4}[random.IntN(5)] {
							site.act()
						}
						time.Sleep(time.Until(rankedTime(site.now)))
						has := read(&mirror.Mirror{Client: client, Recheck: -1, Revalidate: random.IntN(3) == 0}, "http://site.example"+rankedFeed)
						require.Equal(t, site.counts(byTime), has, "%s, seed %d:\n%s", kind, seed, site.story())
					}
				})
			}
		})
	}
}

// An entry deleted by an archive, whose row a poll has left unread, returns with the next document
// showing it, as both are undated (5005#21).
func TestReturnsUnchanged(t *testing.T) {
	site := &rankedSite{docs: map[string]*rankedDoc{}}
	publish := func(at int, prev string) {
		site.docs[rankedFeed] = &rankedDoc{url: rankedFeed, prev: prev, time: at, entries: map[int]rankedEntry{1: {0, "one"}, at: {0, "new"}}}
	}
	site.docs["/archive/0"] = &rankedDoc{url: "/archive/0", time: 30, tombs: map[int]int{1: 5}}
	store := mirror.NewMemory()
	m := &mirror.Mirror{Store: store, Client: &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: site}}}
	const url = "http://site.example" + rankedFeed
	for i, want := range []mirror.State{mirror.Live, mirror.Deleted, mirror.Live} {
		publish(10+15*i, []string{"", "/archive/0", "/archive/0"}[i])
		_, err := m.Update(t.Context(), url)
		require.NoError(t, err)
		rows, err := store.Records(t.Context(), url, []string{"urn:1"})
		require.NoError(t, err)
		require.Equal(t, want, rows["urn:1"].State, "poll %d", i)
	}
}

// A poll leaving rows unread stores what one reading all stores, as it does after a commit of
// something else. Half of the documents show the entries of the one before.
func TestModelOfSettled(t *testing.T) {
	kinds := maps.Clone(rankedKinds)
	kinds["hidden"] = rankedHabits{true, 0.5, 0.7, 0.5, 0, 0.05, 0.25}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(kind, func(t *testing.T) {
			for seed := range feedtest.Seeds(feedtest.Count(2000)) {
				synctest.Test(t, func(t *testing.T) { testSettled(t, kinds[kind], seed) })
			}
		})
	}
}

func testSettled(t *testing.T, habits rankedHabits, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 9))
	site := newRankedSite(random, habits)
	const url = "http://site.example" + rankedFeed
	ids := []string{"urn:0", "urn:1", "urn:2", "urn:3", "urn:4"}
	client := &feedhistory.Client{NoGuess: true, AllowPrivate: true, Transport: feedtest.Direct{Handler: site}}
	stores := []mirror.Store{mirror.NewMemory(), mirror.NewMemory()}
	for range 3 + random.IntN(12) {
		before := site.docs[rankedFeed].entries
		for range []int{0, 1, 1, 2, 4}[random.IntN(5)] {
			site.act()
		}
		if random.IntN(2) == 0 {
			again := *site.docs[rankedFeed]
			again.entries, site.docs[rankedFeed] = before, &again
		}
		time.Sleep(time.Until(rankedTime(site.now)))
		revalidate := random.IntN(3) == 0
		var rows [2]map[string]*mirror.Record
		for i, store := range stores {
			if f, err := store.Feed(t.Context(), url); err == nil && i == 1 {
				require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
			}
			m := &mirror.Mirror{Store: store, Client: client, Recheck: -1, Revalidate: revalidate}
			_, err := m.Update(t.Context(), url)
			require.NoError(t, err)
			rows[i], err = store.Records(t.Context(), url, ids)
			require.NoError(t, err)
			for _, r := range rows[i] {
				r.FirstCommit, r.LastCommit = 0, 0
			}
		}
		require.Equal(t, rows[1], rows[0], "%v, seed %d:\n%s", habits, seed, site.story())
	}
}

func (s *rankedSite) story() string {
	var b strings.Builder
	for n, d := range s.read {
		fmt.Fprintf(&b, "%d: at %d, %s of %d, complete %t, before it %q: %v, deleted %v\n", n, d.now, d.url, d.time, d.complete, d.prev, d.entries, d.tombs)
	}
	return b.String()
}
