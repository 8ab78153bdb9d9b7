package markup

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
