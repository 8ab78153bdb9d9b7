package mirror

import (
	"slices"

	"github.com/feedhistory/feedhistory"
)

// arrive handles the consequences of a subscription document's kind for earlier ones.
func (p *poll) arrive(doc *feedhistory.Document, m *mergeResult, contradicts bool) error {
	switch {
	case doc.Kind() != feedhistory.KindComplete,
		isShortOf(doc): // its missing entries may have been in the missing part
	case contradicts:
		p.completed = m // or in another document: see replace
	default:
		return p.complete(m)
	}
	return nil
}

// isShortOf reports whether a part of a document is missing.
func isShortOf(doc *feedhistory.Document) bool { return len(doc.Missing(feedhistory.KindPlain)) > 0 }

// replace makes a complete document replace everything else at the end of the
// walk, if its links to other documents led to nothing new.
func (p *poll) replace() error {
	if p.completed == nil || p.cut || p.ledger.owes(func(d debt) bool { return !d.isDocument() && d.Poll == p.feed.Polls }) {
		return nil
	}
	if err := p.commits.drain(); err != nil {
		return err
	}
	m := p.completed
	m.change, m.source.voids = Commit{Keep: p.allowance.keep}, true
	if err := p.complete(m); err != nil {
		return err
	}
	m.change.changes = p.merger.program.read(m)
	p.commits.held = &m.change
	p.commits.gather()
	return nil
}

// complete makes the document replace everything else (5005#1). It forgets the
// documents links led to before: if the feed becomes an archived one again, the chain
// is read again.
func (s *session) complete(m *mergeResult) error {
	f := s.feed
	f.Documents, s.ledger.Usage.Documents, s.ledger.Debts, s.ledger.Leading, s.ledger.Complete = 0, 0, nil, nil, f.Polls<<32
	m.change.Forget = true
	live := int64(0)
	isBuried := func(r *Record) bool { return r.State == Live && !m.has(r.ID) } // by a tombstone older than the entry
	m.change.Touch = slices.DeleteFunc(m.change.Touch, isBuried)
	for r := range m.records() {
		if isBuried(r) {
			s.leave(m, r)
		}
		if r.State == Live {
			live++
		}
	}
	if live == f.Entries && s.merger.program == nil { // no other entry is live
		return nil
	}
	for r, err := range s.m.Store.Entries(s.ctx, Query{Feed: f.URL}) {
		if err != nil {
			return err
		}
		if m.record(r.ID) != nil || r.LastCommit <= s.ledger.Since { // or of an earlier feed at the address
			continue
		}
		r.Content.Data = ""
		s.merger.raise(r)
		s.leave(m, r)
	}
	return nil
}

// leave makes an entry no longer part of the feed from now on. An older tombstone no longer counts.
func (s *session) leave(m *mergeResult, r *Record) {
	r.Absence, r.Archived = s.feed.Polls<<32, false
	if r.Tombstone.Rank.Seq < r.Absence {
		r.Tombstone = TombstoneRecord{}
	}
	before := r.State
	r.State = r.state()
	s.merger.count(r, before)
	r.LastCommit, r.Changed = s.feed.next(), s.feed.Changed
	m.change.Touch = append(m.change.Touch, r)
}
