package mirror

import (
	"fmt"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
)

const (
	// budgetPause is the time from a poll that has spent its Budget to the next one;
	// Mirror.Every if shorter.
	budgetPause = 5 * time.Minute

	// underWay is how recent the last commit of an unfinished walk must be for
	// the walk to count as under way.
	underWay = time.Minute

	// clockError is how much clocks may disagree. If a stored time is further in the
	// future, a wrong clock has set it.
	clockError = time.Hour
	longestAsk = 24 * time.Hour // the maximum Retry-After
)

// A WaitError reports a request Update has not made, because the feed's host has asked
// to be left alone for a while (Retry-After).
type WaitError struct {
	URL   string    // the feed's URL
	Until time.Time // when the feed may be requested again
}

// Error says until when the host wants to be left alone.
func (e *WaitError) Error() string {
	return fmt.Sprintf("%s: the host asks to be left alone until %s", e.URL, e.Until.UTC().Format(time.RFC3339))
}

// Due reports whether the feed is due: Next has passed, or an earlier poll has left
// something unread because it was cut short or its Budget was spent. A feed that is
// Gone or an Alias, or whose host has asked to be left alone, is not due.
func (f *Feed) Due(now time.Time) bool {
	switch {
	case f.Gone, f.Alias != "", f.Waits(now):
		return false
	case f.Unfinished, f.More:
		return true
	}
	return !f.Next.After(now) || f.Polled.After(now.Add(clockError)) // Polled in the future: the clock has been set back
}

// underWay reports whether another mirror seems to be at work on the feed: the
// last commit of an unfinished poll is less than a minute old. Polling the feed
// anyway does no harm, but one of the two mirrors gives way with ErrConflict.
func (f *Feed) underWay(now time.Time) bool {
	since := now.Sub(f.Next)
	return f.Unfinished && since < underWay && since > -underWay
}

// Waits reports whether the feed's host has asked to be left alone until after
// now.
func (f *Feed) Waits(now time.Time) bool { return isAsked(f.Wait, now) }

// isAsked reports whether a host wants to be left alone until a time still to come. A
// time more than a day ahead (longestAsk) cannot be a Retry-After.
func isAsked(until, now time.Time) bool {
	return until.After(now) && !until.After(now.Add(longestAsk+clockError))
}

// notEnded marks the poll as unfinished in the next committed state, with the time of its
// last commit. It does not change a feed never polled: its other source decides when it is
// due.
func (p *poll) notEnded(next time.Time) {
	if p.update || p.feed.Known.URL != "" {
		p.feed.Unfinished, p.feed.Next = true, next
	}
}

// ended sets when the next poll is welcome.
func (p *poll) ended() {
	f := p.feed
	f.Unfinished = p.unended
	if p.update {
		f.More = p.changes.More && f.leaves()
		if f.More && p.changes.Documents > 0 {
			p.ready = p.now.Add(min(p.m.every(), budgetPause))
		} else if at, ok := p.retry(); ok && at.Before(p.ready) {
			p.ready = at
		}
	}
	if soon := p.now.Add(min(p.m.every(), budgetPause)); !p.update && p.changes.More { // a source has brought documents
		f.More = true
		if soon.Before(p.ready) {
			p.ready = soon
		}
	}
	f.Next = feedtime.Later(p.ready, f.Wait)
}

// leaves reports whether the Budget has left something unread.
func (f *Feed) leaves() bool {
	for _, pending := range f.Pending {
		if pending.Reason == feedhistory.ReasonBudget {
			return true
		}
	}
	return f.Search != ""
}

// retry returns when to request again the documents whose failure may pass. They need
// not wait until the subscription document is stale. ok is false if there are none.
func (p *poll) retry() (at time.Time, ok bool) {
	if p.failure != nil {
		return time.Time{}, false
	}
	for _, pending := range p.feed.Pending {
		if !pending.isPassing() {
			continue
		}
		wait := max(p.m.every(), backoff(p.m.every(), pending.Tries, 24*time.Hour))
		if next := feedtime.Later(p.now.Add(wait), pending.Wait); !ok || next.Before(at) {
			at, ok = next, true
		}
	}
	for _, g := range p.feed.Gaps {
		next := p.now.Add(p.m.every())
		switch g.Reason {
		case feedhistory.ReasonNetwork, feedhistory.ReasonTruncated, feedhistory.ReasonInterrupted:
			if g.Poll == p.feed.Polls && (!ok || next.Before(at)) {
				at, ok = next, true
			}
		}
	}
	return at, ok
}

// isPassing reports whether the next try has a good chance to succeed.
func (p *PendingDocument) isPassing() bool {
	switch p.Reason {
	case feedhistory.ReasonRefused, feedhistory.ReasonLimit, feedhistory.ReasonLoop, feedhistory.ReasonBarren:
		return false
	}
	return !p.Missing
}

// backoff doubles a wait with each try, up to a limit.
func backoff(wait time.Duration, tries int, limit time.Duration) time.Duration {
	for ; tries > 1 && wait < limit; tries-- {
		wait *= 2
	}
	return min(wait, limit)
}
