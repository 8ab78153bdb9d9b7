package fetch

import (
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"golang.org/x/time/rate"
)

// The number of hosts remembered before idle ones are dropped, and the maximum number
// of idle hosts still asking clients to wait, which matters only if thousands do so at
// once.
const (
	fewHosts  = 256
	manyHosts = 1 << 14
)

// hosts is a client's memory of hosts.
type hosts struct {
	mu      sync.Mutex
	byName  map[string]*host
	sweepAt int // the size of byName at which to sweep
}

// host is one of these. Its fields after slots and pace are guarded by hosts.mu.
type host struct {
	slots chan struct{}                // one for each request in flight
	pace  atomic.Pointer[rate.Limiter] // nil means no pause

	users  int       // the number of goroutines holding or awaiting a slot
	until  time.Time // the time until which the host asks clients to wait
	status int       // the status of the answer asking for it
}

// HostOf returns the name of a URL's host, as politeness counts hosts. If the URL is not
// valid, it returns the URL.
func HostOf(address string) string {
	u, err := iri.ParseLeniently(address)
	if err != nil || u.Host == "" {
		return address
	}
	return hostName(u)
}

// hostName returns the key of a host. http and https share one on their default ports;
// other ports are other servers.
func hostName(u *url.URL) string {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		name += ":" + port
	}
	return name
}

// use finds or creates a host, and counts one more user until leave. If clients ask for
// different paces, the slowest applies; the number of slots is that of the host's first
// client.
func (hs *hosts) use(name string, slots int, pace time.Duration) *host {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.byName[name]
	if h == nil {
		h = &host{slots: make(chan struct{}, slots)}
		hs.add(name, h)
	}
	switch every, now := rate.Every(pace), h.pace.Load(); {
	case pace > 0 && now == nil:
		h.pace.Store(rate.NewLimiter(every, 1))
	case pace > 0 && every < now.Limit():
		now.SetLimit(every)
	}
	h.users++
	return h
}

func (hs *hosts) leave(h *host) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.users--
}

// leaveAlone records a host's request for a wait until then.
func (hs *hosts) leaveAlone(h *host, until time.Time, status int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if until.After(h.until) {
		h.until, h.status = until, status
	}
}

// asked returns until when a host wants no request, and the status of its answer.
func (hs *hosts) asked(h *host) (time.Time, int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return h.until, h.status
}

// add makes room before it adds a host. Sweeping when the number has doubled keeps the
// cost of an addition constant.
func (hs *hosts) add(name string, h *host) {
	if len(hs.byName) >= max(hs.sweepAt, fewHosts) {
		hs.sweep(time.Now())
		hs.sweepAt = 2 * len(hs.byName)
	}
	if hs.byName == nil {
		hs.byName = make(map[string]*host)
	}
	hs.byName[name] = h
}

// sweep drops hosts with nothing to remember and, if too many are left, any not in use.
func (hs *hosts) sweep(now time.Time) {
	for name, h := range hs.byName {
		if h.idle(now) {
			delete(hs.byName, name)
		}
	}
	for name, h := range hs.byName {
		if len(hs.byName) <= manyHosts/2 {
			break
		}
		if h.users == 0 {
			delete(hs.byName, name)
		}
	}
}

func (h *host) idle(now time.Time) bool {
	pace := h.pace.Load()
	return h.users == 0 && !h.until.After(now) && (pace == nil || pace.TokensAt(now) >= 1)
}
