package xmlscan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// TestMend checks how documents that are not well-formed are read, and what is noted.
func TestMend(t *testing.T) {
	const unclosed, stray, attribute = "unclosed-element", "stray-end-tag", "odd-attribute"
	for _, tt := range []struct {
		name, doc, want string
		notes           []string
	}{
		{"end tag of an outer element", "<a><b>x<c>y</b>z</a>", "<a><b>x<c>y</c></b>z</a>", []string{unclosed}},
		{"end tag that matches nothing", "<a>x</b>y</a>", "<a>x<!---->y</a>", []string{stray}},
		{"end tag before the root", "</b><a/>", "<a/>", []string{stray}},
		{"crossed tags", "<a><b>1<i>2</b>3</i></a>", "<a><b>1<i>2</i></b>3<!----></a>", []string{unclosed, stray}},
		{"another case", "<a><Title>x</title><pubDate>y</pubdate></A>", "<a><Title>x</Title><pubDate>y</pubDate></a>",
			[]string{"odd-end-tag", "odd-end-tag", "odd-end-tag"}},
		{"case decides nothing", "<a><b><B>x</b>y</B></a>", "<a><b><B>x</B>y</b></a>", []string{"odd-end-tag", "odd-end-tag"}},
		{"space in an end tag", "<a><b></ b ></a>", "<a><b></b></a>", []string{"odd-end-tag"}},
		{"attribute in an end tag", "<a><b></b c='d'></a>", "<a><b></b></a>", []string{"odd-end-tag"}},
		{"end tag without an end", "<a><b></b</a>", "<a><b></b></a>", []string{"odd-end-tag"}},
		{"end tag without a name", "<a></></3></a>", "<a><!----><!----></a>", []string{stray, stray}},
		{"br", "<a><br>x<br >y<br/>z<BR></a>", "<a><br/>x<br/>y<br/>z<BR/></a>", []string{unclosed, unclosed, unclosed}},
		{"br with an end tag", "<a><br></br><p></a>", "<a><br></br><p></p></a>", []string{unclosed}},
		{"paragraphs", "<a><p>1<p>2<div><p>3</div><p>4</a>", "<a><p>1</p><p>2<div><p>3</p></div></p><p>4</p></a>",
			[]string{unclosed, unclosed, unclosed, unclosed}},
		{"list items", "<a><ul><li>1<ul><li>2<li>3</ul><li>4</ul></a>", "<a><ul><li>1<ul><li>2</li><li>3</li></ul></li><li>4</li></ul></a>",
			[]string{unclosed, unclosed, unclosed, unclosed}},
		{"no quotes", "<a b=1 c=d/e f=http://h/?i&j />", `<a b="1" c="d/e" f="http://h/?i&amp;j"/>`,
			[]string{attribute, attribute, attribute, "bare-ampersand"}},
		{"no quotes, but one inside", `<a b=x"y'z/>`, `<a b="x&quot;y'z"/>`, []string{attribute}},
		{"no opening quote", `<a b=c" d=e' f=" g=h"/>`, `<a b="c" d="e" f=" g=h"/>`, []string{attribute, attribute}},
		{"no value", "<a b c= d><e f/></a>", `<a b="" c="d"><e f=""/></a>`, []string{attribute, attribute, attribute}},
		{"no closing quote", `<a><b c="d>x</b><e f="g">y</e></a>`, `<a><b c="d">x</b><e f="g">y</e></a>`, []string{attribute}},
		{"no closing quote of an empty element", "<a><b c='d/>x<e/></a>", "<a><b c='d'/>x<e/></a>", []string{attribute}},
		{"no closing quote of many", `<a><b c="d e="f"/></a>`, `<a><b c="d " e="f"/></a>`, []string{attribute, "missing-space"}},
		{"no closing quote and no other", `<a><b c="d>x</b></a>`, `<a><b c="d">x</b></a>`, []string{attribute}},
		{"markup in a value", `<a><b c="<i>x</i>">y</a>`, `<a><b c="&lt;i>x&lt;/i>">y</b></a>`, []string{"lt-in-attribute", "lt-in-attribute", unclosed}},
		{"a quote too many", `<a><b c="d"" e='f'/></a>`, `<a><b c="d" e='f'/></a>`, []string{attribute}},
		{"names that are none", `<a 1="b" c:d:e='f' @g=h @ i="j"/>`, `<a g="h" i="j"/>`,
			[]string{attribute, attribute, attribute, "missing-space", attribute, attribute}},
		{"tag without an end", "<a><b c='d'<e>x</e></b></a>", "<a><b c='d'><e>x</e></b></a>", []string{"odd-tag"}},
		{"less than", "<a>1 < 2 <3 <<b/>&lt;<</a>", "<a>1 &lt; 2 &lt;3 &lt;<b/>&lt;&lt;</a>",
			[]string{"odd-markup", "odd-markup", "odd-markup", "odd-markup"}},
		{"addresses", "<a>joe <joe@example.org>, <http://h/><b></a>", "<a>joe &lt;joe@example.org>, &lt;http://h/><b></b></a>",
			[]string{"odd-markup", "odd-markup", unclosed}},
		{"a comment's end in HTML", "<a><!-- b --!>c<b><!-- d --!></a>", "<a><!---->c<b><!----></b></a>",
			[]string{"comment-hyphens", "comment-hyphens", unclosed}},
		{"names of elements that are none", "<a><b:c:d>x<xmlns:e/></b:c:d></a>", "<a>&lt;b:c:d>x&lt;xmlns:e/><!----></a>",
			[]string{"odd-markup", "odd-markup", stray}},
		{"Word", "<a><?xml:namespace prefix = o /><![if !mso]>x<![endif]--><o:p></a>", `<a><!----><!---->x<!----><o:p xmlns:o="o"></o:p></a>`,
			[]string{"odd-markup", "odd-markup", "odd-markup", "undeclared-prefix", unclosed}},
		{"instructions", "<a><?php a > b ?><? c ?><?d e></b></a>", "<a><?php a > b ?><!----><!----><!----></a>",
			[]string{"odd-markup", "odd-markup", stray}},
		{"doctype in small letters", "<!doctype a [<!ENTITY b '>'>]><a><b></a>", "<a><b></b></a>", []string{"odd-markup", unclosed}},
		{"text before the root", "x &amp; y<a/>", "<a/>", []string{"content-before-root"}},
		{"end tag of the root, too early", "<a><b></a>x</b></a>", "<a><b><!---->x</b></a>", []string{stray}},
		{"declarations", "<a xmlns=u xmlns:p=v p:b=c><p:d/></b></a>", `<a xmlns="u" xmlns:p="v" p:b="c"><p:d/><!----></a>`,
			[]string{attribute, attribute, attribute, stray}},
		{"leniencies as ever", "<a b='1'b='<'>& &nbsp;\x01<c></a>", "<a b='1'>&amp; \u00a0<c></c></a>",
			[]string{"missing-space", "lt-in-attribute", "duplicate-attribute", "bare-ampersand", "html-entity", "control-character", unclosed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Mend(tt.doc, Limits{})
			list, _ := scanElements(s, 0)
			require.NoError(t, s.Err())
			require.Equal(t, tt.notes, noted(s))
			require.Equal(t, len(tt.notes), s.Lenient())
			sound := New(tt.want, Limits{})
			require.Equal(t, events(sound), list)
			require.NoError(t, sound.Err())
			require.Zero(t, sound.Lenient())
			strict := New(tt.doc, Limits{})
			for strict.Next() != Stop {
			}
			require.Error(t, strict.Err(), "nothing to mend")
			if !strings.Contains(tt.name, "before the root") && !strings.Contains(tt.name, "doctype") {
				require.Equal(t, tt.want, MendElement(tt.doc, nil))
			}
		})
	}
}

func noted(s *Cursor) (codes []string) {
	notes, _ := s.Notes()
	for _, n := range notes {
		codes = append(codes, n.Code)
	}
	return codes
}

// TestMendFeeds checks what depends on the knowledge of feeds: where entries end, and which damage may have lost
// a link or an entry.
func TestMendFeeds(t *testing.T) {
	rss := func(s string) string { return "<rss><channel>" + s + "</channel></rss>" }
	feed := func(s string) string { return "<feed xmlns='http://www.w3.org/2005/Atom'>" + s + "</feed>" }
	for _, tt := range []struct {
		name, doc, want    string
		outside, swallowed bool
	}{
		{name: "items without end tags", doc: rss("<item>1<item>2<item>3"), want: rss("<item>1</item><item>2</item><item>3</item>")},
		{name: "an item around an item", doc: rss("<item>1<item>2</item></item>"), want: rss("<item>1</item><item>2</item>")},
		{name: "items around items", doc: rss("<item>1<item>2<item>3</item></item></item><item>4</item>"),
			want: rss("<item>1</item><item>2</item><item>3</item><item>4</item>")},
		{name: "another vocabulary's item", doc: rss("<item><item xmlns='u'/><br></item>"), want: rss("<item><item xmlns='u'/><br/></item>")},
		{name: "an item and its child without end tags", doc: rss("<item><title>1<item><title>2</title></item>"),
			want: rss("<item><title>1</title></item><item><title>2</title></item>")},
		{name: "children without end tags", doc: rss("<item><title>1<link>2<guid>3<description>4<b>5</b><content:encoded>6</item>"),
			want: rss("<item><title>1</title><link>2</link><guid>3</guid><description>4<b>5</b></description><content:encoded>6</content:encoded></item>")},
		{name: "markup without end tags", doc: rss("<item><description><p>1<b>2</description><guid>3</guid></item>"),
			want: rss("<item><description><p>1<b>2</b></p></description><guid>3</guid></item>")},
		{name: "markup in no child", doc: rss("<p>0<title>1</title><item><p>2<b>3<guid>4</guid><i>5<link>6</link></item>"),
			want:    rss("<p>0</p><title>1</title><item><p>2<b>3</b></p><guid>4</guid><i>5</i><link>6</link></item>"),
			outside: true},
		{name: "an extension without an end tag", doc: rss("<item><x:a>2<guid>4</guid><link>6</link></item>"),
			want: rss("<item><x:a>2</x:a><guid>4</guid><link>6</link></item>")},
		{name: "an instruction without an end", doc: rss("<item><b>1<?x </item><item>2<?y?></item><item>3</item>"),
			want: rss("<item><b>1</b></item><item>3</item>"), swallowed: true},
		{name: "source without an end tag", doc: feed("<entry><source><id>1</id><title>2</title></entry>"),
			want: feed("<entry><source><id>1</id><title>2</title></source></entry>")},
		{name: "no description's end", doc: rss("<item><description>1</item><item>2</item>"), want: rss("<item><description>1</description></item><item>2</item>")},
		{name: "an item in a description", doc: rss("<item><description><item>1</item></description><br></item>"),
			want: rss("<item><description><item>1</item></description><br/></item>")},
		{name: "head's child without an end tag", doc: rss("<atom:link href='1'><title>2</title><item>3</item>"),
			want: rss("<atom:link href='1'></atom:link><title>2</title><item>3</item>"), outside: true},
		{name: "extension without an end tag", doc: rss("<x:y>1<z/><item>2</item>"), want: rss("<x:y>1<z/></x:y><item>2</item>"), outside: true},
		{name: "image without an end tag", doc: rss("<image><title>1</title><link>2</link><item>3</item>"),
			want: rss("<image><title>1</title><link>2</link></image><item>3</item>"), outside: true},
		{name: "no channel's end", doc: "<rss><channel><item>1</item></rss>", want: rss("<item>1</item>"), outside: true},
		{name: "an item's end tag too many", doc: rss("<item>1</item></item><item>2</item>"), want: rss("<item>1</item><item>2</item>"), outside: true},
		{name: "attribute without quotes", doc: rss("<link href=x/><item>1</item>"), want: rss("<link href='x'/><item>1</item>")},
		{name: "attribute without a closing quote", doc: rss("<link href='x><item>1</item>"), want: rss("<link href='x'></link><item>1</item>"), outside: true},
		{name: "in the title, swallowed", doc: rss("<item><title>1<item>2</title></item>"), want: rss("<item><title>1<item>2</item></title></item>"), swallowed: true},
		{name: "in a value, swallowed", doc: rss("<item><a b='<p><item>2</item>' /><br></item>"),
			want: rss("<item><a b='&lt;p>&lt;item>2&lt;/item>'/><br/></item>"), swallowed: true},
		{name: "RSS 1.0", doc: "<rdf:RDF><channel xmlns='c'><title>1</channel><item xmlns='c'>2<item xmlns='c'>3</rdf:RDF>",
			want:    "<rdf:RDF><channel xmlns='c'><title>1</title></channel><item xmlns='c'>2</item><item xmlns='c'>3</item></rdf:RDF>",
			outside: true},
		{name: "entries", doc: feed("<entry><id>1<title>2<link href='3'><entry><id>4</id>"),
			want: feed("<entry><id>1</id><title>2</title><link href='3'></link></entry><entry><id>4</id></entry>")},
		{name: "entries in content", doc: feed("<entry><content><entry>1<id>2</entry><entry>3</entry></content></entry><entry>4</entry>"),
			want: feed("<entry><content><entry>1<id>2</id></entry><entry>3</entry></content></entry><entry>4</entry>")},
		{name: "entries in content without an end tag", doc: feed("<entry><content><entry>1</entry></entry><entry>2</entry>"),
			want: feed("<entry><content><entry>1</entry></content></entry><entry>2</entry>"), swallowed: true},
		{name: "a comment without an end", doc: rss("<item>1<br><!-- </item><item>2<!-- 3 --></item><item>4</item>"),
			want: rss("<item>1<br/></item><item>4</item>"), swallowed: true},
		{name: "a section without an end", doc: rss("<item><b><i><![CDATA[1</i></b></item><item><b><![CDATA[2]]></b></item><item>3</item>"),
			want: rss("<item><b><i>1</i></b></item><item><b>2</b></item><item>3</item>")},
		{name: "a comment without an end in the head", doc: rss("<!-- <item>1</item><item>2<!-- 3 --></item><item>4</item>"),
			want: rss("<item>4</item>"), outside: true, swallowed: true},
		{name: "entries in a comment", doc: rss("<br><!-- <item>1</item><item/> --><item>2<!-- <item>3</item> </item> --></item>"),
			want: rss("<br/><item>2</item>"), outside: true},
		{name: "an entry in what may be content", doc: feed("<entry><content>1<entry>2</entry>"),
			want: feed("<entry><content>1<entry>2</entry></content></entry>"), swallowed: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Mend(tt.doc, Limits{})
			list, _ := scanElements(s, 0)
			require.NoError(t, s.Err())
			require.Equal(t, events(New(tt.want, Limits{})), list)
			require.NotZero(t, s.Mender.Mended())
			_, outside := s.Mender.Outside()
			_, swallowed := s.Mender.Swallowed()
			require.Equal(t, tt.outside, outside, "outside")
			require.Equal(t, tt.swallowed, swallowed, "swallowed")
		})
	}
}

// TestMendTruncated cuts a document that is not well-formed at every place: it
// stays truncated, whatever has been mended.
func TestMendTruncated(t *testing.T) {
	const doc = `<?xml version="1.0"?><!doctype rss [ <!ENTITY b "c"> ]><rss><channel><title>a<item><title>b < c</title>` +
		`<description><p class=d>e<br>f<!-- g --><![CDATA[ h ]]><a href="i>j</a></description><item>k</guid></item></Channel></rss >`
	for n := range len(doc) {
		s := Mend(doc[:n], Limits{})
		for s.Next() != Stop {
		}
		err := feedtest.ErrorAs[*SyntaxError](t, s.Err(), "%q", doc[:n])
		require.True(t, err.Truncated, "%q: %v", doc[:n], err)
		require.Equal(t, n, err.Offset)
	}
	s := Mend(doc, Limits{})
	for s.Next() != Stop {
	}
	require.NoError(t, s.Err())
}

func TestOpen(t *testing.T) {
	require.Nil(t, Open("<a>&</a>", Limits{}).Mender)
	require.NotNil(t, Open("<a>&<b></a>", Limits{}).Mender)
	s := New("<a/>", Limits{})
	s.Next()
	_, outside := s.Mender.Outside()
	_, swallowed := s.Mender.Swallowed()
	require.False(t, outside || swallowed || s.Mender.Unclosed())
	require.Zero(t, s.Mender.Mended())
}

// checkMended checks what holds for any document that is mended.
func checkMended(t require.TestingT, doc string) {
	strict := New(doc, Limits{})
	sound := events(strict)
	s := Mend(doc, Limits{})
	list, ended := scanMended(s)
	var syntax *SyntaxError
	if errors.As(s.Err(), &syntax) && syntax.Msg != "text without any element: neither XML nor a JSON object" {
		require.True(t, syntax.Truncated, "%v: %q", s.Err(), doc)
	}
	if s.Err() == nil {
		require.Zero(t, s.Depth())
	}
	if strict.Err() == nil && strict.Lenient() == 0 && !strings.Contains(doc, "<?o:p") { // which is Word's
		require.NoError(t, s.Err(), "%q", doc)
		require.Zero(t, s.Lenient(), "%q", doc)
		require.Equal(t, sound, list, "%q", doc)
	}
	for _, e := range ended {
		checkMendedElement(t, doc, list, e)
	}
}

// scanMended returns the events of a document, and its first entries; all elements if it is not a feed.
func scanMended(s *Cursor) (list []event, ended []element) {
	var open []element
	balance := 0
	for tok := s.Next(); tok != Stop; tok = s.Next() {
		list = appendEvent(list, s, tok)
		switch tok {
		case Start:
			balance++
			n := len(s.open) - 1
			e := element{from: len(list) - 1, start: s.Offset(), outer: slices.Clone(s.Bindings()[:s.save().bindings])}
			isEntry := s.Mender.frames[n].role == roleEntry
			if named := strings.EqualFold(s.Local(), "item") || strings.EqualFold(s.Local(), "entry"); s.Mender.entry != "" && !isEntry || named && !isEntry {
				e.from = -1
			}
			open = append(open, e)
		case End:
			balance--
			e := open[len(open)-1]
			open = open[:len(open)-1]
			if e.to, e.end = len(list), s.End(); e.from >= 0 && len(ended) < 20 {
				ended = append(ended, e)
			}
		}
	}
	if s.Err() == nil && balance != 0 {
		panic("tokens are not in balance")
	}
	return list, ended
}

// checkMendedElement checks that e, cut out, is read as in its document, and
// written standalone is well-formed and says the same.
func checkMendedElement(t require.TestingT, doc string, list []event, e element) {
	fragment := doc[e.start:e.end]
	out := Standalone(MendElement(fragment, e.outer), e.outer, declarations(e.outer))
	s := New(out, noLimits)
	got := events(s)
	notes, _ := s.Notes()
	require.NoError(t, s.Err(), "%q became %q", fragment, out)
	require.Empty(t, notes, "%q became %q", fragment, out)
	require.Equal(t, list[e.from:e.to], got, "%q in %q became %q", fragment, doc, out)
	if oldNames(out) {
		_, err := stdEvents(out)
		require.NoError(t, err, "%q became %q", fragment, out)
	}
}

// Damaged documents are put together from pieces of feeds.
var damagedParts = []string{
	"<rss>", "</rss>", "<channel>", "</channel>", "<item>", "<item", "</item>", "<item>", "</item>", "<Item>", "<rdf:RDF>", "<item xmlns='u'>",
	"<feed xmlns='http://www.w3.org/2005/Atom'>", "</feed>", "<entry>", "<entry>", "</entry>", "</entry>", "<content>", "</content>", "<content type=xml>",
	"<title>", "</title>", "<title", "</Title>", "<description>", "</description>", "<link href=x>", "<link>", "</link>", "<link href='x'/>", "<atom:link href='",
	"<guid>", "</guid>", "<image>", "</image>", "<p>", "</p>", "<br>", "<br/>", "</br>", "<b>", "</b>", "<i", "</i", "<div class=\"x\">", "<a href=\"x>", "<a href='",
	"</a>", "<a b", " c=", "/>", ">", "'", "\"", "=", "x", " y ", "<", "</", "& ", "]]", "<![CDATA[", "]]>", "<!--", "-->", "<!x>", "<?y z>", "<?y z?>",
	"<?o:p ", "?>", "<1>", "<a:b:c>", "<xmlns:a>", "<é>", "</é>", "<dc:date>", "</dc:date>", "\x01", "&nbsp;",
}

func drawDamaged(t *rapid.T) string {
	var b strings.Builder
	begin := rapid.SampledFrom([]string{"<rss><channel>", "<feed xmlns='http://www.w3.org/2005/Atom'>", ""}).Draw(t, "begin")
	b.WriteString(begin)
	drawMany(t, 25, func() { b.WriteString(pick(t, damagedParts)) })
	b.WriteString(map[string]string{"<rss><channel>": "</channel></rss>", "": ""}[begin])
	if strings.HasPrefix(begin, "<feed") {
		b.WriteString("</feed>")
	}
	return b.String()
}

func TestDamagedDocuments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { checkMended(r, drawDamaged(r)) })
}

// A document without leniencies gives the same tokens, mended or not.
func TestMendChangesNothing(t *testing.T) {
	for _, doc := range []string{atomFeed(20), rssFeed(20), strings.ReplaceAll(rssFeed(20), "a bare &", "")} {
		require.Equal(t, events(New(doc, Limits{})), events(Mend(doc, Limits{})))
	}
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		drawElement(r, &b, 3)
		checkMended(r, b.String())
	})
}

func FuzzMend(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	for _, s := range []string{
		"<rss><channel><item><title>1<item><guid>2</item></channel></rss>", "<a><b c=d e 'f=\"g>h</b><br>1<2</ B>",
		"<feed xmlns='http://www.w3.org/2005/Atom'><entry><content><entry></content><link href='x'><id>1</entry></feed>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, _, err := Decode(text, "")
		require.NoError(t, err)
		checkMended(t, doc)
	})
}

// TestMendGrowth reads damage of all kinds, in documents of n, 2n and 4n pieces: neither the tokens, nor the memory,
// nor the open elements that are examined grow faster.
func TestMendGrowth(t *testing.T) {
	deep := strings.Repeat("<d><u>", 120)
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct{ name, begin, piece string }{
		{"stray end tags", "<a>" + deep, "</b>"},
		{"long stray end tags", "<" + long + "1><" + long + "2>", "</" + long + ">"},
		{"breaks", "<a>", "<br>x"},
		{"paragraphs", "<a>" + deep, "<p>x"},
		{"nested once more", "<a>" + deep, "<b><i></b>"},
		{"items", "<rss><channel>", "<item><title>x"},
		{"items around items", "<rss><channel>", "<item>x</item></item>"},
		{"items in items", "<rss><channel>", "<item><a>"},
		{"attributes", "<a>", "<b c d=e f='g>x</b>"},
		{"quotes", "<a>", "<b c='<"},
		{"other quotes", "<a>", "<b c='> <b c=\"> "},
		{"less than", "<a>", "<"},
		{"instructions", "<a>", "<?b >"},
		{"declarations", "<a>", "<!b"},
		{"ends of the root", "<a><b>", "</a>"},
		{"end tags in turn", "<a>", "<b><c></b></c>"},
		{"tags without an end", "<a>", "<b "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tokens, looked, memory [3]int
			for i, n := range []int{2000, 4000, 8000} {
				doc := tt.begin + strings.Repeat(tt.piece, n)
				memory[i] = int(allocated(func() {
					s := Mend(doc, Limits{Depth: 1000})
					for s.Next() != Stop {
						tokens[i]++
					}
					looked[i] = s.Mender.looked
				}))
			}
			for i := range 2 {
				require.LessOrEqual(t, tokens[i+1], 2*tokens[i]+600)
				require.LessOrEqual(t, looked[i+1], 2*looked[i]+60_000)
				require.LessOrEqual(t, memory[i+1], 3*memory[i]+1<<20)
			}
		})
	}
}

// An element cut out of its document lacks what ended its CDATA section there: the beginning
// of the next one.
func TestMendElementWithoutTheNext(t *testing.T) {
	for fragment, want := range map[string]string{
		"<item><d><![CDATA[first</d></item>":                 "<item><d><![CDATA[first]]></d></item>",
		"<item><d> <![CDATA[<p>a</p></d><t>x</t></item>":     "<item><d> <![CDATA[<p>a</p>]]></d><t>x</t></item>",
		"<item><d><![CDATA[first</item>]]>":                  "<item><d><![CDATA[first</item>]]></d></item>",
		"<item><d><![CDATA[a]]></d><e><![CDATA[b</e></item>": "<item><d><![CDATA[a]]></d><e><![CDATA[b]]></e></item>",
	} {
		require.Equal(t, want, MendElement(fragment, nil))
		require.NoError(t, WellFormed(want))
	}
}
