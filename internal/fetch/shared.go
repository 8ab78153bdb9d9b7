package fetch

import (
	"net/http"
	"sync"
	"time"
)

// Shared makes several Clients polite together. Its zero value is ready to use; do not
// copy it.
type Shared struct {
	hosts hosts
	gzips sync.Pool // of *gunzip
	zstds sync.Pool // of *zstd.Decoder

	mu         sync.Mutex
	transports map[transportKey]*http.Transport
}

// A transportKey has a Client's settings for its transport.
type transportKey struct {
	allowPrivate bool
	connect, tls time.Duration
	perHost      int
}

func (c *Client) shared() *Shared {
	if c.Shared != nil {
		return c.Shared
	}
	return &c.own
}

// roundTripper returns the transport for requests.
func (c *Client) roundTripper() http.RoundTripper {
	c.once.Do(func() {
		if c.wrapped = c.inner(); c.Wrap != nil {
			c.wrapped = c.Wrap(c.wrapped)
		}
	})
	return c.wrapped
}

// inner returns the caller's transport, or the built-in one.
func (c *Client) inner() http.RoundTripper {
	if c.Transport != nil {
		return c.Transport
	}
	key := transportKey{c.AllowPrivate, c.connect(), c.tls(), c.perHost()}
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
