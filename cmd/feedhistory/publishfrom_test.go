package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSameSite(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"https://example.org/feed.xml", "http://example.org/history/", true},
		{"https://www.Example.org./feed.xml", "https://feeds.example.org/", true},
		{"https://example.org:8443/", "https://feeds.example.org/", true},
		{"https://example.org/", "https://example.com/", false},
		{"https://a.example.co.uk/", "https://b.example.co.uk/", true},
		{"https://one.co.uk/", "https://two.co.uk/", false},
		{"https://ann.github.io/feed.xml", "https://bob.github.io/", false}, // each has an owner
		{"https://ann.github.io/feed.xml", "https://ann.github.io/history/", true},
		{"http://127.0.0.1:4000/", "http://127.0.0.1:4000/history/", true},
		{"http://127.0.0.1:4000/", "http://127.0.0.1:5000/", false},
		{"http://10.0.0.1/", "http://192.168.0.1/", false},
		{"http://[::1]/feed", "http://[::1]/", true},
		{"http://localhost:4000/", "http://localhost:5000/", false},
		{"https://github.io/", "https://github.io/x", true},
		{"https://bücher.example/", "https://www.bücher.example/", true},
		{"://", "https://example.org/", false},
	} {
		require.Equal(t, test.same, siteName(test.a) == siteName(test.b), "%s and %s", test.a, test.b)
	}
}
