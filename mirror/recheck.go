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

// rechecks are the known archives that the poll requests again.
type rechecks struct {
	*session
	backlog *backlog
	chain   *chainReading
	urls    map[string]bool
	whole   map[string]bool // those to request even if they have not changed
}

// choose decides which known archives the poll requests again.
func (r *rechecks) choose() error {
	l := r.ledger
	every, most := recheckPace(r.feed.Documents, r.m.recheck())
	if every < 0 && l.isUnverified() {
		every, most = recheckPace(r.feed.Documents, longestRecheck)
	}
	r.chain.asks = r.ledger.Kind == feedhistory.KindArchived && r.chain.owes() && !r.backlog.unread
	r.urls, r.whole = map[string]bool{}, map[string]bool{}
	for _, url := range l.Leading {
		r.urls[url], r.whole[url] = true, true
	}
	if r.ledger.Kind != feedhistory.KindArchived || every < 0 || r.m.Revalidate {
		return nil
	}
	isTime := !l.Looked.IsZero() && !r.now.Before(l.Looked.Add(every))
	if !isTime && !r.chain.owes() && !l.owes(r.hasFailed) {
		return nil
	}
	c, err := r.chain.path()
	if err != nil {
		return err
	}
	for _, g := range l.Debts {
		if g.isMissed() && !g.isAsked(c) && (r.chain.until == 0 || g.Poll < r.chain.until) {
			r.chain.until = g.Poll
		}
	}
	if err := r.chooseNames(c.current); err != nil || !isTime || len(c.current) == 0 {
		return err
	}
	r.chain.own = map[string]bool{}
	for _, at := range c.current {
		r.chain.own[at.link] = true
	}
	known := slices.Concat(c.current, c.beyond)
	end, oldest := c.current[0], c.current[len(c.current)-1]
	if oldest.last < end.last {
		end = oldest
	}
	slices.SortStableFunc(known, func(a, b step) int { return cmp.Compare(a.last, b.last) })
	for _, at := range append(known[:min(most, len(known)):len(known)], end) {
		r.urls[at.link] = true
		r.whole[at.link] = r.whole[at.link] || at.read.Before(l.Inherited) || !l.Inherited.IsZero() && at.read.After(r.now)
	}
	l.Looked = r.now
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

// chooseNames chooses among the known documents that name debts, the stalest first.
func (r *rechecks) chooseNames(chain []step) error {
	var names []string
	unlike := map[string]bool{} // those with links other than their records': read because of a contradicting mark, say
	for _, d := range r.ledger.Debts {
		if r.hasFailed(d) {
			names = append(names, d.namedBy()...)
			for _, url := range d.namedBy() {
				known := r.documents.get(url)
				unlike[url] = unlike[url] || known != nil && d.URL != known.Known.Older && d.URL != known.Known.Instead && !slices.Contains(known.Further, d.URL)
			}
		} else if d.isWithin() {
			names = append(names, d.URL)
		}
	}
	slices.Sort(names)
	var known []*DocumentRecord
	by := map[string][]string{} // the names in debts: another one may still answer, or no longer
	for _, url := range slices.Compact(names) {
		if d := r.documents.get(url); d != nil {
			if by[d.URL] == nil {
				known = append(known, d)
			}
			by[d.URL] = append(by[d.URL], url)
		}
	}
	slices.SortStableFunc(known, func(a, b *DocumentRecord) int { return cmp.Compare(a.Last, b.Last) })
	for _, d := range known[:share(len(known))] {
		name := by[d.URL][r.feed.Polls%int64(len(by[d.URL]))]
		r.urls[name] = true
		r.whole[name] = unlike[name] || !slices.ContainsFunc(chain, func(at step) bool { return at.seq == d.Rank.Seq })
	}
	return r.documents.err
}

// note records since when each archive of the chain has been read.
func (r *rechecks) note(changed bool) error {
	l := r.ledger
	if l.Kind != feedhistory.KindArchived {
		l.Checked = time.Time{}
		if l.Kind != feedhistory.KindPaged || !l.owes(l.isOfPages) {
			l.Looked = time.Time{}
		}
		return nil
	}
	if l.Looked.IsZero() || r.m.Revalidate && !r.cut {
		l.Looked = r.now
	}
	if !changed && !r.chain.again && !l.Checked.IsZero() {
		return nil
	}
	c, err := r.chain.path()
	if err != nil {
		return err
	}
	l.Checked = time.Time{}
	for _, at := range slices.Concat(c.current, c.beyond) {
		read := at.read
		if read.After(r.now) { // by a wrong clock
			read = r.now
		}
		if l.Checked.IsZero() || read.Before(l.Checked) {
			l.Checked = read
		}
	}
	return nil
}
