package quote

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd…", "abcé": "abc…", "äöü": "äö…"} {
		require.Equal(t, want, Clip(text, 4), text)
	}
}
