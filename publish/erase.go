package publish

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
)

// Erase removes all versions of entries as if they had never been published. Use it
// where the law demands it, and for nothing else. Archives with one of the entries are
// replaced under new names, and so are all later ones, because their links change. The
// old archives are removed and their URLs answer 404 (5005#18), which makes readers
// begin again at the subscription document.
//
// Copies elsewhere remain, and nobody is told. To tell those who keep copies,
// delete the entry first: deletions stay.
//
// Erase reads all archives. If an id is not there, an *EntryError says which,
// and nothing is erased.
func (p *Publisher) Erase(ctx context.Context, ids ...string) error {
	return p.exclusively(ctx, func(p *session, s *state) error {
		published := map[string]bool{}
		for _, it := range s.log {
			published[it.id] = true
		}
		var chain []string // newest first
		affected := 0      // how many archives are to be replaced
		for a, err := range p.chain(s.prev) {
			if err != nil {
				return err // nothing can be erased beyond a missing archive
			}
			chain = append(chain, a.name)
			for _, it := range a.items() {
				published[it.id] = true
				if it.entry != nil && slices.Contains(ids, it.id) {
					affected = len(chain)
				}
			}
		}
		for _, id := range ids {
			if !published[id] {
				return &EntryError{ID: id, Err: ErrNotPublished}
			}
		}
		slices.Reverse(chain)
		return p.erase(s, chain, len(chain)-affected, ids)
	})
}

// chain yields the archives, newest first, up to the first that cannot be read.
func (p *session) chain(newest string) iter.Seq2[*archive, error] {
	return func(yield func(*archive, error) bool) {
		for name := newest; name != ""; {
			a, err := p.archive(name)
			if !yield(a, err) || err != nil {
				return
			}
			name = a.prev
		}
	}
}

// names returns the names of the archives. All of them must exist.
func (p *session) names(newest string) (names map[string]bool, err error) {
	names = map[string]bool{}
	for a, err := range p.chain(newest) {
		if err != nil {
			return nil, err
		}
		names[a.name] = true
	}
	return names, nil
}

// erase rewrites the archives from the first affected one on.
func (p *session) erase(s *state, chain []string, first int, ids []string) error {
	b := &builder{p: p, s: s, head: p.head(s), ledger: s.ledger.done(), updated: s.updated()}
	b.ledger.erase = true
	if first < len(chain) {
		b.ledger.prev = ""
		if first > 0 {
			b.ledger.prev = chain[first-1]
		}
		b.ledger.before = b.ledger.prev
	}
	for _, name := range chain[first:] {
		if err := b.replace(name, ids); err != nil {
			return errors.Join(err, b.undo())
		}
	}
	if err := b.finish(); err != nil {
		return errors.Join(err, b.undo())
	}
	gone := func(it item) bool { return it.entry != nil && slices.Contains(ids, it.id) }
	open := slices.DeleteFunc(slices.Clone(s.log), gone)
	recent := slices.DeleteFunc(slices.Clone(s.recent), func(e *feedhistory.Entry) bool { return slices.Contains(ids, e.ID) })
	return b.commit(open, recent)
}

// replace rewrites an archive without the ids. It writes none if nothing is
// left, because readers give up after many archives in a row without entries.
func (b *builder) replace(name string, ids []string) error {
	a, err := b.p.archive(name)
	if err != nil {
		return err
	}
	entries := slices.DeleteFunc(a.doc.Entries, func(e *feedhistory.Entry) bool { return slices.Contains(ids, e.ID) })
	if len(entries)+len(a.doc.Deleted) == 0 {
		return nil
	}
	stem := strings.TrimSuffix(name, path.Ext(name))
	if m := archiveName.FindStringSubmatch(name); m != nil {
		stem = m[1]
	}
	return b.add(stem, a.doc, merge(entries, a.doc.Deleted), a.doc.Updated)
}

// sweep removes the archives outside of the chain from the newest, their parts of the index, and
// the remains of such files after a crash.
func (p *session) sweep(newest string) error {
	keep, err := p.names(newest)
	if err != nil {
		return err
	}
	var stray []string
	err = fs.WalkDir(p.Output, p.dir(), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		dir, base := path.Split(name)
		base = strings.TrimPrefix(strings.TrimSuffix(base, tempSuffix), ".")
		base = strings.TrimPrefix(strings.TrimSuffix(base, indexSuffix), ".") // of which there may be a half-written one
		m := archiveName.FindStringSubmatch(dir + base)
		if !keep[archiveOf(name)] && m != nil && m[2] == p.extension() {
			stray = append(stray, name)
		}
		return nil
	})
	if err != nil && !isNotExist(err) {
		return err
	}
	for _, name := range slices.Backward(stray) {
		if err := p.Output.Remove(p.ctx, name); err != nil {
			return err
		}
	}
	return nil
}
