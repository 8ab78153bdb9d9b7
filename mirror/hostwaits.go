package mirror

import (
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtime"
	"github.com/feedhistory/feedhistory/internal/fetch"
)

// hostWaits records until when hosts ask to be left alone (Retry-After).
type hostWaits struct {
	feed  *Feed
	now   time.Time            // when the poll began
	until map[string]time.Time // by host, in this poll
}

// asked returns, for the error of a request, until when the host asks to be left
// alone, and the host's name. The time is zero if it does not ask.
func (w *hostWaits) asked(err error) (until time.Time, host string) {
	status, ok := errors.AsType[*feedhistory.StatusError](err)
	if !ok || !status.At.After(w.now) {
		return time.Time{}, ""
	}
	return status.At, fetch.HostOf(status.URL)
}

// at returns until when the host of a URL asks to be left alone, in this poll or
// before; the zero time if it does not.
func (w *hostWaits) at(url string) time.Time {
	host := fetch.HostOf(url)
	until := w.until[host]
	for _, pending := range w.feed.Pending {
		if fetch.HostOf(pending.URL) == host && isAsked(pending.Wait, w.now) {
			until = feedtime.Later(until, pending.Wait)
		}
	}
	return until
}

// waitFor handles the error of a request for an archive or a page. If the host asks to
// be left alone, the wait is for every pending document on this host, and for the feed
// if it is requested there.
func (p *poll) waitFor(err error) {
	f := p.feed
	until, host := p.waits.asked(err)
	if until.IsZero() {
		return
	}
	own := []string{f.address(), p.request.url, f.Known.URL}
	if slices.ContainsFunc(own, func(url string) bool { return fetch.HostOf(url) == host }) {
		f.Wait = feedtime.Later(f.Wait, until)
	}
	p.waits.until[host] = feedtime.Later(p.waits.until[host], until)
	p.commits.hold()
	for i := range f.Pending {
		f.Pending[i].Wait = feedtime.Later(f.Pending[i].Wait, p.waits.at(f.Pending[i].URL))
	}
}
