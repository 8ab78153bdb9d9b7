package fetch

import (
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is how far back a zstd stream may refer, and so the memory it takes: as
// much as RFC 9659 allows for HTTP.
const maxWindow = 8 << 20

// contentEncoding returns "gzip", "zstd", or "" for a body without encoding. It returns
// false for any other encoding, which was not offered, and for several, which may be a
// bomb within a bomb.
func contentEncoding(h http.Header) (string, bool) {
	lines := h["Content-Encoding"]
	if len(lines) == 0 {
		return "", true
	}
	found := ""
	all := strings.Join(lines, ", ")
	for name := range strings.SplitSeq(all, ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "" || name == "identity":
		case found != "":
			return all, false
		case name == "x-gzip":
			found = "gzip"
		default:
			found = name
		}
	}
	return found, found == "" || found == "gzip" || found == "zstd"
}

// decoder takes a decoder for src from the pool of its kind; release returns it.
// Creating one may already read from src.
func (c *Client) decoder(encoding string, src io.Reader) (dec io.Reader, release func(), err error) {
	switch encoding {
	case "gzip":
		return c.gzip(src)
	case "zstd":
		return c.zstd(src)
	}
	return src, func() {}, nil
}

func (c *Client) gzip(src io.Reader) (io.Reader, func(), error) {
	g, _ := c.shared().gzips.Get().(*gunzip)
	if g == nil {
		g = new(gunzip)
	}
	release := func() {
		g.release()
		c.shared().gzips.Put(g)
	}
	if err := g.reset(src); err != nil {
		release()
		return nil, nil, err
	}
	return g, release, nil
}

func (c *Client) zstd(src io.Reader) (io.Reader, func(), error) {
	z, _ := c.shared().zstds.Get().(*zstd.Decoder)
	if z == nil {
		var err error
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, nil, err
		}
	}
	release := func() {
		z.Reset(nil)
		c.shared().zstds.Put(z)
	}
	if err := z.Reset(src); err != nil {
		release()
		return nil, nil, noEOF(err)
	}
	return z, release, nil
}

// noEOF makes the end of a stream unexpected before its beginning.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
