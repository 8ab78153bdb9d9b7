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
	if until, host := p.waits.asked(err); !until.IsZero() {
		p.leaveAlone(host, until)
	}
}

// heed handles the waits hosts have asked for in answers the walk did not need.
func (p *poll) heed(client *feedhistory.Client) {
	urls := p.own()
	for _, pending := range p.feed.Pending {
		urls = append(urls, pending.URL)
	}
	for _, url := range urls {
		host := fetch.HostOf(url)
		if until := client.Wait(url); until.After(p.now) && until.After(p.waits.until[host]) {
			p.leaveAlone(host, until)
		}
	}
}

// own returns the URLs of the subscription document.
func (p *poll) own() []string { return []string{p.feed.address(), p.request.url, p.feed.Known.URL} }

func (p *poll) leaveAlone(host string, until time.Time) {
	f := p.feed
	if own := p.own(); slices.ContainsFunc(own, func(url string) bool { return fetch.HostOf(url) == host }) {
		f.Wait = feedtime.Later(f.Wait, until)
	}
	p.waits.until[host] = feedtime.Later(p.waits.until[host], until)
	p.commits.hold()
	for i := range f.Pending {
		f.Pending[i].Wait = feedtime.Later(f.Pending[i].Wait, p.waits.at(f.Pending[i].URL))
	}
}
