package fetch

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
)

// peekMost is the length of the longest head section whose links are followed early.
const peekMost = 1 << 20

// Text reads the body to its end, and returns it with its digest: it detects changes, but
// does not withstand forgery. In the meantime it calls peek, unless nil, with the bytes
// received so far, until peek returns false. Together with an error of the body, it
// returns the part before.
func (r *Response) Text(peek func(prefix string) bool) (text, digest string, err error) {
	var all strings.Builder
	if n, err := strconv.Atoi(r.Header.Get("Content-Length")); err == nil && n > 0 {
		all.Grow(min(n, peekMost))
	}
	sums, buf := newBodyDigest(), make([]byte, 32<<10)
	for next := 1; ; {
		n, err := r.Body.Read(buf)
		sums.add(buf[:n])
		all.Write(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return all.String(), sums.String(), nil
		case err != nil:
			return all.String(), sums.String(), err
		}
		if n := all.Len(); peek != nil && n >= next {
			if next = n + n/4; n > peekMost || !peek(all.String()) {
				peek = nil
			}
		}
	}
}

// Digest returns the digest of a body.
func Digest(body string) string {
	d := newBodyDigest()
	d.add([]byte(body))
	return d.String()
}

// A bodyDigest is two checksums and the length of a body. It is computed while the
// body arrives, at the speed of memory.
type bodyDigest struct {
	castagnoli, ieee hash.Hash32
	length           int64
}

func newBodyDigest() *bodyDigest {
	return &bodyDigest{castagnoli: crc32.New(crc32.MakeTable(crc32.Castagnoli)), ieee: crc32.NewIEEE()}
}

// add adds the next bytes of the body.
func (d *bodyDigest) add(p []byte) {
	d.length += int64(len(p))
	_, _ = d.castagnoli.Write(p) // a hash does not fail
	_, _ = d.ieee.Write(p)
}

func (d *bodyDigest) String() string {
	return fmt.Sprintf("%x-%s", d.length, hex.EncodeToString(d.ieee.Sum(d.castagnoli.Sum(nil))))
}
