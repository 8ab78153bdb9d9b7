package feedhistory_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

func TestHeaderLinks(t *testing.T) {
	const base = "http://example.org/a/feed"
	next := feedhistory.Links{{Rel: "next", Href: "http://example.org/a/2"}}
	for _, test := range []struct {
		name   string
		fields []string
		want   feedhistory.Links
	}{
		{"none", nil, nil},
		{"quoted", []string{`<2>; rel="next"`}, next},
		{"token", []string{`<2>;rel=next`}, next},
		{"spaces", []string{" <2> ;\trel = \"next\" "}, next},
		{"upper-case parameter", []string{`<2>; REL="next"`}, next},
		{"absolute", []string{`<http://example.org/a/2>; rel=next`}, next},
		{"full relation", []string{`<2>; rel="http://www.iana.org/assignments/relation/next"`}, next},
		{"two in a field", []string{`<1>; rel=first, <2>; rel=next`},
			feedhistory.Links{{Rel: "first", Href: "http://example.org/a/1"}, next[0]}},
		{"two fields", []string{`<1>; rel=first`, `<2>; rel=next`},
			feedhistory.Links{{Rel: "first", Href: "http://example.org/a/1"}, next[0]}},
		{"empty elements", []string{`, ,<2>; rel=next,,`}, next},
		{"two relations", []string{`<2>; rel="next last"`},
			feedhistory.Links{next[0], {Rel: "last", Href: "http://example.org/a/2"}}},
		{"comma and semicolon in the target", []string{`<2,3;4>; rel=next`},
			feedhistory.Links{{Rel: "next", Href: "http://example.org/a/2,3;4"}}},
		{"comma and semicolon in quotes", []string{`<2>; title="a, b; <3>; rel=last"; rel=next`},
			feedhistory.Links{{Rel: "next", Href: "http://example.org/a/2", Title: "a, b; <3>; rel=last"}}},
		{"escape in quotes", []string{`<2>; title="a \"b\""; rel=next`},
			feedhistory.Links{{Rel: "next", Href: "http://example.org/a/2", Title: `a "b"`}}},
		{"type and language", []string{`<2>; rel=next; type="application/atom+xml"; hreflang=de`},
			feedhistory.Links{{Rel: "next", Href: "http://example.org/a/2", Type: "application/atom+xml", HrefLang: "de"}}},
		{"first rel counts", []string{`<2>; rel=next; rel=last`}, next},
		{"no relation", []string{`<2>; title=x`}, nil},
		{"anchor elsewhere", []string{`<2>; rel=next; anchor="/b"`}, nil},
		{"anchor here", []string{`<2>; rel=next; anchor="feed"`}, next},
		{"anchor is a part of this", []string{`<2>; rel=next; anchor="#part"`}, next},
		{"empty reference", []string{`<>; rel=self`}, feedhistory.Links{{Rel: "self", Href: base}}},
		{"unclosed target", []string{`<2; rel=next`}, nil},
		{"unclosed quote", []string{`<2>; rel="next`}, next},
		{"not a link", []string{`rel=next`}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			links, lost := feedhistory.ReadHeaderLinks(test.fields, base, 8<<10)
			require.Equal(t, test.want, links)
			require.Empty(t, lost)
		})
	}
}

// RFC 8288: Link headers contribute what the document itself does not have.
func TestHeaderLinksYield(t *testing.T) {
	p := feedhistory.Parser{Header: http.Header{"Link": {
		`</header>; rel=next, </first>; rel=first`,
		`</style.css>; rel=stylesheet, </style.css>; rel=preload`,
		`</other>; rel=last; anchor="/other"`,
	}}}
	d, err := p.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/own"/></feed>`), "http://example.org/")
	require.NoError(t, err)
	require.Equal(t, feedhistory.Links{
		{Rel: "next", Href: "http://example.org/own"},
		{Rel: "first", Href: "http://example.org/first"},
	}, d.Links)

	d, err = p.Parse(strings.NewReader(`{"version": "https://jsonfeed.org/version/1.1", "items": []}`), "http://example.org/")
	require.NoError(t, err)
	require.Equal(t, feedhistory.KindPaged, d.Kind())
}

func TestRelation(t *testing.T) {
	for _, test := range []struct {
		value, want string
		lenient     bool
	}{
		{"prev-archive", "prev-archive", false},
		{"http://www.iana.org/assignments/relation/prev-archive", "prev-archive", false},
		{"previous", "previous", false},
		{"prev", "previous", true},
		{"prev-page", "previous", true},
		{"next-page", "next", true},
		{"Prev-Archive", "prev-archive", true},
		{"NEXT", "next", true},
		{"http://www.iana.org/assignments/relation/Next", "next", true},
		{"http://www.iana.org/assignments/relation/prev", "previous", true},
		{"http://example.org/rel/next", "http://example.org/rel/next", false},
		{"http://a9.com/-/opensearch", "http://a9.com/-/opensearch", false},
		{"x-unknown", "x-unknown", false},
	} {
		got, lenient := feedhistory.Relation(test.value)
		require.Equal(t, test.want, got, test.value)
		require.Equal(t, test.lenient, lenient, test.value)
	}
}
