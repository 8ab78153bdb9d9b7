package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A Batch is the present content of a source: a directory of articles, a
// database, another feed.
type Batch struct {
	Entries []*feedhistory.Entry    // in any order, each ID once
	Deleted []feedhistory.Tombstone // entries the source knows to be deleted; a zero time means now

	// Source, if not nil, yields more entries, in any order, so a long source need not fit in
	// memory. It is read once, to its end; those to be published are then in a temporary file. The
	// Output is locked once 4 MB have been read. An error of it ends the call, and nothing is
	// published.
	Source iter.Seq2[*feedhistory.Entry, error]

	// Ended, if not nil, is called when Source has ended, before anything is published. It may set the
	// fields other than Entries and Source, and the Publisher's Head, to what only the whole source
	// tells. If it returns an error, nothing is published and Publish returns the error.
	Ended func(*Batch) error

	// DeleteMissing means Entries is complete: all other published entries are deleted. If
	// Entries is empty, the error is ErrEmptySource instead.
	DeleteMissing bool

	// MaxDeletions is the maximum number of entries DeleteMissing may delete. If more are
	// missing, the error is a *TooManyDeletionsError. Zero means five, or a fifth of the
	// published entries if that is more; a negative number means any number.
	MaxDeletions int

	// Shown is the number of entries the source's own document shows, if it is
	// another feed: the subscription document shows at least as many. Zero
	// means as many as in the last call that said. A negative one is an error.
	Shown int

	// Now is the time for entries without a time, or changed without a newer one. Entries
	// with a later date are dated in the future. Zero means the present, in whole seconds.
	Now time.Time

	// Check, if not nil, is called with the result, except for Archives, before
	// anything new is published: only lost archives have been restored by then.
	// If it returns an error, nothing else is published and Publish returns the
	// error.
	Check func(Report) error
}

// A Report is the result of Publish.
type Report struct {
	New       int // entries published for the first time, or again after their deletion
	Changed   int // entries of which a new version was published
	Dated     int // how many of the new and changed ones got the time of the update
	Renamed   int // how many of the new ones have the address, or the title and the time, of a published entry no longer in the source: they have a new id
	Unchanged int // entries already published as they are in the source
	Deleted   int // deletions published
	Missing   int // entries published, but not in the source, and kept
	Archives  int // archives closed

	// Outdated are the ids in Batch.Deleted whose published entries are newer than their
	// deletion. Readers would ignore it (RFC 6721 §2), so it is not published.
	Outdated []string

	// Restored are the names of missing archives written again, byte for byte, from the
	// source's entries. Lost are the names of those not restored, because the source does
	// not have their content; new readers cannot get beyond them.
	Restored, Lost []string
}

// Publish publishes the difference between a source and the feed, either all of it or
// nothing. It writes nothing for entries already published with the same content, so
// you may call it with everything at every build of a site.
//
// Unlike Append, Publish does not require correct times. A version gets the time of the
// update if it differs from the published one without being newer, because readers
// would otherwise keep the older one (5005#16, 5005#20); so do new entries without any
// time. To compare, Publish keeps an index of the archives, and reads those with the
// source's entries. It writes a missing archive again if the source still has exactly its
// entries, for which it has the whole source in memory.
func (p *Publisher) Publish(ctx context.Context, u Batch) (*Report, error) {
	if u.Now.IsZero() {
		u.Now = time.Now().UTC().Truncate(time.Second)
	}
	var report Report
	in := newSource(&u)
	defer in.stop()
	if err := in.begin(&u); err != nil {
		return nil, err
	}
	err := p.exclusively(ctx, func(p *session, s *state) error {
		x, err := p.openIndex(s, false)
		if err != nil {
			return err
		}
		if x.lost {
			x.closeAll()
			if err := cmp.Or(in.readAll(&u), p.restoreAll(s, in.read, &report)); err != nil {
				return err
			}
			if x, err = p.openIndex(s, true); err != nil {
				return err
			}
		}
		defer x.closeAll()
		return p.update(s, x, in, &u, &report)
	})
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// update publishes the difference between a source and the feed.
func (p *session) update(s *state, x *index, in *source, u *Batch, report *Report) error {
	q := p.queue(s, u.Now, true)
	defer q.sorter.Close()
	gone, err := p.compare(s, x, q, in, u, report)
	if err != nil || s.doc == nil && q.n+report.Deleted == 0 {
		return err // a feed begins with its first entry
	}
	p.source = u.Shown
	if u.Check != nil {
		if err := u.Check(*report); err != nil {
			return err
		}
	}
	if err := u.permit(gone); err != nil {
		return err
	}
	if err := gone.queue(s, x, q, u); err != nil {
		return err
	}
	before, index := s.archives, &indexer{p: p, parts: x.parts}
	if err := p.build(s, q, index); err != nil {
		return err
	}
	report.Archives = p.cache.archives - before
	x.closeAll() // an open file cannot be removed everywhere
	return p.remove(index.gone)
}

// mostAhead is the size of the entries that are read before the Output is locked.
const mostAhead = 4 << 20

// A source has the entries of a Batch, which are read as they are needed.
type source struct {
	read  []*feedhistory.Entry // the first ones
	isOwn bool                 // read may be changed
	next  func() (*feedhistory.Entry, error, bool)
	stop  func()
	ended bool
}

func newSource(u *Batch) *source {
	in := &source{read: u.Entries, stop: func() {}}
	if u.Source != nil {
		in.read, in.isOwn = slices.Clone(in.read), true
		in.next, in.stop = iter.Pull2(u.Source)
	}
	return in
}

// begin reads the first entries: all of most sources, so what they have wrong is known before
// anything is touched.
func (in *source) begin(u *Batch) error {
	for size := 0; in.next != nil && size < mostAhead; {
		e, err := in.more()
		if err != nil {
			return err
		}
		if e != nil {
			size += 1000 + len(textOf(e))
		}
	}
	if in.next == nil {
		return in.end(u)
	}
	return nil
}

// more reads one more entry, which may be nil, or the end.
func (in *source) more() (*feedhistory.Entry, error) {
	e, err, ok := in.next()
	switch {
	case err != nil:
		return nil, err
	case !ok:
		in.next = nil
	default:
		in.read = append(in.read, e)
	}
	return e, nil
}

// readAll reads all entries.
func (in *source) readAll(u *Batch) error {
	for in.next != nil {
		if _, err := in.more(); err != nil {
			return err
		}
	}
	return in.end(u)
}

// end calls Batch.Ended, once.
func (in *source) end(u *Batch) error {
	if in.ended {
		return nil
	}
	in.ended = true
	if u.Ended != nil {
		if err := u.Ended(u); err != nil {
			return err
		}
	}
	return settings.Check("publish", settings.Number{Name: "Batch.Shown", Value: int64(u.Shown)})
}

// each calls f with each entry, and then Batch.Ended.
func (in *source) each(u *Batch, f func(*feedhistory.Entry) error) error {
	read := in.read
	in.read = nil
	for len(read) > 0 || in.next != nil {
		if len(read) == 0 {
			if _, err := in.more(); err != nil {
				return err
			}
			if read, in.read = in.read, in.read[:0]; len(read) == 0 {
				break
			}
		}
		if err := f(read[0]); err != nil {
			return err
		}
		if in.isOwn {
			read[0] = nil
		}
		read = read[1:]
	}
	return in.end(u)
}

// A version describes the published version of an entry.
type version struct {
	time    time.Time
	deleted bool
	as      digest // of the entry as it was published
}

// A place identifies a version in the log.
type place struct {
	id   string
	time int64
}

func placeOf(it item) place { return place{it.id, it.time.UnixNano()} }

// compare queues the entries an update must publish, and returns the deletions.
func (p *session) compare(s *state, x *index, q *queue, in *source, u *Batch, report *Report) (gone deletionReport, err error) {
	var found []newTrace
	err = in.each(u, func(e *feedhistory.Entry) error {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if e == nil {
			return refused(nil, ErrNoID)
		}
		old, published, again, err := x.take(e.ID)
		if err != nil {
			return err
		}
		if again {
			return errTwice(e.ID)
		}
		text := textOf(e)
		if published && !old.deleted && old.as == digestOf(text) {
			report.Unchanged++
			p.giveAgain(x, e)
			return nil
		}
		if (!published || old.deleted) && x.live > 0 {
			for _, trace := range traces(e) {
				found = append(found, newTrace{traceKey(trace), int32(report.New)})
			}
		}
		it, err := p.revise(x, e, old, published, u.Now, report)
		if err != nil || it.entry == nil {
			return err
		}
		if it.entry != e {
			text = textOf(it.entry)
		}
		return q.add(s, it, text)
	})
	if err == nil {
		err = q.checkIDs(slices.Concat(x.fresh...))
		x.fresh = nil
	}
	if err != nil {
		return gone, err
	}
	if gone, err = deletions(x, u); err != nil {
		return gone, err
	}
	if report.Renamed, err = x.renamed(found); err != nil {
		return gone, err
	}
	gone.given = report.New + report.Changed + report.Unchanged
	report.Outdated, report.Deleted = gone.outdated, len(gone.items)
	if u.DeleteMissing {
		report.Deleted += gone.missing
	} else {
		report.Missing = gone.missing
	}
	return gone, nil
}

// revise returns the item to publish for an entry; an empty one if there is
// nothing to publish.
func (p *session) revise(x *index, e *feedhistory.Entry, old version, published bool, now time.Time, report *Report) (item, error) {
	normal, err := p.normalize(e)
	if err != nil {
		return item{}, refused(e, err)
	}
	timed, same := isTimed(e), false
	newer := timed && normal.Updated.After(old.time)
	if published && !old.deleted {
		words, err := x.words(e.ID)
		if err != nil {
			return item{}, err
		}
		same = p.isPublished(normal, e, words)
	}
	switch {
	case !published || old.deleted:
		report.New++
		newer = newer || timed && !published
	case same && (!newer || !old.time.After(epoch)): // a time that was unknown has become known
		report.Unchanged++
		p.giveAgain(x, normal)
		return item{}, nil
	default:
		report.Changed++
	}
	if newer {
		return entryItem(normal), nil
	}
	report.Dated++
	normal, err = p.dated(normal, feedtime.Later(now, old.time.Add(time.Second)))
	if err != nil {
		return item{}, refused(e, err)
	}
	return entryItem(normal), nil
}

// traces returns the signs by which people know an entry again whose id has changed: its
// address, without its scheme, www, a final slash and a fragment, and its title with its time.
func traces(e *feedhistory.Entry) (all []string) {
	address := e.ID // a permalink
	if link, ok := e.Links.Rel("alternate"); ok {
		address = link.Href
	}
	if scheme, rest, ok := strings.Cut(iri.Unsigned(iri.WithoutFragment(address)), "://"); ok && (scheme == "http" || scheme == "https") {
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(rest, "www."), "/"))
	}
	if title, at := e.Title().Plain(), cmp.Or(e.Published, e.Updated); title != "" && at.After(epoch) {
		all = append(all, title+at.UTC().Format("\n"+time.RFC3339))
	}
	return all
}

// isTimed reports whether an entry says when it was written. The epoch means an
// unknown time, because Atom requires one.
func isTimed(e *feedhistory.Entry) bool { return e.Updated.After(epoch) || e.Published.After(epoch) }

// words returns a digest of everything an entry says, in valid form, except its
// update time, the signatures in addresses, and an unnecessary base.
func (p *Publisher) words(e *feedhistory.Entry) digest {
	if valid := p.repaired(e, textOf(e)); valid != nil {
		e = valid
	}
	element := textOf(e)
	if tag, content, ok := strings.Cut(element, ">"); ok && !isRelative(e, element) {
		before, base, _ := strings.Cut(tag, ` xml:base="`)
		_, after, _ := strings.Cut(base, `"`)
		element = before + after + ">" + content
	}
	// Titles of RSS have been decoded since they were published: that changes no entry.
	before, after := withoutUpdated(withTitle(element, feedxml.Atom, xmlscan.Unescape))
	return digestOf(iri.Unsigned(before + after))
}

// withTitle returns an entry with another title, if it has one of plain text in a namespace.
func withTitle(element, space string, change func(title string) string) string {
	for title := range xmlscan.Children(element, space, "title") {
		changed := change(title.Text)
		if !title.Bare || title.Nested || changed == title.Text {
			return element
		}
		var b strings.Builder
		xmlscan.WriteText(&b, changed)
		return element[:title.Content] + b.String() + element[title.Close:]
	}
	return element
}

// withoutUpdated cuts an entry at its update time, or at the place for one. The
// update time is an Atom element, in RSS, too.
func withoutUpdated(element string) (before, after string) {
	for updated := range xmlscan.Children(element, feedxml.Atom, "updated") {
		return element[:updated.Start], element[updated.End:]
	}
	end := max(strings.LastIndex(element, "</"), 0)
	return element[:end], element[end:]
}

// dated returns an entry with another update time, otherwise unchanged.
func (p *Publisher) dated(e *feedhistory.Entry, t time.Time) (*feedhistory.Entry, error) {
	before, after := withoutUpdated(textOf(e))
	element := before + `<updated xmlns="` + feedxml.Atom + `">` + t.UTC().Format(time.RFC3339Nano) + "</updated>" + after
	again, err := feedhistory.ReadEntry(p.format(), element, "")
	if err != nil || !again.Updated.Equal(t) {
		return nil, unpublishable("it cannot have the update time " + t.UTC().Format(time.RFC3339Nano))
	}
	return p.normalize(again)
}

// ErrEmptySource is the error of a Batch that would delete entries because
// its Entries are empty. More likely, the source could not be read.
var ErrEmptySource = errors.New("the source is empty, so no entry is deleted")

// A TooManyDeletionsError is the error of a Batch whose DeleteMissing would
// delete more entries than MaxDeletions allows. Nothing has been published.
type TooManyDeletionsError struct {
	Missing   int // the number of published entries the source lacks
	Published int // the number of published entries
}

// Error returns the numbers.
func (e *TooManyDeletionsError) Error() string {
	return fmt.Sprintf("%d of the %d published entries are missing from the source: too many to delete", e.Missing, e.Published)
}

// A deletionReport is the outcome of comparing the published entries with the
// source's.
type deletionReport struct {
	items     []item // the deletions that the source names
	given     int    // the number of entries of the source
	published int    // the number of published entries
	missing   int    // the number of published entries the source lacks and does not call deleted
	outdated  []string
}

// deletions returns the deletions an update publishes.
func deletions(x *index, u *Batch) (d deletionReport, err error) {
	for _, t := range u.Deleted {
		old, published, again, err := x.take(t.Ref)
		if err != nil {
			return d, err
		}
		if again || !published || old.deleted {
			continue
		}
		if t.When.Before(old.time) && !t.When.IsZero() {
			d.outdated = append(d.outdated, t.Ref) // the entry has been published again since (RFC 6721 §2)
			continue
		}
		d.items = append(d.items, item{id: t.Ref, time: feedtime.Later(cmp.Or(t.When, u.Now), old.time)})
	}
	d.published, d.missing = x.live, x.live-x.given
	return d, nil
}

// queue queues the deletions.
func (d *deletionReport) queue(s *state, x *index, q *queue, u *Batch) error {
	if u.DeleteMissing && d.missing > 0 {
		err := x.missing(func(id string, old version) {
			d.items = append(d.items, item{id: id, time: feedtime.Later(u.Now, old.time)})
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(d.items, func(a, b item) int { return cmp.Or(a.time.Compare(b.time), strings.Compare(a.id, b.id)) })
	for _, it := range d.items {
		if err := q.add(s, it, ""); err != nil {
			return err
		}
	}
	return nil
}

// The deletions that need no MaxDeletions: five, or a fifth of the published
// entries if that is more.
const (
	fewDeletions  = 5
	deletableEach = 5
)

// permit returns an error if the update must not delete the missing entries.
func (u *Batch) permit(d deletionReport) error {
	most := cmp.Or(u.MaxDeletions, max(fewDeletions, d.published/deletableEach))
	switch {
	case !u.DeleteMissing || d.missing == 0:
		return nil
	case d.given == 0:
		return ErrEmptySource
	case most >= 0 && d.missing > most:
		return &TooManyDeletionsError{Missing: d.missing, Published: d.published}
	}
	return nil
}

// A lostArchive is a missing archive of the chain.
type lostArchive struct {
	name  string
	newer *archive // the archive linking to it; nil if the subscription document does
	older *archive // the archive it linked to, whose next-archive names the lost one; nil if there is none
}

// walk calls f with each archive, newest first, and returns the lost ones. It
// goes on beyond a lost archive if it finds the archive before, whose
// next-archive names the lost one.
func (p *session) walk(s *state, f func(*archive)) (missing []lostArchive, err error) {
	var newer *archive
	for name := s.prev; name != ""; {
		a, err := p.archive(name)
		if isNotExist(err) {
			l := lostArchive{name: name, newer: newer}
			if l.older, err = p.before(name); err != nil {
				return nil, err
			}
			missing = append(missing, l)
			if a = l.older; a == nil {
				return missing, nil
			}
		} else if err != nil {
			return nil, err
		}
		f(a)
		newer, name = a, a.prev
	}
	return missing, nil
}

// before returns the archive whose next-archive is the given name; nil if there
// is none. It reads all archives.
func (p *session) before(name string) (found *archive, err error) {
	err = fs.WalkDir(p.Output, p.dir(), func(other string, entry fs.DirEntry, err error) error {
		m := archiveName.FindStringSubmatch(other)
		if err != nil || entry.IsDir() || m == nil || m[2] != p.extension() {
			return err
		}
		text, err := p.read(other)
		if err != nil || !strings.Contains(text, ` rel="next-archive" href="`+attrEscaper.Replace(p.url(name))+`"`) {
			return err
		}
		found, err = p.archive(other)
		return err
	})
	if isNotExist(err) {
		return nil, nil
	}
	return found, err
}

// restore writes a lost archive again if the oldest of the given entries were its
// content, as proved by the digest in its name. It returns this content, or nil if they
// were not.
func (p *session) restore(s *state, l lostArchive, given []item) ([]item, error) {
	m := archiveName.FindStringSubmatch(l.name)
	if m == nil || m[2] != p.extension() {
		return nil, nil
	}
	latest, next, prev := s.updated(), "", ""
	heads := []*feedhistory.Document{p.head(s)}
	if s.doc != nil {
		heads = append(heads, s.doc)
	}
	if l.newer != nil {
		latest, next, heads = l.newer.doc.Updated, l.newer.name, append(heads, l.newer.doc)
	}
	updated := time.Time{}
	if l.older != nil {
		prev, updated, heads = l.older.name, l.older.doc.Updated, append(heads, l.older.doc)
	}
	given = slices.DeleteFunc(slices.Clone(given), func(it item) bool { return it.change().After(latest) })
	for n, work := len(given), 0; n > 0 && work < mostWork; n-- {
		for _, head := range heads {
			work += n
			name, text, _, err := p.renderArchive(m[1], prev, head, given[:n], p.resolution(lastChange(updated, given[:n])))
			if err != nil {
				return nil, nil // it cannot have been the archive
			}
			if name != l.name {
				continue
			}
			if text, err = setNext(text, p.url(next), p.format()); err != nil {
				return nil, err
			}
			return given[:n], p.Output.Put(p.ctx, name, []byte(text))
		}
	}
	return nil, nil
}

// mostWork is the maximum number of entries to render to find out which of the
// newest given ones were not in a lost archive.
const mostWork = 50_000

// lastChange returns the latest of a time and the times of items.
func lastChange(t time.Time, items []item) time.Time {
	for _, it := range items {
		t = feedtime.Later(t, it.change())
	}
	return t
}

// restoreAll writes lost archives again, as far as possible, from those entries of a
// source without a place in the log, or in another archive.
func (p *session) restoreAll(s *state, source []*feedhistory.Entry, report *Report) error {
	placed := map[place]bool{}
	put := func(items []item) {
		for _, it := range items {
			placed[placeOf(it)] = true
		}
	}
	put(s.log)
	lost, err := p.walk(s, func(a *archive) { put(a.items()) })
	if err != nil {
		return err
	}
	var forms [][]item
	for _, form := range p.forms() {
		forms = append(forms, p.unplaced(placed, source, form))
	}
	for _, l := range lost {
		var items []item
		for _, given := range forms {
			var err error
			if items, err = p.restore(s, l, given); err != nil {
				return err
			}
			if items != nil {
				break
			}
		}
		if items == nil {
			report.Lost = append(report.Lost, l.name)
			continue
		}
		report.Restored = append(report.Restored, l.name)
		put(items)
		for i := range forms {
			forms[i] = slices.DeleteFunc(forms[i], func(it item) bool { return placed[placeOf(it)] })
		}
	}
	return nil
}

// unplaced returns the entries of a source that are not published elsewhere, in
// one of their forms, oldest first.
func (p *Publisher) unplaced(placed map[place]bool, source []*feedhistory.Entry, form form) (given []item) {
	for _, e := range source {
		if normal, err := form(e); err == nil && isTimed(e) && !placed[placeOf(entryItem(normal))] {
			given = append(given, entryItem(normal))
		}
	}
	slices.SortStableFunc(given, func(a, b item) int { return a.change().Compare(b.change()) })
	return given
}
