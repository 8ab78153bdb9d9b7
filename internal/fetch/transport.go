package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// newTransport makes the built-in transport. It has no Proxy: a proxy from the environment
// would resolve names itself, and so bypass the rule on addresses. It does not
// decompress, because the ratio needs the sizes before and after.
func (c *Client) newTransport() *http.Transport {
	d := dialer{dial: c.dial, roots: c.roots, connect: c.connect(), tls: c.tls()}
	if d.dial == nil {
		d.dial = c.netDialer().DialContext
	}
	return &http.Transport{
		DialContext:            d.plain,
		DialTLSContext:         d.secure,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    c.perHost(),
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		// Without a ping, a silently dead connection would cost every request to its host a
		// timeout.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	}
}

// netDialer checks each address after its name has been resolved and immediately before
// it is dialled, so no second answer of a name server can come between.
func (c *Client) netDialer() *net.Dialer {
	d := &net.Dialer{Resolver: c.resolver, Control: c.control}
	if d.Control == nil && !c.AllowPrivate {
		d.Control = Guard()
	}
	return d
}

// Guard returns a [net.Dialer.Control] to refuse loopback, private and special-purpose
// addresses, and those of the metadata of clouds. It allows any port, because feeds are
// served from unusual ports as well.
func Guard() func(network, address string, conn syscall.RawConn) error {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(clouds...)).Safe
}

// clouds are the public addresses at which machines of a cloud find their own
// configuration: those of Azure and Equinix Metal. Other clouds use link-local, shared or
// private addresses.
var clouds = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.80.8.124/32"),
}

func (c *Client) perHost() int { return max(cmp.Or(c.PerHost, 4), 1) }

// A dialer adds timeouts to connecting and to the handshake.
type dialer struct {
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	roots        *x509.CertPool // nil means the system's
	connect, tls time.Duration
}

func (d dialer) plain(ctx context.Context, network, address string) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, d.connect)
	defer cancel()
	conn, err := d.dial(limited, network, address)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &Failure{Kind: Timeout, Name: "connect", Max: int64(d.connect)}
	}
	return conn, err
}

func (d dialer) secure(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	plain, err := d.plain(ctx, network, address)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, d.tls)
	defer cancel()
	conn := tls.Client(plain, &tls.Config{
		ServerName: host,
		RootCAs:    d.roots,
		NextProtos: []string{"h2", "http/1.1"},
	})
	if err := conn.HandshakeContext(limited); err != nil {
		plain.Close()
		if limited.Err() != nil && ctx.Err() == nil {
			err = &Failure{Kind: Timeout, Name: "tls", Max: int64(d.tls)}
		}
		return nil, err
	}
	return conn, nil
}
