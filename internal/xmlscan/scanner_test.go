package xmlscan

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
)

// trace describes each token on a line.
func trace(s *Cursor) (lines []string) {
	for tok := s.Next(); tok != Stop; tok = s.Next() {
		line := fmt.Sprintf("%d ", s.Depth())
		switch tok {
		case Start:
			line += "<" + expanded(s.Space(), s.Local())
			for _, a := range s.Attrs() {
				line += " " + expanded(a.Space, a.Local) + "=" + a.Value()
			}
		case End:
			line += "/" + expanded(s.Space(), s.Local())
		case Text:
			line += "text " + string(s.AppendText(nil))
		case CData:
			line += "cdata " + string(s.AppendText(nil))
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTokens(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		want      []string
	}{
		{"smallest", `<a/>`, []string{"1 <{}a", "0 /{}a"}},
		{"spaces in tags", "<a\n b = '1'\tc=\"2\" ></a >", []string{"1 <{}a {}b=1 {}c=2", "0 /{}a"}},
		{"prolog and epilog", " <!--x--><?p q?><!DOCTYPE a> <a/> <!--y--> <?p?>\n", []string{"1 <{}a", "0 /{}a"}},
		{"XML declaration", "<?xml version='1.0'?>\n<a/>", []string{"1 <{}a", "0 /{}a"}},
		{"doctype", `<!DOCTYPE a PUBLIC "-//>" '>' [ <!ENTITY e "]>"> <!-- ' ]> --> <?p ' ]>?> <!ATTLIST a b (c|d) "[">]><a>&lt;</a>`,
			[]string{"1 <{}a", "1 text <", "0 /{}a"}},
		{"text and CDATA", "<a>x<![CDATA[<&amp;]]]>y<!--c-->z</a>",
			[]string{"1 <{}a", "1 text x", "1 cdata <&amp;]", "1 text y", "1 text z", "0 /{}a"}},
		{"references", "<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x1F6Aa;&#13;</a>", []string{"1 <{}a", "1 text <>&\"'A🚪" + "\r", "0 /{}a"}},
		{"line ends", "<a>1\r\n2\r3\n<![CDATA[\r\n]]></a>", []string{"1 <{}a", "1 text 1\n2\n3\n", "1 cdata \n", "0 /{}a"}},
		{"white space in values", "<a b='1\r\n2\t3\r4&#10;5&#x9;'/>", []string{"1 <{}a {}b=1 2 3 4\n5\t", "0 /{}a"}},
		{"namespaces", `<p:a xmlns="d" xmlns:p="u&amp;v" p:x="1" x="2"><b xmlns=""/><p:c xmlns:p="w"/><d/></p:a>`, []string{
			"1 <{u&v}a {u&v}x=1 {}x=2", "2 <{}b", "1 /{}b", "2 <{w}c", "1 /{w}c", "2 <{d}d", "1 /{d}d", "0 /{u&v}a"}},
		{"xml prefix", `<a xml:id="i" xmlns:xml="http://www.w3.org/XML/1998/namespace"/>`, []string{"1 <{}a {" + XMLNamespace + "}id=i", "0 /{}a"}},
		{"names", `<été·1 x.y-z_="1"/>`, []string{"1 <{}été·1 {}x.y-z_=1", "0 /{}été·1"}},
		{"names of all kinds", `<ж日Ⅰⶀ豈ﷰ😀‿/>`, []string{"1 <{}ж日Ⅰⶀ豈ﷰ😀‿", "0 /{}ж日Ⅰⶀ豈ﷰ😀‿"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.doc, Limits{})
			require.Equal(t, tt.want, trace(s))
			require.NoError(t, s.Err())
			require.Zero(t, s.Lenient())
			require.Equal(t, Stop, s.Next())
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		msg       string
		offset    int
	}{
		{"text before the root", "x<a/>", "text outside the root element", 0},
		{"reference before the root", "&lt;<a/>", "text outside the root element", 0},
		{"CDATA before the root", "<![CDATA[x]]><a/>", "markup declaration out of place", 0},
		{"end tag before the root", "</a>", "end tag without a start tag", 0},
		{"mismatch", "<a><b></a>", "expected the end tag of <b>", 8},
		{"longer end tag", "<a></ab>", "expected the end tag of <a>", 6},
		{"end tag with an attribute", "<a></a b='1'>", "expected the end tag of <a>", 7},
		{"other prefix of the same namespace", "<p:a xmlns:p='u' xmlns:q='u'></q:a>", "expected the end tag of <p:a>", 31},
		{"space before the name", "<a>< b/></a>", "expected a name", 4},
		{"digit", "<1/>", "expected a name", 1},
		{"not a name character", "<a×/>", "expected a name", 1},
		{"private use character", "<a\uE000/>", "expected a name", 1},
		{"combining character first", "<\u0301a/>", "expected a name", 1},
		{"two colons", "<a:b:c/>", "name with a misplaced colon", 1},
		{"attribute with two colons", "<a b:c:d=''/>", "name with a misplaced colon", 3},
		{"colon first", "<:a/>", "name with a misplaced colon", 1},
		{"colon last", "<a:/>", "name with a misplaced colon", 1},
		{"attribute with a colon first", "<a :b=''/>", "name with a misplaced colon", 3},
		{"attribute with a colon last", "<a xmlns:=''/>", "name with a misplaced colon", 3},
		{"xmlns as a prefix", "<xmlns:a/>", "element with the prefix xmlns", 1},
		{"no value", "<a b/>", "attribute without a value", 4},
		{"no quotes", "<a b=1/>", "attribute value without quotes", 5},
		{"control character in a tag", "<a \x01/>", "expected a name", 3},
		{"slash", "<a / b=''/>", "expected a name", 3},
		{"doctype in the root", "<a><!DOCTYPE a></a>", "markup declaration out of place", 3},
		{"declaration in the root", "<a><!ELEMENT a></a>", "markup declaration out of place", 3},
		{"no target", "<? a?><a/>", "processing instruction without a target", 0},
		{"bad target", "<?1?><a/>", "processing instruction without a target", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.doc, Limits{})
			trace(s)
			_, column := Line(tt.doc, tt.offset)
			require.Equal(t, &SyntaxError{Offset: tt.offset, Line: 1, Column: column, Msg: tt.msg}, s.Err())
			require.Equal(t, Stop, s.Next())
		})
	}
}

// TestTruncated cuts a document at every place.
func TestTruncated(t *testing.T) {
	const doc = `<?xml version="1.0"?><!DOCTYPE a [ <!ENTITY b "c"> <!-- d --> ]><!-- e -->` +
		`<p:a xmlns:p='u' b = "&lt;"><c/>d &amp;<![CDATA[ e ]]><!-- f --><?g h?></p:a >`
	for n := range len(doc) {
		s := New(doc[:n], Limits{})
		trace(s)
		err := feedtest.ErrorAs[*SyntaxError](t, s.Err(), "%q", doc[:n])
		require.True(t, err.Truncated, "%q: %v", doc[:n], err)
		require.Equal(t, n, err.Offset)
	}
	s := New(doc, Limits{})
	trace(s)
	require.NoError(t, s.Err())
}

func TestRanges(t *testing.T) {
	const doc = " <a><b x='1'/>t<!--c--><![CDATA[d]]></a> "
	s := New(doc, Limits{})
	var got []string
	for s.Next() != Stop {
		got = append(got, doc[s.Offset():s.End()])
	}
	require.Equal(t, []string{"<a>", "<b x='1'/>", "", "t", "<![CDATA[d]]>", "</a>"}, got)
}

func TestScope(t *testing.T) {
	const doc = `<a xml:base="http://h/&amp;" xml:lang="en" xmlns="d"><b xml:base="c" xml:lang="" xmlns:p="u"/><c/></a>`
	s := New(doc, Limits{})
	require.Equal(t, Start, s.Next())
	outer := Base{Ref: "http://h/&", At: 3, Reach: Reach{9, 10}}
	require.Equal(t, []Base{outer}, s.Bases())
	require.Equal(t, "en", lang(t, s))
	require.Equal(t, Start, s.Next())
	require.Equal(t, []Base{outer, {Ref: "c", At: 56, Reach: Reach{9, 10}}}, s.Bases())
	require.Equal(t, Reach{9, 10}, s.TakeReach())
	require.Zero(t, s.TakeReach(), "asked for already")
	require.Equal(t, "", lang(t, s))
	require.Equal(t, []Binding{{"", "d"}, {"p", "u"}}, s.Bindings())
	require.Equal(t, End, s.Next())
	require.Equal(t, Start, s.Next())
	require.Equal(t, []Base{outer}, s.Bases())
	require.Equal(t, "en", lang(t, s))
	require.Equal(t, []Binding{{"", "d"}}, s.Bindings())
}

// lang returns the language in scope; there must be one.
func lang(t *testing.T, s *Cursor) string {
	lang, ok := s.Lang()
	require.True(t, ok)
	return lang
}

func TestLanguageThatIsNone(t *testing.T) {
	s := New(`<a><b xml:lang="`+strings.Repeat("x", maxLang+1)+`"/></a>`, Limits{})
	for s.Next() != Stop {
		_, ok := s.Lang()
		require.False(t, ok)
	}
	notes, _ := s.Notes()
	require.Len(t, notes, 1)
	require.Equal(t, "language-too-long", notes[0].Code)
}

func TestAttr(t *testing.T) {
	s := New(`<a x="1" p:x="&lt;" xmlns:p="u"/>`, Limits{})
	_, ok := s.Attr("", "x")
	require.False(t, ok, "before the first token")
	s.Next()
	require.Equal(t, []Attr{{"", "", "x", "1"}, {"u", "p", "x", "&lt;"}}, s.Attrs())
	value, ok := s.Attr("u", "x")
	require.True(t, ok)
	require.Equal(t, "<", value)
	_, ok = s.Attr("u", "y")
	require.False(t, ok)
	s.Next()
	require.Empty(t, s.Attrs(), "at the end")
}

func TestChild(t *testing.T) {
	const doc = `<r>t<a><x><y/></x></a><b/><c>u<z/></c><d>v</d></r>`
	for _, consume := range []struct {
		name string
		f    func(s *Cursor)
	}{
		{"nothing", func(*Cursor) {}},
		{"Skip", (*Cursor).Skip},
		{"ElementText", func(s *Cursor) { s.ElementText() }},
		{"first token", func(s *Cursor) { s.Next() }},
		{"grandchildren", func(s *Cursor) {
			for depth := s.Depth(); s.Child(depth); {
			}
		}},
		{"first grandchild", func(s *Cursor) { s.Child(s.Depth()) }},
	} {
		t.Run(consume.name, func(t *testing.T) {
			s := New(doc, Limits{})
			require.True(t, s.Child(0))
			require.Equal(t, "r", s.Local())
			var got string
			for s.Child(1) {
				got += s.Local()
				consume.f(s)
			}
			require.Equal(t, "abcd", got)
			require.True(t, s.Is("", "r"))
			require.False(t, s.Child(0))
			require.NoError(t, s.Err())
		})
	}
	s := New(`<r><a>`, Limits{})
	require.True(t, s.Child(0) && s.Child(1))
	require.False(t, s.Child(2))
	require.Error(t, s.Err())
}

func TestElementText(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`<a/>`, ""},
		{`<a></a>`, ""},
		{`<a>plain</a>`, "plain"},
		{`<a><![CDATA[plain]]></a>`, "plain"},
		{`<a><![CDATA[]]>plain</a>`, "plain"},
		{`<a>1&amp;2</a>`, "1&2"},
		{`<a>1<!-- -->2<b>3<c/></b>&#52;<![CDATA[5]]></a>`, "12345"},
		{`<a>&amp;<!-- -->2</a>`, "&2"},
		{"<a>\x01<!-- -->2</a>", "2"},
		{`<a>1<b>2`, "12"},
	} {
		s := New("<r>"+tt.doc+"<z/></r>", Limits{})
		s.Next()
		require.Equal(t, Start, s.Next())
		require.Equal(t, tt.want, s.ElementText(), tt.doc)
		if s.Err() == nil {
			require.True(t, s.Is("", "a"))
			require.Equal(t, Start, s.Next())
			require.Equal(t, "z", s.Local())
		}
	}
	s := New("<a>x</a>", Limits{})
	require.Empty(t, s.ElementText(), "not at a Start")
	s.Skip()
	require.Equal(t, Start, s.Next())
	s.Skip()
	require.Equal(t, Stop, s.Next())
	s = New("<a>", Limits{})
	s.Next()
	s.Skip()
	require.Error(t, s.Err())
}

func TestLine(t *testing.T) {
	const doc = "ab\ncé\n"
	for offset, want := range [][2]int{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {2, 3}, {3, 1}} {
		line, column := Line(doc, offset)
		if offset == 5 { // within é: the part counts as a character
			continue
		}
		require.Equal(t, want, [2]int{line, column}, offset)
	}
	line, column := Line(doc, 100)
	require.Equal(t, [2]int{3, 1}, [2]int{line, column})
}

// TestNoAllocations scans a feed, and uses what the reader of feeds uses.
func TestNoAllocations(t *testing.T) {
	doc := atomFeed(20)
	const atom = "http://www.w3.org/2005/Atom"
	var elements, links, texts int
	allocs := testing.AllocsPerRun(5, func() {
		s := New(doc, Limits{})
		for s.Next() != Stop {
			switch {
			case s.Is(atom, "link"):
				if href, ok := s.Attr("", "href"); ok && href != "" {
					links++
				}
			case s.Is(atom, "id"):
				texts += len(s.ElementText())
			}
			elements++
		}
	})
	require.NotZero(t, elements*links*texts)
	require.LessOrEqual(t, allocs, 8.0)
}

// Every control character is found, wherever it is and whatever surrounds it.
func TestControl(t *testing.T) {
	const n = 40
	for c := range 256 {
		for at := range n {
			for _, around := range []byte{'a', '\n', '\t', ' ', 0x1f + 1, 0x7f, 0x80, 0x89, 0x8a, 0x9f, 0xff} {
				b := bytes.Repeat([]byte{around}, n)
				b[at] = byte(c)
				want := n
				if c < ' ' && c != '\t' && c != '\n' {
					want = at
				}
				require.Equal(t, want, control(string(b), 0), "%d at %d among %d", c, at, around)
				require.Equal(t, n, control(string(b), at+1))
			}
		}
	}
}

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

// TestLeniencies checks what each leniency reads, and how Standalone repairs it.
func TestLeniencies(t *testing.T) {
	for _, tt := range []struct {
		code, doc string
		want      []string
		repaired  string
	}{
		{"bare-ampersand", "<a>A & B</a>", []string{"1 <{}a", "1 text A & B", "0 /{}a"}, "<a>A &amp; B</a>"},
		{"bare-ampersand", "<a>&lt</a>", []string{"1 <{}a", "1 text &lt", "0 /{}a"}, "<a>&amp;lt</a>"},
		{"bare-ampersand", "<a>&#x;</a>", []string{"1 <{}a", "1 text &#x;", "0 /{}a"}, "<a>&amp;#x;</a>"},
		{"bare-ampersand", "<a>&#X41;</a>", []string{"1 <{}a", "1 text &#X41;", "0 /{}a"}, "<a>&amp;#X41;</a>"},
		{"bare-ampersand", "<a>&1;</a>", []string{"1 <{}a", "1 text &1;", "0 /{}a"}, "<a>&amp;1;</a>"},
		{"bare-ampersand", "<a b='?c=1&d=2'/>", []string{"1 <{}a {}b=?c=1&d=2", "0 /{}a"}, "<a b='?c=1&amp;d=2'/>"},
		{"html-entity", "<a>&eacute;</a>", []string{"1 <{}a", "1 text é", "0 /{}a"}, "<a>é</a>"},
		{"html-entity", "<a>&semi;</a>", []string{"1 <{}a", "1 text ;", "0 /{}a"}, "<a>&#59;</a>"},
		{"html-entity", "<a>&LT;</a>", []string{"1 <{}a", "1 text <", "0 /{}a"}, "<a>&#60;</a>"},
		{"html-entity", "<a b='&Tab;'/>", []string{"1 <{}a {}b=\t", "0 /{}a"}, "<a b='&#9;'/>"},
		{"undefined-entity", "<a>&x;</a>", []string{"1 <{}a", "1 text &x;", "0 /{}a"}, "<a>&amp;x;</a>"},
		{"undefined-entity", "<a>&notit;</a>", []string{"1 <{}a", "1 text &notit;", "0 /{}a"}, "<a>&amp;notit;</a>"},
		{"undefined-entity", "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", []string{"1 <{}a", "1 text &x;", "0 /{}a"},
			"<a>&amp;x;</a>"},
		{"control-character", "<a>1\x012</a>", []string{"1 <{}a", "1 text 12", "0 /{}a"}, "<a>12</a>"},
		{"control-character", "<a>1&#1;2</a>", []string{"1 <{}a", "1 text 12", "0 /{}a"}, "<a>12</a>"},
		{"control-character", "<a>&#xD800;</a>", []string{"1 <{}a", "1 text ", "0 /{}a"}, "<a></a>"},
		{"control-character", "<a>&#xFFFE;</a>", []string{"1 <{}a", "1 text ", "0 /{}a"}, "<a></a>"},
		{"control-character", "<a>&#99999999999999999999;</a>", []string{"1 <{}a", "1 text ", "0 /{}a"}, "<a></a>"},
		{"control-character", "<a b='1\x002'/>", []string{"1 <{}a {}b=12", "0 /{}a"}, "<a b='12'/>"},
		{"control-character", "<a>]]\x01></a>", []string{"1 <{}a", "1 text ]]>", "0 /{}a"}, "<a>]]&gt;</a>"},
		{"control-character", "<a>1\r\x01\n2</a>", []string{"1 <{}a", "1 text 1\n\n2", "0 /{}a"}, "<a>1\n\n2</a>"},
		{"control-character", "<a><![CDATA[]]\x01>]]></a>", []string{"1 <{}a", "1 cdata ]]>", "0 /{}a"}, "<a><![CDATA[]]]]><![CDATA[>]]></a>"},
		{"control-character", "<a><!--\x01--></a>", []string{"1 <{}a", "0 /{}a"}, "<a><!----></a>"},
		{"control-character", "<a><?b \x01?></a>", []string{"1 <{}a", "0 /{}a"}, "<a><!----></a>"},
		{"comment-hyphens", "<a>]]<!-- -- -->&gt;</a>", []string{"1 <{}a", "1 text ]]", "1 text >", "0 /{}a"}, "<a>]]<!---->&gt;</a>"},
		{"misplaced-declaration", "\n<?xml version='1.0'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"misplaced-declaration", "<a><?xml version='1.1'?></a>", []string{"1 <{}a", "0 /{}a"}, "<a><!----></a>"},
		{"malformed-declaration", "<?xml encoding='utf-8'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"malformed-declaration", "<?xml version='1.0' standalone='yes' encoding='utf-8'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"malformed-declaration", "<?xml version='1.0' standalone='maybe'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"malformed-declaration", "<?xml version='1.0' a='b'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"malformed-declaration", "<?xml version='2.0'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"malformed-declaration", "<?xml version='1.0'encoding='utf-8'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"malformed-declaration", "<?xml?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"malformed-declaration", "<?XML version='1.0'?><a/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"cdata-end-in-text", "<a>]]></a>", []string{"1 <{}a", "1 text ]]>", "0 /{}a"}, "<a>]]&gt;</a>"},
		{"lt-in-attribute", "<a b='<i>'/>", []string{"1 <{}a {}b=<i>", "0 /{}a"}, "<a b='&lt;i>'/>"},
		{"missing-space", `<a b="1"c='2'/>`, []string{"1 <{}a {}b=1 {}c=2", "0 /{}a"}, `<a b="1" c='2'/>`},
		{"duplicate-attribute", "<a b='1' c='2' b='3'/>", []string{"1 <{}a {}b=1 {}c=2", "0 /{}a"}, "<a b='1' c='2'/>"},
		{"duplicate-attribute", "<a xmlns:p='u' xmlns:q='u' p:b='1' q:b='2'/>", []string{"1 <{}a {u}b=1", "0 /{}a"},
			"<a xmlns:p='u' xmlns:q='u' p:b='1'/>"},
		{"duplicate-attribute", "<a xmlns='u' xmlns='v'/>", []string{"1 <{u}a", "0 /{u}a"}, "<a xmlns='u'/>"},
		{"bad-namespace", "<a xmlns:p=''/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"bad-namespace", "<a xmlns:b='" + XMLNamespace + "' c='1'/>", []string{"1 <{}a {}c=1", "0 /{}a"}, "<a c='1'/>"},
		{"bad-namespace", "<a xmlns='http://www.w3.org/2000/xmlns/'/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"bad-namespace", "<a xmlns:xml='u' xml:id='i'/>", []string{"1 <{}a {" + XMLNamespace + "}id=i", "0 /{}a"}, "<a xml:id='i'/>"},
		{"bad-namespace", "<a xmlns:xmlns='u'/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"undeclared-prefix", "<dc:a><dc:b/></dc:a>", []string{
			"1 <{http://purl.org/dc/elements/1.1/}a", "2 <{http://purl.org/dc/elements/1.1/}b",
			"1 /{http://purl.org/dc/elements/1.1/}b", "0 /{http://purl.org/dc/elements/1.1/}a",
		}, `<dc:a xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:b/></dc:a>`},
		{"undeclared-prefix", "<a u:b='1' />", []string{"1 <{}a {u}b=1", "0 /{}a"}, `<a u:b='1'  xmlns:u="u"/>`},
		{"content-after-root", "<a/>x", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"content-after-root", "<a/><b/>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"content-after-root", "<a/><!-- ", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"content-after-root", "<a/><? ?>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"content-after-root", "<a/><!DOCTYPE a>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"content-after-root", "<a/><![CDATA[x]]>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
		{"content-after-root", "<a/></a>", []string{"1 <{}a", "0 /{}a"}, "<a/>"},
	} {
		t.Run(tt.code+" "+tt.doc, func(t *testing.T) {
			s := New(tt.doc, Limits{})
			require.Equal(t, tt.want, trace(s))
			require.NoError(t, s.Err())
			notes, more := s.Notes()
			require.Len(t, notes, 1)
			require.Zero(t, more)
			require.Equal(t, tt.code, notes[0].Code)
			require.Equal(t, 1, s.Lenient())
			require.Equal(t, tt.repaired, Standalone(tt.doc, nil, ""))
		})
	}
}

func TestUsualPrefixes(t *testing.T) {
	for prefix, uri := range usual() {
		s := New("<"+prefix+":a/>", Limits{})
		s.Next()
		require.Equal(t, uri, s.Space())
		require.Equal(t, prefix, s.Prefix())
	}
}

func TestNotes(t *testing.T) {
	s := New("<a>"+strings.Repeat("&", 250)+"</a>", Limits{})
	trace(s)
	notes, more := s.Notes()
	require.Len(t, notes, 100)
	require.Equal(t, 150, more)
	require.Equal(t, 250, s.Lenient())
	require.Equal(t, Note{"bare-ampersand", "ampersand that begins no reference", 3}, notes[0])

	s = New("<a>&"+strings.Repeat("é", 1000)+";</a>", Limits{})
	trace(s)
	notes, _ = s.Notes()
	require.Equal(t, "undefined entity: &"+strings.Repeat("é", 29)+"…", notes[0].Message)
}

// TestLenientElements finds the elements that are not well-formed.
func TestLenientElements(t *testing.T) {
	s := New(`<r a="&"><!-- -- --><a/><b c="&"/><c/>&<d>&</d><e:e/><f><g c=""c=""/></f><h/></r>`, Limits{})
	var got string
	s.Child(0)
	for s.Child(1) {
		name, before := s.Local(), s.Lenient()
		s.Skip()
		if s.Lenient() > before {
			got += name
		}
	}
	require.NoError(t, s.Err())
	require.Equal(t, "bdef", got)
	require.Equal(t, 8, s.Lenient())
}

func TestStandalone(t *testing.T) {
	outer := []Binding{{"", "d"}, {"p", "u"}}
	for _, tt := range []struct{ name, fragment, attrs, want string }{
		{"nothing", "<a/>", "", "<a/>"},
		{"insertion", "<p:a b='1'>x</p:a >", ` xmlns:p="u"`, `<p:a xmlns:p="u" b='1'>x</p:a >`},
		{"own declarations stay", "<p:a xmlns:p='v'/>", ` xmlns="d" xmlns:p="u"`, `<p:a xmlns="d" xmlns:p='v'/>`},
		{"own default stays", "<a xmlns=''/>", ` xmlns="d" xmlns:p="u"`, `<a xmlns:p="u" xmlns=''/>`},
		{"other attributes are replaced", "<a xml:base='b' xml:lang='de'/>", ` xml:base="http://h/"`, `<a xml:base="http://h/" xml:lang='de'/>`},
		{"nothing declared by mistake", "<q:a/>", ` xmlns:q="w"`, `<q:a xmlns:q="w"/>`},
		{"not attributes", "<a/>", ` x="`, "<a/>"},
		{"nor these", "<a/>", `><b`, "<a/>"},
		{"deeper tags", "<a><c:b c:d='&'e=''c:d=''/></a>", ` x="y"`, `<a x="y"><c:b c:d='&amp;' e='' xmlns:c="c"/></a>`},
		{"verbatim", "<a  b = '&#65;' >\r\n&#x2019;<!-- c --><?d?></a>", "", "<a  b = '&#65;' >\r\n&#x2019;<!-- c --><?d?></a>"},
		{"no element", "<a>&</b>", "", "<a>&amp;</b>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, Standalone(tt.fragment, outer, tt.attrs))
		})
	}
}

func TestErrorMessages(t *testing.T) {
	s := New("<a>\n <b></a>", Limits{})
	trace(s)
	require.EqualError(t, s.Err(), "xml: line 2, column 7: expected the end tag of <b>")
	s = New("<a>\n<b/></a>", Limits{Depth: 1})
	trace(s)
	require.EqualError(t, s.Err(), "xml: line 2: depth over the limit of 1")
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd…", "abcé": "abc…", "äöü": "äö…"} {
		require.Equal(t, want, Clip(text, 4), text)
	}
}

func TestSurrogates(t *testing.T) {
	for doc, want := range map[string]string{
		"&#xD83D;&#xDE00;":         "😀",
		"&#55357;&#56832;x":        "😀x",
		"&#xD83D;":                 "",
		"&#xD83D;&#xD83D;&#56832;": "😀",
		"&#xDE00;&#xD83D;":         "",
		"&#xD83D;x&#xDE00;":        "x",
	} {
		s := New("<a>"+doc+"</a>", Limits{})
		require.True(t, s.Child(0))
		require.Equal(t, want, s.ElementText(), doc)
		notes, _ := s.Notes()
		require.NotEmpty(t, notes, doc)
		require.Equal(t, "<a>"+want+"</a>", Standalone("<a>"+doc+"</a>", nil, ""), doc)
	}
}

func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Dogs &#8211; cats": "Dogs – cats", "AT&amp;T &eacute;": "AT&T é", "&#146;": "’", "&#x85;": "…", "&#129;": "\u0081", "&#xD83D;&#xDE00;": "😀",
		"a & b < c &lt d &copy=1 &x; AT&T; &#;": "a & b < c &lt d &copy=1 &x; AT&T; &#;",
	} {
		require.Equal(t, want, Unescape(text))
	}
}

// entryHTML is about 4 KB of HTML like that of entries.
func entryHTML(i int) string {
	var b strings.Builder
	for p := range 12 {
		fmt.Fprintf(&b, `<p class="p%d">Entry %d has <a href="https://example.org/%d?a=1&amp;b=2">a link</a>, `, p, i, p)
		b.WriteString("some “typographic” text — and then a good deal of plain prose that goes on for a while, ")
		b.WriteString("as people write it, with <em>emphasis</em> here and there & a bare ampersand too.</p>\n")
	}
	return b.String()
}

func atomFeed(entries int) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" xml:lang="en">
  <title>A feed</title><id>urn:x:feed</id><updated>2024-01-02T03:04:05Z</updated><fh:archive/>
  <link rel="self" href="https://example.org/feed"/><link rel="prev-archive" href="https://example.org/archive/7"/>
`)
	for i := range entries {
		fmt.Fprintf(&b, `  <entry>
    <title type="text">Entry number %d</title>
    <link rel="alternate" type="text/html" href="https://example.org/entry/%d"/>
    <id>urn:x:entry:%d</id>
    <published>2024-01-02T03:04:05Z</published><updated>2024-01-02T03:04:05Z</updated>
    <author><name>Somebody</name><uri>https://example.org/</uri></author>
    <category term="a" label="A"/><category term="b"/>
    <content type="html">%s</content>
  </entry>
`, i, i, i, html.EscapeString(entryHTML(i)))
	}
	b.WriteString("</feed>\n")
	return b.String()
}

func rssFeed(entries int) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom">
<channel><title>A feed</title><link>https://example.org/</link><atom:link rel="self" href="https://example.org/rss"/>
`)
	for i := range entries {
		fmt.Fprintf(&b, `<item><title>Entry number %d</title><link>https://example.org/entry/%d</link>
<guid isPermaLink="false">urn:x:entry:%d</guid><pubDate>Tue, 02 Jan 2024 03:04:05 GMT</pubDate><dc:creator>Somebody</dc:creator>
<description>In short &amp; plain</description><content:encoded><![CDATA[%s]]></content:encoded></item>
`, i, i, i, entryHTML(i))
	}
	b.WriteString("</channel></rss>\n")
	return b.String()
}

func BenchmarkScan(b *testing.B) {
	for _, bb := range []struct{ name, doc string }{
		{"atom", atomFeed(50)},
		{"rss", rssFeed(50)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.doc)))
			b.ReportAllocs()
			for b.Loop() {
				s := New(bb.doc, Limits{})
				for s.Next() != Stop {
				}
				if s.Err() != nil || s.Lenient() > 0 {
					b.Fatal(s.Err(), s.Lenient())
				}
			}
		})
	}
}

func BenchmarkStandalone(b *testing.B) {
	doc := atomFeed(1)
	entry := doc[strings.Index(doc, "<entry>") : strings.Index(doc, "</entry>")+len("</entry>")]
	b.SetBytes(int64(len(entry)))
	b.ReportAllocs()
	for b.Loop() {
		Standalone(entry, nil, ` xmlns="http://www.w3.org/2005/Atom"`)
	}
}

func BenchmarkDecode(b *testing.B) {
	doc := atomFeed(50)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Decode(doc, "application/atom+xml; charset=utf-8"); err != nil {
			b.Fatal(err)
		}
	}
}
