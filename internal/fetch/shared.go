package fetch

import (
	"net/http"
	"sync"
	"time"
)

// Shared is what Clients share that are polite together. Its zero value is ready to use;
// do not copy it.
type Shared struct {
	hosts hosts
	gzips sync.Pool // of *gunzip
	zstds sync.Pool // of *zstd.Decoder

	mu         sync.Mutex
	transports map[transportKey]*http.Transport
}

// A transportKey has the settings of a Client that affect its transport.
type transportKey struct {
	allowPrivate bool
	connect, tls time.Duration
	perHost      int
	header       int64
}

func (c *Client) shared() *Shared {
	if c.Shared != nil {
		return c.Shared
	}
	return &c.own
}

// roundTripper returns the transport for requests: the caller's, or the built-in one.
func (c *Client) roundTripper() http.RoundTripper {
	if c.HTTP != nil && c.HTTP.Transport != nil {
		return c.HTTP.Transport
	}
	key := transportKey{c.AllowPrivate, c.Timeouts.connect(), c.Timeouts.tls(), c.perHost(), c.Limits.header()}
	s := c.shared()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transports[key]
	if t == nil {
		if s.transports == nil {
			s.transports = make(map[transportKey]*http.Transport)
		}
		t = c.newTransport()
		s.transports[key] = t
	}
	return t
}
