package mirror_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A windowSchedule is what a random publisher served at each poll, and what a model of the ledger
// made of it. Its entries have no times; the first in a document are the newest, unless the publisher
// has no order.
type windowSchedule struct {
	Seed       int
	Config     string
	Unknowable bool // it hid entries in no document, or changed an archive without a sign: no reader can know
	Polls      []struct {
		Docs    map[string]windowDocument // those changed since the poll before
		Gone    []string                  // those no longer there
		Fails   bool                      // the subscription document is not served
		Budget  int                       // how many archives the poll may read; 0 means all
		Hurt    *int                      // the place of the entry that cannot be read in the subscription document
		Broken  []string                  // archives not served
		Calm    bool                      // nothing happens any more
		Owed    []int                     // the entries shown since the first poll, but for those withdrawn or deleted
		Verdict string                    // the model's
	}
}

type windowDocument struct {
	IDs   [][2]int // the entries, each with the number of its version
	Prev  string
	Tombs []int
}

// A windowSite serves a schedule.
type windowSite struct {
	mu     sync.Mutex // a walk requests documents in advance
	docs   map[string]windowDocument
	fails  bool
	hurt   *int
	broken []string
	whens  map[int]string  // of tombstones
	read   map[string]bool // the archives that have been read
	now    time.Time
}

// has reports whether a document that a reader can know of has an entry: one never read, or the
// subscription document. Without asking again nobody can tell what an archive has in the meantime,
// nor what is in no document.
func (s *windowSite) has(id int) bool {
	for url, d := range s.docs {
		if !s.read[url] && slices.ContainsFunc(d.IDs, func(e [2]int) bool { return e[0] == id }) {
			return true
		}
	}
	return false
}

func (s *windowSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url := strings.TrimPrefix(r.URL.Path, "/")
	d, ok := s.docs[url]
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case url == "sub" && s.fails, slices.Contains(s.broken, url):
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	if url != "sub" {
		s.read[url] = true
	}
	writeTagged(w, r, s.text(url, d))
}

func (s *windowSite) text(url string, d windowDocument) []byte {
	var b bytes.Buffer
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:at="http://purl.org/atompub/tombstones/1.0"><id>urn:feed</id><title>F</title>`)
	if url != "sub" {
		b.WriteString("<fh:archive/>")
	}
	if d.Prev != "" {
		fmt.Fprintf(&b, `<link rel="prev-archive" href="/%s"/>`, d.Prev)
	}
	for i, e := range d.IDs {
		start := "<entry>"
		if url == "sub" && s.hurt != nil && *s.hurt == i {
			start = ""
		}
		fmt.Fprintf(&b, "\n%s<id>urn:e:%d</id><title>Entry %[2]d, version %d</title></entry>", start, e[0], e[1])
	}
	for _, id := range d.Tombs {
		if s.whens[id] == "" {
			s.whens[id] = s.now.Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "\n"+`<at:deleted-entry ref="urn:e:%d" when="%s"/>`, id, s.whens[id])
	}
	b.WriteString("\n</feed>")
	return b.Bytes()
}

// schedulesOf reads schedules, one on a line: from the file that a variable names, or from testdata.
func schedulesOf[T any](t *testing.T, variable, name string) (schedules []T) {
	file, err := os.Open(cmp.Or(os.Getenv(variable), name))
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var s T
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		schedules = append(schedules, s)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, schedules)
	return schedules
}

// writeTagged answers with a text and its ETag, or that it is not modified.
func writeTagged(w http.ResponseWriter, r *http.Request, text []byte) {
	sum := fnv.New64a()
	sum.Write(text)
	etag := fmt.Sprintf(`"%x"`, sum.Sum64())
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(text)
}

// The schedules of the model of windows, in which archives fill, move, change and go, entries come
// in bursts, return, are pinned, deleted and withdrawn, and polls fail, are cut short, and see damage.
// Where an entry is missing, the mirror never says "whole", and is never silent. Where the model has
// paid all debts in the end, so has the mirror.
func TestSchedulesOfWindows(t *testing.T) {
	for _, schedule := range schedulesOf[windowSchedule](t, "FEEDHISTORY_WINDOWS", "testdata/windows.jsonl") {
		t.Run(fmt.Sprint(schedule.Seed), func(t *testing.T) { testWindows(t, schedule) })
	}
}

func testWindows(t *testing.T, schedule windowSchedule) {
	site := &windowSite{docs: map[string]windowDocument{}, whens: map[int]string{}, read: map[string]bool{}, now: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
	store := mirror.NewMemory()
	m := newMirror(store, site)
	m.Now = func() time.Time { return site.now }
	isHurt := false
	var story []string
	var missing []int
	look := func(owed []int, note string) *mirror.Feed {
		f, err := store.Feed(t.Context(), "http://model.example/sub")
		require.NoError(t, err)
		has := map[string]bool{}
		for r, err := range store.Entries(t.Context(), mirror.Query{Feed: f.URL, States: mirror.Current | mirror.Former}) {
			require.NoError(t, err)
			has[r.ID] = true
		}
		missing = slices.DeleteFunc(slices.Clone(owed), func(id int) bool { return has[fmt.Sprintf("urn:e:%d", id)] || !site.has(id) })
		story = append(story, fmt.Sprintf("%s: %s, missing %v, %v", note, f.Verdict, missing, f.Ledger.Gaps()))
		return f
	}
	for i, p := range schedule.Polls {
		for _, url := range p.Gone {
			delete(site.docs, url)
		}
		maps.Copy(site.docs, p.Docs)
		site.fails, site.hurt, site.broken = p.Fails, p.Hurt, p.Broken
		isHurt = isHurt || p.Hurt != nil
		m.Client.Budget = feedhistory.Budget{}
		if p.Budget > 0 {
			m.Client.Budget.Documents = 1 + p.Budget
		}
		site.now = site.now.Add(25 * time.Hour)
		_, err := m.Update(t.Context(), "http://model.example/sub")
		require.NoError(t, err)
		f := look(p.Owed, fmt.Sprintf("poll %d of %+v, the model: %s", i, p, p.Verdict))
		if len(missing) > 0 && !schedule.Unknowable {
			require.NotEqual(t, feedhistory.VerdictWhole, f.Verdict, "%s\n%s", schedule.Config, strings.Join(story, "\n"))
			require.NotEmpty(t, f.Ledger.Gaps(), "%s\n%s", schedule.Config, strings.Join(story, "\n"))
		}
	}
	last := schedule.Polls[len(schedule.Polls)-1]
	switch {
	case last.Verdict == "partial", len(missing) > 0:
		return
	case isHurt && strings.Contains(schedule.Config, "shuffled"): // what was around a damage, in no order, proves nothing
		return
	}
	for range 30 {
		site.now = site.now.Add(25 * time.Hour)
		_, err := m.Update(t.Context(), "http://model.example/sub")
		require.NoError(t, err)
	}
	f := look(last.Owed, "in the end")
	if last.Verdict == "window" && f.Ledger.Pending() > 0 { // a plain feed writes no document off
		return
	}
	require.Equal(t, last.Verdict, f.Verdict.String(), "%s\n%s", schedule.Config, strings.Join(story, "\n"))
}
