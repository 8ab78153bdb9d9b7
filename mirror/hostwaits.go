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

// waitFor handles the error of a request for an archive or a page.
func (p *poll) waitFor(err error) {
	if until, host := p.waits.asked(err); !until.IsZero() {
		p.waits.leaveAlone(p.request.url, host, until)
		p.commits.hold()
	}
}

// leaveAlone keeps a wait a host asks for: for every pending document on this host, and for
// the feed if it is requested there.
func (w *hostWaits) leaveAlone(requested, host string, until time.Time) {
	f := w.feed
	if own := w.own(requested); slices.ContainsFunc(own, func(url string) bool { return fetch.HostOf(url) == host }) {
		f.Wait = feedtime.Later(f.Wait, until)
	}
	w.until[host] = feedtime.Later(w.until[host], until)
	for i := range f.Pending {
		f.Pending[i].Wait = feedtime.Later(f.Pending[i].Wait, w.at(f.Pending[i].URL))
	}
}

// heed keeps the waits that hosts have asked for in answers a walk of the requested feed did
// not need, and reports whether there are any.
func (w *hostWaits) heed(requested string, client *feedhistory.Client) (found bool) {
	urls := w.own(requested)
	for _, pending := range w.feed.Pending {
		urls = append(urls, pending.URL)
	}
	for _, url := range urls {
		host := fetch.HostOf(url)
		if until := client.Wait(url); until.After(w.now) && until.After(w.until[host]) {
			w.leaveAlone(requested, host, until)
			found = true
		}
	}
	return found
}

// own returns the URLs of the subscription document.
func (w *hostWaits) own(requested string) []string {
	return []string{w.feed.address(), requested, w.feed.Known.URL}
}
