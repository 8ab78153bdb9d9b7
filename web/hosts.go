package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
)

// isAddressed reports whether a request is meant for this server. A name that
// somebody else has made lead here is none of its own: through it a website
// could read, as a browser takes it for the website itself (DNS rebinding).
// Addresses are nobody's names, but without a Token only this machine's own
// users may change anything.
func (s *Server) isAddressed(r *http.Request) bool {
	host := hostName(r.Host)
	if base, err := url.Parse(s.base()); err == nil && hostName(base.Host) == host {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || s.Token != ""
	}
	return IsLocal(host) || slices.Contains(ownNames(), host) ||
		slices.ContainsFunc(s.Names, func(name string) bool { return host != "" && hostName(name) == host })
}

// hostName returns a host in lower case, without a port, brackets, a zone or
// the dot of a name's root.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host, _, _ = strings.Cut(strings.Trim(host, "[]"), "%")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ownNames are those of this machine: its host name, with the domain if it has
// one, without it, and in the local network (RFC 6762).
var ownNames = sync.OnceValue(func() []string {
	name, err := os.Hostname()
	if name = hostName(name); err != nil || name == "" {
		return nil
	}
	short, _, _ := strings.Cut(name, ".")
	return []string{name, short, short + ".local"}
})

// IsLocal reports whether a host, with or without a port, is this machine
// itself: localhost or a loopback address.
func IsLocal(host string) bool {
	name := hostName(host)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.IsLoopback()
}

// How many streams of events there are at the same time. Browsers have six
// connections to a server, and need some of them for other things.
const (
	mostWatched = 3   // of one visitor
	mostStreams = 100 // of all visitors
)

// Watchers are the visitors who have streams of events.
type watchers struct {
	mu  sync.Mutex
	all int
	of  map[netip.Prefix]int // by address; of IPv6, by network
}

// enter lets a visitor have one more stream, until leave is called.
func (w *watchers) enter(r *http.Request) (leave func(), ok bool) {
	visitor := visitorOf(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= mostStreams || w.of[visitor] >= mostWatched {
		return nil, false
	}
	if w.of == nil {
		w.of = map[netip.Prefix]int{}
	}
	w.all++
	w.of[visitor]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all--
		if w.of[visitor]--; w.of[visitor] == 0 {
			delete(w.of, visitor)
		}
	}, true
}

// visitorOf returns where a request comes from: an address or, as everybody has
// many in IPv6, a network.
func visitorOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap(), 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.WithZone("").Prefix(bits)
	return prefix
}
