package iri

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCutLink(t *testing.T) {
	type link struct {
		target, rel, other string
	}
	for text, want := range map[string][]link{
		"":                                  nil,
		"no link":                           nil,
		"<unfinished":                       nil,
		"<a>":                               {{"a", "", ""}},
		"<a>; rel=next":                     {{"a", "next", ""}},
		`<a>;REL="x y";other=1,<b>`:         {{"a", "x y", "1"}, {"b", "", ""}},
		`<a>; rel="a"; rel="b"`:             {{"a", "a", ""}},
		`<a,b;c>; rel="q\"u,o;t<e>"; other`: {{"a,b;c", `q"u,o;t<e>`, ""}},
		"<a>\r\n\t; rel=\"memento\"\n ; other = \"x\",\n<b>;rel=last": {{"a", "memento", "x"}, {"b", "last", ""}},
		`<a>; rel="unfinished`: {{"a", "unfinished", ""}},
	} {
		var got []link
		for rest := text; ; {
			target, params, after := CutLink(rest)
			if params == nil {
				break
			}
			require.Less(t, len(after), len(rest))
			got, rest = append(got, link{target, params["rel"], params["other"]}), after
		}
		require.Equal(t, want, got, "%q", text)
	}
}
