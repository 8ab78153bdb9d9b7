package xmlscan

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noLimits = Limits{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt}

// An event is a token as tests compare them: adjacent runs of text are one, and an element has its expanded
// name.
type event struct {
	Token Token // Start, End or Text
	Name  string
	Attrs []string
	Text  string
}

func expanded(space, local string) string { return "{" + space + "}" + local }

// events reads the rest of a document.
func events(s *Cursor) (list []event) {
	for tok := s.Next(); tok != Stop; tok = s.Next() {
		list = appendEvent(list, s, tok)
	}
	return list
}

func appendEvent(list []event, s *Cursor, tok Token) []event {
	switch tok {
	case Start:
		e := event{Token: Start, Name: expanded(s.Space(), s.Local())}
		for _, a := range s.Attrs() {
			e.Attrs = append(e.Attrs, expanded(a.Space, a.Local)+"="+a.Value())
		}
		return append(list, e)
	case End:
		return append(list, event{Token: End, Name: expanded(s.Space(), s.Local())})
	}
	return appendText(list, string(s.AppendText(nil)))
}

func appendText(list []event, text string) []event {
	if text == "" {
		return list
	}
	if n := len(list); n > 0 && list[n-1].Token == Text {
		list[n-1].Text += text
		return list
	}
	return append(list, event{Token: Text, Text: text})
}

// An element is a scanned element, to be written standalone.
type element struct {
	from, to   int // in the events
	start, end int // in the document
	outer      []Binding
}

// scanElements returns the events of a document, and its first elements that
// have ended.
func scanElements(s *Cursor, most int) (list []event, ended []element) {
	var open []element
	for tok := s.Next(); tok != Stop; tok = s.Next() {
		list = appendEvent(list, s, tok)
		switch tok {
		case Start:
			outer := s.Bindings()[:s.save().bindings]
			open = append(open, element{from: len(list) - 1, start: s.Offset(), outer: slices.Clone(outer)})
		case End:
			e := open[len(open)-1]
			open = open[:len(open)-1]
			e.to, e.end = len(list), s.End()
			if len(ended) < most {
				ended = append(ended, e)
			}
		}
	}
	return list, ended
}

// declarations returns the attributes that declare bindings.
func declarations(bindings []Binding) string {
	var b strings.Builder
	for i, d := range bindings {
		inner := func(o Binding) bool { return o.Prefix == d.Prefix }
		if slices.ContainsFunc(bindings[i+1:], inner) {
			continue
		}
		b.WriteString(" xmlns")
		if d.Prefix != "" {
			b.WriteString(":" + d.Prefix)
		}
		b.WriteString(`="`)
		_ = xml.EscapeText(&b, []byte(d.URI))
		b.WriteString(`"`)
	}
	return b.String()
}

// checkReadAgain checks that a scanner that has read something else before reads e again as it was.
func checkReadAgain(t *testing.T, doc string, list []event, e element) {
	s := NewFragment("<a b='&amp;'>]]&amp;\x01<c xml:lang='d'/></a>", nil, Limits{})
	s.Next()
	for _, clean := range []bool{false, control(doc, e.start) == len(doc)} {
		s.ReadAgain(doc[e.start:e.end], e.outer, clean)
		require.Equal(t, list[e.from:e.to], events(s))
		require.NoError(t, s.Err())
	}
}

// checkStandalone checks that e, written standalone, is well-formed and says the same.
func checkStandalone(t require.TestingT, doc string, list []event, e element) {
	fragment := doc[e.start:e.end]
	out := Standalone(fragment, e.outer, declarations(e.outer))
	s := New(out, noLimits)
	got := events(s)
	notes, _ := s.Notes()
	require.NoError(t, s.Err(), "%q", out)
	require.Empty(t, notes, "%q", out)
	require.Equal(t, list[e.from:e.to], got, "%q became %q", fragment, out)
	if oldNames(out) {
		_, err := stdEvents(out)
		require.NoError(t, err, "%q became %q", fragment, out)
	}
	require.Equal(t, list[e.from:e.to], events(NewFragment(fragment, e.outer, noLimits)), "%q", fragment)
}

// oldNames reports whether all names of doc consist of ASCII characters. Otherwise encoding/xml accepts only
// those of XML 1.0's second edition.
func oldNames(doc string) bool {
	s := New(doc, noLimits)
	for tok := s.step(); tok != Stop; tok = s.step() {
		markup := doc[s.start:s.end]
		if (tok == Start || tok == End || tok == misc) && strings.ContainsFunc(markup, func(r rune) bool { return r > 0x7F }) {
			return false
		}
	}
	return true
}

// stdEvents reads a document with encoding/xml.
func stdEvents(doc string) (list []event, err error) {
	d := xml.NewDecoder(strings.NewReader(doc))
	for depth := 0; ; {
		tok, err := d.Token()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			depth++
			list = append(list, stdStart(tok))
		case xml.EndElement:
			depth--
			list = append(list, event{Token: End, Name: expanded(tok.Name.Space, tok.Name.Local)})
		case xml.CharData:
			if depth > 0 || strings.TrimSpace(string(tok)) != "" {
				list = appendText(list, string(tok))
			}
		}
	}
}

func stdStart(tok xml.StartElement) event {
	e := event{Token: Start, Name: expanded(tok.Name.Space, tok.Name.Local)}
	for _, a := range tok.Attr {
		if a.Name.Space != "xmlns" && (a.Name.Space != "" || a.Name.Local != "xmlns") {
			e.Attrs = append(e.Attrs, expanded(a.Name.Space, a.Name.Local)+"="+a.Value)
		}
	}
	return e
}

// spaces turns white space in attribute values and namespaces into spaces: encoding/xml leaves it, and does
// not distinguish it from references to it.
func spaces(list []event) []event {
	r := strings.NewReplacer("\n", " ", "\t", " ", "\r", " ")
	list = slices.Clone(list)
	for i := range list {
		list[i].Name = r.Replace(list[i].Name)
		list[i].Attrs = slices.Clone(list[i].Attrs)
		for k, a := range list[i].Attrs {
			list[i].Attrs[k] = r.Replace(a)
		}
	}
	return list
}

var seeds = []string{
	`<a/>`,
	`<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "]>"> <!-- ' --> <?p ]> ?>]><!-- c --><a b='1' c="&lt;&#10;2">t&amp;u<![CDATA[<v>]]>w</a><!-- d -->`,
	`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xml:base="a/" xml:lang="en"><fh:archive/><entry><title>T</title></entry></feed>`,
	`<a xmlns:p="u" xmlns:q="u" p:x="1" q:x="2" x="3" x="4"><p:b xmlns:p="v"/></a>`,
	`<dc:a foo:b="1" dc:c="2"><dc:d/><foo:e/></dc:a>`,
	"<a b='<&\x01;&nbsp;&x;&#0;&notit;'c=\"d\">]]\x01> ]]> & &x; &eacute; &#1; &#xD800; &semi;\r\n\r<![CDATA[]]\x02>\r\n]]>\r\x01\n</a>",
	"<a>]]<!-- -- -->><?XML \x01?>&lt<!-- \x02 --></a>",
	`<a xmlns:p="" xmlns:xml="u" xmlns:xmlns="u" xmlns=""><p:b/></a>`,
	`<a><b></a>`, `<a`, `<a b`, `<a b=`, `<a b="`, `<a>`, `<a><!-`, `<a></`, `<a></a`, `</a>`, `<a/><b/>`, `<a/>t`, `t<a/>`, ``,
	`<é ü="ñ">ß</é>`, `<a:b:c/>`, `<:a/>`, `<a:/>`, `<xmlns:a/>`, `<a xmlns:="u"/>`, `<1/>`,
	`<rss version="2.0"><channel><item><media:thumbnail url="a?b&c"/></item></channel></rss>`,
}

func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, _, err := Decode(string(data), "")
		require.NoError(t, err)
		s := New(doc, Limits{})
		list, ended := scanElements(s, 20)
		if s.Err() == nil {
			require.NotEmpty(t, ended)
			require.Zero(t, s.Depth())
		}
		for _, e := range ended {
			checkStandalone(t, doc, list, e)
			checkReadAgain(t, doc, list, e)
		}
		again := New(doc, Limits{})
		again.Names = new(Names)
		require.Equal(t, list, events(again))
	})
}

// refusals are the reasons for which the scanner may refuse what encoding/xml
// accepts. A limit is another.
var refusals = []string{
	"text outside the root element",
	"markup declaration out of place", // a directive other than a DOCTYPE before the root
	"the document ends before its root element",
	"element with the prefix xmlns", "name with a misplaced colon",
}

// unlike are the leniencies after which encoding/xml may read something else: it knows no usual namespaces,
// keeps duplicates, lets xmlns:p="" unbind, and reads references to surrogates as U+FFFD.
var unlike = []string{"undeclared-prefix", "duplicate-attribute", "bad-namespace", "control-character"}

func FuzzAgainstEncodingXML(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) { compareWithEncodingXML(t, doc) })
}

// compareWithEncodingXML checks that what encoding/xml accepts is read in the same way.
func compareWithEncodingXML(t require.TestingT, doc string) {
	want, err := stdEvents(doc)
	if err != nil || oddDirective(doc) {
		return
	}
	s := New(doc, Limits{})
	got := events(s)
	notes, more := s.Notes()
	var syntax *SyntaxError
	var limit *LimitError
	switch {
	case errors.As(s.Err(), &limit):
		return
	case errors.As(s.Err(), &syntax):
		require.Contains(t, refusals, syntax.Msg)
		return
	case more > 0, slices.ContainsFunc(notes, func(n Note) bool { return slices.Contains(unlike, n.Code) }):
		return
	case slices.ContainsFunc(notes, func(n Note) bool { return n.Code == "content-after-root" }):
		want = want[:min(len(got), len(want))]
	}
	require.Equal(t, spaces(want), spaces(got))
}

// oddDirective reports whether doc has a directive with an internal subset. If that is not well-formed, every
// parser guesses where it ends.
func oddDirective(doc string) bool {
	_, after, found := strings.Cut(doc, "<!D")
	return found && strings.ContainsAny(after, "[")
}

func (e event) String() string { return fmt.Sprintf("%d %s %q %q", e.Token, e.Name, e.Attrs, e.Text) }

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
