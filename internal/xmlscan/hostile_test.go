package xmlscan

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func TestLimits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		limit string
		max   int
		set   Limits
		doc   func(n int) string
	}{
		{"depth", 256, Limits{}, nested},
		{"depth", 3, Limits{Depth: 3}, nested},
		{"attributes", 256, Limits{}, func(n int) string { return "<a" + list(n, " b%d=''") + "/>" }},
		{"attributes", 300, Limits{Attributes: 300}, func(n int) string { return "<a" + list(n, " b%d=''") + "/>" }},
		{"attributes", 256, Limits{}, func(n int) string { return "<a" + strings.Repeat(" b=''", n) + "/>" }},
		{"attributes", 5, Limits{Attributes: 5}, func(n int) string { return "<a" + strings.Repeat(" xmlns:b='u'", n) + "/>" }},
		{"namespaces", 256, Limits{}, func(n int) string {
			return "<a" + list(n-200, " xmlns:b%d='u'") + "><b" + list(200, " xmlns:b%d='u'") + "/></a>"
		}},
		{"namespaces", 4, Limits{Namespaces: 4}, func(n int) string { return "<a" + list(n, " b%d:c=''") + "/>" }},
		{"elements", 1_000_000, Limits{}, func(n int) string { return "<a>" + strings.Repeat("<b/>", n-1) + "</a>" }},
		{"elements", 2, Limits{Elements: 2}, func(n int) string { return "<a>" + strings.Repeat("<b/>", n-1) + "</a>" }},
	} {
		t.Run(fmt.Sprint(tt.limit, tt.max), func(t *testing.T) {
			s := New(tt.doc(tt.max), tt.set)
			for s.Next() != Stop {
			}
			require.NoError(t, s.Err())
			s = New(tt.doc(tt.max+1), tt.set)
			for s.Next() != Stop {
			}
			err := feedtest.ErrorAs[*LimitError](t, s.Err())
			require.Equal(t, tt.limit, err.Limit)
			require.Equal(t, tt.max, err.Max)
			require.Equal(t, 1, err.Line)
			require.Positive(t, err.Offset)
			require.Equal(t, Stop, s.Next())
		})
	}
}

// TestLimitsAreOfScope checks that limits on what is in scope do not count what is not.
func TestLimitsAreOfScope(t *testing.T) {
	s := New("<a>"+strings.Repeat("<b xmlns:p='u' p:c='' d=''><e/></b>", 1000)+"</a>", Limits{})
	for s.Next() != Stop {
	}
	require.NoError(t, s.Err())
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostile scans documents that make other readers fail, in little memory.
func TestHostile(t *testing.T) {
	const small = 256 << 10
	repeat := strings.Repeat
	for _, tt := range []struct {
		name string
		doc  string
		err  string
	}{
		{"2.5 million nested elements", repeat("<a>", 2_500_000), "depth over the limit"},
		{"nested namespace declarations", repeat(`<a xmlns:b="urn:x:`+repeat("c", 1000)+`">`, 1_700), "depth over the limit"},
		{"namespace declarations of siblings", "<a>" + repeat(`<b xmlns:b="urn:x:`+repeat("c", 1000)+`"/>`, 1_700) + "</a>", ""},
		{"billion laughs", `<!DOCTYPE a [<!ENTITY b "ha">` + repeat(`<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">`, 10) + `]><a>&c;</a>`, ""},
		{"ampersands", "<a>" + repeat("&", 1_000_000) + "</a>", ""},
		{"ampersands in a value", "<a b='" + repeat("&", 1_000_000) + "'/>", ""},
		{"ampersand and a long name", "<a>&" + repeat("b", 3_000_000) + ";</a>", ""},
		{"reference with many digits", "<a>&#" + repeat("1", 3_000_000) + ";</a>", ""},
		{"undefined entities", "<a>" + repeat("&"+repeat("x", 40)+";", 50_000) + "</a>", ""},
		{"a million attributes", "<a" + repeat(" b=''", 1_000_000) + "/>", "attributes over the limit"},
		{"a million duplicates", "<a>" + repeat("<a"+repeat(" b=''", 250)+"/>", 4_000) + "</a>", ""},
		{"endless doctype", "<!DOCTYPE a [" + repeat("<!ENTITY b 'c'>", 200_000), "document ends"},
		{"endless doctype of brackets", "<!DOCTYPE a " + repeat("[<", 1_000_000), "document ends"},
		{"endless doctype of comments", "<!DOCTYPE a " + repeat("<!-- -->", 400_000), "document ends"},
		{"endless quote", "<!DOCTYPE a '" + repeat("<", 3_000_000), "document ends"},
		{"endless comment", "<!--" + repeat("--", 1_500_000), "document ends"},
		{"endless instructions", repeat("<?a?>", 600_000), "document ends"},
		{"endless CDATA", "<a><![CDATA[" + repeat("]]", 1_500_000), "document ends"},
		{"endless value", "<a b='" + repeat("<", 3_000_000), "document ends"},
		{"endless name", "<" + repeat("a", 3_000_000), "document ends"},
		{"long names", repeat("<"+repeat("a", 10_000)+">", 255), "document ends"},
		{"16 MB of <", repeat("<", 16<<20), "expected a name"},
		{"16 MB of < in an element", "<a>" + repeat("<", 16<<20), "expected a name"},
		{"]]> for ever", "<a>" + repeat("]]>", 1_000_000) + "</a>", ""},
		{"comments after the root", "<a/>" + repeat("<!-- -->", 400_000) + "<!--", ""},
		{"undeclared prefixes", "<a>" + repeat("<b:c/>", 300_000) + "</a>", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.doc, Limits{})
			n := allocated(func() {
				for s.Next() != Stop {
				}
			})
			if tt.err == "" {
				require.NoError(t, s.Err())
			} else {
				require.ErrorContains(t, s.Err(), tt.err)
				require.Less(t, len(s.Err().Error()), 300)
			}
			require.Less(t, n, uint64(small))
		})
	}
}

// TestElementTextLinear reads a text that comments break into a million runs.
func TestElementTextLinear(t *testing.T) {
	const runs = 400_000
	for _, tt := range []struct{ name, run, want string }{
		{"plain", "a<!---->", "a"},
		{"references", "&lt;<!---->", "<"},
		{"CDATA", "<![CDATA[a]]>", "a"},
		{"elements", "<b>a</b>", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New("<a>"+strings.Repeat(tt.run, runs)+"</a>", Limits{})
			s.Next()
			var text string
			n := allocated(func() { text = s.ElementText() })
			require.Equal(t, strings.Repeat(tt.want, runs), text)
			require.Less(t, n, uint64(10*runs+4096))
		})
	}
}

// TestElementTextSubstring checks that texts are parts of the document.
func TestElementTextSubstring(t *testing.T) {
	for _, doc := range []string{
		"<a>" + strings.Repeat("b", 1<<20) + "</a>",
		"<a><!-- c --><![CDATA[" + strings.Repeat("b\n", 1<<20) + "]]><d/></a>",
	} {
		s := New(doc, Limits{})
		s.Next()
		require.Less(t, allocated(func() { s.ElementText() }), uint64(4096))
	}
}

// TestStandaloneGrowth repairs fragments whose repairs are longer than they are.
func TestStandaloneGrowth(t *testing.T) {
	for _, tt := range []struct {
		run    string
		growth int
	}{
		{"&", 5},
		{"]]>", 2},
		{"<at:b/>", 9},
		{"<a b='<<<<<<<<<<'/>", 3},
		{"<![CDATA[\x01]]>", 1},
	} {
		fragment := "<a>" + strings.Repeat(tt.run, 100_000) + "</a>"
		var out string
		n := allocated(func() { out = Standalone(fragment, nil, "") })
		require.LessOrEqual(t, len(out), tt.growth*len(fragment), tt.run)
		require.Less(t, n, uint64(8*tt.growth*len(fragment)), tt.run)
	}
}
