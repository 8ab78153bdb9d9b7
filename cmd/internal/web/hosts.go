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

// isAddressed reports whether a request is meant for this server. If another website's
// name leads here, a browser lets the website read the answers (DNS rebinding), so such
// a name is refused. IP addresses belong to no website; but without a Token only
// loopback addresses are accepted, so only users of this machine may change anything.
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

// hostName returns a host in lower case, without a port, brackets, a zone or a
// final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host, _, _ = strings.Cut(strings.Trim(host, "[]"), "%")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ownNames are the names of this machine: its host name with and without the
// domain, and in the local network (RFC 6762).
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

// The maximum numbers of event streams at the same time. Browsers have six
// connections to a server, and need some of them for other things.
const (
	mostWatched = 3   // of one visitor
	mostStreams = 100 // of all visitors
)

// watchers are the visitors with event streams.
type watchers struct {
	mu  sync.Mutex
	all int
	of  map[netip.Prefix]int // by address; for IPv6, by network
}

// enter starts one more stream of a visitor, which lasts until leave is called.
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

// visitorOf returns where a request comes from: an address or, for IPv6, a
// network, because everybody has many IPv6 addresses.
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
