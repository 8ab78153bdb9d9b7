package feedhistory

import (
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
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

// tokensOf returns HTML's tokens, of each tag only what it means. With a base, its
// references are resolved.
func tokensOf(text, base string) (tokens []string) {
	z := html.NewTokenizer(strings.NewReader(text))
	for z.Next() != html.ErrorToken {
		tok := z.Token()
		if tok.Type == html.SelfClosingTagToken {
			tok.Type = html.StartTagToken // a slash behind an unquoted value is a part of it
		}
		for i, a := range tok.Attr {
			if base != "" && tok.Type == html.StartTagToken && slices.Contains(urlAttributes, a.Key) {
				if abs := resolve(base, a.Val); abs != strings.TrimSpace(a.Val) {
					tok.Attr[i].Val = abs
				}
			}
		}
		tokens = append(tokens, tok.String())
	}
	return append(tokens, string(z.Raw()))
}

// FuzzReferences holds the reader of tags to html.Tokenizer: what is resolved in
// place is what that would find.
func FuzzReferences(f *testing.F) {
	for _, text := range []string{
		`<a href="/x">y</a><img src=/3.png><b a=1>`, `<a href=x href=y /><a/href=z><p =a=b><a href = "x"y><A HREF="../d">`,
		`<!-- <a href=x> --><!--><a href=x>--><!---><!----!><a href=x><!--a--!><a href=y>`, `<!doctype href=x><?a href=x?></ href=x></a href="<a href=x>"><//>`,
		`<iframe src="//x/y"></iframe><script>"<a href=x>"</script><a href='b&amp;c&copy'><xmp><a href=x></xmp ><a href=x>`,
		`<a href="/x&#46;"><title><a href=x></title><a href="mailto:x"><plaintext><a href=x>`, `<a href="/x`, `<a href=x`, `<a href="http://a/b&amp;c/..&#47;.">`,
		`<a href="x&copyx&copy;&copy=&copy&notit;&#65&#x41;&amp;amp;&semi;&bogus;&` + "\r\n" + `'">`, `<a href='"x&#x26;'>`, `<a title href=x>`,
	} {
		f.Add(text)
	}
	const base = "http://example.org/a/b?q#f"
	f.Fuzz(func(t *testing.T, text string) {
		lower := strings.ToLower(text)
		if strings.Contains(lower, "<script") && strings.Contains(text, "<!--") {
			t.Skip() // a script within a comment within a script does not end the outer one
		}
		if strings.Contains(text, "http") && (strings.Contains(lower, "&sol") || strings.Contains(lower, "&period")) {
			t.Skip() // a dot segment that is hidden in an absolute URL stays
		}
		for z := html.NewTokenizer(strings.NewReader(text)); z.Next() != html.ErrorToken; {
			if slices.ContainsFunc(z.Token().Attr, func(a html.Attribute) bool { return a.Val == "" }) {
				t.Skip() // html.Tokenizer does not tell an empty value, which is a reference, from none
			}
		}
		got := Text{Type: TextHTML, Body: text, Base: base}.absolute()
		require.Equal(t, tokensOf(text, base), tokensOf(got, ""), "%q became %q", text, got)
	})
}

// Nothing but the reference changes, and nothing is copied where nothing does.
func TestReferencesInPlace(t *testing.T) {
	const base = "http://example.org/a/b"
	for body, want := range map[string]string{
		`<IMG  alt='"' SRC = "c.png"  /><p>&nbsp;x<br />`: `<IMG  alt='"' SRC = "http://example.org/a/c.png"  /><p>&nbsp;x<br />`,
		`<a href=c>d</a>`:                   `<a href="http://example.org/a/c">d</a>`,
		`<a href='/?a=1&b=2&amp;c="'>d</a>`: `<a href='http://example.org/?a=1&amp;b=2&amp;c=&#34;'>d</a>`,
		`<a href="">x</a><a href>y</a>`:     `<a href="http://example.org/a/b">x</a><a href>y</a>`,
		`<a title="<a href=c>" href="#d">`:  `<a title="<a href=c>" href="http://example.org/a/b#d">`,
	} {
		require.Equal(t, want, Text{Type: TextHTML, Body: body, Base: base}.absolute())
	}
	long := Text{Type: TextHTML, Body: strings.Repeat(`<p class="x">a <a href="https://example.com/?a=1&amp;b=2">b</a>`, 100), Base: base}
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = long.absolute() }))
}
