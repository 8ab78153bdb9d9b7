package xmlscan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Parts of documents in which the same names mean different things.
var nameParts = []string{
	"<a>", "</a>", "<a>x</a>", "<a >x</a >", "<a\n/>", "<b:a>x</b:a>", "<b:a>", "</b:a>", `<a xmlns="u">`, `<a xmlns:b="v">`, `<b:a xmlns:b="w">x</b:a>`, `<a xmlns="">x</a>`, `<a b:c="d"/>`,
	"<title>", "</title>", "<content:encoded>x</content:encoded>", "<content:encode>x</content:encode>", "<a-name-of-15.ch>x</a-name-of-15.ch>", "<a-name-of-16.chr>x</a-name-of-16.chr>", "<é>x</é>", "<aé/>",
	"<xmlns:a/>", "<xml:a/>", "<a:b:c/>", "< a>", "<a", "x", "<!--x-->", "<![CDATA[x]]></a>",
}

// A scanner that remembers the names of earlier documents reads the next as any other does, and a name keeps
// its number where it has the same meaning.
func TestRememberedNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, numbered := &Cursor{Scanner: Scanner{Names: new(Names)}}, []string{""}
		for range 3 {
			doc := `<root xmlns:b="o">` + strings.Repeat(drawText(t, nameParts), 2) + strings.Repeat("</a>", 3) + "</root>"
			c.reset(doc, nil, Limits{})
			fresh := New(doc, Limits{})
			for tok := Start; tok != Stop; {
				tok = fresh.Next()
				require.Equal(t, tok, c.Next(), doc)
				require.Equal(t, appendEvent(nil, fresh, tok), appendEvent(nil, c, tok), doc)
				require.Equal(t, []any{fresh.Offset(), fresh.End(), fresh.Depth(), fresh.Bindings(), fresh.Err()}, []any{c.Offset(), c.End(), c.Depth(), c.Bindings(), c.Err()}, doc)
				if memo := c.Memo(); memo != nil {
					if name := expanded(c.Space(), c.Local()); *memo == 0 {
						*memo, numbered = len(numbered), append(numbered, name)
					} else {
						require.Equal(t, numbered[*memo], name, doc)
					}
				}
			}
		}
	})
}

// Elements with nothing but text are read in one step where their names are known, too.
func TestKnownLeaves(t *testing.T) {
	c := &Cursor{Scanner: Scanner{Names: new(Names)}}
	for range 2 {
		for doc, text := range map[string]string{
			"<a><content:encoded>b</content:encoded></a>  ": "b", "<a><title>b</title></a>         ": "b", "<a><title>b</titles></title></a>": "",
			"<a><title><![CDATA[b]]></title></a>            ": "b", "<a><title>b</title ></a>          ": "", "<a><title x=''>b</title></a>       ": "b", "<a><title>b</tit": "",
		} {
			c.reset(doc, nil, Limits{})
			require.True(t, c.Child(0) && c.Child(1))
			got, ok := c.LeafText()
			require.Equal(t, []any{text, text != ""}, []any{got, ok}, doc)
		}
	}
}
