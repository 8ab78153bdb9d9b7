package publish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
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
// time. To compare, Publish reads all archives. It writes a missing archive again if
// the source still has exactly its entries.
func (p *Publisher) Publish(ctx context.Context, u Batch) (*Report, error) {
	if err := settings.Check("publish", settings.Number{Name: "Batch.Shown", Value: int64(u.Shown)}); err != nil {
		return nil, err
	}
	if u.Now.IsZero() {
		u.Now = time.Now().UTC().Truncate(time.Second)
	}
	var report Report
	err := p.exclusively(ctx, func(p *session, s *state) error {
		p.source = u.Shown
		items, gone, err := p.compare(s, u, &report)
		if err != nil || s.doc == nil && len(items) == 0 {
			return err // a feed begins with its first entry
		}
		if u.Check != nil {
			if err := u.Check(report); err != nil {
				return err
			}
		}
		if err := u.permit(gone); err != nil {
			return err
		}
		before := s.archives
		if err := p.build(s, items, u.Now); err != nil {
			return err
		}
		report.Archives = p.cache.archives - before
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// A version describes the published version of an entry.
type version struct {
	time    time.Time
	deleted bool
	as      digest // of the entry as it was published
	words   digest // zero if the source has the entry as it was published
	traces  []string
}

type digest = [sha256.Size]byte

// A publishedSet is the content of the chain.
type publishedSet struct {
	newest map[string]version // by id; the version found first, beginning at the subscription document
	placed map[place]bool     // versions with a place in the log, or in an existing archive
	lost   []lostArchive

	source map[string]digest // of the source's entries, by id
}

// A place identifies a version in the log.
type place struct {
	id   string
	time int64
}

func placeOf(it item) place { return place{it.id, it.time.UnixNano()} }

// versions reads everything published, to be compared with a source.
func (p *session) versions(s *state, source []*feedhistory.Entry) (all *publishedSet, err error) {
	all = &publishedSet{newest: map[string]version{}, placed: map[place]bool{}, source: map[string]digest{}}
	for _, e := range source {
		if e != nil {
			all.source[e.ID] = sha256.Sum256(e.XML())
		}
	}
	if s.doc != nil {
		p.add(all, s.items())
	}
	all.place(s.log)
	all.lost, err = p.walk(s, func(a *archive) {
		p.add(all, a.items())
		all.place(a.items())
	})
	return all, err
}

// place notes that items have a place in the log, or in an existing archive.
func (all *publishedSet) place(items []item) {
	for _, it := range items {
		all.placed[placeOf(it)] = true
	}
}

// add adds what is published to a set.
func (p *Publisher) add(all *publishedSet, items []item) {
	for _, it := range items {
		if _, ok := all.newest[it.id]; ok {
			continue
		}
		v := version{time: it.time, deleted: it.entry == nil}
		if it.entry != nil {
			if v.as = sha256.Sum256(it.entry.XML()); v.as != all.source[it.id] {
				v.words = p.words(it.entry)
			}
			if _, ok := all.source[it.id]; !ok {
				v.traces = traces(it.entry)
			}
		}
		all.newest[it.id] = v
	}
}

// compare returns the items an update must publish, oldest first, and the
// deletions among them.
func (p *session) compare(s *state, u Batch, report *Report) ([]item, deletionReport, error) {
	all, err := p.versions(s, u.Entries)
	if err == nil {
		err = p.restoreAll(s, all, u, report)
	}
	if err != nil {
		return nil, deletionReport{}, err
	}
	known := all.newest
	given := make(map[string]bool, len(u.Entries)+len(u.Deleted))
	var items []item
	for _, e := range u.Entries {
		if e == nil {
			return nil, deletionReport{}, refused(nil, ErrNoID)
		}
		if given[e.ID] {
			return nil, deletionReport{}, fmt.Errorf("two entries have the id %s", e.ID)
		}
		given[e.ID] = true
		old, published := known[e.ID]
		if published && !old.deleted && old.as == all.source[e.ID] {
			report.Unchanged++
			p.giveAgain(e)
			continue
		}
		it, err := p.revise(e, old, published, u.Now, report)
		if err != nil {
			return nil, deletionReport{}, err
		}
		if it.entry != nil {
			items = append(items, it)
		}
	}
	report.Renamed = renamed(known, given, u)
	gone := deletions(known, given, u)
	report.Outdated = gone.outdated
	if report.Deleted = len(gone.items); !u.DeleteMissing {
		report.Missing = gone.missing
	}
	items = append(items, gone.items...)
	slices.SortStableFunc(items, func(a, b item) int { return a.change().Compare(b.change()) })
	return items, gone, nil
}

// revise returns the item to publish for an entry; an empty one if there is
// nothing to publish.
func (p *session) revise(e *feedhistory.Entry, old version, published bool, now time.Time, report *Report) (item, error) {
	normal, err := p.normalize(e)
	if err != nil {
		return item{}, refused(e, err)
	}
	timed := isTimed(e)
	newer := timed && normal.Updated.After(old.time)
	same := published && !old.deleted && p.isPublished(normal, e, old.words)
	switch {
	case !published || old.deleted:
		report.New++
		newer = newer || timed && !published
	case same && (!newer || !old.time.After(epoch)): // a time that was unknown has become known
		report.Unchanged++
		p.giveAgain(normal)
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

// renamed returns the number of entries published under another id: a published entry with
// a trace of theirs is no longer in the source.
func renamed(known map[string]version, given map[string]bool, u Batch) (n int) {
	gone := map[string]bool{}
	for id, v := range known {
		if v.deleted || given[id] {
			continue
		}
		for _, trace := range v.traces {
			gone[trace] = true
		}
	}
	for _, e := range u.Entries {
		if v, ok := known[e.ID]; ok && !v.deleted || len(gone) == 0 {
			continue
		}
		if slices.ContainsFunc(traces(e), func(trace string) bool { return gone[trace] }) {
			n++
		}
	}
	return n
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
	if valid := p.repaired(e); valid != nil {
		e = valid
	}
	element := string(e.XML())
	if tag, content, ok := strings.Cut(element, ">"); ok && !isRelative(e, element) {
		before, base, _ := strings.Cut(tag, ` xml:base="`)
		_, after, _ := strings.Cut(base, `"`)
		element = before + after + ">" + content
	}
	// Titles of RSS have been decoded since they were published: that changes no entry.
	before, after := withoutUpdated(withTitle(element, feedxml.Atom, xmlscan.Unescape))
	return sha256.Sum256([]byte(iri.Unsigned(before + after)))
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
	before, after := withoutUpdated(string(e.XML()))
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
	items     []item // the deletions to publish, oldest first
	published int    // the number of published entries
	missing   int    // the number of published entries the source lacks and does not call deleted
	outdated  []string
}

// deletions returns the deletions an update publishes.
func deletions(known map[string]version, given map[string]bool, u Batch) (d deletionReport) {
	for _, t := range u.Deleted {
		old, published := known[t.Ref]
		if given[t.Ref] || !published || old.deleted {
			continue
		}
		if given[t.Ref] = true; t.When.Before(old.time) && !t.When.IsZero() {
			d.outdated = append(d.outdated, t.Ref) // the entry has been published again since (RFC 6721 §2)
			continue
		}
		d.items = append(d.items, item{id: t.Ref, time: feedtime.Later(cmp.Or(t.When, u.Now), old.time)})
	}
	for id, old := range known {
		if old.deleted {
			continue
		}
		d.published++
		if given[id] {
			continue
		}
		d.missing++
		if u.DeleteMissing {
			d.items = append(d.items, item{id: id, time: feedtime.Later(u.Now, old.time)})
		}
	}
	slices.SortFunc(d.items, func(a, b item) int { return cmp.Or(a.time.Compare(b.time), strings.Compare(a.id, b.id)) })
	return d
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
	case len(u.Entries) == 0:
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
			name, text, err := p.renderArchive(m[1], prev, head, given[:n], p.resolution(lastChange(updated, given[:n])))
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
// source not published elsewhere.
func (p *session) restoreAll(s *state, all *publishedSet, u Batch, report *Report) error {
	if len(all.lost) == 0 {
		return nil
	}
	var forms [][]item
	for _, form := range p.forms() {
		forms = append(forms, p.unplaced(all, u, form))
	}
	for _, l := range all.lost {
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
		p.add(all, items)
		all.place(items)
		for i := range forms {
			forms[i] = slices.DeleteFunc(forms[i], func(it item) bool { return all.placed[placeOf(it)] })
		}
	}
	return nil
}

// unplaced returns the entries of a source that are not published elsewhere, in
// one of their forms, oldest first.
func (p *Publisher) unplaced(all *publishedSet, u Batch, form form) (given []item) {
	for _, e := range u.Entries {
		if normal, err := form(e); err == nil && isTimed(e) && !all.placed[placeOf(entryItem(normal))] {
			given = append(given, entryItem(normal))
		}
	}
	slices.SortStableFunc(given, func(a, b item) int { return a.change().Compare(b.change()) })
	return given
}
