package publish

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Archives are written before anything refers to them. Before them, a list of them is
// written, by which the remains of a killed call can be removed. The list does not
// contain archives from before the call, because somebody may know them.

// listName returns the name of the list, a hidden file next to the subscription
// document.
func (p *Publisher) listName() string {
	dir, base := path.Split(p.name())
	return dir + "." + base + ".new"
}

// A file is an archive still to be written.
type file struct{ name, text string }

// The maximum number of archives, and of their bytes, waiting to be written, so one
// list serves many archives.
const (
	mostWaiting = 16
	mostHeld    = 8 << 20
)

// flush queues the archive whose successor is now known for writing.
func (b *builder) flush() error {
	if b.name == "" {
		return nil
	}
	b.waiting = append(b.waiting, file{b.name, b.text})
	b.held += len(b.text)
	b.name, b.text = "", ""
	if len(b.waiting) >= mostWaiting || b.held >= mostHeld {
		return b.write()
	}
	return nil
}

// finish writes all remaining archives.
func (b *builder) finish() error {
	if err := b.flush(); err != nil {
		return err
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
		if err := b.p.Output.Put(b.p.ctx, f.name, []byte(f.text)); err != nil {
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
	chain, err := p.chain(s)
	if err == nil {
		for name := range strings.SplitSeq(text, "\n") {
			if slices.Contains(chain, name) || !archiveName.MatchString(name) {
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
