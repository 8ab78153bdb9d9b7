package readers

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestReadOPML(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []Outline
	}{
		{"nested, each address once", `<opml version="2.0"><head><title>x</title></head><body>
			<outline text="News"><outline text="Deeper">
				<outline type="rss" text="One" xmlUrl="http://example.org/1" htmlUrl="http://example.org/"/></outline>
				<outline text="Again" xmlUrl="http://example.org/1"/></outline>
			<outline text="Two" xmlUrl="http://example.org/2"></outline></body></opml>`,
			[]Outline{{"One", "http://example.org/1", "http://example.org/", [][]string{{"News", "Deeper"}, {"News"}}}, {Text: "Two", URL: "http://example.org/2"}}},
		{"names in any case", `<OPML><Body><Outline TITLE="One" XMLURL=" http://example.org/1 "/><outline xmlurl="http://example.org/2"/></Body></OPML>`,
			[]Outline{{Text: "One", URL: "http://example.org/1"}, {URL: "http://example.org/2"}}},
		{"bare ampersands", `<opml><body><outline text="R&D &copy;" xmlUrl="http://example.org/?a=1&b=2&amp;c=3"/></body></opml>`,
			[]Outline{{Text: "R&D ©", URL: "http://example.org/?a=1&b=2&c=3"}}},
		{"ISO-8859-1", "<?xml version='1.0' encoding='ISO-8859-1'?><opml><body><outline text='caf\xe9' xmlUrl='http://example.org/'/></body></opml>",
			[]Outline{{Text: "café", URL: "http://example.org/"}}},
		{"UTF-16", utf16(`<opml><body><outline text="é" xmlUrl="http://example.org/"/></body></opml>`),
			[]Outline{{Text: "é", URL: "http://example.org/"}}},
		{"no feeds", `<opml><body><outline text="Folder"/><outline type="include" url="http://example.org/more.opml"/></body></opml>`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ReadOPML(strings.NewReader(test.text))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// utf16 encodes text in UTF-16, little-endian, with a byte order mark.
func utf16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, r := range text {
		out = append(out, byte(r), byte(r>>8))
	}
	return string(out)
}

func TestReadRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "line 1: not OPML"},
		{"no XML", "a list of feeds", "line 1: not OPML"},
		{"another document", "<html><body/></html>", "not OPML: its root element is html"},
		{"broken off", `<opml><body><outline text="One" xmlUrl="http://example.org/1"/>`, "line 1: unexpected EOF"},
		{"too deep", "<opml>" + strings.Repeat("<outline>", mostListDepth+1), "levels"},
		{"too large", "<opml>" + strings.Repeat(" ", mostListBytes), "larger than 16 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadOPML(strings.NewReader(test.text))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// What is written can be read back.
func TestWrite(t *testing.T) {
	text := rapid.StringMatching(`[ -~äöü€\n<&"']{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		var feeds []Outline
		seen := map[string]bool{}
		for range rapid.IntRange(0, 5).Draw(t, "feeds") {
			url := "http://example.org/" + strings.Join(strings.Fields(text.Draw(t, "path")), " ")
			if !seen[url] {
				feeds = append(feeds, Outline{
					"x" + strings.Join(strings.Fields(text.Draw(t, "text")), " "), url, rapid.SampledFrom([]string{"", "http://x/"}).Draw(t, "site"),
					rapid.SampledFrom([][][]string{nil, {{"A"}}, {{"A", "B & <c>"}, {"C"}}}).Draw(t, "folders"),
				})
			}
			seen[url] = true
		}
		read, err := ReadOPML(bytes.NewReader(writeOPML(t, feeds)))
		require.NoError(t, err)
		require.ElementsMatch(t, feeds, read)
	})
}

func writeOPML(t require.TestingT, feeds []Outline) []byte {
	var b bytes.Buffer
	require.NoError(t, WriteOPML(&b, time.Unix(0, 0), feeds))
	return b.Bytes()
}

func TestText(t *testing.T) {
	got := string(writeOPML(t, []Outline{{URL: "http://example.org/a?b&c"}, {"One", "http://example.org/1", "http://example.org/", nil}}))
	require.Equal(t, `<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0">
  <head>
    <title>Feeds</title>
    <dateCreated>Thu, 01 Jan 1970 00:00:00 +0000</dateCreated>
  </head>
  <body>
    <outline type="rss" text="http://example.org/a?b&amp;c" title="http://example.org/a?b&amp;c" xmlUrl="http://example.org/a?b&amp;c"></outline>
    <outline type="rss" text="One" title="One" xmlUrl="http://example.org/1" htmlUrl="http://example.org/"></outline>
  </body>
</opml>
`, got)
}

// Whatever is read, each address comes once, and can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add(`<opml version="2.0"><body><outline text="a"><outline text="b" xmlUrl="http://example.org/"/></outline></body></opml>`)
	f.Add(`<OPML><outline XMLURL="http://example.org/?a=1&b=2" title='&copy;'/></OPML>`)
	f.Add("<?xml version='1.0' encoding='ISO-8859-1'?><opml><outline xmlUrl='\xe9'/></opml>")
	f.Add(`<!DOCTYPE opml [<!ENTITY a "&a;">]><opml><outline xmlUrl="&a;"/></opml>`)
	f.Add(utf16(`<opml><outline xmlUrl="http://example.org/"/></opml>`))
	f.Add(`<opml><outline`)
	f.Fuzz(func(t *testing.T, text string) {
		feeds, err := ReadOPML(strings.NewReader(text))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, feed := range feeds {
			require.NotEmpty(t, feed.URL)
			require.False(t, seen[feed.URL])
			seen[feed.URL] = true
		}
		again, err := ReadOPML(bytes.NewReader(writeOPML(t, feeds)))
		require.NoError(t, err)
		require.LessOrEqual(t, len(again), len(feeds)) // characters that XML does not allow are all replaced by the same one
	})
}
