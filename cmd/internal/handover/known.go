package handover

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// The traces of an entry identify it in a reader, which keeps hashes
// instead of ids.
type traces struct {
	hashes []string
	url    string
	title  string
	at     time.Time
}

// tracesOf returns the traces of an entry in Miniflux: the SHA-256 of
// its id if Miniflux has read it in the feed, or of its link if it has no id;
// the FNV-128a of its id if it was handed over.
func tracesOf(e *feedhistory.Entry) traces {
	t := traces{url: linkOf(e), title: e.Title().Plain(), at: e.Time(), hashes: []string{importHash(e.ID)}}
	parsed := []string{e.ID, strings.TrimSpace(e.ID)}
	if e.WeakID {
		parsed = []string{t.url}
	}
	for _, id := range parsed {
		if id != "" {
			sum := sha256.Sum256([]byte(id))
			t.hashes = append(t.hashes, hex.EncodeToString(sum[:]))
		}
	}
	return t
}

// importHash returns Miniflux's hash of the external_id of an imported entry.
func importHash(id string) string {
	h := fnv.New128a()
	h.Write([]byte(id))
	return hex.EncodeToString(h.Sum(nil))
}

// A moment is a title and a time, to the second. It can identify an entry whose
// address has changed.
type moment struct {
	title string
	at    int64
}

func (t *traces) moment() (m moment, ok bool) {
	m = moment{strings.Join(strings.Fields(t.title), " "), t.at.Unix()}
	return m, m.title != "" && !t.at.IsZero()
}

// A list has the traces of all entries in one place.
type list struct {
	hashes  map[string]bool
	urls    map[string][]moment // the entries with each address
	moments map[moment]bool
}

func newList() *list {
	return &list{map[string]bool{}, map[string][]moment{}, map[moment]bool{}}
}

func (l *list) add(t traces) {
	for _, hash := range t.hashes {
		l.hashes[hash] = true
	}
	m, ok := t.moment()
	if u := addressKey(t.url); u != "" {
		l.urls[u] = append(l.urls[u], m)
	}
	if ok {
		l.moments[m] = true
	}
}

// knownEntries are the entries not to be handed over. If ids do not tell whether two
// entries are the same, their address does, if only one entry of the mirror has it, and
// so do title and time together; otherwise all three must agree.
type knownEntries struct {
	shown, reader *list
	carried       *list          // entries the reader has found at a history server
	urls          map[string]int // how many entries of the mirror have each address
	moments       map[moment]int
}

func newKnown() *knownEntries {
	return &knownEntries{newList(), newList(), newList(), map[string]int{}, map[moment]int{}}
}

// count counts an entry of the mirror.
func (k *knownEntries) count(r *mirror.Record) {
	t := traces{url: r.Content.Link, title: r.Content.Title, at: r.Content.Published}
	if t.at.IsZero() {
		t.at = r.Content.Updated
	}
	if u := addressKey(t.url); u != "" {
		k.urls[u]++
	}
	if m, ok := t.moment(); ok {
		k.moments[m]++
	}
}

func (k *knownEntries) has(l *list, t traces) bool {
	if slices.ContainsFunc(t.hashes, func(hash string) bool { return l.hashes[hash] }) {
		return true
	}
	u := addressKey(t.url)
	same := l.urls[u]
	m, ok := t.moment()
	switch {
	case u != "" && len(same) > 0 && (k.urls[u] == 1 || slices.Contains(same, m)):
		return true
	case ok && k.moments[m] == 1:
		return l.moments[m]
	}
	return false
}

// addressKey returns a URL without the parts readers change: the scheme, the
// case of the host, a final slash, and parameters for tracking.
func addressKey(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	var query []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		if part != "" && !strings.HasPrefix(strings.ToLower(part), "utm_") {
			query = append(query, part)
		}
	}
	text := strings.ToLower(u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
	if len(query) > 0 {
		text += "?" + strings.Join(query, "&")
	}
	if u.Fragment != "" {
		text += "#" + u.EscapedFragment()
	}
	return text
}

// linkOf returns where an entry can be read: its alternate link, a URL as an id, or an
// enclosure; "" if there is none.
func linkOf(e *feedhistory.Entry) string {
	if link, ok := e.Links.Rel(feedhistory.RelAlternate); ok && link.Href != "" {
		return link.Href
	}
	if !e.WeakID && isWeb(e.ID) {
		return e.ID
	}
	if link, ok := e.Links.Rel(feedhistory.RelEnclosure); ok {
		return link.Href
	}
	return ""
}
