package mirror

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/fetch"
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

// ErrWaits is found in the Failure of a poll without a request, because the feed's host
// has asked to be left alone until Feed.Wait (Retry-After).
var ErrWaits = errors.New("the host asks to be left alone")

func (f *Feed) waitError(until time.Time) error {
	return fmt.Errorf("%s: %w until %s", f.URL, ErrWaits, until.UTC().Format(time.RFC3339))
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
// last commit of an unfinished poll is less than a minute old, and no host has asked
// meanwhile to be left alone. Polling the feed anyway does no harm, but one of the two
// mirrors gives way with ErrConflict.
func (f *Feed) underWay(now time.Time) bool {
	since := now.Sub(f.Next)
	return f.Unfinished && !f.Waits(now) && since < underWay && since > -underWay
}

// Waits reports whether the feed's host has asked to be left alone until after
// now.
func (f *Feed) Waits(now time.Time) bool { return isAsked(f.Wait, now) }

// isAsked reports whether a host wants to be left alone until a time still to come. A
// time more than a day ahead (longestAsk) cannot be a Retry-After.
func isAsked(until, now time.Time) bool {
	return until.After(now) && !until.After(now.Add(longestAsk+clockError))
}

// A due is when the feed is due again after the poll.
type due struct {
	*session
	waits   *hostWaits
	update  bool      // the poll is an Update, which requests the subscription document
	ready   time.Time // when the next one is welcome
	unended bool      // an earlier poll has still not finished
	spent   bool      // the budget has left a known archive unasked
}

// later returns when the feed is due again, given the time it asks for.
func (s *session) later(asked time.Time) time.Time {
	return feedtime.Later(asked, s.now.Add(s.m.every()))
}

// respected is the longest wait for which a feed may ask, even if its window fills meanwhile.
const respected = 6 * time.Hour

// inTime returns the time for which a feed asks, or an earlier one, at which its entries are
// probably half replaced.
func (d *due) inTime(asked time.Time) time.Time {
	if span := d.ledger.Pace; span > 0 && asked.Sub(d.now) > respected {
		if filled := d.now.Add(max(respected, span/2)); filled.Before(asked) {
			return filled
		}
	}
	return asked
}

// notEnded marks the poll as unfinished in the next committed state, with the time of its
// last commit. It does not change a feed never polled: its other source decides when it is
// due.
func (d *due) notEnded(next time.Time) {
	if d.update || d.ledger.Known.URL != "" {
		d.feed.Unfinished, d.feed.Next = true, next
	}
}

// ended sets when the next poll is welcome.
func (d *due) ended(failure error) {
	f := d.feed
	f.Unfinished = d.unended
	if d.update {
		f.More = d.changes.More && (d.spent || f.leaves())
		if f.More && d.changes.Documents > 0 {
			d.ready = d.now.Add(min(d.m.every(), budgetPause))
		} else if at, ok := d.retry(); ok && failure == nil && at.Before(d.ready) {
			d.ready = at
		}
	}
	if soon := d.now.Add(min(d.m.every(), budgetPause)); !d.update && d.changes.More { // a source has brought documents
		f.More = true
		if soon.Before(d.ready) {
			d.ready = soon
		}
	}
	f.Next = feedtime.Later(d.ready, f.Wait)
}

// leaves reports whether the Budget has left something unread.
func (f *Feed) leaves() bool {
	return f.Ledger.l.owes(func(d debt) bool { return d.isDocument() && d.Reason == feedhistory.ReasonBudget })
}

// retry returns when to request again the documents whose failure may pass. They need
// not wait until the subscription document is stale. ok is false if there are none.
func (d *due) retry() (at time.Time, ok bool) {
	for _, o := range d.ledger.Debts {
		next := d.now.Add(d.m.every())
		switch {
		case !o.isDocument():
			isNetwork := slices.Contains([]feedhistory.Reason{feedhistory.ReasonNetwork, feedhistory.ReasonTruncated, feedhistory.ReasonInterrupted}, o.Reason)
			if !isNetwork || o.Poll != d.feed.Polls {
				continue
			}
		case !o.isPassing():
			continue
		default:
			wait := max(d.m.every(), backoff(d.m.every(), o.Tries, 24*time.Hour))
			next = feedtime.Later(d.now.Add(wait), o.Wait)
		}
		if !ok || next.Before(at) {
			at, ok = next, true
		}
	}
	return at, ok
}

// backoff doubles a wait with each try, up to a limit.
func backoff(wait time.Duration, tries int, limit time.Duration) time.Duration {
	for ; tries > 1 && wait < limit; tries-- {
		wait *= 2
	}
	return min(wait, limit)
}

// hostWaits records until when hosts ask to be left alone (Retry-After).
type hostWaits struct {
	feed  *Feed
	m     *Mirror
	now   time.Time            // when the poll began
	until map[string]time.Time // by host, in this poll
}

// asked returns, for the error of a request, until when the host asks to be left
// alone, and the host's name. The time is zero if it does not ask.
func (w *hostWaits) asked(err error) (until time.Time, host string) {
	failed, ok := errors.AsType[*feedhistory.FetchError](err)
	if !ok || failed.RetryAt.IsZero() {
		return time.Time{}, ""
	}
	if until = w.m.byNow(failed.RetryAt); !until.After(w.now) {
		return time.Time{}, ""
	}
	return until, fetch.HostOf(failed.URL)
}

// at returns until when the host of a URL asks to be left alone, in this poll or
// before; the zero time if it does not.
func (w *hostWaits) at(url string) time.Time {
	host := fetch.HostOf(url)
	until := w.until[host]
	for _, d := range w.feed.Ledger.l.Debts {
		if isAsked(d.Wait, w.now) && fetch.HostOf(d.URL) == host {
			until = feedtime.Later(until, d.Wait)
		}
	}
	return until
}

// waitFor handles the error of a request for an archive or a page of the requested feed.
func (d *due) waitFor(err error, requested string) {
	if until, host := d.waits.asked(err); !until.IsZero() {
		d.waits.leaveAlone(requested, host, until)
		d.commits.hold()
	}
}

// leaveAlone keeps a wait a host asks for: for every pending document on this host, for the
// feed if it is requested there, and for the address from which it has moved.
func (w *hostWaits) leaveAlone(requested, host string, until time.Time) {
	f := w.feed
	if own := w.own(requested); slices.ContainsFunc(own, func(url string) bool { return fetch.HostOf(url) == host }) {
		f.Wait = feedtime.Later(f.Wait, until)
	}
	w.until[host] = feedtime.Later(w.until[host], until)
	if m := f.Ledger.l.Move; m != nil && fetch.HostOf(f.URL) == host {
		m = clone(m)
		m.Wait, f.Ledger.l.Move = feedtime.Later(m.Wait, until), m
	}
	for i := range f.Ledger.l.Debts {
		if d := &f.Ledger.l.Debts[i]; d.isDocument() {
			d.Wait = feedtime.Later(d.Wait, w.at(d.URL))
		}
	}
}

// heed keeps the waits that hosts have asked for in answers a walk of the requested feed did
// not need, and reports whether there are any.
func (w *hostWaits) heed(requested string, client *feedhistory.Client) (found bool) {
	urls := w.own(requested)
	for _, d := range w.feed.Ledger.l.Debts {
		if d.isDocument() {
			urls = append(urls, d.URL)
		}
	}
	for _, url := range urls {
		host := fetch.HostOf(url)
		until := client.Wait(url)
		if until.IsZero() {
			continue
		}
		if until = w.m.byNow(until); until.After(w.now) && until.After(w.until[host]) {
			w.leaveAlone(requested, host, until)
			found = true
		}
	}
	return found
}

// own returns the URLs of the subscription document.
func (w *hostWaits) own(requested string) []string {
	return []string{w.feed.address(), requested, w.feed.Ledger.l.Known.URL}
}
