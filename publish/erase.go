package publish

import (
	"context"
	"errors"
	"io/fs"
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
// and nothing is erased. The error may be the context's.
func (p *Publisher) Erase(ctx context.Context, ids ...string) error {
	return p.exclusively(ctx, func(p *session, s *state) error {
		chain, err := p.chain(s)
		if err != nil {
			return err
		}
		first, err := p.affected(s, chain, ids)
		if err != nil {
			return err
		}
		return p.erase(s, chain, first, ids)
	})
}

// chain returns the names of the archives, oldest first. All of them must
// exist: nothing can be erased beyond a missing one.
func (p *session) chain(s *state) (names []string, err error) {
	for name := s.prev; name != ""; {
		a, err := p.archive(name)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		name = a.prev
	}
	slices.Reverse(names)
	return names, nil
}

// affected returns the index of the oldest archive with one of the ids.
func (p *session) affected(s *state, chain, ids []string) (first int, err error) {
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for _, it := range s.log {
		delete(missing, it.id)
	}
	first = len(chain)
	for i, name := range chain {
		a, err := p.archive(name)
		if err != nil {
			return 0, err
		}
		for _, it := range a.items() {
			delete(missing, it.id)
			if it.entry != nil && slices.Contains(ids, it.id) {
				first = min(first, i)
			}
		}
	}
	for _, id := range ids {
		if missing[id] {
			return 0, &EntryError{ID: id, Err: ErrNotPublished}
		}
	}
	return first, nil
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

// sweep removes the archives outside of the chain from the newest, and the remains of
// such archives after a crash.
func (p *session) sweep(newest string) error {
	chain, err := p.chain(&state{ledger: ledger{prev: newest}})
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, name := range chain {
		keep[name] = true
	}
	var stray []string
	err = fs.WalkDir(p.Output, p.dir(), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		dir, base := path.Split(name)
		base = strings.TrimSuffix(strings.TrimPrefix(base, "."), tempSuffix)
		m := archiveName.FindStringSubmatch(dir + base)
		if !keep[name] && m != nil && m[2] == p.extension() {
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
