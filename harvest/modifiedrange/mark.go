package modifiedrange

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A nextMark is where the next harvest begins, as far as this one knows: at the server's time
// in the first answer, less the overlap, but never after the newest stamp seen
// (modified-range#8). The clock that stamps the items may be behind the one that dates the
// answers, and then changes would be lost; a mark too early costs only repeats, and the items
// it names are not yielded again.
type nextMark struct {
	begun  bool
	began  time.Time // the server's time at the first answer; zero if unknown
	from   time.Time // the mark's Since
	latest time.Time // the newest stamp that is not from the future; at first from
	least  time.Time // the least time where the next harvest may begin, by the first answer
	left   time.Time // the oldest stamp left to the next harvest; zero if there is none
	recent []recentItem
}

// A recentItem is an item that has come, modified at least's time or later.
type recentItem struct {
	digest string
	at     time.Time
}

// These are the maximum numbers of items in a mark, and in one with a Rest, which is stored
// after each answer. A thousand take 17 KB.
const (
	mostSeen         = 1000
	mostSeenWithRest = 100
)

// note notes the times of an answer.
func (r *run) note(doc *feedhistory.Document, header http.Header) {
	m := &r.mark
	if !m.begun {
		m.began = dateOf(header)
	}
	for _, e := range doc.Entries {
		m.see(r.stamp.of(e))
	}
	for _, t := range doc.Deleted {
		m.see(t.When)
	}
	if !m.begun {
		m.begun, m.least = true, m.since(r.h.overlap())
	}
}

// see notes a stamp. One from the future does not tell the time.
func (m *nextMark) see(at time.Time) {
	if at.After(m.latest) && (m.began.IsZero() || !at.After(m.began)) {
		m.latest = at.UTC()
	}
}

// leave leaves a change to the next harvest.
func (m *nextMark) leave(at time.Time) {
	if m.left.IsZero() || at.Before(m.left) {
		m.left = at
	}
}

// since returns where the next harvest begins. If the server does not tell the time, the
// overlap reaches back from the newest stamp, because the client's clock may be wrong.
func (m *nextMark) since(overlap time.Duration) time.Time {
	since := m.latest
	switch began := m.began.Add(-overlap); {
	case m.began.IsZero() && m.latest.After(m.from):
		since = m.latest.Add(-overlap)
	case !m.began.IsZero() && began.Before(since):
		since = began
	}
	if !m.left.IsZero() && m.left.Before(since) {
		since = m.left
	}
	return since
}

// remember remembers an item for the next mark.
func (m *nextMark) remember(digest string, at time.Time) {
	if at.Before(m.least) {
		return
	}
	if m.recent = append(m.recent, recentItem{digest, at}); len(m.recent) > 4*mostSeen {
		m.recent = newest(m.recent, mostSeen)
	}
}

// newest returns the newest items.
func newest(items []recentItem, most int) []recentItem {
	slices.SortStableFunc(items, func(a, b recentItem) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.digest, b.digest)) })
	return slices.Clip(items[:min(len(items), most)])
}

// seenSince returns the Seen of a mark with at most so many items.
func (m *nextMark) seenSince(since time.Time, most int) string {
	var digests []string
	for _, item := range newest(slices.Clone(m.recent), most) {
		if !item.at.Before(since) {
			digests = append(digests, item.digest)
		}
	}
	return strings.Join(digests, " ")
}

// seenItems reads the Seen of a mark.
func seenItems(text string) map[string]bool {
	seen := map[string]bool{}
	for digest := range strings.FieldsSeq(text) {
		seen[digest] = true
	}
	return seen
}

// digest returns a digest of the state with the item's XML: an item may change twice within the
// unit of its stamp.
func (i itemState) digest(xml []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %t %s\n%s", i.id, i.deleted, formatTime(i.at), xml))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// newNextMark returns the nextMark of a harvest without an answer yet.
func newNextMark(since time.Time) nextMark { return nextMark{from: since, latest: since} }

// dateOf returns the server's time; zero if it does not tell it.
func dateOf(header http.Header) time.Time {
	date, _ := http.ParseTime(header.Get("Date"))
	return date.UTC()
}
