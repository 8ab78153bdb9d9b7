package fetch

import (
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// How many hosts are remembered before idle ones are looked for, and how many
// that are idle but not free yet are kept at most. The latter only matters
// where thousands of hosts ask to be left alone at once.
const (
	fewHosts  = 256
	manyHosts = 1 << 14
)

// hosts is what a client remembers of the hosts it talks to.
type hosts struct {
	mu      sync.Mutex
	byName  map[string]*host
	sweepAt int // size of byName at which to sweep
}

// host is one of them. Fields after slots and pace belong to hosts.mu.
type host struct {
	slots chan struct{}                // one for each request in flight
	pace  atomic.Pointer[rate.Limiter] // nil: no pause

	users  int       // goroutines that hold or await a slot
	until  time.Time // the host asked to be left alone until then
	status int       // the answer by which it did
}

// HostOf returns the name of a URL's host, by which politeness goes; of what is
// no URL, that itself.
func HostOf(address string) string {
	u, err := ParseLeniently(address)
	if err != nil || u.Host == "" {
		return address
	}
	return hostName(u)
}

// hostName is the key of a host. http and https share one on their own ports;
// other ports are other servers.
func hostName(u *url.URL) string {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && port != "80" && port != "443" {
		name += ":" + port
	}
	return name
}

// use finds or makes a host and counts one more user, until leave. Of clients
// that ask for different paces, the slowest holds for all; the number of slots is
// that of whoever asks first.
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

// leaveAlone notes that a host wants no request before until.
func (hs *hosts) leaveAlone(h *host, until time.Time, status int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if until.After(h.until) {
		h.until, h.status = until, status
	}
}

// asked tells until when a host wants no request, and by which status it said so.
func (hs *hosts) asked(h *host) (time.Time, int) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return h.until, h.status
}

// add makes room before it adds. Sweeping when the number has doubled keeps
// the cost of an addition constant.
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

// sweep forgets hosts of which there is nothing to remember, and if there are
// still too many, any that are not in use.
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
