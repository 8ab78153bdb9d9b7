package markup

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestFeedLinks(t *testing.T) {
	const at = "https://example.org/blog/"
	for page, want := range map[string][]string{
		`<link rel=alternate type=application/atom+xml href=feed.atom title="News">`:                                                                     {"https://example.org/blog/feed.atom"},
		`<LINK REL="Alternate" TYPE="Application/RSS+XML; charset=utf-8" HREF="/f.xml"/>`:                                                                {"https://example.org/f.xml"},
		`<link rel="feed" type="application/feed+json" href="a.json"><link rel="alternate" type="application/rdf+xml" href="b.rdf">`:                     {at + "a.json", at + "b.rdf"},
		`<base href="https://cdn.example/x/"><base href="/y/"><link rel="alternate home" type="application/atom+xml" href="f?a&amp;b">`:                  {"https://cdn.example/x/f?a&b"},
		`<link rel="alternate" type="application/atom+xml" href="f"><link rel="alternate" type="application/atom+xml" href="./f">`:                       {at + "f"},
		`<link rel="alternate" hreflang="de" type="text/html" href="/de"><link rel="stylesheet" type="application/atom+xml" href="s">`:                   nil,
		`<link rel="alternate" type="application/atom+xml"><link rel="alternate" type="application/atom+xml" href="javascript:x">`:                       nil,
		`<script>"<link rel=alternate type=application/atom+xml href=f>"</script><!-- <link rel=alternate type=application/atom+xml href=f> -->`:         nil,
		`<a rel="alternate" type="application/atom+xml" href="f">x</a>`:                                                                                  nil,
		`<link rel="alternate" type="application/atom+xml;type=entry" href="e"><link rel="alternate" type='application/atom+xml; type="feed"' href="f">`: {at + "f"},
		`<link rel="alternate" type='application/atom+xml; type="entry"' href="e">`:                                                                      nil,
		"": nil,
		`<link rel=alternate type=application/atom+xml href=f><base href=/late/>`:                                                                               {"https://example.org/late/f"},
		`<base href="javascript:x"><link rel=alternate type=application/atom+xml href=f>`:                                                                       {at + "f"},
		`<base href="https://h.example/" href=/no><link rel=alternate type=application/atom+xml href=f type=x>`:                                                 {"https://h.example/f"},
		`<link rel=alternate type=application/atom+xml href="http://user:secret@h.example/"><link rel=alternate type=application/atom+xml href="https:///f#x">`: nil,
		`<link rel=alternate type=application/atom+xml href="f#a"><link rel=alternate type=application/atom+xml href="f#b">`:                                    {at + "f"},
		`<link rel=alternate type=application/atom+xml href="` + strings.Repeat("x", 9000) + `"><link rel=alternate type=application/rss+xml href=g>`:           {at + "g"},
	} {
		links := FeedLinks(page, at, "text/html", 8<<10)
		var got []string
		for _, l := range links {
			got = append(got, l.Href)
		}
		require.Equal(t, want, got, page)
	}
	many := FeedLinks(strings.Repeat(`<link rel=alternate type=application/atom+xml href=x><base><link rel=feed type=application/atom+xml href=y>`, 40), at, "", 8<<10)
	require.Len(t, many, 2)
	var b strings.Builder
	for i := range 100 {
		b.WriteString(`<link rel=feed type=application/rss+xml href=` + strings.Repeat("x", i+1) + `>`)
	}
	many = FeedLinks(b.String(), at, "", 8<<10)
	require.Len(t, many, mostFeedLinks)
}

// One link for each feed, the best format of it, and comments last.
func TestFeedLinksBestFirst(t *testing.T) {
	const at = "https://example.org/"
	link := func(kind, href, title string) string {
		return `<link rel="alternate" type="application/` + kind + `" href="` + href + `" title="` + title + `">`
	}
	for _, test := range []struct {
		name, page string
		want       []string
	}{
		{"WordPress", link("rss+xml", "/comments/feed/", "Blog » Comments Feed") + link("rss+xml", "/feed/", "Blog » Feed"), []string{"feed/", "comments/feed/"}},
		{"Blogger", link("rss+xml", "/feeds/posts/default?alt=rss", "Blog - RSS") + link("atom+xml", "/feeds/posts/default", "Blog - Atom"), []string{"feeds/posts/default or feeds/posts/default?alt=rss"}},
		{"Hugo", link("rss+xml", "/index.xml", "Blog") + link("feed+json", "/feed.json", "Blog"), []string{"index.xml or feed.json"}},
		{"no titles", link("rss+xml", "/rss.xml", "") + link("atom+xml", "/atom.xml", "") + link("feed+json", "/feed.json", ""), []string{"atom.xml or rss.xml or feed.json"}},
		{"two feeds of one format and name", link("rss+xml", "/feed1", "RSS") + link("rss+xml", "/feed2", "RSS"), []string{"feed1", "feed2"}},
		{"two feeds of one name", link("rss+xml", "/podcast.rss", "Us") + link("atom+xml", "/blog.atom", "Us"), []string{"podcast.rss", "blog.atom"}},
		{"a JSON Feed of one name", link("feed+json", "/j", "Us") + link("feed+json", "/pod", "Pod") + link("atom+xml", "/blog.atom", "Us"), []string{"pod", "blog.atom", "j"}},
		{"by host", link("rss+xml", "https://a.example/rss", "Us") + link("atom+xml", "https://b.example/atom", "Us"), []string{"https://a.example/rss", "https://b.example/atom"}},
		{"only comments", link("atom+xml", "/x", "Kommentare"), []string{"x"}},
		{"comments by address", link("rss+xml", "/?feed=comments-rss2", "Flux") + link("rss+xml", "/commentary", "Flux"), []string{"commentary", "?feed=comments-rss2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, l := range FeedLinks(test.page, at, "text/html", 8<<10) {
				text := strings.TrimPrefix(l.Href, at)
				for _, other := range l.Formats {
					text += " or " + strings.TrimPrefix(other.Href, at)
				}
				got = append(got, text)
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestFeedLinksCharset(t *testing.T) {
	links := FeedLinks("<meta charset=iso-8859-1><link rel=alternate type=application/atom+xml href=f title='Caf\xe9"+strings.Repeat("é", 400)+"'>", "https://example.org/", "text/html", 8<<10)
	require.Len(t, links, 1)
	require.True(t, strings.HasPrefix(links[0].Title, "Café"), links[0].Title)
	require.LessOrEqual(t, len(links[0].Title), mostTitle)
	require.True(t, utf8.ValidString(links[0].Title))
}
