package publish

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/plain"
	"github.com/feedhistory/feedhistory/internal/vocab"
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
	Renamed   int // how many of the new ones have the address of a published entry no longer in the source: they have a new id
	Unchanged int // entries already published as they are in the source
	Deleted   int // deletions published
	Missing   int // entries published, but not in the source, and kept
	Archives  int // archives closed

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
// the source still has exactly its entries. The error may be the context's.
func (p *Publisher) Publish(ctx context.Context, u Batch) (*Report, error) {
	if err := plain.Check("publish", plain.Number{Name: "Batch.Shown", Value: int64(u.Shown)}); err != nil {
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
	words   digest
	link    string // the URL of its alternate link
}

type digest = [sha256.Size]byte

// A publishedSet is the content of the chain.
type publishedSet struct {
	newest map[string]version // by id; the version found first, beginning at the subscription document
	placed map[place]bool     // versions with a place in the log, or in an existing archive
	lost   []lostArchive
}

// A place identifies a version in the log.
type place struct {
	id   string
	time int64
}

func placeOf(it item) place { return place{it.id, it.time.UnixNano()} }

// versions reads everything published.
func (p *session) versions(s *state) (all *publishedSet, err error) {
	all = &publishedSet{newest: map[string]version{}, placed: map[place]bool{}}
	if s.doc != nil {
		p.add(all, s.items())
	}
	for _, it := range s.log {
		all.placed[placeOf(it)] = true
	}
	all.lost, err = p.walk(s, func(a *archive) {
		items := a.items()
		p.add(all, items)
		for _, it := range items {
			all.placed[placeOf(it)] = true
		}
	})
	return all, err
}

// add adds what is published to a set.
func (p *Publisher) add(all *publishedSet, items []item) {
	for _, it := range items {
		if _, ok := all.newest[it.id]; ok {
			continue
		}
		v := version{time: it.time, deleted: it.entry == nil}
		if it.entry != nil {
			v.words = p.words(it.entry)
			link, _ := it.entry.Links.Rel(feedhistory.RelAlternate)
			v.link = link.Href
		}
		all.newest[it.id] = v
	}
}

// compare returns the items an update must publish, oldest first, and the
// deletions among them.
func (p *session) compare(s *state, u Batch, report *Report) ([]item, deletionReport, error) {
	all, err := p.versions(s)
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
	same := published && !old.deleted && (old.words == p.words(normal) || old.words == p.words(normal.Signed()))
	switch {
	case !published || old.deleted:
		report.New++
		newer = newer || timed && !published
	case same && (!newer || !old.time.After(epoch)): // a time that was unknown has become known
		report.Unchanged++
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

// renamed returns the number of entries published under another id: the published entry
// with their address is no longer in the source.
func renamed(known map[string]version, given map[string]bool, u Batch) (n int) {
	links := map[string]bool{}
	for id, v := range known {
		if v.link != "" && !v.deleted && !given[id] {
			links[v.link] = true
		}
	}
	for _, e := range u.Entries {
		link, _ := e.Links.Rel(feedhistory.RelAlternate)
		if v, ok := known[e.ID]; (!ok || v.deleted) && links[link.Href] {
			n++
		}
	}
	return n
}

// isTimed reports whether an entry says when it was written. The epoch means an
// unknown time, because Atom requires one.
func isTimed(e *feedhistory.Entry) bool { return e.Updated.After(epoch) || e.Published.After(epoch) }

// words returns a digest of everything an entry says, in valid form, except its
// update time, and an unnecessary base.
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
	before, after := withoutUpdated(withTitle(element, xmlscan.Unescape))
	return sha256.Sum256([]byte(before + after))
}

// withTitle returns an entry with another title, if it has one of plain text.
func withTitle(element string, change func(title string) string) string {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	s.Next()
	for depth := s.Depth(); s.Child(depth); {
		if s.Space() != vocab.Atom || s.Local() != "title" {
			continue
		}
		attrs, tag := len(s.Attrs()), s.End()
		text := s.ElementText()
		changed := change(text)
		if attrs > 0 || s.Nested() || changed == text {
			return element
		}
		var b strings.Builder
		xmlscan.WriteText(&b, changed)
		return element[:tag] + b.String() + element[s.Offset():]
	}
	return element
}

// withoutUpdated cuts an entry at its update time, or at the place for one. The
// update time is an Atom element, in RSS, too.
func withoutUpdated(element string) (before, after string) {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	s.Next()
	for depth := s.Depth(); s.Child(depth); {
		if s.Space() == vocab.Atom && s.Local() == "updated" {
			start := s.Offset()
			s.Skip()
			return element[:start], element[s.End():]
		}
	}
	end := max(strings.LastIndex(element, "</"), 0)
	return element[:end], element[end:]
}

// dated returns an entry with another update time, otherwise unchanged.
func (p *Publisher) dated(e *feedhistory.Entry, t time.Time) (*feedhistory.Entry, error) {
	before, after := withoutUpdated(string(e.XML()))
	element := before + `<updated xmlns="` + vocab.Atom + `">` + t.UTC().Format(time.RFC3339Nano) + "</updated>" + after
	again, err := feedhistory.ReadEntry(p.format(), element, "")
	if err != nil || !again.Updated.Equal(t) {
		return nil, ErrUnpublishable
	}
	return p.normalize(again)
}
