package iri

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEscape checks that valid text stays, and that escapes mean the same bytes.
func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "",
		"/a-._~!$&'()*+,;=": "/a-._~!$&'()*+,;=",
		"/%e9%E9%2f":        "/%e9%E9%2f",
		"100%":              "100%25",
		"%4%44%zz%%41":      "%254%44%25zz%25%41",
		"a b\x00\x7f\xff":   "a%20b%00%7F%FF",
		"[]|^\\\"<>`{}":     "[]%7C%5E%5C%22%3C%3E%60%7B%7D",
	} {
		require.Equal(t, want, Escape(in))
		require.Equal(t, want, Escape(want))
	}
}
