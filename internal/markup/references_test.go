package markup

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

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
			if base != "" && tok.Type == html.StartTagToken && slices.Contains(urlAttributes[:], a.Key) {
				if abs := Resolve(a.Key, base, a.Val); abs != strings.TrimSpace(a.Val) {
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
		`<img srcset="a 1x, /b 2x,c"><source srcset=d,e,><svg xlink:href=#f><a href="#g"><img data-srcset="h 1x,i">`, `<A srCset=#>`, `<img srcset="#a 1x, b, #c">`,
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
		got := Absolute(text, base)
		require.Equal(t, tokensOf(text, base), tokensOf(got, ""), "%q became %q", text, got)
		requireImage(t, text, base)
	})
}

// requireImage checks that the image found on the way is the first one in the result.
func requireImage(t *testing.T, text, base string) {
	body, image, ok := AbsoluteAndImage(text, base)
	require.Equal(t, Absolute(text, base), body)
	first, has := FirstImage(body)
	require.Equal(t, []any{first, has}, []any{image, ok}, "%q", text)
}

func TestFirstImage(t *testing.T) {
	for text, want := range map[string]string{
		`<p>i <b>img</b>`: "", `<image src="a">`: "", `<img alt="a">`: "", `<!-- <img src=a> --><IMG SRC=b&amp;c>`: "http://example.org/a/b&c",
		`<a href="d"><img alt="e" src='/f?g=1&amp;h=2'><img src="i">`: "http://example.org/f?g=1&h=2", `<img src="http://a.example/b">`: "http://a.example/b",
		`<img src="">`: "http://example.org/a/b", `<img src=#x>`: "#x", `<script><img src=a></script><img src='"'>`: `http://example.org/a/"`,
	} {
		_, image, ok := AbsoluteAndImage(text, "http://example.org/a/b")
		require.Equal(t, want, image, text)
		require.Equal(t, want != "", ok, text)
		requireImage(t, text, "http://example.org/a/b")
	}
}

// Nothing but the reference changes, and nothing is copied where nothing does.
func TestReferencesInPlace(t *testing.T) {
	const base = "http://example.org/a/b"
	for body, want := range map[string]string{
		`<IMG  alt='"' SRC = "c.png"  /><p>&nbsp;x<br />`: `<IMG  alt='"' SRC = "http://example.org/a/c.png"  /><p>&nbsp;x<br />`,
		`<a href=c>d</a>`:                                               `<a href="http://example.org/a/c">d</a>`,
		`<a href='/?a=1&b=2&amp;c="'>d</a>`:                             `<a href='http://example.org/?a=1&amp;b=2&amp;c=&#34;'>d</a>`,
		`<a href="">x</a><a href>y</a>`:                                 `<a href="http://example.org/a/b">x</a><a href>y</a>`,
		`<a title="<a href=c>" href="#d">`:                              `<a title="<a href=c>" href="#d">`,
		`<a href=" #d"><img usemap=#e>`:                                 `<a href=" #d"><img usemap=#e>`,
		`<img data-src=x src="y">`:                                      `<img data-src="http://example.org/a/x" src="http://example.org/a/y">`,
		`<button formaction="f">`:                                       `<button formaction="http://example.org/a/f">`,
		`<svg><image xlink:href="c.png"/>`:                              `<svg><image xlink:href="http://example.org/a/c.png"/>`,
		`<img srcset="https://a.example/x 1x, https://a.example/y 2x">`: `<img srcset="https://a.example/x 1x, https://a.example/y 2x">`,
		`<source srcset="a,1.png, b.png 2x ,c.png 100w,">`:              `<source srcset="http://example.org/a/a,1.png, http://example.org/a/b.png 2x ,http://example.org/a/c.png 100w,">`,
		`<img data-srcset="a.png 1x, /b.png 2x">`:                       `<img data-srcset="http://example.org/a/a.png 1x, http://example.org/b.png 2x">`,
		`<img srcset=a.png>`:                                            `<img srcset="http://example.org/a/a.png">`,
		`<img srcset=" , ">`:                                            `<img srcset=" , ">`,
		`<A srCset=#>`:                                                  `<A srCset=#>`,
		`<img srcset="#a 1x, b.png 2x, #c">`:                            `<img srcset="#a 1x, http://example.org/a/b.png 2x, #c">`,
	} {
		require.Equal(t, want, Absolute(body, base))
	}
	long := strings.Repeat(`<p class="x">a <a href="https://example.com/?a=1&amp;b=2">b</a>`, 100)
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = Absolute(long, base) }))
}

func TestPlain(t *testing.T) {
	for body, want := range map[string]string{
		"<p>one</p><p>two</p>":                    "one\ntwo",
		"one<br>two":                              "one\ntwo",
		"<ul><li>a<li>b</ul>c":                    "a\nb\nc",
		"a <b>bold</b> word":                      "a bold word",
		"a<script>alert('x')</script>b":           "ab",
		"<style>p {}</style><p>a":                 "a",
		"<title>hidden</title>shown":              "shown",
		"a &amp; b &lt; c":                        "a & b < c",
		"<script>unclosed":                        "",
		"  <div>\n  <div>\n deep </div></div>  x": "deep \nx",
	} {
		require.Equal(t, want, Plain(body), body)
	}
}

// References in attributes few pages have.
func TestRareReferences(t *testing.T) {
	for html, want := range map[string]string{
		`<link imagesrcset="a.png, b.png 2x">`: `<link imagesrcset="http://h/d/a.png, http://h/d/b.png 2x">`,
		`<img longdesc="a.html">`:              `<img longdesc="http://h/d/a.html">`,
		`<a ping="/p" href="#n">`:              `<a ping="http://h/p" href="#n">`,
		`<a ping="/p /q">`:                     `<a ping="/p /q">`,
	} {
		if got := Absolute(html, "http://h/d/"); got != want {
			t.Errorf("%s: %s", html, got)
		}
	}
}

// A set is relative if any of its references is, and each of them counts.
func TestRelativeSets(t *testing.T) {
	for body, want := range map[string]int{
		`<img srcset="https://a.example/x 1x, https://a.example/y 2x">`:              0,
		`<img srcset="https://a.example/x, https://a.example/y">`:                    0,
		`&lt;img srcset=&quot;https://a.example/x 1x, https://a.example/y 2x&quot;>`: 0,
		`<img srcset="https://a.example/x 1x, y 2x">`:                                1,
		`<img srcset="x?a=1, y?b=2, z">`:                                             3,
		`<img srcset="x, y" src="/z">`:                                               3,
		`&lt;img srcset=&quot;x, y&quot;&gt;`:                                        2,
	} {
		paths, others := CountRelative(body)
		require.GreaterOrEqual(t, paths+others, want, body)
		require.Equal(t, want > 0, MayBeRelative(body), body)
	}
	paths, _ := CountRelative(strings.Repeat("srcset=,", 100_000))
	require.GreaterOrEqual(t, paths, 100_000)
}
