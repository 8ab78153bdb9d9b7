package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

var void = []string{"meta", "link", "input", "br", "hr", "img", "progress/"}

// requireSound checks a page's markup: every element is closed, there are no
// inline scripts or styles, inputs have labels, ids are unique and exist where
// they are referred to, and there is one heading.
func requireSound(t testing.TB, body string) {
	t.Helper()
	var open []string
	ids, refs, labelled := map[string]int{}, map[string]bool{}, map[string]bool{}
	headings, inputs := 0, map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(body))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		token := z.Token()
		switch kind {
		case html.EndTagToken:
			require.NotEmpty(t, open, "</%s>", token.Data)
			require.Equal(t, open[len(open)-1], token.Data, "tags are closed in order")
			open = open[:len(open)-1]
			continue
		case html.TextToken:
			if len(open) > 0 && (open[len(open)-1] == "script" || open[len(open)-1] == "style") {
				require.Empty(t, strings.TrimSpace(token.Data), "no inline script or style")
			}
			continue
		case html.StartTagToken:
			if !slices.Contains(void, token.Data) {
				open = append(open, token.Data)
			}
		case html.SelfClosingTagToken:
		default:
			continue
		}
		require.NotEqual(t, "style", token.Data)
		if token.Data == "h1" {
			headings++
		}
		for _, a := range token.Attr {
			require.NotEqual(t, "style", a.Key)
			require.False(t, strings.HasPrefix(a.Key, "on"), "no inline script: %s", a.Key)
			require.NotContains(t, strings.ToLower(a.Val), "javascript:")
			switch {
			case a.Key == "id":
				ids[a.Val]++
			case a.Key == "for":
				labelled[a.Val], refs[a.Val] = true, true
			case a.Key == "aria-labelledby", a.Key == "aria-describedby":
				refs[a.Val] = true
			case a.Key == "href" && strings.HasPrefix(a.Val, "#"):
				refs[a.Val[1:]] = true
			}
		}
		if token.Data == "input" {
			attrs := map[string]string{}
			for _, a := range token.Attr {
				attrs[a.Key] = a.Val
			}
			if attrs["type"] != "hidden" {
				inputs[attrs["id"]] = true
			}
		}
	}
	require.Empty(t, open, "all tags are closed")
	require.Equal(t, 1, headings, "one first heading")
	for id, n := range ids {
		require.Equal(t, 1, n, "id %q", id)
	}
	for id := range refs {
		require.NotZero(t, ids[id], "reference to %q", id)
	}
	for id := range inputs {
		require.True(t, labelled[id], "input %q has a label", id)
	}
	require.Contains(t, body, `<html lang="en">`)
}
