package fetch

import (
	"cmp"
	"time"
)

// The defaults of those limits that reading a document has, too.
const (
	DefaultBytes = 16 << 20
	DefaultURL   = 8 << 10
)

const (
	maxHeader = 64 << 10 // the size of all headers of an answer in bytes
	ratioFree = 1 << 20  // the decoded bytes before Ratio applies: that of small documents says little
)

func (c *Client) maxBytes() int64 { return min(cmp.Or(c.Bytes, DefaultBytes), 1<<60) } // no sum overflows
func (c *Client) maxRatio() int64 { return int64(cmp.Or(c.Ratio, 200)) }
func (c *Client) maxURL() int     { return cmp.Or(c.URL, DefaultURL) }

// maxWire limits the encoded bytes of a body: without it, a stream decoding to nothing
// would continue until the timeout. An incompressible document is a little longer
// encoded than decoded, hence the allowance.
func (c *Client) maxWire() int64 { return c.maxBytes() + c.maxBytes()/16 + 4096 }

func (c *Client) connect() time.Duration { return cmp.Or(c.Connect, 5*time.Second) }
func (c *Client) tls() time.Duration     { return cmp.Or(c.TLS, 10*time.Second) }
func (c *Client) headers() time.Duration { return cmp.Or(c.Headers, 20*time.Second) }
func (c *Client) body() time.Duration    { return cmp.Or(c.Body, 60*time.Second) }
func (c *Client) idle() time.Duration    { return cmp.Or(c.Idle, 15*time.Second) }

func (c *Client) maxWait() time.Duration { return max(cmp.Or(c.MaxWait, 30*time.Second), 0) }
