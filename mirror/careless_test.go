package mirror_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A careless publisher breaks what RFC 5005 says that it should do: it fills
// archives that are linked already (5005#9) or links them late (5005#15), has
// entries come and go between two polls, mixes marks, moves archives and leaves
// their self links as they were or has them wrong from the start, leaves links to the old
// addresses, which redirect to an archive or to the feed, the right one or not, adds older
// archives and changes all ids. Some answers are errors, or another feed's.
type careless struct {
	random   *rand.Rand
	window   int    // how many entries the subscription document shows
	late     bool   // an archive is linked only when it is full
	shift    int    // the self link of an archive is the address of the one so many later
	prefix   string // of all ids
	posts    int
	archives []*carelessArchive // the oldest first; the last one is being filled
	moved    int                // how often the archives have moved
	complete bool               // the subscription document is marked as complete
	extra    string             // an archive that a second prev-archive leads to; "" for none
	requests atomic.Int64

	moves     *rand.Rand        // decides about the old addresses; nil if they are gone
	redirects map[string]string // from old addresses

	seed    uint64
	fails   bool      // one answer in eight is none of the feed's, once entries of it are known
	known   bool      // whether the mirror has entries
	renamed time.Time // when all ids changed, archives with them
	paged   bool      // pages follow each other by next: these may have ids of their own
	mu      sync.Mutex
	asked   map[string]uint64 // how often, by path
}

// A carelessArchive is an archive document.
type carelessArchive struct {
	path, self string
	entries    []string
	since      map[string]time.Time // when an entry was inserted that does not belong here by its time
	marked     bool
	rel        string    // of its link to the next older one
	older      string    // the old address in this link; "" if it is up to date
	led        time.Time // when links began to lead here by a change of redirects; zero if they always have
}

// newCareless draws faults that came later from sources of their own, so the schedules of
// TestCarelessAgain stay.
func newCareless(seed uint64, random *rand.Rand) *careless {
	shift := []int{0, 0, 0, 0, 0, -1, 1, 2}[rand.New(rand.NewPCG(seed, 35)).IntN(8)]
	p := &careless{random: random, shift: shift, window: 2 + random.IntN(5), late: random.IntN(3) == 0, prefix: "urn:a:", complete: random.IntN(8) == 0}
	if moves := rand.New(rand.NewPCG(seed, 41)); moves.IntN(3) == 0 {
		p.moves, p.redirects = moves, map[string]string{}
	}
	p.seed, p.asked = seed, map[string]uint64{}
	p.fails = rand.New(rand.NewPCG(seed, 43)).IntN(3) == 0
	p.open()
	return p
}

func (p *careless) open() {
	path := func(n int) string { return fmt.Sprintf("/%d-%d.atom", p.moved, n) }
	n := len(p.archives)
	p.archives = append(p.archives, &carelessArchive{path: path(n), self: path(n + p.shift), since: map[string]time.Time{}, marked: p.random.IntN(4) > 0, rel: "prev-archive"})
}

// step does something at random, and returns what.
func (p *careless) step() string {
	a := p.archives[p.random.IntN(len(p.archives))]
	switch n := p.random.IntN(20); {
	case n < 12:
		count := 1 + p.random.IntN(2*p.window)
		for range count {
			p.posts++
			last := p.archives[len(p.archives)-1]
			if last.entries = append(last.entries, fmt.Sprint(p.posts)); len(last.entries) >= 6 {
				p.open()
			}
		}
		return fmt.Sprintf("post %d", count)
	case n < 14:
		p.moved++
		old := make([]string, len(p.archives))
		for i, a := range p.archives {
			old[i], a.path = a.path, fmt.Sprintf("/%d-%d.atom", p.moved, i)
			if p.random.IntN(2) == 0 {
				a.self = a.path
			}
		}
		if p.moves != nil {
			return "move archives" + p.redirect(old)
		}
		return "move archives"
	case n == 14:
		p.posts++
		id := fmt.Sprint(p.posts)
		a.entries = slices.Insert(a.entries, 0, id)
		a.since[id] = time.Now()
		return "backdate " + id + " in " + a.path
	case n == 15:
		p.posts++
		path := fmt.Sprintf("/older-%d.atom", p.posts)
		older := &carelessArchive{path: path, self: path, entries: []string{fmt.Sprint(p.posts)}, since: map[string]time.Time{fmt.Sprint(p.posts): time.Now()}, marked: true, rel: "prev-archive"}
		p.archives = append([]*carelessArchive{older}, p.archives...)
		return "add an older archive"
	case n == 16 && len(p.shown()) > 0:
		p.prefix = fmt.Sprintf("urn:%d:", p.posts)
		p.renamed = time.Now()
		return "change ids"
	case n == 17:
		a.rel = []string{"prev-archive", "next"}[p.random.IntN(2)]
		p.paged = p.paged || a.rel == "next"
		return a.path + " goes on by " + a.rel
	case n == 18:
		p.complete = !p.complete
		return fmt.Sprint("complete: ", p.complete)
	default:
		p.extra = []string{"", a.path}[p.random.IntN(2)]
		return "second prev-archive " + p.extra
	}
}

// redirect decides about the old addresses of archives, and about the links to them.
func (p *careless) redirect(old []string) (said string) {
	before := map[*carelessArchive]*carelessArchive{}
	for i, a := range p.archives {
		if i > 0 && a.older != "" {
			before[a] = p.at(a.older)
		}
	}
	for i, path := range old {
		switch p.moves.IntN(6) {
		case 0, 1:
			p.redirects[path] = p.archives[i].path
		case 2:
			p.redirects[path] = p.archives[p.moves.IntN(len(old))].path
		case 3:
			p.redirects[path] = "/feed"
		}
		if to := p.redirects[path]; to != "" {
			said += " " + path + " to " + to
		}
		if i+1 < len(old) && p.moves.IntN(3) == 0 {
			p.archives[i+1].older = path
			said += " from " + p.archives[i+1].path
		}
	}
	for i, a := range slices.Backward(p.archives) {
		if to := p.at(a.older); a.older != "" && i > 0 && to != before[a] {
			for _, older := range p.archives[:i] {
				older.led = time.Now()
			}
			break
		}
	}
	return said
}

// at returns the archive that an address leads to; nil if it leads to none.
func (p *careless) at(path string) *carelessArchive {
	for range 10 {
		if to, ok := p.redirects[path]; ok {
			path = to
		}
	}
	linked := p.linked()
	if i := slices.IndexFunc(linked, func(a *carelessArchive) bool { return a.path == path }); i >= 0 {
		return linked[i]
	}
	return nil
}

// reached returns the archives that links lead to from the subscription document.
func (p *careless) reached() (found []*carelessArchive) {
	linked := p.linked()
	ahead := []*carelessArchive{p.at(p.extra)}
	if len(linked) > 0 {
		ahead = append(ahead, linked[len(linked)-1])
	}
	for len(ahead) > 0 {
		a := ahead[0]
		ahead = ahead[1:]
		if a == nil || slices.Contains(found, a) {
			continue
		}
		found = append(found, a)
		if i := slices.Index(linked, a); a.older != "" {
			ahead = append(ahead, p.at(a.older))
		} else if i > 0 {
			ahead = append(ahead, linked[i-1])
		}
	}
	return found
}

// linked returns the archives that links may lead to.
func (p *careless) linked() []*carelessArchive {
	if last := len(p.archives) - 1; p.late || len(p.archives[last].entries) == 0 {
		return p.archives[:last]
	}
	return p.archives
}

func (p *careless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if p.fails && p.fail(w, r.URL.Path) {
		return
	}
	linked := p.linked()
	if r.URL.Path == "/feed" {
		head := ""
		if p.complete {
			head += `<fh:complete/>`
		}
		if len(linked) > 0 {
			head += prev(linked[len(linked)-1].path)
		}
		if p.extra != "" {
			head += prev(p.extra)
		}
		p.write(w, head, p.shown())
		return
	}
	if to := p.redirects[r.URL.Path]; to != "" {
		http.Redirect(w, r, to, []int{http.StatusFound, http.StatusMovedPermanently}[len(to)%2])
		return
	}
	i := slices.IndexFunc(linked, func(a *carelessArchive) bool { return a.path == r.URL.Path })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	a := linked[i]
	head := `<link rel="self" href="` + a.self + `"/>`
	if a.marked {
		head += `<fh:archive/>`
	}
	if i > 0 {
		head += `<link rel="` + a.rel + `" href="` + cmp.Or(a.older, linked[i-1].path) + `"/>`
	}
	p.write(w, head, a.entries)
}

func (p *careless) write(w http.ResponseWriter, head string, ids []string) {
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:feed</id>` + head)
	for _, id := range slices.Backward(ids) {
		fmt.Fprintf(&b, `<entry><id>%s</id><title>%s</title></entry>`, p.prefix+id, id)
	}
	_, _ = w.Write([]byte(b.String() + `</feed>`))
}

// fail may answer in place of the feed. The order of simultaneous requests decides nothing.
func (p *careless) fail(w http.ResponseWriter, path string) bool {
	p.mu.Lock()
	p.asked[path]++
	n := p.asked[path]
	p.mu.Unlock()
	h := fnv.New64a()
	_, _ = io.WriteString(h, path)
	random := rand.New(rand.NewPCG(p.seed, h.Sum64()+n))
	if random.IntN(8) > 0 || path == "/feed" && !p.known {
		return false
	}
	switch status := []int{500, 503, 404, 403, 429, 0, 1}[random.IntN(7)]; status {
	case 0:
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>This domain may be for sale</title>")
	case 1:
		_, _ = io.WriteString(w, `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:parked</id><entry><id>urn:parked:1</id><title>Buy this domain</title></entry></feed>`)
	default:
		w.WriteHeader(status)
	}
	return true
}

// shown returns the latest entries, the oldest first.
func (p *careless) shown() (ids []string) {
	for _, a := range p.archives {
		for _, id := range a.entries {
			if a.since[id].IsZero() {
				ids = append(ids, id)
			}
		}
	}
	return ids[max(0, len(ids)-p.window):]
}

// published returns the entries that any link leads to, but for those that came
// into an archive out of turn after a time, and archives that links led to only then.
func (p *careless) published(checked time.Time) (ids []string) {
	for _, id := range p.shown() {
		ids = append(ids, p.prefix+id)
	}
	if p.fails && p.renamed.After(checked) {
		return ids // an archive may not have answered since
	}
	for _, a := range p.reached() {
		for _, id := range a.entries {
			if at := a.since[id]; (at.IsZero() || !at.After(checked)) && !a.led.After(checked) {
				ids = append(ids, p.prefix+id)
			}
		}
	}
	return ids
}

// Whatever a careless publisher does, a mirror that says whole has every entry
// that the publisher's links lead to, as of the time when it last looked at the
// archives; and no poll needs more requests than there are documents.
func TestCarelessPublisher(t *testing.T) {
	wholes := 0
	for seed := range feedtest.Seeds(*schedules) {
		synctest.Test(t, func(t *testing.T) { wholes += testCareless(t, seed) })
	}
	require.Positive(t, wholes)
}

// In these schedules, a document owed is paid for by another one that names itself so, and
// a link leads there nevertheless. The documents that the walk read next were dropped.
func TestCarelessAgain(t *testing.T) {
	for _, seed := range []uint64{595189, 598633} {
		synctest.Test(t, func(t *testing.T) { testCareless(t, seed) })
	}
}

func testCareless(t *testing.T, seed uint64) (wholes int) {
	random := rand.New(rand.NewPCG(seed, 32))
	p, store := newCareless(seed, random), mirror.NewMemory()
	story := []string{fmt.Sprint("seed ", seed)}
	for range 5 + random.IntN(40) {
		if random.IntN(2) == 0 {
			time.Sleep(time.Second)
			story = append(story, p.step())
			continue
		}
		time.Sleep([]time.Duration{time.Hour, 25 * time.Hour}[random.IntN(2)])
		before := p.requests.Load()
		changes, err := newMirror(store, p).Update(t.Context(), modelURL)
		require.NoError(t, err, "%q", story)
		require.True(t, p.fails || changes.Failure == nil, "%q: %v", story, changes.Failure)
		story = append(story, fmt.Sprint("poll: ", changes.Feed.Kind, changes.Feed.Verdict, changes.Feed.Ledger.Gaps()))
		most := 2*len(p.archives) + 4 + 2*len(p.redirects)
		if p.fails {
			most *= 4 // a request is tried again
		}
		require.LessOrEqual(t, p.requests.Load()-before, int64(most), "%q", story)
		has := held(t, store, modelURL)
		if !p.paged {
			require.NotContains(t, has, "urn:parked:1", "%q", story)
		}
		p.known = len(has) > 0
		if changes.Feed.Verdict != feedhistory.VerdictWhole || changes.Failure != nil {
			continue
		}
		wholes++
		f := feedOf(t, store, modelURL)
		for _, id := range p.published(f.Ledger.Checked()) {
			require.Contains(t, has, id, "%q", story)
		}
	}
	return wholes
}
