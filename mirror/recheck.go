package mirror

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Archives should not change (5005#9), but do: entries are backdated into them, links are
// corrected, older archives are added behind the oldest. So each poll asks again for some
// of the documents that name debts, and from time to time for some of the others: those
// unread for longest, so that each is read within thirty days, and one of both ends.

// recheck returns the time between two such requests; a negative one means none.
func (m *Mirror) recheck() time.Duration { return cmp.Or(m.Recheck, 24*time.Hour) }

// share returns how many of n documents a poll asks for again.
func share(n int) int { return min(n, 20, max(4, (n+4)/5)) }

// chooseRechecks decides which known archives the poll requests again.
func (p *poll) chooseRechecks() error {
	l := p.ledger
	every, most := recheckPace(p.feed.Documents, p.m.recheck())
	if every < 0 && l.isUnverified() {
		every, most = recheckPace(p.feed.Documents, longestRecheck)
	}
	p.chain.asks = p.ledger.Kind == feedhistory.KindArchived && p.owes() && !p.backlog.unread
	p.rechecks, p.whole = map[string]bool{}, map[string]bool{}
	if p.ledger.Kind != feedhistory.KindArchived || every < 0 || p.m.Revalidate {
		return nil
	}
	isTime := !l.Looked.IsZero() && !p.now.Before(l.Looked.Add(every))
	if !isTime && !p.owes() && !l.owes(p.hasFailed) {
		return nil
	}
	c, err := p.path()
	if err != nil {
		return err
	}
	for _, g := range l.Debts {
		if g.isMissed() && !g.isAsked(c) && (p.chain.until == 0 || g.Poll < p.chain.until) {
			p.chain.until = g.Poll
		}
	}
	if err := p.recheckNames(c.current); err != nil || !isTime || len(c.current) == 0 {
		return err
	}
	p.chain.own = map[string]bool{}
	for _, at := range c.current {
		p.chain.own[at.link] = true
	}
	known := slices.Concat(c.current, c.beyond)
	end, oldest := c.current[0], c.current[len(c.current)-1]
	if oldest.last < end.last {
		end = oldest
	}
	slices.SortStableFunc(known, func(a, b step) int { return cmp.Compare(a.last, b.last) })
	for _, at := range append(known[:min(most, len(known)):len(known)], end) {
		p.rechecks[at.link] = true
		p.whole[at.link] = p.whole[at.link] || at.read.Before(l.Inherited) || !l.Inherited.IsZero() && at.read.After(p.now)
	}
	l.Looked = p.now
	return nil
}

// Each archive is read again within longestRecheck, by polls that read at most recheckShare.
const (
	longestRecheck = 30 * 24 * time.Hour
	recheckShare   = 20
)

// recheckPace returns how often, and how many archives, polls read again; a negative time
// means none.
func recheckPace(documents int64, every time.Duration) (time.Duration, int) {
	if every < 0 {
		return every, 0
	}
	every = min(every, longestRecheck*recheckShare/time.Duration(max(documents, recheckShare)))
	return every, int(min(recheckShare, 1+documents*int64(every/time.Second)/int64(longestRecheck/time.Second)))
}

// recheckNames chooses among the known documents that name debts, the stalest first.
func (p *poll) recheckNames(chain []step) error {
	var names []string
	for _, d := range p.ledger.Debts {
		if p.hasFailed(d) {
			names = append(names, d.namedBy()...)
		} else if d.isWithin() {
			names = append(names, d.URL)
		}
	}
	slices.Sort(names)
	var known []*DocumentRecord
	by := map[string][]string{} // the names in debts: another one may still answer, or no longer
	for _, url := range slices.Compact(names) {
		if d := p.documents.get(url); d != nil {
			if by[d.URL] == nil {
				known = append(known, d)
			}
			by[d.URL] = append(by[d.URL], url)
		}
	}
	slices.SortStableFunc(known, func(a, b *DocumentRecord) int { return cmp.Compare(a.Last, b.Last) })
	for _, d := range known[:share(len(known))] {
		name := by[d.URL][p.feed.Polls%int64(len(by[d.URL]))]
		p.rechecks[name] = true
		p.whole[name] = !slices.ContainsFunc(chain, func(at step) bool { return at.seq == d.Rank.Seq })
	}
	return p.documents.err
}

// noteChecked records since when each archive of the chain has been read.
func (p *poll) noteChecked(changed bool) error {
	l := p.ledger
	if l.Kind != feedhistory.KindArchived {
		l.Checked = time.Time{}
		if l.Kind != feedhistory.KindPaged || !l.owes(l.isOfPages) {
			l.Looked = time.Time{}
		}
		return nil
	}
	if l.Looked.IsZero() || p.m.Revalidate && !p.cut {
		l.Looked = p.now
	}
	if !changed && len(p.rechecks) == 0 && !p.m.Revalidate && !l.Checked.IsZero() {
		return nil
	}
	c, err := p.path()
	if err != nil {
		return err
	}
	l.Checked = time.Time{}
	for _, at := range slices.Concat(c.current, c.beyond) {
		read := at.read
		if read.After(p.now) { // by a wrong clock
			read = p.now
		}
		if l.Checked.IsZero() || read.Before(l.Checked) {
			l.Checked = read
		}
	}
	return nil
}
