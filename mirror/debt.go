package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/door"
)

// A debtKind is the kind of the missing part, which decides the event that pays for it.
type debtKind string

// The kinds of debts.
const (
	debtDocument      debtKind = "document"      // a link leads to a document not read
	debtAlternative   debtKind = "alternative"   // links lead to two chains, and a part of one came late; see settle
	debtWindow        debtKind = "window"        // entries may have come and gone between two readings
	debtEntry         debtKind = "entry"         // an entry left from above older ones, and no archive has it
	debtContradiction debtKind = "contradiction" // a document's marks exclude each other
	debtDamage        debtKind = "damage"        // a part of a document could not be read
	debtLimit         debtKind = "limit"         // a part exceeds a limit, or the Quota
	debtChain         debtKind = "chain"         // links lead back or past the document
	debtStranger      debtKind = "stranger"      // another feed answers
	debtDeclared      debtKind = "declared"      // the feed says that it lacks a part
	debtSource        debtKind = "source"        // a Keep has not brought a part
	debtCount         debtKind = "count"         // a server counts or lists other entries than a Keep has brought
)

// receipts has the receipt of each kind of debt.
var receipts = map[debtKind]string{
	debtDocument:      "this document can be read, or the full chain no longer refers to it",
	debtAlternative:   "all its documents have been read again, by one poll",
	debtWindow:        "documents lead from the entries after the gap to those before it",
	debtEntry:         "an archive has the entry, a tombstone says that it was deleted, or its neighbours stand side by side",
	debtContradiction: "the document has been read again without the contradiction",
	debtDamage:        "the document has been read again, undamaged",
	debtLimit:         "the limit has been raised, and the document read again",
	debtChain:         "a reading of the feed no longer finds it",
	debtStranger:      "the feed itself answers again, or the other one has answered three polls over at least a day",
	debtDeclared:      "the feed no longer says that a part is missing",
	debtSource:        "a later harvest or recovery has brought it",
	debtCount:         "the server lists only entries that have come, and as many as it counts",
}

// A Debt is a missing part of a feed.
type Debt struct {
	Gap     *feedhistory.Gap // what is missing, and why
	Receipt string           // the event that pays it; nothing else crosses it out
	Retry   time.Time        // when polls request it again; zero means each poll does, or none
}

// A debt is a Debt as it is stored. Its fields without a comment are those of
// feedhistory.Gap; Message is the text of its Err.
type debt struct {
	Kind    debtKind           `json:"kind,omitempty"`
	URL     string             `json:"url"`
	From    string             `json:"from,omitempty"`
	Reason  feedhistory.Reason `json:"reason"`
	Message string             `json:"message"`
	Found   time.Time          `json:"found"`
	Poll    int64              `json:"poll,omitempty"`  // the number of the poll to find it
	Quota   bool               `json:"quota,omitempty"` // whether the Quota is the reason
	Again   bool               `json:"again,omitempty"` // whether each walk that reads the subscription document finds it again

	To string `json:"to,omitempty"` // of a contradiction, the target of its link

	sides
	tries
}

// The sides of a missed window: Before are the IDs of the newest entries from before it, After
// those of the oldest ones from after it, at most eight of each. Of an Entry that may not have
// left alone, Before are its two neighbours.
type sides struct {
	Entry  string   `json:"entry,omitempty"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
	Joined string   `json:"joined,omitempty"` // the URL of an archive, read since, that has the newest entries from before

	// Since is the number of commits before the poll that missed it, while no document read since
	// has an entry from before: the feed may have been rebuilt under other ids. Otherwise it is 0.
	Since int64 `json:"since,omitempty"`
}

// The tries are the attempts to read a document, with its place in the feed.
type tries struct {
	Page    bool      `json:"page,omitempty"`    // whether it is a page, not an archive document
	Shifted bool      `json:"shifted,omitempty"` // whether only a reading of every page pays for this one; see pageWalk.shift
	Rank    Rank      `json:"rank,omitzero"`     // the rank of its newer neighbour; the document's own Seq is one less
	Names   []string  `json:"names,omitempty"`   // the documents linking to it besides From, at most eight
	Tries   int       `json:"tries,omitempty"`   // the number of failed tries
	Missing bool      `json:"missing,omitempty"` // whether the last try found it refused for good: 403, 404 or 410 (5005#18)
	Retry   time.Time `json:"retry,omitzero"`    // when to try again; zero means at the next poll
	Wait    time.Time `json:"wait,omitzero"`     // until when the host has asked to be left alone (Retry-After); zero means it has not
}

// declaredGap is the debt.From of the gaps that the feed itself declares, and sourceGap
// the prefix of that of the gaps of a Source.
const (
	declaredGap = "feed:coverage"
	sourceGap   = "source:"
)

// kind returns the kind of a debt that is no document's.
func (d *debt) kind() debtKind {
	isOwn := d.From == d.URL
	switch {
	case d.From == declaredGap:
		return debtDeclared
	case strings.HasPrefix(d.From, sourceGap) && d.Reason == feedhistory.ReasonDeclared:
		return debtCount
	case strings.HasPrefix(d.From, sourceGap):
		return debtSource
	case d.Reason == feedhistory.ReasonMissedWindow && d.Entry != "":
		return debtEntry
	case d.Reason == feedhistory.ReasonMissedWindow:
		return debtWindow
	case d.Reason == feedhistory.ReasonForeign && d.From == "":
		return debtStranger
	case d.Reason == feedhistory.ReasonLimit || d.Quota:
		return debtLimit
	case isOwn && d.Reason == feedhistory.ReasonContradiction:
		return debtContradiction
	case isOwn && d.Reason != feedhistory.ReasonDetached && d.Reason != feedhistory.ReasonLoop:
		return debtDamage
	}
	return debtChain
}

// newDebt returns the debt for a gap. Its Kind is left to enter.
func newDebt(g *feedhistory.Gap) debt {
	return debt{URL: g.URL, From: g.From, Reason: cmp.Or(g.Reason, feedhistory.ReasonUnknown), Message: feedhistory.Describe(g.Err), Found: g.Found}
}

// gap returns the debt as a Gap.
func (d debt) gap() *feedhistory.Gap {
	err := errors.New(d.Message)
	if d.Quota {
		err = fmt.Errorf("%w: %s", ErrQuota, d.Message)
	}
	return &feedhistory.Gap{URL: d.URL, From: d.From, Reason: cmp.Or(d.Reason, feedhistory.ReasonUnknown), Err: err, Found: d.Found}
}

func (d debt) isAlternative() bool { return d.Kind == debtAlternative }

func (d debt) isDocument() bool { return d.Kind == debtDocument }

// isMissed reports whether readings of the subscription document have missed something.
func (d debt) isMissed() bool { return d.Kind == debtWindow || d.Kind == debtEntry }

// isCut reports whether the document may exist, but has not been requested.
func (d debt) isCut() bool {
	return d.Reason == feedhistory.ReasonInterrupted || d.Reason == feedhistory.ReasonBudget
}

// isWithin reports whether the debt is within a document read to its end: the document is
// damaged, has entries beyond a limit or contradictory marks, or its feed does not lead to
// it. It stays until the document is read again.
func (d debt) isWithin() bool {
	return !d.isDocument() && isWithin(&feedhistory.Gap{URL: d.URL, From: d.From, Reason: d.Reason})
}

func isWithin(g *feedhistory.Gap) bool {
	switch g.Reason {
	case feedhistory.ReasonMalformed, feedhistory.ReasonLimit, feedhistory.ReasonContradiction, feedhistory.ReasonDetached:
		return g.From == g.URL
	}
	return false
}

// isPassing reports whether the next try has a good chance to succeed.
func (d debt) isPassing() bool {
	switch d.Reason {
	case feedhistory.ReasonRefused, feedhistory.ReasonLimit, feedhistory.ReasonLoop, feedhistory.ReasonBarren:
		return false
	}
	return !d.Missing
}

// rests reports whether it is too early for the next try.
func (d debt) rests(now time.Time) bool {
	return d.Retry.After(now) && !d.Retry.After(now.Add(longestRetry+clockError))
}

// names notes a document that links to the one owed.
func (d *debt) names(url string) {
	if d.From == "" {
		d.From = url
	} else if url != "" && url != d.From && !slices.Contains(d.Names, url) && len(d.Names) < sideLimit {
		d.Names = append(slices.Clone(d.Names), url)
	}
}

// namedLatest notes the document through which the one owed was last requested.
func (d *debt) namedLatest(url string) {
	if url == "" || url == d.From {
		return
	}
	others := slices.DeleteFunc(slices.Clone(d.namedBy()), func(other string) bool { return other == url })
	d.From, d.Names = url, others[:min(len(others), sideLimit)]
}

// namedBy returns the documents that link to the one owed.
func (d debt) namedBy() []string {
	if d.From == "" || d.From == d.URL { // the Quota left out a part of it
		return d.Names
	}
	return append([]string{d.From}, d.Names...)
}

func (d debt) isNamedBy(url string) bool { return slices.Contains(d.namedBy(), url) }

// unnamed notes the end of a link to the one owed, from a document with these names.
func (d *debt) unnamed(names []string) {
	d.Names = slices.DeleteFunc(slices.Clone(d.Names), func(url string) bool { return slices.Contains(names, url) })
	if slices.Contains(names, d.From) {
		d.From = ""
	}
	if d.From == "" && len(d.Names) > 0 {
		d.From, d.Names = d.Names[0], d.Names[1:]
	}
}

// The maximum numbers to remember: of missed windows of a document, of debts that are no
// documents, and of documents.
const (
	windowLimit  = 100
	gapLimit     = 1000
	pendingLimit = 1000
)

// enter enters a debt. One for the same place replaces it; each missed window is a debt of
// its own. A document keeps its earlier debt, which gets the better rank and another name.
func (l *ledger) enter(d debt) {
	d.Kind = cmp.Or(d.Kind, d.kind())
	if d.isDocument() {
		l.enterDocument(d)
		return
	}
	same := func(old debt) bool {
		return old.URL == d.URL && old.From == d.From && old.Reason == d.Reason && old.Entry == d.Entry && !old.isDocument()
	}
	i := slices.IndexFunc(l.Debts, same)
	isFull := len(l.Debts)-l.documents() >= gapLimit
	switch {
	case i >= 0 && d.Kind == debtWindow:
		// At the limit the second is forgotten: an archive that joins the first, the widest,
		// covers it, too. The latest is the one the next archives join.
		second, n := slices.IndexFunc(l.Debts[i+1:], same), 0
		for _, old := range l.Debts {
			if same(old) {
				n++
			}
		}
		if n >= windowLimit || isFull {
			if second < 0 {
				return
			}
			l.Debts = slices.Delete(l.Debts, i+1+second, i+2+second)
		}
		l.Debts = append(l.Debts, d)
	case i >= 0:
		l.Debts[i] = d
	case !isFull:
		l.Debts = append(l.Debts, d)
	}
}

func (l *ledger) enterDocument(d debt) {
	if old := l.document(d.URL); old != nil {
		if old.Rank.compare(d.Rank) < 0 {
			old.Rank = d.Rank
		}
		old.Page = d.Page // the latest link to it decides
		old.names(d.From)
		return
	}
	if l.documents() >= pendingLimit {
		l.enter(debt{
			URL: d.URL, From: d.From, Reason: feedhistory.ReasonLimit, Found: d.Found, Poll: d.Poll,
			Message: fmt.Sprintf("it is not remembered: %d documents are still to be read", pendingLimit),
		})
		return
	}
	l.Debts = append(l.Debts, d)
}

// crossOut crosses out the paid debts.
func (l *ledger) crossOut(isPaid func(debt) bool) { l.Debts = slices.DeleteFunc(l.Debts, isPaid) }

// owes reports whether there is such a debt.
func (l *ledger) owes(is func(debt) bool) bool { return slices.ContainsFunc(l.Debts, is) }

// document returns the debt for a document; nil if it is not owed.
func (l *ledger) document(url string) *debt {
	i := slices.IndexFunc(l.Debts, func(d debt) bool { return d.isDocument() && d.URL == url })
	if i < 0 {
		return nil
	}
	return &l.Debts[i]
}

// documents returns the number of documents owed.
func (l *ledger) documents() (n int) {
	for _, d := range l.Debts {
		if d.isDocument() {
			n++
		}
	}
	return n
}

// take crosses out the debt for a document.
func (l *ledger) take(url string) {
	isShifted := func(d debt) bool { return d.Shifted && l.Kind == feedhistory.KindPaged }
	l.crossOut(func(d debt) bool { return d.isDocument() && d.URL == url && !isShifted(d) })
}

// compareKinds puts documents before all else.
func compareKinds(a, b debt) int {
	switch {
	case a.isDocument() == b.isDocument():
		return 0
	case a.isDocument():
		return -1
	}
	return 1
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
		} else {
			p.chain.unread[g.URL] = true
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

// oweFailed enters an unreadable document.
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

// isAbsent reports whether a known document is gone for good.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist)
}

// debtOf returns the debt for a gap of the poll, by the mirror's clock.
func (s *session) debtOf(gap *feedhistory.Gap) debt {
	d := newDebt(gap)
	d.Found = s.m.byNow(d.Found)
	return d
}

// clearGaps removes the debts earlier polls found within a document which this poll
// has read. A contradiction stays as long as the document names more than one chain. Of a
// damaged subscription document, the sound one must show the entries around the damage; otherwise a
// window has been missed. So must that of an archive, and be no older, since a publisher may renumber
// its archives. A document at another URL is the same archive if it has the same time. (Where entries
// go by their links in one document and by their ids in another, the one at the URL need only be
// sound.) Nil is the result of a document that is no subscription document.
func (c *chainWalk) clearGaps(doc *feedhistory.Document, m *mergeResult, kind feedhistory.Kind, start string, rereads bool) {
	var windows []debt
	c.ledger.crossOut(func(d debt) bool {
		isElsewhere := d.URL != doc.URL && d.URL != doc.Response.Requested
		known := c.documents.get(d.URL)
		if d.Kind == debtDamage && len(d.Before)+len(d.After) > 0 && known != nil && d.Poll < c.feed.Polls {
			may := !c.rank.Time.Before(known.Rank.Time)
			if isElsewhere {
				may = c.rank.Time.Equal(known.Rank.Time) && len(d.Before) > 0 && len(d.After) > 0
			}
			return !isShortOf(doc) && (may && d.isShownIn(doc) || !isElsewhere && c.ledger.mixesIDs())
		}
		if d.isDocument() || d.Poll == c.feed.Polls || d.From != d.URL || isElsewhere ||
			d.Kind == debtContradiction && !rereads && d.isContradictedBy(doc, kind, start) {
			return false
		}
		if !d.isShownIn(doc) {
			window := missedWindow(doc, c.now)
			window.Before, window.After, window.Since = d.Before, d.After, c.since()
			if len(d.After) == 0 && m != nil {
				window.After = m.oldestNew(isRising(doc))
			}
			windows = append(windows, window)
		}
		return true
	})
	for _, d := range windows {
		c.owe(d)
	}
}

// isShownIn reports whether a document shows the entries that were around a damage, in the same
// order. If the damage was at the older end, an older entry must follow.
func (d debt) isShownIn(doc *feedhistory.Document) bool {
	ids := make([]string, len(doc.Entries))
	for i, e := range doc.Entries {
		ids[i] = placeOf(e.ID)
	}
	if isRising(doc) {
		slices.Reverse(ids)
	}
	place := func(side []string) int {
		return slices.IndexFunc(ids, func(id string) bool { return len(side) > 0 && id == placeOf(side[0]) })
	}
	switch newer, older := place(d.After), place(d.Before); {
	case len(d.Before) == 0:
		return len(d.After) == 0 || 0 <= newer && newer < len(ids)-1
	case len(d.After) == 0:
		return older >= 0
	default:
		return 0 <= newer && newer < older
	}
}

// oweWithin enters a gap within a document; nil is one that has not changed, and is still damaged.
func (c *chainWalk) oweWithin(gap *feedhistory.Gap, doc *feedhistory.Document) {
	d := c.debtOf(gap)
	d.To = door.Root.Contradicts(gap.Err)
	if c.read && gap.Reason == feedhistory.ReasonMalformed && (gap.URL == c.ledger.Known.URL || c.ledger.Kind == feedhistory.KindArchived) {
		d.sides = c.ledger.around(gap, doc)
	}
	c.owe(d)
}

// around returns the entries around the damage of a document: if they are not known, of the
// subscription document the last one it shows.
func (l *ledger) around(gap *feedhistory.Gap, doc *feedhistory.Document) (s sides) {
	if doc == nil {
		for _, d := range l.Debts {
			if d.Kind == debtDamage && d.URL == gap.URL {
				s = d.sides
			}
		}
		return s
	}
	above, below := door.Root.Around(doc)
	newer, older := without(above, below), without(below, above) // an entry with copies on both sides has no place
	if isRising(doc) {
		newer, older = reversed(older), reversed(newer)
	}
	s.After, s.Before = lastOf(newer, sideLimit), older[:min(len(older), sideLimit)]
	slices.Reverse(s.After)
	if len(newer)+len(older) == 0 && len(l.Shown) > 0 && gap.URL == l.Known.URL {
		s.Before = l.Shown[len(l.Shown)-1:]
	}
	return s
}

// without returns the IDs which others are not.
func without(ids, others []string) []string {
	are := map[string]bool{}
	for _, id := range others {
		are[id] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return are[id] })
}

func reversed(ids []string) []string {
	slices.Reverse(ids)
	return ids
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
	older, _ := olderOf(doc, kind)
	return door.Root.LeadsTo(doc, d.To) && older != d.To // by its first link, its chain leads there
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

// owe enters a debt found by the poll.
func (s *session) owe(d debt) {
	d.Poll = s.feed.Polls
	s.ledger.enter(d)
}

// refuse leaves a document pending until the Quota is raised, and ends the
// walk, because older documents would not fit either.
func (s *session) refuse(doc *feedhistory.Document, refused int, rank Rank, page bool) error {
	d := quotaGap(doc, refused, s.now)
	d.Kind, d.URL, d.Poll, d.Page, d.Rank, d.Tries = debtDocument, doc.Response.Requested, s.feed.Polls, page, rank, 1
	d.Rank.Seq++
	s.ledger.take(d.URL)
	s.ledger.Debts = append(s.ledger.Debts, d)
	s.ledger.Unsettled, s.cut = true, true
	return errEnded
}

// quotaGap returns the gap for a document not stored entirely.
func quotaGap(doc *feedhistory.Document, refused int, now time.Time) debt {
	what := fmt.Sprintf("entries of the document that are not stored: %d", refused)
	if refused == 0 {
		what = "the document is not recorded"
	}
	return debt{URL: doc.URL, From: doc.URL, Reason: feedhistory.ReasonLimit, Quota: true, Found: now, Message: what}
}

// oweLeftOut enters the debt of the entries the Quota has left out of a subscription document.
func (s *session) oweLeftOut(doc *feedhistory.Document, m *mergeResult) {
	if m.refused > 0 {
		s.owe(quotaGap(doc, m.refused, s.now))
	}
}

// isLeftOut reports whether a debt is for entries of the subscription document left out by
// the Quota.
func isLeftOut(d debt) bool { return d.Quota && d.Kind == debtLimit }
