package xmlscan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	for prefix, uri := range usual {
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
		"": "", "Dogs &#8211; cats": "Dogs – cats", "AT&amp;T &eacute;": "AT&T é", "&#146;": "’", "&#xD83D;&#xDE00;": "😀",
		"a & b < c &lt d &copy=1 &x; AT&T; &#;": "a & b < c &lt d &copy=1 &x; AT&T; &#;",
	} {
		require.Equal(t, want, Unescape(text))
	}
}
