package xmlscan

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every control character is found, wherever it is and whatever surrounds it.
func TestControl(t *testing.T) {
	const n = 40
	for c := range 256 {
		for at := range n {
			for _, around := range []byte{'a', '\n', '\t', ' ', 0x1f + 1, 0x7f, 0x80, 0x89, 0x8a, 0x9f, 0xff} {
				b := bytes.Repeat([]byte{around}, n)
				b[at] = byte(c)
				want := n
				if c < ' ' && c != '\t' && c != '\n' {
					want = at
				}
				require.Equal(t, want, control(string(b), 0), "%d at %d among %d", c, at, around)
				require.Equal(t, n, control(string(b), at+1))
			}
		}
	}
}
