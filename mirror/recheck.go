package mirror

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Archives should not change (5005#9), but do: entries are backdated into them, older
// archives are added behind the oldest. So from time to time a poll requests one of
// them again: every second time the oldest, otherwise the one unread for longest.

// recheck returns the time between two such requests; a negative one means none.
func (m *Mirror) recheck() time.Duration { return cmp.Or(m.Recheck, 24*time.Hour) }

// chooseRecheck decides which known archive the poll requests again: one needed by a
// missed window, or else, from time to time, one possibly changed.
func (p *poll) chooseRecheck() error {
	f, every := p.feed, p.m.recheck()
	if f.Kind != feedhistory.Archived || len(f.Pending) > 0 {
		return nil
	}
	isTime := every >= 0 && !p.m.Revalidate && !f.Looked.IsZero() &&
		(!p.now.Before(f.Looked.Add(every)) || f.Looked.After(p.now.Add(clockError)))
	if !isTime && lastMissedWindow(f.Gaps) < 0 {
		return nil
	}
	chain, beyond, err := p.documents.current()
	if err != nil || len(chain) == 0 {
		return err
	}
	p.join.resume(chain)
	if p.recheck = p.join.again; p.recheck != "" || !isTime {
		return nil
	}
	oldest := chain[len(chain)-1]
	latest, stalest := oldest, oldest
	for _, at := range slices.Concat(chain, beyond) {
		if at.read.After(latest.read) {
			latest = at
		}
		if at.read.Before(stalest.read) {
			stalest = at
		}
	}
	if p.recheck = oldest.url; latest.url == oldest.url {
		p.recheck = stalest.url
	}
	f.Looked = p.now
	return nil
}

// reread notes an archive requested again and unchanged.
func (cs *commits) reread(d *DocumentRecord, now time.Time) {
	d = d.clone()
	d.Read, d.Last = now, cs.feed.Polls
	cs.hold()
	cs.held.Documents = append(cs.held.Documents, d)
}

// noteChecked records since when each archive of the chain has been read.
func (p *poll) noteChecked(changed bool) error {
	f := p.feed
	if f.Kind != feedhistory.Archived {
		f.Looked, f.Checked = time.Time{}, time.Time{}
		return nil
	}
	if f.Looked.IsZero() || p.m.Revalidate && !p.cut {
		f.Looked = p.now
	}
	if !changed && p.recheck == "" && !p.m.Revalidate && !f.Checked.IsZero() {
		return nil
	}
	chain, beyond, err := p.documents.current()
	if err != nil {
		return err
	}
	f.Checked = time.Time{}
	for _, at := range slices.Concat(chain, beyond) {
		if f.Checked.IsZero() || at.read.Before(f.Checked) {
			f.Checked = at.read
		}
	}
	return nil
}

// current returns the processed archives of the chain from the subscription document,
// newest first, and those beyond it to which its links lead against their marks.
func (ds *documents) current() (chain, beyond []step, err error) {
	steps, err := ds.steps()
	if err != nil {
		return nil, nil, err
	}
	seen, further := map[string]bool{}, ds.feed.Further
	follow := func(url string) (followed []step) {
		for url != "" {
			at, ok := steps[url]
			if !ok || seen[at.url] {
				break
			}
			seen[at.url] = true
			older := at.older
			at.url = url // which may have changed since the document was read
			followed, further = append(followed, at), append(further, at.further...)
			url = older
		}
		return followed
	}
	chain = follow(ds.feed.Known.Older)
	for i := 0; i < len(further); i++ {
		beyond = append(beyond, follow(further[i])...)
	}
	return chain, beyond, nil
}
