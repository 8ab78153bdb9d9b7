package mirror

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A chainWalk is how far the walk has come from the subscription document.
type chainWalk struct {
	*chainReading
	waits  *hostWaits
	linked string   // the older document linked by the latest one
	links  []string // all it links to, as there may be several links
	forms  bool     // the first two of these lead to one document in two formats
	rank   Rank     // the rank of the latest document
	beyond bool     // the walk has left the chain from the subscription document
	aside  bool     // it reads a document of that chain again, and perhaps those the document newly leads to
}

// A chainReading is the reading of a chain by one poll, as far as write-offs need it.
type chainReading struct {
	*session
	backlog  *backlog
	read     bool               // the subscription document has come
	start    string             // the URL by which it was requested
	ended    bool               // the walk has ended by itself
	asks     bool               // known archives are asked for, until one has not changed
	until    int64              // the asking goes on to one known before this poll, for a window
	met      bool               // one of them has not changed
	again    bool               // the same, or one beyond the chain has not
	paid     int                // the windows that documents have joined
	joined   bool               // the chain has an entry known before
	newer    []string           // the documents at which the feed is said to begin, but which could not be read
	received map[string]bool    // the URLs of the documents read, without the unchanged ones
	own      map[string]bool    // the links of the chain as it was before
	gone     map[string]bool    // known documents that no longer answer
	unread   map[string]bool    // known documents that could not be read again
	ranks    map[string][]int64 // for a known document outside of the chain, the ranks its entries have their copies from
}

// alternatives are two chains of one feed, of which a part came late: only reading all documents
// again shows whether they are one.
type alternatives struct {
	late    bool // a document was read that had failed before
	rereads bool // the poll reads all documents again
	vain    int  // the number of polls that have done so in vain
}

// A chainPath is the chain from the subscription document through the stored archives.
type chainPath struct {
	steps   map[string]step // all documents, by their names
	current []step          // those of the chain, newest first
	beyond  []step          // those to which its links lead against their marks
	passed  map[string]bool // the URLs of the chain
	named   map[string]bool // the documents to which the chain links
	whole   bool            // it reaches its end
	loop    *debt           // it leads back into itself; nil if it does not
}

// path follows the links of the feed through its documents, as they were last read.
func (cr *chainReading) path() (*chainPath, error) {
	l := cr.ledger
	steps, err := cr.documents.all()
	if err != nil {
		return nil, err
	}
	c := &chainPath{steps: steps, passed: map[string]bool{}, named: map[string]bool{l.Known.Older: true}}
	seen, further := map[string]bool{}, slices.Clone(l.Further)
	follow := func(url, instead string) (followed []step, end string) {
		for url != "" {
			if _, ok := steps[url]; !ok && instead != "" {
				url = instead
			}
			at, ok := steps[url]
			if !ok || seen[at.url] {
				break
			}
			seen[at.url] = true
			at.link = url
			followed, further, url = append(followed, at), append(further, at.further...), at.older
			instead = at.instead
		}
		return followed, url
	}
	var end string
	c.current, end = follow(l.Known.Older, otherFormat(l.Known))
	for _, url := range slices.Concat(cr.newer, further) {
		c.named[url] = true
	}
	from, lost := l.Known.URL, l.Known.Lost
	for _, at := range c.current {
		c.passed[at.url], c.named[at.older] = true, true
		from, lost = at.url, at.lost
	}
	c.whole = end == "" && !lost // otherwise there is something older, and a gap says so
	if _, ok := steps[end]; ok {
		c.loop = &debt{
			URL: end, From: from, Reason: feedhistory.ReasonLoop, Found: cr.now,
			Message: "the chain of archives leads back to this document",
		}
	}
	for i := 0; i < len(further); i++ {
		followed, _ := follow(further[i], "")
		c.beyond = append(c.beyond, followed...)
	}
	return c, nil
}

// isContradictory reports whether links lead beyond the chain, against its marks. If one of
// its documents came late, only a walk that reads all of them can say whether they are one.
func (c *chainPath) isContradictory(l *ledger) bool {
	return len(l.Further)+len(c.beyond) > 0 || slices.ContainsFunc(c.current, func(at step) bool { return len(at.further) > 0 })
}

// has reports whether a document is the subscription document or in the chain.
func (c *chainPath) has(cr *chainReading, url string) bool {
	return url == cr.ledger.Known.URL || url == cr.start || c.passed[c.steps[url].url]
}

// isRead reports whether the poll has read the chain from the newest archive down to the
// first that has not changed, and no document of it is damaged or contradicts itself.
func (c *chainPath) isRead(cr *chainReading) bool {
	for i, at := range c.current {
		if at.last < cr.feed.Polls && (i == 0 || !cr.met) {
			return false
		}
	}
	return len(c.current) > 0 && !cr.ledger.owes(func(g debt) bool { return g.isWithin() && c.has(cr, g.URL) })
}

// owes reports whether the ledger has a debt that a reading of known archives may pay, or
// write off in this poll.
func (cr *chainReading) owes() bool {
	return cr.ledger.owes(func(d debt) bool {
		return cr.backlog.isAskedAgain(d) || d.isMissed() && (d.Joined == "" || cr.paid == 0) || d.isWithin() && !d.Quota
	})
}

// hasFailed reports whether a document has been asked for in vain, and its host has not
// asked for patience.
func (s *session) hasFailed(d debt) bool {
	return d.isDocument() && d.Tries > 0 && !d.isCut() && !d.Quota && !isAsked(d.Wait, s.now)
}

// isAskedAgain reports whether the poll asks for a document that has failed before.
func (b *backlog) isAskedAgain(d debt) bool {
	return b.hasFailed(d) && (b.urls[d.URL] || d.Poll == b.feed.Polls)
}

// settle crosses out the debts that a complete reading of the chain pays or writes off. A
// reading without a subscription document settles nothing.
func (cr *chainReading) settle(a *alternatives) error {
	l := cr.ledger
	if !cr.read || l.Kind != feedhistory.KindArchived {
		return nil
	}
	c, err := cr.path()
	if err != nil {
		return err
	}
	l.crossOut(isChainLoop)
	if c.loop != nil { // which a single walk may not notice
		cr.owe(*c.loop)
	}
	l.join(c.current)
	cr.oweAsBefore(c)
	if !c.whole {
		return nil
	}
	if a.late && c.isContradictory(l) {
		d := debt{
			Kind: debtAlternative, URL: l.Known.URL, Reason: feedhistory.ReasonContradiction, Found: cr.now,
			Message: "its links lead to two chains of archives, and a part of one came late: a poll that reads all of it again shows whether they are one",
		}
		if a.rereads {
			d.Tries = a.vain + 1
			d.Retry = cr.now.Add(backoff(cr.m.every(), d.Tries, longestRetry))
		}
		cr.owe(d)
	}
	if l.Unsettled = false; !c.isRead(cr) {
		return nil
	}
	if err := cr.commits.drain(); err != nil {
		return err
	}
	stale, err := cr.mayBeStale(c.current[0], c.steps)
	if err != nil {
		return err
	}
	if !stale {
		cr.writeOff(c)
	}
	return cr.settleWindows(c)
}

// join removes the windows whose earlier side a document of the chain has, if all those
// before it are new, or have been asked for since.
func (l *ledger) join(current []step) {
	l.crossOut(func(g debt) bool {
		if g.Joined == "" {
			return false
		}
		for _, at := range current {
			if slices.Contains(at.names, g.Joined) {
				return true
			}
			if at.first < g.Poll && !at.isReadSince(g) {
				return false
			}
		}
		return false
	})
}

// mayBeStale reports whether the subscription document may be an old copy, which has not
// answered for a day yet. It is none if an archive has the newest entry, and none is newer
// than the one it leads to.
func (cr *chainReading) mayBeStale(head step, steps map[string]step) (bool, error) {
	l := cr.ledger
	if l.Stale.IsZero() || !cr.now.Before(l.Stale.Add(24*time.Hour)) {
		return false, nil
	}
	for _, at := range steps {
		if at.seq > head.seq {
			return true, nil
		}
	}
	records, err := cr.m.Store.Records(cr.ctx, cr.feed.URL, []string{l.Newest})
	return records[l.Newest] == nil || !records[l.Newest].Archived, err
}

// isNotMissed reports whether an unreadable document hides nothing: a walk to the end has read each
// document naming it again, and reports no gap.
func (cr *chainReading) isNotMissed(d debt) bool {
	names := d.namedBy()
	return cr.ended && d.isDocument() && !d.Page && !d.Quota && d.Tries > 0 && d.Poll < cr.feed.Polls && len(names) > 0 &&
		!slices.ContainsFunc(names, func(url string) bool { return !cr.received[url] })
}

// oweAsBefore enters the debts of the earlier feed at the address for documents in the present
// chain: it is the same feed, after all.
func (cr *chainReading) oweAsBefore(c *chainPath) {
	past := cr.ledger.Past
	if past == nil {
		return
	}
	for _, d := range past.Ledger.Debts {
		at, isKnown := c.steps[d.URL]
		isWithdrawn := slices.ContainsFunc(cr.ledger.Unread, func(u debt) bool { return u.URL == d.URL })
		isSound := d.Kind == debtDamage && at.last > d.Poll && !at.damaged // its sound copy may be the one known before
		if d.isDocument() && c.named[d.URL] && !isKnown && !isWithdrawn || d.isWithin() && c.passed[at.url] && at.altered <= d.Poll && !isSound {
			cr.owe(d)
		}
	}
}

// writeOff crosses out the documents which the poll has asked for in vain, and which the
// chain neither names nor needs: it has all entries of those that named them.
func (cr *chainReading) writeOff(c *chainPath) {
	f, l, remembers := cr.feed, cr.ledger, !cr.m.shelf.forgets()
	rebuilt := cr.had && !cr.joined && remembers // of a feed read for the first time, nothing was known
	isNeeded := func(url string) bool { return !rebuilt && !cr.gone[url] && !cr.isCovered(url, c.current) }
	isOwed := func(d debt) bool {
		return d.Poll < f.Polls || !cr.backlog.isAskedAgain(d) || c.named[d.URL] || slices.ContainsFunc(d.namedBy(), func(url string) bool {
			_, isKnown := c.steps[url] // otherwise it has never been read, or was a subscription document
			return c.has(cr, url) && d.Reason != feedhistory.ReasonLoop || (isKnown || l.document(url) != nil) && !c.has(cr, url) && isNeeded(url)
		})
	}
	for n := -1; n != len(l.Debts); { // one written off may name another
		n = len(l.Debts)
		owed := slices.Clone(l.Debts)
		l.Debts = slices.DeleteFunc(owed, func(d debt) bool {
			isUnread := d.isDocument() && !isOwed(d)
			if isUnread {
				cr.withdraw(d)
			}
			return isUnread
		})
	}
	l.crossOut(func(d debt) bool {
		isElsewhere := d.isWithin() && !d.Quota && d.Reason != feedhistory.ReasonDetached && !c.has(cr, d.URL)
		wasRebuilt := rebuilt || remembers && d.Since > 0 && c.isNewSince(d)
		return d.isMissed() && wasRebuilt || isElsewhere && !isNeeded(d.URL)
	})
}

// isNewSince reports whether each archive of the chain was first read since a debt was entered, or
// has changed since.
func (c *chainPath) isNewSince(d debt) bool {
	return !slices.ContainsFunc(c.current, func(at step) bool { return at.first < d.Poll && at.altered < d.Poll })
}

// withdraw notes a document written off.
func (s *session) withdraw(d debt) {
	d.Found = s.now
	s.ledger.Unread = lastOf(append(slices.Clone(s.ledger.Unread), d), recentLimit)
}

// triesUnnamed is how often a document that the chain no longer names is asked for at each
// poll: if it does not answer, it may be written off.
const triesUnnamed = 6

// unnamed returns a function that reports whether a document may be written off once it is
// asked for: no document of the chain links to it, as they were last read, and it was not
// asked for often, or not since the chain has grown.
func (cr *chainReading) unnamed() func(debt) bool {
	c, err := cr.path()
	if err != nil {
		cr.documents.err = cmp.Or(cr.documents.err, err)
		return func(debt) bool { return false }
	}
	grown := int64(0)
	for _, at := range slices.Concat(c.current, c.beyond) {
		c.named[at.older], grown = true, max(grown, at.first)
	}
	return func(d debt) bool {
		return (d.Tries < triesUnnamed || d.Poll <= grown) && !c.named[d.URL]
	}
}

// isChainLoop reports whether a gap is the loop that settle finds.
func isChainLoop(g debt) bool {
	return g.Kind == debtChain && g.Reason == feedhistory.ReasonLoop && g.From != "" && g.From != g.URL && !g.Again
}

// isCovered reports whether the documents of the chain have all entries of a known
// document outside of it, as this poll has read it.
func (cr *chainReading) isCovered(url string, current []step) bool {
	ranks, ok := cr.ranks[url]
	if !ok {
		return false
	}
	return !slices.ContainsFunc(ranks, func(seq int64) bool {
		return seq>>32 != cr.feed.Polls && !slices.ContainsFunc(current, func(at step) bool { return at.seq == seq })
	})
}

// isAsked reports whether the archives of the chain that were known before the gap have
// been asked for since, from the newest down to the first that has not changed; and all
// those beyond it, which no order leads to.
func (d debt) isAsked(c *chainPath) bool {
	if slices.ContainsFunc(c.beyond, func(at step) bool { return !at.isReadSince(d) }) {
		return false
	}
	for _, at := range c.current {
		if at.first < d.Poll && at.altered < d.Poll {
			return at.isReadSince(d)
		}
		if !at.isReadSince(d) {
			return false
		}
	}
	return true
}

// isUnasked reports whether a document beyond the chain has not been asked for since a
// window was missed that no archive joins.
func (cr *chainReading) isUnasked(d *DocumentRecord) bool {
	return !cr.backlog.unread && cr.ledger.Kind == feedhistory.KindArchived &&
		cr.ledger.owes(func(g debt) bool { return g.isMissed() && g.Joined == "" && !d.step().isReadSince(g) })
}

// settleWindows writes off the windows and entries behind which archives have the oldest
// entry from after, or everything the subscription document shows.
func (cr *chainReading) settleWindows(c *chainPath) error {
	l := cr.ledger
	if !l.owes(debt.isMissed) {
		return nil
	}
	ids := slices.Clone(l.Shown)
	for _, g := range l.Debts {
		ids = append(ids, g.After...)
	}
	records, err := cr.m.Store.Records(cr.ctx, cr.feed.URL, ids)
	if err != nil {
		return err
	}
	archived := func(id string) bool { return records[id] != nil && records[id].Archived }
	shown := places(l.shown())
	all := len(shown) > 0
	for id := range shown {
		all = all && archived(id)
	}
	cr.ledger.crossOut(func(g debt) bool {
		if !g.isMissed() || !g.isAsked(c) {
			return false
		}
		oldest := slices.IndexFunc(g.After, func(id string) bool { _, ok := shown[id]; return ok || archived(id) })
		return all || oldest >= 0 && archived(g.After[oldest])
	})
	return nil
}
