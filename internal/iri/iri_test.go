package iri

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// references reads a file of references and what they become.
func references(t *testing.T, name string) (count int) {
	t.Helper()
	text := feedtest.ReadFile(t, "testdata/"+name)
	base := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if bases, ok := strings.CutPrefix(line, "base\t"); ok {
			base = ""
			for ref := range strings.SplitSeq(bases, "\t") {
				base = Resolve(base, ref)
			}
			continue
		}
		tab := strings.LastIndexByte(line, '\t')
		require.GreaterOrEqual(t, tab, 0, line)
		require.Equal(t, line[tab+1:], Resolve(base, line[:tab]), "%q against %q", line[:tab], base)
		count++
	}
	return count
}

func TestResolveExamples(t *testing.T) { require.Equal(t, 42, references(t, "references.txt")) }

func TestResolveMore(t *testing.T) { require.Positive(t, references(t, "more.txt")) }

// IsOn agrees with Split about the authority.
func TestIsOn(t *testing.T) {
	part := rapid.SampledFrom([]string{"http:", "https:", "HTTP:", "//", "/", "example.org", "example.org:80", ".evil", "@", "?", "#", "a"})
	rapid.Check(t, func(t *rapid.T) {
		url := strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "url"), "")
		for _, authority := range []string{"example.org", "example.org:80", "a"} {
			require.Equal(t, Split(url).Authority == authority, IsOn(url, authority), "%q on %s", url, authority)
		}
	})
}

func TestForRequest(t *testing.T) {
	for ref, want := range map[string]string{
		"http://example.org/é?ü=ö#ß":      "http://example.org/%C3%A9?%C3%BC=%C3%B6",
		"http://example.org/%7Euser/~b":   "http://example.org/%7Euser/~b",
		"http://example.org/a b":          "http://example.org/a%20b",
		"http://example.org/a?b#c":        "http://example.org/a?b",
		"http://example.org/%e2%82%ac":    "http://example.org/%e2%82%ac",
		"http://example.org/?q=a|b&c=%C":  "http://example.org/?q=a%7Cb&c=%25C",
		"http://example.org/100%/feed":    "http://example.org/100%25/feed",
		"http://example.org/%zz%2Fé%4":    "http://example.org/%25zz%2F%C3%A9%254",
		"http://example.org/a\\b[1]^`{|}": "http://example.org/a%5Cb[1]%5E%60%7B%7C%7D",
		"http://example.org/a\t\x7fb":     "http://example.org/a%09%7Fb",
	} {
		require.Equal(t, want, ForRequest(ref))
	}
}

// What is requested net/http sends as it is: so a document that answers at
// once keeps the URL by which it is known.
func TestForRequestStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := "http://example.org/" + rapid.StringMatching(`[a-zé%2Ff|^{}\[\]\\ "<>;=&+\x00\t~!*'():@?/-]{0,20}`).Draw(t, "iri")
		want := ForRequest(ref)
		u, err := url.Parse(want)
		require.NoError(t, err)
		require.Equal(t, want, u.String())
		require.Equal(t, want, "http://example.org"+u.RequestURI())
		require.Equal(t, want, ForRequest(want))
	})
}

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

// A link's address has neither a fragment nor the number of a session; all else stays.
func TestAddress(t *testing.T) {
	for link, want := range map[string]string{
		"http://a.example/1":                                 "http://a.example/1",
		"http://a.example/1#top":                             "http://a.example/1",
		"http://a.example/1;jsessionid=0A1b!-9":              "http://a.example/1",
		"http://a.example/1;JSESSIONID=0;v=2/b?page=3&q":     "http://a.example/1;v=2/b?page=3&q",
		"http://a.example/1?PHPSESSID=0a":                    "http://a.example/1",
		"http://a.example/1?page=2&PHPSESSID=0a&jsessionid=": "http://a.example/1?page=2",
		"http://a.example/1?":                                "http://a.example/1?",
		"http://a.example/1?sessid=2&jsessionids=3":          "http://a.example/1?sessid=2&jsessionids=3",
		"": "",
	} {
		require.Equal(t, want, Address(link))
	}
}

// The number of a session ends before the next part of the path, or the query.
func TestAddressWithoutSessions(t *testing.T) {
	session := regexp.MustCompile(`(?i);jsessionid=[^/?;]*`)
	rapid.Check(t, func(t *rapid.T) {
		link := rapid.StringMatching(`http://a\.example(/x|;jsessionid=[0-9a]?|;JSESSIONID=|;p=1|;|/jsessionid=1){0,6}`).Draw(t, "link")
		require.Equal(t, session.ReplaceAllString(link, ""), Address(link), link)
	})
}
