package feedhistory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func TestFeedLinks(t *testing.T) {
	const at = "https://example.org/blog/"
	for page, want := range map[string][]string{
		`<link rel=alternate type=application/atom+xml href=feed.atom title="News">`:                                                             {"https://example.org/blog/feed.atom"},
		`<LINK REL="Alternate" TYPE="Application/RSS+XML; charset=utf-8" HREF="/f.xml"/>`:                                                        {"https://example.org/f.xml"},
		`<link rel="feed" type="application/feed+json" href="a.json"><link rel="alternate" type="application/rdf+xml" href="b.rdf">`:             {at + "a.json", at + "b.rdf"},
		`<base href="https://cdn.example/x/"><base href="/y/"><link rel="alternate home" type="application/atom+xml" href="f?a&amp;b">`:          {"https://cdn.example/x/f?a&b"},
		`<link rel="alternate" type="application/atom+xml" href="f"><link rel="alternate" type="application/atom+xml" href="./f">`:               {at + "f"},
		`<link rel="alternate" hreflang="de" type="text/html" href="/de"><link rel="stylesheet" type="application/atom+xml" href="s">`:           nil,
		`<link rel="alternate" type="application/atom+xml"><link rel="alternate" type="application/atom+xml" href="javascript:x">`:               nil,
		`<script>"<link rel=alternate type=application/atom+xml href=f>"</script><!-- <link rel=alternate type=application/atom+xml href=f> -->`: nil,
		`<a rel="alternate" type="application/atom+xml" href="f">x</a>`:                                                                          nil,
		"": nil,
	} {
		links, err := feedLinks(strings.NewReader(page), at)
		require.NoError(t, err)
		var got []string
		for _, l := range links {
			got = append(got, l.Href)
		}
		require.Equal(t, want, got, page)
	}
	many, err := feedLinks(strings.NewReader(strings.Repeat(`<link rel=alternate type=application/atom+xml href=x><base><link rel=feed type=application/atom+xml href=y>`, 40)), at)
	require.NoError(t, err)
	require.Len(t, many, 2)
	var b strings.Builder
	for i := range 100 {
		b.WriteString(`<link rel=feed type=application/rss+xml href=` + strings.Repeat("x", i+1) + `>`)
	}
	many, err = feedLinks(strings.NewReader(b.String()), at)
	require.NoError(t, err)
	require.Len(t, many, mostFeedLinks)
}

func TestDiscover(t *testing.T) {
	site := feedtest.Serve(t, "-- /page --\nContent-Type: text/html\n\n<link rel=alternate type=application/atom+xml href=/feed title=News>\n")
	c := &Client{Policy: Policy{AllowPrivate: true}, Retry: Retry{Tries: 1}}
	defer c.CloseIdle()
	links, err := c.Discover(t.Context(), site.URL+"/page")
	require.NoError(t, err)
	require.Equal(t, Links{{Rel: "alternate", Href: site.URL + "/feed", Type: "application/atom+xml", Title: "News"}}, links)
	_, err = c.Discover(t.Context(), site.URL+"/nothing")
	var status *StatusError
	require.ErrorAs(t, err, &status)
	refused := &Client{}
	_, err = refused.Discover(t.Context(), site.URL+"/page")
	var rule *RefusedError
	require.ErrorAs(t, err, &rule)
}
