package publish

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory"
)

// publish publishes a change.
func (p *Publisher) publish(ctx context.Context, c change) error {
	return p.exclusively(ctx, func(p *session, s *state) error {
		p.source = c.source
		accepted, err := p.accept(s, c)
		if err != nil {
			return err
		}
		if s.doc == nil && len(accepted) == 0 && !p.Chronological {
			return nil // a feed begins with its first entry
		}
		return p.build(s, accepted, time.Now())
	})
}

// A session is one call of a Publisher's method, which holds the Output's lock.
type session struct {
	*Publisher
	ctx    context.Context
	source int // number of entries the source's own document shows; zero if unknown
}

// exclusively calls f with the published state, as the only writer.
func (p *Publisher) exclusively(ctx context.Context, f func(*session, *state) error) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unlock, err := p.Output.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, unlock())
	}()
	at := &session{Publisher: p, ctx: ctx}
	s, err := at.load()
	if err != nil {
		return err
	}
	p.cache = s
	return f(at, s)
}

// build publishes items, oldest first, after those published. Now is the time of the
// call.
func (p *session) build(s *state, items []item, now time.Time) error {
	if err := p.late(s, items); err != nil {
		return err
	}
	b := &builder{p: p, s: s, head: p.head(s), ledger: s.ledger, updated: s.updated()}
	b.ledger.before, b.ledger.next, b.ledger.erase = "", "", false
	b.advance(items)
	b.count(items, now)
	log, recent := p.supersede(s, items)
	closed, open := p.cut(log, b.ledger.archives, now)
	for _, part := range closed {
		if err := b.close(part); err != nil {
			return errors.Join(err, b.undo())
		}
		recent = slices.Concat(entriesOf(part.items), recent)
		recent = recent[:min(len(recent), b.shown())]
	}
	if err := b.finish(); err != nil {
		return errors.Join(err, b.undo())
	}
	return b.commit(open, recent)
}

// late returns an error if the publisher is Chronological and an item is older
// than the newest published one.
func (p *session) late(s *state, items []item) (err error) {
	if !p.Chronological || len(s.log) == 0 {
		return nil
	}
	newest := s.log[len(s.log)-1].change()
	for _, it := range items {
		if it.change().Before(newest) {
			err = errors.Join(err, &EntryError{ID: it.id, Given: it.time, Published: newest, Err: ErrLate})
		}
	}
	return err
}

// supersede adds new items to the log. Replaced ones leave the subscription document:
// unless all versions are kept, the document has one version, or one deletion, of each
// id.
func (p *session) supersede(s *state, items []item) (log []item, recent []*feedhistory.Entry) {
	last := make(map[string]int, len(items))
	for i, it := range items {
		last[it.id] = i
	}
	log = make([]item, 0, len(s.log)+len(items))
	for _, it := range s.log {
		if _, ok := last[it.id]; !ok || p.Versions {
			log = append(log, it)
		}
	}
	for i, it := range items {
		if last[it.id] == i || p.Versions {
			log = append(log, it)
		}
	}
	if p.Chronological {
		slices.SortStableFunc(log, func(a, b item) int { return a.change().Compare(b.change()) })
	}
	for _, e := range s.recent {
		if _, ok := last[e.ID]; !ok {
			recent = append(recent, e)
		}
	}
	return log, recent
}

// entriesOf returns the entries among items, oldest first, in the order of documents.
func entriesOf(items []item) (entries []*feedhistory.Entry) {
	for _, it := range slices.Backward(items) {
		if it.entry != nil {
			entries = append(entries, it.entry)
		}
	}
	return entries
}

// deletionsOf returns the deletions among items in the same order.
func deletionsOf(items []item) (deleted []feedhistory.Tombstone) {
	for _, it := range slices.Backward(items) {
		if it.entry == nil {
			deleted = append(deleted, feedhistory.Tombstone{Ref: it.id, When: it.time.UTC()})
		}
	}
	return deleted
}

// head returns the head section, which describes the feed.
func (p *Publisher) head(s *state) *feedhistory.Document {
	head := feedhistory.Document{Title: p.Base}
	switch {
	case p.Head != nil:
		head = *p.Head
	case s.doc != nil:
		head = *s.doc
	}
	if head.ID == "" && s.doc != nil {
		head.ID = s.doc.ID
	}
	if head.ID == "" {
		head.ID = p.URL() // all documents of a feed have the same id
	}
	if _, ok := head.Links.Rel(feedhistory.RelAlternate); !ok && p.format() == feedhistory.RSS {
		head.Links = append(slices.Clone(head.Links), feedhistory.Link{Rel: feedhistory.RelAlternate, Href: p.URL()}) // RSS requires such a link, and this URL exists
	}
	return &head
}

// A part is the content of one archive.
type part struct {
	name  string
	items []item // oldest first
}

// The limits for one archive, whatever Split says, because readers refuse
// documents beyond some size.
const (
	mostItems = 10_000
	mostBytes = 8 << 20
)

// cut cuts a log into archives to be closed and the items to stay open. The number of
// archives so far decides the numbers of those split by size.
func (p *session) cut(log []item, archives int, now time.Time) (closed []part, open []item) {
	chunks, rest := p.Split.Cut(standIns(log, now), archives+1)
	for _, chunk := range chunks {
		n := len(chunk.Entries)
		closed = append(closed, portions(part{chunk.Name, log[:n:n]})...)
		log = log[n:]
	}
	if last := len(closed) - 1; p.Chronological && len(rest) == 0 && last >= 0 {
		return p.number(closed[:last], archives), closed[last].items // the last part stays open, because the subscription document would be empty otherwise
	}
	if len(rest) == 0 {
		return p.number(closed, archives), log
	}
	portion := portions(part{p.periodOf(log, now), log}) // more than one if the period is too large to wait for its end
	last := len(portion) - 1
	return p.number(append(closed, portion[:last]...), archives), portion[last].items
}

// number names the archives of a log split by size.
func (p *Publisher) number(parts []part, archives int) []part {
	if p.Split.Period == 0 {
		for i := range parts {
			parts[i].name = strconv.Itoa(archives + i + 1)
		}
	}
	return parts
}

// periodOf names the period of a log as if it had ended.
func (p *Publisher) periodOf(log []item, now time.Time) string {
	if p.Split.Period == 0 {
		return ""
	}
	chunks, _ := p.Split.Cut(append(standIns(log, now), &feedhistory.Entry{Updated: endOfTime}), 1)
	return chunks[0].Name
}

// standIns returns an entry for each item, for Split to count: deletions move into
// archives as entries do. An item dated in the future counts with the time of the item
// before it, or else of the first one after it with a past date: with its own time no
// other period would ever end.
func standIns(log []item, now time.Time) []*feedhistory.Entry {
	at := now
	if i := slices.IndexFunc(log, func(it item) bool { return !it.change().After(now) }); i >= 0 {
		at = log[i].change()
	}
	entries := make([]*feedhistory.Entry, len(log))
	for i, it := range log {
		switch entries[i] = it.entry; {
		case it.change().After(now):
			entries[i] = &feedhistory.Entry{ID: it.id, Updated: at}
			continue
		case it.entry == nil:
			entries[i] = &feedhistory.Entry{ID: it.id, Updated: it.time}
		}
		at = it.change()
	}
	return entries
}

// portions divides a part too large for one document.
func portions(whole part) (parts []part) {
	from, size := 0, 0
	for i, it := range whole.items {
		n := it.size()
		if i > from && (size+n > mostBytes || i-from >= mostItems) {
			parts = append(parts, part{whole.name, whole.items[from:i:i]})
			from, size = i, 0
		}
		size += n
	}
	return append(parts, part{whole.name, whole.items[from:]})
}

// size returns the approximate size of an item in bytes.
func (it item) size() int {
	if it.entry == nil {
		return len(it.id) + 150
	}
	return len(it.entry.XML())
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
