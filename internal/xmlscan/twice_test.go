package xmlscan

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
)

// twice encodes a text as UTF-8 once more.
func twice(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(byteRune(charmap.Windows1252, text[i]))
	}
	return b.String()
}

func TestEncodedTwice(t *testing.T) {
	for text, want := range map[string]string{
		twice("<a>été à “Noël”</a>"):                              "<a>été à “Noël”</a>",
		twice("<a>Привет</a><b>日本 😀</b>"):                         "<a>Привет</a><b>日本 😀</b>",
		"<a>é</a><b>" + twice("été à Noël") + "</b>":              "<a>é</a><b>été à Noël</b>",
		"<a>é</a><![CDATA[<p>" + twice("été à</p> Noël") + "]]>":  "<a>é</a><![CDATA[<p>été à</p> Noël]]>",
		"<a>é</a><![CDATA[<p>" + twice("été à") + "</p> é]]><b>é": "",
		"<a>é</a><id>" + twice("http://a/été-à-Noël") + "</id>":   "", // an ID
		"<a>Why Ã© stands for é</a>":                              "",
		"<a>Fixing Ã© in Python</a>":                              "",
		"<a>NÃO, SÃO, PÃES</a>":                                   "",
		"<a>„Ä“ CAFÉ” É” Å™ Ï€</a>":                               "",
		"<a>été à Noël, Привет</a>":                               "",
		"<a>plain</a>":                                            "",
	} {
		got, notes := XMLEncodedOnce(text)
		if want == "" {
			require.Equal(t, text, got)
			require.Empty(t, notes)
			continue
		}
		require.Equal(t, want, got)
		require.Equal(t, "encoded-twice", notes[0].Code)
		require.True(t, utf8.RuneStart(got[notes[0].Offset]))
		again, notes := XMLEncodedOnce(got)
		require.Empty(t, notes)
		require.Equal(t, got, again)
	}
}

// Many short texts, and CDATA sections without an end, take linear time.
func TestEncodedTwiceHostile(t *testing.T) {
	for _, unit := range []string{"<a>Ã©</a>", "<![CDATA[Ã©<", "Ã©Ã© Ã©<", "\u00c3"} {
		text := "é" + strings.Repeat(unit, 1<<20/len(unit))
		got, _ := XMLEncodedOnce(text)
		require.True(t, utf8.ValidString(got))
	}
}
