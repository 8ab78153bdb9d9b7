package words

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		" \t\n.,;":                   "",
		"The cat, the CAT":           "the cat",
		"it's a-b_c 3.14":            "it s a b c 3 14",
		"Éclair e\u0301clair ECLAIR": "eclair",
		"Straße STRASSE":             "straße strasse",
		"Ελλάς ΕΛΛΑΣ":                "ελλασ",
		"İstanbul":                   "istanbul",
		"ﬁne ①²":                     "fine 12",
		"東京tower 東":                  "東 京 tower",
		"カタカナ":                       "カ タ ナ",
		"한국어 한국어, 한국":                "한국어 한국",
		"العَرَبِيَّة العربية":   "العربية",
		"हिन्दी हिन्द":           "हिन्दी हिन्द",
		"\u0301":                 "",
		"a\x00b\x01c\ufffdd":     "a b c d",
		"😀 ok":                   "ok",
		strings.Repeat("é", 100): strings.Repeat("e", maxWord),
		strings.Repeat("ह", 100): strings.Repeat("ह", maxWord/3),
	} {
		require.Equal(t, want, strings.Join(Fields(text), " "), "%q", text)
	}
}

func TestSet(t *testing.T) {
	var s Set
	s.Add("one two")
	s.Add("two three")
	require.Equal(t, []string{"one", "two", "three"}, s.Words())
	require.True(t, s.Contains([]string{"two", "one"}, false))
	require.True(t, s.Contains([]string{"two", "o"}, true), "the beginning of a word")
	require.True(t, s.Contains(nil, false))
	require.False(t, s.Contains([]string{"two", "four"}, false))
	s.Reset()
	require.False(t, s.Contains([]string{"two"}, false))
	require.Empty(t, s.Words())
}

func TestSetIsBounded(t *testing.T) {
	var s Set
	for i := range 30_000 {
		s.Add(fmt.Sprint("word", i))
	}
	size := len(strings.Join(s.Words(), " "))
	require.LessOrEqual(t, size, maxWords)
	require.Greater(t, size, maxWords-20)
}

func TestAddEntry(t *testing.T) {
	atom := func(inside string) string {
		return `<entry xmlns="http://www.w3.org/2005/Atom"><title>title</title>` + inside + `</entry>`
	}
	for inside, want := range map[string]string{
		`<content>plain &lt;b&gt;</content><summary>no</summary>`:                   "plain b",
		`<summary>summary</summary>`:                                                "summary",
		`<content type="html">&lt;p&gt;a&lt;/p&gt;&lt;p&gt;b &amp;amp; c</content>`: "a b c",
		`<content type="html">no markup</content>`:                                  "no markup",
		`<content type="html">a&lt;script&gt;if (b) c()&lt;/script&gt; d &lt;style&gt;e{}&lt;/style&gt;&lt;img alt="f"/&gt;g</content>`: "a d g",
		`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<br/>b</div></content>`:                                       "a b",
		`<content type="text/plain">YSBi</content>`:                                                                                     "ysbi",
		`<content type="image/png">YWJj</content>`:                                                                                      "",
		`<content type="TEXT/markdown">a *b*</content>`:                                                                                 "a b",
	} {
		e, err := feedhistory.ReadEntry(feedhistory.FormatAtom, atom(inside), "")
		require.NoError(t, err)
		var s Set
		s.AddEntry(e)
		require.Equal(t, want, strings.Join(s.Words(), " "), inside)
	}
}

func BenchmarkAddEntry(b *testing.B) {
	text := strings.Repeat("All work and no play makes Jack a dull boy. ", 20)
	data := `<entry xmlns="http://www.w3.org/2005/Atom"><content type="html">&lt;p&gt;` + text + `&lt;/p&gt;</content></entry>`
	var s Set
	for b.Loop() {
		e, _ := feedhistory.ReadEntry(feedhistory.FormatAtom, data, "")
		s.Reset()
		s.AddEntry(e)
	}
}
