package xmlscan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpand(t *testing.T) {
	doctype := func(declarations, rest string) string {
		return "<?xml version='1.0'?>\n<!-- <!DOCTYPE no [<!ENTITY a 'no'>]> -->\n<!DOCTYPE rss [" + declarations + "]>" + rest
	}
	for _, tt := range []struct{ name, declarations, text, want string }{
		{"text", `<!ENTITY id "tag:example.com,">`, "<a>&id;2006 &id &other; &amp;</a>", "<a>tag:example.com,2006 &id &other; &amp;</a>"},
		{"attribute", `<!ENTITY q '"&#60;"'>`, `<a b="&q;">&q;</a>`, `<a b="&quot;&lt;&quot;">"<"</a>`},
		{"not in CDATA, comments and instructions", `<!ENTITY x "y">`, "<a><![CDATA[&x;]]><!--&x;--><?x &x;?>&x;</a>", "<a><![CDATA[&x;]]><!--&x;--><?x &x;?>y</a>"},
		{"the first declaration counts", `<!ENTITY x "1"><!ENTITY x "2">`, "<a>&x;</a>", "<a>1</a>"},
		{"HTML's, not XML's", `<!ENTITY copy "C"><!ENTITY lt "L">`, "<a>&copy;&lt;</a>", "<a>C&lt;</a>"},
		{"one in another", `<!ENTITY a "[&b;]"><!ENTITY b "x">`, "<a>&a;</a>", "<a>[x]</a>"},
		{"circle", `<!ENTITY a "&b;"><!ENTITY b "&a;">`, "<a>&a;</a>", "<a>&a;</a>"},
		{"characters", `<!ENTITY a "&#233;&#38;amp;">`, "<a>&a;</a>", "<a>é&amp;</a>"},
		{"external and parameter entities", `<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY % b "c"><!-- <!ENTITY d "e"> -->`, "<a>&a;&b;&d;</a>", "<a>&a;&b;&d;</a>"},
		{"commented out", `<!-- <!ENTITY d "e"> --><?x <!ENTITY d "e"> ?><!ATTLIST a b CDATA "<!ENTITY d 'e'>">`, "<a>&d;</a>", "<a>&d;</a>"},
		{"too long", `<!ENTITY a "` + strings.Repeat("x", 100) + `">`, "<a>" + strings.Repeat("&a;", 100) + "</a>", "<a>" + strings.Repeat("&a;", 100) + "</a>"},
		{"broken", `<!ENTITY a "b">`, `<a x="y>&a;<b>&a;`, `<a x="y>b<b>b`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, doctype(tt.declarations, tt.want), Expand(doctype(tt.declarations, tt.text)))
		})
	}
	for _, doc := range []string{"", "<a/>", "<!DOCTYPE", "<!DOCTYPE a [", "<!DOCTYPE a [<!ENTITY", "<!DOCTYPE a [<!ENTITY a", "<!DOCTYPE a [<!ENTITY a 'b", "<!DOCTYPE a []><a>&b;</a>", "<?xml", "<!--"} {
		require.Equal(t, doc, Expand(doc))
	}
}

// TestExpandBounded expands entities that multiply, which must stay cheap.
func TestExpandBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("<!DOCTYPE a [<!ENTITY a0 'lol'>")
	for i := range 25 {
		name := string(rune('a' + i))
		b.WriteString("<!ENTITY " + string(rune('b'+i)) + "0 '" + strings.Repeat("&"+name+"0;", 10) + "'>")
	}
	b.WriteString("]><a>" + strings.Repeat("&z0;&c0;", 1000) + "</a>")
	require.LessOrEqual(t, len(Expand(b.String())), 2*b.Len())
	require.Less(t, allocated(func() { Expand(b.String()) }), uint64(64*b.Len()))
}

func FuzzExpand(f *testing.F) {
	f.Add(`<!DOCTYPE a [<!ENTITY b "c&d;"><!ENTITY d 'e'>]><a f="&b;">&b;<![CDATA[&b;]]></a>`)
	f.Fuzz(func(t *testing.T, doc string) {
		out := Expand(doc)
		require.LessOrEqual(t, len(out), 2*len(doc))
		require.True(t, len(out) > 0 || doc == "")
	})
}
