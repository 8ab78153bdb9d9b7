package republish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// setUpOutputs prepares to publish archived feeds.
func (h *Handler) setUpOutputs() {
	sum := sha256.Sum256([]byte(h.base()))
	base := hex.EncodeToString(sum[:4]) // URLs are permanent, and contain Base
	h.all.store = h.Store
	divided := &dividedOutput{Output: subOutput{orMemory(h.Output), base}, isPrivate: h.all.isPrivate}
	h.parts = []publish.Output{divided.Output}
	if h.Private {
		divided.private = subOutput{orMemory(h.PrivateOutput), base}
		h.parts = append(h.parts, divided.private)
	}
	h.out = &sharedOutput{Output: divided}
	h.files = http.StripPrefix("/feeds", &publish.Handler{FS: h.out, MaxAge: time.Minute, Logger: h.Logger})
}

func orMemory(out publish.Output) publish.Output {
	if out == nil {
		return &publish.MemoryOutput{}
	}
	return out
}

// isPrivate reports whether the feed with a name is private. A name that is to be written
// may be younger than the last look at all feeds, so they are read again for it. The error
// of an unknown name matches mirror.ErrNotFound: such a name may be that of a private feed.
func (d *directory) isPrivate(name string, written bool) (bool, error) {
	feed, err := d.feed(context.Background(), name)
	if written && errors.Is(err, mirror.ErrNotFound) {
		d.expire()
		feed, err = d.feed(context.Background(), name)
	}
	return err == nil && feed.Private, err
}

// lock makes the caller the only one with the lock of a name.
func (h *Handler) lock(name string) (unlock func()) {
	m, _ := h.locks.LoadOrStore(name, new(sync.Mutex))
	m.(*sync.Mutex).Lock()
	return m.(*sync.Mutex).Unlock
}

// A sharedOutput takes an Output's lock against other processes. Within this process,
// several feeds can be published at the same time.
type sharedOutput struct {
	publish.Output

	mu     sync.Mutex
	users  int // number of holders of the lock
	unlock func() error
}

// Lock implements publish.Output.
func (s *sharedOutput) Lock(ctx context.Context) (unlock func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		if s.unlock, err = s.Output.Lock(ctx); err != nil {
			return nil, err
		}
	}
	s.users++
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users > 0 {
			return nil
		}
		return s.unlock()
	}, nil
}

// serveIndex answers with the subscription document of a feed, up to date.
func (h *Handler) serveIndex(w http.ResponseWriter, r *http.Request, asked request) error {
	if err := h.update(r.Context(), asked.feed, asked.name, asked.format, patience); err != nil {
		return err
	}
	if _, err := fs.Stat(h.out, asked.name+"/"+indexName(asked.format)); errors.Is(err, fs.ErrNotExist) {
		return h.serveEmpty(w, r, asked)
	}
	h.files.ServeHTTP(w, r)
	return nil
}

// serveEmpty answers for a feed without entries, because publication begins with
// the first entry.
func (h *Handler) serveEmpty(w http.ResponseWriter, r *http.Request, asked request) error {
	head, err := heading(asked.feed, asked.format, coverageOf(asked.feed, loss{}))
	if err != nil {
		return err
	}
	d := compose.Subscription(head, nil, h.feeds()+asked.name+"/"+indexName(asked.format), "")
	d.Complete, d.Updated = asked.feed.Verdict == feedhistory.VerdictWhole, asked.feed.Polled.UTC().Truncate(time.Second)
	return serveDocument(w, r, asked.format, "no-cache", d)
}

// update brings the published documents of a feed up to date. While the feed is
// being read for the first time, nothing is published, because archives must
// begin with the oldest entry. After a time of waiting, the last published documents do.
func (h *Handler) update(ctx context.Context, feed *mirror.Feed, name string, format feedhistory.Format, wait time.Duration) error {
	for joined := true; joined; { // an update that had begun may lack the latest changes
		done, err := readRecord(subOutput{h.out, name}, format)
		if err == nil && done.Version == feed.Commits {
			return nil
		}
		_, joined, err = share(ctx, h, wait, name+"/"+indexName(format), func(ctx context.Context) (none struct{}, err error) {
			return none, h.bringUp(ctx, feed.URL, name, format)
		})
		if _, refused := errors.AsType[*Error](err); refused && h.isPublished(name, format) {
			return nil // until the poll, the update, or another server's has ended
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bringUp publishes the changes of a feed.
func (h *Handler) bringUp(ctx context.Context, url, name string, format feedhistory.Format) error {
	defer h.lock(name + "/" + indexName(format))()
	if h.isBusy(url) {
		return &Error{http.StatusServiceUnavailable, "this feed is being read", "Try again later; its page shows the progress."}
	}
	feed, err := h.store.Feed(ctx, url)
	if err != nil {
		return err
	}
	p, err := h.publication(feed, name, format)
	if err != nil {
		return err
	}
	switch err := p.update(ctx); {
	case errors.Is(err, publish.ErrLocked):
		return &Error{http.StatusServiceUnavailable, "another server is publishing", "Try again in a moment."}
	case err != nil:
		return fmt.Errorf("publishing %s: %w", url, err)
	}
	return nil
}

func (h *Handler) isPublished(name string, format feedhistory.Format) bool {
	_, err := readRecord(subOutput{h.out, name}, format)
	return err == nil
}

// A publication is a feed being published in one format.
type publication struct {
	request
	h     *Handler
	out   publish.Overlay // holds the subscription document back until everything is done
	make  *source
	lost  loss
	shown shownEntries
}

func (h *Handler) publication(feed *mirror.Feed, name string, format feedhistory.Format) (*publication, error) {
	m, err := newSource(feed, format, "")
	if err != nil {
		return nil, err
	}
	index := indexName(format)
	keeps := func(file string) bool { return file == index || file == "."+index+".next" } // a Publisher's note about it, too
	return &publication{
		request: request{feed, name, format}, h: h, make: m,
		out: publish.Overlay{Output: subOutput{h.out, name}, Keeps: keeps},
	}, nil
}

// indexName returns the name of the subscription document.
func indexName(format feedhistory.Format) string { return "index." + string(format) }

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
	done, err := readRecord(&p.out, p.format)
	first := errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return err
	}
	now := time.Now()
	p.shown = done.Shown
	if err := p.beginShown(ctx, now); err != nil {
		return err
	}
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
	if index := p.out.Kept(indexName(p.format)); index != nil {
		if err := p.out.Output.Put(ctx, indexName(p.format), index); err != nil {
			return err
		}
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
	known, err := newestOf(ctx, p.h.store, p.feed.URL, now)
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
		Output: &p.out, Base: p.h.feeds() + p.name, Head: head, Format: p.format, Name: indexName(p.format), Recent: p.shown.count(),
		Split:   compose.Split{Size: p.h.Size},
		Backlog: true, // p.shown counts by polls
		Complete: func(*feedhistory.Document) bool {
			return p.feed.Verdict == feedhistory.VerdictWhole && len(p.lost.ids) == 0
		},
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

// The approximate maximum of the entries in memory, unless the subscription document is larger.
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

func (b *batch) delete(t feedhistory.Tombstone) {
	b.deleted = append(b.deleted, t)
	b.bytes += len(t.Ref) + 150
}

// isFull reports whether the batch is to be published. Each batch renews the subscription
// document, so one smaller than that would make a long history cost quadratic time.
func (b *batch) isFull(document int) bool {
	return (len(b.entries)+len(b.deleted) >= batchEntries || b.bytes >= batchBytes) && b.bytes >= document
}

// begin publishes all entries in the order of time. The names of archives
// depend on their content, so an archive equal to an earlier one has the
// same name.
func (p *publication) begin(ctx context.Context, closed []string) error {
	if err := p.out.Remove(ctx, indexName(p.format)); err != nil { // only here, so the feed begins again
		return err
	}
	publisher := p.publisher(p.make.head)
	err := p.each(ctx, mirror.Query{Feed: p.feed.URL, Reverse: true}, func(b batch) error { return p.append(ctx, publisher, b) })
	if err != nil {
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
	p.h.Logger.ErrorContext(ctx, "an entry cannot be published", "feed", p.feed.URL, "entry", id, "error", err)
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
	q := mirror.Query{Feed: p.feed.URL, AfterCommit: &after, States: mirror.Current | mirror.Former}
	return p.each(ctx, q, func(b batch) error {
		p.shown.Added.Add(len(b.entries))
		slices.SortStableFunc(b.entries, func(a, b *feedhistory.Entry) int {
			return cmp.Or(a.Updated, a.Published).Compare(cmp.Or(b.Updated, b.Published))
		})
		return p.append(ctx, p.publisher(p.make.head), b)
	})
}

// each calls f with the entries and deletions of a query, a batch at a time.
func (p *publication) each(ctx context.Context, q mirror.Query, f func(batch) error) error {
	b := batch{}
	for r, err := range p.h.store.Entries(ctx, q) {
		if err != nil {
			return err
		}
		if deleted, ok := r.Deletion(); ok {
			p.find(r.ID)
			b.delete(deleted)
		} else if e := p.entry(ctx, r); e != nil {
			b.add(e)
		}
		if b.isFull(len(p.out.Kept(indexName(p.format)))) {
			if err := f(b); err != nil {
				return err
			}
			b = batch{}
		}
	}
	return f(b)
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
		if e := compose.PseudoEntry(gap); !has(e.ID) {
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
	_, err := p.publisher(p.make.head).Publish(ctx, publish.Batch{Entries: fresh})
	return err
}

// tellLoss publishes an entry reporting the unpublishable entries, and deletes the
// previous one. It returns the id of the entry; "" if nothing is lost.
func (p *publication) tellLoss(ctx context.Context, before string) (id string, err error) {
	if gaps := p.lost.gaps(p.feed); len(gaps) > 0 {
		e := compose.PseudoEntry(gaps[0])
		return e.ID, p.tell(ctx, []*feedhistory.Entry{e}, []string{before})
	}
	if before != "" {
		err = p.publisher(p.make.head).Delete(ctx, before, time.Now().UTC().Truncate(time.Second))
	}
	return "", err
}

// A subOutput is a directory of an Output.
type subOutput struct {
	publish.Output
	dir string
}

func (b subOutput) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return b.Output.Open(path.Join(b.dir, name))
}

func (b subOutput) Put(ctx context.Context, name string, data []byte) error {
	if err := publish.CheckName("put", name); err != nil { // the joined path would be a different file
		return err
	}
	return b.Output.Put(ctx, path.Join(b.dir, name), data)
}

func (b subOutput) Remove(ctx context.Context, name string) error {
	if err := publish.CheckName("remove", name); err != nil {
		return err
	}
	return b.Output.Remove(ctx, path.Join(b.dir, name))
}

// A dividedOutput is an Output with the directories of private feeds apart.
type dividedOutput struct {
	publish.Output                // of the other feeds
	private        publish.Output // nil means private feeds are not published
	isPrivate      func(name string, written bool) (bool, error)
}

// of returns the part of a file.
func (d *dividedOutput) of(op, file string) (publish.Output, error) {
	name, _, _ := strings.Cut(file, "/")
	private, err := d.isPrivate(name, op == "put")
	unknown := errors.Is(err, mirror.ErrNotFound)
	switch {
	case op == "open" && unknown, err == nil && private && d.private == nil:
		return nil, &fs.PathError{Op: op, Path: file, Err: fs.ErrNotExist}
	case err != nil:
		return nil, err
	case private:
		return d.private, nil
	}
	return d.Output, nil
}

// Open implements fs.FS.
func (d *dividedOutput) Open(name string) (fs.File, error) {
	out, err := d.of("open", name)
	if err != nil {
		return nil, err
	}
	return out.Open(name)
}

// Put implements publish.Output.
func (d *dividedOutput) Put(ctx context.Context, name string, data []byte) error {
	out, err := d.of("put", name)
	if err != nil {
		return err
	}
	return out.Put(ctx, name, data)
}

// Remove implements publish.Output.
func (d *dividedOutput) Remove(ctx context.Context, name string) error {
	out, err := d.of("remove", name)
	if err != nil {
		return err
	}
	return out.Remove(ctx, name)
}

// Lock implements publish.Output.
func (d *dividedOutput) Lock(ctx context.Context) (unlock func() error, err error) {
	first, err := d.Output.Lock(ctx)
	if err != nil || d.private == nil {
		return first, err
	}
	second, err := d.private.Lock(ctx)
	if err != nil {
		return nil, errors.Join(err, first())
	}
	return func() error { return errors.Join(second(), first()) }, nil
}

// mostShown is the number of entries shown of a feed whose own document the mirror
// does not count, unless its first reading had more.
const mostShown = 1000

// shownEntries says how many entries a subscription document shows: as many as
// the publisher's own, and in addition those of recent polls.
type shownEntries struct {
	Source int                `json:"source,omitzero"` // number of entries the publisher's document shows, or may show
	Added  feedtime.Additions `json:"added,omitempty"` // by the numbers of polls; the last one belongs to the present update
}

// beginShown begins an update.
func (p *publication) beginShown(ctx context.Context, now time.Time) (err error) {
	s, feed := &p.shown, p.feed
	switch {
	case feed.Kind == feedhistory.KindComplete:
		s.Source = int(feed.Entries)
	case feed.Kind == feedhistory.KindArchived:
		s.Source = feed.Ledger.Shown()
	case s.Source == 0 && feed.Entries <= mostShown:
		s.Source = int(feed.Entries)
	case s.Source == 0:
		s.Source, err = p.firstWindow(ctx)
		s.Source = max(s.Source, mostShown)
	}
	s.Added = s.Added.Begin(feed.Polls, now)
	return err
}

// count returns the number of entries to show.
func (s *shownEntries) count() int { return max(feedtime.LeastShown, s.Source) + s.Added.Entries() }

// firstWindow returns how many entries the first commit to a feed has brought: the size of the
// publisher's own document, if nobody has counted it. Of a recovered history it is zero.
func (p *publication) firstWindow(ctx context.Context) (n int, err error) {
	if p.feed.Source != "" {
		return 0, nil
	}
	first := int64(math.MaxInt64)
	for r, err := range p.h.store.Entries(ctx, mirror.Query{Feed: p.feed.URL}) {
		if err != nil {
			return 0, err
		}
		if r.FirstCommit < first {
			first, n = r.FirstCommit, 0
		}
		if r.FirstCommit == first {
			n++
		}
	}
	return n, nil
}

// leastShown returns how many entries a subscription document shows however large they are: no
// fewer than the publisher's own.
func (p *publication) leastShown(ctx context.Context) (n int, err error) {
	if n = p.shown.Source; p.feed.Kind != feedhistory.KindComplete && p.feed.Kind != feedhistory.KindArchived {
		if n, err = p.firstWindow(ctx); err != nil {
			return 0, err
		}
	}
	return max(feedtime.LeastShown, min(n, p.shown.Source)), nil
}

// finish writes the subscription document with its head.
func (p *publication) finish(ctx context.Context, head *feedhistory.Document) error {
	publisher, least := p.publisher(head), 0
	for {
		if err := publisher.Append(ctx); err != nil {
			return err
		}
		size := len(p.out.Kept(indexName(p.format)))
		if size <= feedtime.MostShown {
			return nil
		}
		if least == 0 {
			var err error
			if least, err = p.leastShown(ctx); err != nil {
				return err
			}
		}
		if publisher.Recent <= least {
			return nil
		}
		publisher.Recent = max(least, min(publisher.Recent*3/4, publisher.Recent*feedtime.MostShown/size))
	}
}
