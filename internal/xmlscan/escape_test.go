package xmlscan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWritten reads written characters: those XML forbids are missing, in a long text, too, which may be a
// CDATA section.
func TestWritten(t *testing.T) {
	pieces := []string{
		"<", ">", "&", "\"", "'", "\r", "\n", "\t", "]]", "]]>", "\x00", "\x1f", "\x01", "é", "\ufffe", "\uffff", "\ufffd", "\uffee", "\xef", "\xef\xbf",
		"\xff", "plain text ", "&amp;", strings.Repeat("a", 600), strings.Repeat("&lt;", 2000), strings.Repeat("<", 600),
	}
	isWritten := func(t require.TestingT, given string) {
		want := strings.Map(func(r rune) rune {
			if !IsChar(r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(given, "\uFFFD"))
		var b strings.Builder
		b.WriteString("<a")
		WriteAttr(&b, "of", given)
		b.WriteString(">")
		WriteText(&b, given)
		b.WriteString("</a>")
		require.Equal(t, -1, strings.IndexFunc(b.String(), func(r rune) bool { return !IsChar(r) }))
		c := New(b.String(), Limits{})
		require.True(t, c.Child(0))
		value, _ := c.Attr("", "of")
		require.Equal(t, want, value)
		text := ""
		for depth := c.Depth(); c.Next() != Stop && c.Depth() >= depth; {
			text += string(c.AppendText(nil))
		}
		require.NoError(t, c.Err())
		require.Equal(t, want, text)
	}
	isWritten(t, strings.Repeat("&", 5000)+"]]\x01>") // which would end a CDATA section without the character
	rapid.Check(t, func(t *rapid.T) {
		isWritten(t, strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), ""))
	})
}
