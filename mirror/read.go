package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/door"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// subscription processes the subscription document, or a second copy of it,
// which is newer than the first.
func (p *poll) subscription(r *feedhistory.Reading) error {
	f, l, doc, kind := p.feed, p.ledger, r.Document, r.Document.Kind()
	l.Clock = feedtime.Later(l.Clock, p.m.byNow(doc.Response.Received))
	rank := rankOf(doc, Rank{Time: l.Clock, Seq: f.Polls << 32})
	if p.chain.read { // the chain may have moved: an archive was not there
		rank.Seq += 1 << 31
		if d := l.document(p.chain.linked); d != nil {
			d.Missing, d.Reason, d.Message, d.Poll = true, feedhistory.ReasonStatus, "it was not found", f.Polls
			d.Tries++
		}
	}
	contradicts := len(doc.Further(kind)) > 0
	replaces := kind == feedhistory.KindComplete && !contradicts
	m, err := p.merger.merge(source{doc: doc, rank: rank, window: true, replaces: replaces, voids: replaces && !isShortOf(doc)})
	if err != nil {
		return err
	}
	p.chain.rank, p.commits.held, p.pages.fresh = rank, &m.change, m.fresh
	p.changes.Documents++
	p.pages.toEnd = p.pages.toEnd || l.Kind != feedhistory.KindPaged
	p.clearGaps(doc, kind, doc.URL, p.alternatives.rereads)
	p.unname(doc)
	l.crossOut(func(d debt) bool { return d.Again && d.Poll < f.Polls })
	late := p.isLate(doc.Response.Requested) || p.isLate(doc.URL)
	p.alternatives.late = p.alternatives.late || late
	l.crossOut(func(d debt) bool { return d.isAlternative() && p.alternatives.rereads && d.Poll < f.Polls })
	l.take(doc.Response.Requested)
	l.take(doc.URL)
	p.chain.joined = p.chain.joined || slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return m.knows(e.ID) })
	if !p.chain.read {
		err = p.readings.compare(doc, m, late)
	}
	if err == nil {
		err = p.readings.receive(doc, false, f.Polls)
	}
	if err == nil {
		err = p.arrive(doc, m, contradicts)
	}
	if err == nil {
		err = p.readings.keepRanks(m, rank)
	}
	l.crossOut(isShort)
	p.short(doc, m)
	if err != nil {
		return err
	}
	if l.Known.Older != r.Known.Older || l.Kind != kind {
		l.Unsettled = true
	}
	p.chain.read, p.chain.start = true, doc.Response.Requested
	l.Kind, l.Known, l.Further = kind, r.Known, nil
	f.Title, f.Head, l.Schedule = doc.Title, headOf(doc), doc.Schedule
	l.Answered, l.Pace = p.now, paceOf(doc)
	if kind == feedhistory.KindArchived {
		l.Further = furtherOf(doc)
		p.chain.asks = p.chain.asks || p.chain.owes() && !p.backlog.unread
	}
	p.address.readAt(doc.Response)
	if kind == feedhistory.KindPaged {
		p.pages.end(doc, p.chain.beyond)
		if !p.pages.goesOn() {
			return nil
		}
	}
	return p.chain.link(doc, kind, r.Known.Formats)
}

// paceOf returns the time spanned by the entries of a window; zero if it is none, or they have no
// times.
func paceOf(doc *feedhistory.Document) time.Duration {
	if kind := doc.Kind(); kind == feedhistory.KindComplete || kind == feedhistory.KindArchived {
		return 0
	}
	if slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return e.Time().IsZero() }) {
		return 0
	}
	oldest, newest := spanOf(doc)
	return newest.Sub(oldest)
}

// spanOf returns the earliest and the latest time of an entry; zero if none has a time.
func spanOf(doc *feedhistory.Document) (oldest, newest time.Time) {
	for _, e := range doc.Entries {
		at := e.Time()
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		newest = feedtime.Later(newest, at)
	}
	return oldest, newest
}

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

// short notes a subscription document not stored entirely.
func (s *session) short(doc *feedhistory.Document, m *mergeResult) {
	if m.refused > 0 {
		s.owe(quotaGap(doc, m.refused, s.now))
	}
}

// headOf returns a document's head section as Atom, or "" if it cannot be
// written.
func headOf(doc *feedhistory.Document) string {
	head := *doc
	head.Entries, head.Deleted = nil, nil
	var b strings.Builder
	w := compose.NewWriter(&b, feedhistory.FormatAtom, &head)
	w.Verbatim = true // what republishes it repairs it
	if w.Close() != nil {
		return ""
	}
	return b.String()
}

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
	f.Documents, s.ledger.Usage.Documents, s.ledger.Debts, s.ledger.Complete = 0, 0, nil, f.Polls<<32
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

// leave makes an entry no longer part of the feed, from now on, whatever tombstone it had before.
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

// older processes an archive document or a page.
func (p *poll) older(r *feedhistory.Reading) error {
	p.changes.Documents++
	doc, requested := r.Document, r.URL
	known := p.documents.get(requested)
	rank := rankOf(doc, p.chain.neighbour(requested, known))
	if known != nil && known.Digest == p.merger.digestOf(doc) {
		rank = known.Rank // it is as recent as it was
	}
	p.chain.rank = rank
	page := p.chain.isPage(requested)
	p.alternatives.late = p.alternatives.late || p.isLate(requested)
	p.ledger.take(requested)
	if p.chain.forms && p.chain.leadsTo(requested) { // the first link leads to this document, too
		p.ledger.take(p.chain.linked)
	}
	p.clearGaps(doc, p.ledger.Kind, p.ledger.Known.URL, p.alternatives.rereads)
	p.unname(doc)
	if p.ledger.Kind == feedhistory.KindComplete { // a page or an archive contradicted by fh:complete
		m, err := p.merger.merge(source{doc: doc, rank: rank})
		if err == nil {
			p.commits.held, p.brought = &m.change, m.brings()
		}
		return err
	}
	if page {
		return p.page(r, rank)
	}
	return p.archive(r, rank, known)
}

// unname notes the documents owed to which a document leads no more.
func (s *session) unname(doc *feedhistory.Document) {
	names := []string{doc.URL, doc.Response.Requested}
	for i, d := range s.ledger.Debts {
		if d.isDocument() && slices.ContainsFunc(names, d.isNamedBy) && !door.Root.LeadsTo(doc, d.URL) {
			s.ledger.Debts[i].unnamed(names)
		}
	}
}

// isLate reports whether a document has failed before.
func (s *session) isLate(url string) bool {
	d := s.ledger.document(url)
	return d != nil && d.Tries > 0
}

// neighbour returns the rank of a document without a time of its own.
func (c *chainWalk) neighbour(url string, known *DocumentRecord) Rank {
	rank := c.rank
	if d := c.ledger.document(url); d != nil {
		rank = d.Rank
	}
	rank.Seq--
	if known != nil { // it is as recent as the document that first led to it was then
		rank = known.Rank
	}
	return rank
}

// rankOf returns the rank of a document with the given place. A document without a time
// of its own has its newer neighbour's.
func rankOf(doc *feedhistory.Document, neighbour Rank) Rank {
	neighbour.Time = feedtime.First(doc.Updated, doc.LastModified, neighbour.Time)
	return neighbour
}

// isPage reports whether the document at a URL is read as a page, which the link to it decides,
// the chain's first, else the kind of the feed.
func (c *chainWalk) isPage(url string) bool {
	l := c.ledger
	if d := l.document(url); d != nil && !(l.Kind == feedhistory.KindArchived && url == c.linked) {
		return d.Page
	}
	return l.Kind == feedhistory.KindPaged
}

// page processes a page. If it has nothing new, neither do the pages after it.
func (p *poll) page(r *feedhistory.Reading, rank Rank) error {
	doc := r.Document
	m, err := p.merger.merge(source{doc: doc, rank: rank})
	if err != nil {
		return err
	}
	p.commits.held, p.pages.fresh, p.brought = &m.change, m.fresh, m.brings()
	p.pages.end(doc, p.chain.beyond)
	if m.refused > 0 {
		return p.refuse(doc, m.refused, rank, true)
	}
	if p.pages.goesOn() || p.backlog.reached {
		return p.chain.link(doc, feedhistory.KindPaged, r.Known.Formats)
	}
	return nil
}

// archive processes an archive document. It may be a known one, by its URL or by the one
// that a redirect leads to. Its self link shows nothing: the address may have another
// document, or none.
func (p *poll) archive(r *feedhistory.Reading, rank Rank, known *DocumentRecord) error {
	doc := r.Document
	if there := p.documents.get(doc.URL); known == nil && there != nil && there.URL == doc.URL {
		known = there // to which a redirect leads
	}
	s := source{doc: doc, rank: rank, archive: true, again: known != nil}
	s.same = s.again && known.Digest == p.merger.digestOf(doc)
	m, err := p.merger.merge(s)
	if err != nil {
		return err
	}
	d := p.newDocument(r, rank)
	p.commits.held, p.ledger.Unsettled, p.brought = &m.change, true, m.brings()
	first := p.feed.Polls
	if known != nil && known.Digest == d.Digest {
		first = known.First
	}
	p.chain.meetArchive(m, d, known)
	if err := p.readings.receive(doc, true, first); err != nil {
		return err
	}
	if m.refused > 0 || known == nil && !p.allowance.reserveDocument(d, nil) {
		return p.refuse(doc, m.refused, rank, false)
	}
	if known == nil {
		p.feed.Documents++
	} else {
		if known.Digest != d.Digest {
			p.changes.Altered++
			d.Altered = p.feed.Polls
		} else {
			d.Altered = known.Altered
		}
		d.URL, d.First = known.URL, known.First
		d.Names = slices.Concat(known.Names, d.Names)
		slices.Sort(d.Names)
		d.Names = slices.Compact(d.Names)
		p.allowance.reserveDocument(d, known)
	}
	for _, name := range d.Names { // it may have been pending under another of its names
		p.ledger.take(name)
	}
	m.change.Documents = append(m.change.Documents, d)
	return p.chain.link(doc, feedhistory.KindArchived, r.Known.Formats)
}

// meetArchive notes an archive for the write-offs: whether the chain has entries known
// before, and, of a known document outside of the chain, where its entries are now.
func (c *chainWalk) meetArchive(m *mergeResult, d, known *DocumentRecord) {
	if !c.beyond {
		c.joined = c.joined || slices.ContainsFunc(m.items, func(it *item) bool { return it.known })
	}
	if known == nil {
		return
	}
	ranks := make([]int64, 0, len(m.items))
	for r := range m.records() {
		if r.State == Live {
			ranks = append(ranks, r.Copy.Rank.Seq)
		}
	}
	for _, name := range append(d.Names, known.Names...) {
		c.ranks[name] = ranks
	}
}

// digestOf returns a digest of the set of a document's entries, which should not change in
// an archive (5005#9). Its links may change.
func (mg *merger) digestOf(doc *feedhistory.Document) string {
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = mg.digests.of(e).published + " " + e.ID
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(ids), "\n")))
	if mg.program != nil { // a Ledger has one of each archive
		return hex.EncodeToString(sum[:8])
	}
	return hex.EncodeToString(sum[:16])
}

// newDocument returns the mirror's record of an archive document.
func (s *session) newDocument(r *feedhistory.Reading, rank Rank) *DocumentRecord {
	doc := r.Document
	d := &DocumentRecord{
		URL: r.URL, Known: r.Known, Rank: rank, Names: []string{r.URL},
		First: s.feed.Polls, Last: s.feed.Polls, Read: s.now, Entries: len(doc.Entries), Digest: s.merger.digestOf(doc),
	}
	d.Known.Kind = feedhistory.KindArchived
	d.Known.Older, _ = olderOf(doc, feedhistory.KindArchived)
	d.Further = furtherOf(doc)
	if doc.URL != d.URL {
		d.Names = append(d.Names, doc.URL)
	}
	d.Oldest, d.Newest = spanOf(doc)
	return d
}

// furtherOf returns the URLs at which an archive goes on beyond its chain, against its marks.
func furtherOf(doc *feedhistory.Document) (urls []string) {
	for _, l := range doc.Further(feedhistory.KindArchived) {
		if l.Rel != "next-archive" && l.Rel != "last" {
			urls = append(urls, l.Href)
		}
	}
	return urls
}

// olderOf returns the URL of the next document back in time, in a chain of the
// given kind.
func olderOf(doc *feedhistory.Document, kind feedhistory.Kind) (string, bool) {
	rel := kind.Older()
	link, ok := doc.Links.Rel(rel)
	return iri.Address(link.Href), ok && rel != ""
}

// link marks the document linked by doc as pending, unless it has been processed. Its first two
// links may lead to one document in two formats.
func (c *chainWalk) link(doc *feedhistory.Document, kind feedhistory.Kind, forms bool) error {
	url, ok := olderOf(doc, kind)
	c.linked, c.links, c.forms = url, nil, forms
	for _, l := range doc.Links {
		if l.Rel == "prev-archive" || l.Rel == "next" {
			c.links = append(c.links, iri.Address(l.Href))
		}
	}
	if !ok || url == doc.URL || url == doc.Response.Requested {
		return c.documents.err
	}
	if kind == feedhistory.KindArchived && c.documents.get(url) != nil {
		return c.documents.err
	}
	c.owe(debt{
		Kind: debtDocument, URL: url, From: doc.URL, Reason: feedhistory.ReasonInterrupted, Message: "it has not been read yet", Found: c.now,
		tries: tries{Rank: c.rank, Page: kind == feedhistory.KindPaged, Wait: c.waits.at(url)},
	})
	return c.documents.err
}

// gap processes a hole in the chain. The readable part of a damaged document counts,
// and so does its link.
func (p *poll) gap(g *feedhistory.Gap, known feedhistory.Known) error {
	p.ledger.Unsettled = true
	isLoop := g.Reason == feedhistory.ReasonLoop
	isBeside := p.completed != nil && g.From != "" && !isLoop // the mark excuses no link: other entries may be there
	p.cut = p.cut || isPassing(g) || isBeside
	p.changes.More = p.changes.More || g.Reason == feedhistory.ReasonBudget
	if !p.chain.read {
		if g.Reason == feedhistory.ReasonDetached || isLoop { // reading it would show nothing
			p.oweAgain(g)
			return nil
		}
		p.chain.newer = append(p.chain.newer, g.URL)
		p.chain.oweFailed(g)
		return nil
	}
	if g.Document != nil {
		if err := p.damaged(g.Document, known.Formats); err != nil {
			return err
		}
	}
	if d := p.ledger.document(g.URL); d != nil {
		p.chain.failAgain(d, g)
		return nil
	}
	stored := p.documents.get(g.URL)
	switch {
	case !isLoop && !isBeside && g.From != g.URL && stored != nil: // its entries are stored; it only could not be read again
		p.alternatives.late = p.alternatives.late || p.alternatives.rereads // it has to be read with the others
		p.due.spent = p.due.spent || g.Reason == feedhistory.ReasonBudget && !p.chain.beyond
		if isAbsent(g.Err) {
			p.chain.gone[g.URL] = true
		}
	case isLoop && p.rechecks.urls[g.URL]: // it is now another name of a document just read
		p.chain.gone[g.URL] = true
	case isLoop && (stored != nil || g.URL == p.chain.start):
		p.oweAgain(g)
	default:
		p.chain.oweFailed(g)
	}
	return p.documents.err
}

// failAgain notes that a document owed could not be read once more.
func (c *chainWalk) failAgain(d *debt, g *feedhistory.Gap) {
	failed, again := c.debtOf(g), d.Reason == feedhistory.ReasonLoop
	d.Reason, d.Message, d.Found, d.Quota, d.Poll = failed.Reason, failed.Message, failed.Found, false, c.feed.Polls
	d.namedLatest(failed.From)
	if g.Reason != feedhistory.ReasonBudget {
		d.Tries++
	}
	d.Missing, d.Retry, d.Wait = isMissing(g), time.Time{}, c.waits.at(g.URL)
	switch {
	case d.isPassing() || d.Tries < 2:
	case g.Reason != feedhistory.ReasonLoop:
		d.Retry = c.now.Add(backoff(c.m.every(), d.Tries, longestRetry))
	case again: // a later walk, which has not just read the redirect's target, may succeed
		d.Retry = c.now.Add(backoff(c.m.every(), d.Tries, 24*time.Hour))
	}
}

// oweFailed enters a document that could not be read.
func (c *chainWalk) oweFailed(g *feedhistory.Gap) {
	d := c.debtOf(g)
	d.Kind, d.Tries, d.Missing, d.Rank = debtDocument, 1, isMissing(g), c.rank
	if c.read {
		d.Page, d.Wait = c.ledger.Kind == feedhistory.KindPaged, c.waits.at(g.URL)
	}
	c.owe(d)
}

// oweAgain enters a gap that the next walk finds again, if it is still there.
func (s *session) oweAgain(g *feedhistory.Gap) {
	d := s.debtOf(g)
	d.Again = true
	s.owe(d)
}

// longestRetry is the maximum time before a document refused for good is requested
// again.
const longestRetry = 24 * time.Hour

// isPassing reports whether the next poll has a good chance to close the gap.
func isPassing(g *feedhistory.Gap) bool {
	return debt{Reason: g.Reason, tries: tries{Missing: isMissing(g)}}.isPassing()
}

// isMissing reports whether a document is refused for good (5005#18).
func isMissing(err error) bool {
	return errors.Is(err, &feedhistory.FetchError{Status: http.StatusForbidden}) || errors.Is(err, fs.ErrNotExist)
}

// damaged processes the readable part of a damaged document.
func (p *poll) damaged(doc *feedhistory.Document, forms bool) error {
	known := p.documents.get(doc.Response.Requested)
	rank := rankOf(doc, p.chain.neighbour(doc.Response.Requested, known))
	page := p.chain.isPage(doc.Response.Requested)
	m, err := p.merger.merge(source{doc: doc, rank: rank, archive: !page})
	if err != nil {
		return err
	}
	p.chain.rank, p.commits.held, p.pages.fresh = rank, &m.change, true
	kind := feedhistory.KindArchived
	if page {
		kind = feedhistory.KindPaged
	}
	return p.chain.link(doc, kind, forms)
}

// debtOf returns the debt for a gap of the poll, by the mirror's clock.
func (s *session) debtOf(gap *feedhistory.Gap) debt {
	d := newDebt(gap)
	d.Found = s.m.byNow(d.Found)
	return d
}

// clearGaps removes the debts that earlier polls found within a document which this poll
// has read. A contradiction stays as long as the document names more than one chain. Of a
// damaged subscription document, the sound one must reach down to the same entry;
// otherwise a window has been missed.
func (s *session) clearGaps(doc *feedhistory.Document, kind feedhistory.Kind, start string, rereads bool) {
	var windows []debt
	s.ledger.crossOut(func(d debt) bool {
		if d.isDocument() || d.Poll == s.feed.Polls || d.From != d.URL || d.URL != doc.URL && d.URL != doc.Response.Requested ||
			d.Kind == debtContradiction && !rereads && d.isContradictedBy(doc, kind, start) {
			return false
		}
		if len(d.Before) > 0 && !slices.ContainsFunc(doc.Entries, func(e *feedhistory.Entry) bool { return e.ID == d.Before[0] }) {
			window := missedWindow(doc, s.now)
			window.Before = d.Before
			windows = append(windows, window)
		}
		return true
	})
	for _, d := range windows {
		s.owe(d)
	}
}

// oweWithin enters a gap within a document.
func (c *chainWalk) oweWithin(gap *feedhistory.Gap) {
	d := c.debtOf(gap)
	d.To = door.Root.Contradicts(gap.Err)
	if shown := c.ledger.Shown; c.read && gap.URL == c.ledger.Known.URL && gap.Reason == feedhistory.ReasonMalformed && len(shown) > 0 {
		d.Before = shown[len(shown)-1:]
	}
	c.owe(d)
}

// isContradictedBy reports whether a document of a feed of the given kind, which begins at a URL,
// still has the contradiction.
func (d debt) isContradictedBy(doc *feedhistory.Document, kind feedhistory.Kind, start string) bool {
	switch {
	case kind == feedhistory.KindComplete, d.To == start && start != "": // the feed was found to begin there
		return false
	case d.To == "": // a version before this wrote it down
		return len(doc.Further(kind)) > 0
	}
	return door.Root.LeadsTo(doc, d.To)
}

// declare turns the gaps declared by the feed into debts. No poll requests them: the feed
// has no more.
func (s *session) declare() {
	s.ledger.crossOut(func(d debt) bool { return d.Kind == debtDeclared })
	head := s.feed.declared()
	if head == nil {
		return
	}
	for _, gap := range head.Declared() {
		d := newDebt(gap)
		d.Kind, d.From = debtDeclared, declaredGap
		s.ledger.Debts = append(s.ledger.Debts, d)
	}
}

// isCutShort reports whether a debt is for a damaged subscription document that has not
// been read since.
func isCutShort(d debt) bool { return d.Again && d.From == d.URL }

// owe enters a debt that the poll has found.
func (s *session) owe(d debt) {
	d.Poll = s.feed.Polls
	s.ledger.enter(d)
}
