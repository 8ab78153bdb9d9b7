package publish

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/sorter"
)

// A queue has the items a call publishes, in their order. Those for which memory has no room are in
// a temporary file.
type queue struct {
	p       *session
	sorter  sorter.Sorter[queuedItem]
	now     time.Time       // of the call
	shown   map[string]bool // the ids in the subscription document
	given   map[string]bool // those of them among the items
	ordered bool            // the items are in the order of their changes, instead of the given one

	inMemory bool // the items are kept as they are, because the caller has them in memory, too
	kept     []item

	n, entries int
	latest     time.Time  // the latest change
	timeless   bool       // an item has no time
	past       *time.Time // the change of the first item that is not dated in the future; nil if there is none
	late       []error    // of a Chronological feed
}

// mostQueued is how many bytes of items a queue has in memory.
const mostQueued = 4 << 20

// queue returns an empty queue.
func (p *session) queue(s *state, now time.Time, ordered bool) *queue {
	q := &queue{p: p, now: now, ordered: ordered, shown: map[string]bool{}, given: map[string]bool{}}
	for _, it := range s.log {
		q.shown[it.id] = true
	}
	for _, e := range s.recent {
		q.shown[e.ID] = true
	}
	q.sorter = sorter.Sorter[queuedItem]{
		Context: p.ctx, Compare: q.compare, Size: (*queuedItem).size,
		Most: cmp.Or(p.mostQueued, mostQueued), Plain: true, Append: appendQueued, Read: readQueued,
	}
	return q
}

func (q *queue) compare(a, b *queuedItem) int {
	if q.ordered {
		return cmp.Or(a.change.Compare(b.change), cmp.Compare(a.number, b.number))
	}
	return cmp.Compare(a.number, b.number)
}

// note takes an item into account that is not to be published, because a later one of the call
// replaces it.
func (q *queue) note(s *state, it item) {
	at := it.change()
	q.latest = feedtime.Later(q.latest, at)
	q.timeless = q.timeless || it.time.IsZero()
	if it.entry != nil {
		q.entries++
	}
	if err := q.p.late(s, it); err != nil {
		q.late = append(q.late, err)
	}
}

// add adds an item, with the text of its entry.
func (q *queue) add(s *state, it item, text string) error {
	q.note(s, it)
	if q.shown[it.id] {
		q.given[it.id] = true
	}
	at := it.change()
	if !at.After(q.now) && (q.past == nil || q.ordered && at.Before(*q.past)) {
		q.past = &at
	}
	q.n++
	if q.inMemory {
		q.kept = append(q.kept, it)
		return nil
	}
	v := &queuedItem{number: q.n, id: it.id, time: it.time, change: at}
	if it.entry != nil {
		if err := v.leave(it.entry, text); err != nil {
			return err
		}
	}
	return q.sorter.Add(v)
}

// checkIDs returns an error if two of the new ids are the same.
func (q *queue) checkIDs(fresh []idKey) error {
	id, found := twice(fresh)
	if !found {
		return nil
	}
	for v, err := range q.sorter.Sorted() {
		if err != nil {
			return err
		}
		if idKeyOf(v.id) == id {
			return errTwice(v.id)
		}
	}
	return nil
}

func errTwice(id string) error { return fmt.Errorf("two entries have the id %s", id) }

// items yields the items in their order.
func (q *queue) items() iter.Seq2[item, error] {
	if q.inMemory {
		if q.ordered {
			slices.SortStableFunc(q.kept, func(a, b item) int { return a.change().Compare(b.change()) })
		}
		return func(yield func(item, error) bool) {
			for _, it := range q.kept {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
	return func(yield func(item, error) bool) {
		var some []*queuedItem
		size := 0
		next := func() bool {
			items, err := q.read(some)
			for _, it := range items {
				if !yield(it, nil) {
					return false
				}
			}
			if err != nil {
				yield(item{}, err)
			}
			some, size = some[:0], 0
			return err == nil
		}
		for v, err := range q.sorter.Sorted() {
			if err != nil {
				yield(item{}, err)
				return
			}
			some, size = append(some, v), size+len(v.text)
			if (len(some) == mostRead || size > mostReadBytes) && !next() {
				return
			}
		}
		next()
	}
}

// The most items that are read from the file together, and about the most of their bytes.
const (
	mostRead      = 64
	mostReadBytes = 1 << 20
)

// read returns items, whose entries it reads as those of one document.
func (q *queue) read(some []*queuedItem) ([]item, error) {
	var text strings.Builder
	before, after := `<feed xmlns="`+feedxml.Atom+`">`, "</feed>"
	if q.p.format() == feedhistory.FormatRSS {
		before, after = `<rss version="2.0"><channel>`, "</channel></rss>"
	}
	size := len(before) + len(after)
	for _, v := range some {
		size += len(v.text)
	}
	text.Grow(size)
	text.WriteString(before)
	for _, v := range some {
		text.WriteString(v.text)
	}
	text.WriteString(after)
	var entries []*feedhistory.Entry
	if text.Len() > len(before)+len(after) {
		doc, err := feedhistory.Parser{Trusted: true, Strict: true}.Parse(strings.NewReader(text.String()), "")
		if err != nil {
			return nil, err
		}
		entries = doc.Entries
	}
	items := make([]item, len(some))
	for i, v := range some {
		items[i] = item{id: v.id, time: v.time}
		if v.text == "" {
			continue
		}
		if len(entries) == 0 || entries[0].ID != v.id || !entries[0].Updated.Equal(v.time) {
			return nil, fmt.Errorf("entry %q was read as another one from a temporary file: %w", v.id, ErrUnpublishable)
		}
		items[i].entry, entries = v.of(entries[0]), entries[1:]
	}
	return items, nil
}

// A queuedItem is an item in a queue.
type queuedItem struct {
	number  int
	id      string
	time    time.Time
	change  time.Time
	text    string               // of an entry, in its permanent form; "" for a deletion
	authors []feedhistory.Person // of the entry's feed, if it has none itself
	source  time.Time            // of the entry's document
}

// appendQueued appends an item as it is in the temporary file: its number, and its other parts, each after
// its length.
func appendQueued(b []byte, v *queuedItem) []byte {
	b = binary.AppendUvarint(b, uint64(v.number))
	for _, t := range []time.Time{v.time, v.change, v.source} {
		b = append(b, 0)
		before := len(b)
		var err error
		if b, err = t.AppendBinary(b); err != nil { // for a zone of minus one minute
			b, _ = t.UTC().AppendBinary(b[:before])
		}
		b[before-1] = byte(len(b) - before)
	}
	part := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	part(v.id)
	part(v.text)
	for _, p := range v.authors {
		part(p.Name)
		part(p.URI)
		part(p.Email)
	}
	return b
}

// readQueued reads what appendQueued has appended.
func readQueued(text string) (*queuedItem, error) {
	broken := false
	number := func() (n uint64) {
		for shift := 0; text != "" && shift < 64; shift += 7 {
			b := text[0]
			text, n = text[1:], n|uint64(b&0x7f)<<shift
			if b < 0x80 {
				return n
			}
		}
		broken = true
		return 0
	}
	part := func() (s string) {
		n := number()
		if broken = broken || n > uint64(len(text)); !broken {
			s, text = text[:n], text[n:]
		}
		return s
	}
	v := &queuedItem{number: int(number())}
	for _, t := range []*time.Time{&v.time, &v.change, &v.source} {
		broken = t.UnmarshalBinary([]byte(part())) != nil || broken
	}
	for v.id, v.text = part(), part(); text != "" && !broken; {
		v.authors = append(v.authors, feedhistory.Person{Name: part(), URI: part(), Email: part()})
	}
	if broken {
		return nil, errors.New("an item in a temporary file is damaged")
	}
	return v, nil
}

// size returns the approximate number of bytes an item takes in memory.
func (v *queuedItem) size() int { return 300 + len(v.id) + len(v.text) }

// leave takes an entry's place, with its text.
func (v *queuedItem) leave(e *feedhistory.Entry, text string) error {
	element, err := door.Root.Element(e)
	if err != nil {
		return err
	}
	v.text, v.source = text, sourceTime(e)
	for _, p := range element.Authors {
		v.authors = append(v.authors, feedhistory.Person{Name: p.Name, URI: p.URI, Email: p.Email})
	}
	return nil
}

// of returns an entry read from the file as one of its feed.
func (v *queuedItem) of(e *feedhistory.Entry) *feedhistory.Entry {
	if len(v.authors) > 0 || !v.source.IsZero() {
		head := *e.Head
		head.Authors, head.Updated = v.authors, v.source
		e.Head = &head
	}
	return e
}

// sourceTime returns the time of an entry's document.
func sourceTime(e *feedhistory.Entry) time.Time {
	s := sourceOf(e)
	return feedtime.First(s.Updated, s.Published, s.LastModified)
}

// log returns the items of the log after those archived: the published ones and then the new ones.
// Replaced ones leave the subscription document: unless all versions are kept, the document has one
// version, or one deletion, of each id. Recent are the archived entries that it may show again.
func (q *queue) log(s *state) (open []item, recent []*feedhistory.Entry) {
	for _, it := range s.log {
		if !q.given[it.id] || q.p.Versions {
			open = append(open, it)
		}
	}
	for _, e := range s.recent {
		if !q.given[e.ID] {
			recent = append(recent, e)
		}
	}
	if q.p.Chronological {
		slices.SortStableFunc(open, func(a, b item) int { return a.change().Compare(b.change()) })
	}
	return open, recent
}

// after yields the published items of the log and the new ones.
func (q *queue) after(open []item) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		for it, err := range q.items() {
			for err == nil && len(open) > 0 && !(q.p.Chronological && open[0].change().After(it.change())) {
				if !yield(open[0], nil) {
					return
				}
				open = open[1:]
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
		for _, it := range open {
			if !yield(it, nil) {
				return
			}
		}
	}
}

// firstPast returns the change of the first item of the log that is not dated in the future, or the
// time of the call.
func (q *queue) firstPast(open []item) time.Time {
	i := slices.IndexFunc(open, func(it item) bool { return !it.change().After(q.now) })
	switch {
	case i < 0 && q.past == nil:
		return q.now
	case i < 0 || q.p.Chronological && q.past != nil && q.past.Before(open[i].change()):
		return *q.past
	}
	return open[i].change()
}
