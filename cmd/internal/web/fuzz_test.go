package web

import (
	"html/template"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Whatever an entry says, what is shown of it neither acts, nor loads anything,
// nor passes for a part of the page.
func FuzzSanitise(f *testing.F) {
	for _, seed := range []string{
		`<p>One <b>two</b> <a href="x">three</a> <img src="i" alt="four"></p>`,
		`<svg><style><img src=x onerror=a()></style></svg>`, `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=a()&gt;">`,
		`<a href="java&#10;script:a()">x</a>`, `<noscript><p title="</noscript><img src=x onerror=a()>">`, `<video><source src="//v"></video>`,
		`<object data="javascript:a()"><embed src="x"></object>`, `<form id="main"><input name="q"></form>`, "<pre>\n\n<!--", `<a href="http://[">x`,
		`<img title="first" alt="x" src="java&#10;script:a()">`,
	} {
		f.Add(seed, "https://example.org/a/", true)
		f.Add(seed, "%zz", false)
	}
	f.Fuzz(func(t *testing.T, body, base string, xhtml bool) {
		text := feedhistory.Text{Type: feedhistory.TextHTML, Body: body, Base: base}
		if xhtml {
			text.Type = feedhistory.TextXHTML
		}
		withImages, _ := sanitise(text, true)
		for root := range fragment(t, withImages).Descendants() {
			if root.Data == "img" && root.Type == html.ElementNode {
				for _, a := range root.Attr {
					require.Contains(t, []string{"src", "alt", "title", "lang", "dir"}, a.Key)
					if a.Key == "src" {
						u, err := url.Parse(a.Val)
						require.NoError(t, err)
						require.Contains(t, []string{"", "http", "https"}, u.Scheme)
					}
				}
				continue
			}
			require.NotContains(t, []string{"script", "style", "svg", "iframe", "object", "form", "video", "audio"}, root.Data)
		}
		shown, _ := sanitise(text, false)
		context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
		nodes, err := html.ParseFragment(strings.NewReader(string(shown)), context)
		require.NoError(t, err)
		for _, root := range nodes {
			parent := &html.Node{Type: html.DocumentNode}
			parent.AppendChild(root)
			for n := range parent.Descendants() {
				if n.Type != html.ElementNode {
					continue
				}
				require.NotContains(t, []string{"script", "style", "svg", "math", "img", "iframe", "object", "embed", "form", "input", "base", "meta", "link", "video", "audio"}, n.Data)
				for _, a := range n.Attr {
					require.Contains(t, []string{"href", "rel", "lang", "dir", "title", "colspan", "rowspan", "datetime", "start"}, a.Key)
					if a.Key == "href" {
						u, err := url.Parse(a.Val)
						require.NoError(t, err)
						require.Contains(t, []string{"", "http", "https", "mailto"}, u.Scheme)
					}
				}
			}
		}
	})
}

// A token of a place gives the same place again; any other text gives none.
func FuzzToken(f *testing.F) {
	f.Add(token(&mirror.Place{Feed: "https://example.org/", ID: "urn:1\n2"}))
	f.Add("rubbish")
	f.Fuzz(func(t *testing.T, text string) {
		if c := parseToken(text); c != nil {
			again := parseToken(token(c))
			require.NotNil(t, again)
			require.True(t, c.Time.Equal(again.Time))
			require.Equal(t, []string{c.Feed, c.ID}, []string{again.Feed, again.ID})
		}
	})
}

// fragment parses markup as the content of a div.
func fragment(t *testing.T, markup template.HTML) *html.Node {
	context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(string(markup)), context)
	require.NoError(t, err)
	root := &html.Node{Type: html.DocumentNode}
	for _, n := range nodes {
		root.AppendChild(n)
	}
	return root
}
