package xmlscan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
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
		{"colons at the ends of names", `<:a b:="1"/>`, []string{"1 <{}:a {}b:=1", "0 /{}:a"}},
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
		{"two colons", "<a:b:c/>", "name with two colons", 1},
		{"attribute with two colons", "<a b:c:d=''/>", "name with two colons", 3},
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
	require.Equal(t, Reach{9, 10}, s.Reach())
	require.Zero(t, s.Reach(), "asked for already")
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
