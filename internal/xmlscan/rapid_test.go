package xmlscan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A document of odd parts, but with matching tags, gets further into the scanner than what fuzzing produces.
var (
	oddNames = []string{"a", "b", "p:a", "q:a", "dc:a", "xml:base", "xml:lang", "é", ":a", "a:", "xmlns:", "xmlnsx"}
	oddAttrs = []string{
		"xmlns", "xmlns:p", "xmlns:q", "xmlns:p", "xmlns:xml", "xmlns:xmlns", "xmlns:dc",
		"a", "b", "p:a", "q:a", "dc:a", "xml:base", "xml:lang", "é", "xmlns:",
	}
	oddText = []string{
		"x", " ", "\n", "\r", "\r\n", "\t", "]", "]]", ">", "]]>", "&", "&lt;", "&amp;", "&lt", "&#", "&#x41;", "&#13;",
		"&#0;", "&#xFFFE;", "&#xD800;", "&nbsp;", "&NewLine;", "&LT;", "&AMP;", "&semi;", "&notit;", "&fjlig;", ";", "\x01", "\x00", "\x7f", "é", "😀", "'", `"`,
	}
	oddMarkup = []string{"<![CDATA[", "]]>", "<!--", "--", "-", "-->", "<!---->", "<?xml ?>", "<?XML", "<?a ", "?>"}
)

func pick(t *rapid.T, from []string) string { return rapid.SampledFrom(from).Draw(t, "part") }

func drawMany(t *rapid.T, most int, draw func()) {
	for range rapid.IntRange(0, most).Draw(t, "n") {
		draw()
	}
}

func drawElement(t *rapid.T, b *strings.Builder, depth int) {
	name := pick(t, oddNames)
	b.WriteString("<" + name)
	drawMany(t, 4, func() { drawAttribute(t, b) })
	if depth == 0 || rapid.Bool().Draw(t, "empty") {
		b.WriteString("/>")
		return
	}
	b.WriteString(">")
	drawMany(t, 5, func() { drawContent(t, b, depth-1) })
	b.WriteString("</" + name + ">")
}

func drawAttribute(t *rapid.T, b *strings.Builder) {
	b.WriteString(rapid.SampledFrom([]string{" ", "\n", ""}).Draw(t, "space"))
	if !strings.HasSuffix(b.String(), `"`) {
		b.WriteString(" ")
	}
	b.WriteString(pick(t, oddAttrs) + ` = "`)
	drawMany(t, 2, func() {
		if text := pick(t, oddText); text != `"` {
			b.WriteString(text)
		}
	})
	b.WriteString(rapid.SampledFrom([]string{"", "u", "v", "<"}).Draw(t, "end") + `"`)
}

func drawContent(t *rapid.T, b *strings.Builder, depth int) {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0, 1:
		drawElement(t, b, depth)
	case 2:
		b.WriteString("<![CDATA[" + pick(t, oddText) + pick(t, oddText) + "]]>")
	case 3:
		b.WriteString("<!--" + pick(t, oddMarkup) + pick(t, oddText) + "-->")
	case 4:
		b.WriteString(pick(t, oddMarkup))
	default:
		b.WriteString(pick(t, oddText) + pick(t, oddText))
	}
}

func TestOddDocuments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		drawElement(r, &b, 3)
		doc := b.String()
		s := New(doc, Limits{})
		list, ended := scanElements(s, 20)
		for _, e := range ended {
			checkStandalone(r, doc, list, e)
		}
		compareWithEncodingXML(r, doc)
	})
}

// TestElementTextIsText compares ElementText with the text of the tokens.
func TestElementTextIsText(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		drawElement(r, &b, 3)
		var want []byte
		s := New(b.String(), Limits{})
		for s.Next() != Stop {
			want = s.AppendText(want)
		}
		s = New(b.String(), Limits{})
		s.Next()
		require.Equal(r, string(want), s.ElementText())
	})
}
