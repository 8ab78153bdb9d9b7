package publish

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// A Position is a place between entries: just after the entry it names, in the order of
// a PageFunc. The zero value is the newest end.
//
// In SQL, the entries beyond it are WHERE (updated, id) < (?, ?) ORDER BY
// updated DESC, id DESC. A log with a different order can look its position up
// by the ID.
type Position struct {
	Updated time.Time
	ID      string
}

// IsZero reports whether the place is the newest end.
func (c Position) IsZero() bool { return c.ID == "" && c.Updated.IsZero() }

// errToken is the answer to a request with an invalid token.
var errToken = errors.New("this is not the address of a page; begin with the first page")

const tokenVersion = 1

// maxToken is the maximum size to decode: an id of 4 KiB, and the rest of a token.
const maxToken = 6 << 10

// token encodes a place for a URL: a version, seconds, nanoseconds and the id, with a
// checksum to reveal addresses which were cut or mistyped. A token is no secret, and
// gives access to nothing.
func (c Position) token() string {
	b := []byte{tokenVersion}
	b = binary.BigEndian.AppendUint64(b, uint64(c.Updated.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Updated.Nanosecond()))
	b = append(b, c.ID...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseToken decodes a token.
func parseToken(token string) (c Position, err error) {
	if len(token) > maxToken {
		return c, errToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < 1+8+4+1+4 || b[0] != tokenVersion {
		return c, errToken
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	nanos := binary.BigEndian.Uint32(b[9:])
	if crc32.ChecksumIEEE(b) != sum || nanos >= 1e9 {
		return c, errToken
	}
	c.Updated = time.Unix(int64(binary.BigEndian.Uint64(b[1:])), int64(nanos)).UTC()
	c.ID = string(b[13:])
	return c, nil
}
