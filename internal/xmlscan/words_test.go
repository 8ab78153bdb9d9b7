package xmlscan

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Texts in which everything the scanner looks for in words of eight bytes may be anywhere.
var wordParts = []string{
	"a", "Z", "name", "longer-name_0.9", ":", "&", "&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#39;", "&#34;", "&#xA;", "&#31;", "&#13;", "&#x1F331;", "&nbsp;", "&nGt;", "&bogus;", "&lt", "&am",
	"&#55357;&#56832;", "<", ">", "]", "]]>", "\"", "'", "=", " ", "        ", "\t", "\n", "\r\n", "\x00", "\x1f", "\x7f", "é", "日本", "😀", "\uFFFE", "\uFFFD",
}

func drawText(t *rapid.T, parts []string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 40).Draw(t, "text"), "")
}

// Searching word by word gives the same results as searching byte by byte.
func TestWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, wordParts)
		i := rapid.IntRange(0, len(text)).Draw(t, "from")
		require.Equal(t, until(text, i, nameStop), nameStopAt(text, i))
		require.Equal(t, until(text, 0, decodeValue) == len(text), isPlainValue(text))
		require.Equal(t, i+strings.IndexFunc(text[i:]+"é", func(r rune) bool { return r >= utf8.RuneSelf }), beyondASCII(text, i))
		end := valueEnd(text, i, '"')
		require.Equal(t, end, until(text[:end], i, valueStop), "valueEnd must stop before anything that needs attention")
		require.NotContains(t, text[i:end], `"`)
		if end+8 <= len(text) {
			require.True(t, text[end] == '"' || text[end] < ' ' || class[text[end]]&valueStop != 0)
		}
	})
}

// ascii maps the characters of ASCII to "a", and the others to none.
func ascii(r rune) rune {
	if r < utf8.RuneSelf {
		return 'a'
	}
	return -1
}

// A document is examined as by one pass for each question.
func TestInspect(t *testing.T) {
	invalid := append([]string{"\x80", "\xC3", "\xED\xA0\xBD\xED\xB8\x80", "\xF5\x80\x80\x80", "\xE0\x80\x80"}, wordParts...)
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, rapid.SampledFrom([][]string{wordParts[:30], wordParts, invalid}).Draw(t, "parts"))
		in := inspect(text)
		require.Equal(t, utf8.ValidString(text), in.valid)
		if in.valid {
			require.Equal(t, utf8.RuneCountInString(text)-strings.Count(strings.Map(ascii, text), "a"), in.wide)
			require.Equal(t, control(text, 0) == len(text), in.clean)
			require.Equal(t, strings.Contains(text, "\uFFFE") || strings.Contains(text, "\uFFFF"), in.never)
		}
	})
}

// Text is decoded, and its faults are noted, as if its references were read one by one.
func TestReferencesInWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.NewReplacer("<", "", "]", "", "\r", "", "\x00", "", "\x1f", "").Replace(drawText(t, wordParts))
		want, faults := []byte(nil), 0
		for rest := text; rest != ""; {
			n := 1
			if rest[0] == '&' {
				var kind refKind
				if kind, n, _ = reference(rest); kind != refChar {
					faults++
				}
				want, _ = appendReference(want, rest)
			} else {
				want = append(want, rest[0])
			}
			rest = rest[n:]
		}
		c := New("<a>"+text+"</a>", Limits{})
		require.Equal(t, Start, c.Next())
		require.Equal(t, string(want), c.ElementText())
		require.Equal(t, faults, c.Lenient())
	})
}

// The short way reads a reference as the long ones do.
func TestShortReference(t *testing.T) {
	for _, ref := range []string{"&lt;", "&gt;", "&amp;", "&quot;", "&#34;", "&#39;", "&#xA;"} {
		n, c := shortReference(ref + ";")
		require.Equal(t, len(ref), n)
		require.Equal(t, html.UnescapeString(ref), string(rune(c)))
	}
	for number := range 300 {
		for _, form := range []string{"&#%d;", "&#%02d;", "&#%d", "&#x%x;", "&#x%X;", "&#x%X0"} {
			ref := fmt.Sprintf(form, number)
			if n, c := shortReference(ref); n > 0 {
				kind, length, r := numeric(ref)
				require.Equal(t, refChar, kind, ref)
				require.Equal(t, length, n, ref)
				require.Equal(t, r, rune(c), ref)
			}
		}
	}
}

// Read says of a document that it is clean without another look at it.
func TestReadClean(t *testing.T) {
	for data, clean := range map[string]bool{
		"<a>\t\n b</a>": true, "<a>é\u0085</a>": true, "<a>\r</a>": false, "<a>\x01</a>": false,
		"<a>é\r</a>": false, "<a>b</a>é\r": false, "<a>\xE9\r</a>": false, "<a>\xE9</a>": true,
		"<!DOCTYPE a [<!ENTITY returns '&#13;&#13;&#13;'>]><a>&returns;</a>": false,
		"<!DOCTYPE a [<!ENTITY e '&#13;ab'>]><a>&e;</a>":                     false, // as long as before
	} {
		c := new(Cursor)
		_, err := c.Read(data, "", false, Limits{})
		require.NoError(t, err)
		require.Equal(t, clean, c.Clean(), "%q", data)
		require.Equal(t, clean, New(c.Document(), Limits{}).Clean(), "%q", data)
	}
}

// An element with nothing but text, or one CDATA section, is read by a shorter way: each call moves to
// the same place as by tokens.
func TestLeaves(t *testing.T) {
	parts := append([]string{"<b>", "</b>", "<b/>", "</b >", "<b c='d'>", "<!-- e -->", "<![CDATA[", "<![CDATA[f]]>", "</a>", "<a>"}, wordParts...)
	rapid.Check(t, func(t *rapid.T) {
		doc := "<a>" + drawText(t, parts) + "</a>"
		quick, slow := New(doc, Limits{}), New(doc, Limits{})
		for quick.Next() == Start && slow.Next() == Start {
			depth, skips := quick.Depth(), rapid.Bool().Draw(t, "skips")
			if text := ""; skips {
				quick.Skip()
				for slow.Depth() >= depth && slow.Next() != Stop {
				}
			} else {
				for slow.Depth() >= depth && slow.Next() != Stop {
					text += string(slow.AppendText(nil))
				}
				require.Equal(t, text, quick.ElementText())
			}
			require.Equal(t, []any{slow.Depth(), slow.Offset(), slow.End(), slow.Err()}, []any{quick.Depth(), quick.Offset(), quick.End(), quick.Err()})
			slowNotes, _ := slow.Notes()
			quickNotes, _ := quick.Notes()
			require.Equal(t, slowNotes, quickNotes)
		}
	})
}
