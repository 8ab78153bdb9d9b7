package feedhistory

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// references reads a file of references and what they become.
func references(t *testing.T, name string) (count int) {
	t.Helper()
	text, err := os.ReadFile("testdata/rfc3986/" + name)
	require.NoError(t, err)
	base := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if bases, ok := strings.CutPrefix(line, "base\t"); ok {
			base = ""
			for ref := range strings.SplitSeq(bases, "\t") {
				base = resolve(base, ref)
			}
			continue
		}
		tab := strings.LastIndexByte(line, '\t')
		require.GreaterOrEqual(t, tab, 0, line)
		require.Equal(t, line[tab+1:], resolve(base, line[:tab]), "%q against %q", line[:tab], base)
		count++
	}
	return count
}

func TestResolveExamples(t *testing.T) { require.Equal(t, 42, references(t, "references.txt")) }

func TestResolveMore(t *testing.T) { require.Positive(t, references(t, "more.txt")) }

func TestHeaderLinks(t *testing.T) {
	const base = "http://example.org/a/feed"
	next := Links{{Rel: "next", Href: "http://example.org/a/2"}}
	for _, test := range []struct {
		name   string
		fields []string
		want   Links
	}{
		{"none", nil, nil},
		{"quoted", []string{`<2>; rel="next"`}, next},
		{"token", []string{`<2>;rel=next`}, next},
		{"spaces", []string{" <2> ;\trel = \"next\" "}, next},
		{"upper-case parameter", []string{`<2>; REL="next"`}, next},
		{"absolute", []string{`<http://example.org/a/2>; rel=next`}, next},
		{"full relation", []string{`<2>; rel="http://www.iana.org/assignments/relation/next"`}, next},
		{"two in a field", []string{`<1>; rel=first, <2>; rel=next`},
			Links{{Rel: "first", Href: "http://example.org/a/1"}, next[0]}},
		{"two fields", []string{`<1>; rel=first`, `<2>; rel=next`},
			Links{{Rel: "first", Href: "http://example.org/a/1"}, next[0]}},
		{"empty elements", []string{`, ,<2>; rel=next,,`}, next},
		{"two relations", []string{`<2>; rel="next last"`},
			Links{next[0], {Rel: "last", Href: "http://example.org/a/2"}}},
		{"comma and semicolon in the target", []string{`<2,3;4>; rel=next`},
			Links{{Rel: "next", Href: "http://example.org/a/2,3;4"}}},
		{"comma and semicolon in quotes", []string{`<2>; title="a, b; <3>; rel=last"; rel=next`},
			Links{{Rel: "next", Href: "http://example.org/a/2", Title: "a, b; <3>; rel=last"}}},
		{"escape in quotes", []string{`<2>; title="a \"b\""; rel=next`},
			Links{{Rel: "next", Href: "http://example.org/a/2", Title: `a "b"`}}},
		{"type and language", []string{`<2>; rel=next; type="application/atom+xml"; hreflang=de`},
			Links{{Rel: "next", Href: "http://example.org/a/2", Type: "application/atom+xml", HrefLang: "de"}}},
		{"first rel counts", []string{`<2>; rel=next; rel=last`}, next},
		{"no relation", []string{`<2>; title=x`}, nil},
		{"anchor elsewhere", []string{`<2>; rel=next; anchor="/b"`}, nil},
		{"anchor here", []string{`<2>; rel=next; anchor="feed"`}, next},
		{"anchor is a part of this", []string{`<2>; rel=next; anchor="#part"`}, next},
		{"empty reference", []string{`<>; rel=self`}, Links{{Rel: "self", Href: base}}},
		{"unclosed target", []string{`<2; rel=next`}, nil},
		{"unclosed quote", []string{`<2>; rel="next`}, next},
		{"not a link", []string{`rel=next`}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			links, lost := headerLinks(test.fields, base, 8<<10)
			require.Equal(t, test.want, links)
			require.Empty(t, lost)
		})
	}
}

// RFC 8288: Link headers say what the document itself does not.
func TestHeaderLinksYield(t *testing.T) {
	p := Parser{Header: http.Header{"Link": {
		`</header>; rel=next, </first>; rel=first`,
		`</style.css>; rel=stylesheet, </style.css>; rel=preload`,
		`</other>; rel=last; anchor="/other"`,
	}}}
	d, err := p.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/own"/></feed>`), "http://example.org/")
	require.NoError(t, err)
	require.Equal(t, Links{
		{Rel: RelNext, Href: "http://example.org/own"},
		{Rel: RelFirst, Href: "http://example.org/first"},
	}, d.Links)

	d, err = p.Parse(strings.NewReader(`{"version": "https://jsonfeed.org/version/1.1", "items": []}`), "http://example.org/")
	require.NoError(t, err)
	require.Equal(t, Paged, d.Kind())
}

func TestRelation(t *testing.T) {
	for _, test := range []struct {
		value, want string
		lenient     bool
	}{
		{"prev-archive", RelPrevArchive, false},
		{"http://www.iana.org/assignments/relation/prev-archive", RelPrevArchive, false},
		{"previous", RelPrevious, false},
		{"prev", RelPrevious, true},
		{"prev-page", RelPrevious, true},
		{"next-page", RelNext, true},
		{"Prev-Archive", RelPrevArchive, true},
		{"NEXT", RelNext, true},
		{"http://www.iana.org/assignments/relation/Next", RelNext, true},
		{"http://www.iana.org/assignments/relation/prev", RelPrevious, true},
		{"http://example.org/rel/next", "http://example.org/rel/next", false},
		{"http://a9.com/-/opensearch", "http://a9.com/-/opensearch", false},
		{"x-unknown", "x-unknown", false},
	} {
		got, lenient := relation(test.value)
		require.Equal(t, test.want, got, test.value)
		require.Equal(t, test.lenient, lenient, test.value)
	}
}

func TestRequestURL(t *testing.T) {
	for iri, want := range map[string]string{
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
		require.Equal(t, want, requestURL(iri))
	}
}

// What is requested net/http sends as it is: so a document that answers at
// once keeps the URL by which it is known.
func TestRequestURLStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		iri := "http://example.org/" + rapid.StringMatching(`[a-zé%2Ff|^{}\[\]\\ "<>;=&+\x00\t~!*'():@?/-]{0,20}`).Draw(t, "iri")
		want := requestURL(iri)
		u, err := url.Parse(want)
		require.NoError(t, err)
		require.Equal(t, want, u.String())
		require.Equal(t, want, "http://example.org"+u.RequestURI())
		require.Equal(t, want, requestURL(want))
	})
}
