package republish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A publication is a feed being published in one format.
type publication struct {
	c      *chains
	feed   *mirror.Feed
	format feedhistory.Format
	out    *stagedOutput
	base   string
	make   *source
	head   *feedhistory.Document // without a verdict
	lost   loss
	shown  shownEntries
}

func (c *chains) publication(feed *mirror.Feed, name string, format feedhistory.Format) (*publication, error) {
	head, err := heading(feed, format, nil)
	if err != nil {
		return nil, err
	}
	return &publication{
		c: c, feed: feed, format: format, base: c.feeds + name,
		out:  &stagedOutput{Output: subOutput{c.out, name}, name: indexName(format), files: map[string][]byte{}, lock: c.share},
		make: newSource(feed, head, format), head: head,
	}, nil
}

// indexName returns the name of the subscription document.
func indexName(format feedhistory.Format) string { return "index." + format.String() }

// A publicationRecord is the state of a publication, in a hidden file next to it.
type publicationRecord struct {
	Version int64     `json:"version"`         // the version of the feed up to which all changes are published
	Gaps    []string  `json:"gaps,omitempty"`  // the ids of the entries reporting gaps
	Newest  time.Time `json:"newest,omitzero"` // the time of the newest entry in the subscription document
	Lost    []string  `json:"lost,omitempty"`  // the ids of unpublishable entries
	Loss    string    `json:"loss,omitempty"`  // the id of the entry reporting these

	Shown shownEntries `json:"shown,omitzero"` // how many entries the subscription document shows
}

func recordName(format feedhistory.Format) string { return "." + indexName(format) + ".json" }

func readRecord(out fs.FS, format feedhistory.Format) (done publicationRecord, err error) {
	data, err := fs.ReadFile(out, recordName(format))
	if err == nil {
		err = json.Unmarshal(data, &done)
	}
	return done, err
}

// update publishes the changes, none of which is visible before the end. It
// publishes nothing twice, so it may be repeated after
// any failure.
//
// Changes come after the published entries, unless they concern the past: if a gap was
// closed, or if the many old entries found would push the newest ones out of the
// subscription document (5005#8), a new chain is made. The archives of the old chain
// stay where they are. Entries dated in the future do not count here: such an entry
// would be the newest for ever, but leave the document nevertheless.
func (p *publication) update(ctx context.Context) error {
	done, err := readRecord(p.out, p.format)
	first := errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return err
	}
	now := time.Now()
	p.shown = done.Shown
	p.shown.begin(p.feed, now)
	told, closed := p.compareGaps(done.Gaps)
	anew, newest := first || len(closed) > 0, time.Time{}
	if !anew {
		p.lost.ids = done.Lost
		if newest, anew, err = p.extend(ctx, done, now); err != nil {
			return err
		}
	}
	if anew {
		p.lost = loss{}
		if err := p.begin(ctx, closed); err != nil {
			return err
		}
		if done.Gaps, newest = nil, p.newest(now); len(p.lost.ids) > 0 {
			done.Loss = "" // the new chain does not have the entry
		}
	}
	if err := p.tell(ctx, told, done.Gaps); err != nil {
		return err
	}
	next := publicationRecord{Version: p.feed.Commits, Newest: newest, Lost: p.lost.ids}
	for _, e := range told {
		next.Gaps = append(next.Gaps, e.ID)
	}
	if next.Loss, err = p.tellLoss(ctx, done.Loss); err != nil {
		return err
	}
	head, err := heading(p.feed, p.format, coverageOf(p.feed, p.lost))
	if err != nil {
		return err
	}
	if err := p.finish(ctx, head); err != nil {
		return err
	}
	next.Shown = p.shown
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := p.out.commit(ctx); err != nil {
		return err
	}
	return p.out.Output.Put(ctx, recordName(p.format), data)
}

// extend publishes the changes since the last update. It returns the
// time of the newest entry in the subscription document, and whether the feed
// must begin again instead, because that document would lack newer entries.
func (p *publication) extend(ctx context.Context, done publicationRecord, now time.Time) (newest time.Time, anew bool, err error) {
	if err := p.changes(ctx, done.Version); err != nil {
		return newest, false, err
	}
	known, err := newestOf(ctx, p.c.store, p.feed.URL, now)
	if err != nil {
		return newest, false, err
	}
	least := done.Newest
	if known.Before(least) {
		least = known.Truncate(time.Second)
	}
	newest = p.newest(now)
	return newest, newest.Before(least), nil
}

// publisher returns the Publisher of the feed.
func (p *publication) publisher(head *feedhistory.Document) *publish.Publisher {
	return &publish.Publisher{
		Output: p.out, Base: p.base, Head: head, Format: p.format, Name: indexName(p.format), Recent: p.shown.count(),
		Split:    feedhistory.Split{Size: p.c.size},
		Backlog:  true, // p.shown counts by polls
		Complete: func(*feedhistory.Document) bool { return p.feed.Verdict == feedhistory.Whole && len(p.lost.ids) == 0 },
	}
}

// newest returns the time of the newest entry in the subscription document not dated in
// the future; the zero time if there is none.
func (p *publication) newest(now time.Time) (newest time.Time) {
	f, err := p.out.Open(indexName(p.format))
	if err != nil {
		return newest
	}
	defer f.Close()
	doc, err := feedhistory.Parse(f, "")
	if err != nil {
		return newest
	}
	for _, e := range doc.Entries {
		if at := cmp.Or(e.Updated, e.Published); at.After(newest) && !at.After(now) {
			newest = at
		}
	}
	return newest
}

// The approximate maximum of the entries in memory.
const (
	batchEntries = 1000
	batchBytes   = 16 << 20
)

// A batch is entries and deletions to publish together.
type batch struct {
	entries []*feedhistory.Entry
	deleted []feedhistory.Tombstone
	bytes   int
}

func (b *batch) add(e *feedhistory.Entry) {
	b.entries = append(b.entries, e)
	b.bytes += len(e.XML())
}

func (b *batch) isFull() bool {
	return len(b.entries)+len(b.deleted) >= batchEntries || b.bytes >= batchBytes
}

// begin publishes all entries in the order of time. The names of archives
// depend on their content, so an archive equal to an earlier one has the
// same name.
func (p *publication) begin(ctx context.Context, closed []string) error {
	p.out.hide()
	publisher, b := p.publisher(p.head), batch{}
	for r, err := range p.c.store.Entries(ctx, mirror.Query{Feed: p.feed.URL, Oldest: true}) {
		if err != nil {
			return err
		}
		if e := p.entry(ctx, r); e != nil {
			b.add(e)
		}
		if b.isFull() {
			if err := p.append(ctx, publisher, b); err != nil {
				return err
			}
			b = batch{}
		}
	}
	if err := p.append(ctx, publisher, b); err != nil {
		return err
	}
	for _, id := range closed {
		if err := publisher.Delete(ctx, id, time.Now().UTC()); err != nil {
			return err
		}
	}
	return nil
}

// entry returns an entry to publish; nil if the mirror cannot read it.
func (p *publication) entry(ctx context.Context, r *mirror.Record) *feedhistory.Entry {
	e, err := p.make.entry(r)
	if err != nil {
		p.lose(ctx, r.ID, err)
		return nil
	}
	p.find(r.ID)
	return e
}

// lose records an entry as unpublishable.
func (p *publication) lose(ctx context.Context, id string, err error) {
	p.c.log.ErrorContext(ctx, "an entry cannot be published", "feed", p.feed.URL, "entry", id, "err", err)
	p.lost = p.lost.add(id)
}

// find records an entry as publishable, or gone.
func (p *publication) find(id string) {
	if at, found := slices.BinarySearch(p.lost.ids, id); found {
		p.lost.ids = slices.Delete(slices.Clone(p.lost.ids), at, at+1)
	}
}

// changes publishes the changes after a version of the feed.
func (p *publication) changes(ctx context.Context, after int64) error {
	b := batch{}
	flush := func() error {
		p.shown.Added.Add(len(b.entries))
		slices.SortStableFunc(b.entries, func(a, b *feedhistory.Entry) int {
			return cmp.Or(a.Updated, a.Published).Compare(cmp.Or(b.Updated, b.Published))
		})
		err := p.append(ctx, p.publisher(p.head), b)
		b = batch{}
		return err
	}
	for r, err := range p.c.store.Entries(ctx, mirror.Query{Feed: p.feed.URL, AfterCommit: &after, Deleted: true}) {
		if err != nil {
			return err
		}
		if r.State != mirror.Live {
			p.find(r.ID)
			b.deleted = append(b.deleted, feedhistory.Tombstone{Ref: r.ID, When: cmp.Or(r.Tombstone.When, r.Changed)})
		} else if e := p.entry(ctx, r); e != nil {
			b.add(e)
		}
		if b.isFull() {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// append publishes entries and deletions. Usually entries are new, or newer
// than the published ones; then the cost does not depend on the length of the
// history. If only the mirror can know which version is newer, or if something
// was deleted, append reads all archives, and gives the version the present
// time, because readers would keep the other one otherwise (5005#16).
func (p *publication) append(ctx context.Context, publisher *publish.Publisher, b batch) error {
	entries, deleted := latest(b.entries), b.deleted
	for len(entries)+len(deleted) > 0 {
		var err error
		if len(deleted) == 0 {
			err = publisher.Append(ctx, entries...)
		}
		if len(deleted) > 0 || errors.Is(err, publish.ErrStale) || errors.Is(err, publish.ErrSameTime) {
			_, err = publisher.Publish(ctx, publish.Batch{Entries: entries, Deleted: deleted})
		}
		refused, ok := errors.AsType[*publish.EntryError](err)
		if !ok || !errors.Is(err, publish.ErrUnpublishable) {
			return err
		}
		p.lose(ctx, refused.ID, err)
		entries = slices.DeleteFunc(entries, func(e *feedhistory.Entry) bool { return e.ID == refused.ID })
	}
	return nil
}

// latest returns each entry once. An entry changed while entries were read may come
// twice, the later version last.
func latest(entries []*feedhistory.Entry) []*feedhistory.Entry {
	last := make(map[string]*feedhistory.Entry, len(entries))
	for _, e := range entries {
		last[e.ID] = e
	}
	return slices.DeleteFunc(entries, func(e *feedhistory.Entry) bool { return last[e.ID] != e })
}

// compareGaps returns the entries for the present gaps (5005#23), and the ids of those
// for gaps now closed.
func (p *publication) compareGaps(told []string) (now []*feedhistory.Entry, closed []string) {
	has := func(id string) bool {
		return slices.ContainsFunc(now, func(e *feedhistory.Entry) bool { return e.ID == id })
	}
	for _, gap := range gapsOf(p.feed) {
		if e := gap.PseudoEntry(); !has(e.ID) {
			now = append(now, e)
		}
	}
	return now, slices.DeleteFunc(slices.Clone(told), has)
}

// tell publishes the entries not in before.
func (p *publication) tell(ctx context.Context, now []*feedhistory.Entry, before []string) error {
	fresh := slices.DeleteFunc(slices.Clone(now), func(e *feedhistory.Entry) bool { return slices.Contains(before, e.ID) })
	if len(fresh) == 0 {
		return nil
	}
	_, err := p.publisher(p.head).Publish(ctx, publish.Batch{Entries: fresh})
	return err
}

// tellLoss publishes an entry reporting the unpublishable entries, and deletes the
// previous one. It returns the id of the entry; "" if nothing is lost.
func (p *publication) tellLoss(ctx context.Context, before string) (id string, err error) {
	if gaps := p.lost.gaps(p.feed); len(gaps) > 0 {
		e := gaps[0].PseudoEntry()
		if id = e.ID; id != before {
			_, err = p.publisher(p.head).Publish(ctx, publish.Batch{Entries: []*feedhistory.Entry{e}})
		}
		return id, err
	}
	if before != "" {
		err = p.publisher(p.head).Delete(ctx, before, time.Now().UTC().Truncate(time.Second))
	}
	return "", err
}
