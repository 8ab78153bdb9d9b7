package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                    "plain",
		" a\r\n\tb\u00a0c\u2028d ": "a b c d",
		"\x1b[31mred\x07":          "\ufffd[31mred\ufffd",
		"c1 \u009b2J":              "c1 \ufffd2J",
		"\u202egnp.exe\u2066":      "gnp.exe",
		"bad \xff\xfe":             "bad \ufffd\ufffd",
		"👩‍👩‍👧 family":             "👩‍👩‍👧 family",
	} {
		require.Equal(t, want, Clean(text), "%q", text)
	}
}

func TestJSON(t *testing.T) {
	require.Equal(t, `"\u007f \u009b \u202e é <&>"`, string(JSON([]byte("\"\x7f \u009b \u202e é <&>\""))))
	require.Equal(t, `"plain"`, string(JSON([]byte(`"plain"`))))
}
