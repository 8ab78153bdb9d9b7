package sqlstore

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A checksum of a row finds changed bytes in the file. It does not depend on how a
// database stores a value. Zero means unknown: the row is older than checksums.

// A summer makes checksums. The zero value is ready to use.
type summer struct{ buffer []byte }

// of returns the checksum of values, which are those of columns in their order.
func (s *summer) of(lists ...[]any) int64 {
	b := s.buffer[:0]
	for _, values := range lists {
		for _, v := range values {
			b = appendValue(b, v)
		}
	}
	s.buffer = b
	sum := int64(int32(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
	if sum == 0 {
		return 1
	}
	return sum
}

// ofCopy returns the checksum of copyColumns. Rows from before there was a source have the
// checksum of the columns before it, as do those without one.
func (s *summer) ofCopy(key, values []any) int64 {
	if n := len(values) - 1; values[n] == "" {
		values = values[:n]
	}
	return s.of(key, values)
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(binary.AppendUvarint(append(b, 's'), uint64(len(v))), v...)
	case int64:
		return binary.AppendVarint(append(b, 'i'), v)
	case bool:
		if v {
			return appendValue(b, int64(1))
		}
		return appendValue(b, int64(0))
	case sql.NullString:
		if v.Valid {
			return appendValue(b, v.String)
		}
		return append(b, 'n')
	case nil:
		return append(b, 'n')
	}
	return fmt.Appendf(append(b, '?'), "%T %v", v, v) // equals nothing stored
}
