package fetch

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// A gunzip decodes all members of a gzip stream (RFC 1952 §2.2). It does not read past
// the last member, where some servers pad with zeros: the checksum has proved the
// stream complete.
type gunzip struct {
	src bufio.Reader
	z   gzip.Reader
}

// errTrailing is the error at the end of a complete stream with something else after it.
var errTrailing = errors.New("something follows the encoded stream")

// reset sets the source of the stream, and reads the header of its first member.
func (g *gunzip) reset(src io.Reader) error {
	g.src.Reset(src)
	return noEOF(g.member())
}

// member reads the header of the next member.
func (g *gunzip) member() error {
	err := g.z.Reset(&g.src)
	g.z.Multistream(false)
	return err
}

// release drops the source, so a pool holds no body.
func (g *gunzip) release() { g.src.Reset(http.NoBody) }

// Read reads decoded bytes.
func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the next Read returns the end
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// next starts the next member; it returns io.EOF or errTrailing if there is none.
func (g *gunzip) next() error {
	const magic = "\x1f\x8b\x08"
	begin, err := g.src.Peek(len(magic))
	switch {
	case len(begin) == 0:
		return err
	case !strings.HasPrefix(magic, string(begin)):
		return errTrailing
	}
	return noEOF(g.member())
}
