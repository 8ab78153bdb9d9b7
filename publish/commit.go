package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/feedhistory/feedhistory"
)

// commit publishes the builder's documents. If an older archive gains a link to a new
// one, two documents must change: then a note announces this first, and the call takes
// effect with the note. Otherwise it takes effect with the subscription document.
func (b *builder) commit(open []item, recent []*feedhistory.Entry) error {
	text, err := b.subscription(open, recent)
	if err != nil {
		return errors.Join(err, b.undo())
	}
	done := b.ledger
	done.before, done.next, done.erase = "", "", false
	final := withLedger(text, done)
	if final == b.s.text && !b.ledger.erase {
		return nil
	}
	s, err := newState(final)
	if err != nil {
		return errors.Join(err, b.undo())
	}
	if b.ledger.before == "" && !b.ledger.erase {
		err = b.p.Output.Put(b.p.ctx, b.p.name(), []byte(final))
	} else {
		err = b.p.note(withLedger(text, b.ledger))
	}
	if err != nil {
		return err
	}
	b.p.cache = s
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
	done := m
	done.before, done.next, done.erase = "", "", false
	link := func() error { return p.link(m.before, m.next) }
	replace := func() error { return p.Output.Put(p.ctx, p.name(), []byte(withLedger(text, done))) }
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
