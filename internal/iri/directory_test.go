package iri

import "testing"

func TestDirectory(t *testing.T) {
	for url, want := range map[string]string{
		"https://ann:pw@example.org/a/b.atom?token=x#y": "https://example.org/a/",
		"https://example.org/?token=a/b":                "https://example.org/",
		"https://example.org":                           "https://example.org",
		"a/b":                                           "a/",
		"":                                              "",
	} {
		if got := Directory(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
