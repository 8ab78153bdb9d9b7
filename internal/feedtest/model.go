package feedtest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Model is a publisher in memory with its web server: at random, it adds, edits and
// deletes entries, closes archives, splits its log again under other names, changes the
// kind of its feed, and fails. Some archives are empty; some publishers omit fh:archive.
// Published always has everything it has published. Make one with NewModel.
type Model struct {
	Path   string // Path is the subscription document's; the paths of all others begin with it.
	Habits Habits // Habits are for those who set them before the first Step.

	mu       sync.Mutex
	random   *rand.Rand
	kind     string // "archived", "complete", "paged" or "plain"
	clock    time.Time
	log      []logEntry        // everything that ever happened, the oldest first
	live     map[string]string // the published entries: their texts by id
	ids      int
	archives []span // the closed parts of the log, the oldest first
	named    int    // the number of names used
	recent   int    // the number of archived entries repeated in the subscription document
	unmarked bool   // archives lack fh:archive: only the link "current" identifies them
	faults   float64
	requests int
	secure   bool // permalinks have https
	deployed int
}

// Habits are what some publishers do. The ids of entries are permalinks with some.
type Habits struct {
	RSS        bool // the documents are RSS, not Atom
	Permalinks bool // the guids of RSS are permalinks
	Shared     bool // all items of RSS have the same guid; they differ in their links
	PageIDs    bool // each document of Atom has an id of its own, which ends in the number of the page
}

// A logEntry is an entry as published, or a deletion.
type logEntry struct {
	id, text string
	deleted  bool
	at       time.Time
}

// A span is an archive: a part of the log under a name.
type span struct {
	name     string
	from, to int
}

// NewModel returns a model publisher without anything published.
func NewModel(path string, seed uint64) *Model {
	return &Model{
		Path: path, random: rand.New(rand.NewPCG(seed, 5005)), kind: "archived",
		clock: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), live: map[string]string{}, recent: int(seed % 4), unmarked: seed%3 == 0,
	}
}

// Published returns the entries of the feed: their texts by id.
func (m *Model) Published() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	published := make(map[string]string, len(m.live))
	maps.Copy(published, m.live)
	return published
}

// Requests returns the number of requests so far.
func (m *Model) Requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

// Fail makes a share of the answers fail from now on.
func (m *Model) Fail(share float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = share
}

// Become changes the kind of the feed to "archived", "complete", "paged" or "plain".
func (m *Model) Become(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kind = kind
	m.clock = m.clock.Add(time.Second)
}

// Close archives the entries not archived yet, as a publisher does in the end.
func (m *Model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.close()
}

// Secure makes all permalinks https.
func (m *Model) Secure() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.secure = true
}

// Deploy gives all documents new validators.
func (m *Model) Deploy() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deployed++
}

// Withdraw takes back up to three neighbours that are in no archive, without a tombstone, and
// returns their ids.
func (m *Model) Withdraw() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	isFree := func(i int) bool {
		l := m.log[i]
		same := func(o logEntry) bool { return o.id == l.id }
		return !l.deleted && m.live[l.id] == l.text && slices.IndexFunc(m.log, same) == i
	}
	from := m.archived()
	if from == len(m.log) {
		return nil
	}
	from += m.random.IntN(len(m.log) - from)
	for range 1 + m.random.IntN(3) {
		if from == len(m.log) || !isFree(from) {
			break
		}
		ids = append(ids, m.log[from].id)
		delete(m.live, m.log[from].id)
		m.log = slices.Delete(m.log, from, from+1)
	}
	return ids
}

// Step does something at random, and returns its name.
func (m *Model) Step() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = m.clock.Add(time.Duration(1+m.random.IntN(90)) * time.Second)
	switch n := m.random.IntN(100); {
	case n < 50 || len(m.live) == 0:
		for range 1 + m.random.IntN(5) {
			m.ids++
			m.write(m.id(m.ids))
		}
		return "add"
	case n < 65:
		m.write(m.any())
		return "edit"
	case n < 75:
		id := m.any()
		delete(m.live, id)
		m.log = append(m.log, logEntry{id: id, deleted: true, at: m.clock})
		return "delete"
	case n < 95 || m.Habits.PageIDs:
		m.close()
		return "close"
	default:
		m.split(1 + m.random.IntN(6))
		return "split anew"
	}
}

func (m *Model) id(n int) string {
	if m.Habits.Permalinks || m.Habits.Shared {
		return "http://model.example/e/" + strconv.Itoa(n)
	}
	return "urn:x:" + strconv.Itoa(n)
}

func (m *Model) any() string {
	ids := make([]string, 0, len(m.live))
	for id := range m.live {
		if !m.secure || m.isShown(id) {
			ids = append(ids, id)
		}
	}
	if slices.Sort(ids); len(ids) == 0 {
		m.ids++
		return m.id(m.ids)
	}
	return ids[m.random.IntN(len(ids))]
}

// isShown reports whether the subscription document has the entry. Nobody knows another one
// again once its permalink and its text have changed.
func (m *Model) isShown(id string) bool {
	return slices.ContainsFunc(m.log[max(0, m.archived()-m.recent):], func(l logEntry) bool { return l.id == id && l.text == m.live[id] })
}

func (m *Model) write(id string) {
	m.clock = m.clock.Add(time.Second)
	m.live[id] = fmt.Sprintf("text %d of %s", len(m.log), id)
	m.log = append(m.log, logEntry{id: id, text: m.live[id], at: m.clock})
}

func (m *Model) archived() int {
	if len(m.archives) == 0 {
		return 0
	}
	return m.archives[len(m.archives)-1].to
}

// close archives the entries not archived yet, sometimes none.
func (m *Model) close() {
	if from := m.archived(); from < len(m.log) || m.random.IntN(4) == 0 {
		m.named++
		m.archives = append(m.archives, span{fmt.Sprintf("/archive-%d", m.named), from, len(m.log)})
	}
}

// split replaces all archives by others of the given size; the old names are gone.
func (m *Model) split(size int) {
	to := m.archived()
	m.archives = nil
	for from := 0; from < to; from += size {
		m.named++
		m.archives = append(m.archives, span{fmt.Sprintf("/archive-%d", m.named), from, min(from+size, to)})
	}
}

// ServeHTTP serves the feed, with faults.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	body := m.document(r)
	fault := ""
	if m.random.Float64() < m.faults {
		fault = []string{"status", "abort", "cut", "damage"}[m.random.IntN(4)]
	}
	switch {
	case fault == "status":
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case body == "":
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256([]byte(body))
	etag := fmt.Sprintf(`"%x-%d"`, sum[:8], m.deployed)
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", "application/xml")
	if fault == "" && r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	part := len(body) * m.random.IntN(100) / 100
	switch fault {
	case "abort":
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:part]
	case "cut":
		body = body[:part]
	case "damage":
		part += strings.IndexByte(body[part:], '>') + 1 // not within a link, which would become another
		body = body[:part] + "<!-- " + body[part:]
	}
	_, _ = w.Write([]byte(body))
	if fault == "abort" {
		panic(http.ErrAbortHandler)
	}
}

// pageSize is the number of entries on a page.
const pageSize = 4

// document renders the requested document; "" if there is none.
func (m *Model) document(r *http.Request) string {
	name := strings.TrimPrefix(r.URL.Path, m.Path)
	i := slices.IndexFunc(m.archives, func(s span) bool { return s.name == name })
	switch {
	case i >= 0:
		s := m.archives[i]
		head := m.link("current", "")
		if !m.unmarked {
			head += `<fh:archive/>`
		}
		if i > 0 {
			head += m.link("prev-archive", m.archives[i-1].name)
		}
		updated := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		if s.to > 0 {
			updated = m.log[s.to-1].at
		}
		return m.render(i+1, head, m.log[s.from:s.to], updated)
	case name != "":
		return ""
	}
	switch m.kind {
	case "complete":
		return m.render(1, "<fh:complete/>", m.current(), m.clock)
	case "paged":
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		return m.page(max(page, 1))
	}
	head := ""
	if n := len(m.archives); n > 0 && m.kind == "archived" {
		head = m.link("current", "") + m.link("prev-archive", m.archives[n-1].name)
	} else if m.kind == "archived" { // there are no archives yet
		head = "<fh:complete/>"
	}
	return m.render(len(m.archives)+1, head, m.log[max(0, m.archived()-m.recent):], m.clock)
}

// current returns the published entries, the oldest first.
func (m *Model) current() (entries []logEntry) {
	for _, l := range m.log {
		if !l.deleted && m.live[l.id] == l.text {
			entries = append(entries, l)
		}
	}
	return entries
}

func (m *Model) page(n int) string {
	entries := m.current()
	to := len(entries) - (n-1)*pageSize
	if to < 0 || to == 0 && n > 1 {
		return ""
	}
	from := max(0, to-pageSize)
	head := m.link("first", "")
	if from > 0 {
		head += m.link("next", "?page="+strconv.Itoa(n+1))
	}
	return m.render(1, head, entries[from:to], m.clock)
}

func (m *Model) link(rel, name string) string {
	return fmt.Sprintf(`<a:link xmlns:a="http://www.w3.org/2005/Atom" rel="%s" href="%s%s"/>`, rel, m.Path, name)
}

// render renders the document of a number, the newest of its items first, each in a line.
func (m *Model) render(number int, head string, items []logEntry, updated time.Time) string {
	const namespaces = `xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:at="http://purl.org/atompub/tombstones/1.0"`
	var b strings.Builder
	id, end := "urn:x", "</feed>\n"
	if m.Habits.PageIDs {
		id = fmt.Sprint("urn:x:page:", number)
	}
	if m.Habits.RSS {
		end = "</channel></rss>\n"
		fmt.Fprintf(&b, `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom" %s><channel><title>A model</title><link>http://model.example/</link><description>Texts</description>`, namespaces)
		fmt.Fprintf(&b, "<a:updated>%s</a:updated>%s\n", updated.Format(time.RFC3339), head)
	} else {
		fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom" %s><id>%s</id><title>A model</title><updated>%s</updated>%s`+"\n", namespaces, id, updated.Format(time.RFC3339), head)
	}
	if m.Habits.Shared { // an item in two versions would be two
		items = latest(items)
	}
	isLive := func(l logEntry) bool { return !l.deleted }
	i := slices.IndexFunc(items, isLive) // one item alone shares nothing
	isShared := i >= 0 && slices.ContainsFunc(items[i+1:], isLive)
	for _, l := range slices.Backward(items) {
		at, id := l.at.Format(time.RFC3339), l.id
		if m.secure {
			id = strings.Replace(id, "http:", "https:", 1)
		}
		switch {
		case l.deleted:
			fmt.Fprintf(&b, "<at:deleted-entry ref=\"%s\" when=\"%s\"/>\n", id, at)
		case m.Habits.RSS:
			guid := fmt.Sprintf(`<guid isPermaLink="%t">%s</guid>`, m.Habits.Permalinks, id)
			if m.Habits.Shared {
				guid = ""
				if isShared {
					guid = `<guid>http://model.example/</guid>`
				}
			}
			if m.Habits.Shared || m.Habits.Permalinks {
				guid += "<link>" + id + "</link>"
			}
			fmt.Fprintf(&b, "<item>%s<title>%s</title><a:updated>%s</a:updated></item>\n", guid, l.text, at)
		default:
			fmt.Fprintf(&b, "<entry><id>%s</id><title>%s</title><updated>%s</updated></entry>\n", id, l.text, at)
		}
	}
	b.WriteString(end)
	return b.String()
}

// latest returns the items without earlier versions of them.
func latest(items []logEntry) (all []logEntry) {
	for i, l := range items {
		if !slices.ContainsFunc(items[i+1:], func(o logEntry) bool { return o.id == l.id }) {
			all = append(all, l)
		}
	}
	return all
}
