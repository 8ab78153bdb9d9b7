package feedhistory_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what came out as what is wanted")

func TestMain(m *testing.M) { feedtest.Main(m) }

// TestFixtures parses every file that has a golden file: the parsed document as JSON, in a
// file with the same name and ".json".
func TestFixtures(t *testing.T) {
	for _, dir := range []string{"testdata/rfc5005", "testdata/parse"} {
		for _, golden := range feedtest.Glob(t, dir+"/*.*.json") {
			input := strings.TrimSuffix(golden, ".json")
			t.Run(filepath.Base(dir)+"/"+filepath.Base(input), func(t *testing.T) { testFixture(t, input, golden) })
		}
		require.Len(t, feedtest.Glob(t, dir+"/*"), 2*len(feedtest.Glob(t, dir+"/*.*.json")), "a file without its pair")
	}
}

// fixtureBase is the URL of all fixtures.
const fixtureBase = "http://example.net/dir/feed"

func testFixture(t *testing.T, input, golden string) {
	data := feedtest.ReadFile(t, input)
	doc, err := feedhistory.Parse(bytes.NewReader(data), fixtureBase)
	got := describe(t, doc, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o666))
	}
	want := feedtest.ReadFile(t, golden)
	require.Equal(t, string(want), got)
	if doc != nil {
		testStandalone(t, doc)
	}
}

// A golden is a document as a golden file shows it. A link is its relation and target.
type golden struct {
	Error     string          `json:"error,omitempty"`
	Damage    string          `json:"damage,omitempty"`
	Format    string          `json:"format,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Combines  []string        `json:"combines,omitempty"`
	Complete  bool            `json:"complete,omitempty"`
	Archive   bool            `json:"archive,omitempty"`
	ID        string          `json:"id,omitempty"`
	Title     string          `json:"title,omitempty"`
	Updated   time.Time       `json:"updated,omitzero"`
	Published time.Time       `json:"published,omitzero"`
	Links     []string        `json:"links,omitempty"`
	Entries   []goldenEntry   `json:"entries,omitempty"`
	Deleted   []goldenDeleted `json:"deleted,omitempty"`
	Notes     []string        `json:"notes,omitempty"` // codes, in order, each once
}

type goldenEntry struct {
	ID        string    `json:"id"`
	WeakID    bool      `json:"weak_id,omitempty"`
	Title     string    `json:"title,omitempty"`
	Updated   time.Time `json:"updated,omitzero"`
	Published time.Time `json:"published,omitzero"`
	Links     []string  `json:"links,omitempty"`
}

type goldenDeleted struct {
	Ref  string    `json:"ref"`
	When time.Time `json:"when,omitzero"`
}

// describe returns the golden of a document and the error that came with it.
func describe(t *testing.T, d *feedhistory.Document, err error) string {
	t.Helper()
	var g golden
	if err != nil {
		g.Error = string(feedhistory.NewGap("", err).Reason)
	}
	if d != nil {
		g.Format, g.Kind, g.Complete, g.Archive = string(d.Format), string(d.Kind()), d.Complete, d.Archive
		g.ID, g.Title, g.Updated, g.Published = d.ID, d.Title, d.Updated.UTC(), d.Published.UTC()
		g.Links, g.Notes = flat(d.Links), codes(d.Notes)
		if damage := d.MendedDamage(d.Kind()); damage != nil {
			g.Damage = damage.Err.Error()
		}
		if kinds := d.Combines(); len(kinds) > 1 {
			for _, k := range kinds {
				g.Combines = append(g.Combines, string(k))
			}
		}
		for _, e := range d.Entries {
			g.Entries = append(g.Entries, goldenEntry{
				ID: e.ID, WeakID: e.WeakID, Title: e.Title().Plain(),
				Updated: e.Updated.UTC(), Published: e.Published.UTC(), Links: flat(e.Links),
			})
		}
		for _, d := range d.Deleted {
			g.Deleted = append(g.Deleted, goldenDeleted{Ref: d.Ref, When: d.When.UTC()})
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(g))
	return b.String()
}

func flat(links feedhistory.Links) (flat []string) {
	for _, l := range links {
		flat = append(flat, l.Rel+" "+l.Href)
	}
	return flat
}

// codes returns the notes' codes, each once.
func codes(notes []feedhistory.Note) (codes []string) {
	seen := map[string]bool{}
	for _, n := range notes {
		if !seen[n.Code] {
			codes = append(codes, n.Code)
		}
		seen[n.Code] = true
	}
	return codes
}

// testStandalone checks that each entry's XML alone says what the entry said in its
// document, and that strict readers accept it.
func testStandalone(t *testing.T, doc *feedhistory.Document) {
	for _, e := range doc.Entries {
		if doc.Format == feedhistory.FormatJSONFeed {
			require.True(t, json.Valid(e.JSON()), "%s", e.JSON())
			testReadAgain(t, e, fixtureBase)
			continue
		}
		standalone := string(e.XML())
		d := xml.NewDecoder(strings.NewReader(standalone))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err, standalone)
			}
		}
		testReadAgain(t, e, "http://elsewhere.example/")
	}
}

// atomEntry reads the only entry of an Atom feed with the given attributes.
func atomEntry(t testing.TB, attrs, entry string) *feedhistory.Entry {
	t.Helper()
	doc, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom" `+attrs+`>`+entry+`</feed>`),
		"http://example.org/feeds/index.atom")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 1)
	return doc.Entries[0]
}

func TestTextConstructs(t *testing.T) {
	const base = "http://example.org/feeds/index.atom"
	for _, tc := range []struct {
		name, content string
		want          feedhistory.Text
	}{
		{"no type", `<content> a &amp; b </content>`, feedhistory.Text{Type: "text", Body: "a & b", Base: base}},
		{"text", `<content type="text">a &lt; b</content>`, feedhistory.Text{Type: "text", Body: "a < b", Base: base}},
		{"html", `<content type="html">&lt;p>a &amp;amp; b</content>`, feedhistory.Text{Type: "html", Body: "<p>a &amp; b", Base: base}},
		{"html in CDATA", `<content type="html"><![CDATA[<p>a &amp; b]]></content>`, feedhistory.Text{Type: "html", Body: "<p>a &amp; b", Base: base}},
		{"xhtml", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>a &amp; <br/>b</p><p/></div></content>`,
			feedhistory.Text{Type: "xhtml", Body: `<p>a &amp; <br>b</p><p></p>`, Base: base}},
		{"xhtml with a prefix", `<content type="xhtml"><h:div xmlns:h="http://www.w3.org/1999/xhtml"><h:p class="x">a</h:p></h:div></content>`,
			feedhistory.Text{Type: "xhtml", Body: `<p class="x">a</p>`, Base: base}},
		{"xhtml with text around elements", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<!-- c --><i>b</i><div>c</div>d</div></content>`,
			feedhistory.Text{Type: "xhtml", Body: `a<i>b</i><div>c</div>d`, Base: base}},
		{"xhtml without its div", `<content type="xhtml"><p xmlns="http://www.w3.org/1999/xhtml">a</p><p>b</p></content>`,
			feedhistory.Text{Type: "xhtml", Body: `<p>a</p><p>b</p>`, Base: base}},
		{"xml:base on the content", `<content type="html" xml:base="/posts/1.html">x</content>`,
			feedhistory.Text{Type: "html", Body: "x", Base: "http://example.org/posts/1.html"}},
		{"xml:base on the div", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml" xml:base="/posts/"><img src="1.png"/></div></content>`,
			feedhistory.Text{Type: "xhtml", Body: `<img src="1.png">`, Base: "http://example.org/posts/"}},
		{"xml:base further in", `<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p xml:base="/posts/"><img src="1.png"/></p></div></content>`,
			feedhistory.Text{Type: "xhtml", Body: `<p><img src="http://example.org/posts/1.png"></p>`, Base: base}},
		{"language", `<content xml:lang="de">x</content>`, feedhistory.Text{Type: "text", Body: "x", Base: base, Lang: "de"}},
		{"elsewhere", `<content type="video/mp4" src="1.mp4"/>`, feedhistory.Text{Type: "video/mp4", Src: "http://example.org/feeds/1.mp4", Base: base}},
		{"base64", `<content type="image/png">aGVs
			bG8=</content>`, feedhistory.Text{Type: "image/png", Body: "hello", Base: base}},
		{"XML", `<content type="application/mathml+xml"><m xmlns="urn:m">1<n/></m></content>`,
			feedhistory.Text{Type: "application/mathml+xml", Body: `<m xmlns="urn:m">1<n/></m>`, Base: base}},
		{"none", ``, feedhistory.Text{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, atomEntry(t, "", "<entry><id>1</id>"+tc.content+"</entry>").Content())
		})
	}
}

func TestAtom03Modes(t *testing.T) {
	for content, want := range map[string]feedhistory.Text{
		`>&lt;b>x`: {Type: "text", Body: "<b>x"},
		` type="text/html" mode="escaped">&lt;b>x`:                    {Type: "html", Body: "<b>x"},
		` type="application/xhtml+xml"><b>x</b>`:                      {Type: "xhtml", Body: "<b>x</b>"},
		` type="text/html" mode="xml"><b>x</b>`:                       {Type: "xhtml", Body: "<b>x</b>"},
		` type="application/xhtml+xml" mode="escaped">&lt;b>x&lt;/b>`: {Type: "html", Body: "<b>x</b>"},
		` type="text/plain" mode="base64">aGVsbG8=`:                   {Type: "text", Body: "hello"},
	} {
		doc, err := feedhistory.Parse(strings.NewReader(`<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><id>1</id>
			<content`+content+`</content></entry></feed>`), "")
		require.NoError(t, err)
		require.Equal(t, want, doc.Entries[0].Content(), content)
	}
}

func TestEntryXML(t *testing.T) {
	const outer = `xmlns:dc="http://purl.org/dc/elements/1.1/" xml:lang="en" xml:base="/posts/"`
	for name, tc := range map[string][2]string{
		"what is in scope": {
			`<entry><id>1</id><dc:date>2003</dc:date></entry>`,
			`<entry xmlns="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/" xml:base="http://example.org/posts/" xml:lang="en"><id>1</id><dc:date>2003</dc:date></entry>`},
		"its own goes first": {
			`<entry xmlns:dc="urn:dc" xml:lang="de" xml:base="1/"><id>1</id><!-- kept --><dc:x/></entry>`,
			`<entry xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/posts/1/" xmlns:dc="urn:dc" xml:lang="de"><id>1</id><!-- kept --><dc:x/></entry>`},
		"what is broken is mended": {
			`<entry><id>1</id><title>a & b &nbsp;</title></entry>`,
			`<entry xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/posts/" xml:lang="en"><id>1</id><title>a &amp; b ` + "\u00a0" + `</title></entry>`},
	} {
		t.Run(name, func(t *testing.T) {
			e := atomEntry(t, outer, tc[0])
			require.Equal(t, tc[1], string(e.XML()))
			d := xml.NewDecoder(strings.NewReader(string(e.XML())))
			for {
				if _, err := d.Token(); err != nil {
					require.Equal(t, io.EOF, err)
					break
				}
			}
		})
	}
}

func TestStrict(t *testing.T) {
	const text = `<rss><channel><item><guid>1</guid></item><item><guid>2</guid><br></item></channel></rss>`
	doc, err := feedhistory.Parser{Strict: true}.Parse(strings.NewReader(text), "")
	parse := feedtest.ErrorAs[*feedhistory.ParseError](t, err)
	require.Equal(t, feedhistory.ReasonMalformed, parse.Reason)
	require.Len(t, doc.Entries, 1)
	doc, err = feedhistory.Parse(strings.NewReader(text), "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 2)
}

// Messages of PHP around a feed are no text that quotes it.
func TestFeedAmongWarnings(t *testing.T) {
	const feed = `<rss><channel><item><guid>1</guid></item></channel></rss>`
	for text, quoted := range map[string]bool{
		"Notice: Undefined index: x in /a.php on line 12\n" + feed + "\nWarning: Unknown: write failed in Unknown on line 0": false,
		"PHP Deprecated:  x in a.php on line 1\n\n" + feed + "\n\nFatal error: y in b.php on line 2\n":                       false,
		"Warning: something in index.php on line 3\n" + feed:                                                                 false,
		"Warning: this feed has one item, see index.php on line 3:\n" + feed + "\nand nobody reads it":                       true,
		"A feed:\n" + feed + "\nWarning: Unknown: write failed in Unknown on line 0":                                         true,
		"<br />\n<b>Warning</b>:  x in <b>/a.php</b> on line <b>3</b><br />\n" + feed + "\nRendered in 0.1 s":                false,
		"<b>Warning</b>: this feed has one item:\n" + feed + "\nand nobody reads it":                                         true,
	} {
		doc, err := feedhistory.Parse(strings.NewReader(text), "")
		if quoted {
			require.ErrorContains(t, err, "only quotes a feed", text)
			continue
		}
		require.NoError(t, err, text)
		require.Len(t, doc.Entries, 1)
	}
}

// The texts of a mended entry are those of a well-formed one.
func TestMendedTexts(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>1 < 2<br>3<p>4 &nbsp;<b class=x>5</div></content>`,
			"<p>1 &lt; 2<br>3</p><p>4 \u00a0<b class=\"x\">5</b></p>"},
		{`<content type="application/xml"><x y=1>1<z></x></content>`, `<x y="1">1<z></z></x>`},
		{`<content type="html">1 < 2 &lt;br></content><br>`, "1 < 2 <br>"},
		{`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>1</Content>`, "<p>1</p>"},
	} {
		doc, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id>`+tt.content+`</entry></feed>`), "")
		require.NoError(t, err)
		require.Len(t, doc.Entries, 1)
		require.Equal(t, tt.want, doc.Entries[0].Content().Body)
		d := xml.NewDecoder(strings.NewReader(string(doc.Entries[0].XML())))
		for err = nil; err == nil; {
			_, err = d.Token()
		}
		require.ErrorIs(t, err, io.EOF)
	}
}

// An entry that another document repeats is the same, wherever the damage is.
func TestMendedEntriesAreTheSame(t *testing.T) {
	read := func(text string) []*feedhistory.Entry {
		doc, err := feedhistory.Parse(strings.NewReader(text), "http://example.org/")
		require.NoError(t, err)
		return doc.Entries
	}
	const item = "<item><guid>1</guid><title>A & B</title></item>"
	sound := read("<rss><channel>" + item + "</channel></rss>")
	damaged := read("<rss><channel><br>" + item + "\n<item>2\n<item>3\n</channel></rss>")
	require.Len(t, damaged, 3)
	require.Equal(t, sound[0].Digest(), damaged[0].Digest())
	alone := read("<rss><channel><item>2</channel></rss>")
	require.Equal(t, alone[0].Digest(), damaged[1].Digest(), "what stands between entries is no part of them")
}

// What damage may have lost, although the document was read to its end, is reported: an
// entry that is no longer one, and an id that nobody wrote.
func TestWhatDamageCosts(t *testing.T) {
	const link = `<link rel="prev-archive" href="1"/>`
	feed := func(s string) string { return `<feed xmlns="` + feedxml.Atom + `">` + link + s + `</feed>` }
	const sound = `<entry><id>0</id></entry>`
	for _, tt := range []struct {
		name, text string
		ids        []string
		want       string
	}{
		{"nothing", feed(sound + `<entry><br><id>1</id></entry>`), []string{"0", "1"}, ""},
		{"a stray end tag", feed(sound + `</entry>` + sound), []string{"0", "0"}, ""},
		{"an id twice", feed(sound + `<entry><id>1</id><id>1</id><br></entry>`), []string{"0", "1"}, ""},
		{"two ids in a sound document", feed(sound + `<entry><id>1</id><id>2</id></entry>`), []string{"0", "1"}, ""},
		{"two entries in one", feed(sound + `<entry><id>1</id><title>a<id>2</id></title></title><id>3</id></entry>`), []string{"0", "1"}, "two ids"},
		{"an entry without its start tag", feed(sound + `<id>1</id><summary/></entry>` + sound), []string{"0", "0"}, "is outside all entries"},
		{"an entry without its start tag, whose parts the feed has too", feed(`<id>f</id>` + sound + `<id>1</id></entry>` + sound), []string{"0", "0"}, "lost its beginning"},
		{"an end tag twice", feed(sound + `
 </entry>` + sound), []string{"0", "0"}, ""},
		{"an entry that only the feed ends", feed(sound + `<entry><id>1</id>`), []string{"0", "1"}, "or its end"},
		{"an end within a title", feed(sound + `<entry><id>1</id><title>a`), []string{"0", "1"}, "or its end"},
		{"the only entry, without its end and its time", feed(`<updated>2003-01-01T00:00:00Z</updated><entry><id>1</id><title>a`), nil, "or its end"},
		{"an end within a title before the next entry", feed(`<entry><id>1</id><title>a` + sound), []string{"1", "0"}, "or its end"},
		{"an end that has the time with it", feed(`<updated>2003-01-01T00:00:00Z</updated><entry><id>1</id><title>a` + sound), []string{"0"}, "or its end"},
		{"an end between two elements", feed(`<entry><id>1</id><title>a</title>` + sound), []string{"1", "0"}, ""},
		{"entries without end tags, nor their titles", `<rss><channel>` + link + `<item><guid>0</guid><title>a<item><guid>1</guid><title>b</channel></rss>`, []string{"0", "1"}, ""},
		{"entries without end tags", `<rss><channel>` + link + `<item><guid>0</guid><item><guid>1</guid></channel></rss>`, []string{"0", "1"}, ""},
		{"an id without its start tag", feed(sound + `<entry>id>1</id><link href="x"/></entry>`), []string{"0"}, "id is damaged"},
		{"an id that became another element", feed(sound + `<entry><idtag:1</id ><link href="x"/></entry>`), []string{"0"}, "id is damaged"},
		{"two items without ids in one", `<rss><channel>` + link + `<item><link>1</link></item><item><link>2</link><title>a</title></title><link>3</link></item></channel></rss>`,
			[]string{"http://h/1", "http://h/2"}, "two links"},
		{"an item's", `<rss><channel>` + link + `<item><guid>0</guid></item><item><foo>1</guid><link>x</link></item></channel></rss>`, []string{"0"}, "id is damaged"},
		{"a part of an item", `<rss><channel>` + link + `<item><guid>0</guid></item><guid>1</guid></item></channel></rss>`, []string{"0"}, "is outside all entries"},
		{"an entry in a comment that only lacks an end", feed(`<entry><id>0</id><!-- </entry><entry><id>1</id><!-- x --></entry>` + sound),
			[]string{"0", "0"}, "inside another element"},
		{"entries in a comment", feed(`<entry><id>0</id></entry><!-- <entry><id>1</id></entry> -- <entry/> -->` + sound), []string{"0", "0"}, ""},
		{"an end that HTML allows", feed(`<entry><id>0</id><!-- </entry><entry><id>1</id> --!></entry>` + sound), []string{"0", "0"}, "inside another element"},
		{"an entry in a comment", feed(`<entry><id>0</id><br><!-- </entry><entry><id>1</id></entry><entry><!-- x --><id>2</id></entry>` + sound),
			[]string{"0", "0"}, "inside another element"},
	} {
		doc, err := feedhistory.Parse(strings.NewReader(tt.text), "http://h/feed")
		if err == nil && doc.MendedDamage(feedhistory.KindArchived) != nil {
			err = doc.MendedDamage(feedhistory.KindArchived)
		}
		if tt.want == "" {
			require.NoError(t, err, tt.name)
		} else {
			require.ErrorContains(t, err, tt.want, tt.name)
		}
		var ids []string
		for _, e := range doc.Entries {
			ids = append(ids, e.ID)
		}
		require.Equal(t, tt.ids, ids, tt.name)
	}
}

// Items which share a guid but neither title nor link go by their links. Copies of an item, and
// versions of an entry of Atom, are one (5005#20).
func TestSharedIDs(t *testing.T) {
	item := func(guid, title, link string) string {
		return "<item><guid isPermaLink=\"false\">" + guid + "</guid><title>" + title + "</title><link>" + link + "</link></item>"
	}
	rss := func(items ...string) string { return "<rss><channel>" + strings.Join(items, "") + "</channel></rss>" }
	for name, tt := range map[string]struct {
		doc  string
		want []string
	}{
		"by link":                 {rss(item("0", "A", "http://h/a"), item("0", "B", "http://h/b"), item("1", "C", "http://h/c")), []string{"http://h/a", "http://h/b", "1"}},
		"the same twice":          {rss(item("0", "A", "http://h/a"), item("0", "A", "http://h/a")), []string{"0", "0"}},
		"another title":           {rss(item("0", "A", "http://h/a"), item("0", "B", "http://h/a")), []string{"0", "0"}},
		"another link":            {rss(item("0", "A", "http://h/a"), item("0", "A", "http://h/b")), []string{"0", "0"}},
		"a campaign":              {rss(item("0", "A", "http://h/a"), item("0", "A!", "http://h/a?utm_source=rss")), []string{"0", "0"}},
		"one without a link":      {rss(item("0", "A", "http://h/a"), item("0", "B", "http://h/b"), item("0", "C", "")), []string{"http://h/a", "http://h/b", "0"}},
		"copies among the shared": {rss(item("0", "A", "http://h/a"), item("0", "B", "http://h/b"), item("0", "A", "http://h/a")), []string{"http://h/a", "http://h/b", "http://h/a"}},
		"versions of an entry": {`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>0</id><title>A</title><link href="http://h/a"/><updated>2003-01-01T00:00:00Z</updated></entry>` +
			`<entry><id>0</id><title>B</title><link href="http://h/b"/><updated>2003-01-02T00:00:00Z</updated></entry></feed>`, []string{"0", "0"}},
		"items of JSON Feed": {`{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"0","title":"A","url":"http://h/a"},{"id":"0","title":"B","url":"http://h/b"}]}`,
			[]string{"http://h/a", "http://h/b"}},
	} {
		doc, err := feedhistory.Parse(strings.NewReader(tt.doc), "http://h/feed")
		require.NoError(t, err, name)
		require.ElementsMatch(t, tt.want, ids(doc.Entries), name)
	}
}

// MaxEntries is the number of entries to read, in each format; the elements follow.
func TestMaxEntries(t *testing.T) {
	many := func(n int) map[feedhistory.Format]string {
		return map[feedhistory.Format]string{
			feedhistory.FormatAtom:     `<feed xmlns="http://www.w3.org/2005/Atom">` + strings.Repeat("<entry><id/></entry>", n) + "</feed>",
			feedhistory.FormatRSS:      "<rss><channel>" + strings.Repeat("<item/>", n) + "</channel></rss>",
			feedhistory.FormatJSONFeed: `{"version":"https://jsonfeed.org/version/1.1","items":[{}` + strings.Repeat(",{}", n-1) + "]}",
		}
	}
	for format, text := range many(3) {
		doc, err := feedhistory.Parser{MaxEntries: 3}.Parse(strings.NewReader(text), "")
		require.NoError(t, err, format)
		require.Len(t, doc.Entries, 3, format)
		doc, err = feedhistory.Parser{MaxEntries: 2}.Parse(strings.NewReader(text), "")
		require.ErrorIs(t, err, feedhistory.ErrTooManyEntries, format)
		require.ErrorContains(t, err, "more than 2 entries", format)
		require.Len(t, doc.Entries, 2, format)
	}
	for format, text := range many(50_001) {
		_, err := feedhistory.Parse(strings.NewReader(text), "")
		require.ErrorIs(t, err, feedhistory.ErrTooManyEntries, format)
	}
	elements := "<rss><channel>" + strings.Repeat("<item>"+strings.Repeat("<a/>", 15)+"</item>", 70_000) + "</channel></rss>"
	doc, err := feedhistory.Parser{MaxEntries: 70_000}.Parse(strings.NewReader(elements), "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, 70_000)
	_, err = feedhistory.Parser{MaxEntries: -1}.Parse(strings.NewReader(elements), "")
	require.ErrorContains(t, err, "negative")
}

// A feed with HTML's DOCTYPE is still a feed, if nothing else comes before it.
func TestDoctypeOfHTML(t *testing.T) {
	const item = "<rss><channel><item><guid>1</guid><br></item></channel></rss>"
	for before, isFeed := range map[string]bool{
		"<!DOCTYPE html>":                   true,
		"<!doctype html>\n<!-- 1 < 2 -->\n": true,
		"<!doctype html><head></head>":      false,
		"<!doctype html><html>":             false,
		"<html>":                            false,
	} {
		doc, err := feedhistory.Parse(strings.NewReader(before+item), "http://h/feed")
		if !isFeed {
			parse := feedtest.ErrorAs[*feedhistory.ParseError](t, err, before)
			require.Equal(t, feedhistory.ReasonNotFeed, parse.Reason, before)
			continue
		}
		require.NoError(t, err, before)
		require.Len(t, doc.Entries, 1, before)
	}
}

func TestFetchGivesWhatCouldBeRead(t *testing.T) {
	doc, err := feedhistory.Parse(strings.NewReader(`<rss><channel><item><guid>1</guid></item><item>`), "http://example.org/")
	require.Error(t, err)
	h, merged := feedhistory.Merge(func(yield func(*feedhistory.Reading, error) bool) { yield(&feedhistory.Reading{Document: doc}, err) })
	require.Equal(t, err, merged)
	require.Equal(t, feedhistory.VerdictPartial, h.Verdict())
	require.Zero(t, h.Documents)
	require.Len(t, h.Entries, 1)
	require.Len(t, h.Gaps, 1)
	require.Equal(t, feedhistory.ReasonTruncated, h.Gaps[0].Reason)
	require.Same(t, doc, h.Gaps[0].Document)
}

// Two gaps of one document with different words of the publisher both count.
func TestDeclaredWords(t *testing.T) {
	doc, err := feedhistory.Parse(strings.NewReader(`<feed xmlns="http://www.w3.org/2005/Atom"><m:mirror xmlns:m="`+feedxml.Coverage+
		`" verdict="partial"><m:gap reason="burnt"/><m:gap reason="lost"/><m:gap reason="lost"/></m:mirror></feed>`), "http://example.net/feed")
	require.NoError(t, err)
	h, err := feedhistory.Merge(feedhistory.Readings(doc))
	require.NoError(t, err)
	require.Len(t, h.Gaps, 2)
}

// Whatever charset a document came in, other parsers can read its Text.
func TestTextSaysThatItIsUTF8(t *testing.T) {
	declared := 0
	for _, file := range feedtest.Glob(t, "testdata/parse/charset-*.*") {
		if strings.HasSuffix(file, ".json") {
			continue
		}
		data := feedtest.ReadFile(t, file)
		doc, err := feedhistory.Parse(bytes.NewReader(data), "")
		require.NotNil(t, doc, file)
		if err == nil {
			decoder := xml.NewDecoder(strings.NewReader(doc.Text())) // refuses what says that it is not UTF-8
			for err == nil {
				_, err = decoder.Token()
			}
			require.ErrorIs(t, err, io.EOF, file)
		}
		if strings.Contains(doc.Text()[:60], "encoding") {
			declared++
		}
		again, _ := feedhistory.Parse(strings.NewReader(doc.Text()), "")
		require.Len(t, again.Entries, len(doc.Entries), file)
		for i, e := range doc.Entries {
			require.Contains(t, doc.Text(), e.Raw())
			require.Equal(t, e.Title(), again.Entries[i].Title(), file)
			require.Equal(t, e.ID, again.Entries[i].ID)
		}
	}
	require.Greater(t, declared, 5)
}

// A server that declares UTF-8 for everything makes one id of two only if nothing else reveals the
// charset.
func TestCharsetOfHTTP(t *testing.T) {
	const (
		news, letters  = "\xCD\xEE\xE2", "\xC0\xE1\xE2" // Нов and Абв in windows-1251
		newsJSON       = `{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"` + news + `"},{"id":"` + letters + `"}]}`
		atom1, atom2   = `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>` + news + `</id></entry>`, `<entry><id>` + letters + `</id></entry></feed>`
		declaredInAtom = `<?xml version="1.0" encoding="windows-1251"?>` + atom1 + atom2
	)
	for name, test := range map[string]struct{ body, contentType, first, second, code string }{
		"declared":        {declaredInAtom, "application/xml; charset=utf-8", "Нов", "Абв", "charset-mismatch"},
		"undeclared":      {atom1 + atom2, "application/xml; charset=utf-8", "Íîâ", "Àáâ", "invalid-bytes"},
		"said by HTTP":    {atom1 + atom2, "application/xml; charset=windows-1251", "Нов", "Абв", ""},
		"JSON, HTTP":      {newsJSON, "application/json; charset=windows-1251", "Нов", "Абв", "invalid-bytes"},
		"JSON, undefined": {newsJSON, "application/json; charset=utf-8", "Íîâ", "Àáâ", "invalid-bytes"},
		"JSON, UTF-8": {strings.NewReplacer(news, "Нов", letters, "Абв").Replace(newsJSON),
			"application/json; charset=windows-1251", "Нов", "Абв", ""},
	} {
		doc, err := feedhistory.Parser{Header: http.Header{"Content-Type": {test.contentType}}}.Parse(strings.NewReader(test.body), "")
		require.NoError(t, err, name)
		require.Len(t, doc.Entries, 2, name)
		require.Equal(t, test.first, doc.Entries[0].ID, name)
		require.Equal(t, test.second, doc.Entries[1].ID, name)
		require.Equal(t, test.code, strings.Join(codes(doc.Notes), " "), name)
	}
}

// pieces is a reader that knows the length of its text, and hands it over in pieces.
type pieces []string

func (p pieces) Len() int { return len(strings.Join(p, "")) }

func (p pieces) Read([]byte) (int, error) { return 0, errors.New("WriteTo is to be used") }

func (p pieces) WriteTo(w io.Writer) (n int64, err error) {
	for _, piece := range p {
		k, err := io.WriteString(w, piece)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, nil
}

// A text is read the same however it comes. One given as a string is not copied.
func TestParseReaders(t *testing.T) {
	text := feedtest.Generated("rss", 100, 20<<10)
	want, err := feedhistory.Parse(strings.NewReader(text), "")
	require.NoError(t, err)
	for name, r := range map[string]io.Reader{
		"bytes": bytes.NewReader([]byte(text)), "buffer": bytes.NewBufferString(text), "plain": io.MultiReader(strings.NewReader(text)),
		"pieces": pieces{text[:1000], "", text[1000:]}, "one piece": pieces{text}, "an empty piece": pieces{"", text},
	} {
		doc, err := feedhistory.Parse(r, "")
		require.NoError(t, err, name)
		require.Len(t, doc.Entries, len(want.Entries), name)
		require.Equal(t, want.Entries[99].XML(), doc.Entries[99].XML(), name)
	}
	used := feedtest.Allocated(func() { _, _ = feedhistory.Parse(strings.NewReader(text), "") })
	require.Less(t, used, int64(len(text)/4))
}
