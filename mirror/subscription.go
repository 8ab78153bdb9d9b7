package mirror

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// subscription processes the subscription document, or a second copy of it,
// which is newer than the first.
func (p *poll) subscription(doc *feedhistory.Document) error {
	f, kind := p.feed, doc.Kind()
	rank := rankOf(doc, Rank{Time: doc.Response.Received, Seq: f.Polls << 32})
	if p.chain.read { // the chain may have moved: an archive was not there
		rank.Seq += 1 << 31
		if i := f.pending(p.chain.linked); i >= 0 {
			f.Pending[i].Missing = true
		}
	}
	contradicts := len(doc.Further(kind)) > 0
	m, err := p.merger.merge(source{doc: doc, rank: rank, replaces: kind == feedhistory.Complete && !contradicts})
	if err != nil {
		return err
	}
	p.chain.rank, p.commits.held, p.pages.fresh = rank, &m.change, m.fresh
	p.changes.Documents++
	p.pages.toEnd = p.pages.toEnd || f.Kind != feedhistory.Paged
	f.clearGaps(contradicts && kind != feedhistory.Complete, doc.URL, doc.Response.Requested)
	p.join.reaches(doc, m.records)
	err = p.arrive(doc, m, contradicts)
	f.Gaps = slices.DeleteFunc(f.Gaps, isShort)
	p.feed.short(doc, m, p.now)
	if kind != feedhistory.Archived {
		f.Shown = nil
		p.search.end()
	}
	if kind != feedhistory.Paged {
		f.Pending = slices.DeleteFunc(f.Pending, func(pending PendingDocument) bool { return pending.Page })
	}
	if err != nil {
		return err
	}
	if f.Known.Older != doc.Known().Older || f.Kind != kind {
		p.chain.changed = true
	}
	p.chain.read, p.chain.start = true, doc.Response.Requested
	f.Kind, f.Known, f.Title, f.Schedule = kind, doc.Known(), doc.Title, doc.Schedule
	f.Head, f.Further = headOf(doc), nil
	if kind == feedhistory.Archived {
		f.Further = furtherOf(doc)
		p.join.fork(f.Further)
	}
	p.readAt(doc.Response)
	if kind == feedhistory.Paged && !p.pages.goesOn() {
		return nil
	}
	return p.link(doc, kind)
}

// arrive handles the consequences of a subscription document's kind for earlier ones.
func (p *poll) arrive(doc *feedhistory.Document, m *mergeResult, contradicts bool) error {
	f := p.feed
	switch doc.Kind() {
	case feedhistory.Complete:
		switch {
		case len(doc.Missing(feedhistory.Plain)) > 0: // its missing entries may have been in the missing part
		case contradicts:
			p.completed = m // or in another document: see replace
		default:
			return p.complete(m)
		}
	case feedhistory.Archived:
		return p.leave(doc, m)
	case feedhistory.Plain:
		if f.Known.URL != "" && !p.chain.read && m.refused == 0 && !overlaps(doc, m.known) {
			f.addGap(missedWindow(doc, p.now))
		}
	}
	return nil
}

// leave looks for the entries that have left the subscription document of an archived
// feed, and joins it with the documents of earlier polls.
func (p *poll) leave(doc *feedhistory.Document, m *mergeResult) error {
	f := p.feed
	if f.Kind != feedhistory.Archived { // by its links, the feed begins with everything in no archive
		p.join.beginAnew()
	}
	shown := len(f.Shown)
	for _, id := range f.Shown { // even if the Quota left it out
		m.known[id] = true
	}
	err := p.seek(doc)
	if (shown > 0 || f.Documents > 0) && !p.chain.read && m.refused == 0 && !overlaps(doc, m.known) {
		window := missedWindow(doc, p.now)
		window.Anew = shown == 0
		p.join.begin(window)
	}
	return err
}

// short notes a subscription document not stored entirely.
func (f *Feed) short(doc *feedhistory.Document, m *mergeResult, now time.Time) {
	if m.refused > 0 {
		f.addGap(quotaGap(doc, m.refused, now))
	}
}

// headOf returns a document's head section as Atom, or "" if it cannot be
// written.
func headOf(doc *feedhistory.Document) string {
	head := *doc
	head.Entries, head.Deleted = nil, nil
	var b strings.Builder
	w := feedhistory.NewWriter(&b, feedhistory.Atom, &head)
	w.Verbatim = true // what republishes it repairs it
	if w.Close() != nil {
		return ""
	}
	return b.String()
}

// replace makes a complete document replace everything else at the end of the
// walk, if its links to other documents led to nothing new.
func (p *poll) replace() error {
	f := p.feed
	if p.completed == nil || p.cut || slices.ContainsFunc(f.Gaps, func(g GapRecord) bool { return g.Poll == f.Polls }) {
		return nil
	}
	if err := p.commits.drain(); err != nil {
		return err
	}
	m := &mergeResult{records: p.completed.records, change: Commit{Keep: p.allowance.keep}}
	if err := p.complete(m); err != nil {
		return err
	}
	p.commits.held = &m.change
	p.commits.gather()
	return nil
}

// complete makes the document replace everything else (5005#1). It forgets the
// documents links led to before: if the feed becomes an archived one again, the chain
// is read again.
func (p *poll) complete(m *mergeResult) error {
	f := p.feed
	f.Pending, f.Gaps, f.Documents, f.Usage.Documents = nil, nil, 0, 0
	m.change.Forget = true
	live := int64(0)
	for _, r := range m.records {
		if r.State == Live {
			live++
		}
	}
	if live == f.Entries { // no other entry is live
		return nil
	}
	for r, err := range p.m.Store.Entries(p.ctx, Query{Feed: f.URL}) {
		if err != nil {
			return err
		}
		if m.records[r.ID] != nil {
			continue
		}
		r.Absence, r.Tombstone, r.Archived = p.feed.Polls<<32, TombstoneRecord{}, false
		before := r.State
		r.State = r.state()
		p.merger.count(r, before)
		r.LastCommit, r.Changed = p.feed.next(), p.feed.Changed
		r.Content.Data = ""
		m.change.Touch = append(m.change.Touch, r)
	}
	return nil
}

// overlaps reports whether a window still reaches back to known entries: a known entry
// comes after all new ones. A known entry pinned before them does not count, unless the
// entries are in no order at all.
func overlaps(doc *feedhistory.Document, known map[string]bool) bool {
	isKnown := func(e *feedhistory.Entry) bool { return known[e.ID] }
	entries := doc.Entries
	if len(entries) == 0 {
		return true
	}
	rising, falling := 0, 0
	for i, e := range entries[1:] {
		switch e.Time().Compare(entries[i].Time()) {
		case 1:
			rising++
		case -1:
			falling++
		}
	}
	switch {
	case 2*min(rising, falling) > max(rising, falling):
		return slices.ContainsFunc(entries, isKnown)
	case rising > falling: // the oldest entries come first
		return isKnown(entries[0])
	}
	return isKnown(entries[len(entries)-1])
}

func missedWindow(doc *feedhistory.Document, now time.Time) GapRecord {
	return GapRecord{
		URL: doc.URL, Reason: feedhistory.ReasonMissedWindow, Found: now,
		Message: fmt.Sprintf("its %d entries do not reach back to known ones: others may have come and gone since the last poll",
			len(doc.Entries)),
	}
}
