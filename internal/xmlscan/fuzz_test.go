package xmlscan

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
			outer := s.Bindings()[:s.open[len(s.open)-1].bindings]
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
	})
}

// refusals are the reasons for which the scanner may refuse what encoding/xml
// accepts. A limit is another.
var refusals = []string{
	"text outside the root element",
	"markup declaration out of place", // a directive other than a DOCTYPE before the root
	"the document ends before its root element",
	"element with the prefix xmlns",
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
