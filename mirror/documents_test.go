package mirror_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A siteSchedule holds the documents a random publisher served at each poll: links lead nowhere,
// twice, or to moved documents, archives are rebuilt and fail, other feeds and old copies answer, ids
// and software change.
type siteSchedule struct {
	Seed  int
	Paged bool
	Polls []sitePoll
}

type sitePoll struct {
	T         float64                 // when, in days
	Budget    int                     // how many requests the poll may make
	Docs      map[string]siteDocument // those changed since the poll before
	Gone      []string                // those no longer there
	Redirects map[string][]string     // the target, and "302" if it is not permanent
	Faults    map[string]string       // a status, "html", or "foreign" for a document of another feed
	Override  *siteDocument           // what answers in place of the subscription document; nil if nothing does
	Moved     bool                    // it answers by a permanent redirect
	Calm      bool                    // nothing happens any more
	Want      string                  // the verdict of a reader that begins now; "" if there is none
	Verdict   string                  // the model's, in the end
}

type siteDocument struct {
	ID             string
	Head           string // what its title, link and generator have in common
	Entries        [][2]int
	Prev, Next     []string
	Current, Newer string
	Complete       bool
}

// A scheduledSite serves a schedule.
type scheduledSite struct {
	mu sync.Mutex // a walk requests documents in advance
	sitePoll
	docs  map[string]siteDocument
	paged bool
	read  map[string]siteDocument // as they were last read
}

// find returns what a URL leads to: its document, with the URL where it is, or a status.
func (s *scheduledSite) find(url string) (d siteDocument, status string) {
	switch {
	case (url == "sub" || url == "parked") && s.Override != nil:
		return *s.Override, ""
	case url == "parked":
		return d, "404"
	}
	switch fault := s.Faults[url]; fault {
	case "":
	case "foreign":
		return siteDocument{ID: "idX", Head: "99", Entries: [][2]int{{9, 1}, {9, 2}}}, ""
	default:
		return d, fault
	}
	d, ok := s.docs[url]
	if !ok {
		return d, "404"
	}
	return d, ""
}

func (s *scheduledSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url := strings.TrimPrefix(r.URL.Path, "/")
	if to := s.Redirects[url]; len(to) > 0 {
		status := http.StatusMovedPermanently
		if len(to) > 1 {
			status = http.StatusFound
		}
		http.Redirect(w, r, "/"+to[0], status)
		return
	}
	if url == "sub" && s.Moved && s.Override != nil {
		http.Redirect(w, r, "/parked", http.StatusMovedPermanently)
		return
	}
	d, status := s.find(url)
	switch status {
	case "":
	case "html":
		_, _ = fmt.Fprint(w, "<!DOCTYPE html><html><body>Try later</body></html>")
		return
	default:
		code := 0
		_, _ = fmt.Sscan(status, &code)
		http.Error(w, "", code)
		return
	}
	if s.Faults[url] == "" {
		s.read[url] = d
	}
	writeTagged(w, r, s.text(url, d))
}

func siteEntry(e [2]int) string {
	if e[0] == 0 {
		return fmt.Sprintf("urn:entry:%d", e[1])
	}
	return fmt.Sprintf("http://stranger%d.example/%d", e[0], e[1])
}

func (s *scheduledSite) text(url string, d siteDocument) []byte {
	var b bytes.Buffer
	link := func(rel string, to ...string) {
		for _, url := range to {
			if url != "" {
				fmt.Fprintf(&b, `<a:link rel="%s" href="/%s"/>`, rel, url)
			}
		}
	}
	const spaces = `xmlns:a="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"`
	end := "</a:feed>"
	if d.ID != "" {
		fmt.Fprintf(&b, `<a:feed %s><a:id>urn:feed:%s</a:id><a:title>Title %s</a:title><a:generator>Generator %[3]s</a:generator><a:link rel="alternate" href="http://site%[3]s.example/"/>`, spaces, d.ID, d.Head)
	} else {
		fmt.Fprintf(&b, `<rss version="2.0" %s><channel><title>Title %s</title><link>http://site%[2]s.example/</link><description>D</description><generator>Generator %[2]s</generator>`, spaces, d.Head)
		end = "</channel></rss>"
	}
	link("prev-archive", d.Prev...)
	link("next", d.Next...)
	link("current", d.Current)
	link("next-archive", d.Newer)
	if d.Complete {
		b.WriteString("<fh:complete/>")
	}
	if strings.Contains(url, "/") && !s.paged {
		b.WriteString("<fh:archive/>")
	}
	for _, e := range d.Entries {
		if d.ID != "" {
			fmt.Fprintf(&b, "\n<a:entry><a:id>%s</a:id><a:title>Entry %v</a:title></a:entry>", siteEntry(e), e)
		} else {
			fmt.Fprintf(&b, "\n"+`<item><guid isPermaLink="false">%s</guid><title>Entry %v</title></item>`, siteEntry(e), e)
		}
	}
	b.WriteString("\n" + end)
	return b.Bytes()
}

// reached returns the entries of all documents to which links of some relations lead.
func (s *scheduledSite) reached(rels func(siteDocument) []string, start ...string) map[[2]int]string {
	has, seen := map[[2]int]string{}, map[string]bool{}
	for len(start) > 0 {
		url := start[0]
		start = start[1:]
		for range 6 {
			if to := s.Redirects[url]; len(to) > 0 {
				url = to[0]
			}
		}
		d, ok := s.docs[url]
		if url == "sub" && s.Override != nil {
			d, ok = *s.Override, true
		}
		if seen[url] || !ok {
			continue
		}
		seen[url] = true
		for _, e := range d.Entries {
			has[e] = url
		}
		start = append(start, rels(d)...)
	}
	return has
}

// hasChanged reports whether a document read before has changed, and has not been read since: nobody
// can know.
func (s *scheduledSite) hasChanged() bool {
	for url, was := range s.read {
		if len(s.Redirects[url]) > 0 {
			return true
		}
		if is, ok := s.docs[url]; ok && url != "sub" && !s.paged && fmt.Sprint(is) != fmt.Sprint(was) {
			return true
		}
	}
	return false
}

func (s *scheduledSite) next(p sitePoll) {
	for _, url := range p.Gone {
		delete(s.docs, url)
	}
	maps.Copy(s.docs, p.Docs)
	s.sitePoll = p
}

func pollText(p sitePoll) string {
	text, _ := json.Marshal(p)
	return strings.NewReplacer(`"`, "", "null", "", "false", "").Replace(string(text))
}

const siteURL = "http://model.example/sub"

func pollSite(t *testing.T, m *mirror.Mirror, budget int) *mirror.Report {
	m.Client.Budget = feedhistory.Budget{Documents: budget}
	r, err := m.Update(t.Context(), siteURL)
	require.NoError(t, err)
	return r
}

// The schedules of the model of documents. A mirror that says "whole" has all entries to which links
// lead, by whichever relation; and where a new reader would say "whole" or "lossy", so does it in the
// end.
func TestSchedulesOfDocuments(t *testing.T) {
	for _, schedule := range schedulesOf[siteSchedule](t, "FEEDHISTORY_DOCUMENTS", "testdata/documents.jsonl") {
		t.Run(fmt.Sprint(schedule.Seed), func(t *testing.T) { testDocuments(t, schedule) })
	}
}

func testDocuments(t *testing.T, schedule siteSchedule) {
	site := &scheduledSite{docs: map[string]siteDocument{}, paged: schedule.Paged, read: map[string]siteDocument{}}
	now := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	store := mirror.NewMemory()
	m := newMirror(store, site)
	m.Now = func() time.Time { return now }
	var story []string
	judge := func(r *mirror.Report, note string) {
		f := r.Feed
		has := map[string]bool{}
		for e, err := range store.Entries(t.Context(), mirror.Query{Feed: f.URL, States: mirror.Current | mirror.Former}) {
			require.NoError(t, err)
			has[e.ID] = true
		}
		story = append(story, fmt.Sprintf("%s: %s, failure %v, has %d, gaps %v", note, f.Verdict, r.Failure, len(has), f.Ledger.Gaps()))
		sub, _ := site.find("sub")
		switch {
		case r.Failure != nil, f.Verdict != feedhistory.VerdictWhole, sub.Complete, site.hasChanged(),
			site.Override != nil && site.Override.Entries[0][0] != 0:
			return
		}
		links := func(d siteDocument) []string { return slices.Concat(d.Prev, d.Next) }
		all := func(d siteDocument) []string { return append(links(d), d.Newer, d.Current) }
		reaches := map[string]map[[2]int]string{"": site.reached(links, "sub")}
		if site.Override == nil && len(site.Faults) == 0 { // what is newer than the chain may be still to come
			reaches["by next-archive or current"] = site.reached(all, "sub")
		}
		for name, reached := range reaches {
			for e, url := range reached {
				require.True(t, has[siteEntry(e)] || e[0] != 0, "%s of %s, linked %s\n%s", siteEntry(e), url, name, strings.Join(story, "\n"))
			}
		}
	}
	begun := now
	for i, p := range schedule.Polls {
		site.next(p)
		now = begun.Add(time.Duration(p.T * float64(24*time.Hour)))
		if p.Calm {
			break
		}
		if len(story) == 0 && (p.Override != nil || p.Faults["sub"] == "foreign") { // nobody could tell that it is not the feed
			continue
		}
		judge(pollSite(t, m, p.Budget), fmt.Sprintf("poll %d of %s", i, pollText(p)))
	}
	last := schedule.Polls[len(schedule.Polls)-1]
	if last.Want == "" || last.Verdict != last.Want {
		return
	}
	fresh := newMirror(mirror.NewMemory(), &scheduledSite{sitePoll: site.sitePoll, docs: site.docs, paged: site.paged, read: map[string]siteDocument{}})
	fresh.Now = m.Now
	want := feedhistory.VerdictUnknown
	for range 2 {
		want = pollSite(t, fresh, 200).Feed.Verdict
		now = now.Add(12 * time.Hour)
	}
	if want != feedhistory.VerdictWhole && want != feedhistory.VerdictLossy {
		return
	}
	var r *mirror.Report
	for range 60 {
		now = now.Add(12 * time.Hour)
		r = pollSite(t, m, last.Budget)
		judge(r, "calm "+pollText(last))
	}
	require.Equal(t, want.String(), r.Feed.Verdict.String(), strings.Join(story, "\n"))
}
