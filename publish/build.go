package publish

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// publish publishes entries, oldest first, and deletions.
func (p *Publisher) publish(ctx context.Context, entries []*feedhistory.Entry, deleted []feedhistory.Tombstone) error {
	return p.exclusively(ctx, func(p *session, s *state) error {
		accepted, err := p.accept(s, entries, deleted)
		if err != nil {
			return err
		}
		q := p.queue(s, time.Now(), p.Chronological)
		q.inMemory = true
		last := make(map[string]int, len(accepted))
		for i, it := range accepted {
			last[it.id] = i
		}
		for i, it := range accepted {
			if last[it.id] != i && !p.Versions {
				q.note(s, it)
			} else if err := q.add(s, it, ""); err != nil {
				return err
			}
		}
		return p.build(s, q, nil)
	})
}

// A session is one call of a Publisher's method, which holds the Output's lock.
type session struct {
	*Publisher
	ctx    context.Context
	source int // number of entries the source's own document shows; zero if unknown

	resigned map[string]*feedhistory.Entry // published entries given again, with signatures in their addresses
}

// exclusively calls f with the published state, as the only writer.
func (p *Publisher) exclusively(ctx context.Context, f func(*session, *state) error) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.once.Do(func() { p.turn = make(chan struct{}, 1) })
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
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
	p.cache, p.form = s, max(s.form, firstForm)
	return f(at, s)
}

// build publishes the items of a queue after those published, and indexes their archives.
func (p *session) build(s *state, q *queue, index *indexer) error {
	if len(q.late) > 0 {
		return errors.Join(q.late...)
	}
	b := &builder{p: p, s: s, head: p.head(s), ledger: s.ledger.done(), updated: s.updated(), index: index}
	b.advance(q)
	b.count(q)
	log, recent := q.log(s)
	if err := p.resign(log, recent); err != nil {
		return err
	}
	c := p.cutter(q.firstPast(log), q.now)
	end := func(items []item) error {
		recent = undeleted(slices.Concat(entriesOf(items), recent), items)
		recent = recent[:min(len(recent), b.shown())]
		return b.close(part{cmp.Or(c.period, strconv.Itoa(b.ledger.archives+1)), items})
	}
	err := c.cut(q.after(log), end)
	if err == nil {
		err = b.finish()
	}
	if err != nil {
		return errors.Join(err, b.undo())
	}
	return b.commit(c.items, recent)
}

// late returns an error if the publisher is Chronological and an item is older
// than the newest published one.
func (p *session) late(s *state, it item) error {
	if !p.Chronological || len(s.log) == 0 {
		return nil
	}
	if newest := s.log[len(s.log)-1].change(); it.change().Before(newest) {
		return &EntryError{ID: it.id, Given: it.time, Published: newest, Err: ErrLate}
	}
	return nil
}

// giveAgain takes note of a published entry given again, if the subscription document shows it.
func (p *session) giveAgain(x *index, e *feedhistory.Entry) {
	if x.shown[e.ID] != nil {
		p.sign(e)
	}
}

// sign keeps the addresses of an entry given again, if they have signatures; nil for a deletion.
func (p *session) sign(e *feedhistory.Entry) {
	if e == nil {
		return
	}
	if text := textOf(e); iri.Unsigned(text) != text {
		if p.resigned == nil {
			p.resigned = map[string]*feedhistory.Entry{}
		}
		p.resigned[e.ID] = e
	}
}

// resign gives the entries of the subscription document the newest signatures in their
// addresses: with others, nobody could download their files any more. This is no change
// of an entry, and archives stay.
func (p *session) resign(log []item, recent []*feedhistory.Entry) (err error) {
	renew := func(old **feedhistory.Entry) {
		if *old == nil || p.resigned[(*old).ID] == nil {
			return
		}
		e, failed := p.resigned[(*old).ID], error(nil)
		if !e.Updated.Equal((*old).Updated) {
			e, failed = p.dated(e, (*old).Updated)
		}
		if err = errors.Join(err, failed); failed == nil && p.words(e) == p.words(*old) {
			*old = e
		}
	}
	for i := range log {
		renew(&log[i].entry)
	}
	for i := range recent {
		renew(&recent[i])
	}
	return err
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

// undeleted returns the entries that none of the items deletes (RFC 6721 §2). The subscription document
// does not repeat the others: their deletion is in an archive, which not every reader reads.
func undeleted(entries []*feedhistory.Entry, items []item) []*feedhistory.Entry {
	deleted := map[string]time.Time{}
	for _, it := range items {
		if it.entry == nil {
			deleted[it.id] = feedtime.Later(deleted[it.id], it.time)
		} else if it.time.IsZero() { // it came after the deletion
			delete(deleted, it.id)
		}
	}
	return slices.DeleteFunc(entries, func(e *feedhistory.Entry) bool {
		when, ok := deleted[e.ID]
		return ok && !e.Updated.After(when)
	})
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
	if _, ok := head.Links.Rel("alternate"); !ok && p.format() == feedhistory.FormatRSS {
		head.Links = append(slices.Clone(head.Links), feedhistory.Link{Rel: "alternate", Href: p.URL()}) // RSS requires such a link, and this URL exists
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

// A cutter cuts a log into archives to be closed and the items to stay open: less than a full
// archive, or the latest period. An item older than the ones before it stays in their period.
// Archives too large for one document are divided.
type cutter struct {
	p      *session
	now    time.Time
	last   time.Time // of the item before, not in the future; see date
	items  []item    // not closed yet, oldest first
	whole  int       // the items since the last full archive
	bytes  int
	period string
}

// cutter returns a cutter of a log whose first item that is not dated in the future has a time.
func (p *session) cutter(first, now time.Time) *cutter { return &cutter{p: p, last: first, now: now} }

// cut calls end with the items of each archive to be closed.
func (c *cutter) cut(log iter.Seq2[item, error], end func([]item) error) error {
	closing := func() error {
		items := c.items
		c.items, c.bytes = nil, 0
		return end(items)
	}
	isFull := func() bool { return c.p.Split.Period == 0 && c.whole == cmp.Or(c.p.Split.Size, 100) }
	isFirst := true
	for it, err := range log {
		if err != nil {
			return err
		}
		next, n := c.date(it).UTC().Format(periods[c.p.Split.Period]), it.size()
		isWhole := !isFirst && next > c.period || isFull()
		if isWhole || len(c.items) > 0 && (c.bytes+n > mostBytes || len(c.items) >= mostItems) {
			if err := closing(); err != nil {
				return err
			}
		}
		if isWhole {
			c.whole = 0
		}
		c.items, isFirst = append(c.items, it), false
		c.whole, c.bytes, c.period = c.whole+1, c.bytes+n, max(c.period, next)
	}
	if isFull() && !c.p.Chronological { // whose subscription document is never empty
		return closing()
	}
	return nil
}

// periods are the layouts of the names of periods, which sort like times.
var periods = map[compose.Period]string{compose.Year: "2006", compose.Month: "2006/01", compose.Day: "2006/01/02"}

// date returns the time by which an item belongs to a period. One dated in the future counts with
// the time of the item before it, or else of the first one after it with a past date: with its
// own time no other period would ever end.
func (c *cutter) date(it item) time.Time {
	if at := it.change(); !at.After(c.now) {
		c.last = at
	}
	if at := c.last; !at.IsZero() || it.entry == nil {
		return feedtime.First(at, epoch)
	}
	return feedtime.First(sourceTime(it.entry), epoch)
}

// size returns the approximate size of an item in bytes.
func (it item) size() int {
	if it.entry == nil {
		return len(it.id) + 150
	}
	return len(textOf(it.entry))
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// A builder writes the documents of a call.
type builder struct {
	p       *session
	s       *state // the published state
	head    *feedhistory.Document
	ledger  ledger    // of the next subscription document
	updated time.Time // when the feed last changed
	written []string  // new archives, which nothing refers to yet

	name, text string   // the archive waiting for the name of its successor
	waiting    []file   // archives still to be written
	held       int      // their size in bytes
	index      *indexer // nil if the archives are not indexed
}

// advance takes the times of new items into account. The feed's time is never
// earlier than the time of anything in it. If an item has no time, the feed's
// time becomes later than it was, because readers use it for entries without a
// time (5005#21).
func (b *builder) advance(q *queue) {
	b.updated = feedtime.Later(b.updated, q.latest)
	if was := b.s.updated(); q.timeless && !b.updated.After(was) {
		b.updated = feedtime.Later(was.Add(time.Second), epoch)
	}
	if b.updated.IsZero() { // the feed is empty
		b.updated = epoch
	}
	b.updated = b.p.resolution(b.updated)
}

// change returns when an item was changed, as far as is known.
func (it item) change() time.Time {
	if it.time.IsZero() && it.entry != nil {
		return it.entry.Published
	}
	return it.time
}

// resolution rounds a time up to one documents can express; RSS has whole seconds.
func (p *Publisher) resolution(t time.Time) time.Time {
	t = t.UTC()
	if p.format() == feedhistory.FormatRSS && !t.Equal(t.Truncate(time.Second)) {
		return t.Truncate(time.Second).Add(time.Second)
	}
	return t
}

// close closes an archive.
func (b *builder) close(part part) error {
	b.ledger.latest = b.p.resolution(lastChange(b.ledger.latest, part.items))
	b.ledger.archives++
	return b.add(path.Join(b.p.dir(), part.name), b.head, part.items, b.ledger.latest)
}

// add renders an archive, which is written when the name of its successor is
// known.
func (b *builder) add(stem string, head *feedhistory.Document, items []item, updated time.Time) error {
	name, text, doc, err := b.p.renderArchive(stem, b.ledger.prev, head, items, updated)
	if err != nil {
		return err
	}
	var index *file
	if b.index != nil {
		if index, err = b.index.add(&archive{name: name, text: text, doc: doc, prev: b.ledger.prev}); err != nil {
			return err
		}
	}
	if b.name == "" {
		b.ledger.before, b.ledger.next = b.ledger.prev, name
	}
	if err := b.flush(b.p.url(name)); err != nil {
		return err
	}
	b.name, b.text, b.ledger.prev = name, text, name
	return b.await(index)
}

// count counts the entries among new items, and keeps how many the source shows.
// Nobody can have missed those of a feed's first call.
func (b *builder) count(q *queue) {
	if q.entries == 0 || b.p.recent() == 0 {
		return
	}
	b.ledger.source = cmp.Or(b.p.source, b.ledger.source)
	if b.s.doc == nil || b.p.Backlog {
		return
	}
	b.ledger.added = b.ledger.added.Begin(b.ledger.added.Next(), q.now)
	b.ledger.added.Add(q.entries)
}

// shown returns the number of entries to show in the subscription document, if
// they are not too large.
func (b *builder) shown() int {
	if b.p.recent() == 0 {
		return 0
	}
	return max(b.p.recent(), b.ledger.source) + b.ledger.added.Entries()
}

// repeated returns the archived entries to show after open ones, newest first.
func (b *builder) repeated(open, recent []*feedhistory.Entry) []*feedhistory.Entry {
	size := 0
	for _, e := range open {
		size += len(textOf(e))
	}
	for i, e := range recent {
		size += len(textOf(e))
		if n := len(open) + i; n >= b.shown() || n >= max(b.p.recent(), b.ledger.source) && size > feedtime.MostShown {
			return recent[:i]
		}
	}
	return recent
}

// subscription renders the subscription document.
func (b *builder) subscription(open []item, recent []*feedhistory.Entry) (text string, doc *feedhistory.Document, err error) {
	entries := entriesOf(open)
	b.ledger.open = len(entries)
	entries = slices.Concat(entries, b.repeated(entries, recent))
	d := compose.Subscription(b.head, entries, b.p.URL(), b.p.url(b.ledger.prev))
	d.Deleted, d.Updated = deletionsOf(open), b.updated
	// The document is complete for now (5005#2), so readers can tell nothing is missing.
	hasAll := d.Coverage == nil || d.Coverage.Verdict == feedhistory.VerdictWhole
	d.Complete = b.ledger.prev == "" && hasAll && (b.p.Complete == nil || b.p.Complete(d))
	return b.p.render(d)
}

// placeholder is used as the digest until the digest is known.
const placeholder = "0000000000000000"

// renderArchive returns the name and the text of an archive without
// next-archive. The name contains a digest of everything else, so a name is
// never used for different bytes. As the name of the preceding archive is in
// the text, the digest depends on the whole history.
func (p *Publisher) renderArchive(stem, prev string, head *feedhistory.Document, items []item, updated time.Time) (name, text string, doc *feedhistory.Document, err error) {
	name = stem + "-" + placeholder + p.extension()
	d := compose.Archive(head, entriesOf(items), compose.URLs{
		Self: p.url(name), Current: p.URL(), Prev: p.url(prev),
	})
	d.Deleted, d.Updated = deletionsOf(items), updated
	if text, doc, err = p.render(d); err != nil {
		return "", "", nil, err
	}
	sum := sumOf(text)
	digest := hex.EncodeToString(sum[:len(placeholder)/2])
	self := strings.Index(text, `rel="self"`)
	at := strings.Index(text[self:], placeholder+p.extension()+`"`)
	if self < 0 || at < 0 {
		return "", "", nil, fmt.Errorf("%s: no link to itself", name)
	}
	at += self
	text = text[:at] + digest + text[at+len(placeholder):]
	return stem + "-" + digest + p.extension(), text, doc, nil
}

// render writes a document of normal entries, and reads it again to check it: published
// documents stay for good, so readers must read them as intended. Entries published by
// earlier versions stay as they are.
func (p *Publisher) render(d *feedhistory.Document) (text string, back *feedhistory.Document, err error) {
	var b strings.Builder
	size := 4 << 10
	for _, e := range d.Entries {
		size += len(textOf(e)) + 1
	}
	b.Grow(size)
	w := compose.NewWriter(&b, p.format(), d)
	w.Verbatim = true
	door.Former(w, p.form)
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	if back, err = parse(b.String()); err != nil {
		return "", nil, err
	}
	if len(back.Entries) != len(d.Entries) || len(back.Deleted) != len(d.Deleted) {
		return "", nil, unpublishable(fmt.Sprintf("%d entries and %d deletions would be read as %d and %d", len(d.Entries), len(d.Deleted), len(back.Entries), len(back.Deleted)))
	}
	for i, e := range d.Entries {
		if b := back.Entries[i]; b.ID != e.ID || b.WeakID || !b.Updated.Equal(e.Updated) {
			return "", nil, refused(e, p.condition(e, b))
		}
	}
	for i, t := range d.Deleted {
		if b := back.Deleted[i]; b.Ref != t.Ref || !b.When.Equal(t.When) {
			return "", nil, &EntryError{ID: t.Ref, Given: t.When, Err: unpublishable("the deletion would be read as one of " + b.Ref + " at " + b.When.Format(time.RFC3339Nano))}
		}
	}
	return b.String(), back, nil
}

// setNext sets or removes the next-archive in the text of an archive, and
// changes nothing else: entries are not rendered again (5005#9).
func setNext(text, url string, format feedhistory.Format) (string, error) {
	before, link, after, err := placeNext(text, url, format)
	if err != nil {
		return "", err
	}
	if text[len(before):len(text)-len(after)] == link {
		return text, nil // without a copy
	}
	return before + link + after, nil
}

// placeNext returns the text of an archive in three parts, of which the middle one is the next-archive
// to be set.
func placeNext(text, url string, format feedhistory.Format) (before, link, after string, err error) {
	element := "link"
	if format == feedhistory.FormatRSS {
		element = "atom:link"
	}
	end := strings.Index(text, "<fh:archive ") // the links in the head end here
	if end < 0 {
		return "", "", "", fmt.Errorf("no archive: %w", ErrForeign)
	}
	from := end
	line := strings.LastIndexByte(text[:end-1], '\n') + 1
	if strings.HasPrefix(text[line:], "<"+element+` rel="next-archive" `) {
		from = line
	}
	if url != "" {
		link = `<` + element + ` rel="next-archive" href="` + attrEscaper.Replace(url) + "\"/>\n"
	}
	return text[:from], link, text[end:], nil
}

var attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;")

// commit publishes the builder's documents. If an older archive gains a link to a new
// one, two documents must change: then a note announces this first, and the call takes
// effect with the note. Otherwise it takes effect with the subscription document.
func (b *builder) commit(open []item, recent []*feedhistory.Entry) error {
	text, doc, err := b.subscription(open, recent)
	if err != nil {
		return errors.Join(err, b.undo())
	}
	done := b.ledger.done()
	final := withLedger(text, done)
	if final == b.s.text && !b.ledger.erase {
		return nil
	}
	if b.ledger.before == "" && !b.ledger.erase {
		err = b.p.Output.Put(b.p.ctx, b.p.name(), []byte(final))
	} else {
		err = b.p.note(withLedger(text, b.ledger))
	}
	if err != nil {
		return err
	}
	b.p.cache = stateOf(final, done, doc)
	return b.unlist()
}

// noteName returns the name of the note, a hidden file next to the subscription
// document.
func (p *Publisher) noteName() string {
	dir, base := path.Split(p.name())
	return dir + "." + base + ".next"
}

// note makes a call take effect, and then carries out the note.
func (p *session) note(text string) error {
	if err := p.Output.Put(p.ctx, p.noteName(), []byte(text)); err != nil {
		return err
	}
	return p.resume()
}

// resume carries out the note, if there is one. A step may have been done already;
// doing it again has the same result.
//
// The archive gaining a next-archive is written before the subscription document, so
// nobody finds by prev-archive an archive whose predecessor does not link to it
// (5005#12). When archives are replaced it is written after, for the same reason.
func (p *session) resume() error {
	text, err := p.read(p.noteName())
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	m, ok := readLedger(text)
	if !ok {
		return fmt.Errorf("%s: %w", p.noteName(), ErrForeign)
	}
	link := func() error { return p.link(m.before, m.next) }
	replace := func() error { return p.Output.Put(p.ctx, p.name(), []byte(withLedger(text, m.done()))) }
	steps := []func() error{link, replace}
	if m.erase {
		steps = []func() error{replace, link, func() error { return p.sweep(m.prev) }}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return p.Output.Remove(p.ctx, p.noteName())
}

// link adds the next-archive to an archive. A removed archive (5005#18) needs none.
func (p *session) link(before, next string) error {
	if before == "" {
		return nil
	}
	text, err := p.read(before)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	linked, err := setNext(text, p.url(next), p.format())
	if err != nil {
		return fmt.Errorf("%s: %w", before, err)
	}
	if linked == text {
		return nil
	}
	return p.Output.Put(p.ctx, before, []byte(linked))
}

// Archives are written before anything refers to them. Before them, a list of them is
// written, by which the remains of a killed call can be removed. The list does not
// contain archives from before the call, because somebody may know them.

// listName returns the name of the list, a hidden file next to the subscription
// document.
func (p *Publisher) listName() string {
	dir, base := path.Split(p.name())
	return dir + "." + base + ".new"
}

// A file is an archive, or a part of the index, still to be written.
type file struct {
	name string
	data []byte
}

// The maximum number of archives, and of their bytes, waiting to be written, so one
// list serves many archives.
const (
	mostWaiting = 16
	mostHeld    = 8 << 20
)

// flush queues the archive whose successor is now known for writing; without one, if that is "".
func (b *builder) flush(next string) error {
	if b.name == "" {
		return nil
	}
	before, link, after, err := placeNext(b.text, next, b.p.format())
	if err != nil {
		return err
	}
	data := make([]byte, 0, len(before)+len(link)+len(after))
	data = append(append(append(data, before...), link...), after...)
	f := &file{b.name, data}
	b.name, b.text = "", ""
	return b.await(f)
}

// await queues a file for writing.
func (b *builder) await(f *file) error {
	if f == nil {
		return nil
	}
	b.waiting = append(b.waiting, *f)
	b.held += len(f.data)
	if len(b.waiting) >= mostWaiting || b.held >= mostHeld {
		return b.write()
	}
	return nil
}

// finish writes all remaining archives.
func (b *builder) finish() error {
	if err := b.flush(""); err != nil {
		return err
	}
	if b.index != nil {
		index, err := b.index.end()
		if err = cmp.Or(err, b.await(index)); err != nil {
			return err
		}
	}
	return b.write()
}

// write adds the waiting archives to the list and writes them.
func (b *builder) write() error {
	waiting, listed := b.waiting, len(b.written)
	b.waiting, b.held = nil, 0
	for _, f := range waiting {
		if _, err := fs.Stat(b.p.Output, f.name); isNotExist(err) {
			b.written = append(b.written, f.name)
		} else if err != nil {
			return err
		}
	}
	if len(b.written) > listed {
		if err := b.p.Output.Put(b.p.ctx, b.p.listName(), []byte(strings.Join(b.written, "\n"))); err != nil {
			return err
		}
	}
	for _, f := range waiting {
		if err := b.p.Output.Put(b.p.ctx, f.name, f.data); err != nil {
			return err
		}
	}
	return nil
}

// undo removes the new archives, which nothing refers to, even if the call has been
// cancelled.
func (b *builder) undo() error {
	b.p.ctx = context.WithoutCancel(b.p.ctx)
	for _, name := range slices.Backward(b.written) {
		if err := b.p.Output.Remove(b.p.ctx, name); err != nil {
			return err
		}
	}
	return b.unlist()
}

// unlist removes the list when nothing on it is left over.
func (b *builder) unlist() error {
	if len(b.written) == 0 {
		return nil
	}
	return b.p.Output.Remove(b.p.ctx, b.p.listName())
}

// clean removes the remains of a killed call: the archives on its list outside of the
// chain. They were never published, so nobody knows them. If the chain is broken, they
// stay.
func (p *session) clean(s *state) error {
	text, err := p.read(p.listName())
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	keep, err := p.names(s.prev)
	if err == nil {
		for name := range strings.SplitSeq(text, "\n") {
			if archive := archiveOf(name); keep[archive] || !archiveName.MatchString(archive) {
				continue
			}
			if err := p.Output.Remove(p.ctx, name); err != nil {
				return err
			}
		}
	} else if !isNotExist(err) {
		return err
	}
	return p.Output.Remove(p.ctx, p.listName())
}
