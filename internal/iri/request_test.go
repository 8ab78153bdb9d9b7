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

// Addresses signed again differ in their signatures only, and others in more. The rest of
// a text stays, however its document escapes the query.
func TestUnsigned(t *testing.T) {
	for text, want := range map[string]string{
		"https://c10.patreonusercontent.com/4/p/1/1.mp3?token-time=1761177600&token-hash=Nx%3D":                                                                                                        "https://c10.patreonusercontent.com/4/p/1/1.mp3?",
		"https://c10.patreonusercontent.com/4/p/1/1.mp3?token-hash=4f%3D%3D&token-time=176126":                                                                                                         "https://c10.patreonusercontent.com/4/p/1/1.mp3?",
		"https://audioboom.com/posts/8391199.mp3?modified=1698395341&sid=5119220&source=rss":                                                                                                           "https://audioboom.com/posts/8391199.mp3?source=rss",
		"https://b.s3.amazonaws.com/a.mp3?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F2024&X-Amz-Date=20240101T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=fe5f": "https://b.s3.amazonaws.com/a.mp3?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-SignedHeaders=host",
		"https://d1.cloudfront.net/a?id=7&Policy=eyJT&Signature=nitf~y&Key-Pair-Id=K2JC":                                                                                                               "https://d1.cloudfront.net/a?id=7",
		"https://x.blob.core.windows.net/a?sv=2023-11-03&se=2024-01-01T00%3A00Z&sig=abcd":                                                                                                              "https://x.blob.core.windows.net/a?sv=2023-11-03",
		`<enclosure url="https://e.org/1.mp3?a=b&amp;expires=1700000000&amp;token=abcd"/><guid>https://e.org/?p=6</guid>`:                                                                              `<enclosure url="https://e.org/1.mp3?a=b&amp&amp"/><guid>https://e.org/?p=6</guid>`,
		`{"url":"https:\/\/e.org\/1.mp3?a=1\u0026token=abcd\u0026exp=1700","title":"What?"}`:                                                                                                           `{"url":"https:\/\/e.org\/1.mp3?a=1","title":"What?"}`,

		// What is no signature: a secret for ever, a time without a secret, prose.
		"https://www.blogger.com/video.g?token=AD6v5dyq9":         "https://www.blogger.com/video.g?token=AD6v5dyq9",
		"https://e.org/1.mp3?sig=abcd&download=true":              "https://e.org/1.mp3?sig=abcd&download=true",
		"https://e.org/archive.mp3?date=2024-01-01&id=12":         "https://e.org/archive.mp3?date=2024-01-01&id=12",
		"https://e.org/1.mp3?token-time=1761177600":               "https://e.org/1.mp3?token-time=1761177600",
		"What time? And the token? Expires=never. ?key=go&exp=on": "What time? And the token? Expires=never. ?key=go&exp=on",
		"https://e.org/1.mp3?":                                    "https://e.org/1.mp3?",
		"":                                                        "",
	} {
		require.Equal(t, want, Unsigned(text), text)
		require.Equal(t, want, Unsigned(want), text)
	}
}
