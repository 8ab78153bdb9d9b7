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

func TestHasSecret(t *testing.T) {
	for url, has := range map[string]bool{
		"https://example.org/feed?token=s3cret":               true,
		"https://example.org/feed?a=1&private_token=glft-12":  true,
		"https://example.org/feed?feedToken=abcd":             true,
		"https://example.org/feed?API-KEY=0123":               true,
		"https://example.org/feed?x;auth=abcd#f":              true,
		"https://example.org/feed?apikey=abcd":                true,
		"https://example.org/feed?TOKEN=%61bcd":               true,
		"https://example.org/feed?sid=0f0f":                   true,
		"https://example.org/feed?token=":                     false,
		"https://example.org/feed?token":                      false,
		"https://example.org/feed?key=go":                     false, // too short for a secret
		"https://example.org/feed?author=jane&keyword=abcde":  false,
		"https://example.org/feed?passage=romans&monkey=four": false,
		"https://example.org/token/abcd":                      false, // nothing tells such a path from others
		"https://example.org/feed#token=abcd":                 false,
		"":                                                    false,
	} {
		require.Equal(t, has, HasSecret(url), url)
	}
}
