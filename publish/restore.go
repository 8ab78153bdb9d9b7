package publish

import (
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

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
	forms := [][]item{p.unplaced(all, u, p.normalize), p.unplaced(all, u, p.earlier)}
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
		for _, it := range items {
			all.placed[placeOf(it)] = true
		}
		for i := range forms {
			forms[i] = slices.DeleteFunc(forms[i], func(it item) bool { return all.placed[placeOf(it)] })
		}
	}
	return nil
}

// unplaced returns the entries of a source that are not published elsewhere, in
// one of their forms, oldest first.
func (p *Publisher) unplaced(all *publishedSet, u Batch, form func(*feedhistory.Entry) (*feedhistory.Entry, error)) (given []item) {
	for _, e := range u.Entries {
		if normal, err := form(e); err == nil && isTimed(e) && !all.placed[placeOf(entryItem(normal))] {
			given = append(given, entryItem(normal))
		}
	}
	slices.SortStableFunc(given, func(a, b item) int { return a.change().Compare(b.change()) })
	return given
}
